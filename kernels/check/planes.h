/* Matrices in the next precision for the checker: real and imaginary parts, and for double the low
 * parts, each in an array of its own, row-major, so that loops run over contiguous doubles.
 * Private to kernels/check. */
#ifndef GB10_CHECK_PLANES_H
#define GB10_CHECK_PLANES_H

#include <stdbool.h>

#include "kernels/core/types.h"

/* Element (i, j) is at i * rs + j * cs of each array; lo NULL: plain doubles. conj: the imaginary
 * part counts with the opposite sign (operands of gb10_planes_mac only). */
typedef struct gb10_planes {
    double *hi[2], *lo[2];
    int64_t rs, cs;
    int parts;
    bool conj;
} gb10_planes_t;

/* Row lengths are padded to this many doubles and the padding is zero. */
enum { GB10_PAD = 4 };

static inline int64_t gb10_padded(int64_t n)
{
    return (n + GB10_PAD - 1) / GB10_PAD * GB10_PAD;
}

/* Bytes of rows x n planes, and the planes cut off the workspace at *p. */
size_t gb10_planes_bytes(int64_t rows, int64_t n, int parts, bool low);
gb10_planes_t gb10_planes_take(char **p, int64_t rows, int64_t n, int parts, bool low);

/* The same planes seen from element (i, j); and as the conjugate transpose. */
gb10_planes_t gb10_planes_at(gb10_planes_t a, int64_t i, int64_t j);
gb10_planes_t gb10_planes_adjoint(gb10_planes_t a);

void gb10_planes_zero(gb10_planes_t a, int64_t rows, int64_t n);

/* out (rows x n) += sign * a (rows x inner) * b (inner x n). out and b have cs = 1 and are not
 * conjugated; n is a multiple of GB10_PAD. Double-double when out has low parts, which a and b may
 * or may not have; else plain double with fma. */
void gb10_planes_mac(gb10_planes_t out, gb10_planes_t a, gb10_planes_t b, double sign, int64_t rows,
                     int64_t inner, int64_t n);

/* Columns [first, last) of row i of matrix b as doubles; im is not touched for real types. */
void gb10_read_row(const gb10_view_t *v, int64_t b, int64_t i, int64_t first, int64_t last,
                   double *restrict re, double *restrict im);

/* Number of entries that are NaN or Inf. */
int64_t gb10_count_nonfinite(const double *x, int64_t n);

/* The larger of two, or NaN when one is NaN. */
static inline double gb10_worse(double a, double b)
{
    return a != a ? a : !(b <= a) ? b : a;
}

#endif
