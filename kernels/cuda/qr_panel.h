/* One panel of K2 and K3: W columns of m rows, a thread to each row of a round.
 *
 * A pass over the rows applies reflector j and, in the same sweep, multiplies the new column j + 1
 * with all columns: its own sum of squares, w = v^H a of those to the right, V^H v of those to the
 * left for T. Each warp sums its rows by shuffles; after the pass's one barrier every warp adds the
 * warps' shares up for itself, so that nothing has to be handed round. */
#ifndef KERNELS_CUDA_QR_PANEL_H
#define KERNELS_CUDA_QR_PANEL_H

#include "kernels/cuda/qr_block.h"

/* A panel while it is factored: p its slab (or the copy in shared memory), c0 its first column and
 * row, t its T. */
template <class T> struct qr_panel {
    T *p, *t;
    const int *shift;
    int c0, count; /* count: reflectors */
};

/* Sums over the rows of a warp, to its share. */
template <class T> QR_INLINE void qr_share_sums(const block_ctx<T> &x, T *share, T *v)
{
    enum { W = QR_WIDTH(T) };
    const T sum = qr_warp_sums<T, W>(v, x.lane);
    if (x.lane % (32 / W) == 0)
        share[x.lane / (32 / W)] = sum;
}

/* Row i below reflector j's: the reflector applied (j < 0: none), then its product with the entry
 * of column j + 1 added to sum, or, on the diagonal of that column, the row shown to all. */
template <class T>
QR_INLINE void qr_pass_row(const block_ctx<T> &x, const qr_panel<T> &q, int i, int j, T scale,
                           const T *z, T *sum)
{
    enum { W = QR_WIDTH(T), CHUNKS = W / qr_chunk<T>::N };
    const int next = j + 1, column = next < W ? next : 0;
    T r[W], head = q.p[qr_slot<T>(i, column)];
    qr_get_chunks<T, CHUNKS>(r, q.p, i, 0);
    if (j >= 0) {
        const T tail = q.p[qr_slot<T>(i, j)];
        head = qr_mac(tail, x.own->z[column], head);
#pragma unroll
        for (int c = 0; c < W; c++)
            r[c] = qr_mac(tail, z[c], r[c]);
        qr_set_chunks<T, CHUNKS>(q.p, r, i, 0);
        q.p[qr_slot<T>(i, j)] = qr_mul(tail, scale);
    }
    const bool diagonal = i == q.c0 + next;
#pragma unroll
    for (int c = 0; c < W; c++)
        if (diagonal)
            x.s->row[next % 2][c] = r[c];
        else
            sum[c] = qr_cmac(head, r[c], sum[c]);
}

/* One pass over the rows below reflector j's. */
template <class T>
QR_INLINE void qr_pass(const block_ctx<T> &x, const qr_panel<T> &q, int j, T scale)
{
    enum { W = QR_WIDTH(T) };
    T z[W], sum[W];
    qr_clear<T, W>(sum);
#pragma unroll
    for (int c = 0; c < W; c++)
        z[c] = j < 0 ? qr_zero<T>() : x.own->z[c];
    QR_FOR_PIECES(start, q.c0 + x.tid, x.m, x.threads)
    {
        T piece[W];
        qr_clear<T, W>(piece);
        QR_FOR_PIECE(i, start, x.m, x.threads)
        if (i > q.c0 + j)
            qr_pass_row(x, q, i, j, scale, z, piece);
        qr_add_to<T, W>(sum, piece);
    }
    if (j + 1 < q.count)
        qr_share_sums(x, x.own->part[(j + 1) % 2], sum);
}

/* The second look at column j, when its squares left the safe range: scaled by a power of two. */
template <class T>
QR_INLINE qr_reflector<T> qr_look_again(const block_ctx<T> &x, const qr_panel<T> &q, int j, T alpha,
                                        int c, T *dot)
{
    enum { W = QR_WIDTH(T) };
    typedef QR_REAL(T) R;
    QR_BITS(R) peak = 0;
    for (int i = q.c0 + x.tid; i < x.m; i += x.threads)
        peak = i > q.c0 + j ? max(peak, qr_peak(q.p[qr_slot<T>(i, j)])) : peak;
    for (int step = 16; step > 0; step /= 2)
        peak = max(peak, simt_shfl_xor(QR_ALL, peak, step));
    if (x.lane == 0)
        x.own->peak = peak;
    __syncthreads();
    for (int w = 0; w < x.warps; w++)
        peak = max(peak, x.w[w].peak);
    const R pre = qr_pre<R>(max(peak, qr_peak(alpha)));
    T sum[W];
    R square = 0;
    qr_clear<T, W>(sum);
    QR_FOR_PIECES(start, q.c0 + x.tid, x.m, x.threads)
    {
        T piece[W];
        R squares = 0;
        qr_clear<T, W>(piece);
        QR_FOR_PIECE(i, start, x.m, x.threads)
        {
            if (i <= q.c0 + j)
                continue;
            T r[W];
            const T head = qr_scale(q.p[qr_slot<T>(i, j)], pre);
            qr_get_chunks<T, W / qr_chunk<T>::N>(r, q.p, i, 0);
#pragma unroll
            for (int e = 0; e < W; e++)
                piece[e] = qr_cmac(head, r[e], piece[e]);
            squares = qr_fma(qr_re(head), qr_re(head), qr_fma(qr_im(head), qr_im(head), squares));
            q.p[qr_slot<T>(i, j)] = head;
        }
        qr_add_to<T, W>(sum, piece);
        square = square + squares;
    }
    qr_share_sums(x, x.own->again, sum);
    for (int step = 16; step > 0; step /= 2)
        square = square + simt_shfl_xor(QR_ALL, square, step);
    if (x.lane == 0)
        x.own->square = square;
    __syncthreads();
    *dot = x.w[0].again[c];
    square = x.w[0].square;
    for (int w = 1; w < x.warps; w++) {
        *dot = qr_add(*dot, x.w[w].again[c]);
        square = square + x.w[w].square;
    }
    return qr_reflect(qr_scale(alpha, pre), square, pre, peak == 0 && qr_im(alpha) == 0);
}

/* Column j of the panel's T, by one warp: lane `row` owns row `row`. */
template <class T>
QR_INLINE void qr_extend_t(const block_ctx<T> &x, const qr_panel<T> &q, int j, T tau, T w)
{
    enum { W = QR_WIDTH(T) };
    if (x.lane < W)
        x.s->gram[x.lane] = qr_conj(w);
    __syncwarp();
    T sum = qr_zero<T>();
    for (int e = 0; e < j; e++)
        if (x.lane <= e)
            sum = qr_mac(q.t[e * W + x.lane], x.s->gram[e], sum);
    if (x.lane < W)
        q.t[j * W + x.lane] = x.lane > j    ? qr_zero<T>()
                              : x.lane == j ? tau
                                            : qr_mul(qr_neg(tau), sum);
}

/* What warp 0 does beside: row j of R to the outputs, the unit row of V in its place, tau, T. */
template <class T>
QR_INLINE void qr_finish_row(block_ctx<T> &x, const qr_panel<T> &q, int j, const qr_reflector<T> &h,
                             T w, T r)
{
    const int c = x.lane, i = q.c0 + j, col = q.c0 + c;
    const qr_outputs<T> out = qr_out(x);
    if (c < QR_WIDTH(T) && c >= j) {
        q.p[qr_slot<T>(i, c)] = qr_make<T>(c == j, 0);
        if (col < x.n)
            x.bad = !qr_put_r(out, i, col, r, q.shift[c]) || x.bad;
    }
    if (out.tau.p && c == 0)
        simt_store_once(qr_at(out.tau, i, 0), h.tau);
    if (x.t == QR_T_LATE && c == 0) /* where late_t finds it */
        simt_store(qr_at(out.T_, i % x.nb, i), h.tau);
    qr_extend_t(x, q, j, h.tau, w);
}

/* All reflectors of a panel; its rows hold V with ones and zeros afterwards, T is in q.t. */
template <class T> QR_INLINE void qr_factor_panel(block_ctx<T> &x, const qr_panel<T> &q)
{
    enum { W = QR_WIDTH(T) };
    const int c = x.lane < W ? x.lane : 0;
    T before = qr_one<T>(); /* scale of the reflector before: its column was not yet v */
    qr_pass(x, q, -1, before);
    for (int j = 0; j < q.count; j++) {
        __syncthreads();
        T dot = x.w[0].part[j % 2][c], head = x.s->row[j % 2][c];
        for (int w = 1; w < x.warps; w++)
            dot = qr_add(dot, x.w[w].part[j % 2][c]);
        const bool last = q.c0 + j == x.m - 1;
        if (c == j - 1) {
            dot = qr_mul(dot, before);
            head = qr_mul(head, before);
        }
        const QR_REAL(T) square = simt_shfl(QR_ALL, qr_re(dot), j);
        const T alpha = simt_shfl(QR_ALL, head, j);
        qr_reflector<T> h;
        if (!last && !qr_square_safe(square))
            h = qr_look_again(x, q, j, alpha, c, &dot);
        else
            h = qr_reflect<T>(alpha, square, 1, last && qr_im(alpha) == 0);
        const T w = qr_cmac(h.scale, dot, head), y = qr_mul(qr_neg(qr_conj(h.tau)), w);
        if (x.lane < W)
            x.own->z[c] = c > j ? qr_mul(h.scale, y) : qr_zero<T>();
        __syncwarp();
        if (x.warp == 0)
            qr_finish_row(x, q, j, h, w, c == j ? qr_make<T>(h.beta, 0) : qr_add(head, y));
        qr_pass(x, q, j, h.scale);
        before = h.scale;
    }
    if (x.warp == 0) /* columns of T without a reflector */
        for (int j = q.count; j < W; j++)
            if (x.lane < W)
                q.t[j * W + x.lane] = qr_zero<T>();
}

#endif
