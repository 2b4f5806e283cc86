/* The catalog as data: packing, fingerprint, batches, what io_catalog_open refuses. */
#include <fcntl.h>
#include <sys/stat.h>

#include "tests/support/io_files.h"

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static void expect_same(const io_catalog_t *a, const io_catalog_t *b)
{
    cr_assert_eq(a->ndatasets, b->ndatasets);
    cr_expect(same_text(a->path, b->path) && a->file_size == b->file_size &&
              a->mtime_ns == b->mtime_ns && a->inode == b->inode && a->device == b->device &&
              a->narrow == b->narrow);
    for (int64_t i = 0; i < a->ndatasets; i++) {
        const io_dataset_t *x = &a->datasets[i], *y = &b->datasets[i];
        cr_expect(same_text(x->name, y->name) && same_text(x->aliases, y->aliases), "%s", x->name);
        cr_expect(x->dtype == y->dtype && x->rank == y->rank && x->m == y->m && x->n == y->n &&
                      x->count == y->count && x->quantum == y->quantum && x->offset == y->offset &&
                      x->filtered == y->filtered,
                  "%s", x->name);
        cr_expect_eq(memcmp(x->dims, y->dims, (size_t)x->rank * sizeof *x->dims), 0, "%s", x->name);
        cr_expect_eq(memcmp(&x->element, &y->element, sizeof x->element), 0, "%s", x->name);
    }
}

Test(io_catalog, pack_and_unpack)
{
    io_catalog_t a, b;
    gb10_error_t err = {0};
    void *bytes = NULL;
    size_t size;
    char one[17], two[17];
    cr_assert_eq(describe_batches(&a, &err), GB10_OK, "%s", err.message);
    cr_assert_eq(gb10_strdup(&a.path, "some/file.h5", NULL), GB10_OK);
    cr_assert_eq(gb10_strdup(&a.datasets[1].aliases, "/x\n/y/z", NULL), GB10_OK);
    a.datasets[2].offset = 1 << 20;
    a.datasets[2].quantum = 12;
    a.datasets[3].filtered = a.narrow = true;
    a.file_size = 12345;
    a.mtime_ns = 678;
    a.device = 9;
    a.inode = 10;
    cr_assert_eq(io_catalog_pack(&a, &bytes, &size, &err), GB10_OK, "%s", err.message);
    cr_assert_eq(io_catalog_unpack(&b, bytes, size, &err), GB10_OK, "%s", err.message);
    expect_same(&a, &b);
    io_catalog_fingerprint(&a, one);
    io_catalog_fingerprint(&b, two);
    cr_expect_str_eq(one, two);
    io_catalog_free(&b);
    for (size_t cut = 0; cut < size; cut++)
        cr_expect_eq(io_catalog_unpack(&b, bytes, cut, NULL), GB10_ERR_INTERNAL, "%zu bytes", cut);
    gb10_free(bytes);
    io_catalog_free(&a);
}

Test(io_catalog, fingerprint_sees_every_difference)
{
    char base[17], other[17], renamed[] = "/b/C";
    io_catalog_t c;
    cr_assert_eq(describe_batches(&c, NULL), GB10_OK);
    io_catalog_fingerprint(&c, base);
    cr_expect_eq(strlen(base), 16);
    for (int i = 0; i < 6; i++) {
        io_dataset_t saved = c.datasets[1];
        int64_t dim = saved.dims[0], size = c.file_size;
        if (i == 0)
            c.datasets[1].name = renamed;
        if (i == 1)
            c.datasets[1].dims[0]++;
        if (i == 2)
            c.datasets[1].dtype = GB10_Z;
        if (i == 3)
            c.datasets[1].element.big_endian ^= true;
        if (i == 4)
            c.file_size++;
        if (i == 5)
            c.datasets[1].element.size = 2;
        io_catalog_fingerprint(&c, other);
        cr_expect(strcmp(base, other) != 0, "difference %d", i);
        c.datasets[1] = saved;
        c.datasets[1].dims[0] = dim;
        c.file_size = size;
    }
    c.mtime_ns++;
    c.datasets[1].offset += 8;
    io_catalog_fingerprint(&c, other);
    cr_expect_str_eq(base, other, "times and places do not count");
    io_catalog_free(&c);
}

/* Readers deliver the type that is factored, so that is what a buffer is sized by. */
Test(io_catalog, batches)
{
    static const struct {
        const char *what;
        io_element_t element;
        gb10_dtype_t dtype;
        int64_t bytes;
    } cases[] = {
        {"float16", {.cls = IO_FLOAT, .bytes = 2, .size = 2}, GB10_S, 4},
        {"float32", {.cls = IO_FLOAT, .bytes = 4, .size = 4}, GB10_S, 4},
        {"float64, big-endian", {.cls = IO_FLOAT, .big_endian = true, .size = 8}, GB10_D, 8},
        {"long double", {.cls = IO_FLOAT, .bytes = 16, .size = 16}, GB10_D, 8},
        {"int8", {.cls = IO_INT, .bytes = 1, .size = 1}, GB10_D, 8},
        {"bool", {.cls = IO_INT, .is_bool = true, .bytes = 1, .size = 1}, GB10_D, 8},
        {"uint16, big-endian", {.cls = IO_UINT, .big_endian = true, .size = 2}, GB10_D, 8},
        {"int32", {.cls = IO_INT, .bytes = 4, .size = 4}, GB10_D, 8},
        {"uint64", {.cls = IO_UINT, .bytes = 8, .size = 8}, GB10_D, 8},
        {"complex of float16", {.is_complex = true, .bytes = 2, .size = 4}, GB10_C, 8},
        {"complex of float32, padded", {.is_complex = true, .bytes = 4, .size = 24}, GB10_C, 8},
        {"complex of float64", {.is_complex = true, .bytes = 8, .size = 16}, GB10_Z, 16},
        {"complex of long double", {.is_complex = true, .bytes = 16, .size = 32}, GB10_Z, 16}};
    enum { CASES = sizeof cases / sizeof cases[0] };
    io_catalog_t c = {0};
    gb10_batch_t *batches = NULL;
    for (int i = 0; i < CASES; i++) {
        char name[8];
        snprintf(name, sizeof name, "a%d", i);
        cr_assert_eq(io_catalog_add(&c, name, cases[i].dtype, 3 + i, 5, 7, NULL), GB10_OK);
        c.datasets[i].element = cases[i].element;
        c.datasets[i].quantum = i;
    }
    cr_assert_eq(io_catalog_batches(&c, &batches, NULL), GB10_OK);
    for (int i = 0; i < CASES; i++) {
        const gb10_batch_t *b = &batches[i];
        cr_expect(b->dtype == cases[i].dtype && b->m == 3 + i && b->n == 5 && b->count == 7 &&
                      b->quantum == (i ? i : 1),
                  "%s", cases[i].what);
        cr_expect_eq(b->source_bytes, (3 + i) * 5 * cases[i].bytes, "%s", cases[i].what);
    }
    gb10_free(batches);
    io_catalog_free(&c);
}

Test(io_catalog, add_refuses_sizes)
{
    static const struct {
        int64_t m, n, count;
        gb10_status_t status;
    } cases[] = {{1, 1, 1, GB10_OK},
                 {0, 0, 0, GB10_OK},
                 {-1, 1, 1, GB10_ERR_USAGE},
                 {1, -1, 1, GB10_ERR_USAGE},
                 {1, 1, -1, GB10_ERR_USAGE},
                 {INT64_C(1) << 31, INT64_C(1) << 31, 1, GB10_ERR_USAGE},
                 {INT64_C(1) << 20, INT64_C(1) << 20, INT64_C(1) << 20, GB10_ERR_USAGE}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        io_catalog_t c = {0};
        cr_expect_eq(io_catalog_add(&c, "x", GB10_D, cases[i].m, cases[i].n, cases[i].count, NULL),
                     cases[i].status, "case %zu", i);
        if (c.ndatasets)
            cr_expect_str_eq(c.datasets[0].name, "/x", "a path gets its first slash");
        io_catalog_free(&c);
    }
}

Test(io_catalog, add_refuses_paths)
{
    static const struct {
        const char *path, *message; /* NULL: taken */
    } cases[] = {{"a", NULL},
                 {"/g/b", NULL},
                 {"g/b.c", NULL},
                 {"ab", NULL},
                 {"...", NULL},
                 {"", "'/' cannot be the path of a batch"},
                 {"/", "'/' cannot be the path of a batch"},
                 {".", "'/.' cannot be"},
                 {"..", "'/..' cannot be"},
                 {"x/../y", "'/x/../y' cannot be"},
                 {"x//y", "'/x//y' cannot be"},
                 {"//x", "'//x' cannot be"},
                 {"x/", "'/x/' cannot be"},
                 {"/a", "two batches are named /a"},
                 {"a/x", "/a and /a/x: a batch cannot lie below another batch"},
                 {"g", "/g/b and /g: a batch cannot lie below another batch"}};
    io_catalog_t c = {0};
    int64_t taken = 0;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        gb10_error_t err = {0};
        gb10_status_t status = io_catalog_add(&c, cases[i].path, GB10_D, 1, 1, 1, &err);
        cr_expect_eq(status, cases[i].message ? GB10_ERR_USAGE : GB10_OK, "'%s'", cases[i].path);
        cr_expect(!cases[i].message || strstr(err.message, cases[i].message), "%s", err.message);
        taken += !cases[i].message;
        cr_expect_eq(c.ndatasets, taken, "'%s'", cases[i].path);
    }
    char deep[2 * 600 + 1] = "";
    for (size_t i = 0; i + 1 < sizeof deep; i += 2)
        memcpy(deep + i, "/d", 3);
    cr_expect_eq(io_catalog_add(&c, deep, GB10_D, 1, 1, 1, NULL), GB10_ERR_USAGE);
    io_catalog_free(&c);
}

Test(io_catalog, patterns)
{
    static const struct {
        const char *patterns[2];
        int n;
        int64_t found; /* -1: refused */
    } cases[] = {{{"/a"}, 1, 1},
                 {{"a"}, 1, 1},
                 {{"/b/*"}, 1, 3},
                 {{"*"}, 1, 8},
                 {{"/b/?", "/one"}, 2, 3},
                 {{"/a", "/a"}, 2, 1},
                 {{"/[mn]0"}, 1, 2},
                 {{"/nothing"}, 1, -1},
                 {{"/a", "/nothing"}, 2, -1}};
    char folder[256];
    gb10_error_t err = {0};
    enter_folder(folder);
    cr_assert_eq(make_input("in.h5", &err), GB10_OK, "%s", err.message);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        io_catalog_t c = {0};
        memset(&err, 0, sizeof err);
        gb10_status_t status = io_catalog_open(&c, "in.h5", cases[i].patterns, cases[i].n, 0, &err);
        cr_expect_eq(status, cases[i].found < 0 ? GB10_ERR_FORMAT : GB10_OK, "case %zu: %s", i,
                     err.message);
        if (status == GB10_OK)
            cr_expect_eq(c.ndatasets, cases[i].found, "case %zu: %d", i, (int)c.ndatasets);
        else
            cr_expect_not_null(strstr(err.message, "matches '/nothing'"), "%s", err.message);
        io_catalog_free(&c);
    }
    leave_folder(folder);
}

Test(io_catalog, files_that_are_none)
{
    static const struct {
        const char *path;
        gb10_status_t status;
        const char *message;
    } cases[] = {{"gone.h5", GB10_ERR_FILE, "gone.h5: there is no such file"},
                 {"folder", GB10_ERR_FILE, "folder is a directory"},
                 {"pipe", GB10_ERR_FILE, "pipe is not a regular file"},
                 {"empty", GB10_ERR_FORMAT, "empty is empty (0 bytes)"},
                 {"text", GB10_ERR_FORMAT, "text is not an HDF5 file"},
                 {"short.h5", GB10_ERR_FORMAT, "short.h5 is truncated"},
                 {"head.h5", GB10_ERR_FORMAT, "head.h5 is truncated"}};
    char folder[256];
    gb10_error_t err = {0};
    enter_folder(folder);
    cr_assert_eq(make_input("short.h5", &err), GB10_OK, "%s", err.message);
    cr_assert_eq(make_input("head.h5", &err), GB10_OK, "%s", err.message);
    cr_assert_eq(truncate("short.h5", 3000) + truncate("head.h5", 9) + mkdir("folder", 0755) +
                     mkfifo("pipe", 0644),
                 0);
    close(open("empty", O_CREAT | O_WRONLY, 0644));
    int fd = open("text", O_CREAT | O_WRONLY, 0644);
    cr_assert_eq(write(fd, "text\n", 5), 5);
    close(fd);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        io_catalog_t c = {0};
        memset(&err, 0, sizeof err);
        gb10_status_t status = io_catalog_open(&c, cases[i].path, NULL, 0, 0, &err);
        cr_expect_eq(status, cases[i].status, "%s: status %d", cases[i].path, status);
        cr_expect_eq(strncmp(err.message, cases[i].message, strlen(cases[i].message)), 0, "%s",
                     err.message);
        cr_expect_null(strchr(err.message, '\n'), "one line: %s", err.message);
        cr_expect_null(c.datasets);
        cr_expect_not(io_is_result(cases[i].path), "%s", cases[i].path);
    }
    leave_folder(folder);
}
