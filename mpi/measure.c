/* Errors of a distributed factorisation: those of kernels/check that take O(mn), in the same units
 * and with the same allowance, in double-double over all ranks. */
#include <math.h>
#include <string.h>

#include "kernels/core/rng.h"
#include "mpi/matrix.h"

/* The probe vector of kernels/check. */
static double sign_of(int64_t j)
{
    return gb10_mix64((uint64_t)j + 1) & 1 ? 1 : -1;
}

/* s += v c */
static void mac(gb10_dd_t *s, double v, gb10_dd_t c)
{
    *s = gb10_dd_mac(*s, v, c.hi);
    s->lo += v * c.lo;
}

static gb10_dd_t plain(double value)
{
    return (gb10_dd_t){value, 0};
}

/* The sum over all ranks of what each has. */
static gb10_status_t sum_of_all(const dist_matrix_t *x, gb10_dd_t *values, int64_t n,
                                gb10_error_t *err)
{
    return matrix_sum_dd(x, MPI_COMM_WORLD, values, n, err);
}

/* ---- A ---- */

/* sums[j] = squares of rows [0, rows) of local column j, each times 2^exponent. */
static gb10_dd_t squares(const dist_matrix_t *x, int64_t j, int64_t rows, int exponent)
{
    double half = ldexp(1, exponent / 2), rest = ldexp(1, exponent - exponent / 2);
    gb10_dd_t sum = {0, 0};
    for (int64_t e = matrix_at(x, 0, j, 0); e < matrix_at(x, rows, j, 0); e++) {
        double value = gb10_number_at(x->g.dtype, x->piece, e) * half * rest;
        sum = gb10_dd_mac(sum, value, value);
    }
    return gb10_dd_normal(sum);
}

/* The largest exponent of any column that is not zero; 0 when all are. */
static gb10_status_t largest_exponent(const dist_matrix_t *x, int *exponent, gb10_error_t *err)
{
    double largest = -INFINITY;
    for (int64_t j = 0; j < x->cols; j++)
        if (x->top[j] > 0 && x->shift[j] > largest)
            largest = x->shift[j];
    gb10_status_t status = dist_max(x->team, &largest, 1, err);
    *exponent = isfinite(largest) ? (int)largest : 0;
    return status;
}

gb10_status_t matrix_measure_a(dist_matrix_t *x, bool probe, int *exponent, gb10_error_t *err)
{
    gb10_status_t status = GB10_OK;
    GB10_TRY(largest_exponent(x, exponent, err));
    for (int64_t j = 0; j < x->cols; j++)
        x->a2[j] = squares(x, j, x->rows, 0);
    GB10_TRY(matrix_sum_dd(x, x->in_col, x->a2, x->cols, err));
    memset(x->Ax, 0, (size_t)(x->rows * x->parts) * sizeof *x->Ax);
    for (int64_t j = 0; j < x->cols && probe; j++) {
        double weight = x->top[j] > 0 ? ldexp(1, x->shift[j] - *exponent) : 0;
        weight *= sign_of(matrix_column(x, j));
        for (int64_t i = 0; i < x->rows; i++)
            for (int q = 0; q < x->parts; q++)
                mac(&x->Ax[i * x->parts + q], matrix_number(x, i, j, q), plain(weight));
    }
    if (probe)
        GB10_TRY(matrix_sum_dd(x, x->in_row, x->Ax, x->rows * x->parts, err));
cleanup:
    return status;
}

/* ---- norms ---- */

/* What of an error, relative to `value`, exceeds that of rounding to subnormals; the numbers are in
 * units of 2^shift. */
static double beyond_tiny(const dist_matrix_t *x, double error, double value, int shift)
{
    double longer = (double)(x->m > x->n ? x->m : x->n);
    double tiny = ldexp(1, ilogb(gb10_dtype_tiny(x->g.dtype)) - shift);
    double beyond = error - 4 * sqrt(longer * (double)x->k) / value * tiny;
    return beyond < 0 ? 0 : beyond;
}

/* | ||R e_j|| - ||a_j|| | / ||a_j|| from the squares, whose difference is what cancels. */
static double norm_error(const dist_matrix_t *x, int64_t j)
{
    gb10_dd_t a2 = x->a2[j], r2 = x->r2[j];
    if (a2.hi == 0)
        return r2.hi == 0 ? 0 : INFINITY;
    double a = sqrt(a2.hi), r = sqrt(r2.hi);
    double difference = (r2.hi - a2.hi) + (r2.lo - a2.lo);
    double error = beyond_tiny(x, fabs(difference) / (a + r) / a, a, x->shift[j]);
    return isnan(error) ? INFINITY : error;
}

static gb10_status_t column_norms(dist_matrix_t *x, dist_quality_t *quality, gb10_error_t *err)
{
    double worst[3] = {0, -INFINITY, -INFINITY};
    gb10_status_t status = GB10_OK;
    for (int64_t j = 0; j < x->cols; j++) {
        int64_t rows = matrix_above(x, matrix_column(x, j) + 1);
        x->r2[j] = squares(x, j, rows < x->krows ? rows : x->krows, -x->shift[j]);
    }
    GB10_TRY(matrix_sum_dd(x, x->in_col, x->r2, x->cols, err));
    for (int64_t j = 0; j < x->cols; j++)
        worst[0] = fmax(worst[0], norm_error(x, j));
    for (int64_t i = 0; i < x->krows; i++) {
        worst[1] = fmax(worst[1], fabs(x->rdiag[i]));
        worst[2] = fmax(worst[2], -fabs(x->rdiag[i]));
    }
    GB10_TRY(dist_max(x->team, worst, 3, err));
    quality->column_norm_error = worst[0];
    quality->rdiag_max = worst[1];
    quality->rdiag_min = -worst[2];
cleanup:
    return status;
}

/* ---- Q on vectors ---- */

/* w = V^H c of the block, for vectors [first, MATRIX_VECTORS), on its process column. */
static gb10_status_t project(dist_matrix_t *x, const tblock_t *b, int first, gb10_error_t *err)
{
    int64_t vectors = MATRIX_VECTORS * x->nb * x->parts;
    double *re = x->v, *im = x->v + x->rows;
    memset(x->w, 0, (size_t)vectors * sizeof *x->w);
    for (int64_t j = 0; j < b->width; j++) {
        int64_t top = matrix_load_v(x, b->local + j, 0, re);
        if (x->parts == 2)
            matrix_load_v(x, b->local + j, 1, im);
        for (int s = first; s < MATRIX_VECTORS; s++) {
            const gb10_dd_t *c = x->C + s * x->rows * x->parts;
            gb10_dd_t *w = x->w + (s * x->nb + j) * x->parts;
            for (int64_t i = top; i < x->rows; i++) {
                mac(w, re[i], c[i * x->parts]);
                if (x->parts == 1)
                    continue;
                mac(w, im[i], c[2 * i + 1]);
                mac(w + 1, re[i], c[2 * i + 1]);
                mac(w + 1, -im[i], c[2 * i]);
            }
            for (int q = 0; q < x->parts; q++)
                w[q] = gb10_dd_normal(w[q]);
        }
    }
    return matrix_sum_dd(x, x->in_col, x->w, vectors, err);
}

/* z = T w, or T^H w. */
static void times_t(dist_matrix_t *x, const tblock_t *b, bool adjoint)
{
    int64_t parts = x->parts;
    memset(x->z, 0, (size_t)(MATRIX_VECTORS * x->nb * parts) * sizeof *x->z);
    for (int s = 0; s < MATRIX_VECTORS; s++)
        for (int64_t i = 0; i < b->width; i++)
            for (int64_t l = i; l < b->width; l++) {
                const double *t = x->T + (i * x->kcols + b->local + l) * parts;
                const gb10_dd_t *w = x->w + (s * x->nb + (adjoint ? i : l)) * parts;
                gb10_dd_t *z = x->z + (s * x->nb + (adjoint ? l : i)) * parts;
                mac(z, t[0], w[0]);
                if (parts == 1)
                    continue;
                double im = adjoint ? -t[1] : t[1];
                mac(z, -im, w[1]);
                mac(z + 1, t[0], w[1]);
                mac(z + 1, im, w[0]);
            }
    for (int64_t e = 0; e < MATRIX_VECTORS * x->nb * parts; e++)
        x->z[e] = gb10_dd_normal(x->z[e]);
}

/* c -= V z */
static void subtract(dist_matrix_t *x, const tblock_t *b, int first)
{
    double *re = x->v, *im = x->v + x->rows;
    for (int64_t j = 0; j < b->width; j++) {
        int64_t top = matrix_load_v(x, b->local + j, 0, re);
        if (x->parts == 2)
            matrix_load_v(x, b->local + j, 1, im);
        for (int s = first; s < MATRIX_VECTORS; s++) {
            gb10_dd_t *c = x->C + s * x->rows * x->parts;
            const gb10_dd_t *z = x->z + (s * x->nb + j) * x->parts;
            for (int64_t i = top; i < x->rows; i++) {
                mac(&c[i * x->parts], -re[i], z[0]);
                if (x->parts == 1)
                    continue;
                mac(&c[2 * i], im[i], z[1]);
                mac(&c[2 * i + 1], -re[i], z[1]);
                mac(&c[2 * i + 1], -im[i], z[0]);
            }
        }
    }
    for (int64_t e = first * x->rows * x->parts; e < MATRIX_VECTORS * x->rows * x->parts; e++)
        x->C[e] = gb10_dd_normal(x->C[e]);
}

/* Vectors [first, MATRIX_VECTORS) become Q c, or Q^H c. The process column that a block of V
 * belongs to works on it, the next one has to know the outcome. */
static gb10_status_t apply_q(dist_matrix_t *x, int first, bool adjoint, gb10_error_t *err)
{
    gb10_status_t status = GB10_OK;
    int64_t blocks = matrix_blocks(x), length = x->rows * x->parts;
    gb10_dd_t *c = x->C + first * length;
    int64_t bytes = (MATRIX_VECTORS - first) * length * (int64_t)sizeof *c;
    for (int64_t s = 0; s < blocks; s++) {
        int64_t p = adjoint ? s : blocks - 1 - s, next = adjoint ? p + 1 : p - 1;
        tblock_t b = matrix_block(x, p);
        if (b.owner == x->g.mycol) {
            GB10_TRY(project(x, &b, first, err));
            times_t(x, &b, adjoint);
            subtract(x, &b, first);
        }
        if (s == blocks - 1 || matrix_block(x, next).owner != b.owner)
            GB10_TRY(matrix_broadcast(x->in_row, b.owner, c, bytes, err));
    }
cleanup:
    return status;
}

/* ---- the probe ---- */

/* Vector 0 = R x in units of 2^exponent, vector 1 = x, both with zeros below row k. */
static gb10_status_t load_vectors(dist_matrix_t *x, int exponent, gb10_error_t *err)
{
    double half = ldexp(1, -exponent / 2), rest = ldexp(1, -exponent - -exponent / 2);
    int64_t length = x->rows * x->parts;
    memset(x->C, 0, (size_t)(MATRIX_VECTORS * length) * sizeof *x->C);
    for (int64_t j = 0; j < x->cols; j++) {
        int64_t column = matrix_column(x, j), rows = matrix_above(x, column + 1);
        rows = rows < x->krows ? rows : x->krows;
        for (int64_t i = 0; i < rows; i++)
            for (int q = 0; q < x->parts; q++)
                mac(&x->C[i * x->parts + q], matrix_number(x, i, j, q) * half * rest,
                    plain(sign_of(column)));
    }
    for (int64_t i = 0; i < x->krows; i++)
        x->C[length + i * x->parts] = plain(sign_of(matrix_row(x, i)));
    return matrix_sum_dd(x, x->in_row, x->C, length, err);
}

/* The squared distance of a vector of local rows [0, rows) from another one. */
static double distance(const gb10_dd_t *a, const gb10_dd_t *b, int64_t n)
{
    double sum = 0;
    for (int64_t e = 0; e < n; e++) {
        double difference = (a[e].hi - b[e].hi) + (a[e].lo - b[e].lo);
        sum += difference * difference;
    }
    return sum;
}

static double drift(const dist_matrix_t *x)
{
    double sum = 0;
    const gb10_dd_t *c = x->C + x->rows * x->parts;
    for (int64_t i = 0; i < x->krows; i++) {
        gb10_dd_t want[2] = {plain(sign_of(matrix_row(x, i))), plain(0)};
        sum += distance(c + i * x->parts, want, x->parts);
    }
    return sum;
}

static gb10_status_t run_probe(dist_matrix_t *x, int exponent, dist_quality_t *quality,
                               gb10_error_t *err)
{
    gb10_dd_t sums[3] = {{0, 0}, {0, 0}, {0, 0}}; /* residual, drift, ||A||^2 */
    gb10_status_t status = GB10_OK;
    GB10_TRY(load_vectors(x, exponent, err));
    GB10_TRY(apply_q(x, 0, false, err));
    if (x->g.mycol == 0)
        sums[0] = plain(distance(x->C, x->Ax, x->rows * x->parts));
    GB10_TRY(apply_q(x, 1, true, err));
    if (x->g.mycol == 0)
        sums[1] = plain(drift(x));
    for (int64_t j = 0; j < x->cols && x->g.myrow == 0; j++)
        if (x->top[j] > 0)
            mac(&sums[2], ldexp(1, 2 * (x->shift[j] - exponent)), x->a2[j]);
    GB10_TRY(sum_of_all(x, sums, 3, err));
    double norm = sqrt(sums[2].hi), residual = sqrt(sums[0].hi);
    quality->probe[0] = norm > 0        ? beyond_tiny(x, residual / norm, norm, exponent)
                        : residual == 0 ? 0
                                        : INFINITY;
    quality->probe[1] = sqrt(sums[1].hi);
cleanup:
    return status;
}

gb10_status_t matrix_measure(dist_matrix_t *x, bool probe, int exponent, dist_quality_t *quality,
                             gb10_error_t *err)
{
    gb10_status_t status = column_norms(x, quality, err);
    return status == GB10_OK && probe ? run_probe(x, exponent, quality, err) : status;
}
