/* Small files for the tests of io/: a folder of their own and an input made by io/ itself. */
#ifndef TESTS_SUPPORT_IO_FILES_H
#define TESTS_SUPPORT_IO_FILES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/io.h"
#include "kernels/core/alloc.h"
#include "tests/support/test.h"

/* Makes a new folder under TMPDIR and enters it; leave_folder removes it. */
static inline void enter_folder(char path[256])
{
    const char *base = getenv("TMPDIR");
    snprintf(path, 256, "%s/fugu_io_XXXXXX", base ? base : "/tmp");
    cr_assert_not_null(mkdtemp(path), "mkdtemp");
    cr_assert_eq(chdir(path), 0, "chdir");
}

static inline void leave_folder(const char *path)
{
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", path);
    cr_expect_eq(chdir("/"), 0, "chdir");
    cr_expect_eq(system(command), 0, "%s", command);
}

typedef struct batch_spec {
    const char *name;
    gb10_dtype_t dtype;
    int64_t m, n, count;
} batch_spec_t;

/* All types, all shapes of interest, an empty batch and empty sides. */
static const batch_spec_t batch_specs[] = {
    {"/a", GB10_S, 3, 2, 5},     {"/b/c", GB10_D, 2, 4, 3}, {"/b/d", GB10_C, 4, 4, 2},
    {"/b/e/f", GB10_Z, 5, 1, 4}, {"/e0", GB10_D, 3, 3, 0},  {"/m0", GB10_D, 0, 3, 2},
    {"/n0", GB10_S, 3, 0, 2},    {"/one", GB10_Z, 1, 1, 1},
};
enum { BATCH_SPECS = sizeof batch_specs / sizeof batch_specs[0], METRICS = 8 };

/* The value of byte i of kind `kind` of dataset d: no two blocks alike. */
static inline unsigned char test_byte(int64_t dataset, int kind, int64_t i)
{
    return (unsigned char)(dataset * 31 + kind * 7 + i * 13 + 1);
}

static inline void fill_block(unsigned char *block, int64_t dataset, int kind, int64_t size)
{
    for (int64_t i = 0; i < size; i++)
        block[i] = test_byte(dataset, kind, i);
}

static inline gb10_status_t describe_batches(io_catalog_t *catalog, gb10_error_t *err)
{
    gb10_status_t status = GB10_OK;
    memset(catalog, 0, sizeof *catalog);
    for (int i = 0; i < BATCH_SPECS && status == GB10_OK; i++) {
        const batch_spec_t *b = &batch_specs[i];
        status = io_catalog_add(catalog, b->name, b->dtype, b->m, b->n, b->count, err);
    }
    return status;
}

/* Every dataset of `kinds` written with its test bytes, one matrix at a time from the last. */
static inline gb10_status_t write_all(io_output_t *o, const io_catalog_t *c, const io_spec_t *s,
                                      gb10_error_t *err)
{
    unsigned char block[4096];
    for (int64_t d = 0; d < c->ndatasets; d++)
        for (int k = 0; k < IO_KINDS; k++) {
            const io_dataset_t *b = &c->datasets[d];
            int64_t one = io_kind_bytes((io_kind_t)k, b->dtype, b->m, b->n, s->nb, s->nmetrics);
            fill_block(block, d, k, b->count * one);
            for (int64_t i = b->count - 1; i >= 0 && s->kinds >> k & 1; i--) {
                gb10_status_t status = io_write(o, (io_kind_t)k, d, i, 1, block + i * one, err);
                if (status != GB10_OK)
                    return status;
            }
        }
    return GB10_OK;
}

/* Makes the input file of batch_specs. */
static inline gb10_status_t make_input(const char *path, gb10_error_t *err)
{
    gb10_status_t status;
    io_catalog_t catalog = {0};
    io_output_t *output = NULL;
    io_attribute_t attributes[] = {{"creator", "tests", 0}, {"seed", NULL, 5}};
    io_spec_t spec = {
        .kinds = 1u << IO_A, .attributes = attributes, .nattributes = 2, .overwrite = true};
    GB10_TRY(describe_batches(&catalog, err));
    GB10_TRY(io_output_create(&output, path, &catalog, &spec, err));
    GB10_TRY(write_all(output, &catalog, &spec, err));
    GB10_TRY(io_output_sync(output, err));
    GB10_TRY(io_output_finish(output, err));
cleanup:
    io_output_close(output);
    io_catalog_free(&catalog);
    return status;
}

/* What a run asks for: all kinds but A. */
static inline io_spec_t output_spec(void)
{
    static const io_attribute_t attributes[] = {
        {"creator", "fugu", 0},    {"creator_version", "0.0", 0},  {"options", "{\"nb\": 2}", 0},
        {"backend", "cpu-ref", 0}, {"instruction_set", "none", 0}, {"seed", NULL, -7}};
    io_spec_t spec = {.kinds = ((1u << IO_KINDS) - 1) & ~(1u << IO_A),
                      .nb = 2,
                      .nmetrics = METRICS,
                      .metric_columns = "a,b,c,d,e,f,g,h",
                      .mode = "fp64",
                      .backend = "cpu-ref",
                      .attributes = attributes,
                      .nattributes = 6};
    return spec;
}

#endif
