#include "kernels/share.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "kernels/core/alloc.h"
#include "kernels/core/stopwatch.h"
#include "kernels/core/view.h"

enum {
    VIEWS_MAX = 6,
    ARRAYS_MAX = 4,
    SLICE_BYTES = 64 << 10, /* of input: what a slice takes from the counter, at least           */
    SLICES_WANTED = 4       /* slices a thread, so that all end at about the same time           */
};

/* Where an operation's args struct has its views and its arrays with one entry a matrix; the first
 * view says how large a matrix is. Offsets past the last are 0 with `bytes` or `used` 0. */
typedef struct field {
    size_t at;
    size_t bytes; /* of an array's entry; of a view: IN and OUT */
} field_t;
enum { IN = 1, OUT = 2 };
typedef struct fields {
    size_t size, times; /* times 0: the operation has none */
    field_t views[VIEWS_MAX], arrays[ARRAYS_MAX];
} fields_t;

#define VIEW(type, name, role)                                                                     \
    {                                                                                              \
        offsetof(gb10_##type##_args_t, name), role                                                 \
    }
#define ARRAY(type, name)                                                                          \
    {                                                                                              \
        offsetof(gb10_##type##_args_t, name), sizeof *((gb10_##type##_args_t *)0)->name            \
    }

static const fields_t fields_of[GB10_OPS_ALL] = {
    [GB10_OP_GEQRF] = {.size = sizeof(gb10_geqrf_args_t),
                       .times = offsetof(gb10_geqrf_args_t, times),
                       .views = {VIEW(geqrf, A, IN), VIEW(geqrf, V, OUT), VIEW(geqrf, T, OUT),
                                 VIEW(geqrf, R, OUT), VIEW(geqrf, tau, OUT),
                                 VIEW(geqrf, packed, OUT)},
                       .arrays = {ARRAY(geqrf, info)}},
    [GB10_OP_FORM_T] = {.size = sizeof(gb10_form_t_args_t),
                        .views = {VIEW(form_t, V, IN), VIEW(form_t, tau, IN),
                                  VIEW(form_t, T, OUT)}},
    [GB10_OP_FORM_Q] = {.size = sizeof(gb10_form_q_args_t),
                        .views = {VIEW(form_q, V, IN), VIEW(form_q, T, IN), VIEW(form_q, Q, OUT)}},
    [GB10_OP_APPLY_Q] = {.size = sizeof(gb10_apply_q_args_t),
                         .views = {VIEW(apply_q, V, IN), VIEW(apply_q, T, IN),
                                   VIEW(apply_q, C, IN | OUT)}},
    [GB10_OP_REPACK] = {.size = sizeof(gb10_repack_args_t),
                        .views = {VIEW(repack, from, IN), VIEW(repack, to, OUT)},
                        .arrays = {ARRAY(repack, scale), ARRAY(repack, info)}},
    [GB10_OP_SYRK] = {.size = sizeof(gb10_syrk_args_t),
                      .views = {VIEW(syrk, C, IN | OUT), VIEW(syrk, A, IN)}},
    [GB10_OP_CHECK] = {.size = sizeof(gb10_check_args_t),
                       .views = {VIEW(check, A, IN), VIEW(check, V, IN), VIEW(check, T, IN),
                                 VIEW(check, R, IN), VIEW(check, tau, IN)},
                       .arrays = {ARRAY(check, level),
                                  ARRAY(check, info),
                                  {offsetof(gb10_check_args_t, metrics),
                                   GB10_METRICS * sizeof(double)},
                                  ARRAY(check, failed)}},
    [GB10_OP_COMPARE_R] = {.size = sizeof(gb10_compare_r_args_t),
                           .views = {VIEW(compare_r, A, IN), VIEW(compare_r, R1, IN),
                                     VIEW(compare_r, R2, IN)},
                           .arrays = {ARRAY(compare_r, result)}},
};

typedef union any_args {
    gb10_geqrf_args_t geqrf;
    gb10_form_t_args_t form_t;
    gb10_form_q_args_t form_q;
    gb10_apply_q_args_t apply_q;
    gb10_repack_args_t repack;
    gb10_syrk_args_t syrk;
    gb10_check_args_t check;
    gb10_compare_r_args_t compare_r;
} any_args_t;

/* What one worker needs beside the operation's own workspace. */
typedef struct desk {
    any_args_t args;
    gb10_view_t view[VIEWS_MAX], dense[VIEWS_MAX]; /* a slice; its row-major copy */
    gb10_times_t times;
    gb10_status_t status;
    gb10_error_t err;
} desk_t;

typedef struct share {
    const gb10_call_t *call;
    const gb10_op_t *op; /* the call's, for one thread or for the team */
    const fields_t *fields;
    int64_t count, slice;
    unsigned foreign; /* bit i: view i is repacked */
    int workers;
    size_t need, stride; /* of the operation; from one worker's memory to the next          */
    char *workspace;     /* workers times: desk, the operation's workspace, row-major copies */
    atomic_bool failed;
} share_t;

static size_t round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

static void *pointer_at(const void *args, size_t at)
{
    void *p;
    memcpy(&p, (const char *)args + at, sizeof p);
    return p;
}

const gb10_view_t *gb10_share_view(gb10_op_id_t id, const void *args, int i, int *end)
{
    const field_t *view = fields_of[id].views;
    *end = i >= VIEWS_MAX || view[i].bytes == 0;
    return *end ? NULL : pointer_at(args, view[i].at);
}

static int64_t gcd(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* `slice`, made larger until no view's group is cut. */
static int64_t uncut(const share_t *s, int64_t slice)
{
    int64_t multiple = 1;
    int end = 0;
    for (int i = 0; !end; i++) {
        const gb10_view_t *v = gb10_share_view(s->call->id, s->call->args, i, &end);
        int64_t g = v ? gb10_view_granule(v) : 1;
        if (g > s->count)
            return s->count;
        multiple *= g / gcd(multiple, g);
        if (multiple < 1 || multiple > s->count)
            return s->count;
    }
    int64_t larger = (slice + multiple - 1) / multiple * multiple;
    return larger > s->count ? s->count : larger;
}

/* Matrices that a worker takes at a time: whole granules. */
static int64_t slice_of(const gb10_view_t *v, int64_t granule, int threads)
{
    int64_t bytes = v->m * v->n * (int64_t)gb10_dtype_size(v->dtype);
    if (bytes == 0)
        return v->count;
    int64_t wanted = (SLICE_BYTES + bytes - 1) / bytes;
    int64_t fair = v->count / ((int64_t)threads * SLICES_WANTED);
    int64_t some = fair < wanted ? fair : wanted;
    return (int64_t)round_up((size_t)(some > 0 ? some : 1), (size_t)granule);
}

/* The views that the operation does not take as they are. */
static unsigned foreign_views(const gb10_call_t *call)
{
    unsigned taken = call->op->layouts ? call->op->layouts : GB10_LINEAR, bits = 0;
    int end = 0;
    for (int i = 0; !end; i++) {
        const gb10_view_t *v = gb10_share_view(call->id, call->args, i, &end);
        if (v && gb10_view_host(v) && !(taken >> v->layout & 1u))
            bits |= 1u << i;
    }
    return bits;
}

static size_t dense_bytes(const gb10_view_t *v, int64_t count)
{
    return round_up((size_t)(v->m * v->n * count) * gb10_dtype_size(v->dtype), GB10_ALIGN);
}

/* Bytes of the row-major copies of one slice. */
static size_t copies_bytes(const share_t *s)
{
    size_t bytes = 0;
    int end;
    for (int i = 0; i < VIEWS_MAX; i++)
        if (s->foreign >> i & 1u)
            bytes += dense_bytes(gb10_share_view(s->call->id, s->call->args, i, &end), s->slice);
    return bytes;
}

/* The arguments of one slice, in the worker's memory; `copies` is where row-major copies go. */
static void cut(const share_t *s, desk_t *desk, int64_t first, int64_t n, char *copies)
{
    const fields_t *f = s->fields;
    char *args = (char *)&desk->args;
    memcpy(args, s->call->args, f->size);
    for (int i = 0; i < VIEWS_MAX && f->views[i].bytes; i++) {
        const gb10_view_t *v = pointer_at(args, f->views[i].at), *part = &desk->view[i];
        if (!v)
            continue;
        desk->view[i] = gb10_view_part(v, first, n);
        if (s->foreign >> i & 1u) {
            part = &desk->dense[i];
            desk->dense[i] = gb10_view_rows(v->dtype, copies, v->m, v->n, n);
            copies += dense_bytes(v, s->slice);
        }
        memcpy(args + f->views[i].at, &part, sizeof part);
    }
    for (int i = 0; i < ARRAYS_MAX && f->arrays[i].bytes; i++) {
        char *array = pointer_at(args, f->arrays[i].at);
        if (array)
            array += (size_t)first * f->arrays[i].bytes;
        memcpy(args + f->arrays[i].at, &array, sizeof array);
    }
    gb10_times_t *times = &desk->times;
    if (f->times && pointer_at(args, f->times))
        memcpy(args + f->times, &times, sizeof times);
}

/* Fills the row-major copies of a slice (IN), or hands their contents on (OUT). */
static gb10_status_t exchange(const share_t *s, desk_t *desk, size_t role)
{
    gb10_status_t status = GB10_OK;
    double since = gb10_seconds();
    for (int i = 0; i < VIEWS_MAX && status == GB10_OK; i++) {
        if (!(s->foreign >> i & 1u) || !(s->fields->views[i].bytes & role))
            continue;
        bool in = role == IN;
        gb10_repack_args_t args = {.from = in ? &desk->view[i] : &desk->dense[i],
                                   .to = in ? &desk->dense[i] : &desk->view[i]};
        status = gb10_backend_cpu.ops[GB10_OP_REPACK].submit(NULL, &args, NULL, &desk->err);
    }
    gb10_lap(&since, role == IN ? &desk->times.pack : &desk->times.unpack);
    return status;
}

static void run_slice(void *ctx, int64_t part, int worker)
{
    share_t *s = ctx;
    char *memory = s->workspace + (size_t)worker * s->stride;
    char *own = memory + round_up(sizeof(desk_t), GB10_ALIGN);
    desk_t *desk = (desk_t *)(void *)memory;
    int64_t first = part * s->slice, left = s->count - first;
    gb10_status_t status = GB10_OK;
    if (atomic_load(&s->failed))
        return;
    cut(s, desk, first, left < s->slice ? left : s->slice, own + round_up(s->need, GB10_ALIGN));
    if (s->foreign)
        GB10_TRY(exchange(s, desk, IN));
    GB10_TRY(s->op->submit(s->call->state, &desk->args, own, &desk->err));
    if (s->foreign)
        GB10_TRY(exchange(s, desk, OUT));
cleanup:
    if (status != GB10_OK) {
        desk->status = status;
        atomic_store(&s->failed, true);
    }
}

/* Adds the workers' times up and passes the first failure on. */
static gb10_status_t collect(const share_t *s, gb10_error_t *err)
{
    gb10_times_t *times = s->fields->times ? pointer_at(s->call->args, s->fields->times) : NULL;
    gb10_status_t status = GB10_OK;
    for (int w = 0; w < s->workers; w++) {
        const desk_t *desk = (const desk_t *)(const void *)(s->workspace + (size_t)w * s->stride);
        if (times) {
            times->pack += desk->times.pack;
            times->factor += desk->times.factor;
            times->form_t += desk->times.form_t;
            times->unpack += desk->times.unpack;
        }
        if (desk->status != GB10_OK && status == GB10_OK) {
            status = desk->status;
            *err = desk->err;
        }
    }
    return status;
}

/* Memory for as many workers as there is room for, at least one. */
static gb10_status_t seat(share_t *s, gb10_handle_t *handle, gb10_error_t *err)
{
    const gb10_op_t *op = s->op;
    s->need = op->need ? op->need(s->call->state, s->call->args) : 0;
    s->stride =
        round_up(sizeof(desk_t), GB10_ALIGN) + round_up(s->need, GB10_ALIGN) + copies_bytes(s);
    gb10_status_t status = GB10_ERR_MEMORY;
    for (; status != GB10_OK; s->workers /= 2) {
        bool last = s->workers == 1;
        status = gb10_handle_reserve(handle, (size_t)s->workers * s->stride, last ? err : NULL);
        if (status == GB10_OK || last)
            break;
    }
    if (status != GB10_OK)
        return status;
    s->workspace = handle->workspace;
    for (int w = 0; w < s->workers; w++)
        memset(s->workspace + (size_t)w * s->stride, 0, sizeof(desk_t));
    return GB10_OK;
}

/* Outputs whose last group is not full get their padding: interleaved ones that the operation wrote
 * matrix by matrix. */
static void pad_outputs(const share_t *s)
{
    int end = 0;
    for (int i = 0; !end; i++) {
        const gb10_view_t *v = gb10_share_view(s->call->id, s->call->args, i, &end);
        bool out = v && (s->fields->views[i].bytes & OUT) && gb10_view_host(v);
        if (out && v->layout == GB10_INTERLEAVED)
            gb10_view_pad(v);
    }
}

gb10_status_t gb10_share_run(gb10_handle_t *handle, const gb10_call_t *call, gb10_error_t *err)
{
    gb10_op_t op = *call->op;
    gb10_status_t status = GB10_OK;
    gb10_crew_t *crew = handle->equipment.crew;
    int end, threads = gb10_crew_threads(crew);
    const gb10_view_t *first = gb10_share_view(call->id, call->args, 0, &end);
    share_t s = {.call = call, .fields = &fields_of[call->id], .count = first->count};
    bool team = call->shared && op.whole && op.whole(call->state, call->args, threads);
    bool whole = !call->shared || team;
    if (team) {
        op.need = op.whole_need;
        op.submit = op.whole_submit;
    }
    s.op = &op;
    s.foreign = foreign_views(call);
    bool cuts = s.foreign || (!whole && threads > 1);
    int64_t granule = op.granule ? op.granule(call->state, call->args) : 1;
    s.slice = cuts ? uncut(&s, slice_of(first, granule, threads)) : s.count;
    int64_t parts = s.slice > 0 ? (s.count + s.slice - 1) / s.slice : 1;
    if (parts <= 1 && !s.foreign) {
        GB10_TRY(gb10_handle_reserve(handle, op.need ? op.need(call->state, call->args) : 0, err));
        GB10_TRY(op.submit(call->state, call->args, handle->workspace, err));
    } else {
        s.workers = whole ? 1 : parts < threads ? (int)parts : threads;
        GB10_TRY(seat(&s, handle, err));
        gb10_crew_run(crew, s.workers, run_slice, &s, parts);
        GB10_TRY(collect(&s, err));
    }
    if (op.wait)
        GB10_TRY(op.wait(call->state, err));
    pad_outputs(&s);
cleanup:
    return status;
}
