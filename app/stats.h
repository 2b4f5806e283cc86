/* What happened to the matrices of a run: counts, worst errors, the first bad ones, stage times. */
#ifndef APP_STATS_H
#define APP_STATS_H

#include <stdint.h>

#include "kernels/core/plan.h"
#include "kernels/gb10.h"
#include "mpi/dist.h"

enum { STAGES = 4, BAD_LISTED = 10 };

typedef struct bucket_stats {
    int64_t matrices, checked_full;
    int64_t by_info[GB10_INFOS];
    /* Largest values in units a gate speaks of: u, or sqrt(k) u for orthogonality and
     * T consistency; -1 when nothing was measured. */
    double worst[GB10_METRICS];
} bucket_stats_t;

/* A matrix whose status is neither 1 nor 2. */
typedef struct bad_matrix {
    int64_t dataset, index;
    int64_t row, column; /* of the first non-finite entry, -1 when that is not the matter */
    uint8_t info;
    char what[8];  /* "NaN", "Inf" */
    char gate[32]; /* the first gate missed, or "" */
} bad_matrix_t;

typedef struct run_stats {
    bucket_stats_t bucket[GB10_BUCKETS];
    int nbad; /* listed, the smallest by (dataset, index) */
    bad_matrix_t bad[BAD_LISTED];
    double busy[STAGES], wait[STAGES]; /* seconds */
    int64_t units, matrices, bytes_read, bytes_written;
} run_stats_t;

void stats_init(run_stats_t *stats);

/* Scale of a metric in the units above. */
double stats_unit(int metric, gb10_dtype_t dtype, int64_t m, int64_t n);

/* Adds the outcome of one matrix; metrics may hold NaN. */
void stats_add(bucket_stats_t *bucket, gb10_dtype_t dtype, int64_t m, int64_t n, uint8_t info,
               const double *metrics, int checked_full);

/* Keeps the BAD_LISTED smallest. True when `bad` would be kept. */
int stats_would_list(const run_stats_t *stats, int64_t dataset, int64_t index);
void stats_list(run_stats_t *stats, const bad_matrix_t *bad);

/* Adds counts, worst errors and the list of another part of the same run. */
void stats_join(run_stats_t *stats, const run_stats_t *part);
/* Matrices with a status other than 1 or 2. */
int64_t stats_bad(const run_stats_t *stats);

/* Sums, maxima and the merged list over the ranks; complete on rank 0. busy and wait become sums
 * over ranks, units_min and units_max (may be NULL) the extremes of any rank. */
gb10_status_t stats_reduce(run_stats_t *stats, const dist_team_t *team, int64_t *units_min,
                           int64_t *units_max, gb10_error_t *err);

#endif
