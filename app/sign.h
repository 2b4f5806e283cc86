/* Signs of R's diagonal (--positive-diagonal): A = Q(V, T) diag(sign) R. */
#ifndef APP_SIGN_H
#define APP_SIGN_H

#include "kernels/gb10.h"

/* Makes R's diagonal non-negative by flipping rows and stores the signs, R->m a matrix; 0 where
 * `info` says that the matrix has no result. R is row-major. */
void sign_make_positive(const gb10_view_t *R, const uint8_t *info, int8_t *sign);

/* Flips the rows with sign -1: R becomes the one that belongs to V and T again. */
void sign_undo(const gb10_view_t *R, const int8_t *sign);

#endif
