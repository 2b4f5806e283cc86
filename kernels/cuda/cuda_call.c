#include "kernels/cuda/cuda_call.h"

#include <string.h>

#include "kernels/backend.h"
#include "kernels/core/view.h"

enum { CHUNK = 32 << 20 /* bytes of a slot's matrices, about */, ZEROS = 256 };

/* One run of a call. */
typedef struct way {
    const cuda_call_t *call;
    int64_t count, chunk;
} way_t;

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

gb10_status_t cuda_slots_open(cuda_slot_t slot[CUDA_SLOTS], gb10_error_t *err)
{
    gb10_status_t status = GB10_OK;
    for (int i = 0; i < CUDA_SLOTS && status == GB10_OK; i++)
        status = cuda_stream_open(&slot[i].stream, err);
    return status;
}

void cuda_slots_close(cuda_slot_t slot[CUDA_SLOTS])
{
    for (int i = 0; i < CUDA_SLOTS; i++) {
        cuda_memory_free(slot[i].device, 0);
        cuda_memory_free(slot[i].pinned, 1);
        cuda_stream_close(slot[i].stream);
    }
}

bool cuda_reaches(const cuda_device_t *device, const gb10_view_t *view)
{
    return !view || device->direct || view->memory != GB10_HOST;
}

const char *cuda_obstacle(const cuda_device_t *device, const cuda_call_t *call)
{
    bool apart = false, on_device = false;
    for (int i = 0; i < CUDA_VIEWS; i++) {
        const gb10_view_t *v = call->view[i];
        apart = apart || !cuda_reaches(device, v);
        on_device = on_device || (v && v->memory == GB10_DEVICE);
    }
    return apart && on_device ? "some views are in device memory and some in ordinary host memory"
                              : NULL;
}

qr_view_t cuda_view(const gb10_view_t *v)
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

/* ---- where it lies ---- */

static gb10_status_t run_direct(const way_t *w, cuda_slot_t *slot, gb10_error_t *err)
{
    const cuda_call_t *c = w->call;
    const size_t infos = c->info ? round_up((size_t)w->count) : 0;
    gb10_status_t status = GB10_OK;
    cuda_flight_t flight = {.count = w->count, .stream = slot->stream};
    GB10_TRY(grow(&slot->device, &slot->device_bytes, ZEROS + infos + c->work, 0, err));
    for (int i = 0; i < CUDA_VIEWS; i++)
        flight.view[i] = cuda_view(c->view[i]);
    flight.scratch = slot->device + infos;
    flight.info = c->info ? (uint8_t *)slot->device : NULL;
    GB10_TRY(cuda_memory_zero(slot->device, infos + ZEROS, slot->stream, err));
    GB10_TRY(c->start(c, &flight, err));
    if (c->info)
        GB10_TRY(cuda_memory_copy(c->info, slot->device, (size_t)w->count, slot->stream, err));
    status = cuda_stream_wait(slot->stream, err);
cleanup:
    return status;
}

/* ---- through slots ---- */

static size_t matrix_bytes(const gb10_view_t *v)
{
    return v ? (size_t)(v->m * v->n) * gb10_dtype_size(v->dtype) : 0;
}

/* The row-major copy of view i in a slot's memory; past the last: info, then scratch. */
static size_t place(const way_t *w, int i)
{
    size_t at = 0;
    for (int e = 0; e < i && e < CUDA_VIEWS; e++)
        at += round_up(matrix_bytes(w->call->view[e]) * (size_t)w->chunk);
    return at + (i > CUDA_VIEWS ? round_up((size_t)w->chunk) : 0);
}

static gb10_view_t dense(const way_t *w, int i, char *memory, int64_t count)
{
    const gb10_view_t *v = w->call->view[i];
    return gb10_view_rows(v->dtype, memory + place(w, i), v->m, v->n, count);
}

/* Between the caller's view i and the pinned copy. */
static gb10_status_t exchange(const way_t *w, const cuda_slot_t *slot, int i, bool in,
                              gb10_error_t *err)
{
    gb10_view_t part = gb10_view_part(w->call->view[i], slot->first, slot->count);
    gb10_view_t copy = dense(w, i, slot->pinned, slot->count);
    gb10_repack_args_t args = {.from = in ? &part : &copy, .to = in ? &copy : &part};
    return gb10_backend_cpu.ops[GB10_OP_REPACK].submit(NULL, &args, NULL, err);
}

/* Sends a slot on its way. */
static gb10_status_t start(const way_t *w, cuda_slot_t *slot, gb10_error_t *err)
{
    const cuda_call_t *c = w->call;
    gb10_status_t status = GB10_OK;
    cuda_flight_t flight = {.count = slot->count, .stream = slot->stream};
    const size_t infos = place(w, CUDA_VIEWS), scratch = place(w, CUDA_VIEWS + 1);
    for (int i = 0; i < CUDA_VIEWS; i++) {
        if (!c->view[i])
            continue;
        gb10_view_t copy = dense(w, i, slot->device, slot->count);
        flight.view[i] = cuda_view(&copy);
        if (!(c->in >> i & 1u))
            continue;
        GB10_TRY(exchange(w, slot, i, true, err));
        GB10_TRY(cuda_memory_copy(slot->device + place(w, i), slot->pinned + place(w, i),
                                  matrix_bytes(c->view[i]) * (size_t)slot->count, slot->stream,
                                  err));
    }
    flight.info = c->info ? (uint8_t *)slot->device + infos : NULL;
    flight.scratch = slot->device + scratch;
    GB10_TRY(cuda_memory_zero(slot->device + infos, scratch + ZEROS - infos, slot->stream, err));
    GB10_TRY(c->start(c, &flight, err));
    for (int i = 0; i < CUDA_VIEWS; i++)
        if (c->view[i] && c->out >> i & 1u)
            GB10_TRY(cuda_memory_copy(slot->pinned + place(w, i), slot->device + place(w, i),
                                      matrix_bytes(c->view[i]) * (size_t)slot->count, slot->stream,
                                      err));
    GB10_TRY(cuda_memory_copy(slot->pinned + infos, slot->device + infos, (size_t)slot->count,
                              slot->stream, err));
cleanup:
    return status;
}

/* Waits for a slot and hands its outputs over. */
static gb10_status_t finish(const way_t *w, cuda_slot_t *slot, gb10_error_t *err)
{
    const cuda_call_t *c = w->call;
    if (slot->count == 0)
        return GB10_OK;
    gb10_status_t status = cuda_stream_wait(slot->stream, err);
    for (int i = 0; i < CUDA_VIEWS && status == GB10_OK; i++)
        if (c->view[i] && c->out >> i & 1u)
            status = exchange(w, slot, i, false, err);
    if (status == GB10_OK && c->info)
        memcpy(c->info + slot->first, slot->pinned + place(w, CUDA_VIEWS), (size_t)slot->count);
    slot->count = 0;
    return status;
}

/* Matrices that go together: whole groups of interleaved views. */
static int64_t chunk_of(const way_t *w)
{
    size_t bytes = 1;
    int64_t granule = 1;
    for (int i = 0; i < CUDA_VIEWS; i++) {
        const gb10_view_t *v = w->call->view[i];
        bytes += matrix_bytes(v);
        int64_t width = v ? gb10_view_granule(v) : 1;
        granule = granule % width == 0 ? granule : width % granule == 0 ? width : w->count;
    }
    int64_t chunk = (int64_t)(CHUNK / bytes) / granule * granule;
    chunk = chunk < granule ? granule : chunk;
    return chunk < w->count ? chunk : w->count;
}

static gb10_status_t run_staged(const way_t *w, cuda_slot_t slot[CUDA_SLOTS], gb10_error_t *err)
{
    const size_t pinned = place(w, CUDA_VIEWS + 1), device = pinned + ZEROS + w->call->work;
    const int slots = w->chunk < w->count ? CUDA_SLOTS : 1;
    gb10_status_t status = GB10_OK;
    for (int i = 0; i < slots; i++) {
        slot[i].count = 0;
        GB10_TRY(grow(&slot[i].device, &slot[i].device_bytes, device, 0, err));
        GB10_TRY(grow(&slot[i].pinned, &slot[i].pinned_bytes, pinned, 1, err));
    }
    for (int64_t first = 0, turn = 0; first < w->count; first += w->chunk, turn++) {
        cuda_slot_t *now = &slot[turn % slots];
        GB10_TRY(finish(w, now, err));
        now->first = first;
        now->count = w->count - first < w->chunk ? w->count - first : w->chunk;
        GB10_TRY(start(w, now, err));
    }
    for (int i = 0; i < slots; i++)
        GB10_TRY(finish(w, &slot[i], err));
cleanup:
    for (int i = 0; i < CUDA_SLOTS && status != GB10_OK; i++) {
        (void)cuda_stream_wait(slot[i].stream, NULL);
        slot[i].count = 0;
    }
    return status;
}

gb10_status_t cuda_call_run(const cuda_device_t *device, cuda_slot_t slot[CUDA_SLOTS],
                            const cuda_call_t *call, gb10_error_t *err)
{
    way_t w = {.call = call};
    bool reached = true;
    for (int i = 0; i < CUDA_VIEWS; i++) {
        reached = reached && cuda_reaches(device, call->view[i]);
        w.count = call->view[i] && w.count == 0 ? call->view[i]->count : w.count;
    }
    w.chunk = chunk_of(&w);
    return reached ? run_direct(&w, &slot[0], err) : run_staged(&w, slot, err);
}
