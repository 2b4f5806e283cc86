#include "kernels/core/crew.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include "kernels/core/alloc.h"

/* Looks at a counter before going to sleep, some microseconds: phases of one piece of work follow
 * each other faster than a sleeper wakes. */
enum { LOOKS = 400 };

typedef struct member {
    gb10_crew_t *crew;
    int worker;
    pthread_t thread;
} member_t;

struct gb10_crew {
    int threads, started;
    bool patient;               /* no more threads than cores: looking takes nobody's time */
    pthread_mutex_t lock;       /* guards what the conditions are about                    */
    pthread_cond_t begin, done; /* round changed or stop; working became 0                 */
    atomic_ulong round;         /* counts calls of gb10_crew_run                           */
    atomic_int working;         /* members that have not finished this round               */
    atomic_bool stop, running;
    gb10_crew_fn *fn; /* the work of this round */
    void *ctx;
    int workers;
    int64_t parts;
    atomic_llong next;
    member_t *members; /* threads - 1 */
};

int gb10_cores(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return CPU_COUNT(&set);
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 1 ? (int)online : 1;
}

static void rest(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void take_parts(gb10_crew_t *crew, int worker)
{
    int64_t part;
    while (worker < crew->workers && (part = atomic_fetch_add(&crew->next, 1)) < crew->parts)
        crew->fn(crew->ctx, part, worker);
}

/* Waits for a round after `seen`; false when there will be none. */
static bool next_round(gb10_crew_t *crew, unsigned long seen)
{
    for (int i = 0; crew->patient && i < LOOKS; i++) {
        if (atomic_load(&crew->round) != seen)
            return true;
        rest();
    }
    pthread_mutex_lock(&crew->lock);
    while (atomic_load(&crew->round) == seen && !atomic_load(&crew->stop))
        pthread_cond_wait(&crew->begin, &crew->lock);
    pthread_mutex_unlock(&crew->lock);
    return atomic_load(&crew->round) != seen;
}

static void *member_main(void *argument)
{
    const member_t *member = argument;
    gb10_crew_t *crew = member->crew;
    for (unsigned long seen = 0; next_round(crew, seen); seen++) {
        take_parts(crew, member->worker);
        if (atomic_fetch_sub(&crew->working, 1) == 1) {
            pthread_mutex_lock(&crew->lock);
            pthread_cond_signal(&crew->done);
            pthread_mutex_unlock(&crew->lock);
        }
    }
    return NULL;
}

static gb10_status_t start_members(gb10_crew_t *crew, gb10_error_t *err)
{
    sigset_t all, old;
    gb10_status_t status = GB10_OK;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    while (crew->started < crew->threads - 1 && status == GB10_OK) {
        member_t *member = &crew->members[crew->started];
        *member = (member_t){.crew = crew, .worker = crew->started + 1};
        if (pthread_create(&member->thread, NULL, member_main, member) == 0)
            crew->started++;
        else
            status = GB10_FAIL(err, GB10_ERR_MEMORY, "cannot start thread %d of %d",
                               crew->started + 2, crew->threads);
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return status;
}

gb10_status_t gb10_crew_create(gb10_crew_t **out, int threads, gb10_error_t *err)
{
    gb10_crew_t *crew = NULL;
    gb10_status_t status = GB10_OK;
    *out = NULL;
    if (threads < 1 || threads > GB10_CREW_MAX)
        return GB10_FAIL(err, GB10_ERR_INVALID, "%d threads; must be 1 to %d", threads,
                         GB10_CREW_MAX);
    GB10_TRY(gb10_alloc(&crew, 1, sizeof *crew, "threads", err));
    crew->threads = threads;
    crew->patient = threads <= gb10_cores();
    pthread_mutex_init(&crew->lock, NULL);
    pthread_cond_init(&crew->begin, NULL);
    pthread_cond_init(&crew->done, NULL);
    GB10_TRY(gb10_alloc(&crew->members, (size_t)threads - 1, sizeof(member_t), "threads", err));
    GB10_TRY(start_members(crew, err));
    *out = crew;
    crew = NULL;
cleanup:
    gb10_crew_destroy(crew);
    return status;
}

void gb10_crew_destroy(gb10_crew_t *crew)
{
    if (!crew)
        return;
    pthread_mutex_lock(&crew->lock);
    atomic_store(&crew->stop, true);
    pthread_cond_broadcast(&crew->begin);
    pthread_mutex_unlock(&crew->lock);
    for (int i = 0; i < crew->started; i++)
        pthread_join(crew->members[i].thread, NULL);
    pthread_cond_destroy(&crew->begin);
    pthread_cond_destroy(&crew->done);
    pthread_mutex_destroy(&crew->lock);
    gb10_free(crew->members);
    gb10_free(crew);
}

int gb10_crew_threads(const gb10_crew_t *crew)
{
    return crew ? crew->threads : 1;
}

static void wait_for_members(gb10_crew_t *crew)
{
    for (int i = 0; crew->patient && i < LOOKS && atomic_load(&crew->working) > 0; i++)
        rest();
    pthread_mutex_lock(&crew->lock);
    while (atomic_load(&crew->working) > 0)
        pthread_cond_wait(&crew->done, &crew->lock);
    pthread_mutex_unlock(&crew->lock);
}

void gb10_crew_run(gb10_crew_t *crew, int workers, gb10_crew_fn *fn, void *ctx, int64_t parts)
{
    bool alone = parts <= 1 || workers == 1 || gb10_crew_threads(crew) == 1;
    if (alone || atomic_exchange(&crew->running, true)) {
        for (int64_t part = 0; part < parts; part++)
            fn(ctx, part, 0);
        return;
    }
    crew->fn = fn;
    crew->ctx = ctx;
    crew->parts = parts;
    crew->workers = workers > 0 ? workers : crew->threads;
    atomic_store(&crew->next, 0);
    atomic_store(&crew->working, crew->started);
    pthread_mutex_lock(&crew->lock);
    atomic_fetch_add(&crew->round, 1);
    pthread_cond_broadcast(&crew->begin);
    pthread_mutex_unlock(&crew->lock);
    take_parts(crew, 0);
    wait_for_members(crew);
    atomic_store(&crew->running, false);
}
