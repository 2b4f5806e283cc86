/* Files of matrices: catalog and reader of the input, layout and writer of the output, and a reader
 * of finished outputs. See FORMAT.md. The HDF5 serial library is used for structure and for data
 * that is not contiguous; all other data moves by positioned reads and writes. Thread-safe after
 * open. No HDF5 type appears here. */
#ifndef IO_IO_H
#define IO_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/core/plan.h"
#include "kernels/core/status.h"
#include "kernels/core/types.h"

/* Version of the HDF5 library in use, as "1.10.8". */
const char *io_library_version(void);

enum { IO_RANK_MAX = 32, IO_ELEMENT_TEXT = 64 };

/* How one number is stored in a file. */
typedef enum io_class { IO_FLOAT = 0, IO_INT = 1, IO_UINT = 2 } io_class_t;

/* How one element is stored: one number, or two (re, im) at byte offsets of a compound.
 * Floats are IEEE binary16/32/64, bfloat16 or long double, told apart by exponent and mantissa. */
typedef struct io_element {
    io_class_t cls;
    bool big_endian;
    bool is_complex;
    bool is_bool;  /* an enum {FALSE, TRUE}               */
    uint8_t bytes; /* of one number                       */
    uint8_t exponent_bits, mantissa_bits;
    uint32_t size; /* bytes of the whole element          */
    uint32_t re_offset, im_offset;
} io_element_t;

/* "float32", "big-endian complex of float16", "int64", "bool" ...; returns text. */
const char *io_element_text(const io_element_t *element, char text[IO_ELEMENT_TEXT]);

/* One batch of matrices in a file: dims = leading dimensions, then m, n. Its three allocations
 * belong to the catalog. */
typedef struct io_dataset {
    char *name;          /* full path, the first hard link in name order                   */
    char *aliases;       /* other paths to it, separated by '\n', or NULL                  */
    int64_t *dims;       /* rank of them                                                   */
    gb10_dtype_t dtype;  /* type it is factored in                                         */
    int rank;            /* 2 .. IO_RANK_MAX                                               */
    int64_t m, n, count; /* count = product of the leading dimensions                      */
    int64_t quantum;     /* matrices to read together so that no chunk is read twice       */
    int64_t offset;      /* file offset of contiguous data, or -1: read through HDF5       */
    bool filtered;
    io_element_t element;
} io_dataset_t;

/* Something in the file that is not a batch, and why; or a warning (a broken link). */
typedef struct io_note {
    char *name, *reason;
    bool warning;
} io_note_t;

/* A file beside the input that its batches are read from: an external link, a source of a virtual
 * dataset, raw data. */
typedef struct io_file {
    uint64_t device, inode;
} io_file_t;

typedef struct io_catalog {
    char *path;
    int64_t file_size, mtime_ns;
    uint64_t device, inode;
    bool narrow; /* rounding to double is allowed */
    int64_t ndatasets;
    io_dataset_t *datasets; /* in name order */
    int64_t nnotes;
    io_note_t *notes;
    int64_t nfiles;
    io_file_t *files; /* not packed */
    size_t dataset_capacity, note_capacity, file_capacity;
} io_catalog_t;

/* How io_catalog_open treats datasets of numbers that it cannot take as they are. */
enum {
    IO_NARROW = 1, /* long double and wide int64 may be rounded to double */
    IO_LENIENT = 2 /* a dataset that would be refused becomes a warning; no batch is no error */
};

/* Walks the file. patterns: shell patterns on a dataset's path or on another path to it, where *
 * also matches '/' and the first '/' may be left out (npatterns 0: every batch); a pattern that
 * matches no batch is an error. flags: IO_NARROW, IO_LENIENT. An unsupported type or filter, or a
 * virtual dataset without its sources, is an error only for a dataset that the patterns select. No
 * batch dataset at all is GB10_ERR_FORMAT. The catalog is the caller's; release with
 * io_catalog_free. */
gb10_status_t io_catalog_open(io_catalog_t *catalog, const char *path, const char *const *patterns,
                              int npatterns, unsigned flags, gb10_error_t *err);
void io_catalog_free(io_catalog_t *catalog);

/* The catalog without its notes and files as bytes for another rank (same machine type), and back.
 * *bytes from gb10_alloc. */
gb10_status_t io_catalog_pack(const io_catalog_t *catalog, void **bytes, size_t *size,
                              gb10_error_t *err);
gb10_status_t io_catalog_unpack(io_catalog_t *catalog, const void *bytes, size_t size,
                                gb10_error_t *err);

/* The catalog as the planner wants it: ndatasets batches, from gb10_alloc. */
gb10_status_t io_catalog_batches(const io_catalog_t *catalog, gb10_batch_t **batches,
                                 gb10_error_t *err);

/* 16 hex digits over names, dims, types and sizes (no times). text has room for 17 bytes. */
void io_catalog_fingerprint(const io_catalog_t *catalog, char *text);

/* Reads matrices of a catalogued file, converted to their dtype, row-major and dense. */
typedef struct io_reader io_reader_t;
gb10_status_t io_reader_open(io_reader_t **reader, const io_catalog_t *catalog, gb10_error_t *err);
gb10_status_t io_read(io_reader_t *reader, int64_t dataset, int64_t first, int64_t count, void *dst,
                      gb10_error_t *err);

/* Rows [row, row + rows) and columns [column, column + columns) of one matrix. */
typedef struct io_rect {
    int64_t row, column, rows, columns;
} io_rect_t;
/* The same of a rectangle of matrix `index`; dst is rows x columns, row-major and dense. */
gb10_status_t io_read_rect(io_reader_t *reader, int64_t dataset, int64_t index,
                           const io_rect_t *rect, void *dst, gb10_error_t *err);
/* GB10_ERR_FILE when size or modification time differ from the catalog's. */
gb10_status_t io_reader_unchanged(io_reader_t *reader, gb10_error_t *err);
void io_reader_close(io_reader_t *reader);

/* What a group of the output holds. IO_A is the batch itself (files that `gen` writes). */
typedef enum io_kind {
    IO_V = 0,
    IO_T = 1,
    IO_R = 2,
    IO_TAU = 3,
    IO_PACKED = 4,
    IO_STATUS = 5,  /* uint8, one per matrix              */
    IO_METRICS = 6, /* float64, io_spec.nmetrics a matrix */
    IO_A = 7,
    IO_SIGN = 8 /* int8, k of them a matrix           */
} io_kind_t;
enum { IO_KINDS = 9 };

/* "V", "T", "R", "tau", "packed", "status", "metrics", "", "sign". */
const char *io_kind_name(io_kind_t kind);

/* Bytes of kind `kind` for one m x n matrix, nb the block size asked for (T has min(nb, k) rows).
 * nmetrics: doubles per matrix. */
int64_t io_kind_bytes(io_kind_t kind, gb10_dtype_t dtype, int64_t m, int64_t n, int64_t nb,
                      int nmetrics);

/* One root attribute: a variable-length UTF-8 string, or an integer when text is NULL. */
typedef struct io_attribute {
    const char *name, *text;
    int64_t number;
} io_attribute_t;

typedef struct io_spec {
    uint32_t kinds; /* bit (1 << kind) for each dataset to create                 */
    int64_t nb;
    int nmetrics;
    const char *metric_columns; /* the attribute `columns` of metrics, names joined by commas  */
    const char *mode, *backend; /* go into each group's JSON attribute                         */
    const io_attribute_t *attributes;
    int nattributes;
    bool overwrite;
    const char *const *grid; /* of each batch: the attribute `grid` of its group, the process grid
                                of this run; or NULL for all or some                       */
    bool shared;             /* io_output_reopen: others write their parts of it at the same time */
} io_spec_t;

/* What to do about an output that is there: refuse it, go on with OUT.part (alone, or with others
 * that have it too), or replace it. */
typedef enum io_existing { IO_REFUSE, IO_RESUME, IO_SHARE, IO_REPLACE } io_existing_t;

/* An output being written: OUT.part until io_output_finish. */
typedef struct io_output io_output_t;

/* Everything that can be refused before work starts: output is the input (device + inode, also by
 * link), a file that the input's batches are read from or no regular file, OUT or OUT.part exists
 * (unless replaced; OUT.part unless resumed), another run holds OUT.part (GB10_ERR_EXISTS, in any
 * case), folder
 * missing or not writable, disk too small for `bytes`. catalog may be NULL (no input). Writes
 * nothing. */
gb10_status_t io_output_check(const char *path, const io_catalog_t *catalog, io_existing_t existing,
                              int64_t bytes, gb10_error_t *err);

/* Bytes of data the output will hold. */
int64_t io_output_bytes(const io_catalog_t *catalog, const io_spec_t *spec);

/* On one rank: creates OUT.part with every group and dataset, space reserved, flushed to disk, and
 * locked (flock) until io_output_close, so that no other run takes it. For IO_A the datasets take
 * the catalogued names themselves (catalog made by io_catalog_add). */
gb10_status_t io_output_create(io_output_t **output, const char *path, const io_catalog_t *catalog,
                               const io_spec_t *spec, gb10_error_t *err);

/* The same for an OUT.part that an earlier run with the same catalog and spec has laid out. A grid
 * that differs is added to the attribute. */
gb10_status_t io_output_reopen(io_output_t **output, const char *path, const io_catalog_t *catalog,
                               const io_spec_t *spec, gb10_error_t *err);

/* Lets others reopen it as shared; and ends that, false while others have it. */
void io_output_share(io_output_t *output);
bool io_output_claim(io_output_t *output);

/* OUT.part, the name that journals begin with. */
const char *io_output_part(const io_output_t *output);

/* The layout as bytes for another rank, and the same output opened there for raw writes. */
gb10_status_t io_output_pack(const io_output_t *output, void **bytes, size_t *size,
                             gb10_error_t *err);
gb10_status_t io_output_attach(io_output_t **output, const io_catalog_t *catalog, const void *bytes,
                               size_t size, gb10_error_t *err);

/* Raw positioned write and read of matrices [first, first + count) of one kind. */
gb10_status_t io_write(io_output_t *output, io_kind_t kind, int64_t dataset, int64_t first,
                       int64_t count, const void *src, gb10_error_t *err);
gb10_status_t io_read_back(io_output_t *output, io_kind_t kind, int64_t dataset, int64_t first,
                           int64_t count, void *dst, gb10_error_t *err);

/* Raw write of a rectangle of matrix `index` of one kind (tau and sign have k rows of one column);
 * src is row-major and dense. */
gb10_status_t io_write_rect(io_output_t *output, io_kind_t kind, int64_t dataset, int64_t index,
                            const io_rect_t *rect, const void *src, gb10_error_t *err);
/* Bytes [at, at + size) of all matrices of one kind, which lie one behind the other. */
gb10_status_t io_read_back_bytes(io_output_t *output, io_kind_t kind, int64_t dataset, int64_t at,
                                 int64_t size, void *dst, gb10_error_t *err);

/* This rank's writes are on the disk when it returns. */
gb10_status_t io_output_sync(io_output_t *output, gb10_error_t *err);

/* On the rank that created it, after all ranks have synced: sets `complete`, syncs, renames
 * OUT.part to OUT, syncs the folder. GB10_ERR_FILE when OUT.part is another file by now. */
gb10_status_t io_output_finish(io_output_t *output, gb10_error_t *err);
void io_output_close(io_output_t *output); /* leaves OUT.part as it is unless finished */
/* Removes an OUT.part that will not be finished, unless it is another file by now (NULL allowed);
 * io_output_close still follows. */
void io_output_discard(io_output_t *output);

/* Adds a batch to a catalog that describes a file to be made (gen). Sizes that cannot be stored,
 * paths with empty names, "." or "..", and a path that is there or below another batch are
 * GB10_ERR_USAGE. */
gb10_status_t io_catalog_add(io_catalog_t *catalog, const char *name, gb10_dtype_t dtype, int64_t m,
                             int64_t n, int64_t count, gb10_error_t *err);

/* Likewise a batch by the name, the type and the leading dimensions of another, of m x n. */
gb10_status_t io_catalog_add_like(io_catalog_t *catalog, const io_dataset_t *like, int64_t m,
                                  int64_t n, gb10_error_t *err);

/* One factored batch in an output file. */
typedef struct io_group {
    char *name; /* of the input dataset                                      */
    gb10_dtype_t dtype;
    int64_t m, n, k, nb, count;
    uint32_t kinds; /* bits of the datasets it holds                             */
    int64_t offset[IO_KINDS];
    int nmetrics; /* as many as the attribute `columns` of metrics names */
    char *grid;   /* the attribute `grid` or NULL                        */
} io_group_t;

/* A finished (or unfinished: complete = false) output, for verify and info. Opening checks that no
 * group, status or metrics is missing and that every dataset has the type, shape and place that
 * FORMAT.md says. GB10_ERR_FORMAT when the file is
 * not one of ours. */
typedef struct io_result {
    char *path;
    int64_t ngroups,
        ndatasets_expected; /* the latter as the root says; they agree once it is open */
    io_group_t *groups;
    bool complete;
    char *creator_version, *options, *backend, *isa, *fingerprint; /* root attributes or NULL */
    int fd;
} io_result_t;
/* True when the file is HDF5 and carries the attribute Conventions = fugu-1.x. */
bool io_is_result(const char *path);
gb10_status_t io_result_open(io_result_t *result, const char *path, gb10_error_t *err);
gb10_status_t io_result_read(io_result_t *result, io_kind_t kind, int64_t group, int64_t first,
                             int64_t count, void *dst, gb10_error_t *err);
void io_result_close(io_result_t *result);

#endif
