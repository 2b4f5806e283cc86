#include "tests/support/batch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/core/view.h"

enum { GUARD = 256, POISON = 0xa5 };

static void *need(size_t bytes)
{
    void *p = malloc(bytes ? bytes : 1);
    if (!p)
        abort();
    return p;
}

static gb10_view_t buffer_view(const batch_shape_t *s, int buffer, int64_t k, int64_t b)
{
    const int64_t rows[] = {s->m, s->m, b, k, k, s->m}, cols[] = {s->n, k, k, s->n, 1, s->n};
    int64_t m = rows[buffer], n = cols[buffer];
    int64_t side = s->columns ? m : n, lines = s->columns ? n : m;
    int64_t ld = (side > 1 ? side : 1) + s->pad;
    gb10_view_t v = {.dtype = s->dtype, .m = m, .n = n, .count = s->count};
    v.rs = s->columns ? 1 : ld;
    v.cs = s->columns ? ld : 1;
    v.bs = ld * lines + s->gap;
    return v;
}

static void place_buffer(batch_t *t, int buffer)
{
    const batch_shape_t *s = &t->shape;
    gb10_view_t *v = &t->view[buffer];
    *v = buffer_view(s, buffer, t->k, t->b);
    size_t size = gb10_dtype_size(s->dtype);
    t->bytes[buffer] = (size_t)(v->bs * s->count) * size;
    t->raw[buffer] = need(t->bytes[buffer] + 2 * GUARD);
    memset(t->raw[buffer], POISON, t->bytes[buffer] + 2 * GUARD);
    v->base = t->raw[buffer] + GUARD;
    t->list[buffer] = need((size_t)s->count * sizeof(void *));
    for (int64_t i = 0; i < s->count; i++)
        t->list[buffer][i] = (char *)v->base + (size_t)((s->count - 1 - i) * v->bs) * size;
    if (s->pointers) {
        v->layout = GB10_POINTERS;
        v->list = t->list[buffer];
        v->base = NULL;
    }
}

batch_t *batch_new(batch_shape_t shape)
{
    batch_t *t = need(sizeof *t);
    memset(t, 0, sizeof *t);
    t->shape = shape;
    t->k = shape.m < shape.n ? shape.m : shape.n;
    t->b = shape.nb < t->k ? shape.nb : t->k;
    for (int buffer = 0; buffer < BATCH_BUFFERS; buffer++)
        place_buffer(t, buffer);
    t->copy = need(t->bytes[BATCH_A]);
    t->info = need((size_t)shape.count);
    t->level = need((size_t)shape.count);
    t->metrics = need((size_t)shape.count * GB10_METRICS * sizeof(double));
    t->failed = need((size_t)shape.count * sizeof(char *));
    memset(t->info, POISON, (size_t)shape.count);
    return t;
}

void batch_free(batch_t *t)
{
    for (int buffer = 0; t && buffer < BATCH_BUFFERS; buffer++) {
        free(t->raw[buffer]);
        free(t->list[buffer]);
    }
    if (t) {
        free(t->copy);
        free(t->info);
        free(t->level);
        free(t->metrics);
        free(t->failed);
    }
    free(t);
}

void batch_fill(batch_t *t, const char *family, uint64_t seed, int64_t first, double cond)
{
    const batch_shape_t *s = &t->shape;
    size_t size = gb10_dtype_size(s->dtype);
    const gb10_family_t *f = gb10_family_find(family);
    char *dense = need((size_t)(s->m * s->n) * size);
    for (int64_t b = 0; f && b < s->count; b++) {
        gb10_family_args_t args = {s->dtype, s->m, s->n, seed, first + b, cond};
        if (gb10_family_fill(f, &args, dense, NULL) != GB10_OK)
            abort();
        char *base = gb10_view_at(&t->view[BATCH_A], b);
        for (int64_t i = 0; i < s->m; i++)
            for (int64_t j = 0; j < s->n; j++)
                memcpy(base + (size_t)(i * t->view[0].rs + j * t->view[0].cs) * size,
                       dense + (size_t)(i * s->n + j) * size, size);
    }
    free(dense);
    snprintf(t->text, sizeof t->text,
             "%s%s %c %" PRId64 "x%" PRId64 " count %" PRId64 " nb %" PRId64 "%s pad %" PRId64
             " gap %" PRId64 "%s seed %" PRIu64,
             f ? "" : "unknown ", family, gb10_dtype_letter(s->dtype), s->m, s->n, s->count, s->nb,
             s->columns ? " columns" : "", s->pad, s->gap, s->pointers ? " pointers" : "", seed);
}

static char *address(const batch_t *t, int buffer, int64_t b, int64_t i, int64_t j, int part)
{
    const gb10_view_t *v = &t->view[buffer];
    size_t size = gb10_dtype_size(v->dtype);
    size_t number = gb10_dtype_is_complex(v->dtype) ? size / 2 : size;
    return (char *)gb10_view_at(v, b) + (size_t)(i * v->rs + j * v->cs) * size +
           (size_t)part * number;
}

static bool is_single(const batch_t *t)
{
    return t->shape.dtype == GB10_S || t->shape.dtype == GB10_C;
}

double batch_get(const batch_t *t, int buffer, int64_t b, int64_t i, int64_t j, int part)
{
    float single;
    double x;
    const char *p = address(t, buffer, b, i, j, part);
    if (!is_single(t)) {
        memcpy(&x, p, sizeof x);
        return x;
    }
    memcpy(&single, p, sizeof single);
    return single;
}

void batch_set(batch_t *t, int buffer, int64_t b, int64_t i, int64_t j, int part, double x)
{
    float single = (float)x;
    char *p = address(t, buffer, b, i, j, part);
    if (is_single(t))
        memcpy(p, &single, sizeof single);
    else
        memcpy(p, &x, sizeof x);
}

gb10_status_t batch_geqrf(batch_t *t, gb10_handle_t *handle)
{
    gb10_geqrf_args_t args = {.A = &t->view[BATCH_A],
                              .V = &t->view[BATCH_V],
                              .T = &t->view[BATCH_T],
                              .R = &t->view[BATCH_R],
                              .tau = &t->view[BATCH_TAU],
                              .packed = &t->view[BATCH_PACKED],
                              .nb = t->shape.nb,
                              .info = t->info};
    if (t->bytes[BATCH_A] > 0)
        memcpy(t->copy, t->raw[BATCH_A] + GUARD, t->bytes[BATCH_A]);
    return gb10_geqrf(handle, &args);
}

gb10_status_t batch_check(batch_t *t, gb10_handle_t *handle, gb10_check_level_t level)
{
    gb10_check_args_t args = {.A = &t->view[BATCH_A],
                              .V = &t->view[BATCH_V],
                              .T = &t->view[BATCH_T],
                              .R = &t->view[BATCH_R],
                              .tau = &t->view[BATCH_TAU],
                              .nb = t->shape.nb,
                              .level = t->level,
                              .info = t->info,
                              .metrics = t->metrics,
                              .failed = t->failed};
    memset(t->level, level, (size_t)t->shape.count);
    return gb10_check(handle, &args);
}

/* True when byte `at` of a buffer belongs to an element of a matrix. */
static bool is_element(const batch_t *t, int buffer, size_t at)
{
    const gb10_view_t *v = &t->view[buffer];
    int64_t place = (int64_t)(at / gb10_dtype_size(v->dtype)) % v->bs;
    int64_t ld = t->shape.columns ? v->cs : v->rs;
    int64_t side = t->shape.columns ? v->m : v->n, lines = t->shape.columns ? v->n : v->m;
    return place / ld < lines && place % ld < side;
}

const char *batch_damage(const batch_t *t)
{
    static const char *const names[] = {"A", "V", "T", "R", "tau", "packed"};
    static char text[64];
    for (int buffer = 0; buffer < BATCH_BUFFERS; buffer++) {
        const unsigned char *p = t->raw[buffer];
        size_t bytes = t->bytes[buffer];
        bool guards = true, padding = true;
        for (size_t i = 0; i < GUARD; i++)
            guards = guards && p[i] == POISON && p[GUARD + bytes + i] == POISON;
        for (size_t i = 0; i < bytes; i++)
            padding = padding && (p[GUARD + i] == POISON || is_element(t, buffer, i));
        if (!guards || !padding) {
            snprintf(text, sizeof text, "%s of %s", guards ? "padding" : "guards", names[buffer]);
            return text;
        }
    }
    if (t->bytes[BATCH_A] > 0 && memcmp(t->copy, t->raw[BATCH_A] + GUARD, t->bytes[BATCH_A]) != 0)
        return "A itself";
    return NULL;
}

bool batch_same(const batch_t *a, int64_t i, const batch_t *b, int64_t j, int buffer)
{
    const gb10_view_t *v = &a->view[buffer];
    size_t size = gb10_dtype_size(v->dtype);
    for (int64_t r = 0; r < v->m; r++)
        for (int64_t c = 0; c < v->n; c++)
            if (memcmp(address(a, buffer, i, r, c, 0), address(b, buffer, j, r, c, 0), size) != 0)
                return false;
    return true;
}

bool batch_all_nan(const batch_t *t, int buffer, int64_t b)
{
    const gb10_view_t *v = &t->view[buffer];
    static const uint32_t nan32 = GB10_NAN32;
    static const uint64_t nan64 = GB10_NAN64;
    const void *wanted = is_single(t) ? (const void *)&nan32 : (const void *)&nan64;
    int parts = gb10_dtype_is_complex(v->dtype) ? 2 : 1;
    for (int64_t i = 0; i < v->m; i++)
        for (int64_t j = 0; j < v->n; j++)
            for (int q = 0; q < parts; q++)
                if (memcmp(address(t, buffer, b, i, j, q), wanted, is_single(t) ? 4 : 8) != 0)
                    return false;
    return true;
}

uint64_t batch_seed(void)
{
    const char *text = getenv("FUGU_TEST_SEED");
    return text ? strtoull(text, NULL, 10) : 20250301;
}

bool batch_short(void)
{
    const char *text = getenv("FUGU_TEST_SHORT");
    return text && *text;
}

bool batch_skips(int64_t m, int64_t n)
{
    return batch_short() && m * n * (m < n ? m : n) > 8000;
}

bool batch_long(void)
{
    const char *text = getenv("FUGU_TEST_LONG");
    return text && *text && strcmp(text, "0") != 0;
}

gb10_handle_t *batch_backend(int i, const char **name)
{
    gb10_handle_t *handle = NULL;
    const char *reason = NULL;
    const char *only = getenv("FUGU_TEST_BACKEND");
    for (int at = 0; (*name = gb10_backend_list(at, &reason)); at++)
        if (only && strcmp(only, *name) != 0)
            continue;
        else if (reason && strcmp(*name, "cpu") == 0 && getenv("FUGU_ISA")) {
            /* a test of an instruction set tests that one */
            fprintf(stderr, "backend %s: %s\n", *name, reason);
            abort();
        } else if (!reason && i-- == 0)
            return gb10_create(&handle, *name, NULL) == GB10_OK ? handle : NULL;
    return NULL;
}
