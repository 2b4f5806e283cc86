/* State of one gb10_check call (private to kernels/check). */
#ifndef GB10_CHECK_CHECKER_H
#define GB10_CHECK_CHECKER_H

#include "kernels/check/planes.h"
#include "kernels/gb10.h"

/* Width of the probe's right-hand side: one vector register. */
enum { GB10_PROBE_WIDTH = GB10_PAD, GB10_STRIP = 32 };

typedef struct gb10_checker {
    const gb10_check_args_t *args;
    int64_t m, n, k, nb; /* nb: rows of T                                              */
    int parts;
    bool low; /* double-double                                              */
    double u, tiny;
    int tiny_exponent; /* of the smallest subnormal                                  */
    int64_t b;         /* the matrix                                                 */
    double *row[2];    /* one row as doubles, max(n, k) entries, zero padded         */
    double *tail;      /* k sums of |v| below the diagonal                           */

    /* Columns: squared norms of a_j and R e_j, hi + lo, of entries times 2^-shift. */
    double *a2, *a2lo, *r2, *r2lo;
    double *down, *down2; /* down * down2 = 2^-shift                                    */
    int *shift;
    /* ||A||_F = norm * 2^exponent */
    double norm;
    int exponent;

    double *weight;         /* n: +-2^(shift - exponent), x in units of the whole matrix  */
    double *error2;         /* n squared norms of (A - QR)e_j * 2^-shift                  */
    double *dot[2];         /* k sums for (Q^H Q - I) x                                   */
    gb10_planes_t V, T, TH; /* m x k with ones and zeros; one block's T and T^H           */
    gb10_planes_t C, W, TW; /* m x width, nb x width                                      */
    gb10_planes_t G, X, Y;  /* nb x nb, or a strip of Q^H Q                               */
    gb10_planes_t ones;     /* n x PROBE_WIDTH: x in the first column                     */

    /* What was found. */
    int64_t bad_a, bad_out, bad_structure;
    double probe[2]; /* the two parts of probe_error                               */
    double *metrics;
} gb10_checker_t;

/* Entry j of the probe vector, 1 or -1. */
static inline double gb10_probe_sign(const gb10_checker_t *c, int64_t j)
{
    return c->ones.hi[0][j * c->ones.rs];
}

/* x - allowance for subnormals, both relative to length = value * 2^shift; not below 0. */
double gb10_beyond_tiny(const gb10_checker_t *c, double x, double value, int shift);

/* The scan of A, R and of V, T, tau where given: column norms, R's diagonal, structure. */
void gb10_check_norms(gb10_checker_t *c);

/* After gb10_check_norms when only A is finite: a2 and shift as above. */
void gb10_check_a_columns(gb10_checker_t *c);

/* The probe alone; and every metric that needs Q. After gb10_check_norms, finite matrices only. */
void gb10_check_probe(gb10_checker_t *c);
void gb10_check_full(gb10_checker_t *c);

#endif
