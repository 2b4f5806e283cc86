/* The crew, and the bits of every operation for any number of threads. */
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kernels/core/alloc.h"
#include "kernels/core/crew.h"
#include "tests/support/batch.h"
#include "tests/support/test.h"

enum { PARTS = 1000, THREADS = 5 };

typedef struct tally {
    gb10_crew_t *crew;
    int limit;
    int done[PARTS], by[THREADS];
    atomic_int bad, nested;
} tally_t;

static void count_part(void *ctx, int64_t part, int worker)
{
    tally_t *t = ctx;
    t->done[part]++;
    if (worker < 0 || worker >= t->limit)
        atomic_fetch_add(&t->bad, 1);
    else
        t->by[worker]++;
}

static void nest(void *ctx, int64_t part, int worker)
{
    tally_t *t = ctx;
    (void)part;
    (void)worker;
    atomic_fetch_add(&t->nested, 1);
}

static void count_and_nest(void *ctx, int64_t part, int worker)
{
    tally_t *t = ctx;
    count_part(ctx, part, worker);
    gb10_crew_run(t->crew, 0, nest, t, 3);
}

/* Every part once, by a worker that takes part; nothing is lost over many rounds. */
Test(threads, crew_does_every_part_once)
{
    static const int64_t parts[] = {0, 1, 2, 5, 64, PARTS};
    for (int threads = 1; threads <= THREADS; threads++) {
        gb10_crew_t *crew = NULL;
        cr_assert(gb10_crew_create(&crew, threads, NULL) == GB10_OK);
        cr_expect(gb10_crew_threads(crew) == threads);
        for (int round = 0; round < 300; round++) {
            int64_t n = parts[round % 6];
            int workers = round % (threads + 1), sum = 0;
            tally_t t = {.crew = crew, .limit = workers ? workers : threads};
            gb10_crew_run(crew, workers, round % 7 ? count_part : count_and_nest, &t, n);
            for (int64_t i = 0; i < PARTS; i++)
                cr_assert(t.done[i] == (i < n), "%d threads: part %d done %d times", threads,
                          (int)i, t.done[i]);
            for (int w = 0; w < threads; w++)
                sum += t.by[w];
            cr_assert(t.bad == 0 && sum == (int)n && t.nested == (round % 7 ? 0 : 3 * (int)n));
            if (round % 50 == 0)
                usleep(2000); /* so that the members are asleep */
        }
        gb10_crew_destroy(crew);
    }
    tally_t t = {.limit = 1};
    gb10_crew_run(NULL, 0, count_part, &t, 4);
    cr_expect(t.by[0] == 4 && gb10_crew_threads(NULL) == 1 && gb10_cores() >= 1);
}

Test(threads, crew_that_cannot_be_made)
{
    gb10_crew_t *crew = NULL;
    gb10_error_t err = {0};
    cr_expect(gb10_crew_create(&crew, 0, &err) == GB10_ERR_INVALID && !crew);
    cr_expect(gb10_crew_create(&crew, GB10_CREW_MAX + 1, NULL) == GB10_ERR_INVALID && !crew);
    for (long n = 1; n <= 2; n++) {
        gb10_alloc_fail_at(n);
        cr_expect(gb10_crew_create(&crew, 3, NULL) == GB10_ERR_MEMORY && !crew);
        gb10_alloc_fail_at(0);
    }
    gb10_crew_destroy(NULL);
}

Test(threads, of_a_handle)
{
    gb10_handle_t *handle = NULL;
    cr_assert(gb10_create(&handle, "cpu", NULL) == GB10_OK);
    cr_expect(gb10_threads(handle) == 1);
    cr_expect(gb10_set_threads(handle, 3) == GB10_OK && gb10_threads(handle) == 3);
    cr_expect(gb10_set_threads(handle, -1) == GB10_ERR_INVALID && gb10_threads(handle) == 3);
    cr_expect(strstr(gb10_last_error(handle)->message, "threads = -1") != NULL);
    gb10_alloc_fail_at(1);
    cr_expect(gb10_set_threads(handle, 2) == GB10_ERR_MEMORY && gb10_threads(handle) == 3);
    gb10_alloc_fail_at(0);
    cr_expect(gb10_set_threads(handle, 1) == GB10_OK && gb10_threads(handle) == 1);
    cr_expect(gb10_set_threads(handle, 0) == GB10_OK && gb10_threads(handle) == gb10_cores());
    cr_expect(gb10_set_threads(NULL, 1) == GB10_ERR_INVALID);
    gb10_destroy(handle);
}

/* All buffers of a batch, info, metrics and names of gates. */
static bool same_results(const batch_t *a, const batch_t *b)
{
    size_t count = (size_t)a->shape.count;
    bool same = memcmp(a->info, b->info, count) == 0 &&
                memcmp(a->metrics, b->metrics, count * GB10_METRICS * sizeof(double)) == 0 &&
                memcmp(a->failed, b->failed, count * sizeof *a->failed) == 0;
    for (int buffer = 0; buffer < BATCH_BUFFERS; buffer++)
        same = same && (a->bytes[buffer] == 0 ||
                        memcmp(a->raw[buffer], b->raw[buffer], a->bytes[buffer]) == 0);
    return same;
}

/* Factors and checks, levels mixed: one in five in full. */
static batch_t *results(gb10_handle_t *handle, batch_shape_t shape)
{
    static const uint8_t levels[] = {GB10_CHECK_NORMS, GB10_CHECK_PROBE, GB10_CHECK_NONE,
                                     GB10_CHECK_FULL, GB10_CHECK_NORMS};
    batch_t *t = batch_new(shape);
    batch_fill(t, "gaussian", batch_seed(), 0, 0);
    if (shape.count > 2 && shape.m > 0)
        batch_set(t, BATCH_A, shape.count - 2, 0, 0, 0, (double)NAN);
    cr_assert(batch_geqrf(t, handle) == GB10_OK, "%s", gb10_last_error(handle)->message);
    for (int64_t b = 0; b < shape.count; b++)
        t->level[b] = levels[b % 5];
    gb10_check_args_t args = {.A = &t->view[BATCH_A],
                              .V = &t->view[BATCH_V],
                              .T = &t->view[BATCH_T],
                              .R = &t->view[BATCH_R],
                              .tau = &t->view[BATCH_TAU],
                              .nb = shape.nb,
                              .level = t->level,
                              .info = t->info,
                              .metrics = t->metrics,
                              .failed = t->failed};
    cr_assert(gb10_check(handle, &args) == GB10_OK, "%s", gb10_last_error(handle)->message);
    return t;
}

static const int team[] = {2, 3, 5};

Test(threads, equal_bits)
{
    static const int64_t shapes[][3] = {{1, 1, 40},
                                        {4, 4, 300},
                                        {9, 12, 130},
                                        {17, 8, 65},
                                        {32, 32, 3},
                                        {40, 33, 49},
                                        {70, 50, 7},
                                        {130, 90, 2},
                                        {64, 64, 1},
                                        {8, 8, 0},
                                        {0, 5, 20},
                                        /* one matrix over the team, and slices of one matrix */
                                        {230, 200, 1},
                                        {195, 300, 2},
                                        {200, 200, 6}};
    gb10_handle_t *handle;
    const char *name;
    for (int i = 0; (handle = batch_backend(i, &name)); gb10_destroy(handle), i++)
        for (int dtype = 0; dtype < GB10_DTYPES; dtype++)
            for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
                batch_shape_t shape = {.dtype = (gb10_dtype_t)dtype,
                                       .m = shapes[s][0],
                                       .n = shapes[s][1],
                                       .count = shapes[s][2],
                                       .nb = 32,
                                       .columns = s % 2,
                                       .pointers = s % 3 == 1};
                if (batch_skips(shape.m, shape.n))
                    continue;
                gb10_set_threads(handle, 1);
                batch_t *one = results(handle, shape);
                for (int t = 0; t < 3; t++) {
                    cr_assert(gb10_set_threads(handle, team[t]) == GB10_OK);
                    batch_t *many = results(handle, shape);
                    const char *damage = batch_damage(many);
                    cr_expect(!damage, "%s: %s: wrote to %s", name, many->text, damage);
                    cr_expect(same_results(one, many), "%s: %s: other bits with %d threads", name,
                              one->text, team[t]);
                    batch_free(many);
                }
                batch_free(one);
            }
}

/* T and Q from V and tau, Q on a right-hand side: fills `out` with all three. */
static void other_operations(gb10_handle_t *handle, const batch_t *t, char *out, size_t bytes)
{
    const batch_shape_t *s = &t->shape;
    size_t size = gb10_dtype_size(s->dtype), part = bytes / 3;
    gb10_view_t T = gb10_view_rows(s->dtype, out, t->b, t->k, s->count);
    gb10_view_t Q = gb10_view_rows(s->dtype, out + part, s->m, t->k, s->count);
    gb10_view_t C = gb10_view_rows(s->dtype, out + 2 * part, s->m, 3, s->count);
    gb10_form_t_args_t form_t = {&t->view[BATCH_V], &t->view[BATCH_TAU], &T, s->nb};
    gb10_form_q_args_t form_q = {&t->view[BATCH_V], &T, &Q, s->nb};
    gb10_apply_q_args_t apply = {&t->view[BATCH_V], &T, &C, s->nb, 'L', 'C'};
    memset(out, 0, bytes);
    for (int64_t e = 0; e < s->count * s->m * 3; e++)
        memset((char *)C.base + (size_t)e * size, (int)(e % 50), size); /* small numbers */
    cr_assert(gb10_form_t(handle, &form_t) == GB10_OK);
    cr_assert(gb10_form_q(handle, &form_q) == GB10_OK);
    cr_assert(gb10_apply_q(handle, &apply) == GB10_OK);
}

Test(threads, equal_bits_of_t_and_q)
{
    gb10_handle_t *handle = NULL;
    cr_assert(gb10_create(&handle, NULL, NULL) == GB10_OK);
    for (int dtype = 0; dtype < GB10_DTYPES; dtype++) {
        batch_shape_t shape = {.dtype = (gb10_dtype_t)dtype, .m = 13, .n = 9, .count = 90, .nb = 4};
        size_t bytes = (size_t)3 * 90 * 13 * 9 * 16;
        char *one = NULL, *many = NULL;
        cr_assert(gb10_alloc(&one, bytes, 1, "", NULL) == GB10_OK &&
                  gb10_alloc(&many, bytes, 1, "", NULL) == GB10_OK);
        gb10_set_threads(handle, 1);
        batch_t *t = batch_new(shape);
        batch_fill(t, "gaussian", batch_seed(), 0, 0);
        cr_assert(batch_geqrf(t, handle) == GB10_OK);
        other_operations(handle, t, one, bytes);
        for (int i = 0; i < 3; i++) {
            gb10_set_threads(handle, team[i]);
            other_operations(handle, t, many, bytes);
            cr_expect(memcmp(one, many, bytes) == 0, "dtype %d, %d threads", dtype, team[i]);
        }
        batch_free(t);
        gb10_free(one);
        gb10_free(many);
    }
    gb10_destroy(handle);
}

/* The team's times are the sum of its members'; without a team of workspaces one thread does it. */
Test(threads, times_and_memory)
{
    gb10_handle_t *handle = NULL;
    batch_shape_t shape = {.dtype = GB10_D, .m = 24, .n = 24, .count = 400, .nb = 32};
    cr_assert(gb10_create(&handle, "cpu", NULL) == GB10_OK);
    batch_t *t = batch_new(shape);
    batch_fill(t, "gaussian", 1, 0, 0);
    gb10_times_t times = {.pack = 1};
    gb10_geqrf_args_t args = {.A = &t->view[BATCH_A], .R = &t->view[BATCH_R], .nb = 32};
    args.times = &times;
    args.info = t->info;
    gb10_set_threads(handle, 4);
    gb10_alloc_fail_at(1); /* memory for four, then for two */
    cr_assert(gb10_geqrf(handle, &args) == GB10_OK);
    gb10_alloc_fail_at(0);
    cr_expect(times.pack > 1 && times.pack < 100 && times.factor > 0 && times.unpack > 0);
    for (int64_t b = 0; b < shape.count; b++)
        cr_expect(t->info[b] == GB10_INFO_OK);
    cr_assert(gb10_geqrf(handle, &args) == GB10_OK);
    gb10_alloc_fail_at(1); /* nothing is allocated by a call that finds enough */
    cr_expect(gb10_geqrf(handle, &args) == GB10_OK);
    gb10_alloc_fail_at(0);
    batch_free(t);
    gb10_destroy(handle);
}

/* The tuning decides which matrices share vectors; the reference has each alone. */
Test(threads, granule)
{
    static const char alone[] = "fugu-tuning,1,alone\n"
                                "isa,dtype,shape,n_max,kernel,block,group,provenance\n"
                                "%s,d,square,any,blocks,16,4,a test\n";
    char text[sizeof alone + 16];
    gb10_handle_t *handle = NULL, *ref = NULL;
    cr_assert(gb10_create(&handle, "cpu", NULL) == GB10_OK);
    cr_assert(gb10_create(&ref, "cpu-ref", NULL) == GB10_OK);
    int64_t d = gb10_geqrf_granule(handle, GB10_D, 8, 8, 8);
    int64_t s = gb10_geqrf_granule(handle, GB10_S, 8, 8, 8);
    cr_expect(d >= 2 && s == 2 * d, "d %d, s %d", (int)d, (int)s);
    cr_expect_eq(gb10_geqrf_granule(handle, GB10_D, 500, 500, 32), 1);
    cr_expect_eq(gb10_geqrf_granule(ref, GB10_D, 8, 8, 8), 1);
    snprintf(text, sizeof text, alone, gb10_isa_name(handle));
    cr_assert(gb10_set_tuning(handle, text) == GB10_OK, "%s", gb10_last_error(handle)->message);
    cr_expect_eq(gb10_geqrf_granule(handle, GB10_D, 8, 8, 8), 1);
    gb10_destroy(handle);
    gb10_destroy(ref);
}
