/* One instruction set of the cpu backend: GB10_ISA names it, the compiler flags select it. */
#include "kernels/cpu/fast.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "kernels/core/stopwatch.h"
#include "kernels/core/view.h"

/* TILE_SUMS: vectors of sums that a tile of the product kernels keeps in registers. */
#if defined(__AVX512F__) || defined(GB10_TWICE)
enum { VECTOR_BYTES = 64, TILE_SUMS = 24, LEAF_VECTORS = 1 };
#elif defined(__AVX2__)
enum { VECTOR_BYTES = 32, TILE_SUMS = 12, LEAF_VECTORS = 2 };
#elif defined(__aarch64__)
enum { VECTOR_BYTES = 16, TILE_SUMS = 24, LEAF_VECTORS = 4 };
#else
enum { VECTOR_BYTES = 16, TILE_SUMS = 12, LEAF_VECTORS = 4 };
#endif
/* Fused a b + c and c - a b of whole vectors. GCC 12 keeps a loop over lanes out of registers
 * (measured: the product kernels ran at a third of the speed), so the two instruction sets have it
 * by name. */
#if defined(GB10_TWICE) /* no instruction of the machine is as wide: for tests only */
#define VFMA_F(a, b, c)  ((a) * (b) + (c))
#define VFMA_D(a, b, c)  ((a) * (b) + (c))
#define VFNMA_F(a, b, c) ((c) - (a) * (b))
#define VFNMA_D(a, b, c) ((c) - (a) * (b))
#define VSQRT_F(x)       N(each_root)(x)
#define VSQRT_D(x)       N(each_root)(x)
#define VMAX_F(a, b)     select((a) > (b), a, b)
#define VMAX_D(a, b)     select((a) > (b), a, b)
#define VANY(mask)       N(any_lane)(mask)
#elif defined(__AVX512F__)
#include <immintrin.h>
#define VFMA_F(a, b, c)  ((vec_t)_mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(c)))
#define VFMA_D(a, b, c)  ((vec_t)_mm512_fmadd_pd((__m512d)(a), (__m512d)(b), (__m512d)(c)))
#define VFNMA_F(a, b, c) ((vec_t)_mm512_fnmadd_ps((__m512)(a), (__m512)(b), (__m512)(c)))
#define VFNMA_D(a, b, c) ((vec_t)_mm512_fnmadd_pd((__m512d)(a), (__m512d)(b), (__m512d)(c)))
#define VSQRT_F(x)       ((vec_t)_mm512_sqrt_ps((__m512)(x)))
#define VSQRT_D(x)       ((vec_t)_mm512_sqrt_pd((__m512d)(x)))
#define VMAX_F(a, b)     ((vec_t)_mm512_max_ps((__m512)(a), (__m512)(b)))
#define VMAX_D(a, b)     ((vec_t)_mm512_max_pd((__m512d)(a), (__m512d)(b)))
#define VANY(mask)       (_mm512_test_epi32_mask((__m512i)(mask), (__m512i)(mask)) != 0)
#elif defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#define VFMA_F(a, b, c)  ((vec_t)_mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c)))
#define VFMA_D(a, b, c)  ((vec_t)_mm256_fmadd_pd((__m256d)(a), (__m256d)(b), (__m256d)(c)))
#define VFNMA_F(a, b, c) ((vec_t)_mm256_fnmadd_ps((__m256)(a), (__m256)(b), (__m256)(c)))
#define VFNMA_D(a, b, c) ((vec_t)_mm256_fnmadd_pd((__m256d)(a), (__m256d)(b), (__m256d)(c)))
#define VSQRT_F(x)       ((vec_t)_mm256_sqrt_ps((__m256)(x)))
#define VSQRT_D(x)       ((vec_t)_mm256_sqrt_pd((__m256d)(x)))
#define VMAX_F(a, b)     ((vec_t)_mm256_max_ps((__m256)(a), (__m256)(b)))
#define VMAX_D(a, b)     ((vec_t)_mm256_max_pd((__m256d)(a), (__m256d)(b)))
#define VANY(mask)       (!_mm256_testz_si256((__m256i)(mask), (__m256i)(mask)))
#elif defined(__aarch64__)
#include <arm_neon.h>
#define VFMA_F(a, b, c)  ((vec_t)vfmaq_f32((float32x4_t)(c), (float32x4_t)(a), (float32x4_t)(b)))
#define VFMA_D(a, b, c)  ((vec_t)vfmaq_f64((float64x2_t)(c), (float64x2_t)(a), (float64x2_t)(b)))
#define VFNMA_F(a, b, c) ((vec_t)vfmsq_f32((float32x4_t)(c), (float32x4_t)(a), (float32x4_t)(b)))
#define VFNMA_D(a, b, c) ((vec_t)vfmsq_f64((float64x2_t)(c), (float64x2_t)(a), (float64x2_t)(b)))
#define VSQRT_F(x)       ((vec_t)vsqrtq_f32((float32x4_t)(x)))
#define VSQRT_D(x)       ((vec_t)vsqrtq_f64((float64x2_t)(x)))
#define VMAX_F(a, b)     ((vec_t)vmaxq_f32((float32x4_t)(a), (float32x4_t)(b)))
#define VMAX_D(a, b)     ((vec_t)vmaxq_f64((float64x2_t)(a), (float64x2_t)(b)))
#define VANY(mask)       (vmaxvq_u32((uint32x4_t)(mask)) != 0)
#elif defined(__x86_64__)
#include <emmintrin.h>
#define VFMA_F(a, b, c)  ((a) * (b) + (c))
#define VFMA_D(a, b, c)  ((a) * (b) + (c))
#define VFNMA_F(a, b, c) ((c) - (a) * (b))
#define VFNMA_D(a, b, c) ((c) - (a) * (b))
#define VSQRT_F(x)       ((vec_t)_mm_sqrt_ps((__m128)(x)))
#define VSQRT_D(x)       ((vec_t)_mm_sqrt_pd((__m128d)(x)))
#define VMAX_F(a, b)     ((vec_t)_mm_max_ps((__m128)(a), (__m128)(b)))
#define VMAX_D(a, b)     ((vec_t)_mm_max_pd((__m128d)(a), (__m128d)(b)))
#define VANY(mask)       (_mm_movemask_epi8((__m128i)(mask)) != 0)
#else
#error "the fast kernels know x86-64 and AArch64; other machines use cpu-ref"
#endif

enum {
    FEW = 4,              /* reflectors applied together where V has a short tail              */
    STRIP = 4,            /* vectors of columns in a strip                                     */
    BLOCK = 32,           /* least width of an internal block                                  */
    RUN_BYTES = 16 << 10, /* of V in a run of rows                                             */
    RUN_LEAST = 16,
    RUN_MOST = 32,         /* rows summed in one run: bounds the error of long sums             */
    SWEEP_RUN = 32,        /* rows of a leaf summed in one run                                  */
    LONG_RUN = 512,        /* rows over which sums of runs are simply added up                  */
    PANEL = 4,             /* lanes: columns of a panel                                         */
    LANE_BYTES = 12 << 10, /* lanes: working set of the groups that are treated together ...    */
    LANE_GROUPS = 16,      /* ... and their number                                              */
    LANE_RUN = 16,         /* lanes: rows summed in one run ...                                 */
    LANE_ROWS_MOST = 256,  /* ... and largest m: 16 runs are simply added up                    */
    STORE_BYTES = 1024,    /* least piece of a row of V that is written at a time               */
    STORE_ROWS = 64,       /* of a column-major output that are written together                */
    TEAM_LEAST = 1 << 17,  /* multiplications of an update that a team shares                   */
    LANE_LARGEST = 16384,  /* lanes: largest m n                                              */
    AHEAD_LEAST = 1 << 18, /* lanes: bytes of input from which on memory is asked for early ... */
    AHEAD_MOST = 64 << 10, /* ... for outputs too in groups of this size: larger ones fill caches */
    AHEAD_RANGES = 4,
    APPLY = 32,            /* reflectors of Q applied together ...             */
    APPLY_GROUP = 4,       /* ... to as many strips                            */
    SYRK_DEPTH = 256,      /* rank-k update: columns of op(A) summed in one run ... */
    SYRK_GROUP = 16,       /* ... and panels of rows that are used together       */
    SYRK_LANE_ROWS = 24,   /* one matrix a lane: largest n ... */
    SYRK_LANE_MOST = 2048, /* ... and n k                      */
    SYRK_AHEAD = 1 << 20   /* bytes of the next matrix that are asked for early */
};

/* Fused where the machine has it; written out, since contraction is off. */
#if (defined(__FMA__) || defined(__aarch64__)) && !defined(GB10_TWICE)
#define FMA_D(a, b, c) __builtin_fma(a, b, c)
#else
#define FMA_D(a, b, c) ((a) * (b) + (c))
#endif

#define INLINE   static inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline))
#define ALIGNED  __attribute__((aligned(64)))
#define UNROLL   _Pragma("GCC unroll 16")

static inline int64_t round_up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

static inline int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Elements in a row of a lanes array: rows a power of two apart would share their cache sets. */
static inline int64_t lane_width(int64_t n)
{
    return n % 16 == 0 ? n + 1 : n;
}

/* Lanes: columns that one tile updates together, and rows of a tile of T. */
enum { LANE_TILE_MOST = 4 };
/* What of an output is not zero in every matrix: all, on and below or on and above the diagonal. */
typedef enum lane_part { LANE_FULL, LANE_LOWER, LANE_UPPER } lane_part_t;
#define LANE_TILE                                                                                  \
    (CPLX ? 1 : TILE_SUMS / PANEL > LANE_TILE_MOST ? LANE_TILE_MOST : TILE_SUMS / PANEL)

#define LETTER s
#define REAL   float
#define SINGLE 1
#define CPLX   0
#include "kernels/cpu/fast_type.h"
#define LETTER d
#define REAL   double
#define SINGLE 0
#define CPLX   0
#include "kernels/cpu/fast_type.h"
#define LETTER c
#define REAL   float
#define SINGLE 1
#define CPLX   1
#include "kernels/cpu/fast_type.h"
#define LETTER z
#define REAL   double
#define SINGLE 0
#define CPLX   1
#include "kernels/cpu/fast_type.h"

#define TEXT2(x)    #x
#define TEXT(x)     TEXT2(x)
#define TABLE2(isa) gb10_fast_##isa
#define TABLE(isa)  TABLE2(isa)

const gb10_fast_t TABLE(GB10_ISA) = {
    .name = TEXT(GB10_ISA),
    .need = {s_need, d_need, c_need, z_need},
    .granule = {s_granule, d_granule, c_granule, z_granule},
    .geqrf = {s_geqrf, d_geqrf, c_geqrf, z_geqrf},
    .form_q_need = {s_form_q_need, d_form_q_need, c_form_q_need, z_form_q_need},
    .form_q = {s_form_q, d_form_q, c_form_q, z_form_q},
    .apply_q_need = {s_apply_q_need, d_apply_q_need, c_apply_q_need, z_apply_q_need},
    .apply_q = {s_apply_q, d_apply_q, c_apply_q, z_apply_q},
    .syrk_need = {s_syrk_need, d_syrk_need, c_syrk_need, z_syrk_need},
    .syrk = {s_syrk, d_syrk, c_syrk, z_syrk}};
