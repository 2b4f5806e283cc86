/* Special values: what numerics.md promises beyond the gates. */
#include <float.h>
#include <math.h>
#include <stdio.h>

#include "tests/support/batch.h"
#include "tests/support/test.h"

#define FOR_BACKENDS(handle, name)                                                                 \
    for (int i_ = 0; (handle = batch_backend(i_, &name)); gb10_destroy(handle), i_++)

/* A small real or complex column-by-column matrix and the results it must give exactly. */
typedef struct column_case {
    const char *what;
    double a[3], im[3]; /* a 3 x 1 matrix */
    double r, tau, tau_im;
    double v[2]; /* below the diagonal; NAN: not asked */
} column_case_t;

static batch_t *column(gb10_handle_t *handle, gb10_dtype_t dtype, const double *re,
                       const double *im, int64_t m)
{
    batch_t *t = batch_new((batch_shape_t){.dtype = dtype, .m = m, .n = 1, .count = 3, .nb = 4});
    batch_fill(t, "gaussian", batch_seed(), 0, 0);
    for (int64_t i = 0; i < m; i++) {
        batch_set(t, BATCH_A, 1, i, 0, 0, re[i]);
        if (gb10_dtype_is_complex(dtype))
            batch_set(t, BATCH_A, 1, i, 0, 1, im[i]);
    }
    cr_assert(batch_geqrf(t, handle) == GB10_OK, "%s", gb10_last_error(handle)->message);
    cr_expect(!batch_damage(t));
    return t;
}

static void expect_near(const char *name, const char *what, const char *of, double got,
                        double wanted, double u)
{
    bool same = got == wanted && signbit(got) == signbit(wanted);
    cr_expect(same || fabs(got - wanted) <= 4 * u * fabs(wanted), "%s: %s: %s is %g, not %g", name,
              what, of, got, wanted);
}

static void check_column(gb10_handle_t *handle, const char *name, gb10_dtype_t dtype,
                         const column_case_t *c)
{
    double u = gb10_dtype_u(dtype);
    batch_t *t = column(handle, dtype, c->a, c->im, 3);
    cr_expect(t->info[1] == GB10_INFO_OK, "%s: %s: info %d", name, c->what, t->info[1]);
    expect_near(name, c->what, "R", batch_get(t, BATCH_R, 1, 0, 0, 0), c->r, u);
    expect_near(name, c->what, "tau", batch_get(t, BATCH_TAU, 1, 0, 0, 0), c->tau, u);
    if (gb10_dtype_is_complex(dtype)) {
        expect_near(name, c->what, "imag tau", batch_get(t, BATCH_TAU, 1, 0, 0, 1), c->tau_im, u);
        cr_expect(batch_get(t, BATCH_R, 1, 0, 0, 1) == 0, "%s: %s: R is not real", name, c->what);
    }
    for (int i = 0; i < 2; i++)
        if (!isnan(c->v[i]))
            expect_near(name, c->what, "v", batch_get(t, BATCH_V, 1, i + 1, 0, 0), c->v[i], u);
    batch_free(t);
}

Test(policies, exact_small_columns)
{
    const double tiny = 4.9406564584124654e-324, up = 1 + 1 / sqrt(2.0), down = sqrt(2.0) - 1;
    const column_case_t cases[] = {
        {"(3, 4, 0)", {3, 4, 0}, {0}, -5, 1.6, 0, {0.5, 0}},
        {"(-3, 4, 0)", {-3, 4, 0}, {0}, 5, 1.6, 0, {-0.5, 0}},
        {"(-0, 1, 0)", {-0.0, 1, 0}, {0}, 1, 1, 0, {-1, 0}},
        {"(+0, 1, 0)", {0, 1, 0}, {0}, -1, 1, 0, {1, 0}},
        {"(0, 0, 1)", {0, 0, 1}, {0}, -1, 1, 0, {0, 1}},
        {"(5, 0, -0)", {5, 0, -0.0}, {0}, 5, 0, 0, {0, 0}},
        {"(-5, 0, 0)", {-5, 0, 0}, {0}, -5, 0, 0, {0, 0}},
        {"(0, 0, 0)", {0, 0, 0}, {0}, 0, 0, 0, {0, 0}},
        {"two smallest numbers", {tiny, tiny, 0}, {0}, -tiny, up, 0, {down, 0}},
        {"(3e-310, 4e-310)", {3e-310, 4e-310, 0}, {0}, -5e-310, NAN, 0, {NAN, NAN}},
        {"(1.2e308, 1.2e308)", {1.2e308, 1.2e308, 0}, {0}, -1.2e308 * sqrt(2.0), up, 0, {down, 0}},
        {"(1.7e308, 1, 0)", {1.7e308, 1, 0}, {0}, -1.7e308, 2, 0, {NAN, 0}},
        {"(1e-300, 1, 0)", {1e-300, 1, 0}, {0}, -1, 1, 0, {1, 0}},
    };
    gb10_handle_t *handle;
    const char *name;
    FOR_BACKENDS(handle, name)
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        column_case_t c = cases[i];
        if (isnan(c.tau)) { /* subnormal: the entries are known to few digits only */
            batch_t *t = column(handle, GB10_D, c.a, c.im, 3);
            cr_expect(fabs(batch_get(t, BATCH_TAU, 1, 0, 0, 0) - 1.6) < 1e-12 &&
                          fabs(batch_get(t, BATCH_V, 1, 1, 0, 0) - 0.5) < 1e-12,
                      "%s: %s: tau %.17g v %.17g", name, c.what,
                      batch_get(t, BATCH_TAU, 1, 0, 0, 0), batch_get(t, BATCH_V, 1, 1, 0, 0));
            batch_free(t);
            continue;
        }
        check_column(handle, name, GB10_D, &c);
        check_column(handle, name, GB10_Z, &c);
    }
}

Test(policies, single_precision_ends)
{
    const double up = 1 + 1 / sqrt(2.0), down = sqrt(2.0) - 1;
    const column_case_t cases[] = {
        {"(2e38, 2e38)", {2e38, 2e38, 0}, {0}, -2e38 * sqrt(2.0), up, 0, {down, 0}},
        {"two smallest floats", {0x1p-149, 0x1p-149, 0}, {0}, -0x1p-149, up, 0, {down, 0}},
        {"(1e-30, 1e-30)", {1e-30, 1e-30, 0}, {0}, -1e-30 * sqrt(2.0), up, 0, {down, 0}},
        {"(1e30, 1e30)", {1e30, 1e30, 0}, {0}, -1e30 * sqrt(2.0), up, 0, {down, 0}},
    };
    gb10_handle_t *handle;
    const char *name;
    FOR_BACKENDS(handle, name)
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_column(handle, name, GB10_S, &cases[i]);
        check_column(handle, name, GB10_C, &cases[i]);
    }
}

/* A zero tail with a complex alpha still needs a reflector: beta is real. */
Test(policies, complex_alpha_with_zero_tail)
{
    const column_case_t cases[] = {
        {"(3+4i, 0, 0)", {3, 0, 0}, {4, 0, 0}, -5, 1.6, 0.8, {0, 0}},
        {"(4i, 0, 0)", {0, 0, 0}, {4, 0, 0}, -4, 1, 1, {0, 0}},
        {"(-3-4i, 0, 0)", {-3, 0, 0}, {-4, 0, 0}, 5, 1.6, 0.8, {0, 0}},
    };
    gb10_handle_t *handle;
    const char *name;
    FOR_BACKENDS(handle, name)
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_column(handle, name, GB10_C, &cases[i]);
        check_column(handle, name, GB10_Z, &cases[i]);
        batch_t *t = column(handle, GB10_Z, cases[i].a, cases[i].im, 1);
        expect_near(name, cases[i].what, "tau of 1 x 1", batch_get(t, BATCH_TAU, 1, 0, 0, 0),
                    cases[i].tau, 0x1p-53);
        batch_free(t);
    }
}

/* NaN, Inf and norms beyond the range: their own info, NaN everywhere, and neighbours that have
 * the bits they have without them. */
Test(policies, bad_matrices_stay_alone)
{
    static const int64_t shapes[][2] = {{3, 3}, {8, 8}, {17, 12}, {40, 33}, {70, 90}};
    const double nan = NAN, inf = INFINITY;
    const int64_t every = batch_short() ? 4 : 1; /* still every kind of badness */
    gb10_handle_t *handle;
    const char *name;
    FOR_BACKENDS(handle, name)
    for (int dtype = 0; dtype < GB10_DTYPES; dtype++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            for (int64_t where = every > 1 ? s % 2 : 0; where < 9; where += every) {
                batch_shape_t shape = {.dtype = (gb10_dtype_t)dtype,
                                       .m = shapes[s][0],
                                       .n = shapes[s][1],
                                       .count = 9,
                                       .nb = 8};
                bool single = dtype == GB10_S || dtype == GB10_C;
                double huge = single ? (double)FLT_MAX : DBL_MAX;
                int part = gb10_dtype_is_complex(shape.dtype) && where % 2;
                batch_t *clean = batch_new(shape), *bad = batch_new(shape);
                batch_fill(clean, "gaussian", batch_seed(), 0, 0);
                batch_fill(bad, "gaussian", batch_seed(), 0, 0);
                gb10_info_t info =
                    where % 3 == 2 ? GB10_INFO_NOT_REPRESENTABLE : GB10_INFO_NONFINITE;
                int64_t i = where * 7 % shape.m, j = where * 5 % shape.n;
                batch_set(bad, BATCH_A, where, i, j, part,
                          where % 3 == 0   ? nan
                          : where % 3 == 1 ? -inf
                                           : huge);
                batch_set(bad, BATCH_A, where, (i + 1) % shape.m, j, part,
                          where % 3 == 2 ? huge : 1);
                if (where == 0) /* all of it */
                    for (int64_t e = 0; e < shape.m * shape.n; e++)
                        batch_set(bad, BATCH_A, 0, e / shape.n, e % shape.n, 0, nan);
                cr_assert(batch_geqrf(clean, handle) == GB10_OK);
                cr_assert(batch_geqrf(bad, handle) == GB10_OK);
                cr_expect(bad->info[where] == info, "%s: %s: matrix %d has info %d, not %d", name,
                          bad->text, (int)where, bad->info[where], (int)info);
                for (int buffer = BATCH_V; buffer < BATCH_BUFFERS; buffer++)
                    for (int64_t b = 0; b < shape.count; b++)
                        cr_expect(b == where ? batch_all_nan(bad, buffer, b)
                                             : batch_same(clean, b, bad, b, buffer),
                                  "%s: %s: output %d of matrix %d, bad one %d", name, bad->text,
                                  buffer, (int)b, (int)where);
                cr_assert(batch_check(bad, handle, GB10_CHECK_FULL) == GB10_OK);
                cr_expect(bad->info[where] == info && !bad->failed[where],
                          "%s: %s: the checker doubts info %d: %s", name, bad->text, (int)info,
                          bad->failed[where]);
                cr_expect(!batch_damage(bad), "%s: %s: wrote to %s", name, bad->text,
                          batch_damage(bad));
                batch_free(clean);
                batch_free(bad);
            }
}

/* Upper triangular real input is its own R, bit for bit, with tau = 0 and V the identity. */
Test(policies, triangular_input)
{
    gb10_handle_t *handle;
    const char *name;
    FOR_BACKENDS(handle, name)
    for (int dtype = GB10_S; dtype <= GB10_D; dtype++)
        for (int64_t n = 1; n <= 70; n += 23) {
            batch_t *t = batch_new((batch_shape_t){
                .dtype = (gb10_dtype_t)dtype, .m = n + 2, .n = n, .count = 2, .nb = 16});
            batch_fill(t, "upper", batch_seed(), 0, 0);
            cr_assert(batch_geqrf(t, handle) == GB10_OK);
            bool exact = true;
            for (int64_t i = 0; i < n; i++) {
                exact = exact && batch_get(t, BATCH_TAU, 1, i, 0, 0) == 0;
                for (int64_t j = 0; j < n; j++) {
                    double a = batch_get(t, BATCH_A, 1, i, j, 0);
                    exact = exact && batch_get(t, BATCH_R, 1, i, j, 0) == a;
                    exact = exact && batch_get(t, BATCH_V, 1, i, j, 0) == (i == j);
                }
            }
            cr_expect(exact, "%s: %s: R is not A or tau is not 0", name, t->text);
            batch_free(t);
        }
}

/* Zero columns: tau = 0 and exact zeros in R, wherever they stand. */
Test(policies, zero_columns)
{
    gb10_handle_t *handle;
    const char *name;
    FOR_BACKENDS(handle, name)
    for (int dtype = 0; dtype < GB10_DTYPES; dtype++)
        for (int64_t n = 4; n <= 60; n += 14)
            for (int64_t zero = 0; zero < n; zero += n / 3) {
                batch_t *t = batch_new((batch_shape_t){
                    .dtype = (gb10_dtype_t)dtype, .m = n + 3, .n = n, .count = 2, .nb = 16});
                batch_fill(t, "gaussian", batch_seed(), 0, 0);
                int parts = gb10_dtype_is_complex(t->shape.dtype) ? 2 : 1;
                for (int64_t i = 0; i < n + 3; i++)
                    for (int q = 0; q < parts; q++)
                        batch_set(t, BATCH_A, 0, i, zero, q, i % 2 ? 0 : -0.0);
                cr_assert(batch_geqrf(t, handle) == GB10_OK);
                bool exact = true;
                for (int q = 0; q < parts; q++) {
                    exact = exact && batch_get(t, BATCH_TAU, 0, zero, 0, q) == 0;
                    for (int64_t i = 0; i < n; i++)
                        exact = exact && batch_get(t, BATCH_R, 0, i, zero, q) == 0;
                }
                cr_expect(exact, "%s: %s: zero column %d", name, t->text, (int)zero);
                batch_free(t);
            }
}

/* Columns at 2^+-1000 in one matrix: the scales must not meet. */
Test(policies, far_apart_columns)
{
    static const int exponents[] = {1000, -1000, 0, 1015, -1060, 500};
    gb10_handle_t *handle;
    const char *name;
    FOR_BACKENDS(handle, name)
    for (int dtype = GB10_D; dtype < GB10_DTYPES; dtype += 2)
        for (int64_t n = 2; n <= 90; n += 22) {
            batch_t *t = batch_new((batch_shape_t){
                .dtype = (gb10_dtype_t)dtype, .m = n + 5, .n = n, .count = 3, .nb = 32});
            batch_fill(t, "gaussian", batch_seed(), 0, 0);
            int parts = gb10_dtype_is_complex(t->shape.dtype) ? 2 : 1;
            for (int64_t i = 0; i < n + 5; i++)
                for (int64_t j = 0; j < n; j++)
                    for (int q = 0; q < parts; q++)
                        batch_set(t, BATCH_A, 1, i, j, q,
                                  ldexp(batch_get(t, BATCH_A, 1, i, j, q), exponents[j % 6]));
            cr_assert(batch_geqrf(t, handle) == GB10_OK);
            cr_assert(batch_check(t, handle, GB10_CHECK_FULL) == GB10_OK);
            for (int b = 0; b < 3; b++)
                cr_expect(t->info[b] == GB10_INFO_OK && !t->failed[b],
                          "%s: %s: matrix %d: info %d %s", name, t->text, b, t->info[b],
                          t->failed[b] ? t->failed[b] : "");
            batch_free(t);
        }
}

/* Tiny numbers beside a zero column: the checker's scales must not meet either. */
Test(policies, subnormal_beside_zero)
{
    gb10_handle_t *handle;
    const char *name;
    FOR_BACKENDS(handle, name)
    for (int dtype = 0; dtype < GB10_DTYPES; dtype++)
        for (int level = GB10_CHECK_NORMS; level <= GB10_CHECK_FULL; level++) {
            batch_t *t = batch_new((batch_shape_t){
                .dtype = (gb10_dtype_t)dtype, .m = 12, .n = 9, .count = 2, .nb = 4});
            batch_fill(t, "subnormal", batch_seed(), 0, 0);
            int parts = gb10_dtype_is_complex(t->shape.dtype) ? 2 : 1;
            for (int64_t i = 0; i < 12 * parts; i++)
                batch_set(t, BATCH_A, 1, i / parts, 4, (int)(i % parts), 0);
            cr_assert(batch_geqrf(t, handle) == GB10_OK);
            cr_assert(batch_check(t, handle, (gb10_check_level_t)level) == GB10_OK);
            for (int b = 0; b < 2; b++)
                cr_expect(t->info[b] == GB10_INFO_OK, "%s: %s: level %d misses %s", name, t->text,
                          level, t->failed[b]);
            batch_free(t);
        }
}

/* Columns of equal entries: the rounding errors of a sum all have one sign, so that a plain sum of
 * m terms is off by m u / 4. All gates hold for tall and square shapes of either kernel. */
Test(policies, constant_columns)
{
    static const int64_t shapes[][2] = {{64, 1},  {64, 64},  {128, 32}, {256, 16},  {257, 16},
                                        {512, 8}, {1024, 4}, {3000, 8}, {60000, 2}, {200000, 1}};
    gb10_handle_t *handle;
    const char *name;
    FOR_BACKENDS(handle, name)
    for (int run = 0; run < GB10_DTYPES * 10 * 2; run++) {
        int64_t m = shapes[run / 8][0], n = shapes[run / 8][1], parts = run % 4 > 1 ? 2 : 1;
        batch_t *t = batch_new((batch_shape_t){
            .dtype = (gb10_dtype_t)(run % 4), .m = m, .n = n, .count = m > 3000 ? 1 : 9, .nb = 32});
        for (int64_t b = 0; b < t->shape.count && !batch_skips(m, n); b++)
            for (int64_t e = 0; e < m * n * parts; e++) {
                int64_t i = e / parts / n, j = e / parts % n;
                double c = 0.55 + 0.0371 * (double)b + (e % parts ? 0.113 : 0);
                double kind = run / 4 % 2 ? (i <= j ? (double)(1 + i + j) : 1)
                                          : (j == 0 || i % n == j ? 1 : 0);
                batch_set(t, BATCH_A, b, i, j, (int)(e % parts), c * kind);
            }
        snprintf(t->text, sizeof t->text, "constant columns, kind %d, %c %dx%d", run / 4 % 2,
                 gb10_dtype_letter(t->shape.dtype), (int)m, (int)n);
        if (!batch_skips(m, n)) {
            cr_assert(batch_geqrf(t, handle) == GB10_OK);
            cr_assert(batch_check(t, handle, GB10_CHECK_FULL) == GB10_OK);
            for (int64_t b = 0; b < t->shape.count; b++)
                cr_expect(!t->failed[b], "%s: %s: matrix %d missed %s", name, t->text, (int)b,
                          t->failed[b]);
        }
        batch_free(t);
    }
}
