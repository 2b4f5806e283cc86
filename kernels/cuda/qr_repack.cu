/* K0: a batch from one layout into another, padding included; scanned for NaN and Inf and scaled by
 * powers of two on the way.
 *
 * What matters is which index runs along memory on either side: rows, columns or matrices. A block
 * of 8 warps takes squares of 32 x 32 over those two indices (one index twice: over it and
 * another), reads along the source, turns the square in shared memory when the sides differ, and
 * writes along the target. Indices past the matrix are padding: zeros in tiles, the last matrix's
 * elements in groups that are not full. Barriers: two a square. Shared memory: 33 rows of 32
 * elements. */
#include "kernels/cuda/qr_kernels.h"
#include "kernels/cuda/qr_num.h"

enum { EDGE = 32, ROWS = 8, AXES = 3 }; /* axes: matrices, rows, columns */

/* Where element (b, i, j) is; the formulas of gb10_layout_t. */
template <class T> QR_INLINE T *element(const gb10_view_t &v, int64_t b, int64_t i, int64_t j)
{
    const int64_t m = v.m, n = v.n, w = v.width, g = v.group;
    T *base = (T *)v.base;
    switch (v.layout) {
    case GB10_POINTERS:
        return (T *)simt_load(&v.list[b]) + i * v.rs + j * v.cs;
    case GB10_INTERLEAVED:
        return base + b / w * m * n * w + b % w + i * v.rs + j * v.cs;
    case GB10_TILES: {
        const int64_t mt = (m + w - 1) / w, nt = (n + w - 1) / w;
        return base + ((b * nt + j / w) * mt + i / w) * w * w + j % w * w + i % w;
    }
    case GB10_PANELS: {
        const int64_t p = j / w, last = n - p * w, wp = last < w ? last : w;
        return base + b / g * g * m * n + g * m * p * w + b % g * m * wp + (j - p * w) * m + i;
    }
    default:
        return base + b * v.bs + i * v.rs + j * v.cs;
    }
}

/* x 2^e, rounded once: x is brought into [1, 2) first, which is exact. */
template <class R> QR_INLINE R times_power(R x, int e)
{
    enum { MOST = qr_real<R>::BIAS, LEAST = 1 - qr_real<R>::BIAS, STEP = 60 };
    if (x == 0 || qr_size_bits(x) >= qr_real<R>::INF)
        return x;
    if (qr_size_bits(x) >> qr_real<R>::FRACTION == 0) { /* subnormal */
        x = x * qr_power<R>(STEP);
        e -= STEP;
    }
    const int own = qr_exponent<R>(qr_size_bits(x));
    x = x * qr_power<R>(-own / 2) * qr_power<R>(-own - -own / 2);
    e += own;
    if (e > MOST)
        return x * qr_power<R>(MOST) * qr_power<R>(MOST);
    if (e < LEAST)
        return x * qr_power<R>(-STEP) * qr_power<R>(e + STEP > LEAST ? e + STEP : (int)LEAST);
    return x * qr_power<R>(e);
}

/* Element (b, i, j) of the padded target. */
template <class T> QR_INLINE T fetch(const qr_repack_args_t &a, const int64_t *at)
{
    const int64_t last = a.from.count - 1, b = at[0] < last ? at[0] : last;
    if (at[1] >= a.from.m || at[2] >= a.from.n)
        return qr_zero<T>();
    const T x = simt_load_once(element<T>(a.from, b, at[1], at[2]));
    if (a.info && qr_peak(x) >= qr_real<QR_REAL(T)>::INF)
        atomicOr((unsigned *)a.info + b / 4, (unsigned)GB10_INFO_NONFINITE << 8 * (b % 4));
    if (!a.scale)
        return x;
    const int e = simt_load(&a.scale[b]);
    return qr_make<T>(times_power(qr_re(x), e), times_power(qr_im(x), e));
}

/* Element (along, across, third) as (b, i, j); false past the target's padding. No array is indexed
 * by a variable: it would lie in local memory. */
QR_INLINE int64_t on_axis(const qr_repack_args_t &a, int axis, int64_t along, int64_t across,
                          int64_t third)
{
    return axis == a.along ? along : axis == a.across ? across : third;
}
QR_INLINE bool place(const qr_repack_args_t &a, int64_t along, int64_t across, int64_t third,
                     int64_t *at)
{
    at[0] = on_axis(a, 0, along, across, third);
    at[1] = on_axis(a, 1, along, across, third);
    at[2] = on_axis(a, 2, along, across, third);
    return at[0] < a.extent[0] && at[1] < a.extent[1] && at[2] < a.extent[2];
}

template <class T> struct repack_shared {
    T square[EDGE][EDGE + 1];
};

template <class T>
QR_INLINE void copy_square(const qr_repack_args_t &a, repack_shared<T> *s, int64_t along,
                           int64_t across, int64_t third)
{
    const int x = (int)threadIdx.x % EDGE, y = (int)threadIdx.x / EDGE;
    int64_t at[AXES];
    if (!a.turn) {
        for (int r = y; r < EDGE; r += ROWS)
            if (place(a, along + x, across + r, third, at))
                simt_store_once(element<T>(a.to, at[0], at[1], at[2]), fetch<T>(a, at));
        return;
    }
    for (int r = y; r < EDGE; r += ROWS)
        if (place(a, along + r, across + x, third, at))
            s->square[r][x] = fetch<T>(a, at);
    __syncthreads();
    for (int r = y; r < EDGE; r += ROWS)
        if (place(a, along + x, across + r, third, at))
            simt_store_once(element<T>(a.to, at[0], at[1], at[2]), s->square[x][r]);
    __syncthreads();
}

template <class T> SIMT_KERNEL(qr_repack, SIMT_BOUNDS(EDGE *ROWS, 4), a, qr_repack_args_t)
{
    SIMT_SHARED(s, repack_shared<T>);
    for (int64_t q = blockIdx.x; q < a.wide * a.high * a.third; q += gridDim.x)
        copy_square(a, s, q % a.wide * EDGE, q / a.wide % a.high * EDGE, q / a.wide / a.high);
}

/* The axis that runs along memory. */
static int fast_axis(const gb10_view_t *v)
{
    if (v->layout == GB10_INTERLEAVED)
        return 0;
    return v->layout == GB10_TILES || v->layout == GB10_PANELS || v->rs == 1 ? 1 : 2;
}

static int64_t padded(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

template <class T>
static gb10_status_t go(unsigned most, qr_repack_args_t *a, void *stream, gb10_error_t *err)
{
    const int64_t squares = a->wide * a->high * a->third;
    const simt_launch_t how = {squares < most ? (unsigned)squares : most,
                               1,
                               EDGE * ROWS,
                               1,
                               sizeof(repack_shared<T>),
                               stream};
    return simt_launch(&how, qr_repack<T>, a, err);
}

gb10_status_t qr_repack_launch(unsigned most, const gb10_view_t *from, const gb10_view_t *to,
                               const int32_t *scale, uint8_t *info, void *stream, gb10_error_t *err)
{
    static gb10_status_t (*const type[GB10_DTYPES])(unsigned, qr_repack_args_t *, void *,
                                                    gb10_error_t *) = {go<float>, go<double>,
                                                                       go<cfloat_t>, go<cdouble_t>};
    const int64_t tile = to->layout == GB10_TILES ? to->width : 1;
    const int64_t group = to->layout == GB10_INTERLEAVED ? to->width
                          : to->layout == GB10_PANELS    ? to->group
                                                         : 1;
    const int along = fast_axis(to), other = fast_axis(from);
    qr_repack_args_t a = {};
    a.from = *from;
    a.to = *to;
    a.scale = scale;
    a.info = info;
    a.along = along;
    a.turn = along != other;
    a.across = a.turn ? other : along == 2 ? 1 : 2;
    a.extent[0] = padded(to->count, group);
    a.extent[1] = padded(to->m, tile);
    a.extent[2] = padded(to->n, tile);
    a.wide = padded(a.extent[a.along], EDGE) / EDGE;
    a.high = padded(a.extent[a.across], EDGE) / EDGE;
    a.third = a.extent[AXES - a.along - a.across];
    return type[from->dtype](most, &a, stream, err);
}
