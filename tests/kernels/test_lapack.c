/* LAPACK as a witness: it accepts our V, T and tau, and is not more accurate than we are. */
#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <lapacke.h>

#include "tests/support/batch.h"
#include "tests/support/test.h"

#define FOR_BACKENDS(handle, name)                                                                 \
    for (int i_ = 0; (handle = batch_backend(i_, &name)); gb10_destroy(handle), i_++)

/* C <- Q C from the packed factor and tau: LAPACK's ?ormqr or ?unmqr. */
static int ormqr(const batch_t *t, void *C)
{
    int m = (int)t->shape.m, n = (int)t->shape.n, k = (int)t->k, ld = m;
    void *a = t->view[BATCH_PACKED].base, *tau = t->view[BATCH_TAU].base;
    switch (t->shape.dtype) {
    case GB10_S:
        return LAPACKE_sormqr(LAPACK_COL_MAJOR, 'L', 'N', m, n, k, a, ld, tau, C, ld);
    case GB10_D:
        return LAPACKE_dormqr(LAPACK_COL_MAJOR, 'L', 'N', m, n, k, a, ld, tau, C, ld);
    case GB10_C:
        return LAPACKE_cunmqr(LAPACK_COL_MAJOR, 'L', 'N', m, n, k, a, ld, tau, C, ld);
    default:
        return LAPACKE_zunmqr(LAPACK_COL_MAJOR, 'L', 'N', m, n, k, a, ld, tau, C, ld);
    }
}

/* The same from V and T: LAPACK's ?gemqrt, with a workspace of our own because LAPACKE's is too
 * small for n > m. */
static int gemqrt(const batch_t *t, void *C)
{
    int m = (int)t->shape.m, n = (int)t->shape.n, k = (int)t->k, ld = m, nb = (int)t->b, info;
    void *v = t->view[BATCH_V].base, *T = t->view[BATCH_T].base;
    void *w = malloc((size_t)(m + n) * (size_t)nb * sizeof(double complex));
    switch (t->shape.dtype) {
    case GB10_S:
        info =
            LAPACKE_sgemqrt_work(LAPACK_COL_MAJOR, 'L', 'N', m, n, k, nb, v, ld, T, nb, C, ld, w);
        break;
    case GB10_D:
        info =
            LAPACKE_dgemqrt_work(LAPACK_COL_MAJOR, 'L', 'N', m, n, k, nb, v, ld, T, nb, C, ld, w);
        break;
    case GB10_C:
        info =
            LAPACKE_cgemqrt_work(LAPACK_COL_MAJOR, 'L', 'N', m, n, k, nb, v, ld, T, nb, C, ld, w);
        break;
    default:
        info =
            LAPACKE_zgemqrt_work(LAPACK_COL_MAJOR, 'L', 'N', m, n, k, nb, v, ld, T, nb, C, ld, w);
        break;
    }
    free(w);
    return info;
}

static int geqrf(gb10_dtype_t dtype, int m, int n, void *a, void *tau)
{
    switch (dtype) {
    case GB10_S:
        return LAPACKE_sgeqrf(LAPACK_COL_MAJOR, m, n, a, m, tau);
    case GB10_D:
        return LAPACKE_dgeqrf(LAPACK_COL_MAJOR, m, n, a, m, tau);
    case GB10_C:
        return LAPACKE_cgeqrf(LAPACK_COL_MAJOR, m, n, a, m, tau);
    default:
        return LAPACKE_zgeqrf(LAPACK_COL_MAJOR, m, n, a, m, tau);
    }
}

/* Column-major and dense, one matrix: what LAPACK takes. */
static batch_t *lapack_batch(const char *family, gb10_dtype_t dtype, int64_t m, int64_t n)
{
    batch_t *t = batch_new(
        (batch_shape_t){.dtype = dtype, .m = m, .n = n, .count = 1, .nb = 32, .columns = true});
    batch_fill(t, family, batch_seed(), 0, 0);
    return t;
}

static const int64_t shapes[][2] = {{1, 1},   {4, 4},   {9, 5},   {5, 9},
                                    {33, 33}, {60, 40}, {40, 60}, {100, 100}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* ||A - C||_F / ||A||_F */
static double distance(const batch_t *t, const double *c)
{
    double sum = 0, size = 0;
    int parts = gb10_dtype_is_complex(t->shape.dtype) ? 2 : 1;
    for (int64_t i = 0; i < t->shape.m; i++)
        for (int64_t j = 0; j < t->shape.n; j++)
            for (int q = 0; q < parts; q++) {
                double a = batch_get(t, BATCH_A, 0, i, j, q);
                double x = c[(j * t->shape.m + i) * parts + q] - a;
                sum += x * x;
                size += a * a;
            }
    return sqrt(sum) == 0 ? 0 : sqrt(sum / size);
}

/* [R; 0], Q from the left, against A. */
static void rebuild(const char *name, batch_t *t, int (*apply)(const batch_t *, void *),
                    const char *routine)
{
    int64_t m = t->shape.m, n = t->shape.n;
    int parts = gb10_dtype_is_complex(t->shape.dtype) ? 2 : 1;
    bool single = t->shape.dtype == GB10_S || t->shape.dtype == GB10_C;
    double *c = calloc((size_t)(m * n * parts), sizeof *c), u = gb10_dtype_u(t->shape.dtype);
    float *f = calloc((size_t)(m * n * parts), sizeof *f);
    for (int64_t i = 0; i < t->k; i++)
        for (int64_t j = i; j < n; j++)
            for (int q = 0; q < parts; q++) {
                double r = batch_get(t, BATCH_R, 0, i, j, q);
                if (single)
                    f[(j * m + i) * parts + q] = (float)r;
                else
                    c[(j * m + i) * parts + q] = r;
            }
    cr_expect(apply(t, single ? (void *)f : c) == 0, "%s: %s: %s refuses", name, t->text, routine);
    for (int64_t e = m * n * parts - 1; single && e >= 0; e--)
        c[e] = f[e];
    double error = distance(t, c);
    cr_expect(error <= 60 * u, "%s: %s: %s rebuilds A to %g u", name, t->text, routine, error / u);
    free(c);
    free(f);
}

Test(lapack, accepts_our_factors)
{
    static const char *const families[] = {"gaussian",    "randsvd-geometric", "rank-one",
                                           "zero-middle", "orthogonal",        "integers"};
    gb10_handle_t *handle;
    const char *name;
    FOR_BACKENDS(handle, name)
    for (int dtype = 0; dtype < GB10_DTYPES; dtype++)
        for (int s = 0; s < SHAPES; s++)
            for (size_t f = 0; f < sizeof families / sizeof *families; f++) {
                batch_t *t =
                    lapack_batch(families[f], (gb10_dtype_t)dtype, shapes[s][0], shapes[s][1]);
                cr_assert(batch_geqrf(t, handle) == GB10_OK);
                rebuild(name, t, ormqr, "ormqr");
                rebuild(name, t, gemqrt, "gemqrt");
                batch_free(t);
            }
}

/* Replaces the outputs of t by LAPACK's, T by larft of cpu-ref. */
static void factor_by_lapack(batch_t *t, gb10_handle_t *oracle)
{
    int64_t m = t->shape.m, n = t->shape.n;
    int parts = gb10_dtype_is_complex(t->shape.dtype) ? 2 : 1;
    gb10_form_t_args_t args = {&t->view[BATCH_V], &t->view[BATCH_TAU], &t->view[BATCH_T],
                               t->shape.nb};
    memcpy(t->view[BATCH_PACKED].base, t->view[BATCH_A].base, t->bytes[BATCH_A]);
    cr_assert(geqrf(t->shape.dtype, (int)m, (int)n, t->view[BATCH_PACKED].base,
                    t->view[BATCH_TAU].base) == 0);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            for (int q = 0; q < parts; q++) {
                double x = batch_get(t, BATCH_PACKED, 0, i, j, q);
                if (j < t->k)
                    batch_set(t, BATCH_V, 0, i, j, q, i > j ? x : (i == j && q == 0));
                if (i < t->k)
                    batch_set(t, BATCH_R, 0, i, j, q, i <= j ? x : 0);
            }
    cr_assert(gb10_form_t(oracle, &args) == GB10_OK);
    t->info[0] = GB10_INFO_OK;
}

/* Sums over a sample of matrices of one kind. */
typedef struct sample {
    double ours, theirs; /* squared backward errors                         */
    int matrices, lapack_misses;
} sample_t;

static void take(sample_t *sample, const char *family, batch_shape_t shape, int64_t index,
                 gb10_handle_t *handle, gb10_handle_t *oracle)
{
    batch_t *ours = batch_new(shape), *theirs = batch_new(shape);
    batch_fill(ours, family, batch_seed(), index, 0);
    batch_fill(theirs, family, batch_seed(), index, 0);
    cr_assert(batch_geqrf(ours, handle) == GB10_OK);
    cr_assert(batch_check(ours, oracle, GB10_CHECK_FULL) == GB10_OK);
    factor_by_lapack(theirs, oracle);
    cr_assert(batch_check(theirs, oracle, GB10_CHECK_FULL) == GB10_OK);
    sample->ours += pow(ours->metrics[GB10_BACKWARD_ERROR], 2);
    sample->theirs += pow(theirs->metrics[GB10_BACKWARD_ERROR], 2);
    sample->matrices++;
    sample->lapack_misses += theirs->failed[0] != NULL;
    batch_free(ours);
    batch_free(theirs);
}

/* Families at the ends of the range are left out: LAPACK fails there. */
static bool within_lapack(const gb10_family_t *family)
{
    static const char *const out[] = {"near-overflow", "wide-range", "subnormal", "mixed"};
    for (size_t i = 0; i < sizeof out / sizeof *out; i++)
        if (strcmp(gb10_family_name(family), out[i]) == 0)
            return false;
    return gb10_family_info(family, GB10_D, 50, 50) == GB10_INFO_OK;
}

/* Backward error at most 3 times LAPACK's, or 4 u: in the root mean square over a few matrices,
 * because where all columns are nearly parallel the error of one matrix is a single draw, and
 * either code is now and then lucky. Also: LAPACK passes our gates, so they are not tuned to our
 * own code. */
Test(lapack, is_not_more_accurate)
{
    enum { SAMPLE = 12 };
    gb10_handle_t *handle, *oracle = NULL;
    const char *name;
    int matrices = 0, misses = 0;
    cr_assert(gb10_create(&oracle, "cpu-ref", NULL) == GB10_OK);
    FOR_BACKENDS(handle, name)
    for (int f = 0; gb10_family_at(f); f++)
        for (int e = 0; e < GB10_DTYPES * SHAPES && within_lapack(gb10_family_at(f)); e++) {
            gb10_dtype_t dtype = (gb10_dtype_t)(e % GB10_DTYPES);
            const int64_t *mn = shapes[e / GB10_DTYPES];
            const char *family = gb10_family_name(gb10_family_at(f));
            batch_shape_t shape = {
                .dtype = dtype, .m = mn[0], .n = mn[1], .count = 1, .nb = 32, .columns = true};
            sample_t sample = {0};
            for (int i = 0; i < SAMPLE && !batch_skips(mn[0], mn[1]) &&
                            (i < 3 || (i < 6 && mn[0] < 60) || batch_long());
                 i++)
                take(&sample, family, shape, i, handle, oracle);
            if (sample.matrices == 0)
                continue;
            double u = gb10_dtype_u(dtype), ours = sqrt(sample.ours / sample.matrices);
            double theirs = sqrt(sample.theirs / sample.matrices);
            cr_expect(ours <= fmax(3 * theirs, 4 * u),
                      "%s: %s %c %dx%d: backward error %g u, LAPACK's is %g u", name, family,
                      gb10_dtype_letter(dtype), (int)mn[0], (int)mn[1], ours / u, theirs / u);
            matrices += sample.matrices;
            misses += sample.lapack_misses;
        }
    cr_expect(misses * 500 <= matrices, "LAPACK misses our gates on %d of %d matrices", misses,
              matrices);
    gb10_destroy(oracle);
}
