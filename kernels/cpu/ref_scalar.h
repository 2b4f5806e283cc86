/* Elements and accumulators of one type for ref_body.h. Needs REAL, SINGLE (float or double) and
 * COMPLEX. Included once per object. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "kernels/core/clones.h"
#include "kernels/core/dd.h"

enum { PARTS = 1 + COMPLEX };

/* An element as it lies in memory: p[0] real part, p[1] imaginary part. */
typedef struct elem {
    REAL p[PARTS];
} elem_t;

/* Columns are kept within [2^COL_MIN, 2^COL_MAX) so that neither squares nor products leave the
 * range; exponents of scale factors stop at EXP_MIN so that 2^-e is representable. */
#if SINGLE
typedef double wide_t;
#define TINY 0x1p-149f
enum { COL_MIN = -60, COL_MAX = 96, COL_DROP = 32, EXP_MIN = -100, EXP_ZERO = -126 };
#else
typedef gb10_dd_t wide_t;
#define TINY 0x1p-1074
enum { COL_MIN = -400, COL_MAX = 960, COL_DROP = 64, EXP_MIN = -1000, EXP_ZERO = -1022 };
#endif

/* An element in the next precision. */
typedef struct sum {
    wide_t p[PARTS];
} sum_t;

/* wide_of: a double; wide: a number of the type; wide_mac, wide_mac2: s + a b. */
#if SINGLE
GB10_INLINE wide_t wide_of(double x)
{
    return x;
}
GB10_INLINE wide_t wide(REAL x)
{
    return x;
}
GB10_INLINE wide_t wide_mac(wide_t s, REAL a, REAL b)
{
    return s + (double)a * (double)b;
}
GB10_INLINE wide_t wide_mac2(wide_t s, REAL a, wide_t b)
{
    return s + (double)a * b;
}
GB10_INLINE wide_t wide_scaled(wide_t s, double factor)
{
    return s * factor;
}
GB10_INLINE wide_t wide_square(wide_t s, wide_t a)
{
    return s + a * a;
}
GB10_INLINE double wide_value(wide_t s)
{
    return s;
}
GB10_INLINE double wide_sqrt(wide_t s)
{
    return sqrt(s);
}
GB10_INLINE REAL fused(REAL a, REAL b, REAL c)
{
    return fmaf(a, b, c);
}
GB10_INLINE REAL with_sign(REAL x, REAL sign)
{
    return copysignf(x, sign);
}
#else
/* The low part is -0 because -0 + 0 would lose the sign. */
GB10_INLINE wide_t wide_of(double x)
{
    return (gb10_dd_t){x, -0.0};
}
GB10_INLINE wide_t wide(REAL x)
{
    return wide_of(x);
}
GB10_INLINE wide_t wide_mac(wide_t s, REAL a, REAL b)
{
    return gb10_dd_mac(s, a, b);
}
GB10_INLINE wide_t wide_mac2(wide_t s, REAL a, wide_t b)
{
    s = gb10_dd_mac(s, a, b.hi);
    s.lo = fma(a, b.lo, s.lo);
    return gb10_dd_normal(s);
}
GB10_INLINE wide_t wide_scaled(wide_t s, double factor)
{
    return (gb10_dd_t){s.hi * factor, s.lo * factor};
}
GB10_INLINE wide_t wide_square(wide_t s, wide_t a)
{
    s = gb10_dd_mac(s, a.hi, a.hi);
    s.lo = fma(2 * a.hi, a.lo, s.lo);
    return s;
}
GB10_INLINE double wide_value(wide_t s)
{
    return s.hi + s.lo;
}
GB10_INLINE double wide_sqrt(wide_t s)
{
    return gb10_dd_sqrt(gb10_dd_normal(s));
}
GB10_INLINE REAL fused(REAL a, REAL b, REAL c)
{
    return fma(a, b, c);
}
GB10_INLINE REAL with_sign(REAL x, REAL sign)
{
    return copysign(x, sign);
}
#endif

GB10_INLINE elem_t elem(REAL re)
{
    elem_t x = {{re}};
    return x;
}

GB10_INLINE elem_t conjugate(elem_t x)
{
    if (COMPLEX)
        x.p[PARTS - 1] = -x.p[PARTS - 1];
    return x;
}

GB10_INLINE REAL magnitude(REAL x)
{
    return x < 0 ? -x : x;
}

GB10_INLINE bool is_zero(elem_t x)
{
    return x.p[0] == 0 && (!COMPLEX || x.p[PARTS - 1] == 0);
}

/* The larger of top and the parts of x; NaN is passed over. */
GB10_INLINE REAL larger(REAL top, elem_t x)
{
    for (int q = 0; q < PARTS; q++)
        top = magnitude(x.p[q]) > top ? magnitude(x.p[q]) : top;
    return top;
}

/* The same for a value in the next precision. */
GB10_INLINE double wide_larger(double top, sum_t x)
{
    for (int q = 0; q < PARTS; q++) {
        double size = fabs(wide_value(x.p[q]));
        top = size > top ? size : top;
    }
    return top;
}

/* a b + c */
GB10_INLINE elem_t muladd(elem_t a, elem_t b, elem_t c)
{
    elem_t r;
    r.p[0] = fused(a.p[0], b.p[0], c.p[0]);
#if COMPLEX
    r.p[0] = fused(-a.p[1], b.p[1], r.p[0]);
    r.p[1] = fused(a.p[0], b.p[1], fused(a.p[1], b.p[0], c.p[1]));
#endif
    return r;
}

GB10_INLINE elem_t negative(elem_t x)
{
    for (int q = 0; q < PARTS; q++)
        x.p[q] = -x.p[q];
    return x;
}

GB10_INLINE sum_t sum_of(elem_t x)
{
    sum_t s;
    for (int q = 0; q < PARTS; q++)
        s.p[q] = wide(x.p[q]);
    return s;
}

/* s + conj(x) y */
GB10_INLINE void sum_dot(sum_t *s, elem_t x, elem_t y)
{
    s->p[0] = wide_mac(s->p[0], x.p[0], y.p[0]);
#if COMPLEX
    s->p[0] = wide_mac(s->p[0], x.p[1], y.p[1]);
    s->p[1] = wide_mac(s->p[1], x.p[0], y.p[1]);
    s->p[1] = wide_mac(s->p[1], -x.p[1], y.p[0]);
#endif
}

/* s + x y */
GB10_INLINE void sum_muladd(sum_t *s, elem_t x, sum_t y)
{
    s->p[0] = wide_mac2(s->p[0], x.p[0], y.p[0]);
#if COMPLEX
    s->p[0] = wide_mac2(s->p[0], -x.p[1], y.p[1]);
    s->p[1] = wide_mac2(s->p[1], x.p[0], y.p[1]);
    s->p[1] = wide_mac2(s->p[1], x.p[1], y.p[0]);
#endif
}

GB10_INLINE elem_t sum_round(sum_t s)
{
    elem_t x;
    for (int q = 0; q < PARTS; q++)
        x.p[q] = (REAL)wide_value(s.p[q]);
    return x;
}

/* Exponent e with 2^e <= x < 2^(e+1), at least EXP_MIN; x > 0 and finite. */
GB10_INLINE int exponent(double x)
{
    int e = ilogb(x);
    return e < EXP_MIN ? (int)EXP_MIN : e;
}

/* 2^e for EXP_ZERO - 1 <= e <= 1 - EXP_ZERO: the lowest is subnormal and still exact. */
GB10_INLINE REAL power(int e)
{
    return (REAL)ldexp(1.0, e);
}

GB10_INLINE elem_t scaled(elem_t x, REAL factor)
{
    for (int q = 0; q < PARTS; q++)
        x.p[q] *= factor;
    return x;
}
