/* The arithmetic of fugu bench: lists, bytes, bounds, batches, medians. */
#include "tests/support/test.h"

#include <math.h>
#include <string.h>

#include "app/bench.h"

Test(bench, reads_sizes_and_shapes)
{
    int64_t sizes[BENCH_SIZES_MAX];
    bench_shape_t shapes[BENCH_SHAPES_MAX];
    gb10_error_t err = {0};
    int n;
    cr_assert_eq(bench_parse_sizes("4,16,1024", sizes, &n, &err), GB10_OK, "%s", err.message);
    cr_assert(n == 3 && sizes[0] == 4 && sizes[1] == 16 && sizes[2] == 1024);
    cr_assert_eq(bench_parse_shapes("square,tall4,1024x128,wide2,tall16", shapes, &n, &err),
                 GB10_OK, "%s", err.message);
    cr_assert(n == 5 && !shapes[0].fixed && shapes[0].rows == 1 && shapes[0].cols == 1);
    cr_assert(shapes[1].rows == 4 && shapes[1].cols == 1 && shapes[4].rows == 16);
    cr_assert(shapes[2].fixed && shapes[2].rows == 1024 && shapes[2].cols == 128);
    cr_assert_str_eq(shapes[2].name, "1024x128");
    cr_assert(shapes[3].rows == 1 && shapes[3].cols == 2);
    cr_assert_eq(bench_parse_shapes("5x6,all,wide2", shapes, &n, &err), GB10_OK, "%s", err.message);
    cr_assert(n == 9 && shapes[0].rows == 5 && shapes[7].rows == 8192 && shapes[7].cols == 1024);
    cr_assert(!strcmp(shapes[1].name, "square") && !strcmp(shapes[8].name, "wide2"));
}

Test(bench, refuses_wrong_lists_by_word)
{
    static const struct {
        const char *text, *says;
    } size_cases[] = {{"", "''"},     {"4,", "''"},   {"4,x,8", "'x'"},     {"0", "'0'"},
                      {"-4", "'-4'"}, {"4 ", "'4 '"}, {"65537", "'65537'"}, {"4;8", "'4;8'"}},
      shape_cases[] = {
          {"", "''"},        {"tall", "'tall'"},   {"square4", "'square4'"}, {"4x", "'4x'"},
          {"x4", "'x4'"},    {"4x4x4", "'4x4x4'"}, {"square,,wide2", "''"},  {"0x4", "'0x4'"},
          {"alls", "'alls'"}};
    char many[1024] = "1";
    gb10_error_t err;
    int n;
    for (size_t i = 0; i < sizeof size_cases / sizeof *size_cases; i++) {
        int64_t sizes[BENCH_SIZES_MAX];
        err = (gb10_error_t){0};
        cr_expect_eq(bench_parse_sizes(size_cases[i].text, sizes, &n, &err), GB10_ERR_USAGE);
        cr_expect(strstr(err.message, size_cases[i].says) != NULL, "'%s' says: %s",
                  size_cases[i].text, err.message);
    }
    for (size_t i = 0; i < sizeof shape_cases / sizeof *shape_cases; i++) {
        bench_shape_t shapes[BENCH_SHAPES_MAX];
        err = (gb10_error_t){0};
        cr_expect_eq(bench_parse_shapes(shape_cases[i].text, shapes, &n, &err), GB10_ERR_USAGE);
        cr_expect(strstr(err.message, shape_cases[i].says) != NULL, "'%s' says: %s",
                  shape_cases[i].text, err.message);
    }
    for (int i = 0; i < BENCH_SIZES_MAX; i++)
        strcat(many, ",1");
    int64_t sizes[BENCH_SIZES_MAX];
    bench_shape_t shapes[BENCH_SHAPES_MAX];
    err = (gb10_error_t){0};
    cr_expect_eq(bench_parse_sizes(many, sizes, &n, &err), GB10_ERR_USAGE);
    cr_expect_eq(bench_parse_shapes("all,all,all,all,all", shapes, &n, &err), GB10_ERR_USAGE);
}

Test(bench, counts_each_byte_once)
{
    bench_case_t c = {.dtype = GB10_D, .m = 8, .n = 4, .nb = 32};
    cr_expect_eq(bench_bytes_in(&c), 8 * 8 * 4);
    cr_expect_eq(bench_bytes_out(&c), 8 * (8 * 4 + 4 * 4 + 4 * 4 + 4), "V, T, R, tau");
    c = (bench_case_t){.dtype = GB10_C, .m = 64, .n = 128, .nb = 32};
    cr_expect_eq(bench_bytes_out(&c), 8 * (64 * 64 + 32 * 64 + 64 * 128 + 64));
}

Test(bench, bounds_are_the_smaller_of_peak_and_memory)
{
    /* 4 x 4 doubles: 256/3 flops, 128 bytes in, 416 out */
    bench_case_t c = {.dtype = GB10_D, .place = BENCH_STREAM, .m = 4, .n = 4, .nb = 32};
    double memory = 2.0 * 16 * (4 - 4 / 3.0) / (544 / 10e9) * 1e-9;
    cr_expect(fabs(bench_bound(&c, 40, 10e9) / memory - 1) < 1e-12);
    cr_expect_eq(bench_bound(&c, 1, 10e9), 1);
    cr_expect(fabs(bench_bound(&c, NAN, 10e9) / memory - 1) < 1e-12);
    cr_expect_eq(bench_bound(&c, 40, NAN), 40);
    c.place = BENCH_CACHE;
    cr_expect_eq(bench_bound(&c, 40, 10e9), 40);
    cr_expect(isnan(bench_bound(&c, NAN, 10e9)));
}

Test(bench, groups_are_full)
{
    static const struct {
        gb10_dtype_t dtype;
        int64_t m, n, granule, want;
    } cases[] = {{GB10_D, 4, 4, 4, 16},   {GB10_S, 16, 256, 8, 16}, {GB10_D, 17, 17, 4, 4},
                 {GB10_S, 64, 64, 8, 8},  {GB10_S, 16, 16, 32, 32}, {GB10_Z, 64, 64, 1, 1},
                 {GB10_D, 256, 16, 1, 16}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bench_case_t c = {.dtype = cases[i].dtype, .m = cases[i].m, .n = cases[i].n};
        c.granule = cases[i].granule;
        cr_expect_eq(bench_group(&c), cases[i].want, "case %zu", i);
    }
}

Test(bench, batches_fit_their_place)
{
    int64_t level2 = 512 << 10, last = 32 << 20;
    for (int threads = 1; threads <= 3; threads += 2) {
        /* 16 x 16 doubles: 2 KB in, 6272 bytes out */
        bench_case_t c = {
            .dtype = GB10_D, .place = BENCH_CACHE, .m = 16, .n = 16, .nb = 32, .threads = threads};
        c.granule = 1;
        cr_expect_eq(bench_batch(&c, level2, last), 16 * threads, "31 fit: one group");
        c.m = c.n = 8; /* 512 and 1600 bytes */
        cr_expect_eq(bench_batch(&c, level2, last), threads == 1 ? 112 : 336, "124, 372 fit");
        c.place = BENCH_STREAM;
        int64_t count = bench_batch(&c, level2, last);
        cr_expect(bench_bytes_in(&c) * (double)count > (double)last);
        cr_expect_eq(count % (16 * threads), 0);
        c.m = c.n = 8192;
        cr_expect_eq(bench_batch(&c, level2, last), threads == 1 ? 2 : 3);
        c.place = BENCH_CACHE;
        cr_expect_eq(bench_batch(&c, level2, last), threads);
        c.m = 16384, c.n = 8;
        cr_expect_eq(bench_batch(&c, level2, last), 16 * threads, "a group, although too large");
    }
}

Test(bench, one_thread_finds_its_matrices_in_the_batch_of_all)
{
    for (int64_t n = 1; n <= 512; n = n + 1 + n / 8)
        for (int place = 0; place < 2; place++)
            for (int threads = 2; threads <= 5; threads++) {
                bench_case_t all = {.dtype = GB10_D, .m = n, .n = n, .nb = 32, .granule = 4};
                all.place = (bench_place_t)place;
                bench_case_t one = all;
                all.threads = threads;
                one.threads = 1;
                cr_expect(bench_batch(&one, 1 << 20, 8 << 20) <=
                          bench_batch(&all, 1 << 20, 8 << 20));
            }
}

Test(bench, scales_to_whole_batches)
{
    bench_case_t c = {.dtype = GB10_D, .place = BENCH_CACHE, .m = 65, .n = 65, .threads = 2};
    c.count = 100;
    c.granule = 1;
    cr_expect_eq(bench_scale(&c, 100, 0.004, 0.010), 300);
    cr_expect_eq(bench_scale(&c, 100, 0.010, 0.010), 100);
    cr_expect_eq(bench_scale(&c, 100, 1, 0.010), 100, "never fewer");
    cr_expect_eq(bench_scale(&c, 100, 1e-9, 0.010), 6400, "at most 64 times as many");
    cr_expect_eq(bench_scale(&c, 100, 0, 0.010), 6400);
    c.place = BENCH_STREAM;
    cr_expect_eq(bench_scale(&c, 7, 0.004, 0.010), 18);
    cr_expect_eq(bench_scale(&c, 7, 0.005, 0.012), 18, "17, but two threads");
    c.m = c.n = 8;
    cr_expect_eq(bench_scale(&c, 32, 0.004, 0.010), 96, "80, but 32 at a time");
}

Test(bench, takes_the_middle)
{
    double odd[] = {5, 1, 3}, even[] = {4, 1, 3, 2}, one[] = {7};
    cr_expect_eq(bench_median(odd, 3), 3);
    cr_expect_eq(bench_median(even, 4), 2.5);
    cr_expect_eq(bench_median(one, 1), 7);
    cr_expect(isnan(bench_median(one, 0)));
}
