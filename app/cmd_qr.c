#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/commands.h"
#include "app/format.h"
#include "app/qr.h"
#include "app/resume.h"
#include "app/stop.h"
#include "kernels/core/alloc.h"
#include "kernels/core/crew.h"

#define AT(field) offsetof(qr_options_t, field)
static const cli_option_t options_table[] = {
    {"files", "output", 'o', CLI_TEXT, AT(output), "FILE", NULL, NULL, "output file (required)", 0,
     0},
    {"files", "dataset", 'd', CLI_LIST, AT(datasets), "PATTERN", NULL, NULL,
     "only batches whose path matches this shell pattern; may be repeated", 0, 0},
    {"files", "outputs", 0, CLI_SET, AT(outputs), "LIST", "V,T,R,tau", QR_OUTPUTS,
     "what to write, joined by commas", 0, 0},
    {"files", "overwrite", 0, CLI_FLAG, AT(overwrite), NULL, NULL, NULL,
     "replace an existing output, or one left by an unfinished run", 0, 0},
    {"files", "resume", 0, CLI_FLAG, AT(resume), NULL, NULL, NULL,
     "go on with the output of an unfinished run; only what is missing is done", 0, 0},
    {"files", "narrow", 0, CLI_FLAG, AT(narrow), NULL, NULL, NULL,
     "allow long double and int64 beyond 2^53 to be rounded to float64", 0, 0},
    {"arithmetic", "nb", 0, CLI_INT, AT(nb), "N", "32", NULL,
     "block size of T in the file, at most min(m, n)", 1, 4096},
    {"arithmetic", "positive-diagonal", 0, CLI_FLAG, AT(positive_diagonal), NULL, NULL, NULL,
     "make R's diagonal non-negative; dataset `sign` tells which rows were flipped", 0, 0},
    {"arithmetic", "backend", 0, CLI_CHOICE, AT(backend), "NAME", "auto", QR_BACKENDS,
     "who factors", 0, 0},
    {"arithmetic", "mode", 0, CLI_CHOICE, AT(mode), "NAME", "auto", QR_MODES,
     "precision; auto takes the cheapest mode that meets --tolerance", 0, 0},
    {"arithmetic", "tolerance", 0, CLI_REAL, AT(tolerance), "X", "0", NULL,
     "backward error that must be met; 0: the working precision's", 0, 1},
    {"arithmetic", "tuning", 0, CLI_TEXT, AT(tuning), "FILE", NULL, NULL,
     "choose kernels and block sizes by this table (fugu info --tuning prints one)", 0, 0},
    {"checks", "check", 0, CLI_CHOICE, AT(check), "WHAT", "sample", CHECK_CHOICES,
     "what is measured on the results", 0, 0},
    {"checks", "scalapack", 0, CLI_INT, AT(scalapack), "N", "-1", NULL,
     "matrices of each bucket to factor again with ScaLAPACK; -1: 2 where built in", -1, 1000000},
    {"checks", "verify-full", 0, CLI_FLAG, AT(verify_full), NULL, NULL, NULL,
     "read every result back from the file before it is called complete, not a sample", 0, 0},
    {"running", "threads", 0, CLI_INT, AT(threads), "N", "1", "auto",
     "threads of each rank that factor; 0 or auto: as many as the cores it may use", 0, 1024},
    {"running", "memory", 0, CLI_SIZE, AT(memory), "SIZE", "0", NULL,
     "of each rank; what is larger goes over all ranks; 0: a quarter of what is free on the node",
     0, 1e15},
    {"running", "unit-size", 0, CLI_SIZE, AT(unit_size), "SIZE", "64M", NULL,
     "input and output bytes of a unit of work", 1, 1e15},
    {"running", "schedule", 0, CLI_CHOICE, AT(schedule), "HOW", "dynamic", QR_SCHEDULES,
     "how units are handed to ranks", 0, 0},
    {"running", "shard", 0, CLI_TEXT, AT(shard), "I/N", NULL, NULL,
     "do part I of N, without MPI: for job arrays; the last part to end completes the output", 0,
     0},
    {"running", "max-time", 0, CLI_TEXT, AT(max_time), "TIME", NULL, NULL,
     "stop after 90s, 30m, 2h, H:M:S, or auto: before the Slurm job ends; then --resume", 0, 0},
    {"running", "stop-file", 0, CLI_TEXT, AT(stop_file), "FILE", NULL, NULL,
     "stop when this file appears", 0, 0},
    {"running", "dry-run", 0, CLI_FLAG, AT(dry_run), NULL, NULL, NULL,
     "show the plan and stop; nothing is written", 0, 0},
    {"messages", "progress", 0, CLI_CHOICE, AT(progress), "HOW", "auto", QR_PROGRESS,
     "bar on a terminal, else lines", 0, 0},
    {"messages", "progress-interval", 0, CLI_REAL, AT(progress_interval), "SECONDS", "10", NULL,
     "time between progress lines", 0.01, 86400},
    {"messages", "json", 0, CLI_TEXT, AT(json), "FILE", NULL, NULL, "write a summary as JSON", 0,
     0},
    APP_COMMON_OPTIONS(qr_options_t)};

static int run_qr(const cli_command_t *command, void *options, char **args, int nargs);

const cli_command_t cmd_qr = {
    .name = "qr",
    .summary = "factor every matrix of a file: V, T, R, tau and measured errors",
    .usage = "IN.h5 -o OUT.h5 [options]",
    .min_args = 1,
    .max_args = 1,
    .options = options_table,
    .options_size = sizeof(qr_options_t),
    .examples = "  fugu qr layers.h5 -o layers-qr.h5\n"
                "  mpirun -n 4 fugu qr in.h5 -o out.h5 --dataset '/layers/*' --check full\n",
    .run = run_qr};

static uint32_t kinds_of(const qr_options_t *o)
{
    static const io_kind_t kind[] = {IO_V, IO_T, IO_R, IO_TAU, IO_PACKED};
    uint32_t kinds = 1u << IO_STATUS | 1u << IO_METRICS;
    for (size_t i = 0; i < sizeof kind / sizeof *kind; i++)
        if (o->outputs >> i & 1u)
            kinds |= 1u << kind[i];
    return o->positive_diagonal ? kinds | 1u << IO_SIGN : kinds;
}

/* The options that can change results, as the JSON text of the attribute; the backend that was
 * chosen has an attribute of its own. */
static void options_json(const qr_options_t *o, char *text, size_t size)
{
    char word[32];
    size_t used = 0;
    const char *comma = "";
    used += (size_t)snprintf(text, size, "{\"outputs\": \"");
    for (int i = 0; i < 5; i++)
        if (o->outputs >> i & 1u) {
            used += (size_t)snprintf(text + used, size - used, "%s%s", comma,
                                     cli_choice(QR_OUTPUTS, i, word));
            comma = ",";
        }
    used += (size_t)snprintf(text + used, size - used, "\", \"nb\": %lld, \"mode\": \"%s\"",
                             (long long)o->nb, cli_choice(QR_MODES, o->mode, word));
    used += (size_t)snprintf(text + used, size - used, ", \"check\": \"%s\"",
                             cli_choice(CHECK_CHOICES, o->check, word));
    snprintf(text + used, size - used,
             ", \"tolerance\": %.17g, \"narrow\": %s, \"positive_diagonal\": %s}", o->tolerance,
             o->narrow ? "true" : "false", o->positive_diagonal ? "true" : "false");
}

/* Every mode there is computes in the working precision, whose bound is the backward error gate. */
static gb10_status_t check_tolerance(const qr_run_t *run, gb10_error_t *err)
{
    for (int64_t i = 0; run->options->tolerance > 0 && i < run->catalog.ndatasets; i++) {
        const io_dataset_t *d = &run->catalog.datasets[i];
        double k = (double)(d->m < d->n ? d->m : d->n);
        double bound = 16 * gb10_dtype_u(d->dtype) * fmax(1, sqrt(k / 1024));
        if (run->options->tolerance < bound)
            return GB10_FAIL(err, GB10_ERR_UNSUPPORTED,
                             "%s: %s (%s) cannot meet --tolerance %g: its type's bound is %.2g. "
                             "Convert it to a wider type, or ask for less.",
                             run->input, d->name, format_shape(d->m, d->n), run->options->tolerance,
                             bound);
    }
    return GB10_OK;
}

/* Catalog on rank 0, then everywhere. */
static gb10_status_t open_input(qr_run_t *run, gb10_error_t *err)
{
    const dist_team_t *team = &run->app.team;
    gb10_status_t status = GB10_OK;
    void *bytes = NULL;
    size_t size = 0;
    int origin;
    if (team->rank == 0)
        status =
            io_catalog_open(&run->catalog, run->input, run->options->datasets.item,
                            run->options->datasets.n, run->options->narrow ? IO_NARROW : 0, err);
    if (team->rank == 0 && status == GB10_OK)
        status = check_tolerance(run, err);
    if (team->rank == 0 && status == GB10_OK && team->size > 1)
        status = io_catalog_pack(&run->catalog, &bytes, &size, err);
    GB10_TRY(dist_agree(team, status, err, &origin));
    GB10_TRY(dist_broadcast(team, &bytes, &size, err));
    status = team->rank == 0 ? GB10_OK : io_catalog_unpack(&run->catalog, bytes, size, err);
    if (status == GB10_OK)
        status = io_reader_open(&run->reader, &run->catalog, err);
    GB10_TRY(dist_agree(team, status, err, &origin));
cleanup:
    gb10_free(bytes);
    return status;
}

static const char *obstacle_of_cpu(void)
{
    const char *reason = NULL, *name;
    for (int i = 0; (name = gb10_backend_list(i, &reason)); i++)
        if (strcmp(name, "cpu") == 0 && reason)
            return reason;
    return "the backend in use has another";
}

/* A handle with the lowest instruction set of any rank, and that FUGU_ISA, if set, is in use. */
static gb10_status_t settle_isa(gb10_handle_t **handle, const char *name, int64_t lowest,
                                gb10_error_t *err)
{
    const char *forced = getenv("FUGU_ISA");
    if (lowest < gb10_isa_level(*handle)) {
        setenv("FUGU_ISA", gb10_isa_at(*handle, (int)lowest), 1);
        forced = NULL;
        gb10_destroy(*handle);
        gb10_status_t status = gb10_create(handle, name, err);
        if (status != GB10_OK)
            return status;
    }
    const bool counts = strcmp(name, "auto") == 0 || gb10_isa_at(*handle, 0);
    if (forced && *forced && counts && strcmp(forced, gb10_isa_name(*handle)) != 0)
        return GB10_FAIL(err, GB10_ERR_UNSUPPORTED,
                         "FUGU_ISA=%s cannot be used here: %s. Unset it, or name another.", forced,
                         obstacle_of_cpu());
    return GB10_OK;
}

/* The text of --tuning: read by rank 0, then everywhere. */
static gb10_status_t read_tuning(qr_run_t *run, gb10_error_t *err)
{
    gb10_status_t status = GB10_OK;
    void *text = NULL;
    size_t size = 0;
    int origin;
    if (!run->options->tuning)
        return GB10_OK;
    if (run->app.team.rank == 0)
        status = app_read_tuning(run->options->tuning, &text, &size, err);
    GB10_TRY(dist_agree(&run->app.team, status, err, &origin));
    GB10_TRY(dist_broadcast(&run->app.team, &text, &size, err));
    run->tuning = text;
    text = NULL;
cleanup:
    gb10_free(text);
    return status;
}

/* Which kernels run here; every rank uses the lowest instruction set of any of them. */
static gb10_status_t choose_backend(qr_run_t *run, gb10_error_t *err)
{
    const dist_team_t *team = &run->app.team;
    gb10_handle_t *handle = NULL;
    char name[32];
    int origin;
    gb10_status_t status =
        gb10_create(&handle, cli_choice(QR_BACKENDS, run->options->backend, name), err);
    GB10_TRY(dist_agree(team, status, err, &origin));
    int64_t level = gb10_isa_level(handle);
    GB10_TRY(dist_min(team, &level, 1, err));
    status = settle_isa(&handle, name, level, err);
    GB10_TRY(dist_agree(team, status, err, &origin));
    snprintf(run->backend, sizeof run->backend, "%s", gb10_backend_name(handle));
    snprintf(run->isa, sizeof run->isa, "%s", gb10_isa_name(handle));
    snprintf(run->reason, sizeof run->reason, "%s", gb10_backend_reason(handle));
    status = app_set_tuning(handle, run->tuning, run->options->tuning, err);
    GB10_TRY(dist_agree(team, status, err, &origin));
    snprintf(run->stamp, sizeof run->stamp, "%s", gb10_tuning_stamp(handle));
    int threads = run->options->threads > 0 ? (int)run->options->threads : gb10_cores();
    int64_t range[2] = {threads, -threads};
    GB10_TRY(dist_min(team, range, 2, err));
    run->threads[0] = (int)range[0];
    run->threads[1] = (int)-range[1];
cleanup:
    gb10_destroy(handle);
    return status;
}

/* Broken links and the like: the run goes on without what they would have named. */
static void warn_of_notes(const qr_run_t *run)
{
    enum { SHOWN = 5 };
    int64_t warnings = 0;
    for (int64_t i = 0; i < run->catalog.nnotes; i++) {
        const io_note_t *note = &run->catalog.notes[i];
        if (note->warning && warnings++ < SHOWN)
            app_log(&run->app, APP_WARN, "%s: %s: %s", run->input, note->name, note->reason);
    }
    if (warnings > SHOWN)
        app_log(&run->app, APP_WARN, "... and %lld more; fugu info names all.",
                (long long)(warnings - SHOWN));
}

/* Of --memory, or a share of what the node has free. */
static int64_t memory_of(const qr_run_t *run)
{
    const char *ranks = getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
    int64_t here = ranks ? strtoll(ranks, NULL, 10) : 1, free_kb = 0;
    if (run->options->memory > 0)
        return run->options->memory;
    FILE *file = fopen("/proc/meminfo", "r");
    char line[128];
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %" SCNd64, &free_kb) == 1)
            break;
    if (file)
        fclose(file);
    return free_kb > 0 ? free_kb * 1024 / 4 / (here > 0 ? here : 1) : INT64_MAX;
}

static gb10_status_t make_plan(qr_run_t *run, gb10_error_t *err)
{
    size_t n = (size_t)run->catalog.ndatasets;
    gb10_status_t status = GB10_OK;
    GB10_TRY(io_catalog_batches(&run->catalog, &run->batches, err));
    GB10_TRY(gb10_alloc(&run->held_bytes, n, sizeof(int64_t), "plan", err));
    GB10_TRY(gb10_alloc(&run->base, n + 1, sizeof(int64_t), "plan", err));
    for (size_t i = 0; i < n; i++) {
        const gb10_batch_t *b = &run->batches[i];
        run->held_bytes[i] = pipeline_bytes(b->dtype, b->m, b->n, run->options->nb, run->kinds);
        run->base[i + 1] = run->base[i] + b->count;
    }
    GB10_TRY(dist_plan_create(&run->plan, run->batches, run->held_bytes, (int64_t)n,
                              run->options->unit_size, run->memory - pipeline_unit_bytes(0, 1),
                              err));
    GB10_TRY(huge_grids(run, err));
cleanup:
    return status;
}

static io_spec_t make_spec(const qr_run_t *run, io_attribute_t *attributes, char *options_text)
{
    static const char *const columns =
        "backward_error,column_backward_error,orthogonality,column_norm_error,t_consistency,"
        "probe_error,rdiag_min,rdiag_max";
    int n = 0;
    attributes[n++] = (io_attribute_t){"creator", "fugu", 0};
    attributes[n++] = (io_attribute_t){"creator_version", FUGU_VERSION, 0};
    attributes[n++] = (io_attribute_t){"options", options_text, 0};
    attributes[n++] = (io_attribute_t){"backend", run->backend, 0};
    attributes[n++] = (io_attribute_t){"instruction_set", run->isa, 0};
    attributes[n++] = (io_attribute_t){"tuning", run->stamp, 0};
    return (io_spec_t){.kinds = run->kinds,
                       .nb = run->options->nb,
                       .nmetrics = GB10_METRICS,
                       .metric_columns = columns,
                       .mode = "native",
                       .backend = run->backend,
                       .attributes = attributes,
                       .nattributes = n,
                       .grid = run->grid,
                       .overwrite = run->options->overwrite};
}

static void tick(void *ctx, const dist_progress_t *sum)
{
    progress_tick(ctx, sum);
}

/* Matrices that earlier runs have done, on rank 0. */
static int64_t matrices_before(const qr_run_t *run)
{
    int64_t matrices = 0;
    for (int b = 0; b < GB10_BUCKETS; b++)
        matrices += run->stats.bucket[b].matrices;
    return matrices;
}

/* Huge matrices that are not done: each is a unit. */
static int64_t huge_open(const qr_run_t *run)
{
    int64_t open = 0;
    for (int64_t i = dist_plan_huge(run->plan); i < dist_plan_units(run->plan); i++)
        open += !run->done[i];
    return open;
}

/* All units are done, or the run was stopped. */
static gb10_status_t agree_on_end(const qr_run_t *run, gb10_error_t *err)
{
    int64_t sums[2] = {run->stats.units, stop_asked()}, units = 0;
    gb10_status_t status = dist_sum(&run->app.team, sums, 2, err);
    for (int64_t i = 0; i < dist_plan_units(run->plan); i++)
        units += !run->done[i];
    if (status != GB10_OK || sums[0] == units)
        return status;
    if (sums[1] == 0)
        return GB10_FAIL(err, GB10_ERR_INTERNAL, "%lld of %lld units were done", (long long)sums[0],
                         (long long)units);
    return GB10_FAIL(err, GB10_ERR_STOPPED, "stopped by %s.", stop_reason());
}

static gb10_status_t factor_units(qr_run_t *run, gb10_error_t *err)
{
    const dist_team_t *team = &run->app.team;
    pipeline_config_t config = {.catalog = &run->catalog,
                                .plan = run->plan,
                                .reader = run->reader,
                                .output = run->output,
                                .journal = run->journal,
                                .state = run->state,
                                .memory = run->memory,
                                .backend = run->backend,
                                .tuning = run->tuning,
                                .threads = (int)run->options->threads,
                                .kinds = run->kinds,
                                .nb = run->options->nb,
                                .check = (check_kind_t)run->options->check,
                                .positive_diagonal = run->options->positive_diagonal,
                                .base = run->base};
    pipeline_t *pipeline = NULL;
    progress_t progress;
    int origin;
    if (dist_plan_huge(run->plan) == 0)
        return GB10_OK; /* nothing for one rank alone */
    gb10_status_t status = pipeline_create(&pipeline, &config, err);
    GB10_TRY(dist_agree(team, status, err, &origin));
    progress_start(&progress, &run->app, run->options,
                   dist_plan_matrices(run->plan) - matrices_before(run) - huge_open(run));
    dist_worker_t worker = {.ctx = pipeline,
                            .offer = pipeline_offer,
                            .room = pipeline_room,
                            .idle = pipeline_idle,
                            .failed = pipeline_failed,
                            .stopped = pipeline_stopped,
                            .done = run->taken,
                            .progress = pipeline_progress,
                            .tick = tick,
                            .tick_ctx = &progress};
    status = dist_run(team, run->plan, (dist_schedule_t)run->options->schedule, &worker, err);
    progress_end(&progress);
    if (status != GB10_OK)
        app_die(&run->app, err); /* the others wait for messages */
    run_stats_t before = run->stats;
    status = pipeline_finish(pipeline, &run->stats, err);
    stats_join(&run->stats, &before);
    GB10_TRY(dist_agree(team, status, err, &origin));
cleanup:
    pipeline_free(pipeline);
    return status;
}

/* What one rank can hold by each alone, then the rest by all together. */
static gb10_status_t factor_all(qr_run_t *run, gb10_error_t *err)
{
    gb10_status_t status = factor_units(run, err);
    if (status == GB10_OK)
        status = huge_factor(run, err);
    return status == GB10_OK ? agree_on_end(run, err) : status;
}

static gb10_status_t finish(qr_run_t *run, gb10_error_t *err)
{
    gb10_status_t status = GB10_OK;
    int origin;
    if (run->app.team.rank == 0) {
        status = io_reader_unchanged(run->reader, err);
        if (status == GB10_OK)
            status = resume_verify(run, run->options->verify_full, err);
        if (status == GB10_OK && !run->left_open)
            status = io_output_finish(run->output, err);
        if (status == GB10_OK && !run->left_open)
            status = resume_clean(run, err);
    }
    return dist_agree(&run->app.team, status, err, &origin);
}

static gb10_status_t dry_run(const qr_run_t *run, gb10_error_t *err)
{
    int origin;
    gb10_status_t status = run->app.team.rank == 0 ? report_dry_run(run, err) : GB10_OK;
    return dist_agree(&run->app.team, status, err, &origin);
}

/* True when both names lead to one file, or are the same text. */
static bool same_file(const char *a, const char *b)
{
    struct stat x, y;
    if (strcmp(a, b) == 0)
        return true;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* The summary must not land on the data, and is tried before hours of work. */
static gb10_status_t check_json(const qr_options_t *o, const char *input, gb10_error_t *err)
{
    char part[4096];
    if (!o->json)
        return GB10_OK;
    snprintf(part, sizeof part, "%s.part", o->output ? o->output : "");
    if (same_file(o->json, input) || (o->output && same_file(o->json, o->output)) ||
        same_file(o->json, part))
        return GB10_FAIL(err, GB10_ERR_FILE, "--json %s is the input or the output. Name another.",
                         o->json);
    bool was_there = access(o->json, F_OK) == 0;
    FILE *file = fopen(o->json, "a");
    if (!file)
        return GB10_FAIL(err, GB10_ERR_FILE, "cannot write %s: %s. Nothing was started.", o->json,
                         strerror(errno));
    fclose(file);
    if (!was_there)
        unlink(o->json);
    return GB10_OK;
}

static gb10_status_t check_output(qr_run_t *run, const char *options_text, gb10_error_t *err)
{
    const qr_options_t *o = run->options;
    gb10_status_t status = resume_finished(run, options_text, &run->finished_before, err);
    if (status == GB10_OK && run->finished_before)
        return resume_clean(run, err);
    if (status != GB10_OK)
        return status;
    return io_output_check(o->output, &run->catalog,
                           o->overwrite      ? IO_REPLACE
                           : run->shards > 0 ? IO_SHARE
                           : o->resume       ? IO_RESUME
                                             : IO_REFUSE,
                           run->output_bytes, err);
}

/* Before anything is written; then MPI, without which a process that was started alone has come so
 * far, if ScaLAPACK is needed. */
static gb10_status_t check_memory(qr_run_t *run, gb10_error_t *err)
{
    int origin;
    gb10_status_t status = pipeline_check_memory(run->plan, run->memory, err);
    if (status == GB10_OK)
        status = huge_check(run, err);
    if (status != GB10_OK)
        gb10_error_context(err, "%s", run->input);
    GB10_TRY(dist_agree(&run->app.team, status, err, &origin));
    if (!run->app.team.mpi && dist_plan_bucket_units(run->plan, GB10_HUGE) > 0)
        GB10_TRY(dist_start(&run->app.team, true, err));
cleanup:
    return status;
}

/* Everything after the options are known; collective. */
static gb10_status_t run_all(qr_run_t *run, gb10_error_t *err)
{
    io_attribute_t attributes[16];
    char options_text[512];
    gb10_status_t status = GB10_OK;
    int origin;
    double start = app_now();
    GB10_TRY(open_input(run, err));
    GB10_TRY(read_tuning(run, err));
    GB10_TRY(choose_backend(run, err));
    run->memory = memory_of(run);
    GB10_TRY(dist_min(&run->app.team, &run->memory, 1, err));
    options_json(run->options, options_text, sizeof options_text);
    status = make_plan(run, err);
    io_spec_t spec = make_spec(run, attributes, options_text);
    run->output_bytes = io_output_bytes(&run->catalog, &spec);
    if (status == GB10_OK && run->app.team.rank == 0 && run->options->output)
        status = check_output(run, options_text, err);
    if (status == GB10_OK && run->app.team.rank == 0)
        status = check_json(run->options, run->input, err);
    GB10_TRY(dist_agree(&run->app.team, status, err, &origin));
    int64_t finished = run->finished_before;
    GB10_TRY(dist_sum(&run->app.team, &finished, 1, err));
    run->finished_before = finished != 0;
    if (run->finished_before)
        return GB10_OK;
    warn_of_notes(run);
    report_start(run);
    report_plan(run);
    if (run->options->dry_run)
        return dry_run(run, err);
    GB10_TRY(check_memory(run, err));
    GB10_TRY(resume_open(run, &spec, options_text, err));
    GB10_TRY(factor_all(run, err));
    if (run->options->scalapack > 0)
        GB10_TRY(cross_check(run, err));
    GB10_TRY(stats_reduce(&run->stats, &run->app.team, &run->units_min, &run->units_max, err));
    double done = app_now();
    GB10_TRY(finish(run, err));
    run->sync_seconds += app_now() - done;
    run->seconds = app_now() - start;
cleanup:
    return status;
}

static void close_run(qr_run_t *run)
{
    io_journal_close(run->journal);
    io_output_close(run->output);
    io_reader_close(run->reader);
    dist_plan_free(run->plan);
    gb10_free(run->batches);
    gb10_free(run->held_bytes);
    gb10_free(run->base);
    gb10_free(run->tuning);
    gb10_free(run->identity);
    gb10_free(run->state);
    gb10_free(run->done);
    gb10_free(run->taken);
    gb10_free(run->grid);
    gb10_free(run->grid_text);
    io_catalog_free(&run->catalog);
}

static bool disagrees(const cross_result_t *cross)
{
    for (int b = 0; b < GB10_BUCKETS; b++)
        if (cross->bucket[b].agreed < cross->bucket[b].checked)
            return true;
    return false;
}

/* On rank 0: the exit code, and everything that a person or a script reads. */
static int conclude(const qr_run_t *run, gb10_error_t *err)
{
    int code = stats_bad(&run->stats) > 0 || disagrees(&run->cross) ? EXIT_BAD_MATRIX : EXIT_DONE;
    if (run->app.level >= APP_INFO)
        report_end(run);
    if (run->options->json && report_json(run, code, err) != GB10_OK)
        return app_fail(&run->app, err);
    return code;
}

static gb10_status_t check_options(qr_options_t *o, gb10_error_t *err)
{
    const char *absent = dist_scalapack_reason();
    if (o->resume && o->overwrite)
        return GB10_FAIL(err, GB10_ERR_USAGE,
                         "--resume goes on with an output and --overwrite removes it; give one");
    if ((!o->output || !*o->output) && !o->dry_run)
        return GB10_FAIL(err, GB10_ERR_USAGE, "no output named; use -o OUT.h5");
    if (o->scalapack > 0 && absent)
        return GB10_FAIL(err, GB10_ERR_USAGE, "--scalapack %lld: ScaLAPACK is %s",
                         (long long)o->scalapack, absent);
    if (o->shard && (o->overwrite || o->scalapack > 0 || o->dry_run))
        return GB10_FAIL(err, GB10_ERR_USAGE,
                         "--shard goes on with what is there, by itself: no --overwrite, no "
                         "--scalapack, no --dry-run");
    const char *ranks = getenv("OMPI_COMM_WORLD_SIZE");
    if (o->shard && ranks && strcmp(ranks, "1") != 0)
        return GB10_FAIL(err, GB10_ERR_USAGE,
                         "--shard is for processes of their own; under mpirun leave it out");
    if (o->scalapack < 0)
        o->scalapack = absent || o->shard ? 0 : 2;
    return GB10_OK;
}

static int run_qr(const cli_command_t *command, void *options, char **args, int nargs)
{
    qr_options_t *o = options;
    gb10_error_t err = {0};
    qr_run_t run = {.options = o, .input = args[0]};
    (void)nargs;
    app_context_init(&run.app, command->name, &o->common);
    stats_init(&run.stats);
    if (check_options(o, &err) != GB10_OK)
        return app_fail(&run.app, &err);
    run.kinds = kinds_of(o);
    stop_install();
    if (resume_parse_shard(&run, &err) != GB10_OK)
        return app_fail(&run.app, &err);
    if (stop_limits(o->max_time, o->stop_file, &err) != GB10_OK)
        return app_fail(&run.app, &err);
    bool mpi = !o->shard && (dist_launched() || o->scalapack > 0);
    gb10_status_t status = dist_start(&run.app.team, mpi, &err);
    if (status == GB10_OK)
        status = run_all(&run, &err);
    int64_t code = status == GB10_OK ? EXIT_DONE : app_exit_code(status);
    if (status != GB10_OK) {
        if (run.app.team.rank == 0)
            resume_abandon(&run, &err);
        app_fail(&run.app, &err);
    } else if (run.finished_before) {
        app_log(&run.app, APP_INFO, "%s is complete already; nothing was done", o->output);
    } else if (run.app.team.rank == 0 && !o->dry_run)
        code = conclude(&run, &err);
    if (status == GB10_OK)
        dist_sum(&run.app.team, &code, 1, &err); /* only rank 0's is not 0 */
    close_run(&run);
    dist_stop(&run.app.team);
    return (int)code;
}
