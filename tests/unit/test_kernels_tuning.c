/* Tuning tables: no gaps, a pure look-up, text there and back, and every error with its line. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/core/alloc.h"
#include "kernels/gb10.h"
#include "kernels/tuning/tuning.h"
#include "tests/support/test.h"

static const char *const isas[] = {"baseline", "avx2", "avx512", "neon"};
enum { ISAS = sizeof isas / sizeof *isas, K_MAX = 1000000 };

/* m and n of a class with min(m, n) = k. */
static void shape_of(int shape, int64_t k, int64_t *m, int64_t *n)
{
    *m = shape == GB10_HIGH ? 4 * k : k;
    *n = shape == GB10_WIDE ? k + 1 : k;
}

Test(tuning, classes)
{
    static const int64_t cases[][3] = {
        {1, 1, GB10_SQUARE}, {7, 2, GB10_SQUARE}, {8, 2, GB10_HIGH},
        {9, 2, GB10_HIGH},   {2, 3, GB10_WIDE},   {3, 2, GB10_SQUARE},
        {4, 1, GB10_HIGH},   {3, 1, GB10_SQUARE}, {INT64_MAX, INT64_MAX / 4 + 1, GB10_SQUARE}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_expect(gb10_shape_class(cases[i][0], cases[i][1]) == (gb10_shape_class_t)cases[i][2],
                  "case %d", (int)i);
}

/* Every instruction set, type, class and size has a row of its own series, and the limits of a
 * series ascend. */
static void expect_no_gaps(const gb10_tuning_t *table)
{
    for (int series = 0; series < ISAS * GB10_DTYPES * GB10_SHAPE_CLASSES; series++) {
        const char *isa = isas[series / (GB10_DTYPES * GB10_SHAPE_CLASSES)];
        gb10_dtype_t dtype = (gb10_dtype_t)(series / GB10_SHAPE_CLASSES % GB10_DTYPES);
        int shape = series % GB10_SHAPE_CLASSES;
        int64_t last = 0;
        bool good = true;
        for (int64_t k = 1; k <= K_MAX; k += k < 5000 ? 1 : 997) {
            int64_t m, n;
            shape_of(shape, k, &m, &n);
            const gb10_tuning_row_t *row = gb10_tuning_find(table, isa, dtype, m, n);
            good = good && row && row->n_max >= k && row->n_max >= last && row->dtype == dtype &&
                   (int)row->shape == shape && strcmp(row->isa, isa) == 0 && row->block >= 1 &&
                   row->group >= 1 && *row->provenance;
            last = row ? row->n_max : last;
        }
        cr_expect(good && last == INT64_MAX, "%s %c %s", isa, gb10_dtype_letter(dtype),
                  gb10_shape_class_names[shape]);
        for (int64_t i = 0, limit = 0; i < table->nrows; i++) {
            const gb10_tuning_row_t *row = &table->rows[i];
            if (strcmp(row->isa, isa) != 0 || row->dtype != dtype || (int)row->shape != shape)
                continue;
            cr_expect(row->n_max > limit, "row %d", (int)i);
            limit = row->n_max;
        }
    }
}

Test(tuning, builtin_has_no_gaps)
{
    const gb10_tuning_t *table = gb10_tuning_builtin();
    expect_no_gaps(table);
    cr_expect(table == gb10_tuning_builtin() && table->capacity == 0);
    cr_expect(gb10_tuning_find(table, "other", GB10_D, 9, 9) ==
              gb10_tuning_find(table, "baseline", GB10_D, 9, 9));
    cr_expect(gb10_tuning_find(table, "avx2", GB10_D, 0, 5) != NULL);
}

/* The same question has the same answer, whatever was asked in between; the table stays as it is.
 */
Test(tuning, look_up_is_pure)
{
    const gb10_tuning_t *table = gb10_tuning_builtin();
    size_t bytes = (size_t)table->nrows * sizeof *table->rows;
    gb10_tuning_row_t *before = malloc(bytes);
    memcpy(before, table->rows, bytes);
    const gb10_tuning_row_t *first = gb10_tuning_find(table, "avx2", GB10_C, 100, 33);
    for (int64_t k = 0; k < 500; k++)
        gb10_tuning_find(table, isas[k % ISAS], (gb10_dtype_t)(k % 4), k * 7 % 300, k);
    cr_expect(gb10_tuning_find(table, "avx2", GB10_C, 100, 33) == first);
    cr_expect(memcmp(before, table->rows, bytes) == 0);
    free(before);
}

static char *printed(const gb10_tuning_t *table)
{
    size_t size = gb10_tuning_print(table, NULL, 0) + 1;
    char *text = malloc(size);
    cr_assert(gb10_tuning_print(table, text, size) == size - 1 && strlen(text) == size - 1);
    return text;
}

Test(tuning, text_there_and_back)
{
    gb10_tuning_t *table = NULL;
    gb10_error_t err = {0};
    char *text = printed(gb10_tuning_builtin()), stamp[2][GB10_TUNING_STAMP];
    cr_assert(gb10_tuning_parse(&table, text, &err) == GB10_OK, "%s", err.message);
    expect_no_gaps(table);
    gb10_tuning_write_stamp(gb10_tuning_builtin(), stamp[0]);
    gb10_tuning_write_stamp(table, stamp[1]);
    cr_expect_str_eq(stamp[0], stamp[1]);
    char *again = printed(table), few[40];
    cr_expect_str_eq(text, again);
    cr_expect(gb10_tuning_print(table, few, sizeof few) == strlen(text));
    cr_expect(strlen(few) == sizeof few - 1 && strncmp(few, text, sizeof few - 1) == 0);
    free(text);
    free(again);
    gb10_tuning_free(table);
    gb10_tuning_free(NULL);
}

#define HEAD "fugu-tuning,1,mine\nisa,dtype,shape,n_max,kernel,block,group,provenance\n"

/* A series in a file replaces the built-in one, and no other; the stamp tells. */
Test(tuning, a_series_is_replaced)
{
    static const char text[] =
        "# a comment\r\n\n  " HEAD "avx2,d,square,20,lanes,8,12,a box, today, by hand\r\n"
        "  avx2,d,square,any,blocks,16,24,the same\n# end";
    gb10_tuning_t *table = NULL;
    gb10_error_t err = {0};
    char stamp[GB10_TUNING_STAMP], other[GB10_TUNING_STAMP];
    cr_assert(gb10_tuning_parse(&table, text, &err) == GB10_OK, "%s", err.message);
    expect_no_gaps(table);
    const gb10_tuning_row_t *row = gb10_tuning_find(table, "avx2", GB10_D, 20, 20);
    cr_expect(row->kernel == GB10_LANES && row->block == 8 && row->group == 12);
    cr_expect_str_eq(row->provenance, "a box, today, by hand");
    row = gb10_tuning_find(table, "avx2", GB10_D, 21, 21);
    cr_expect(row->kernel == GB10_BLOCKS && row->block == 16 && row->group == 24);
    row = gb10_tuning_find(table, "avx2", GB10_S, 21, 21);
    const gb10_tuning_row_t *own = gb10_tuning_find(gb10_tuning_builtin(), "avx2", GB10_S, 21, 21);
    cr_expect(memcmp(row, own, sizeof *row) == 0);
    gb10_tuning_write_stamp(table, stamp);
    gb10_tuning_write_stamp(gb10_tuning_builtin(), other);
    cr_expect(strncmp(stamp, "mine v1 ", 8) == 0 && strcmp(stamp + 8, strchr(other, ' ') + 4) != 0);
    gb10_tuning_free(table);
}

Test(tuning, wrong_text_is_named_by_its_line)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "line 0: the end, before the version"},
        {"# nothing\n\n", "line 2: the end, before the version"},
        {"hello\n", "line 1: not \"fugu-tuning,1,NAME\""},
        {"# x\nfugu-tuning,2,mine\n", "line 2: version 2; this program reads version 1"},
        {"fugu-tuning,,mine\n", "line 1: version ; "},
        {"fugu-tuning,1,\n", "line 1: the name"},
        {"fugu-tuning,1,a,b\n", "line 1: the name"},
        {"fugu-tuning,1,mine", "line 1: the end, before the column names"},
        {"fugu-tuning,1,mine\nisa,type\n", "line 2: column 2 is \"type\", must be \"dtype\""},
        {"fugu-tuning,1,mine\nisa\n", "line 2: column 2 is \"\""},
        {HEAD "avx2,d\n", "line 3: 2 columns, must be 8"},
        {HEAD ",d,square,any,lanes,8,8,x\n", "line 3: isa \"\""},
        {HEAD "avx2,q,square,any,lanes,8,8,x\n", "line 3: dtype \"q\""},
        {HEAD "avx2,d,round,any,lanes,8,8,x\n", "line 3: shape \"round\""},
        {HEAD "avx2,d,square,any,loops,8,8,x\n", "line 3: kernel \"loops\""},
        {HEAD "avx2,d,square,8x,lanes,8,8,x\n", "line 3: n_max \"8x\""},
        {HEAD "avx2,d,square,any,lanes,0,8,x\n", "line 3: block \"0\""},
        {HEAD "avx2,d,square,any,lanes,8,-1,x\n", "line 3: group \"-1\""},
        {HEAD "avx2,d,square,any,lanes,8,99999999999999999999,x\n", "line 3: group"},
        {HEAD "avx2,d,tall,9,lanes,8,8,x\n\navx2,d,tall,9,lanes,8,8,x\n", "line 5: n_max 9"},
        {HEAD "avx2,d,tall,any,lanes,8,8,x\navx2,d,tall,9,lanes,8,8,x\n", "line 4: n_max 9"},
        {HEAD "avx2,d,tall,9,lanes,8,8,x\n", "avx2 d tall ends with n_max 9, not any"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gb10_tuning_t *table = NULL;
        gb10_error_t err = {0};
        cr_expect(gb10_tuning_parse(&table, cases[i].text, &err) == GB10_ERR_FORMAT && !table,
                  "case %d", (int)i);
        cr_expect(strstr(err.message, cases[i].says), "\"%s\" does not say \"%s\"", err.message,
                  cases[i].says);
    }
    char line[2000];
    memset(line, 'x', sizeof line - 1);
    line[sizeof line - 1] = 0;
    gb10_tuning_t *table = NULL;
    cr_expect(gb10_tuning_parse(&table, line, NULL) == GB10_ERR_FORMAT && !table);
}

Test(tuning, of_a_handle)
{
    gb10_handle_t *handle = NULL;
    char *text = printed(gb10_tuning_builtin()), stamp[GB10_TUNING_STAMP];
    cr_assert(gb10_create(&handle, NULL, NULL) == GB10_OK);
    gb10_tuning_write_stamp(gb10_tuning_builtin(), stamp);
    cr_expect_str_eq(gb10_tuning_stamp(handle), stamp);
    cr_expect(gb10_set_tuning(handle, HEAD) == GB10_OK);
    cr_expect(strncmp(gb10_tuning_stamp(handle), "mine", 4) == 0);
    cr_expect(gb10_set_tuning(handle, "hello") == GB10_ERR_FORMAT);
    cr_expect(strstr(gb10_last_error(handle)->message, "line 1") != NULL);
    cr_expect(strncmp(gb10_tuning_stamp(handle), "mine", 4) == 0);
    for (long n = 1; n <= 3; n++) {
        gb10_alloc_fail_at(n);
        cr_expect(gb10_set_tuning(handle, text) == GB10_ERR_MEMORY, "allocation %ld", n);
        gb10_alloc_fail_at(0);
    }
    cr_expect(gb10_set_tuning(handle, text) == GB10_OK);
    cr_expect_str_eq(gb10_tuning_stamp(handle), stamp);
    cr_expect(gb10_tuning_text(handle, NULL, 0) == strlen(text));
    cr_expect(gb10_set_tuning(handle, NULL) == GB10_OK);
    cr_expect(gb10_set_tuning(NULL, NULL) == GB10_ERR_INVALID);
    free(text);
    gb10_destroy(handle);
}
