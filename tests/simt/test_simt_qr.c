/* The QR kernels in every schedule: gates, the same bits each time, what they executed, and that
 * each byte of the input is read once and each byte of the outputs written once. */
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/qr_plan.h"
#include "tests/simt/simt_each.h"
#include "tests/support/batch.h"
#include "tests/support/test.h"

typedef struct qr_case {
    gb10_dtype_t dtype;
    int m, n, count, nb;
    qr_kind_t kind;
    uint32_t variant;
    int shared; /* bytes that a block may have; 0: the chip's; TIGHT: one less than one block needs,
                   which makes clusters of small matrices */
    const char *family;
    int beyond; /* so many first matrices get a column beyond the range */
} qr_case_t;

enum { TIGHT = -1 };

static void set_number(const char *name, int number)
{
    char text[16];
    snprintf(text, sizeof text, "%d", number);
    setenv(name, text, 1);
}

static void plan_for(const qr_case_t *c, qr_plan_t *plan, uint32_t variant)
{
    cuda_device_t device;
    cr_assert(cuda_device_query(&device, NULL) == GB10_OK);
    const char *why = qr_plan_make(plan, &device, c->dtype, c->m, c->n, c->nb, 1, variant);
    cr_assert(!why, "%s", why ? why : "");
}

static gb10_handle_t *handle_for(const qr_case_t *c, const char *direct)
{
    gb10_handle_t *handle = NULL;
    qr_plan_t plan;
    set_number("SIMT_SHARED", 0);
    set_number("FUGU_CUDA_VARIANT", (int)c->variant);
    plan_for(c, &plan, QR_NO_CLUSTER);
    set_number("SIMT_SHARED", c->shared == TIGHT ? (int)plan.layout.total - 1 : c->shared);
    setenv("SIMT_DIRECT", direct, 1);
    cr_assert(gb10_create(&handle, "cuda", NULL) == GB10_OK);
    return handle;
}

/* What one launch has to have done. */
static void counted(const qr_case_t *c, const batch_t *t)
{
    const simt_counters_t *n = simt_counters();
    const uint64_t size = gb10_dtype_size(c->dtype), count = (uint64_t)c->count;
    const uint64_t m = (uint64_t)c->m, cols = (uint64_t)c->n, k = (uint64_t)t->k;
    uint64_t read = m * cols * size * count;
    uint64_t written =
        (m * k + k * cols + (uint64_t)t->b * k + k + m * cols) * size * count + count;
    cr_expect(n->launches == 1, "%s: %d launches", t->text, (int)n->launches);
    cr_expect(c->kind == QR_KIND_WARP || n->block_barriers > 0, "%s", t->text);
    cr_expect((c->kind == QR_KIND_CLUSTER) == (n->cluster_barriers > 0), "%s", t->text);
    if (c->kind == QR_KIND_CLUSTER && k > 32)
        cr_expect(n->bulk_copies > 0 && n->mbar_waits > 0 && n->mbar_arrivals > 0 &&
                      n->proxy_fences > 0,
                  "%s: a cluster without copies", t->text);
    if (c->nb < 8) /* T is read back */
        return;
    cr_expect(n->global_read == read, "%s: %d bytes read, not %d", t->text, (int)n->global_read,
              (int)read);
    const uint64_t tickets = c->kind == QR_KIND_WARP || c->variant & QR_STATIC ? 0 : 8;
    cr_expect(n->global_written >= written && n->global_written <= written + tickets * (count + 8),
              "%s: %d bytes written, not %d", t->text, (int)n->global_written, (int)written);
}

static void each_schedule(const qr_case_t *c)
{
    const char *family = c->family ? c->family : "gaussian";
    const gb10_info_t expected = gb10_family_info(gb10_family_find(family), c->dtype, c->m, c->n);
    gb10_handle_t *oracle = NULL, *handle = handle_for(c, "1");
    batch_shape_t shape = {.dtype = c->dtype, .m = c->m, .n = c->n, .count = c->count, .nb = c->nb};
    batch_t *first = NULL;
    cr_assert(gb10_create(&oracle, "cpu-ref", NULL) == GB10_OK);
    EACH_RUN(run)
    {
        batch_t *t = batch_new(shape);
        batch_fill(t, family, batch_seed(), 0, 0);
        for (int e = 0; e < c->beyond * c->m; e++)
            batch_set(t, BATCH_A, e / c->m, e % c->m, 0, 0, 1.2e308);
        cr_assert(batch_geqrf(t, handle) == GB10_OK, "%s: %s", t->text,
                  gb10_last_error(handle)->message);
        if (expected == GB10_INFO_OK && c->beyond == 0)
            counted(c, t);
        cr_expect(!batch_damage(t), "%s: wrote to %s", t->text, batch_damage(t));
        cr_assert(batch_check(t, oracle, GB10_CHECK_FULL) == GB10_OK);
        for (int b = 0; b < c->count; b++)
            cr_expect(t->info[b] == (b < c->beyond ? GB10_INFO_NOT_REPRESENTABLE : expected) &&
                          !t->failed[b],
                      "%s: matrix %d info %d missed %s", t->text, b, t->info[b],
                      t->failed[b] ? t->failed[b] : "nothing");
        for (int b = 0; first && b < c->count; b++)
            for (int buffer = BATCH_V; buffer < BATCH_BUFFERS; buffer++)
                cr_expect(batch_same(first, b, t, b, buffer),
                          "%s: output %d of matrix %d has other bits", t->text, buffer, b);
        if (first)
            batch_free(t);
        else
            first = t;
    }
    batch_free(first);
    gb10_destroy(handle);
    gb10_destroy(oracle);
}

static void each_case(const qr_case_t *c, int cases)
{
    for (int i = 0; i < cases; i++) {
        qr_plan_t plan;
        gb10_destroy(handle_for(&c[i], "1")); /* sets the environment */
        plan_for(&c[i], &plan, c[i].variant);
        cr_expect(plan.kind == c[i].kind, "case %d is factored by %s", i, qr_kind_names[plan.kind]);
        each_schedule(&c[i]);
    }
}
#define EACH_CASE(...)                                                                             \
    do {                                                                                           \
        static const qr_case_t cases[] = {__VA_ARGS__};                                            \
        each_case(cases, (int)(sizeof cases / sizeof *cases));                                     \
    } while (0)

Test(qr, warp)
{
    EACH_CASE({GB10_S, 8, 8, 40, 32, QR_KIND_WARP, 0, 0, NULL, 0},
              {GB10_D, 16, 12, 3, 8, QR_KIND_WARP, 0, 0, NULL, 0},
              {GB10_C, 20, 31, 2, 32, QR_KIND_WARP, 0, 0, NULL, 0},
              {GB10_Z, 32, 32, 9, 16, QR_KIND_WARP, 0, 0, NULL, 0},
              {GB10_D, 32, 9, 3, 8, QR_KIND_WARP, 0, 0, "wide-range", 0},
              {GB10_S, 7, 9, 5, 8, QR_KIND_WARP, 0, 0, "subnormal", 0});
}

Test(qr, block)
{
    EACH_CASE({GB10_S, 40, 35, 3, 32, QR_KIND_BLOCK, 0, 0, NULL, 0},
              {GB10_D, 20, 40, 2, 16, QR_KIND_BLOCK, 0, 0, NULL, 0},
              {GB10_C, 50, 33, 2, 32, QR_KIND_BLOCK, QR_STATIC, 0, NULL, 0},
              {GB10_Z, 36, 20, 2, 8, QR_KIND_BLOCK, 0, 0, NULL, 0},
              {GB10_D, 17, 17, 3, 32, QR_KIND_BLOCK, QR_NO_WARP, 0, "wide-range", 0},
              {GB10_S, 38, 20, 3, 5, QR_KIND_BLOCK, 0, 0, NULL, 0},
              {GB10_S, 33, 18, 2, 16, QR_KIND_BLOCK, 0, 0, "subnormal", 0});
}

Test(qr, cluster)
{
    EACH_CASE({GB10_S, 40, 100, 2, 32, QR_KIND_CLUSTER, 0, TIGHT, NULL, 0},
              {GB10_D, 70, 66, 3, 32, QR_KIND_CLUSTER, 0, TIGHT, NULL, 0},
              {GB10_D, 70, 66, 1, 7, QR_KIND_CLUSTER, QR_STATIC, TIGHT, NULL, 0},
              {GB10_C, 66, 70, 2, 32, QR_KIND_CLUSTER, QR_NO_LOOKAHEAD, TIGHT, NULL, 0},
              {GB10_Z, 34, 64, 2, 16, QR_KIND_CLUSTER, 0, TIGHT, "wide-range", 0},
              {GB10_D, 40, 66, 3, 32, QR_KIND_CLUSTER, 0, TIGHT, "beyond-range", 0},
              {GB10_D, 16, 130, 3, 32, QR_KIND_CLUSTER, QR_STATIC, TIGHT, NULL, 1},
              {GB10_C, 40, 66, 3, 32, QR_KIND_CLUSTER, 0, TIGHT, "nan", 0});
}

/* Where a matrix is does not change its bits: one block, a cluster, global memory. */
Test(qr, same_bits_everywhere)
{
    static const qr_case_t base[] = {{GB10_S, 70, 66, 3, 32, QR_KIND_BLOCK, 0, 0, NULL, 0},
                                     {GB10_D, 50, 66, 2, 32, QR_KIND_BLOCK, 0, 0, NULL, 0},
                                     {GB10_Z, 40, 64, 2, 32, QR_KIND_BLOCK, 0, 0, NULL, 0}};
    for (int i = 0; i < 3; i++) {
        static const struct {
            uint32_t variant;
            int shared;
        } way[] = {{0, 0}, {QR_GLOBAL, 0}, {QR_NO_LOOKAHEAD, TIGHT}, {QR_STATIC, TIGHT}};
        batch_t *t[4];
        for (int w = 0; w < 4; w++) {
            qr_case_t c = base[i];
            c.variant = way[w].variant;
            c.shared = way[w].shared;
            gb10_handle_t *handle = handle_for(&c, "1");
            t[w] = batch_new((batch_shape_t){
                .dtype = c.dtype, .m = c.m, .n = c.n, .count = c.count, .nb = c.nb});
            batch_fill(t[w], "gaussian", batch_seed(), 0, 0);
            simt_counters_reset();
            cr_assert(batch_geqrf(t[w], handle) == GB10_OK);
            cr_expect((w >= 2) == (simt_counters()->bulk_copies > 0), "case %d way %d", i, w);
            for (int b = 0; b < c.count; b++)
                for (int buffer = BATCH_V; buffer < BATCH_BUFFERS; buffer++)
                    cr_expect(batch_same(t[0], b, t[w], b, buffer),
                              "%s: output %d of matrix %d differs in way %d", t[w]->text, buffer, b,
                              w);
            gb10_destroy(handle);
        }
        for (int w = 0; w < 4; w++)
            batch_free(t[w]);
    }
}

Test(qr, global)
{
    EACH_CASE({GB10_S, 45, 20, 3, 32, QR_KIND_GLOBAL, QR_GLOBAL, 0, NULL, 0},
              {GB10_D, 20, 45, 2, 8, QR_KIND_GLOBAL, QR_GLOBAL, 0, NULL, 0},
              {GB10_Z, 300, 9, 1, 8, QR_KIND_GLOBAL, QR_GLOBAL, 50000, NULL, 0});
}
