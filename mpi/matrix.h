/* The inside of a distributed matrix. Private to mpi/. */
#ifndef MPI_MATRIX_H
#define MPI_MATRIX_H

#include <mpi.h>

#include "kernels/core/dd.h"
#include "mpi/grid.h"

/* Rows that a product V^H V takes at a time. */
enum { MATRIX_CHUNK = 512, MATRIX_VECTORS = 2 };

/* Vectors of local rows are complete and the same in a process row, all of k or n columns in a
 * process column. Complex values are pairs: element i, part q at [i * parts + q]. */
struct dist_matrix {
    const dist_team_t *team;
    grid_t g;
    MPI_Comm in_row, in_col; /* the ranks of this process row, and of this process column */
    MPI_Op add;              /* of gb10_dd_t */
    MPI_Datatype pair;
    int64_t m, n, k, nb;              /* nb: columns of a block of T                        */
    int64_t rows, cols, krows, kcols; /* local ones, and those of them below k              */
    int parts;
    bool positive;
    int64_t bad; /* twice the place of the first that is not finite, odd for NaN; INT64_MAX */
    char *arena, *piece;
    grid_work_t work;
    double *top;        /* cols: largest magnitude                                           */
    int *shift;         /* cols: column j of the piece was divided by 2^shift                */
    gb10_dd_t *a2, *r2; /* cols: squared norms of the scaled columns of A and of R           */
    gb10_dd_t *Ax;      /* rows                                                              */
    gb10_dd_t *C;       /* MATRIX_VECTORS vectors of rows                                    */
    double *T;          /* nb x kcols, row-major, values of the type                         */
    double *rdiag;      /* krows                                                             */
    double *chunk, *G, *part_G; /* MATRIX_CHUNK x nb, nb x nb                               */
    double *v;        /* rows: a column                                                    */
    gb10_dd_t *w, *z; /* MATRIX_VECTORS of nb                                              */
};

/* Block columns of T: the global column that block p starts at, its width, and on the process
 * column `owner` its place. */
typedef struct tblock {
    int64_t column, width, local;
    int owner;
} tblock_t;
int64_t matrix_blocks(const dist_matrix_t *x);
tblock_t matrix_block(const dist_matrix_t *x, int64_t p);

/* Local rows above global row `row`. */
static inline int64_t matrix_above(const dist_matrix_t *x, int64_t row)
{
    return grid_owned(row, x->g.mb, x->g.myrow, x->g.nprow);
}

static inline int64_t matrix_row(const dist_matrix_t *x, int64_t local)
{
    return grid_global(local, x->g.mb, x->g.myrow, x->g.nprow);
}

static inline int64_t matrix_column(const dist_matrix_t *x, int64_t local)
{
    return grid_global(local, x->g.nb, x->g.mycol, x->g.npcol);
}

/* Real number q of element (i, j) of the piece. */
static inline int64_t matrix_at(const dist_matrix_t *x, int64_t i, int64_t j, int q)
{
    return (j * x->rows + i) * x->parts + q;
}

static inline double matrix_number(const dist_matrix_t *x, int64_t i, int64_t j, int q)
{
    return gb10_number_at(x->g.dtype, x->piece, matrix_at(x, i, j, q));
}

static inline void matrix_store(gb10_dtype_t dtype, void *p, int64_t e, double value)
{
    if (gb10_dtype_is_double(dtype))
        ((double *)p)[e] = value;
    else
        ((float *)p)[e] = (float)value;
}

/* Part q of column `local` of V below its diagonal's row; the diagonal's one too. Only rows from
 * the returned one on are set: above they are zero. */
int64_t matrix_load_v(const dist_matrix_t *x, int64_t local, int q, double *v);

/* Sums over the ranks of a communicator, in place. */
gb10_status_t matrix_sum_dd(const dist_matrix_t *x, MPI_Comm comm, gb10_dd_t *values, int64_t n,
                            gb10_error_t *err);
gb10_status_t matrix_reduce(MPI_Comm comm, double *values, int64_t n, MPI_Op op, gb10_error_t *err);
gb10_status_t matrix_broadcast(MPI_Comm comm, int root, void *values, int64_t bytes,
                               gb10_error_t *err);

/* measure.c. Of the scaled A, before it is overwritten: squared column norms, A x. */
gb10_status_t matrix_measure_a(dist_matrix_t *x, bool probe, int *exponent, gb10_error_t *err);
/* Of the factors: what quality speaks of. */
gb10_status_t matrix_measure(dist_matrix_t *x, bool probe, int exponent, dist_quality_t *quality,
                             gb10_error_t *err);

#endif
