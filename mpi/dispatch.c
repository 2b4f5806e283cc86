/* Hands units to ranks. Dynamic: a rank that has no unit in store asks rank 0 for some; rank 0's
 * main thread answers between its own offers. The conversation of a rank ends with LEAVING, sent
 * when its last unit is done, so that rank 0's figures are complete when dist_run returns. */
#include <mpi.h>
#include <string.h>

#include "kernels/core/alloc.h"
#include "mpi/dist.h"
#include "mpi/wait.h"

enum { TAG_REQUEST = 11, TAG_REPLY = 12, REPLY_MAX = 32 };
enum { ASKING = 1, LEAVING = 2, STOPPING = 3 };

typedef struct request {
    int64_t kind;
    dist_progress_t progress;
} request_t;

typedef struct reply {
    int64_t count; /* 0: nothing is left */
    int64_t unit[REPLY_MAX];
} reply_t;

/* Rank 0's side. */
typedef struct master {
    const dist_team_t *team;
    const dist_plan_t *plan;
    const dist_worker_t *worker;
    dist_dealer_t dealer;
    int left; /* ranks that have left */
    bool stop;
    dist_progress_t *of_rank; /* last report of each rank */
    dist_progress_t sum;
} master_t;

static void account(master_t *m, int rank, const dist_progress_t *p)
{
    dist_progress_t *old = &m->of_rank[rank];
    m->sum.units += p->units - old->units;
    m->sum.matrices += p->matrices - old->matrices;
    m->sum.bad += p->bad - old->bad;
    m->sum.bytes += p->bytes - old->bytes;
    *old = *p;
}

static gb10_status_t answer(master_t *m, bool *answered, gb10_error_t *err)
{
    int waiting = 0;
    MPI_Status from;
    request_t request;
    reply_t reply = {0};
    gb10_status_t status = GB10_OK;
    *answered = false;
    GB10_TRY(wait_check(MPI_Iprobe(MPI_ANY_SOURCE, TAG_REQUEST, MPI_COMM_WORLD, &waiting, &from),
                        "MPI_Iprobe", err));
    if (!waiting)
        return GB10_OK;
    GB10_TRY(wait_check(MPI_Recv(&request, sizeof request, MPI_BYTE, from.MPI_SOURCE, TAG_REQUEST,
                                 MPI_COMM_WORLD, MPI_STATUS_IGNORE),
                        "MPI_Recv", err));
    *answered = true;
    account(m, from.MPI_SOURCE, &request.progress);
    m->stop |= request.kind == STOPPING;
    if (request.kind != ASKING) {
        m->left++;
        return GB10_OK;
    }
    if (!m->stop)
        reply.count = dist_deal(&m->dealer, m->team->size, REPLY_MAX, reply.unit);
    GB10_TRY(wait_check(
        MPI_Send(&reply, sizeof reply, MPI_BYTE, from.MPI_SOURCE, TAG_REPLY, MPI_COMM_WORLD),
        "MPI_Send", err));
cleanup:
    return status;
}

/* No more units for this rank. */
static bool ended(const dist_worker_t *worker)
{
    return worker->failed(worker->ctx) || worker->stopped(worker->ctx);
}

static gb10_status_t run_master(const dist_team_t *team, const dist_plan_t *plan,
                                const dist_worker_t *worker, gb10_error_t *err)
{
    master_t m = {.team = team, .plan = plan, .worker = worker};
    gb10_status_t status = GB10_OK;
    int naps = 0;
    dist_dealer_init(&m.dealer, plan, worker->done);
    GB10_TRY(gb10_alloc(&m.of_rank, (size_t)team->size, sizeof *m.of_rank, "progress", err));
    for (;;) {
        bool busy = false;
        m.stop |= ended(worker);
        int64_t unit;
        if (!m.stop && worker->room(worker->ctx) > 0 && dist_deal(&m.dealer, 1, 1, &unit) > 0) {
            worker->offer(worker->ctx, unit);
            busy = true;
        }
        if (team->size > 1) {
            bool answered = false;
            GB10_TRY(answer(&m, &answered, err));
            busy |= answered;
        }
        bool drained = m.stop || m.dealer.next >= dist_plan_units(plan);
        bool done = drained && m.left == team->size - 1 &&
                    (worker->idle(worker->ctx) || worker->failed(worker->ctx));
        dist_progress_t own;
        worker->progress(worker->ctx, &own);
        account(&m, 0, &own);
        m.sum.units_total = m.dealer.open;
        worker->tick(worker->tick_ctx, &m.sum);
        if (done)
            break;
        if (busy)
            naps = 0;
        else
            wait_nap(&naps);
    }
cleanup:
    gb10_free(m.of_rank);
    return status;
}

static gb10_status_t send_request(const dist_worker_t *worker, int64_t kind, gb10_error_t *err)
{
    request_t request = {.kind = kind};
    worker->progress(worker->ctx, &request.progress);
    return wait_check(MPI_Send(&request, sizeof request, MPI_BYTE, 0, TAG_REQUEST, MPI_COMM_WORLD),
                      "MPI_Send", err);
}

static gb10_status_t fetch(const dist_worker_t *worker, reply_t *store, gb10_error_t *err)
{
    MPI_Request request;
    gb10_status_t status = GB10_OK;
    GB10_TRY(send_request(worker, ASKING, err));
    GB10_TRY(wait_check(
        MPI_Irecv(store, sizeof *store, MPI_BYTE, 0, TAG_REPLY, MPI_COMM_WORLD, &request),
        "MPI_Irecv", err));
    GB10_TRY(wait_request(&request, "MPI_Irecv", err));
cleanup:
    return status;
}

/* Waits until the rank's queued units are done. */
static void finish_queue(const dist_worker_t *worker)
{
    int naps = 0;
    while (!worker->idle(worker->ctx) && !worker->failed(worker->ctx))
        wait_nap(&naps);
}

/* Units come some at a time; they wait in the store until the worker has room. */
static gb10_status_t run_member(const dist_worker_t *worker, gb10_error_t *err)
{
    gb10_status_t status = GB10_OK;
    reply_t store = {.count = 0};
    int64_t at = 0;
    int naps = 0;
    while (!ended(worker)) {
        if (worker->room(worker->ctx) <= 0) {
            wait_nap(&naps);
            continue;
        }
        naps = 0;
        if (at == store.count) {
            GB10_TRY(fetch(worker, &store, err));
            at = 0;
        }
        if (store.count == 0)
            break;
        worker->offer(worker->ctx, store.unit[at++]);
    }
    finish_queue(worker);
    GB10_TRY(send_request(worker, ended(worker) ? STOPPING : LEAVING, err));
cleanup:
    return status;
}

static gb10_status_t run_static(const dist_team_t *team, const dist_plan_t *plan,
                                const dist_worker_t *worker, gb10_error_t *err)
{
    int32_t *owner = NULL;
    int64_t units = dist_plan_units(plan), mine = 0;
    gb10_status_t status = GB10_OK;
    GB10_TRY(gb10_alloc(&owner, (size_t)units, sizeof *owner, "static schedule", err));
    GB10_TRY(dist_plan_static(plan, team->size, worker->done, owner, err));
    for (int64_t i = 0; i < units; i++)
        mine += owner[i] == team->rank;
    for (int64_t i = 0; i < units && !ended(worker);) {
        int naps = 0;
        for (; i < units && owner[i] != team->rank; i++)
            ;
        while (i < units && worker->room(worker->ctx) <= 0 && !ended(worker))
            wait_nap(&naps);
        if (i < units && !ended(worker))
            worker->offer(worker->ctx, dist_plan_order(plan, i++));
        if (team->rank == 0) {
            dist_progress_t own;
            worker->progress(worker->ctx, &own);
            own.units_total = mine;
            worker->tick(worker->tick_ctx, &own);
        }
    }
    finish_queue(worker);
cleanup:
    gb10_free(owner);
    return status;
}

gb10_status_t dist_run(const dist_team_t *team, const dist_plan_t *plan, dist_schedule_t schedule,
                       const dist_worker_t *worker, gb10_error_t *err)
{
    if (schedule == DIST_STATIC)
        return run_static(team, plan, worker, err);
    return team->rank == 0 ? run_master(team, plan, worker, err) : run_member(worker, err);
}
