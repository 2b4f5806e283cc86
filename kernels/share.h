/* One operation on a batch, shared out over the handle's crew (private to kernels/). The batch is
 * cut into slices of consecutive matrices, each worker has its own workspace, and nothing that is
 * written depends on who did which slice. */
#ifndef GB10_SHARE_H
#define GB10_SHARE_H

#include "kernels/handle.h"

typedef struct gb10_call {
    gb10_op_id_t id;
    const gb10_op_t *op;
    void *state;
    int shared; /* submit may run in several threads at once */
    const void *args;
} gb10_call_t;

/* Runs a validated call to its end, in the handle's workspace. */
gb10_status_t gb10_share_run(gb10_handle_t *handle, const gb10_call_t *call, gb10_error_t *err);

/* The i-th view among the arguments of an operation, NULL where it was not given; *end is set past
 * the last. */
const gb10_view_t *gb10_share_view(gb10_op_id_t id, const void *args, int i, int *end);

#endif
