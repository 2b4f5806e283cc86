/* Runs the body of a test in every schedule: forward, reverse, and the random ones with some seeds.
 * SIMT_SCHEDULE or SIMT_SEED in the environment choose one run (the default options then), as does
 * FUGU_TEST_SHORT: forward and reverse only. A test that fails is told its schedule and seed; one
 * that ends prints what its last run executed. On a GPU there is one run. */
#ifndef TESTS_SIMT_SIMT_EACH_H
#define TESTS_SIMT_SIMT_EACH_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/simt/simt_run.h"

enum { EACH_SEEDS = 5 };

typedef struct each_state {
    bool running;
    simt_options_t options;
} each_state_t;
static each_state_t each_now;

/* A body that left its loop has failed. */
static inline void each_left(void)
{
    if (each_now.running && !simt_on_gpu())
        printf("in schedule %s, seed %llu\n", simt_schedule_name(each_now.options.schedule),
               (unsigned long long)each_now.options.seed);
    each_now.running = false;
}

static inline void each_print(void)
{
    if (simt_on_gpu())
        return;
    const simt_counters_t *n = simt_counters();
    const struct {
        const char *name;
        uint64_t count;
    } row[] = {{"launches", n->launches},
               {"switches", n->switches},
               {"block barriers", n->block_barriers},
               {"named barriers", n->named_barriers},
               {"cluster barriers", n->cluster_barriers},
               {"warp syncs", n->warp_syncs},
               {"shuffles", n->shuffles},
               {"votes", n->votes},
               {"ldmatrix", n->ldmatrix},
               {"mma", n->mma},
               {"mbarrier waits", n->mbar_waits},
               {"bulk copies", n->bulk_copies},
               {"tensor copies", n->tensor_copies},
               {"cp.async", n->cp_async},
               {"bytes read", n->global_read},
               {"bytes written", n->global_written}};
    printf("ran:");
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        if (row[i].count)
            printf(" %llu %s,", (unsigned long long)row[i].count, row[i].name);
    printf(" on sm_%d\n", each_now.options.arch);
}

/* Sets the options of run i; 0 when there are no more. */
static inline int each_run(int i)
{
    static bool first = true;
    if (first)
        atexit(each_left);
    first = false;
    if (i == 0)
        each_left();
    simt_options_t o = simt_options_default();
    bool chosen = simt_on_gpu() || getenv("SIMT_SCHEDULE") || getenv("SIMT_SEED");
    each_now.running = i < (chosen ? 1 : getenv("FUGU_TEST_SHORT") ? 2 : 2 + 2 * EACH_SEEDS);
    if (!each_now.running) {
        each_print();
        return 0;
    }
    if (!chosen) {
        o.schedule = i < 2 ? (simt_schedule_t)i : i % 2 ? SIMT_RANDOM : SIMT_PRIORITY;
        o.seed = (uint64_t)i;
    }
    each_now.options = o;
    simt_set_options(&o);
    simt_counters_reset();
    return 1;
}

#define EACH_RUN(i) for (int i = 0; each_run(i); i++)

#endif
