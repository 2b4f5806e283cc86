#include "app/pipeline.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#include "app/commit.h"
#include "app/context.h"
#include "app/sign.h"
#include "app/stop.h"
#include "io/crc.h"
#include "io/fault.h"
#include "kernels/core/alloc.h"
#include "kernels/core/rng.h"
#include "kernels/core/view.h"

/* One unit being read, one in the arithmetic, one being written. */
enum { SLOTS = 3, BUFFERS = IO_KINDS, FACTOR = 1 };

/* Buffers of one run, all within the slot's arena. */
typedef struct run_buffers {
    void *of[BUFFERS]; /* by io_kind_t; NULL when the kind is not held */
    uint8_t *level;
} run_buffers_t;

typedef struct slot {
    gb10_unit_t unit;
    int64_t number; /* of the unit, canonical */
    bool dropped;   /* the run was to stop before it was factored */
    char *arena;
    run_buffers_t *runs;
} slot_t;

typedef struct queue {
    pthread_cond_t changed;
    slot_t *item[SLOTS + 1];
    int count;
} queue_t;

typedef struct stage {
    struct pipeline *pipeline;
    int number;
    gb10_handle_t *handle; /* factor and check have their own */
    pthread_t thread;
    bool started;
    double busy, wait;
} stage_t;

struct pipeline {
    pipeline_config_t config;
    uint32_t held; /* kinds in memory: config.kinds and V, T, R, tau */
    slot_t slots[SLOTS];
    int nslots; /* no more than there are units */
    commit_t *commit;
    stage_t stages[STAGES];
    run_stats_t stats;    /* counts and lists; see check and write, which touch different parts */
    pthread_mutex_t lock; /* guards all below */
    queue_t queues[STAGES + 1]; /* into each stage; the last holds free slots */
    bool stopping, failed;
    dist_progress_t progress;
    gb10_error_t error;
    int64_t first_of_bucket[GB10_BUCKETS];
};

enum {
    HELD_ALWAYS =
        1u << IO_V | 1u << IO_T | 1u << IO_R | 1u << IO_TAU | 1u << IO_STATUS | 1u << IO_METRICS
};

int64_t pipeline_bytes(gb10_dtype_t dtype, int64_t m, int64_t n, int64_t nb, uint32_t kinds)
{
    int64_t bytes = 1; /* the level of the check */
    for (int kind = 0; kind < IO_KINDS; kind++)
        if (kind != IO_A && (kinds | HELD_ALWAYS) >> kind & 1u)
            bytes += io_kind_bytes((io_kind_t)kind, dtype, m, n, nb, GB10_METRICS);
    return bytes;
}

int64_t pipeline_unit_bytes(int64_t bytes, int64_t runs)
{
    return bytes + runs * (BUFFERS + 1) * GB10_ALIGN;
}

gb10_status_t pipeline_check_memory(const dist_plan_t *plan, int64_t memory, gb10_error_t *err)
{
    int64_t in, out, matrices, runs;
    dist_plan_limits(plan, &in, &out, &matrices, &runs);
    int64_t bytes = pipeline_unit_bytes(in + out, runs);
    if (matrices == 0 || bytes <= memory)
        return GB10_OK;
    return GB10_FAIL(err, GB10_ERR_MEMORY,
                     "--memory %lld is too little: the largest unit takes %lld bytes. Give at "
                     "least that, or a smaller --unit-size unless one matrix alone is so large.",
                     (long long)memory, (long long)bytes);
}

uint8_t pipeline_deep_level(int64_t m, int64_t n)
{
    const double limit = 0x1p28; /* m n k beyond which a full check takes minutes */
    double k = (double)(m < n ? m : n);
    return (double)m * (double)n * k <= limit ? GB10_CHECK_FULL : GB10_CHECK_PROBE;
}

bool pipeline_sampled(int64_t catalog_index, int64_t m, int64_t n, bool first_of_bucket)
{
    /* One in so many costs at most 5 % of the factor time. Measured, full check against factor: d
     * 32 x 32 0.2 ms, 15 us; 128 x 128 3.3 ms, 0.23 ms; 512 x 512 190 ms, 8 ms (one AVX2 core). */
    static const uint64_t period[GB10_BUCKETS] = {[GB10_TINY] = 256,
                                                  [GB10_SMALL] = 256,
                                                  [GB10_MEDIUM] = 512,
                                                  [GB10_LARGE] = 512,
                                                  [GB10_TALL] = 512};
    uint64_t hash = gb10_random(0, 0, (uint64_t)catalog_index);
    return first_of_bucket || hash % period[gb10_bucket_of(m, n)] == 0;
}

/* ---- stages ---- */

/* Gives every run of the unit its buffers. The arena is large enough for any unit of the plan. */
static void carve(pipeline_t *p, slot_t *slot)
{
    size_t at = 0;
    for (int64_t r = 0; r < slot->unit.nruns; r++) {
        const io_dataset_t *d = &p->config.catalog->datasets[slot->unit.runs[r].dataset];
        size_t count = (size_t)slot->unit.runs[r].count;
        for (int kind = 0; kind < IO_KINDS; kind++) {
            slot->runs[r].of[kind] = NULL;
            if (!(p->held >> kind & 1u))
                continue;
            slot->runs[r].of[kind] = slot->arena + at;
            at += count * (size_t)io_kind_bytes((io_kind_t)kind, d->dtype, d->m, d->n, p->config.nb,
                                                GB10_METRICS);
            at = (at + GB10_ALIGN - 1) / GB10_ALIGN * GB10_ALIGN;
        }
        slot->runs[r].level = (uint8_t *)slot->arena + at;
        at += (count + GB10_ALIGN - 1) / GB10_ALIGN * GB10_ALIGN;
    }
}

static gb10_status_t run_read(stage_t *stage, slot_t *slot, gb10_error_t *err)
{
    pipeline_t *p = stage->pipeline;
    gb10_status_t status = GB10_OK;
    carve(p, slot);
    for (int64_t r = 0; r < slot->unit.nruns && status == GB10_OK; r++) {
        const gb10_run_t *run = &slot->unit.runs[r];
        status = io_read(p->config.reader, run->dataset, run->first, run->count,
                         slot->runs[r].of[IO_A], err);
    }
    return status;
}

/* Row-major views of one run's buffers, by kind; base NULL where the kind is not held. */
static void make_views(const pipeline_t *p, const slot_t *slot, int64_t r, gb10_view_t *view)
{
    const io_dataset_t *d = &p->config.catalog->datasets[slot->unit.runs[r].dataset];
    int64_t m = d->m, n = d->n, k = m < n ? m : n, b = p->config.nb < k ? p->config.nb : k;
    const int64_t rows[IO_KINDS] = {
        [IO_V] = m, [IO_T] = b, [IO_R] = k, [IO_TAU] = k, [IO_PACKED] = m, [IO_A] = m};
    const int64_t cols[IO_KINDS] = {
        [IO_V] = k, [IO_T] = k, [IO_R] = n, [IO_TAU] = 1, [IO_PACKED] = n, [IO_A] = n};
    for (int kind = 0; kind < IO_KINDS; kind++)
        view[kind] = gb10_view_rows(d->dtype, slot->runs[r].of[kind], rows[kind], cols[kind],
                                    slot->unit.runs[r].count);
}

/* What a run leaves of a matrix that it must not touch. */
static void set_aside(const gb10_view_t *v, uint8_t *info, int64_t count)
{
    static const io_kind_t out[] = {IO_V, IO_T, IO_R, IO_TAU, IO_PACKED};
    memset(info, GB10_INFO_SET_ASIDE, (size_t)count);
    for (size_t i = 0; i < sizeof out / sizeof *out; i++)
        for (int64_t b = 0; b < count && v[out[i]].base; b++)
            gb10_view_fill_nan(&v[out[i]], b);
}

static gb10_status_t run_factor(stage_t *stage, slot_t *slot, gb10_error_t *err)
{
    pipeline_t *p = stage->pipeline;
    stop_watch(p->config.journal, slot->number);
    for (int64_t r = 0; r < slot->unit.nruns; r++) {
        gb10_view_t v[IO_KINDS];
        make_views(p, slot, r, v);
        if (p->config.state[slot->number].crashes >= CRASHES_MOST) {
            set_aside(v, slot->runs[r].of[IO_STATUS], slot->unit.runs[r].count);
            continue;
        }
        int pretend = io_fault(IO_FAULT_FACTOR);
        if (pretend)
            return GB10_FAIL(err, GB10_ERR_MEMORY, "unit %lld: %s", (long long)slot->number,
                             strerror(pretend));
        gb10_geqrf_args_t args = {.A = &v[IO_A],
                                  .V = &v[IO_V],
                                  .T = &v[IO_T],
                                  .R = &v[IO_R],
                                  .tau = &v[IO_TAU],
                                  .packed = v[IO_PACKED].base ? &v[IO_PACKED] : NULL,
                                  .nb = p->config.nb,
                                  .mode = GB10_MODE_NATIVE,
                                  .info = slot->runs[r].of[IO_STATUS]};
        if (gb10_geqrf(stage->handle, &args) != GB10_OK) {
            *err = *gb10_last_error(stage->handle);
            return err->status;
        }
    }
    stop_watch(p->config.journal, -1);
    return GB10_OK;
}

static void set_levels(const pipeline_t *p, const gb10_run_t *run, uint8_t *level)
{
    static const uint8_t of_kind[] = {[CHECK_NORMS] = GB10_CHECK_NORMS,
                                      [CHECK_SAMPLE] = GB10_CHECK_NORMS,
                                      [CHECK_PROBE] = GB10_CHECK_PROBE,
                                      [CHECK_FULL] = GB10_CHECK_FULL,
                                      [CHECK_NONE] = GB10_CHECK_NONE};
    const io_dataset_t *d = &p->config.catalog->datasets[run->dataset];
    memset(level, of_kind[p->config.check], (size_t)run->count);
    int64_t first = p->first_of_bucket[gb10_bucket_of(d->m, d->n)];
    for (int64_t i = 0; p->config.check == CHECK_SAMPLE && i < run->count; i++) {
        int64_t index = p->config.base[run->dataset] + run->first + i;
        if (pipeline_sampled(index, d->m, d->n, index == first))
            level[i] = pipeline_deep_level(d->m, d->n);
    }
}

static void note_bad(pipeline_t *p, const gb10_view_t *A, const gb10_run_t *run, int64_t i,
                     uint8_t info, const char *gate)
{
    bad_matrix_t bad = {run->dataset, run->first + i, -1, -1, info, "", ""};
    if (!stats_would_list(&p->stats, bad.dataset, bad.index))
        return;
    int64_t parts = gb10_dtype_is_complex(A->dtype) ? 2 : 1;
    const void *at = gb10_view_at(A, i);
    for (int64_t e = 0; info == GB10_INFO_NONFINITE && e < A->m * A->n * parts; e++) {
        double x = gb10_number_at(A->dtype, at, e);
        if (isfinite(x))
            continue;
        bad.row = e / parts / A->n;
        bad.column = e / parts % A->n;
        memcpy(bad.what, isnan(x) ? "NaN" : "Inf", 4);
        break;
    }
    strncpy(bad.gate, gate ? gate : "", sizeof bad.gate - 1);
    stats_list(&p->stats, &bad);
}

static gb10_status_t check_run(stage_t *stage, slot_t *slot, int64_t r, const char **failed,
                               gb10_error_t *err)
{
    pipeline_t *p = stage->pipeline;
    const gb10_run_t *run = &slot->unit.runs[r];
    const run_buffers_t *buffers = &slot->runs[r];
    uint8_t *info = buffers->of[IO_STATUS];
    double *metrics = buffers->of[IO_METRICS];
    gb10_view_t v[IO_KINDS];
    make_views(p, slot, r, v);
    set_levels(p, run, buffers->level);
    gb10_check_args_t args = {.A = &v[IO_A],
                              .V = &v[IO_V],
                              .T = &v[IO_T],
                              .R = &v[IO_R],
                              .tau = &v[IO_TAU],
                              .nb = p->config.nb,
                              .level = buffers->level,
                              .info = info,
                              .metrics = metrics,
                              .failed = failed};
    if (gb10_check(stage->handle, &args) != GB10_OK) {
        *err = *gb10_last_error(stage->handle);
        return err->status;
    }
    for (int64_t i = 0; i < run->count; i++) {
        const gb10_view_t *A = &v[IO_A];
        stats_add(&p->stats.bucket[slot->unit.bucket], A->dtype, A->m, A->n, info[i],
                  metrics + i * GB10_METRICS, buffers->level[i] == GB10_CHECK_FULL);
        if (info[i] != GB10_INFO_OK && info[i] != GB10_INFO_OK_ESCALATED)
            note_bad(p, A, run, i, info[i], failed[i]);
    }
    if (p->config.positive_diagonal)
        sign_make_positive(&v[IO_R], info, buffers->of[IO_SIGN]);
    return GB10_OK;
}

static gb10_status_t run_check(stage_t *stage, slot_t *slot, gb10_error_t *err)
{
    const char **failed = NULL;
    int64_t longest = 0;
    for (int64_t r = 0; r < slot->unit.nruns; r++)
        longest = slot->unit.runs[r].count > longest ? slot->unit.runs[r].count : longest;
    gb10_status_t status =
        gb10_alloc(&failed, (size_t)longest, sizeof *failed, "names of missed gates", err);
    for (int64_t r = 0; r < slot->unit.nruns && status == GB10_OK; r++)
        status = check_run(stage, slot, r, failed, err);
    gb10_free(failed);
    return status;
}

static gb10_status_t run_write(stage_t *stage, slot_t *slot, gb10_error_t *err)
{
    pipeline_t *p = stage->pipeline;
    gb10_status_t status = GB10_OK;
    uint32_t crc = 0;
    for (int64_t r = 0; r < slot->unit.nruns; r++) {
        const gb10_run_t *run = &slot->unit.runs[r];
        const io_dataset_t *d = &p->config.catalog->datasets[run->dataset];
        for (int kind = 0; kind < IO_KINDS; kind++) {
            if (!(p->config.kinds >> kind & 1u))
                continue;
            const void *from = slot->runs[r].of[kind];
            int64_t bytes = run->count * io_kind_bytes((io_kind_t)kind, d->dtype, d->m, d->n,
                                                       p->config.nb, GB10_METRICS);
            GB10_TRY(io_write(p->config.output, (io_kind_t)kind, run->dataset, run->first,
                              run->count, from, err));
            crc = io_crc32c(crc, from, (size_t)bytes);
            p->stats.bytes_written += bytes;
        }
    }
    GB10_TRY(commit_unit(p->commit, slot->number, crc, err));
    p->stats.bytes_read += slot->unit.bytes_in;
    p->stats.matrices += slot->unit.matrices;
    p->stats.units++;
cleanup:
    return status;
}

typedef gb10_status_t stage_fn(stage_t *stage, slot_t *slot, gb10_error_t *err);
static const struct {
    stage_fn *run;
    bool needs_handle;
} stage_table[STAGES] = {
    {run_read, false}, {run_factor, true}, {run_check, true}, {run_write, false}};

/* ---- threads and queues ---- */

static void push(queue_t *q, slot_t *slot)
{
    q->item[q->count++] = slot;
    pthread_cond_signal(&q->changed);
}

static slot_t *pop(queue_t *q)
{
    slot_t *slot = q->item[0];
    memmove(q->item, q->item + 1, (size_t)--q->count * sizeof *q->item);
    return slot;
}

static int64_t bad_in(const slot_t *slot)
{
    int64_t bad = 0;
    for (int64_t r = 0; r < slot->unit.nruns; r++) {
        const uint8_t *info = slot->runs[r].of[IO_STATUS];
        for (int64_t i = 0; i < slot->unit.runs[r].count; i++)
            bad += info[i] != GB10_INFO_OK && info[i] != GB10_INFO_OK_ESCALATED;
    }
    return bad;
}

/* Called with the lock held: what a slot leaving its stage changes. */
static void leave_stage(pipeline_t *p, int number, slot_t *slot, const gb10_error_t *err)
{
    if (err->status != GB10_OK && !p->failed) {
        p->failed = true;
        p->error = *err;
    }
    if (number == STAGES - 1 && !p->failed && !slot->dropped) {
        p->progress.units++;
        p->progress.matrices += slot->unit.matrices;
        p->progress.bad += bad_in(slot);
        p->progress.bytes += slot->unit.bytes_in;
    }
    push(&p->queues[number + 1], slot);
}

static void *stage_main(void *argument)
{
    stage_t *stage = argument;
    pipeline_t *p = stage->pipeline;
    queue_t *in = &p->queues[stage->number];
    pthread_mutex_lock(&p->lock);
    for (;;) {
        double start = app_now();
        while (in->count == 0 && !p->stopping)
            pthread_cond_wait(&in->changed, &p->lock);
        stage->wait += app_now() - start;
        if (in->count == 0)
            break;
        slot_t *slot = pop(in);
        slot->dropped |= stage->number <= FACTOR && stop_asked();
        bool skip = p->failed || slot->dropped;
        gb10_error_t err = {0};
        pthread_mutex_unlock(&p->lock);
        start = app_now();
        if (!skip)
            stage_table[stage->number].run(stage, slot, &err);
        stage->busy += app_now() - start;
        pthread_mutex_lock(&p->lock);
        leave_stage(p, stage->number, slot, &err);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* ---- the caller's side ---- */

void pipeline_offer(void *ctx, int64_t unit)
{
    pipeline_t *p = ctx;
    gb10_error_t err = {0};
    pthread_mutex_lock(&p->lock);
    slot_t *slot = pop(&p->queues[STAGES]);
    pthread_mutex_unlock(&p->lock);
    gb10_status_t status = dist_unit(p->config.plan, unit, &slot->unit, &err);
    slot->number = unit;
    slot->dropped = false;
    pthread_mutex_lock(&p->lock);
    if (status != GB10_OK && !p->failed) {
        p->failed = true;
        p->error = err;
    }
    push(&p->queues[status == GB10_OK ? 0 : STAGES], slot);
    pthread_mutex_unlock(&p->lock);
}

int pipeline_room(void *ctx)
{
    pipeline_t *p = ctx;
    pthread_mutex_lock(&p->lock);
    int room = p->failed ? 0 : p->queues[STAGES].count;
    pthread_mutex_unlock(&p->lock);
    return room;
}

bool pipeline_stopped(void *ctx)
{
    (void)ctx;
    return stop_asked();
}

bool pipeline_idle(void *ctx)
{
    pipeline_t *p = ctx;
    pthread_mutex_lock(&p->lock);
    bool idle = p->queues[STAGES].count == p->nslots;
    pthread_mutex_unlock(&p->lock);
    return idle;
}

bool pipeline_failed(void *ctx)
{
    pipeline_t *p = ctx;
    pthread_mutex_lock(&p->lock);
    bool failed = p->failed;
    pthread_mutex_unlock(&p->lock);
    return failed;
}

void pipeline_progress(void *ctx, dist_progress_t *progress)
{
    pipeline_t *p = ctx;
    pthread_mutex_lock(&p->lock);
    *progress = p->progress;
    pthread_mutex_unlock(&p->lock);
}

static void find_firsts(pipeline_t *p)
{
    for (int b = 0; b < GB10_BUCKETS; b++)
        p->first_of_bucket[b] = -1;
    for (int64_t d = p->config.catalog->ndatasets - 1; d >= 0; d--) {
        const io_dataset_t *set = &p->config.catalog->datasets[d];
        if (set->count > 0)
            p->first_of_bucket[dist_plan_bucket(p->config.plan, d)] = p->config.base[d];
    }
}

static gb10_status_t create_slots(pipeline_t *p, gb10_error_t *err)
{
    int64_t in, out, matrices, runs;
    gb10_status_t status = pipeline_check_memory(p->config.plan, p->config.memory, err);
    if (status != GB10_OK)
        return status;
    dist_plan_limits(p->config.plan, &in, &out, &matrices, &runs);
    size_t bytes = (size_t)pipeline_unit_bytes(in + out, runs);
    int64_t units = dist_plan_huge(p->config.plan), most = units < SLOTS ? units : SLOTS;
    int64_t room = bytes > 0 ? p->config.memory / (int64_t)bytes : SLOTS;
    p->nslots = (int)(room < most ? room : most);
    for (int s = 0; s < p->nslots; s++) {
        slot_t *slot = &p->slots[s];
        GB10_TRY(gb10_alloc(&slot->arena, bytes, 1, "a unit's matrices and results", err));
        GB10_TRY(gb10_alloc(&slot->runs, (size_t)runs, sizeof *slot->runs, "a unit's runs", err));
        push(&p->queues[STAGES], slot);
    }
cleanup:
    return status;
}

static gb10_status_t start_stage(pipeline_t *p, int number, gb10_error_t *err)
{
    stage_t *stage = &p->stages[number];
    stage->pipeline = p;
    stage->number = number;
    if (stage_table[number].needs_handle) {
        gb10_status_t status = gb10_create(&stage->handle, p->config.backend, err);
        if (status != GB10_OK)
            return status;
        if (gb10_set_threads(stage->handle, p->config.threads) != GB10_OK ||
            gb10_set_tuning(stage->handle, p->config.tuning) != GB10_OK) {
            *err = *gb10_last_error(stage->handle);
            return err->status;
        }
    }
    if (pthread_create(&stage->thread, NULL, stage_main, stage) != 0)
        return GB10_FAIL(err, GB10_ERR_MEMORY, "cannot start a thread");
    stage->started = true;
    return GB10_OK;
}

gb10_status_t pipeline_create(pipeline_t **out, const pipeline_config_t *config, gb10_error_t *err)
{
    pipeline_t *p = NULL;
    gb10_status_t status = GB10_OK;
    *out = NULL;
    GB10_TRY(gb10_alloc(&p, 1, sizeof *p, "pipeline", err));
    p->config = *config;
    p->held = config->kinds | HELD_ALWAYS | 1u << IO_A;
    stats_init(&p->stats);
    find_firsts(p);
    pthread_mutex_init(&p->lock, NULL);
    for (int q = 0; q <= STAGES; q++)
        pthread_cond_init(&p->queues[q].changed, NULL);
    GB10_TRY(create_slots(p, err));
    GB10_TRY(commit_create(&p->commit, config->output, config->journal, err));
    for (int s = 0; s < STAGES; s++)
        GB10_TRY(start_stage(p, s, err));
    *out = p;
    p = NULL;
cleanup:
    pipeline_free(p);
    return status;
}

static void join_stages(pipeline_t *p)
{
    for (int s = 0; s < STAGES; s++) {
        pthread_mutex_lock(&p->lock);
        p->stopping = true;
        pthread_cond_broadcast(&p->queues[s].changed);
        pthread_mutex_unlock(&p->lock);
    }
    for (int s = 0; s < STAGES; s++)
        if (p->stages[s].started)
            pthread_join(p->stages[s].thread, NULL);
    for (int s = 0; s < STAGES; s++)
        p->stages[s].started = false;
}

gb10_status_t pipeline_finish(pipeline_t *p, run_stats_t *stats, gb10_error_t *err)
{
    gb10_error_t late = {0};
    join_stages(p);
    gb10_status_t status = commit_finish(p->commit, &late);
    p->commit = NULL;
    if (status != GB10_OK && !p->failed) {
        p->failed = true;
        p->error = late;
    }
    *stats = p->stats;
    for (int s = 0; s < STAGES; s++) {
        stats->busy[s] = p->stages[s].busy;
        stats->wait[s] = p->stages[s].wait;
    }
    if (p->failed && err && err->status == GB10_OK)
        *err = p->error;
    return p->failed ? p->error.status : GB10_OK;
}

void pipeline_free(pipeline_t *p)
{
    if (!p)
        return;
    join_stages(p);
    commit_finish(p->commit, NULL);
    for (int s = 0; s < STAGES; s++)
        gb10_destroy(p->stages[s].handle);
    for (int s = 0; s < SLOTS; s++) {
        gb10_free(p->slots[s].arena);
        gb10_free(p->slots[s].runs);
        gb10_free(p->slots[s].unit.runs);
    }
    for (int q = 0; q <= STAGES; q++)
        pthread_cond_destroy(&p->queues[q].changed);
    pthread_mutex_destroy(&p->lock);
    gb10_free(p);
}
