/* The trailing update of K2 and K3: C <- C - V T^H (V^H C) for one panel C of W columns at a time,
 * V in the form with ones and zeros; and T across the panels of a block of nb columns.
 *
 * V^H C: a warp takes every warps-th row and holds all W x W products, 1/32 of them in each lane;
 * the warps' shares are added up in shared memory. V times the small result: four lanes to a row.
 */
#ifndef KERNELS_CUDA_QR_UPDATE_H
#define KERNELS_CUDA_QR_UPDATE_H

#include "kernels/cuda/qr_block.h"

/* sum[l W + c] = (V^H C)(l, c) over rows c0 .. m-1; one barrier inside, the caller's next one makes
 * the result visible. */
template <class T> QR_INLINE void qr_products(const block_ctx<T> &x, const T *v, const T *c, int c0)
{
    enum {
        W = QR_WIDTH(T),
        ROWS = W / 4,
        COLS = W / 8,
        N = qr_chunk<T>::N,
        CHUNKS = (ROWS + N - 1) / N
    };
    const int first = x.lane / 8 * ROWS, col = x.lane % 8 * COLS;
    T sum[ROWS * COLS];
    qr_clear<T, ROWS * COLS>(sum);
    QR_FOR_PIECES(start, c0 + x.warp, x.m, x.warps)
    {
        T piece[ROWS * COLS];
        qr_clear<T, ROWS * COLS>(piece);
        QR_FOR_PIECE(i, start, x.m, x.warps)
        {
            T vi[CHUNKS * N];
            qr_get_chunks<T, CHUNKS>(vi, v, i, first / N);
            const T *ci = &c[qr_slot<T>(i, col)];
#pragma unroll
            for (int e = 0; e < COLS; e++)
#pragma unroll
                for (int l = 0; l < ROWS; l++)
                    piece[l * COLS + e] = qr_cmac(vi[l], ci[e], piece[l * COLS + e]);
        }
        qr_add_to<T, ROWS * COLS>(sum, piece);
    }
#pragma unroll
    for (int l = 0; l < ROWS; l++)
#pragma unroll
        for (int e = 0; e < COLS; e++)
            x.own->w[(first + l) * W + col + e] = sum[l * COLS + e];
    __syncthreads();
    for (int e = x.tid; e < W * W; e += x.threads) {
        T all = x.w[0].w[e];
        for (int w = 1; w < x.warps; w++)
            all = qr_add(all, x.w[w].w[e]);
        x.s->sum[e] = all;
    }
}

/* y = -T^H sum, or -T sum when not ADJOINT; the caller's barrier makes it visible. */
template <class T, int ADJOINT> QR_INLINE void qr_times_t(const block_ctx<T> &x, const T *t)
{
    enum { W = QR_WIDTH(T) };
    for (int e = x.tid; e < W * W; e += x.threads) {
        const int l = e / W, col = e % W;
        T sum = qr_zero<T>();
        for (int q = ADJOINT ? 0 : l; q < (ADJOINT ? l + 1 : W); q++)
            sum = qr_mac(qr_neg(ADJOINT ? qr_conj(t[l * W + q]) : t[q * W + l]),
                         x.s->sum[q * W + col], sum);
        x.s->y[e] = sum;
    }
}

/* C <- C + V y in rows c0 .. m-1. */
template <class T> QR_INLINE void qr_add_product(const block_ctx<T> &x, const T *v, T *c, int c0)
{
    enum { W = QR_WIDTH(T), COLS = W / 4, N = qr_chunk<T>::N, CHUNKS = COLS / N };
    const int col = x.lane % 4 * COLS;
    T y[W][COLS];
#pragma unroll
    for (int l = 0; l < W; l++)
#pragma unroll
        for (int e = 0; e < COLS; e++)
            y[l][e] = x.s->y[l * W + col + e];
    for (int i = c0 + x.warp * 8 + x.lane / 4; i < x.m; i += x.warps * 8) {
        T vi[W], ci[COLS];
        qr_get_chunks<T, W / N>(vi, v, i, 0);
        qr_get_chunks<T, CHUNKS>(ci, c, i, col / N);
#pragma unroll
        for (int l = 0; l < W; l++)
#pragma unroll
            for (int e = 0; e < COLS; e++)
                ci[e] = qr_mac(vi[l], y[l][e], ci[e]);
        qr_set_chunks<T, CHUNKS>(c, ci, i, col / N);
    }
}

/* C <- C - V T^H V^H C in rows c0 .. m-1; ADJOINT 0: with T in the place of T^H. */
template <class T, int ADJOINT = 1>
QR_INLINE void qr_apply(const block_ctx<T> &x, const T *v, const T *t, T *c, int c0)
{
    qr_products(x, v, c, c0);
    __syncthreads();
    qr_times_t<T, ADJOINT>(x, t);
    __syncthreads();
    qr_add_product(x, v, c, c0);
}

/* Columns of panel `p` of a block of T whose earlier panels are there: T12 = -T1 (V1^H V2) T2; and
 * all of them, zeros below included, to the output. v: the panel, in the form with ones and zeros.
 */
template <class T> QR_INLINE void qr_block_t(const block_ctx<T> &x, const T *v, const T *t, int p)
{
    enum { W = QR_WIDTH(T) };
    T *block = x.tb->block;
    const int rows = x.nb < x.k ? x.nb : x.k, first = p * W / x.nb * x.nb, c0 = p * W;
    const int before = c0 - first; /* columns of the block that are there */
    for (int q = first / W; q < p; q++) {
        qr_products(x, v, qr_slab(x, q), c0);
        __syncthreads();
        for (int e = x.tid; e < W * W; e += x.threads) /* V_q^H v = conj of (v^H V_q) */
            x.tb->cross[((q * W - first) + e % W) * W + e / W] = qr_conj(x.s->sum[e]);
    }
    __syncthreads();
    for (int e = x.tid; e < before * W; e += x.threads) {
        const int row = e / W, col = e % W;
        T sum = qr_zero<T>();
        for (int q = 0; q <= col; q++) /* (V1^H V2) T2 */
            sum = qr_mac(x.tb->cross[row * W + q], t[col * W + q], sum);
        block[(before + col) * QR_T_BLOCK + row] = sum;
    }
    __syncthreads();
    for (int e = x.tid; e < before * W; e += x.threads) {
        const int row = e / W, col = e % W;
        T sum = qr_zero<T>();
        for (int q = row; q < before; q++)
            sum = qr_mac(qr_neg(block[q * QR_T_BLOCK + row]),
                         block[(before + col) * QR_T_BLOCK + q], sum);
        x.tb->cross[e] = sum;
    }
    __syncthreads();
    for (int e = x.tid; e < rows * W; e += x.threads) {
        const int row = e / W, col = e % W;
        const T r = row < before         ? x.tb->cross[row * W + col]
                    : row - before > col ? qr_zero<T>()
                                         : t[col * W + row - before];
        block[(before + col) * QR_T_BLOCK + row] = r;
        if (c0 + col < x.k)
            simt_store_once(qr_at(qr_out(x).T_, row, c0 + col), r);
    }
}

/* The block of T with columns `first` .. `first` + nb - 1 from V, whose element (i, j) is v(i, j),
 * i
 * >= j; its diagonal, tau, is there. Column by column: V^H v in x.late, T read back. */
template <class T, class F>
QR_INLINE void qr_late_block(const block_ctx<T> &x, qr_cells<T> t, int first, F v)
{
    const int rows = x.nb < x.k ? x.nb : x.k;
    for (int j = first; j < x.k && j < first + rows; j++) {
        for (int q = first + x.warp; q < j; q += x.warps) {
            T sum = qr_zero<T>();
            QR_FOR_PIECES(start, j + x.lane, x.m, 32)
            {
                T piece = qr_zero<T>();
                QR_FOR_PIECE(i, start, x.m, 32)
                piece = qr_cmac(v(i, q), v(i, j), piece);
                sum = qr_add(sum, piece);
            }
            for (int s = 16; s > 0; s /= 2)
                sum = qr_add(sum, simt_shfl_xor(QR_ALL, sum, s));
            if (x.lane == 0)
                x.late[q - first] = sum;
        }
        __syncthreads();
        const T factor = qr_neg(simt_load(qr_at(t, j - first, j)));
        for (int l = x.tid; l < rows; l += x.threads) {
            if (l == j - first)
                continue;
            T sum = qr_zero<T>();
            for (int q = l; q < j - first; q++)
                sum = qr_mac(simt_load(qr_at(t, l, first + q)), x.late[q], sum);
            simt_store(qr_at(t, l, j), l < j - first ? qr_mul(factor, sum) : qr_zero<T>());
        }
        __syncthreads();
    }
}

#endif
