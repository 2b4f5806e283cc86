/* Rectangles of matrices, read and written at odd places, against whole matrices. */
#include "io/h5lib.h"
#include "io/rawfile.h"
#include "tests/support/io_files.h"

enum { COUNT = 3, M = 13, N = 9 };

/* One way to store COUNT matrices of M x N. */
typedef struct stored {
    const char *name;
    hid_t type;
    hsize_t chunk[3]; /* zeros: contiguous */
    bool filtered;
} stored_t;

/* Values that every type here holds exactly. */
static void make_dataset(hid_t file, const stored_t *s)
{
    const hsize_t dims[3] = {COUNT, M, N};
    double values[COUNT * M * N];
    for (int i = 0; i < COUNT * M * N; i++)
        values[i] = (i * 37) % 120 - 60;
    hid_t space = H5Screate_simple(3, dims, NULL), how = H5Pcreate(H5P_DATASET_CREATE);
    if (s->chunk[0])
        cr_assert(H5Pset_chunk(how, 3, s->chunk) >= 0);
    if (s->filtered)
        cr_assert(H5Pset_deflate(how, 1) >= 0);
    hid_t set = H5Dcreate2(file, s->name, s->type, space, H5P_DEFAULT, how, H5P_DEFAULT);
    cr_assert(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    cr_assert(H5Dclose(set) >= 0 && H5Pclose(how) >= 0 && H5Sclose(space) >= 0);
}

static void make_stored(void)
{
    const stored_t sets[] = {{"/chunked", H5T_NATIVE_FLOAT, {2, 5, 4}, false},
                             {"/d", H5T_NATIVE_DOUBLE, {0}, false},
                             {"/deflated", H5T_IEEE_F64BE, {1, 4, 9}, true},
                             {"/long", H5T_NATIVE_LDOUBLE, {0}, false},
                             {"/short", H5T_STD_I16BE, {0}, false},
                             {"/swapped", H5T_IEEE_F32BE, {0}, false},
                             {"/wide", H5T_STD_I64LE, {3, 13, 2}, false}};
    hid_t file = H5Fcreate("in.h5", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        make_dataset(file, &sets[i]);
    cr_assert(H5Fclose(file) >= 0);
}

/* Odd places: one element, a row, a column, whole rows, all, nothing, the last corner. */
static const io_rect_t places[] = {{0, 0, 1, 1},  {5, 2, 1, 7}, {3, 8, 10, 1}, {4, 0, 6, N},
                                   {0, 0, M, N},  {2, 3, 0, 4}, {7, 7, 6, 2},  {M, N, 0, 0},
                                   {1, 1, 11, 5}, {6, 4, 3, 0}, {12, 0, 1, N}, {0, 3, M, 3}};
enum { PLACES = sizeof places / sizeof *places };

static void check_place(io_reader_t *reader, const io_catalog_t *c, int64_t d, int64_t index,
                        const io_rect_t *rect, const char *whole)
{
    size_t e = gb10_dtype_size(c->datasets[d].dtype);
    unsigned char got[M * N * 16 + 16];
    gb10_error_t err = {0};
    memset(got, 0xa5, sizeof got);
    cr_assert_eq(io_read_rect(reader, d, index, rect, got, &err), GB10_OK, "%s: %s",
                 c->datasets[d].name, err.message);
    for (int64_t i = 0; i < rect->rows; i++)
        cr_expect_eq(memcmp(got + (size_t)(i * rect->columns) * e,
                            whole + (size_t)((rect->row + i) * N + rect->column) * e,
                            (size_t)rect->columns * e),
                     0, "%s[%d] row %d of %d+%d, %d+%d", c->datasets[d].name, (int)index, (int)i,
                     (int)rect->row, (int)rect->rows, (int)rect->column, (int)rect->columns);
    cr_expect_eq(got[(size_t)(rect->rows * rect->columns) * e], 0xa5, "written past the end");
}

Test(io_rect, read)
{
    static const io_rect_t outside[] = {
        {0, 0, M + 1, 1}, {-1, 0, 1, 1}, {0, 8, 1, 2}, {3, 0, 11, 1}};
    char folder[256], whole[M * N * 16];
    gb10_error_t err = {0};
    io_catalog_t c = {0};
    io_reader_t *reader = NULL;
    enter_folder(folder);
    make_stored();
    cr_assert_eq(io_catalog_open(&c, "in.h5", NULL, 0, IO_NARROW, &err), GB10_OK, "%s",
                 err.message);
    cr_assert_eq(c.ndatasets, 7);
    cr_assert_eq(io_reader_open(&reader, &c, &err), GB10_OK, "%s", err.message);
    for (int64_t d = 0; d < c.ndatasets; d++)
        for (int64_t index = 0; index < COUNT; index++) {
            cr_assert_eq(io_read(reader, d, index, 1, whole, &err), GB10_OK, "%s", err.message);
            for (int i = 0; i < PLACES; i++)
                check_place(reader, &c, d, index, &places[i], whole);
        }
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
        cr_expect_eq(io_read_rect(reader, 1, 0, &outside[i], whole, NULL), GB10_ERR_INTERNAL);
    cr_expect_eq(io_read_rect(reader, 1, COUNT, &places[0], whole, NULL), GB10_ERR_INTERNAL);
    io_reader_close(reader);
    io_catalog_free(&c);
    leave_folder(folder);
}

/* A wide integer is named by its place in the matrix. */
Test(io_rect, wide_integer_is_named)
{
    char folder[256], whole[M * N * 16];
    const hsize_t dims[2] = {4, 5};
    int64_t values[20] = {0};
    gb10_error_t err = {0};
    io_catalog_t c = {0};
    io_reader_t *reader = NULL;
    enter_folder(folder);
    values[3 * 5 + 2] = INT64_MAX;
    hid_t file = H5Fcreate("in.h5", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t space = H5Screate_simple(2, dims, NULL);
    hid_t set =
        H5Dcreate2(file, "a", H5T_NATIVE_INT64, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    cr_assert(H5Dwrite(set, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    cr_assert(H5Dclose(set) >= 0 && H5Sclose(space) >= 0 && H5Fclose(file) >= 0);
    cr_assert_eq(io_catalog_open(&c, "in.h5", NULL, 0, 0, &err), GB10_OK, "%s", err.message);
    cr_assert_eq(io_reader_open(&reader, &c, &err), GB10_OK, "%s", err.message);
    io_rect_t rect = {2, 1, 2, 3};
    cr_expect_eq(io_read_rect(reader, 0, 0, &rect, whole, &err), GB10_ERR_UNSUPPORTED);
    cr_expect_not_null(strstr(err.message, "matrix 0, row 3, column 2"), "%s", err.message);
    io_reader_close(reader);
    io_catalog_free(&c);
    leave_folder(folder);
}

/* Cuts rows x columns into rectangles of at most 3 x 4 and writes each from its bytes of `whole`.
 */
static void write_in_pieces(io_output_t *o, io_kind_t kind, int64_t d, int64_t index, int64_t rows,
                            int64_t columns, size_t e, const unsigned char *whole)
{
    gb10_error_t err = {0};
    unsigned char piece[3 * 4 * 16];
    for (int64_t i = 0; i < rows; i += 3)
        for (int64_t j = 0; j < columns; j += 4) {
            io_rect_t rect = {i, j, rows - i < 3 ? rows - i : 3, columns - j < 4 ? columns - j : 4};
            size_t line = (size_t)rect.columns * e;
            for (int64_t r = 0; r < rect.rows; r++)
                memcpy(piece + (size_t)r * line, whole + (size_t)((i + r) * columns + j) * e, line);
            cr_assert_eq(io_write_rect(o, kind, d, index, &rect, piece, &err), GB10_OK, "%s",
                         err.message);
        }
}

Test(io_rect, write)
{
    char folder[256];
    unsigned char want[4096], got[4096];
    gb10_error_t err = {0};
    io_catalog_t c = {0};
    io_output_t *o = NULL;
    const int64_t m = 7, n = 10, k = 7, nb = 3;
    const struct {
        io_kind_t kind;
        int64_t rows, columns;
    } kinds[] = {{IO_V, m, k}, {IO_T, nb, k}, {IO_R, k, n}, {IO_TAU, k, 1}, {IO_PACKED, m, n}};
    io_spec_t spec = {.kinds = 1u << IO_V | 1u << IO_T | 1u << IO_R | 1u << IO_TAU |
                               1u << IO_PACKED | 1u << IO_STATUS | 1u << IO_METRICS,
                      .nb = nb,
                      .nmetrics = METRICS};
    enter_folder(folder);
    cr_assert_eq(io_catalog_add(&c, "/z", GB10_Z, m, n, 2, &err), GB10_OK, "%s", err.message);
    cr_assert_eq(io_output_create(&o, "out.h5", &c, &spec, &err), GB10_OK, "%s", err.message);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        int64_t size = kinds[i].rows * kinds[i].columns * 16;
        fill_block(want, 0, (int)kinds[i].kind, 2 * size);
        for (int64_t index = 0; index < 2; index++)
            write_in_pieces(o, kinds[i].kind, 0, index, kinds[i].rows, kinds[i].columns, 16,
                            want + index * size);
        cr_assert_eq(io_read_back(o, kinds[i].kind, 0, 0, 2, got, &err), GB10_OK, "%s",
                     err.message);
        cr_expect_eq(memcmp(got, want, (size_t)(2 * size)), 0, "%s", io_kind_name(kinds[i].kind));
        cr_assert_eq(io_read_back_bytes(o, kinds[i].kind, 0, 17, size + 5, got, &err), GB10_OK);
        cr_expect_eq(memcmp(got, want + 17, (size_t)size + 5), 0);
        cr_expect_eq(io_read_back_bytes(o, kinds[i].kind, 0, size, size + 1, got, NULL),
                     GB10_ERR_INTERNAL);
        io_rect_t beyond = {0, 1, 1, kinds[i].columns};
        cr_expect_eq(io_write_rect(o, kinds[i].kind, 0, 0, &beyond, want, NULL), GB10_ERR_INTERNAL);
    }
    io_output_close(o);
    io_catalog_free(&c);
    leave_folder(folder);
}

/* The attribute grid: there from the start, joined by that of a later run, once. */
Test(io_rect, grids_add_up)
{
    static const char *const first[] = {"12x1, blocks of 64", NULL};
    static const char *const later[] = {"2x1, blocks of 64", NULL};
    char folder[256];
    gb10_error_t err = {0};
    io_catalog_t c = {0};
    io_output_t *o = NULL;
    io_result_t result = {.fd = -1};
    io_spec_t spec = {.kinds = 1u << IO_STATUS | 1u << IO_METRICS,
                      .nb = 2,
                      .nmetrics = 1,
                      .metric_columns = "x",
                      .grid = first};
    enter_folder(folder);
    cr_assert_eq(io_catalog_add(&c, "/a", GB10_D, 3, 3, 1, &err), GB10_OK, "%s", err.message);
    cr_assert_eq(io_catalog_add(&c, "/b", GB10_D, 3, 3, 1, &err), GB10_OK, "%s", err.message);
    cr_assert_eq(io_output_create(&o, "out.h5", &c, &spec, &err), GB10_OK, "%s", err.message);
    io_output_close(o);
    spec.grid = later;
    for (int run = 0; run < 3; run++) {
        cr_assert_eq(io_output_reopen(&o, "out.h5", &c, &spec, &err), GB10_OK, "%s", err.message);
        io_output_close(o);
    }
    cr_assert_eq(io_result_open(&result, "out.h5.part", &err), GB10_OK, "%s", err.message);
    cr_assert_not_null(result.groups[0].grid);
    cr_expect_str_eq(result.groups[0].grid, "12x1, blocks of 64; 2x1, blocks of 64");
    cr_expect_null(result.groups[1].grid);
    io_result_close(&result);
    io_catalog_free(&c);
    leave_folder(folder);
}
