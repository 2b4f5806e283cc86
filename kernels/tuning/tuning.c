#include "kernels/tuning/tuning.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

const char *const gb10_shape_class_names[GB10_SHAPE_CLASSES] = {"square", "tall", "wide"};
const char *const gb10_kernel_names[GB10_KERNELS] = {"lanes", "blocks"};

gb10_shape_class_t gb10_shape_class(int64_t m, int64_t n)
{
    return m < n ? GB10_WIDE : m / 4 >= n ? GB10_HIGH : GB10_SQUARE;
}

static const gb10_tuning_row_t *find_in(const gb10_tuning_t *table, const char *isa,
                                        gb10_dtype_t dtype, gb10_shape_class_t shape, int64_t k)
{
    for (int64_t i = 0; i < table->nrows; i++) {
        const gb10_tuning_row_t *row = &table->rows[i];
        if (k <= row->n_max && row->dtype == dtype && row->shape == shape &&
            strcmp(row->isa, isa) == 0)
            return row;
    }
    return NULL;
}

const gb10_tuning_row_t *gb10_tuning_find(const gb10_tuning_t *table, const char *isa,
                                          gb10_dtype_t dtype, int64_t m, int64_t n)
{
    gb10_shape_class_t shape = gb10_shape_class(m, n);
    int64_t k = m < n ? m : n;
    const gb10_tuning_row_t *row = find_in(table, isa, dtype, shape, k);
    return row ? row : find_in(table, "baseline", dtype, shape, k);
}

/* "avx2,d,square,32,lanes,32,48": what a row decides. */
static void write_row(const gb10_tuning_row_t *row, char *text, size_t size)
{
    char n_max[32] = "any";
    if (row->n_max < INT64_MAX)
        snprintf(n_max, sizeof n_max, "%" PRId64, row->n_max);
    snprintf(text, size, "%s,%c,%s,%s,%s,%" PRId64 ",%" PRId64, row->isa,
             gb10_dtype_letter(row->dtype), gb10_shape_class_names[row->shape], n_max,
             gb10_kernel_names[row->kernel], row->block, row->group);
}

void gb10_tuning_write_stamp(const gb10_tuning_t *table, char text[GB10_TUNING_STAMP])
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    char row[160];
    for (int64_t i = 0; i < table->nrows; i++) {
        write_row(&table->rows[i], row, sizeof row);
        for (const char *p = row;; p++) {
            hash = (hash ^ (unsigned char)*p) * UINT64_C(0x100000001b3);
            if (!*p)
                break;
        }
    }
    snprintf(text, GB10_TUNING_STAMP, "%s v%d %08" PRIx32, table->name, GB10_TUNING_VERSION,
             (uint32_t)(hash ^ hash >> 32));
}

/* Appends to text of `size` bytes at *used, which counts on past its end. */
static void append(char *text, size_t size, size_t *used, const char *line)
{
    size_t length = strlen(line);
    if (*used < size) {
        size_t room = size - *used - 1, part = length < room ? length : room;
        memcpy(text + *used, line, part);
        text[*used + part] = '\0';
    }
    *used += length;
}

size_t gb10_tuning_print(const gb10_tuning_t *table, char *text, size_t size)
{
    static const char comment[] =
        "# Tuning table of fugu. Rows of one isa, dtype and shape are a series: n_max ascends and\n"
        "# is the largest min(m, n) of a row, the last says any. A series that is not here is the\n"
        "# built-in one. Shapes: square n <= m < 4n, tall m >= 4n, wide m < n.\n";
    char row[160], line[320];
    size_t used = 0;
    if (size > 0)
        text[0] = '\0';
    append(text, size, &used, comment);
    snprintf(line, sizeof line, "fugu-tuning,%d,%s\n", GB10_TUNING_VERSION, table->name);
    append(text, size, &used, line);
    append(text, size, &used, "isa,dtype,shape,n_max,kernel,block,group,provenance\n");
    for (int64_t i = 0; i < table->nrows; i++) {
        write_row(&table->rows[i], row, sizeof row);
        snprintf(line, sizeof line, "%s,%s\n", row, table->rows[i].provenance);
        append(text, size, &used, line);
    }
    return used;
}
