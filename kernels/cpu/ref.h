/* cpu-ref, the oracle: plain unblocked Householder QR with dots and norms accumulated in the next
 * precision (float in double, double in double-double). One body, ref_body.h, compiled per type.
 * Private to kernels/cpu. */
#ifndef GB10_CPU_REF_H
#define GB10_CPU_REF_H

#include "kernels/gb10.h"

/* Bytes of workspace each operation needs. */
size_t gb10_ref_geqrf_need(const gb10_geqrf_args_t *args);
size_t gb10_ref_form_t_need(const gb10_form_t_args_t *args);
size_t gb10_ref_form_q_need(const gb10_form_q_args_t *args);
size_t gb10_ref_apply_q_need(const gb10_apply_q_args_t *args);

/* The operations on valid arguments; workspace as above, aligned to 64. */
#define GB10_REF_DECLARE(letter)                                                                   \
    void gb10_ref_##letter##_geqrf(const gb10_geqrf_args_t *args, void *workspace);                \
    void gb10_ref_##letter##_form_t(const gb10_form_t_args_t *args, void *workspace);              \
    void gb10_ref_##letter##_form_q(const gb10_form_q_args_t *args, void *workspace);              \
    void gb10_ref_##letter##_apply_q(const gb10_apply_q_args_t *args, void *workspace);            \
    void gb10_ref_##letter##_syrk(const gb10_syrk_args_t *args)
GB10_REF_DECLARE(s);
GB10_REF_DECLARE(d);
GB10_REF_DECLARE(c);
GB10_REF_DECLARE(z);

/* Any layout into any other, element by element. */
void gb10_ref_repack(const gb10_repack_args_t *args);

/* Cuts an aligned array of count * size bytes off the workspace at *p. */
static inline void *gb10_ref_take(char **p, int64_t count, size_t size)
{
    void *array = *p;
    *p += ((size_t)count * size + 63) / 64 * 64;
    return array;
}

#endif
