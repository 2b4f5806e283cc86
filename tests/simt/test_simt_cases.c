/* The small kernels give what a loop on the host gives, in every schedule, and did what they claim
 * to have done (counters, on the CPU). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simt/simt_cases.h"
#include "tests/simt/simt_each.h"
#include "tests/simt/simt_memory.h"
#include "tests/support/test.h"

static gb10_error_t err;

/* Waits for the end. The report of a failed launch is the message. */
#define GOOD(call)                                                                                 \
    do {                                                                                           \
        memset(&err, 0, sizeof err);                                                               \
        gb10_status_t status_ = (call);                                                            \
        if (status_ == GB10_OK)                                                                    \
            status_ = simt_wait(&err);                                                             \
        cr_assert(status_ == GB10_OK, "%s", *simt_report() ? simt_report() : err.message);         \
    } while (0)
#define RAN(counter) cr_expect(simt_on_gpu() || simt_counters()->counter > 0, "nothing counted")
#define COUNTED(counter, number)                                                                   \
    cr_assert(simt_on_gpu() || simt_counters()->counter == (number), "%llu",                       \
              (unsigned long long)simt_counters()->counter)

/* Memory of the test that runs: what it leaves behind when it fails, the next one gives back. */
static struct {
    void *p;
    size_t bytes;
} taken[64];
static int takings;

static void *take(size_t bytes)
{
    void *p = simt_new(bytes);
    cr_assert(p && takings < (int)(sizeof taken / sizeof *taken), "no memory");
    taken[takings].p = p;
    taken[takings++].bytes = bytes;
    return p;
}

static void give_back(void)
{
    while (takings > 0)
        simt_free(taken[--takings].p);
}

/* Poison again, so that no result is an earlier launch's. */
static void *spoil(void *p)
{
    for (int i = 0; i < takings; i++)
        if (taken[i].p == p)
            memset(p, 0xa5, taken[i].bytes);
    return p;
}

/* Small integers: every order of a sum is exact. The period divides no tile: tiles that take each
 * other's place must differ. */
static float small(int i)
{
    return (float)((i * 37 + 11) % 61 - 20);
}

static float *floats(int n)
{
    float *x = take((size_t)n * sizeof *x);
    for (int i = 0; i < n; i++)
        x[i] = small(i);
    return x;
}

Test(cases, shuffle)
{
    enum { N = 9 };
    float *f = take(2 * 64 * N * sizeof *f), *of = take(2 * N * sizeof *of);
    double *d = take(2 * 64 * N * sizeof *d), *od = take(2 * N * sizeof *od);
    long long *q = take(64 * N * sizeof *q), *oq = take(N * sizeof *oq);
    for (int i = 0; i < 2 * 64 * N; i++)
        f[i] = small(i), d[i] = small(i), q[i / 2] = small(i / 2);
    EACH_RUN(run)
    for (int which = 0; which < 5; which++) {
        const int parts = which == 2 || which == 3 ? 2 : 1;
        const int single = which % 2 == 0; /* float: 0 and 2 */
        case_args_t a = {.x = which == 4 ? (void *)q
                              : single   ? (void *)f
                                         : (void *)d,
                         .out = spoil(which == 4 ? (void *)oq
                                      : single   ? (void *)of
                                                 : (void *)od),
                         .n = N,
                         .which = which};
        GOOD(case_shuffle(&a, &err));
        for (int i = 0; i < N * parts; i++) {
            double sum = 0, got = which == 4 ? (double)oq[i] : single ? of[i] : od[i];
            for (int j = 0; j < 64; j++)
                sum += small((i / parts * 64 + j) * parts + i % parts);
            cr_assert_eq(sum, got, "type %d item %d: %g, not %g", which, i, got, sum);
        }
        RAN(shuffles);
        RAN(votes);
    }
    give_back();
}

Test(cases, prefix)
{
    enum { N = 1000 };
    float *x = floats(N), *out = take(N * sizeof *out), sum;
    unsigned *positive = take(sizeof *positive);
    EACH_RUN(run)
    {
        unsigned expected = 0;
        case_args_t a = {.x = x, .out = spoil(out), .words = spoil(positive), .n = N};
        GOOD(case_prefix(&a, &err));
        sum = 0;
        for (int i = 0; i < N; i++) {
            sum += x[i];
            expected += x[i] > 0;
            cr_assert_eq(out[i], sum, "%d: %g, not %g", i, (double)out[i], (double)sum);
        }
        cr_assert_eq(*positive, expected);
        COUNTED(global_read, N * sizeof(float));
        COUNTED(global_written, (N + 1) * sizeof(float));
        RAN(block_barriers);
    }
    give_back();
}

Test(cases, cluster)
{
    enum { N = 2000 };
    float *x = floats(N), *out = take(8 * sizeof *out);
    unsigned *words = take(64 * sizeof *words);
    EACH_RUN(run)
    {
        float sum[2] = {0};
        case_args_t a = {.x = x, .out = spoil(out), .n = N};
        GOOD(case_cluster_sum(&a, &err));
        for (int i = 0; i < N; i++)
            sum[i / 64 % 8 / 4] += x[i];
        for (int b = 0; b < 8; b++)
            cr_assert_eq(out[b], sum[b / 4], "block %d: %g", b, (double)out[b]);
        a = (case_args_t){.words = spoil(words)};
        GOOD(case_cluster_split(&a, &err));
        for (unsigned i = 0; i < 64; i++) {
            unsigned block = i / 4 % 8 / 4 * 4 + i % 4, row = i / 32;
            cr_assert_eq(words[i], block + 10 * row, "%u: %u", i, words[i]);
        }
        COUNTED(cluster_barriers, 2 * 2 + 4 * 2);
    }
    give_back();
}

Test(cases, pipeline)
{
    enum { N = 7 * 256 };
    float *x = floats(N), *out = floats(N);
    EACH_RUN(run)
    {
        memset(out, 0, N * sizeof *out);
        case_args_t a = {.x = x, .out = out, .n = N / 256};
        GOOD(case_pipeline(&a, &err));
        for (int i = 0; i < N; i++)
            cr_assert_eq(out[i], 2 * x[i] + 1, "%d: %g", i, (double)out[i]);
        COUNTED(bulk_copies, 2 * N / 256);
        COUNTED(global_read, N * sizeof(float));
        RAN(mbar_waits);
        RAN(proxy_fences);
    }
    give_back();
}

Test(cases, ring)
{
    enum { ROUNDS = 9 };
    float *x = floats(256), *out = take(256 * sizeof *out);
    EACH_RUN(run)
    {
        case_args_t a = {.x = x, .out = spoil(out), .n = ROUNDS};
        GOOD(case_ring(&a, &err));
        for (int i = 0; i < 256; i++) {
            float v = x[((i / 64 + 4 * ROUNDS - ROUNDS) % 4) * 64 + i % 64];
            for (int r = 0; r < ROUNDS; r++)
                v += (float)((i / 64 + 4 * ROUNDS - r) % 4);
            cr_assert_eq(out[i], v, "%d: %g, not %g", i, (double)out[i], (double)v);
        }
        COUNTED(bulk_copies, 4 * ROUNDS);
        COUNTED(mbar_arrivals, 2 * 4 * ROUNDS);
    }
    give_back();
}

Test(cases, queue)
{
    enum { N = 40 };
    float *x = floats(N), *out = take(N * sizeof *out);
    unsigned *words = take((N + 1) * sizeof *words);
    EACH_RUN(run)
    {
        float sum = 0;
        memset(words, 0, (N + 1) * sizeof *words);
        case_args_t a = {.x = x, .out = spoil(out), .words = words, .n = N};
        GOOD(case_queue(&a, &err));
        for (int i = 0; i < N; i++) {
            sum += x[i];
            cr_assert_eq(out[i], sum, "%d: %g, not %g", i, (double)out[i], (double)sum);
        }
        cr_assert_eq(words[0], N + 6, "each of 6 blocks finds the queue empty once");
    }
    give_back();
}

Test(cases, lock)
{
    float *out = take(sizeof *out);
    unsigned *words = take(10 * sizeof *words);
    EACH_RUN(run)
    {
        *out = 0;
        memset(words, 0, 10 * sizeof *words);
        words[3] = 100;
        case_args_t a = {.out = out, .words = words, .n = 2};
        GOOD(case_lock(&a, &err));
        cr_assert_eq(*out, 2 * 256);
        cr_assert(words[2] == 63 && words[3] == 0 && words[4] == 15 && words[5] == 1 &&
                  words[8] == 7);
        double half;
        memcpy(&half, &words[6], sizeof half);
        cr_assert_eq(half, 128);
    }
    give_back();
}

/* Operands with few bits: exact in every format, and so is the sum. */
Test(cases, mma)
{
    static const int depth[5] = {8, 16, 32, 32, 4};
    float *x = floats(512), *y = floats(256), *z = floats(128), *out = floats(128);
    double *dx = take(512 * sizeof *dx), *dy = take(256 * sizeof *dy);
    double *dz = take(128 * sizeof *dz), *dout = take(128 * sizeof *dout);
    int *ix = take(512 * sizeof *ix), *iy = take(256 * sizeof *iy);
    int *iz = take(128 * sizeof *iz), *iout = take(128 * sizeof *iout);
    EACH_RUN(run)
    for (int which = 0; which < 5; which++) {
        const int k = depth[which], rows = which == 4 ? 8 : 16;
        for (int i = 0; i < 512; i++)
            x[i] = (float)(ix[i] = (i * 29 + 3) % 15 - 7), dx[i] = x[i];
        for (int i = 0; i < 256; i++)
            y[i] = (float)(iy[i] = (i * 17 + 5) % 13 - 6), dy[i] = y[i];
        for (int i = 0; i < 128; i++)
            z[i] = (float)(iz[i] = i * 7 % 101), dz[i] = z[i];
        case_args_t a = {.x = x, .y = y, .z = z, .out = spoil(out), .which = which};
        if (which == 2)
            a = (case_args_t){.x = ix, .y = iy, .z = iz, .out = spoil(iout), .which = which};
        if (which == 4)
            a = (case_args_t){.x = dx, .y = dy, .z = dz, .out = spoil(dout), .which = which};
        GOOD(case_mma(&a, &err));
        for (int i = 0; i < rows * 8; i++) {
            double sum = dz[i], got = which == 2 ? iout[i] : which == 4 ? dout[i] : (double)out[i];
            for (int j = 0; j < k; j++)
                sum += dx[i / 8 * k + j] * dy[j * 8 + i % 8];
            cr_assert_eq(got, sum, "kind %d row %d column %d: %g, not %g", which, i / 8, i % 8, got,
                         sum);
        }
        RAN(mma);
    }
    give_back();
}

Test(cases, ldmatrix)
{
    enum { N = 3 };
    uint16_t(*x)[16][16] = take(N * sizeof *x), (*out)[16][16] = take(N * sizeof *out);
    for (int i = 0; i < N * 256; i++)
        x[i / 256][i / 16 % 16][i % 16] = (uint16_t)(i * 40503);
    EACH_RUN(run)
    for (int which = 0; which < 2; which++) {
        case_args_t a = {.x = x, .out = spoil(out), .n = N, .which = which};
        GOOD(case_ldmatrix(&a, &err));
        for (int i = 0; i < N * 256; i++) {
            int m = i / 256, r = i / 16 % 16, c = i % 16;
            cr_assert_eq(out[m][r][c], which ? x[m][c][r] : x[m][r][c], "%d %d %d %d", which, m, r,
                         c);
        }
        RAN(ldmatrix);
    }
    give_back();
}

Test(cases, cp_async)
{
    enum { N = 5, PITCH = 132 };
    float *x = floats(N * PITCH), *out = take(N * 128 * sizeof *out);
    EACH_RUN(run)
    {
        case_args_t a = {.x = x, .out = spoil(out), .n = N};
        GOOD(case_cp_async(&a, &err));
        for (int i = 0; i < N * 128; i++) {
            const float *v = &x[i / 128 * PITCH + i % 128];
            cr_assert_eq(out[i], v[0] + v[1], "%d: %g", i, (double)out[i]);
        }
        COUNTED(cp_async, 33 * N);
    }
    give_back();
}

Test(cases, tensor_map)
{
    enum { W = 76, H = 20 }; /* 3 x 3 tiles of 32 x 8 from (-4, -2): over every edge */
    float *x = floats(W * H), *out = floats(W * H);
    case_args_t a = {.n = 3, .which = 3};
    simt_tensor_t t = {.base = x, .element = 4, .rank = 2, .size = {W, H}, .box = {32, 8}};
    t.pitch[0] = W * sizeof(float);
    t.swizzle = 128;
    GOOD(simt_tensor_map(&a.map_in, &t, &err));
    t.base = out;
    t.swizzle = 0;
    GOOD(simt_tensor_map(&a.map_out, &t, &err));
    EACH_RUN(run)
    {
        memset(out, 0, W * H * sizeof *out);
        GOOD(case_tensor(&a, &err));
        for (int i = 0; i < W * H; i++)
            cr_assert_eq(out[i], x[i] + 1, "%d, %d: %g", i / W, i % W, (double)out[i]);
        COUNTED(tensor_copies, 2 * 9);
    }
    give_back();
}

Test(cases, tensor_map_3d)
{
    enum { X = 32, Y = 7, Z = 5 };
    unsigned char *x = take(X * Y * Z), *out = take(X * Y * Z);
    for (int i = 0; i < X * Y * Z; i++)
        x[i] = (unsigned char)(i * 31);
    case_args_t a = {.n = Z};
    simt_tensor_t t = {.base = x, .element = 1, .rank = 3, .size = {X, Y, Z}, .box = {16, 4, 2}};
    t.pitch[0] = X, t.pitch[1] = X * Y;
    GOOD(simt_tensor_map(&a.map_in, &t, &err));
    t.base = out;
    GOOD(simt_tensor_map(&a.map_out, &t, &err));
    EACH_RUN(run)
    {
        memset(out, 0, X * Y * Z);
        GOOD(case_tensor_3d(&a, &err));
        cr_assert(memcmp(x, out, X * Y * Z) == 0);
    }
    t.pitch[1] = 8;
    cr_assert(simt_tensor_map(&a.map_in, &t, NULL) == GB10_ERR_DEVICE, "a pitch of 8 bytes");
    give_back();
}

Test(cases, named_barriers)
{
    enum { N = 6 * 32 };
    float *x = floats(N), *out = take(N * sizeof *out);
    EACH_RUN(run)
    {
        case_args_t a = {.x = x, .out = spoil(out), .n = N / 32};
        GOOD(case_named(&a, &err));
        for (int i = 0; i < N; i++)
            cr_assert_eq(out[i], 3 * x[i], "%d: %g", i, (double)out[i]);
        COUNTED(named_barriers, 2 * 6 - 1);
    }
    give_back();
}
