/* Where the time goes, in laps: costs nothing but a test when nobody wants to know. */
#ifndef GB10_CORE_STOPWATCH_H
#define GB10_CORE_STOPWATCH_H

#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Seconds of a clock that only goes forward. */
static inline double gb10_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Adds the time since *since to *sum and starts the next lap; no effect when sum is NULL. */
static inline void gb10_lap(double *since, double *sum)
{
    if (sum) {
        double now = gb10_seconds();
        *sum += now - *since;
        *since = now;
    }
}

#ifdef __cplusplus
}
#endif
#endif
