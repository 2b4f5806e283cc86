/* Asynchronous copies. One that is issued fills its destination with NaN at once and is done as
 * late as possible: when no thread can run (the random schedules: at random moments too). A store
 * is done in two parts, as its source may be free long before its destination is written. The async
 * proxy sees shared memory through a shadow that the proxy fence refreshes: a forgotten fence
 * copies what was there before. */
#include <stdlib.h>
#include <string.h>

#include "tests/simt/simt_machine.h"

/* In the 128 bytes of a simt_tensor_map_t. */
struct tensor {
    uint32_t magic;
    simt_tensor_t t;
};
_Static_assert(sizeof(tensor_t) <= sizeof(simt_tensor_map_t), "fits");
enum { TENSOR_MAGIC = 0x7e45a9b1 };

/* Copies whose source is to be read still, and stores whose destination is to be written still. */
typedef struct list {
    copy_t *copy;
    size_t first, end, room;
} list_t;
static list_t unread, unwritten;
static unsigned char *in_hand; /* of the copy that is in neither list: a diagnosis may end it */

static void push(list_t *l, const copy_t *c)
{
    if (l->first == l->end)
        l->first = l->end = 0;
    if (l->end == l->room) {
        l->room = 2 * l->room + 64;
        l->copy = realloc(l->copy, l->room * sizeof *l->copy);
        if (!l->copy)
            abort();
    }
    l->copy[l->end++] = *c;
}

/* Whether some thread waits for this copy. */
static bool wanted(const copy_t *c)
{
    if (c->kind == COPY_CP_ASYNC)
        return c->by->wait == WAIT_CP_ASYNC;
    if (c->kind == COPY_STORE)
        return c->by->wait == WAIT_BULK || c->by->wait == WAIT_BULK_READ;
    for (int i = 0; i < simt_m.warps_per_cta; i++)
        for (uint32_t left = c->to->warp[i].bar_waiting; left; left &= left - 1)
            if (c->to->warp[i].thread[__builtin_ctz(left)].bar == c->bar)
                return true;
    return false;
}

/* Any; or one that is waited for, so that the others stay in flight: oldest or newest first. */
static copy_t pull(list_t *l)
{
    const bool newest = simt_m.options.schedule == SIMT_REVERSE;
    const size_t count = l->end - l->first;
    size_t i = newest ? l->end - 1 : l->first;
    if (simt_is_random()) {
        i = l->first + simt_random() % count;
    } else {
        for (size_t k = 0; k < count; k++) {
            size_t j = newest ? l->end - 1 - k : l->first + k;
            if (wanted(&l->copy[j])) {
                i = j;
                break;
            }
        }
    }
    const copy_t c = l->copy[i];
    for (; i > l->first; i--)
        l->copy[i] = l->copy[i - 1];
    l->first++;
    return c;
}

/* ---- what a copy moves, piece by piece ---- */

typedef void piece_fn(copy_t *c, unsigned char *shared, unsigned char *global, size_t bytes);

/* Each element of a box: its place in the tile and in the tensor (NULL: outside). */
static void box(copy_t *c, unsigned char *tile, piece_fn *fn)
{
    const simt_tensor_t *t = &c->map->t;
    const unsigned deep = t->rank > 2 ? t->box[2] : 1;
    const unsigned turns = t->swizzle == 128 ? 7 : t->swizzle == 64 ? 3 : 0;
    unsigned offset = 0;
    for (unsigned z = 0; z < deep; z++)
        for (unsigned y = 0; y < t->box[1]; y++)
            for (unsigned x = 0; x < t->box[0]; x++, offset += (unsigned)t->element) {
                int64_t gx = c->at[0] + (int64_t)x, gy = c->at[1] + (int64_t)y;
                int64_t gz = c->at[2] + (int64_t)z;
                bool inside = gx >= 0 && gx < (int64_t)t->size[0] && gy >= 0 &&
                              gy < (int64_t)t->size[1] && gz >= 0 &&
                              gz < (t->rank > 2 ? (int64_t)t->size[2] : 1);
                unsigned char *global = inside ? (unsigned char *)t->base + gx * t->element +
                                                     gy * (int64_t)t->pitch[0] +
                                                     (t->rank > 2 ? gz * (int64_t)t->pitch[1] : 0)
                                               : NULL;
                unsigned o = offset ^ (((offset >> 7) & turns) << 4);
                fn(c, tile + o, global, (size_t)t->element);
            }
}

static unsigned char *shadow_of(const cta_t *owner, const void *p)
{
    return owner->shadow + ((const unsigned char *)p - owner->shared);
}

static void poison_piece(copy_t *c, unsigned char *shared, unsigned char *global, size_t bytes)
{
    (void)shared, (void)c;
    if (global)
        simt_fill(global, 0xff, bytes);
}

static void load_piece(copy_t *c, unsigned char *shared, unsigned char *global, size_t bytes)
{
    unsigned char zeros[8] = {0};
    if (global)
        simt_tsan_range(global, bytes, false);
    simt_move(shared, global ? global : zeros, bytes);
    simt_move(shadow_of(c->to, shared), shared, bytes);
}

static void store_piece(copy_t *c, unsigned char *held, unsigned char *global, size_t bytes)
{
    (void)c;
    if (!global)
        return;
    simt_tsan_range(global, bytes, true);
    simt_move(global, held, bytes);
}

/* ---- issue ---- */

/* What of a box lies in the tensor: the rest moves nothing in global memory. */
static size_t bytes_inside(const copy_t *c)
{
    size_t bytes = c->map ? (size_t)c->map->t.element : c->bytes;
    for (int i = 0; c->map && i < c->map->t.rank; i++) {
        const int64_t size = (int64_t)c->map->t.size[i], first = c->at[i];
        int64_t last = first + (int64_t)c->map->t.box[i];
        last = last < size ? last : size;
        const int64_t from = first > 0 ? first : 0;
        bytes *= (size_t)(last > from ? last - from : 0);
    }
    return bytes;
}

static void count(const copy_t *c)
{
    simt_counters_t *n = &simt_m.count;
    if (c->from)
        n->shared_read += c->bytes;
    else
        n->global_read += bytes_inside(c);
    if (c->to)
        n->shared_written += c->bytes;
    else
        n->global_written += bytes_inside(c);
    if (c->kind == COPY_CP_ASYNC)
        n->cp_async++;
    else if (c->map)
        n->tensor_copies++;
    else
        n->bulk_copies++;
}

static groups_t *groups_of(const copy_t *c, group_kind_t kind)
{
    return &c->by->groups[kind];
}

static void join_group(copy_t *c, group_kind_t kind)
{
    groups_t *g = groups_of(c, kind);
    c->group = g->open;
    if (g->open - g->oldest >= GROUPS)
        simt_fail(c->site, "more than %d groups of copies outstanding", GROUPS);
    g->left[g->open % GROUPS]++;
}

static void issue(copy_t *c)
{
    c->by = simt_m.now;
    if (c->from) {
        const void *shadow = shadow_of(c->from, c->src);
        c->clean = simt_equal(c->src, shadow, c->bytes);
        c->held = malloc(c->bytes);
        if (!c->held)
            abort();
        simt_move(c->held, shadow, c->bytes);
    }
    if (c->kind == COPY_STORE) {
        join_group(c, GROUP_READ);
        join_group(c, GROUP_WRITTEN);
    } else if (c->kind == COPY_CP_ASYNC) {
        join_group(c, GROUP_CP_ASYNC);
    }
    if (c->kind == COPY_STORE && c->map)
        box(c, NULL, poison_piece);
    else
        simt_fill(c->dst, 0xff, c->bytes + c->fill);
    count(c);
    c->tsan = simt_tsan_thread();
    push(&unread, c);
}

static void check_bulk(const copy_t *c, const void *p, size_t align)
{
    if (c->bytes == 0 || c->bytes % 16)
        simt_fail(c->site, "bulk copy of %zu bytes: not a multiple of 16", c->bytes);
    if ((uintptr_t)p % align)
        simt_fail(c->site, "bulk copy: %p is not on %zu bytes", p, align);
}

static cta_t *own_shared(const void *p, size_t bytes, simt_site_t site)
{
    cta_t *c = simt_owner(p);
    if (!c || c != simt_m.now->warp->cta)
        simt_fail(site, "copy: %p is not shared memory of this block", p);
    if ((size_t)((const unsigned char *)p - c->shared) + bytes > simt_m.shared_bytes)
        simt_fail(site, "copy: %zu bytes reach past the end of shared memory", bytes);
    return c;
}

static void global_only(const void *p, simt_site_t site)
{
    if (simt_owner(p))
        simt_fail(site, "copy: %p is shared memory, global was meant", p);
}

void simt_rt_bulk_load(void *dst, const void *src, unsigned bytes, uint64_t *bar, simt_site_t site)
{
    copy_t c = {
        .kind = COPY_LOAD, .dst = dst, .src = src, .bytes = bytes, .bar = bar, .site = site};
    check_bulk(&c, dst, 16);
    check_bulk(&c, src, 16);
    global_only(src, site);
    c.to = own_shared(dst, bytes, site);
    own_shared(bar, sizeof *bar, site);
    simt_mbar_check(bar, site);
    issue(&c);
}

void simt_rt_bulk_push(void *dst, const void *src, unsigned bytes, uint64_t *bar, simt_site_t site)
{
    copy_t c = {
        .kind = COPY_PUSH, .dst = dst, .src = src, .bytes = bytes, .bar = bar, .site = site};
    check_bulk(&c, dst, 16);
    check_bulk(&c, src, 16);
    c.from = own_shared(src, bytes, site);
    c.to = simt_owner(dst);
    if (!c.to || c.to->cluster != c.from->cluster)
        simt_fail(site, "bulk push: %p is not shared memory of this cluster", dst);
    if (c.to->live == 0)
        simt_fail(site, "bulk push: block %u of the cluster has exited", c.to->rank);
    if (simt_owner(bar) != c.to)
        simt_fail(site, "bulk push: data and mbarrier are in different blocks");
    simt_mbar_check(bar, site);
    issue(&c);
}

void simt_rt_bulk_store(void *dst, const void *src, unsigned bytes, simt_site_t site)
{
    copy_t c = {.kind = COPY_STORE, .dst = dst, .src = src, .bytes = bytes, .site = site};
    check_bulk(&c, dst, 16);
    check_bulk(&c, src, 16);
    global_only(dst, site);
    c.from = own_shared(src, bytes, site);
    issue(&c);
}

void simt_rt_tensor(void *shared, const void *map, const int *at, int rank, uint64_t *bar,
                    simt_site_t site)
{
    const tensor_t *m = map;
    if ((uintptr_t)map % 64 || m->magic != TENSOR_MAGIC)
        simt_fail(site, "tensor copy: this is no tensor map");
    if (m->t.rank != rank)
        simt_fail(site, "tensor copy of %d dimensions with a map of %d", rank, m->t.rank);
    copy_t c = {.kind = bar ? COPY_LOAD : COPY_STORE, .map = m, .bar = bar, .site = site};
    memcpy(c.at, at, sizeof c.at);
    c.bytes = (size_t)m->t.element * m->t.box[0] * m->t.box[1] * (rank > 2 ? m->t.box[2] : 1);
    const size_t align = m->t.swizzle ? 8 * (size_t)m->t.swizzle : 128;
    if ((uintptr_t)shared % align)
        simt_fail(site, "tensor copy: the tile %p is not on %zu bytes", shared, align);
    cta_t *own = own_shared(shared, c.bytes, site);
    if (bar) {
        c.dst = shared;
        c.to = own;
        own_shared(bar, sizeof *bar, site);
        simt_mbar_check(bar, site);
    } else {
        c.src = shared;
        c.from = own;
    }
    issue(&c);
}

void simt_rt_cp_async(void *dst, const void *src, int size, int bytes, simt_site_t site)
{
    copy_t c = {.kind = COPY_CP_ASYNC, .dst = dst, .src = src, .site = site};
    if ((size != 4 && size != 8 && size != 16) || bytes < 0 || bytes > size)
        simt_fail(site, "cp.async of %d bytes, %d of them real", size, bytes);
    if ((uintptr_t)dst % (unsigned)size || (uintptr_t)src % (unsigned)size)
        simt_fail(site, "cp.async: %p or %p is not on %d bytes", dst, src, size);
    global_only(src, site);
    c.bytes = (size_t)bytes;
    c.fill = (size_t)(size - bytes);
    c.to = own_shared(dst, (size_t)size, site);
    issue(&c);
}

/* ---- completion ---- */

static bool groups_done(thread_t *t, group_kind_t kind, int pending)
{
    groups_t *g = &t->groups[kind];
    while (g->oldest != g->open && g->left[g->oldest % GROUPS] == 0)
        g->oldest++;
    return (int)(g->open - g->oldest) <= pending;
}

static void leave_group(const copy_t *c, group_kind_t kind)
{
    static const wait_kind_t waits[] = {WAIT_BULK_READ, WAIT_BULK, WAIT_CP_ASYNC};
    thread_t *t = c->by;
    /* Each group has its own object: waiting for one must not cover a later one. */
    simt_tsan_release(&t->tag[kind][c->group % GROUPS]);
    groups_of(c, kind)->left[c->group % GROUPS]--;
    if (t->wait == waits[kind] && groups_done(t, kind, t->limit))
        simt_wake(t->warp, 1u << t->lane);
}

static void read_source(copy_t *c)
{
    if (c->from) {
        const void *shadow = shadow_of(c->from, c->src);
        if (!simt_equal(c->held, shadow, c->bytes) ||
            (c->clean && !simt_equal(c->src, shadow, c->bytes)))
            simt_fail(c->site, "the source of a copy in flight was overwritten");
        simt_tsan_range(c->src, c->bytes, false);
    } else if (!c->map) {
        simt_tsan_range(c->src, c->bytes, false);
    }
}

static void write_target(copy_t *c)
{
    if (c->map && c->kind == COPY_STORE) {
        box(c, c->held, store_piece);
        return;
    }
    simt_tsan_range(c->dst, c->bytes + c->fill, true);
    if (c->map) {
        box(c, c->dst, load_piece);
        return;
    }
    simt_move(c->dst, c->held ? c->held : c->src, c->bytes);
    simt_fill((unsigned char *)c->dst + c->bytes, 0, c->fill);
    if (c->to && c->kind != COPY_CP_ASYNC) /* cp.async is no async-proxy copy */
        simt_move(shadow_of(c->to, c->dst), c->dst, c->bytes);
}

static void finish(copy_t *c)
{
    write_target(c);
    if (c->kind == COPY_STORE)
        leave_group(c, GROUP_WRITTEN);
    else if (c->kind == COPY_CP_ASYNC)
        leave_group(c, GROUP_CP_ASYNC);
    else
        simt_mbar_complete(c->bar, c->bytes, c->site);
    simt_tsan_release(&simt_m.end_tag); /* the end of the launch waits for every copy */
    free(c->held);
    in_hand = NULL;
}

bool simt_async_step(void)
{
    const bool reading = unread.first != unread.end;
    if (!reading && unwritten.first == unwritten.end)
        return false;
    copy_t c = pull(reading ? &unread : &unwritten);
    in_hand = c.held;
    void *back = simt_m.on_host ? simt_m.host.tsan : simt_m.now->fiber.tsan;
    simt_tsan_enter(c.tsan);
    simt_m.progress++;
    if (reading)
        read_source(&c);
    if (reading && c.kind == COPY_STORE) {
        leave_group(&c, GROUP_READ);
        push(&unwritten, &c);
        in_hand = NULL;
        simt_tsan_enter(back);
        return true;
    }
    finish(&c);
    simt_tsan_enter(back);
    simt_tsan_end(c.tsan);
    return true;
}

void simt_async_cta_exit(cta_t *c)
{
    for (size_t i = unread.first; i < unread.end; i++)
        if (unread.copy[i].from == c || unread.copy[i].to == c)
            simt_fail(unread.copy[i].site, "a block exits with this copy in flight, issued");
}

static void drop_all(list_t *l)
{
    for (size_t i = l->first; i < l->end; i++) {
        free(l->copy[i].held);
        simt_tsan_finish(l->copy[i].tsan, &simt_m.end_tag);
        simt_tsan_end(l->copy[i].tsan);
    }
    l->first = l->end = 0;
}

void simt_async_clear(void)
{
    free(in_hand);
    in_hand = NULL;
    drop_all(&unread);
    drop_all(&unwritten);
}

/* ---- groups and the fence ---- */

void simt_rt_bulk_commit(simt_site_t site)
{
    (void)site;
    simt_m.now->groups[GROUP_READ].open++;
    simt_m.now->groups[GROUP_WRITTEN].open++;
}

void simt_rt_cp_async_commit(simt_site_t site)
{
    (void)site;
    simt_m.now->groups[GROUP_CP_ASYNC].open++;
}

static void wait_groups(group_kind_t kind, wait_kind_t wait, int pending, simt_site_t site)
{
    thread_t *t = simt_m.now;
    if (simt_dropped(site))
        return;
    if (!groups_done(t, kind, pending)) {
        t->limit = pending;
        simt_block(wait, site);
    }
    const groups_t *g = &t->groups[kind];
    for (int i = pending + 1; i <= GROUPS && (unsigned)i <= g->open; i++)
        simt_tsan_acquire(&t->tag[kind][(g->open - (unsigned)i) % GROUPS]);
}

void simt_rt_bulk_wait(int pending, int read, simt_site_t site)
{
    if (read)
        wait_groups(GROUP_READ, WAIT_BULK_READ, pending, site);
    else
        wait_groups(GROUP_WRITTEN, WAIT_BULK, pending, site);
}

void simt_rt_cp_async_wait(int pending, simt_site_t site)
{
    wait_groups(GROUP_CP_ASYNC, WAIT_CP_ASYNC, pending, site);
}

void simt_rt_proxy_fence(simt_site_t site)
{
    const cta_t *c = simt_m.now->warp->cta;
    if (simt_dropped(site))
        return;
    simt_m.count.proxy_fences++;
    simt_move(c->shadow, c->shared, simt_m.shared_bytes);
}

/* ---- tensor maps ---- */

gb10_status_t simt_tensor_map(simt_tensor_map_t *map, const simt_tensor_t *t, gb10_error_t *err)
{
    tensor_t m = {.magic = TENSOR_MAGIC, .t = *t};
    const unsigned inner = t->box[0] * (unsigned)t->element;
    bool good = (t->rank == 2 || t->rank == 3) &&
                (t->swizzle == 0 || t->swizzle == 64 || t->swizzle == 128) &&
                (t->element == 1 || t->element == 2 || t->element == 4 || t->element == 8);
    good = good && (uintptr_t)t->base % 16 == 0 && inner % 16 == 0 &&
           (t->swizzle == 0 || inner == (unsigned)t->swizzle);
    for (int i = 0; good && i < t->rank; i++)
        good = t->box[i] >= 1 && t->box[i] <= 256 && t->size[i] >= 1 &&
               (i == 0 || t->pitch[i - 1] % 16 == 0);
    if (!good)
        return GB10_FAIL(err, GB10_ERR_DEVICE,
                         "tensor map: rank %d, element %d bytes, base %p, box %u x %u, swizzle %d",
                         t->rank, t->element, t->base, t->box[0], t->box[1], t->swizzle);
    memset(map, 0, sizeof *map);
    memcpy(map, &m, sizeof m);
    return GB10_OK;
}

/* ---- memory as kernels see it ---- */

void *simt_rt_shared(size_t bytes, simt_site_t site)
{
    if (bytes > simt_m.shared_bytes)
        simt_fail(site, "the kernel's shared memory has %zu bytes, the launch gave %zu", bytes,
                  simt_m.shared_bytes);
    return simt_m.now->warp->cta->shared;
}

void simt_rt_note(const void *p, size_t bytes, int write, simt_site_t site)
{
    simt_counters_t *n = &simt_m.count;
    if (bytes == 0 || bytes > 16 || (bytes & (bytes - 1)) || (uintptr_t)p % bytes)
        simt_fail(site, "%s of %zu bytes at %p: misaligned or no machine word",
                  write ? "store" : "load", bytes, p);
    const cta_t *c = simt_owner(p);
    if (c && c->cluster != simt_m.now->warp->cta->cluster)
        simt_fail(site, "shared memory of another cluster at %p", p);
    if (c)
        *(write ? &n->shared_written : &n->shared_read) += bytes;
    else
        *(write ? &n->global_written : &n->global_read) += bytes;
}
