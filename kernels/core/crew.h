/* A team of threads that shares out the parts of one piece of work. The calling thread works too;
 * the others sleep while there is nothing to do. */
#ifndef GB10_CORE_CREW_H
#define GB10_CORE_CREW_H

#include <stdint.h>

#include "kernels/core/status.h"

typedef struct gb10_crew gb10_crew_t;

enum { GB10_CREW_MAX = 4096 };

/* Does part `part` of the work. `worker` is below the crew's threads and belongs to one thread for
 * the time of the call: per-worker memory is indexed by it. */
typedef void gb10_crew_fn(void *ctx, int64_t part, int worker);

/* A crew of 1 .. GB10_CREW_MAX threads, the caller included: threads - 1 are started, with all
 * signals blocked. On failure *crew is NULL and none is left running. */
gb10_status_t gb10_crew_create(gb10_crew_t **crew, int threads, gb10_error_t *err);
/* Ends the threads; NULL allowed. */
void gb10_crew_destroy(gb10_crew_t *crew);

/* Threads, the caller included; 1 for NULL. */
int gb10_crew_threads(const gb10_crew_t *crew);

/* Calls fn once for every part 0 .. parts-1 and returns when all are done. The first `workers`
 * threads take part (0: all). Parts are handed out in ascending order, to whoever is free; what
 * they wrote is visible to the caller afterwards. A part may call this again, on the same crew:
 * then it does those parts alone, as worker 0. Crew NULL: the caller does everything. One caller
 * at a time. */
void gb10_crew_run(gb10_crew_t *crew, int workers, gb10_crew_fn *fn, void *ctx, int64_t parts);

/* Cores that this process may run on (its affinity mask), at least 1. */
int gb10_cores(void);

#endif
