#include "kernels/validate.h"

#include <inttypes.h>
#include <stdbool.h>

#include "kernels/core/view.h"

/* One argument of an operation. */
typedef struct named {
    const char *op, *name;
    const gb10_view_t *view;
} named_t;

#define INVALID(err, ...) GB10_FAIL(err, GB10_ERR_INVALID, __VA_ARGS__)

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t at_least_one(int64_t a)
{
    return a > 1 ? a : 1;
}

static bool is_empty(const gb10_view_t *v)
{
    return v->m == 0 || v->n == 0 || v->count == 0;
}

static gb10_status_t check_enums(named_t a, gb10_error_t *err)
{
    const gb10_view_t *v = a.view;
    if ((unsigned)v->dtype >= GB10_DTYPES)
        return INVALID(err, "%s: %s has unknown dtype %d", a.op, a.name, (int)v->dtype);
    if ((unsigned)v->layout >= GB10_LAYOUTS)
        return INVALID(err, "%s: %s has unknown layout %d", a.op, a.name, (int)v->layout);
    if ((unsigned)v->memory > GB10_MANAGED)
        return INVALID(err, "%s: %s has unknown memory kind %d", a.op, a.name, (int)v->memory);
    if (v->m < 0 || v->n < 0 || v->count < 0)
        return INVALID(err, "%s: %s has a negative size: %" PRId64 " x %" PRId64 ", count %" PRId64,
                       a.op, a.name, v->m, v->n, v->count);
    return GB10_OK;
}

static bool is_packed(const gb10_view_t *v)
{
    return v->layout != GB10_STRIDED && v->layout != GB10_POINTERS;
}

/* True when a * b * c bytes of 16, each factor rounded up to a multiple of its own, do not fit into
 * int64_t. */
static bool too_large(int64_t a, int64_t b, int64_t c, const int64_t round[3])
{
    int64_t size = 32, of[3] = {a, b, c};
    bool over = false;
    for (int i = 0; i < 3 && !over; i++)
        over = __builtin_add_overflow(at_least_one(of[i]), round[i] - 1, &of[i]) ||
               __builtin_mul_overflow(size, of[i], &size);
    return over;
}

/* Widths of the packed layouts; every address, padding included, fits into int64_t. */
static gb10_status_t check_packing(named_t a, gb10_error_t *err)
{
    const gb10_view_t *v = a.view;
    bool tiles = v->layout == GB10_TILES, panels = v->layout == GB10_PANELS;
    int64_t w = v->width;
    if (w < 1)
        return INVALID(err, "%s: %s has width %" PRId64 ", must be at least 1", a.op, a.name, w);
    if (panels && v->group < 1)
        return INVALID(err, "%s: %s has group %" PRId64 ", must be at least 1", a.op, a.name,
                       v->group);
    const int64_t round[3] = {tiles ? w : 1, tiles ? w : 1, tiles ? 1 : gb10_view_granule(v)};
    if (too_large(v->m, v->n, v->count, round) || (panels && w > INT64_MAX / 2 - v->n))
        return INVALID(err,
                       "%s: %s is too large: %" PRId64 " x %" PRId64 ", count %" PRId64
                       ", width %" PRId64 ", group %" PRId64,
                       a.op, a.name, v->m, v->n, v->count, w, v->group);
    if (v->layout == GB10_INTERLEAVED && (v->rs != w || v->cs != v->m * w))
        return INVALID(err,
                       "%s: %s is interleaved and has strides rs = %" PRId64 ", cs = %" PRId64
                       "; must be width = %" PRId64 " and m width = %" PRId64,
                       a.op, a.name, v->rs, v->cs, w, v->m * w);
    return GB10_OK;
}

/* One of rs, cs is 1 and the other a leading dimension; every address fits into int64_t. */
static gb10_status_t check_leading(named_t a, gb10_error_t *err)
{
    const gb10_view_t *v = a.view;
    bool rows = v->cs == 1 && v->rs >= at_least_one(v->n);
    bool cols = v->rs == 1 && v->cs >= at_least_one(v->m);
    if (!rows && !cols)
        return INVALID(err,
                       "%s: %s has strides rs = %" PRId64 ", cs = %" PRId64 " for %" PRId64
                       " x %" PRId64 "; one must be 1, the other at least the contiguous side",
                       a.op, a.name, v->rs, v->cs, v->m, v->n);
    int64_t ld = rows ? v->rs : v->cs, lines = rows ? v->m : v->n, size, batch = 0;
    if (__builtin_mul_overflow(ld, at_least_one(lines), &size) ||
        (v->layout == GB10_STRIDED &&
         __builtin_mul_overflow(v->bs, at_least_one(v->count), &batch)) ||
        __builtin_add_overflow(size, batch < 0 ? -batch : batch, &size) ||
        __builtin_mul_overflow(size, (int64_t)32, &size))
        return INVALID(err, "%s: %s is too large: ld %" PRId64 ", bs %" PRId64 ", count %" PRId64,
                       a.op, a.name, ld, v->bs, v->count);
    return GB10_OK;
}

/* Matrices of a strided batch may not overlap: one lies after the other, or all lie side by side
 * in the lines of one larger matrix. */
static gb10_status_t check_batch_stride(named_t a, gb10_error_t *err)
{
    const gb10_view_t *v = a.view;
    if (v->layout != GB10_STRIDED || v->count < 2 || is_empty(v))
        return GB10_OK;
    bool rows = v->cs == 1 && v->rs >= v->n;
    int64_t ld = rows ? v->rs : v->cs, line = rows ? v->n : v->m;
    bool after = v->bs >= gb10_view_extent(v);
    bool beside = v->bs >= line && ld - line >= (v->count - 1) * v->bs;
    if (!after && !beside)
        return INVALID(err,
                       "%s: %s has batch stride %" PRId64 " for %" PRId64 " x %" PRId64
                       ", rs = %" PRId64 ", cs = %" PRId64 ": its matrices overlap",
                       a.op, a.name, v->bs, v->m, v->n, v->rs, v->cs);
    return GB10_OK;
}

static gb10_status_t check_address(named_t a, const void *p, int64_t b, gb10_error_t *err)
{
    const gb10_view_t *v = a.view;
    size_t number = gb10_dtype_size(v->dtype) / (gb10_dtype_is_complex(v->dtype) ? 2 : 1);
    if (!p)
        return INVALID(err, "%s: %s is a null pointer at matrix %" PRId64 " of %" PRId64, a.op,
                       a.name, b, v->count);
    if ((uintptr_t)p % number != 0)
        return INVALID(err, "%s: %s is not aligned to %zu bytes at matrix %" PRId64, a.op, a.name,
                       number, b);
    return GB10_OK;
}

static gb10_status_t check_memory(named_t a, gb10_error_t *err)
{
    const gb10_view_t *v = a.view;
    if (is_empty(v))
        return GB10_OK;
    if (v->layout != GB10_POINTERS)
        return check_address(a, v->base, 0, err);
    if (!v->list)
        return INVALID(err, "%s: %s has a null pointer list", a.op, a.name);
    if (v->memory == GB10_DEVICE)
        return GB10_OK;
    gb10_status_t status = GB10_OK;
    for (int64_t b = 0; b < v->count && status == GB10_OK; b++)
        status = check_address(a, v->list[b], b, err);
    return status;
}

static gb10_status_t check_view(named_t a, gb10_error_t *err)
{
    gb10_status_t status = GB10_OK;
    if (!a.view)
        return INVALID(err, "%s: %s is null", a.op, a.name);
    GB10_TRY(check_enums(a, err));
    GB10_TRY(is_packed(a.view) ? check_packing(a, err) : check_leading(a, err));
    GB10_TRY(check_batch_stride(a, err));
    GB10_TRY(check_memory(a, err));
cleanup:
    return status;
}

/* A view that must be m x n of the same type and count as `like`. */
static gb10_status_t check_like(named_t a, int64_t m, int64_t n, named_t like, gb10_error_t *err)
{
    gb10_status_t status = check_view(a, err);
    const gb10_view_t *v = a.view, *w = like.view;
    if (status != GB10_OK || !v || !w)
        return status;
    if (v->dtype != w->dtype)
        return INVALID(err, "%s: %s has dtype %c, %s has %c", a.op, a.name,
                       gb10_dtype_letter(v->dtype), like.name, gb10_dtype_letter(w->dtype));
    if (v->m != m || v->n != n)
        return INVALID(err,
                       "%s: %s is %" PRId64 " x %" PRId64 ", must be %" PRId64 " x %" PRId64
                       " (%s is %" PRId64 " x %" PRId64 ")",
                       a.op, a.name, v->m, v->n, m, n, like.name, w->m, w->n);
    if (v->count != w->count)
        return INVALID(err, "%s: %s has %" PRId64 " matrices, %s has %" PRId64, a.op, a.name,
                       v->count, like.name, w->count);
    return GB10_OK;
}

static gb10_status_t check_nb(const char *op, int64_t nb, gb10_error_t *err)
{
    if (nb < 1)
        return INVALID(err, "%s: nb = %" PRId64 " must be at least 1", op, nb);
    return GB10_OK;
}

/* Bytes [first, last) of matrix b, or of the whole batch when b < 0. A packed layout counts with
 * its padding, and a matrix of it with its whole group. */
typedef struct range {
    uintptr_t first, last;
} range_t;

static range_t range_of(const gb10_view_t *v, int64_t b)
{
    uintptr_t size = gb10_dtype_size(v->dtype);
    gb10_view_t part = *v;
    if (b >= 0 && !is_packed(v)) {
        uintptr_t p = (uintptr_t)gb10_view_at(v, b);
        return (range_t){p, p + (uintptr_t)gb10_view_extent(v) * size};
    }
    if (b >= 0) {
        part = gb10_view_part(v, b - b % gb10_view_granule(v), 1);
    }
    uintptr_t p = (uintptr_t)part.base;
    return (range_t){p, p + (uintptr_t)gb10_view_elements(&part) * size};
}

static bool ranges_meet(range_t a, range_t b)
{
    return a.first < b.last && b.first < a.last;
}

/* Two batches with one stride, such as V and R in one record per matrix: apart when the second
 * fits between two matrices of the first. */
static bool side_by_side(const gb10_view_t *a, const gb10_view_t *b)
{
    int64_t size = (int64_t)gb10_dtype_size(a->dtype);
    if (a->bs != b->bs || a->bs <= 0 || a->dtype != b->dtype || is_packed(a) || is_packed(b))
        return false;
    int64_t step = a->bs * size;
    int64_t offset = (int64_t)((uintptr_t)b->base - (uintptr_t)a->base) % step;
    offset = offset < 0 ? offset + step : offset;
    return offset >= gb10_view_extent(a) * size && offset + gb10_view_extent(b) * size <= step;
}

static bool overlap(const gb10_view_t *a, const gb10_view_t *b)
{
    bool lists = a->layout == GB10_POINTERS || b->layout == GB10_POINTERS;
    if (is_empty(a) || is_empty(b) || a->memory == GB10_DEVICE || b->memory == GB10_DEVICE)
        return false;
    if (!lists)
        return ranges_meet(range_of(a, -1), range_of(b, -1)) && !side_by_side(a, b);
    bool meet = false;
    for (int64_t i = 0; i < a->count && !meet; i++)
        meet = ranges_meet(range_of(a, i), range_of(b, i));
    return meet;
}

static bool same_memory(const gb10_view_t *a, const gb10_view_t *b)
{
    if (a->rs != b->rs || a->cs != b->cs || a->layout != b->layout)
        return false;
    if (is_packed(a))
        return a->base == b->base && a->width == b->width && a->group == b->group;
    if (a->layout == GB10_STRIDED)
        return a->base == b->base && (a->bs == b->bs || a->count < 2);
    for (int64_t i = 0; a->list != b->list && i < a->count; i++)
        if (a->list[i] != b->list[i])
            return false;
    return true;
}

static gb10_status_t check_apart(named_t a, named_t b, gb10_error_t *err)
{
    if (a.view && b.view && overlap(a.view, b.view))
        return INVALID(err,
                       "%s: %s (%" PRId64 " x %" PRId64 ") overlaps %s (%" PRId64 " x %" PRId64 ")",
                       a.op, a.name, a.view->m, a.view->n, b.name, b.view->m, b.view->n);
    return GB10_OK;
}

gb10_status_t gb10_validate_geqrf(const gb10_geqrf_args_t *args, gb10_error_t *err)
{
    gb10_status_t status = GB10_OK;
    named_t A = {"geqrf", "A", args->A};
    GB10_TRY(check_view(A, err));
    GB10_TRY(check_nb("geqrf", args->nb, err));
    if (args->mode != GB10_MODE_NATIVE)
        return INVALID(err, "geqrf: mode = %d is unknown", (int)args->mode);
    if (args->variant != 0)
        return INVALID(err, "geqrf: variant = %#x has bits that no backend knows",
                       (unsigned)args->variant);
    int64_t m = args->A->m, n = args->A->n, k = smaller(m, n);
    int64_t b = smaller(args->nb, k);
    named_t out[] = {{"geqrf", "V", args->V},
                     {"geqrf", "T", args->T},
                     {"geqrf", "R", args->R},
                     {"geqrf", "tau", args->tau},
                     {"geqrf", "packed", args->packed}};
    const int64_t shape[][2] = {{m, k}, {b, k}, {k, n}, {k, 1}, {m, n}};
    for (int i = 0; i < 5; i++) {
        if (!out[i].view)
            continue;
        GB10_TRY(check_like(out[i], shape[i][0], shape[i][1], A, err));
        bool in_place = i == 4 && same_memory(out[i].view, args->A);
        if (!in_place)
            GB10_TRY(check_apart(out[i], A, err));
        for (int j = 0; j < i; j++)
            GB10_TRY(check_apart(out[i], out[j], err));
    }
cleanup:
    return status;
}

gb10_status_t gb10_validate_repack(const gb10_repack_args_t *args, gb10_error_t *err)
{
    gb10_status_t status = GB10_OK;
    named_t from = {"repack", "from", args->from}, to = {"repack", "to", args->to};
    GB10_TRY(check_view(from, err));
    GB10_TRY(check_like(to, args->from->m, args->from->n, from, err));
    GB10_TRY(check_apart(to, from, err));
    for (int64_t b = 0; args->scale && b < args->from->count; b++)
        if (args->scale[b] < -GB10_SCALE_MAX || args->scale[b] > GB10_SCALE_MAX)
            return INVALID(err, "repack: scale is %d at matrix %" PRId64 ", must be within %d",
                           (int)args->scale[b], b, GB10_SCALE_MAX);
cleanup:
    return status;
}

/* V must be m x k with k <= m. */
static gb10_status_t check_v(named_t V, gb10_error_t *err)
{
    gb10_status_t status = check_view(V, err);
    if (status == GB10_OK && V.view->n > V.view->m)
        return INVALID(err, "%s: V is %" PRId64 " x %" PRId64 ", has more columns than rows", V.op,
                       V.view->m, V.view->n);
    return status;
}

gb10_status_t gb10_validate_form_t(const gb10_form_t_args_t *args, gb10_error_t *err)
{
    gb10_status_t status = GB10_OK;
    named_t V = {"form_t", "V", args->V}, tau = {"form_t", "tau", args->tau};
    named_t T = {"form_t", "T", args->T};
    GB10_TRY(check_v(V, err));
    GB10_TRY(check_nb("form_t", args->nb, err));
    int64_t k = args->V->n;
    GB10_TRY(check_like(tau, k, 1, V, err));
    GB10_TRY(check_like(T, smaller(args->nb, k), k, V, err));
    GB10_TRY(check_apart(T, V, err));
    GB10_TRY(check_apart(T, tau, err));
cleanup:
    return status;
}

gb10_status_t gb10_validate_form_q(const gb10_form_q_args_t *args, gb10_error_t *err)
{
    gb10_status_t status = GB10_OK;
    named_t V = {"form_q", "V", args->V}, T = {"form_q", "T", args->T};
    named_t Q = {"form_q", "Q", args->Q};
    GB10_TRY(check_v(V, err));
    GB10_TRY(check_nb("form_q", args->nb, err));
    int64_t m = args->V->m, k = args->V->n;
    GB10_TRY(check_like(T, smaller(args->nb, k), k, V, err));
    if (Q.view && (Q.view->n < k || Q.view->n > m))
        return INVALID(err, "form_q: Q has %" PRId64 " columns, V is %" PRId64 " x %" PRId64,
                       Q.view->n, m, k);
    GB10_TRY(check_like(Q, m, Q.view ? Q.view->n : 0, V, err));
    GB10_TRY(check_apart(Q, V, err));
    GB10_TRY(check_apart(Q, T, err));
cleanup:
    return status;
}

gb10_status_t gb10_validate_apply_q(const gb10_apply_q_args_t *args, gb10_error_t *err)
{
    gb10_status_t status = GB10_OK;
    named_t V = {"apply_q", "V", args->V}, T = {"apply_q", "T", args->T};
    named_t C = {"apply_q", "C", args->C};
    GB10_TRY(check_v(V, err));
    GB10_TRY(check_nb("apply_q", args->nb, err));
    int64_t m = args->V->m, k = args->V->n;
    GB10_TRY(check_like(T, smaller(args->nb, k), k, V, err));
    bool left = args->side == 'L';
    if (!left && args->side != 'R')
        return INVALID(err, "apply_q: side = %d must be 'L' or 'R'", args->side);
    if (args->trans != 'N' && args->trans != 'C' &&
        (args->trans != 'T' || gb10_dtype_is_complex(args->V->dtype)))
        return INVALID(err, "apply_q: trans = %d must be 'N' or 'C' ('T' for real types)",
                       args->trans);
    GB10_TRY(check_view(C, err));
    GB10_TRY(check_like(C, left ? m : C.view->m, left ? C.view->n : m, V, err));
    GB10_TRY(check_apart(C, V, err));
    GB10_TRY(check_apart(C, T, err));
cleanup:
    return status;
}

gb10_status_t gb10_validate_syrk(const gb10_syrk_args_t *args, gb10_error_t *err)
{
    gb10_status_t status = GB10_OK;
    named_t C = {"syrk", "C", args->C}, A = {"syrk", "A", args->A};
    GB10_TRY(check_view(C, err));
    if (args->uplo != 'U' && args->uplo != 'L')
        return INVALID(err, "syrk: uplo = %d must be 'U' or 'L'", args->uplo);
    if (args->trans != 'N' && args->trans != 'C' && (args->trans != 'T' || args->hermitian))
        return INVALID(err, "syrk: trans = %d must be 'N' or 'C' ('T' when not hermitian)",
                       args->trans);
    if (args->hermitian && (args->alpha[1] != 0 || args->beta[1] != 0))
        return INVALID(err, "syrk: alpha = %g%+gi and beta = %g%+gi must be real when hermitian",
                       args->alpha[0], args->alpha[1], args->beta[0], args->beta[1]);
    GB10_TRY(check_view(A, err));
    int64_t n = C.view->n, k = args->trans == 'N' ? A.view->n : A.view->m;
    GB10_TRY(check_like(C, n, n, C, err));
    GB10_TRY(check_like(A, args->trans == 'N' ? n : k, args->trans == 'N' ? k : n, C, err));
    GB10_TRY(check_apart(C, A, err));
cleanup:
    return status;
}

static gb10_status_t check_host(named_t a, gb10_error_t *err)
{
    if (a.view && !gb10_view_host(a.view))
        return INVALID(err, "%s: %s is in device memory, must be in host memory", a.op, a.name);
    return GB10_OK;
}

/* The highest level asked for; -1 when one is out of range. */
static int highest_level(const gb10_check_args_t *args)
{
    int highest = 0;
    for (int64_t b = 0; b < args->A->count && highest >= 0; b++) {
        int level = args->level[b];
        highest = level > GB10_CHECK_FULL ? -1 : level > highest ? level : highest;
    }
    return highest;
}

gb10_status_t gb10_validate_check(const gb10_check_args_t *args, gb10_error_t *err)
{
    gb10_status_t status = GB10_OK;
    named_t A = {"check", "A", args->A};
    GB10_TRY(check_view(A, err));
    GB10_TRY(check_host(A, err));
    GB10_TRY(check_nb("check", args->nb, err));
    int64_t m = args->A->m, n = args->A->n, k = smaller(m, n), count = args->A->count;
    int64_t b = smaller(args->nb, k);
    if (count > 0 && (!args->level || !args->info || !args->metrics))
        return INVALID(err, "check: %s is null for %" PRId64 " matrices",
                       !args->level  ? "level"
                       : !args->info ? "info"
                                     : "metrics",
                       count);
    int level = highest_level(args);
    if (level < 0)
        return INVALID(err, "check: level has a value above %d", GB10_CHECK_FULL);
    const named_t in[] = {{"check", "R", args->R},
                          {"check", "V", args->V},
                          {"check", "T", args->T},
                          {"check", "tau", args->tau}};
    const int64_t shape[][2] = {{k, n}, {m, k}, {b, k}, {k, 1}};
    for (int i = 0; i < 4; i++) {
        if (!in[i].view && i > 0 && level < GB10_CHECK_PROBE)
            continue;
        GB10_TRY(check_like(in[i], shape[i][0], shape[i][1], A, err));
        GB10_TRY(check_host(in[i], err));
    }
cleanup:
    return status;
}

gb10_status_t gb10_validate_compare_r(const gb10_compare_r_args_t *args, gb10_error_t *err)
{
    gb10_status_t status = GB10_OK;
    named_t A = {"compare_r", "A", args->A};
    named_t R[] = {{"compare_r", "R1", args->R1}, {"compare_r", "R2", args->R2}};
    GB10_TRY(check_view(A, err));
    GB10_TRY(check_host(A, err));
    int64_t m = args->A->m, n = args->A->n;
    for (int i = 0; i < 2; i++) {
        bool packed = R[i].view && R[i].view->m == m;
        GB10_TRY(check_like(R[i], packed ? m : smaller(m, n), n, A, err));
        GB10_TRY(check_host(R[i], err));
    }
    if (args->A->count > 0 && !args->result)
        return INVALID(err, "compare_r: result is null for %" PRId64 " matrices", args->A->count);
cleanup:
    return status;
}
