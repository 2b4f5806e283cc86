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
        simt_store(&a.info[b], (uint8_t)GB10_INFO_NONFINITE);
    if (!a.scale)
        return x;
    const int e = simt_load(&a.scale[b]);
    return qr_make<T>(times_power(qr_re(x), e), times_power(qr_im(x), e));
}

/* The place of element (along, across) of a square; false past the target's padding. */
QR_INLINE bool place(const qr_repack_args_t &a, const int64_t *base, int along, int across,
                     int64_t *at)
{
    bool inside = true;
    for (int axis = 0; axis < AXES; axis++) {
        at[axis] = base[axis] + (axis == a.along ? along : axis == a.across ? across : 0);
        inside = inside && at[axis] < a.extent[axis];
    }
    return inside;
}

template <class T> struct repack_shared {
    T square[EDGE][EDGE + 1];
};

template <class T>
QR_INLINE void copy_square(const qr_repack_args_t &a, repack_shared<T> *s, const int64_t *base)
{
    const int x = (int)threadIdx.x % EDGE, y = (int)threadIdx.x / EDGE;
    int64_t at[AXES];
    if (!a.turn) {
        for (int r = y; r < EDGE; r += ROWS)
            if (place(a, base, x, r, at))
                simt_store_once(element<T>(a.to, at[0], at[1], at[2]), fetch<T>(a, at));
        return;
    }
    for (int r = y; r < EDGE; r += ROWS)
        if (place(a, base, r, x, at))
            s->square[r][x] = fetch<T>(a, at);
    __syncthreads();
    for (int r = y; r < EDGE; r += ROWS)
        if (place(a, base, x, r, at))
            simt_store_once(element<T>(a.to, at[0], at[1], at[2]), s->square[x][r]);
    __syncthreads();
}

template <class T> SIMT_KERNEL(qr_repack, EDGE *ROWS, a, qr_repack_args_t)
{
    SIMT_SHARED(s, repack_shared<T>);
    const int third = AXES - a.along - a.across;
    const int64_t wide = (a.extent[a.along] + EDGE - 1) / EDGE;
    const int64_t high = (a.extent[a.across] + EDGE - 1) / EDGE;
    for (int64_t q = blockIdx.x; q < wide * high * a.extent[third]; q += gridDim.x) {
        int64_t base[AXES];
        base[a.along] = q % wide * EDGE;
        base[a.across] = q / wide % high * EDGE;
        base[third] = q / wide / high;
        copy_square(a, s, base);
    }
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
    const int64_t squares = a->extent[0] * a->extent[1] * a->extent[2] / (EDGE * EDGE);
    const simt_launch_t how = {squares < most ? (unsigned)squares + 1 : most,
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
    qr_repack_args_t a = {*from, *to, scale, info, {0}, along, other, along != other};
    if (along == other)
        a.across = along == 2 ? 1 : 2;
    a.extent[0] = padded(to->count, group);
    a.extent[1] = padded(to->m, tile);
    a.extent[2] = padded(to->n, tile);
    return type[from->dtype](most, &a, stream, err);
}
