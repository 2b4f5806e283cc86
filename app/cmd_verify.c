/* Recomputes every metric from the two files alone. */
#include <math.h>
#include <string.h>

#include "app/commands.h"
#include "app/context.h"
#include "app/factors.h"
#include "app/format.h"
#include "app/qr.h"
#include "app/sign.h"
#include "app/stats.h"
#include "kernels/core/alloc.h"

typedef struct verify_options {
    app_common_t common;
    int64_t sample;
} verify_options_t;

#define AT(field) offsetof(verify_options_t, field)
static const cli_option_t options_table[] = {
    {"checks", "sample", 0, CLI_INT, AT(sample), "N", "0", NULL,
     "look at N matrices of each dataset, evenly spread; 0: at all", 0, 1e15},
    APP_COMMON_OPTIONS(verify_options_t)};

static int run_verify(const cli_command_t *command, void *options, char **args, int nargs);

const cli_command_t cmd_verify = {.name = "verify",
                                  .summary =
                                      "recompute every error of an output from the two files alone",
                                  .usage = "IN.h5 OUT.h5 [options]",
                                  .min_args = 2,
                                  .max_args = 2,
                                  .options = options_table,
                                  .options_size = sizeof(verify_options_t),
                                  .examples = "  fugu verify in.h5 out.h5\n"
                                              "  fugu verify in.h5 out.h5 --sample 100\n",
                                  .run = run_verify};

/* Buffers for some matrices of one dataset. */
typedef struct piece {
    int64_t count;
    char *A, *factor[FACTORS], *packed, *scratch; /* scratch: V and R of one matrix */
    int8_t *sign;
    uint8_t *status, *level, *info;
    double *metrics;
    const char **failed;
} piece_t;

typedef struct verify_run {
    app_context_t app;
    const verify_options_t *options;
    io_catalog_t catalog;
    io_reader_t *reader;
    io_result_t result;
    gb10_handle_t *handle;
    run_stats_t stats;
    int64_t failures, not_finite, without_results;
    int64_t bucket_failures[GB10_BUCKETS];
} verify_run_t;

enum { FAILURES_LISTED = 20 };

static void free_piece(piece_t *p)
{
    for (int f = 0; f < FACTORS; f++)
        gb10_free(p->factor[f]);
    gb10_free(p->A);
    gb10_free(p->packed);
    gb10_free(p->scratch);
    gb10_free(p->sign);
    gb10_free(p->status);
    gb10_free(p->level);
    gb10_free(p->info);
    gb10_free(p->metrics);
    gb10_free(p->failed);
}

static gb10_status_t alloc_piece(piece_t *p, const io_group_t *g, int64_t count, gb10_error_t *err)
{
    size_t c = (size_t)count, matrix = (size_t)(g->m * g->n) * gb10_dtype_size(g->dtype);
    gb10_status_t status = GB10_OK;
    *p = (piece_t){.count = count};
    GB10_TRY(gb10_alloc(&p->A, c, matrix, g->name, err));
    GB10_TRY(gb10_alloc(&p->packed, c, g->kinds >> IO_PACKED & 1u ? matrix : 1, g->name, err));
    GB10_TRY(gb10_alloc(&p->scratch, 2, matrix, g->name, err));
    for (int f = 0; f < FACTORS; f++)
        GB10_TRY(gb10_alloc(&p->factor[f], c, (size_t)factors_bytes(g->dtype, g->m, g->n, g->nb, f),
                            g->name, err));
    GB10_TRY(gb10_alloc(&p->sign, c, (size_t)g->k + 1, g->name, err));
    GB10_TRY(gb10_alloc(&p->status, c, 1, g->name, err));
    GB10_TRY(gb10_alloc(&p->level, c, 1, g->name, err));
    GB10_TRY(gb10_alloc(&p->info, c, 1, g->name, err));
    GB10_TRY(gb10_alloc(&p->metrics, c, GB10_METRICS * sizeof(double), g->name, err));
    GB10_TRY(gb10_alloc(&p->failed, c, sizeof(char *), g->name, err));
cleanup:
    return status;
}

static bool has(const io_group_t *g, io_kind_t kind)
{
    return g->kinds >> kind & 1u;
}

/* True when V, T, tau (and so everything) can be had from what the group holds. */
static bool has_reflectors(const io_group_t *g)
{
    return (has(g, IO_V) || has(g, IO_PACKED)) && (has(g, IO_TAU) || has(g, IO_T));
}

static bool has_r(const io_group_t *g)
{
    return has(g, IO_R) || has(g, IO_PACKED);
}

/* tau is the diagonal of T's blocks. */
static void tau_from_t(const io_group_t *g, const piece_t *p)
{
    size_t e = gb10_dtype_size(g->dtype);
    int64_t rows = g->nb < g->k ? g->nb : g->k;
    for (int64_t b = 0; b < p->count; b++)
        for (int64_t j = 0; j < g->k; j++)
            memcpy(p->factor[FACTOR_TAU] + (size_t)(b * g->k + j) * e,
                   p->factor[FACTOR_T] + (size_t)((b * rows + j % rows) * g->k + j) * e, e);
}

static gb10_status_t load_piece(verify_run_t *run, int64_t group, int64_t dataset, int64_t first,
                                piece_t *p, gb10_error_t *err)
{
    const io_group_t *g = &run->result.groups[group];
    gb10_view_t f[FACTORS];
    gb10_status_t status = GB10_OK;
    int64_t n = p->count;
    GB10_TRY(io_read(run->reader, dataset, first, n, p->A, err));
    GB10_TRY(io_result_read(&run->result, IO_STATUS, group, first, n, p->status, err));
    for (int i = 0; i < FACTORS; i++)
        if (has(g, factors_kind[i]))
            GB10_TRY(
                io_result_read(&run->result, factors_kind[i], group, first, n, p->factor[i], err));
    factors_views(g->dtype, g->m, g->n, g->nb, n, (const void *const *)p->factor, f);
    if (has(g, IO_SIGN) && has(g, IO_R)) {
        GB10_TRY(io_result_read(&run->result, IO_SIGN, group, first, n, p->sign, err));
        sign_undo(&f[FACTOR_R], p->sign);
    }
    if (has(g, IO_PACKED)) {
        GB10_TRY(io_result_read(&run->result, IO_PACKED, group, first, n, p->packed, err));
        factors_unpack(g->dtype, g->m, g->n, n, p->packed,
                       has(g, IO_V) ? NULL : p->factor[FACTOR_V],
                       has(g, IO_R) ? NULL : p->factor[FACTOR_R]);
    }
    if (!has(g, IO_TAU) && has(g, IO_T))
        tau_from_t(g, p);
    if (!has(g, IO_T) && has_reflectors(g)) {
        gb10_form_t_args_t args = {&f[FACTOR_V], &f[FACTOR_TAU], &f[FACTOR_T], g->nb};
        if (gb10_form_t(run->handle, &args) != GB10_OK) {
            *err = *gb10_last_error(run->handle);
            status = err->status;
        }
    }
cleanup:
    return status;
}

static bool all_nan(const char *data, size_t bytes, gb10_dtype_t dtype)
{
    size_t numbers = bytes / (gb10_dtype_is_double(dtype) ? sizeof(double) : sizeof(float));
    for (size_t e = 0; e < numbers; e++)
        if (!isnan(gb10_number_at(dtype, data, (int64_t)e)))
            return false;
    return true;
}

/* A matrix without a result has NaN in every output that is there. */
static const char *check_nan_fill(const io_group_t *g, const piece_t *p, int64_t i)
{
    static const char *const wrong =
        "its status says that there is no result, but an output is not "
        "NaN";
    size_t matrix = (size_t)(g->m * g->n) * gb10_dtype_size(g->dtype);
    if (has(g, IO_PACKED) && !all_nan(p->packed + (size_t)i * matrix, matrix, g->dtype))
        return wrong;
    for (int f = 0; f < FACTORS; f++) {
        size_t bytes = (size_t)factors_bytes(g->dtype, g->m, g->n, g->nb, f);
        if (has(g, factors_kind[f]) && !all_nan(p->factor[f] + (size_t)i * bytes, bytes, g->dtype))
            return wrong;
    }
    return NULL;
}

/* Where V or R stand beside `packed`, both must hold the same bits. */
static const char *check_packed(const io_group_t *g, const piece_t *p, int64_t i)
{
    size_t matrix = (size_t)(g->m * g->n) * gb10_dtype_size(g->dtype);
    size_t v = (size_t)factors_bytes(g->dtype, g->m, g->n, g->nb, FACTOR_V);
    size_t r = (size_t)factors_bytes(g->dtype, g->m, g->n, g->nb, FACTOR_R);
    if (!has(g, IO_PACKED))
        return NULL;
    factors_unpack(g->dtype, g->m, g->n, 1, p->packed + (size_t)i * matrix, p->scratch,
                   p->scratch + v);
    if (has(g, IO_V) && memcmp(p->scratch, p->factor[FACTOR_V] + (size_t)i * v, v) != 0)
        return "packed and V differ";
    if (has(g, IO_R) && memcmp(p->scratch + v, p->factor[FACTOR_R] + (size_t)i * r, r) != 0)
        return "packed and R differ";
    return NULL;
}

/* What speaks against matrix i; NULL when its status and results hold. */
static const char *verdict(const io_group_t *g, const piece_t *p, int64_t i)
{
    switch (p->status[i]) {
    case GB10_INFO_OK:
    case GB10_INFO_OK_ESCALATED:
    case GB10_INFO_GATE_MISSED:
        return p->failed[i] ? p->failed[i] : check_packed(g, p, i);
    case GB10_INFO_NONFINITE:
    case GB10_INFO_NOT_REPRESENTABLE: /* gb10_check has judged the claim */
        return p->failed[i] ? "its status does not hold for this input" : check_nan_fill(g, p, i);
    case GB10_INFO_NOT_COMPUTED:
        return "was not computed";
    case GB10_INFO_SET_ASIDE:
        return "was set aside";
    default:
        return "its status is not a value that qr writes";
    }
}

static void print_failure(const io_group_t *g, int64_t index, const piece_t *p, int64_t i,
                          const char *why)
{
    printf("FAILED %s[%lld]: %s", g->name, (long long)index, why);
    for (int metric = 0; metric < GB10_RDIAG_MIN; metric++)
        if (strcmp(why, gb10_metric_names[metric]) == 0)
            printf(" %.3g, gate %.3g", p->metrics[i * GB10_METRICS + metric],
                   gb10_gate(metric, g->dtype, g->m, g->n));
    putchar('\n');
}

static gb10_status_t check_piece(verify_run_t *run, const io_group_t *g, int64_t first, piece_t *p,
                                 gb10_error_t *err)
{
    gb10_view_t f[FACTORS], a = gb10_view_rows(g->dtype, p->A, g->m, g->n, p->count);
    gb10_bucket_t bucket = report_bucket_of(g);
    bool full = has_reflectors(g);
    uint8_t level = full ? pipeline_deep_level(g->m, g->n) : GB10_CHECK_NORMS;
    factors_views(g->dtype, g->m, g->n, g->nb, p->count, (const void *const *)p->factor, f);
    for (int64_t i = 0; i < p->count; i++) {
        p->info[i] = p->status[i] == GB10_INFO_GATE_MISSED ? GB10_INFO_OK : p->status[i];
        p->level[i] = level;
        p->failed[i] = NULL;
    }
    gb10_check_args_t args = {.A = &a,
                              .V = full ? &f[FACTOR_V] : NULL,
                              .T = full ? &f[FACTOR_T] : NULL,
                              .R = &f[FACTOR_R],
                              .tau = full ? &f[FACTOR_TAU] : NULL,
                              .nb = g->nb,
                              .level = p->level,
                              .info = p->info,
                              .metrics = p->metrics,
                              .failed = p->failed};
    if (gb10_check(run->handle, &args) != GB10_OK) {
        *err = *gb10_last_error(run->handle);
        return err->status;
    }
    for (int64_t i = 0; i < p->count; i++) {
        const char *why = verdict(g, p, i);
        stats_add(&run->stats.bucket[bucket], g->dtype, g->m, g->n, p->info[i],
                  p->metrics + i * GB10_METRICS, level == GB10_CHECK_FULL);
        run->not_finite += p->status[i] == GB10_INFO_NONFINITE;
        if (!why)
            continue;
        run->bucket_failures[bucket]++;
        if (run->failures++ < FAILURES_LISTED)
            print_failure(g, first + i, p, i, why);
    }
    return GB10_OK;
}

static gb10_status_t verify_group(verify_run_t *run, int64_t group, int64_t dataset,
                                  gb10_error_t *err)
{
    enum { PIECE_BYTES = 32 << 20 };
    const io_group_t *g = &run->result.groups[group];
    const io_dataset_t *d = &run->catalog.datasets[dataset];
    int64_t sample = run->options->sample;
    int64_t one = 4 * g->m * g->n * (int64_t)gb10_dtype_size(g->dtype) + 1;
    int64_t size = PIECE_BYTES / one < 1 ? 1 : PIECE_BYTES / one;
    piece_t p = {0};
    gb10_status_t status = GB10_OK;
    if (d->dtype != g->dtype || d->m != g->m || d->n != g->n || d->count != g->count)
        return GB10_FAIL(err, GB10_ERR_FORMAT,
                         "%s holds %s matrices of %s (%c) for %s, but %s has %s of %s (%c) there; "
                         "it was made from another input.",
                         run->result.path, format_count(g->count), format_shape(g->m, g->n),
                         gb10_dtype_letter(g->dtype), g->name, run->catalog.path,
                         format_count(d->count), format_shape(d->m, d->n),
                         gb10_dtype_letter(d->dtype));
    bool few = sample > 0 && sample < g->count;
    if (few)
        size = 1;
    size = size < g->count ? size : g->count;
    if (size == 0)
        return GB10_OK;
    GB10_TRY(alloc_piece(&p, g, size, err));
    for (int64_t i = 0; i < (few ? sample : g->count); i += size) {
        int64_t first = few ? i * (g->count / sample) + i * (g->count % sample) / sample : i;
        p.count = g->count - first < size ? g->count - first : size;
        GB10_TRY(load_piece(run, group, dataset, first, &p, err));
        GB10_TRY(check_piece(run, g, first, &p, err));
    }
cleanup:
    free_piece(&p);
    return status;
}

/* Datasets that the options of the run name and the group lacks. */
static gb10_status_t check_kinds(const verify_run_t *run, const io_group_t *g, gb10_error_t *err)
{
    static const io_kind_t kinds[] = {IO_V, IO_T, IO_R, IO_TAU, IO_PACKED};
    const char *list = run->result.options ? strstr(run->result.options, "\"outputs\": \"") : NULL;
    const char *end = list ? strchr(list + 12, '"') : NULL;
    for (size_t i = 0; end && i < sizeof kinds / sizeof *kinds; i++) {
        const char *name = io_kind_name(kinds[i]);
        size_t length = strlen(name);
        for (const char *at = list + 12; at < end; at += strcspn(at, ",\"") + 1)
            if (strncmp(at, name, length) == 0 && strchr(",\"", at[length]) && !has(g, kinds[i]))
                return GB10_FAIL(err, GB10_ERR_FORMAT,
                                 "%s: %s/%s is missing, though its run wrote it. The file was "
                                 "changed; make it again.",
                                 run->result.path, g->name, name);
    }
    if (g->nmetrics != GB10_METRICS)
        return GB10_FAIL(err, GB10_ERR_FORMAT, "%s: %s/metrics has %d columns, not %d.",
                         run->result.path, g->name, g->nmetrics, GB10_METRICS);
    if (!has_r(g))
        return GB10_FAIL(err, GB10_ERR_FORMAT,
                         "%s: %s holds neither R nor packed, so nothing of it can be verified. "
                         "Write one of them (--outputs).",
                         run->result.path, g->name);
    return GB10_OK;
}

/* Both lists are in the same order, and the groups are among the batches. */
static gb10_status_t verify_groups(verify_run_t *run, gb10_error_t *err)
{
    gb10_status_t status = GB10_OK;
    int64_t d = 0;
    for (int64_t g = 0; g < run->result.ngroups && status == GB10_OK; g++, d++) {
        const char *name = run->result.groups[g].name;
        while (d < run->catalog.ndatasets && strcmp(run->catalog.datasets[d].name, name) != 0) {
            run->without_results++;
            d++;
        }
        if (d == run->catalog.ndatasets)
            return GB10_FAIL(err, GB10_ERR_FORMAT,
                             "%s has results for %s, but %s has no such batch.", run->result.path,
                             name, run->catalog.path);
        status = check_kinds(run, &run->result.groups[g], err);
        if (status == GB10_OK)
            status = verify_group(run, g, d, err);
    }
    run->without_results += run->catalog.ndatasets - d;
    return status;
}

static void cell(const bucket_stats_t *s, int metric, const char *unit, char *text)
{
    if (s->worst[metric] >= 0)
        snprintf(text, 16, "%.3g%s", s->worst[metric], unit);
    else if (metric == GB10_BACKWARD_ERROR && s->worst[GB10_PROBE_ERROR] >= 0)
        snprintf(text, 16, "~%.3g u", s->worst[GB10_PROBE_ERROR]); /* of the probe vector */
    else
        snprintf(text, 16, "-");
}

static void print_table(const verify_run_t *run)
{
    static const int shown[] = {GB10_BACKWARD_ERROR, GB10_COLUMN_BACKWARD_ERROR, GB10_ORTHOGONALITY,
                                GB10_COLUMN_NORM_ERROR, GB10_T_CONSISTENCY};
    printf("worst values; u = 2^-24 (s, c) or 2^-53 (d, z), r = sqrt(k) u\n"
           "%-7s %12s  %-11s %-11s %-9s %-11s %-9s %s\n"
           "%-7s %12s  %-11s %-11s %-9s %-11s %s\n",
           "bucket", "matrices", "|A-QR|/|A|", "by column", "|I-Q'Q|", "col. norms", "T", "verdict",
           "", "gate", "16 u", "32 u", "20 r", "16 u", "20 r");
    for (int b = 0; b < GB10_BUCKETS; b++) {
        const bucket_stats_t *s = &run->stats.bucket[b];
        char text[5][16];
        if (s->matrices == 0)
            continue;
        for (int i = 0; i < 5; i++)
            cell(s, shown[i],
                 shown[i] == GB10_ORTHOGONALITY || shown[i] == GB10_T_CONSISTENCY ? " r" : " u",
                 text[i]);
        printf("%-7s %12s  %-11s %-11s %-9s %-11s %-9s ", gb10_bucket_name((gb10_bucket_t)b),
               format_count(s->matrices), text[0], text[1], text[2], text[3], text[4]);
        if (run->bucket_failures[b] > 0)
            printf("FAILED (%s)\n", format_count(run->bucket_failures[b]));
        else
            printf("PASSED\n");
    }
}

static int conclude(const verify_run_t *run)
{
    int64_t looked_at = 0;
    for (int b = 0; b < GB10_BUCKETS; b++)
        looked_at += run->stats.bucket[b].matrices;
    if (run->failures > FAILURES_LISTED)
        printf("... and %s more\n", format_count(run->failures - FAILURES_LISTED));
    if (!run->result.complete)
        printf("FAILED %s is not complete: its run did not finish\n", run->result.path);
    int code = run->failures > 0 || !run->result.complete ? EXIT_BAD_MATRIX : EXIT_DONE;
    if (run->app.level < APP_INFO)
        return code;
    print_table(run);
    printf("%s matrices looked at, %s passed, %s failed; %s of them not finite, as their status "
           "says\n",
           format_count(looked_at), format_count(looked_at - run->failures),
           format_count(run->failures), format_count(run->not_finite));
    if (run->without_results > 0)
        printf("%s of %s without results in %s were left out\n",
               format_things(run->without_results, "dataset"), run->catalog.path, run->result.path);
    return code;
}

static gb10_status_t verify_files(verify_run_t *run, char **args, gb10_error_t *err)
{
    gb10_status_t status = GB10_OK;
    GB10_TRY(io_result_open(&run->result, args[1], err));
    for (int64_t g = 0; g < run->result.ngroups; g++)
        if (run->result.groups[g].nb < 1) /* no columns, so no blocks in the file */
            run->result.groups[g].nb = 1;
    GB10_TRY(io_catalog_open(&run->catalog, args[0], NULL, 0, IO_NARROW | IO_LENIENT, err));
    GB10_TRY(io_reader_open(&run->reader, &run->catalog, err));
    GB10_TRY(gb10_create(&run->handle, "cpu-ref", err));
    GB10_TRY(verify_groups(run, err));
cleanup:
    return status;
}

static int run_verify(const cli_command_t *command, void *options, char **args, int nargs)
{
    verify_run_t run = {.options = options, .result = {.fd = -1}};
    gb10_error_t err = {0};
    (void)nargs;
    app_context_init(&run.app, command->name, &run.options->common);
    if (run.app.team.rank != 0)
        return EXIT_DONE; /* one process reads the files */
    stats_init(&run.stats);
    int code =
        verify_files(&run, args, &err) == GB10_OK ? conclude(&run) : app_fail(&run.app, &err);
    gb10_destroy(run.handle);
    io_reader_close(run.reader);
    io_catalog_free(&run.catalog);
    io_result_close(&run.result);
    return code;
}
