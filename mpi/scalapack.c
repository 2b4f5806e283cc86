/* One matrix of rank 0 over all ranks by ScaLAPACK p?geqrf, and back. */
#include <limits.h>
#include <mpi.h>
#include <string.h>

#include "kernels/core/alloc.h"
#include "mpi/grid.h"
#include "mpi/wait.h"

/* The divisor of `size` next to its square root from below. */
static int near_square(int size)
{
    int nprow = 1;
    for (int r = 1; r * r <= size; r++)
        if (size % r == 0)
            nprow = r;
    return nprow;
}

/* Copies between the row-major whole and the local piece of process (row, col). */
static void copy_piece(const grid_t *g, int row, int col, char *whole, char *piece, bool to_piece)
{
    int64_t rows = grid_owned(g->m, g->mb, row, g->nprow);
    int64_t cols = grid_owned(g->n, g->nb, col, g->npcol);
    size_t e = gb10_dtype_size(g->dtype);
    for (int64_t j = 0; j < cols; j++) {
        int64_t gj = grid_global(j, g->nb, col, g->npcol);
        for (int64_t i = 0; i < rows; i++) {
            int64_t gi = grid_global(i, g->mb, row, g->nprow);
            char *in_whole = whole + (size_t)(gi * g->n + gj) * e;
            char *in_piece = piece + (size_t)(j * rows + i) * e;
            memcpy(to_piece ? in_piece : in_whole, to_piece ? in_whole : in_piece, e);
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
    void *local; /* this rank's part */
    grid_work_t own;
    void *piece, *piece_tau; /* rank 0: the part of one other rank */
} buffers_t;

static void free_buffers(buffers_t *b)
{
    gb10_free(b->local);
    gb10_free(b->own.tau);
    gb10_free(b->own.work);
    gb10_free(b->piece);
    gb10_free(b->piece_tau);
}

static gb10_status_t make_buffers(const grid_t *g, const dist_team_t *team, buffers_t *b,
                                  gb10_error_t *err)
{
    gb10_status_t status = GB10_OK;
    GB10_TRY(grid_work_size(g, &b->own, err));
    GB10_TRY(
        gb10_alloc(&b->local, grid_piece_bytes(g, g->myrow, g->mycol), 1, "ScaLAPACK piece", err));
    GB10_TRY(gb10_alloc(&b->own.tau, b->own.tau_bytes, 1, "ScaLAPACK tau", err));
    if (team->rank == 0) {
        GB10_TRY(gb10_alloc(&b->piece, grid_piece_bytes(g, 0, 0), 1, "ScaLAPACK piece", err));
        GB10_TRY(gb10_alloc(&b->piece_tau, b->own.tau_bytes, 1, "ScaLAPACK tau", err));
    }
    GB10_TRY(gb10_alloc(&b->own.work, b->own.work_bytes, 1, "ScaLAPACK work", err));
cleanup:
    return status;
}

/* Rank 0 hands every rank its piece of A. */
static gb10_status_t scatter(const grid_t *g, const dist_team_t *team, const void *A, buffers_t *b,
                             gb10_error_t *err)
{
    if (team->rank != 0)
        return receive_bytes(b->local, grid_piece_bytes(g, g->myrow, g->mycol), 0, err);
    gb10_status_t status = GB10_OK;
    copy_piece(g, 0, 0, (char *)(uintptr_t)A, b->local, true);
    for (int rank = 1; rank < team->size && status == GB10_OK; rank++) {
        int row = rank / g->npcol, col = rank % g->npcol;
        copy_piece(g, row, col, (char *)(uintptr_t)A, b->piece, true);
        status = send_bytes(b->piece, grid_piece_bytes(g, row, col), rank, err);
    }
    return status;
}

/* Places the local tau of process column `col` into the whole vector. */
static void place_tau(const grid_t *g, int col, const char *local, char *tau)
{
    int64_t k = g->m < g->n ? g->m : g->n, cols = grid_owned(k, g->nb, col, g->npcol);
    size_t e = gb10_dtype_size(g->dtype);
    for (int64_t j = 0; j < cols; j++)
        memcpy(tau + (size_t)grid_global(j, g->nb, col, g->npcol) * e, local + (size_t)j * e, e);
}

static gb10_status_t gather(const grid_t *g, const dist_team_t *team, buffers_t *b, void *out,
                            void *tau, gb10_error_t *err)
{
    gb10_status_t status = GB10_OK;
    if (team->rank != 0) {
        GB10_TRY(send_bytes(b->local, grid_piece_bytes(g, g->myrow, g->mycol), 0, err));
        return send_bytes(b->own.tau, b->own.tau_bytes, 0, err);
    }
    copy_piece(g, 0, 0, out, b->local, false);
    place_tau(g, 0, b->own.tau, tau);
    for (int rank = 1; rank < team->size; rank++) {
        int row = rank / g->npcol, col = rank % g->npcol;
        GB10_TRY(receive_bytes(b->piece, grid_piece_bytes(g, row, col), rank, err));
        GB10_TRY(receive_bytes(b->piece_tau, b->own.tau_bytes, rank, err));
        copy_piece(g, row, col, out, b->piece, false);
        if (row == 0)
            place_tau(g, col, b->piece_tau, tau);
    }
cleanup:
    return status;
}

gb10_status_t dist_scalapack_geqrf(const dist_team_t *team, gb10_dtype_t dtype, int64_t m,
                                   int64_t n, int64_t nb, const void *A, void *out, void *tau,
                                   gb10_error_t *err)
{
    grid_t g = {.dtype = dtype};
    buffers_t b = {0};
    int origin;
    gb10_status_t status = GB10_OK;
    if (m < 1 || n < 1 || m > INT_MAX || n > INT_MAX || nb < 1 || nb > INT_MAX)
        return GB10_FAIL(err, GB10_ERR_UNSUPPORTED,
                         "ScaLAPACK cannot factor %lld x %lld with blocks of %lld", (long long)m,
                         (long long)n, (long long)nb);
    g.m = (int)m;
    g.n = (int)n;
    g.mb = g.nb = (int)nb;
    GB10_TRY(grid_open(&g, team, near_square(team->size), err));
    status = make_buffers(&g, team, &b, err);
    GB10_TRY(dist_agree(team, status, err, &origin));
    GB10_TRY(scatter(&g, team, A, &b, err));
    GB10_TRY(grid_geqrf(&g, b.local, &b.own, err));
    GB10_TRY(gather(&g, team, &b, out, tau, err));
cleanup:
    grid_close(&g);
    free_buffers(&b);
    return status;
}
