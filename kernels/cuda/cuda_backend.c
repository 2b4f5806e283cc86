/* The cuda backend: what a handle holds, and each operation as a call (cuda_call.h). */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"
#include "kernels/core/alloc.h"
#include "kernels/core/stopwatch.h"
#include "kernels/cuda/cuda_call.h"
#include "kernels/cuda/qr_kernels.h"
#include "kernels/cuda/qr_plan.h"

typedef struct state {
    cuda_device_t device;
    cuda_slot_t slot[CUDA_SLOTS];
    uint32_t variant; /* ideas left out: FUGU_CUDA_VARIANT, a number, for experiments */
} state_t;

static const char *isa(void)
{
    return "cuda";
}

static void close_handle(void *state)
{
    state_t *s = state;
    if (s)
        cuda_slots_close(s->slot);
    gb10_free(s);
}

static gb10_status_t open_handle(void **state, gb10_error_t *err)
{
    gb10_status_t status = GB10_OK;
    state_t *s = NULL;
    *state = NULL;
    GB10_TRY(gb10_alloc(&s, 1, sizeof *s, "state of backend cuda", err));
    GB10_TRY(cuda_device_query(&s->device, err));
    GB10_TRY(cuda_slots_open(s->slot, err));
    const char *variant = getenv("FUGU_CUDA_VARIANT");
    s->variant = variant ? (uint32_t)strtoul(variant, NULL, 0) : 0;
    *state = s;
    return GB10_OK;
cleanup:
    close_handle(s);
    return status;
}

/* The device record for calls that have no handle; asking the device takes a while. */
static cuda_device_t known_device;
static gb10_status_t known_status = GB10_ERR_DEVICE;
static void know_device(void)
{
    known_status = cuda_device_query(&known_device, NULL);
}
/* NULL when the device does not answer. */
static const cuda_device_t *device_known(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, know_device);
    return known_status == GB10_OK ? &known_device : NULL;
}
static const char no_answer[] = "the device does not answer";

static int32_t narrow(int64_t n)
{
    return (int32_t)(n < INT32_MAX ? n : INT32_MAX);
}

/* Blocks (or clusters) of the grid, fewer where each takes memory: an eighth of the device's at
 * most. */
static unsigned grid(const cuda_device_t *d, const qr_plan_t *plan, int64_t items)
{
    unsigned most = plan->most;
    const size_t each = plan->work * (size_t)plan->cluster;
    const size_t room = each ? d->memory / 8 / each : most;
    if (room < most)
        most = room > 0 ? (unsigned)room : 1;
    return items < (int64_t)most ? (unsigned)items : most;
}

/* Runs a call and says whose it was when it fails. */
static gb10_status_t run(state_t *s, const cuda_call_t *call, gb10_error_t *err)
{
    const gb10_view_t *v = call->view[0];
    gb10_status_t status = cuda_call_run(&s->device, s->slot, call, err);
    if (status != GB10_OK)
        gb10_error_context(err, "backend cuda, %lld matrices of %lld x %lld", (long long)v->count,
                           (long long)v->m, (long long)v->n);
    return status;
}

/* ---- geqrf ---- */

static cuda_call_t geqrf_call(const gb10_geqrf_args_t *a)
{
    return (cuda_call_t){.view = {a->A, a->V, a->T, a->R, a->tau, a->packed},
                         .in = 1u,
                         .out = 0x3eu,
                         .info = a->info,
                         .args = a};
}

static const char *geqrf_supports(const void *args)
{
    const gb10_geqrf_args_t *a = args;
    const cuda_device_t *d = device_known();
    const cuda_call_t call = geqrf_call(a);
    qr_plan_t plan;
    if (a->A->m < 1 || a->A->n < 1 || a->A->count < 1)
        return NULL;
    if (!d)
        return no_answer;
    const char *why = cuda_obstacle(d, &call);
    return why ? why
               : qr_plan_make(&plan, d, a->A->dtype, a->A->m, a->A->n, a->nb, a->T != NULL, 0);
}

/* The map that panels of A are loaded by, when its rows and matrices lie as that wants. */
static gb10_status_t map_input(qr_args_t *args, const qr_plan_t *p, gb10_dtype_t dtype,
                               gb10_error_t *err)
{
    enum { BOX = 256, WORD = 8, GRAIN = 16 };
    const uint64_t size = gb10_dtype_size(dtype), split = size > WORD ? size / WORD : 1;
    const qr_view_t *A = &args->A;
    const uint64_t row = (uint64_t)A->rs * size, matrix = (uint64_t)A->bs * size;
    const bool fits = p->kind != QR_KIND_GLOBAL && !(p->variant & QR_NO_TMA) && !A->list &&
                      A->width == 0 && A->cs == 1 && args->m <= BOX && row % GRAIN == 0 &&
                      (matrix % GRAIN == 0 || args->count == 1) &&
                      (uintptr_t)A->base % GRAIN == 0 && args->count <= INT32_MAX;
    if (!fits)
        return GB10_OK;
    const unsigned width = (unsigned)qr_plan_width(dtype);
    const simt_tensor_t tensor = {
        .base = A->base,
        .element = (int)(size / split),
        .rank = 3,
        .size = {(uint64_t)args->n * split, (uint64_t)args->m, (uint64_t)args->count},
        .pitch = {row, args->count == 1 ? row * (uint64_t)args->m : matrix},
        .box = {width * (unsigned)split, (unsigned)args->m, 1},
        .swizzle = (int)(width * size)};
    args->tma = 1;
    return simt_tensor_map(&args->map, &tensor, err);
}

gb10_status_t cuda_geqrf_start(const cuda_call_t *c, const cuda_flight_t *f, gb10_error_t *err)
{
    const gb10_geqrf_args_t *a = c->args;
    const qr_plan_t *p = c->plan;
    qr_args_t args = {.A = f->view[0],
                      .V = f->view[1],
                      .T = f->view[2],
                      .R = f->view[3],
                      .tau = f->view[4],
                      .packed = f->view[5],
                      .m = narrow(a->A->m),
                      .n = narrow(a->A->n),
                      .nb = narrow(a->nb),
                      .t = p->t,
                      .variant = p->variant,
                      .count = f->count,
                      .info = f->info,
                      .ticket = (unsigned long long *)(void *)f->scratch,
                      .work = c->work ? f->scratch + 256 : NULL,
                      .stride = p->work,
                      .global = p->global,
                      .layout = p->layout};
    if (p->kind == QR_KIND_WARP)
        return qr_warp_launch(a->A->dtype, p->most, &args, f->stream, err);
    gb10_status_t status = map_input(&args, p, a->A->dtype, err);
    if (status != GB10_OK)
        return status;
    const unsigned most = f->count < (int64_t)p->most ? (unsigned)f->count : p->most;
    const simt_launch_t how = {most * (unsigned)p->cluster,
                               1,
                               (unsigned)p->threads,
                               (unsigned)p->cluster,
                               p->layout.total,
                               f->stream};
    return qr_block_launch(a->A->dtype, &how, &args, err);
}

static gb10_status_t geqrf_submit(void *state, const void *args, void *workspace, gb10_error_t *err)
{
    const gb10_geqrf_args_t *a = args;
    state_t *s = state;
    const double since = gb10_seconds();
    (void)workspace;
    if (a->A->m < 1 || a->A->n < 1 || a->A->count < 1) {
        for (int64_t b = 0; a->info && b < a->A->count; b++)
            a->info[b] = GB10_INFO_OK;
        return GB10_OK;
    }
    qr_plan_t plan;
    const char *why = qr_plan_make(&plan, &s->device, a->A->dtype, a->A->m, a->A->n, a->nb,
                                   a->T != NULL, s->variant | a->variant);
    if (why)
        return GB10_FAIL(err, GB10_ERR_UNSUPPORTED, "%s", why);
    cuda_call_t call = geqrf_call(a);
    if (plan.work)
        plan.most = grid(&s->device, &plan, a->A->count);
    call.plan = &plan;
    call.start = cuda_geqrf_start;
    call.work = plan.work * plan.most * (size_t)plan.cluster;
    gb10_status_t status = run(s, &call, err);
    if (a->times)
        a->times->factor += gb10_seconds() - since;
    return status;
}

/* ---- Q and T ---- */

/* What form_q, apply_q and form_t have in common: V, T and a third view. */
typedef struct q_op {
    const gb10_view_t *V, *T, *third;
    int64_t nb;
    int right, adjoint, form, form_t;
} q_op_t;

static cuda_call_t q_call(const q_op_t *q)
{
    cuda_call_t c = {.view = {q->V, q->T, q->third}, .args = q};
    c.in = q->form ? 3u : q->form_t ? 5u : 7u;
    c.out = q->form_t ? 2u : 4u;
    return c;
}

static int64_t q_columns(const q_op_t *q)
{
    return q->right ? q->third->m : q->third->n;
}

static const char *q_plan(qr_plan_t *plan, const cuda_device_t *d, const q_op_t *q)
{
    const gb10_view_t *v = q->V;
    return q->form_t ? qr_plan_form_t(plan, d, v->dtype, v->m, v->n, q->nb)
                     : qr_plan_apply(plan, d, v->dtype, v->m, q_columns(q));
}

static bool q_empty(const q_op_t *q)
{
    return q->V->m < 1 || q->V->n < 1 || q->V->count < 1 || q->third->m < 1 || q->third->n < 1;
}

static const char *q_supports(const q_op_t *q)
{
    const cuda_device_t *d = device_known();
    const cuda_call_t call = q_call(q);
    qr_plan_t plan;
    if (q_empty(q)) /* rare, and Q with k = 0 is not nothing */
        return "there is nothing for the device";
    if (!d)
        return no_answer;
    const char *why = cuda_obstacle(d, &call);
    return why ? why : q_plan(&plan, d, q);
}

static gb10_status_t q_start(const cuda_call_t *c, const cuda_flight_t *f, gb10_error_t *err)
{
    const q_op_t *q = c->args;
    const qr_plan_t *p = c->plan;
    const int width = qr_plan_width(q->V->dtype);
    const int64_t panels = q->form_t ? 1 : (q_columns(q) + width - 1) / width;
    const qr_apply_args_t args = {.V = f->view[0],
                                  .T = f->view[1],
                                  .C = f->view[2],
                                  .tau = f->view[2],
                                  .m = narrow(q->V->m),
                                  .k = narrow(q->V->n),
                                  .nb = narrow(q->nb),
                                  .cols = narrow(q_columns(q)),
                                  .right = q->right,
                                  .adjoint = q->adjoint,
                                  .form = q->form,
                                  .count = f->count,
                                  .work = c->work ? f->scratch + 256 : NULL,
                                  .stride = p->work,
                                  .layout = p->layout};
    const int64_t items = f->count * panels;
    const simt_launch_t how = {items < (int64_t)p->most ? (unsigned)items : p->most,
                               1,
                               (unsigned)p->threads,
                               1,
                               p->layout.total,
                               f->stream};
    return (q->form_t ? qr_form_t_launch : qr_apply_launch)(q->V->dtype, &how, &args, err);
}

static gb10_status_t q_submit(state_t *s, const q_op_t *q, gb10_error_t *err)
{
    qr_plan_t plan;
    const char *why = q_plan(&plan, &s->device, q);
    if (why)
        return GB10_FAIL(err, GB10_ERR_UNSUPPORTED, "%s", why);
    cuda_call_t call = q_call(q);
    if (plan.work)
        plan.most = grid(&s->device, &plan, INT64_MAX);
    call.plan = &plan;
    call.start = q_start;
    call.work = plan.work * plan.most;
    return run(s, &call, err);
}

static q_op_t of_form_t(const void *args)
{
    const gb10_form_t_args_t *a = args;
    return (q_op_t){.V = a->V, .T = a->T, .third = a->tau, .nb = a->nb, .form_t = 1};
}
static q_op_t of_form_q(const void *args)
{
    const gb10_form_q_args_t *a = args;
    return (q_op_t){.V = a->V, .T = a->T, .third = a->Q, .nb = a->nb, .form = 1};
}
static q_op_t of_apply_q(const void *args)
{
    const gb10_apply_q_args_t *a = args;
    const int right = a->side == 'R';
    return (q_op_t){.V = a->V,
                    .T = a->T,
                    .third = a->C,
                    .nb = a->nb,
                    .right = right,
                    .adjoint = (a->trans != 'N') != right};
}
#define Q_OPERATION(name)                                                                          \
    static const char *name##_supports(const void *args)                                           \
    {                                                                                              \
        const q_op_t q = of_##name(args);                                                          \
        return q_supports(&q);                                                                     \
    }                                                                                              \
    static gb10_status_t name##_submit(void *state, const void *args, void *workspace,             \
                                       gb10_error_t *err)                                          \
    {                                                                                              \
        const q_op_t q = of_##name(args);                                                          \
        (void)workspace;                                                                           \
        return q_submit(state, &q, err);                                                           \
    }
Q_OPERATION(form_t)
Q_OPERATION(form_q)
Q_OPERATION(apply_q)

/* ---- rank-k update ---- */

static cuda_call_t syrk_call(const gb10_syrk_args_t *a)
{
    const bool reads = a->alpha[0] != 0 || a->alpha[1] != 0;
    return (cuda_call_t){.view = {a->C, a->A}, .in = reads ? 3u : 1u, .out = 1u, .args = a};
}

static const char *syrk_supports(const void *args)
{
    const gb10_syrk_args_t *a = args;
    const cuda_device_t *d = device_known();
    const cuda_call_t call = syrk_call(a);
    if (!d)
        return no_answer;
    return a->C->n > INT32_MAX - 64 || a->A->m > INT32_MAX || a->A->n > INT32_MAX
               ? "the matrix is too large for the kernels"
               : cuda_obstacle(d, &call);
}

static gb10_status_t syrk_start(const cuda_call_t *c, const cuda_flight_t *f, gb10_error_t *err)
{
    const gb10_syrk_args_t *a = c->args;
    const unsigned *most = c->plan;
    const int first = a->trans == 'N';
    syrk_args_t args = {.A = f->view[1],
                        .C = f->view[0],
                        .alpha = {a->alpha[0], a->alpha[1]},
                        .beta = {a->beta[0], a->beta[1]},
                        .n = narrow(a->C->n),
                        .k = narrow(first ? a->A->n : a->A->m),
                        .upper = a->uplo == 'U',
                        .scale_first = first,
                        .hermitian = a->hermitian,
                        .count = f->count};
    if (!first) {
        args.A.rs = f->view[1].cs;
        args.A.cs = f->view[1].rs;
    }
    return syrk_launch(a->C->dtype, *most, &args, f->stream, err);
}

static gb10_status_t syrk_submit(void *state, const void *args, void *workspace, gb10_error_t *err)
{
    const gb10_syrk_args_t *a = args;
    state_t *s = state;
    const unsigned most = (unsigned)(4 * s->device.processors);
    const bool nothing = (a->alpha[0] == 0 && a->alpha[1] == 0) || a->A->m == 0 || a->A->n == 0;
    (void)workspace;
    if (a->C->count < 1 || a->C->n < 1 || (nothing && a->beta[0] == 1 && a->beta[1] == 0))
        return GB10_OK;
    cuda_call_t call = syrk_call(a);
    call.plan = &most;
    call.start = syrk_start;
    return run(s, &call, err);
}

/* ---- repack ---- */

/* Only where the device reaches both sides: a copy to it and back would be the longer way. */
static const char *repack_supports(const void *args)
{
    const gb10_repack_args_t *a = args;
    const cuda_device_t *d = device_known();
    if (!d)
        return no_answer;
    return cuda_reaches(d, a->from) && cuda_reaches(d, a->to) ? NULL : "both are in host memory";
}

static gb10_status_t repack_start(const cuda_call_t *c, const cuda_flight_t *f, gb10_error_t *err)
{
    const gb10_repack_args_t *a = c->args;
    const unsigned *most = c->plan;
    const size_t bytes = (size_t)f->count * sizeof *a->scale;
    int32_t *scale = (int32_t *)(void *)(f->scratch + 256);
    gb10_status_t status = GB10_OK;
    if (a->scale)
        GB10_TRY(cuda_memory_copy(scale, a->scale, bytes, f->stream, err));
    status =
        qr_repack_launch(*most, a->from, a->to, a->scale ? scale : NULL, f->info, f->stream, err);
cleanup:
    return status;
}

static gb10_status_t repack_submit(void *state, const void *args, void *workspace,
                                   gb10_error_t *err)
{
    const gb10_repack_args_t *a = args;
    state_t *s = state;
    const unsigned most = (unsigned)(8 * s->device.processors);
    (void)workspace;
    if (a->from->count < 1)
        return GB10_OK;
    const cuda_call_t call = {.view = {a->from, a->to},
                              .info = a->info,
                              .work = a->scale ? (size_t)a->from->count * sizeof *a->scale : 0,
                              .args = a,
                              .plan = &most,
                              .start = repack_start};
    const bool empty = a->from->m < 1 || a->from->n < 1;
    if (empty && a->info)
        memset(a->info, 0, (size_t)a->from->count);
    gb10_status_t status = empty ? GB10_OK : run(s, &call, err);
    for (int64_t b = 0; a->info && status == GB10_OK && b < a->from->count; b++)
        a->info[b] = a->info[b] == 0 ? GB10_INFO_OK : a->info[b];
    return status;
}

const gb10_backend_t gb10_backend_cuda = {
    .name = "cuda",
    .priority = 5,
    .probe = cuda_device_probe,
    .isa = isa,
    .reads_device = 1,
    .open = open_handle,
    .close = close_handle,
    .ops = {[GB10_OP_GEQRF] = {.supports = geqrf_supports, .submit = geqrf_submit},
            [GB10_OP_FORM_T] = {.supports = form_t_supports, .submit = form_t_submit},
            [GB10_OP_FORM_Q] = {.supports = form_q_supports, .submit = form_q_submit},
            [GB10_OP_APPLY_Q] = {.supports = apply_q_supports, .submit = apply_q_submit},
            [GB10_OP_SYRK] = {.supports = syrk_supports, .submit = syrk_submit},
            [GB10_OP_REPACK] = {.supports = repack_supports,
                                .submit = repack_submit,
                                .layouts = GB10_ALL_LAYOUTS}},
};
