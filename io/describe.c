/* What one dataset is: shape, element, and how its bytes are reached. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "io/catalog.h"
#include "kernels/core/alloc.h"

enum { PATH_SIZE = 4096 };

static gb10_status_t refuse(io_found_t *found, const char *why, gb10_error_t *err)
{
    return found->refusal ? GB10_OK : gb10_strdup(&found->refusal, why, err);
}

/* Sets dims, m, n, count. False when the sizes overflow 64 bits. */
static bool set_shape(io_dataset_t *d, const hsize_t *dims)
{
    int64_t count = 1, bytes = 32;
    bool fits = true;
    for (int i = 0; i < d->rank; i++) {
        fits = fits && dims[i] <= INT64_MAX;
        d->dims[i] = (int64_t)dims[i];
        if (i < d->rank - 2)
            fits = fits && !__builtin_mul_overflow(count, d->dims[i], &count);
        fits = fits && !__builtin_mul_overflow(bytes, d->dims[i] ? d->dims[i] : 1, &bytes);
    }
    d->m = d->dims[d->rank - 2];
    d->n = d->dims[d->rank - 1];
    d->count = fits ? count : 0;
    return fits;
}

/* Matrices to read together so that no chunk is read twice: with j the first leading dimension
 * whose chunks are longer than 1, a row of chunks along j and everything after it; the whole of
 * dimension j when its chunks do not divide it evenly, as units start anywhere in the flattened
 * batch. */
static int64_t chunk_quantum(const io_dataset_t *d, const hsize_t *chunk)
{
    int lead = d->rank - 2, j = 0;
    while (j < lead && (chunk[j] <= 1 || d->dims[j] <= 1))
        j++;
    if (j >= lead || d->count == 0)
        return 1;
    int64_t inner = 1;
    for (int i = j + 1; i < lead; i++)
        inner *= d->dims[i];
    int64_t across = chunk[j] > (hsize_t)d->dims[j] ? d->dims[j] : (int64_t)chunk[j];
    bool outermost = d->count == d->dims[j] * inner;
    if (!outermost && d->dims[j] % across != 0)
        across = d->dims[j];
    return across * inner;
}

static gb10_status_t describe_filters(io_found_t *found, hid_t properties, gb10_error_t *err)
{
    gb10_status_t status;
    int nfilters = H5Pget_nfilters(properties);
    found->dataset.filtered = nfilters > 0;
    for (int i = 0; i < nfilters; i++) {
        char name[64] = "", why[IO_WHY_MAX];
        unsigned flags = 0;
        size_t nvalues = 0;
        H5Z_filter_t filter = H5Pget_filter2(properties, (unsigned)i, &flags, &nvalues, NULL,
                                             sizeof name, name, NULL);
        if (H5Zfilter_avail(filter) > 0)
            continue;
        snprintf(why, sizeof why,
                 "is compressed with HDF5 filter %d%s%.63s%s, which is not installed. Install its "
                 "plugin and set HDF5_PLUGIN_PATH, or use --dataset to leave it out.",
                 (int)filter, name[0] ? " (" : "", name, name[0] ? ")" : "");
        GB10_TRY(refuse(found, why, err));
    }
    status = GB10_OK;
cleanup:
    return status;
}

/* Where HDF5 looks for an external file: as named when that is an absolute path, else under
 * HDF5_EXTFILE_PREFIX, else under the current folder. */
static void external_path(const char *home, const char *name, char *path, size_t size)
{
    const char *prefix = getenv("HDF5_EXTFILE_PREFIX"), *origin = "${ORIGIN}";
    const char *end = strrchr(home, '/');
    if (name[0] == '/' || !prefix || !prefix[0] || strcmp(prefix, ".") == 0)
        snprintf(path, size, "%s", name);
    else if (strncmp(prefix, origin, strlen(origin)) == 0)
        snprintf(path, size, "%.*s%s/%s", end ? (int)(end - home) : 1, end ? home : ".",
                 prefix + strlen(origin), name);
    else
        snprintf(path, size, "%s/%s", prefix, name);
}

/* Raw data in files beside: HDF5 reads what is missing at their ends as zeros, so they are measured
 * before anything is read. */
static gb10_status_t describe_external(io_catalog_t *catalog, io_found_t *found, hid_t id,
                                       hid_t properties, gb10_error_t *err)
{
    const io_dataset_t *d = &found->dataset;
    char home[PATH_SIZE] = "", name[PATH_SIZE] = "", path[2 * PATH_SIZE + 2], why[IO_WHY_MAX];
    hsize_t left = found->refusal ? 0 : (hsize_t)(d->count * d->m * d->n) * d->element.size;
    int nfiles = H5Pget_external_count(properties);
    H5Fget_name(id, home, sizeof home);
    for (int i = 0; i < nfiles && left > 0; i++) {
        off_t offset = 0;
        hsize_t size = 0;
        struct stat info;
        why[0] = 0;
        if (H5Pget_external(properties, (unsigned)i, sizeof name, name, &offset, &size) < 0)
            return refuse(found, "has external files whose names cannot be read.", err);
        size = size < left ? size : left;
        left -= size;
        external_path(home, name, path, sizeof path);
        if (stat(path, &info) != 0)
            snprintf(why, sizeof why,
                     "has its data in the external file %.100s, which cannot be read (%s). Put it "
                     "back, or use --dataset to leave the batch out.",
                     path, strerror(errno));
        else if (offset < 0 || size > INT64_MAX || info.st_size < offset ||
                 info.st_size - offset < (int64_t)size)
            snprintf(why, sizeof why,
                     "has %llu bytes from byte %lld of the external file %.100s, which has only "
                     "%lld. Copy it again, or use --dataset to leave the batch out.",
                     (unsigned long long)size, (long long)offset, path, (long long)info.st_size);
        if (why[0]) {
            found->file_missing = true;
            return refuse(found, why, err);
        }
        gb10_status_t status = io_catalog_file(catalog, path, err);
        if (status != GB10_OK)
            return status;
    }
    return GB10_OK;
}

static gb10_status_t describe_storage(io_catalog_t *catalog, io_found_t *found, hid_t id,
                                      gb10_error_t *err)
{
    gb10_status_t status = GB10_OK;
    io_dataset_t *d = &found->dataset;
    hsize_t chunk[IO_RANK_MAX];
    haddr_t offset = H5Dget_offset(id);
    d->offset = -1;
    d->quantum = 1;
    if (offset != HADDR_UNDEF) { /* contiguous, in this file and written */
        d->offset = (int64_t)offset;
        return GB10_OK;
    }
    hid_t properties = H5Dget_create_plist(id);
    H5D_layout_t layout = properties < 0 ? H5D_LAYOUT_ERROR : H5Pget_layout(properties);
    if (layout == H5D_CHUNKED && H5Pget_chunk(properties, IO_RANK_MAX, chunk) >= 0) {
        d->quantum = chunk_quantum(d, chunk);
        GB10_TRY(describe_filters(found, properties, err));
    } else if (layout == H5D_LAYOUT_ERROR) {
        GB10_TRY(
            refuse(found, "has a storage layout that HDF5 cannot read: the file is damaged.", err));
    }
    if (layout == H5D_CHUNKED && d->rank >= IO_RANK_MAX)
        GB10_TRY(refuse(found,
                        "is stored in chunks and has 32 dimensions, which HDF5 cannot read. Store "
                        "it contiguous or with 31 dimensions, or use --dataset to leave it out.",
                        err));
    if (layout == H5D_CONTIGUOUS)
        GB10_TRY(describe_external(catalog, found, id, properties, err));
    found->is_virtual = layout == H5D_VIRTUAL;
cleanup:
    io_h5_close(properties);
    return status;
}

/* The shape, once the element is known to be a number. */
static gb10_status_t describe_shape(io_catalog_t *catalog, hid_t space, io_found_t *found,
                                    bool *is_batch, gb10_error_t *err)
{
    io_dataset_t *d = &found->dataset;
    hsize_t dims[IO_RANK_MAX];
    H5S_class_t kind = H5Sget_simple_extent_type(space);
    int rank = kind == H5S_SIMPLE ? H5Sget_simple_extent_ndims(space) : 0;
    gb10_status_t status = GB10_OK;
    if (kind == H5S_NULL || rank < 2) {
        GB10_TRY(io_catalog_note(catalog, d->name, false, err,
                                 kind == H5S_NULL ? "no data (null dataspace)"
                                                  : "%d dimensions; a batch has at least 2",
                                 rank));
        return GB10_OK;
    }
    d->rank = rank;
    GB10_TRY(gb10_alloc(&d->dims, (size_t)rank, sizeof *d->dims, "dimensions", err));
    H5Sget_simple_extent_dims(space, dims, NULL);
    if (!set_shape(d, dims))
        GB10_TRY(refuse(found, "has more bytes than a 64-bit size can count.", err));
    *is_batch = true;
cleanup:
    return status;
}

gb10_status_t io_describe(io_catalog_t *catalog, hid_t id, io_found_t *found, bool *is_batch,
                          gb10_error_t *err)
{
    gb10_status_t status = GB10_OK;
    io_dataset_t *d = &found->dataset;
    char why[IO_WHY_MAX];
    hid_t type = H5Dget_type(id), space = H5Dget_space(id);
    *is_batch = false;
    io_fitness_t fitness = io_element_classify(type, catalog->narrow, &d->element, &d->dtype, why);
    if (fitness == IO_FIT_NOT) {
        GB10_TRY(
            io_catalog_note(catalog, d->name, false, err, "its elements are not numbers: %s", why));
        goto cleanup;
    }
    GB10_TRY(describe_shape(catalog, space, found, is_batch, err));
    if (fitness == IO_FIT_REFUSED)
        GB10_TRY(refuse(found, why, err));
    if (*is_batch)
        GB10_TRY(describe_storage(catalog, found, id, err));
cleanup:
    io_h5_close(space);
    io_h5_close(type);
    return status;
}
