/* Error-free transforms, views and the canonical NaN. */
#include <math.h>
#include <string.h>

#include "kernels/core/dd.h"
#include "kernels/core/rng.h"
#include "kernels/core/view.h"
#include "tests/support/test.h"

static double random_number(uint64_t i)
{
    int e = (int)(gb10_random(1, 3, i) % 80) - 40;
    return ldexp(2 * gb10_uniform(1, 2, i) - 1, e);
}

/* The transforms are exact: long double (64 bits of mantissa) sees no difference beyond its own
 * rounding, and the parts do not overlap. */
Test(core, transforms_are_exact)
{
    for (uint64_t i = 0; i < 20000; i++) {
        double a = random_number(2 * i), b = random_number(2 * i + 1), e;
        double s = gb10_two_sum(a, b, &e);
        cr_expect(s == a + b && s + e == s, "%a + %a", a, b);
        if (fabs(a) >= fabs(b)) {
            double f;
            cr_expect(gb10_fast_two_sum(a, b, &f) == s && f == e, "%a + %a", a, b);
        }
        double p = gb10_two_prod(a, b, &e);
        cr_expect(p == a * b && p + e == p && fma(a, b, -p) == e, "%a * %a", a, b);
    }
}

/* 1 + 2^-60 - 1 by three steps, and a square root that needs the low part. */
Test(core, sums_in_double_double)
{
    gb10_dd_t s = {0, 0};
    s = gb10_dd_mac(s, 1, 1);
    s = gb10_dd_mac(s, 0x1p-30, 0x1p-30);
    s = gb10_dd_mac(s, -1, 1);
    s = gb10_dd_normal(s);
    cr_expect(s.hi == 0x1p-60 && s.lo == 0);
    s = gb10_dd_normal((gb10_dd_t){4, 0x1p-52});
    cr_expect(gb10_dd_sqrt(s) == 2);
    s = (gb10_dd_t){4, 0x1.8p-50};
    cr_expect(gb10_dd_sqrt(s) == 2 + 0x1p-51 || gb10_dd_sqrt(s) == 2);
    cr_expect(gb10_dd_sqrt((gb10_dd_t){0, 0}) == 0);
}

/* NaN goes into elements and nowhere else. */
Test(core, nan_fill)
{
    for (int dtype = 0; dtype < GB10_DTYPES; dtype++) {
        unsigned char bytes[16 * 60], before[sizeof bytes];
        size_t size = gb10_dtype_size((gb10_dtype_t)dtype);
        memset(bytes, 0x5a, sizeof bytes);
        memcpy(before, bytes, sizeof bytes);
        gb10_view_t v = gb10_view_cols((gb10_dtype_t)dtype, bytes, 3, 4, 5, 3);
        gb10_view_fill_nan(&v, 1);
        gb10_view_fill_nan(NULL, 1);
        for (int64_t e = 0; e < 60; e++) {
            int64_t in = e - 20;
            bool element = in >= 0 && in < 20 && in % 5 < 3;
            bool same = memcmp(bytes + (size_t)e * size, before, size) == 0;
            cr_expect(same != element, "dtype %d element %d", dtype, (int)e);
        }
        uint64_t word = 0;
        memcpy(&word, bytes + 20 * size, 8);
        if (dtype == GB10_D || dtype == GB10_Z)
            cr_expect(word == GB10_NAN64);
        else
            cr_expect((uint32_t)word == GB10_NAN32);
        cr_expect(gb10_view_extent(&v) == 18);
        v.n = 0;
        cr_expect(gb10_view_extent(&v) == 0);
    }
}
