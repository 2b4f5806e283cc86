/* A matrix on a process grid: blocks of mb x nb, dealt out to process rows and columns in turn;
 * column-major local pieces. Rank row * npcol + col has place (row, col). Private to mpi/. */
#ifndef MPI_GRID_H
#define MPI_GRID_H

#include "mpi/dist.h"

typedef struct grid {
    int context; /* of BLACS, when it is open */
    int nprow, npcol, myrow, mycol;
    int m, n, mb, nb;
    gb10_dtype_t dtype;
    bool open;
} grid_t;

/* Rows (or columns) of a dimension of `length` in blocks of nb that process `at` of `of` owns. */
int64_t grid_owned(int64_t length, int64_t nb, int at, int of);

/* Global index of local index l on process `at` of `of`. */
static inline int64_t grid_global(int64_t l, int64_t nb, int at, int of)
{
    return (l / nb * of + at) * nb + l % nb;
}

/* Bytes of the local piece of process (row, col). */
size_t grid_piece_bytes(const grid_t *g, int row, int col);

/* What p?geqrf needs beside the piece on this process. */
typedef struct grid_work {
    void *tau, *work;
    size_t tau_bytes, work_bytes;
    int lwork;
} grid_work_t;
/* Their sizes. GB10_ERR_UNSUPPORTED where a count would exceed an int. */
gb10_status_t grid_work_size(const grid_t *g, grid_work_t *work, gb10_error_t *err);

/* Opens nprow x team->size / nprow processes for an m x n matrix. [MPI] collective. */
gb10_status_t grid_open(grid_t *g, const dist_team_t *team, int nprow, gb10_error_t *err);
void grid_close(grid_t *g);

/* p?geqrf in place. tau: of the local columns. [MPI] collective, and never ends when a rank does
 * not come: all memory must be there before. */
gb10_status_t grid_geqrf(const grid_t *g, void *piece, const grid_work_t *work, gb10_error_t *err);

#endif
