/* What is in a file: an input's batches and how they would be factored, or an output's state. */
#include <math.h>
#include <string.h>

#include "app/commands.h"
#include "app/context.h"
#include "app/format.h"
#include "app/qr.h"
#include "kernels/core/alloc.h"

typedef struct info_options {
    app_common_t common;
    bool json, tuning;
    int64_t unit_size, nb;
} info_options_t;

#define AT(field) offsetof(info_options_t, field)
static const cli_option_t options_table[] = {
    {"what to show", "json", 0, CLI_FLAG, AT(json), NULL, NULL, NULL, "JSON on stdout", 0, 0},
    {"what to show", "unit-size", 0, CLI_SIZE, AT(unit_size), "SIZE", "64M", NULL,
     "unit size to plan with", 1, 1e15},
    {"what to show", "nb", 0, CLI_INT, AT(nb), "N", "32", NULL, "block size of T to plan with", 1,
     4096},
    {"what to show", "tuning", 0, CLI_FLAG, AT(tuning), NULL, NULL, NULL,
     "print the built-in tuning table, a start for fugu qr --tuning, and stop", 0, 0},
    APP_COMMON_OPTIONS(info_options_t)};

static int run_info(const cli_command_t *command, void *options, char **args, int nargs);

const cli_command_t cmd_info = {.name = "info",
                                .summary = "what is in a file, and what factoring it would take",
                                .usage = "FILE.h5 [options]",
                                .min_args = 0,
                                .max_args = 1,
                                .options = options_table,
                                .options_size = sizeof(info_options_t),
                                .examples = "  fugu info layers.h5\n"
                                            "  fugu info layers-qr.h5 --json\n",
                                .run = run_info};

enum {
    ROWS_SHOWN = 25,
    KINDS_WRITTEN =
        1u << IO_V | 1u << IO_T | 1u << IO_R | 1u << IO_TAU | 1u << IO_STATUS | 1u << IO_METRICS
};

/* ---- inputs ---- */

typedef struct input_info {
    io_catalog_t catalog;
    gb10_batch_t *batches;
    int64_t *held;
    dist_plan_t *plan;
    double bytes_in, bytes_out, flops[GB10_BUCKETS];
} input_info_t;

static gb10_status_t load_input(input_info_t *in, const char *path, const info_options_t *o,
                                gb10_error_t *err)
{
    io_spec_t spec = {.kinds = KINDS_WRITTEN, .nb = o->nb, .nmetrics = GB10_METRICS};
    gb10_status_t status = GB10_OK;
    GB10_TRY(io_catalog_open(&in->catalog, path, NULL, 0, IO_NARROW | IO_LENIENT, err));
    GB10_TRY(io_catalog_batches(&in->catalog, &in->batches, err));
    GB10_TRY(gb10_alloc(&in->held, (size_t)in->catalog.ndatasets, sizeof *in->held, "plan", err));
    for (int64_t i = 0; i < in->catalog.ndatasets; i++) {
        const gb10_batch_t *b = &in->batches[i];
        in->held[i] = pipeline_bytes(b->dtype, b->m, b->n, o->nb, KINDS_WRITTEN);
        in->bytes_in += (double)b->count * (double)b->source_bytes;
        in->flops[gb10_bucket_of(b->m, b->n)] +=
            (double)b->count * gb10_qr_flops(b->dtype, b->m, b->n);
    }
    in->bytes_out = (double)io_output_bytes(&in->catalog, &spec);
    GB10_TRY(dist_plan_create(&in->plan, in->batches, in->held, in->catalog.ndatasets, o->unit_size,
                              INT64_MAX, err));
cleanup:
    return status;
}

static void free_input(input_info_t *in)
{
    dist_plan_free(in->plan);
    gb10_free(in->held);
    gb10_free(in->batches);
    io_catalog_free(&in->catalog);
}

/* "(1000, 64, 48)" as NumPy prints shapes. */
static const char *shape_text(const io_dataset_t *d, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "(");
    for (int i = 0; i < d->rank && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%lld", i ? ", " : "",
                                 (long long)d->dims[i]);
    if (used < size)
        snprintf(text + used, size - used, ")");
    return text;
}

static void print_notes(const io_catalog_t *c, bool all)
{
    int64_t hidden = 0;
    for (int64_t i = 0; i < c->nnotes; i++) {
        if (all || c->notes[i].warning)
            printf("  %s: %s\n", c->notes[i].name, c->notes[i].reason);
        else
            hidden++;
    }
    if (hidden > 0)
        printf("  %s other objects are not batches of matrices (-v names them)\n",
               format_count(hidden));
}

static void print_datasets(const io_catalog_t *c, bool all)
{
    char shape[128];
    int64_t shown = all || c->ndatasets <= ROWS_SHOWN ? c->ndatasets : ROWS_SHOWN;
    printf("  %-36s %-22s %-4s %12s  %s\n", "dataset", "shape", "type", "matrices", "stored");
    for (int64_t i = 0; i < shown; i++) {
        const io_dataset_t *d = &c->datasets[i];
        printf("  %-36s %-22s %-4c %12s  %s%s%s\n", d->name, shape_text(d, shape, sizeof shape),
               gb10_dtype_letter(d->dtype), format_count(d->count),
               d->offset >= 0 ? "contiguous"
               : d->filtered  ? "filtered"
                              : "by HDF5",
               d->aliases ? "; also " : "", d->aliases ? d->aliases : "");
    }
    if (shown < c->ndatasets)
        printf("  ... and %s more (-v lists all)\n", format_count(c->ndatasets - shown));
}

static void print_input(const input_info_t *in, bool all)
{
    const io_catalog_t *c = &in->catalog;
    printf("%s: %s, %s, %s as read, %s of results\n", c->path,
           format_things(c->ndatasets, "dataset"),
           format_things(dist_plan_matrices(in->plan), "matri"), format_bytes(in->bytes_in),
           format_bytes(in->bytes_out));
    if (c->ndatasets > 0)
        print_datasets(c, all);
    print_notes(c, all);
    if (c->ndatasets == 0) {
        printf("  there is nothing to factor here%s\n", all ? "" : "; -v says why");
        return;
    }
    printf("  %-8s %12s   %-24s %-7s %10s %8s\n", "bucket", "matrices", "shapes", "type", "Gflop",
           "units");
    for (int b = 0; b < GB10_BUCKETS; b++) {
        gb10_bucket_t bucket = (gb10_bucket_t)b;
        char shapes[64], types[64], modes[64];
        if (dist_plan_bucket_matrices(in->plan, bucket) == 0)
            continue;
        report_bucket_shapes(c, in->plan, bucket, shapes, types, modes);
        printf("  %-8s %12s   %-24s %-7s %10.3g %8s\n", gb10_bucket_name(bucket),
               format_count(dist_plan_bucket_matrices(in->plan, bucket)), shapes, types,
               in->flops[b] * 1e-9, format_count(dist_plan_bucket_units(in->plan, bucket)));
    }
}

static void json_input(const input_info_t *in)
{
    const io_catalog_t *c = &in->catalog;
    json_t j = {.file = stdout};
    json_open(&j, NULL, '{');
    json_int(&j, "schema_version", 1);
    json_text(&j, "kind", "input");
    json_text(&j, "file", c->path);
    json_int(&j, "matrices", dist_plan_matrices(in->plan));
    json_real(&j, "bytes_in", in->bytes_in);
    json_real(&j, "bytes_out", in->bytes_out);
    json_int(&j, "units", dist_plan_units(in->plan));
    json_open(&j, "datasets", '[');
    for (int64_t i = 0; i < c->ndatasets; i++) {
        const io_dataset_t *d = &c->datasets[i];
        char type[2] = {gb10_dtype_letter(d->dtype), 0};
        json_open(&j, NULL, '{');
        json_text(&j, "name", d->name);
        json_text(&j, "type", type);
        json_int(&j, "m", d->m);
        json_int(&j, "n", d->n);
        json_int(&j, "count", d->count);
        json_text(&j, "bucket", gb10_bucket_name(gb10_bucket_of(d->m, d->n)));
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_open(&j, "notes", '[');
    for (int64_t i = 0; i < c->nnotes; i++) {
        json_open(&j, NULL, '{');
        json_text(&j, "name", c->notes[i].name);
        json_text(&j, "reason", c->notes[i].reason);
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_close(&j, '}');
}

/* ---- outputs ---- */

/* Status counts and worst stored metrics of every group. */
static gb10_status_t scan_group(io_result_t *result, int64_t group, run_stats_t *stats,
                                gb10_error_t *err)
{
    enum { PIECE = 65536 };
    const io_group_t *g = &result->groups[group];
    int64_t size = g->count < PIECE ? g->count : PIECE;
    uint8_t *info = NULL;
    double *metrics = NULL;
    gb10_status_t status = GB10_OK;
    if (g->nmetrics != GB10_METRICS)
        return GB10_FAIL(err, GB10_ERR_FORMAT, "%s: %s/metrics has %d columns, not %d.",
                         result->path, g->name, g->nmetrics, GB10_METRICS);
    GB10_TRY(gb10_alloc(&info, (size_t)size, 1, g->name, err));
    GB10_TRY(gb10_alloc(&metrics, (size_t)size, GB10_METRICS * sizeof(double), g->name, err));
    for (int64_t first = 0; first < g->count; first += size) {
        int64_t n = g->count - first < size ? g->count - first : size;
        GB10_TRY(io_result_read(result, IO_STATUS, group, first, n, info, err));
        GB10_TRY(io_result_read(result, IO_METRICS, group, first, n, metrics, err));
        for (int64_t i = 0; i < n; i++) {
            double *row = metrics + i * GB10_METRICS;
            for (int k = 0; info[i] == GB10_INFO_NOT_COMPUTED && k < GB10_METRICS; k++)
                row[k] = NAN; /* never written */
            stats_add(&stats->bucket[report_bucket_of(g)], g->dtype, g->m, g->n, info[i], row,
                      !isnan(row[GB10_BACKWARD_ERROR]));
        }
    }
cleanup:
    gb10_free(info);
    gb10_free(metrics);
    return status;
}

static void print_output(const io_result_t *r, const run_stats_t *stats)
{
    int64_t matrices = 0;
    for (int64_t i = 0; i < r->ngroups; i++)
        matrices += r->groups[i].count;
    printf("%s: results for %s, %s, %s\n", r->path, format_things(r->ngroups, "dataset"),
           format_things(matrices, "matri"), r->complete ? "complete" : "NOT COMPLETE");
    printf("  made by fugu %s, backend %s (%s), options %s\n",
           r->creator_version ? r->creator_version : "?", r->backend ? r->backend : "?",
           r->isa ? r->isa : "?", r->options ? r->options : "?");
    printf("  %-8s %12s %12s %10s %10s %8s  %s\n", "bucket", "matrices", "ok", "escalated",
           "non-finite", "other", "worst stored errors");
    for (int b = 0; b < GB10_BUCKETS; b++) {
        const bucket_stats_t *s = &stats->bucket[b];
        int64_t ok = s->by_info[GB10_INFO_OK], escalated = s->by_info[GB10_INFO_OK_ESCALATED];
        int64_t nonfinite = s->by_info[GB10_INFO_NONFINITE];
        if (s->matrices == 0)
            continue;
        printf("  %-8s %12s %12s %10s %10s %8s ", gb10_bucket_name((gb10_bucket_t)b),
               format_count(s->matrices), format_count(ok), format_count(escalated),
               format_count(nonfinite), format_count(s->matrices - ok - escalated - nonfinite));
        if (s->worst[GB10_COLUMN_NORM_ERROR] >= 0)
            printf(" column norms %.1f u", s->worst[GB10_COLUMN_NORM_ERROR]);
        if (s->worst[GB10_BACKWARD_ERROR] >= 0)
            printf(", |A-QR|/|A| %.1f u (%s measured)", s->worst[GB10_BACKWARD_ERROR],
                   format_count(s->checked_full));
        putchar('\n');
    }
    for (int64_t g = 0; g < r->ngroups; g++)
        if (r->groups[g].grid)
            printf("  %s: over all ranks, grid %s\n", r->groups[g].name, r->groups[g].grid);
}

static void json_output(const io_result_t *r, const run_stats_t *stats)
{
    json_t j = {.file = stdout};
    json_open(&j, NULL, '{');
    json_int(&j, "schema_version", 1);
    json_text(&j, "kind", "output");
    json_text(&j, "file", r->path);
    json_bool(&j, "complete", r->complete);
    json_text(&j, "creator_version", r->creator_version);
    json_text(&j, "options", r->options);
    json_text(&j, "backend", r->backend);
    json_text(&j, "instruction_set", r->isa);
    json_text(&j, "fingerprint", r->fingerprint);
    json_int(&j, "datasets", r->ngroups);
    json_open(&j, "buckets", '[');
    for (int b = 0; b < GB10_BUCKETS; b++) {
        const bucket_stats_t *s = &stats->bucket[b];
        if (s->matrices == 0)
            continue;
        json_open(&j, NULL, '{');
        json_text(&j, "bucket", gb10_bucket_name((gb10_bucket_t)b));
        json_int(&j, "matrices", s->matrices);
        json_open(&j, "status", '[');
        for (int i = 0; i < GB10_INFOS; i++)
            json_int(&j, NULL, s->by_info[i]);
        json_close(&j, ']');
        for (int i = 0; i < GB10_RDIAG_MIN; i++)
            json_real(&j, gb10_metric_names[i], s->worst[i] < 0 ? NAN : s->worst[i]);
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_open(&j, "over_all_ranks", '[');
    for (int64_t g = 0; g < r->ngroups; g++) {
        if (!r->groups[g].grid)
            continue;
        json_open(&j, NULL, '{');
        json_text(&j, "name", r->groups[g].name);
        json_text(&j, "grid", r->groups[g].grid);
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_close(&j, '}');
}

static gb10_status_t show_output(const char *path, const info_options_t *o, gb10_error_t *err)
{
    io_result_t result = {.fd = -1};
    run_stats_t stats;
    gb10_status_t status = GB10_OK;
    stats_init(&stats);
    GB10_TRY(io_result_open(&result, path, err));
    for (int64_t g = 0; g < result.ngroups; g++)
        GB10_TRY(scan_group(&result, g, &stats, err));
    if (o->json)
        json_output(&result, &stats);
    else
        print_output(&result, &stats);
cleanup:
    io_result_close(&result);
    return status;
}

static gb10_status_t show_input(const char *path, const info_options_t *o, gb10_error_t *err)
{
    input_info_t in = {0};
    gb10_status_t status = load_input(&in, path, o, err);
    if (status == GB10_OK && o->json)
        json_input(&in);
    else if (status == GB10_OK)
        print_input(&in, o->common.verbose > 0);
    free_input(&in);
    return status;
}

static gb10_status_t show_tuning(gb10_error_t *err)
{
    gb10_handle_t *handle = NULL;
    char *text = NULL;
    gb10_status_t status = GB10_OK;
    GB10_TRY(gb10_create(&handle, NULL, err));
    size_t size = gb10_tuning_text(handle, NULL, 0) + 1;
    GB10_TRY(gb10_alloc(&text, size, 1, "tuning table", err));
    gb10_tuning_text(handle, text, size);
    fputs(text, stdout);
cleanup:
    gb10_free(text);
    gb10_destroy(handle);
    return status;
}

static int run_info(const cli_command_t *command, void *options, char **args, int nargs)
{
    const info_options_t *o = options;
    app_context_t app;
    gb10_error_t err = {0};
    app_context_init(&app, command->name, &o->common);
    if (app.team.rank != 0)
        return EXIT_DONE; /* one process reads the file */
    if (o->tuning)
        return show_tuning(&err) == GB10_OK ? EXIT_DONE : app_fail(&app, &err);
    if (nargs < 1) {
        GB10_FAIL(&err, GB10_ERR_USAGE, "file name is missing; try fugu info --help");
        return app_fail(&app, &err);
    }
    gb10_status_t status =
        io_is_result(args[0]) ? show_output(args[0], o, &err) : show_input(args[0], o, &err);
    return status == GB10_OK ? EXIT_DONE : app_fail(&app, &err);
}
