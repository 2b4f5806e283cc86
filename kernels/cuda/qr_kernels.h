/* The kernels as the host starts them (C11 and C++). Each call launches on `stream` and returns;
 * nothing is allocated. `most`: blocks (or clusters) of the grid at most. */
#ifndef KERNELS_CUDA_QR_KERNELS_H
#define KERNELS_CUDA_QR_KERNELS_H

#include "kernels/core/status.h"
#include "kernels/cuda/qr_args.h"
#include "kernels/cuda/simt_launch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* qr_warp.cu: m, n <= 32. */
gb10_status_t qr_warp_launch(gb10_dtype_t dtype, unsigned most, const qr_args_t *args, void *stream,
                             gb10_error_t *err);

/* qr_block.cu: any size; how->shared is args->layout.total. */
gb10_status_t qr_block_launch(gb10_dtype_t dtype, const simt_launch_t *how, const qr_args_t *args,
                              gb10_error_t *err);

/* qr_apply.cu: form_q and apply_q, a block to each panel of C's columns; form_t, a block to each
 * matrix. */
gb10_status_t qr_apply_launch(gb10_dtype_t dtype, const simt_launch_t *how,
                              const qr_apply_args_t *args, gb10_error_t *err);
gb10_status_t qr_form_t_launch(gb10_dtype_t dtype, const simt_launch_t *how,
                               const qr_apply_args_t *args, gb10_error_t *err);

/* qr_repack.cu: between any two layouts; info (0 at the start) gets NONFINITE where it applies. */
gb10_status_t qr_repack_launch(unsigned most, const gb10_view_t *from, const gb10_view_t *to,
                               const int32_t *scale, uint8_t *info, void *stream,
                               gb10_error_t *err);

/* syrk.cu */
gb10_status_t syrk_launch(gb10_dtype_t dtype, unsigned most, const syrk_args_t *args, void *stream,
                          gb10_error_t *err);

#ifdef __cplusplus
}
#endif
#endif
