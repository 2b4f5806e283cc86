/* Tuning tables from text. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/core/alloc.h"
#include "kernels/tuning/tuning.h"

enum { COLUMNS = 8, LINE_MAX_BYTES = 512, SIZE_MAX_VALUE = 1 << 20 };

static const char *const column_names[COLUMNS] = {"isa",    "dtype", "shape", "n_max",
                                                  "kernel", "block", "group", "provenance"};

typedef struct reader {
    const char *at; /* the rest of the text */
    int line;       /* number of the line in `text` */
    char text[LINE_MAX_BYTES];
    gb10_tuning_t *table;
    gb10_error_t *err;
} reader_t;

#define WRONG(r, ...) wrong((r), GB10_FAIL((r)->err, GB10_ERR_FORMAT, __VA_ARGS__))

static gb10_status_t wrong(const reader_t *r, gb10_status_t status)
{
    gb10_error_context(r->err, "line %d", r->line);
    return status;
}

/* The next line that says something, without blanks at its ends; *end at the end of the text. */
static gb10_status_t next_line(reader_t *r, bool *end)
{
    *end = false;
    while (*r->at) {
        size_t length = strcspn(r->at, "\n"), blank = strspn(r->at, " \t\r");
        const char *start = r->at + (blank < length ? blank : length);
        size_t n = length - (size_t)(start - r->at);
        r->at += length + (r->at[length] == '\n');
        r->line++;
        while (n > 0 && strchr(" \t\r", start[n - 1]))
            n--;
        if (n == 0 || *start == '#')
            continue;
        if (n >= sizeof r->text)
            return WRONG(r, "longer than %d characters", LINE_MAX_BYTES - 1);
        memcpy(r->text, start, n);
        r->text[n] = '\0';
        return GB10_OK;
    }
    *end = true;
    return GB10_OK;
}

/* Splits a line at commas into at most `columns` parts, the last of which is all the rest. */
static int split(char *text, char **part, int columns)
{
    int n = 0;
    while (n < columns) {
        char *comma = n + 1 < columns ? strchr(text, ',') : NULL;
        part[n++] = text;
        if (!comma)
            break;
        *comma = '\0';
        text = comma + 1;
    }
    return n;
}

static gb10_status_t read_version(reader_t *r)
{
    char *part[3], *end = NULL;
    int n = split(r->text, part, 3);
    if (strcmp(part[0], "fugu-tuning") != 0 || n < 3)
        return WRONG(r, "not \"fugu-tuning,%d,NAME\": this is no tuning table",
                     GB10_TUNING_VERSION);
    long version = strtol(part[1], &end, 10);
    if (*end || end == part[1] || version != GB10_TUNING_VERSION)
        return WRONG(r, "version %s; this program reads version %d. Print a table to start from.",
                     part[1], GB10_TUNING_VERSION);
    size_t length = strlen(part[2]);
    if (length == 0 || length >= sizeof r->table->name || strchr(part[2], ','))
        return WRONG(r, "the name \"%s\" must have 1 to %d characters and no comma", part[2],
                     (int)sizeof r->table->name - 1);
    memcpy(r->table->name, part[2], length + 1);
    return GB10_OK;
}

static gb10_status_t read_header(reader_t *r)
{
    char *part[COLUMNS];
    int n = split(r->text, part, COLUMNS);
    for (int i = 0; i < COLUMNS; i++)
        if (i >= n || strcmp(part[i], column_names[i]) != 0)
            return WRONG(r, "column %d is \"%s\", must be \"%s\"", i + 1, i < n ? part[i] : "",
                         column_names[i]);
    return GB10_OK;
}

/* Index of a word in a list, or -1. */
static int word_at(const char *word, const char *const *words, int n)
{
    for (int i = 0; i < n; i++)
        if (strcmp(word, words[i]) == 0)
            return i;
    return -1;
}

static gb10_status_t read_number(reader_t *r, int column, const char *text, int64_t *value)
{
    char *end = NULL;
    errno = 0;
    *value = strtoll(text, &end, 10);
    if (end == text || *end || errno || *value < 1 || *value > SIZE_MAX_VALUE)
        return WRONG(r, "%s \"%s\" is not a whole number from 1 to %d", column_names[column], text,
                     SIZE_MAX_VALUE);
    return GB10_OK;
}

static bool same_series(const gb10_tuning_row_t *a, const gb10_tuning_row_t *b)
{
    return a->dtype == b->dtype && a->shape == b->shape && strcmp(a->isa, b->isa) == 0;
}

/* The last row of the same series, or NULL. */
static const gb10_tuning_row_t *before(const gb10_tuning_t *table, const gb10_tuning_row_t *row)
{
    for (int64_t i = table->nrows - 1; i >= 0; i--)
        if (same_series(&table->rows[i], row))
            return &table->rows[i];
    return NULL;
}

static gb10_status_t add_row(gb10_tuning_t *table, const gb10_tuning_row_t *row, gb10_error_t *err)
{
    size_t capacity = (size_t)table->capacity;
    gb10_tuning_row_t *rows = (gb10_tuning_row_t *)(uintptr_t)table->rows;
    gb10_status_t status =
        gb10_grow(&rows, &capacity, (size_t)table->nrows + 1, sizeof *rows, "tuning table", err);
    if (status != GB10_OK)
        return status;
    rows[table->nrows++] = *row;
    table->rows = rows;
    table->capacity = (int64_t)capacity;
    return GB10_OK;
}

static gb10_status_t read_row(reader_t *r)
{
    static const char *const dtypes[GB10_DTYPES] = {"s", "d", "c", "z"};
    char *part[COLUMNS];
    gb10_tuning_row_t row = {.n_max = INT64_MAX};
    gb10_status_t status = GB10_OK;
    int n = split(r->text, part, COLUMNS);
    if (n < COLUMNS)
        return WRONG(r, "%d columns, must be %d", n, COLUMNS);
    int dtype = word_at(part[1], dtypes, GB10_DTYPES);
    int shape = word_at(part[2], gb10_shape_class_names, GB10_SHAPE_CLASSES);
    int kernel = word_at(part[4], gb10_kernel_names, GB10_KERNELS);
    if (!*part[0] || strlen(part[0]) >= sizeof row.isa)
        return WRONG(r, "isa \"%s\" must have 1 to %d characters", part[0],
                     (int)sizeof row.isa - 1);
    if (dtype < 0)
        return WRONG(r, "dtype \"%s\" is none of s, d, c, z", part[1]);
    if (shape < 0)
        return WRONG(r, "shape \"%s\" is none of square, tall, wide", part[2]);
    if (kernel < 0)
        return WRONG(r, "kernel \"%s\" is none of lanes, blocks", part[4]);
    if (strlen(part[7]) >= sizeof row.provenance)
        return WRONG(r, "provenance is longer than %d characters", (int)sizeof row.provenance - 1);
    memcpy(row.isa, part[0], strlen(part[0]) + 1);
    memcpy(row.provenance, part[7], strlen(part[7]) + 1);
    row.dtype = (gb10_dtype_t)dtype;
    row.shape = (gb10_shape_class_t)shape;
    row.kernel = (gb10_kernel_t)kernel;
    if (strcmp(part[3], "any") != 0)
        GB10_TRY(read_number(r, 3, part[3], &row.n_max));
    GB10_TRY(read_number(r, 5, part[5], &row.block));
    GB10_TRY(read_number(r, 6, part[6], &row.group));
    const gb10_tuning_row_t *last = before(r->table, &row);
    if (last && last->n_max >= row.n_max)
        return WRONG(r, "n_max %s does not exceed that of the row before in its series", part[3]);
    status = add_row(r->table, &row, r->err);
cleanup:
    return status;
}

/* Every series that has been started ends with "any"; those that have not are the built-in ones. */
static gb10_status_t complete(reader_t *r)
{
    const gb10_tuning_t *own = gb10_tuning_builtin();
    const int64_t read = r->table->nrows;
    for (int64_t i = 0; i < read; i++) {
        const gb10_tuning_row_t *row = &r->table->rows[i], *last = before(r->table, row);
        if (last->n_max < INT64_MAX)
            return WRONG(r, "end of the table: %s %c %s ends with n_max %" PRId64 ", not any",
                         row->isa, gb10_dtype_letter(row->dtype),
                         gb10_shape_class_names[row->shape], last->n_max);
    }
    gb10_tuning_t given = *r->table;
    for (int64_t i = 0; i < own->nrows; i++) {
        given.rows = r->table->rows;
        if (before(&given, &own->rows[i]))
            continue;
        gb10_status_t status = add_row(r->table, &own->rows[i], r->err);
        if (status != GB10_OK)
            return status;
    }
    return GB10_OK;
}

gb10_status_t gb10_tuning_parse(gb10_tuning_t **table, const char *text, gb10_error_t *err)
{
    reader_t r = {.at = text, .err = err};
    gb10_status_t status = GB10_OK;
    bool end;
    *table = NULL;
    GB10_TRY(gb10_alloc(&r.table, 1, sizeof *r.table, "tuning table", err));
    for (int64_t lines = 0;; lines++) {
        GB10_TRY(next_line(&r, &end));
        if (end && lines < 2) {
            status = WRONG(&r, "the end, before the %s", lines ? "column names" : "version");
            goto cleanup;
        }
        if (end)
            break;
        GB10_TRY(lines == 0 ? read_version(&r) : lines == 1 ? read_header(&r) : read_row(&r));
    }
    GB10_TRY(complete(&r));
    *table = r.table;
    r.table = NULL;
cleanup:
    gb10_tuning_free(r.table);
    return status;
}

void gb10_tuning_free(gb10_tuning_t *table)
{
    if (table && table->capacity > 0)
        gb10_free((void *)(uintptr_t)table->rows);
    gb10_free(table);
}
