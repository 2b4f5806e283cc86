#include "kernels/cpu/ref.h"

#include "kernels/backend.h"

/* Bytes of `count` numbers in the next precision, complex or not, and the slack of one array. */
static size_t bytes(int64_t count, size_t size)
{
    return (size_t)count * size + 64;
}

static size_t wide_size(gb10_dtype_t dtype)
{
    return 2 * gb10_dtype_size(dtype);
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

size_t gb10_ref_geqrf_need(const gb10_geqrf_args_t *args)
{
    gb10_dtype_t dtype = args->A->dtype;
    int64_t m = args->A->m, n = args->A->n, k = smaller(m, n), nb = smaller(args->nb, k);
    size_t size = gb10_dtype_size(dtype), wide = wide_size(dtype);
    return bytes(m * n, size) + bytes(k, size) + bytes(nb * nb, size) + bytes(m * n, wide) +
           bytes(n, wide) + bytes(n, sizeof(int));
}

size_t gb10_ref_form_t_need(const gb10_form_t_args_t *args)
{
    gb10_dtype_t dtype = args->V->dtype;
    int64_t m = args->V->m, k = args->V->n, nb = smaller(args->nb, k);
    size_t size = gb10_dtype_size(dtype);
    return bytes(m * k, size) + bytes(k, size) + bytes(nb * nb, size) + bytes(k, wide_size(dtype));
}

static size_t apply_need(const gb10_view_t *V, int64_t nb, int64_t n)
{
    size_t size = gb10_dtype_size(V->dtype);
    int64_t b = smaller(nb, V->n > 0 ? V->n : 1);
    return bytes(V->m * V->n, size) + bytes(b * V->n, size) + bytes(V->m * n, size) +
           2 * bytes(b * n, size) + bytes(n, wide_size(V->dtype)) + bytes(n, sizeof(int));
}

size_t gb10_ref_form_q_need(const gb10_form_q_args_t *args)
{
    return apply_need(args->V, args->nb, args->Q->n);
}

size_t gb10_ref_apply_q_need(const gb10_apply_q_args_t *args)
{
    return apply_need(args->V, args->nb, args->side == 'R' ? args->C->m : args->C->n);
}

/* The table entries of one operation: the dtype of args->view picks the body. */
#define OPERATION(name, view)                                                                      \
    static size_t name##_need(void *state, const void *args)                                       \
    {                                                                                              \
        (void)state;                                                                               \
        return gb10_ref_##name##_need(args);                                                       \
    }                                                                                              \
    static gb10_status_t name##_submit(void *state, const void *args, void *workspace,             \
                                       gb10_error_t *err)                                          \
    {                                                                                              \
        static void (*const body[GB10_DTYPES])(const gb10_##name##_args_t *, void *) = {           \
            gb10_ref_s_##name, gb10_ref_d_##name, gb10_ref_c_##name, gb10_ref_z_##name};           \
        const gb10_##name##_args_t *a = args;                                                      \
        (void)state;                                                                               \
        (void)err;                                                                                 \
        body[a->view->dtype](a, workspace);                                                        \
        return GB10_OK;                                                                            \
    }
OPERATION(geqrf, A)
OPERATION(form_t, V)
OPERATION(form_q, V)
OPERATION(apply_q, V)

static gb10_status_t syrk_submit(void *state, const void *args, void *workspace, gb10_error_t *err)
{
    static void (*const body[GB10_DTYPES])(const gb10_syrk_args_t *) = {
        gb10_ref_s_syrk, gb10_ref_d_syrk, gb10_ref_c_syrk, gb10_ref_z_syrk};
    const gb10_syrk_args_t *a = args;
    (void)state;
    (void)workspace;
    (void)err;
    body[a->C->dtype](a);
    return GB10_OK;
}

static gb10_status_t repack_submit(void *state, const void *args, void *workspace,
                                   gb10_error_t *err)
{
    (void)state;
    (void)workspace;
    (void)err;
    gb10_ref_repack(args);
    return GB10_OK;
}

static const char *probe(void)
{
    return NULL;
}

static const char *isa(void)
{
    return "baseline";
}

const gb10_backend_t gb10_backend_cpu_ref = {
    .name = "cpu-ref",
    .priority = 1,
    .probe = probe,
    .isa = isa,
    .shared = 1,
    .ops = {[GB10_OP_GEQRF] = {.need = geqrf_need, .submit = geqrf_submit},
            [GB10_OP_FORM_T] = {.need = form_t_need, .submit = form_t_submit},
            [GB10_OP_FORM_Q] = {.need = form_q_need, .submit = form_q_submit},
            [GB10_OP_APPLY_Q] = {.need = apply_q_need, .submit = apply_q_submit},
            [GB10_OP_REPACK] = {.submit = repack_submit, .layouts = GB10_ALL_LAYOUTS},
            [GB10_OP_SYRK] = {.submit = syrk_submit}},
};
