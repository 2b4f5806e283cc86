/* A batch under test: A and every output of geqrf in guarded, poisoned buffers of any layout. */
#ifndef TESTS_SUPPORT_BATCH_H
#define TESTS_SUPPORT_BATCH_H

#include <stdbool.h>

#include "kernels/core/family.h"
#include "kernels/gb10.h"

enum { BATCH_A, BATCH_V, BATCH_T, BATCH_R, BATCH_TAU, BATCH_PACKED, BATCH_BUFFERS };

typedef struct batch_shape {
    gb10_dtype_t dtype;
    int64_t m, n, count, nb;
    bool columns;  /* column-major instead of row-major    */
    int64_t pad;   /* added to the leading dimension       */
    int64_t gap;   /* elements between two matrices        */
    bool pointers; /* pointer list, in reverse order       */
} batch_shape_t;

typedef struct batch {
    batch_shape_t shape;
    int64_t k, b; /* min(m, n); rows of T                  */
    gb10_view_t view[BATCH_BUFFERS];
    size_t bytes[BATCH_BUFFERS]; /* of each buffer between its guards */
    unsigned char *raw[BATCH_BUFFERS];
    void **list[BATCH_BUFFERS];
    unsigned char *copy; /* A as it was given to the kernel  */
    uint8_t *info, *level;
    double *metrics; /* count x GB10_METRICS              */
    const char **failed;
    char text[256]; /* describes the batch in messages   */
} batch_t;

/* Aborts when out of memory. A is poisoned like the outputs. */
batch_t *batch_new(batch_shape_t shape);
void batch_free(batch_t *batch);

/* Matrix i becomes that of the family with index first + i. */
void batch_fill(batch_t *batch, const char *family, uint64_t seed, int64_t first, double cond);

/* Element (i, j) of matrix b of a buffer as numbers. */
double batch_get(const batch_t *batch, int buffer, int64_t b, int64_t i, int64_t j, int part);
void batch_set(batch_t *batch, int buffer, int64_t b, int64_t i, int64_t j, int part, double x);

/* Runs geqrf with every output, and gb10_check at the level on all. */
gb10_status_t batch_geqrf(batch_t *batch, gb10_handle_t *handle);
gb10_status_t batch_check(batch_t *batch, gb10_handle_t *handle, gb10_check_level_t level);

/* NULL, or what was written that should not have been: guards, padding, A. */
const char *batch_damage(const batch_t *batch);

/* True when matrix i of a and matrix j of b have the same bits in a buffer. */
bool batch_same(const batch_t *a, int64_t i, const batch_t *b, int64_t j, int buffer);

/* True when every entry of matrix b of the buffer is the canonical NaN. */
bool batch_all_nan(const batch_t *batch, int buffer, int64_t b);

/* The seed of this run (FUGU_TEST_SEED or a fixed one); whether FUGU_TEST_LONG is set. */
uint64_t batch_seed(void);
bool batch_long(void);

/* FUGU_TEST_SHORT is set: emulated processors and sanitizers, where a test takes fewer cases and
 * leaves out the shapes that batch_skips: m n min(m, n) > 8,000. */
bool batch_short(void);
bool batch_skips(int64_t m, int64_t n);

/* A handle on the i-th backend that is usable, *name set; NULL past the end. FUGU_TEST_BACKEND: on
 * that one only. */
gb10_handle_t *batch_backend(int i, const char **name);

#endif
