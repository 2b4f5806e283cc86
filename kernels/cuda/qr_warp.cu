/* K1: matrices of at most 32 x 32 in the registers of a warp, 32 / G of them side by side.
 *
 * Lane `col` of a group of G lanes owns a column: rows in M registers, so that lanes read and write
 * neighbouring elements of a row-major matrix. For reflector j lane j hands its column round
 * through shared memory; one pass gives each lane the product of its column with it: lane j the sum
 * of squares, lanes to the right w = v^H a, lanes to the left a column of V^H V for T. The tail is
 * scaled to v afterwards (w is linear in it), so no second pass is needed.
 *
 * Shared memory of a warp: two columns (by parity of j: one barrier a reflector), two rows of w, T.
 * Barriers: of the warp only; all its lanes take every branch with one in it together. A vote may
 * send a group through the second look at a column that it does not need: its numbers come out the
 * same, so bits do not depend on neighbours.
 * Limits: m <= M, n <= G. */
#include "kernels/cuda/qr_kernels.h"
#include "kernels/cuda/qr_move.h"

enum { WARPS = 4, ROWS = 8 };
static const unsigned ALL = 0xffffffffu;

template <class T, int M, int G> struct warp_shared {
    T x[WARPS][32 / G][2][M];
    T w[WARPS][32 / G][2][G];
    T t[WARPS][32 / G][G * (G + 1)]; /* T(row, q) at q (G + 1) + row, written by lane `row` */
};

/* What a lane knows; its group's part of shared memory. */
template <class T, int M, int G> struct warp_lane {
    int col, m, n, k, nb;
    T (*x)[M], (*w)[G], *t;
};

/* True for all lanes of a group when the predicate holds for one of them. */
template <int G> QR_INLINE bool any_in_group(bool predicate)
{
    const unsigned votes = __ballot_sync(ALL, predicate);
    const int first = (int)threadIdx.x % 32 / G * G;
    return (votes >> first & (G == 32 ? ALL : (1u << G % 32) - 1)) != 0;
}

/* Rows of r from 8-row piece `from / 8` to the matrix's last, statically indexed. */
#define FOR_ROWS(i, from, m)                                                                       \
    _Pragma("unroll") for (int q_ = 0; q_ < M / ROWS;                                              \
                           q_++) if (ROWS * q_ + ROWS <= (from) || ROWS * q_ >= (m)) continue;     \
    else _Pragma("unroll") for (int i = ROWS * q_; i < ROWS * q_ + ROWS; i++)

/* Lane j shows its column below the diagonal, zeros above; all others multiply theirs with it. */
template <class T, int M, int G>
QR_INLINE void dot_with(const warp_lane<T, M, G> &l, const T *r, int j, T *dot, T *head)
{
    T *x = l.x[j % 2];
    if (l.col == j) {
        FOR_ROWS(i, j, l.m)
        x[i] = i > j ? r[i] : qr_zero<T>();
    }
    __syncwarp();
    *dot = qr_zero<T>();
    *head = qr_zero<T>();
    FOR_ROWS(i, j, l.m)
    {
        *dot = qr_cmac(x[i], r[i], *dot);
        if (i == j)
            *head = r[i];
    }
}

/* The second look: lane j multiplies its tail by a power of two, if its group needs that. */
template <class T, int M, int G>
QR_INLINE qr_reflector<T> look_again(const warp_lane<T, M, G> &l, T *r, int j, bool needed, T alpha,
                                     QR_REAL(T) square, T *dot)
{
    typedef QR_REAL(T) R;
    QR_BITS(R) tail = 0;
    FOR_ROWS(i, j, l.m)
    tail = i > j ? max(tail, qr_peak(r[i])) : tail;
    tail = simt_shfl(ALL, tail, j, G);
    const R pre = needed ? qr_pre<R>(max(tail, qr_peak(alpha))) : 1;
    const bool identity = needed && tail == 0 && qr_im(alpha) == 0;
    if (l.col == j) {
        FOR_ROWS(i, j, l.m)
        r[i] = i > j ? qr_scale(r[i], pre) : r[i];
    }
    T head;
    __syncwarp(); /* redundant: all lanes have given what they read to a shuffle */
    dot_with(l, r, j, dot, &head);
    R again = 0;
    FOR_ROWS(i, j, l.m)
    {
        const T x = l.x[j % 2][i];
        again = qr_fma(qr_re(x), qr_re(x), qr_fma(qr_im(x), qr_im(x), again));
    }
    return qr_reflect(qr_scale(alpha, pre), needed ? again : square, pre, identity);
}

/* Column j of T in rows p .. j, p the first column of its block. */
template <class T, int M, int G>
QR_INLINE void extend_t(const warp_lane<T, M, G> &l, int j, T tau, T w)
{
    const int p = j / l.nb * l.nb;
    l.w[j % 2][l.col] = w;
    __syncwarp();
    T sum = qr_zero<T>();
    for (int q = p; q < j; q++)
        if (l.col >= p && l.col <= q)
            sum = qr_mac(l.t[q * (G + 1) + l.col], qr_conj(l.w[j % 2][q]), sum);
    if (l.col >= p && l.col <= j)
        l.t[j * (G + 1) + l.col] = l.col == j ? tau : qr_mul(qr_neg(tau), sum);
}

/* All reflectors of the matrix in r; returns tau of the lane's column. */
template <class T, int M, int G> QR_INLINE T factor(const warp_lane<T, M, G> &l, T *r, bool with_t)
{
    T tau = qr_zero<T>();
    for (int j = 0; j < l.k; j++) {
        T dot, head;
        dot_with(l, r, j, &dot, &head);
        const QR_REAL(T) square = simt_shfl(ALL, qr_re(dot), j, G);
        const T alpha = simt_shfl(ALL, head, j, G);
        const bool last = j == l.m - 1, needed = !last && !qr_square_safe(square);
        qr_reflector<T> h;
        if (__any_sync(ALL, needed))
            h = look_again(l, r, j, needed, alpha, square, &dot);
        else
            h = qr_reflect<T>(alpha, square, 1, last && qr_im(alpha) == 0);
        const T w = qr_cmac(h.scale, dot, head), y = qr_mul(qr_neg(qr_conj(h.tau)), w);
        const T z = l.col > j ? qr_mul(h.scale, y) : qr_zero<T>();
        FOR_ROWS(i, j, l.m)
        {
            const T v = l.col == j ? qr_mul(r[i], h.scale) : qr_mac(l.x[j % 2][i], z, r[i]);
            if (i > j)
                r[i] = v;
            else if (i == j && l.col >= j)
                r[i] = l.col == j ? qr_make<T>(h.beta, 0) : qr_add(r[i], y);
        }
        if (l.col == j)
            tau = h.tau;
        if (with_t)
            extend_t(l, j, h.tau, w);
    }
    return tau;
}

/* Brings the lane's column into the safe range; 2^*shift is what it was divided by. False when its
 * norm is beyond the range. */
template <class T, int M> QR_INLINE bool prepare(T *r, QR_BITS(QR_REAL(T)) peak, int *shift)
{
    typedef QR_REAL(T) R;
    *shift = qr_column_shift<R>(peak);
    if (!__any_sync(ALL, *shift != 0))
        return true;
    R square = 0;
#pragma unroll
    for (int i = 0; i < M; i++) {
        r[i] = *shift != 0 ? qr_shift(r[i], -*shift) : r[i];
        square = qr_fma(qr_re(r[i]), qr_re(r[i]), qr_fma(qr_im(r[i]), qr_im(r[i]), square));
    }
    return !qr_norm_too_large(square, *shift);
}

template <class T, int M, int G>
QR_INLINE bool store(const warp_lane<T, M, G> &l, const qr_outputs<T> &out, const T *r, T tau,
                     int shift)
{
    bool finite = true;
    FOR_ROWS(i, 0, l.m)
    {
        if (i >= l.m || l.col >= l.n)
            continue;
        if (i > l.col) {
            qr_put_v(out, l.k, i, l.col, r[i]);
            continue;
        }
        finite = qr_put_r(out, i, l.col, r[i], shift) && finite;
        qr_put_unit(out, l.k, i, l.col);
    }
    if (l.col >= l.k)
        return finite;
    if (out.tau.p)
        simt_store_once(qr_at(out.tau, l.col, 0), tau);
    const int p = l.col / l.nb * l.nb, rows = l.nb < l.k ? l.nb : l.k;
    for (int i = 0; out.T_.p && i < rows; i++)
        simt_store_once(qr_at(out.T_, i, l.col),
                        p + i <= l.col ? l.t[l.col * (G + 1) + p + i] : qr_zero<T>());
    return finite;
}

template <class T, int M, int G>
QR_INLINE void one_matrix(const warp_lane<T, M, G> &l, const qr_args_t &a, int64_t b, bool active)
{
    typedef QR_REAL(T) R;
    const qr_cells<T> A = qr_matrix<T>(a.A, b, l.m, l.n);
    T r[M];
    QR_BITS(R) peak = 0;
#pragma unroll
    for (int i = 0; i < M; i++) {
        r[i] = active && i < l.m && l.col < l.n ? simt_load_once(qr_at(A, i, l.col)) : qr_zero<T>();
        peak = max(peak, qr_peak(r[i]));
    }
    int shift;
    const bool nonfinite = any_in_group<G>(peak >= qr_real<R>::INF);
#pragma unroll
    for (int i = 0; i < M; i++)
        r[i] = nonfinite ? qr_zero<T>() : r[i];
    bool good = prepare<T, M>(r, nonfinite ? 0 : peak, &shift);
    const T tau = factor(l, r, a.T.base || a.T.list);
    const qr_outputs<T> out = qr_outputs_of<T>(a, b);
    __syncwarp(); /* a column of T is every lane's */
    if (active && !nonfinite)
        good = store(l, out, r, tau, shift) && good;
    const bool spoiled = any_in_group<G>(!good) || nonfinite;
    __syncwarp(); /* redundant on the CPU, where the vote before it orders memory as well */
    if (spoiled && active)
        qr_spoil(out, a, l.col, G);
    if (a.info && active && l.col == 0)
        simt_store(&a.info[b], (uint8_t)(nonfinite ? GB10_INFO_NONFINITE
                                         : spoiled ? GB10_INFO_NOT_REPRESENTABLE
                                                   : GB10_INFO_OK));
}

/* Blocks of a multiprocessor that registers are kept free for: the columns are in them. */
template <class T, int M> struct warp_blocks {
    enum { COLUMN = M * sizeof(T), COUNT = COLUMN > 256 ? 2 : COLUMN > 128 ? 3 : 4 };
};

template <class T, int M, int G>
SIMT_KERNEL(qr_warp, SIMT_BOUNDS(32 * WARPS, (warp_blocks<T, M>::COUNT)), a, qr_args_t)
{
    SIMT_SHARED(s, warp_shared<T, M, G>);
    const int warp = (int)threadIdx.x / 32, group = (int)threadIdx.x % 32 / G;
    const int k = a.m < a.n ? a.m : a.n;
    const warp_lane<T, M, G> l = {
        (int)threadIdx.x % G, a.m, a.n, k, a.nb, s->x[warp][group], s->w[warp][group],
        s->t[warp][group]};
    const int64_t step = (int64_t)gridDim.x * WARPS * (32 / G);
    int64_t first = ((int64_t)blockIdx.x * WARPS + warp) * (32 / G);
    for (; first < a.count; first += step) {
        const int64_t b = first + group;
        one_matrix(l, a, b < a.count ? b : a.count - 1, b < a.count);
    }
}

template <class T, int M, int G>
static gb10_status_t go(unsigned most, const qr_args_t *a, void *stream, gb10_error_t *err)
{
    const int64_t each = WARPS * (32 / G), blocks = (a->count + each - 1) / each;
    const simt_launch_t how = {blocks < most ? (unsigned)blocks : most,
                               1,
                               32 * WARPS,
                               1,
                               sizeof(warp_shared<T, M, G>),
                               stream};
    return simt_launch(&how, qr_warp<T, M, G>, a, err);
}
template <class T>
static gb10_status_t by_size(unsigned most, const qr_args_t *a, void *stream, gb10_error_t *err)
{
    if (a->m <= 8 && a->n <= 8)
        return go<T, 8, 8>(most, a, stream, err);
    if (a->m <= 16 && a->n <= 16)
        return go<T, 16, 16>(most, a, stream, err);
    if (a->n <= 16)
        return go<T, 32, 16>(most, a, stream, err);
    return go<T, 32, 32>(most, a, stream, err);
}

gb10_status_t qr_warp_launch(gb10_dtype_t dtype, unsigned most, const qr_args_t *a, void *stream,
                             gb10_error_t *err)
{
    static gb10_status_t (*const type[GB10_DTYPES])(unsigned, const qr_args_t *, void *,
                                                    gb10_error_t *) = {
        by_size<float>, by_size<double>, by_size<cfloat_t>, by_size<cdouble_t>};
    return type[dtype](most, a, stream, err);
}
