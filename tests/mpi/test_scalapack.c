/* ranks: 1 2 3 4 6
 * One matrix over all ranks: the packed factors pass the same gates as ours. */
#include "tests/support/test.h"

#include "app/factors.h"
#include "app/qr.h"
#include "kernels/core/alloc.h"
#include "kernels/core/family.h"
#include "mpi/dist.h"

enum { NB = 16 };

static void check_shape(const dist_team_t *team, gb10_dtype_t dtype, int64_t m, int64_t n,
                        int64_t block)
{
    gb10_error_t err = {0};
    int64_t k = m < n ? m : n;
    size_t e = gb10_dtype_size(dtype);
    char *A = NULL, *packed = NULL, *tau = NULL, *ours[FACTORS] = {0};
    cr_assert_eq(gb10_alloc(&A, (size_t)(m * n), e, "A", &err), GB10_OK);
    cr_assert_eq(gb10_alloc(&packed, (size_t)(m * n), e, "packed", &err), GB10_OK);
    cr_assert_eq(gb10_alloc(&tau, (size_t)k, e, "tau", &err), GB10_OK);
    gb10_family_args_t args = {.dtype = dtype, .m = m, .n = n, .seed = 3};
    cr_assert_eq(gb10_family_fill(gb10_family_find("gaussian"), &args, A, &err), GB10_OK);
    cr_assert_eq(dist_scalapack_geqrf(team, dtype, m, n, block, team->rank == 0 ? A : NULL,
                                      team->rank == 0 ? packed : NULL, team->rank == 0 ? tau : NULL,
                                      &err),
                 GB10_OK, "%s", err.message);
    if (team->rank == 0) {
        gb10_handle_t *handle;
        gb10_view_t a = gb10_view_rows(dtype, A, m, n, 1), f[FACTORS];
        bool agree = false;
        char reason[160] = "";
        for (int i = 0; i < FACTORS; i++)
            cr_assert_eq(
                gb10_alloc(&ours[i], (size_t)factors_bytes(dtype, m, n, NB, i), 1, "f", &err),
                GB10_OK);
        factors_views(dtype, m, n, NB, 1, (const void *const *)ours, f);
        cr_assert_eq(gb10_create(&handle, "cpu", &err), GB10_OK);
        gb10_geqrf_args_t call = {.A = &a,
                                  .V = &f[FACTOR_V],
                                  .T = &f[FACTOR_T],
                                  .R = &f[FACTOR_R],
                                  .tau = &f[FACTOR_TAU],
                                  .nb = NB};
        cr_assert_eq(gb10_geqrf(handle, &call), GB10_OK);
        cr_assert_eq(cross_compare(dtype, m, n, NB, A, (const void *const *)ours, packed, tau,
                                   &agree, reason, &err),
                     GB10_OK, "%s", err.message);
        cr_expect(agree, "%c %lldx%lld block %lld on %d ranks: %s", gb10_dtype_letter(dtype),
                  (long long)m, (long long)n, (long long)block, team->size, reason);
        gb10_destroy(handle);
    }
    for (int i = 0; i < FACTORS; i++)
        gb10_free(ours[i]);
    gb10_free(A);
    gb10_free(packed);
    gb10_free(tau);
}

Test(scalapack, factors_pass_our_gates)
{
    static const int64_t shape[][3] = {{1, 1, 1},   {7, 1, 1},   {1, 7, 1},    {40, 40, 3},
                                       {65, 30, 8}, {30, 65, 8}, {100, 80, 32}};
    dist_team_t team;
    gb10_error_t err = {0};
    if (dist_scalapack_reason())
        cr_skip_test("ScaLAPACK is %s", dist_scalapack_reason());
    cr_assert_eq(dist_start(&team, true, &err), GB10_OK, "%s", err.message);
    for (int t = 0; t < GB10_DTYPES; t++)
        for (size_t i = 0; i < sizeof shape / sizeof *shape; i++)
            check_shape(&team, (gb10_dtype_t)t, shape[i][0], shape[i][1], shape[i][2]);
    dist_stop(&team);
}
