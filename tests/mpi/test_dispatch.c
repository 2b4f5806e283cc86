/* ranks: 1 2 3 5
 * Hand-out of units, agreement and collective calls on a running team. One Test: MPI_Init can be
 * called once. */
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "kernels/core/alloc.h"
#include "mpi/dist.h"

enum { UNITS_MAX = 4000, QUEUE = 3 };

/* A worker that finishes a queued unit now and then. */
typedef struct fake {
    int64_t counts[UNITS_MAX];
    int queued, fail_after, stop_after;
    int64_t done, ticks, last_sum;
} fake_t;

static void step(fake_t *f)
{
    if (f->queued > 0) {
        nanosleep(&(struct timespec){0, 20000}, NULL);
        f->queued--;
        f->done++;
    }
}

static void offer(void *ctx, int64_t unit)
{
    fake_t *f = ctx;
    f->counts[unit]++;
    f->queued++;
}

static int room(void *ctx)
{
    fake_t *f = ctx;
    step(f);
    return QUEUE - f->queued;
}

static bool idle(void *ctx)
{
    fake_t *f = ctx;
    step(f);
    return f->queued == 0;
}

static bool failed(void *ctx)
{
    const fake_t *f = ctx;
    return f->fail_after > 0 && f->done >= f->fail_after;
}

static bool stopped(void *ctx)
{
    const fake_t *f = ctx;
    return f->stop_after > 0 && f->done >= f->stop_after;
}

static void progress(void *ctx, dist_progress_t *p)
{
    const fake_t *f = ctx;
    *p = (dist_progress_t){.units = f->done, .matrices = 2 * f->done};
}

static void tick(void *ctx, const dist_progress_t *sum)
{
    fake_t *f = ctx;
    f->ticks++;
    f->last_sum = sum->units;
}

/* `part`: only every third unit is left to do. */
static void run_case(const dist_team_t *team, const dist_plan_t *plan, dist_schedule_t schedule,
                     bool part, const char *name)
{
    static uint8_t done[UNITS_MAX];
    fake_t f = {0};
    gb10_error_t err = {0};
    int64_t open = 0;
    dist_worker_t worker = {&f, offer, room, idle, failed, stopped, progress, tick, &f, NULL};
    int64_t units = dist_plan_units(plan), low = 0;
    for (int64_t i = 0; i < units; i++) {
        done[i] = part && i % 3 != 1;
        open += !done[i];
    }
    worker.done = part ? done : NULL;
    cr_assert_eq(dist_run(team, plan, schedule, &worker, &err), GB10_OK, "%s: %s", name,
                 err.message);
    cr_assert_eq(f.queued, 0, "%s: units left in the queue", name);
    low = f.done;
    cr_assert_eq(dist_min(team, &low, 1, &err), GB10_OK);
    if (open >= 20)
        cr_expect(low > 0, "%s: a rank did nothing", name);
    if (team->rank == 0 && schedule == DIST_DYNAMIC)
        cr_expect_eq(f.last_sum, open, "%s: rank 0 counted %lld of %lld", name,
                     (long long)f.last_sum, (long long)open);
    cr_assert_eq(dist_sum(team, f.counts, (int)units, &err), GB10_OK);
    for (int64_t i = 0; i < units; i++)
        cr_assert_eq(f.counts[i], !done[i], "%s: unit %lld was handed out %lld times", name,
                     (long long)i, (long long)f.counts[i]);
}

static void check_runs(const dist_team_t *team)
{
    static const int64_t matrices[] = {0, 1, 2, 40, 3000};
    for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++) {
        gb10_batch_t batch = {GB10_D, 8, 8, matrices[i], 1, 512};
        int64_t out = 1500;
        gb10_error_t err = {0};
        dist_plan_t *plan;
        cr_assert_eq(dist_plan_create(&plan, &batch, &out, 1, 3000, INT64_MAX, &err), GB10_OK);
        cr_assert_eq(dist_plan_units(plan), matrices[i]);
        for (int part = 0; part < 2; part++) {
            run_case(team, plan, DIST_DYNAMIC, part, part ? "dynamic, resumed" : "dynamic");
            run_case(team, plan, DIST_STATIC, part, part ? "static, resumed" : "static");
        }
        dist_plan_free(plan);
    }
}

/* A rank that fails, or that is asked to stop, stops the hand-out everywhere; nobody hangs, and
 * what was taken before a stop is done. */
static void check_failure(const dist_team_t *team, bool stop)
{
    gb10_batch_t batch = {GB10_D, 8, 8, UNITS_MAX, 1, 512};
    int64_t out = 1500, done;
    gb10_error_t err = {0};
    dist_plan_t *plan;
    int after = team->rank == team->size - 1 ? 3 : 0;
    fake_t f = {.fail_after = stop ? 0 : after, .stop_after = stop ? after : 0};
    dist_worker_t worker = {&f, offer, room, idle, failed, stopped, progress, tick, &f, NULL};
    cr_assert_eq(dist_plan_create(&plan, &batch, &out, 1, 3000, INT64_MAX, &err), GB10_OK);
    cr_assert_eq(dist_run(team, plan, DIST_DYNAMIC, &worker, &err), GB10_OK);
    done = f.done;
    cr_expect(!stop || f.queued == 0);
    cr_assert_eq(dist_sum(team, &done, 1, &err), GB10_OK);
    cr_expect(done < UNITS_MAX, "a failed rank did not stop the others");
    dist_plan_free(plan);
}

static void check_agreement(const dist_team_t *team)
{
    for (int bad = 0; bad < team->size; bad++) {
        gb10_error_t err = {0};
        gb10_status_t mine = GB10_OK;
        int origin = -2;
        if (team->rank >= bad)
            mine = GB10_FAIL(&err, GB10_ERR_FILE, "rank %d of the test", team->rank);
        cr_assert_eq(dist_agree(team, mine, &err, &origin), GB10_ERR_FILE);
        cr_assert_eq(origin, bad);
        char expected[64];
        snprintf(expected, sizeof expected, "rank %d of the test", bad);
        if (team->rank == 0)
            cr_assert_str_eq(err.message, expected);
    }
    gb10_error_t err = {0};
    int origin = -2;
    cr_assert_eq(dist_agree(team, GB10_OK, &err, &origin), GB10_OK);
    cr_assert_eq(origin, -1);
}

static void check_collectives(const dist_team_t *team)
{
    gb10_error_t err = {0};
    void *bytes = NULL;
    size_t size = 0;
    if (team->rank == 0) {
        size = 1000003;
        cr_assert_eq(gb10_alloc(&bytes, size, 1, "bytes", &err), GB10_OK);
        memset(bytes, 7, size);
    }
    cr_assert_eq(dist_broadcast(team, &bytes, &size, &err), GB10_OK);
    cr_assert(size == 1000003 && ((char *)bytes)[size - 1] == 7);
    gb10_free(bytes);
    double top = team->rank;
    cr_assert_eq(dist_max(team, &top, 1, &err), GB10_OK);
    cr_assert_eq(top, team->size - 1);
    int all[64] = {0}, mine = team->rank * 10;
    cr_assert_eq(dist_gather(team, &mine, sizeof mine, all, &err), GB10_OK);
    for (int r = 0; team->rank == 0 && r < team->size; r++)
        cr_assert_eq(all[r], 10 * r);
}

Test(dispatch, hands_out_every_unit_once)
{
    dist_team_t team;
    gb10_error_t err = {0};
    cr_assert_eq(dist_start(&team, true, &err), GB10_OK, "%s", err.message);
    check_collectives(&team);
    check_agreement(&team);
    check_runs(&team);
    check_failure(&team, false);
    check_failure(&team, true);
    dist_stop(&team);
}
