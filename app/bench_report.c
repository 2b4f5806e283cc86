#include "app/bench.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "kernels/core/plan.h"

static gb10_status_t open_file(FILE **file, const char *path, const char *option, gb10_error_t *err)
{
    *file = path ? fopen(path, "w") : NULL;
    if (path && !*file)
        return GB10_FAIL(err, GB10_ERR_FILE, "%s %s: %s", option, path, strerror(errno));
    return GB10_OK;
}

gb10_status_t bench_report_open(bench_report_t *r, const char *csv, const char *json,
                                gb10_error_t *err)
{
    gb10_status_t status = open_file(&r->csv, csv, "--csv", err);
    if (status == GB10_OK)
        status = open_file(&r->json.file, json, "--json", err);
    r->csv_path = csv;
    r->json_path = json;
    return status;
}

/* ---- one result as named values ---- */

/* What is known of one engine on one case; NaN where it does not apply. */
typedef struct result {
    const char *engine, *version, *algorithm, *lacks;
    const bench_case_t *c;
    double rate, gflops, peak, share, bandwidth, memory, bound, bound_share; /* shares in % */
    double part[4]; /* pack, factor, T, unpack: microseconds for one matrix     */
    double ratio;   /* its time over fugu's                                     */
    double speedup; /* its rate over fugu's with one thread                     */
    int rounds;
    int64_t matrices;
} result_t;

static const char *const part_names[4] = {"pack_us_per_matrix", "factor_us_per_matrix",
                                          "t_us_per_matrix", "unpack_us_per_matrix"};

/* c: what this engine did. P and W belong to all threads: they say nothing of a peer that has one.
 */
static result_t make_result(const bench_report_t *r, const bench_case_t *c,
                            const bench_timing_t *timing)
{
    double flops = gb10_qr_flops(c->dtype, c->m, c->n), seconds = timing->per_matrix;
    bool same = c->threads == r->machine->threads;
    double peak = same ? r->machine->now.peak[gb10_dtype_is_double(c->dtype)] : NAN;
    double bandwidth = same ? r->machine->now.bandwidth : NAN;
    result_t x = {.c = c,
                  .rate = 1 / seconds,
                  .gflops = flops / seconds * 1e-9,
                  .peak = peak,
                  .bandwidth = bandwidth * 1e-9,
                  .memory = bench_memory_bound(c, bandwidth),
                  .bound = bench_bound(c, peak, bandwidth),
                  .part = {NAN, NAN, NAN, NAN},
                  .ratio = same ? seconds / r->ours->team.timing.per_matrix : NAN,
                  .speedup = NAN,
                  .rounds = timing->n,
                  .matrices = timing->matrices};
    x.share = 100 * x.gflops / x.peak;
    x.bound_share = 100 * x.gflops / x.bound;
    return x;
}

static result_t our_result(const bench_report_t *r)
{
    const bench_engine_t *team = &r->ours->team, *single = &r->ours->single;
    result_t x = make_result(r, &team->c, &team->timing);
    const gb10_times_t *t = &r->ours->times;
    const double parts[4] = {t->pack, t->factor, t->form_t, t->unpack};
    x.engine = "fugu";
    x.version = FUGU_VERSION;
    x.algorithm = gb10_backend_name(r->ours->team.handle);
    x.lacks = "nothing";
    if (single->handle)
        x.speedup = single->timing.per_matrix / team->timing.per_matrix;
    for (int i = 0; i < 4 && parts[0] + parts[1] + parts[2] + parts[3] > 0; i++)
        x.part[i] = 1e6 * parts[i];
    return x;
}

/* ---- CSV ---- */

static void csv_text(FILE *file, const char *text)
{
    fputc('"', file);
    for (; *text; text++)
        fprintf(file, *text == '"' ? "\"\"" : "%c", *text);
    fputs("\",", file);
}

static void csv_real(FILE *file, double value, char end)
{
    if (isfinite(value))
        fprintf(file, "%.6g", value);
    fputc(end, file);
}

static void csv_start(const bench_report_t *r)
{
    const bench_machine_t *m = r->machine;
    FILE *f = r->csv;
    fprintf(f, "# command: %s\n# date: %s\n# fugu: %s (%s)\n# cpu: %s\n", m->command, m->date,
            FUGU_VERSION, app_git(), m->cpu);
    fprintf(f, "# backend: %s\n# instruction_set: %s\n# tuning: %s\n# threads: %d\n",
            gb10_backend_name(r->ours->team.handle), gb10_isa_name(r->ours->team.handle),
            gb10_tuning_stamp(r->ours->team.handle), m->threads);
    fprintf(f, "# clock: %s\n", bench_clock_name(m->threads));
    fprintf(f, "# level2_cache_bytes: %lld\n# last_level_cache_bytes: %lld\n# peak_source: %s\n",
            (long long)m->level2, (long long)m->last, m->peak_source);
    for (int i = 0; i < 2; i++) {
        fprintf(f, "# start_peak_%cgemm_gflops_per_s: ", "sd"[i]);
        csv_real(f, m->start.peak[i], '\n');
    }
    fprintf(f, "# start_bandwidth_gbytes_per_s: %.6g\n", m->start.bandwidth * 1e-9);
    fputs("engine,version,algorithm,leaves_out,dtype,shape,place,m,n,nb,threads,batch_matrices,"
          "batch_bytes,measurements,matrices_per_measurement,matrices_per_s,gflops_per_s,"
          "peak_gflops_per_s,share_of_peak_percent,bandwidth_gbytes_per_s,"
          "memory_bound_gflops_per_s,bound_gflops_per_s,share_of_bound_percent,",
          f);
    for (int i = 0; i < 4; i++)
        fprintf(f, "%s,", part_names[i]);
    fputs("time_over_fugu,speed_up\n", f);
}

/* Of the batch, inputs and outputs. */
static int64_t batch_bytes(const bench_case_t *c)
{
    return (int64_t)((bench_bytes_in(c) + bench_bytes_out(c)) * (double)c->count);
}

static void csv_row(const bench_report_t *r, const result_t *x)
{
    FILE *f = r->csv;
    const bench_case_t *c = x->c;
    csv_text(f, x->engine);
    csv_text(f, x->version);
    csv_text(f, x->algorithm);
    csv_text(f, x->lacks);
    fprintf(f, "%c,%s,%s,%lld,%lld,%lld,%d,%lld,%lld,%d,%lld,", gb10_dtype_letter(c->dtype),
            c->shape, bench_place_names[c->place], (long long)c->m, (long long)c->n,
            (long long)c->nb, c->threads, (long long)c->count, (long long)batch_bytes(c), x->rounds,
            (long long)x->matrices);
    const double values[] = {x->rate,    x->gflops,  x->peak,        x->share,   x->bandwidth,
                             x->memory,  x->bound,   x->bound_share, x->part[0], x->part[1],
                             x->part[2], x->part[3], x->ratio};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        csv_real(f, values[i], ',');
    csv_real(f, x->speedup, '\n');
    fflush(f); /* what was measured stays when the bench is stopped */
}

/* ---- JSON ---- */

static void json_start(json_t *j, const bench_report_t *r)
{
    const bench_machine_t *m = r->machine;
    json_open(j, NULL, '{');
    json_text(j, "command", m->command);
    json_text(j, "date", m->date);
    json_text(j, "version", FUGU_VERSION);
    json_text(j, "git", app_git());
    json_open(j, "machine", '{');
    json_text(j, "cpu", m->cpu);
    json_text(j, "backend", gb10_backend_name(r->ours->team.handle));
    json_text(j, "instruction_set", gb10_isa_name(r->ours->team.handle));
    json_text(j, "tuning", gb10_tuning_stamp(r->ours->team.handle));
    json_int(j, "threads", m->threads);
    json_text(j, "clock", bench_clock_name(m->threads));
    json_int(j, "level2_cache_bytes", m->level2);
    json_int(j, "last_level_cache_bytes", m->last);
    json_text(j, "peak_source", m->peak_source);
    json_real(j, "start_peak_sgemm_gflops_per_s", m->start.peak[0]);
    json_real(j, "start_peak_dgemm_gflops_per_s", m->start.peak[1]);
    json_real(j, "start_bandwidth_gbytes_per_s", m->start.bandwidth * 1e-9);
    json_close(j, '}');
    json_open(j, "results", '[');
}

static void json_row(json_t *j, const result_t *x)
{
    const bench_case_t *c = x->c;
    char letter[2] = {gb10_dtype_letter(c->dtype), 0};
    json_open(j, NULL, '{');
    json_text(j, "engine", x->engine);
    json_text(j, "version", x->version);
    json_text(j, "algorithm", x->algorithm);
    json_text(j, "leaves_out", x->lacks);
    json_text(j, "dtype", letter);
    json_text(j, "shape", c->shape);
    json_text(j, "place", bench_place_names[c->place]);
    json_int(j, "m", c->m);
    json_int(j, "n", c->n);
    json_int(j, "nb", c->nb);
    json_int(j, "threads", c->threads);
    json_int(j, "batch_matrices", c->count);
    json_int(j, "batch_bytes", batch_bytes(c));
    json_int(j, "measurements", x->rounds);
    json_int(j, "matrices_per_measurement", x->matrices);
    json_real(j, "matrices_per_s", x->rate);
    json_real(j, "gflops_per_s", x->gflops);
    json_real(j, "peak_gflops_per_s", x->peak);
    json_real(j, "share_of_peak_percent", x->share);
    json_real(j, "bandwidth_gbytes_per_s", x->bandwidth);
    json_real(j, "memory_bound_gflops_per_s", x->memory);
    json_real(j, "bound_gflops_per_s", x->bound);
    json_real(j, "share_of_bound_percent", x->bound_share);
    for (int i = 0; i < 4; i++)
        json_real(j, part_names[i], x->part[i]);
    json_real(j, "time_over_fugu", x->ratio);
    json_real(j, "speed_up", x->speedup);
    json_close(j, '}');
}

static void write_row(bench_report_t *r, const result_t *x)
{
    if (r->csv)
        csv_row(r, x);
    if (r->json.file)
        json_row(&r->json, x);
}

/* ---- text ---- */

/* A number in a column, or "-". */
static void column(int width, int decimals, double value)
{
    if (isfinite(value))
        printf(" %*.*f", width, decimals, value);
    else
        printf(" %*s", width, "-");
}

static void print_machine(const bench_report_t *r)
{
    const bench_machine_t *m = r->machine;
    printf("fugu %s (%s)  %s\n", FUGU_VERSION, app_git(), m->date);
    printf("cpu          %s, caches: level 2 %s, last level %s\n", m->cpu,
           format_bytes((double)m->level2), format_bytes((double)m->last));
    printf("kernels      backend %s (%s), %s, tuning %s\n", gb10_backend_name(r->ours->team.handle),
           gb10_isa_name(r->ours->team.handle), format_things(m->threads, "thread"),
           gb10_tuning_stamp(r->ours->team.handle));
    if (isnan(m->start.peak[0]))
        printf("peak P       unknown: %s\n", m->peak_source);
    else
        printf("peak P       %.1f GF/s sgemm, %.1f GF/s dgemm (1024^3, %s)\n", m->start.peak[0],
               m->start.peak[1], m->peak_source);
    printf("bandwidth W  %.1f GB/s read + written (scale loop, two arrays of %s)\n",
           m->start.bandwidth * 1e-9, format_bytes((double)m->scaled));
    printf("clock        %s%s\n", bench_clock_name(m->threads),
           m->threads > 1 ? "; P and W are those of all threads" : "");
}

static void print_peers(const bench_report_t *r)
{
    for (int i = 0; i < r->peers->n; i++) {
        const bench_peer_t *peer = &r->peers->list[i];
        if (!peer->alive)
            continue;
        printf("peer         %s (%s):", peer->name, peer->version);
        for (int a = 0; a < peer->nalgorithms; a++)
            printf("%s %s", a ? "," : "", peer->algorithms[a].name);
        putchar('\n');
    }
}

void bench_report_start(bench_report_t *r)
{
    print_machine(r);
    print_peers(r);
    printf("\n%-4s %-10s %-6s %13s %8s %6s %6s %5s %5s %4s %4s%s\n", "type", "shape", "place",
           "matrices/s", "GF/s", "% P", "%bound", "pack", "fact", "T", "out",
           r->machine->threads > 1 ? " speed-up"
           : r->peers->n           ? " ratio best peer"
                                   : "");
    fflush(stdout);
    if (r->csv)
        csv_start(r);
    if (r->json.file)
        json_start(&r->json, r);
}

void bench_report_case(bench_report_t *r)
{
    const bench_case_t *c = &r->ours->team.c;
    result_t x = our_result(r);
    double all = x.part[0] + x.part[1] + x.part[2] + x.part[3];
    const bench_peer_t *peer;
    const bench_algorithm_t *best = bench_peers_best(r->peers, &peer);
    printf("%-4c %-10s %-6s %13s", gb10_dtype_letter(c->dtype), format_shape(c->m, c->n),
           bench_place_names[c->place], format_count(llround(x.rate)));
    column(8, 2, x.gflops);
    column(6, 1, x.share);
    column(6, 1, x.bound_share);
    for (int i = 0; i < 4; i++)
        column(i < 2 ? 5 : 4, 0, 100 * x.part[i] / all);
    if (c->threads > 1)
        column(8, 2, x.speedup);
    else if (best)
        printf(" %5.2f %s %s", best->timing.per_matrix / r->ours->team.timing.per_matrix,
               peer->name, best->name);
    putchar('\n');
    fflush(stdout);
    write_row(r, &x);
    for (int i = 0; i < r->peers->n; i++)
        for (int j = 0; j < r->peers->list[i].nalgorithms; j++) {
            const bench_algorithm_t *a = &r->peers->list[i].algorithms[j];
            if (!(a->timing.per_matrix > 0))
                continue;
            x = make_result(r, &r->ours->single.c, &a->timing);
            x.engine = r->peers->list[i].name;
            x.version = r->peers->list[i].version;
            x.algorithm = a->name;
            x.lacks = a->lacks;
            write_row(r, &x);
        }
}

void bench_report_peers(const bench_report_t *r)
{
    printf("\n%% P: of the peak; %%bound: of P in cache, of min(P, W) from memory; P and W are "
           "measured"
           "\nin turn with each row. pack, fact(or), T, out: %% of fugu's own time.\n");
    if (r->machine->threads > 1)
        printf("speed-up: rate of all threads over that of one, measured in turn.\n");
    if (r->peers->n > 0 && r->machine->threads > 1)
        printf("Peers have one thread: their rates are in the CSV and JSON, no ratios are made.\n");
    if (r->peers->n == 0 || r->machine->threads > 1)
        return;
    printf("ratio: time of the fastest peer over fugu's, whatever the peer leaves out. Peers have\n"
           "column-major input and leave V and R in one array; fugu reads rows and writes both\n\n"
           "%-30s %5s  %6s %6s %6s  %s\n",
           "peer's time over fugu's", "cases", "least", "median", "most", "leaves out");
    for (int i = 0; i < r->peers->n; i++)
        for (int j = 0; j < r->peers->list[i].nalgorithms; j++) {
            const bench_algorithm_t *a = &r->peers->list[i].algorithms[j];
            char name[64];
            snprintf(name, sizeof name, "%s %s", r->peers->list[i].name, a->name);
            if (a->nratios == 0)
                continue;
            double median = bench_median(a->ratios, (int)a->nratios); /* sorts them */
            printf("%-30s %5zu  %6.2f %6.2f %6.2f  %s\n", name, a->nratios, a->ratios[0], median,
                   a->ratios[a->nratios - 1], a->lacks);
        }
}

static gb10_status_t close_file(FILE *file, const char *path, gb10_error_t *err)
{
    if (!file)
        return GB10_OK;
    int bad = ferror(file);
    bad |= fclose(file);
    if (bad)
        return GB10_FAIL(err, GB10_ERR_FILE, "%s could not be written: %s", path, strerror(errno));
    return GB10_OK;
}

gb10_status_t bench_report_close(bench_report_t *r, gb10_error_t *err)
{
    if (r->json.file && r->json.depth > 0) {
        json_close(&r->json, ']');
        json_close(&r->json, '}');
    }
    gb10_status_t csv = close_file(r->csv, r->csv_path, err);
    gb10_status_t json = close_file(r->json.file, r->json_path, err);
    r->csv = r->json.file = NULL;
    return csv != GB10_OK ? csv : json;
}
