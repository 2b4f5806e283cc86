/* What tests of kernels ask of the runtime, answered by a GPU: options are the device's, nothing is
 * counted, memory is managed. Host code; no kernel here. */
#include <cuda_runtime.h>
#include <stdio.h>
#include <string.h>

#include "kernels/cuda/cuda_device.h"
#include "tests/simt/gpu_run.h"
#include "tests/simt/simt_memory.h"
#include "tests/simt/simt_run.h"

extern "C" const char *test_obstacle(void)
{
    static char text[256];
    const char *why = cuda_device_probe();
    if (why)
        snprintf(text, sizeof text, "no GPU that the kernels run on: %s", why);
    return why ? text : NULL;
}

int simt_on_gpu(void)
{
    return 1;
}

simt_options_t simt_options_default(void)
{
    int id = 0, major = 0, minor = 0;
    (void)cudaGetDevice(&id);
    (void)cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, id);
    (void)cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, id);
    simt_options_t o = {};
    o.arch = 10 * major + minor;
    return o;
}

void simt_set_options(const simt_options_t *options)
{
    (void)options;
}

const char *simt_schedule_name(simt_schedule_t schedule)
{
    (void)schedule;
    return "of the GPU";
}

void simt_counters_reset(void)
{
}

const simt_counters_t *simt_counters(void)
{
    static const simt_counters_t none = {};
    return &none;
}

const char *simt_report(void)
{
    return "";
}

static gb10_status_t failed(cudaError_t code, const char *what, gb10_error_t *err)
{
    if (code == cudaSuccess)
        return GB10_OK;
    return GB10_FAIL(err, GB10_ERR_DEVICE, "%s: %s", what, cudaGetErrorString(code));
}

void *simt_new(size_t bytes)
{
    void *p = NULL;
    const cudaError_t code = cudaMallocManaged(&p, bytes ? bytes : 1, cudaMemAttachGlobal);
    if (code != cudaSuccess) {
        printf("%zu bytes of managed memory: %s\n", bytes, cudaGetErrorString(code));
        return NULL;
    }
    memset(p, 0xa5, bytes);
    return p;
}

void simt_free(void *p)
{
    if (p)
        (void)cudaFree(p);
}

gb10_status_t simt_wait(gb10_error_t *err)
{
    return failed(cudaDeviceSynchronize(), "kernels on the device", err);
}

/* ---- time ---- */

static gb10_status_t event_open(void **event, gb10_error_t *err)
{
    cudaEvent_t e = NULL;
    const cudaError_t code = cudaEventCreate(&e);
    *event = e;
    return failed(code, "event", err);
}

gb10_status_t gpu_clock_open(gpu_clock_t *clock, gb10_error_t *err)
{
    clock->to = NULL;
    gb10_status_t status = event_open(&clock->from, err);
    return status == GB10_OK ? event_open(&clock->to, err) : status;
}

void gpu_clock_close(gpu_clock_t *clock)
{
    if (clock->from)
        (void)cudaEventDestroy((cudaEvent_t)clock->from);
    if (clock->to)
        (void)cudaEventDestroy((cudaEvent_t)clock->to);
}

gb10_status_t gpu_clock_start(const gpu_clock_t *clock, void *stream, gb10_error_t *err)
{
    return failed(cudaEventRecord((cudaEvent_t)clock->from, (cudaStream_t)stream), "event", err);
}

gb10_status_t gpu_clock_stop(const gpu_clock_t *clock, void *stream, double *seconds,
                             gb10_error_t *err)
{
    float milliseconds = 0;
    gb10_status_t status =
        failed(cudaEventRecord((cudaEvent_t)clock->to, (cudaStream_t)stream), "event", err);
    if (status == GB10_OK)
        status = failed(cudaEventSynchronize((cudaEvent_t)clock->to), "work that was timed", err);
    if (status == GB10_OK)
        status = failed(
            cudaEventElapsedTime(&milliseconds, (cudaEvent_t)clock->from, (cudaEvent_t)clock->to),
            "time between events", err);
    *seconds = milliseconds / 1e3;
    return status;
}
