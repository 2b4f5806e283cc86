/* The rank-k update against a BLAS called in a loop: csyrk, zsyrk, cherk, zherk over n, k, op and
 * the place of the batch, measured in turn on one thread by processor time, medians. Also says how
 * far the two results are apart.
 * Usage: syrk_bench [LIBRARY]   (default libopenblas.so.0; "quick" as second argument: few cases)
 */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/core/rng.h"
#include "kernels/core/view.h"
#include "kernels/gb10.h"

enum { ROUNDS = 7, CACHE = 256 << 10, STREAM = 64 << 20 };
static const double TARGET = 5e-3; /* seconds of one measurement */

typedef void syrk_fn(const char *uplo, const char *trans, const int *n, const int *k,
                     const void *alpha, const void *A, const int *lda, const void *beta, void *C,
                     const int *ldc, size_t uplo_length, size_t trans_length);

typedef struct bench_case {
    gb10_dtype_t dtype;
    int hermitian, n, k;
    char trans;
    int64_t count;
} bench_case_t;

typedef struct bench {
    void *library;
    gb10_handle_t *handle;
    char *A, *C, *D; /* D: the peer's C */
} bench_t;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int ascending(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static double median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, ascending);
    return x[n / 2];
}

static int ours(const bench_t *b, const bench_case_t *c, int64_t first, int64_t count)
{
    const int rows = c->trans == 'N' ? c->n : c->k, cols = c->trans == 'N' ? c->k : c->n;
    gb10_view_t A = gb10_view_cols(c->dtype, b->A, rows, cols, rows, c->count);
    gb10_view_t C = gb10_view_cols(c->dtype, b->C, c->n, c->n, c->n, c->count);
    A = gb10_view_part(&A, first, count);
    C = gb10_view_part(&C, first, count);
    const gb10_syrk_args_t args = {.A = &A,
                                   .C = &C,
                                   .alpha = {1, 0},
                                   .uplo = 'L',
                                   .trans = c->trans,
                                   .hermitian = c->hermitian};
    return gb10_syrk(b->handle, &args) == GB10_OK;
}

static int theirs(const bench_t *b, const bench_case_t *c, int64_t first, int64_t count)
{
    static const float one_f[2] = {1, 0}, zero_f[2];
    static const double one_d[2] = {1, 0}, zero_d[2];
    const int wide = c->dtype == GB10_Z, lda = c->trans == 'N' ? c->n : c->k;
    const size_t size = gb10_dtype_size(c->dtype);
    char name[16], op[2] = {c->trans, 0};
    snprintf(name, sizeof name, "%c%s_", wide ? 'z' : 'c', c->hermitian ? "herk" : "syrk");
    syrk_fn *run = (syrk_fn *)dlsym(b->library, name);
    for (int64_t i = first; run && i < first + count; i++)
        run("L", op, &c->n, &c->k, wide ? (const void *)one_d : one_f,
            b->A + (size_t)i * (size_t)c->n * (size_t)c->k * size, &lda,
            wide ? (const void *)zero_d : zero_f,
            b->D + (size_t)i * (size_t)c->n * (size_t)c->n * size, &c->n, 1, 1);
    return run != NULL;
}

typedef int run_fn(const bench_t *b, const bench_case_t *c, int64_t first, int64_t count);

/* Seconds of `matrices` matrices, the batch again and again. */
static double measure(run_fn *run, const bench_t *b, const bench_case_t *c, int64_t matrices)
{
    const double start = now();
    for (int64_t left = matrices; left > 0; left -= c->count)
        if (!run(b, c, 0, left < c->count ? left : c->count))
            return (double)NAN;
    return now() - start;
}

/* The largest difference in the triangles, over the largest number. */
static double difference(const bench_t *b, const bench_case_t *c)
{
    const int64_t n = c->n, numbers = 2 * n * n * c->count;
    double far = 0, top = 0;
    for (int64_t e = 0; e < numbers; e++) {
        if (e / 2 % n < e / 2 / n % n)
            continue;
        const double x = gb10_number_at(c->dtype, b->C, e), y = gb10_number_at(c->dtype, b->D, e);
        const double d = fabs(x - y);
        far = d <= far ? far : d;
        top = fmax(top, fabs(y));
    }
    return far / top / gb10_dtype_u(c->dtype);
}

/* One row; the answer: how many times faster ours was. */
static double row(const bench_t *b, bench_case_t c, int place)
{
    const size_t size = gb10_dtype_size(c.dtype);
    const double bytes = (double)size * ((double)c.n * c.k + (double)c.n * c.n);
    const double flops = 4.0 * c.n * (c.n + 1.0) * c.k;
    double seconds[2][ROUNDS];
    c.count = (int64_t)((place ? STREAM : CACHE) / bytes);
    c.count = c.count < 1 ? 1 : c.count;
    run_fn *const both[2] = {ours, theirs};
    int64_t matrices = c.count < 16 ? 16 : c.count;
    const double first = measure(ours, b, &c, matrices) / (double)matrices;
    matrices = (int64_t)(TARGET / first) + 1;
    matrices = place && matrices < c.count ? c.count : matrices;
    for (int r = -1; r < ROUNDS; r++) /* the first round is not counted */
        for (int w = 0; w < 2; w++)
            seconds[w][r < 0 ? 0 : r] = measure(both[w], b, &c, matrices) / (double)matrices;
    const double mine = median(seconds[0], ROUNDS), other = median(seconds[1], ROUNDS);
    printf("%c %s %c %5d %5d %-6s %8lld %11.3f %8.2f %8.2f %6.2f %8.1f\n",
           c.dtype == GB10_Z ? 'z' : 'c', c.hermitian ? "herk" : "syrk", c.trans, c.n, c.k,
           place ? "memory" : "cache", (long long)c.count, mine * 1e6, flops / mine * 1e-9,
           flops / other * 1e-9, other / mine, difference(b, &c));
    fflush(stdout);
    return other / mine;
}

typedef struct tally {
    double ratio[512];
    int n;
} tally_t;

static void report(const char *what, tally_t *t)
{
    int slower = 0;
    for (int i = 0; i < t->n; i++)
        slower += t->ratio[i] < 1;
    if (t->n == 0)
        return;
    const double middle = median(t->ratio, t->n);
    printf("%-24s %3d rows: %5.2f at least, %5.2f in the middle; slower in %d\n", what, t->n,
           t->ratio[0], middle, slower);
}

int main(int argc, char **argv)
{
    static const int sizes[] = {4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 1024};
    static tally_t small, large;
    const char *name = argc > 1 ? argv[1] : "libopenblas.so.0";
    const int quick = argc > 2 && strcmp(argv[2], "quick") == 0;
    bench_t b = {0};
    gb10_error_t err = {0};
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
    b.library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!b.library || gb10_create(&b.handle, "cpu", &err) != GB10_OK) {
        fprintf(stderr, "syrk_bench: %s\n", b.library ? err.message : dlerror());
        return 1;
    }
    const size_t bytes = STREAM + (64 << 20); /* one matrix of 1024 with its A is larger */
    char **const arrays[] = {&b.A, &b.C, &b.D};
    for (int i = 0; i < 3; i++) {
        *arrays[i] = aligned_alloc(64, bytes);
        if (!*arrays[i])
            return 1;
        memset(*arrays[i], 0, bytes);
    }
    printf("fugu %s (%s) against %s, one thread, processor time\n", GB10_VERSION,
           gb10_isa_name(b.handle), name);
    printf("t what op    n     k place     batch   us/matrix     GF/s   theirs  ratio  apart/u\n");
    for (int dtype = GB10_C; dtype <= GB10_Z; dtype++) {
        for (size_t e = 0; e < bytes / (dtype == GB10_Z ? 8 : 4); e++) {
            const double x = gb10_uniform(1, 0, e % 65521) - 0.5;
            if (dtype == GB10_Z)
                ((double *)(void *)b.A)[e] = x;
            else
                ((float *)(void *)b.A)[e] = (float)x;
        }
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            for (int shape = 0; shape < 8; shape++) {
                const int n = sizes[i], tall = shape >> 1 & 3;
                bench_case_t c = {.dtype = (gb10_dtype_t)dtype, .n = n, .k = n, .trans = 'N'};
                c.trans = tall == 1 ? (char)'T' : (char)'N';
                c.k = tall == 2 ? 256 : tall == 3 ? 16 : n;
                c.hermitian = tall == 3;
                if ((quick && (shape > 1 || n > 64)) || (n > 256 && shape & 1))
                    continue;
                const double ratio = row(&b, c, shape & 1);
                tally_t *t = n <= 256 ? &small : &large;
                t->ratio[t->n++] = ratio;
            }
    }
    report("n and k to 256", &small);
    report("n = 1024", &large);
    gb10_destroy(b.handle);
    for (int i = 0; i < 3; i++)
        free(*arrays[i]);
    dlclose(b.library);
    return 0;
}
