#include "kernels/gb10.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "kernels/backend.h"
#include "kernels/check/check.h"
#include "kernels/core/alloc.h"
#include "kernels/core/view.h"
#include "kernels/validate.h"

struct gb10_handle {
    const gb10_backend_t *backend;
    void *state;
    const char *reason;
    void *workspace;
    size_t capacity;
    gb10_error_t error;
};

/* ---- choice of the backend ---- */

static const char *known_names(char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; gb10_backend_at(i) && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, ", %s", gb10_backend_at(i)->name);
    return text;
}

static gb10_status_t choose_by_name(gb10_handle_t *handle, const char *name, gb10_error_t *err)
{
    char names[256];
    for (int i = 0; gb10_backend_at(i); i++)
        if (strcmp(gb10_backend_at(i)->name, name) == 0)
            handle->backend = gb10_backend_at(i);
    if (!handle->backend)
        return GB10_FAIL(err, GB10_ERR_INVALID, "unknown backend \"%s\"; known: auto%s", name,
                         known_names(names, sizeof names));
    handle->reason = handle->backend->probe();
    if (handle->reason)
        return GB10_FAIL(err, GB10_ERR_UNSUPPORTED, "backend %s cannot be used here: %s", name,
                         handle->reason);
    handle->reason = "asked for by name";
    return GB10_OK;
}

static gb10_status_t choose_best(gb10_handle_t *handle, gb10_error_t *err)
{
    for (int i = 0; gb10_backend_at(i); i++) {
        const gb10_backend_t *candidate = gb10_backend_at(i);
        bool better = !handle->backend || candidate->priority > handle->backend->priority;
        if (better && !candidate->probe())
            handle->backend = candidate;
    }
    handle->reason = "highest priority of the backends usable here";
    if (!handle->backend)
        return GB10_FAIL(err, GB10_ERR_UNSUPPORTED, "no backend can be used here");
    return GB10_OK;
}

gb10_status_t gb10_create(gb10_handle_t **handle, const char *backend, gb10_error_t *err)
{
    gb10_status_t status = GB10_OK;
    gb10_handle_t *h = NULL;
    if (!handle)
        return GB10_FAIL(err, GB10_ERR_INVALID, "create: handle is null");
    *handle = NULL;
    GB10_TRY(gb10_alloc(&h, 1, sizeof *h, "handle", err));
    if (!backend || strcmp(backend, "auto") == 0)
        GB10_TRY(choose_best(h, err));
    else
        GB10_TRY(choose_by_name(h, backend, err));
    if (h->backend->open)
        GB10_TRY(h->backend->open(&h->state, err));
    *handle = h;
    return GB10_OK;
cleanup:
    gb10_free(h);
    return status;
}

void gb10_destroy(gb10_handle_t *handle)
{
    if (!handle)
        return;
    if (handle->backend->close)
        handle->backend->close(handle->state);
    gb10_free(handle->workspace);
    gb10_free(handle);
}

const char *gb10_backend_name(const gb10_handle_t *handle)
{
    return handle->backend->name;
}

const char *gb10_backend_reason(const gb10_handle_t *handle)
{
    return handle->reason;
}

const char *gb10_isa_name(const gb10_handle_t *handle)
{
    return handle->backend->isa();
}

const char *gb10_isa_at(const gb10_handle_t *handle, int level)
{
    const char *(*isa_at)(int) = handle->backend->isa_at;
    return isa_at ? isa_at(level) : NULL;
}

int gb10_isa_level(const gb10_handle_t *handle)
{
    const char *name;
    for (int level = 0; (name = gb10_isa_at(handle, level)); level++)
        if (strcmp(name, gb10_isa_name(handle)) == 0)
            return level;
    return 0;
}

const char *gb10_backend_list(int i, const char **reason)
{
    const gb10_backend_t *backend = gb10_backend_at(i);
    if (reason)
        *reason = backend ? backend->probe() : NULL;
    return backend ? backend->name : NULL;
}

const gb10_error_t *gb10_last_error(const gb10_handle_t *handle)
{
    static const gb10_error_t none = {GB10_ERR_INVALID, 0, __FILE__, "handle is null"};
    return handle ? &handle->error : &none;
}

/* ---- calls ---- */

/* Where the failures of one call go: the handle's record, emptied first. */
static gb10_error_t *fresh_error(gb10_handle_t *handle)
{
    handle->error.status = GB10_OK;
    handle->error.message[0] = '\0';
    return &handle->error;
}

static gb10_status_t reserve(gb10_handle_t *handle, size_t bytes, gb10_error_t *err)
{
    if (bytes <= handle->capacity)
        return GB10_OK;
    gb10_free(handle->workspace);
    handle->workspace = NULL;
    handle->capacity = 0;
    gb10_status_t status = gb10_alloc(&handle->workspace, bytes, 1, "workspace", err);
    if (status == GB10_OK)
        handle->capacity = bytes;
    return status;
}

static const char *unserved(const gb10_backend_t *backend, gb10_op_id_t id, const void *args,
                            bool on_host)
{
    const gb10_op_t *op = &backend->ops[id];
    if (!on_host && !backend->reads_device)
        return "it reads host memory only";
    if (!op->submit)
        return "it has no such operation of its own";
    return op->supports ? op->supports(args) : NULL;
}

/* Runs a validated operation on the backend, or on cpu-ref when the CPU can read all views. */
static gb10_status_t dispatch(gb10_handle_t *handle, gb10_op_id_t id, const void *args,
                              bool on_host, gb10_error_t *err)
{
    gb10_status_t status = GB10_OK;
    const gb10_backend_t *backend = handle->backend;
    const char *reason = unserved(backend, id, args, on_host);
    if (reason && !on_host)
        return GB10_FAIL(err, GB10_ERR_UNSUPPORTED,
                         "backend %s: %s, and the data is in device memory", backend->name, reason);
    if (reason)
        backend = &gb10_backend_cpu_ref;
    void *state = backend == handle->backend ? handle->state : NULL;
    const gb10_op_t *op = &backend->ops[id];
    GB10_TRY(reserve(handle, op->need ? op->need(state, args) : 0, err));
    GB10_TRY(op->submit(state, args, handle->workspace, err));
    if (op->wait)
        GB10_TRY(op->wait(state, err));
cleanup:
    return status;
}

static bool all_on_host(const gb10_view_t *const *views, int n)
{
    bool host = true;
    for (int i = 0; i < n; i++)
        host = host && (!views[i] || gb10_view_host(views[i]));
    return host;
}

#define CALL(handle, name, id, args, ...)                                                          \
    do {                                                                                           \
        if (!(handle))                                                                             \
            return GB10_ERR_INVALID;                                                               \
        gb10_error_t *err = fresh_error(handle);                                                   \
        if (!(args))                                                                               \
            return GB10_FAIL(err, GB10_ERR_INVALID, #name ": args is null");                       \
        gb10_status_t status = gb10_validate_##name(args, err);                                    \
        if (status != GB10_OK)                                                                     \
            return status;                                                                         \
        const gb10_view_t *const views[] = {__VA_ARGS__};                                          \
        bool host = all_on_host(views, (int)(sizeof views / sizeof views[0]));                     \
        return dispatch(handle, id, args, host, err);                                              \
    } while (0)

gb10_status_t gb10_geqrf(gb10_handle_t *handle, const gb10_geqrf_args_t *args)
{
    CALL(handle, geqrf, GB10_OP_GEQRF, args, args->A, args->V, args->T, args->R, args->tau,
         args->packed);
}

gb10_status_t gb10_form_t(gb10_handle_t *handle, const gb10_form_t_args_t *args)
{
    CALL(handle, form_t, GB10_OP_FORM_T, args, args->V, args->tau, args->T);
}

gb10_status_t gb10_form_q(gb10_handle_t *handle, const gb10_form_q_args_t *args)
{
    CALL(handle, form_q, GB10_OP_FORM_Q, args, args->V, args->T, args->Q);
}

gb10_status_t gb10_apply_q(gb10_handle_t *handle, const gb10_apply_q_args_t *args)
{
    CALL(handle, apply_q, GB10_OP_APPLY_Q, args, args->V, args->T, args->C);
}

#define CHECK(handle, name, args)                                                                  \
    do {                                                                                           \
        if (!(handle))                                                                             \
            return GB10_ERR_INVALID;                                                               \
        gb10_error_t *err = fresh_error(handle);                                                   \
        if (!(args))                                                                               \
            return GB10_FAIL(err, GB10_ERR_INVALID, #name ": args is null");                       \
        gb10_status_t status = gb10_validate_##name(args, err);                                    \
        if (status == GB10_OK)                                                                     \
            status = reserve(handle, gb10_##name##_need(args), err);                               \
        if (status == GB10_OK)                                                                     \
            gb10_##name##_run(args, (handle)->workspace);                                          \
        return status;                                                                             \
    } while (0)

gb10_status_t gb10_check(gb10_handle_t *handle, const gb10_check_args_t *args)
{
    CHECK(handle, check, args);
}

gb10_status_t gb10_compare_r(gb10_handle_t *handle, const gb10_compare_r_args_t *args)
{
    CHECK(handle, compare_r, args);
}

/* ---- LAPACK-shaped entry points ---- */

/* The sizes that the views below would report under other names. */
static gb10_status_t check_shape(int64_t m, int64_t n, int64_t lda, int64_t ldt, int64_t nb,
                                 int64_t count, gb10_error_t *err)
{
    int64_t k = m < n ? m : n, b = nb < k ? nb : k;
    const char *name = "batched_geqrf";
    if (m < 0)
        return GB10_FAIL(err, GB10_ERR_INVALID, "%s: m = %" PRId64 " is negative", name, m);
    if (n < 0)
        return GB10_FAIL(err, GB10_ERR_INVALID, "%s: n = %" PRId64 " is negative", name, n);
    if (lda < (m > 1 ? m : 1))
        return GB10_FAIL(err, GB10_ERR_INVALID,
                         "%s: lda = %" PRId64 " must be at least max(1, m), m = %" PRId64, name,
                         lda, m);
    if (nb < 1)
        return GB10_FAIL(err, GB10_ERR_INVALID, "%s: nb = %" PRId64 " must be at least 1", name,
                         nb);
    if (ldt < (b > 1 ? b : 1))
        return GB10_FAIL(err, GB10_ERR_INVALID,
                         "%s: ldt = %" PRId64 " must be at least max(1, min(nb, k)) = %" PRId64,
                         name, ldt, b);
    if (count < 0)
        return GB10_FAIL(err, GB10_ERR_INVALID, "%s: batch_count = %" PRId64 " is negative", name,
                         count);
    return GB10_OK;
}

/* In-place factorisation of A with the outputs that LAPACK has. */
static gb10_status_t factor_in_place(gb10_handle_t *handle, const gb10_view_t *A, void *tau,
                                     void *T, int64_t ldt, int64_t nb, gb10_mode_t mode,
                                     uint8_t *info)
{
    int64_t k = A->m < A->n ? A->m : A->n, b = nb < k ? nb : k > 1 ? k : 1;
    gb10_view_t tau_view = gb10_view_rows(A->dtype, tau, k, 1, A->count);
    gb10_view_t t_view = gb10_view_cols(A->dtype, T, b, k, T ? ldt : b, A->count);
    gb10_geqrf_args_t args = {.A = A,
                              .packed = A,
                              .tau = tau ? &tau_view : NULL,
                              .T = T ? &t_view : NULL,
                              .nb = nb,
                              .mode = mode,
                              .info = info};
    return gb10_geqrf(handle, &args);
}

gb10_status_t gb10_batched_geqrf(gb10_handle_t *handle, gb10_dtype_t dtype, int64_t m, int64_t n,
                                 void *A, int64_t lda, int64_t strideA, void *tau, void *T,
                                 int64_t ldt, int64_t nb, int64_t batch_count,
                                 gb10_mode_t precision_mode, uint8_t *info)
{
    if (!handle)
        return GB10_ERR_INVALID;
    gb10_error_t *err = fresh_error(handle);
    gb10_status_t status = check_shape(m, n, lda, T ? ldt : nb, nb, batch_count, err);
    if (status != GB10_OK)
        return status;
    gb10_view_t view = {dtype, GB10_STRIDED, GB10_HOST, m,   n,      batch_count,
                        A,     NULL,         1,         lda, strideA};
    if (batch_count > 1 && m > 0 && n > 0 && strideA < gb10_view_extent(&view))
        return GB10_FAIL(err, GB10_ERR_INVALID,
                         "batched_geqrf: strideA = %" PRId64 " is too small for %" PRId64
                         " x %" PRId64 ", lda = %" PRId64,
                         strideA, m, n, lda);
    return factor_in_place(handle, &view, tau, T, ldt, nb, precision_mode, info);
}

gb10_status_t gb10_batched_geqrf_pointers(gb10_handle_t *handle, gb10_dtype_t dtype, int64_t m,
                                          int64_t n, void *const *A, int64_t lda, void *tau,
                                          void *T, int64_t ldt, int64_t nb, int64_t batch_count,
                                          gb10_mode_t precision_mode, uint8_t *info)
{
    if (!handle)
        return GB10_ERR_INVALID;
    gb10_error_t *err = fresh_error(handle);
    gb10_status_t status = check_shape(m, n, lda, T ? ldt : nb, nb, batch_count, err);
    if (status != GB10_OK)
        return status;
    gb10_view_t view = {dtype, GB10_POINTERS, GB10_HOST, m, n, batch_count, NULL, A, 1, lda, 0};
    return factor_in_place(handle, &view, tau, T, ldt, nb, precision_mode, info);
}
