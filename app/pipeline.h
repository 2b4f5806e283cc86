/* One rank's work: slots pass through the stages read, factor, check and write, each with its own
 * thread, joined by bounded queues. The calling thread only offers units and looks on. */
#ifndef APP_PIPELINE_H
#define APP_PIPELINE_H

#include "app/stats.h"
#include "io/io.h"
#include "io/journal.h"
#include "kernels/gb10.h"
#include "mpi/dist.h"

typedef enum check_kind {
    CHECK_NORMS,
    CHECK_SAMPLE,
    CHECK_PROBE,
    CHECK_FULL,
    CHECK_NONE
} check_kind_t;
#define CHECK_CHOICES "norms|sample|probe|full|none"

/* Everything the stages read; nothing is copied, all must outlive the pipeline. */
typedef struct pipeline_config {
    const io_catalog_t *catalog;
    const dist_plan_t *plan;
    io_reader_t *reader;
    io_output_t *output;
    io_journal_t *journal;
    const io_unit_state_t *state; /* of every unit; those that crashed too often are set aside */
    int64_t memory;               /* bytes for slots: one to three units are held at a time     */
    const char *backend;
    const char *tuning; /* text of a table, or NULL: the built-in one */
    int threads;        /* of the factor stage and of the check stage, each its own; 0: all cores */
    uint32_t kinds;     /* what is written, bits of io_kind_t */
    int64_t nb;
    check_kind_t check;
    bool positive_diagonal;
    const int64_t *base; /* base[d] = matrices in the datasets before d */
} pipeline_config_t;

/* Runs that a unit may end before it is set aside: its matrices get GB10_INFO_SET_ASIDE and NaN. */
enum { CRASHES_MOST = 2 };

/* Bytes of everything that is held per matrix beside the matrix itself: V, T, R and tau always,
 * since the checks need them, and what else `kinds` names. Units are cut by it. */
int64_t pipeline_bytes(gb10_dtype_t dtype, int64_t m, int64_t n, int64_t nb, uint32_t kinds);

/* What a unit takes in memory: its bytes, and the gaps between the buffers of its runs. */
int64_t pipeline_unit_bytes(int64_t bytes, int64_t runs);

/* GB10_ERR_MEMORY, with the size, when one unit is more than the memory. */
gb10_status_t pipeline_check_memory(const dist_plan_t *plan, int64_t memory, gb10_error_t *err);

/* Level of a sampled matrix: full, or probe where O(mnk) in double-double takes minutes. */
uint8_t pipeline_deep_level(int64_t m, int64_t n);

/* Fixed choice of the matrices that `--check sample` looks at closely. */
bool pipeline_sampled(int64_t catalog_index, int64_t m, int64_t n, bool first_of_bucket);

typedef struct pipeline pipeline_t;

gb10_status_t pipeline_create(pipeline_t **pipeline, const pipeline_config_t *config,
                              gb10_error_t *err);
/* For dist_run (ctx is the pipeline). */
void pipeline_offer(void *ctx, int64_t unit);
int pipeline_room(void *ctx);
bool pipeline_stopped(void *ctx);
bool pipeline_idle(void *ctx);
bool pipeline_failed(void *ctx);
void pipeline_progress(void *ctx, dist_progress_t *progress);
/* When idle or failed: stops the threads, sets stats to this rank's figures and returns the first
 * failure of a stage. */
gb10_status_t pipeline_finish(pipeline_t *pipeline, run_stats_t *stats, gb10_error_t *err);
void pipeline_free(pipeline_t *pipeline);

#endif
