/* Start, stop and collective calls of the ranks. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/core/alloc.h"
#include "mpi/dist.h"
#include "mpi/wait.h"

enum { PIECE = 1 << 30, NAP_MIN_US = 20, NAP_MAX_US = 1000 };

void wait_nap(int *naps)
{
    long us = NAP_MIN_US;
    for (int i = 0; i < *naps && us < NAP_MAX_US; i++)
        us *= 2;
    (*naps)++;
    if (us > NAP_MAX_US)
        us = NAP_MAX_US;
    nanosleep(&(struct timespec){0, us * 1000}, NULL);
}

gb10_status_t wait_check(int code, const char *what, gb10_error_t *err)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    if (code == MPI_SUCCESS)
        return GB10_OK;
    MPI_Error_string(code, text, &length);
    return GB10_FAIL(err, GB10_ERR_MPI, "%s failed: %s", what, text);
}

gb10_status_t wait_request(MPI_Request *request, const char *what, gb10_error_t *err)
{
    int done = 0, naps = 0;
    for (;;) {
        gb10_status_t status = wait_check(MPI_Test(request, &done, MPI_STATUS_IGNORE), what, err);
        if (status != GB10_OK || done)
            return status;
        wait_nap(&naps);
    }
}

static const char *launcher_rank(void)
{
    static const char *const name[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID"};
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        const char *value = getenv(name[i]);
        if (value && *value)
            return value;
    }
    return NULL;
}

bool dist_launched(void)
{
    return launcher_rank() != NULL;
}

int dist_launch_rank(void)
{
    const char *value = launcher_rank();
    return value ? atoi(value) : 0;
}

/* A job step of several tasks whose processes do not know of each other would write one output from
 * each of them. */
static gb10_status_t refuse_singletons(const dist_team_t *team, gb10_error_t *err)
{
    const char *tasks = getenv("SLURM_STEP_NUM_TASKS");
    if (team->size > 1 || !tasks || atoi(tasks) <= 1)
        return GB10_OK;
    return GB10_FAIL(err, GB10_ERR_MPI,
                     "this job step has %s tasks, but each runs alone: srun started them without "
                     "PMIx. Use `srun --mpi=pmix` or `mpirun`",
                     tasks);
}

static gb10_status_t count_nodes(dist_team_t *team, gb10_error_t *err)
{
    MPI_Comm node = MPI_COMM_NULL;
    int local = 0, first;
    gb10_status_t status = GB10_OK;
    GB10_TRY(wait_check(
        MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, team->rank, MPI_INFO_NULL, &node),
        "MPI_Comm_split_type", err));
    GB10_TRY(wait_check(MPI_Comm_rank(node, &local), "MPI_Comm_rank", err));
    first = local == 0;
    GB10_TRY(wait_check(MPI_Allreduce(&first, &team->nodes, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD),
                        "MPI_Allreduce", err));
cleanup:
    if (node != MPI_COMM_NULL)
        MPI_Comm_free(&node);
    return status;
}

gb10_status_t dist_start(dist_team_t *team, bool use_mpi, gb10_error_t *err)
{
    *team = (dist_team_t){.rank = 0, .size = 1, .nodes = 1, .mpi = false};
    gb10_status_t status = GB10_OK;
    int level = 0;
    /* Open MPI itself ends a process that srun started without PMIx. */
    if (!use_mpi || (!getenv("OMPI_COMM_WORLD_RANK") && !getenv("PMIX_RANK")))
        status = refuse_singletons(team, err);
    if (status != GB10_OK || !use_mpi)
        return status;
    /* A rank that waits in a call of MPI leaves its core to the workers of the others. */
    setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level) != MPI_SUCCESS)
        return GB10_FAIL(err, GB10_ERR_MPI, "MPI_Init_thread failed");
    team->mpi = true;
    GB10_TRY(wait_check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN),
                        "MPI_Comm_set_errhandler", err));
    GB10_TRY(wait_check(MPI_Comm_rank(MPI_COMM_WORLD, &team->rank), "MPI_Comm_rank", err));
    GB10_TRY(wait_check(MPI_Comm_size(MPI_COMM_WORLD, &team->size), "MPI_Comm_size", err));
    GB10_TRY(count_nodes(team, err));
    GB10_TRY(refuse_singletons(team, err));
cleanup:
    return status;
}

void dist_stop(dist_team_t *team)
{
    if (team->mpi)
        MPI_Finalize();
    team->mpi = false;
}

void dist_abort(const dist_team_t *team, int code)
{
    if (team->mpi)
        MPI_Abort(MPI_COMM_WORLD, code);
    exit(code);
}

static gb10_status_t broadcast_piece(void *bytes, size_t size, gb10_error_t *err)
{
    MPI_Request request;
    gb10_status_t status = wait_check(
        MPI_Ibcast(bytes, (int)size, MPI_BYTE, 0, MPI_COMM_WORLD, &request), "MPI_Ibcast", err);
    return status == GB10_OK ? wait_request(&request, "MPI_Ibcast", err) : status;
}

static gb10_status_t reduce(void *values, int n, MPI_Datatype type, MPI_Op op, gb10_error_t *err)
{
    MPI_Request request;
    gb10_status_t status =
        wait_check(MPI_Iallreduce(MPI_IN_PLACE, values, n, type, op, MPI_COMM_WORLD, &request),
                   "MPI_Iallreduce", err);
    return status == GB10_OK ? wait_request(&request, "MPI_Iallreduce", err) : status;
}

gb10_status_t dist_sum(const dist_team_t *team, int64_t *values, int n, gb10_error_t *err)
{
    return team->size == 1 ? GB10_OK : reduce(values, n, MPI_INT64_T, MPI_SUM, err);
}

gb10_status_t dist_max(const dist_team_t *team, double *values, int n, gb10_error_t *err)
{
    return team->size == 1 ? GB10_OK : reduce(values, n, MPI_DOUBLE, MPI_MAX, err);
}

gb10_status_t dist_min(const dist_team_t *team, int64_t *values, int n, gb10_error_t *err)
{
    return team->size == 1 ? GB10_OK : reduce(values, n, MPI_INT64_T, MPI_MIN, err);
}

gb10_status_t dist_agree(const dist_team_t *team, gb10_status_t mine, gb10_error_t *err,
                         int *origin)
{
    enum { TAG = 17 };
    int64_t worst[2] = {-(int64_t)mine, mine == GB10_OK ? team->size : team->rank};
    gb10_error_t scratch = {0};
    *origin = mine == GB10_OK ? -1 : team->rank;
    if (team->size == 1)
        return mine;
    gb10_status_t status = reduce(worst, 2, MPI_INT64_T, MPI_MIN, &scratch);
    if (status != GB10_OK) {
        if (err && err->status == GB10_OK)
            *err = scratch;
        return status;
    }
    if (worst[0] == 0)
        return GB10_OK;
    *origin = (int)worst[1];
    if (*origin != 0 && team->rank == *origin)
        MPI_Send(err, (int)sizeof *err, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
    if (*origin != 0 && team->rank == 0) {
        MPI_Recv(err, (int)sizeof *err, MPI_BYTE, *origin, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        err->file = ""; /* the other rank's pointer */
    }
    return (gb10_status_t)-worst[0];
}

gb10_status_t dist_broadcast(const dist_team_t *team, void **bytes, size_t *size, gb10_error_t *err)
{
    uint64_t length = *size;
    int origin;
    gb10_status_t status = GB10_OK;
    if (team->size == 1)
        return GB10_OK;
    GB10_TRY(broadcast_piece(&length, sizeof length, err));
    if (team->rank != 0) {
        *size = (size_t)length;
        status = gb10_alloc(bytes, *size, 1, "broadcast", err);
    }
    GB10_TRY(dist_agree(team, status, err, &origin));
    for (size_t at = 0; at < *size; at += PIECE) {
        size_t piece = *size - at < PIECE ? *size - at : PIECE;
        GB10_TRY(broadcast_piece((char *)*bytes + at, piece, err));
    }
cleanup:
    return status;
}

gb10_status_t dist_gather(const dist_team_t *team, const void *mine, size_t size, void *all,
                          gb10_error_t *err)
{
    if (size > INT_MAX)
        return GB10_FAIL(err, GB10_ERR_INTERNAL, "gather of %zu bytes is too large", size);
    if (team->size == 1) {
        memcpy(all, mine, size);
        return GB10_OK;
    }
    MPI_Request request;
    gb10_status_t status = wait_check(MPI_Igather(mine, (int)size, MPI_BYTE, all, (int)size,
                                                  MPI_BYTE, 0, MPI_COMM_WORLD, &request),
                                      "MPI_Igather", err);
    return status == GB10_OK ? wait_request(&request, "MPI_Igather", err) : status;
}
