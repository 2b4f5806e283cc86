/* A distributed matrix becomes its factors: columns scaled, p?geqrf, R scaled back, T. */
#include <math.h>
#include <string.h>

#include "mpi/matrix.h"

/* Multiplies rows [0, rows) of local column j by 2^exponent, in two steps that stay in range. */
static void scale_column(dist_matrix_t *x, int64_t j, int64_t rows, int exponent)
{
    double half = ldexp(1, exponent / 2), rest = ldexp(1, exponent - exponent / 2);
    for (int64_t e = matrix_at(x, 0, j, 0); e < matrix_at(x, rows, j, 0); e++)
        matrix_store(x->g.dtype, x->piece, e,
                     gb10_number_at(x->g.dtype, x->piece, e) * half * rest);
}

/* Every column's largest entry is brought into [1, 2): no norm overflows, none is subnormal. */
static gb10_status_t scale_columns(dist_matrix_t *x, gb10_error_t *err)
{
    gb10_status_t status = matrix_reduce(x->in_col, x->top, x->cols, MPI_MAX, err);
    for (int64_t j = 0; j < x->cols && status == GB10_OK; j++) {
        x->shift[j] = x->top[j] > 0 ? ilogb(x->top[j]) : 0;
        if (x->shift[j] != 0)
            scale_column(x, j, x->rows, -x->shift[j]);
    }
    return status;
}

static void unscale_r(dist_matrix_t *x)
{
    for (int64_t j = 0; j < x->cols; j++) {
        int64_t rows = matrix_above(x, matrix_column(x, j) + 1);
        if (x->shift[j] != 0)
            scale_column(x, j, rows < x->krows ? rows : x->krows, x->shift[j]);
    }
}

/* ---- T ---- */

/* Rows [first, first + rows) of the block's columns of V into the chunk, row by row. */
static void load_chunk(dist_matrix_t *x, const tblock_t *b, int64_t first, int64_t rows)
{
    int64_t width = x->nb * x->parts;
    for (int64_t j = 0; j < b->width; j++) {
        int64_t column = b->column + j;
        for (int64_t i = 0; i < rows; i++) {
            int64_t row = matrix_row(x, first + i);
            double *to = x->chunk + i * width + j * x->parts;
            for (int q = 0; q < x->parts; q++)
                to[q] = row > column ? matrix_number(x, first + i, b->local + j, q)
                                     : row == column && q == 0;
        }
    }
}

/* part_G += conj(v_i) v_j for j > i, one row of V. */
static void add_row(dist_matrix_t *x, const double *v, int64_t width)
{
    for (int64_t i = 0; i < width; i++) {
        double *restrict g = x->part_G + i * x->nb * x->parts;
        if (x->parts == 1) {
            for (int64_t j = i + 1; j < width; j++)
                g[j] += v[i] * v[j];
            continue;
        }
        double re = v[2 * i], im = v[2 * i + 1];
        for (int64_t j = i + 1; j < width; j++) {
            g[2 * j] += re * v[2 * j] + im * v[2 * j + 1];
            g[2 * j + 1] += re * v[2 * j + 1] - im * v[2 * j];
        }
    }
}

/* G = V^H V above the diagonal, on every rank of the process column; summed at two levels. */
static gb10_status_t gram(dist_matrix_t *x, const tblock_t *b, gb10_error_t *err)
{
    int64_t numbers = x->nb * x->nb * x->parts;
    memset(x->G, 0, (size_t)numbers * sizeof *x->G);
    for (int64_t first = matrix_above(x, b->column); first < x->rows; first += MATRIX_CHUNK) {
        int64_t rows = x->rows - first < MATRIX_CHUNK ? x->rows - first : MATRIX_CHUNK;
        load_chunk(x, b, first, rows);
        memset(x->part_G, 0, (size_t)numbers * sizeof *x->part_G);
        for (int64_t i = 0; i < rows; i++)
            add_row(x, x->chunk + i * x->nb * x->parts, b->width);
        for (int64_t e = 0; e < numbers; e++)
            x->G[e] += x->part_G[e];
    }
    return matrix_reduce(x->in_col, x->G, numbers, MPI_SUM, err);
}

/* t += a b, complex where the matrix is. */
static void multiply_add(int parts, double *t, const double *a, const double *b)
{
    if (parts == 1) {
        *t += *a * *b;
        return;
    }
    t[0] += a[0] * b[0] - a[1] * b[1];
    t[1] += a[0] * b[1] + a[1] * b[0];
}

/* LAPACK's larft, columnwise forward: T(0:j, j) = -tau_j T(0:j, 0:j) G(0:j, j); into part_G. */
static void form_block(dist_matrix_t *x, const tblock_t *b)
{
    int64_t nb = x->nb, parts = x->parts;
    double *T = x->part_G;
    memset(T, 0, (size_t)(nb * nb * parts) * sizeof *T);
    for (int64_t j = 0; j < b->width; j++) {
        double tau[2] = {0, 0}, minus[2];
        for (int q = 0; q < x->parts; q++)
            tau[q] = gb10_number_at(x->g.dtype, x->work.tau, (b->local + j) * parts + q);
        minus[0] = -tau[0];
        minus[1] = -tau[1];
        for (int64_t i = 0; i < j; i++) {
            double sum[2] = {0, 0};
            for (int64_t l = i; l < j; l++)
                multiply_add(x->parts, sum, T + (i * nb + l) * parts, x->G + (l * nb + j) * parts);
            multiply_add(x->parts, T + (i * nb + j) * parts, minus, sum);
        }
        for (int q = 0; q < x->parts; q++)
            T[(j * nb + j) * parts + q] = tau[q];
    }
}

static void keep_block(dist_matrix_t *x, const tblock_t *b)
{
    bool single = !gb10_dtype_is_double(x->g.dtype);
    for (int64_t i = 0; i < x->nb; i++)
        for (int64_t e = 0; e < b->width * x->parts; e++) {
            double t = x->part_G[i * x->nb * x->parts + e];
            x->T[(i * x->kcols + b->local) * x->parts + e] = single ? (double)(float)t : t;
        }
}

/* Blocks of T by the ranks of their process columns; the first one's is everybody's. */
static gb10_status_t form_t(dist_matrix_t *x, gb10_error_t *err)
{
    gb10_status_t status = GB10_OK;
    int64_t bytes = x->nb * x->nb * x->parts * (int64_t)sizeof *x->part_G;
    GB10_TRY(matrix_broadcast(x->in_col, 0, x->work.tau, (int64_t)x->work.tau_bytes, err));
    for (int64_t p = 0; p < matrix_blocks(x); p++) {
        tblock_t b = matrix_block(x, p);
        if (b.owner != x->g.mycol)
            continue;
        GB10_TRY(gram(x, &b, err));
        form_block(x, &b);
        GB10_TRY(matrix_broadcast(x->in_col, 0, x->part_G, bytes, err));
        keep_block(x, &b);
    }
cleanup:
    return status;
}

/* ---- what is not as it must be ---- */

/* R's diagonal, real by definition, on every rank of its process row. */
static gb10_status_t read_diagonal(dist_matrix_t *x, bool *broken, gb10_error_t *err)
{
    memset(x->rdiag, 0, (size_t)x->krows * sizeof *x->rdiag);
    for (int64_t j = 0; j < x->kcols; j++) {
        int64_t column = matrix_column(x, j), i = matrix_above(x, column);
        if (i >= x->krows || matrix_row(x, i) != column)
            continue;
        x->rdiag[i] = matrix_number(x, i, j, 0);
        *broken |= x->parts == 2 && !(matrix_number(x, i, j, 1) == 0);
    }
    return matrix_reduce(x->in_row, x->rdiag, x->krows, MPI_SUM, err);
}

/* |tau - 1| <= 1 + 4u; or tau = 0 and nothing below the diagonal. */
static bool tau_is_bad(const dist_matrix_t *x, int64_t j)
{
    double tau[2] = {0, 0};
    for (int q = 0; q < x->parts; q++)
        tau[q] = gb10_number_at(x->g.dtype, x->work.tau, j * x->parts + q);
    if (tau[0] != 0 || tau[1] != 0)
        return !(hypot(tau[0] - 1, tau[1]) <= 1 + 4 * gb10_dtype_u(x->g.dtype));
    for (int64_t i = matrix_above(x, matrix_column(x, j) + 1); i < x->rows; i++)
        for (int q = 0; q < x->parts; q++)
            if (matrix_number(x, i, j, q) != 0)
                return true;
    return false;
}

/* Looks for numbers that are not finite, and at the structure. */
static gb10_status_t inspect(dist_matrix_t *x, dist_quality_t *quality, gb10_error_t *err)
{
    bool broken = false;
    int64_t found[2] = {0, 0};
    gb10_status_t status = GB10_OK;
    GB10_TRY(read_diagonal(x, &broken, err));
    for (int64_t j = 0; j < x->cols; j++) {
        int64_t upper = matrix_above(x, matrix_column(x, j) + 1);
        for (int64_t i = 0; i < x->rows; i++)
            for (int q = 0; q < x->parts; q++)
                if (!isfinite(matrix_number(x, i, j, q)))
                    found[i < upper && i < x->krows ? 0 : 1]++;
    }
    for (int64_t j = 0; j < x->kcols; j++)
        broken |= tau_is_bad(x, j);
    found[1] += broken;
    GB10_TRY(dist_sum(x->team, found, 2, err));
    quality->overflow = found[0] > 0;
    quality->broken = found[1] > 0;
cleanup:
    return status;
}

gb10_status_t dist_geqrf(dist_matrix_t *matrix, bool norms, bool probe, dist_quality_t *quality,
                         gb10_error_t *err)
{
    dist_matrix_t *x = matrix;
    int exponent = 0;
    gb10_status_t status = GB10_OK;
    *quality = (dist_quality_t){NAN, {NAN, NAN}, NAN, NAN, false, false};
    GB10_TRY(scale_columns(x, err));
    if (norms || probe)
        GB10_TRY(matrix_measure_a(x, probe, &exponent, err));
    GB10_TRY(grid_geqrf(&x->g, x->piece, &x->work, err));
    unscale_r(x);
    GB10_TRY(form_t(x, err));
    GB10_TRY(inspect(x, quality, err));
    if ((norms || probe) && !quality->overflow && !quality->broken)
        GB10_TRY(matrix_measure(x, probe, exponent, quality, err));
cleanup:
    return status;
}
