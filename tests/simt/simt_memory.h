/* Memory that kernels and the test both use, and the end of launches: the host's on the CPU
 * (simt_memory.c), managed memory and the device's queue on a GPU (gpu_run.cu). */
#ifndef TESTS_SIMT_SIMT_MEMORY_H
#define TESTS_SIMT_SIMT_MEMORY_H

#include <stddef.h>

#include "kernels/core/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Poisoned, on a boundary of 256 bytes; NULL when there is none. NULL allowed to free. */
void *simt_new(size_t bytes);
void simt_free(void *p);

/* Waits for every launch before; what went wrong in one. */
gb10_status_t simt_wait(gb10_error_t *err);

#ifdef __cplusplus
}
#endif
#endif
