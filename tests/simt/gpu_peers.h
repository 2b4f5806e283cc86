/* What others take on the GPU: cuBLAS geqrfBatched and cuSOLVER geqrf in a loop, looked for when
 * the program runs, so that nothing here needs them. Both leave V\R and tau, and no T. */
#ifndef TESTS_SIMT_GPU_PEERS_H
#define TESTS_SIMT_GPU_PEERS_H

#include <stdint.h>

#include "kernels/core/types.h"
#include "kernels/core/status.h"

enum { GPU_CUBLAS, GPU_CUSOLVER, GPU_PEERS };
extern const char *const gpu_peer_names[GPU_PEERS];

typedef struct gpu_peers {
    void *library[GPU_PEERS], *handle[GPU_PEERS], *stream;
    char why[GPU_PEERS][160]; /* empty, or why it is not there */
} gpu_peers_t;
void gpu_peers_open(gpu_peers_t *peers, void *stream);
void gpu_peers_close(gpu_peers_t *peers);

/* A batch of column-major n x n in device memory, factored in place. */
typedef struct gpu_batch {
    gb10_dtype_t dtype; /* s or d */
    int n, count;
    void *A, *tau;             /* count n n, count n              */
    void **A_list, **tau_list; /* on the device: of each matrix   */
    void *work;                /* work_bytes of the device        */
    int64_t work_bytes;
    int *info; /* on the device, for cuSOLVER     */
} gpu_batch_t;

/* Puts the whole batch into the stream. */
gb10_status_t gpu_peer_start(const gpu_peers_t *peers, int peer, const gpu_batch_t *batch,
                             gb10_error_t *err);

#endif
