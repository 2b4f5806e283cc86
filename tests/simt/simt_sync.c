/* Barriers of blocks and clusters, and mbarriers. For ThreadSanitizer every phase of a barrier is
 * an object of its own (by parity): a fast thread's arrival for the next phase must not count for
 * one that still leaves the last. */
#include "tests/simt/simt_machine.h"

/* ---- barriers of a block ---- */

static bool open_barrier(cta_t *c, int id)
{
    barrier_t *b = &c->bar[id];
    const int expected = id == 0 ? c->live : b->expected;
    if (b->arrived == 0 || b->arrived < expected)
        return false;
    b->arrived = 0;
    b->expected = 0;
    b->phase++;
    if (id == 0)
        simt_m.count.block_barriers++;
    else
        simt_m.count.named_barriers++;
    for (int i = 0; i < simt_m.warps_per_cta; i++)
        if (b->waiting[i]) {
            for (uint32_t left = b->waiting[i]; left; left &= left - 1)
                c->warp[i].thread[__builtin_ctz(left)].predicate_result = b->votes;
            simt_wake(&c->warp[i], b->waiting[i]);
            b->waiting[i] = 0;
        }
    return true;
}

static void arrive(cta_t *c, int id, bool waits, simt_site_t site)
{
    thread_t *t = simt_m.now;
    barrier_t *b = &c->bar[id];
    void *object = &b->tag[b->phase & 1];
    simt_tsan_release(object);
    b->arrived++;
    if (waits)
        b->waiting[t->warp - c->warp] |= 1u << t->lane;
    if (open_barrier(c, id)) {
        if (waits)
            simt_yield();
    } else if (waits) {
        simt_block(id == 0 ? WAIT_BLOCK : WAIT_NAMED, site);
    }
    if (waits)
        simt_tsan_acquire(object);
}

int simt_rt_block_sync(int predicate, int how, simt_site_t site)
{
    thread_t *t = simt_m.now;
    cta_t *c = t->warp->cta;
    barrier_t *b = &c->bar[0];
    if (simt_dropped(site))
        return how == 2 ? 1 : predicate != 0;
    const int live = c->live;
    if (b->arrived == 0)
        b->votes = 0;
    b->votes += predicate != 0;
    arrive(c, 0, true, site);
    switch (how) {
    case 0:
        return t->predicate_result > 0;
    case 1:
        return t->predicate_result == live;
    default:
        return t->predicate_result;
    }
}

static void named(int id, int threads, bool waits, simt_site_t site)
{
    cta_t *c = simt_m.now->warp->cta;
    if (simt_dropped(site))
        return;
    if (id < 1 || id >= NAMED_BARRIERS)
        simt_fail(site, "named barrier %d: there are 1 to %d", id, NAMED_BARRIERS - 1);
    if (threads < WARP || threads > MAX_THREADS || threads % WARP)
        simt_fail(site, "named barrier %d for %d threads: not whole warps", id, threads);
    if (c->bar[id].arrived > 0 && c->bar[id].expected != threads)
        simt_fail(site, "named barrier %d for %d threads, others said %d", id, threads,
                  c->bar[id].expected);
    c->bar[id].expected = threads;
    arrive(c, id, waits, site);
}

void simt_rt_bar_sync(int id, int threads, simt_site_t site)
{
    named(id, threads, true, site);
}

void simt_rt_bar_arrive(int id, int threads, simt_site_t site)
{
    named(id, threads, false, site);
}

void simt_rt_setmaxnreg(int registers, simt_site_t site)
{
    if (registers < 24 || registers > 256 || registers % 8)
        simt_fail(site, "setmaxnreg %d: not a multiple of 8 from 24 to 256", registers);
}

/* ---- clusters ---- */

static void open_cluster(cluster_t *k)
{
    if (k->arrived == 0 || k->arrived < k->live)
        return;
    k->arrived = 0;
    k->phase++;
    simt_m.count.cluster_barriers++;
    for (unsigned r = 0; r < simt_m.cluster_size; r++)
        for (int i = 0; i < simt_m.warps_per_cta; i++) {
            warp_t *w = &k->cta[r].warp[i];
            for (uint32_t left = w->live; left; left &= left - 1)
                w->thread[__builtin_ctz(left)].cluster_arrived = false;
            if (w->cluster_waiting)
                simt_wake(w, w->cluster_waiting);
            w->cluster_waiting = 0;
        }
}

void simt_rt_cluster_arrive(simt_site_t site)
{
    thread_t *t = simt_m.now;
    cluster_t *k = t->warp->cta->cluster;
    if (simt_dropped(site))
        return;
    if (t->cluster_acquire)
        simt_fail(site, "cluster barrier: second arrival without a wait");
    t->cluster_acquire = &k->tag[k->phase & 1];
    simt_tsan_release(t->cluster_acquire);
    t->cluster_arrived = true;
    k->arrived++;
    simt_m.progress++;
    open_cluster(k);
}

void simt_rt_cluster_wait(simt_site_t site)
{
    thread_t *t = simt_m.now;
    if (simt_dropped(site))
        return;
    if (!t->cluster_acquire)
        simt_fail(site, "cluster barrier: wait without an arrival");
    if (t->cluster_arrived) {
        t->warp->cluster_waiting |= 1u << t->lane;
        simt_block(WAIT_CLUSTER, site);
    } else {
        simt_yield();
    }
    simt_tsan_acquire(t->cluster_acquire);
    t->cluster_acquire = NULL;
}

unsigned simt_rt_cluster_rank(void)
{
    return simt_m.now->warp->cta->rank;
}

unsigned simt_rt_cluster_size(void)
{
    return simt_m.cluster_size;
}

void *simt_rt_map(const void *p, unsigned rank, simt_site_t site)
{
    cta_t *own = simt_m.now->warp->cta;
    if (simt_owner(p) != own)
        simt_fail(site, "mapped pointer: %p is not shared memory of this block", p);
    if (rank >= simt_m.cluster_size)
        simt_fail(site, "mapped pointer: block %u of a cluster of %u", rank, simt_m.cluster_size);
    cta_t *other = &own->cluster->cta[rank];
    if (other->live == 0)
        simt_fail(site, "mapped pointer: block %u of the cluster has exited", rank);
    return other->shared + ((const unsigned char *)p - own->shared);
}

void simt_sync_exit(thread_t *t)
{
    cta_t *c = t->warp->cta;
    cluster_t *k = c->cluster;
    barrier_t *b = &c->bar[0];
    /* The exit is an arrival at what the others wait for. */
    simt_tsan_release(&b->tag[b->phase & 1]);
    simt_tsan_release(&k->tag[k->phase & 1]);
    if (t->cluster_arrived) /* it counts among the arrived no more, and not among the live */
        k->arrived--;
    open_barrier(c, 0);
    open_cluster(k);
}

/* ---- mbarriers: magic, phase, pending arrivals, their count, bytes still to come (biased) ---- */

enum { COUNT_MAX = (1 << 20) - 1, BYTES_BIAS = 1 << 20 };
static const uint64_t MAGIC = 2;

typedef struct mbar {
    unsigned phase, pending, count;
    int bytes;
} mbar_t;

static bool unpack(uint64_t bits, mbar_t *m)
{
    m->bytes = (int)(bits & 0x1fffff) - BYTES_BIAS;
    m->pending = (unsigned)(bits >> 21) & COUNT_MAX;
    m->count = (unsigned)(bits >> 41) & COUNT_MAX;
    m->phase = (unsigned)(bits >> 61) & 1;
    return bits >> 62 == MAGIC && m->count > 0 && m->pending <= m->count;
}

static uint64_t pack(const mbar_t *m)
{
    return MAGIC << 62 | (uint64_t)m->phase << 61 | (uint64_t)m->count << 41 |
           (uint64_t)m->pending << 21 | (uint64_t)(m->bytes + BYTES_BIAS);
}

static mbar_t get(const uint64_t *bar, simt_site_t site)
{
    mbar_t m;
    if ((uintptr_t)bar % sizeof *bar)
        simt_fail(site, "mbarrier %p: not on 8 bytes", (const void *)bar);
    if (!simt_owner(bar))
        simt_fail(site, "mbarrier %p: not in shared memory", (const void *)bar);
    if (!unpack(*bar, &m))
        simt_fail(site, "mbarrier used before its init");
    return m;
}

void simt_mbar_check(uint64_t *bar, simt_site_t site)
{
    (void)get(bar, site);
}

/* Each phase's object lies in the barrier itself: kernels never touch those bytes. */
static void *object_of(uint64_t *bar, unsigned phase)
{
    return (char *)bar + 4 * (phase & 1);
}

static void put(uint64_t *bar, mbar_t *m)
{
    cta_t *c = simt_owner(bar);
    if (m->pending == 0 && m->bytes == 0) {
        m->phase ^= 1;
        m->pending = m->count;
        *bar = pack(m);
        for (int i = 0; i < simt_m.warps_per_cta; i++) {
            uint32_t woken = 0;
            for (uint32_t left = c->warp[i].bar_waiting; left; left &= left - 1) {
                int lane = __builtin_ctz(left);
                const thread_t *t = &c->warp[i].thread[lane];
                if (t->bar == bar && t->parity != m->phase)
                    woken |= 1u << lane;
            }
            c->warp[i].bar_waiting &= ~woken;
            if (woken)
                simt_wake(&c->warp[i], woken);
        }
    }
    *bar = pack(m);
    simt_m.progress++;
}

void simt_rt_mbar_init(uint64_t *bar, unsigned count, simt_site_t site)
{
    if ((uintptr_t)bar % sizeof *bar)
        simt_fail(site, "mbarrier %p: not on 8 bytes", (const void *)bar);
    if (simt_owner(bar) != simt_m.now->warp->cta)
        simt_fail(site, "mbarrier %p: not in shared memory of this block", (const void *)bar);
    if (count < 1 || count > COUNT_MAX)
        simt_fail(site, "mbarrier: count %u", count);
    mbar_t m = {.pending = count, .count = count};
    *bar = pack(&m);
}

static void add(uint64_t *bar, int arrivals, unsigned bytes, simt_site_t site)
{
    mbar_t m = get(bar, site);
    if (m.pending < (unsigned)arrivals)
        simt_fail(site, "mbarrier: more arrivals than its count of %u", m.count);
    if (bytes > COUNT_MAX || m.bytes + (int)bytes > COUNT_MAX)
        simt_fail(site, "mbarrier: %u more bytes expected, too many", bytes);
    simt_tsan_release(object_of(bar, m.phase));
    m.bytes += (int)bytes;
    m.pending -= (unsigned)arrivals;
    simt_m.count.mbar_arrivals += (unsigned)arrivals;
    put(bar, &m);
}

void simt_rt_mbar_arrive(uint64_t *bar, int arrivals, unsigned bytes, simt_site_t site)
{
    if (simt_owner(bar) != simt_m.now->warp->cta)
        simt_fail(site, "mbarrier %p: not of this block", (const void *)bar);
    add(bar, arrivals, bytes, site);
}

void simt_rt_mbar_arrive_remote(uint64_t *bar, unsigned rank, simt_site_t site)
{
    add(simt_rt_map(bar, rank, site), 1, 0, site);
}

void simt_mbar_complete(uint64_t *bar, size_t bytes, simt_site_t site)
{
    mbar_t m = get(bar, site);
    if (m.bytes - (int)bytes < -BYTES_BIAS)
        simt_fail(site, "mbarrier: %zu bytes came that nobody expected", bytes);
    simt_tsan_release(object_of(bar, m.phase));
    m.bytes -= (int)bytes;
    put(bar, &m);
}

static bool over(uint64_t *bar, unsigned parity, simt_site_t site)
{
    if (simt_owner(bar) != simt_m.now->warp->cta)
        simt_fail(site, "mbarrier %p: not of this block", (const void *)bar);
    if (parity > 1)
        simt_fail(site, "mbarrier: parity %u", parity);
    return get(bar, site).phase != parity;
}

int simt_rt_mbar_test(uint64_t *bar, unsigned parity, simt_site_t site)
{
    if (simt_dropped(site)) /* at once: giving way first would let the data come */
        return 1;
    simt_rt_poll(1, site);
    if (!over(bar, parity, site))
        return 0;
    simt_tsan_acquire(object_of(bar, parity));
    return 1;
}

void simt_rt_mbar_wait(uint64_t *bar, unsigned parity, simt_site_t site)
{
    thread_t *t = simt_m.now;
    if (simt_dropped(site))
        return;
    simt_m.count.mbar_waits++;
    if (over(bar, parity, site)) {
        simt_yield();
    } else {
        t->bar = bar;
        t->parity = parity;
        t->warp->bar_waiting |= 1u << t->lane;
        simt_block(WAIT_MBAR, site);
    }
    simt_tsan_acquire(object_of(bar, parity));
}
