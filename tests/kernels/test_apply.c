/* form_t, form_q and apply_q of every backend, from the factors of geqrf. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/core/rng.h"
#include "tests/support/batch.h"
#include "tests/support/test.h"

#define FOR_BACKENDS(handle, name)                                                                 \
    for (int i_ = 0; (handle = batch_backend(i_, &name)); gb10_destroy(handle), i_++)

/* A plain m x n matrix of complex doubles. */
typedef struct dense {
    int64_t m, n;
    double *x; /* pairs, row-major */
} dense_t;

static dense_t dense_new(int64_t m, int64_t n)
{
    return (dense_t){m, n, calloc((size_t)(m * n) * 2 + 1, sizeof(double))};
}

static dense_t dense_of(const batch_t *t, int buffer, int64_t b)
{
    const gb10_view_t *v = &t->view[buffer];
    dense_t d = dense_new(v->m, v->n);
    for (int64_t e = 0; e < v->m * v->n; e++)
        for (int q = 0; q < (gb10_dtype_is_complex(v->dtype) ? 2 : 1); q++)
            d.x[2 * e + q] = batch_get(t, buffer, b, e / v->n, e % v->n, q);
    return d;
}

/* a or a^H times b */
static dense_t product(dense_t a, bool adjoint, dense_t b)
{
    dense_t c = dense_new(adjoint ? a.n : a.m, b.n);
    for (int64_t i = 0; i < c.m; i++)
        for (int64_t l = 0; l < b.m; l++) {
            const double *p = &a.x[2 * (adjoint ? l * a.n + i : i * a.n + l)];
            double re = p[0], im = adjoint ? -p[1] : p[1];
            for (int64_t j = 0; j < b.n; j++) {
                const double *y = &b.x[2 * (l * b.n + j)];
                c.x[2 * (i * c.n + j)] += re * y[0] - im * y[1];
                c.x[2 * (i * c.n + j) + 1] += re * y[1] + im * y[0];
            }
        }
    return c;
}

static dense_t adjoint(dense_t a)
{
    dense_t d = dense_new(a.n, a.m);
    for (int64_t e = 0; e < a.m * a.n; e++) {
        double *p = &d.x[2 * (e % a.n * a.m + e / a.n)];
        p[0] = a.x[2 * e];
        p[1] = -a.x[2 * e + 1];
    }
    return d;
}

static dense_t identity(int64_t m, int64_t n)
{
    dense_t d = dense_new(m, n);
    for (int64_t i = 0; i < m && i < n; i++)
        d.x[2 * (i * n + i)] = 1;
    return d;
}

static double norm(dense_t a)
{
    double sum = 0;
    for (int64_t e = 0; e < 2 * a.m * a.n; e++)
        sum += a.x[e] * a.x[e];
    return sqrt(sum);
}

/* ||a - b||_F; NaN stays NaN. Frees both. */
static double distance(dense_t a, dense_t b)
{
    for (int64_t e = 0; e < 2 * a.m * a.n; e++)
        a.x[e] -= b.x[e];
    double d = a.m == b.m && a.n == b.n ? norm(a) : INFINITY;
    free(a.x);
    free(b.x);
    return d;
}

/* A batch of `count` plain matrices for Q and C, as a view. */
static gb10_view_t plain(gb10_dtype_t dtype, int64_t m, int64_t n, int64_t count, bool columns)
{
    void *p = calloc((size_t)(m * n * count) + 1, gb10_dtype_size(dtype));
    return columns ? gb10_view_cols(dtype, p, m, n, m > 1 ? m : 1, count)
                   : gb10_view_rows(dtype, p, m, n, count);
}

static double *at(const gb10_view_t *v, int64_t b, int64_t i, int64_t j, double *copy)
{
    const char *p = gb10_view_at(v, b);
    int64_t e = i * v->rs + j * v->cs;
    bool pair = gb10_dtype_is_complex(v->dtype);
    for (int q = 0; q < 2; q++)
        copy[q] = q > pair ? 0
                  : v->dtype == GB10_S || v->dtype == GB10_C
                      ? (double)((const float *)p)[e * (1 + pair) + q]
                      : ((const double *)p)[e * (1 + pair) + q];
    return copy;
}

static dense_t dense_view(const gb10_view_t *v, int64_t b)
{
    dense_t d = dense_new(v->m, v->n);
    for (int64_t e = 0; e < v->m * v->n; e++)
        at(v, b, e / v->n, e % v->n, &d.x[2 * e]);
    return d;
}

static void fill(gb10_view_t *v, uint64_t stream)
{
    int64_t numbers = v->m * v->n * v->count * (gb10_dtype_is_complex(v->dtype) ? 2 : 1);
    for (int64_t e = 0; e < numbers; e++) {
        double x = 2 * gb10_uniform(batch_seed(), stream, (uint64_t)e) - 1;
        if (v->dtype == GB10_S || v->dtype == GB10_C)
            ((float *)v->base)[e] = (float)x;
        else
            ((double *)v->base)[e] = x;
    }
}

static const batch_shape_t shapes[] = {
    {.m = 1, .n = 1, .count = 2, .nb = 32},    {.m = 5, .n = 2, .count = 3, .nb = 32},
    {.m = 2, .n = 5, .count = 3, .nb = 1},     {.m = 9, .n = 9, .count = 5, .nb = 4},
    {.m = 33, .n = 20, .count = 9, .nb = 32},  {.m = 40, .n = 40, .count = 2, .nb = 16},
    {.m = 70, .n = 65, .count = 2, .nb = 32},  {.m = 64, .n = 100, .count = 1, .nb = 48},
    {.m = 160, .n = 30, .count = 1, .nb = 8},  {.m = 150, .n = 140, .count = 1, .nb = 32},
    {.m = 600, .n = 21, .count = 1, .nb = 12},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* The checks multiply with the whole m x m Q. */
static bool skips(int s)
{
    return batch_skips(shapes[s].m / 8, shapes[s].m / 8);
}

static batch_t *factored(gb10_handle_t *handle, int s, int dtype)
{
    batch_shape_t shape = shapes[s];
    shape.dtype = (gb10_dtype_t)dtype;
    shape.columns = s % 2;
    batch_t *t = batch_new(shape);
    batch_fill(t, "gaussian", batch_seed(), 0, 0);
    cr_assert(batch_geqrf(t, handle) == GB10_OK, "%s", gb10_last_error(handle)->message);
    return t;
}

/* T from (V, tau) passes the gates in the place of geqrf's T. */
Test(apply, form_t)
{
    gb10_handle_t *handle;
    const char *name;
    FOR_BACKENDS(handle, name)
    for (int dtype = 0; dtype < GB10_DTYPES; dtype++)
        for (int s = 0; s < SHAPES; s++) {
            batch_t *t = factored(handle, s, dtype);
            for (int64_t b = 0; b < t->shape.count; b++)
                for (int64_t e = 0; e < t->b * t->k; e++)
                    batch_set(t, BATCH_T, b, e / t->k, e % t->k, 0, NAN);
            gb10_form_t_args_t args = {&t->view[BATCH_V], &t->view[BATCH_TAU], &t->view[BATCH_T],
                                       t->shape.nb};
            cr_assert(gb10_form_t(handle, &args) == GB10_OK);
            cr_assert(batch_check(t, handle, GB10_CHECK_FULL) == GB10_OK);
            for (int64_t b = 0; b < t->shape.count; b++)
                cr_expect(!t->failed[b], "%s: %s: missed %s", name, t->text, t->failed[b]);
            cr_expect(!batch_damage(t), "%s: %s: %s", name, t->text, batch_damage(t));
            batch_free(t);
        }
}

/* Q of every width has orthonormal columns, and Q R is A. */
Test(apply, form_q)
{
    gb10_handle_t *handle;
    const char *name;
    FOR_BACKENDS(handle, name)
    for (int dtype = 0; dtype < GB10_DTYPES; dtype++)
        for (int s = 0; s < SHAPES && !skips(s); s++)
            for (int width = 0; width < 3; width++) {
                batch_t *t = factored(handle, s, dtype);
                int64_t m = t->shape.m, k = t->k;
                int64_t q = width == 0 ? k : width == 1 ? m : (m + k) / 2;
                double u = gb10_dtype_u(t->shape.dtype);
                gb10_view_t Q = plain(t->shape.dtype, m, q, t->shape.count, width == 1);
                gb10_form_q_args_t args = {&t->view[BATCH_V], &t->view[BATCH_T], &Q, t->shape.nb};
                cr_assert(gb10_form_q(handle, &args) == GB10_OK, "%s",
                          gb10_last_error(handle)->message);
                for (int64_t b = 0; b < t->shape.count; b++) {
                    dense_t d = dense_view(&Q, b), thin = dense_new(m, k);
                    for (int64_t e = 0; e < m * k; e++)
                        memcpy(&thin.x[2 * e], &d.x[2 * (e / k * q + e % k)], 2 * sizeof(double));
                    double drift = distance(product(d, true, d), identity(q, q));
                    dense_t r = dense_of(t, BATCH_R, b), a = dense_of(t, BATCH_A, b);
                    double size = norm(a), error = distance(product(thin, false, r), a);
                    cr_expect(drift <= 30 * sqrt((double)q) * u, "%s: %s: q %d: Q drifts by %g u",
                              name, t->text, (int)q, drift / u);
                    cr_expect(error <= 40 * u * size, "%s: %s: q %d: QR is off by %g u", name,
                              t->text, (int)q, error / size / u);
                    free(d.x);
                    free(thin.x);
                    free(r.x);
                }
                free(Q.base);
                batch_free(t);
            }
}

/* op(Q) C and C op(Q) against products with the full Q. */
static void check_apply(gb10_handle_t *handle, const char *name, batch_t *t, char side, char trans,
                        int64_t c)
{
    int64_t m = t->shape.m;
    gb10_dtype_t dtype = t->shape.dtype;
    double u = gb10_dtype_u(dtype);
    bool left = side == 'L';
    gb10_view_t Q = plain(dtype, m, m, t->shape.count, false);
    gb10_view_t C = plain(dtype, left ? m : c, left ? c : m, t->shape.count, c % 2);
    gb10_form_q_args_t form = {&t->view[BATCH_V], &t->view[BATCH_T], &Q, t->shape.nb};
    gb10_apply_q_args_t args = {&t->view[BATCH_V], &t->view[BATCH_T], &C, t->shape.nb, side, trans};
    cr_assert(gb10_form_q(handle, &form) == GB10_OK);
    fill(&C, 5);
    dense_t *before = malloc((size_t)t->shape.count * sizeof *before);
    for (int64_t b = 0; b < t->shape.count; b++)
        before[b] = dense_view(&C, b);
    cr_assert(gb10_apply_q(handle, &args) == GB10_OK, "%s", gb10_last_error(handle)->message);
    for (int64_t b = 0; b < t->shape.count; b++) {
        dense_t q = dense_view(&Q, b), qh = adjoint(q);
        dense_t wanted = left ? product(q, trans != 'N', before[b])
                              : product(before[b], false, trans == 'N' ? q : qh);
        double size = norm(before[b]), error = distance(dense_view(&C, b), wanted);
        cr_expect(error <= 60 * u * size, "%s: %s: side %c trans %c c %d: off by %g u", name,
                  t->text, side, trans, (int)c, error / size / u);
        free(q.x);
        free(qh.x);
        free(before[b].x);
    }
    free(before);
    free(Q.base);
    free(C.base);
}

Test(apply, apply_q)
{
    gb10_handle_t *handle;
    const char *name;
    FOR_BACKENDS(handle, name)
    for (int dtype = 0; dtype < GB10_DTYPES; dtype++)
        for (int s = 0; s < SHAPES && !skips(s); s++) {
            batch_t *t = factored(handle, s, dtype);
            for (int way = 0; way < 6; way++) {
                char trans = "NCT"[way % 3];
                if (trans != 'T' || !gb10_dtype_is_complex(t->shape.dtype))
                    check_apply(handle, name, t, way < 3 ? 'L' : 'R', trans, way % 2 ? 1 : 6);
            }
            check_apply(handle, name, t, 'L', 'C', 37);
            batch_free(t);
        }
}

/* Zero right-hand sides are fine, and so are values near the ends of the range. */
Test(apply, edges)
{
    gb10_handle_t *handle;
    const char *name;
    FOR_BACKENDS(handle, name)
    {
        batch_t *t = factored(handle, 4, GB10_D);
        gb10_view_t none = plain(GB10_D, t->shape.m, 0, t->shape.count, false);
        gb10_apply_q_args_t args = {
            &t->view[BATCH_V], &t->view[BATCH_T], &none, t->shape.nb, 'L', 'N'};
        cr_expect(gb10_apply_q(handle, &args) == GB10_OK, "%s: %s", name,
                  gb10_last_error(handle)->message);
        free(none.base);
        for (int big = 0; big < 2; big++) {
            gb10_view_t C = plain(GB10_D, t->shape.m, 2, t->shape.count, false);
            double scale = big ? 0x1p1019 : 0x1p-1060, factor = big ? 0x1p-1000 : 0x1p1000;
            fill(&C, 9);
            for (int64_t e = 0; e < t->shape.m * 2 * t->shape.count; e++)
                ((double *)C.base)[e] *= scale;
            dense_t before = dense_view(&C, 0);
            args.C = &C;
            cr_assert(gb10_apply_q(handle, &args) == GB10_OK);
            args.trans = 'T';
            cr_assert(gb10_apply_q(handle, &args) == GB10_OK);
            args.trans = 'N';
            dense_t after = dense_view(&C, 0);
            for (int64_t e = 0; e < 2 * before.m * before.n; e++) {
                before.x[e] *= factor;
                after.x[e] *= factor;
            }
            double size = norm(before), error = distance(after, before);
            cr_expect(error <= (big ? 0x1p-45 : 0x1p-8) * size, "%s: scale %g: off by %g", name,
                      scale, error / size);
            free(C.base);
        }
        batch_free(t);
    }
}
