/* One face for two test runners. By default it is Criterion (every test a process of its own). With
 * -DTEST_PLAIN the same bodies build as one plain program, for places where Criterion does not run
 * (qemu-user, ThreadSanitizer): every Test registers itself, main runs them in one process in link
 * order, and the last line is "N passed, N failed, N skipped". Arguments of that program are parts
 * of "suite/name", or all of it after a "="; only tests that match one of them run, and matching
 * nothing is a failure. A program may define test_obstacle: NULL, or why nothing can run here,
 * which is printed, and the program exits with 77.
 *
 * What both offer: Test(suite, name), cr_assert, cr_expect, cr_fail, the pairs _eq, _neq, _lt,
 * _leq, _gt, _geq, _str_eq, _not, _null, _not_null, each with an optional literal format and
 * arguments, and cr_skip_test(format, ...). An assertion ends the test, an expectation lets it go
 * on. Assertions belong to the thread that runs the test. */
#ifndef TESTS_SUPPORT_TEST_H
#define TESTS_SUPPORT_TEST_H

#ifndef TEST_PLAIN
#include <criterion/criterion.h>
#else

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct test_case {
    const char *suite, *name;
    void (*body)(void);
    struct test_case *next;
} test_case_t;

typedef struct test_run {
    test_case_t *first, *last;
    jmp_buf leave;
    int failures, skipped; /* of the test that runs now */
} test_run_t;

/* Weak: every test file carries this, the linker keeps one. */
__attribute__((weak)) test_run_t test_run_state;
__attribute__((weak)) void test_register(test_case_t *c);
__attribute__((weak)) void test_check(int ends, const char *file, int line, const char *what,
                                      int good, const char *format, ...)
    __attribute__((format(printf, 6, 7)));
__attribute__((weak)) void test_skip(const char *format, ...) __attribute__((format(printf, 1, 2)));
__attribute__((weak)) int test_wanted(const test_case_t *c, int argc, char **argv);
__attribute__((weak)) int main(int argc, char **argv);
__attribute__((weak)) const char *test_obstacle(void);

__attribute__((weak)) void test_register(test_case_t *c)
{
    if (test_run_state.last)
        test_run_state.last->next = c;
    else
        test_run_state.first = c;
    test_run_state.last = c;
}

__attribute__((weak)) void test_check(int ends, const char *file, int line, const char *what,
                                      int good, const char *format, ...)
{
    if (good)
        return;
    va_list args;
    va_start(args, format);
    printf("%s:%d: failed: %s:", file, line, what);
    vprintf(format, args);
    printf("\n");
    va_end(args);
    test_run_state.failures++;
    if (ends)
        longjmp(test_run_state.leave, 1);
}

__attribute__((weak)) void test_skip(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    printf("skipped:");
    vprintf(format, args);
    printf("\n");
    va_end(args);
    test_run_state.skipped = 1;
    longjmp(test_run_state.leave, 1);
}

__attribute__((weak)) int test_wanted(const test_case_t *c, int argc, char **argv)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", c->suite, c->name);
    for (int i = 1; i < argc; i++)
        if (argv[i][0] == '=' ? strcmp(path, argv[i] + 1) == 0 : strstr(path, argv[i]) != NULL)
            return 1;
    return argc < 2;
}

__attribute__((weak)) int main(int argc, char **argv)
{
    static int passed, failed, skipped;
    static test_case_t *c;
    const char *why = test_obstacle ? test_obstacle() : NULL;
    if (why) {
        printf("%s\n", why);
        return 77;
    }
    setvbuf(stdout, NULL, _IOLBF, 0); /* what a test said is there when it has to be ended */
    for (c = test_run_state.first; c; c = c->next) {
        if (!test_wanted(c, argc, argv))
            continue;
        test_run_state.failures = test_run_state.skipped = 0;
        if (setjmp(test_run_state.leave) == 0)
            c->body();
        int bad = test_run_state.failures > 0;
        failed += bad;
        skipped += !bad && test_run_state.skipped;
        passed += !bad && !test_run_state.skipped;
        if (bad || test_run_state.skipped)
            printf("%s %s/%s\n", bad ? "FAILED" : "SKIPPED", c->suite, c->name);
        fflush(stdout);
    }
    printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed > 0 || passed + skipped == 0;
}

#define Test(suite_, name_)                                                                        \
    static void suite_##_##name_##_body(void);                                                     \
    static test_case_t suite_##_##name_##_case = {#suite_, #name_, suite_##_##name_##_body, 0};    \
    __attribute__((constructor)) static void suite_##_##name_##_register(void)                     \
    {                                                                                              \
        test_register(&suite_##_##name_##_case);                                                   \
    }                                                                                              \
    static void suite_##_##name_##_body(void)

#define TEST_CHECK(ends, what, good, ...)                                                          \
    test_check(ends, __FILE__, __LINE__, what, (good) ? 1 : 0, " " __VA_ARGS__)

#define cr_skip_test(...)           test_skip(" " __VA_ARGS__)
#define cr_fail(...)                TEST_CHECK(0, "reached", 0, __VA_ARGS__)
#define cr_assert_fail(...)         TEST_CHECK(1, "reached", 0, __VA_ARGS__)
#define cr_assert(c, ...)           TEST_CHECK(1, #c, c, __VA_ARGS__)
#define cr_expect(c, ...)           TEST_CHECK(0, #c, c, __VA_ARGS__)
#define cr_assert_not(c, ...)       TEST_CHECK(1, "not " #c, !(c), __VA_ARGS__)
#define cr_expect_not(c, ...)       TEST_CHECK(0, "not " #c, !(c), __VA_ARGS__)
#define cr_assert_null(p, ...)      TEST_CHECK(1, #p " == NULL", (p) == NULL, __VA_ARGS__)
#define cr_expect_null(p, ...)      TEST_CHECK(0, #p " == NULL", (p) == NULL, __VA_ARGS__)
#define cr_assert_not_null(p, ...)  TEST_CHECK(1, #p " != NULL", (p) != NULL, __VA_ARGS__)
#define cr_expect_not_null(p, ...)  TEST_CHECK(0, #p " != NULL", (p) != NULL, __VA_ARGS__)
#define cr_assert_eq(a, b, ...)     TEST_CHECK(1, #a " == " #b, (a) == (b), __VA_ARGS__)
#define cr_expect_eq(a, b, ...)     TEST_CHECK(0, #a " == " #b, (a) == (b), __VA_ARGS__)
#define cr_assert_neq(a, b, ...)    TEST_CHECK(1, #a " != " #b, (a) != (b), __VA_ARGS__)
#define cr_expect_neq(a, b, ...)    TEST_CHECK(0, #a " != " #b, (a) != (b), __VA_ARGS__)
#define cr_assert_lt(a, b, ...)     TEST_CHECK(1, #a " < " #b, (a) < (b), __VA_ARGS__)
#define cr_expect_lt(a, b, ...)     TEST_CHECK(0, #a " < " #b, (a) < (b), __VA_ARGS__)
#define cr_assert_leq(a, b, ...)    TEST_CHECK(1, #a " <= " #b, (a) <= (b), __VA_ARGS__)
#define cr_expect_leq(a, b, ...)    TEST_CHECK(0, #a " <= " #b, (a) <= (b), __VA_ARGS__)
#define cr_assert_gt(a, b, ...)     TEST_CHECK(1, #a " > " #b, (a) > (b), __VA_ARGS__)
#define cr_expect_gt(a, b, ...)     TEST_CHECK(0, #a " > " #b, (a) > (b), __VA_ARGS__)
#define cr_assert_geq(a, b, ...)    TEST_CHECK(1, #a " >= " #b, (a) >= (b), __VA_ARGS__)
#define cr_expect_geq(a, b, ...)    TEST_CHECK(0, #a " >= " #b, (a) >= (b), __VA_ARGS__)
#define cr_assert_str_eq(a, b, ...) TEST_CHECK(1, #a " is " #b, strcmp((a), (b)) == 0, __VA_ARGS__)
#define cr_expect_str_eq(a, b, ...) TEST_CHECK(0, #a " is " #b, strcmp((a), (b)) == 0, __VA_ARGS__)

#endif
#endif
