#include "io/fault.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct {
    char point[16], action[16];
    atomic_long left; /* passages until it strikes; 0: never */
} fault;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void prepare(void)
{
    const char *text = getenv("FUGU_FAULT"), *mine = getenv("OMPI_COMM_WORLD_RANK");
    long n = 0, rank = -1;
    mine = mine ? mine : getenv("PMIX_RANK");
    if (!text ||
        sscanf(text, "%15[a-z]:%ld:%15[A-Za-z]:%ld", fault.point, &n, fault.action, &rank) < 3)
        return;
    if (rank < 0 || rank == (mine ? strtol(mine, NULL, 10) : 0))
        atomic_store(&fault.left, n);
}

int io_fault(const char *point)
{
    static const struct {
        const char *name;
        int number;
    } errors[] = {{"ENOSPC", ENOSPC}, {"EDQUOT", EDQUOT}, {"EIO", EIO}, {"ENOMEM", ENOMEM}};
    pthread_once(&once, prepare);
    long left = atomic_load(&fault.left);
    if (left <= 0 || strcmp(point, fault.point) != 0)
        return 0;
    if (strcmp(fault.action, "slow") == 0) {
        nanosleep(&(struct timespec){left / 1000, left % 1000 * 1000000}, NULL);
        return 0;
    }
    if (atomic_fetch_sub(&fault.left, 1) != 1)
        return 0;
    if (strcmp(fault.action, "kill") == 0)
        raise(SIGKILL);
    if (strcmp(fault.action, "abort") == 0)
        raise(SIGABRT);
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (strcmp(fault.action, errors[i].name) == 0)
            return errors[i].number;
    return 0;
}
