/* Who works on what. The planner and the static schedule are pure functions of their arguments; the
 * rest sends messages. A process that was started without a launcher needs no MPI:
 * dist_start(false) gives a team of one. Only the thread that called dist_start may call the
 * functions marked [MPI]. */
#ifndef MPI_DIST_H
#define MPI_DIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/core/plan.h"
#include "kernels/core/status.h"

/* ---- planner (pure) ---- */

/* One stream of units per bucket and type. Memory grows with the number of batches, not with
 * matrices or units. */
typedef struct dist_plan dist_plan_t;

/* bytes_out(batch) = bytes written per matrix, computed by the caller into out_bytes[nbatches].
 * Batches and out_bytes are kept by reference and must outlive the plan. A matrix that takes more
 * than `memory` with them is huge: a unit alone, behind all others in canonical order, for all
 * ranks together. */
gb10_status_t dist_plan_create(dist_plan_t **plan, const gb10_batch_t *batches,
                               const int64_t *out_bytes, int64_t nbatches, int64_t unit_bytes,
                               int64_t memory, gb10_error_t *err);
void dist_plan_free(dist_plan_t *plan);
int64_t dist_plan_units(const dist_plan_t *plan);
int64_t dist_plan_matrices(const dist_plan_t *plan);
/* The first huge unit; dist_plan_units when there is none. dist_run must be told that they are
 * done. */
int64_t dist_plan_huge(const dist_plan_t *plan);
gb10_bucket_t dist_plan_bucket(const dist_plan_t *plan, int64_t batch);
/* Units, matrices of one bucket. */
int64_t dist_plan_bucket_units(const dist_plan_t *plan, gb10_bucket_t bucket);
int64_t dist_plan_bucket_matrices(const dist_plan_t *plan, gb10_bucket_t bucket);
/* Largest bytes_in, bytes_out, matrices and runs of any unit that is not huge. */
void dist_plan_limits(const dist_plan_t *plan, int64_t *bytes_in, int64_t *bytes_out,
                      int64_t *matrices, int64_t *runs);
/* Fills unit i, 0 <= i < units, in canonical order (bucket, type, catalog). unit->runs grows. */
gb10_status_t dist_unit(const dist_plan_t *plan, int64_t i, gb10_unit_t *unit, gb10_error_t *err);
/* The i-th unit to hand out, largest cost first: a permutation of 0 .. units-1. */
int64_t dist_plan_order(const dist_plan_t *plan, int64_t i);
/* Static schedule: owner[i] = rank of unit dist_plan_order(i), longest processing time first; -1
 * for units that are done (by canonical index; NULL: none is). */
gb10_status_t dist_plan_static(const dist_plan_t *plan, int nranks, const uint8_t *done,
                               int32_t *owner, gb10_error_t *err);

/* Deals the units out that are not done, in the order of dist_plan_order. */
typedef struct dist_dealer {
    const dist_plan_t *plan;
    const uint8_t *done; /* by canonical index, or NULL                        */
    int64_t next;        /* the first of the order that is open, or all units  */
    int64_t open;        /* units that were open when it began                 */
    double left;         /* cost of those that are                             */
} dist_dealer_t;
void dist_dealer_init(dist_dealer_t *dealer, const dist_plan_t *plan, const uint8_t *done);
/* Units for one of `nranks` ranks into unit[most] (canonical indices): a quarter of its share of
 * the cost that is left, so that messages are few, and one at a time towards the end, so that all
 * ranks end together. 0: nothing is left. */
int64_t dist_deal(dist_dealer_t *dealer, int nranks, int64_t most, int64_t *unit);

/* ---- team ---- */

typedef struct dist_team {
    int rank, size;
    int nodes; /* distinct host names     */
    bool mpi;  /* MPI is initialised      */
} dist_team_t;

/* True when a launcher started this process (OMPI_COMM_WORLD_RANK, PMIX_RANK or SLURM_PROCID). */
bool dist_launched(void);
/* This process's rank as the launcher says, 0 when not launched. Needs no MPI. */
int dist_launch_rank(void);

gb10_status_t dist_start(dist_team_t *team, bool use_mpi, gb10_error_t *err); /* [MPI] */
void dist_stop(dist_team_t *team);                                            /* [MPI] */
/* Ends every rank with exit code `code`: for a failure inside a collective call. [MPI] */
_Noreturn void dist_abort(const dist_team_t *team, int code);

/* Bytes from rank 0 to all; on other ranks *bytes is allocated with gb10_alloc. [MPI] */
gb10_status_t dist_broadcast(const dist_team_t *team, void **bytes, size_t *size,
                             gb10_error_t *err);
/* All ranks return the worst status; err on rank 0 becomes the record of the lowest rank that
 * failed. *origin = that rank or -1. Waits without spinning. [MPI] */
gb10_status_t dist_agree(const dist_team_t *team, gb10_status_t mine, gb10_error_t *err,
                         int *origin);
/* Element-wise sum, maximum or minimum on all ranks, in place. [MPI] */
gb10_status_t dist_sum(const dist_team_t *team, int64_t *values, int n, gb10_error_t *err);
gb10_status_t dist_max(const dist_team_t *team, double *values, int n, gb10_error_t *err);
gb10_status_t dist_min(const dist_team_t *team, int64_t *values, int n, gb10_error_t *err);
/* Every rank's `size` bytes, in rank order, on rank 0 (all: size*team->size bytes). [MPI] */
gb10_status_t dist_gather(const dist_team_t *team, const void *mine, size_t size, void *all,
                          gb10_error_t *err);

/* ---- dispatch ---- */

/* What a rank has done so far; rank 0 sees the sum. */
typedef struct dist_progress {
    int64_t units, matrices, bad, bytes;
    int64_t units_total; /* set by dist_run: units that `units` counts towards */
} dist_progress_t;

/* The rank's work, driven by dist_run from the MPI thread. All calls come from that thread.
 *   offer(ctx, unit):   take unit `unit` (a canonical index); called only after room() > 0;
 *                       what goes wrong shows in failed()
 *   room(ctx):          how many more units the rank can queue now; never blocks
 *   idle(ctx):          true when every unit taken is done
 *   failed(ctx):        true when the rank cannot go on
 *   stopped(ctx):       true when it was asked to stop: then no new unit starts anywhere, and
 *                       dist_run returns when those that were taken are done
 *   progress(ctx, p):   this rank's figures
 *   tick(tick_ctx, sum):     rank 0 only, now and then: the sum over ranks as last reported
 *                       (static schedule: rank 0's own share) */
typedef struct dist_worker {
    void *ctx;
    void (*offer)(void *ctx, int64_t unit);
    int (*room)(void *ctx);
    bool (*idle)(void *ctx);
    bool (*failed)(void *ctx);
    bool (*stopped)(void *ctx);
    void (*progress)(void *ctx, dist_progress_t *p);
    void (*tick)(void *tick_ctx, const dist_progress_t *sum);
    void *tick_ctx;
    const uint8_t *done; /* by canonical index, not 0: needs no work, is never offered; or NULL */
} dist_worker_t;

typedef enum dist_schedule { DIST_DYNAMIC = 0, DIST_STATIC = 1 } dist_schedule_t;

/* Hands every unit that is not done to exactly one rank and returns when this rank's are done, or
 * when a rank failed or was stopped (then no new unit starts anywhere; static: on that rank).
 * Dynamic: point-to-point request and reply with rank 0. Static: dist_plan_static, no messages.
 * [MPI] */
gb10_status_t dist_run(const dist_team_t *team, const dist_plan_t *plan, dist_schedule_t schedule,
                       const dist_worker_t *worker, gb10_error_t *err);

/* ---- one matrix over all ranks ---- */

/* NULL when ScaLAPACK was built in, else the reason. */
const char *dist_scalapack_reason(void);

/* Factors one m x n matrix by p?geqrf over all ranks, block-cyclic with square blocks of nb.
 *   A:   row-major m x n on rank 0 (ignored elsewhere)
 *   out: on rank 0 receives LAPACK's V\R packed, row-major m x n; tau: k elements
 * [MPI] collective. */
gb10_status_t dist_scalapack_geqrf(const dist_team_t *team, gb10_dtype_t dtype, int64_t m,
                                   int64_t n, int64_t nb, const void *A, void *out, void *tau,
                                   gb10_error_t *err);

/* ---- huge matrices: every rank reads, holds and writes its own blocks ---- */

/* An m x n matrix in blocks over all ranks, then its factors in the same place. */
typedef struct dist_matrix dist_matrix_t;

/* What its memory holds: A before dist_geqrf, the others after it. Shapes as in the file: V m x k,
 * T min(nb, k) x k, R k x n, tau k x 1, packed m x n, sign k x 1 of int8. */
typedef enum dist_part {
    DIST_A,
    DIST_V,
    DIST_T,
    DIST_R,
    DIST_TAU,
    DIST_PACKED,
    DIST_SIGN
} dist_part_t;

/* A rectangle of a part. The last two are its place on this rank. */
typedef struct dist_rect {
    int64_t row, column, rows, columns;
    int64_t local_row, local_column;
} dist_rect_t;
enum { DIST_RECT_MAX = 65536 /* elements of the largest */ };

/* The process grid that `ranks` ranks make for such a matrix, as "2x1, blocks of 64", or
 * "4x1, blocks of 4096x12". */
enum { DIST_GRID_TEXT = 48 };
const char *dist_grid_text(int ranks, int64_t m, int64_t n, int64_t nb, char text[DIST_GRID_TEXT]);

/* Bytes that the fullest of `ranks` ranks holds; -1 when ScaLAPACK's counts, which are ints, do not
 * reach so far with so few ranks (or at all). */
int64_t dist_matrix_bytes(int ranks, gb10_dtype_t dtype, int64_t m, int64_t n, int64_t nb);

/* m, n, nb >= 1. Nothing in the later calls allocates. positive: R's diagonal is made non-negative,
 * and DIST_SIGN tells which rows were flipped. [MPI] collective, ranks agree. */
gb10_status_t dist_matrix_create(dist_matrix_t **matrix, const dist_team_t *team,
                                 gb10_dtype_t dtype, int64_t m, int64_t n, int64_t nb,
                                 bool positive, gb10_error_t *err);
void dist_matrix_free(dist_matrix_t *matrix); /* [MPI] collective; NULL allowed */

/* This rank's rectangles of a part: start with a rect of zeros, until false. Together those of all
 * ranks cover the part once. */
bool dist_matrix_next(const dist_matrix_t *matrix, dist_part_t part, dist_rect_t *rect);

/* Takes a rectangle of A, row-major and dense; gives one of the other parts. */
void dist_matrix_put(dist_matrix_t *matrix, const dist_rect_t *rect, const void *from);
void dist_matrix_get(const dist_matrix_t *matrix, dist_part_t part, const dist_rect_t *rect,
                     void *to);

/* When all of A was put: where the first NaN or Inf in row-major order is; -1: all are finite.
 * [MPI] collective. */
gb10_status_t dist_matrix_nonfinite(const dist_matrix_t *matrix, int64_t *row, int64_t *column,
                                    bool *nan, gb10_error_t *err);

/* What was measured, the same on all ranks, as the metrics of those names; NaN where not. */
typedef struct dist_quality {
    double column_norm_error;
    double probe[2]; /* ||(A - QR)x|| / ||A||_F and ||Q^H Q x - x|| for a fixed x = +-1 */
    double rdiag_min, rdiag_max;
    bool overflow; /* an entry of R is beyond the range of the type                         */
    bool broken;   /* V, tau or R's diagonal are not what they must be, or not finite       */
} dist_quality_t;

/* Factors a finite A by p?geqrf: columns are brought near 1 by powers of two before, which changes
 * neither V nor tau, and R back after; then T, and the measurements that `norms` and `probe` ask
 * for. [MPI] collective; a failure must end all ranks (dist_abort), others may be waiting. */
gb10_status_t dist_geqrf(dist_matrix_t *matrix, bool norms, bool probe, dist_quality_t *quality,
                         gb10_error_t *err);

#endif
