/* Element types, views and the two status enums that every room shares. */
#ifndef GB10_CORE_TYPES_H
#define GB10_CORE_TYPES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Element types, named as LAPACK names them. Complex elements are (re, im) pairs. */
typedef enum gb10_dtype { GB10_S = 0, GB10_D = 1, GB10_C = 2, GB10_Z = 3 } gb10_dtype_t;
enum { GB10_DTYPES = 4 };

/* Bytes of one element: 4, 8, 8, 16. */
static inline size_t gb10_dtype_size(gb10_dtype_t t)
{
    static const uint8_t size[GB10_DTYPES] = {4, 8, 8, 16};
    return size[t];
}

static inline int gb10_dtype_is_complex(gb10_dtype_t t)
{
    return t == GB10_C || t == GB10_Z;
}

/* True when the real numbers of the type are doubles: d and z. */
static inline int gb10_dtype_is_double(gb10_dtype_t t)
{
    return t == GB10_D || t == GB10_Z;
}

/* Real number e of an array of the type's elements (complex ones count two), as double. */
static inline double gb10_number_at(gb10_dtype_t t, const void *p, int64_t e)
{
    return gb10_dtype_is_double(t) ? ((const double *)p)[e] : (double)((const float *)p)[e];
}

/* 's', 'd', 'c' or 'z'. */
static inline char gb10_dtype_letter(gb10_dtype_t t)
{
    return "sdcz"[t];
}

/* Unit roundoff u of the type: 2^-24 or 2^-53. */
static inline double gb10_dtype_u(gb10_dtype_t t)
{
    return gb10_dtype_is_double(t) ? 0x1p-53 : 0x1p-24;
}

/* Smallest subnormal of the type: 2^-149 or 2^-1074. */
static inline double gb10_dtype_tiny(gb10_dtype_t t)
{
    return gb10_dtype_is_double(t) ? 0x1p-1074 : 0x1p-149;
}

/* Where a buffer lives. The CPU backends accept host, pinned and managed memory. */
typedef enum gb10_memory {
    GB10_HOST = 0,
    GB10_PINNED = 1,
    GB10_DEVICE = 2,
    GB10_MANAGED = 3
} gb10_memory_t;

/* How the matrices of a batch are laid out: where element (b, i, j) of m x n matrices is, in
 * elements from `base`. Divisions round down. */
typedef enum gb10_layout {
    GB10_STRIDED = 0,     /* b*bs + i*rs + j*cs                                                   */
    GB10_POINTERS = 1,    /* list[b] + i*rs + j*cs                                                */
    GB10_INTERLEAVED = 2, /* W = width: ((b/W)*m*n + j*m + i)*W + b mod W. The missing matrices of
                             the last group are copies of the last one                            */
    GB10_TILES = 3,       /* t = width, mt = ceil(m/t), nt = ceil(n/t):
                             ((b*nt + j/t)*mt + i/t)*t*t + (j mod t)*t + i mod t; zeros between
                             the matrix and the edges of its last tiles                           */
    GB10_PANELS = 4       /* G = group, w = width, g = b/G, p = j/w, w_p = min(w, n - p*w):
                             g*G*m*n + G*m*p*w + (b mod G)*m*w_p + (j - p*w)*m + i; missing
                             matrices as above. G = 1: block columns                              */
} gb10_layout_t;
enum { GB10_LAYOUTS = 5 };

/* A batch of `count` matrices of m x n elements. Describes A, V, T, R, tau (m = k, n = 1), Q, B, C.
 * Strides are in elements; one of rs, cs is 1 for row- or column-major storage, the other is the
 * leading dimension (>= 1, and >= the length of the contiguous side). The packed layouts
 * (interleaved, tiles, panels) fill gb10_view_elements elements, padding included; interleaved ones
 * have rs = W and cs = m*W. The view owns nothing. */
typedef struct gb10_view {
    gb10_dtype_t dtype;
    gb10_layout_t layout;
    gb10_memory_t memory;
    int64_t m, n, count;
    void *base;         /* all but GB10_POINTERS */
    void *const *list;  /* GB10_POINTERS         */
    int64_t rs, cs, bs; /* bs: GB10_STRIDED      */
    int64_t width;      /* W, t or w             */
    int64_t group;      /* G                     */
} gb10_view_t;

/* A contiguous row-major batch, as HDF5, h5py and NumPy store it. */
static inline gb10_view_t gb10_view_rows(gb10_dtype_t t, void *base, int64_t m, int64_t n,
                                         int64_t count)
{
    gb10_view_t v = {t,    GB10_STRIDED,  GB10_HOST, m,     n, count, base,
                     NULL, n > 0 ? n : 1, 1,         m * n, 0, 0};
    return v;
}

/* A contiguous column-major batch with leading dimension lda, as LAPACK stores it. */
static inline gb10_view_t gb10_view_cols(gb10_dtype_t t, void *base, int64_t m, int64_t n,
                                         int64_t lda, int64_t count)
{
    gb10_view_t v = {t, GB10_STRIDED, GB10_HOST, m, n, count, base, NULL, 1, lda, lda * n, 0, 0};
    return v;
}

/* A packed batch: width is W, t or w of the layout, group is G of panels (else not looked at). */
static inline gb10_view_t gb10_view_packed(gb10_layout_t layout, gb10_dtype_t t, void *base,
                                           int64_t m, int64_t n, int64_t count, int64_t width,
                                           int64_t group)
{
    int64_t w = layout == GB10_INTERLEAVED ? width : 0, g = layout == GB10_PANELS ? group : 0;
    gb10_view_t v = {t, layout, GB10_HOST, m, n, count, base, NULL, w, m * w, 0, width, g};
    return v;
}

static inline gb10_view_t gb10_view_interleaved(gb10_dtype_t t, void *base, int64_t m, int64_t n,
                                                int64_t count, int64_t width)
{
    return gb10_view_packed(GB10_INTERLEAVED, t, base, m, n, count, width, 0);
}

static inline gb10_view_t gb10_view_tiles(gb10_dtype_t t, void *base, int64_t m, int64_t n,
                                          int64_t count, int64_t tile)
{
    return gb10_view_packed(GB10_TILES, t, base, m, n, count, tile, 0);
}

static inline gb10_view_t gb10_view_panels(gb10_dtype_t t, void *base, int64_t m, int64_t n,
                                           int64_t count, int64_t group, int64_t width)
{
    return gb10_view_packed(GB10_PANELS, t, base, m, n, count, width, group);
}

/* Where element (b, i, j) is, in elements from `base`; with a pointer list from list[b]. */
static inline int64_t gb10_view_offset(const gb10_view_t *v, int64_t b, int64_t i, int64_t j)
{
    int64_t m = v->m, n = v->n, w = v->width, g = v->group, linear = i * v->rs + j * v->cs;
    switch (v->layout) {
    case GB10_INTERLEAVED:
        return b / w * m * n * w + b % w + linear;
    case GB10_TILES: {
        int64_t mt = (m + w - 1) / w, nt = (n + w - 1) / w;
        return ((b * nt + j / w) * mt + i / w) * w * w + j % w * w + i % w;
    }
    case GB10_PANELS: {
        int64_t p = j / w, last = n - p * w, wp = last < w ? last : w;
        return b / g * g * m * n + g * m * p * w + b % g * m * wp + (j - p * w) * m + i;
    }
    case GB10_POINTERS:
        return linear;
    case GB10_STRIDED:
    default:
        return b * v->bs + linear;
    }
}

/* Matrices that lie in one piece of a packed layout: W, G, else 1. */
static inline int64_t gb10_view_granule(const gb10_view_t *v)
{
    return v->layout == GB10_INTERLEAVED ? v->width : v->layout == GB10_PANELS ? v->group : 1;
}

/* Elements from `base` to one past the last, padding included; 0 when empty or with a pointer
 * list. */
static inline int64_t gb10_view_elements(const gb10_view_t *v)
{
    int64_t w = v->width, g = gb10_view_granule(v);
    if (v->m <= 0 || v->n <= 0 || v->count <= 0 || v->layout == GB10_POINTERS)
        return 0;
    if (v->layout == GB10_STRIDED)
        return gb10_view_offset(v, v->count - 1, v->m - 1, v->n - 1) + 1;
    if (v->layout == GB10_TILES)
        return v->count * ((v->m + w - 1) / w) * ((v->n + w - 1) / w) * w * w;
    return (v->count + g - 1) / g * g * v->m * v->n;
}

/* Address of element (0, 0) of matrix b. */
static inline void *gb10_view_at(const gb10_view_t *v, int64_t b)
{
    if (v->layout == GB10_POINTERS)
        return v->list[b];
    return (char *)v->base + (size_t)gb10_view_offset(v, b, 0, 0) * gb10_dtype_size(v->dtype);
}

/* Outcome of one matrix; the values are those of the `status` dataset in a file. */
typedef enum gb10_info {
    GB10_INFO_NOT_COMPUTED = 0,
    GB10_INFO_OK = 1,
    GB10_INFO_OK_ESCALATED = 2,
    GB10_INFO_NONFINITE = 3,
    GB10_INFO_GATE_MISSED = 4,
    GB10_INFO_SET_ASIDE = 5,
    GB10_INFO_NOT_REPRESENTABLE = 6,
    GB10_INFO_RANK_DEFICIENT = 7
} gb10_info_t;
enum { GB10_INFOS = 8 };

/* Arithmetic of a factorisation. NATIVE: the working precision of the element type. */
typedef enum gb10_mode { GB10_MODE_NATIVE = 0 } gb10_mode_t;

#ifdef __cplusplus
}
#endif
#endif
