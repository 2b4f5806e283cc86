/* Small benchmark: the cpu backend against LAPACK geqrf + larft over OpenBLAS on one core, in
 * interleaved repetitions, with the practical peak (dgemm 1024) of the same run. Prints a table.
 * Flops: (4/3) n^3, complex four times that. Ours includes reading row-major A and writing V, T, R
 * and tau; the peer factors a column-major copy in place and forms T by blocks of 32. */
#include <cblas.h>
#include <complex.h>
#define lapack_complex_float  float _Complex
#define lapack_complex_double double _Complex
#include <lapacke.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/core/plan.h"
#include "kernels/core/rng.h"
#include "kernels/gb10.h"

extern void openblas_set_num_threads(int n);

enum { REPEATS = 15, NB = 32 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); /* not disturbed by other processes */
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, by_value);
    return x[n / 2];
}

/* GF/s of a 1024 x 1024 product. */
static double peak(int is_double)
{
    enum { P = 1024 };
    double best = 0;
    size_t bytes = (size_t)P * P * sizeof(double);
    void *a = calloc(1, bytes), *b = calloc(1, bytes), *c = calloc(1, bytes);
    for (int r = 0; r < 5; r++) {
        double t = now();
        if (is_double)
            cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, P, P, P, 1, a, P, b, P, 0, c, P);
        else
            cblas_sgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, P, P, P, 1, a, P, b, P, 0, c, P);
        t = 2.0 * P * P * P / (now() - t) * 1e-9;
        best = t > best ? t : best;
    }
    free(a);
    free(b);
    free(c);
    return best;
}

typedef struct bench_case {
    gb10_dtype_t dtype;
    int64_t n, count;
    char *A, *work, *V, *T, *R, *tau, *pristine;
    gb10_handle_t *handle;
} bench_case_t;

static void ours(bench_case_t *c)
{
    int64_t n = c->n, b = n < NB ? n : NB;
    gb10_view_t A = gb10_view_rows(c->dtype, c->A, n, n, c->count);
    gb10_view_t V = gb10_view_rows(c->dtype, c->V, n, n, c->count);
    gb10_view_t T = gb10_view_rows(c->dtype, c->T, b, n, c->count);
    gb10_view_t R = gb10_view_rows(c->dtype, c->R, n, n, c->count);
    gb10_view_t tau = gb10_view_rows(c->dtype, c->tau, n, 1, c->count);
    gb10_geqrf_args_t args = {.A = &A, .V = &V, .T = &T, .R = &R, .tau = &tau, .nb = NB};
    if (gb10_geqrf(c->handle, &args) != GB10_OK) {
        fprintf(stderr, "%s\n", gb10_last_error(c->handle)->message);
        exit(1);
    }
}

static void peer_one(bench_case_t *c, char *a, char *t, char *tau)
{
    lapack_int n = (lapack_int)c->n, b = n < NB ? n : NB, lwork = 64 * n;
    size_t e = gb10_dtype_size(c->dtype);
    for (lapack_int p = 0, go = 1; go; p += b) {
        lapack_int kb = n - p < b ? n - p : b;
        char *v = a + ((size_t)p * (size_t)n + (size_t)p) * e, *tp = t + (size_t)(p * b) * e;
        switch (c->dtype) {
        case GB10_S:
            if (p == 0)
                LAPACKE_sgeqrf_work(LAPACK_COL_MAJOR, n, n, (float *)a, n, (float *)tau,
                                    (float *)c->work, lwork);
            LAPACKE_slarft_work(LAPACK_COL_MAJOR, 'F', 'C', n - p, kb, (float *)v, n,
                                (float *)tau + p, (float *)tp, b);
            break;
        case GB10_D:
            if (p == 0)
                LAPACKE_dgeqrf_work(LAPACK_COL_MAJOR, n, n, (double *)a, n, (double *)tau,
                                    (double *)c->work, lwork);
            LAPACKE_dlarft_work(LAPACK_COL_MAJOR, 'F', 'C', n - p, kb, (double *)v, n,
                                (double *)tau + p, (double *)tp, b);
            break;
        case GB10_C:
            if (p == 0)
                LAPACKE_cgeqrf_work(LAPACK_COL_MAJOR, n, n, (float _Complex *)a, n,
                                    (float _Complex *)tau, (float _Complex *)c->work, lwork);
            LAPACKE_clarft_work(LAPACK_COL_MAJOR, 'F', 'C', n - p, kb, (float _Complex *)v, n,
                                (float _Complex *)tau + p, (float _Complex *)tp, b);
            break;
        case GB10_Z:
            if (p == 0)
                LAPACKE_zgeqrf_work(LAPACK_COL_MAJOR, n, n, (double _Complex *)a, n,
                                    (double _Complex *)tau, (double _Complex *)c->work, lwork);
            LAPACKE_zlarft_work(LAPACK_COL_MAJOR, 'F', 'C', n - p, kb, (double _Complex *)v, n,
                                (double _Complex *)tau + p, (double _Complex *)tp, b);
            break;
        }
        go = p + b < n;
    }
}

static void peer(bench_case_t *c)
{
    int64_t n = c->n, b = n < NB ? n : NB;
    size_t e = gb10_dtype_size(c->dtype);
    memcpy(c->V, c->A, (size_t)(n * n * c->count) * e);
    for (int64_t i = 0; i < c->count; i++)
        peer_one(c, c->V + (size_t)(i * n * n) * e, c->T + (size_t)(i * b * n) * e,
                 c->tau + (size_t)(i * n) * e);
}

static void run_case(bench_case_t *c, double peak_rate)
{
    size_t e = gb10_dtype_size(c->dtype), matrix = (size_t)(c->n * c->n) * e;
    double mine[REPEATS], theirs[REPEATS];
    c->count = (int64_t)(1000000 / matrix) + 1;
    size_t bytes = matrix * (size_t)c->count;
    c->A = malloc(bytes);
    c->V = malloc(bytes);
    c->T = malloc(bytes);
    c->R = malloc(bytes);
    c->tau = malloc(bytes);
    c->work = malloc(64 * (size_t)c->n * e + 64);
    for (size_t i = 0; i < bytes / (e > 8 ? 8 : gb10_dtype_is_complex(c->dtype) ? 4 : e); i++) {
        double x = gb10_uniform(1, 0, i) - 0.5;
        if (c->dtype == GB10_D || c->dtype == GB10_Z)
            ((double *)(void *)c->A)[i] = x;
        else
            ((float *)(void *)c->A)[i] = (float)x;
    }
    int inner = 1;
    double t = now();
    ours(c);
    t = now() - t;
    while (inner * t < 0.01)
        inner *= 2;
    for (int r = 0; r < REPEATS; r++) {
        t = now();
        for (int i = 0; i < inner; i++)
            ours(c);
        mine[r] = (now() - t) / inner;
        t = now();
        for (int i = 0; i < inner; i++)
            peer(c);
        theirs[r] = (now() - t) / inner;
    }
    double flops = gb10_qr_flops(c->dtype, c->n, c->n) * (double)c->count * 1e-9;
    double a = flops / median(mine, REPEATS), p = flops / median(theirs, REPEATS);
    printf("| %c | %lld | %.2f | %.1f %% | %.2f | %.1f %% | %.2f |\n", gb10_dtype_letter(c->dtype),
           (long long)c->n, a, 100 * a / peak_rate, p, 100 * p / peak_rate, a / p);
    fflush(stdout);
    free(c->A);
    free(c->V);
    free(c->T);
    free(c->R);
    free(c->tau);
    free(c->work);
}

int main(int argc, char **argv)
{
    static const int64_t sizes[] = {4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 1024};
    const char *types = argc > 1 ? argv[1] : "dszc";
    int64_t largest = argc > 2 ? atoll(argv[2]) : 1024;
    gb10_error_t err = {0};
    bench_case_t c = {0};
    openblas_set_num_threads(1);
    if (gb10_create(&c.handle, "cpu", &err) != GB10_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    double rate[2] = {peak(0), peak(1)};
    printf("backend cpu (%s), one core; practical peak %.1f GF/s sgemm, %.1f GF/s dgemm\n\n",
           gb10_isa_name(c.handle), rate[0], rate[1]);
    printf("| type | n | fugu GF/s | share of peak | geqrf + larft GF/s | share | ratio |\n"
           "|---|---|---|---|---|---|---|\n");
    for (const char *t = types; *t; t++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes && sizes[i] <= largest; i++) {
            c.dtype = (gb10_dtype_t)(strchr("sdcz", *t) - "sdcz");
            c.n = sizes[i];
            run_case(&c, rate[c.dtype == GB10_D || c.dtype == GB10_Z]);
        }
    gb10_destroy(c.handle);
    return 0;
}
