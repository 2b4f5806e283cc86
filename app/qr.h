/* The state of one `fugu qr`, shared by the command, its report and its ScaLAPACK check. */
#ifndef APP_QR_H
#define APP_QR_H

#include "app/context.h"
#include "app/pipeline.h"
#include "app/stats.h"
#include "io/io.h"
#include "io/journal.h"
#include "mpi/dist.h"

typedef struct qr_options {
    app_common_t common;
    const char *output;
    cli_list_t datasets;
    uint32_t outputs; /* bits in the order of QR_OUTPUTS */
    int backend;      /* index into QR_BACKENDS          */
    int mode;
    double tolerance; /* 0: none asked for */
    int64_t nb, scalapack, unit_size, threads;
    int check, schedule, progress;
    bool narrow, positive_diagonal, overwrite, resume, verify_full, dry_run;
    const char *json, *tuning, *max_time, *stop_file;
    const char *shard; /* I/N, or NULL */
    int64_t memory;    /* bytes; 0: a quarter of what is free, shared by the ranks of the node */
    double progress_interval;
} qr_options_t;

#define QR_OUTPUTS   "V|T|R|tau|packed"
#define QR_BACKENDS  "auto|cpu|cpu-ref|cuda"
#define QR_MODES     "auto|native"
#define QR_SCHEDULES "dynamic|static"
#define QR_PROGRESS  "auto|plain|json|none"

/* Outcome of the ScaLAPACK check. */
typedef struct cross_bucket {
    int64_t checked, agreed;
} cross_bucket_t;
typedef struct cross_result {
    cross_bucket_t bucket[GB10_BUCKETS];
    int nlisted;
    struct {
        int64_t dataset, index;
        char reason[160];
    } listed[BAD_LISTED];
} cross_result_t;

typedef struct qr_run {
    app_context_t app;
    const qr_options_t *options;
    const char *input;
    char backend[32], isa[32], reason[160];
    int threads[2]; /* of a rank: the fewest and the most */
    char *tuning;   /* text of --tuning, or NULL          */
    char stamp[64]; /* of the tuning table in use         */
    io_catalog_t catalog;
    gb10_batch_t *batches;
    int64_t *held_bytes; /* per matrix of each batch, for the planner   */
    int64_t *base;       /* matrices in the datasets before             */
    dist_plan_t *plan;
    int64_t memory;    /* bytes of each rank, the same on all               */
    const char **grid; /* of each dataset: of its huge matrices; else NULL  */
    char *grid_text;
    io_reader_t *reader;
    io_output_t *output;
    char *identity; /* what decides the output's bytes: lines of the journals */
    io_journal_t *journal;
    io_unit_state_t *state; /* of every unit, as the journals say  */
    uint8_t *done;          /* units that earlier runs have done   */
    uint8_t *taken;         /* the same, and those that are huge   */
    int64_t done_before;    /* their number, on rank 0             */
    int number;             /* of this run at its output, from 1   */
    bool finished_before;   /* --resume found nothing left to do   */
    int shard, shards;      /* of --shard, from 0; shards 0: none  */
    bool left_open;         /* a shard's units are done, but not all of the output's */
    uint32_t kinds;
    int64_t output_bytes;
    run_stats_t stats;
    int64_t units_min, units_max;
    cross_result_t cross;
    double seconds, cross_seconds;
    double sync_seconds; /* behind the last write, until the output is on the disk with its name */
} qr_run_t;

/* ---- report.c ---- */

/* "7x7 .. 24x24", "s d", "fp32,fp64" of one bucket; text has room for 64 bytes each. */
void report_bucket_shapes(const io_catalog_t *catalog, const dist_plan_t *plan,
                          gb10_bucket_t bucket, char *shapes, char *types, char *modes);
/* The bucket of an output's group: huge when it was factored by all ranks. */
gb10_bucket_t report_bucket_of(const io_group_t *group);
/* Version, ranks, backend; then what is in the file and the bucket table (info level). */
void report_start(const qr_run_t *run);
/* Sizes of the units (debug level). */
void report_plan(const qr_run_t *run);
/* Bucket x rank table of the static schedule (--dry-run), to stdout. */
gb10_status_t report_dry_run(const qr_run_t *run, gb10_error_t *err);
/* Closing table and the list of bad matrices, to stdout. */
void report_end(const qr_run_t *run);
/* The summary as JSON, schema version 1. */
gb10_status_t report_json(const qr_run_t *run, int exit_code, gb10_error_t *err);

/* ---- cross_check.c ---- */

/* Factors options->scalapack matrices of each bucket again with ScaLAPACK and compares.
 * Collective; the result is on rank 0. */
gb10_status_t cross_check(qr_run_t *run, gb10_error_t *err);

/* One comparison: ours passes the gates, column norms of R agree, |R| within the condition-aware
 * bound. (ScaLAPACK's own column norms are now and then a little beyond our gate.) All row-major m
 * x n, V and R as in the file. Sets *agree; `reason` (160 bytes) says what differs. */
gb10_status_t cross_compare(gb10_dtype_t dtype, int64_t m, int64_t n, int64_t nb, const void *A,
                            const void *const ours[4], const void *packed, const void *tau,
                            bool *agree, char *reason, gb10_error_t *err);

/* ---- huge.c: matrices that go over all ranks by ScaLAPACK ---- */

/* run->grid, when the plan has any. */
gb10_status_t huge_grids(qr_run_t *run, gb10_error_t *err);
/* GB10_ERR_MEMORY when the ranks cannot hold one, with what is needed; GB10_ERR_UNSUPPORTED without
 * ScaLAPACK. */
gb10_status_t huge_check(const qr_run_t *run, gb10_error_t *err);
/* Which datasets they are, as a line of the journals without its end. */
void huge_identity(const qr_run_t *run, char *text, size_t size);
/* A sum over the words of part of a matrix's results, from byte `at` of its kind: in any order the
 * same for the whole. Status and metrics count for nothing. */
uint64_t huge_sum(io_kind_t kind, gb10_dtype_t dtype, int64_t at, const void *bytes, int64_t size);
/* Factors those that are not done, one by one, until a request to stop. Collective. */
gb10_status_t huge_factor(qr_run_t *run, gb10_error_t *err);

/* ---- progress.c ---- */

typedef struct progress {
    const app_context_t *app;
    int kind; /* index into QR_PROGRESS */
    double interval, start, last;
    int64_t matrices_total;
    bool terminal, drawn;
} progress_t;
void progress_start(progress_t *p, const app_context_t *app, const qr_options_t *options,
                    int64_t matrices_total);
void progress_tick(progress_t *p, const dist_progress_t *sum);
void progress_end(progress_t *p);

#endif
