/* fugu bench: one process, the library alone. A row of the table is a case: the batch is made,
 * the number of matrices for one measurement found, then fugu and the peers take turns. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/bench.h"
#include "app/commands.h"

typedef struct bench_options {
    app_common_t common;
    const char *sizes, *shapes, *csv, *json, *peer_dir, *tuning;
    uint32_t types, places;
    int64_t nb, repeats, threads;
    int backend;
    bool quick, peers;
    double timeout;
} bench_options_t;

#define BENCH_BACKENDS "auto|cpu|cpu-ref|cuda"
#define SIZES          "4,8,16,24,32,48,64,96,128,192,256,384,512,768,1024"
#define QUICK_SIZES    "4,16,64"
#define AT(field)      offsetof(bench_options_t, field)
static const cli_option_t options_table[] = {
    {"cases", "sizes", 'n', CLI_TEXT, AT(sizes), "LIST", NULL, NULL,
     "sizes n = min(rows, columns) (default " SIZES "; with --quick " QUICK_SIZES ")", 0, 0},
    {"cases", "shapes", 0, CLI_TEXT, AT(shapes), "LIST", "square", NULL,
     "square, tall4 (4n x n), tall16 (16n x n), wide2 (n x 2n), single shapes like 1024x128; all: "
     "those four, 1024x128, 2048x1024 and 8192x1024",
     0, 0},
    {"cases", "types", 't', CLI_SET, AT(types), "LIST", "s,d,c,z", "s|d|c|z", "element types", 0,
     0},
    {"cases", "place", 0, CLI_SET, AT(places), "LIST", "cache,stream", "cache|stream",
     "where the batch lies: with its results in half the level-2 cache, or in memory", 0, 0},
    {"cases", "nb", 0, CLI_INT, AT(nb), "N", "32", NULL, "block size of T", 1, 4096},
    {"measuring", "backend", 0, CLI_CHOICE, AT(backend), "NAME", "auto", BENCH_BACKENDS,
     "who factors", 0, 0},
    {"measuring", "threads", 0, CLI_INT, AT(threads), "N", "1", "auto",
     "threads of fugu, P and W; 0 or auto: as many as the cores it may use. Peers have one", 0,
     1024},
    {"measuring", "tuning", 0, CLI_TEXT, AT(tuning), "FILE", NULL, NULL,
     "choose kernels and block sizes by this table (fugu info --tuning prints one)", 0, 0},
    {"measuring", "repeats", 0, CLI_INT, AT(repeats), "N", "0", NULL,
     "measurements of each figure, which is their median; 0: 9, with --quick 3", 0,
     BENCH_REPEATS_MAX},
    {"measuring", "quick", 0, CLI_FLAG, AT(quick), NULL, NULL, NULL,
     "few sizes and short measurements: a look, not a result", 0, 0},
    {"peers", "peers", 0, CLI_FLAG, AT(peers), NULL, NULL, NULL,
     "also run the peers that are installed, in turn with fugu", 0, 0},
    {"peers", "peer-dir", 0, CLI_TEXT, AT(peer_dir), "DIR", NULL, NULL,
     "the folder with the programs peer_*, implies --peers (default: peers, beside fugu)", 0, 0},
    {"peers", "peer-timeout", 0, CLI_REAL, AT(timeout), "SECONDS", "120", NULL,
     "a peer that gives no answer for so long is left out", 0.1, 1e5},
    {"files", "csv", 0, CLI_TEXT, AT(csv), "FILE", NULL, NULL, "write the figures as CSV", 0, 0},
    {"files", "json", 0, CLI_TEXT, AT(json), "FILE", NULL, NULL, "write the figures as JSON", 0, 0},
    APP_COMMON_OPTIONS(bench_options_t)};

static int run_bench(const cli_command_t *command, void *options, char **args, int nargs);

const cli_command_t cmd_bench = {
    .name = "bench",
    .summary = "measure the kernels against the machine and against peers",
    .usage = "[options]",
    .min_args = 0,
    .max_args = 0,
    .options = options_table,
    .options_size = sizeof(bench_options_t),
    .examples = "  fugu bench --quick\n"
                "  fugu bench --types d --shapes square,tall4,1024x128 --peers --csv d.csv\n"
                "  fugu bench --types d --threads auto\n",
    .run = run_bench};

/* A run of the command. */
typedef struct bench {
    const bench_options_t *options;
    app_context_t app;
    bench_machine_t machine;
    bench_ours_t ours;
    bench_peers_t peers;
    bench_report_t report;
    int64_t sizes[BENCH_SIZES_MAX];
    bench_shape_t shapes[BENCH_SHAPES_MAX];
    int nsizes, nshapes, repeats;
    double target; /* seconds of one measurement */
} bench_t;

/* Longer measurements than this are taken SLOW_ROUNDS times. */
#define SLOW_SECONDS 0.3
enum { SLOW_ROUNDS = 3, SPLIT_ROUNDS = 5, TRIES = 8 };

/* ---- one case ---- */

/* Who takes a turn: fugu with all its threads or one, or a peer's algorithm. */
typedef struct entrant {
    const bench_case_t *c;
    bench_engine_t *engine; /* fugu's, NULL for a peer */
    bench_peer_t *peer;
    const bench_algorithm_t *algorithm;
    bench_timing_t *timing;
} entrant_t;

/* One measurement: NaN when a peer cannot. */
static gb10_status_t measure(bench_t *b, const entrant_t *e, int64_t matrices, double *seconds,
                             gb10_error_t *err)
{
    if (e->engine)
        return bench_ours_run(&b->ours, e->engine, matrices, NULL, seconds, err);
    *seconds = bench_peer_run(&b->peers, e->peer, e->algorithm, matrices);
    return GB10_OK;
}

/* Finds how many matrices take about the target time; warms caches on the way. */
static gb10_status_t calibrate(bench_t *b, const entrant_t *e, gb10_error_t *err)
{
    bench_timing_t *timing = e->timing;
    const bench_case_t *c = e->c;
    int64_t matrices = c->place == BENCH_CACHE ? c->count : c->threads * bench_group(c);
    double seconds = 0;
    gb10_status_t status = GB10_OK;
    for (int i = 0; i < TRIES; i++) {
        GB10_TRY(measure(b, e, matrices, &seconds, err));
        if (isnan(seconds)) {
            timing->matrices = 0;
            return GB10_OK;
        }
        if (seconds >= b->target && seconds < SLOW_SECONDS) { /* or was it a neighbour? */
            double again = seconds;
            GB10_TRY(measure(b, e, matrices, &again, err));
            seconds = fmin(seconds, again); /* not the NaN, which comes again */
        }
        if (seconds >= b->target)
            break;
        matrices = bench_scale(c, matrices, seconds, 1.2 * b->target);
    }
    timing->matrices = matrices;
    timing->rounds = seconds > SLOW_SECONDS && b->repeats > SLOW_ROUNDS ? SLOW_ROUNDS : b->repeats;
cleanup:
    return status;
}

/* One more measurement, unless there are enough. */
static gb10_status_t take_turn(bench_t *b, const entrant_t *e, gb10_error_t *err)
{
    bench_timing_t *timing = e->timing;
    double seconds = 0;
    if (timing->matrices == 0 || timing->n >= timing->rounds)
        return GB10_OK;
    gb10_status_t status = measure(b, e, timing->matrices, &seconds, err);
    if (isnan(seconds))
        timing->matrices = timing->n = 0;
    else if (status == GB10_OK)
        timing->seconds[timing->n++] = seconds;
    return status;
}

static gb10_status_t take_median(bench_t *b, const entrant_t *e, gb10_error_t *err)
{
    bench_timing_t *timing = e->timing;
    (void)b;
    (void)err;
    timing->per_matrix = bench_median(timing->seconds, timing->n) / (double)timing->matrices;
    return GB10_OK;
}

/* Calls `step` for fugu, then for each algorithm of each peer that can do the case. */
typedef gb10_status_t step_fn(bench_t *b, const entrant_t *e, gb10_error_t *err);
static gb10_status_t for_all(bench_t *b, step_fn *step, gb10_error_t *err)
{
    bench_engine_t *const engines[] = {&b->ours.team, &b->ours.single};
    gb10_status_t status = GB10_OK;
    for (int i = 0; i < 2 && status == GB10_OK; i++) {
        entrant_t e = {.c = &engines[i]->c, .engine = engines[i], .timing = &engines[i]->timing};
        if (e.engine->handle)
            status = step(b, &e, err);
    }
    for (int i = 0; i < b->peers.n; i++)
        for (int j = 0; j < b->peers.list[i].nalgorithms && status == GB10_OK; j++) {
            bench_peer_t *peer = &b->peers.list[i];
            bench_algorithm_t *a = &peer->algorithms[j];
            entrant_t e = {
                .c = &b->ours.single.c, .peer = peer, .algorithm = a, .timing = &a->timing};
            if (peer->alive && a->timing.matrices > 0)
                status = step(b, &e, err);
        }
    return status;
}

/* Where fugu's time goes: runs of their own, as the clock disturbs the others. The kernels take
 * wall time, so the least of each part counts: what a neighbour took is in few runs. */
static gb10_status_t split_times(bench_t *b, gb10_error_t *err)
{
    bench_engine_t *team = &b->ours.team;
    gb10_times_t *best = &b->ours.times, now;
    gb10_status_t status = GB10_OK;
    double seconds = 0, matrices = (double)team->timing.matrices;
    *best = (gb10_times_t){INFINITY, INFINITY, INFINITY, INFINITY};
    for (int i = 0; i < SPLIT_ROUNDS && (i == 0 || seconds < SLOW_SECONDS); i++) {
        now = (gb10_times_t){.pack = 0};
        GB10_TRY(bench_ours_run(&b->ours, team, team->timing.matrices, &now, &seconds, err));
        best->pack = fmin(best->pack, now.pack / matrices);
        best->factor = fmin(best->factor, now.factor / matrices);
        best->form_t = fmin(best->form_t, now.form_t / matrices);
        best->unpack = fmin(best->unpack, now.unpack / matrices);
    }
cleanup:
    return status;
}

static gb10_status_t run_case(bench_t *b, const bench_case_t *c, gb10_error_t *err)
{
    bench_case_t single = *c;
    gb10_status_t status = GB10_OK;
    single.threads = 1;
    single.count = bench_batch(&single, b->machine.level2, b->machine.last);
    GB10_TRY(bench_ours_prepare(&b->ours, c, &single, err));
    bench_peers_prepare(&b->peers, &single);
    GB10_TRY(for_all(b, calibrate, err));
    bench_machine_begin(&b->machine);
    for (int i = 0; i < b->repeats; i++) {
        bench_machine_measure(&b->machine, c);
        GB10_TRY(for_all(b, take_turn, err));
    }
    bench_machine_end(&b->machine);
    GB10_TRY(for_all(b, take_median, err));
    GB10_TRY(split_times(b, err));
    if (c->threads == 1)
        GB10_TRY(bench_peers_compare(&b->peers, b->ours.team.timing.per_matrix, err));
    bench_report_case(&b->report);
cleanup:
    return status;
}

/* ---- all cases ---- */

static gb10_status_t run_shape(bench_t *b, gb10_dtype_t dtype, const bench_shape_t *shape,
                               gb10_error_t *err)
{
    gb10_status_t status = GB10_OK;
    for (int i = 0; i < (shape->fixed ? 1 : b->nsizes); i++)
        for (int place = 0; place < 2; place++) {
            int64_t size = shape->fixed ? 1 : b->sizes[i];
            bench_case_t c = {.dtype = dtype,
                              .place = (bench_place_t)place,
                              .shape = shape->name,
                              .m = shape->rows * size,
                              .n = shape->cols * size,
                              .nb = b->options->nb,
                              .threads = b->machine.threads};
            c.granule = gb10_geqrf_granule(b->ours.team.handle, dtype, c.m, c.n, c.nb);
            c.count = bench_batch(&c, b->machine.level2, b->machine.last);
            if (b->options->places >> place & 1u)
                GB10_TRY(run_case(b, &c, err));
        }
cleanup:
    return status;
}

/* The folder with the peers: as given, or peers beside the program. */
static void peer_folder(const bench_options_t *o, char *path, size_t size)
{
    char self[3072];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length > 0 ? length : 0] = 0;
    char *slash = strrchr(self, '/');
    if (slash)
        *slash = 0;
    if (o->peer_dir)
        snprintf(path, size, "%s", o->peer_dir);
    else
        snprintf(path, size, "%s/peers", self);
}

/* A folder that was named has to be there; the usual one need not. */
static gb10_status_t open_peers(bench_t *b, gb10_error_t *err)
{
    const bench_options_t *o = b->options;
    char folder[4096];
    gb10_error_t why = {0};
    if (!o->peers && !o->peer_dir)
        return GB10_OK;
    peer_folder(o, folder, sizeof folder);
    gb10_status_t status = bench_peers_open(&b->peers, folder, &why);
    if (status == GB10_ERR_FILE && !o->peer_dir) {
        app_log(&b->app, APP_WARN, "%s; tests/peers/setup.sh makes what it can.", why.message);
        return GB10_OK;
    }
    if (status == GB10_OK && b->peers.n == 0)
        app_log(&b->app, APP_WARN, "no peers: %s has no program peer_*.", folder);
    if (status != GB10_OK)
        *err = why;
    return status;
}

static gb10_status_t bench(bench_t *b, gb10_error_t *err)
{
    const bench_options_t *o = b->options;
    char backend[32];
    gb10_status_t status = GB10_OK;
    const char *sizes = o->sizes ? o->sizes : o->quick ? QUICK_SIZES : SIZES;
    GB10_TRY(bench_parse_sizes(sizes, b->sizes, &b->nsizes, err));
    GB10_TRY(bench_parse_shapes(o->shapes, b->shapes, &b->nshapes, err));
    GB10_TRY(bench_report_open(&b->report, o->csv, o->json, err));
    GB10_TRY(bench_ours_open(&b->ours, cli_choice(BENCH_BACKENDS, o->backend, backend), o->tuning,
                             (int)o->threads, err));
    GB10_TRY(open_peers(b, err));
    GB10_TRY(bench_machine_open(&b->machine, gb10_threads(b->ours.team.handle), err));
    b->repeats = o->repeats ? (int)o->repeats : o->quick ? 3 : 9;
    b->target = o->quick ? 0.002 : 0.01;
    bench_report_start(&b->report);
    for (int t = 0; t < GB10_DTYPES; t++)
        for (int i = 0; i < b->nshapes; i++)
            if (o->types >> t & 1u)
                GB10_TRY(run_shape(b, (gb10_dtype_t)t, &b->shapes[i], err));
    bench_report_peers(&b->report);
cleanup:
    bench_peers_close(&b->peers);
    bench_ours_close(&b->ours);
    bench_machine_close(&b->machine);
    return status;
}

static int run_bench(const cli_command_t *command, void *options, char **args, int nargs)
{
    static bench_t b; /* too large for a stack */
    const bench_options_t *o = options;
    gb10_error_t err = {0};
    (void)args;
    (void)nargs;
    b = (bench_t){.options = o};
    app_context_init(&b.app, command->name, &o->common);
    if (b.app.team.rank != 0)
        return EXIT_DONE; /* one process measures */
    b.peers = (bench_peers_t){.app = &b.app, .timeout = o->timeout};
    b.report =
        (bench_report_t){.app = &b.app, .machine = &b.machine, .ours = &b.ours, .peers = &b.peers};
    gb10_status_t status = bench(&b, &err);
    gb10_status_t closed = bench_report_close(&b.report, &err);
    if (status != GB10_OK || closed != GB10_OK)
        return app_fail(&b.app, &err);
    if (b.app.level >= APP_INFO)
        for (int i = 0; i < 2; i++)
            if (i ? o->json : o->csv)
                printf("wrote %s\n", i ? o->json : o->csv);
    return EXIT_DONE;
}
