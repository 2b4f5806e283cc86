/* A catalog as bytes: a header, the datasets' fixed parts, then for each its dims, name and other
 * names. For ranks of one job on machines of one type, not for files. */
#include <string.h>

#include "io/io.h"
#include "kernels/core/alloc.h"

static const char magic[8] = "fugucat";

typedef struct header {
    char magic[8];
    int64_t ndatasets, file_size, mtime_ns, path_size;
    uint64_t device, inode;
    int64_t narrow;
} header_t;

typedef struct span {
    unsigned char *at;
    size_t left;
} span_t;

/* Bytes of a string with its end; 0 for NULL. */
static size_t text_size(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

static void put(span_t *to, const void *bytes, size_t size)
{
    if (size)
        memcpy(to->at, bytes, size);
    to->at += size;
}

/* Where the next `size` bytes are, or NULL past the end. */
static const void *take(span_t *from, size_t size)
{
    const void *here = from->at;
    if (size > from->left)
        return NULL;
    from->at += size;
    from->left -= size;
    return here;
}

static void put_text(span_t *to, const char *text)
{
    uint64_t size = text_size(text);
    put(to, &size, sizeof size);
    put(to, text, size);
}

static gb10_status_t damaged(gb10_error_t *err)
{
    return GB10_FAIL(err, GB10_ERR_INTERNAL, "the catalog received from rank 0 is damaged");
}

static gb10_status_t take_text(span_t *from, char **text, gb10_error_t *err)
{
    uint64_t size;
    const void *bytes = take(from, sizeof size);
    if (!bytes)
        return damaged(err);
    memcpy(&size, bytes, sizeof size);
    *text = NULL;
    if (size == 0)
        return GB10_OK;
    const char *source = take(from, size);
    if (!source || source[size - 1])
        return damaged(err);
    return gb10_strdup(text, source, err);
}

gb10_status_t io_catalog_pack(const io_catalog_t *catalog, void **bytes, size_t *size,
                              gb10_error_t *err)
{
    header_t head = {.ndatasets = catalog->ndatasets,
                     .file_size = catalog->file_size,
                     .mtime_ns = catalog->mtime_ns,
                     .path_size = (int64_t)text_size(catalog->path),
                     .device = catalog->device,
                     .inode = catalog->inode,
                     .narrow = catalog->narrow};
    memcpy(head.magic, magic, sizeof magic);
    *size = sizeof head + sizeof(uint64_t) + text_size(catalog->path);
    for (int64_t i = 0; i < catalog->ndatasets; i++) {
        const io_dataset_t *d = &catalog->datasets[i];
        *size += sizeof *d + (size_t)d->rank * sizeof *d->dims + 2 * sizeof(uint64_t) +
                 text_size(d->name) + text_size(d->aliases);
    }
    gb10_status_t status = gb10_alloc(bytes, *size, 1, "the packed catalog", err);
    if (status != GB10_OK)
        return status;
    span_t to = {*bytes, *size};
    put(&to, &head, sizeof head);
    put_text(&to, catalog->path);
    for (int64_t i = 0; i < catalog->ndatasets; i++) {
        const io_dataset_t *d = &catalog->datasets[i];
        io_dataset_t fixed = *d;
        fixed.name = fixed.aliases = NULL;
        fixed.dims = NULL;
        put(&to, &fixed, sizeof fixed);
        put(&to, d->dims, (size_t)d->rank * sizeof *d->dims);
        put_text(&to, d->name);
        put_text(&to, d->aliases);
    }
    return GB10_OK;
}

static gb10_status_t unpack_dataset(io_catalog_t *catalog, span_t *from, gb10_error_t *err)
{
    gb10_status_t status;
    io_dataset_t *d = &catalog->datasets[catalog->ndatasets];
    const void *fixed = take(from, sizeof *d);
    if (!fixed)
        return damaged(err);
    memcpy(d, fixed, sizeof *d);
    d->name = d->aliases = NULL;
    d->dims = NULL;
    catalog->ndatasets++;
    if (d->rank < 0 || d->rank > IO_RANK_MAX)
        return damaged(err);
    size_t size = (size_t)d->rank * sizeof *d->dims;
    const void *dims = take(from, size);
    if (!dims)
        return damaged(err);
    GB10_TRY(gb10_alloc(&d->dims, (size_t)d->rank, sizeof *d->dims, "dimensions", err));
    memcpy(d->dims, dims, size);
    GB10_TRY(take_text(from, &d->name, err));
    GB10_TRY(take_text(from, &d->aliases, err));
cleanup:
    return status;
}

gb10_status_t io_catalog_unpack(io_catalog_t *catalog, const void *bytes, size_t size,
                                gb10_error_t *err)
{
    span_t from = {(unsigned char *)(uintptr_t)bytes, size};
    header_t head;
    gb10_status_t status;
    memset(catalog, 0, sizeof *catalog);
    const void *start = take(&from, sizeof head);
    if (!start)
        return damaged(err);
    memcpy(&head, start, sizeof head);
    if (memcmp(head.magic, magic, sizeof magic) != 0 || head.ndatasets < 0 ||
        (uint64_t)head.ndatasets > size / sizeof(io_dataset_t))
        return damaged(err);
    catalog->file_size = head.file_size;
    catalog->mtime_ns = head.mtime_ns;
    catalog->device = head.device;
    catalog->inode = head.inode;
    catalog->narrow = head.narrow != 0;
    GB10_TRY(take_text(&from, &catalog->path, err));
    GB10_TRY(gb10_grow(&catalog->datasets, &catalog->dataset_capacity, (size_t)head.ndatasets,
                       sizeof *catalog->datasets, "the catalog", err));
    for (int64_t i = 0; i < head.ndatasets; i++)
        GB10_TRY(unpack_dataset(catalog, &from, err));
cleanup:
    if (status != GB10_OK)
        io_catalog_free(catalog);
    return status;
}
