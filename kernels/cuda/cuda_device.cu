/* The device through the CUDA runtime (host code; no kernel here). */
#include "kernels/cuda/cuda_device.h"

#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static gb10_status_t failed(cudaError_t code, const char *what, gb10_error_t *err)
{
    if (code == cudaSuccess)
        return GB10_OK;
    if (code == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError(); /* this one can be gone on from */
        return GB10_FAIL(err, GB10_ERR_MEMORY, "%s: %s", what, cudaGetErrorString(code));
    }
    return GB10_FAIL(err, GB10_ERR_DEVICE, "%s: %s", what, cudaGetErrorString(code));
}

const char *cuda_device_probe(void)
{
    int devices = 0, major = 0;
    const cudaError_t code = cudaGetDeviceCount(&devices);
    if (code != cudaSuccess)
        return cudaGetErrorString(code);
    if (devices < 1)
        return "no CUDA device";
    if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0) != cudaSuccess)
        return "the CUDA device does not answer";
    return major == 9 || major == 12 ? NULL : "built for compute capability 9.0 and 12.1 only";
}

gb10_status_t cuda_device_query(cuda_device_t *d, gb10_error_t *err)
{
    cudaDeviceProp p;
    int id = 0, pageable = 0, clusters = 0;
    memset(d, 0, sizeof *d);
    gb10_status_t status = failed(cudaGetDevice(&id), "current device", err);
    if (status == GB10_OK)
        status = failed(cudaGetDeviceProperties(&p, id), "properties of the device", err);
    if (status != GB10_OK)
        return status;
    (void)cudaDeviceGetAttribute(&pageable, cudaDevAttrPageableMemoryAccess, id);
    (void)cudaDeviceGetAttribute(&clusters, cudaDevAttrClusterLaunch, id);
    snprintf(d->name, sizeof d->name, "%s", p.name);
    d->arch = p.major * 10 + p.minor;
    d->processors = p.multiProcessorCount;
    d->threads_processor = p.maxThreadsPerMultiProcessor;
    d->blocks_processor = p.maxBlocksPerMultiProcessor;
    const char *shared = getenv("FUGU_CUDA_SHARED");
    d->shared_block = shared && atoi(shared) > 0 ? (size_t)atoi(shared) : p.sharedMemPerBlockOptin;
    d->shared_processor = p.sharedMemPerMultiprocessor;
    d->memory = p.totalGlobalMem;
    d->max_cluster = clusters ? 8 : 1;
    d->direct = pageable;
    return GB10_OK;
}

gb10_status_t cuda_stream_open(void **stream, gb10_error_t *err)
{
    cudaStream_t s = NULL;
    *stream = NULL;
    const cudaError_t code = cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
    *stream = s;
    return failed(code, "stream", err);
}

void cuda_stream_close(void *stream)
{
    if (stream)
        (void)cudaStreamDestroy((cudaStream_t)stream);
}

gb10_status_t cuda_stream_wait(void *stream, gb10_error_t *err)
{
    return failed(cudaStreamSynchronize((cudaStream_t)stream), "work on the device", err);
}

gb10_status_t cuda_memory_new(void **p, size_t bytes, int pinned, gb10_error_t *err)
{
    char what[64];
    snprintf(what, sizeof what, "%zu bytes of %s memory", bytes, pinned ? "pinned" : "device");
    *p = NULL;
    return failed(pinned ? cudaMallocHost(p, bytes) : cudaMalloc(p, bytes), what, err);
}

void cuda_memory_free(void *p, int pinned)
{
    if (p)
        (void)(pinned ? cudaFreeHost(p) : cudaFree(p));
}

gb10_status_t cuda_memory_copy(void *to, const void *from, size_t bytes, void *stream,
                               gb10_error_t *err)
{
    return failed(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, (cudaStream_t)stream), "copy",
                  err);
}

gb10_status_t cuda_memory_zero(void *p, size_t bytes, void *stream, gb10_error_t *err)
{
    return failed(cudaMemsetAsync(p, 0, bytes, (cudaStream_t)stream), "zeros", err);
}
