/* Runs the body of a test in every schedule: forward, reverse, and the random ones with some seeds.
 * SIMT_SCHEDULE or SIMT_SEED in the environment choose one run (the default options then), as does
 * FUGU_TEST_SHORT: forward and reverse only. */
#ifndef TESTS_SIMT_SIMT_EACH_H
#define TESTS_SIMT_SIMT_EACH_H

#include <stdlib.h>

#include "tests/simt/simt_run.h"

enum { EACH_SEEDS = 5 };

/* Sets the options of run i; 0 when there are no more. */
static inline int each_run(int i)
{
    simt_options_t o = simt_options_default();
    simt_counters_reset();
    if (getenv("SIMT_SCHEDULE") || getenv("SIMT_SEED")) {
        simt_set_options(&o);
        return i == 0;
    }
    o.schedule = i < 2 ? (simt_schedule_t)i : i % 2 ? SIMT_RANDOM : SIMT_PRIORITY;
    o.seed = (uint64_t)i;
    simt_set_options(&o);
    return i < (getenv("FUGU_TEST_SHORT") ? 2 : 2 + 2 * EACH_SEEDS);
}

#define EACH_RUN(i) for (int i = 0; each_run(i); i++)

#endif
