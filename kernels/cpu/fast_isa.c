/* One instruction set of the cpu backend: GB10_ISA names it, the compiler flags select it. */
#include "kernels/cpu/fast.h"

#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "kernels/core/stopwatch.h"
#include "kernels/core/view.h"

/* TILE_SUMS: vectors of sums that a tile of the product kernels keeps in registers. */
#if defined(__AVX512F__)
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
#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#define VFMA_F(a, b, c)  ((vec_t)_mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c)))
#define VFMA_D(a, b, c)  ((vec_t)_mm256_fmadd_pd((__m256d)(a), (__m256d)(b), (__m256d)(c)))
#define VFNMA_F(a, b, c) ((vec_t)_mm256_fnmadd_ps((__m256)(a), (__m256)(b), (__m256)(c)))
#define VFNMA_D(a, b, c) ((vec_t)_mm256_fnmadd_pd((__m256d)(a), (__m256d)(b), (__m256d)(c)))
#elif defined(__aarch64__)
#include <arm_neon.h>
#define VFMA_F(a, b, c)  ((vec_t)vfmaq_f32((float32x4_t)(c), (float32x4_t)(a), (float32x4_t)(b)))
#define VFMA_D(a, b, c)  ((vec_t)vfmaq_f64((float64x2_t)(c), (float64x2_t)(a), (float64x2_t)(b)))
#define VFNMA_F(a, b, c) ((vec_t)vfmsq_f32((float32x4_t)(c), (float32x4_t)(a), (float32x4_t)(b)))
#define VFNMA_D(a, b, c) ((vec_t)vfmsq_f64((float64x2_t)(c), (float64x2_t)(a), (float64x2_t)(b)))
#else
#define VFMA_F(a, b, c)  ((a) * (b) + (c))
#define VFMA_D(a, b, c)  ((a) * (b) + (c))
#define VFNMA_F(a, b, c) ((c) - (a) * (b))
#define VFNMA_D(a, b, c) ((c) - (a) * (b))
#endif

enum {
    FEW = 4,              /* reflectors applied together where V has a short tail              */
    APPLY = 16,           /* reflectors applied together elsewhere: T of more loses accuracy   */
    STRIP = 4,            /* vectors of columns in a strip                                     */
    GROUP = 4,            /* strips updated together                                           */
    BLOCK = 32,           /* least width of an internal block                                  */
    RUN_BYTES = 16 << 10, /* of V in a run of rows                                             */
    RUN_LEAST = 16,
    RUN_MOST = 32,    /* rows summed in one run: bounds the error of long sums             */
    SWEEP_RUN = 32,   /* rows of a leaf summed in one run, and ...                         */
    SWEEP_MOST = 1024 /* ... rows over which runs are added up                             */
};

/* Fused where the machine has it; written out, since contraction is off. */
#if defined(__FMA__) || defined(__aarch64__)
#define FMA_F(a, b, c) __builtin_fmaf(a, b, c)
#define FMA_D(a, b, c) __builtin_fma(a, b, c)
#else
#define FMA_F(a, b, c) ((a) * (b) + (c))
#define FMA_D(a, b, c) ((a) * (b) + (c))
#endif

#define INLINE         static inline __attribute__((always_inline))
#define ALIGNED        __attribute__((aligned(64)))
#define UNROLL         _Pragma("GCC unroll 8")
#define JOIN3(a, b, c) a##_##b##_##c
#define JOIN(a, b, c)  JOIN3(a, b, c)

static inline int64_t round_up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

static inline int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

#define LETTER s
#define REAL   float
#define SINGLE 1
#define CPLX   0
#include "kernels/cpu/fast_body.h"
#define LETTER d
#define REAL   double
#define SINGLE 0
#define CPLX   0
#include "kernels/cpu/fast_body.h"
#define LETTER c
#define REAL   float
#define SINGLE 1
#define CPLX   1
#include "kernels/cpu/fast_body.h"
#define LETTER z
#define REAL   double
#define SINGLE 0
#define CPLX   1
#include "kernels/cpu/fast_body.h"

#define TEXT2(x)    #x
#define TEXT(x)     TEXT2(x)
#define TABLE2(isa) gb10_fast_##isa
#define TABLE(isa)  TABLE2(isa)

const gb10_fast_t TABLE(GB10_ISA) = {.name = TEXT(GB10_ISA),
                                     .need = {s_need, d_need, c_need, z_need},
                                     .geqrf = {s_geqrf, d_geqrf, c_geqrf, z_geqrf}};
