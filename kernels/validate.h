/* Argument checks of every operation (private to kernels/). The message names the operation, the
 * argument and the sizes. Nothing is read but the args, the views and the pointer lists. */
#ifndef GB10_VALIDATE_H
#define GB10_VALIDATE_H

#include "kernels/gb10.h"

/* GB10_ERR_INVALID with a message, or GB10_OK. Outputs may not overlap each other or an input,
 * except packed, which may be exactly A. With a pointer list, matrices of equal index are compared
 * and no others. */
gb10_status_t gb10_validate_geqrf(const gb10_geqrf_args_t *args, gb10_error_t *err);
gb10_status_t gb10_validate_repack(const gb10_repack_args_t *args, gb10_error_t *err);
gb10_status_t gb10_validate_form_t(const gb10_form_t_args_t *args, gb10_error_t *err);
gb10_status_t gb10_validate_form_q(const gb10_form_q_args_t *args, gb10_error_t *err);
gb10_status_t gb10_validate_apply_q(const gb10_apply_q_args_t *args, gb10_error_t *err);
gb10_status_t gb10_validate_syrk(const gb10_syrk_args_t *args, gb10_error_t *err);
gb10_status_t gb10_validate_check(const gb10_check_args_t *args, gb10_error_t *err);
gb10_status_t gb10_validate_compare_r(const gb10_compare_r_args_t *args, gb10_error_t *err);

#endif
