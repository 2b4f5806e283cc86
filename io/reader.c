/* Reading: contiguous data by positioned reads at its offset, everything else through HDF5 in the
 * file's own type; conversion is ours in both cases. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/element.h"
#include "io/fault.h"
#include "io/h5lib.h"
#include "io/io.h"
#include "io/rawfile.h"
#include "kernels/core/alloc.h"

/* Bytes read between conversions: of data read by position (it stays in the cache), of data read
 * through HDF5 into a buffer of its own, and of one dataset's chunk cache. */
enum { PIECE = 1 << 20, SCRATCH = 16 << 20, CHUNK_CACHE_MAX = 64 << 20 };

struct io_reader {
    const io_catalog_t *catalog;
    int fd;
    /* Under io_h5_lock: the file, opened when first needed, and the dataset read last. */
    hid_t file, dataset, type;
    int64_t current;
};

gb10_status_t io_reader_unchanged(io_reader_t *reader, gb10_error_t *err)
{
    const io_catalog_t *c = reader->catalog;
    struct stat info;
    if (fstat(reader->fd, &info) != 0)
        return GB10_FAIL(err, GB10_ERR_FILE, "%s: stat failed: %s.", c->path, strerror(errno));
    int64_t mtime = info.st_mtim.tv_sec * INT64_C(1000000000) + info.st_mtim.tv_nsec;
    if (info.st_size != c->file_size || mtime != c->mtime_ns)
        return GB10_FAIL(err, GB10_ERR_FILE,
                         "%s has changed since this run began (%s). Results would be of a mixture; "
                         "start again when nothing writes to it.",
                         c->path,
                         info.st_size != c->file_size ? "its size" : "its modification time");
    return GB10_OK;
}

gb10_status_t io_reader_open(io_reader_t **reader, const io_catalog_t *catalog, gb10_error_t *err)
{
    gb10_status_t status;
    io_reader_t *r = NULL;
    *reader = NULL;
    GB10_TRY(gb10_alloc(&r, 1, sizeof *r, "the reader", err));
    r->catalog = catalog;
    r->file = r->dataset = r->type = -1;
    r->current = -1;
    r->fd = open(catalog->path, O_RDONLY | O_CLOEXEC);
    if (r->fd < 0) {
        status = GB10_FAIL(err, GB10_ERR_FILE, "%s cannot be opened: %s.", catalog->path,
                           strerror(errno));
        goto cleanup;
    }
    GB10_TRY(io_reader_unchanged(r, err));
    *reader = r;
    return GB10_OK;
cleanup:
    io_reader_close(r);
    return status;
}

static void close_dataset(io_reader_t *r)
{
    io_h5_close(r->type);
    io_h5_close(r->dataset);
    r->dataset = r->type = -1;
    r->current = -1;
}

void io_reader_close(io_reader_t *reader)
{
    if (!reader)
        return;
    if (reader->file >= 0) {
        io_h5_lock();
        close_dataset(reader);
        io_h5_close(reader->file);
        io_h5_unlock();
    }
    if (reader->fd >= 0)
        close(reader->fd);
    gb10_free(reader);
}

/* A chunk cache that holds a row of chunks, so that a batch read in pieces unpacks each once. */
static hid_t dataset_access(const io_dataset_t *d)
{
    hid_t access = H5Pcreate(H5P_DATASET_ACCESS);
    int64_t matrix = d->m * d->n * (int64_t)d->element.size, bytes = CHUNK_CACHE_MAX;
    if (matrix < bytes && d->quantum * matrix < bytes)
        bytes = 2 * d->quantum * matrix;
    if (access >= 0 && d->filtered && bytes > (1 << 20))
        H5Pset_chunk_cache(access, 12421, (size_t)bytes, 1.0);
    return access;
}

/* Makes `dataset` the open one. Its type must still be the catalogued one: the bytes are taken as
 * they come. */
static gb10_status_t open_dataset(io_reader_t *r, int64_t dataset, gb10_error_t *err)
{
    const io_catalog_t *c = r->catalog;
    const io_dataset_t *d = &c->datasets[dataset];
    char reason[IO_REASON_MAX], why[IO_WHY_MAX];
    if (r->current == dataset)
        return GB10_OK;
    close_dataset(r);
    if (r->file < 0)
        r->file = io_h5_open(c->path, false);
    if (r->file < 0)
        return io_h5_open_failed(c->path, err);
    hid_t access = dataset_access(d);
    r->dataset = H5Dopen2(r->file, d->name, access);
    io_h5_close_keeping(access);
    r->type = r->dataset < 0 ? -1 : H5Dget_type(r->dataset);
    if (r->type < 0)
        return GB10_FAIL(err, GB10_ERR_FILE, "%s: %s cannot be opened: %s.", c->path, d->name,
                         io_h5_reason(reason));
    io_element_t element;
    gb10_dtype_t dtype;
    io_fitness_t fitness = io_element_classify(r->type, c->narrow, &element, &dtype, why);
    if (fitness != IO_FIT_BATCH || dtype != d->dtype || element.size != d->element.size)
        return GB10_FAIL(err, GB10_ERR_FILE, "%s: the type of %s has changed since the run began.",
                         c->path, d->name);
    r->current = dataset;
    return GB10_OK;
}

/* The largest block of whole rows that starts at element `at` of a row-major array and is no longer
 * than `left` elements. Returns its length. */
static int64_t block_at(const io_dataset_t *d, int64_t at, int64_t left, hsize_t *start,
                        hsize_t *count)
{
    int64_t inner = 1, grow = d->rank - 1;
    for (int i = d->rank - 1; i >= 0; i--) {
        start[i] = (hsize_t)(at % d->dims[i]);
        at /= d->dims[i];
    }
    for (int i = 0; i < d->rank; i++)
        count[i] = 1;
    /* Dimensions that are covered whole, from the last on. */
    while (grow > 0 && start[grow] == 0 && left / d->dims[grow] >= inner) {
        count[grow] = (hsize_t)d->dims[grow];
        inner *= d->dims[grow];
        grow--;
    }
    int64_t here = d->dims[grow] - (int64_t)start[grow];
    if (here > left / inner)
        here = left / inner;
    count[grow] = (hsize_t)here;
    return here * inner;
}

/* Reads one block of a dataset, `elements` of them, as they are stored. */
static gb10_status_t read_block(io_reader_t *r, int64_t dataset, const hsize_t *start,
                                const hsize_t *block, int64_t elements, void *dst,
                                gb10_error_t *err)
{
    const io_dataset_t *d = &r->catalog->datasets[dataset];
    hsize_t length = (hsize_t)elements;
    char reason[IO_REASON_MAX];
    gb10_status_t status;
    hid_t space = -1, memory = -1;
    io_h5_lock();
    GB10_TRY(open_dataset(r, dataset, err));
    space = H5Dget_space(r->dataset);
    memory = H5Screate_simple(1, &length, NULL);
    if (H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, block, NULL) < 0 ||
        H5Dread(r->dataset, r->type, memory, space, H5P_DEFAULT, dst) < 0)
        status =
            GB10_FAIL(err, GB10_ERR_FILE, "%s: %s: reading %lld elements from row %lld failed: %s.",
                      r->catalog->path, d->name, (long long)elements, (long long)start[d->rank - 2],
                      io_h5_reason(reason));
cleanup:
    io_h5_close(memory);
    io_h5_close(space);
    io_h5_unlock();
    return status;
}

/* Reads elements [first, first + count) of the flattened dataset as they are stored. */
static gb10_status_t read_stored(io_reader_t *r, int64_t dataset, int64_t first, int64_t count,
                                 char *dst, gb10_error_t *err)
{
    const io_dataset_t *d = &r->catalog->datasets[dataset];
    hsize_t start[IO_RANK_MAX], block[IO_RANK_MAX];
    gb10_status_t status = GB10_OK;
    while (count > 0 && status == GB10_OK) {
        int64_t done = block_at(d, first, count, start, block);
        status = read_block(r, dataset, start, block, done, dst, err);
        first += done;
        count -= done;
        dst += (size_t)done * d->element.size;
    }
    return status;
}

/* Reads a rectangle of matrix `index` as it is stored. */
static gb10_status_t read_stored_rect(io_reader_t *r, int64_t dataset, int64_t index,
                                      const io_rect_t *rect, void *dst, gb10_error_t *err)
{
    const io_dataset_t *d = &r->catalog->datasets[dataset];
    hsize_t start[IO_RANK_MAX], block[IO_RANK_MAX];
    for (int i = d->rank - 3; i >= 0; i--) {
        start[i] = (hsize_t)(index % d->dims[i]);
        block[i] = 1;
        index /= d->dims[i];
    }
    start[d->rank - 2] = (hsize_t)rect->row;
    start[d->rank - 1] = (hsize_t)rect->column;
    block[d->rank - 2] = (hsize_t)rect->rows;
    block[d->rank - 1] = (hsize_t)rect->columns;
    return read_block(r, dataset, start, block, rect->rows * rect->columns, dst, err);
}

static gb10_status_t fetch_rect(io_reader_t *r, int64_t dataset, int64_t index,
                                const io_rect_t *rect, char *dst, gb10_error_t *err)
{
    const io_dataset_t *d = &r->catalog->datasets[dataset];
    int64_t e = d->element.size, rows = rect->columns == d->n ? rect->rows : 1;
    gb10_status_t status = GB10_OK;
    if (d->offset < 0)
        return read_stored_rect(r, dataset, index, rect, dst, err);
    for (int64_t i = 0; i < rect->rows && status == GB10_OK; i += rows) {
        int64_t from = (index * d->m + rect->row + i) * d->n + rect->column;
        status = io_raw_read(r->fd, dst + i * rect->columns * e, (size_t)(rows * rect->columns * e),
                             d->offset + from * e, r->catalog->path, d->name, err);
    }
    return status;
}

static gb10_status_t fetch(io_reader_t *r, int64_t dataset, int64_t first, int64_t count, void *dst,
                           gb10_error_t *err)
{
    const io_dataset_t *d = &r->catalog->datasets[dataset];
    if (d->offset < 0)
        return read_stored(r, dataset, first, count, dst, err);
    return io_raw_read(r->fd, dst, (size_t)count * d->element.size,
                       d->offset + first * (int64_t)d->element.size, r->catalog->path, d->name,
                       err);
}

/* Elements to read at once: whole matrices or rows when they fit. */
static int64_t piece_of(const io_dataset_t *d, bool native, bool scratch)
{
    int64_t bytes = IO_CALL_MAX;
    if (scratch)
        bytes = SCRATCH;
    else if (!native && d->offset >= 0)
        bytes = PIECE;
    int64_t piece = bytes / (int64_t)d->element.size, matrix = d->m * d->n;
    int64_t whole = piece >= matrix ? matrix : d->n;
    if (piece >= matrix * d->quantum)
        whole = matrix * d->quantum;
    if (piece >= whole)
        piece -= piece % whole;
    return piece > 0 ? piece : 1;
}

static gb10_status_t wide_integer(const io_reader_t *r, const io_dataset_t *d, int64_t element,
                                  const void *stored, gb10_error_t *err)
{
    char value[IO_ELEMENT_TEXT], kind[IO_ELEMENT_TEXT];
    io_integer_text(&d->element, stored, value);
    return GB10_FAIL(err, GB10_ERR_UNSUPPORTED,
                     "%s: %s is %s with values beyond 2^53 (matrix %lld, row %lld, column %lld: "
                     "%s); they would be rounded. Use --narrow to allow it, or --dataset to leave "
                     "it out.",
                     r->catalog->path, d->name, io_element_text(&d->element, kind),
                     (long long)(element / (d->m * d->n)), (long long)(element / d->n % d->m),
                     (long long)(element % d->n), value);
}

/* There are such matrices; and a fault on purpose. */
static gb10_status_t check_read(const io_catalog_t *c, int64_t dataset, int64_t first,
                                int64_t count, gb10_error_t *err)
{
    if (dataset < 0 || dataset >= c->ndatasets || first < 0 || count < 0 ||
        count > c->datasets[dataset].count || first > c->datasets[dataset].count - count)
        return GB10_FAIL(err, GB10_ERR_INTERNAL, "%s: no matrices %lld + %lld in dataset %lld",
                         c->path, (long long)first, (long long)count, (long long)dataset);
    int pretend = io_fault(IO_FAULT_READ);
    if (pretend)
        return GB10_FAIL(err, GB10_ERR_FILE, "%s: %s: %s", c->path, c->datasets[dataset].name,
                         strerror(pretend));
    return GB10_OK;
}

/* Stored elements no larger than the result are read into the end of dst and converted in place,
 * front to back; larger ones pass through a buffer. */
gb10_status_t io_read(io_reader_t *reader, int64_t dataset, int64_t first, int64_t count, void *dst,
                      gb10_error_t *err)
{
    const io_catalog_t *c = reader->catalog;
    gb10_status_t status = GB10_OK;
    char *buffer = NULL;
    GB10_TRY(check_read(c, dataset, first, count, err));
    const io_dataset_t *d = &c->datasets[dataset];
    const io_element_t *e = &d->element;
    int64_t total = count * d->m * d->n, begin = first * d->m * d->n;
    int64_t stored = (int64_t)e->size, size = (int64_t)gb10_dtype_size(d->dtype);
    if (total == 0)
        return GB10_OK;
    bool native = io_element_is_native(e, d->dtype), scratch = stored > size;
    int64_t piece = piece_of(d, native, scratch);
    if (scratch)
        GB10_TRY(gb10_alloc(&buffer, (size_t)(piece < total ? piece : total), (size_t)stored,
                            "the read buffer", err));
    for (int64_t i = 0; i < total; i += piece) {
        int64_t here = total - i < piece ? total - i : piece;
        char *raw = scratch ? buffer : (char *)dst + total * (size - stored) + i * stored;
        GB10_TRY(fetch(reader, dataset, begin + i, here, raw, err));
        if (native)
            continue;
        int64_t bad = io_convert(e, d->dtype, c->narrow, raw, (char *)dst + i * size, here);
        if (bad >= 0) {
            status = wide_integer(reader, d, begin + i + bad, raw + bad * stored, err);
            goto cleanup;
        }
    }
cleanup:
    gb10_free(buffer);
    return status;
}

gb10_status_t io_read_rect(io_reader_t *reader, int64_t dataset, int64_t index,
                           const io_rect_t *rect, void *dst, gb10_error_t *err)
{
    const io_catalog_t *c = reader->catalog;
    gb10_status_t status = GB10_OK;
    char *buffer = NULL;
    GB10_TRY(check_read(c, dataset, index, 1, err));
    const io_dataset_t *d = &c->datasets[dataset];
    if (!io_rect_fits(rect, d->m, d->n))
        return io_rect_outside(c->path, d->name, rect, err);
    int64_t total = rect->rows * rect->columns, stored = (int64_t)d->element.size;
    int64_t size = (int64_t)gb10_dtype_size(d->dtype);
    if (total == 0)
        return GB10_OK;
    if (stored > size)
        GB10_TRY(gb10_alloc(&buffer, (size_t)total, (size_t)stored, "the read buffer", err));
    char *raw = buffer ? buffer : (char *)dst + total * (size - stored);
    GB10_TRY(fetch_rect(reader, dataset, index, rect, raw, err));
    if (io_element_is_native(&d->element, d->dtype))
        goto cleanup;
    int64_t bad = io_convert(&d->element, d->dtype, c->narrow, raw, dst, total);
    if (bad >= 0) {
        int64_t row = rect->row + bad / rect->columns, column = rect->column + bad % rect->columns;
        status =
            wide_integer(reader, d, (index * d->m + row) * d->n + column, raw + bad * stored, err);
    }
cleanup:
    gb10_free(buffer);
    return status;
}
