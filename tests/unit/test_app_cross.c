/* The ScaLAPACK comparison on right and wrong factors, and the sign and unpack helpers. */
#include "tests/support/test.h"

#include <math.h>
#include <string.h>

#include "app/factors.h"
#include "app/qr.h"
#include "app/sign.h"
#include "kernels/core/alloc.h"
#include "kernels/core/family.h"

enum { M = 40, N = 24, NB = 8, K = N };

typedef struct fixture {
    double A[M * N], V[M * K], T[NB * K], R[K * N], tau[K], packed[M * N];
} fixture_t;

static void make(fixture_t *f, const char *family, const char *backend)
{
    gb10_error_t err = {0};
    gb10_handle_t *handle;
    gb10_family_args_t args = {.dtype = GB10_D, .m = M, .n = N, .seed = 5, .cond = 1e6};
    cr_assert_eq(gb10_family_fill(gb10_family_find(family), &args, f->A, &err), GB10_OK);
    cr_assert_eq(gb10_create(&handle, backend, &err), GB10_OK, "%s", err.message);
    gb10_view_t A = gb10_view_rows(GB10_D, f->A, M, N, 1),
                V = gb10_view_rows(GB10_D, f->V, M, K, 1);
    gb10_view_t T = gb10_view_rows(GB10_D, f->T, NB, K, 1),
                R = gb10_view_rows(GB10_D, f->R, K, N, 1);
    gb10_view_t tau = gb10_view_rows(GB10_D, f->tau, K, 1, 1);
    gb10_view_t packed = gb10_view_rows(GB10_D, f->packed, M, N, 1);
    gb10_geqrf_args_t call = {
        .A = &A, .V = &V, .T = &T, .R = &R, .tau = &tau, .packed = &packed, .nb = NB};
    cr_assert_eq(gb10_geqrf(handle, &call), GB10_OK, "%s", gb10_last_error(handle)->message);
    gb10_destroy(handle);
}

static bool agrees(const fixture_t *f, const fixture_t *other, char *reason)
{
    const void *ours[FACTORS] = {f->V, f->T, f->R, f->tau};
    gb10_error_t err = {0};
    bool agree = false;
    cr_assert_eq(cross_compare(GB10_D, M, N, NB, f->A, ours, other->packed, other->tau, &agree,
                               reason, &err),
                 GB10_OK, "%s", err.message);
    return agree;
}

Test(cross, accepts_two_good_factorisations)
{
    static const char *const families[] = {"gaussian",    "graded-down", "near-rank-deficient",
                                           "vandermonde", "zero",        "rank-one"};
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        fixture_t a, b;
        char reason[160];
        make(&a, families[i], "cpu");
        make(&b, families[i], "cpu-ref");
        cr_expect(agrees(&a, &b, reason), "%s: %s", families[i], reason);
    }
}

Test(cross, catches_a_changed_column_of_r)
{
    fixture_t a, b;
    char reason[160];
    make(&b, "gaussian", "cpu-ref");
    for (int j = 0; j < N; j++) {
        make(&a, "gaussian", "cpu");
        for (int i = 0; i <= j; i++)
            a.R[i * N + j] *= 1 + 0x1p-40;
        cr_expect(!agrees(&a, &b, reason), "column %d", j);
    }
    make(&a, "gaussian", "cpu");
    a.R[0] = NAN;
    cr_expect(!agrees(&a, &b, reason));
    make(&a, "gaussian", "cpu");
    b.packed[3 * N + 7] *= 1 + 0x1p-40;
    cr_expect(!agrees(&a, &b, reason));
}

Test(sign, positive_diagonal_and_back)
{
    fixture_t f;
    double before[K * N];
    int8_t sign[K];
    uint8_t info = GB10_INFO_OK;
    make(&f, "gaussian", "cpu");
    memcpy(before, f.R, sizeof before);
    gb10_view_t R = gb10_view_rows(GB10_D, f.R, K, N, 1);
    sign_make_positive(&R, &info, sign);
    int flipped = 0;
    for (int i = 0; i < K; i++) {
        cr_assert(f.R[i * N + i] >= 0);
        cr_assert(sign[i] == 1 || sign[i] == -1);
        flipped += sign[i] < 0;
    }
    cr_assert(flipped > 0);
    sign_undo(&R, sign);
    for (int i = 0; i < K; i++)
        cr_assert(memcmp(&f.R[i * N + i], &before[i * N + i], (N - i) * sizeof(double)) == 0);
    info = GB10_INFO_NONFINITE;
    sign_make_positive(&R, &info, sign);
    cr_assert_eq(sign[0], 0);
}

Test(factors, unpack_gives_v_and_r)
{
    fixture_t f;
    double V[M * K], R[K * N];
    make(&f, "gaussian", "cpu");
    factors_unpack(GB10_D, M, N, 1, f.packed, V, R);
    cr_assert(memcmp(V, f.V, sizeof V) == 0);
    cr_assert(memcmp(R, f.R, sizeof R) == 0);
}
