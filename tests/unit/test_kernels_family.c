/* The families: the same on every machine, different along the batch, and what they say they are.
 */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/core/family.h"
#include "kernels/core/rng.h"
#include "tests/support/test.h"

typedef struct matrix {
    gb10_family_args_t args;
    double x[2 * 40 * 40]; /* pairs, row-major */
    unsigned char raw[16 * 40 * 40];
    size_t bytes;
} matrix_t;

static matrix_t *make(const char *name, gb10_dtype_t dtype, int64_t m, int64_t n, int64_t index)
{
    static matrix_t t;
    const gb10_family_t *family = gb10_family_find(name);
    cr_assert(family, "%s", name);
    memset(&t, 0, sizeof t);
    t.args = (gb10_family_args_t){dtype, m, n, 7, index, 0};
    t.bytes = (size_t)(m * n) * gb10_dtype_size(dtype);
    cr_assert(gb10_family_fill(family, &t.args, t.raw, NULL) == GB10_OK);
    int parts = gb10_dtype_is_complex(dtype) ? 2 : 1;
    for (int64_t e = 0; e < m * n; e++)
        for (int q = 0; q < parts; q++) {
            float single;
            if (dtype == GB10_D || dtype == GB10_Z) {
                memcpy(&t.x[2 * e + q], t.raw + 8 * (e * parts + q), 8);
                continue;
            }
            memcpy(&single, t.raw + 4 * (e * parts + q), 4);
            t.x[2 * e + q] = single;
        }
    return &t;
}

static double at(const matrix_t *t, int64_t i, int64_t j)
{
    return t->x[2 * (i * t->args.n + j)];
}

static uint64_t hash_bytes(const unsigned char *p, size_t n, uint64_t h)
{
    for (size_t i = 0; i < n; i++)
        h = gb10_mix64(h + p[i] + 1);
    return h;
}

/* One number over every family, type and a few shapes. It changes only when a family is changed on
 * purpose. */
Test(family, same_everywhere)
{
    static const int64_t shapes[][2] = {{1, 1}, {3, 7}, {7, 3}, {17, 16}, {33, 40}};
    uint64_t h = 0;
    for (int f = 0; gb10_family_at(f); f++) {
        const char *name = gb10_family_name(gb10_family_at(f));
        if (strcmp(name, "nan") == 0) /* a NaN's bits are the machine's */
            continue;
        for (int dtype = 0; dtype < GB10_DTYPES; dtype++)
            for (int s = 0; s < 5; s++)
                for (int64_t index = 0; index < 3; index++) {
                    matrix_t *t =
                        make(name, (gb10_dtype_t)dtype, shapes[s][0], shapes[s][1], index);
                    h = hash_bytes(t->raw, t->bytes, h);
                }
    }
    cr_expect(h == UINT64_C(0xd24ed00f81b9c3f5), "the families hash to 0x%llx",
              (unsigned long long)h);
}

Test(family, table)
{
    int count = 0;
    for (; gb10_family_at(count); count++) {
        const gb10_family_t *f = gb10_family_at(count);
        cr_expect(gb10_family_find(gb10_family_name(f)) == f);
        cr_expect(strlen(gb10_family_about(f)) > 3 && strlen(gb10_family_about(f)) < 80);
    }
    cr_expect(count >= 40, "%d", count);
    cr_expect(!gb10_family_find("no such") && !gb10_family_at(-1));
}

Test(family, empty_shapes)
{
    for (int f = 0; gb10_family_at(f); f++) {
        gb10_family_args_t args = {GB10_D, 0, 3, 1, 0, 0};
        cr_expect(gb10_family_fill(gb10_family_at(f), &args, NULL, NULL) == GB10_OK);
        args.m = 3;
        args.n = 0;
        cr_expect(gb10_family_fill(gb10_family_at(f), &args, NULL, NULL) == GB10_OK);
    }
}

/* Matrices of a batch differ, except where the family leaves no choice. */
Test(family, differ_along_the_batch)
{
    for (int f = 0; gb10_family_at(f); f++) {
        const char *name = gb10_family_name(gb10_family_at(f));
        uint64_t h[3];
        for (int64_t index = 0; index < 3; index++)
            h[index] = hash_bytes(make(name, GB10_D, 20, 20, index)->raw, 3200, 0);
        bool equal = h[0] == h[1] || h[1] == h[2];
        cr_expect(equal == (strcmp(name, "zero") == 0), "%s", name);
    }
}

/* All finite, but for the families that promise otherwise; and Inf and NaN exactly once. */
Test(family, finite)
{
    for (int f = 0; gb10_family_at(f); f++)
        for (int dtype = 0; dtype < GB10_DTYPES; dtype++)
            for (int64_t m = 1; m <= 33; m += 8) {
                const gb10_family_t *family = gb10_family_at(f);
                matrix_t *t = make(gb10_family_name(family), (gb10_dtype_t)dtype, m, 34 - m, f);
                int bad = 0;
                for (int64_t e = 0; e < 2 * m * (34 - m); e++)
                    bad += !isfinite(t->x[e]);
                int expected =
                    gb10_family_info(family, (gb10_dtype_t)dtype, m, 34 - m) == GB10_INFO_NONFINITE;
                cr_expect(bad == expected, "%s %d: %d non-finite", gb10_family_name(family), dtype,
                          bad);
            }
}

Test(family, normal_numbers_are_normal)
{
    double sum = 0, square = 0, fourth = 0;
    const int64_t count = 40;
    for (int64_t index = 0; index < count; index++) {
        matrix_t *t = make("gaussian", GB10_D, 40, 40, index);
        for (int64_t e = 0; e < 1600; e++) {
            double x = t->x[2 * e];
            sum += x;
            square += x * x;
            fourth += x * x * x * x;
        }
    }
    double n = 1600.0 * (double)count;
    cr_expect(fabs(sum / n) < 0.02, "mean %g", sum / n);
    cr_expect(fabs(square / n - 1) < 0.03, "variance %g", square / n);
    cr_expect(fabs(fourth / n - 2.9) < 0.15, "fourth moment %g", fourth / n); /* 3 - 12/120 */
}

Test(family, are_what_they_say)
{
    matrix_t *t = make("hilbert", GB10_D, 5, 6, 0);
    cr_expect(at(t, 0, 0) == 1 && at(t, 2, 3) == 1.0 / 6);
    t = make("frank", GB10_D, 4, 4, 0);
    cr_expect(at(t, 0, 0) == 4 && at(t, 1, 0) == 3 && at(t, 2, 0) == 0 && at(t, 3, 3) == 1);
    t = make("pascal", GB10_D, 4, 4, 0);
    cr_expect(at(t, 2, 2) == 6.0 / 16 && at(t, 3, 1) == 4.0 / 16);
    t = make("wilkinson", GB10_D, 21, 21, 0);
    cr_expect(at(t, 0, 0) == 10 && at(t, 10, 10) == 0 && at(t, 5, 6) == 1 && at(t, 5, 7) == 0);
    t = make("kahan", GB10_D, 6, 6, 0);
    cr_expect(at(t, 3, 2) == 0 && at(t, 0, 5) < 0 && at(t, 1, 1) > 0.93 && at(t, 1, 1) < 0.94);
    t = make("vandermonde", GB10_D, 3, 4, 0);
    cr_expect(at(t, 0, 3) == -1 && at(t, 1, 1) == 0 && at(t, 2, 2) == 1);
    t = make("lauchli", GB10_D, 5, 4, 0);
    cr_expect(at(t, 0, 3) == 1 && at(t, 2, 1) == 1e-9 && at(t, 2, 2) == 0);
    t = make("toeplitz", GB10_Z, 9, 12, 3);
    cr_expect(at(t, 2, 5) == at(t, 5, 8) && at(t, 2, 5) != at(t, 5, 2));
    t = make("zero-middle", GB10_S, 9, 9, 0);
    cr_expect(at(t, 3, 4) == 0 && at(t, 3, 3) != 0);
    t = make("duplicates", GB10_C, 9, 6, 0);
    cr_expect(at(t, 3, 4) == at(t, 3, 5) && at(t, 3, 3) != at(t, 3, 4));
    t = make("integers", GB10_S, 9, 9, 0);
    cr_expect(at(t, 3, 4) == floor(at(t, 3, 4)) && fabs(at(t, 3, 4)) <= 8);
    t = make("subnormal", GB10_D, 9, 9, 0);
    cr_expect(at(t, 1, 1) != 0 && fabs(at(t, 1, 1)) < 0x1p-1022);
    t = make("near-overflow", GB10_S, 9, 9, 0);
    double top = 0;
    for (int64_t e = 0; e < 81; e++)
        top = fmax(top, fabs(t->x[2 * e]));
    cr_expect(top > 0x1p121 && top < 0x1p127, "%g", top);
    t = make("permutation", GB10_D, 20, 20, 1);
    for (int64_t j = 0; j < 20; j++) {
        int ones = 0, others = 0;
        for (int64_t i = 0; i < 20; i++) {
            ones += at(t, i, j) == 1;
            others += at(t, i, j) != 0 && at(t, i, j) != 1;
        }
        cr_expect(ones == 1 && others == 0, "column %d", (int)j);
    }
}

/* Orthonormal columns; and with them, that reflections from both sides keep singular values: the
 * Frobenius norm of randsvd is that of its diagonal. */
Test(family, reflections_are_orthogonal)
{
    for (int dtype = GB10_D; dtype < GB10_DTYPES; dtype += 2) {
        matrix_t *t = make("orthogonal", (gb10_dtype_t)dtype, 30, 20, 4);
        double worst = 0, square = 0;
        for (int64_t a = 0; a < 20; a++)
            for (int64_t b = 0; b < 20; b++) {
                double re = 0, im = 0;
                for (int64_t i = 0; i < 30; i++) {
                    const double *x = &t->x[2 * (i * 20 + a)], *y = &t->x[2 * (i * 20 + b)];
                    re += x[0] * y[0] + x[1] * y[1];
                    im += x[0] * y[1] - x[1] * y[0];
                }
                worst = fmax(worst, hypot(re - (a == b), im));
            }
        cr_expect(worst < 1e-14, "%d: %g", dtype, worst);
        t = make("randsvd-one-small", (gb10_dtype_t)dtype, 24, 30, 2);
        for (int64_t e = 0; e < 2 * 24 * 30; e++)
            square += t->x[e] * t->x[e];
        cr_expect(fabs(square - 23) < 1e-12, "%g", square);
    }
}
