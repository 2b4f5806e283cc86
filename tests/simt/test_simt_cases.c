/* The small kernels give what a loop on the host gives, in every schedule, and did what they claim
 * to have done (counters). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simt/simt_cases.h"
#include "tests/simt/simt_each.h"
#include "tests/support/test.h"

static gb10_error_t err;

/* The report of a failed launch is the message. */
#define GOOD(call)                                                                                 \
    do {                                                                                           \
        memset(&err, 0, sizeof err);                                                               \
        gb10_status_t status_ = (call);                                                            \
        cr_assert(status_ == GB10_OK, "%s", simt_report());                                        \
    } while (0)
#define RAN(counter) cr_expect_gt(simt_counters()->counter, 0, "nothing counted")

/* Small integers: every order of a sum is exact. The period divides no tile: tiles that take each
 * other's place must differ. */
static float small(int i)
{
    return (float)((i * 37 + 11) % 61 - 20);
}

static float *floats(int n)
{
    float *x = aligned_alloc(64, ((size_t)n * sizeof *x + 63) / 64 * 64);
    cr_assert(x);
    for (int i = 0; i < n; i++)
        x[i] = small(i);
    return x;
}

Test(cases, shuffle)
{
    enum { N = 9 };
    float f[2 * 64 * N], of[2 * N];
    double d[2 * 64 * N], od[2 * N];
    long long q[64 * N], oq[N];
    for (int i = 0; i < 2 * 64 * N; i++)
        f[i] = small(i), d[i] = small(i), q[i / 2] = small(i / 2);
    EACH_RUN(run)
    for (int which = 0; which < 5; which++) {
        const int parts = which == 2 || which == 3 ? 2 : 1;
        const int single = which % 2 == 0; /* float: 0 and 2 */
        case_args_t a = {.x = which == 4 ? (void *)q
                              : single   ? (void *)f
                                         : (void *)d,
                         .out = which == 4 ? (void *)oq
                                : single   ? (void *)of
                                           : (void *)od,
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
}

Test(cases, prefix)
{
    enum { N = 1000 };
    float *x = floats(N), out[N], sum;
    EACH_RUN(run)
    {
        unsigned positive, expected = 0;
        case_args_t a = {.x = x, .out = out, .words = &positive, .n = N};
        GOOD(case_prefix(&a, &err));
        sum = 0;
        for (int i = 0; i < N; i++) {
            sum += x[i];
            expected += x[i] > 0;
            cr_assert_eq(out[i], sum, "%d: %g, not %g", i, (double)out[i], (double)sum);
        }
        cr_assert_eq(positive, expected);
        cr_assert_eq(simt_counters()->global_read, N * sizeof(float));
        cr_assert_eq(simt_counters()->global_written, (N + 1) * sizeof(float));
        RAN(block_barriers);
    }
    free(x);
}

Test(cases, cluster)
{
    enum { N = 2000 };
    float *x = floats(N);
    EACH_RUN(run)
    {
        float out[8], sum[2] = {0};
        case_args_t a = {.x = x, .out = out, .n = N};
        GOOD(case_cluster_sum(&a, &err));
        for (int i = 0; i < N; i++)
            sum[i / 64 % 8 / 4] += x[i];
        for (int b = 0; b < 8; b++)
            cr_assert_eq(out[b], sum[b / 4], "block %d: %g", b, (double)out[b]);
        unsigned words[64];
        a = (case_args_t){.words = words};
        GOOD(case_cluster_split(&a, &err));
        for (unsigned i = 0; i < 64; i++) {
            unsigned block = i / 4 % 8 / 4 * 4 + i % 4, row = i / 32;
            cr_assert_eq(words[i], block + 10 * row, "%u: %u", i, words[i]);
        }
        cr_assert_eq(simt_counters()->cluster_barriers, 2 * 2 + 4 * 2);
    }
    free(x);
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
        cr_assert_eq(simt_counters()->bulk_copies, 2 * N / 256);
        cr_assert_eq(simt_counters()->global_read, N * sizeof(float));
        RAN(mbar_waits);
        RAN(proxy_fences);
    }
    free(x);
    free(out);
}

Test(cases, ring)
{
    enum { ROUNDS = 9 };
    float *x = floats(256);
    EACH_RUN(run)
    {
        float out[256];
        case_args_t a = {.x = x, .out = out, .n = ROUNDS};
        GOOD(case_ring(&a, &err));
        for (int i = 0; i < 256; i++) {
            float v = x[((i / 64 + 4 * ROUNDS - ROUNDS) % 4) * 64 + i % 64];
            for (int r = 0; r < ROUNDS; r++)
                v += (float)((i / 64 + 4 * ROUNDS - r) % 4);
            cr_assert_eq(out[i], v, "%d: %g, not %g", i, (double)out[i], (double)v);
        }
        cr_assert_eq(simt_counters()->bulk_copies, 4 * ROUNDS);
        cr_assert_eq(simt_counters()->mbar_arrivals, 2 * 4 * ROUNDS);
    }
    free(x);
}

Test(cases, queue)
{
    enum { N = 40 };
    float *x = floats(N);
    EACH_RUN(run)
    {
        float out[N], sum = 0;
        unsigned words[N + 1] = {0};
        case_args_t a = {.x = x, .out = out, .words = words, .n = N};
        GOOD(case_queue(&a, &err));
        for (int i = 0; i < N; i++) {
            sum += x[i];
            cr_assert_eq(out[i], sum, "%d: %g, not %g", i, (double)out[i], (double)sum);
        }
        cr_assert_eq(words[0], N + 6, "each of 6 blocks finds the queue empty once");
    }
    free(x);
}

Test(cases, lock)
{
    EACH_RUN(run)
    {
        float out = 0;
        _Alignas(8) unsigned words[10] = {0, 0, 0, 100};
        case_args_t a = {.out = &out, .words = words, .n = 2};
        GOOD(case_lock(&a, &err));
        cr_assert_eq(out, 2 * 256);
        cr_assert(words[2] == 63 && words[3] == 0 && words[4] == 15 && words[5] == 1 &&
                  words[8] == 7);
        double half;
        memcpy(&half, &words[6], sizeof half);
        cr_assert_eq(half, 128);
    }
}

/* Operands with few bits: exact in every format, and so is the sum. */
Test(cases, mma)
{
    static const int depth[5] = {8, 16, 32, 32, 4};
    EACH_RUN(run)
    for (int which = 0; which < 5; which++) {
        const int k = depth[which], rows = which == 4 ? 8 : 16;
        float x[512], y[256], z[128], out[128];
        double dx[512], dy[256], dz[128], dout[128];
        int ix[512], iy[256], iz[128], iout[128];
        for (int i = 0; i < 512; i++)
            x[i] = (float)(ix[i] = (i * 29 + 3) % 15 - 7), dx[i] = x[i];
        for (int i = 0; i < 256; i++)
            y[i] = (float)(iy[i] = (i * 17 + 5) % 13 - 6), dy[i] = y[i];
        for (int i = 0; i < 128; i++)
            z[i] = (float)(iz[i] = i * 7 % 101), dz[i] = z[i];
        case_args_t a = {.x = x, .y = y, .z = z, .out = out, .which = which};
        if (which == 2)
            a = (case_args_t){.x = ix, .y = iy, .z = iz, .out = iout, .which = which};
        if (which == 4)
            a = (case_args_t){.x = dx, .y = dy, .z = dz, .out = dout, .which = which};
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
}

Test(cases, ldmatrix)
{
    enum { N = 3 };
    _Alignas(16) uint16_t x[N][16][16], out[N][16][16];
    for (int i = 0; i < N * 256; i++)
        x[i / 256][i / 16 % 16][i % 16] = (uint16_t)(i * 40503);
    EACH_RUN(run)
    for (int which = 0; which < 2; which++) {
        case_args_t a = {.x = x, .out = out, .n = N, .which = which};
        GOOD(case_ldmatrix(&a, &err));
        for (int i = 0; i < N * 256; i++) {
            int m = i / 256, r = i / 16 % 16, c = i % 16;
            cr_assert_eq(out[m][r][c], which ? x[m][c][r] : x[m][r][c], "%d %d %d %d", which, m, r,
                         c);
        }
        RAN(ldmatrix);
    }
}

Test(cases, cp_async)
{
    enum { N = 5, PITCH = 132 };
    float *x = floats(N * PITCH), out[N * 128];
    EACH_RUN(run)
    {
        case_args_t a = {.x = x, .out = out, .n = N};
        GOOD(case_cp_async(&a, &err));
        for (int i = 0; i < N * 128; i++) {
            const float *v = &x[i / 128 * PITCH + i % 128];
            cr_assert_eq(out[i], v[0] + v[1], "%d: %g", i, (double)out[i]);
        }
        cr_assert_eq(simt_counters()->cp_async, 33 * N);
    }
    free(x);
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
        cr_assert_eq(simt_counters()->tensor_copies, 2 * 9);
    }
    free(x);
    free(out);
}

Test(cases, tensor_map_3d)
{
    enum { X = 32, Y = 7, Z = 5 };
    _Alignas(16) unsigned char x[X * Y * Z], out[X * Y * Z];
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
        memset(out, 0, sizeof out);
        GOOD(case_tensor_3d(&a, &err));
        cr_assert(memcmp(x, out, sizeof x) == 0);
    }
    t.pitch[1] = 8;
    cr_assert(simt_tensor_map(&a.map_in, &t, NULL) == GB10_ERR_DEVICE, "a pitch of 8 bytes");
}

Test(cases, named_barriers)
{
    enum { N = 6 * 32 };
    float *x = floats(N), out[N];
    EACH_RUN(run)
    {
        case_args_t a = {.x = x, .out = out, .n = N / 32};
        GOOD(case_named(&a, &err));
        for (int i = 0; i < N; i++)
            cr_assert_eq(out[i], 3 * x[i], "%d: %g", i, (double)out[i]);
        cr_assert_eq(simt_counters()->named_barriers, 2 * 6 - 1);
    }
    free(x);
}
