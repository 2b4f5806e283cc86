/* Elements of a batch by index, and the outputs of one matrix. */
#ifndef KERNELS_CUDA_QR_MOVE_H
#define KERNELS_CUDA_QR_MOVE_H

#include "kernels/cuda/qr_args.h"
#include "kernels/cuda/qr_num.h"

/* One matrix: element (i, j) is p[i rs + j cs]; p null: not wanted. */
template <class T> struct qr_cells {
    T *p;
    int64_t rs, cs;
};

template <class T>
QR_INLINE qr_cells<T> qr_matrix(const qr_view_t &v, int64_t b, int64_t rows, int64_t cols)
{
    T *p = (T *)v.base;
    if (v.list)
        p = (T *)simt_load(&v.list[b]);
    else if (v.width)
        p += b / v.width * rows * cols * v.width + b % v.width;
    else if (p)
        p += b * v.bs;
    return {p, v.rs, v.cs};
}
template <class T> QR_INLINE T *qr_at(qr_cells<T> c, int64_t i, int64_t j)
{
    return &c.p[i * c.rs + j * c.cs];
}

/* The outputs of one matrix. */
template <class T> struct qr_outputs {
    qr_cells<T> V, T_, R, tau, packed;
};
template <class T> QR_INLINE qr_outputs<T> qr_outputs_of(const qr_args_t &a, int64_t b)
{
    const int k = a.m < a.n ? a.m : a.n, rows = a.nb < k ? a.nb : k;
    return {qr_matrix<T>(a.V, b, a.m, k), qr_matrix<T>(a.T, b, rows, k),
            qr_matrix<T>(a.R, b, k, a.n), qr_matrix<T>(a.tau, b, k, 1),
            qr_matrix<T>(a.packed, b, a.m, a.n)};
}

/* Element (i, j) of the factored matrix. Below the diagonal it is V's. */
template <class T> QR_INLINE void qr_put_v(const qr_outputs<T> &out, int k, int i, int j, T x)
{
    if (out.packed.p)
        simt_store_once(qr_at(out.packed, i, j), x);
    if (out.V.p && j < k)
        simt_store_once(qr_at(out.V, i, j), x);
    if (out.R.p && i < k)
        simt_store_once(qr_at(out.R, i, j), qr_zero<T>());
}
/* On and above it: R's, x 2^shift; the answer is whether that is finite. */
template <class T> QR_INLINE bool qr_put_r(const qr_outputs<T> &out, int i, int j, T x, int shift)
{
    const T r = shift != 0 ? qr_shift(x, shift) : x;
    if (out.packed.p)
        simt_store_once(qr_at(out.packed, i, j), r);
    if (out.R.p)
        simt_store_once(qr_at(out.R, i, j), r);
    return qr_peak(r) < qr_real<QR_REAL(T)>::INF;
}
/* V's one or zero there. */
template <class T> QR_INLINE void qr_put_unit(const qr_outputs<T> &out, int k, int i, int j)
{
    if (out.V.p && j < k)
        simt_store_once(qr_at(out.V, i, j), qr_make<T>(i == j, 0));
}

/* One quiet NaN in every output, by threads `first`, `first + step`, ... */
template <class T>
QR_INLINE void qr_fill_nan(qr_cells<T> c, int rows, int cols, int first, int step)
{
    for (int64_t e = first; c.p && e < (int64_t)rows * cols; e += step)
        simt_store(qr_at(c, e / cols, e % cols), qr_nan<T>());
}
template <class T>
QR_INLINE void qr_spoil(const qr_outputs<T> &out, const qr_args_t &a, int first, int step)
{
    const int k = a.m < a.n ? a.m : a.n;
    qr_fill_nan(out.V, a.m, k, first, step);
    qr_fill_nan(out.T_, a.nb < k ? a.nb : k, k, first, step);
    qr_fill_nan(out.R, k, a.n, first, step);
    qr_fill_nan(out.tau, k, 1, first, step);
    qr_fill_nan(out.packed, a.m, a.n, first, step);
}

/* True when the sum of squares of a column that was divided by 2^drop belongs to a norm beyond the
 * range. */
template <class R> QR_INLINE bool qr_norm_too_large(R square, int drop)
{
    return drop > 0 && !(qr_size_bits(qr_shift_part(qr_sqrt(square), drop)) < qr_real<R>::INF);
}

#endif
