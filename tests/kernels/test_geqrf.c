/* geqrf of every backend against the gates: families x types x shapes, layouts, equal bits. */
#include <math.h>

#include "tests/support/batch.h"
#include "tests/support/test.h"

/* Factors and judges one batch; every matrix must have the info that its family promises. */
static void run(gb10_handle_t *handle, const char *backend, const char *family, batch_shape_t shape,
                int64_t first)
{
    if (batch_skips(shape.m, shape.n))
        return;
    batch_t *t = batch_new(shape);
    batch_fill(t, family, batch_seed(), first, 0);
    gb10_info_t expected =
        gb10_family_info(gb10_family_find(family), shape.dtype, shape.m, shape.n);
    gb10_status_t status = batch_geqrf(t, handle);
    cr_expect(status == GB10_OK, "%s: %s: %s", backend, t->text, gb10_last_error(handle)->message);
    const char *damage = batch_damage(t);
    cr_expect(!damage, "%s: %s: wrote to %s", backend, t->text, damage);
    for (int64_t b = 0; b < shape.count; b++)
        cr_expect(t->info[b] == expected, "%s: %s: matrix %d has info %d, not %d", backend, t->text,
                  (int)b, t->info[b], (int)expected);
    status = batch_check(t, handle, GB10_CHECK_FULL);
    cr_expect(status == GB10_OK, "%s: %s: %s", backend, t->text, gb10_last_error(handle)->message);
    for (int64_t b = 0; b < shape.count; b++) {
        const double *x = t->metrics + b * GB10_METRICS;
        cr_expect(!t->failed[b],
                  "%s: %s: matrix %d missed %s (backward %g, column %g, orthogonality %g, norm %g, "
                  "T %g, probe %g)",
                  backend, t->text, (int)b, t->failed[b], x[0], x[1], x[2], x[3], x[4], x[5]);
        for (int buffer = BATCH_V; expected != GB10_INFO_OK && buffer < BATCH_BUFFERS; buffer++)
            cr_expect(batch_all_nan(t, buffer, b), "%s: %s: output %d of matrix %d is not all NaN",
                      backend, t->text, buffer, (int)b);
    }
    /* packed is V below R. */
    int parts = gb10_dtype_is_complex(shape.dtype) ? 2 : 1;
    bool same = true;
    for (int64_t b = 0; b < shape.count && expected == GB10_INFO_OK; b++)
        for (int64_t i = 0; i < shape.m; i++)
            for (int64_t j = 0; j < shape.n; j++)
                for (int q = 0; q < parts; q++)
                    same = same && batch_get(t, BATCH_PACKED, b, i, j, q) ==
                                       batch_get(t, i > j ? BATCH_V : BATCH_R, b, i, j, q);
    cr_expect(same, "%s: %s: packed is not V below R", backend, t->text);
    batch_free(t);
}

#define FOR_BACKENDS(handle, name)                                                                 \
    for (int i_ = 0; (handle = batch_backend(i_, &name)); gb10_destroy(handle), i_++)

Test(geqrf, families)
{
    static const int64_t quick[][2] = {{1, 1}, {1, 6},   {6, 1},   {2, 2},  {7, 5},
                                       {5, 7}, {33, 33}, {70, 40}, {40, 70}};
    static const int64_t more[][2] = {{16, 16},   {31, 31},  {64, 64},  {65, 64},  {129, 130},
                                      {128, 128}, {200, 30}, {30, 200}, {256, 192}};
    gb10_handle_t *handle;
    const char *name;
    FOR_BACKENDS(handle, name)
    for (int f = 0; gb10_family_at(f); f++)
        for (int dtype = 0; dtype < GB10_DTYPES; dtype++) {
            const char *family = gb10_family_name(gb10_family_at(f));
            for (size_t s = 0; s < sizeof quick / sizeof *quick; s++)
                run(handle, name, family,
                    (batch_shape_t){.dtype = (gb10_dtype_t)dtype,
                                    .m = quick[s][0],
                                    .n = quick[s][1],
                                    .count = 3,
                                    .nb = s % 2 ? 5 : 32},
                    0);
            for (size_t s = 0; s < sizeof more / sizeof *more && (batch_long() || s == 3); s++)
                run(handle, name, family,
                    (batch_shape_t){.dtype = (gb10_dtype_t)dtype,
                                    .m = more[s][0],
                                    .n = more[s][1],
                                    .count = 2,
                                    .nb = 32},
                    10);
        }
}

Test(geqrf, every_size_to_130)
{
    gb10_handle_t *handle;
    const char *name;
    FOR_BACKENDS(handle, name)
    for (int dtype = 0; dtype < GB10_DTYPES; dtype++)
        for (int64_t n = 2; n <= 130; n++) {
            int64_t m = n % 3 == 0 ? n + 1 : n % 3 == 1 ? n : n - 1;
            int64_t nb = n % 4 == 0 ? 8 : 32, count = n <= 48 ? 9 : 1;
            if (!batch_long() && n > 70 && n % 8 > 1 && n < 127)
                continue;
            run(handle, name, "gaussian",
                (batch_shape_t){
                    .dtype = (gb10_dtype_t)dtype, .m = m, .n = n, .count = count, .nb = nb},
                0);
        }
}

Test(geqrf, large_sizes)
{
    static const int64_t sizes[][2] = {{192, 192}, {256, 256}, {300, 300}, {512, 512},
                                       {511, 513}, {1000, 40}, {40, 1000}, {4200, 17}};
    static const char *const families[] = {"gaussian", "randsvd-geometric", "wide-range"};
    gb10_handle_t *handle;
    const char *name;
    FOR_BACKENDS(handle, name)
    for (int f = 0; f < 3; f++)
        for (int dtype = 0; dtype < GB10_DTYPES; dtype++)
            for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
                bool wanted =
                    (f == 0 && (dtype <= GB10_D || s != 4)) || (f == 2 && dtype == GB10_D && s < 3);
                if (batch_long() || wanted)
                    run(handle, name, families[f],
                        (batch_shape_t){.dtype = (gb10_dtype_t)dtype,
                                        .m = sizes[s][0],
                                        .n = sizes[s][1],
                                        .count = 1,
                                        .nb = s == 1 ? 48 : 32},
                        0);
            }
}

/* Sizes around the block of T, and around the limits of the size buckets. */
Test(geqrf, block_and_bucket_edges)
{
    static const int64_t nbs[] = {1, 2, 7, 8, 31, 32, 33, 64, 200};
    gb10_handle_t *handle;
    const char *name;
    FOR_BACKENDS(handle, name)
    for (int dtype = 0; dtype < GB10_DTYPES; dtype++)
        for (size_t i = 0; i < sizeof nbs / sizeof *nbs; i++)
            for (int64_t n = 31; n <= 33; n++) {
                batch_shape_t s = {
                    .dtype = (gb10_dtype_t)dtype, .m = 40, .n = n, .count = 2, .nb = nbs[i]};
                run(handle, name, "gaussian", s, 0);
                s.m = s.n;
                s.n = 66;
                run(handle, name, "uniform", s, 0);
            }
}

Test(geqrf, layouts)
{
    gb10_handle_t *handle;
    const char *name;
    FOR_BACKENDS(handle, name)
    for (int dtype = 0; dtype < GB10_DTYPES; dtype++)
        for (int bits = 0; bits < 16; bits++)
            for (int size = 0; size < 4; size++) {
                static const int64_t shapes[][2] = {{6, 4}, {19, 30}, {50, 50}, {80, 70}};
                batch_shape_t s = {.dtype = (gb10_dtype_t)dtype,
                                   .m = shapes[size][0],
                                   .n = shapes[size][1],
                                   .count = 5,
                                   .nb = 16,
                                   .columns = bits & 1,
                                   .pad = bits & 2 ? (size % 2 ? 3 : 1500) : 0,
                                   .gap = bits & 4 ? 5 : 0,
                                   .pointers = bits & 8};
                run(handle, name, "gaussian", s, 0);
            }
}

/* The bits of a matrix do not depend on where it stands, on how many there are, on the layout, or
 * on what its neighbours hold. */
Test(geqrf, equal_bits)
{
    static const int64_t shapes[][2] = {{1, 1},   {4, 4},    {12, 9},   {32, 32},
                                        {33, 47}, {100, 64}, {130, 130}};
    gb10_handle_t *handle;
    const char *name;
    FOR_BACKENDS(handle, name)
    for (int dtype = 0; dtype < GB10_DTYPES; dtype++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            batch_shape_t one = {.dtype = (gb10_dtype_t)dtype,
                                 .m = shapes[s][0],
                                 .n = shapes[s][1],
                                 .count = 1,
                                 .nb = 32};
            batch_shape_t other = one;
            other.count = 19;
            other.columns = s % 2;
            other.pad = 2;
            other.pointers = s % 3 == 0;
            batch_t *many = batch_new(other);
            batch_fill(many, "gaussian", batch_seed(), 0, 0);
            batch_set(many, BATCH_A, 3, 0, 0, 0, (double)INFINITY);
            cr_assert(batch_geqrf(many, handle) == GB10_OK);
            cr_expect(many->info[3] == GB10_INFO_NONFINITE, "%s: %s", name, many->text);
            for (int64_t b = 0; b < other.count; b++) {
                batch_t *alone = batch_new(one);
                batch_fill(alone, "gaussian", batch_seed(), b, 0);
                cr_assert(batch_geqrf(alone, handle) == GB10_OK);
                for (int buffer = BATCH_V; b != 3 && buffer < BATCH_BUFFERS; buffer++)
                    cr_expect(batch_same(alone, 0, many, b, buffer),
                              "%s: %s: output %d of matrix %d differs from the same alone", name,
                              many->text, buffer, (int)b);
                batch_free(alone);
            }
            batch_free(many);
        }
}

/* A times a power of two: same V, T, tau; R times the same power. */
Test(geqrf, scaling_by_powers_of_two)
{
    gb10_handle_t *handle;
    const char *name;
    FOR_BACKENDS(handle, name)
    for (int dtype = 0; dtype < GB10_DTYPES; dtype++)
        for (int64_t n = 3; n <= 90; n += 29) {
            bool single = dtype == GB10_S || dtype == GB10_C;
            double factor = single ? 0x1p20 : 0x1p200;
            batch_shape_t s = {
                .dtype = (gb10_dtype_t)dtype, .m = n + 2, .n = n, .count = 2, .nb = 32};
            batch_t *a = batch_new(s), *b = batch_new(s);
            int parts = gb10_dtype_is_complex(s.dtype) ? 2 : 1;
            batch_fill(a, "gaussian", batch_seed(), 0, 0);
            batch_fill(b, "gaussian", batch_seed(), 0, 0);
            for (int64_t i = 0; i < s.m * n * parts * 2; i++) {
                int64_t row = i / parts / n % s.m, col = i / parts % n, at = i / parts / n / s.m;
                double x = batch_get(b, BATCH_A, at, row, col, (int)(i % parts));
                batch_set(b, BATCH_A, at, row, col, (int)(i % parts), x * factor);
            }
            cr_assert(batch_geqrf(a, handle) == GB10_OK && batch_geqrf(b, handle) == GB10_OK);
            for (int64_t i = 0; i < 2; i++)
                cr_expect(batch_same(a, i, b, i, BATCH_V) && batch_same(a, i, b, i, BATCH_T) &&
                              batch_same(a, i, b, i, BATCH_TAU),
                          "%s: %s: V, T or tau depend on the scale", name, a->text);
            bool scaled = true;
            for (int64_t i = 0; i < n; i++)
                for (int64_t j = i; j < n; j++)
                    scaled = scaled && batch_get(a, BATCH_R, 0, i, j, 0) * factor ==
                                           batch_get(b, BATCH_R, 0, i, j, 0);
            cr_expect(scaled, "%s: %s: R is not the scaled R", name, a->text);
            batch_free(a);
            batch_free(b);
        }
}

/* Each output alone, and in place, gives the bits of all together. */
Test(geqrf, outputs_on_request)
{
    gb10_handle_t *handle;
    const char *name;
    FOR_BACKENDS(handle, name)
    for (int dtype = 0; dtype < GB10_DTYPES; dtype++)
        for (int64_t n = 5; n <= 77; n += 24)
            for (int only = BATCH_V; only < BATCH_BUFFERS; only++) {
                batch_shape_t s = {
                    .dtype = (gb10_dtype_t)dtype, .m = n + 9, .n = n, .count = 4, .nb = 24};
                batch_t *all = batch_new(s), *one = batch_new(s);
                batch_fill(all, "gaussian", batch_seed(), 0, 0);
                batch_fill(one, "gaussian", batch_seed(), 0, 0);
                cr_assert(batch_geqrf(all, handle) == GB10_OK);
                gb10_geqrf_args_t args = {.A = &one->view[BATCH_A], .nb = s.nb};
                const gb10_view_t **wanted[] = {NULL,    &args.V,   &args.T,
                                                &args.R, &args.tau, &args.packed};
                bool in_place = only == BATCH_PACKED && n % 2;
                *wanted[only] = &one->view[in_place ? BATCH_A : only];
                cr_assert(gb10_geqrf(handle, &args) == GB10_OK);
                batch_t *result = one;
                if (in_place) /* the packed view of `one` now names its A */
                    result->view[BATCH_PACKED] = result->view[BATCH_A];
                for (int64_t b = 0; b < s.count; b++)
                    cr_expect(batch_same(all, b, result, b, only),
                              "%s: %s: output %d alone has other bits", name, all->text, only);
                batch_free(all);
                batch_free(one);
            }
}

/* The LAPACK-shaped calls are the same computation. */
Test(geqrf, lapack_shaped)
{
    gb10_handle_t *handle;
    const char *name;
    FOR_BACKENDS(handle, name)
    for (int dtype = 0; dtype < GB10_DTYPES; dtype++) {
        batch_shape_t s = {
            .dtype = (gb10_dtype_t)dtype, .m = 23, .n = 17, .count = 6, .nb = 8, .columns = true};
        batch_t *all = batch_new(s), *one = batch_new(s), *list = batch_new(s);
        batch_fill(all, "gaussian", batch_seed(), 0, 0);
        batch_fill(one, "gaussian", batch_seed(), 0, 0);
        batch_fill(list, "gaussian", batch_seed(), 0, 0);
        cr_assert(batch_geqrf(all, handle) == GB10_OK);
        cr_expect(gb10_batched_geqrf(handle, s.dtype, 23, 17, one->view[BATCH_A].base, 23, 23 * 17,
                                     one->view[BATCH_TAU].base, one->view[BATCH_T].base, 8, 8, 6,
                                     GB10_MODE_NATIVE, one->info) == GB10_OK,
                  "%s", gb10_last_error(handle)->message);
        /* The list of a batch is in reverse order. */
        cr_expect(gb10_batched_geqrf_pointers(handle, s.dtype, 23, 17, list->list[BATCH_A], 23,
                                              list->view[BATCH_TAU].base, list->view[BATCH_T].base,
                                              8, 8, 6, GB10_MODE_NATIVE, list->info) == GB10_OK,
                  "%s", gb10_last_error(handle)->message);
        one->view[BATCH_PACKED] = one->view[BATCH_A];
        list->view[BATCH_PACKED] = list->view[BATCH_A];
        for (int64_t b = 0; b < 6; b++) {
            cr_expect(batch_same(all, b, one, b, BATCH_PACKED) &&
                          batch_same(all, b, one, b, BATCH_TAU) &&
                          batch_same(all, b, one, b, BATCH_T),
                      "%s: strided", name);
            cr_expect(batch_same(all, b, list, b, BATCH_PACKED) &&
                          batch_same(all, b, list, 5 - b, BATCH_TAU) &&
                          batch_same(all, b, list, 5 - b, BATCH_T),
                      "%s: pointers", name);
            cr_expect(one->info[b] == GB10_INFO_OK && list->info[b] == GB10_INFO_OK, "%s", name);
        }
        batch_free(all);
        batch_free(one);
        batch_free(list);
    }
}

Test(geqrf, empty)
{
    gb10_handle_t *handle;
    const char *name;
    FOR_BACKENDS(handle, name)
    for (int dtype = 0; dtype < GB10_DTYPES; dtype++)
        for (int which = 0; which < 4; which++) {
            batch_shape_t s = {.dtype = (gb10_dtype_t)dtype,
                               .m = which == 0 || which == 3 ? 0 : 5,
                               .n = which == 1 || which == 3 ? 0 : 4,
                               .count = which == 2 ? 0 : 3,
                               .nb = 32};
            batch_t *t = batch_new(s);
            cr_expect(batch_geqrf(t, handle) == GB10_OK, "%s: %s", name,
                      gb10_last_error(handle)->message);
            cr_expect(batch_check(t, handle, GB10_CHECK_FULL) == GB10_OK, "%s: %s", name,
                      gb10_last_error(handle)->message);
            for (int64_t b = 0; b < s.count; b++)
                cr_expect(t->info[b] == GB10_INFO_OK && !t->failed[b], "%s: case %d info %d %s",
                          name, which, t->info[b], t->failed[b] ? t->failed[b] : "");
            cr_expect(!batch_damage(t), "%s: case %d", name, which);
            batch_free(t);
        }
}
