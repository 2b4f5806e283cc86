/* Every layout into every other, padding included; packed batches through the operations. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/core/rng.h"
#include "kernels/core/view.h"
#include "tests/support/batch.h"
#include "tests/support/test.h"

enum { GUARD = 192, POISON = 0xa5, FORMS = 14 };

/* A batch in some layout between guards. */
typedef struct held {
    gb10_view_t v;
    unsigned char *raw;
    size_t bytes;
    void **list;
} held_t;

static const struct form {
    gb10_layout_t layout;
    int64_t width, group;
    bool columns;
    int64_t pad, gap;
} forms[FORMS] = {
    {GB10_STRIDED, 0, 0, false, 0, 0},     {GB10_STRIDED, 0, 0, true, 0, 0},
    {GB10_STRIDED, 0, 0, false, 3, 5},     {GB10_STRIDED, 0, 0, true, 2, 7},
    {GB10_POINTERS, 0, 0, false, 0, 0},    {GB10_POINTERS, 0, 0, true, 1, 1},
    {GB10_INTERLEAVED, 1, 0, false, 0, 0}, {GB10_INTERLEAVED, 4, 0, false, 0, 0},
    {GB10_INTERLEAVED, 5, 0, false, 0, 0}, {GB10_INTERLEAVED, 16, 0, false, 0, 0},
    {GB10_TILES, 16, 0, false, 0, 0},      {GB10_TILES, 3, 0, false, 0, 0},
    {GB10_PANELS, 4, 1, false, 0, 0},      {GB10_PANELS, 5, 3, false, 0, 0},
};

static held_t hold(int form, gb10_dtype_t dtype, int64_t m, int64_t n, int64_t count)
{
    const struct form *f = &forms[form];
    held_t h = {.list = NULL};
    size_t size = gb10_dtype_size(dtype);
    bool packed = f->layout > GB10_POINTERS;
    if (packed)
        h.v = gb10_view_packed(f->layout, dtype, NULL, m, n, count, f->width, f->group);
    else
        h.v = f->columns ? gb10_view_cols(dtype, NULL, m, n, (m > 1 ? m : 1) + f->pad, count)
                         : gb10_view_rows(dtype, NULL, m, n, count);
    if (!packed && !f->columns)
        h.v.rs += f->pad;
    if (!packed)
        h.v.bs = (f->columns ? h.v.cs * n : h.v.rs * m) + f->gap;
    h.bytes = (size_t)(packed ? gb10_view_elements(&h.v) : h.v.bs * count) * size;
    h.raw = malloc(h.bytes + 2 * GUARD);
    h.list = malloc((size_t)count * sizeof(void *) + 1);
    memset(h.raw, POISON, h.bytes + 2 * GUARD);
    h.v.base = h.raw + GUARD;
    for (int64_t b = 0; b < count; b++)
        h.list[b] = h.raw + GUARD + (size_t)((count - 1 - b) * h.v.bs) * size;
    if (f->layout == GB10_POINTERS) {
        h.v.layout = GB10_POINTERS;
        h.v.list = h.list;
        h.v.base = NULL;
    }
    return h;
}

static void drop(held_t *h)
{
    free(h->raw);
    free(h->list);
}

/* The address formulas of the layouts, written out once more. */
static unsigned char *place(const held_t *h, int64_t b, int64_t i, int64_t j)
{
    const gb10_view_t *v = &h->v;
    int64_t m = v->m, n = v->n, w = v->width, g = v->group, at = 0;
    size_t size = gb10_dtype_size(v->dtype);
    if (v->layout == GB10_STRIDED || v->layout == GB10_POINTERS)
        return (unsigned char *)(v->layout == GB10_STRIDED ? v->base : h->list[b]) +
               (size_t)((v->layout == GB10_STRIDED ? b * v->bs : 0) + i * v->rs + j * v->cs) * size;
    if (v->layout == GB10_INTERLEAVED)
        at = ((b / w) * m * n + j * m + i) * w + b % w;
    if (v->layout == GB10_TILES) {
        int64_t mt = (m + w - 1) / w, nt = (n + w - 1) / w;
        at = ((b * nt + j / w) * mt + i / w) * w * w + (j % w) * w + i % w;
    }
    if (v->layout == GB10_PANELS) {
        int64_t p = j / w, wp = n - p * w < w ? n - p * w : w;
        at = (b / g) * g * m * n + g * m * p * w + (b % g) * m * wp + (j - p * w) * m + i;
    }
    return (unsigned char *)v->base + (size_t)at * size;
}

/* Random bits of finite numbers; NaN or Inf in some matrices. */
static void fill(held_t *h)
{
    const gb10_view_t *v = &h->v;
    int parts = gb10_dtype_is_complex(v->dtype) ? 2 : 1;
    for (int64_t b = 0; b < v->count; b++)
        for (int64_t i = 0; i < v->m; i++)
            for (int64_t j = 0; j < v->n; j++)
                for (int q = 0; q < parts; q++) {
                    double x = gb10_uniform(7, (uint64_t)b, (uint64_t)((i * v->n + j) * 2 + q));
                    if (b % 4 == 1 && i == v->m - 1 && j == v->n / 2 && q == parts - 1)
                        x = b % 8 == 1 ? (double)NAN : -(double)INFINITY;
                    float single = (float)x;
                    unsigned char *p = place(h, b, i, j);
                    if (gb10_dtype_is_double(v->dtype))
                        memcpy(p + (size_t)q * 8, &x, 8);
                    else
                        memcpy(p + (size_t)q * 4, &single, 4);
                }
}

/* What is in `h` is what is in `like`, element for element, and its padding is as it must be. */
static const char *differs(const held_t *h, const held_t *like)
{
    const gb10_view_t *v = &h->v;
    size_t size = gb10_dtype_size(v->dtype);
    int64_t granule = gb10_view_granule(v), last = v->count - 1;
    int64_t end = (v->count + granule - 1) / granule * granule;
    unsigned char *seen = calloc(h->bytes / size + 1, 1);
    const char *problem = NULL;
    for (int64_t b = 0; b < end && v->m * v->n > 0; b++)
        for (int64_t i = 0; i < v->m; i++)
            for (int64_t j = 0; j < v->n; j++) {
                const unsigned char *p = place(h, b, i, j);
                seen[(size_t)(p - h->raw - GUARD) / size] = 1;
                if (memcmp(p, place(like, b < last ? b : last, i, j), size) != 0)
                    problem = b > last ? "a copy of the last matrix" : "an element";
            }
    for (size_t e = 0; e < h->bytes; e++) {
        bool zero = v->layout == GB10_TILES;
        if (!seen[e / size] && h->raw[GUARD + e] != (zero ? 0 : POISON))
            problem = "padding";
    }
    for (size_t e = 0; e < GUARD; e++)
        if (h->raw[e] != POISON || h->raw[GUARD + h->bytes + e] != POISON)
            problem = "a guard";
    free(seen);
    return problem;
}

static void try_pair(gb10_handle_t *handle, const char *name, int a, int b, gb10_dtype_t dtype,
                     const int64_t *shape)
{
    int64_t m = shape[0], n = shape[1], count = shape[2];
    uint8_t info[64];
    held_t from = hold(a, dtype, m, n, count), to = hold(b, dtype, m, n, count);
    held_t back = hold(a, dtype, m, n, count);
    fill(&from);
    if (m * n * count > 0)
        gb10_view_pad(&from.v);
    memset(info, POISON, sizeof info);
    gb10_repack_args_t args = {.from = &from.v, .to = &to.v, .info = info};
    cr_expect(gb10_repack(handle, &args) == GB10_OK, "%s", gb10_last_error(handle)->message);
    const char *problem = differs(&to, &from);
    cr_expect(!problem, "%s: form %d to %d, dtype %d, %d x %d x %d: wrong is %s", name, a, b,
              (int)dtype, (int)m, (int)n, (int)count, problem ? problem : "");
    for (int64_t i = 0; i < count; i++)
        cr_expect(info[i] == (i % 4 == 1 && m * n > 0 ? GB10_INFO_NONFINITE : GB10_INFO_OK),
                  "%s: form %d, dtype %d: info %d of matrix %d", name, a, (int)dtype, info[i],
                  (int)i);
    cr_expect(info[count] == POISON);
    gb10_repack_args_t again = {.from = &to.v, .to = &back.v};
    cr_expect(gb10_repack(handle, &again) == GB10_OK, "%s", gb10_last_error(handle)->message);
    cr_expect(memcmp(back.raw, from.raw, from.bytes + 2 * GUARD) == 0,
              "%s: form %d to %d and back, dtype %d, %d x %d x %d", name, a, b, (int)dtype, (int)m,
              (int)n, (int)count);
    drop(&from);
    drop(&to);
    drop(&back);
}

Test(layouts, every_pair)
{
    static const int64_t shapes[][3] = {{1, 1, 1},  {3, 5, 7},   {16, 16, 17}, {17, 4, 6},
                                        {5, 33, 9}, {40, 19, 5}, {0, 3, 4},    {4, 3, 0}};
    gb10_handle_t *handle;
    const char *name;
    for (int i = 0; (handle = batch_backend(i, &name)); gb10_destroy(handle), i++)
        for (int threads = 1; threads <= 3; threads += 2) {
            cr_assert(gb10_set_threads(handle, threads) == GB10_OK);
            for (int dtype = 0; dtype < GB10_DTYPES; dtype++)
                for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
                    for (int pair = 0; pair < FORMS * FORMS; pair++)
                        if (threads == 1 || s == 2)
                            try_pair(handle, name, pair / FORMS, pair % FORMS, (gb10_dtype_t)dtype,
                                     shapes[s]);
        }
}

Test(layouts, large_batches_over_threads)
{
    static const int64_t shape[] = {8, 8, 50};
    gb10_handle_t *handle = NULL;
    cr_assert(gb10_create(&handle, "cpu", NULL) == GB10_OK);
    cr_assert(gb10_set_threads(handle, 3) == GB10_OK);
    for (int pair = 0; pair < FORMS * FORMS; pair++)
        try_pair(handle, "cpu", pair / FORMS, pair % FORMS, GB10_D, shape);
    gb10_destroy(handle);
}

Test(layouts, scaling_by_powers_of_two)
{
    gb10_handle_t *handle = NULL;
    int32_t scale[5] = {0, 3, -2, 2000, 1};
    uint8_t info[5];
    cr_assert(gb10_create(&handle, "cpu", NULL) == GB10_OK);
    for (int dtype = 0; dtype < GB10_DTYPES; dtype++) {
        held_t from = hold(0, (gb10_dtype_t)dtype, 4, 3, 5);
        held_t to = hold(7, (gb10_dtype_t)dtype, 4, 3, 5);
        fill(&from);
        gb10_repack_args_t args = {.from = &from.v, .to = &to.v, .scale = scale, .info = info};
        cr_assert(gb10_repack(handle, &args) == GB10_OK);
        for (int64_t b = 0; b < 5; b++) {
            double x = gb10_number_at((gb10_dtype_t)dtype, place(&from, b, 2, 2), 0);
            double y = gb10_number_at((gb10_dtype_t)dtype, place(&to, b, 2, 2), 0);
            cr_expect(b == 3 ? isinf(y) : y == ldexp(x, scale[b]), "dtype %d: %g to %g", dtype, x,
                      y);
            cr_expect(info[b] == (b == 1 ? GB10_INFO_NONFINITE : GB10_INFO_OK));
        }
        drop(&from);
        drop(&to);
    }
    gb10_destroy(handle);
}

enum { OUTPUTS = 5 };

/* V, T, R, tau, packed of one input in the layouts form, form + 1, ... */
static void factor(gb10_handle_t *handle, const gb10_view_t *A, int form, int64_t nb, held_t *out,
                   uint8_t *info)
{
    int64_t m = A->m, n = A->n, k = m < n ? m : n, b = k < nb ? k : nb;
    const int64_t shape[OUTPUTS][2] = {{m, k}, {b, k}, {k, n}, {k, 1}, {m, n}};
    for (int i = 0; i < OUTPUTS; i++)
        out[i] = hold((form + i) % FORMS, A->dtype, shape[i][0], shape[i][1], A->count);
    gb10_geqrf_args_t args = {A,  &out[0].v,        &out[1].v, &out[2].v, &out[3].v, &out[4].v,
                              nb, GB10_MODE_NATIVE, 0,         info,      NULL};
    cr_assert(gb10_geqrf(handle, &args) == GB10_OK, "%s", gb10_last_error(handle)->message);
}

/* Any layout in and out gives the bits of row-major in and out. */
Test(layouts, geqrf_of_packed_batches)
{
    static const int64_t shapes[][3] = {{8, 8, 13}, {20, 7, 70}, {6, 18, 5}, {50, 40, 4}};
    gb10_handle_t *handle;
    const char *name;
    for (int i = 0; (handle = batch_backend(i, &name)); gb10_destroy(handle), i++)
        for (int run = 0; run < 2 * GB10_DTYPES * 4 * FORMS; run++) {
            gb10_dtype_t dtype = (gb10_dtype_t)(run % 4);
            const int64_t *s = shapes[run / 4 % 4];
            int form = run / 16 % FORMS;
            uint8_t info[80], same[80];
            held_t rows = hold(0, dtype, s[0], s[1], s[2]), A = hold(form, dtype, s[0], s[1], s[2]);
            held_t plain[OUTPUTS], out[OUTPUTS];
            fill(&rows);
            gb10_repack_args_t pack = {.from = &rows.v, .to = &A.v};
            cr_assert(gb10_repack(handle, &pack) == GB10_OK);
            gb10_set_threads(handle, run % 3 ? 1 : 3);
            int64_t nb = run / 16 < FORMS ? 5 : 32;
            factor(handle, &A.v, form + run, nb, out, info);
            for (int o = 0; o < OUTPUTS; o++)
                plain[o] = hold(0, dtype, out[o].v.m, out[o].v.n, s[2]);
            gb10_geqrf_args_t args = {&rows.v,     &plain[0].v, &plain[1].v, &plain[2].v,
                                      &plain[3].v, &plain[4].v, nb,          GB10_MODE_NATIVE,
                                      0,           same,        NULL};
            cr_assert(gb10_geqrf(handle, &args) == GB10_OK);
            cr_expect(memcmp(info, same, (size_t)s[2]) == 0, "%s: info", name);
            for (int o = 0; o < OUTPUTS; o++) {
                const char *problem = differs(&out[o], &plain[o]);
                cr_expect(!problem, "%s: A in form %d, output %d in form %d, dtype %d: %s", name,
                          form, o, (form + run + o) % FORMS, (int)dtype, problem ? problem : "");
                drop(&out[o]);
                drop(&plain[o]);
            }
            drop(&rows);
            drop(&A);
        }
}

/* T, Q, Q on C and the check take packed views as well. */
Test(layouts, other_operations)
{
    enum { M = 9, N = 6, COUNT = 11 };
    gb10_handle_t *handle = NULL;
    cr_assert(gb10_create(&handle, NULL, NULL) == GB10_OK);
    for (int form = 0; form < FORMS; form++) {
        held_t A = hold(form, GB10_Z, M, N, COUNT), out[OUTPUTS], T[2], Q[2], C[2];
        uint8_t info[COUNT], level[COUNT];
        double metrics[COUNT * GB10_METRICS];
        fill(&A);
        for (int64_t b = 1; b < COUNT; b += 4) /* finite again */
            memcpy(place(&A, b, M - 1, N / 2), place(&A, b, 0, 0), 16);
        factor(handle, &A.v, form, 5, out, info);
        memset(level, GB10_CHECK_FULL, sizeof level);
        gb10_check_args_t check = {&A.v, &out[0].v, &out[1].v, &out[2].v, &out[3].v,
                                   5,    level,     info,      metrics,   NULL};
        cr_expect(gb10_check(handle, &check) == GB10_OK);
        for (int b = 0; b < COUNT; b++)
            cr_expect(info[b] == GB10_INFO_OK, "form %d: matrix %d", form, b);
        for (int q = 0; q < 2; q++) {
            int f = q ? 0 : (form + 3) % FORMS;
            T[q] = hold(f, GB10_Z, 5, N, COUNT);
            Q[q] = hold(f, GB10_Z, M, N, COUNT);
            C[q] = hold(f, GB10_Z, M, 4, COUNT);
            fill(&C[q]);
            gb10_view_pad(&C[q].v);
            gb10_form_t_args_t form_t = {&out[0].v, &out[3].v, &T[q].v, 5};
            gb10_form_q_args_t form_q = {&out[0].v, &T[q].v, &Q[q].v, 5};
            gb10_apply_q_args_t apply = {&out[0].v, &T[q].v, &C[q].v, 5, 'L', 'C'};
            cr_assert(gb10_form_t(handle, &form_t) == GB10_OK);
            cr_assert(gb10_form_q(handle, &form_q) == GB10_OK);
            cr_assert(gb10_apply_q(handle, &apply) == GB10_OK);
        }
        cr_expect(!differs(&T[0], &T[1]) && !differs(&Q[0], &Q[1]) && !differs(&C[0], &C[1]),
                  "form %d", form);
        for (int q = 0; q < 2; q++) {
            drop(&T[q]);
            drop(&Q[q]);
            drop(&C[q]);
        }
        for (int o = 0; o < OUTPUTS; o++)
            drop(&out[o]);
        drop(&A);
    }
    gb10_destroy(handle);
}

Test(layouts, lapack_shaped)
{
    enum { M = 7, N = 4, COUNT = 10, LD = 9, STRIDE = LD * N + 2, K = 4 };
    static double A[STRIDE * COUNT], B[STRIDE * COUNT], packed[M * N * 12], tau[2][K * COUNT];
    static double T[2][3 * K * COUNT];
    uint8_t info[2][COUNT];
    gb10_handle_t *handle = NULL;
    cr_assert(gb10_create(&handle, NULL, NULL) == GB10_OK);
    for (int e = 0; e < STRIDE * COUNT; e++)
        A[e] = gb10_uniform(3, 4, (uint64_t)e);
    cr_assert(gb10_batched_pack(handle, GB10_INTERLEAVED, 4, 0, GB10_D, M, N, A, LD, STRIDE, packed,
                                COUNT, info[0]) == GB10_OK,
              "%s", gb10_last_error(handle)->message);
    cr_expect(packed[(2 * M * N + 1 * M + 3) * 4 + 1] == A[9 * STRIDE + LD + 3]);
    cr_assert(gb10_packed_batched_geqrf(handle, GB10_INTERLEAVED, 4, 0, GB10_D, M, N, packed,
                                        tau[0], T[0], 3, 3, COUNT, GB10_MODE_NATIVE,
                                        info[0]) == GB10_OK,
              "%s", gb10_last_error(handle)->message);
    cr_assert(gb10_batched_unpack(handle, GB10_INTERLEAVED, 4, 0, GB10_D, M, N, packed, B, LD,
                                  STRIDE, COUNT, NULL) == GB10_OK,
              "%s", gb10_last_error(handle)->message);
    cr_assert(gb10_batched_geqrf(handle, GB10_D, M, N, A, LD, STRIDE, tau[1], T[1], 3, 3, COUNT,
                                 GB10_MODE_NATIVE, info[1]) == GB10_OK);
    for (int b = 0; b < COUNT; b++)
        for (int j = 0; j < N; j++)
            cr_expect(memcmp(A + b * STRIDE + j * LD, B + b * STRIDE + j * LD, M * 8) == 0);
    cr_expect(memcmp(tau[0], tau[1], sizeof tau[0]) == 0 && memcmp(T[0], T[1], sizeof T[0]) == 0);
    cr_expect(memcmp(info[0], info[1], COUNT) == 0);
    cr_expect(gb10_batched_pack(handle, GB10_STRIDED, 4, 0, GB10_D, M, N, A, LD, STRIDE, packed,
                                COUNT, NULL) == GB10_ERR_INVALID);
    cr_expect(strstr(gb10_last_error(handle)->message, "layout") != NULL);
    cr_expect(gb10_batched_unpack(handle, GB10_TILES, 4, 0, GB10_D, -1, N, packed, B, LD, STRIDE,
                                  COUNT, NULL) == GB10_ERR_INVALID);
    cr_expect(gb10_packed_batched_geqrf(handle, GB10_TILES, 4, 0, GB10_D, M, N, packed, NULL, NULL,
                                        0, 0, COUNT, GB10_MODE_NATIVE, NULL) == GB10_ERR_INVALID);
    gb10_destroy(handle);
}
