/* What the commands share that read batches, compute on them piece by piece in one process, and
 * write batches of the same names. */
#ifndef APP_BATCHES_H
#define APP_BATCHES_H

#include <stdbool.h>

#include "app/context.h"
#include "io/io.h"
#include "kernels/gb10.h"

#define BATCHES_BACKENDS "auto|cpu|cpu-ref|cuda"

/* A handle of the backend `choice` (of BATCHES_BACKENDS) with so many threads. */
gb10_status_t batches_handle(gb10_handle_t **handle, int choice, int64_t threads,
                             gb10_error_t *err);

/* The batch of that name, or -1. */
int64_t batches_find(const io_catalog_t *catalog, const char *name);

/* Matrices to hold at a time when each takes `bytes`: a multiple of `quantum`, or `count`. */
int64_t batches_piece(int64_t bytes, int64_t quantum, int64_t count);

/* Whether `elements` elements from p on are neither NaN nor Inf. */
bool batches_finite(gb10_dtype_t dtype, const void *p, int64_t elements);

/* Creates the output with the datasets of `catalog`; refuses a path that is there (unless
 * overwrite) or one of the inputs (NULL: no such input). */
gb10_status_t batches_create(io_output_t **output, const char *path, const char *creator,
                             const io_catalog_t *catalog, const io_catalog_t *const inputs[2],
                             bool overwrite, gb10_error_t *err);

/* Syncs and names the output when `status` is GB10_OK, else removes it; closes it. */
gb10_status_t batches_close(io_output_t *output, gb10_status_t status, gb10_error_t *err);

/* Says what was written (info level), or the failure; the exit code. */
int batches_end(const app_context_t *app, const char *output, const io_catalog_t *catalog,
                int64_t nonfinite, double start, const gb10_handle_t *handle,
                const gb10_error_t *err);

#endif
