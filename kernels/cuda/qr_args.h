/* What a kernel of the QR family is told (C11 and C++). */
#ifndef KERNELS_CUDA_QR_ARGS_H
#define KERNELS_CUDA_QR_ARGS_H

#include "kernels/core/types.h"
#include "kernels/cuda/qr_shared.h"
#include "kernels/cuda/simt_launch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A batch in memory that the device reads and writes: where element (b, i, j) is, in elements from
 * base (or list[b]). width 0: b bs + i rs + j cs; else interleaved groups of that many matrices.
 * base and list NULL: an output that is not wanted. */
typedef struct qr_view {
    char *base;
    void *const *list;
    int64_t rs, cs, bs;
    int32_t width;
} qr_view_t;

/* Every idea that can be left out is one bit: performance.md's ablations that concern these
 * kernels. 0 is what the plan would choose. Values are part of tuning tables: never renumber. */
typedef enum qr_variant {
    QR_STATIC = 1 << 0, /* matrices dealt out beforehand, not from a queue                    */
    QR_NO_LOOKAHEAD = 1 << 1, /* the next panel waits until the whole update is done */
    QR_LATE_T = 1 << 2,     /* T from V afterwards, not in the panel                              */
    QR_NAIVE = 1 << 3,      /* one block, one reflector at a time, in global memory               */
    QR_NO_CLUSTER = 1 << 4, /* one block a matrix, whatever the size                              */
    QR_GLOBAL = 1 << 5,     /* the matrix stays in global memory                                  */
    QR_NO_WARP = 1 << 6,    /* small matrices in blocks as well                                   */
    QR_NO_TMA = 1 << 7,     /* the input is loaded element by element                             */
    QR_THREE_STAGE = 1 << 8 /* the update in three passes, with a temporary in global memory      */
} qr_variant_t;

/* A batch of m x n matrices; see gb10_geqrf for the outputs.
 *   info     one gb10_info_t for each matrix
 *   ticket   matrices that were taken from the queue: 0 at the start
 *   work     `stride` bytes for each block of the grid: its slabs when they are in global memory
 *            (`global` bytes of them), then W x W numbers a panel for the update in three stages
 *   layout   of shared memory (qr_block); t: how T is made, if it is wanted
 *   map      of A as (columns, rows, matrices), a panel's columns and all rows in a box, when tma
 */
typedef struct qr_args {
    qr_view_t A, V, T, R, tau, packed;
    int32_t m, n, nb;
    qr_t_way_t t;
    uint32_t variant;
    int64_t count;
    uint8_t *info;
    unsigned long long *ticket;
    char *work;
    size_t stride, global;
    qr_layout_t layout;
    int tma;
    simt_tensor_map_t map;
} qr_args_t;

/* V (m x k) and T (nb rows) of a batch, applied or made; C has `cols` columns of m rows, which are
 * the conjugated rows of what is stored when `right`.
 *   form_q   C = Q                    apply_q   C <- Q C, or Q^H C when `adjoint`
 *   form_t   T from V and tau         work      as above: two slabs                              */
typedef struct qr_apply_args {
    qr_view_t V, T, C, tau;
    int32_t m, k, nb, cols, right, adjoint, form;
    int64_t count;
    char *work;
    size_t stride;
    qr_layout_t layout;
} qr_apply_args_t;

/* A batch into another layout. scale, info: as gb10_repack has them; info is 0 at the start and
 * gets NONFINITE only, in words of four. extent: matrices, rows and columns of the target with its
 * padding; along, across: which of the three run along the target's and the source's memory; turn:
 * they differ. wide, high, third: squares along, across, and what is left. */
typedef struct qr_repack_args {
    gb10_view_t from, to;
    const int32_t *scale;
    uint8_t *info;
    int64_t extent[3], wide, high, third;
    int along, across, turn;
} qr_repack_args_t;

/* C <- alpha op(A) op(A)^T + beta C; see gb10_syrk. A as op(A), n x k: for 'T' and 'C' its strides
 * are exchanged. scale_first: alpha times the entry of column j, as with 'N'. */
typedef struct syrk_args {
    qr_view_t A, C;
    double alpha[2], beta[2];
    int32_t n, k, upper, scale_first, hermitian;
    int64_t count;
} syrk_args_t;

#ifdef __cplusplus
}
#endif
#endif
