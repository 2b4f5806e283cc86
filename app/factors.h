/* V, T, R and tau of row-major matrices in memory, as the file holds them. */
#ifndef APP_FACTORS_H
#define APP_FACTORS_H

#include "io/io.h"
#include "kernels/gb10.h"

enum { FACTOR_V, FACTOR_T, FACTOR_R, FACTOR_TAU, FACTORS };

/* IO_V, IO_T, IO_R, IO_TAU. */
extern const io_kind_t factors_kind[FACTORS];

/* Bytes of one factor of one matrix. */
int64_t factors_bytes(gb10_dtype_t dtype, int64_t m, int64_t n, int64_t nb, int factor);

/* Row-major views of `count` matrices' factors at data[FACTOR_V] .. data[FACTOR_TAU]. */
void factors_views(gb10_dtype_t dtype, int64_t m, int64_t n, int64_t nb, int64_t count,
                   const void *const data[FACTORS], gb10_view_t view[FACTORS]);

/* V (ones and zeros written) and R (zeros below) from LAPACK's V\R in one array. v or r may be
 * NULL. */
void factors_unpack(gb10_dtype_t dtype, int64_t m, int64_t n, int64_t count, const void *packed,
                    void *v, void *r);

#endif
