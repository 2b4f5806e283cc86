/* The cuda backend: what a handle holds, and the way of a batch over the device.
 *
 * Where the kernels can read the caller's memory themselves (device, managed and pinned memory; all
 * memory where the device says so) a batch is one launch. Elsewhere it goes in chunks through two
 * slots, each with a stream, device memory and pinned memory: while one computes, the other is
 * filled or emptied. Memory grows to the largest need and is kept. */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"
#include "kernels/core/alloc.h"
#include "kernels/core/stopwatch.h"
#include "kernels/core/view.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/qr_kernels.h"
#include "kernels/cuda/qr_plan.h"

enum { SLOTS = 2, VIEWS = 6, CHUNK = 32 << 20 /* bytes of input and outputs in a slot, about */ };

typedef struct slot {
    void *stream;
    char *device, *pinned;
    size_t device_bytes, pinned_bytes;
    int64_t first, count; /* the matrices in flight; count 0: none */
} slot_t;

typedef struct state {
    cuda_device_t device;
    slot_t slot[SLOTS];
    uint32_t variant; /* ideas left out: FUGU_CUDA_VARIANT, a number, for experiments */
} state_t;

static const char *isa(void)
{
    return "cuda";
}

static gb10_status_t open_handle(void **state, gb10_error_t *err)
{
    gb10_status_t status = GB10_OK;
    state_t *s = NULL;
    GB10_TRY(gb10_alloc(&s, 1, sizeof *s, "state of backend cuda", err));
    *state = s;
    GB10_TRY(cuda_device_query(&s->device, err));
    for (int i = 0; i < SLOTS; i++)
        GB10_TRY(cuda_stream_open(&s->slot[i].stream, err));
    const char *variant = getenv("FUGU_CUDA_VARIANT");
    s->variant = variant ? (uint32_t)strtoul(variant, NULL, 0) : 0;
cleanup:
    return status;
}

static void close_handle(void *state)
{
    state_t *s = state;
    for (int i = 0; s && i < SLOTS; i++) {
        cuda_memory_free(s->slot[i].device, 0);
        cuda_memory_free(s->slot[i].pinned, 1);
        cuda_stream_close(s->slot[i].stream);
    }
    gb10_free(s);
}

/* ---- memory ---- */

static size_t round_up(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

static gb10_status_t grow(char **p, size_t *have, size_t want, int pinned, gb10_error_t *err)
{
    if (want <= *have)
        return GB10_OK;
    void *fresh = NULL;
    cuda_memory_free(*p, pinned);
    *p = NULL;
    *have = 0;
    gb10_status_t status = cuda_memory_new(&fresh, want, pinned, err);
    *p = fresh;
    *have = status == GB10_OK ? want : 0;
    return status;
}

/* ---- one call ---- */

/* The views of a call in one row: A first. */
typedef struct call {
    state_t *state;
    const gb10_geqrf_args_t *args;
    const gb10_view_t *view[VIEWS];
    qr_plan_t plan;
    int64_t chunk;
    size_t work; /* bytes of the kernel's own global memory */
    unsigned most;
} call_t;

static void views_of(const gb10_geqrf_args_t *a, const gb10_view_t *view[VIEWS])
{
    const gb10_view_t *all[VIEWS] = {a->A, a->V, a->T, a->R, a->tau, a->packed};
    memcpy(view, all, sizeof all);
}

static bool reaches(const cuda_device_t *d, const gb10_view_t *v)
{
    return !v || d->direct || v->memory != GB10_HOST;
}

static bool all_reached(const cuda_device_t *d, const gb10_view_t *const view[VIEWS])
{
    bool all = true;
    for (int i = 0; i < VIEWS; i++)
        all = all && reaches(d, view[i]);
    return all;
}

/* The device record for calls that have no handle; asking the device takes a while. */
static cuda_device_t known_device;
static gb10_status_t known_status = GB10_ERR_DEVICE;
static void know_device(void)
{
    known_status = cuda_device_query(&known_device, NULL);
}

static const char *geqrf_supports(const void *args)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const gb10_geqrf_args_t *a = args;
    const gb10_view_t *view[VIEWS];
    const cuda_device_t *d = &known_device;
    qr_plan_t plan;
    views_of(a, view);
    if (a->A->m < 1 || a->A->n < 1 || a->A->count < 1)
        return NULL;
    pthread_once(&once, know_device);
    if (known_status != GB10_OK)
        return "the device does not answer";
    bool host = false, device = false;
    for (int i = 0; i < VIEWS; i++) {
        host = host || !reaches(d, view[i]);
        device = device || (view[i] && view[i]->memory == GB10_DEVICE);
    }
    if (host && device)
        return "some views are in device memory and some in ordinary host memory";
    return qr_plan_make(&plan, d, a->A->dtype, a->A->m, a->A->n, a->nb, a->T != NULL, 0);
}

static qr_view_t device_view(const gb10_view_t *v)
{
    qr_view_t q = {0};
    if (!v)
        return q;
    q.base = v->base;
    q.list = v->layout == GB10_POINTERS ? v->list : NULL;
    q.rs = v->rs, q.cs = v->cs, q.bs = v->bs;
    q.width = v->layout == GB10_INTERLEAVED ? (int32_t)v->width : 0;
    return q;
}

/* Starts the kernel on views that the device reaches; scratch: ticket, then work. */
static gb10_status_t launch(const call_t *c, const qr_view_t view[VIEWS], int64_t count,
                            uint8_t *info, char *scratch, void *stream, gb10_error_t *err)
{
    const gb10_geqrf_args_t *a = c->args;
    const qr_plan_t *p = &c->plan;
    qr_args_t args = {.A = view[0],
                      .V = view[1],
                      .T = view[2],
                      .R = view[3],
                      .tau = view[4],
                      .packed = view[5],
                      .m = (int32_t)a->A->m,
                      .n = (int32_t)a->A->n,
                      .nb = (int32_t)(a->nb < INT32_MAX ? a->nb : INT32_MAX),
                      .t = p->t,
                      .variant = p->variant,
                      .count = count,
                      .info = info,
                      .ticket = (unsigned long long *)(void *)scratch,
                      .work = c->work ? scratch + 256 : NULL,
                      .stride = p->work,
                      .layout = p->layout};
    if (p->kind == QR_KIND_WARP)
        return qr_warp_launch(a->A->dtype, p->most, &args, stream, err);
    gb10_status_t status = cuda_memory_zero(scratch, 256, stream, err);
    if (status != GB10_OK)
        return status;
    const unsigned most = (int64_t)c->most < count ? c->most : (unsigned)count;
    const simt_launch_t how = {most * (unsigned)p->cluster,
                               1,
                               (unsigned)p->threads,
                               (unsigned)p->cluster,
                               p->layout.total,
                               stream};
    return qr_block_launch(a->A->dtype, &how, &args, err);
}

/* The whole batch where it lies. */
static gb10_status_t run_direct(const call_t *c, gb10_error_t *err)
{
    const gb10_geqrf_args_t *a = c->args;
    slot_t *slot = &c->state->slot[0];
    const int64_t count = a->A->count;
    const size_t infos = round_up((size_t)count), scratch = 256 + c->work;
    gb10_status_t status = GB10_OK;
    qr_view_t view[VIEWS];
    for (int i = 0; i < VIEWS; i++)
        view[i] = device_view(c->view[i]);
    GB10_TRY(grow(&slot->device, &slot->device_bytes, infos + scratch, 0, err));
    GB10_TRY(
        launch(c, view, count, (uint8_t *)slot->device, slot->device + infos, slot->stream, err));
    if (a->info)
        GB10_TRY(cuda_memory_copy(a->info, slot->device, (size_t)count, slot->stream, err));
    status = cuda_stream_wait(slot->stream, err);
cleanup:
    return status;
}

/* ---- through slots ---- */

static size_t matrix_bytes(const gb10_view_t *v)
{
    return v ? (size_t)(v->m * v->n) * gb10_dtype_size(v->dtype) : 0;
}

/* The row-major copy of view i in a slot's memory: A, the outputs, info, scratch lie one behind
 * the other. */
static size_t place(const call_t *c, int i, int64_t count)
{
    size_t at = 0;
    for (int e = 0; e < i && e < VIEWS; e++)
        at += round_up(matrix_bytes(c->view[e]) * (size_t)count);
    return at + (i > VIEWS ? round_up((size_t)count) : 0);
}

/* Between the caller's view i and the pinned copy. */
static gb10_status_t exchange(const call_t *c, const slot_t *slot, int i, bool in,
                              gb10_error_t *err)
{
    const gb10_view_t *v = c->view[i];
    gb10_view_t part = gb10_view_part(v, slot->first, slot->count);
    gb10_view_t dense =
        gb10_view_rows(v->dtype, slot->pinned + place(c, i, c->chunk), v->m, v->n, slot->count);
    gb10_repack_args_t args = {.from = in ? &part : &dense, .to = in ? &dense : &part};
    return gb10_backend_cpu.ops[GB10_OP_REPACK].submit(NULL, &args, NULL, err);
}

/* Sends a slot on its way. */
static gb10_status_t start(const call_t *c, slot_t *slot, gb10_error_t *err)
{
    gb10_status_t status = GB10_OK;
    qr_view_t view[VIEWS] = {{0}};
    for (int i = 0; i < VIEWS; i++)
        if (c->view[i]) {
            const gb10_view_t *v = c->view[i];
            gb10_view_t dense = gb10_view_rows(v->dtype, slot->device + place(c, i, c->chunk), v->m,
                                               v->n, slot->count);
            view[i] = device_view(&dense);
        }
    GB10_TRY(exchange(c, slot, 0, true, err));
    GB10_TRY(cuda_memory_copy(slot->device, slot->pinned,
                              matrix_bytes(c->view[0]) * (size_t)slot->count, slot->stream, err));
    GB10_TRY(launch(c, view, slot->count, (uint8_t *)slot->device + place(c, VIEWS, c->chunk),
                    slot->device + place(c, VIEWS + 1, c->chunk), slot->stream, err));
    const size_t from = place(c, 1, c->chunk), to = place(c, VIEWS + 1, c->chunk);
    GB10_TRY(
        cuda_memory_copy(slot->pinned + from, slot->device + from, to - from, slot->stream, err));
cleanup:
    return status;
}

/* Waits for a slot and hands its outputs over. */
static gb10_status_t finish(const call_t *c, slot_t *slot, gb10_error_t *err)
{
    if (slot->count == 0)
        return GB10_OK;
    gb10_status_t status = cuda_stream_wait(slot->stream, err);
    for (int i = 1; i < VIEWS && status == GB10_OK; i++)
        if (c->view[i])
            status = exchange(c, slot, i, false, err);
    if (status == GB10_OK && c->args->info)
        memcpy(c->args->info + slot->first, slot->pinned + place(c, VIEWS, c->chunk),
               (size_t)slot->count);
    slot->count = 0;
    return status;
}

static gb10_status_t run_staged(const call_t *c, gb10_error_t *err)
{
    const int64_t count = c->args->A->count;
    const size_t pinned = place(c, VIEWS + 1, c->chunk), device = pinned + 256 + c->work;
    const int64_t slots = c->chunk < count ? SLOTS : 1;
    gb10_status_t status = GB10_OK;
    slot_t *slot = c->state->slot;
    for (int i = 0; i < slots; i++) {
        slot[i].count = 0;
        GB10_TRY(grow(&slot[i].device, &slot[i].device_bytes, device, 0, err));
        GB10_TRY(grow(&slot[i].pinned, &slot[i].pinned_bytes, pinned, 1, err));
    }
    for (int64_t first = 0, turn = 0; first < count; first += c->chunk, turn++) {
        slot_t *now = &slot[turn % SLOTS];
        GB10_TRY(finish(c, now, err));
        now->first = first;
        now->count = count - first < c->chunk ? count - first : c->chunk;
        GB10_TRY(start(c, now, err));
        if (turn > 0)
            GB10_TRY(finish(c, &slot[(turn + 1) % SLOTS], err));
    }
    for (int i = 0; i < slots; i++)
        GB10_TRY(finish(c, &slot[i], err));
cleanup:
    for (int i = 0; i < SLOTS && status != GB10_OK; i++) {
        (void)cuda_stream_wait(slot[i].stream, NULL);
        slot[i].count = 0;
    }
    return status;
}

/* Matrices that go together: whole groups of interleaved views. */
static int64_t chunk_of(const call_t *c)
{
    const int64_t count = c->args->A->count;
    size_t bytes = 1;
    int64_t granule = 1;
    for (int i = 0; i < VIEWS; i++) {
        bytes += matrix_bytes(c->view[i]);
        int64_t width = c->view[i] ? gb10_view_granule(c->view[i]) : 1;
        granule = granule % width == 0 ? granule : width % granule == 0 ? width : count;
    }
    int64_t chunk = (int64_t)(CHUNK / bytes) / granule * granule;
    chunk = chunk < granule ? granule : chunk;
    return chunk < count ? chunk : count;
}

static gb10_status_t geqrf_submit(void *state, const void *args, void *workspace, gb10_error_t *err)
{
    const gb10_geqrf_args_t *a = args;
    call_t c = {.state = state, .args = a};
    const double since = gb10_seconds();
    (void)workspace;
    if (a->A->m < 1 || a->A->n < 1 || a->A->count < 1) {
        for (int64_t b = 0; a->info && b < a->A->count; b++)
            a->info[b] = GB10_INFO_OK;
        return GB10_OK;
    }
    views_of(a, c.view);
    const cuda_device_t *d = &c.state->device;
    const char *why = qr_plan_make(&c.plan, d, a->A->dtype, a->A->m, a->A->n, a->nb, a->T != NULL,
                                   c.state->variant | a->variant);
    if (why)
        return GB10_FAIL(err, GB10_ERR_UNSUPPORTED, "%s", why);
    c.chunk = chunk_of(&c);
    c.most = c.plan.most;
    if (c.plan.work) { /* copies of whole matrices: an eighth of the memory at most */
        size_t room = d->memory / 8 / c.plan.work;
        c.most = room < c.most ? (unsigned)(room > 0 ? room : 1) : c.most;
        c.most = (int64_t)c.most < c.chunk ? c.most : (unsigned)c.chunk;
        c.work = c.plan.work * c.most;
    }
    gb10_status_t status = all_reached(d, c.view) ? run_direct(&c, err) : run_staged(&c, err);
    if (status != GB10_OK)
        gb10_error_context(err, "backend cuda, %lld matrices of %lld x %lld",
                           (long long)a->A->count, (long long)a->A->m, (long long)a->A->n);
    if (a->times)
        a->times->factor += gb10_seconds() - since;
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
    .ops = {[GB10_OP_GEQRF] = {.supports = geqrf_supports, .submit = geqrf_submit}},
};
