/* Test matrices. Every value is a function of (family, dtype, m, n, seed, index, cond) alone and
 * the same on every machine: counter-based random numbers, + - * / sqrt, no libm function whose
 * rounding varies. */
#ifndef GB10_CORE_FAMILY_H
#define GB10_CORE_FAMILY_H

#include "kernels/core/status.h"
#include "kernels/core/types.h"

typedef struct gb10_family gb10_family_t;

/* One matrix: m x n of the type; index = its place in the batch; cond = condition number or grade
 * where the family has one (<= 0: the family's default). */
typedef struct gb10_family_args {
    gb10_dtype_t dtype;
    int64_t m, n;
    uint64_t seed;
    int64_t index;
    double cond;
} gb10_family_args_t;

/* The i-th family, or NULL past the end; the one of that name, or NULL. */
const gb10_family_t *gb10_family_at(int i);
const gb10_family_t *gb10_family_find(const char *name);

const char *gb10_family_name(const gb10_family_t *family);
/* One line, for help texts. */
const char *gb10_family_about(const gb10_family_t *family);
/* The info that a factorisation of such a matrix must get: OK; NONFINITE; NOT_REPRESENTABLE. For
 * `mixed` and shapes too small to hold the special entry it is OK. */
gb10_info_t gb10_family_info(const gb10_family_t *family, gb10_dtype_t dtype, int64_t m, int64_t n);

/* Writes the matrix, row-major and dense, to A. Fails only for want of memory. */
gb10_status_t gb10_family_fill(const gb10_family_t *family, const gb10_family_args_t *args, void *A,
                               gb10_error_t *err);

#endif
