/* Symmetric (and Hermitian) rank-k update of one triangle, for a batch.
 *
 * Tiles of 32 x 32 of the triangle of all matrices are dealt out over the blocks, 16 x 16 threads
 * with 2 x 2 entries each. Both strips of op(A) pass through shared memory in pieces of 16 columns,
 * each summed apart. Complex numbers stay pairs: four fused real products an entry, nothing is
 * split and combined again. A fused product does not overflow or become NaN where the definition
 * does. So an entry that is not finite, or in whose strips there are numbers of half the exponent
 * range, is made again by the definition, each operation rounded, in the order of the reference
 * BLAS. Barriers: two a piece. Shared memory: two strips. */
#include "kernels/cuda/qr_kernels.h"
#include "kernels/cuda/qr_move.h"

enum { EDGE = 32, PIECE = 16, SIDE = 16, EACH = EDGE / SIDE };

template <class T> struct syrk_shared {
    T x[PIECE][EDGE + 1], y[PIECE][EDGE + 1];
};

/* The definition's operations, none of them fused. */
template <class T> QR_INLINE T plain_product(T a, T b)
{
    if constexpr (qr_type<T>::COMPLEX) {
        const QR_REAL(T) rr = a.re * b.re, ii = a.im * b.im, ri = a.re * b.im, ir = a.im * b.re;
        return T{rr - ii, ri + ir};
    } else
        return a * b;
}

/* One matrix: op(A) and C, alpha and beta in its type. */
template <class T> struct syrk_matrix {
    qr_cells<T> A, C;
    T alpha, beta;
    bool no_product, no_old, one;
};

template <class T> QR_INLINE syrk_matrix<T> matrix_of(const syrk_args_t &a, int64_t b)
{
    typedef QR_REAL(T) R;
    syrk_matrix<T> m;
    m.A = qr_matrix<T>(a.A, b, a.n, a.k);
    m.C = qr_matrix<T>(a.C, b, a.n, a.n);
    m.alpha = qr_make<T>((R)a.alpha[0], (R)a.alpha[1]);
    m.beta = qr_make<T>((R)a.beta[0], (R)a.beta[1]);
    m.no_product = qr_is_zero(m.alpha) || a.k == 0;
    m.no_old = qr_is_zero(m.beta);
    m.one = qr_re(m.beta) == 1 && qr_im(m.beta) == 0;
    return m;
}

/* Entry (i, l) of op(A) as column i or row j of the product wants it. */
template <class T>
QR_INLINE T operand(const syrk_args_t &a, const syrk_matrix<T> &m, int i, int l, bool second)
{
    const T x = simt_load(qr_at(m.A, i, l));
    return a.hermitian && second == (a.scale_first != 0) ? qr_conj(x) : x;
}

template <class T> QR_INLINE T old_part(const syrk_matrix<T> &m, int i, int j)
{
    if (m.no_old)
        return qr_zero<T>();
    const T c = simt_load(qr_at(m.C, i, j));
    return m.one ? c : plain_product(m.beta, c);
}

template <class T>
QR_INLINE T by_definition(const syrk_args_t &a, const syrk_matrix<T> &m, int i, int j)
{
    T c = old_part(m, i, j), sum = qr_zero<T>();
    for (int l = 0; l < a.k && !m.no_product; l++) {
        const T x = operand(a, m, i, l, false), y = operand(a, m, j, l, true);
        if (a.scale_first)
            c = qr_add(c, plain_product(plain_product(m.alpha, y), x));
        else
            sum = qr_add(sum, plain_product(x, y));
    }
    if (!a.scale_first && !m.no_product)
        c = qr_add(plain_product(m.alpha, sum), c);
    return c;
}

/* Columns l0 .. of both strips; the answer: one of this thread's numbers is large. */
template <class T>
QR_INLINE bool load_piece(const syrk_args_t &a, const syrk_matrix<T> &m, syrk_shared<T> *s, int i0,
                          int j0, int l0)
{
    typedef QR_REAL(T) R;
    const QR_BITS(R) limit = (QR_BITS(R))(qr_real<R>::BIAS + qr_real<R>::BIAS / 2 - 4)
                             << qr_real<R>::FRACTION;
    bool large = false;
    for (int e = (int)threadIdx.x; e < 2 * EDGE * PIECE; e += SIDE * SIDE) {
        const bool second = e >= EDGE * PIECE;
        const int at = e % (EDGE * PIECE), along = m.A.cs == 1;
        const int r = along ? at / PIECE : at % EDGE, l = along ? at % PIECE : at / EDGE;
        const int row = (second ? j0 : i0) + r;
        T x = qr_zero<T>();
        if (row < a.n && l0 + l < a.k)
            x = operand(a, m, row, l0 + l, second);
        if (second && a.scale_first)
            x = plain_product(m.alpha, x);
        large = large || qr_peak(x) >= limit;
        (second ? s->y : s->x)[l][r] = x;
    }
    return large;
}

template <class T>
QR_INLINE void one_tile(const syrk_args_t &a, const syrk_matrix<T> &m, syrk_shared<T> *s, int i0,
                        int j0)
{
    const int x = (int)threadIdx.x % SIDE, y = (int)threadIdx.x / SIDE;
    T sum[EACH][EACH] = {};
    bool large = false;
    for (int l0 = 0; l0 < a.k && !m.no_product; l0 += PIECE) {
        T piece[EACH][EACH] = {};
        __syncthreads();
        large = load_piece(a, m, s, i0, j0, l0) || large;
        __syncthreads();
        for (int l = 0; l < PIECE; l++)
#pragma unroll
            for (int p = 0; p < EACH; p++)
#pragma unroll
                for (int q = 0; q < EACH; q++)
                    piece[p][q] = qr_mac(s->x[l][y + p * SIDE], s->y[l][x + q * SIDE], piece[p][q]);
#pragma unroll
        for (int p = 0; p < EACH; p++)
#pragma unroll
            for (int q = 0; q < EACH; q++)
                sum[p][q] = qr_add(sum[p][q], piece[p][q]);
    }
    large = __syncthreads_or(large) != 0;
#pragma unroll
    for (int p = 0; p < EACH; p++)
#pragma unroll
        for (int q = 0; q < EACH; q++) {
            const int i = i0 + y + p * SIDE, j = j0 + x + q * SIDE;
            if (i >= a.n || j >= a.n || (a.upper ? i > j : i < j))
                continue;
            T c = qr_add(old_part(m, i, j),
                         a.scale_first ? sum[p][q] : plain_product(m.alpha, sum[p][q]));
            if (m.no_product)
                c = old_part(m, i, j);
            else if (large || qr_peak(c) >= qr_real<QR_REAL(T)>::INF)
                c = by_definition(a, m, i, j);
            if (a.hermitian && i == j)
                c = qr_make<T>(qr_re(c), 0);
            simt_store(qr_at(m.C, i, j), c);
        }
}

template <class T> SIMT_KERNEL(syrk, SIMT_BOUNDS(SIDE *SIDE, 2), a, syrk_args_t)
{
    SIMT_SHARED(s, syrk_shared<T>);
    const int64_t edge = (a.n + EDGE - 1) / EDGE, tiles = edge * (edge + 1) / 2;
    for (int64_t item = blockIdx.x; item < a.count * tiles; item += gridDim.x) {
        int64_t at = item % tiles, row = 0;
        while (at > row) /* row of the triangle, of at most 128 for n = 4096 */
            at -= ++row;
        const syrk_matrix<T> m = matrix_of<T>(a, item / tiles);
        const int low = (int)row * EDGE, high = (int)at * EDGE;
        one_tile(a, m, s, a.upper ? high : low, a.upper ? low : high);
    }
}

template <class T>
static gb10_status_t go(unsigned most, const syrk_args_t *a, void *stream, gb10_error_t *err)
{
    const int64_t edge = (a->n + EDGE - 1) / EDGE, items = a->count * edge * (edge + 1) / 2;
    const simt_launch_t how = {items < (int64_t)most ? (unsigned)items : most,
                               1,
                               SIDE * SIDE,
                               1,
                               sizeof(syrk_shared<T>),
                               stream};
    return simt_launch(&how, syrk<T>, a, err);
}

gb10_status_t syrk_launch(gb10_dtype_t dtype, unsigned most, const syrk_args_t *a, void *stream,
                          gb10_error_t *err)
{
    static gb10_status_t (*const type[GB10_DTYPES])(unsigned, const syrk_args_t *, void *,
                                                    gb10_error_t *) = {go<float>, go<double>,
                                                                       go<cfloat_t>, go<cdouble_t>};
    return type[dtype](most, a, stream, err);
}
