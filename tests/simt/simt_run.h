/* What a test sees of the runtime that executes kernels on the CPU: how to run, what was counted,
 * what went wrong. One thread of the process uses it at a time. On a GPU (gpu_run.cu) options are
 * the device's, nothing is counted and there is no report. */
#ifndef TESTS_SIMT_SIMT_RUN_H
#define TESTS_SIMT_SIMT_RUN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Whether kernels run on a GPU. */
int simt_on_gpu(void);

/* Which ready thread runs next. Forward: lowest block, warp, lane first; reverse: highest first;
 * random: any; priority: warps in a random fixed order. Forward and reverse finish asynchronous
 * copies as late as they can, the other two at random moments as well. */
typedef enum simt_schedule {
    SIMT_FORWARD,
    SIMT_REVERSE,
    SIMT_RANDOM,
    SIMT_PRIORITY,
    SIMT_SCHEDULES
} simt_schedule_t;

typedef struct simt_options {
    int arch; /* 80, 90, 100 or 121: limits and tensor-core arithmetic */
    simt_schedule_t schedule;
    uint64_t seed;
    int resident; /* clusters that are there at a time */
    /* Mutation: synchronisation on this line of this file (a path's end) is left out. */
    const char *drop_file;
    int drop_line;
} simt_options_t;

/* The defaults, changed by the environment: SIMT_ARCH, SIMT_SCHEDULE (a name), SIMT_SEED,
 * SIMT_DROP=file:line. */
simt_options_t simt_options_default(void);
void simt_set_options(const simt_options_t *options);
const char *simt_schedule_name(simt_schedule_t schedule);

/* What launches did since the last reset. Bytes are those of simt_load, simt_store, atomics,
 * ldmatrix and asynchronous copies. */
typedef struct simt_counters {
    uint64_t launches, switches;
    uint64_t block_barriers, named_barriers, cluster_barriers; /* completed */
    uint64_t warp_syncs, shuffles, votes;                      /* by warp   */
    uint64_t ldmatrix, mma;                                    /* by warp   */
    uint64_t mbar_arrivals, mbar_waits;                        /* by thread */
    uint64_t bulk_copies, tensor_copies, cp_async, proxy_fences;
    uint64_t global_read, global_written, shared_read, shared_written; /* bytes */
} simt_counters_t;
void simt_counters_reset(void);
const simt_counters_t *simt_counters(void);

/* The full report of the last launch that failed ("" if it did not). */
const char *simt_report(void);

/* Names the environment variable SIMT_SITES as a file: at exit every line with synchronisation that
 * ran is appended to it as file:line, for a mutation run. Called by the first launch. */
void simt_list_sites(void);

/* ---- tensor-core arithmetic, usable alone ---- */
typedef struct simt_dot_model {
    int group; /* products that are added at once */
    int bits;  /* fraction bits kept below the largest exponent */
    int apart; /* the sum is made with C = 0, then added to C with one rounding */
    int kept;  /* fraction bits of the sum; 0: all 23 */
} simt_dot_model_t;
typedef enum simt_operand { SIMT_TF32, SIMT_BF16, SIMT_E4M3 } simt_operand_t;
simt_dot_model_t simt_dot_model(int arch, simt_operand_t operand);
/* c + sum a[i] b[i] as a tensor core adds it; a and b are exact values of the operand format. */
float simt_dot(simt_dot_model_t model, float c, const float *a, const float *b, int k);
float simt_e4m3_value(unsigned char bits);

#ifdef __cplusplus
}
#endif
#endif
