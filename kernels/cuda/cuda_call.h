/* One operation on its way over the device: the same for all of them (cuda_call.c). */
#ifndef KERNELS_CUDA_CUDA_CALL_H
#define KERNELS_CUDA_CUDA_CALL_H

#include <stdbool.h>

#include "kernels/core/types.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/qr_args.h"

enum { CUDA_SLOTS = 2, CUDA_VIEWS = 6 };

/* Memory of a stream; grows to the largest need and is kept. */
typedef struct cuda_slot {
    void *stream;
    char *device, *pinned;
    size_t device_bytes, pinned_bytes;
    int64_t first, count; /* the matrices in flight; count 0: none */
} cuda_slot_t;

/* Matrices that a kernel is started on: views that the device reaches, and its own memory. */
typedef struct cuda_flight {
    qr_view_t view[CUDA_VIEWS];
    int64_t count;
    uint8_t *info;
    char *scratch; /* 256 bytes of zeros, then `work` bytes */
    void *stream;
} cuda_flight_t;

/* view: NULL where the operation has none; bit i of in and out: view i is read, written. info: one
 * byte a matrix to the caller, or NULL. start: launches on a flight. work: bytes for all blocks. */
typedef struct cuda_call {
    const gb10_view_t *view[CUDA_VIEWS];
    unsigned in, out;
    uint8_t *info;
    size_t work;
    gb10_status_t (*start)(const struct cuda_call *call, const cuda_flight_t *flight,
                           gb10_error_t *err);
    const void *args; /* the operation's own */
    const void *plan;
} cuda_call_t;

/* Whether the device reads and writes the view where it is; NULL: yes. */
bool cuda_reaches(const cuda_device_t *device, const gb10_view_t *view);
/* NULL, or why the views of a call cannot be served together. */
const char *cuda_obstacle(const cuda_device_t *device, const cuda_call_t *call);

qr_view_t cuda_view(const gb10_view_t *view);

/* Runs the call to its end: one launch where all is reached, else chunk by chunk through the slots,
 * one being filled or emptied while the other computes. */
gb10_status_t cuda_call_run(const cuda_device_t *device, cuda_slot_t slot[CUDA_SLOTS],
                            const cuda_call_t *call, gb10_error_t *err);

/* The start of geqrf (cuda_backend.c), also for whoever times it alone: views A, V, T, R, tau,
 * packed, args a gb10_geqrf_args_t, plan a qr_plan_t, work that of the plan's whole grid. */
gb10_status_t cuda_geqrf_start(const cuda_call_t *call, const cuda_flight_t *flight,
                               gb10_error_t *err);

gb10_status_t cuda_slots_open(cuda_slot_t slot[CUDA_SLOTS], gb10_error_t *err);
void cuda_slots_close(cuda_slot_t slot[CUDA_SLOTS]);

#endif
