/* Chains of fused multiply-adds in registers, enough of them to fill every multiprocessor. */
#include <cuda_runtime.h>

#include "tests/simt/gpu_run.h"

enum { CHAINS = 8, STEPS = 4096, THREADS = 256, BLOCKS = 8 /* of a multiprocessor */ };

template <typename T> __global__ void fma_chains(T *out, T x)
{
    T sum[CHAINS];
    for (int i = 0; i < CHAINS; i++)
        sum[i] = (T)(i + (int)threadIdx.x);
    for (int s = 0; s < STEPS; s++)
#pragma unroll
        for (int i = 0; i < CHAINS; i++)
            sum[i] = fma(sum[i], x, x);
    T all = 0;
    for (int i = 0; i < CHAINS; i++)
        all += sum[i];
    out[(size_t)blockIdx.x * THREADS + threadIdx.x] = all;
}

size_t gpu_peak_bytes(int processors)
{
    return (size_t)processors * BLOCKS * THREADS * sizeof(double);
}

gb10_status_t gpu_peak_start(int wide, int processors, void *out, void *stream, double *flops,
                             gb10_error_t *err)
{
    const unsigned blocks = (unsigned)(processors * BLOCKS);
    if (wide)
        fma_chains<<<blocks, THREADS, 0, (cudaStream_t)stream>>>((double *)out, 0.5);
    else
        fma_chains<<<blocks, THREADS, 0, (cudaStream_t)stream>>>((float *)out, 0.5f);
    const cudaError_t code = cudaGetLastError();
    *flops = 2.0 * CHAINS * STEPS * THREADS * blocks;
    if (code != cudaSuccess)
        return GB10_FAIL(err, GB10_ERR_DEVICE, "chains of multiply-adds: %s",
                         cudaGetErrorString(code));
    return GB10_OK;
}
