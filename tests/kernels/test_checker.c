/* The checker on wrong factorisations: every small change must miss a gate, and NaN never passes.
 */
#include <math.h>

#include "kernels/core/rng.h"
#include "tests/support/batch.h"
#include "tests/support/test.h"

static uint64_t draw;

static int64_t pick(int64_t n)
{
    return (int64_t)(gb10_random(batch_seed(), 77, draw++) % (uint64_t)n);
}

static gb10_handle_t *oracle(void)
{
    gb10_handle_t *handle = NULL;
    cr_assert(gb10_create(&handle, "cpu-ref", NULL) == GB10_OK);
    return handle;
}

static batch_t *good(gb10_handle_t *handle, const char *family, batch_shape_t shape)
{
    batch_t *t = batch_new(shape);
    batch_fill(t, family, batch_seed(), 0, 0);
    cr_assert(batch_geqrf(t, handle) == GB10_OK);
    return t;
}

/* The gate that the only matrix misses at a level, or NULL. */
static const char *missed(batch_t *t, gb10_handle_t *handle, gb10_check_level_t level)
{
    t->info[0] = GB10_INFO_OK;
    cr_assert(batch_check(t, handle, level) == GB10_OK);
    cr_expect((t->info[0] == GB10_INFO_OK) == !t->failed[0]);
    return t->failed[0];
}

static double column_norm(const batch_t *t, int buffer, int64_t j)
{
    double sum = 0;
    for (int64_t i = 0; i < t->view[buffer].m; i++)
        for (int q = 0; q < (gb10_dtype_is_complex(t->shape.dtype) ? 2 : 1); q++)
            sum += pow(batch_get(t, buffer, 0, i, j, q), 2);
    return sqrt(sum);
}

/* A place in the part of an output that carries numbers: V below its diagonal, R above, T in its
 * triangles. False when there is none. */
static bool place(const batch_t *t, int buffer, int64_t *i, int64_t *j)
{
    const gb10_view_t *v = &t->view[buffer];
    for (int attempt = 0; attempt < 1000; attempt++) {
        *i = pick(v->m);
        *j = pick(v->n);
        int64_t inside = *j % t->b; /* column within its block of T */
        if (buffer == BATCH_V   ? *i > *j
            : buffer == BATCH_R ? *i <= *j
            : buffer == BATCH_T ? *i <= inside
                                : true)
            return true;
    }
    return false;
}

/* Changes one entry by 2^10 u (R: times its column's norm), checks, and puts it back. */
static void disturb(batch_t *t, gb10_handle_t *handle, int buffer)
{
    static const char *const names[] = {"A", "V", "T", "R", "tau"};
    double u = gb10_dtype_u(t->shape.dtype);
    int64_t i, j;
    if (!place(t, buffer, &i, &j))
        return;
    int part = gb10_dtype_is_complex(t->shape.dtype) ? (int)pick(2) : 0;
    double x = batch_get(t, buffer, 0, i, j, part), change = 0x1p10 * u;
    if (buffer == BATCH_R)
        change *= column_norm(t, BATCH_R, j);
    batch_set(t, buffer, 0, i, j, part, pick(2) ? x + change : x - change);
    cr_expect(missed(t, handle, GB10_CHECK_FULL), "%s: %s(%d, %d) part %d changed by 2^10 u passes",
              t->text, names[buffer], (int)i, (int)j, part);
    batch_set(t, buffer, 0, i, j, part, x);
}

Test(checker, small_changes_are_seen)
{
    static const int64_t shapes[][2] = {{2, 2},   {5, 3},   {3, 5},   {8, 8},   {16, 16},
                                        {33, 33}, {40, 24}, {24, 40}, {64, 64}, {100, 100}};
    static const char *const families[] = {"gaussian", "uniform", "orthogonal", "integers"};
    gb10_handle_t *handle = oracle();
    int64_t repeats = batch_long() ? 100 : 12;
    for (int dtype = 0; dtype < GB10_DTYPES; dtype++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            for (int f = 0; f < 4 && !batch_skips(shapes[s][0], shapes[s][1]); f++) {
                batch_shape_t shape = {.dtype = (gb10_dtype_t)dtype,
                                       .m = shapes[s][0],
                                       .n = shapes[s][1],
                                       .count = 1,
                                       .nb = f % 2 ? 8 : 32};
                batch_t *t = good(handle, families[f], shape);
                cr_expect(!missed(t, handle, GB10_CHECK_FULL), "%s: %s", t->text, t->failed[0]);
                for (int64_t r = 0; r < repeats; r++)
                    for (int buffer = BATCH_V; buffer <= BATCH_TAU; buffer++)
                        disturb(t, handle, buffer);
                cr_expect(!missed(t, handle, GB10_CHECK_FULL), "%s: %s", t->text, t->failed[0]);
                batch_free(t);
            }
    gb10_destroy(handle);
}

/* NaN and Inf anywhere in V, T, R or tau miss a gate at every level. */
Test(checker, nan_never_passes)
{
    gb10_handle_t *handle = oracle();
    for (int dtype = 0; dtype < GB10_DTYPES; dtype++)
        for (int64_t n = 1; n <= 9; n += 4)
            for (int buffer = BATCH_V; buffer <= BATCH_TAU; buffer++) {
                batch_shape_t shape = {
                    .dtype = (gb10_dtype_t)dtype, .m = n + 2, .n = n, .count = 1, .nb = 3};
                batch_t *t = good(handle, "gaussian", shape);
                const gb10_view_t *v = &t->view[buffer];
                int parts = gb10_dtype_is_complex(shape.dtype) ? 2 : 1;
                for (int64_t e = 0; e < v->m * v->n * parts; e++)
                    for (int level = GB10_CHECK_NORMS; level <= GB10_CHECK_FULL; level++) {
                        int64_t i = e / parts / v->n, j = e / parts % v->n;
                        double x = batch_get(t, buffer, 0, i, j, (int)(e % parts));
                        batch_set(t, buffer, 0, i, j, (int)(e % parts),
                                  level == GB10_CHECK_PROBE ? (double)INFINITY : (double)NAN);
                        cr_expect(missed(t, handle, (gb10_check_level_t)level),
                                  "%s: output %d (%d, %d) level %d", t->text, buffer, (int)i,
                                  (int)j, level);
                        batch_set(t, buffer, 0, i, j, (int)(e % parts), x);
                    }
                cr_expect(!missed(t, handle, GB10_CHECK_FULL), "%s", t->text);
                batch_free(t);
            }
    gb10_destroy(handle);
}

/* Non-zeros where the structure has exact zeros, and ones that are not. */
Test(checker, structure_is_exact)
{
    gb10_handle_t *handle = oracle();
    for (int dtype = 0; dtype < GB10_DTYPES; dtype++)
        for (int buffer = BATCH_V; buffer <= BATCH_R; buffer++) {
            batch_shape_t shape = {
                .dtype = (gb10_dtype_t)dtype, .m = 11, .n = 10, .count = 1, .nb = 4};
            batch_t *t = good(handle, "gaussian", shape);
            const gb10_view_t *v = &t->view[buffer];
            double tiny = gb10_dtype_tiny(shape.dtype);
            int parts = gb10_dtype_is_complex(shape.dtype) ? 2 : 1;
            for (int64_t e = 0; e < v->m * v->n * parts; e++) {
                int64_t i = e / parts / v->n, j = e / parts % v->n, row = i - j % t->b;
                int part = (int)(e % parts);
                bool fixed = buffer == BATCH_V   ? i <= j
                             : buffer == BATCH_R ? i > j || (i == j && part == 1)
                                                 : row > 0;
                if (!fixed)
                    continue;
                double x = batch_get(t, buffer, 0, i, j, part);
                batch_set(t, buffer, 0, i, j, part, x == 0 ? tiny : nextafterf(1, 2));
                const char *gate = missed(t, handle, GB10_CHECK_NORMS);
                cr_expect(gate && strcmp(gate, "structure") == 0, "%s: output %d (%d, %d)", t->text,
                          buffer, (int)i, (int)j);
                batch_set(t, buffer, 0, i, j, part, x);
            }
            batch_free(t);
        }
    gb10_destroy(handle);
}

/* Errors of whole columns and rows, the kind that tests of the thin Q let through. */
Test(checker, gross_errors_are_seen)
{
    gb10_handle_t *handle = oracle();
    for (int dtype = 0; dtype < GB10_DTYPES; dtype++) {
        batch_shape_t shape = {.dtype = (gb10_dtype_t)dtype, .m = 20, .n = 12, .count = 1, .nb = 5};
        batch_t *t = good(handle, "gaussian", shape), *cut = good(handle, "gaussian", shape);
        int parts = gb10_dtype_is_complex(shape.dtype) ? 2 : 1;
        for (int64_t i = 0; i < 3; i++) /* columns 3 and 7 of R, rows that both have, swapped */
            for (int q = 0; q < parts; q++) {
                double x = batch_get(t, BATCH_R, 0, i, 3, q), y = batch_get(t, BATCH_R, 0, i, 7, q);
                batch_set(t, BATCH_R, 0, i, 3, q, y);
                batch_set(t, BATCH_R, 0, i, 7, q, x);
            }
        for (int level = GB10_CHECK_NORMS; level <= GB10_CHECK_FULL; level++)
            cr_expect(missed(t, handle, (gb10_check_level_t)level), "%s: swapped columns", t->text);
        /* A factorisation of the first 19 rows, presented as one of all 20. */
        for (int64_t j = 0; j < 12; j++)
            for (int q = 0; q < parts; q++)
                batch_set(cut, BATCH_A, 0, 19, j, q, 0);
        cr_assert(batch_geqrf(cut, handle) == GB10_OK);
        batch_fill(cut, "gaussian", batch_seed(), 0, 0);
        for (int level = GB10_CHECK_NORMS; level <= GB10_CHECK_FULL; level++)
            cr_expect(missed(cut, handle, (gb10_check_level_t)level), "%s: last row dropped",
                      cut->text);
        batch_free(t);
        batch_free(cut);
    }
    gb10_destroy(handle);
}

/* The size of an error that is known beforehand, at ordinary and at extreme scales. */
Test(checker, measures_what_is_there)
{
    static const char *const families[] = {"gaussian", "wide-range", "near-overflow"};
    gb10_handle_t *handle = oracle();
    for (int dtype = 0; dtype < GB10_DTYPES; dtype++)
        for (int f = 0; f < 3; f++) {
            batch_shape_t shape = {
                .dtype = (gb10_dtype_t)dtype, .m = 30, .n = 21, .count = 1, .nb = 8};
            batch_t *t = good(handle, families[f], shape);
            double factor = 1 - 0x1p-12;
            int parts = gb10_dtype_is_complex(shape.dtype) ? 2 : 1;
            for (int64_t e = 0; e < 21 * 21 * parts; e++) {
                int64_t i = e / parts / 21, j = e / parts % 21;
                double x = batch_get(t, BATCH_R, 0, i, j, (int)(e % parts));
                batch_set(t, BATCH_R, 0, i, j, (int)(e % parts), x * factor);
            }
            for (int level = GB10_CHECK_NORMS; level <= GB10_CHECK_FULL; level++) {
                cr_expect(missed(t, handle, (gb10_check_level_t)level), "%s", t->text);
                for (int metric = 0; metric <= GB10_COLUMN_NORM_ERROR; metric++) {
                    if (metric == GB10_ORTHOGONALITY ||
                        (level != GB10_CHECK_FULL && metric != GB10_COLUMN_NORM_ERROR))
                        continue;
                    cr_expect(fabs(t->metrics[metric] / 0x1p-12 - 1) < 0.01,
                              "%s: %s is %g, must be 2^-12", t->text, gb10_metric_names[metric],
                              t->metrics[metric]);
                }
                if (level != GB10_CHECK_NORMS)
                    cr_expect(t->metrics[GB10_PROBE_ERROR] > 0x1p-15 &&
                                  t->metrics[GB10_PROBE_ERROR] < 0x1p-9,
                              "%s: probe_error is %g", t->text, t->metrics[GB10_PROBE_ERROR]);
            }
            batch_free(t);
        }
    gb10_destroy(handle);
}

/* Nothing is measured where nothing was asked, and false claims of a bad matrix are found. */
Test(checker, levels_and_claims)
{
    gb10_handle_t *handle = oracle();
    batch_t *t = good(handle, "gaussian",
                      (batch_shape_t){.dtype = GB10_D, .m = 6, .n = 5, .count = 1, .nb = 2});
    cr_expect(!missed(t, handle, GB10_CHECK_NONE));
    for (int i = 0; i < GB10_METRICS; i++)
        cr_expect(isnan(t->metrics[i]));
    cr_expect(!missed(t, handle, GB10_CHECK_NORMS));
    cr_expect(isnan(t->metrics[GB10_BACKWARD_ERROR]) && isnan(t->metrics[GB10_PROBE_ERROR]));
    cr_expect(t->metrics[GB10_RDIAG_MIN] > 0 &&
              t->metrics[GB10_RDIAG_MIN] <= t->metrics[GB10_RDIAG_MAX]);
    static const uint8_t claims[] = {GB10_INFO_NONFINITE, GB10_INFO_NOT_REPRESENTABLE};
    for (int i = 0; i < 2; i++) {
        t->info[0] = claims[i];
        cr_assert(batch_check(t, handle, GB10_CHECK_NORMS) == GB10_OK);
        cr_expect(t->info[0] == GB10_INFO_GATE_MISSED && strcmp(t->failed[0], "finite") == 0);
    }
    t->info[0] = GB10_INFO_SET_ASIDE;
    cr_assert(batch_check(t, handle, GB10_CHECK_FULL) == GB10_OK);
    cr_expect(t->info[0] == GB10_INFO_SET_ASIDE && !t->failed[0]);
    batch_free(t);
    gb10_destroy(handle);
}

static gb10_r_difference_t compare(gb10_handle_t *handle, const batch_t *t, int buffer1,
                                   const batch_t *other, int buffer2)
{
    gb10_r_difference_t d;
    gb10_compare_r_args_t args = {&t->view[BATCH_A], &t->view[buffer1], &other->view[buffer2], &d};
    cr_assert(gb10_compare_r(handle, &args) == GB10_OK, "%s", gb10_last_error(handle)->message);
    return d;
}

Test(checker, compares_two_r)
{
    gb10_handle_t *handle = oracle();
    for (int dtype = 0; dtype < GB10_DTYPES; dtype++)
        for (int64_t n = 1; n <= 40; n += 13) {
            batch_shape_t shape = {
                .dtype = (gb10_dtype_t)dtype, .m = 30, .n = n, .count = 1, .nb = 8};
            batch_t *t = good(handle, "uniform", shape), *other = good(handle, "uniform", shape);
            double u = gb10_dtype_u(shape.dtype);
            for (int64_t j = 0; j < n; j++) /* the sign of a row is free */
                batch_set(other, BATCH_R, 0, 0, j, 0, -batch_get(other, BATCH_R, 0, 0, j, 0));
            if (gb10_dtype_is_complex(shape.dtype))
                for (int64_t j = 0; j < n; j++)
                    batch_set(other, BATCH_R, 0, 0, j, 1, -batch_get(other, BATCH_R, 0, 0, j, 1));
            gb10_r_difference_t d = compare(handle, t, BATCH_R, other, BATCH_R);
            cr_expect(d.agree && d.worst_abs == 0 && isfinite(d.bound), "%s: abs %g bound %g",
                      t->text, d.worst_abs, d.bound);
            d = compare(handle, t, BATCH_PACKED, other, BATCH_R);
            cr_expect(d.agree && d.worst_abs == 0, "%s: packed: abs %g", t->text, d.worst_abs);
            double norm = column_norm(t, BATCH_R, n - 1), x = batch_get(t, BATCH_R, 0, 0, n - 1, 0);
            batch_set(other, BATCH_R, 0, 0, n - 1, 0, x + 0x1p16 * u * norm * sqrt((double)n));
            d = compare(handle, t, BATCH_R, other, BATCH_R);
            cr_expect(!d.agree, "%s: a changed entry: norm %g abs %g bound %g", t->text,
                      d.worst_norm, d.worst_abs, d.bound);
            batch_set(other, BATCH_R, 0, 0, n - 1, 0, NAN);
            cr_expect(!compare(handle, t, BATCH_R, other, BATCH_R).agree, "%s: NaN", t->text);
            cr_expect(!compare(handle, other, BATCH_R, t, BATCH_R).agree, "%s: NaN", t->text);
            batch_free(t);
            batch_free(other);
        }
    batch_t *t = good(handle, "hilbert",
                      (batch_shape_t){.dtype = GB10_D, .m = 20, .n = 20, .count = 1, .nb = 8});
    gb10_r_difference_t d = compare(handle, t, BATCH_R, t, BATCH_R);
    cr_expect(d.agree && isinf(d.bound));
    batch_free(t);
    gb10_destroy(handle);
}
