/* The planner: every matrix in exactly one unit, units within their limits, pure in its input. */
#include "tests/support/test.h"

#include <string.h>

#include "kernels/core/alloc.h"
#include "kernels/core/rng.h"
#include "mpi/dist.h"

enum { BATCHES = 60 };

/* A plan over pseudo-random batches and what a walk over its units found. */
typedef struct fixture {
    gb10_batch_t batch[BATCHES];
    int64_t out[BATCHES], seen[BATCHES];
    int64_t n, unit_bytes;
    dist_plan_t *plan;
} fixture_t;

static void fill(fixture_t *f, uint64_t seed, int64_t n)
{
    static const int64_t size[] = {0, 1, 3, 8, 31, 32, 33, 64, 128, 129, 300, 512, 513, 5000};
    *f = (fixture_t){.n = n};
    for (int64_t i = 0; i < n; i++) {
        uint64_t r = gb10_random(seed, 0, (uint64_t)i);
        gb10_batch_t *b = &f->batch[i];
        b->dtype = (gb10_dtype_t)(r % 4);
        b->m = size[r / 4 % 14];
        b->n = size[r / 64 % 13];
        b->count = (int64_t)(r / 1024 % 200);
        b->quantum = r / (1 << 20) % 3 == 0 ? (int64_t)(r / (1 << 22) % 7 + 2) : 1;
        b->source_bytes = b->m * b->n * (int64_t)gb10_dtype_size(b->dtype);
        f->out[i] = 3 * b->source_bytes + 65;
    }
}

static void make_plan(fixture_t *f, int64_t unit_bytes)
{
    gb10_error_t err = {0};
    f->unit_bytes = unit_bytes;
    memset(f->seen, 0, sizeof f->seen);
    cr_assert_eq(dist_plan_create(&f->plan, f->batch, f->out, f->n, unit_bytes, INT64_MAX, &err),
                 GB10_OK, "%s", err.message);
}

static void check_unit(fixture_t *f, const gb10_unit_t *u)
{
    int64_t in = 0, out = 0, matrices = 0;
    cr_assert(u->nruns > 0 && u->matrices > 0, "unit %lld is empty", (long long)u->id);
    for (int64_t r = 0; r < u->nruns; r++) {
        const gb10_run_t *run = &u->runs[r];
        const gb10_batch_t *b = &f->batch[run->dataset];
        cr_assert(run->count > 0);
        cr_assert_eq(gb10_bucket_of(b->m, b->n), u->bucket);
        cr_assert_eq(b->dtype, u->dtype);
        cr_assert_eq(run->first, f->seen[run->dataset], "unit %lld: a gap or an overlap",
                     (long long)u->id);
        cr_assert(run->first % b->quantum == 0, "a chunk is cut");
        f->seen[run->dataset] += run->count;
        cr_assert(f->seen[run->dataset] % b->quantum == 0 || f->seen[run->dataset] == b->count);
        in += run->count * b->source_bytes;
        out += run->count * f->out[run->dataset];
        matrices += run->count;
    }
    cr_assert_eq(in, u->bytes_in);
    cr_assert_eq(out, u->bytes_out);
    cr_assert_eq(matrices, u->matrices);
    const gb10_batch_t *b = &f->batch[u->runs[0].dataset];
    int64_t one = b->quantum * (b->source_bytes + f->out[u->runs[0].dataset]);
    cr_assert(in + out <= f->unit_bytes || (u->nruns == 1 && in + out <= one),
              "unit %lld of %lld bytes exceeds %lld", (long long)u->id, (long long)(in + out),
              (long long)f->unit_bytes);
}

static void check_plan(fixture_t *f)
{
    gb10_unit_t u = {0};
    gb10_error_t err = {0};
    int64_t in, out, matrices, runs, top[4] = {0}, units = dist_plan_units(f->plan), total = 0;
    int64_t bucket_units[GB10_BUCKETS] = {0};
    dist_plan_limits(f->plan, &in, &out, &matrices, &runs);
    for (int64_t i = 0; i < units; i++) {
        cr_assert_eq(dist_unit(f->plan, i, &u, &err), GB10_OK);
        check_unit(f, &u);
        int64_t value[4] = {u.bytes_in, u.bytes_out, u.matrices, u.nruns};
        for (int k = 0; k < 4; k++)
            top[k] = value[k] > top[k] ? value[k] : top[k];
        total += u.matrices;
        bucket_units[u.bucket]++;
    }
    for (int64_t i = 0; i < f->n; i++)
        cr_assert_eq(f->seen[i], f->batch[i].count, "batch %lld", (long long)i);
    cr_assert_eq(total, dist_plan_matrices(f->plan));
    cr_assert(top[0] == in && top[1] == out && top[2] == matrices && top[3] == runs,
              "limits are not those of the largest unit");
    for (int b = 0; b < GB10_BUCKETS; b++)
        cr_assert_eq(bucket_units[b], dist_plan_bucket_units(f->plan, (gb10_bucket_t)b));
    gb10_free(u.runs);
}

Test(plan, puts_every_matrix_into_one_unit)
{
    static const int64_t sizes[] = {1, 1000, 65536, 1 << 20, 64 << 20, INT64_C(1) << 50};
    for (uint64_t seed = 1; seed <= 25; seed++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            fixture_t f;
            fill(&f, seed, BATCHES);
            make_plan(&f, sizes[s]);
            check_plan(&f);
            dist_plan_free(f.plan);
        }
}

Test(plan, joins_small_batches_of_one_bucket_and_type)
{
    fixture_t f = {.n = 50};
    for (int i = 0; i < 50; i++) {
        f.batch[i] = (gb10_batch_t){GB10_D, 8, 8, 1, 1, 512};
        f.out[i] = 1000;
    }
    make_plan(&f, 64 << 20);
    cr_assert_eq(dist_plan_units(f.plan), 1);
    check_plan(&f);
    dist_plan_free(f.plan);
}

Test(plan, order_is_a_permutation_with_the_costly_first)
{
    fixture_t f;
    gb10_error_t err = {0};
    gb10_unit_t u = {0};
    fill(&f, 3, BATCHES);
    make_plan(&f, 200000);
    int64_t units = dist_plan_units(f.plan);
    char *seen = NULL;
    cr_assert_eq(gb10_alloc(&seen, (size_t)units, 1, "flags", &err), GB10_OK);
    double first = 0, last = 0;
    for (int64_t i = 0; i < units; i++) {
        int64_t at = dist_plan_order(f.plan, i);
        cr_assert(at >= 0 && at < units && !seen[at]);
        seen[at] = 1;
        cr_assert_eq(dist_unit(f.plan, at, &u, &err), GB10_OK);
        if (i < units / 10)
            first += u.flops;
        if (i >= units - units / 10)
            last += u.flops;
    }
    cr_assert(first > last);
    gb10_free(seen);
    gb10_free(u.runs);
    dist_plan_free(f.plan);
}

Test(plan, static_schedule_is_balanced)
{
    fixture_t f = {.n = 2};
    gb10_error_t err = {0};
    f.batch[0] = (gb10_batch_t){GB10_D, 64, 64, 5000, 1, 32768};
    f.batch[1] = (gb10_batch_t){GB10_D, 8, 8, 50000, 1, 512};
    f.out[0] = 100000;
    f.out[1] = 1700;
    make_plan(&f, 1 << 20);
    int64_t units = dist_plan_units(f.plan), of_rank[7] = {0};
    int32_t *owner = NULL;
    cr_assert_eq(gb10_alloc(&owner, (size_t)units, sizeof *owner, "owners", &err), GB10_OK);
    cr_assert_eq(dist_plan_static(f.plan, 7, NULL, owner, &err), GB10_OK);
    for (int64_t i = 0; i < units; i++)
        of_rank[owner[i]]++;
    for (int r = 0; r < 7; r++)
        cr_expect(of_rank[r] > units / 7 - units / 20 - 2 &&
                      of_rank[r] < units / 7 + units / 20 + 2,
                  "rank %d has %lld of %lld units", r, (long long)of_rank[r], (long long)units);
    gb10_free(owner);
    dist_plan_free(f.plan);
}

/* Every open unit once, in the plan's order; many a message at first, single ones in the end. */
Test(plan, dealing)
{
    enum { RANKS = 7, MOST = 32 };
    fixture_t f = {.n = 2};
    f.batch[0] = (gb10_batch_t){GB10_D, 64, 64, 5000, 1, 32768};
    f.batch[1] = (gb10_batch_t){GB10_D, 400, 400, 30, 1, 1280000};
    f.out[0] = 100000;
    f.out[1] = 4000000;
    make_plan(&f, 1 << 20);
    int64_t units = dist_plan_units(f.plan), unit[MOST], n, at = 0, dealt = 0, messages = 0;
    uint8_t *done = NULL;
    cr_assert_eq(gb10_alloc(&done, (size_t)units, 1, "units", NULL), GB10_OK);
    for (int64_t i = 0; i < units; i++)
        done[i] = i % 5 == 2;
    dist_dealer_t d;
    dist_dealer_init(&d, f.plan, done);
    int64_t open = d.open, first = 0, last = 0;
    while ((n = dist_deal(&d, RANKS, MOST, unit)) > 0) {
        for (int64_t i = 0; i < n; i++, at++, dealt++) {
            while (done[dist_plan_order(f.plan, at)])
                at++;
            cr_assert_eq(unit[i], dist_plan_order(f.plan, at));
        }
        first = messages++ == 0 ? n : first;
        last = n;
        cr_assert(n == 1 || 4 * RANKS * n <= open - dealt + n, "%d units of %d", (int)n,
                  (int)(open - dealt));
    }
    cr_expect_eq(dealt, open);
    cr_expect(first >= 1 && last == 1 && messages < open / 2, "%d messages for %d units",
              (int)messages, (int)open);
    cr_expect_float_eq(d.left, 0, 1e-6 * (double)units);
    gb10_free(done);
    dist_plan_free(f.plan);
}

Test(plan, huge_counts_cost_no_memory)
{
    fixture_t f = {.n = 1};
    gb10_error_t err = {0};
    gb10_unit_t u = {0};
    f.batch[0] = (gb10_batch_t){GB10_S, 4, 4, INT64_C(1000000000000), 1, 64};
    f.out[0] = 300;
    make_plan(&f, 64 << 20);
    int64_t units = dist_plan_units(f.plan);
    cr_assert_eq(dist_unit(f.plan, units - 1, &u, &err), GB10_OK);
    cr_assert_eq(u.runs[0].first + u.runs[0].count, f.batch[0].count);
    gb10_free(u.runs);
    dist_plan_free(f.plan);
}

Test(plan, nothing_to_do_is_a_plan)
{
    fixture_t f = {.n = 1};
    f.batch[0] = (gb10_batch_t){GB10_S, 4, 4, 0, 1, 64};
    make_plan(&f, 1000);
    cr_assert_eq(dist_plan_units(f.plan), 0);
    dist_plan_free(f.plan);
    f.n = 0;
    make_plan(&f, 1000);
    cr_assert_eq(dist_plan_units(f.plan), 0);
    dist_plan_free(f.plan);
}

Test(plan, failed_allocations_are_reported)
{
    for (long n = 1; n <= 4; n++) {
        fixture_t f;
        gb10_error_t err = {0};
        fill(&f, 1, BATCHES);
        gb10_alloc_fail_at(0);
        gb10_alloc_fail_at(n);
        cr_assert_eq(dist_plan_create(&f.plan, f.batch, f.out, f.n, 1000, INT64_MAX, &err),
                     GB10_ERR_MEMORY);
        gb10_alloc_fail_at(0);
    }
}

/* What is beyond the memory stands alone behind all others, and the slots do not count it. */
Test(plan, huge_matrices_are_units_alone)
{
    fixture_t f = {.n = 4};
    gb10_error_t err = {0};
    gb10_unit_t u = {0};
    int64_t in, out, matrices, runs;
    f.batch[0] = (gb10_batch_t){GB10_D, 600, 600, 3, 2, 2880000};
    f.batch[1] = (gb10_batch_t){GB10_D, 8, 8, 100, 1, 512};
    f.batch[2] = (gb10_batch_t){GB10_S, 9000, 100, 2, 1, 3600000};
    f.batch[3] = (gb10_batch_t){GB10_D, 500, 500, 2, 1, 2000000};
    for (int i = 0; i < 4; i++)
        f.out[i] = 2 * f.batch[i].source_bytes;
    cr_assert_eq(dist_plan_create(&f.plan, f.batch, f.out, f.n, 1 << 30, 6000000, &err), GB10_OK);
    cr_expect_eq(dist_plan_bucket(f.plan, 0), GB10_HUGE);
    cr_expect_eq(dist_plan_bucket(f.plan, 2), GB10_HUGE);
    cr_expect_eq(dist_plan_bucket(f.plan, 3), GB10_MEDIUM, "exactly the memory fits");
    cr_expect_eq(dist_plan_units(f.plan), 2 + 5);
    cr_expect_eq(dist_plan_huge(f.plan), 2);
    cr_expect_eq(dist_plan_bucket_matrices(f.plan, GB10_HUGE), 5);
    dist_plan_limits(f.plan, &in, &out, &matrices, &runs);
    cr_expect(in == 4000000 && out == 8000000 && matrices == 100 && runs == 1);
    for (int64_t i = 2; i < 7; i++) {
        cr_assert_eq(dist_unit(f.plan, i, &u, &err), GB10_OK);
        cr_expect(u.bucket == GB10_HUGE && u.nruns == 1 && u.matrices == 1);
        cr_expect_eq(u.runs[0].dataset, i < 4 ? 2 : 0);
        cr_expect_eq(u.runs[0].first, i < 4 ? i - 2 : i - 4);
    }
    uint8_t done[7] = {0, 0, 1, 1, 1, 1, 1};
    int32_t owner[7];
    cr_assert_eq(dist_plan_static(f.plan, 2, done, owner, &err), GB10_OK);
    for (int64_t i = 0; i < 7; i++)
        cr_expect_eq(owner[i] < 0, dist_plan_order(f.plan, i) >= 2);
    gb10_free(u.runs);
    dist_plan_free(f.plan);
}
