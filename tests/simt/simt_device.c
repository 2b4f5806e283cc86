/* The device of the cuda backend when kernels run on the CPU: memory is the host's, streams do all
 * at once. SIMT_DIRECT=1 (the default) says that kernels read host memory themselves, 0 that
 * batches are copied; SIMT_ARCH=121 or 90 says whose limits hold. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/cuda_device.h"
#include "tests/simt/simt_run.h"

const char *cuda_device_probe(void)
{
    return NULL;
}

gb10_status_t cuda_device_query(cuda_device_t *d, gb10_error_t *err)
{
    const simt_options_t o = simt_options_default();
    const char *direct = getenv("SIMT_DIRECT"), *shared = getenv("FUGU_CUDA_SHARED");
    const int hopper = o.arch == 90;
    (void)err;
    memset(d, 0, sizeof *d);
    snprintf(d->name, sizeof d->name, "sm_%d on the CPU", o.arch);
    d->arch = o.arch;
    d->processors = 1; /* so that queues hold more matrices than there are blocks */
    d->threads_processor = hopper ? 2048 : 1536;
    d->blocks_processor = 2;
    d->shared_block = hopper ? 232448 : 101376;
    if (shared && atoi(shared) > 0)
        d->shared_block = strtoul(shared, NULL, 10);
    d->shared_processor = hopper ? 233472 : 102400;
    d->memory = (size_t)1 << 30;
    d->max_cluster = 8;
    d->direct = !direct || strcmp(direct, "0") != 0;
    return GB10_OK;
}

gb10_status_t cuda_stream_open(void **stream, gb10_error_t *err)
{
    static char streams;
    (void)err;
    *stream = &streams;
    return GB10_OK;
}

void cuda_stream_close(void *stream)
{
    (void)stream;
}

gb10_status_t cuda_stream_wait(void *stream, gb10_error_t *err)
{
    (void)stream;
    (void)err;
    return GB10_OK;
}

gb10_status_t cuda_memory_new(void **p, size_t bytes, int pinned, gb10_error_t *err)
{
    *p = aligned_alloc(256, (bytes + 255) / 256 * 256);
    if (!*p)
        return GB10_FAIL(err, GB10_ERR_MEMORY, "%zu bytes of %s memory", bytes,
                         pinned ? "pinned" : "device");
    memset(*p, 0xa5, bytes);
    return GB10_OK;
}

void cuda_memory_free(void *p, int pinned)
{
    (void)pinned;
    free(p);
}

gb10_status_t cuda_memory_copy(void *to, const void *from, size_t bytes, void *stream,
                               gb10_error_t *err)
{
    (void)stream;
    (void)err;
    memcpy(to, from, bytes);
    return GB10_OK;
}

gb10_status_t cuda_memory_zero(void *p, size_t bytes, void *stream, gb10_error_t *err)
{
    (void)stream;
    (void)err;
    memset(p, 0, bytes);
    return GB10_OK;
}
