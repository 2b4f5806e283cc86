/* Every argument of every operation, wrong one at a time; handles; failing allocations. */
#include <stdio.h>
#include <string.h>

#include "kernels/core/alloc.h"
#include "tests/support/batch.h"
#include "tests/support/test.h"

static gb10_handle_t *open_handle(const char *backend)
{
    gb10_handle_t *handle = NULL;
    cr_assert(gb10_create(&handle, backend, NULL) == GB10_OK);
    return handle;
}

/* The last call must have failed as invalid, and its message must hold `part`. */
static void expect_invalid(gb10_handle_t *handle, gb10_status_t status, const char *part)
{
    const gb10_error_t *err = gb10_last_error(handle);
    cr_expect(status == GB10_ERR_INVALID && err->status == GB10_ERR_INVALID,
              "status %d for \"%s\", not invalid", (int)status, part);
    cr_expect(strstr(err->message, part), "\"%s\" does not say \"%s\"", err->message, part);
}

/* One way to spoil a view, and what the message must say after the argument's name. */
typedef struct spoil {
    const char *says;
    void (*apply)(gb10_view_t *v);
} spoil_t;

static void bad_dtype(gb10_view_t *v)
{
    v->dtype = (gb10_dtype_t)7;
}
static void other_dtype(gb10_view_t *v)
{
    v->dtype = v->dtype == GB10_S ? GB10_C : GB10_S;
}
static void bad_layout(gb10_view_t *v)
{
    v->layout = (gb10_layout_t)9;
}
static void bad_memory(gb10_view_t *v)
{
    v->memory = (gb10_memory_t)4;
}
static void negative_m(gb10_view_t *v)
{
    v->m = -1;
}
static void negative_n(gb10_view_t *v)
{
    v->n = -3;
}
static void negative_count(gb10_view_t *v)
{
    v->count = -1;
}
static void more_rows(gb10_view_t *v)
{
    v->m += 1;
}
static void more_matrices(gb10_view_t *v)
{
    v->count += 1;
}
static void null_base(gb10_view_t *v)
{
    v->base = NULL;
}
static void null_list(gb10_view_t *v)
{
    v->layout = GB10_POINTERS;
    v->list = NULL;
}
static void null_entry(gb10_view_t *v)
{
    static void *list[3];
    list[0] = list[1] = v->base;
    list[2] = NULL;
    v->layout = GB10_POINTERS;
    v->list = list;
}
static void odd_address(gb10_view_t *v)
{
    v->base = (char *)v->base + 1;
}
static void no_unit_stride(gb10_view_t *v)
{
    v->cs = 2;
}
static void short_lines(gb10_view_t *v)
{
    v->rs = v->n - 1;
}
static void zero_stride(gb10_view_t *v)
{
    v->rs = 0;
}
static void short_batch_stride(gb10_view_t *v)
{
    v->bs -= 10; /* the gap is 9 */
}
static void negative_batch_stride(gb10_view_t *v)
{
    v->bs = -v->bs;
}
static void endless(gb10_view_t *v)
{
    v->bs = INT64_MAX / 4;
}

/* Wrong for inputs and outputs alike; A's shape is nobody else's business, so no shapes here. */
static const spoil_t view_spoils[] = {
    {"unknown dtype 7", bad_dtype},
    {"unknown layout 9", bad_layout},
    {"unknown memory kind 4", bad_memory},
    {"negative size", negative_m},
    {"negative size", negative_n},
    {"negative size", negative_count},
    {"null pointer at matrix 0", null_base},
    {"null pointer list", null_list},
    {"null pointer at matrix 2", null_entry},
    {"not aligned", odd_address},
    {"strides", no_unit_stride},
    {"strides", zero_stride},
    {"matrices overlap", short_batch_stride},
    {"matrices overlap", negative_batch_stride},
    {"too large", endless},
};
enum { VIEW_SPOILS = sizeof view_spoils / sizeof *view_spoils };

static const spoil_t like_spoils[] = {
    {"dtype", other_dtype},
    {"must be", more_rows},
    {"matrices, ", more_matrices},
};

static batch_t *small_batch(gb10_dtype_t dtype)
{
    batch_t *t =
        batch_new((batch_shape_t){.dtype = dtype, .m = 7, .n = 5, .count = 3, .nb = 4, .gap = 9});
    batch_fill(t, "gaussian", 1, 0, 0);
    return t;
}

static const char *argument_name(int buffer)
{
    static const char *const names[] = {"A", "V", "T", "R", "tau", "packed"};
    return names[buffer];
}

static void expect_named(gb10_handle_t *handle, gb10_status_t status, const char *op,
                         const char *argument, const char *says)
{
    char start[64];
    snprintf(start, sizeof start, "%s: %s ", op, argument);
    expect_invalid(handle, status, start);
    expect_invalid(handle, status, says);
}

Test(validate, geqrf_views)
{
    gb10_handle_t *handle = open_handle("cpu-ref");
    batch_t *t = small_batch(GB10_D);
    for (int buffer = 0; buffer < BATCH_BUFFERS; buffer++) {
        gb10_view_t kept = t->view[buffer];
        for (int i = 0; i < VIEW_SPOILS; i++) {
            view_spoils[i].apply(&t->view[buffer]);
            expect_named(handle, batch_geqrf(t, handle), "geqrf", argument_name(buffer),
                         view_spoils[i].says);
            t->view[buffer] = kept;
        }
        for (int i = 0; buffer != BATCH_A && i < 3; i++) {
            like_spoils[i].apply(&t->view[buffer]);
            expect_named(handle, batch_geqrf(t, handle), "geqrf", argument_name(buffer),
                         like_spoils[i].says);
            t->view[buffer] = kept;
        }
        if (kept.n > 1) {
            short_lines(&t->view[buffer]);
            expect_named(handle, batch_geqrf(t, handle), "geqrf", argument_name(buffer), "strides");
            t->view[buffer] = kept;
        }
    }
    cr_expect(batch_geqrf(t, handle) == GB10_OK);
    cr_expect(gb10_last_error(handle)->status == GB10_OK);
    batch_free(t);
    gb10_destroy(handle);
}

Test(validate, geqrf_scalars)
{
    gb10_handle_t *handle = open_handle("cpu-ref");
    batch_t *t = small_batch(GB10_Z);
    gb10_geqrf_args_t args = {.A = &t->view[BATCH_A], .R = &t->view[BATCH_R], .nb = 4};
    gb10_geqrf_args_t bad = args;
    bad.A = NULL;
    expect_invalid(handle, gb10_geqrf(handle, &bad), "A is null");
    bad = args;
    bad.nb = 0;
    expect_invalid(handle, gb10_geqrf(handle, &bad), "nb = 0");
    bad.nb = -7;
    expect_invalid(handle, gb10_geqrf(handle, &bad), "nb = -7");
    bad = args;
    bad.mode = (gb10_mode_t)5;
    expect_invalid(handle, gb10_geqrf(handle, &bad), "mode = 5");
    bad.mode = GB10_MODE_NATIVE;
    bad.variant = 4;
    expect_invalid(handle, gb10_geqrf(handle, &bad), "variant = 0x4");
    bad.variant = 0;
    expect_invalid(handle, gb10_geqrf(handle, NULL), "args is null");
    cr_expect(gb10_geqrf(NULL, &args) == GB10_ERR_INVALID);
    cr_expect(gb10_last_error(NULL)->status == GB10_ERR_INVALID);
    cr_expect(gb10_geqrf(handle, &args) == GB10_OK);
    batch_free(t);
    gb10_destroy(handle);
}

/* Outputs may not share memory with A or with each other. */
Test(validate, overlaps)
{
    gb10_handle_t *handle = open_handle("cpu-ref");
    batch_t *t = small_batch(GB10_D);
    for (int i = BATCH_V; i < BATCH_BUFFERS; i++)
        for (int j = BATCH_A; j < i; j++)
            for (int lists = 0; lists < 2; lists++) {
                gb10_view_t kept = t->view[i];
                void *list[3];
                for (int b = 0; b < 3; b++)
                    list[b] = gb10_view_at(&t->view[j], b);
                list[1] = (char *)list[1] + 8;
                list[0] = gb10_view_at(&kept, 0);
                t->view[i].base = (char *)t->view[j].base + 8;
                if (lists) {
                    t->view[i].layout = GB10_POINTERS;
                    t->view[i].list = list;
                }
                gb10_status_t status = batch_geqrf(t, handle);
                expect_named(handle, status, "geqrf", argument_name(i), "overlaps");
                t->view[i] = kept;
            }
    /* packed may be A, but not A shifted or with other strides. */
    gb10_view_t kept = t->view[BATCH_PACKED];
    t->view[BATCH_PACKED] = t->view[BATCH_A];
    cr_expect(batch_geqrf(t, handle) == GB10_OK);
    t->view[BATCH_PACKED].bs += 1;
    expect_invalid(handle, batch_geqrf(t, handle), "packed (7 x 5) overlaps A (7 x 5)");
    t->view[BATCH_PACKED] = kept;
    batch_free(t);
    gb10_destroy(handle);
}

/* One record per matrix that holds all outputs, and matrices side by side in one large matrix: both
 * are apart although their ranges interleave. */
Test(validate, interleaved_outputs_are_fine)
{
    gb10_handle_t *handle = open_handle("cpu-ref");
    enum { M = 6, N = 4, COUNT = 5, RECORD = M * N + N * N + N };
    static double a[COUNT * M * N], records[COUNT * RECORD], wide[M * N * COUNT];
    for (int i = 0; i < COUNT * M * N; i++)
        a[i] = (i * 7919 % 101) - 50.5;
    gb10_view_t A = gb10_view_rows(GB10_D, a, M, N, COUNT);
    gb10_view_t V = gb10_view_rows(GB10_D, records, M, N, COUNT);
    gb10_view_t R = gb10_view_rows(GB10_D, records + M * N, N, N, COUNT);
    gb10_view_t tau = gb10_view_rows(GB10_D, records + M * N + N * N, N, 1, COUNT);
    gb10_view_t packed = gb10_view_rows(GB10_D, wide, M, N, COUNT);
    V.bs = R.bs = tau.bs = RECORD;
    packed.rs = N * COUNT;
    packed.bs = N;
    gb10_geqrf_args_t args = {.A = &A, .V = &V, .R = &R, .tau = &tau, .packed = &packed, .nb = 32};
    cr_expect(gb10_geqrf(handle, &args) == GB10_OK, "%s", gb10_last_error(handle)->message);
    cr_expect(records[RECORD] == 1 && wide[N] == records[RECORD + M * N]);
    R.base = records + M * N - 1;
    expect_invalid(handle, gb10_geqrf(handle, &args), "R (4 x 4) overlaps V (6 x 4)");
    packed.bs = N - 1;
    R.base = records + M * N;
    expect_invalid(handle, gb10_geqrf(handle, &args), "packed has batch stride 3");
    gb10_destroy(handle);
}

Test(validate, form_and_apply)
{
    gb10_handle_t *handle = open_handle("cpu-ref");
    batch_t *t = small_batch(GB10_C);
    cr_assert(batch_geqrf(t, handle) == GB10_OK);
    gb10_view_t V = t->view[BATCH_V], T = t->view[BATCH_T], tau = t->view[BATCH_TAU];
    gb10_view_t Q = t->view[BATCH_PACKED], C = t->view[BATCH_A], *views[] = {&V, &T, &tau, &Q, &C};
    gb10_form_t_args_t form_t = {&V, &tau, &T, 4};
    gb10_form_q_args_t form_q = {&V, &T, &Q, 4};
    gb10_apply_q_args_t apply = {&V, &T, &C, 4, 'L', 'N'};
    static const char *const names[] = {"V", "T", "tau", "Q", "C"};
    for (int v = 0; v < 5; v++)
        for (int i = 0; i < VIEW_SPOILS; i++) {
            gb10_view_t kept = *views[v];
            view_spoils[i].apply(views[v]);
            if (v < 3)
                expect_named(handle, gb10_form_t(handle, &form_t), "form_t", names[v],
                             view_spoils[i].says);
            if (v < 2 || v == 3)
                if (v != 3 || view_spoils[i].apply != negative_n) /* said as a width of Q */
                    expect_named(handle, gb10_form_q(handle, &form_q), "form_q", names[v],
                                 view_spoils[i].says);
            if (v < 2 || v == 4)
                expect_named(handle, gb10_apply_q(handle, &apply), "apply_q", names[v],
                             view_spoils[i].says);
            *views[v] = kept;
        }
    form_t.nb = form_q.nb = apply.nb = 0;
    expect_invalid(handle, gb10_form_t(handle, &form_t), "form_t: nb = 0");
    expect_invalid(handle, gb10_form_q(handle, &form_q), "form_q: nb = 0");
    expect_invalid(handle, gb10_apply_q(handle, &apply), "apply_q: nb = 0");
    form_t.nb = form_q.nb = apply.nb = 4;
    apply.side = 'X';
    expect_invalid(handle, gb10_apply_q(handle, &apply), "side");
    apply.side = 'L';
    apply.trans = 'T'; /* complex */
    expect_invalid(handle, gb10_apply_q(handle, &apply), "trans");
    apply.trans = 'N';
    apply.side = 'R'; /* C has 5 columns, not 7 */
    expect_invalid(handle, gb10_apply_q(handle, &apply), "C is 7 x 5, must be 7 x 7");
    apply.side = 'L';
    Q.n = Q.rs = 4;
    expect_invalid(handle, gb10_form_q(handle, &form_q), "Q has 4 columns");
    Q.n = Q.rs = 8;
    expect_invalid(handle, gb10_form_q(handle, &form_q), "Q has 8 columns");
    Q = t->view[BATCH_PACKED];
    Q.base = V.base;
    expect_invalid(handle, gb10_form_q(handle, &form_q), "Q (7 x 5) overlaps V (7 x 5)");
    C.base = T.base;
    expect_invalid(handle, gb10_apply_q(handle, &apply), "overlaps");
    V.m = 4; /* more columns than rows */
    expect_invalid(handle, gb10_form_t(handle, &form_t), "more columns than rows");
    expect_invalid(handle, gb10_form_t(handle, NULL), "args is null");
    expect_invalid(handle, gb10_form_q(handle, NULL), "args is null");
    expect_invalid(handle, gb10_apply_q(handle, NULL), "args is null");
    batch_free(t);
    gb10_destroy(handle);
}

Test(validate, check)
{
    gb10_handle_t *handle = open_handle("cpu-ref");
    batch_t *t = small_batch(GB10_S);
    cr_assert(batch_geqrf(t, handle) == GB10_OK);
    for (int buffer = BATCH_A; buffer <= BATCH_TAU; buffer++) {
        gb10_view_t kept = t->view[buffer];
        for (int i = 0; i < VIEW_SPOILS; i++) {
            view_spoils[i].apply(&t->view[buffer]);
            expect_named(handle, batch_check(t, handle, GB10_CHECK_FULL), "check",
                         argument_name(buffer), view_spoils[i].says);
            t->view[buffer] = kept;
        }
        t->view[buffer].memory = GB10_DEVICE;
        expect_named(handle, batch_check(t, handle, GB10_CHECK_FULL), "check",
                     argument_name(buffer), "device memory");
        t->view[buffer] = kept;
    }
    gb10_check_args_t args = {.A = &t->view[BATCH_A],
                              .R = &t->view[BATCH_R],
                              .nb = 4,
                              .level = t->level,
                              .info = t->info,
                              .metrics = t->metrics};
    gb10_check_args_t bad = args;
    memset(t->level, GB10_CHECK_NORMS, 3);
    cr_expect(gb10_check(handle, &args) == GB10_OK, "V, T and tau may be null for norms");
    bad.level = NULL;
    expect_invalid(handle, gb10_check(handle, &bad), "level is null");
    bad = args;
    bad.info = NULL;
    expect_invalid(handle, gb10_check(handle, &bad), "info is null");
    bad = args;
    bad.metrics = NULL;
    expect_invalid(handle, gb10_check(handle, &bad), "metrics is null");
    bad = args;
    bad.nb = 0;
    expect_invalid(handle, gb10_check(handle, &bad), "nb = 0");
    bad = args;
    bad.R = NULL;
    expect_invalid(handle, gb10_check(handle, &bad), "R is null");
    t->level[1] = GB10_CHECK_PROBE;
    expect_invalid(handle, gb10_check(handle, &args), "V is null");
    t->level[1] = 4;
    expect_invalid(handle, gb10_check(handle, &args), "level");
    gb10_r_difference_t result[3];
    gb10_compare_r_args_t compare = {&t->view[BATCH_A], &t->view[BATCH_R], &t->view[BATCH_V],
                                     result};
    expect_invalid(handle, gb10_compare_r(handle, NULL), "args is null");
    cr_expect(gb10_compare_r(handle, &compare) == GB10_OK, "m x n is accepted");
    compare.R2 = &t->view[BATCH_T];
    expect_invalid(handle, gb10_compare_r(handle, &compare), "R2 is 4 x 5");
    compare.R2 = NULL;
    expect_invalid(handle, gb10_compare_r(handle, &compare), "R2 is null");
    compare.R2 = compare.R1;
    compare.result = NULL;
    expect_invalid(handle, gb10_compare_r(handle, &compare), "result is null");
    batch_free(t);
    gb10_destroy(handle);
}

Test(validate, lapack_shaped)
{
    gb10_handle_t *handle = open_handle("cpu-ref");
    double a[60] = {1, 2, 3, 4, 5}, tau[8], T[16];
    const gb10_mode_t native = GB10_MODE_NATIVE;
    struct {
        const char *says;
        int64_t m, n, lda, stride, ldt, nb, count;
        void *a;
        int dtype, mode;
    } bad[] = {
        {"m = -1", -1, 3, 5, 15, 2, 2, 2, a, GB10_D, native},
        {"n = -1", 5, -1, 5, 15, 2, 2, 2, a, GB10_D, native},
        {"lda = 4", 5, 3, 4, 15, 2, 2, 2, a, GB10_D, native},
        {"lda = 0", 0, 3, 0, 15, 2, 2, 2, a, GB10_D, native},
        {"strideA = 14", 5, 3, 5, 14, 2, 2, 2, a, GB10_D, native},
        {"ldt = 1", 5, 3, 5, 15, 1, 2, 2, a, GB10_D, native},
        {"nb = 0", 5, 3, 5, 15, 2, 0, 2, a, GB10_D, native},
        {"batch_count = -2", 5, 3, 5, 15, 2, 2, -2, a, GB10_D, native},
        {"A is a null pointer", 5, 3, 5, 15, 2, 2, 2, NULL, GB10_D, native},
        {"unknown dtype 4", 5, 3, 5, 15, 2, 2, 2, a, 4, native},
        {"mode = 3", 5, 3, 5, 15, 2, 2, 2, a, GB10_D, 3},
        {"packed is not", 5, 3, 5, 15, 2, 2, 2, NULL, GB10_D, native},
    };
    for (size_t i = 0; i + 1 < sizeof bad / sizeof *bad; i++)
        expect_invalid(handle,
                       gb10_batched_geqrf(handle, (gb10_dtype_t)bad[i].dtype, bad[i].m, bad[i].n,
                                          bad[i].a, bad[i].lda, bad[i].stride, tau, T, bad[i].ldt,
                                          bad[i].nb, bad[i].count, (gb10_mode_t)bad[i].mode, NULL),
                       bad[i].says);
    void *list[] = {a, NULL};
    expect_invalid(
        handle,
        gb10_batched_geqrf_pointers(handle, GB10_D, 5, 3, list, 5, tau, T, 2, 2, 2, native, NULL),
        "null pointer at matrix 1");
    expect_invalid(
        handle,
        gb10_batched_geqrf_pointers(handle, GB10_D, 5, 3, NULL, 5, tau, T, 2, 2, 2, native, NULL),
        "null pointer list");
    expect_invalid(
        handle,
        gb10_batched_geqrf_pointers(handle, GB10_D, 5, 3, list, 3, tau, T, 2, 2, 2, native, NULL),
        "lda = 3");
    cr_expect(gb10_batched_geqrf(NULL, GB10_D, 5, 3, a, 5, 15, tau, T, 2, 2, 2, native, NULL) ==
              GB10_ERR_INVALID);
    cr_expect(gb10_batched_geqrf(handle, GB10_D, 5, 3, a, 5, 15, NULL, NULL, 0, 2, 2, native,
                                 NULL) == GB10_OK,
              "%s", gb10_last_error(handle)->message);
    cr_expect(gb10_batched_geqrf(handle, GB10_D, 0, 3, NULL, 1, 3, NULL, NULL, 0, 2, 2, native,
                                 NULL) == GB10_OK,
              "%s", gb10_last_error(handle)->message);
    gb10_destroy(handle);
}

/* Device memory: not for a CPU backend, and no fall-back either. */
Test(validate, device_memory_is_refused)
{
    gb10_handle_t *handle = open_handle("auto");
    batch_t *t = small_batch(GB10_D);
    for (int buffer = 0; buffer < BATCH_BUFFERS; buffer++) {
        t->view[buffer].memory = GB10_DEVICE;
        cr_expect(batch_geqrf(t, handle) == GB10_ERR_UNSUPPORTED, "%s", argument_name(buffer));
        t->view[buffer].memory = GB10_MANAGED;
    }
    cr_expect(batch_geqrf(t, handle) == GB10_OK, "%s", gb10_last_error(handle)->message);
    batch_free(t);
    gb10_destroy(handle);
}

Test(validate, handles)
{
    gb10_handle_t *handle = (gb10_handle_t *)1;
    gb10_error_t err = {0};
    const char *reason = "x";
    cr_expect(gb10_create(&handle, "no-such", &err) == GB10_ERR_INVALID && !handle);
    cr_expect(strstr(err.message, "no-such") && strstr(err.message, "cpu-ref") &&
                  strstr(err.message, "auto"),
              "%s", err.message);
    cr_expect(gb10_create(NULL, "auto", NULL) == GB10_ERR_INVALID);
    cr_expect(gb10_create(&handle, NULL, NULL) == GB10_OK);
    cr_expect(gb10_backend_reason(handle) && gb10_isa_name(handle));
    gb10_destroy(handle);
    gb10_destroy(NULL);
    int known = 0;
    for (const char *name; (name = gb10_backend_list(known, &reason)); known++) {
        if (reason)
            continue;
        cr_assert(gb10_create(&handle, name, NULL) == GB10_OK);
        cr_expect_str_eq(gb10_backend_name(handle), name);
        gb10_destroy(handle);
    }
    cr_expect(known >= 1 && !gb10_backend_list(-1, NULL));
}

/* Fails each allocation in turn: the call says so, and the handle works afterwards. */
Test(validate, allocation_failures)
{
    gb10_handle_t *handle;
    const char *name;
    for (int i = 0; (handle = batch_backend(i, &name)); i++) {
        batch_t *t = small_batch(GB10_Z);
        gb10_destroy(handle);
        long failures = 0;
        for (long n = 1;; n++) {
            gb10_error_t err = {0};
            gb10_alloc_fail_at(n);
            gb10_status_t status = gb10_create(&handle, name, &err);
            if (status == GB10_OK) {
                status = batch_geqrf(t, handle);
                if (status == GB10_OK)
                    status = batch_check(t, handle, GB10_CHECK_FULL);
                err = *gb10_last_error(handle);
            }
            bool done = gb10_alloc_fail_at(0) < n;
            cr_expect(done ? status == GB10_OK : status == GB10_ERR_MEMORY, "%s: call %d gives %d",
                      name, (int)n, (int)status);
            cr_expect(done || strstr(err.message, "out of memory"), "%s: \"%s\"", name,
                      err.message);
            if (handle) {
                cr_expect(batch_geqrf(t, handle) == GB10_OK);
                cr_expect(batch_check(t, handle, GB10_CHECK_FULL) == GB10_OK);
            }
            gb10_destroy(handle);
            if (done)
                break;
            failures++;
        }
        cr_expect(failures >= 2, "%s: only %ld allocations", name, failures);
        batch_free(t);
    }
}

/* A call that finds the workspace large enough allocates nothing. */
Test(validate, workspace_is_kept)
{
    gb10_handle_t *handle;
    const char *name;
    for (int i = 0; (handle = batch_backend(i, &name)); i++) {
        batch_t *t = small_batch(GB10_D);
        for (int call = 0; call < 3; call++) {
            gb10_alloc_fail_at(0);
            cr_expect(batch_geqrf(t, handle) == GB10_OK);
            cr_expect(batch_check(t, handle, GB10_CHECK_FULL) == GB10_OK);
            long calls = gb10_alloc_fail_at(0);
            cr_expect(call == 0 || calls == 0, "%s: call %d allocates %ld times", name, call,
                      calls);
        }
        batch_free(t);
        gb10_destroy(handle);
    }
}

static void narrow(gb10_view_t *v)
{
    v->width = 0;
}
static void no_group(gb10_view_t *v)
{
    v->group = 0;
}
static void other_stride(gb10_view_t *v)
{
    v->rs += v->layout == GB10_INTERLEAVED;
}
static void huge_group(gb10_view_t *v)
{
    v->group = INT64_MAX;
}
static void huge_width(gb10_view_t *v)
{
    v->width = INT64_MAX - 1;
}
static void huge_count(gb10_view_t *v)
{
    v->count = INT64_MAX / 16;
}

/* Packed views: widths, groups, sizes, and overlaps that only the padding has. */
Test(validate, packed_views)
{
    enum { M = 5, N = 4, COUNT = 6 };
    static double memory[4096], rows[M * N * COUNT];
    static const struct {
        gb10_layout_t layout;
        spoil_t spoil;
    } cases[] = {
        {GB10_INTERLEAVED, {"width 0", narrow}},
        {GB10_TILES, {"width 0", narrow}},
        {GB10_PANELS, {"width 0", narrow}},
        {GB10_PANELS, {"group 0", no_group}},
        {GB10_INTERLEAVED, {"strides", other_stride}},
        {GB10_INTERLEAVED, {"too large", huge_width}},
        {GB10_TILES, {"too large", huge_width}},
        {GB10_PANELS, {"too large", huge_width}},
        {GB10_PANELS, {"too large", huge_group}},
        {GB10_TILES, {"too large", huge_count}},
        {GB10_INTERLEAVED, {"null pointer", null_base}},
        {GB10_TILES, {"not aligned", odd_address}},
    };
    gb10_handle_t *handle = open_handle(NULL);
    gb10_view_t strided = gb10_view_rows(GB10_D, rows, M, N, COUNT);
    gb10_repack_args_t args = {.from = &strided};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gb10_view_t v = gb10_view_packed(cases[i].layout, GB10_D, memory, M, N, COUNT, 8, 4);
        cases[i].spoil.apply(&v);
        args.to = &v;
        expect_invalid(handle, gb10_repack(handle, &args), cases[i].spoil.says);
        gb10_geqrf_args_t geqrf = {.A = &v, .nb = 2};
        expect_invalid(handle, gb10_geqrf(handle, &geqrf), cases[i].spoil.says);
    }
    /* 6 matrices take the place of 8 in both; tiles of 8 take 64 elements each. */
    const int64_t taken[] = {8 * M * N, COUNT * 64, 8 * M * N};
    for (int i = 0; i < 3; i++) {
        gb10_layout_t layout = (gb10_layout_t)(GB10_INTERLEAVED + i);
        gb10_view_t v = gb10_view_packed(layout, GB10_D, memory, M, N, COUNT, 8, 4);
        gb10_view_t next = gb10_view_rows(GB10_D, memory + taken[i] - 1, M, N, COUNT);
        void *list[COUNT];
        for (int b = 0; b < COUNT; b++)
            list[b] = memory + taken[i] - 1 + b * M * N;
        list[0] = list[5];
        args = (gb10_repack_args_t){.from = &next, .to = &v};
        cr_expect(gb10_view_elements(&v) == taken[i], "layout %d: %d", layout,
                  (int)gb10_view_elements(&v));
        expect_invalid(handle, gb10_repack(handle, &args), "to (5 x 4) overlaps from");
        next.base = memory + taken[i];
        cr_expect(gb10_repack(handle, &args) == GB10_OK);
        gb10_geqrf_args_t geqrf = {.A = &v, .packed = &v, .nb = 2};
        cr_expect(gb10_geqrf(handle, &geqrf) == GB10_OK, "%s", gb10_last_error(handle)->message);
        gb10_view_t other = v;
        other.width = 4;
        other.rs = other.rs ? 4 : 0;
        other.cs = other.cs ? 4 * M : 0;
        geqrf.packed = &other;
        expect_invalid(handle, gb10_geqrf(handle, &geqrf), "packed (5 x 4) overlaps A");
        next.layout = GB10_POINTERS;
        next.list = list;
        list[COUNT - 1] = memory + taken[i] - 1;
        args = (gb10_repack_args_t){.from = &next, .to = &v};
        expect_invalid(handle, gb10_repack(handle, &args), "overlaps");
    }
    int32_t scale[COUNT] = {0, 0, GB10_SCALE_MAX + 1};
    gb10_view_t v = gb10_view_tiles(GB10_D, memory, M, N, COUNT, 16);
    args = (gb10_repack_args_t){.from = &strided, .to = &v, .scale = scale};
    expect_invalid(handle, gb10_repack(handle, &args), "scale is 4097 at matrix 2");
    args.from = NULL;
    expect_invalid(handle, gb10_repack(handle, &args), "from is null");
    cr_expect(gb10_repack(handle, NULL) == GB10_ERR_INVALID);
    gb10_destroy(handle);
}
