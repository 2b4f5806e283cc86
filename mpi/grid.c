/* The process grid and p?geqrf. The Debian package ships no headers, so the prototypes stand here
 * (ScaLAPACK Users' Guide, SIAM 1997). */
#include "mpi/grid.h"

#include <limits.h>

int64_t grid_owned(int64_t length, int64_t nb, int at, int of)
{
    int64_t blocks = length / nb, own = blocks / of * nb, rest = blocks % of;
    if (at < rest)
        return own + nb;
    return at == rest ? own + length % nb : own;
}

size_t grid_piece_bytes(const grid_t *g, int row, int col)
{
    return (size_t)grid_owned(g->m, g->mb, row, g->nprow) *
           (size_t)grid_owned(g->n, g->nb, col, g->npcol) * gb10_dtype_size(g->dtype);
}

gb10_status_t grid_work_size(const grid_t *g, grid_work_t *work, gb10_error_t *err)
{
    /* The size that p?geqrf documents; asking it would already be a collective call. */
    int64_t rows = grid_owned(g->m, g->mb, g->myrow, g->nprow);
    int64_t cols = grid_owned(g->n, g->nb, g->mycol, g->npcol);
    int64_t lwork = g->nb * (rows + cols + g->nb) + 1;
    if (lwork > INT_MAX || rows * cols > INT_MAX)
        return GB10_FAIL(err, GB10_ERR_UNSUPPORTED,
                         "ScaLAPACK cannot factor %d x %d on %d x %d processes: its counts exceed "
                         "an int. Start more ranks.",
                         g->m, g->n, g->nprow, g->npcol);
    work->lwork = (int)lwork;
    work->work_bytes = (size_t)lwork * gb10_dtype_size(g->dtype);
    /* of every process the same, so that it can be sent */
    work->tau_bytes =
        ((size_t)grid_owned(g->n, g->nb, 0, g->npcol) + 1) * gb10_dtype_size(g->dtype);
    return GB10_OK;
}

#if WITH_SCALAPACK

extern void Cblacs_get(int context, int what, int *value);
extern void Cblacs_gridinit(int *context, const char *order, int nprow, int npcol);
extern void Cblacs_gridinfo(int context, int *nprow, int *npcol, int *myrow, int *mycol);
extern void Cblacs_gridexit(int context);
extern void descinit_(int *desc, const int *m, const int *n, const int *mb, const int *nb,
                      const int *irsrc, const int *icsrc, const int *ictxt, const int *lld,
                      int *info);

typedef void geqrf_fn(const int *m, const int *n, void *a, const int *ia, const int *ja,
                      const int *desc, void *tau, void *work, const int *lwork, int *info);
extern geqrf_fn psgeqrf_, pdgeqrf_, pcgeqrf_, pzgeqrf_;

/* OpenBLAS, where the BLAS is one: ranks are the parallelism here, not its threads. */
extern void openblas_set_num_threads(int n) __attribute__((weak));

const char *dist_scalapack_reason(void)
{
    return NULL;
}

gb10_status_t grid_open(grid_t *g, const dist_team_t *team, int nprow, gb10_error_t *err)
{
    if (openblas_set_num_threads)
        openblas_set_num_threads(1);
    Cblacs_get(-1, 0, &g->context);
    Cblacs_gridinit(&g->context, "Row", nprow, team->size / nprow);
    Cblacs_gridinfo(g->context, &g->nprow, &g->npcol, &g->myrow, &g->mycol);
    if (g->myrow < 0 || g->mycol < 0)
        return GB10_FAIL(err, GB10_ERR_MPI, "BLACS gave rank %d no place in a %d x %d grid",
                         team->rank, nprow, team->size / nprow);
    g->open = true;
    return GB10_OK;
}

void grid_close(grid_t *g)
{
    if (g->open)
        Cblacs_gridexit(g->context);
    g->open = false;
}

static gb10_status_t check_info(const grid_t *g, int info, gb10_error_t *err)
{
    if (info == 0)
        return GB10_OK;
    return GB10_FAIL(err, GB10_ERR_INTERNAL, "ScaLAPACK p%cgeqrf of %d x %d failed, info %d",
                     gb10_dtype_letter(g->dtype), g->m, g->n, info);
}

gb10_status_t grid_geqrf(const grid_t *g, void *piece, const grid_work_t *work, gb10_error_t *err)
{
    static geqrf_fn *const geqrf_of[GB10_DTYPES] = {psgeqrf_, pdgeqrf_, pcgeqrf_, pzgeqrf_};
    const int zero = 0, one = 1;
    int info = 0, desc[9], lld = (int)grid_owned(g->m, g->mb, g->myrow, g->nprow);
    lld = lld > 1 ? lld : 1;
    descinit_(desc, &g->m, &g->n, &g->mb, &g->nb, &zero, &zero, &g->context, &lld, &info);
    gb10_status_t status = check_info(g, info, err);
    if (status != GB10_OK)
        return status;
    geqrf_of[g->dtype](&g->m, &g->n, piece, &one, &one, desc, work->tau, work->work, &work->lwork,
                       &info);
    return check_info(g, info, err);
}

#else

const char *dist_scalapack_reason(void)
{
    return "not compiled in";
}

gb10_status_t grid_open(grid_t *g, const dist_team_t *team, int nprow, gb10_error_t *err)
{
    (void)g, (void)team, (void)nprow;
    return GB10_FAIL(err, GB10_ERR_UNSUPPORTED, "ScaLAPACK was not compiled in");
}

void grid_close(grid_t *g)
{
    (void)g;
}

gb10_status_t grid_geqrf(const grid_t *g, void *piece, const grid_work_t *work, gb10_error_t *err)
{
    (void)g, (void)piece, (void)work;
    return GB10_FAIL(err, GB10_ERR_UNSUPPORTED, "ScaLAPACK was not compiled in");
}

#endif
