/* The one door between our kernels and the machine. A .cu file includes this header and holds no
 * PTX and no #ifdef of its own: compiled by nvcc it gets intrinsics and inline PTX (simt_cuda.h),
 * compiled by g++ or clang++ as C++17 it gets calls into a runtime that executes the kernel on the
 * CPU (simt_cpu.h; the runtime is declared in simt_rt.h and implemented by the tests).
 *
 * A kernel has one struct of arguments and one struct of shared memory (all of it dynamic):
 *
 *     typedef struct sum_args { const float *x; float *y; int n; } sum_args_t;
 *     typedef struct sum_shared { float part[4]; } sum_shared_t;
 *
 *     template <int N> SIMT_KERNEL(sum, 128, a, sum_args_t)       name, most threads, argument,
 * type
 *     {
 *         SIMT_SHARED(s, sum_shared_t);                           s is a pointer
 *         ...
 *         __syncthreads();
 *     }
 *     simt_launch_t how = {blocks, 1, 128, cluster, sizeof(sum_shared_t), stream};
 *     status = simt_launch(&how, sum<4>, &args, err);             for the host
 *
 * Where 128 stands, SIMT_BOUNDS(128, 1) says as well how many blocks share a multiprocessor; a
 * kernel with setmaxnreg needs that, or ptxas ignores it (C7508).
 *
 * Spelled as in CUDA: threadIdx blockIdx blockDim gridDim, __syncthreads (_or _and _count),
 * __syncwarp, __shfl_sync __shfl_xor_sync __shfl_up_sync __shfl_down_sync, __ballot_sync __any_sync
 * __all_sync, atomicAdd atomicMax atomicMin atomicOr atomicExch atomicCAS, __threadfence, float2
 * float4 double2 int2 int4 uint2 uint4. In kernels blocks and threads are counted in x only; the
 * grid has x and y.
 *
 * Own names (p: any pointer, s: into shared memory of this block, bar: simt_mbar_t there):
 *   simt_shfl simt_shfl_xor simt_shfl_up simt_shfl_down (mask, value, lane)  any type to 16 bytes
 *   simt_load(p) simt_store(p, v)            loads and stores that a counting run counts
 *   simt_load_once(p) simt_store_once(p, v)  the same, data that is not used again (streaming)
 *   simt_load_acquire(p) simt_store_release(p, v) simt_add_acq_rel(p, v)  gpu scope, 4 or 8 bytes
 *   simt_load_acquire_cluster(p) simt_store_release_cluster(p, v)         cluster scope
 *   simt_bar_sync(id, threads) simt_bar_arrive(id, threads)   named barriers 1..15
 *   simt_setmaxnreg_inc(n) simt_setmaxnreg_dec(n)
 *   simt_cluster_rank() simt_cluster_size() simt_cluster_arrive() simt_cluster_wait()
 *   simt_cluster_sync() simt_map(s, rank)    pointer to the same place in block `rank`
 *   simt_mbar_init(bar, count) simt_mbar_init_fence() simt_mbar_arrive(bar)
 *   simt_mbar_arrive_tx(bar, bytes) simt_mbar_expect_tx(bar, bytes)
 *   simt_mbar_arrive_remote(bar, rank) simt_mbar_test(bar, parity) simt_mbar_wait(bar, parity)
 *                                            true / back once the phase of that parity is over
 *   simt_bulk_load(s, global, bytes, bar)    global to shared, completes on bar
 *   simt_bulk_push(mapped, s, bytes, mapped_bar)   shared to a block of the cluster
 *   simt_bulk_store(global, s, bytes)        shared to global, in the thread's open bulk group
 *   simt_bulk_commit() simt_bulk_wait(n) simt_bulk_wait_read(n)   n: a constant
 *   simt_proxy_fence()                       before bulk copies read what threads wrote
 *   simt_tma_load_2d(s, map, x, y, bar) simt_tma_load_3d(s, map, x, y, z, bar)
 *   simt_tma_store_2d(map, x, y, s) simt_tma_store_3d(map, x, y, z, s)   in the bulk group
 *   simt_swizzle128(offset)                  where the 128-byte swizzle puts a byte of a tile
 *   simt_cp_async(n, s, global) simt_cp_async_part(n, s, global, bytes)  n = 4, 8, 16; rest zero
 *   simt_cp_async_commit() simt_cp_async_wait(n)
 *   simt_ldmatrix(n, r, s) simt_ldmatrix_trans(n, r, s)   n = 1, 2, 4; lane l gives row l
 *   simt_mma_tf32(d, a, b, c) m16n8k8   simt_mma_bf16 m16n8k16   simt_mma_s8 simt_mma_e4m3 m16n8k32
 *   simt_mma_f64(d, a, b, c) m8n8k4     arrays of registers as PTX has them; d may be c
 *   simt_tf32(x) simt_bf16x2(low, high) simt_e4m3x2(low, high)   rounded operands
 *
 * Templates over the element type should use the simt_ shuffles: they take structs as well. */
#ifndef KERNELS_CUDA_SIMT_H
#define KERNELS_CUDA_SIMT_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/cuda/simt_launch.h"

typedef struct simt_mbar {
    alignas(8) uint64_t bits;
} simt_mbar_t;

#ifdef __CUDACC__
#include "kernels/cuda/simt_cuda.h"
#else
#include "kernels/cuda/simt_cpu.h"
#endif

__host__ __device__ static inline unsigned simt_swizzle128(unsigned offset)
{
    return offset ^ (((offset >> 7) & 7) << 4);
}

#endif
