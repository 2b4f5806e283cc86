/* Launches and the scheduler: who runs next, what to do when nobody can, and what to say then. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simt/simt_machine.h"

machine_t simt_m;
simt_ids_t *simt_ids;
simt_index_t simt_block_dim, simt_grid_dim;

enum { IDLE_ROUNDS = 2000, REPORT = 8192 };
static char report[REPORT];

/* ---- reports ---- */

const char *simt_report(void)
{
    return report;
}

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *format, ...)
{
    size_t used = strlen(report);
    va_list args;
    va_start(args, format);
    vsnprintf(report + used, REPORT - used, format, args);
    va_end(args);
}

static void say_site(simt_site_t site)
{
    if (site.file)
        say(" at %s:%d", site.file, site.line);
}

static void leave(void)
{
    simt_m.failed = true;
    simt_tsan_release(&simt_m.end_tag); /* of a copy's thread, perhaps */
    if (simt_m.on_host)
        longjmp(simt_m.leave, 1);
    simt_m.on_host = true;
    simt_fiber_switch(&simt_m.now->fiber, &simt_m.host, true);
    abort();
}

_Noreturn void simt_fail(simt_site_t site, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    say("%s", text);
    say_site(site);
    if (!simt_m.on_host && simt_m.now)
        say(" (block %u, thread %u)", simt_m.now->ids.block.x, simt_m.now->ids.thread.x);
    say("; schedule %s, seed %llu\n", simt_schedule_name(simt_m.options.schedule),
        (unsigned long long)simt_m.options.seed);
    leave();
    abort();
}

static const char *wait_name(const thread_t *t)
{
    static const char *const names[] = {[WAIT_NONE] = "polling",
                                        [WAIT_BLOCK] = "block barrier",
                                        [WAIT_NAMED] = "named barrier",
                                        [WAIT_CLUSTER] = "cluster barrier",
                                        [WAIT_WARP] = "warp operation",
                                        [WAIT_MBAR] = "mbarrier",
                                        [WAIT_BULK] = "bulk group",
                                        [WAIT_BULK_READ] = "bulk group (read)",
                                        [WAIT_CP_ASYNC] = "cp.async group",
                                        [WAIT_EXITED] = "exited"};
    return names[t->wait];
}

static bool same_wait(const thread_t *a, const thread_t *b)
{
    return a->wait == b->wait && a->ids.block.x == b->ids.block.x &&
           a->ids.block.y == b->ids.block.y &&
           (a->wait == WAIT_EXITED ||
            (a->site.file == b->site.file && a->site.line == b->site.line));
}

/* Who waits where, threads with one fate in one line. */
static void say_threads(void)
{
    int total = simt_m.resident * (int)(simt_m.cluster_size * simt_m.block), lines = 0;
    for (int i = 0, last; i < total; i = last + 1) {
        const thread_t *t = &simt_m.thread[i];
        for (last = i; last + 1 < total && same_wait(t, t + (last + 1 - i)); last++)
            ;
        if (++lines > 40) {
            say("  ...\n");
            return;
        }
        say("  block %u threads %u..%u: %s", t->ids.block.x, t->ids.thread.x,
            simt_m.thread[last].ids.thread.x, wait_name(t));
        if (t->wait != WAIT_EXITED)
            say_site(t->site);
        say("\n");
    }
}

static _Noreturn void stuck(const char *what)
{
    say("%s; schedule %s, seed %llu\n", what, simt_schedule_name(simt_m.options.schedule),
        (unsigned long long)simt_m.options.seed);
    say_threads();
    leave();
    abort();
}

/* ---- who runs ---- */

uint64_t simt_random(void)
{
    uint64_t z = simt_m.random += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

bool simt_is_random(void)
{
    return simt_m.options.schedule >= SIMT_RANDOM;
}

static void mark(const warp_t *w)
{
    uint64_t bit = (uint64_t)1 << (w->rank & 63);
    if (w->ready)
        simt_m.ready[w->rank >> 6] |= bit;
    else
        simt_m.ready[w->rank >> 6] &= ~bit;
}

void simt_rt_progress(void)
{
    simt_m.progress++;
}

void simt_wake(warp_t *w, uint32_t lanes)
{
    for (uint32_t left = lanes; left; left &= left - 1)
        w->thread[__builtin_ctz(left)].wait = WAIT_NONE;
    w->ready |= lanes;
    mark(w);
    simt_m.progress++;
}

static thread_t *choose(void)
{
    int words = (simt_m.warps + 63) / 64;
    int from = 0;
    uint64_t random = 0;
    if (simt_m.options.schedule == SIMT_RANDOM) {
        random = simt_random();
        from = (int)(random % (uint64_t)simt_m.warps);
    }
    for (int i = 0; i <= words; i++) {
        int word = (from / 64 + i) % words;
        uint64_t bits = simt_m.ready[word];
        if (i == 0)
            bits &= ~(uint64_t)0 << (from % 64);
        if (!bits)
            continue;
        const warp_t *w = simt_m.by_rank[word * 64 + __builtin_ctzll(bits)];
        int lane = w->reverse ? 31 - __builtin_clz(w->ready) : __builtin_ctz(w->ready);
        if (simt_m.options.schedule == SIMT_RANDOM) {
            uint32_t above = w->ready & (~0u << ((random >> 40) & 31));
            lane = __builtin_ctz(above ? above : w->ready);
        }
        return &w->thread[lane];
    }
    return NULL;
}

/* Threads that poll run when nobody else can and no copy is left to finish. */
static bool promote_pollers(void)
{
    bool any = false;
    if (simt_m.progress != simt_m.progress_seen)
        simt_m.idle_rounds = 0;
    simt_m.progress_seen = simt_m.progress;
    for (int i = 0; i < simt_m.warps; i++) {
        warp_t *w = &simt_m.warp[i];
        any |= w->polling != 0;
        w->ready |= w->polling;
        w->polling = 0;
        mark(w);
    }
    if (any && ++simt_m.idle_rounds > IDLE_ROUNDS)
        stuck("livelock: only polling threads run, and nothing changes");
    return any;
}

/* NULL: all is done, or a cluster's place is free (host). */
static thread_t *pick(void)
{
    for (;;) {
        if (simt_m.live_threads == 0 || simt_m.ended > 0)
            return NULL;
        if (simt_is_random() && (simt_random() & 15) == 0)
            simt_async_step();
        thread_t *t = choose();
        if (t)
            return t;
        if (simt_async_step() || promote_pollers())
            continue;
        stuck("deadlock: no thread can run");
    }
}

/* The running thread gives way to whom the schedule wants. */
static void resume_another(bool ends)
{
    thread_t *self = simt_m.now, *next = pick();
    if (next == self)
        return;
    simt_m.on_host = next == NULL;
    if (next) {
        simt_m.now = next;
        simt_ids = &next->ids;
    }
    simt_fiber_switch(&self->fiber, next ? &next->fiber : &simt_m.host, ends);
}

void simt_yield(void)
{
    resume_another(false);
}

void simt_block(wait_kind_t kind, simt_site_t site)
{
    thread_t *t = simt_m.now;
    t->wait = kind;
    t->site = site;
    t->warp->ready &= ~(1u << t->lane);
    mark(t->warp);
    resume_another(false);
}

int simt_rt_poll(int orders, simt_site_t site)
{
    thread_t *t = simt_m.now;
    if (!simt_is_random() || (simt_random() & 1)) {
        t->site = site;
        t->warp->ready &= ~(1u << t->lane);
        t->warp->polling |= 1u << t->lane;
        mark(t->warp);
    }
    resume_another(false);
    return orders && simt_dropped(site);
}

/* ---- threads, blocks, clusters ---- */

cta_t *simt_owner(const void *p)
{
    const unsigned char *q = p;
    if (q < simt_m.arena || q >= simt_m.arena_end)
        return NULL;
    return &simt_m.cta[(size_t)(q - simt_m.arena) / simt_m.shared_pitch];
}

static void poison(cta_t *c)
{
    simt_fill(c->shared, 0xff, simt_m.shared_bytes);
    simt_fill(c->shadow, 0xff, simt_m.shared_bytes);
}

static void end_thread(thread_t *t)
{
    cta_t *c = t->warp->cta;
    cluster_t *cluster = c->cluster;
    simt_tsan_release(&cluster->reuse);
    simt_tsan_release(&simt_m.end_tag);
    t->wait = WAIT_EXITED;
    t->warp->live &= ~(1u << t->lane);
    t->warp->ready &= ~(1u << t->lane);
    mark(t->warp);
    c->live--, cluster->live--, simt_m.live_threads--;
    simt_m.progress++;
    simt_warp_exit(t);
    simt_sync_exit(t);
    if (c->live == 0) {
        simt_async_cta_exit(c);
        poison(c);
        simt_asan_poison(c->shared, simt_m.shared_pitch);
    }
    if (cluster->live == 0) {
        cluster->ended = true;
        simt_m.ended++;
    }
}

static void enter_thread(void)
{
    simt_fiber_entered();
    thread_t *t = simt_m.now;
    cta_t *c = t->warp->cta;
    simt_tsan_acquire(&simt_m.begin_tag);
    simt_tsan_acquire(&c->cluster->reuse);
    if (!c->started)
        poison(c); /* what a peer wrote before this block began is lost */
    c->started = true;
    simt_m.call(simt_m.kernel, simt_m.args);
    end_thread(t);
    resume_another(true);
    abort();
}

static void start_cta(cta_t *c, cluster_t *cluster, unsigned rank, unsigned x, unsigned y)
{
    const int threads = (int)simt_m.block;
    const size_t at = (size_t)(c - simt_m.cta);
    warp_t *warps = c->warp;
    unsigned char *shared = c->shared, *shadow = c->shadow;
    memset(c, 0, sizeof *c);
    *c = (cta_t){.cluster = cluster, .rank = rank, .live = threads, .warp = warps};
    c->shared = shared;
    c->shadow = shadow;
    simt_asan_unpoison(shared, simt_m.shared_bytes);
    for (int i = 0; i < threads; i++) {
        warp_t *w = &warps[i / WARP];
        thread_t *t = &simt_m.thread[at * simt_m.block + (size_t)i];
        memset(t, 0, sizeof *t);
        t->ids.thread.x = (unsigned)i;
        t->ids.block = (simt_index_t){x, y, 0};
        t->warp = w;
        t->lane = i % WARP;
        if (t->lane == 0) {
            w->cta = c;
            w->thread = t;
            w->live = w->ready = w->polling = 0;
            w->in_op = w->bar_waiting = w->cluster_waiting = 0;
            memset(w->syncs, 0, sizeof w->syncs);
        }
        w->live |= 1u << t->lane;
        w->ready |= 1u << t->lane;
        mark(w);
        simt_fiber_make(&t->fiber, (int)(t - simt_m.thread), enter_thread);
    }
}

static void start_cluster(cluster_t *cluster)
{
    const unsigned size = simt_m.cluster_size, wide = simt_m.grid_x / size;
    const unsigned number = simt_m.next_cluster++;
    cluster->live = (int)(size * simt_m.block);
    cluster->arrived = 0;
    cluster->phase = 0;
    cluster->ended = false;
    simt_m.live_threads += cluster->live;
    for (unsigned r = 0; r < size; r++)
        start_cta(&cluster->cta[r], cluster, r, number % wide * size + r, number / wide);
}

/* ---- launch ---- */

static const arch_t *find_arch(int number)
{
    static const arch_t table[] = {
        {80, 163 * 1024}, {90, 227 * 1024}, {100, 227 * 1024}, {121, 99 * 1024}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].number == number)
            return &table[i];
    return NULL;
}

/* The order of warps; rank 0 runs first. */
static void rank_warps(void)
{
    const int n = simt_m.warps;
    for (int i = 0; i < n; i++)
        simt_m.by_rank[i] = &simt_m.warp[simt_m.options.schedule == SIMT_REVERSE ? n - 1 - i : i];
    for (int i = n - 1; i > 0 && simt_m.options.schedule == SIMT_PRIORITY; i--) {
        int j = (int)(simt_random() % (uint64_t)(i + 1));
        warp_t *w = simt_m.by_rank[i];
        simt_m.by_rank[i] = simt_m.by_rank[j];
        simt_m.by_rank[j] = w;
    }
    for (int i = 0; i < n; i++) {
        simt_m.by_rank[i]->rank = i;
        simt_m.by_rank[i]->reverse =
            simt_m.options.schedule == SIMT_REVERSE ||
            (simt_m.options.schedule == SIMT_PRIORITY && (simt_random() & 1));
    }
}

static void *get(size_t count, size_t size)
{
    void *p = calloc(count ? count : 1, size);
    if (!p)
        abort();
    return p;
}

static void allocate(void)
{
    machine_t *m = &simt_m;
    const size_t ctas = (size_t)m->resident * m->cluster_size;
    m->warps_per_cta = (int)((m->block + WARP - 1) / WARP);
    m->warps = (int)ctas * m->warps_per_cta;
    m->shared_pitch = (m->shared_bytes + 1023) / 1024 * 1024 + 1024;
    m->cluster = get((size_t)m->resident, sizeof *m->cluster);
    m->cta = get(ctas, sizeof *m->cta);
    m->warp = get((size_t)m->warps, sizeof *m->warp);
    m->by_rank = get((size_t)m->warps, sizeof(warp_t *));
    m->ready = get((size_t)m->warps / 64 + 1, sizeof *m->ready);
    m->thread = get(ctas * m->block, sizeof *m->thread);
    m->arena = aligned_alloc(1024, 2 * ctas * m->shared_pitch);
    if (!m->arena)
        abort();
    m->arena_end = m->arena + ctas * m->shared_pitch;
    for (size_t i = 0; i < ctas; i++) {
        m->cta[i].shared = m->arena + i * m->shared_pitch;
        m->cta[i].shadow = m->arena_end + i * m->shared_pitch;
        m->cta[i].warp = &m->warp[i * (size_t)m->warps_per_cta];
        simt_asan_poison(m->cta[i].shared, m->shared_pitch);
    }
    for (int i = 0; i < m->resident; i++) {
        m->cluster[i].cta = &m->cta[(size_t)i * m->cluster_size];
        m->cluster[i].ended = true;
    }
    m->ended = m->resident;
    rank_warps();
}

static void release(void)
{
    machine_t *m = &simt_m;
    simt_asan_unpoison(m->arena, (size_t)(m->arena_end - m->arena));
    free(m->cluster);
    free(m->cta);
    free(m->warp);
    free(m->by_rank);
    free(m->ready);
    free(m->thread);
    free(m->arena);
    m->arena = m->arena_end = NULL;
}

static void run(void)
{
    machine_t *m = &simt_m;
    if (setjmp(m->leave))
        return;
    for (;;) {
        for (int i = 0; i < m->resident; i++) {
            if (m->cluster[i].ended && m->next_cluster < m->clusters)
                start_cluster(&m->cluster[i]);
        }
        m->ended = 0;
        thread_t *t = m->live_threads > 0 ? pick() : NULL;
        if (!t)
            break;
        m->now = t;
        simt_ids = &t->ids;
        m->on_host = false;
        simt_fiber_switch(&m->host, &t->fiber, false);
        if (m->failed)
            return;
    }
    while (simt_async_step())
        ;
}

/* NULL, or why this launch is not possible. */
static const char *refuse(void)
{
    static char text[256];
    const machine_t *m = &simt_m;
    text[0] = 0;
    if (!m->arch)
        snprintf(text, sizeof text, "unknown architecture %d", m->options.arch);
    else if (m->block < 1 || m->block > MAX_THREADS)
        snprintf(text, sizeof text, "%u threads in a block, the limit is %d", m->block,
                 MAX_THREADS);
    else if (m->cluster_size < 1 || m->cluster_size > MAX_CLUSTER)
        snprintf(text, sizeof text, "%u blocks in a cluster, the limit is %d", m->cluster_size,
                 MAX_CLUSTER);
    else if (m->grid_x < 1 || m->grid_y < 1 || m->grid_x % m->cluster_size)
        snprintf(text, sizeof text, "%u x %u blocks do not divide into clusters of %u", m->grid_x,
                 m->grid_y, m->cluster_size);
    else if (m->shared_bytes > m->arch->shared)
        snprintf(text, sizeof text, "%zu bytes of shared memory, the limit of sm_%d is %zu",
                 m->shared_bytes, m->arch->number, m->arch->shared);
    return text[0] ? text : NULL;
}

gb10_status_t simt_rt_launch(const simt_launch_t *how, void (*call)(void *, const void *),
                             void *kernel, const void *args, gb10_error_t *err)
{
    machine_t *m = &simt_m;
    simt_list_sites();
    if (m->options.arch == 0)
        m->options = simt_options_default();
    m->arch = find_arch(m->options.arch);
    m->grid_x = how->grid_x, m->grid_y = how->grid_y, m->block = how->block;
    m->cluster_size = how->cluster ? how->cluster : 1;
    m->shared_bytes = how->shared;
    m->call = call, m->kernel = kernel, m->args = args;
    report[0] = 0;
    const char *why = refuse();
    if (why) {
        snprintf(report, sizeof report, "launch refused: %s", why);
        return GB10_FAIL(err, GB10_ERR_DEVICE, "%s", report);
    }
    m->clusters = m->grid_x / m->cluster_size * m->grid_y;
    m->resident = m->options.resident < 1 ? 1 : m->options.resident;
    if ((unsigned)m->resident > m->clusters)
        m->resident = (int)m->clusters;
    m->next_cluster = 0;
    m->live_threads = 0;
    m->failed = false;
    m->on_host = true;
    m->now = NULL;
    m->progress = m->progress_seen = 0;
    m->idle_rounds = 0;
    m->random = m->options.seed;
    simt_block_dim = (simt_index_t){m->block, 1, 1};
    simt_grid_dim = (simt_index_t){m->grid_x, m->grid_y, 1};
    m->count.launches++;
    allocate();
    simt_tsan_release(&m->begin_tag);
    run();
    if (m->failed)
        simt_fibers_forget(m->resident * (int)(m->cluster_size * m->block));
    simt_tsan_acquire(&m->end_tag);
    simt_async_clear();
    simt_tsan_acquire(&m->end_tag); /* of copies that were cleared */
    release();
    if (!m->failed)
        return GB10_OK;
    return GB10_FAIL(err, GB10_ERR_DEVICE, "%s", report);
}
