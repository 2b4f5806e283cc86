/* Times of work in a stream of a GPU (gpu_run.cu), and what it can do at most. */
#ifndef TESTS_SIMT_GPU_RUN_H
#define TESTS_SIMT_GPU_RUN_H

#include <stddef.h>

#include "kernels/core/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Two events; close what open has failed on as well. */
typedef struct gpu_clock {
    void *from, *to;
} gpu_clock_t;
gb10_status_t gpu_clock_open(gpu_clock_t *clock, gb10_error_t *err);
void gpu_clock_close(gpu_clock_t *clock);

/* What the stream does between the two; stop waits for it. */
gb10_status_t gpu_clock_start(const gpu_clock_t *clock, void *stream, gb10_error_t *err);
gb10_status_t gpu_clock_stop(const gpu_clock_t *clock, void *stream, double *seconds,
                             gb10_error_t *err);

/* Multiply-adds in registers alone (gpu_peak.cu), in fp64 when `wide`: how many flops they are.
 * out: gpu_peak_bytes of the device. */
size_t gpu_peak_bytes(int processors);
gb10_status_t gpu_peak_start(int wide, int processors, void *out, void *stream, double *flops,
                             gb10_error_t *err);

#ifdef __cplusplus
}
#endif
#endif
