#include <errno.h>
#include <math.h>
#include <string.h>

#include "app/format.h"
#include "app/qr.h"
#include "kernels/core/alloc.h"

enum { SCHEMA = 1 };

/* What a bad matrix's status means, in a few words. */
static const char *status_text(uint8_t info)
{
    static const char *const text[GB10_INFOS] = {"was not computed",
                                                 "is ok",
                                                 "is ok after escalation",
                                                 "is not finite",
                                                 "missed a gate",
                                                 "was set aside",
                                                 "has a result that its type cannot hold",
                                                 "is rank-deficient"};
    return text[info < GB10_INFOS ? info : 0];
}

void report_bucket_shapes(const io_catalog_t *catalog, const dist_plan_t *plan,
                          gb10_bucket_t bucket, char *shapes, char *types, char *modes)
{
    const io_dataset_t *least = NULL, *most = NULL;
    unsigned seen = 0;
    char *t = types;
    for (int64_t i = 0; i < catalog->ndatasets; i++) {
        const io_dataset_t *d = &catalog->datasets[i];
        if (d->count == 0 || dist_plan_bucket(plan, i) != bucket)
            continue;
        seen |= 1u << d->dtype;
        if (!least || d->m * d->n < least->m * least->n)
            least = d;
        if (!most || d->m * d->n > most->m * most->n)
            most = d;
    }
    for (int i = 0; i < GB10_DTYPES; i++)
        if (seen >> i & 1u) {
            *t++ = gb10_dtype_letter((gb10_dtype_t)i);
            *t++ = ' ';
        }
    *(t > types ? t - 1 : t) = 0;
    bool fp32 = seen & (1u << GB10_S | 1u << GB10_C), fp64 = seen & (1u << GB10_D | 1u << GB10_Z);
    snprintf(modes, 64, "%s%s%s", fp32 ? "fp32" : "", fp32 && fp64 ? "," : "", fp64 ? "fp64" : "");
    if (!least)
        *shapes = 0;
    else if (least->m == most->m && least->n == most->n)
        snprintf(shapes, 64, "%s", format_shape(least->m, least->n));
    else
        snprintf(shapes, 64, "%s .. %s", format_shape(least->m, least->n),
                 format_shape(most->m, most->n));
}

gb10_bucket_t report_bucket_of(const io_group_t *group)
{
    return group->grid ? GB10_HUGE : gb10_bucket_of(group->m, group->n);
}

static const char *bucket_label(int bucket)
{
    static const char *const label[GB10_BUCKETS] = {"tiny  <= 32", "small <= 128", "medium<= 512",
                                                    "large > 512", "tall",         "huge"};
    return label[bucket];
}

/* "2 threads each", "1 to 4 threads each", of one rank "2 threads". */
static const char *threads_text(const qr_run_t *run, char *text, size_t size)
{
    int low = run->threads[0], high = run->threads[1];
    const char *end = run->app.team.size > 1 ? " each" : "";
    if (low == high)
        snprintf(text, size, "%d thread%s%s", low, low == 1 ? "" : "s", end);
    else
        snprintf(text, size, "%d to %d threads%s", low, high, end);
    return text;
}

void report_start(const qr_run_t *run)
{
    const dist_team_t *team = &run->app.team;
    const io_catalog_t *c = &run->catalog;
    double bytes_in = 0;
    char threads[64];
    if (run->app.level < APP_INFO || team->rank != 0)
        return;
    fprintf(stderr, "fugu %s (%s)  %d rank%s on %d node%s, %s  backend %s (%s; %s)  tuning %s\n",
            FUGU_VERSION, app_git(), team->size, team->size > 1 ? "s" : "", team->nodes,
            team->nodes > 1 ? "s" : "", threads_text(run, threads, sizeof threads), run->backend,
            run->isa, run->reason, run->stamp);
    for (int64_t i = 0; i < c->ndatasets; i++)
        bytes_in += (double)c->datasets[i].count * (double)run->batches[i].source_bytes;
    fprintf(stderr, "%s: %s, %s, %s in, %s out\n", run->input,
            format_things(c->ndatasets, "dataset"),
            format_things(dist_plan_matrices(run->plan), "matri"), format_bytes(bytes_in),
            format_bytes((double)run->output_bytes));
    fprintf(stderr, "  %-12s %12s   %-24s %-7s %-10s %6s\n", "bucket", "matrices", "shapes", "type",
            "mode", "units");
    for (int b = 0; b < GB10_BUCKETS; b++) {
        char shapes[64], types[64], modes[64];
        if (dist_plan_bucket_matrices(run->plan, (gb10_bucket_t)b) == 0)
            continue;
        report_bucket_shapes(c, run->plan, (gb10_bucket_t)b, shapes, types, modes);
        fprintf(stderr, "  %-12s %12s   %-24s %-7s %-10s %6s\n", bucket_label(b),
                format_count(dist_plan_bucket_matrices(run->plan, (gb10_bucket_t)b)), shapes, types,
                modes, format_count(dist_plan_bucket_units(run->plan, (gb10_bucket_t)b)));
    }
}

void report_plan(const qr_run_t *run)
{
    int64_t in, held, matrices, runs;
    dist_plan_limits(run->plan, &in, &held, &matrices, &runs);
    app_log(&run->app, APP_DEBUG,
            "units %s; the largest has %s matrices in %s runs, %s to read, %s of results in memory",
            format_count(dist_plan_units(run->plan)), format_count(matrices), format_count(runs),
            format_bytes((double)in), format_bytes((double)held));
}

gb10_status_t report_dry_run(const qr_run_t *run, gb10_error_t *err)
{
    enum { RANKS_SHOWN = 16 };
    int64_t units = dist_plan_units(run->plan);
    int ranks = run->app.team.size, shown = ranks < RANKS_SHOWN ? ranks : RANKS_SHOWN;
    int32_t *owner = NULL;
    int64_t *table = NULL;
    uint8_t *shared = NULL;
    gb10_unit_t unit = {0};
    gb10_status_t status = GB10_OK;
    GB10_TRY(gb10_alloc(&owner, (size_t)units, sizeof *owner, "static schedule", err));
    GB10_TRY(gb10_alloc(&table, (size_t)ranks * GB10_BUCKETS, sizeof *table, "plan", err));
    GB10_TRY(gb10_alloc(&shared, (size_t)units, 1, "static schedule", err));
    for (int64_t i = dist_plan_huge(run->plan); i < units; i++)
        shared[i] = 1;
    GB10_TRY(dist_plan_static(run->plan, ranks, shared, owner, err));
    for (int64_t i = 0; i < units; i++) {
        GB10_TRY(dist_unit(run->plan, dist_plan_order(run->plan, i), &unit, err));
        for (int r = 0; r < ranks; r++) /* the huge ones are everybody's */
            if (owner[i] == r || owner[i] < 0)
                table[(int64_t)r * GB10_BUCKETS + unit.bucket] += unit.matrices;
    }
    printf("matrices a rank by bucket (static schedule; %s units of %s)\n%-6s", format_count(units),
           format_bytes((double)run->options->unit_size), "rank");
    for (int b = 0; b < GB10_BUCKETS; b++)
        printf(" %14s", gb10_bucket_name((gb10_bucket_t)b));
    putchar('\n');
    for (int r = 0; r < shown; r++) {
        printf("%-6d", r);
        for (int b = 0; b < GB10_BUCKETS; b++)
            printf(" %14s", format_count(table[r * GB10_BUCKETS + b]));
        putchar('\n');
    }
    if (ranks > shown)
        printf("... and %d more ranks\n", ranks - shown);
    for (int64_t i = 0; run->grid && i < run->catalog.ndatasets; i++)
        if (run->grid[i])
            printf("%s: each matrix over all ranks, grid %s\n", run->catalog.datasets[i].name,
                   run->grid[i]);
    printf("nothing was written (--dry-run)\n");
cleanup:
    gb10_free(unit.runs);
    gb10_free(owner);
    gb10_free(table);
    gb10_free(shared);
    return status;
}

/* A worst error as "8.1 u"; where only the probe was measured "probe 8.1 u"; "-" for neither. */
static void worst_text(const bucket_stats_t *s, int metric, const char *unit, char *text)
{
    if (s->worst[metric] >= 0)
        snprintf(text, 32, "%.1f %s", s->worst[metric], unit);
    else if (metric == GB10_BACKWARD_ERROR && s->worst[GB10_PROBE_ERROR] >= 0)
        snprintf(text, 32, "probe %.1f u", s->worst[GB10_PROBE_ERROR]);
    else
        snprintf(text, 32, "-");
}

static void print_bad(const qr_run_t *run)
{
    int64_t bad = stats_bad(&run->stats);
    for (int i = 0; i < run->stats.nbad; i++) {
        const bad_matrix_t *b = &run->stats.bad[i];
        printf("%s[%lld] %s", run->catalog.datasets[b->dataset].name, (long long)b->index,
               status_text(b->info));
        if (b->row >= 0)
            printf(": %s at row %lld, column %lld", b->what, (long long)b->row,
                   (long long)b->column);
        if (*b->gate)
            printf(": %s", b->gate);
        putchar('\n');
    }
    if (bad > run->stats.nbad)
        printf("... and %s more; dataset `status` has all\n", format_count(bad - run->stats.nbad));
    for (int i = 0; i < run->cross.nlisted; i++)
        printf("%s[%lld] ScaLAPACK disagrees: %s\n",
               run->catalog.datasets[run->cross.listed[i].dataset].name,
               (long long)run->cross.listed[i].index, run->cross.listed[i].reason);
}

static void print_row(const qr_run_t *run, int bucket)
{
    const bucket_stats_t *t = &run->stats.bucket[bucket];
    const cross_bucket_t *x = &run->cross.bucket[bucket];
    char be[32], orth[32], agree[48] = "-";
    worst_text(t, GB10_BACKWARD_ERROR, "u", be);
    worst_text(t, GB10_ORTHOGONALITY, "r", orth);
    if (x->checked > 0)
        snprintf(agree, sizeof agree, "%lld/%lld agree", (long long)x->agreed,
                 (long long)x->checked);
    printf("%-7s %11s %11s %9s %10s %7s %6s   %-11s %-8s %s\n",
           gb10_bucket_name((gb10_bucket_t)bucket), format_count(t->matrices),
           format_count(t->by_info[GB10_INFO_OK]), format_count(t->by_info[GB10_INFO_OK_ESCALATED]),
           format_count(t->by_info[GB10_INFO_NONFINITE]),
           format_count(t->by_info[GB10_INFO_GATE_MISSED]),
           format_count(t->by_info[GB10_INFO_NOT_REPRESENTABLE] +
                        t->by_info[GB10_INFO_NOT_COMPUTED] + t->by_info[GB10_INFO_SET_ASIDE]),
           be, orth, agree);
}

void report_end(const qr_run_t *run)
{
    static const char *const stage[STAGES] = {"read", "factor", "check", "write"};
    const run_stats_t *s = &run->stats;
    printf("worst errors measured; u = 2^-24 (s, c) or 2^-53 (d, z), r = sqrt(k) u\n"
           "%-7s %11s %11s %9s %10s %7s %6s   %-11s %-8s %s\n"
           "%67s   %-11s %s\n",
           "bucket", "matrices", "ok", "escalated", "non-finite", "missed", "other", "|A-QR|/|A|",
           "|I-Q'Q|", "ScaLAPACK", "gate", "16 u", "20 r");
    for (int b = 0; b < GB10_BUCKETS; b++)
        if (s->bucket[b].matrices > 0)
            print_row(run, b);
    print_bad(run);
    if (run->left_open)
        printf("part %s of %s is done, in %s; the last part to end completes it\nstage seconds:",
               run->options->shard, run->options->output, format_seconds(run->seconds));
    else
        printf("wrote %s (%s of results) in %s\nstage seconds%s:", run->options->output,
               format_bytes((double)run->output_bytes), format_seconds(run->seconds),
               run->app.team.size > 1 ? ", all ranks" : "");
    for (int i = 0; i < STAGES; i++)
        printf("  %s %.2f", stage[i], s->busy[i]);
    if (run->cross_seconds > 0)
        printf("  ScaLAPACK %.2f", run->cross_seconds);
    double factor = s->busy[1] + s->wait[1];
    printf("; factor waited %.0f %% of its time\n", factor > 0 ? 100 * s->wait[1] / factor : 0.0);
}

static void json_buckets(json_t *j, const qr_run_t *run)
{
    static const char *const info_name[GB10_INFOS] = {
        "not_computed", "ok",        "ok_escalated",      "nonfinite",
        "gate_missed",  "set_aside", "not_representable", "rank_deficient"};
    json_open(j, "buckets", '[');
    for (int b = 0; b < GB10_BUCKETS; b++) {
        const bucket_stats_t *t = &run->stats.bucket[b];
        char shapes[64], types[64], modes[64];
        if (t->matrices == 0)
            continue;
        report_bucket_shapes(&run->catalog, run->plan, (gb10_bucket_t)b, shapes, types, modes);
        json_open(j, NULL, '{');
        json_text(j, "bucket", gb10_bucket_name((gb10_bucket_t)b));
        json_int(j, "matrices", t->matrices);
        json_text(j, "shapes", shapes);
        json_text(j, "types", types);
        json_int(j, "units", dist_plan_bucket_units(run->plan, (gb10_bucket_t)b));
        json_int(j, "checked_in_full", t->checked_full);
        json_open(j, "status", '{');
        for (int i = 0; i < GB10_INFOS; i++)
            json_int(j, info_name[i], t->by_info[i]);
        json_close(j, '}');
        json_open(j, "worst", '{'); /* units: u; sqrt(k) u for orthogonality, t_consistency */
        for (int i = 0; i < GB10_RDIAG_MIN; i++)
            json_real(j, gb10_metric_names[i], t->worst[i] < 0 ? NAN : t->worst[i]);
        json_close(j, '}');
        json_open(j, "scalapack", '{');
        json_int(j, "checked", run->cross.bucket[b].checked);
        json_int(j, "agreed", run->cross.bucket[b].agreed);
        json_close(j, '}');
        json_close(j, '}');
    }
    json_close(j, ']');
}

static void json_stages(json_t *j, const qr_run_t *run)
{
    static const char *const stage[STAGES] = {"read", "factor", "check", "write"};
    const run_stats_t *s = &run->stats;
    json_open(j, "stages", '{'); /* seconds are sums over ranks */
    for (int i = 0; i < STAGES; i++) {
        double bytes = (double)(i == 3 ? s->bytes_written : s->bytes_read);
        json_open(j, stage[i], '{');
        json_real(j, "busy_s", s->busy[i]);
        json_real(j, "wait_s", s->wait[i]);
        json_real(j, "GB_per_s", s->busy[i] > 0 ? bytes * 1e-9 / s->busy[i] : NAN);
        json_close(j, '}');
    }
    json_close(j, '}');
}

static void json_bad(json_t *j, const qr_run_t *run)
{
    json_int(j, "bad_matrices", stats_bad(&run->stats));
    json_open(j, "bad_listed", '[');
    for (int i = 0; i < run->stats.nbad; i++) {
        const bad_matrix_t *b = &run->stats.bad[i];
        json_open(j, NULL, '{');
        json_text(j, "dataset", run->catalog.datasets[b->dataset].name);
        json_int(j, "index", b->index);
        json_int(j, "status", b->info);
        json_text(j, "gate", *b->gate ? b->gate : NULL);
        json_close(j, '}');
    }
    json_close(j, ']');
}

gb10_status_t report_json(const qr_run_t *run, int exit_code, gb10_error_t *err)
{
    FILE *file = fopen(run->options->json, "w");
    json_t j = {.file = file};
    if (!file)
        return GB10_FAIL(err, GB10_ERR_FILE, "cannot write %s: %s", run->options->json,
                         strerror(errno));
    json_open(&j, NULL, '{');
    json_int(&j, "schema_version", SCHEMA);
    json_text(&j, "program", "fugu qr");
    json_text(&j, "version", FUGU_VERSION);
    json_text(&j, "git", app_git());
    json_int(&j, "exit_code", exit_code);
    json_text(&j, "input", run->input);
    json_text(&j, "output", run->options->output);
    json_int(&j, "datasets", run->catalog.ndatasets);
    json_int(&j, "matrices", dist_plan_matrices(run->plan));
    json_int(&j, "bytes_in", run->stats.bytes_read);
    json_int(&j, "bytes_out", run->output_bytes);
    json_real(&j, "seconds", run->seconds);
    json_real(&j, "sync_seconds", run->sync_seconds);
    json_real(&j, "scalapack_seconds", run->cross_seconds);
    json_int(&j, "ranks", run->app.team.size);
    json_int(&j, "nodes", run->app.team.nodes);
    json_int(&j, "threads_of_a_rank_min", run->threads[0]);
    json_int(&j, "threads_of_a_rank_max", run->threads[1]);
    json_int(&j, "units", run->stats.units);
    json_int(&j, "units_of_a_rank_min", run->units_min);
    json_int(&j, "units_of_a_rank_max", run->units_max);
    json_text(&j, "backend", run->backend);
    json_text(&j, "instruction_set", run->isa);
    json_text(&j, "tuning", run->stamp);
    json_buckets(&j, run);
    json_stages(&j, run);
    json_bad(&j, run);
    json_close(&j, '}');
    bool bad = ferror(file) != 0;
    if (fclose(file) != 0 || bad)
        return GB10_FAIL(err, GB10_ERR_FILE, "cannot write %s", run->options->json);
    return GB10_OK;
}
