/* K2 and K3: one matrix in one block, or in a cluster of blocks; compact WY, right-looking.
 *
 * Columns are dealt out by panels (qr_shared.h), not rows: a panel's reflectors are then one
 * block's business, with a block's barriers, and the cluster meets once a panel instead of once a
 * column. The owner of panel p factors it (qr_panel.h) and pushes V and T into shared memory of the
 * others by bulk copies, which complete on their mbarriers; each block updates its own columns
 * (qr_update.h). The owner of panel p + 1 updates that panel first, factors and pushes it, and then
 * does the rest of update p (look-ahead). K2 is the cluster of one, which pushes nothing.
 *
 * Where the matrix is: RESIDENT, in shared memory, read once and written once; or in global memory
 * (a private copy for each block, cluster of one), with the panel in shared memory when it fits.
 * Rows of R leave when their reflector is made, which leaves V in the slab as the update wants it,
 * with its ones and zeros. T of nb columns comes with the panels when nb is a multiple of the
 * panel and at most 32, else from V at the end.
 *
 * Barriers: one of the block a reflector, three a panel and target; with clusters, full[] (a panel
 * has come: one arrival and its bytes) and empty[] (all others have done with what is there), for
 * each of the one or two places that panels come to; a cluster barrier before the first push and
 * after the last read. Shared memory: qr_layout. Limits: 32-bit m and n; nb when T is made late. */
#include "kernels/cuda/qr_baseline.h"
#include "kernels/cuda/qr_kernels.h"
#include "kernels/cuda/qr_panel.h"

/* ---- in and out ---- */

/* Elements of the block's panels in the order of the matrix's memory: f(panel, row, column). */
template <class T, class F> QR_INLINE void for_elements(const block_ctx<T> &x, bool by_rows, F f)
{
    enum { W = QR_WIDTH(T) };
    const int panels = qr_panels(x.n, W);
    for (int p = 0; p < panels; p++) {
        if (qr_owner(x, p) != x.rank)
            continue;
        for (int64_t e = x.tid; e < (int64_t)x.m * W; e += x.threads)
            f(p, (int)(by_rows ? e / W : e % x.m), (int)(by_rows ? e % W : e / x.m));
    }
}

/* One box a panel, rows turned as slabs have them; columns past the last come as zeros. All threads
 * have done with what was in the slabs, and say so to the copies. */
template <class T> QR_INLINE void load_boxes(block_ctx<T> &x, const qr_args_t &a, int64_t b)
{
    enum {
        W = QR_WIDTH(T),
        PIECES = sizeof(T) == 16 ? 2 : 1
    }; /* the map's elements have 8 bytes */
    const int panels = qr_panels(x.n, W);
    simt_proxy_fence(); /* redundant on the CPU, which orders a copy's writes after all before it */
    __syncthreads();    /* redundant likewise: every thread's fence comes before the copies */
    if (x.tid == 0) {
        int mine = 0;
        for (int p = 0; p < panels; p++)
            mine += qr_owner(x, p) == x.rank;
        simt_mbar_arrive_tx(&x.s->loaded, (unsigned)(mine * x.m * W * (int)sizeof(T)));
        for (int p = 0; p < panels; p++)
            if (qr_owner(x, p) == x.rank)
                simt_tma_load_3d(qr_slab(x, p), &a.map, p * W * PIECES, 0, (int)b, &x.s->loaded);
    }
    simt_mbar_wait(&x.s->loaded, x.loaded);
    x.loaded ^= 1;
}

template <class T> QR_INLINE void load(block_ctx<T> &x, const qr_args_t &a, int64_t b)
{
    enum { W = QR_WIDTH(T) };
    if (a.tma) {
        load_boxes(x, a, b);
        return;
    }
    const qr_cells<T> A = qr_matrix<T>(a.A, b, x.m, x.n);
    for_elements(x, A.cs == 1, [&](int p, int i, int c) {
        const int col = p * W + c;
        qr_slab(x, p)[qr_slot<T>(i, c)] =
            col < x.n ? simt_load_once(qr_at(A, i, col)) : qr_zero<T>();
    });
}

/* V, and R above the rows of each panel, which left when they were made. */
template <class T> QR_INLINE bool store(const block_ctx<T> &x)
{
    enum { W = QR_WIDTH(T) };
    const qr_outputs<T> out = qr_out(x);
    const qr_cells<T> first = out.V.p ? out.V : out.packed.p ? out.packed : out.R;
    bool finite = true;
    for_elements(x, first.cs == 1, [&](int p, int i, int c) {
        const int c0 = p * W, j = c0 + c;
        if (j >= x.n)
            return;
        const T value = qr_slab(x, p)[qr_slot<T>(i, c)];
        if (i > j)
            qr_put_v(out, x.k, i, j, value);
        else
            qr_put_unit(out, x.k, i, j);
        if (i < c0)
            finite = qr_put_r(out, i, j, value, x.shift[qr_local(x, p) * W + c]) && finite;
    });
    return finite;
}

/* ---- T from V, afterwards ---- */

/* Element (i, j) of V, whoever has it. */
template <class T> QR_INLINE T element_of_v(const block_ctx<T> &x, int i, int j)
{
    const int p = j / QR_WIDTH(T), owner = qr_owner(x, p);
    const T *slab = qr_slab(x, p);
    if (owner != x.rank)
        slab = simt_map(slab, (unsigned)owner);
    return slab[qr_slot<T>(i, j % QR_WIDTH(T))];
}

/* Blocks of T dealt out over the cluster. */
template <class T> QR_INLINE void late_t(const block_ctx<T> &x)
{
    const int step = x.nb < x.k ? x.nb : x.k;
    for (int first = x.rank * step; first < x.k; first += x.size * step)
        qr_late_block(x, qr_out(x).T_, first, [&](int i, int j) { return element_of_v(x, i, j); });
}

/* ---- a panel travels ---- */

/* Where others' panel p comes to, or a copy of an own one is. */
template <class T> QR_INLINE T *place_of(const block_ctx<T> &x, int p)
{
    const size_t each = qr_slab_bytes(sizeof(T), QR_WIDTH(T), x.m);
    return (T *)((char *)x.panels + p % x.places * each);
}
/* Where this block reads V of panel p. */
template <class T> QR_INLINE T *panel_of(const block_ctx<T> &x, int p)
{
    return qr_owner(x, p) == x.rank && !x.copied ? qr_slab(x, p) : place_of(x, p);
}
template <class T> QR_INLINE void copy_rows(const block_ctx<T> &x, T *to, const T *from, int first)
{
    enum { CHUNKS = QR_WIDTH(T) / qr_chunk<T>::N };
    for (int64_t e = (int64_t)first * CHUNKS + x.tid; e < (int64_t)x.m * CHUNKS; e += x.threads)
        ((qr_chunk<T> *)to)[e] = ((const qr_chunk<T> *)from)[e];
}

/* From one thread of the owner to all others: V's rows from its diagonal on, and T. */
template <class T> QR_INLINE void push(const block_ctx<T> &x, int p)
{
    enum { W = QR_WIDTH(T) };
    const int c0 = p * W;
    const unsigned bytes = (unsigned)((x.m - c0) * W * sizeof(T));
    T *to = place_of(x, p);
    for (int r = 0; r < x.size; r++) {
        if (r == x.rank)
            continue;
        simt_mbar_t *full = simt_map(&x.s->full[p % x.places], (unsigned)r);
        simt_bulk_push(simt_map(to + (int64_t)c0 * W, (unsigned)r), qr_slab(x, p) + (int64_t)c0 * W,
                       bytes, full);
        simt_bulk_push(simt_map(x.s->t[p % 3], (unsigned)r), x.s->t[p % 3],
                       (unsigned)sizeof x.s->t[0], full);
    }
}
template <class T> QR_INLINE void receive(block_ctx<T> &x, int p)
{
    enum { W = QR_WIDTH(T) };
    if (x.size == 1 || qr_owner(x, p) == x.rank)
        return;
    if (x.tid == 0)
        simt_mbar_arrive_tx(&x.s->full[p % x.places],
                            (unsigned)((x.m - p * W) * W * sizeof(T) + sizeof x.s->t[0]));
    simt_mbar_wait(&x.s->full[p % x.places], x.full >> p % x.places & 1);
    x.full ^= 1u << p % x.places;
}
/* Tells the owner of the panel that will come to the same place that it is free here. */
template <class T> QR_INLINE void release(const block_ctx<T> &x, int p, int panels)
{
    const int next = p + x.places;
    if (x.size == 1 || next >= panels || qr_owner(x, next) == x.rank)
        return;
    __syncthreads();
    if (x.tid == 0)
        simt_mbar_arrive_remote(&x.s->empty[p % x.places], (unsigned)qr_owner(x, next));
}

/* ---- factorisation ---- */

template <class T> QR_INLINE void factor(block_ctx<T> &x, int p)
{
    enum { W = QR_WIDTH(T) };
    T *slab = qr_slab(x, p);
    const qr_panel<T> q = {panel_of(x, p), x.s->t[p % 3], x.shift + qr_local(x, p) * W, p * W,
                           qr_reflectors(x, p)};
    if (x.copied)
        copy_rows(x, q.p, slab, p * W);
    if (x.copied)
        __syncthreads();
    qr_factor_panel(x, q);
    if (x.size > 1)
        simt_proxy_fence();
    __syncthreads();
    if (x.copied)
        copy_rows(x, slab, q.p, p * W);
    if (x.size == 1)
        return;
    /* One thread alone: the barrier may be two phases on before a slow one looks at it. */
    if (p >= x.places && x.tid == 0)
        simt_mbar_wait(&x.s->empty[p % x.places], x.empty >> p % x.places & 1);
    if (p >= x.places)
        x.empty ^= 1u << p % x.places;
    if (x.tid == 0)
        push(x, p);
}

/* BASELINE: one of qr_baseline.h's. It is a kernel of its own, as it would take registers. */
template <class T, bool BASELINE>
QR_INLINE void update(const block_ctx<T> &x, int p, int from, int to)
{
    const T *v = panel_of(x, p), *t = x.s->t[p % 3];
    if (BASELINE) {
        if (x.a->variant & QR_THREE_STAGE)
            qr_three_stages(x, v, t, p, from, to);
        else
            qr_naive(x, v, t, p, from, to);
        return;
    }
    for (int q = from; q < to; q++)
        if (qr_owner(x, q) == x.rank)
            qr_apply(x, v, t, qr_slab(x, q), p * QR_WIDTH(T));
}

template <class T, bool BASELINE> QR_INLINE void factor_matrix(block_ctx<T> &x, bool ahead)
{
    enum { W = QR_WIDTH(T) };
    const int panels = qr_panels(x.k, W), all = qr_panels(x.n, W);
    for (int p = 0; p < panels; p++) {
        const bool mine = qr_owner(x, p) == x.rank;
        if (mine && (p == 0 || !ahead))
            factor(x, p);
        receive(x, p);
        int from = p + 1;
        if (ahead && from < panels && qr_owner(x, from) == x.rank) {
            update<T, BASELINE>(x, p, from, from + 1);
            __syncthreads();
            factor(x, from);
            from++;
        }
        update<T, BASELINE>(x, p, from, all);
        if (mine && x.t == QR_T_PANELS)
            qr_block_t(x, panel_of(x, p), x.s->t[p % 3], p);
        release(x, p, panels);
        __syncthreads();
    }
}

template <class T, bool BASELINE>
QR_INLINE void one_matrix(block_ctx<T> &x, const qr_args_t &a, int64_t b)
{
    x.b = b;
    x.bad = false;
    load(x, a, b);
    __syncthreads();
    bool nonfinite = false;
    const bool good = qr_prepare(x, &nonfinite);
    nonfinite = qr_any(x, nonfinite);
    bool spoiled = nonfinite;
    if (!nonfinite) {
        factor_matrix<T, BASELINE>(x, x.size > 1 && !(a.variant & QR_NO_LOOKAHEAD));
        x.bad = !store(x) || x.bad;
        spoiled = qr_any(x, x.bad || !good);
        if (!spoiled && x.t == QR_T_LATE)
            late_t(x);
    }
    if (x.size > 1)
        simt_cluster_sync();
    if (spoiled && x.rank == 0)
        qr_spoil(qr_out(x), a, x.tid, x.threads);
    if (a.info && x.rank == 0 && x.tid == 0)
        simt_store(&a.info[b], (uint8_t)(nonfinite ? GB10_INFO_NONFINITE
                                         : spoiled ? GB10_INFO_NOT_REPRESENTABLE
                                                   : GB10_INFO_OK));
}

/* The next matrix of this block or cluster: from the queue, or every clusters-th. */
template <class T>
QR_INLINE int64_t next_matrix(const block_ctx<T> &x, const qr_args_t &a, int64_t b)
{
    if (a.variant & QR_STATIC)
        return b < 0 ? blockIdx.x / x.size : b + gridDim.x / x.size;
    if (x.rank == 0 && x.tid == 0) {
        const unsigned long long next = atomicAdd(a.ticket, 1ull);
        for (int r = 0; r < x.size; r++)
            *(x.size > 1 ? simt_map(&x.s->next, (unsigned)r) : &x.s->next) = next;
    }
    if (x.size > 1)
        simt_cluster_sync();
    else
        __syncthreads();
    return (int64_t)x.s->next;
}

template <class T> QR_INLINE block_ctx<T> context(const qr_args_t &a, block_shared<T> *s)
{
    block_ctx<T> x;
    x.s = s;
    x.a = &a;
    x.m = a.m, x.n = a.n, x.nb = a.nb;
    x.k = a.m < a.n ? a.m : a.n;
    x.tid = (int)threadIdx.x, x.lane = x.tid % 32, x.warp = x.tid / 32;
    x.threads = (int)blockDim.x, x.warps = x.threads / 32;
    x.rank = (int)simt_cluster_rank(), x.size = (int)simt_cluster_size();
    char *shared = (char *)s;
    x.w = (warp_shared_t<T> *)(shared + a.layout.warps);
    x.own = x.w + x.warp;
    x.tb = (tblock_shared<T> *)(shared + a.layout.t);
    x.late = (T *)(shared + a.layout.t);
    x.shift = (int *)(shared + a.layout.shift);
    char *work = a.work + blockIdx.x * a.stride;
    x.slabs = (T *)(a.global ? work : shared + a.layout.slabs);
    x.temp = (T *)(work + a.global);
    x.panels = (T *)(shared + a.layout.panel);
    x.copied = a.layout.copied;
    x.places = a.layout.places;
    x.t = a.t;
    x.full = x.empty = x.loaded = 0;
    return x;
}

template <class T, bool BASELINE>
SIMT_KERNEL(qr_block, SIMT_BOUNDS(32 * QR_WARPS, sizeof(T) == 16 || BASELINE ? 1 : 2), a, qr_args_t)
{
    SIMT_SHARED(s, block_shared<T>);
    block_ctx<T> x = context<T>(a, s);
    if (x.tid == 0) {
        simt_mbar_init(&s->loaded, 1);
        for (int i = 0; i < x.places && x.size > 1; i++) {
            simt_mbar_init(&s->full[i], 1);
            simt_mbar_init(&s->empty[i], (unsigned)x.size - 1);
        }
        simt_mbar_init_fence();
    }
    if (x.size > 1)
        simt_cluster_sync(); /* redundant on the CPU alone: all blocks of a cluster begin at once */
    int64_t b = -1;
    while ((b = next_matrix(x, a, b)) < a.count)
        one_matrix<T, BASELINE>(x, a, b);
}

template <class T>
static gb10_status_t go(const simt_launch_t *how, const qr_args_t *a, gb10_error_t *err)
{
    static_assert(sizeof(block_shared<T>) <= QR_FIXED_BYTES(sizeof(T), QR_WIDTH(T)) &&
                      sizeof(warp_shared_t<T>) <= QR_WARP_BYTES(sizeof(T), QR_WIDTH(T)) &&
                      sizeof(tblock_shared<T>) <= QR_T_BYTES(sizeof(T), QR_WIDTH(T)),
                  "qr_layout");
    return simt_launch(
        how, a->variant & (QR_THREE_STAGE | QR_NAIVE) ? qr_block<T, true> : qr_block<T, false>, a,
        err);
}

gb10_status_t qr_block_launch(gb10_dtype_t dtype, const simt_launch_t *how, const qr_args_t *a,
                              gb10_error_t *err)
{
    static gb10_status_t (*const type[GB10_DTYPES])(const simt_launch_t *, const qr_args_t *,
                                                    gb10_error_t *) = {go<float>, go<double>,
                                                                       go<cfloat_t>, go<cdouble_t>};
    return type[dtype](how, a, err);
}
