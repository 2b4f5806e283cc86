/* One type of the cpu backend; included four times by fast_isa.c with LETTER, REAL, SINGLE, CPLX:
 * names and vectors of the type, then the two ways to factor a batch. */

#define NAME3(letter, name) letter##_##name
#define NAME2(letter, name) NAME3(letter, name)
#define N(name)             NAME2(LETTER, name)

#define vec_t  N(vec_t)
#define work_t N(work_t)
#define mat_t  N(mat_t)
typedef REAL vec_t __attribute__((vector_size(VECTOR_BYTES), may_alias));
#define index_t N(index_t)
#if SINGLE
typedef int32_t index_t __attribute__((vector_size(VECTOR_BYTES)));
#else
typedef int64_t index_t __attribute__((vector_size(VECTOR_BYTES)));
#endif

#define VL    ((int64_t)(VECTOR_BYTES / sizeof(REAL)))
#define PARTS (1 + CPLX)
#define SW    (STRIP * VL)                /* numbers in a row of a strip          */
#define LEAF  (LEAF_VECTORS * VL / PARTS) /* columns factored without blocking */
#if SINGLE
#define vfma(a, b, c)  VFMA_F(a, b, c)
#define vfnma(a, b, c) VFNMA_F(a, b, c)
#define VSQRT(x)       VSQRT_F(x)
#define VMAX(a, b)     VMAX_F(a, b)
#define ABS(x)         fabsf(x)
#define TOP            FLT_MAX
#define TINY           FLT_TRUE_MIN
/* A column whose largest entry lies beyond these is scaled; squares and their sums stay in range
 * between them. Sums of squares below LEAST are formed again from scaled numbers. */
#define HIGHEST    0x1p48F
#define LOWEST     0x1p-28F
#define LEAST      0x1p-90
#define EXP_RESCUE (-120)
#define INDEX      int32_t
#else
#define vfma(a, b, c)  VFMA_D(a, b, c)
#define vfnma(a, b, c) VFNMA_D(a, b, c)
#define VSQRT(x)       VSQRT_D(x)
#define VMAX(a, b)     VMAX_D(a, b)
#define ABS(x)         fabs(x)
#define TOP            DBL_MAX
#define TINY           DBL_TRUE_MIN
#define HIGHEST        0x1p450
#define LOWEST         0x1p-300
#define LEAST          0x1p-800
#define EXP_RESCUE     (-1000)
#define INDEX          int64_t
#endif

INLINE vec_t N(splat)(REAL x)
{
    return x - (vec_t){0};
}
#define splat N(splat)

INLINE vec_t N(load)(const REAL *p)
{
    return *(const vec_t *)(const void *)p;
}
#define load N(load)

INLINE void N(keep)(REAL *p, vec_t v)
{
    *(vec_t *)(void *)p = v;
}
#define keep N(keep)

/* i x for complex x: (-im, re). */
INLINE vec_t N(turn)(vec_t x)
{
    index_t swap = {0};
    vec_t sign = {0};
    UNROLL for (int l = 0; l < (int)VL; l++)
    {
        swap[l] = l ^ 1;
        sign[l] = l & 1 ? 1 : -1;
    }
    return __builtin_shuffle(x, swap) * sign;
}
#define turn N(turn)

/* re + i im of two sums, or re - i im. */
INLINE vec_t N(join)(vec_t re, vec_t im)
{
    if (CPLX)
        return re + turn(im);
    return re;
}
#define join N(join)

INLINE vec_t N(join_conj)(vec_t re, vec_t im)
{
    if (CPLX)
        return re - turn(im);
    return re;
}
#define join_conj N(join_conj)

/* (sr + i si) x. */
INLINE vec_t N(multiple)(REAL sr, REAL si, vec_t x)
{
    if (CPLX)
        return vfma(splat(si), turn(x), splat(sr) * x);
    return splat(sr) * x;
}
#define multiple N(multiple)

INLINE vec_t N(absolute)(vec_t x)
{
    return (vec_t)((index_t)x & ~(index_t)(splat(0) * -1));
}

/* 0, 1, 2 ... */
INLINE index_t N(numbers)(void)
{
    index_t n = {0};
    UNROLL for (int l = 0; l < (int)VL; l++) n[l] = l;
    return n;
}

/* a b, lane by lane. */
INLINE vec_t N(product)(vec_t a, vec_t b)
{
    index_t re = {0}, im = {0};
    UNROLL for (int l = 0; l < (int)VL; l++)
    {
        re[l] = l & ~1;
        im[l] = l | 1;
    }
    if (!CPLX)
        return a * b;
    return vfma(__builtin_shuffle(a, im), turn(b), __builtin_shuffle(a, re) * b);
}

INLINE vec_t N(select)(index_t mask, vec_t a, vec_t b)
{
    return (vec_t)((mask & (index_t)a) | (~mask & (index_t)b));
}
#define select N(select)

#ifdef GB10_TWICE
INLINE vec_t N(each_root)(vec_t x)
{
    for (int l = 0; l < (int)VL; l++)
        x[l] = (REAL)sqrt((double)x[l]);
    return x;
}

INLINE bool N(any_lane)(index_t mask)
{
    bool any = false;
    for (int l = 0; l < (int)VL; l++)
        any = any || mask[l];
    return any;
}
#endif

INLINE bool N(any)(index_t mask)
{
    return VANY(mask);
}

#include "kernels/cpu/fast_body.h"

#include "kernels/cpu/fast_lanes.h"

#include "kernels/cpu/fast_lanes_moves.h"

/* ---- the batch ---- */

/* Whether the batch goes through the lanes: where the table says so and they can. */
static bool N(tiny)(const gb10_fast_call_t *call)
{
    const gb10_geqrf_args_t *args = call->args;
    int64_t m = args->A->m, n = args->A->n, k = min64(m, n);
    return call->row->kernel == GB10_LANES && k > 0 && m <= LANE_ROWS_MOST &&
           m * n <= LANE_LARGEST && (args->nb >= k || args->nb % PANEL == 0);
}

static size_t N(need)(const gb10_fast_call_t *call)
{
    work_t q;
    lanes_t lanes;
    return N(tiny)(call) ? N(lanes_layout)(&lanes, call->args, NULL) : N(layout)(&q, call, NULL);
}

static int64_t N(granule)(const gb10_fast_call_t *call)
{
    return N(tiny)(call) ? VL : 1;
}

static void N(geqrf)(const gb10_fast_call_t *call, void *workspace)
{
    const gb10_geqrf_args_t *args = call->args;
    const gb10_view_t *const out[] = {args->V, args->T, args->R, args->tau, args->packed};
    work_t q;
    if (N(tiny)(call)) {
        N(lanes_geqrf)(args, workspace);
        return;
    }
    N(layout)(&q, call, workspace);
    for (int64_t b = 0; b < args->A->count; b++) {
        gb10_info_t info = N(factor)(&q, args, b);
        for (int i = 0; info != GB10_INFO_OK && i < 5; i++)
            gb10_view_fill_nan(out[i], b);
        if (args->info)
            args->info[b] = (uint8_t)info;
    }
}

#include "kernels/cpu/fast_apply.h"

#include "kernels/cpu/fast_syrk.h"

#undef NAME3
#undef NAME2
#undef vec_t
#undef work_t
#undef mat_t
#undef index_t
#undef VL
#undef PARTS
#undef SW
#undef LEAF
#undef vfma
#undef vfnma
#undef ABS
#undef TOP
#undef TINY
#undef HIGHEST
#undef LOWEST
#undef EXP_RESCUE
#undef LEAST
#undef INDEX
#undef splat
#undef load
#undef keep
#undef turn
#undef multiple
#undef join
#undef join_conj
#undef at
#undef TILE
#undef WIDEST
#undef tn
#undef nn
#undef lanes
#undef select
#undef VSQRT
#undef VMAX
#undef AREA
#undef lanes_t
#undef num_t
#undef get
#undef set
#undef conjugate
#undef LANE_SLOT
#undef LANE_TILES
#undef N
#undef LETTER
#undef REAL
#undef SINGLE
#undef CPLX
