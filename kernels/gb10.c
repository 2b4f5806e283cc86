#include "kernels/gb10.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "kernels/check/check.h"
#include "kernels/core/alloc.h"
#include "kernels/core/view.h"
#include "kernels/handle.h"
#include "kernels/share.h"
#include "kernels/validate.h"

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

static void equip(gb10_handle_t *handle)
{
    if (handle->backend->equip)
        handle->backend->equip(handle->state, &handle->equipment);
}

/* Takes the table over; NULL: the built-in one. */
static void use_tuning(gb10_handle_t *handle, gb10_tuning_t *table)
{
    gb10_tuning_t *old = handle->tuning;
    handle->tuning = table;
    handle->equipment.tuning = table ? table : gb10_tuning_builtin();
    gb10_tuning_write_stamp(handle->equipment.tuning, handle->stamp);
    equip(handle);
    gb10_tuning_free(old);
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
    use_tuning(h, NULL);
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
    gb10_crew_destroy(handle->equipment.crew);
    gb10_tuning_free(handle->tuning);
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

gb10_error_t *gb10_handle_error(gb10_handle_t *handle)
{
    handle->error.status = GB10_OK;
    handle->error.message[0] = '\0';
    return &handle->error;
}

gb10_status_t gb10_handle_reserve(gb10_handle_t *handle, size_t bytes, gb10_error_t *err)
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

gb10_status_t gb10_set_threads(gb10_handle_t *handle, int threads)
{
    gb10_crew_t *crew = NULL;
    if (!handle)
        return GB10_ERR_INVALID;
    gb10_error_t *err = gb10_handle_error(handle);
    if (threads < 0 || threads > GB10_CREW_MAX)
        return GB10_FAIL(err, GB10_ERR_INVALID, "set_threads: threads = %d must be 0 to %d",
                         threads, GB10_CREW_MAX);
    threads = threads > 0 ? threads : gb10_cores();
    if (threads == gb10_threads(handle))
        return GB10_OK;
    gb10_status_t status = threads > 1 ? gb10_crew_create(&crew, threads, err) : GB10_OK;
    if (status != GB10_OK)
        return status;
    gb10_crew_t *old = handle->equipment.crew;
    handle->equipment.crew = crew;
    equip(handle);
    gb10_crew_destroy(old);
    return GB10_OK;
}

int gb10_threads(const gb10_handle_t *handle)
{
    return gb10_crew_threads(handle->equipment.crew);
}

gb10_status_t gb10_set_tuning(gb10_handle_t *handle, const char *text)
{
    gb10_tuning_t *table = NULL;
    if (!handle)
        return GB10_ERR_INVALID;
    gb10_error_t *err = gb10_handle_error(handle);
    gb10_status_t status = text ? gb10_tuning_parse(&table, text, err) : GB10_OK;
    if (status == GB10_OK)
        use_tuning(handle, table);
    return status;
}

const char *gb10_tuning_stamp(const gb10_handle_t *handle)
{
    return handle->stamp;
}

size_t gb10_tuning_text(const gb10_handle_t *handle, char *text, size_t size)
{
    return gb10_tuning_print(handle->equipment.tuning, text, size);
}

int64_t gb10_geqrf_granule(const gb10_handle_t *handle, gb10_dtype_t dtype, int64_t m, int64_t n,
                           int64_t nb)
{
    gb10_view_t A = gb10_view_rows(dtype, NULL, m, n, 0);
    gb10_geqrf_args_t args = {.A = &A, .nb = nb};
    const gb10_op_t *op = &handle->backend->ops[GB10_OP_GEQRF];
    return op->granule ? op->granule(handle->state, &args) : 1;
}

/* ---- calls ---- */

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

static bool all_on_host(gb10_op_id_t id, const void *args)
{
    bool host = true;
    int end = 0;
    for (int i = 0; !end; i++) {
        const gb10_view_t *view = gb10_share_view(id, args, i, &end);
        host = host && (!view || gb10_view_host(view));
    }
    return host;
}

/* Runs a validated operation on the backend, or on cpu-ref when the CPU can read all views. */
static gb10_status_t dispatch(gb10_handle_t *handle, gb10_op_id_t id, const void *args,
                              gb10_error_t *err)
{
    const gb10_backend_t *backend = handle->backend;
    bool on_host = all_on_host(id, args);
    const char *reason = unserved(backend, id, args, on_host);
    if (reason && !on_host)
        return GB10_FAIL(err, GB10_ERR_UNSUPPORTED,
                         "backend %s: %s, and the data is in device memory", backend->name, reason);
    if (reason)
        backend = &gb10_backend_cpu_ref;
    gb10_call_t call = {.id = id,
                        .op = &backend->ops[id],
                        .state = backend == handle->backend ? handle->state : NULL,
                        .shared = backend->shared,
                        .args = args};
    return gb10_share_run(handle, &call, err);
}

/* Operations of the library itself, on host memory. */
#define OWN(name)                                                                                  \
    static size_t name##_need(void *state, const void *args)                                       \
    {                                                                                              \
        (void)state;                                                                               \
        return gb10_##name##_need(args);                                                           \
    }                                                                                              \
    static gb10_status_t name##_submit(void *state, const void *args, void *workspace,             \
                                       gb10_error_t *err)                                          \
    {                                                                                              \
        (void)state;                                                                               \
        (void)err;                                                                                 \
        gb10_##name##_run(args, workspace);                                                        \
        return GB10_OK;                                                                            \
    }
OWN(check)
OWN(compare_r)

static gb10_status_t run_own(gb10_handle_t *handle, gb10_op_id_t id, const void *args,
                             gb10_error_t *err)
{
    static const gb10_op_t own[GB10_OPS_ALL] = {
        [GB10_OP_CHECK] = {.need = check_need, .submit = check_submit},
        [GB10_OP_COMPARE_R] = {.need = compare_r_need, .submit = compare_r_submit}};
    gb10_call_t call = {.id = id, .op = &own[id], .shared = 1, .args = args};
    return gb10_share_run(handle, &call, err);
}

/* The public call of an operation: `run` does it once the arguments are found to be valid. */
#define CALL(name, id, run)                                                                        \
    gb10_status_t gb10_##name(gb10_handle_t *handle, const gb10_##name##_args_t *args)             \
    {                                                                                              \
        if (!handle)                                                                               \
            return GB10_ERR_INVALID;                                                               \
        gb10_error_t *err = gb10_handle_error(handle);                                             \
        if (!args)                                                                                 \
            return GB10_FAIL(err, GB10_ERR_INVALID, #name ": args is null");                       \
        gb10_status_t status = gb10_validate_##name(args, err);                                    \
        return status == GB10_OK ? run(handle, id, args, err) : status;                            \
    }
CALL(geqrf, GB10_OP_GEQRF, dispatch)
CALL(repack, GB10_OP_REPACK, dispatch)
CALL(form_t, GB10_OP_FORM_T, dispatch)
CALL(form_q, GB10_OP_FORM_Q, dispatch)
CALL(apply_q, GB10_OP_APPLY_Q, dispatch)
CALL(syrk, GB10_OP_SYRK, dispatch)
CALL(check, GB10_OP_CHECK, run_own)
CALL(compare_r, GB10_OP_COMPARE_R, run_own)
