/* What a run works on: datasets of matrices, size buckets, and units of work. Data types only;
 * mpi/ computes them, io/ and app/ use them. */
#ifndef GB10_CORE_PLAN_H
#define GB10_CORE_PLAN_H

#include <stdint.h>

#include "kernels/core/types.h"

/* Size buckets by k = min(m, n): tiny <= 32, small <= 128, medium <= 512, large above;
 * tall when m > 4096 and m >= 8 n. huge: a matrix that one rank cannot hold, which no shape says.
 */
typedef enum gb10_bucket {
    GB10_TINY = 0,
    GB10_SMALL = 1,
    GB10_MEDIUM = 2,
    GB10_LARGE = 3,
    GB10_TALL = 4,
    GB10_HUGE = 5
} gb10_bucket_t;
enum { GB10_BUCKETS = 6 };

/* By shape alone: never GB10_HUGE. */
gb10_bucket_t gb10_bucket_of(int64_t m, int64_t n);

/* "tiny", "small", "medium", "large", "tall", "huge". */
const char *gb10_bucket_name(gb10_bucket_t bucket);

/* One batch as the planner sees it. */
typedef struct gb10_batch {
    gb10_dtype_t dtype;
    int64_t m, n, count;
    int64_t quantum;      /* matrices that are read together (a row of chunks); 1 when contiguous */
    int64_t source_bytes; /* bytes of one matrix as read into memory, in its dtype              */
} gb10_batch_t;

/* `count` consecutive matrices of batch `dataset`, from `first`. */
typedef struct gb10_run {
    int64_t dataset, first, count;
} gb10_run_t;

/* A unit of work: runs of one bucket and type. The caller owns `runs` (capacity kept between uses).
 */
typedef struct gb10_unit {
    int64_t id;
    gb10_bucket_t bucket;
    gb10_dtype_t dtype;
    int64_t matrices;
    double flops;
    int64_t bytes_in, bytes_out;
    int64_t nruns;
    gb10_run_t *runs;
    size_t capacity;
} gb10_unit_t;

/* Flops of one factorisation by the usual count, complex as four real. */
double gb10_qr_flops(gb10_dtype_t dtype, int64_t m, int64_t n);

#endif
