/* Two updates as they are written elsewhere, to measure the fused one of qr_update.h against:
 *
 * three stages: V^H C of all targets, T^H times that, V times that, each a pass of its own with its
 *   result in global memory, as calls of a library for products have it;
 * naive: one reflector after another, each with two passes over the target. */
#ifndef KERNELS_CUDA_QR_BASELINE_H
#define KERNELS_CUDA_QR_BASELINE_H

#include "kernels/cuda/qr_update.h"

/* W x W numbers between shared and global memory; two barriers, so that neighbours may use both. */
template <class T> QR_INLINE void qr_spill(const block_ctx<T> &x, T *global, const T *shared)
{
    enum { W = QR_WIDTH(T) };
    __syncthreads();
    for (int e = x.tid; e < W * W; e += x.threads)
        simt_store(&global[e], shared[e]);
}
template <class T> QR_INLINE void qr_fill(const block_ctx<T> &x, T *shared, const T *global)
{
    enum { W = QR_WIDTH(T) };
    __syncthreads();
    for (int e = x.tid; e < W * W; e += x.threads)
        shared[e] = simt_load(&global[e]);
    __syncthreads();
}

/* Panels from .. to - 1 of this block; temp: W x W numbers for each of them. */
template <class T>
QR_INLINE void qr_three_stages(const block_ctx<T> &x, const T *v, const T *t, int p, int from,
                               int to)
{
    enum { W = QR_WIDTH(T) };
    const int c0 = p * W;
    for (int q = from; q < to; q++)
        if (qr_owner(x, q) == x.rank) {
            qr_products(x, v, qr_slab(x, q), c0);
            qr_spill(x, x.temp + qr_local(x, q) * W * W, x.s->sum);
        }
    for (int q = from; q < to; q++)
        if (qr_owner(x, q) == x.rank) {
            qr_fill(x, x.s->sum, x.temp + qr_local(x, q) * W * W);
            qr_times_t<T, 1>(x, t);
            qr_spill(x, x.temp + qr_local(x, q) * W * W, x.s->y);
        }
    for (int q = from; q < to; q++)
        if (qr_owner(x, q) == x.rank) {
            qr_fill(x, x.s->y, x.temp + qr_local(x, q) * W * W);
            qr_add_product(x, v, qr_slab(x, q), c0);
        }
}

/* C <- (I - conj(tau) v v^H) C in rows c0 .. m-1, v column l of V: lanes to the columns. */
template <class T>
QR_INLINE void qr_rank_one(const block_ctx<T> &x, const T *v, int l, T tau, T *c, int c0)
{
    enum { W = QR_WIDTH(T), STEP = 32 / W };
    const int col = x.lane % W, first = c0 + x.warp * STEP + x.lane / W, step = x.warps * STEP;
    T sum = qr_zero<T>();
    QR_FOR_PIECES(start, first, x.m, step)
    {
        T piece = qr_zero<T>();
        QR_FOR_PIECE(i, start, x.m, step)
        piece = qr_cmac(v[qr_slot<T>(i, l)], c[qr_slot<T>(i, col)], piece);
        sum = qr_add(sum, piece);
    }
    for (int mask = 16; mask >= W; mask /= 2)
        sum = qr_add(sum, simt_shfl_xor(QR_ALL, sum, mask));
    if (x.lane < W)
        x.own->w[col] = sum;
    __syncthreads();
    sum = x.w[0].w[col];
    for (int w = 1; w < x.warps; w++)
        sum = qr_add(sum, x.w[w].w[col]);
    const T y = qr_mul(qr_neg(qr_conj(tau)), sum);
    for (int i = first; i < x.m; i += step) {
        T *at = &c[qr_slot<T>(i, col)];
        *at = qr_mac(v[qr_slot<T>(i, l)], y, *at);
    }
    __syncthreads();
}

template <class T>
QR_INLINE void qr_naive(const block_ctx<T> &x, const T *v, const T *t, int p, int from, int to)
{
    enum { W = QR_WIDTH(T) };
    for (int q = from; q < to; q++)
        for (int l = 0; l < qr_reflectors(x, p) && qr_owner(x, q) == x.rank; l++)
            qr_rank_one(x, v, l, t[l * W + l], qr_slab(x, q), p * W);
}

#endif
