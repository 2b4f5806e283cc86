/* One matrix over all ranks by ScaLAPACK p?geqrf. The Debian package ships no headers, so the
 * prototypes stand here (ScaLAPACK Users' Guide, SIAM 1997). */
#include "mpi/dist.h"

#include <limits.h>
#include <mpi.h>
#include <string.h>

#include "kernels/core/alloc.h"
#include "mpi/wait.h"

#if WITH_SCALAPACK

extern void Cblacs_get(int context, int what, int *value);
extern void Cblacs_gridinit(int *context, const char *order, int nprow, int npcol);
extern void Cblacs_gridinfo(int context, int *nprow, int *npcol, int *myrow, int *mycol);
extern void Cblacs_gridexit(int context);
extern int numroc_(const int *n, const int *nb, const int *iproc, const int *isrcproc,
                   const int *nprocs);
extern void descinit_(int *desc, const int *m, const int *n, const int *mb, const int *nb,
                      const int *irsrc, const int *icsrc, const int *ictxt, const int *lld,
                      int *info);

typedef void geqrf_fn(const int *m, const int *n, void *a, const int *ia, const int *ja,
                      const int *desc, void *tau, void *work, const int *lwork, int *info);
extern geqrf_fn psgeqrf_, pdgeqrf_, pcgeqrf_, pzgeqrf_;

/* OpenBLAS, where the BLAS is one: ranks are the parallelism here, not its threads. */
extern void openblas_set_num_threads(int n) __attribute__((weak));

/* How a matrix lies over the process grid: square blocks of nb, column-major local pieces. */
typedef struct grid {
    int context, nprow, npcol, myrow, mycol;
    int m, n, nb;
    size_t element;
} grid_t;

/* Rows (or columns) of a dimension of `length` that process `at` of `of` owns. */
static int owned(const grid_t *g, int length, int at, int of)
{
    const int zero = 0;
    return numroc_(&length, &g->nb, &at, &zero, &of);
}

/* Global index of local index l on process `at` of `of`. */
static int64_t global_index(const grid_t *g, int l, int at, int of)
{
    return ((int64_t)(l / g->nb) * of + at) * g->nb + l % g->nb;
}

static gb10_status_t grid_open(grid_t *g, const dist_team_t *team, gb10_error_t *err)
{
    int nprow = 1;
    if (openblas_set_num_threads)
        openblas_set_num_threads(1);
    for (int r = 1; r * r <= team->size; r++)
        if (team->size % r == 0)
            nprow = r;
    Cblacs_get(-1, 0, &g->context);
    Cblacs_gridinit(&g->context, "Row", nprow, team->size / nprow);
    Cblacs_gridinfo(g->context, &g->nprow, &g->npcol, &g->myrow, &g->mycol);
    if (g->myrow < 0 || g->mycol < 0)
        return GB10_FAIL(err, GB10_ERR_MPI, "BLACS gave rank %d no place in a %d x %d grid",
                         team->rank, nprow, team->size / nprow);
    return GB10_OK;
}

static size_t local_bytes(const grid_t *g, int row, int col)
{
    return (size_t)owned(g, g->m, row, g->nprow) * (size_t)owned(g, g->n, col, g->npcol) *
           g->element;
}

/* Copies between the row-major whole and the local piece of process (row, col). */
static void copy_piece(const grid_t *g, int row, int col, char *whole, char *piece, bool to_piece)
{
    int rows = owned(g, g->m, row, g->nprow), cols = owned(g, g->n, col, g->npcol);
    for (int j = 0; j < cols; j++) {
        int64_t gj = global_index(g, j, col, g->npcol);
        for (int i = 0; i < rows; i++) {
            int64_t gi = global_index(g, i, row, g->nprow);
            char *in_whole = whole + (size_t)(gi * g->n + gj) * g->element;
            char *in_piece = piece + ((size_t)j * (size_t)rows + (size_t)i) * g->element;
            memcpy(to_piece ? in_piece : in_whole, to_piece ? in_whole : in_piece, g->element);
        }
    }
}

static gb10_status_t send_bytes(const void *bytes, size_t size, int rank, gb10_error_t *err)
{
    for (size_t at = 0; at < size; at += 1u << 30) {
        size_t piece = size - at < 1u << 30 ? size - at : 1u << 30;
        gb10_status_t status = wait_check(
            MPI_Send((const char *)bytes + at, (int)piece, MPI_BYTE, rank, 21, MPI_COMM_WORLD),
            "MPI_Send", err);
        if (status != GB10_OK)
            return status;
    }
    return GB10_OK;
}

static gb10_status_t receive_bytes(void *bytes, size_t size, int rank, gb10_error_t *err)
{
    for (size_t at = 0; at < size; at += 1u << 30) {
        size_t piece = size - at < 1u << 30 ? size - at : 1u << 30;
        MPI_Request request;
        gb10_status_t status = wait_check(
            MPI_Irecv((char *)bytes + at, (int)piece, MPI_BYTE, rank, 21, MPI_COMM_WORLD, &request),
            "MPI_Irecv", err);
        if (status == GB10_OK)
            status = wait_request(&request, "MPI_Irecv", err);
        if (status != GB10_OK)
            return status;
    }
    return GB10_OK;
}

/* All memory of one factorisation, so that nothing can fail alone once ranks wait for each other.
 */
typedef struct buffers {
    void *local, *tau, *work; /* this rank's part                       */
    void *piece, *piece_tau;  /* rank 0: the part of one other rank     */
    size_t tau_bytes;
    int lwork, desc[9];
} buffers_t;

static void free_buffers(buffers_t *b)
{
    gb10_free(b->local);
    gb10_free(b->tau);
    gb10_free(b->work);
    gb10_free(b->piece);
    gb10_free(b->piece_tau);
}

static geqrf_fn *const geqrf_of[GB10_DTYPES] = {psgeqrf_, pdgeqrf_, pcgeqrf_, pzgeqrf_};

static gb10_status_t check_info(const grid_t *g, gb10_dtype_t dtype, int info, gb10_error_t *err)
{
    if (info == 0)
        return GB10_OK;
    return GB10_FAIL(err, GB10_ERR_INTERNAL, "ScaLAPACK p%cgeqrf of %d x %d failed, info %d",
                     gb10_dtype_letter(dtype), g->m, g->n, info);
}

/* Local: no call here waits for another rank. */
static gb10_status_t make_buffers(const grid_t *g, const dist_team_t *team, gb10_dtype_t dtype,
                                  buffers_t *b, gb10_error_t *err)
{
    const int zero = 0;
    int info = 0, lld = owned(g, g->m, g->myrow, g->nprow);
    gb10_status_t status = GB10_OK;
    lld = lld > 1 ? lld : 1;
    b->tau_bytes = ((size_t)owned(g, g->n, 0, g->npcol) + 1) * g->element;
    GB10_TRY(gb10_alloc(&b->local, local_bytes(g, g->myrow, g->mycol), 1, "ScaLAPACK piece", err));
    GB10_TRY(gb10_alloc(&b->tau, b->tau_bytes, 1, "ScaLAPACK tau", err));
    if (team->rank == 0) {
        GB10_TRY(gb10_alloc(&b->piece, local_bytes(g, 0, 0), 1, "ScaLAPACK piece", err));
        GB10_TRY(gb10_alloc(&b->piece_tau, b->tau_bytes, 1, "ScaLAPACK tau", err));
    }
    descinit_(b->desc, &g->m, &g->n, &g->nb, &g->nb, &zero, &zero, &g->context, &lld, &info);
    GB10_TRY(check_info(g, dtype, info, err));
    /* The size that p?geqrf documents; asking it would already be a collective call. */
    int64_t rows = owned(g, g->m, g->myrow, g->nprow), cols = owned(g, g->n, g->mycol, g->npcol);
    int64_t lwork = g->nb * (rows + cols + g->nb) + 1;
    if (lwork > INT_MAX)
        return GB10_FAIL(err, GB10_ERR_UNSUPPORTED,
                         "ScaLAPACK cannot factor %d x %d: its workspace count exceeds an int",
                         g->m, g->n);
    b->lwork = (int)lwork;
    GB10_TRY(gb10_alloc(&b->work, (size_t)b->lwork, g->element, "ScaLAPACK work", err));
cleanup:
    return status;
}

/* Rank 0 hands every rank its piece of A. */
static gb10_status_t scatter(const grid_t *g, const dist_team_t *team, const void *A, buffers_t *b,
                             gb10_error_t *err)
{
    if (team->rank != 0)
        return receive_bytes(b->local, local_bytes(g, g->myrow, g->mycol), 0, err);
    gb10_status_t status = GB10_OK;
    copy_piece(g, 0, 0, (char *)(uintptr_t)A, b->local, true);
    for (int rank = 1; rank < team->size && status == GB10_OK; rank++) {
        int row = rank / g->npcol, col = rank % g->npcol;
        copy_piece(g, row, col, (char *)(uintptr_t)A, b->piece, true);
        status = send_bytes(b->piece, local_bytes(g, row, col), rank, err);
    }
    return status;
}

/* Places the local tau of process column `col` into the whole vector. */
static void place_tau(const grid_t *g, int col, const char *local, char *tau)
{
    int k = g->m < g->n ? g->m : g->n, cols = owned(g, k, col, g->npcol);
    for (int j = 0; j < cols; j++)
        memcpy(tau + (size_t)global_index(g, j, col, g->npcol) * g->element,
               local + (size_t)j * g->element, g->element);
}

static gb10_status_t gather(const grid_t *g, const dist_team_t *team, buffers_t *b, void *out,
                            void *tau, gb10_error_t *err)
{
    gb10_status_t status = GB10_OK;
    if (team->rank != 0) {
        GB10_TRY(send_bytes(b->local, local_bytes(g, g->myrow, g->mycol), 0, err));
        return send_bytes(b->tau, b->tau_bytes, 0, err);
    }
    copy_piece(g, 0, 0, out, b->local, false);
    place_tau(g, 0, b->tau, tau);
    for (int rank = 1; rank < team->size; rank++) {
        int row = rank / g->npcol, col = rank % g->npcol;
        GB10_TRY(receive_bytes(b->piece, local_bytes(g, row, col), rank, err));
        GB10_TRY(receive_bytes(b->piece_tau, b->tau_bytes, rank, err));
        copy_piece(g, row, col, out, b->piece, false);
        if (row == 0)
            place_tau(g, col, b->piece_tau, tau);
    }
cleanup:
    return status;
}

const char *dist_scalapack_reason(void)
{
    return NULL;
}

gb10_status_t dist_scalapack_geqrf(const dist_team_t *team, gb10_dtype_t dtype, int64_t m,
                                   int64_t n, int64_t nb, const void *A, void *out, void *tau,
                                   gb10_error_t *err)
{
    grid_t g = {.element = gb10_dtype_size(dtype)};
    const int one = 1;
    buffers_t b = {0};
    int info = 0, origin;
    gb10_status_t status = GB10_OK;
    if (m < 1 || n < 1 || m > INT_MAX || n > INT_MAX || nb < 1 || nb > INT_MAX)
        return GB10_FAIL(err, GB10_ERR_UNSUPPORTED,
                         "ScaLAPACK cannot factor %lld x %lld with blocks of %lld", (long long)m,
                         (long long)n, (long long)nb);
    g.m = (int)m;
    g.n = (int)n;
    g.nb = (int)nb;
    GB10_TRY(grid_open(&g, team, err));
    status = make_buffers(&g, team, dtype, &b, err);
    GB10_TRY(dist_agree(team, status, err, &origin));
    GB10_TRY(scatter(&g, team, A, &b, err));
    geqrf_of[dtype](&g.m, &g.n, b.local, &one, &one, b.desc, b.tau, b.work, &b.lwork, &info);
    GB10_TRY(check_info(&g, dtype, info, err));
    GB10_TRY(gather(&g, team, &b, out, tau, err));
cleanup:
    if (g.nprow > 0 && g.myrow >= 0)
        Cblacs_gridexit(g.context);
    free_buffers(&b);
    return status;
}

#else

const char *dist_scalapack_reason(void)
{
    return "not compiled in";
}

gb10_status_t dist_scalapack_geqrf(const dist_team_t *team, gb10_dtype_t dtype, int64_t m,
                                   int64_t n, int64_t nb, const void *A, void *out, void *tau,
                                   gb10_error_t *err)
{
    (void)team, (void)dtype, (void)m, (void)n, (void)nb, (void)A, (void)out, (void)tau;
    return GB10_FAIL(err, GB10_ERR_UNSUPPORTED, "ScaLAPACK was not compiled in");
}

#endif
