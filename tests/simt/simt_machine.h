/* The machine inside the runtime: threads as fibers, warps as masks, blocks, clusters, copies in
 * flight. Private to the simt_*.c files of this folder. */
#ifndef TESTS_SIMT_SIMT_MACHINE_H
#define TESTS_SIMT_SIMT_MACHINE_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kernels/cuda/simt_rt.h"
#include "tests/simt/simt_run.h"

enum {
    WARP = 32,
    MAX_THREADS = 1024, /* of a block */
    MAX_WARPS = MAX_THREADS / WARP,
    MAX_CLUSTER = 8,
    NAMED_BARRIERS = 16,
    GROUPS = 32 /* groups of copies that a thread may have outstanding */
};

typedef enum wait_kind {
    WAIT_NONE,
    WAIT_BLOCK,
    WAIT_NAMED,
    WAIT_CLUSTER,
    WAIT_WARP,
    WAIT_MBAR,
    WAIT_BULK,
    WAIT_BULK_READ,
    WAIT_CP_ASYNC,
    WAIT_EXITED
} wait_kind_t;

/* A stack and where it stopped; asan and tsan are what the sanitizers know it by. */
typedef struct fiber {
    void *sp, *stack, *asan, *tsan;
    size_t size;
} fiber_t;

/* Groups of asynchronous copies of one thread: group i is complete when left[i % GROUPS] is 0. */
typedef struct groups {
    uint16_t left[GROUPS];
    unsigned open, oldest; /* open: the group that collects now; oldest: the first incomplete one */
} groups_t;
typedef enum group_kind { GROUP_READ, GROUP_WRITTEN, GROUP_CP_ASYNC, GROUP_KINDS } group_kind_t;

typedef struct thread {
    simt_ids_t ids; /* first: simt_ids points here */
    fiber_t fiber;
    struct warp *warp;
    int lane;
    wait_kind_t wait;
    simt_site_t site; /* of the wait */
    void *acquire;    /* the sanitizer's object of the wait */
    /* warp operation */
    simt_warp_op_t op;
    uint32_t mask;
    simt_part_t part;
    /* others */
    uint64_t *bar;
    unsigned parity;
    int limit; /* of a wait for groups */
    bool cluster_arrived;
    void *cluster_acquire;
    int predicate_result;
    groups_t groups[GROUP_KINDS];
    char tag[GROUP_KINDS][GROUPS]; /* sanitizer objects of the groups */
} thread_t;

typedef struct warp {
    struct cta *cta;
    thread_t *thread; /* of lane 0 */
    int rank;         /* in the order of the schedule */
    bool reverse;     /* highest lane first */
    uint32_t live, ready, polling;
    uint32_t in_op;       /* waiting in a warp operation */
    uint32_t bar_waiting; /* at an mbarrier              */
    uint32_t cluster_waiting;
    unsigned syncs[WARP]; /* phases of __syncwarp by lowest lane of the mask */
    char tag[WARP][2];
} warp_t;

typedef struct barrier {
    int arrived, expected, votes;
    unsigned phase;
    uint32_t waiting[MAX_WARPS];
    char tag[2];
} barrier_t;

typedef struct cta {
    struct cluster *cluster;
    unsigned rank, id; /* in the cluster; number in the grid */
    int live;
    bool started;
    unsigned char *shared, *shadow;
    warp_t *warp;
    barrier_t bar[NAMED_BARRIERS]; /* 0: __syncthreads */
} cta_t;

typedef struct cluster {
    cta_t *cta; /* size of them */
    bool ended;
    int live, arrived;
    unsigned phase;
    char tag[2];
    char reuse; /* sanitizer object: the next cluster in this place comes after the last one */
} cluster_t;

typedef enum copy_kind { COPY_LOAD, COPY_PUSH, COPY_STORE, COPY_CP_ASYNC } copy_kind_t;
typedef struct tensor tensor_t;
typedef struct copy {
    copy_kind_t kind;
    thread_t *by;
    cta_t *from, *to; /* owners of shared memory on either side, or NULL */
    void *dst;
    const void *src;
    size_t bytes;
    size_t fill; /* zeros behind them */
    uint64_t *bar;
    unsigned group;
    const tensor_t *map;
    int at[3];
    bool clean;          /* the source agreed with its shadow at issue */
    unsigned char *held; /* the source as the async proxy saw it at issue */
    simt_site_t site;
    void *tsan;
} copy_t;

typedef struct machine {
    simt_options_t options;
    const struct arch *arch;
    bool running, failed;
    void (*call)(void *kernel, const void *args);
    void *kernel;
    const void *args;
    unsigned grid_x, grid_y, block, cluster_size;
    size_t shared_bytes, shared_pitch;
    int warps_per_cta;
    unsigned next_cluster, clusters; /* of the grid */
    int resident, live_threads;
    cluster_t *cluster;
    cta_t *cta;
    warp_t *warp, **by_rank;
    thread_t *thread, *now;
    int warps;
    uint64_t *ready; /* bitmap of warps by rank */
    unsigned char *arena, *arena_end;
    int ended; /* clusters whose place is free */
    uint64_t progress, progress_seen;
    int idle_rounds;
    uint64_t random;
    fiber_t host;
    char begin_tag, end_tag; /* sanitizer objects: launch to threads, threads to host */
    bool on_host;
    jmp_buf leave;
    simt_counters_t count;
} machine_t;
extern machine_t simt_m;

typedef struct arch {
    int number;
    size_t shared; /* bytes a block may have */
} arch_t;

/* ---- fibers (simt_fiber.c) ---- */
void simt_fiber_make(fiber_t *f, int number, void (*entry)(void));
void simt_fiber_switch(fiber_t *from, fiber_t *to, bool from_ends);
void simt_fiber_entered(void);      /* first thing on a new stack */
void simt_fibers_forget(int count); /* the first ones, left in the middle of a run */
void *simt_tsan_thread(void);       /* begins after what the caller has done */
void simt_tsan_enter(void *thread);
void simt_tsan_end(void *thread);
void simt_tsan_finish(void *thread, void *object); /* releases for a thread that never will */
void simt_tsan_release(void *object);
void simt_tsan_acquire(void *object);
void simt_tsan_range(const void *p, size_t bytes, bool write);
void simt_asan_poison(void *p, size_t bytes);
void simt_asan_unpoison(void *p, size_t bytes);
/* memset, memcpy and memcmp that ThreadSanitizer does not intercept */
void simt_fill(void *p, int byte, size_t bytes);
void simt_move(void *dst, const void *src, size_t bytes);
bool simt_equal(const void *a, const void *b, size_t bytes);

/* ---- scheduler (simt_sched.c) ---- */
_Noreturn void simt_fail(simt_site_t site, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void simt_block(wait_kind_t kind, simt_site_t site); /* back when woken */
void simt_wake(warp_t *w, uint32_t lanes);
void simt_yield(void);
uint64_t simt_random(void);
bool simt_dropped(simt_site_t site);
cta_t *simt_owner(const void *p); /* the block whose shared memory holds p, or NULL */
bool simt_is_random(void);

/* ---- barriers (simt_sync.c) ---- */
void simt_sync_exit(thread_t *t); /* an exited thread counts as arrived */
void simt_mbar_complete(uint64_t *bar, size_t bytes, simt_site_t site);
void simt_mbar_check(uint64_t *bar, simt_site_t site);

/* ---- warp operations (simt_warp.c) and their tensor-core part (simt_mma.c) ---- */
void simt_warp_exit(thread_t *t);
void simt_warp_mma(simt_warp_op_t op, thread_t *lanes);

/* ---- copies (simt_async.c) ---- */
bool simt_async_step(void); /* finishes a part of one copy; false: none is in flight */
void simt_async_cta_exit(cta_t *c);
void simt_async_clear(void);

static inline float from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

#endif
