/* What the CPU side of simt.h asks of the runtime that executes kernels (C11 and C++). Everything
 * that a kernel calls takes its site, so that a report can name the line. */
#ifndef KERNELS_CUDA_SIMT_RT_H
#define KERNELS_CUDA_SIMT_RT_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/cuda/simt_launch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Two calls on one line differ in `unique`. */
typedef struct simt_site {
    const char *file;
    int line, unique;
} simt_site_t;

typedef struct simt_index {
    unsigned x, y, z;
} simt_index_t;

/* Of the thread that runs now. */
typedef struct simt_ids {
    simt_index_t thread, block;
} simt_ids_t;
extern simt_ids_t *simt_ids;
extern simt_index_t simt_block_dim, simt_grid_dim;

/* ---- host ---- */
/* Runs call(kernel, args) once per thread of the grid. A diagnosis ends the run: GB10_ERR_DEVICE.
 */
gb10_status_t simt_rt_launch(const simt_launch_t *how, void (*call)(void *kernel, const void *args),
                             void *kernel, const void *args, gb10_error_t *err);

/* ---- memory ---- */
void *simt_rt_shared(size_t bytes, simt_site_t site);
void simt_rt_note(const void *p, size_t bytes, int write, simt_site_t site);

/* Another thread may run now. True: the line's synchronisation is to be left out (mutation); orders
 * = 0: there is none on it. */
int simt_rt_poll(int orders, simt_site_t site);
void simt_rt_progress(void); /* something changed that a polling thread may see */

/* ---- barriers ---- */
int simt_rt_block_sync(int predicate, int how, simt_site_t site); /* how: 0 or, 1 and, 2 count */
void simt_rt_bar_sync(int id, int threads, simt_site_t site);
void simt_rt_bar_arrive(int id, int threads, simt_site_t site);
void simt_rt_cluster_arrive(simt_site_t site);
void simt_rt_cluster_wait(simt_site_t site);
unsigned simt_rt_cluster_rank(void);
unsigned simt_rt_cluster_size(void);
void *simt_rt_map(const void *p, unsigned rank, simt_site_t site);

/* ---- warps ---- */
typedef enum simt_warp_op {
    SIMT_OP_SYNC,
    SIMT_OP_SHFL,
    SIMT_OP_SHFL_XOR,
    SIMT_OP_SHFL_UP,
    SIMT_OP_SHFL_DOWN,
    SIMT_OP_BALLOT,
    SIMT_OP_LDMATRIX,
    SIMT_OP_LDMATRIX_TRANS,
    SIMT_OP_MMA_TF32,
    SIMT_OP_MMA_BF16,
    SIMT_OP_MMA_S8,
    SIMT_OP_MMA_E4M3,
    SIMT_OP_MMA_F64
} simt_warp_op_t;

/* One lane's part. in/out of a shuffle: `size` bytes; ballot: int in, uint32_t out; ldmatrix: in is
 * the row's address, out `size` registers; mma: simt_operands_t in, four registers (f64: two
 * doubles) out. lane, width: of shuffles. */
typedef struct simt_part {
    const void *in;
    void *out;
    int size, lane, width;
} simt_part_t;
typedef struct simt_operands {
    const void *a, *b, *c;
} simt_operands_t;
void simt_rt_warp(simt_warp_op_t op, uint32_t mask, const simt_part_t *part, simt_site_t site);

/* ---- mbarriers ---- */
void simt_rt_mbar_init(uint64_t *bar, unsigned count, simt_site_t site);
void simt_rt_mbar_arrive(uint64_t *bar, int arrivals, unsigned bytes, simt_site_t site);
void simt_rt_mbar_arrive_remote(uint64_t *bar, unsigned rank, simt_site_t site);
int simt_rt_mbar_test(uint64_t *bar, unsigned parity, simt_site_t site);
void simt_rt_mbar_wait(uint64_t *bar, unsigned parity, simt_site_t site);

/* ---- asynchronous copies ---- */
void simt_rt_bulk_load(void *dst, const void *src, unsigned bytes, uint64_t *bar, simt_site_t site);
void simt_rt_bulk_push(void *dst, const void *src, unsigned bytes, uint64_t *bar, simt_site_t site);
void simt_rt_bulk_store(void *dst, const void *src, unsigned bytes, simt_site_t site);
/* at: x, y, z; bar NULL: a store */
void simt_rt_tensor(void *shared, const void *map, const int *at, int rank, uint64_t *bar,
                    simt_site_t site);
void simt_rt_bulk_commit(simt_site_t site);
void simt_rt_bulk_wait(int pending, int read, simt_site_t site);
void simt_rt_proxy_fence(simt_site_t site);
void simt_rt_cp_async(void *dst, const void *src, int size, int bytes, simt_site_t site);
void simt_rt_cp_async_commit(simt_site_t site);
void simt_rt_cp_async_wait(int pending, simt_site_t site);

void simt_rt_setmaxnreg(int registers, simt_site_t site);

/* ---- operand rounding ---- */
uint32_t simt_rt_tf32(float x);                 /* nearest, ties away from zero */
uint32_t simt_rt_bf16x2(float low, float high); /* nearest even                 */
uint16_t simt_rt_e4m3x2(float low, float high); /* nearest even, saturating     */

#ifdef __cplusplus
}
#endif
#endif
