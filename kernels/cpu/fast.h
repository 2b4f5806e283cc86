/* The cpu backend's kernels in vector extensions: tiny matrices one to a lane, others by blocked
 * compact-WY Householder QR. fast_isa.c is compiled once per instruction set; fast.c picks one at
 * run time. Private to kernels/cpu. */
#ifndef GB10_CPU_FAST_H
#define GB10_CPU_FAST_H

#include <stdbool.h>

#include "kernels/backend.h"

/* One call: what is to be done, and how. */
typedef struct gb10_fast_call {
    const gb10_geqrf_args_t *args;
    const gb10_tuning_row_t *row;
    gb10_crew_t *crew; /* for the work on one matrix; NULL: the caller alone */
    int workers;       /* threads of the crew, at least 1 */
} gb10_fast_call_t;

enum { FAST_TOGETHER = 64 };

typedef struct gb10_fast {
    const char *name;
    /* Workspace in bytes for matrices of this shape. */
    size_t (*need[GB10_DTYPES])(const gb10_fast_call_t *call);
    /* Matrices treated together: a lane each, or 1. */
    int64_t (*granule[GB10_DTYPES])(const gb10_fast_call_t *call);
    /* The factorisation of a valid batch. */
    void (*geqrf[GB10_DTYPES])(const gb10_fast_call_t *call, void *workspace);
    size_t (*form_q_need[GB10_DTYPES])(const gb10_form_q_args_t *args);
    void (*form_q[GB10_DTYPES])(const gb10_form_q_args_t *args, void *workspace);
    /* The rest works on matrices b .. b+count-1, at most FAST_TOGETHER. left[i]: the i-th of them
     * is for cpu-ref (special values) and was not written. */
    size_t (*apply_q_need[GB10_DTYPES])(const gb10_apply_q_args_t *args);
    void (*apply_q[GB10_DTYPES])(const gb10_apply_q_args_t *args, int64_t b, int64_t count,
                                 void *workspace, bool *left);
    size_t (*syrk_need[GB10_DTYPES])(const gb10_syrk_args_t *args);
    void (*syrk[GB10_DTYPES])(const gb10_syrk_args_t *args, int64_t b, int64_t count,
                              void *workspace, bool *left);
} gb10_fast_t;

/* Any layout into any other without scaling, by blocks that stay in the cache. */
void gb10_fast_repack(const gb10_repack_args_t *args);

#if defined(__aarch64__)
extern const gb10_fast_t gb10_fast_neon;
#else
extern const gb10_fast_t gb10_fast_baseline;
#endif
#if defined(__x86_64__)
extern const gb10_fast_t gb10_fast_avx2, gb10_fast_avx512;
#endif

#endif
