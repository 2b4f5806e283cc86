/* What the threads of a block know in K2 and K3 (qr_block.cu), and how they reach elements. */
#ifndef KERNELS_CUDA_QR_BLOCK_H
#define KERNELS_CUDA_QR_BLOCK_H

#include "kernels/cuda/qr_move.h"
#include "kernels/cuda/qr_shared.h"

static const unsigned QR_ALL = 0xffffffffu;

#define QR_WIDTH(T) qr_type<T>::PANEL

/* Shared memory of a block: this at its beginning, the rest where qr_layout says. */
template <class T> struct block_shared {
    enum { W = QR_WIDTH(T) };
    alignas(16) T row[2][W]; /* the row of the diagonal before the reflector                    */
    T gram[W];               /* V^H v of the panel                                              */
    T sum[W * W], y[W * W];  /* V^H C, -T^H V^H C                                               */
    T t[3][W * W];           /* T of three panels, (row, q) at q W + row                        */
    simt_mbar_t full[2], empty[2]; /* a panel has come; its place may be written again          */
    simt_mbar_t loaded;            /* the matrix has come                                       */
    unsigned long long next;       /* the matrix that the queue gave                            */
    unsigned flag;
};
/* What each warp has. */
template <class T> struct warp_shared_t {
    enum { W = QR_WIDTH(T) };
    alignas(16) T part[2][W]; /* its share of a reflector's products, by parity                 */
    T z[W];                   /* what it multiplies with the tail                               */
    T again[W];               /* its share when a column is looked at again                     */
    T w[W * W];               /* its share of V^H C                                             */
    QR_REAL(T) square;        /* of the column looked at again: sum of squares, largest entry   */
    QR_BITS(QR_REAL(T)) peak;
};
/* T across the panels of a block. */
template <class T> struct tblock_shared {
    enum { W = QR_WIDTH(T) };
    T cross[QR_T_BLOCK * W];          /* V^H V between panels                                   */
    T block[QR_T_BLOCK * QR_T_BLOCK]; /* (row, column) at column 32 + row                       */
};

/* bad: this thread wrote an entry of R that is not finite. */
template <class T> struct block_ctx {
    block_shared<T> *s;
    warp_shared_t<T> *w, *own; /* of all warps, of this one                                     */
    tblock_shared<T> *tb;
    T *temp;                  /* in global memory, of an update in three stages                 */
    T *slabs, *panels, *late; /* slabs: of the block's own panels; panels: of others, or a copy */
    int *shift;
    const qr_args_t *a; /* the outputs of matrix b are looked up when they are wanted: registers */
    int64_t b;
    int m, n, k, nb, tid, lane, warp, threads, warps, rank, size;
    qr_t_way_t t;
    bool copied, bad;
    int places;           /* that panels of others come to                 */
    unsigned full, empty; /* a bit for each: the parity that is waited for */
    unsigned loaded;      /* the same of the matrix                        */

    enum { W = QR_WIDTH(T), EACH = QR_T_BLOCK / W };
};

/* Elements of 16 bytes, as one load. */
template <class T> struct alignas(16) qr_chunk {
    enum { N = 16 / sizeof(T) };
    T e[N];
};

/* Where chunk `at` of row i of a slab is, in chunks. */
template <class T> QR_INLINE int qr_chunk_at(int i, int at)
{
    enum { CHUNKS = QR_WIDTH(T) / qr_chunk<T>::N };
    const int turn = CHUNKS == 4 ? i >> 1 & 3 : i & 7;
    return i * CHUNKS + (at ^ turn);
}
/* Element (i, c) of a slab, in elements. */
template <class T> QR_INLINE int64_t qr_slot(int i, int c)
{
    enum { N = qr_chunk<T>::N };
    return (int64_t)qr_chunk_at<T>(i, c / N) * N + c % N;
}
/* `chunks` chunks of row i from the first on. */
template <class T, int CHUNKS> QR_INLINE void qr_get_chunks(T *to, const T *slab, int i, int first)
{
#pragma unroll
    for (int q = 0; q < CHUNKS; q++) {
        const qr_chunk<T> c = ((const qr_chunk<T> *)slab)[qr_chunk_at<T>(i, first + q)];
#pragma unroll
        for (int e = 0; e < qr_chunk<T>::N; e++)
            to[q * qr_chunk<T>::N + e] = c.e[e];
    }
}
template <class T, int CHUNKS>
QR_INLINE void qr_set_chunks(T *slab, const T *from, int i, int first)
{
#pragma unroll
    for (int q = 0; q < CHUNKS; q++) {
        qr_chunk<T> c;
#pragma unroll
        for (int e = 0; e < qr_chunk<T>::N; e++)
            c.e[e] = from[q * qr_chunk<T>::N + e];
        ((qr_chunk<T> *)slab)[qr_chunk_at<T>(i, first + q)] = c;
    }
}

template <class T> QR_INLINE qr_outputs<T> qr_out(const block_ctx<T> &x)
{
    return qr_outputs_of<T>(*x.a, x.b);
}

/* ---- panels and their owners ---- */
template <class T> QR_INLINE int qr_owner(const block_ctx<T> &x, int panel)
{
    return panel / block_ctx<T>::EACH % x.size;
}
template <class T> QR_INLINE int qr_local(const block_ctx<T> &x, int panel)
{
    enum { EACH = block_ctx<T>::EACH };
    return panel / (EACH * x.size) * EACH + panel % EACH;
}
template <class T> QR_INLINE T *qr_slab(const block_ctx<T> &x, int panel)
{
    return x.slabs + (int64_t)qr_local(x, panel) * ((x.m + 7) / 8 * 8) * QR_WIDTH(T);
}
/* Reflectors of a panel. */
template <class T> QR_INLINE int qr_reflectors(const block_ctx<T> &x, int panel)
{
    const int left = x.k - panel * QR_WIDTH(T);
    return left < QR_WIDTH(T) ? left : (int)QR_WIDTH(T);
}

/* Long sums are made of pieces of QR_PIECE terms, added up apart: in one running sum the rounding
 * errors of equal terms all have one sign and come to m u / 4. */
enum { QR_PIECE = 16 };
#define QR_FOR_PIECES(start, first, m, step)                                                       \
    for (int64_t start = (first); start < (m); start += (int64_t)QR_PIECE * (step))
#define QR_FOR_PIECE(i, start, m, step)                                                            \
    for (int i = (int)(start); i < (m) && i < (start) + QR_PIECE * (step); i += (step))
template <class T, int N> QR_INLINE void qr_clear(T *v)
{
#pragma unroll
    for (int i = 0; i < N; i++)
        v[i] = qr_zero<T>();
}
template <class T, int N> QR_INLINE void qr_add_to(T *sum, const T *v)
{
#pragma unroll
    for (int i = 0; i < N; i++)
        sum[i] = qr_add(sum[i], v[i]);
}

/* Sums of N numbers over the lanes of a warp, N a power of two up to 32: lane l gets that of number
 * l / (32 / N). The order of additions is fixed. */
template <class T, int HALF> QR_INLINE void qr_fold(T *v, int lane, int mask)
{
    if constexpr (HALF > 0) {
        const bool upper = lane & mask;
#pragma unroll
        for (int i = 0; i < HALF; i++) {
            const T send = upper ? v[i] : v[i + HALF], keep = upper ? v[i + HALF] : v[i];
            v[i] = qr_add(keep, simt_shfl_xor(QR_ALL, send, mask));
        }
        qr_fold<T, HALF / 2>(v, lane, mask / 2);
    } else
        for (; mask > 0; mask /= 2)
            v[0] = qr_add(v[0], simt_shfl_xor(QR_ALL, v[0], mask));
}
template <class T, int N> QR_INLINE T qr_warp_sums(T *v, int lane)
{
    qr_fold<T, N / 2>(v, lane, 16);
    return v[0];
}

/* True in every thread of the cluster when it is in one. */
template <class T> QR_INLINE bool qr_any(const block_ctx<T> &x, bool predicate)
{
    bool any = __syncthreads_or(predicate) != 0;
    if (x.size == 1)
        return any;
    if (x.tid == 0)
        x.s->flag = any;
    simt_cluster_sync();
    for (int r = 0; r < x.size; r++)
        any = *simt_map(&x.s->flag, (unsigned)r) != 0 || any;
    simt_cluster_sync();
    return any;
}

/* Looks at every column: *nonfinite, and in shift[] what it is divided by; a column that is has its
 * norm looked at. One warp to a panel, lanes to the rows. False: a norm is beyond the range. */
template <class T> QR_INLINE bool qr_prepare(const block_ctx<T> &x, bool *nonfinite)
{
    enum { W = QR_WIDTH(T), STEP = 32 / W };
    typedef QR_REAL(T) R;
    const int panels = qr_panels(x.n, W), c = x.lane % W;
    bool good = true;
    for (int p = 0, mine = 0; p < panels; p++) {
        if (qr_owner(x, p) != x.rank || mine++ % x.warps != x.warp)
            continue;
        T *slab = qr_slab(x, p);
        QR_BITS(R) peak = 0;
        for (int i = x.lane / W; i < x.m; i += STEP)
            peak = max(peak, qr_peak(slab[qr_slot<T>(i, c)]));
        for (int step = 16; step >= W; step /= 2)
            peak = max(peak, simt_shfl_xor(QR_ALL, peak, step));
        *nonfinite = *nonfinite || peak >= qr_real<R>::INF;
        const int shift = peak < qr_real<R>::INF ? qr_column_shift<R>(peak) : 0;
        if (x.lane < W)
            x.shift[qr_local(x, p) * W + c] = shift;
        if (!__any_sync(QR_ALL, shift != 0))
            continue;
        R square = 0;
        for (int i = x.lane / W; i < x.m; i += STEP) {
            T *at = &slab[qr_slot<T>(i, c)];
            *at = shift != 0 ? qr_shift(*at, -shift) : *at;
            square = qr_fma(qr_re(*at), qr_re(*at), qr_fma(qr_im(*at), qr_im(*at), square));
        }
        for (int step = 16; step >= W; step /= 2)
            square = square + simt_shfl_xor(QR_ALL, square, step);
        good = good && !qr_norm_too_large(square, shift);
    }
    return good;
}

#endif
