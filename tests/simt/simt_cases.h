/* Small kernels that use every primitive of simt.h once or more: simt_cases.cu, right ones, and
 * simt_faults.cu, wrong ones that the runtime must diagnose. All launchers block until the result
 * is there on the CPU. */
#ifndef TESTS_SIMT_SIMT_CASES_H
#define TESTS_SIMT_SIMT_CASES_H

#include "kernels/cuda/simt_launch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a case reads and writes is told with it; unused members stay 0. */
typedef struct case_args {
    const void *x, *y, *z;
    void *out;
    unsigned *words; /* flags, tickets; zero before the launch */
    int n;
    int which;
    simt_tensor_map_t map_in, map_out;
} case_args_t;

typedef gb10_status_t case_fn(const case_args_t *a, gb10_error_t *err);

/* x: n blocks of 64 elements, out: their sums. which: 0 float, 1 double, 2 and 3 complex of those,
 * 4 int64_t. */
case_fn case_shuffle;
/* x: n floats, one block of 128 threads; out: inclusive prefix sums; words[0]: how many are > 0. */
case_fn case_prefix;
/* x: n floats on clusters of 4; out[b]: the sum over block b's cluster. Grid of 8 blocks. */
case_fn case_cluster_sum;
/* Every block of a cluster of 4 tells the others its number with split arrive and wait. */
case_fn case_cluster_split;
/* out = 2 x + 1, n tiles of 256 floats through two stages of bulk loads; bulk stores. */
case_fn case_pipeline;
/* A ring of 4 blocks: n rounds, each passes 64 floats to the next one and adds its rank. */
case_fn case_ring;
/* n items in a chain: out[i] = out[i - 1] + x[i], taken by tickets. words: ticket, n flags. */
case_fn case_queue;
/* One warp: out = z + x y. which: 0 tf32, 1 bf16, 2 s8, 3 e4m3 (16 x k by k x 8, operands given as
 * float or int, z and out float or int), 4 f64 (8 x 4 by 4 x 8, doubles). All row-major. */
case_fn case_mma;
/* x: n 16 x 16 matrices of 16-bit words; out: copied through ldmatrix, or transposed (which 1). */
case_fn case_ldmatrix;
/* out[i] = x[i] + x[i + 1] within each of n tiles of 128 (+ 1), cp.async with two stages. */
case_fn case_cp_async;
/* map_in: floats, box 32 x 8 with swizzle, 2-D; map_out the same without. Grid n x which tiles:
 * out = x + 1 through shared memory. */
case_fn case_tensor;
/* map_in, map_out: bytes in 3 dimensions, box 16 x 4 x 2, copied. */
case_fn case_tensor_3d;
/* Warp 0 produces, warp 1 consumes n tiles of 32 floats over named barriers: out = 3 x. */
case_fn case_named;
/* n additions by each of 256 threads on one counter with a lock of its own; out: one float. */
case_fn case_lock;

/* ---- simt_faults.cu: which chooses the fault, numbered as in test_simt_faults.c ---- */
case_fn case_fault;
case_fn case_fault_shared;  /* n bytes of shared memory */
case_fn case_fault_cluster; /* clusters of n            */
case_fn case_fault_threads; /* blocks of n              */

#ifdef __cplusplus
}
#endif
#endif
