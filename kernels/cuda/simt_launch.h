/* What the host says about a launch and about tensors that TMA moves (C11 and C++; see simt.h). */
#ifndef KERNELS_CUDA_SIMT_LAUNCH_H
#define KERNELS_CUDA_SIMT_LAUNCH_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/core/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* grid x, grid y, threads of a block, blocks of a cluster (along x; 1: none), bytes of shared
 * memory, and the stream as the CUDA runtime has it (ignored on the CPU). */
typedef struct simt_launch {
    unsigned grid_x, grid_y, block, cluster;
    size_t shared;
    void *stream;
} simt_launch_t;

/* What the driver encodes for TMA, 128 opaque bytes; a member of the argument struct. */
typedef struct simt_tensor_map {
    unsigned char bits[128];
} __attribute__((aligned(64))) simt_tensor_map_t;

/* A tensor of 2 or 3 dimensions in global memory and the box that one copy moves. size and box
 * count elements, innermost dimension first; pitch[d] is the step of dimension d + 1 in bytes.
 * Outside the tensor loads give zeros and stores write nothing. */
typedef struct simt_tensor {
    void *base;
    int element; /* bytes: 1, 2, 4 or 8 */
    int rank;
    uint64_t size[3], pitch[2];
    unsigned box[3];
    int swizzle; /* 0; 64 or 128: as many bytes in a box row, the tile begins on 8 times as many:
                    16-byte chunk c of row r is at c ^ (r / 2 mod 4), or at c ^ (r mod 8) */
} simt_tensor_t;

/* Fills *map from *tensor (host side). */
gb10_status_t simt_tensor_map(simt_tensor_map_t *map, const simt_tensor_t *tensor,
                              gb10_error_t *err);

#ifdef __cplusplus
}
#endif
#endif
