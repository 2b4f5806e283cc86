/* The QR kernels in every schedule: gates, the same bits each time and as on record (simt_bits.h),
 * what they executed, and that each byte of the input is read once and each byte of the outputs
 * written once (on the CPU, where it is counted). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/qr_plan.h"
#include "tests/simt/simt_bits.h"
#include "tests/simt/simt_each.h"
#include "tests/simt/simt_memory.h"
#include "tests/support/batch.h"
#include "tests/support/test.h"

typedef struct qr_case {
    gb10_dtype_t dtype;
    int m, n, count, nb;
    qr_kind_t kind;
    uint32_t variant;
    int shared; /* bytes that a block may have; 0: the chip's; TIGHT: one less than one block needs,
                   which makes clusters of small matrices; TIGHTER: one less than they need */
    const char *family;
    int beyond; /* so many first matrices get a column beyond the range */
} qr_case_t;

enum { TIGHT = -1, TIGHTER = -2 };

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
    set_number("FUGU_CUDA_SHARED", 0);
    set_number("FUGU_CUDA_VARIANT", (int)c->variant);
    for (int i = 0; i > c->shared; i--) {
        plan_for(c, &plan, i == 0 ? QR_NO_CLUSTER : 0);
        set_number("FUGU_CUDA_SHARED", (int)plan.layout.total - 1);
    }
    if (c->shared > 0)
        set_number("FUGU_CUDA_SHARED", c->shared);
    setenv("SIMT_DIRECT", direct, 1);
    cr_assert(gb10_create(&handle, "cuda", NULL) == GB10_OK);
    return handle;
}

static const char *family_of(const qr_case_t *c)
{
    return c->family ? c->family : "gaussian";
}

static void bits_of_batch(const qr_case_t *c, const batch_t *t)
{
    char name[160];
    uint64_t hash = bits_add(bits_start, t->info, (size_t)c->count);
    for (int buffer = BATCH_V; buffer < BATCH_BUFFERS; buffer++)
        hash = bits_add_view(hash, &t->view[buffer]);
    snprintf(name, sizeof name, "geqrf %c %dx%d count %d nb %d %s variant %u shared %d beyond %d",
             gb10_dtype_letter(c->dtype), c->m, c->n, c->count, c->nb, family_of(c),
             (unsigned)c->variant, c->shared, c->beyond);
    bits_check(name, hash);
}

/* What one launch has to have done. */
static void counted(const qr_case_t *c, const batch_t *t)
{
    if (simt_on_gpu())
        return;
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
    const bool boxes = (c->kind == QR_KIND_BLOCK || c->kind == QR_KIND_CLUSTER) &&
                       cols * size % 16 == 0 && !(c->variant & QR_NO_TMA);
    cr_expect(boxes == (n->tensor_copies > 0), "%s: %d tensor copies", t->text,
              (int)n->tensor_copies);
    if (c->variant & QR_THREE_STAGE)
        cr_expect(n->global_read > read && n->global_written > written,
                  "%s: three stages without a temporary", t->text);
    if (c->nb < 8 || c->variant & QR_THREE_STAGE) /* T is read back; a temporary */
        return;
    cr_expect(n->global_read == read, "%s: %d bytes read, not %d", t->text, (int)n->global_read,
              (int)read);
    const uint64_t tickets = c->kind == QR_KIND_WARP || c->variant & QR_STATIC ? 0 : 8;
    cr_expect(n->global_written >= written && n->global_written <= written + tickets * (count + 8),
              "%s: %d bytes written, not %d", t->text, (int)n->global_written, (int)written);
}

static void each_schedule(const qr_case_t *c)
{
    const char *family = family_of(c);
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
        if (first) {
            batch_free(t);
            continue;
        }
        bits_of_batch(c, t);
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
              {GB10_Z, 40, 35, 2, 32, QR_KIND_BLOCK, QR_NO_TMA, 0, NULL, 0},
              {GB10_S, 40, 48, 3, 16, QR_KIND_BLOCK, QR_THREE_STAGE, 0, NULL, 0},
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
              {GB10_D, 66, 130, 2, 32, QR_KIND_CLUSTER, 0, TIGHTER, NULL, 0},
              {GB10_C, 40, 66, 2, 8, QR_KIND_CLUSTER, QR_THREE_STAGE, TIGHT, NULL, 0},
              {GB10_C, 64, 64, 3, 16, QR_KIND_CLUSTER, QR_NO_LOOKAHEAD, TIGHTER, NULL, 0},
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
            cr_expect(simt_on_gpu() || (w >= 2) == (simt_counters()->bulk_copies > 0),
                      "case %d way %d", i, w);
            for (int b = 0; b < c.count; b++)
                for (int buffer = BATCH_V; buffer < BATCH_BUFFERS; buffer++)
                    cr_expect(batch_same(t[0], b, t[w], b, buffer),
                              "%s: output %d of matrix %d differs in way %d", t[w]->text, buffer, b,
                              w);
            gb10_destroy(handle);
        }
        bits_of_batch(&base[i], t[0]);
        for (int w = 0; w < 4; w++)
            batch_free(t[w]);
    }
}

Test(qr, global)
{
    EACH_CASE({GB10_S, 45, 20, 3, 32, QR_KIND_GLOBAL, QR_GLOBAL, 0, NULL, 0},
              {GB10_D, 20, 45, 2, 8, QR_KIND_GLOBAL, QR_GLOBAL, 0, NULL, 0},
              {GB10_S, 37, 50, 2, 16, QR_KIND_GLOBAL, QR_NAIVE, 0, NULL, 0},
              {GB10_C, 30, 25, 2, 8, QR_KIND_GLOBAL, QR_NAIVE, 0, "wide-range", 0},
              {GB10_D, 25, 30, 3, 8, QR_KIND_GLOBAL, QR_GLOBAL | QR_THREE_STAGE, 0, NULL, 0},
              {GB10_Z, 300, 9, 1, 8, QR_KIND_GLOBAL, QR_GLOBAL, 50000, NULL, 0});
}

/* ---- Q, T and layouts, on the factors of cpu-ref ---- */

typedef struct q_case {
    gb10_dtype_t dtype;
    int m, n, nb, cols, shared;
    char side, trans; /* 'Q': form Q; 'T': form T; else of apply_q */
    bool wide;        /* C's first column is near the end of the range (real, double) */
} q_case_t;

static gb10_status_t q_operation(gb10_handle_t *handle, const q_case_t *c, const batch_t *t,
                                 const gb10_view_t *out)
{
    const gb10_view_t *V = &t->view[BATCH_V], *T = &t->view[BATCH_T];
    if (c->side == 'Q')
        return gb10_form_q(handle, &(gb10_form_q_args_t){.V = V, .T = T, .Q = out, .nb = c->nb});
    if (c->side == 'T')
        return gb10_form_t(handle, &(gb10_form_t_args_t){
                                       .V = V, .tau = &t->view[BATCH_TAU], .T = out, .nb = c->nb});
    return gb10_apply_q(
        handle, &(gb10_apply_q_args_t){
                    .V = V, .T = T, .C = out, .nb = c->nb, .side = c->side, .trans = c->trans});
}

/* The largest difference of two batches of numbers; NaN counts as far. */
static double farthest(const gb10_view_t *a, const gb10_view_t *b)
{
    double far = 0;
    const int64_t numbers = gb10_view_elements(a) * (gb10_dtype_is_complex(a->dtype) ? 2 : 1);
    for (int64_t e = 0; e < numbers; e++) {
        double d = gb10_number_at(a->dtype, a->base, e) - gb10_number_at(b->dtype, b->base, e);
        d = d < 0 ? -d : d;
        far = d <= far ? far : d;
    }
    return far;
}

static void q_case(const q_case_t *c)
{
    enum { COUNT = 3 };
    gb10_handle_t *oracle = NULL, *handle = NULL;
    const int k = c->m < c->n ? c->m : c->n, b = c->nb < k ? c->nb : k;
    const int rows = c->side == 'T' ? b : c->side == 'R' ? c->cols : c->m;
    const int cols = c->side == 'T' ? k : c->side == 'R' ? c->m : c->cols;
    const size_t bytes = (size_t)(COUNT * rows * cols) * gb10_dtype_size(c->dtype);
    gb10_view_t out[3];
    for (int i = 0; i < 3; i++)
        out[i] = gb10_view_rows(c->dtype, malloc(bytes), rows, cols, COUNT);
    set_number("FUGU_CUDA_SHARED", c->shared);
    set_number("FUGU_CUDA_VARIANT", 0);
    cr_assert(gb10_create(&oracle, "cpu-ref", NULL) == GB10_OK);
    cr_assert(gb10_create(&handle, "cuda", NULL) == GB10_OK);
    batch_t *t = batch_new(
        (batch_shape_t){.dtype = c->dtype, .m = c->m, .n = c->n, .count = COUNT, .nb = c->nb});
    batch_fill(t, "gaussian", batch_seed(), 0, 0);
    cr_assert(batch_geqrf(t, oracle) == GB10_OK);
    /* Something to multiply with: A's own numbers, over and over. */
    for (size_t at = 0; at < bytes; at += 4)
        memcpy((char *)out[0].base + at, (char *)t->view[BATCH_A].base + at % (8 * (size_t)c->m),
               4);
    for (int64_t e = 0; c->wide && e < rows * cols * COUNT; e += cols) /* its first column */
        memcpy((char *)out[0].base + (size_t)e * gb10_dtype_size(c->dtype), &(double){1e300}, 8);
    memcpy(out[1].base, out[0].base, bytes);
    cr_assert(q_operation(oracle, c, t, &out[1]) == GB10_OK);
    EACH_RUN(run)
    {
        char *copy = malloc(bytes);
        memcpy(copy, out[2].base, bytes);
        memcpy(out[2].base, out[0].base, bytes);
        cr_assert(q_operation(handle, c, t, &out[2]) == GB10_OK, "%s",
                  gb10_last_error(handle)->message);
        cr_expect(simt_on_gpu() ||
                  (simt_counters()->launches == 1 && simt_counters()->block_barriers > 0));
        cr_expect(run == 0 || memcmp(copy, out[2].base, bytes) == 0, "%c%c: other bits", c->side,
                  c->trans);
        const double far = farthest(&out[1], &out[2]) / (c->wide ? 1e300 : 1);
        cr_expect(far <= 64 * gb10_dtype_u(c->dtype) * c->m, "%c%c %d x %d: off by %g", c->side,
                  c->trans, c->m, c->n, far);
        free(copy);
    }
    char name[128];
    snprintf(name, sizeof name, "operation %c%c %c %dx%d nb %d cols %d shared %d", c->side,
             c->trans, gb10_dtype_letter(c->dtype), c->m, c->n, c->nb, c->cols, c->shared);
    bits_check(name, bits_add_view(bits_start, &out[2]));
    for (int i = 0; i < 3; i++)
        free(out[i].base);
    batch_free(t);
    gb10_destroy(oracle);
    gb10_destroy(handle);
}

Test(qr, q_and_t)
{
    static const q_case_t cases[] = {{GB10_S, 37, 20, 32, 37, 0, 'Q', 'N', false},
                                     {GB10_D, 20, 37, 7, 20, 0, 'Q', 'N', false},
                                     {GB10_Z, 21, 12, 8, 12, 20000, 'Q', 'N', false},
                                     {GB10_D, 30, 19, 16, 11, 0, 'L', 'N', false},
                                     {GB10_C, 25, 18, 8, 20, 0, 'L', 'C', false},
                                     {GB10_S, 33, 33, 12, 5, 0, 'R', 'T', false},
                                     {GB10_Z, 18, 10, 4, 13, 0, 'R', 'N', false},
                                     {GB10_D, 40, 30, 9, 0, 0, 'T', 'N', false},
                                     {GB10_C, 20, 35, 32, 0, 0, 'T', 'N', false},
                                     {GB10_D, 24, 12, 8, 9, 0, 'L', 'N', true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        q_case(&cases[i]);
}

/* Every layout into every other one; the right answer is cpu-ref's, bit for bit. */
Test(qr, layouts)
{
    enum { M = 35, N = 22, COUNT = 5, LAYOUTS = 5 };
    gb10_handle_t *oracle = NULL, *handle = NULL;
    unsigned char *memory[3];
    static const int32_t scale[COUNT] = {0, 3, -1100, 200, -150};
    for (int i = 0; i < 3; i++) {
        memory[i] = simt_new(16 * 48 * 48 * 8);
        cr_assert(memory[i]);
    }
    set_number("FUGU_CUDA_SHARED", 0);
    cr_assert(gb10_create(&oracle, "cpu-ref", NULL) == GB10_OK);
    cr_assert(gb10_create(&handle, "cuda", NULL) == GB10_OK);
    for (int pair = 0; pair < LAYOUTS * LAYOUTS; pair++) {
        const gb10_dtype_t dtype = (gb10_dtype_t)(pair % 4);
        gb10_view_t v[LAYOUTS] = {gb10_view_rows(dtype, NULL, M, N, COUNT),
                                  gb10_view_cols(dtype, NULL, M, N, M, COUNT),
                                  gb10_view_interleaved(dtype, NULL, M, N, COUNT, 4),
                                  gb10_view_tiles(dtype, NULL, M, N, COUNT, 16),
                                  gb10_view_panels(dtype, NULL, M, N, COUNT, 2, 8)};
        gb10_view_t from = v[pair / LAYOUTS], to[2] = {v[pair % LAYOUTS], v[pair % LAYOUTS]};
        from.base = memory[0];
        to[0].base = memory[1];
        to[1].base = memory[2];
        from.memory = to[0].memory = to[1].memory = GB10_MANAGED; /* else a GPU need not be asked */
        const size_t size = gb10_dtype_size(dtype), all = (size_t)gb10_view_elements(&from) * size;
        const size_t bytes = (size_t)gb10_view_elements(&to[0]) * size;
        for (size_t e = 0; e < all; e++) /* any bits, some of them NaN and subnormal */
            memory[0][e] = (unsigned char)((e * 2654435761u + e / 97) >> 7);
        uint8_t info[2][COUNT];
        gb10_repack_args_t args = {.from = &from, .to = &to[0], .info = info[0]};
        args.scale = pair % 2 ? scale : NULL;
        cr_assert(gb10_repack(oracle, &args) == GB10_OK);
        args.to = &to[1];
        args.info = info[1];
        EACH_RUN(run)
        {
            memset(memory[2], run, bytes);
            cr_assert(gb10_repack(handle, &args) == GB10_OK, "%s",
                      gb10_last_error(handle)->message);
            cr_expect(simt_on_gpu() || simt_counters()->launches == 1);
            cr_expect(memcmp(info[0], info[1], COUNT) == 0, "pair %d: info", pair);
            bool same = true;
            for (size_t e = 0; e < bytes / (gb10_dtype_is_double(dtype) ? 8 : 4); e++) {
                double x = gb10_number_at(dtype, memory[1], (int64_t)e);
                double y = gb10_number_at(dtype, memory[2], (int64_t)e);
                same = same && (memcmp(&x, &y, sizeof x) == 0 || (x != x && y != y));
            }
            cr_expect(same, "pair %d: another result", pair);
        }
    }
    for (int i = 0; i < 3; i++)
        simt_free(memory[i]);
    gb10_destroy(oracle);
    gb10_destroy(handle);
}

/* The rank-k update: the same bits in every schedule, near cpu-ref's, each byte of the strips read
 * as often as there are tiles. */
Test(qr, rank_k)
{
    enum { N = 70, K = 37, COUNT = 2 };
    gb10_handle_t *oracle = NULL, *handle = NULL;
    static _Alignas(16) float a[COUNT * N * K * 2], c[3][COUNT * N * N * 2];
    set_number("FUGU_CUDA_SHARED", 0);
    cr_assert(gb10_create(&oracle, "cpu-ref", NULL) == GB10_OK);
    cr_assert(gb10_create(&handle, "cuda", NULL) == GB10_OK);
    for (int e = 0; e < COUNT * N * K * 2; e++)
        a[e] = (float)((e * 37 + e / 71) % 101 - 50) / 64;
    for (int mode = 0; mode < 5; mode++) {
        const bool first = mode % 2 == 0;
        if (mode == 4) { /* its square overflows by the definition, though not when fused */
            a[2 * (5 * K + 3)] = 1.9e19f;
            a[2 * (5 * K + 3) + 1] = 1e19f;
        }
        gb10_view_t A = gb10_view_rows(GB10_C, a, first ? N : K, first ? K : N, COUNT);
        gb10_view_t C = gb10_view_rows(GB10_C, c[0], N, N, COUNT);
        gb10_syrk_args_t args = {.A = &A,
                                 .C = &C,
                                 .alpha = {mode == 4 ? 1 : 0.5, mode < 2 ? -1 : 0},
                                 .beta = {1, 0},
                                 .uplo = mode % 3 ? 'U' : 'L',
                                 .trans = first ? 'N' : 'C',
                                 .hermitian = mode == 2 || mode == 3};
        for (int e = 0; e < COUNT * N * N * 2; e++)
            c[0][e] = c[2][e] = (float)(e % 17) / 8;
        cr_assert(gb10_syrk(oracle, &args) == GB10_OK);
        EACH_RUN(run)
        {
            C.base = c[1];
            float before = c[1][0];
            memcpy(c[1], c[2], sizeof c[1]);
            cr_assert(gb10_syrk(handle, &args) == GB10_OK, "%s", gb10_last_error(handle)->message);
            cr_expect(simt_on_gpu() ||
                      (simt_counters()->launches == 1 && simt_counters()->block_barriers > 0));
            cr_expect(run == 0 || before == c[1][0], "mode %d: other bits", mode);
            for (int e = 0; e < COUNT * N * N * 2; e++) {
                const float x = c[1][e], want = c[0][e], near = 1e-4f + 1e-6f * fabsf(want);
                const bool good = x == want || fabsf(x - want) < near;
                cr_expect(good, "mode %d: %d is %g, not %g", mode, e, (double)x, (double)want);
                if (!good)
                    break;
            }
        }
    }
    gb10_destroy(oracle);
    gb10_destroy(handle);
}
