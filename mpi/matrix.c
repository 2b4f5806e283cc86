/* A matrix over all ranks: its memory, and which rectangles of what lie where. */
#include "mpi/matrix.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/core/alloc.h"
#include "mpi/wait.h"

enum { BLOCK = 64, BLOCK_TALL = 4096 };

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- the grid ---- */

/* Blocks of T stay within a process column, so that only ranks of that column meet for them: the
 * columns of a block are a multiple of nb, or there is one process column. */
static int64_t block_columns(int64_t k, int64_t nb)
{
    int64_t most = smaller(BLOCK, k);
    nb = smaller(nb, k);
    return nb <= most ? most / nb * nb : most;
}

/* Of tall matrices more rows at a time, as they lie together in the file: an eighth of a rank's. */
static int64_t block_rows(int64_t m, int64_t n, int process_rows)
{
    int64_t share = m / (8 * (int64_t)process_rows) / BLOCK * BLOCK;
    return m / 16 >= n && share > BLOCK ? smaller(share, BLOCK_TALL) : BLOCK;
}

/* The rows of processes whose pieces have the least rows and columns together. */
static int process_rows(int ranks, int64_t m, int64_t n, int64_t nb)
{
    int best = ranks;
    double least = INFINITY;
    if (smaller(nb, smaller(m, n)) > BLOCK)
        return best;
    for (int rows = ranks; rows >= 1; rows--) {
        double sides = (double)m / rows + (double)n * rows / ranks;
        if (ranks % rows == 0 && sides < least) {
            least = sides;
            best = rows;
        }
    }
    return best;
}

const char *dist_grid_text(int ranks, int64_t m, int64_t n, int64_t nb, char text[DIST_GRID_TEXT])
{
    int rows = process_rows(ranks, m, n, nb);
    int mb = (int)block_rows(m, n, rows), columns = (int)block_columns(smaller(m, n), nb);
    int used = snprintf(text, DIST_GRID_TEXT, "%dx%d, blocks of %d", rows, ranks / rows, mb);
    if (columns != mb)
        snprintf(text + used, DIST_GRID_TEXT - (size_t)used, "x%d", columns);
    return text;
}

/* ---- memory ---- */

static void *take(char **p, int64_t count, size_t size, size_t *total)
{
    size_t bytes = ((size_t)count * size + GB10_ALIGN - 1) / GB10_ALIGN * GB10_ALIGN;
    void *array = *p;
    if (*p)
        *p += bytes;
    *total += bytes;
    return array;
}

/* Lays the arrays out from p and returns their size; with p NULL only the size. The place in the
 * grid is set. */
static gb10_status_t lay_out(dist_matrix_t *x, char *p, size_t *total, gb10_error_t *err)
{
    const grid_t *g = &x->g;
    int64_t parts = x->parts;
    gb10_status_t status = grid_work_size(g, &x->work, err);
    if (status != GB10_OK)
        return status;
    x->rows = grid_owned(x->m, g->mb, g->myrow, g->nprow);
    x->cols = grid_owned(x->n, g->nb, g->mycol, g->npcol);
    x->krows = grid_owned(x->k, g->mb, g->myrow, g->nprow);
    x->kcols = grid_owned(x->k, g->nb, g->mycol, g->npcol);
    *total = 0;
    x->piece = take(&p, (int64_t)grid_piece_bytes(g, g->myrow, g->mycol), 1, total);
    x->work.tau = take(&p, (int64_t)x->work.tau_bytes, 1, total);
    x->work.work = take(&p, (int64_t)x->work.work_bytes, 1, total);
    x->top = take(&p, x->cols, sizeof *x->top, total);
    x->shift = take(&p, x->cols, sizeof *x->shift, total);
    x->a2 = take(&p, x->cols, sizeof *x->a2, total);
    x->r2 = take(&p, x->cols, sizeof *x->r2, total);
    x->Ax = take(&p, x->rows * parts, sizeof *x->Ax, total);
    x->C = take(&p, MATRIX_VECTORS * x->rows * parts, sizeof *x->C, total);
    x->T = take(&p, x->nb * x->kcols * parts, sizeof *x->T, total);
    x->rdiag = take(&p, x->krows, sizeof *x->rdiag, total);
    x->chunk = take(&p, MATRIX_CHUNK * x->nb * parts, sizeof *x->chunk, total);
    x->G = take(&p, x->nb * x->nb * parts, sizeof *x->G, total);
    x->part_G = take(&p, x->nb * x->nb * parts, sizeof *x->part_G, total);
    x->v = take(&p, 2 * x->rows, sizeof *x->v, total);
    x->w = take(&p, MATRIX_VECTORS * x->nb * parts, sizeof *x->w, total);
    x->z = take(&p, MATRIX_VECTORS * x->nb * parts, sizeof *x->z, total);
    return GB10_OK;
}

/* Sizes, and the shape of the grid; its place is (0, 0), the fullest. */
static gb10_status_t describe(dist_matrix_t *x, int ranks, gb10_dtype_t dtype, int64_t m, int64_t n,
                              int64_t nb, gb10_error_t *err)
{
    if (m > INT_MAX || n > INT_MAX)
        return GB10_FAIL(err, GB10_ERR_UNSUPPORTED,
                         "ScaLAPACK cannot factor %lld x %lld: its sizes are ints", (long long)m,
                         (long long)n);
    x->m = m;
    x->n = n;
    x->k = smaller(m, n);
    x->nb = smaller(nb, x->k);
    x->parts = gb10_dtype_is_complex(dtype) ? 2 : 1;
    x->g = (grid_t){.m = (int)m, .n = (int)n, .nb = (int)block_columns(x->k, nb), .dtype = dtype};
    x->g.nprow = process_rows(ranks, m, n, nb);
    x->g.mb = (int)block_rows(m, n, x->g.nprow);
    x->g.npcol = x->g.nprow > 0 ? ranks / x->g.nprow : 0;
    return GB10_OK;
}

int64_t dist_matrix_bytes(int ranks, gb10_dtype_t dtype, int64_t m, int64_t n, int64_t nb)
{
    dist_matrix_t x = {.team = NULL};
    size_t bytes = 0;
    if (describe(&x, ranks, dtype, m, n, nb, NULL) != GB10_OK ||
        lay_out(&x, NULL, &bytes, NULL) != GB10_OK)
        return -1;
    return (int64_t)bytes + DIST_RECT_MAX * (int64_t)gb10_dtype_size(dtype);
}

static void add_pairs(void *from, void *into, int *count, MPI_Datatype *type)
{
    const gb10_dd_t *a = from;
    gb10_dd_t *b = into;
    (void)type;
    for (int i = 0; i < *count; i++) {
        double error;
        b[i].hi = gb10_two_sum(a[i].hi, b[i].hi, &error);
        b[i].lo += a[i].lo + error;
        b[i] = gb10_dd_normal(b[i]);
    }
}

static gb10_status_t open_communicators(dist_matrix_t *x, gb10_error_t *err)
{
    gb10_status_t status = GB10_OK;
    GB10_TRY(wait_check(MPI_Comm_split(MPI_COMM_WORLD, x->g.myrow, x->g.mycol, &x->in_row),
                        "MPI_Comm_split", err));
    GB10_TRY(wait_check(MPI_Comm_split(MPI_COMM_WORLD, x->g.mycol, x->g.myrow, &x->in_col),
                        "MPI_Comm_split", err));
    GB10_TRY(wait_check(MPI_Type_contiguous(2, MPI_DOUBLE, &x->pair), "MPI_Type_contiguous", err));
    GB10_TRY(wait_check(MPI_Type_commit(&x->pair), "MPI_Type_commit", err));
    GB10_TRY(wait_check(MPI_Op_create(add_pairs, 1, &x->add), "MPI_Op_create", err));
cleanup:
    return status;
}

gb10_status_t dist_matrix_create(dist_matrix_t **matrix, const dist_team_t *team,
                                 gb10_dtype_t dtype, int64_t m, int64_t n, int64_t nb,
                                 bool positive, gb10_error_t *err)
{
    dist_matrix_t *x = NULL;
    size_t bytes = 0;
    int origin;
    gb10_status_t status = gb10_alloc(&x, 1, sizeof *x, "a matrix over all ranks", err);
    *matrix = x;
    GB10_TRY(dist_agree(team, status, err, &origin));
    x->team = team;
    x->positive = positive;
    x->bad = INT64_MAX;
    x->in_row = x->in_col = MPI_COMM_NULL;
    x->add = MPI_OP_NULL;
    x->pair = MPI_DATATYPE_NULL;
    GB10_TRY(describe(x, team->size, dtype, m, n, nb, err));
    GB10_TRY(grid_open(&x->g, team, x->g.nprow, err));
    status = lay_out(x, NULL, &bytes, err);
    if (status == GB10_OK)
        status = gb10_alloc(&x->arena, bytes, 1, "a matrix over all ranks", err);
    if (status == GB10_OK)
        status = lay_out(x, x->arena, &bytes, err);
    GB10_TRY(dist_agree(team, status, err, &origin));
    GB10_TRY(open_communicators(x, err));
cleanup:
    return status;
}

void dist_matrix_free(dist_matrix_t *matrix)
{
    if (!matrix)
        return;
    if (matrix->team && matrix->in_row != MPI_COMM_NULL)
        MPI_Comm_free(&matrix->in_row);
    if (matrix->team && matrix->in_col != MPI_COMM_NULL)
        MPI_Comm_free(&matrix->in_col);
    if (matrix->team && matrix->pair != MPI_DATATYPE_NULL)
        MPI_Type_free(&matrix->pair);
    if (matrix->team && matrix->add != MPI_OP_NULL)
        MPI_Op_free(&matrix->add);
    grid_close(&matrix->g);
    gb10_free(matrix->arena);
    gb10_free(matrix);
}

/* ---- rectangles ---- */

/* One side of a part as it is dealt out. */
typedef struct axis {
    int64_t nb, own;
    int at, of;
} axis_t;

static axis_t dealt_rows(const dist_matrix_t *x, int64_t length)
{
    const grid_t *g = &x->g;
    return (axis_t){g->mb, grid_owned(length, g->mb, g->myrow, g->nprow), g->myrow, g->nprow};
}

static axis_t dealt_columns(const dist_matrix_t *x, int64_t length)
{
    const grid_t *g = &x->g;
    return (axis_t){g->nb, grid_owned(length, g->nb, g->mycol, g->npcol), g->mycol, g->npcol};
}

static axis_t whole(int64_t length)
{
    return (axis_t){length > 0 ? length : 1, length, 0, 1};
}

/* What every process of a row or column has is written by the first of them. */
static void axes_of(const dist_matrix_t *x, dist_part_t part, axis_t *rows, axis_t *columns)
{
    *rows = dealt_rows(x, part == DIST_R ? x->k : x->m);
    *columns = dealt_columns(x, part == DIST_V ? x->k : x->n);
    if (part == DIST_T) {
        *rows = whole(x->g.myrow == 0 ? x->nb : 0);
        *columns = dealt_columns(x, x->k);
    } else if (part == DIST_TAU) {
        *rows = dealt_columns(x, x->g.myrow == 0 ? x->k : 0);
        *columns = whole(1);
    } else if (part == DIST_SIGN) {
        *rows = dealt_rows(x, x->g.mycol == 0 ? x->k : 0);
        *columns = whole(1);
    }
}

/* Elements from local index l on that are neighbours in the part. */
static int64_t neighbours(axis_t a, int64_t l)
{
    return a.of == 1 ? a.own - l : smaller(a.nb - l % a.nb, a.own - l);
}

bool dist_matrix_next(const dist_matrix_t *matrix, dist_part_t part, dist_rect_t *rect)
{
    axis_t rows, columns;
    axes_of(matrix, part, &rows, &columns);
    rect->local_column += rect->columns;
    if (rect->local_column >= columns.own) {
        rect->local_column = 0;
        rect->local_row += rect->rows;
    }
    if (rect->local_row >= rows.own || columns.own == 0)
        return false;
    int64_t widest = smaller(columns.of == 1 ? columns.own : columns.nb, DIST_RECT_MAX);
    rect->rows = smaller(neighbours(rows, rect->local_row), DIST_RECT_MAX / widest);
    rect->columns = smaller(neighbours(columns, rect->local_column), widest);
    rect->row = grid_global(rect->local_row, rows.nb, rows.at, rows.of);
    rect->column = grid_global(rect->local_column, columns.nb, columns.at, columns.of);
    return true;
}

/* Notes what is not finite, and the largest magnitude. */
static void look_at(dist_matrix_t *x, const dist_rect_t *rect, const void *from, int64_t i,
                    int64_t j)
{
    for (int q = 0; q < x->parts; q++) {
        int64_t e = (i * rect->columns + j) * x->parts + q;
        double value = gb10_number_at(x->g.dtype, from, e);
        int64_t place = ((rect->row + i) * x->n + rect->column + j) * 2 + (isnan(value) != 0);
        if (!isfinite(value) && place / 2 < x->bad / 2)
            x->bad = place;
        else if (fabs(value) > x->top[rect->local_column + j])
            x->top[rect->local_column + j] = fabs(value);
    }
}

void dist_matrix_put(dist_matrix_t *matrix, const dist_rect_t *rect, const void *from)
{
    size_t e = gb10_dtype_size(matrix->g.dtype);
    for (int64_t i = 0; i < rect->rows; i++)
        for (int64_t j = 0; j < rect->columns; j++) {
            int64_t at = (rect->local_column + j) * matrix->rows + rect->local_row + i;
            memcpy(matrix->piece + (size_t)at * e,
                   (const char *)from + (size_t)(i * rect->columns + j) * e, e);
            look_at(matrix, rect, from, i, j);
        }
}

/* An element of V, R or packed into number `e` of `to`, which is zero. */
static void get_element(const dist_matrix_t *x, dist_part_t part, int64_t i, int64_t j, void *to,
                        int64_t e)
{
    int64_t row = matrix_row(x, i), column = matrix_column(x, j);
    bool upper = row <= column;
    if (part == DIST_V && row == column)
        matrix_store(x->g.dtype, to, e, 1);
    if ((part == DIST_V && upper) || (part == DIST_R && !upper))
        return;
    bool flip = part == DIST_R && x->positive && x->rdiag[i] < 0;
    for (int q = 0; q < x->parts; q++)
        matrix_store(x->g.dtype, to, e + q, (flip ? -1 : 1) * matrix_number(x, i, j, q));
}

void dist_matrix_get(const dist_matrix_t *matrix, dist_part_t part, const dist_rect_t *rect,
                     void *to)
{
    const dist_matrix_t *x = matrix;
    size_t size = part == DIST_SIGN ? 1 : gb10_dtype_size(x->g.dtype);
    memset(to, 0, (size_t)(rect->rows * rect->columns) * size);
    for (int64_t i = 0; i < rect->rows; i++)
        for (int64_t j = 0; j < rect->columns; j++) {
            int64_t r = rect->local_row + i, c = rect->local_column + j;
            int64_t e = (i * rect->columns + j) * x->parts;
            if (part == DIST_SIGN)
                ((int8_t *)to)[i] = x->rdiag[r] < 0 ? -1 : 1;
            else if (part != DIST_T && part != DIST_TAU)
                get_element(x, part, r, c, to, e);
            for (int q = 0; q < x->parts && part == DIST_T; q++)
                matrix_store(x->g.dtype, to, e + q, x->T[(r * x->kcols + c) * x->parts + q]);
            for (int q = 0; q < x->parts && part == DIST_TAU; q++)
                matrix_store(x->g.dtype, to, e + q,
                             gb10_number_at(x->g.dtype, x->work.tau, r * x->parts + q));
        }
}

gb10_status_t dist_matrix_nonfinite(const dist_matrix_t *matrix, int64_t *row, int64_t *column,
                                    bool *nan, gb10_error_t *err)
{
    int64_t first = matrix->bad;
    gb10_status_t status = dist_min(matrix->team, &first, 1, err);
    *row = *column = -1;
    *nan = false;
    if (status != GB10_OK || first == INT64_MAX)
        return status;
    *row = first / 2 / matrix->n;
    *column = first / 2 % matrix->n;
    *nan = first % 2 != 0;
    return GB10_OK;
}

/* ---- for the arithmetic ---- */

int64_t matrix_blocks(const dist_matrix_t *x)
{
    return (x->k + x->nb - 1) / x->nb;
}

tblock_t matrix_block(const dist_matrix_t *x, int64_t p)
{
    int64_t column = p * x->nb, nb = x->g.nb, block = column / nb;
    return (tblock_t){.column = column,
                      .width = smaller(x->nb, x->k - column),
                      .local = block / x->g.npcol * nb + column % nb,
                      .owner = (int)(block % x->g.npcol)};
}

int64_t matrix_load_v(const dist_matrix_t *x, int64_t local, int q, double *v)
{
    int64_t column = matrix_column(x, local), first = matrix_above(x, column);
    for (int64_t i = first; i < x->rows; i++)
        v[i] = matrix_number(x, i, local, q);
    if (first < x->rows && matrix_row(x, first) == column)
        v[first] = q == 0;
    return first;
}

enum { REDUCED_AT_ONCE = 1 << 20 };

static bool alone(MPI_Comm comm)
{
    int size = 1;
    MPI_Comm_size(comm, &size);
    return size == 1;
}

static gb10_status_t reduce(MPI_Comm comm, void *values, int64_t n, size_t size, MPI_Datatype type,
                            MPI_Op op, gb10_error_t *err)
{
    gb10_status_t status = GB10_OK;
    for (int64_t at = 0; at < n && !alone(comm) && status == GB10_OK; at += REDUCED_AT_ONCE) {
        MPI_Request request;
        GB10_TRY(wait_check(MPI_Iallreduce(MPI_IN_PLACE, (char *)values + (size_t)at * size,
                                           (int)smaller(REDUCED_AT_ONCE, n - at), type, op, comm,
                                           &request),
                            "MPI_Iallreduce", err));
        GB10_TRY(wait_request(&request, "MPI_Iallreduce", err));
    }
cleanup:
    return status;
}

gb10_status_t matrix_sum_dd(const dist_matrix_t *x, MPI_Comm comm, gb10_dd_t *values, int64_t n,
                            gb10_error_t *err)
{
    return reduce(comm, values, n, sizeof *values, x->pair, x->add, err);
}

gb10_status_t matrix_reduce(MPI_Comm comm, double *values, int64_t n, MPI_Op op, gb10_error_t *err)
{
    return reduce(comm, values, n, sizeof *values, MPI_DOUBLE, op, err);
}

gb10_status_t matrix_broadcast(MPI_Comm comm, int root, void *values, int64_t bytes,
                               gb10_error_t *err)
{
    gb10_status_t status = GB10_OK;
    for (int64_t at = 0; at < bytes && !alone(comm); at += 1 << 30) {
        MPI_Request request;
        GB10_TRY(wait_check(MPI_Ibcast((char *)values + at, (int)smaller(1 << 30, bytes - at),
                                       MPI_BYTE, root, comm, &request),
                            "MPI_Ibcast", err));
        GB10_TRY(wait_request(&request, "MPI_Ibcast", err));
    }
cleanup:
    return status;
}
