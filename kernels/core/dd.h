/* Double-double arithmetic by error-free transforms (Dekker 1971; Ogita, Rump, Oishi, "Accurate sum
 * and dot product", SIAM J. Sci. Comput. 26(6), 2005). A value is hi + lo with |lo| <= u |hi| after
 * gb10_dd_normal; sums between normalisations may let lo grow. Needs -ffp-contract=off. */
#ifndef GB10_CORE_DD_H
#define GB10_CORE_DD_H

#include <math.h>

typedef struct gb10_dd {
    double hi, lo;
} gb10_dd_t;

/* a + b = sum + *error exactly (Knuth). */
static inline double gb10_two_sum(double a, double b, double *error)
{
    double sum = a + b, other = sum - a;
    *error = (a - (sum - other)) + (b - other);
    return sum;
}

/* The same when |a| >= |b| or a = 0 (Dekker). */
static inline double gb10_fast_two_sum(double a, double b, double *error)
{
    double sum = a + b;
    *error = b - (sum - a);
    return sum;
}

/* a b = product + *error exactly, unless it underflows. */
static inline double gb10_two_prod(double a, double b, double *error)
{
    double product = a * b;
    *error = fma(a, b, -product);
    return product;
}

/* s + a b: the accumulation step of Dot2. */
static inline gb10_dd_t gb10_dd_mac(gb10_dd_t s, double a, double b)
{
    double ep, es, p = gb10_two_prod(a, b, &ep);
    s.hi = gb10_two_sum(s.hi, p, &es);
    s.lo += ep + es;
    return s;
}

static inline gb10_dd_t gb10_dd_normal(gb10_dd_t s)
{
    gb10_dd_t t;
    t.hi = gb10_fast_two_sum(s.hi, s.lo, &t.lo);
    return t;
}

/* The square root rounded to double; s > 0, well inside the range. */
static inline double gb10_dd_sqrt(gb10_dd_t s)
{
    double root = sqrt(s.hi);
    return root > 0 ? root + (fma(-root, root, s.hi) + s.lo) / (2 * root) : root;
}

#endif
