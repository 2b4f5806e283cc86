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

/* How the matrices of a batch are laid out. Packed layouts get further tags here. */
typedef enum gb10_layout {
    GB10_STRIDED = 0, /* element (b, i, j) at base + b*bs + i*rs + j*cs */
    GB10_POINTERS = 1 /* element (b, i, j) at list[b] + i*rs + j*cs     */
} gb10_layout_t;

/* A batch of `count` matrices of m x n elements. Describes A, V, T, R, tau (m = k, n = 1), Q, B, C.
 * Strides are in elements; one of rs, cs is 1 for row- or column-major storage, the other is the
 * leading dimension (>= 1, and >= the length of the contiguous side). The view owns nothing. */
typedef struct gb10_view {
    gb10_dtype_t dtype;
    gb10_layout_t layout;
    gb10_memory_t memory;
    int64_t m, n, count;
    void *base;        /* GB10_STRIDED  */
    void *const *list; /* GB10_POINTERS */
    int64_t rs, cs, bs;
} gb10_view_t;

/* A contiguous row-major batch, as HDF5, h5py and NumPy store it. */
static inline gb10_view_t gb10_view_rows(gb10_dtype_t t, void *base, int64_t m, int64_t n,
                                         int64_t count)
{
    gb10_view_t v = {t, GB10_STRIDED, GB10_HOST, m, n, count, base, NULL, n > 0 ? n : 1, 1, m * n};
    return v;
}

/* A contiguous column-major batch with leading dimension lda, as LAPACK stores it. */
static inline gb10_view_t gb10_view_cols(gb10_dtype_t t, void *base, int64_t m, int64_t n,
                                         int64_t lda, int64_t count)
{
    gb10_view_t v = {t, GB10_STRIDED, GB10_HOST, m, n, count, base, NULL, 1, lda, lda * n};
    return v;
}

/* Address of element (0, 0) of matrix b. */
static inline void *gb10_view_at(const gb10_view_t *v, int64_t b)
{
    if (v->layout == GB10_POINTERS)
        return v->list[b];
    return (char *)v->base + (size_t)(b * v->bs) * gb10_dtype_size(v->dtype);
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
