/* Which kernel factors matrices of a kind, and with how much of the device: pure functions, so that
 * the choice can be tested and reported without a GPU. */
#ifndef KERNELS_CUDA_QR_PLAN_H
#define KERNELS_CUDA_QR_PLAN_H

#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/qr_args.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum qr_kind {
    QR_KIND_WARP = 0,    /* registers of a warp                           */
    QR_KIND_BLOCK = 1,   /* shared memory of one block                    */
    QR_KIND_CLUSTER = 2, /* shared memory of a cluster                    */
    QR_KIND_GLOBAL = 3   /* global memory, one block                      */
} qr_kind_t;
extern const char *const qr_kind_names[4];

/* threads of a block, blocks of a cluster; resident: blocks on a multiprocessor by shared memory
 * and threads; most: blocks of the grid at most; work: bytes of global memory for each block. */
typedef struct qr_plan {
    qr_kind_t kind;
    int threads, cluster, resident;
    qr_t_way_t t;
    unsigned most;
    qr_layout_t layout;
    size_t work, global; /* global: of the slabs among them */
    uint32_t variant;
} qr_plan_t;

/* NULL, or why such matrices cannot be factored on the device. variant: ideas left out. with_t: T
 * is wanted. */
const char *qr_plan_make(qr_plan_t *plan, const cuda_device_t *device, gb10_dtype_t dtype,
                         int64_t m, int64_t n, int64_t nb, int with_t, uint32_t variant);

/* The same for Q or Q^H times `cols` columns of m rows, and for T of nb columns from V (m x k). */
const char *qr_plan_apply(qr_plan_t *plan, const cuda_device_t *device, gb10_dtype_t dtype,
                          int64_t m, int64_t cols);
const char *qr_plan_form_t(qr_plan_t *plan, const cuda_device_t *device, gb10_dtype_t dtype,
                           int64_t m, int64_t k, int64_t nb);

/* Columns of a panel of the type. */
int qr_plan_width(gb10_dtype_t dtype);

#ifdef __cplusplus
}
#endif
#endif
