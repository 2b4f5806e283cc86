/* Warp operations as rendezvous: each lane leaves its part and waits; the last one to come does the
 * work of all. Lanes meet when mask, operation and site agree (__syncwarp: mask and operation, its
 * two sides of a branch may pair). Shuffles and votes order no memory, as on the GPU. */
#include "tests/simt/simt_machine.h"

static const char *op_name(simt_warp_op_t op)
{
    static const char *const names[] = {
        "__syncwarp", "shuffle",  "shuffle xor", "shuffle up", "shuffle down", "vote",   "ldmatrix",
        "ldmatrix",   "mma tf32", "mma bf16",    "mma s8",     "mma e4m3",     "mma f64"};
    return names[op];
}

static bool meets(const thread_t *a, const thread_t *b)
{
    return a->op == b->op && a->mask == b->mask &&
           (a->op == SIMT_OP_SYNC ||
            (a->site.line == b->site.line && a->site.unique == b->site.unique));
}

static int source_lane(const thread_t *t)
{
    const simt_part_t *p = &t->part;
    const int first = t->lane & ~(p->width - 1), last = first + p->width - 1;
    int from;
    switch (t->op) {
    case SIMT_OP_SHFL:
        return first + (p->lane & (p->width - 1));
    case SIMT_OP_SHFL_XOR:
        from = t->lane ^ p->lane;
        /* PTX: the lane may lie below its own part of the warp, not above it. */
        return from > last ? t->lane : from;
    case SIMT_OP_SHFL_UP:
        from = t->lane - p->lane;
        return from < first ? t->lane : from;
    default:
        from = t->lane + p->lane;
        return from > last ? t->lane : from;
    }
}

static void shuffle(thread_t *lanes, uint32_t mask)
{
    unsigned char held[WARP][16];
    for (uint32_t left = mask; left; left &= left - 1) {
        const thread_t *t = &lanes[__builtin_ctz(left)];
        simt_move(held[t->lane], t->part.in, (size_t)t->part.size);
    }
    for (uint32_t left = mask; left; left &= left - 1) {
        const thread_t *t = &lanes[__builtin_ctz(left)];
        int from = source_lane(t);
        if (from < 0 || from >= WARP || !(mask >> from & 1))
            simt_fail(t->site, "%s: lane %d reads lane %d, which is outside the mask %#x",
                      op_name(t->op), t->lane, from, mask);
        simt_move(t->part.out, held[from], (size_t)t->part.size);
    }
    simt_m.count.shuffles++;
}

static void vote(thread_t *lanes, uint32_t mask)
{
    uint32_t result = 0;
    for (uint32_t left = mask; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        if (*(const int *)lanes[lane].part.in)
            result |= 1u << lane;
    }
    for (uint32_t left = mask; left; left &= left - 1)
        *(uint32_t *)lanes[__builtin_ctz(left)].part.out = result;
    simt_m.count.votes++;
}

/* Matrix i has its rows at the addresses of lanes 8 i to 8 i + 7; lane l receives elements 2 (l %
 * 4) and the next of row l / 4 (transposed: of column l / 4). */
static void ldmatrix(thread_t *lanes, bool trans)
{
    const int count = lanes[0].part.size;
    for (int i = 0; i < count; i++) {
        uint16_t m[8][8];
        for (int r = 0; r < 8; r++) {
            const thread_t *t = &lanes[8 * i + r];
            if ((uintptr_t)t->part.in % 16)
                simt_fail(t->site, "ldmatrix: row %p is not on 16 bytes", t->part.in);
            if (simt_owner(t->part.in) != t->warp->cta)
                simt_fail(t->site, "ldmatrix: row %p is not shared memory of this block",
                          t->part.in);
            simt_move(m[r], t->part.in, 16);
        }
        for (int l = 0; l < WARP; l++) {
            int row = l / 4, column = 2 * (l % 4);
            uint32_t low = trans ? m[column][row] : m[row][column];
            uint32_t high = trans ? m[column + 1][row] : m[row][column + 1];
            ((uint32_t *)lanes[l].part.out)[i] = low | high << 16;
        }
    }
    simt_m.count.ldmatrix++;
}

static void perform(warp_t *w, simt_warp_op_t op, uint32_t mask)
{
    switch (op) {
    case SIMT_OP_SYNC:
        w->syncs[__builtin_ctz(mask)]++;
        simt_m.count.warp_syncs++;
        break;
    case SIMT_OP_SHFL:
    case SIMT_OP_SHFL_XOR:
    case SIMT_OP_SHFL_UP:
    case SIMT_OP_SHFL_DOWN:
        shuffle(w->thread, mask);
        break;
    case SIMT_OP_BALLOT:
        vote(w->thread, mask);
        break;
    case SIMT_OP_LDMATRIX:
    case SIMT_OP_LDMATRIX_TRANS:
        ldmatrix(w->thread, op == SIMT_OP_LDMATRIX_TRANS);
        break;
    default:
        simt_warp_mma(op, w->thread);
        simt_m.count.mma++;
    }
}

static _Noreturn void diverged(const thread_t *t, const thread_t *other)
{
    simt_fail(t->site,
              "divergent warp operation: lane %d at %s with mask %#x, lane %d at %s with mask %#x "
              "at %s:%d",
              t->lane, op_name(t->op), t->mask, other->lane, op_name(other->op), other->mask,
              other->site.file, other->site.line);
}

void simt_rt_warp(simt_warp_op_t op, uint32_t mask, const simt_part_t *part, simt_site_t site)
{
    thread_t *t = simt_m.now;
    warp_t *w = t->warp;
    const uint32_t own = 1u << t->lane;
    if (op == SIMT_OP_SYNC && simt_dropped(site))
        return;
    if (!(mask & own))
        simt_fail(site, "%s: lane %d is not in its own mask %#x", op_name(op), t->lane, mask);
    if (mask & ~w->live)
        simt_fail(site, "%s: mask %#x names lane %d, which has exited or never was", op_name(op),
                  mask, __builtin_ctz(mask & ~w->live));
    t->op = op;
    t->mask = mask;
    t->part = *part;
    t->site = site;
    w->in_op |= own;
    void *object = NULL;
    if (op == SIMT_OP_SYNC) {
        int first = __builtin_ctz(mask);
        object = &w->tag[first][w->syncs[first] & 1];
        simt_tsan_release(object);
    }
    for (uint32_t left = w->in_op & mask & ~own; left; left &= left - 1) {
        const thread_t *other = &w->thread[__builtin_ctz(left)];
        if ((other->mask & own) && !meets(t, other))
            diverged(t, other);
        if (other->mask & own)
            break; /* the others of this meeting were compared with that one */
    }
    bool all = (w->in_op & mask) == mask;
    for (uint32_t left = all ? mask & ~own : 0; left && all; left &= left - 1)
        all = meets(t, &w->thread[__builtin_ctz(left)]);
    if (!all) {
        simt_block(WAIT_WARP, site);
    } else {
        perform(w, op, mask);
        w->in_op &= ~mask;
        simt_wake(w, mask);
        simt_yield();
    }
    if (object)
        simt_tsan_acquire(object);
}

void simt_warp_exit(thread_t *t)
{
    const warp_t *w = t->warp;
    for (uint32_t left = w->in_op; left; left &= left - 1) {
        const thread_t *other = &w->thread[__builtin_ctz(left)];
        if (other->mask >> t->lane & 1)
            simt_fail(other->site, "%s: mask %#x names lane %d, which has exited",
                      op_name(other->op), other->mask, t->lane);
    }
}
