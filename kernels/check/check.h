/* The checker (private to kernels/; the contract is gb10_check in gb10.h). */
#ifndef GB10_CHECK_CHECK_H
#define GB10_CHECK_CHECK_H

#include "kernels/gb10.h"

/* Bytes of workspace, aligned to 64, for a call with valid arguments. */
size_t gb10_check_need(const gb10_check_args_t *args);
void gb10_check_run(const gb10_check_args_t *args, void *workspace);

size_t gb10_compare_r_need(const gb10_compare_r_args_t *args);
void gb10_compare_r_run(const gb10_compare_r_args_t *args, void *workspace);

#endif
