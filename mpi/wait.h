/* Waiting for messages without holding a core (private to mpi/). */
#ifndef MPI_WAIT_H
#define MPI_WAIT_H

#include <mpi.h>

#include "kernels/core/status.h"

/* Sleeps a little longer each time it is called with the same counter (20 us to 1 ms). */
void wait_nap(int *naps);

/* Translates an MPI return code; `what` names the call. */
gb10_status_t wait_check(int code, const char *what, gb10_error_t *err);

/* Completes a request, napping in between: a waiting rank leaves its core to the others. */
gb10_status_t wait_request(MPI_Request *request, const char *what, gb10_error_t *err);

#endif
