/* The device as the backend sees it. cuda_device.cu asks the CUDA runtime; in tests the runtime
 * that executes kernels on the CPU stands in. Private to kernels/cuda. */
#ifndef KERNELS_CUDA_CUDA_DEVICE_H
#define KERNELS_CUDA_CUDA_DEVICE_H

#include <stddef.h>

#include "kernels/core/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* direct: kernels read and write ordinary host memory themselves. max_cluster: blocks of a cluster
 * at most; 1: no clusters. */
typedef struct cuda_device {
    char name[128];
    int arch, processors, threads_processor, blocks_processor, max_cluster, direct;
    size_t shared_block, shared_processor, memory;
} cuda_device_t;

/* NULL when there is a device that the kernels run on, else the reason. */
const char *cuda_device_probe(void);

/* For tests FUGU_CUDA_SHARED in the environment is another number of bytes that a block may have
 * (shared_block): less makes clusters of small matrices, more a launch that fails. 0: no other. */
gb10_status_t cuda_device_query(cuda_device_t *device, gb10_error_t *err);

/* Streams are opaque; NULL allowed to close. */
gb10_status_t cuda_stream_open(void **stream, gb10_error_t *err);
void cuda_stream_close(void *stream);
/* Waits for what was started; reports what went wrong in it. */
gb10_status_t cuda_stream_wait(void *stream, gb10_error_t *err);

/* Memory of the device, or of the host for fast copies (pinned). NULL allowed to free. */
gb10_status_t cuda_memory_new(void **p, size_t bytes, int pinned, gb10_error_t *err);
void cuda_memory_free(void *p, int pinned);

/* In the stream's order, between any two places. */
gb10_status_t cuda_memory_copy(void *to, const void *from, size_t bytes, void *stream,
                               gb10_error_t *err);
gb10_status_t cuda_memory_zero(void *p, size_t bytes, void *stream, gb10_error_t *err);

#ifdef __cplusplus
}
#endif
#endif
