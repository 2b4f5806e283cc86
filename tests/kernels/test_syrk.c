/* The rank-k update of every backend over the case table syrk_cases.csv (make_syrk_cases.py):
 * accuracy against sums in long double, special values against the definition in working precision,
 * the other triangle, paddings and guards bit for bit. */
#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/core/rng.h"
#include "kernels/core/view.h"
#include "tests/support/batch.h"
#include "tests/support/test.h"

enum { GUARD = 64, POISON = 0xa5, FIELDS = 13 };

typedef struct syrk_case {
    char kind[4], values[12], text[192];
    gb10_dtype_t dtype;
    int hermitian;
    char uplo, trans;
    int64_t n, k, pad_a, pad_c, batch;
    double alpha[2], beta[2];
} syrk_case_t;

/* A and C of a batch, in one guarded buffer each; C as it was. */
typedef struct problem {
    gb10_view_t A, C;
    unsigned char *raw[2], *old;
    size_t bytes[2];
} problem_t;

static int read_case(const char *line, syrk_case_t *c)
{
    char dtype, alpha[32], beta[32];
    long long n, k, pad_a, pad_c, batch;
    snprintf(c->text, sizeof c->text, "%.*s", (int)strcspn(line, "\n"), line);
    if (sscanf(line, "%3[^,],%c,%d,%c,%c,%lld,%lld,%lld,%lld,%31[^,],%31[^,],%11[^,],%lld", c->kind,
               &dtype, &c->hermitian, &c->uplo, &c->trans, &n, &k, &pad_a, &pad_c, alpha, beta,
               c->values, &batch) != FIELDS)
        return 0;
    c->dtype = (gb10_dtype_t)(strchr("sdcz", dtype) - "sdcz");
    c->n = n, c->k = k, c->pad_a = pad_a, c->pad_c = pad_c, c->batch = batch;
    return sscanf(alpha, "%lf%lfi", &c->alpha[0], &c->alpha[1]) == 2 &&
           sscanf(beta, "%lf%lfi", &c->beta[0], &c->beta[1]) == 2;
}

static void put(gb10_dtype_t t, void *base, int64_t number, double x)
{
    if (gb10_dtype_is_double(t))
        ((double *)base)[number] = x;
    else
        ((float *)base)[number] = (float)x;
}

/* Number `at` of a matrix whose values are of this kind. */
static double value(const char *kind, gb10_dtype_t t, uint64_t seed, int64_t at)
{
    const double max = gb10_dtype_is_double(t) ? 1.7e308 : 3.4e38;
    const double root = gb10_dtype_is_double(t) ? 1e150 : 1e18;
    const double r = gb10_uniform(seed, 1, (uint64_t)at) - 0.5;
    const uint64_t pick = gb10_random(seed, 2, (uint64_t)at) % 7;
    if (!strcmp(kind, "integers"))
        return (double)(int)(16 * r);
    if (!strcmp(kind, "tiny"))
        return r * (gb10_dtype_is_double(t) ? 1e-160 : 1e-21);
    if (!strcmp(kind, "large"))
        return r * root / 100;
    if (!strcmp(kind, "spread"))
        return ldexp(r, (int)pick * 3);
    if (!strcmp(kind, "zeros") || (!strcmp(kind, "sparse") && pick > 1))
        return 0;
    if (!strcmp(kind, "nan") && pick == 0)
        return (double)NAN;
    if (!strcmp(kind, "inf") && pick == 0)
        return r < 0 ? -(double)INFINITY : (double)INFINITY;
    if (!strcmp(kind, "max") && pick < 2)
        return r < 0 ? -max : max;
    if (!strncmp(kind, "one-", 4) && at == 7)
        return kind[4] == 'n' ? (double)NAN : (double)INFINITY;
    return 2 * r;
}

static void fill(gb10_view_t *v, const char *kind, uint64_t seed)
{
    const int parts = gb10_dtype_is_complex(v->dtype) ? 2 : 1;
    for (int64_t b = 0; b < v->count; b++)
        for (int64_t j = 0; j < v->n; j++)
            for (int64_t e = 0; e < v->m * parts; e++)
                put(v->dtype, gb10_view_at(v, b),
                    (e / parts * v->rs + j * v->cs) * parts + e % parts,
                    value(kind, v->dtype, seed + (uint64_t)b, j * v->m * parts + e));
}

static gb10_view_t guarded(problem_t *p, int which, gb10_dtype_t t, int64_t m, int64_t n,
                           int64_t pad, int64_t count, int rows)
{
    const int64_t run = rows ? n : m, ld = (run > 1 ? run : 1) + pad, other = rows ? m : n;
    p->bytes[which] = (size_t)(ld * (other > 1 ? other : 1) * count) * gb10_dtype_size(t);
    p->raw[which] = malloc(p->bytes[which] + 2 * GUARD);
    memset(p->raw[which], POISON, p->bytes[which] + 2 * GUARD);
    gb10_view_t v = gb10_view_cols(t, p->raw[which] + GUARD, run, other, ld, count);
    if (rows) {
        v.m = m;
        v.n = n;
        v.rs = ld;
        v.cs = 1;
    }
    return v;
}

/* layout: 1 for A and 2 for C by rows, else by columns. */
static void make_problem(problem_t *p, const syrk_case_t *c, int layout)
{
    const int64_t rows = c->trans == 'N' ? c->n : c->k, cols = c->trans == 'N' ? c->k : c->n;
    const int in_c = !strncmp(c->values, "c-", 2);
    p->A = guarded(p, 0, c->dtype, rows, cols, c->pad_a, c->batch, layout & 1);
    p->C = guarded(p, 1, c->dtype, c->n, c->n, c->pad_c, c->batch, layout & 2);
    fill(&p->A, in_c ? "gaussian" : c->values, batch_seed());
    fill(&p->C, in_c ? c->values + 2 : "gaussian", batch_seed() + 99);
    p->old = malloc(p->bytes[1] + 2 * GUARD);
    memcpy(p->old, p->raw[1], p->bytes[1] + 2 * GUARD);
}

typedef long double complex wide_t;

static wide_t entry(const gb10_view_t *v, const void *base, int64_t b, int64_t i, int64_t j)
{
    const int64_t at = b * v->bs + i * v->rs + j * v->cs;
    if (!gb10_dtype_is_complex(v->dtype))
        return (long double)gb10_number_at(v->dtype, base, at);
    return CMPLXL((long double)gb10_number_at(v->dtype, base, 2 * at),
                  (long double)gb10_number_at(v->dtype, base, 2 * at + 1));
}

/* op(A)(i, l) */
static wide_t factor(const syrk_case_t *c, const problem_t *p, int64_t b, int64_t i, int64_t l)
{
    return c->trans == 'N' ? entry(&p->A, p->A.base, b, i, l) : entry(&p->A, p->A.base, b, l, i);
}

/* One number rounded to the type. */
static double rounded(gb10_dtype_t t, double x)
{
    volatile float single = (float)x; /* GCC 12 at -O2 went on with the wider product otherwise */
    return gb10_dtype_is_double(t) ? x : (double)single;
}

/* The definition with every operation rounded, in the order of the reference BLAS: re, im. */
static void times(gb10_dtype_t t, const double a[2], const double b[2], double out[2])
{
    const double rr = rounded(t, a[0] * b[0]), ii = rounded(t, a[1] * b[1]);
    const double ri = rounded(t, a[0] * b[1]), ir = rounded(t, a[1] * b[0]);
    out[0] = rounded(t, rr - ii);
    out[1] = rounded(t, ri + ir);
}
static void add(gb10_dtype_t t, double a[2], const double b[2])
{
    a[0] = rounded(t, a[0] + b[0]);
    a[1] = rounded(t, a[1] + b[1]);
}

static void defined(const syrk_case_t *c, const problem_t *p, int64_t b, int64_t i, int64_t j,
                    double out[2])
{
    const gb10_dtype_t t = c->dtype;
    const double alpha[2] = {rounded(t, c->alpha[0]), rounded(t, c->alpha[1])};
    const double beta[2] = {rounded(t, c->beta[0]), rounded(t, c->beta[1])};
    const wide_t old = entry(&p->C, p->old + GUARD, b, i, j);
    const double before[2] = {(double)creall(old), (double)cimagl(old)};
    double sum[2] = {0, 0};
    out[0] = out[1] = 0;
    if (beta[0] == 1 && beta[1] == 0)
        out[0] = before[0], out[1] = before[1];
    else if (beta[0] != 0 || beta[1] != 0)
        times(t, beta, before, out);
    for (int64_t l = 0; l < c->k && (alpha[0] != 0 || alpha[1] != 0); l++) {
        const wide_t xi = factor(c, p, b, i, l), xj = factor(c, p, b, j, l);
        const int conj_x = c->hermitian && c->trans != 'N', conj_y = c->hermitian && !conj_x;
        const double x[2] = {(double)creall(xi), (double)(conj_x ? -cimagl(xi) : cimagl(xi))};
        const double y[2] = {(double)creall(xj), (double)(conj_y ? -cimagl(xj) : cimagl(xj))};
        double scaled[2], term[2];
        times(t, alpha, y, scaled);
        times(t, c->trans == 'N' ? scaled : y, x, term);
        add(t, c->trans == 'N' ? out : sum, term);
    }
    if (c->trans != 'N' && c->k > 0 && (alpha[0] != 0 || alpha[1] != 0)) {
        double scaled[2];
        times(t, alpha, sum, scaled);
        add(t, out, scaled);
    }
}

static wide_t exact(const syrk_case_t *c, const problem_t *p, int64_t b, int64_t i, int64_t j)
{
    const wide_t alpha = CMPLXL((long double)rounded(c->dtype, c->alpha[0]),
                                (long double)rounded(c->dtype, c->alpha[1]));
    const wide_t beta = CMPLXL((long double)rounded(c->dtype, c->beta[0]),
                               (long double)rounded(c->dtype, c->beta[1]));
    wide_t sum = 0;
    for (int64_t l = 0; l < c->k; l++) {
        wide_t x = factor(c, p, b, i, l), y = factor(c, p, b, j, l);
        if (c->hermitian && c->trans == 'N')
            y = conjl(y);
        else if (c->hermitian)
            x = conjl(x);
        sum += x * y;
    }
    return alpha * sum + (beta == 0 ? 0 : beta * entry(&p->C, p->old + GUARD, b, i, j));
}

static int inside(const syrk_case_t *c, int64_t i, int64_t j)
{
    return c->uplo == 'U' ? i <= j : i >= j;
}

static long double square(wide_t x)
{
    return creall(x) * creall(x) + cimagl(x) * cimagl(x);
}

static long double squares(const gb10_view_t *v, const void *base, int64_t b)
{
    long double sum = 0;
    for (int64_t i = 0; i < v->m; i++)
        for (int64_t j = 0; j < v->n; j++)
            sum += square(entry(v, base, b, i, j));
    return sum;
}

/* Matrix b within the bounds of accuracy. */
static void accurate(const syrk_case_t *c, const problem_t *p, int64_t b, const char *backend)
{
    const double u = gb10_dtype_u(c->dtype);
    long double off = 0, far = 0, tiny = gb10_dtype_tiny(c->dtype);
    int64_t entries = 0, close = 0;
    for (int64_t j = 0; j < c->n; j++)
        for (int64_t i = 0; i < c->n; i++) {
            if (!inside(c, i, j))
                continue;
            const wide_t got = entry(&p->C, p->C.base, b, i, j);
            wide_t want = exact(c, p, b, i, j);
            const int kept = c->beta[0] == 1 && c->beta[1] == 0 &&
                             (c->k == 0 || (c->alpha[0] == 0 && c->alpha[1] == 0));
            if (c->hermitian && i == j && !kept)
                want = creall(want);
            const long double error = sqrtl(square(got - want)), size = sqrtl(square(want));
            entries++;
            close += error <= 0x1p-16L + 0x1p-10L * size;
            far = error <= far ? far : error;
            off += error * error;
        }
    const long double a = squares(&p->A, p->A.base, b);
    const long double old =
        c->beta[0] == 0 && c->beta[1] == 0 ? 0 : squares(&p->C, p->old + GUARD, b);
    const long double alpha = hypotl((long double)c->alpha[0], (long double)c->alpha[1]);
    const long double beta = hypotl((long double)c->beta[0], (long double)c->beta[1]);
    const long double scale = sqrtl((long double)c->k + 2) * alpha * a + 2 * beta * sqrtl(old);
    cr_expect(sqrtl(off) <= 3 * u * scale + 8 * tiny * (long double)(c->n + c->k + 1),
              "%s: %s: off by %Lg u", backend, c->text, sqrtl(off) / (u * scale));
    const int tame = !strcmp(c->values, "gaussian") || !strcmp(c->values, "integers");
    cr_expect(!tame || (double)close >= 0.99 * (double)entries, "%s: %s: %d of %d entries match",
              backend, c->text, (int)close, (int)entries);
    cr_expect(!tame || far <= 1e-2L || far <= 64 * u * scale, "%s: %s: off by %Lg", backend,
              c->text, far);
}

static int same_kind(double got, double want)
{
    if (isnan(want) || isinf(want))
        return isnan(want) ? isnan(got) != 0 : got == want;
    return isfinite(got) != 0;
}

static void special(const syrk_case_t *c, const problem_t *p, int64_t b, const char *backend)
{
    for (int64_t j = 0; j < c->n; j++)
        for (int64_t i = 0; i < c->n; i++) {
            if (!inside(c, i, j))
                continue;
            const wide_t got = entry(&p->C, p->C.base, b, i, j);
            double want[2];
            defined(c, p, b, i, j, want);
            if (c->hermitian && i == j)
                want[1] = 0;
            if (!same_kind((double)creall(got), want[0]) ||
                !same_kind((double)cimagl(got), want[1])) {
                cr_expect(0, "%s: %s: (%d, %d) is %Lg%+Lgi, not %g%+gi", backend, c->text, (int)i,
                          (int)j, creall(got), cimagl(got), want[0], want[1]);
                return;
            }
        }
}

/* Everything but the triangle has its old bits; a Hermitian diagonal is real. */
static void untouched(const syrk_case_t *c, const problem_t *p, const char *backend)
{
    const size_t size = gb10_dtype_size(c->dtype);
    unsigned char *now = malloc(p->bytes[1] + 2 * GUARD);
    memcpy(now, p->raw[1], p->bytes[1] + 2 * GUARD);
    for (int64_t b = 0; b < c->batch; b++)
        for (int64_t j = 0; j < c->n; j++)
            for (int64_t i = 0; i < c->n; i++) {
                const size_t at = (size_t)(b * p->C.bs + i * p->C.rs + j * p->C.cs) * size + GUARD;
                if (inside(c, i, j))
                    memcpy(now + at, p->old + at, size);
                if (c->hermitian && i == j && gb10_dtype_is_complex(c->dtype) &&
                    !(c->alpha[0] == 0 && c->beta[0] == 1) && !(c->k == 0 && c->beta[0] == 1))
                    cr_expect(cimagl(entry(&p->C, p->C.base, b, i, i)) == 0, "%s: %s: diagonal",
                              backend, c->text);
            }
    cr_expect(memcmp(now, p->old, p->bytes[1] + 2 * GUARD) == 0,
              "%s: %s: wrote outside the triangle", backend, c->text);
    free(now);
}

static void run_case(gb10_handle_t *handle, const char *backend, const syrk_case_t *c, int layout)
{
    problem_t p;
    make_problem(&p, c, layout);
    const gb10_syrk_args_t args = {.A = &p.A,
                                   .C = &p.C,
                                   .alpha = {c->alpha[0], c->alpha[1]},
                                   .beta = {c->beta[0], c->beta[1]},
                                   .uplo = c->uplo,
                                   .trans = c->trans,
                                   .hermitian = c->hermitian};
    const gb10_status_t status = gb10_syrk(handle, &args);
    cr_expect(status == GB10_OK, "%s: %s: %s", backend, c->text, gb10_last_error(handle)->message);
    untouched(c, &p, backend);
    const int exotic = !strcmp(c->kind, "EX");
    for (int64_t b = 0; b < c->batch && status == GB10_OK; b++)
        (exotic ? special : accurate)(c, &p, b, backend);
    free(p.raw[0]);
    free(p.raw[1]);
    free(p.old);
}

static FILE *open_table(void)
{
    FILE *f = fopen("tests/kernels/syrk_cases.csv", "r");
    char header[256];
    cr_assert(f && fgets(header, sizeof header, f),
              "syrk_cases.csv is read from the project's root");
    return f;
}

Test(syrk, case_table)
{
    gb10_handle_t *handle;
    const char *backend;
    for (int at = 0; (handle = batch_backend(at, &backend)); gb10_destroy(handle), at++) {
        FILE *f = open_table();
        char line[256];
        int cases = 0, left_out = 0;
        while (fgets(line, sizeof line, f)) {
            syrk_case_t c;
            cr_assert(read_case(line, &c), "no case: %s", line);
            /* Emulated processors take the small ones. */
            const double work = (double)c.n * (double)c.n * (double)(c.k + 1) * (double)c.batch;
            if (work > (strcmp(backend, "cuda") ? 1e9 : 4e6) || batch_skips(c.n, c.n + c.k)) {
                left_out++;
                continue;
            }
            run_case(handle, backend, &c, (cases + cases / 4) % 4);
            cases++;
        }
        fclose(f);
        printf("%s: %d cases, %d left out for their size\n", backend, cases, left_out);
        cr_expect(cases > (batch_short() ? 200 : 1000), "%s: %d cases", backend, cases);
    }
}

Test(syrk, blas_shaped)
{
    enum { N = 7, K = 5, LDA = 9, LDC = 8, BATCH = 3 };
    static float a[BATCH][LDA * N][2], c[BATCH][LDC * N][2], d[BATCH][LDC * N][2];
    const double alpha[2] = {1, -1}, beta[2] = {0.5, 0};
    gb10_handle_t *handle;
    const char *backend;
    for (int at = 0; (handle = batch_backend(at, &backend)); gb10_destroy(handle), at++) {
        for (int e = 0; e < BATCH * LDA * N * 2; e++)
            (&a[0][0][0])[e] = (float)(e % 13) - 6;
        for (int e = 0; e < BATCH * LDC * N * 2; e++)
            (&c[0][0][0])[e] = (&d[0][0][0])[e] = (float)(e % 7);
        gb10_view_t A = gb10_view_cols(GB10_C, a, K, N, LDA, BATCH);
        gb10_view_t C = gb10_view_cols(GB10_C, c, N, N, LDC, BATCH);
        const gb10_syrk_args_t args = {
            .A = &A, .C = &C, .alpha = {1, -1}, .beta = {0.5, 0}, .uplo = 'L', .trans = 'C'};
        cr_expect(gb10_syrk(handle, &args) == GB10_OK);
        cr_expect(gb10_batched_csyrk(handle, GB10_C, 'L', 'T', N, K, alpha, a, LDA, LDA * N, beta,
                                     d, LDC, LDC * N, BATCH) == GB10_OK,
                  "%s", gb10_last_error(handle)->message);
        cr_expect(memcmp(c, d, sizeof c) == 0, "%s: 'C' does not act as 'T'", backend);
        static const struct {
            char uplo, trans;
            int64_t n, k, lda, ldc;
            const char *names;
        } bad[] = {{'X', 'N', N, K, N, N, "uplo"},    {'U', 'X', N, K, N, N, "trans"},
                   {'U', 'N', -1, K, N, N, "n = -1"}, {'U', 'N', N, -2, N, N, "k = -2"},
                   {'U', 'N', N, K, N - 1, N, "lda"}, {'U', 'T', N, K, K - 1, N, "lda"},
                   {'U', 'N', N, K, N, N - 1, "ldc"}};
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
            cr_expect(gb10_batched_csyrk(handle, GB10_C, bad[i].uplo, bad[i].trans, bad[i].n,
                                         bad[i].k, alpha, a, bad[i].lda, LDA * N, beta, d,
                                         bad[i].ldc, LDC * N, 1) == GB10_ERR_INVALID,
                      "%s: case %d", backend, (int)i);
            cr_expect(strstr(gb10_last_error(handle)->message, bad[i].names),
                      "%s: \"%s\" says no %s", backend, gb10_last_error(handle)->message,
                      bad[i].names);
        }
        cr_expect(memcmp(c, d, sizeof c) == 0, "%s: a refused call wrote", backend);
    }
}

/* Each matrix of a batch has the bits that it has alone. */
Test(syrk, alone)
{
    static const syrk_case_t shapes[] = {
        {.values = "gaussian", .dtype = GB10_C, .uplo = 'L', .trans = 'N', .n = 8, .k = 5},
        {.values = "gaussian", .dtype = GB10_Z, .uplo = 'U', .trans = 'T', .n = 21, .k = 33},
        {.values = "gaussian", .dtype = GB10_S, .uplo = 'U', .trans = 'N', .n = 3, .k = 90},
        {.values = "gaussian", .dtype = GB10_C, .uplo = 'L', .trans = 'C', .n = 70, .k = 9}};
    gb10_handle_t *handle;
    const char *backend;
    for (int at = 0; (handle = batch_backend(at, &backend)); gb10_destroy(handle), at++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
            syrk_case_t c = shapes[i];
            problem_t all, one;
            c.hermitian = i == 3;
            c.batch = 19;
            make_problem(&all, &c, 2);
            make_problem(&one, &c, 2);
            gb10_syrk_args_t args = {.A = &all.A,
                                     .C = &all.C,
                                     .alpha = {0.5, 0},
                                     .beta = {2, 0},
                                     .uplo = c.uplo,
                                     .trans = c.trans,
                                     .hermitian = c.hermitian};
            cr_expect(gb10_syrk(handle, &args) == GB10_OK);
            for (int64_t b = 0; b < c.batch; b++) {
                gb10_view_t A = gb10_view_part(&one.A, b, 1), C = gb10_view_part(&one.C, b, 1);
                args.A = &A;
                args.C = &C;
                cr_expect(gb10_syrk(handle, &args) == GB10_OK);
            }
            cr_expect(memcmp(all.raw[1], one.raw[1], all.bytes[1]) == 0,
                      "%s: shape %d has other bits alone", backend, (int)i);
            for (int w = 0; w < 2; w++) {
                free(all.raw[w]);
                free(one.raw[w]);
            }
            free(all.old);
            free(one.old);
        }
}
