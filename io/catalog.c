#include "io/catalog.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "kernels/core/alloc.h"

static void free_dataset(io_dataset_t *d)
{
    gb10_free(d->name);
    gb10_free(d->aliases);
    gb10_free(d->dims);
}

void io_catalog_free(io_catalog_t *catalog)
{
    for (int64_t i = 0; i < catalog->ndatasets; i++)
        free_dataset(&catalog->datasets[i]);
    for (int64_t i = 0; i < catalog->nnotes; i++) {
        gb10_free(catalog->notes[i].name);
        gb10_free(catalog->notes[i].reason);
    }
    gb10_free(catalog->datasets);
    gb10_free(catalog->notes);
    gb10_free(catalog->files);
    gb10_free(catalog->path);
    memset(catalog, 0, sizeof *catalog);
}

gb10_status_t io_catalog_file(io_catalog_t *catalog, const char *path, gb10_error_t *err)
{
    gb10_status_t status;
    struct stat info;
    if (stat(path, &info) != 0)
        return GB10_OK;
    for (int64_t i = catalog->nfiles - 1; i >= 0; i--)
        if (catalog->files[i].device == info.st_dev && catalog->files[i].inode == info.st_ino)
            return GB10_OK;
    GB10_TRY(gb10_grow(&catalog->files, &catalog->file_capacity, (size_t)catalog->nfiles + 1,
                       sizeof *catalog->files, "files of the input", err));
    catalog->files[catalog->nfiles++] = (io_file_t){info.st_dev, info.st_ino};
cleanup:
    return status;
}

static bool matches(const char *pattern, const char *name)
{
    return fnmatch(pattern, name, 0) == 0 ||
           (pattern[0] != '/' && name[0] == '/' && fnmatch(pattern, name + 1, 0) == 0);
}

static bool matches_dataset(const char *pattern, const io_dataset_t *d)
{
    char one[GB10_MESSAGE_MAX];
    if (matches(pattern, d->name))
        return true;
    for (const char *p = d->aliases; p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL) {
        snprintf(one, sizeof one, "%.*s", (int)strcspn(p, "\n"), p);
        if (matches(pattern, one))
            return true;
    }
    return false;
}

/* A virtual dataset is looked at again, by name, once it is known to be wanted. */
static gb10_status_t check_virtual(io_catalog_t *catalog, hid_t file, io_found_t *found,
                                   gb10_error_t *err)
{
    hid_t id = H5Dopen2(file, found->dataset.name, H5P_DEFAULT);
    gb10_status_t status = id < 0 ? gb10_strdup(&found->refusal, "cannot be opened again.", err)
                                  : io_virtual_check(catalog, id, &found->refusal, err);
    io_h5_close(id);
    return status;
}

/* Moves the datasets that a pattern selects into the catalog. */
static gb10_status_t select_datasets(io_walk_t *walk, hid_t file, const char *const *patterns,
                                     int npatterns, bool lenient, gb10_error_t *err)
{
    io_catalog_t *catalog = walk->catalog;
    gb10_status_t status;
    int64_t *hits = NULL;
    GB10_TRY(gb10_alloc(&hits, (size_t)npatterns + 1, sizeof *hits, "pattern counts", err));
    GB10_TRY(gb10_grow(&catalog->datasets, &catalog->dataset_capacity, walk->nfound,
                       sizeof *catalog->datasets, "the catalog", err));
    for (size_t i = 0; i < walk->nfound; i++) {
        io_found_t *found = &walk->found[i];
        bool wanted = npatterns == 0;
        for (int p = 0; p < npatterns; p++)
            if (matches_dataset(patterns[p], &found->dataset)) {
                wanted = true;
                hits[p]++;
            }
        if (!wanted)
            continue;
        if (found->is_virtual && !found->refusal)
            GB10_TRY(check_virtual(catalog, file, found, err));
        if (found->refusal && lenient) {
            GB10_TRY(
                io_catalog_note(catalog, found->dataset.name, true, err, "%s", found->refusal));
            continue;
        }
        if (found->refusal) {
            status = GB10_FAIL(err, found->file_missing ? GB10_ERR_FILE : GB10_ERR_UNSUPPORTED,
                               "%s: %s %s", catalog->path, found->dataset.name, found->refusal);
            goto cleanup;
        }
        catalog->datasets[catalog->ndatasets++] = found->dataset;
        memset(&found->dataset, 0, sizeof found->dataset);
    }
    for (int p = 0; p < npatterns && status == GB10_OK; p++)
        if (hits[p] == 0)
            status = GB10_FAIL(err, GB10_ERR_FORMAT,
                               "%s: no batch of matrices has a path that matches '%s'. "
                               "fugu info %s lists the paths.",
                               catalog->path, patterns[p], catalog->path);
cleanup:
    gb10_free(hits);
    return status;
}

static gb10_status_t stat_file(io_catalog_t *catalog, gb10_error_t *err)
{
    struct stat info;
    if (stat(catalog->path, &info) != 0)
        return GB10_FAIL(err, GB10_ERR_FILE, "%s: stat failed: %s.", catalog->path,
                         strerror(errno));
    catalog->file_size = info.st_size;
    catalog->mtime_ns = info.st_mtim.tv_sec * INT64_C(1000000000) + info.st_mtim.tv_nsec;
    catalog->device = info.st_dev;
    catalog->inode = info.st_ino;
    return GB10_OK;
}

gb10_status_t io_catalog_open(io_catalog_t *catalog, const char *path, const char *const *patterns,
                              int npatterns, unsigned flags, gb10_error_t *err)
{
    io_walk_t walk = {.catalog = catalog};
    hid_t file = -1;
    gb10_status_t status;
    memset(catalog, 0, sizeof *catalog);
    catalog->narrow = flags & IO_NARROW;
    io_h5_lock();
    GB10_TRY(gb10_strdup(&catalog->path, path, err));
    GB10_TRY(io_h5_probe(path, err));
    GB10_TRY(stat_file(catalog, err));
    file = io_h5_open(path, false);
    if (file < 0) {
        status = io_h5_open_failed(path, err);
        goto cleanup;
    }
    GB10_TRY(io_walk_run(&walk, file, err));
    if (walk.nfound == 0 && !(flags & IO_LENIENT)) {
        status = GB10_FAIL(err, GB10_ERR_FORMAT,
                           "%s holds no batch of matrices: no numeric dataset has 2 or more "
                           "dimensions. fugu info -v %s says what is in it.",
                           path, path);
        goto cleanup;
    }
    GB10_TRY(select_datasets(&walk, file, patterns, npatterns, flags & IO_LENIENT, err));
cleanup:
    io_walk_free(&walk);
    io_h5_close(file);
    io_h5_unlock();
    if (status != GB10_OK)
        io_catalog_free(catalog);
    return status;
}

gb10_status_t io_catalog_batches(const io_catalog_t *catalog, gb10_batch_t **batches,
                                 gb10_error_t *err)
{
    gb10_status_t status = gb10_alloc(batches, (size_t)catalog->ndatasets, sizeof **batches,
                                      "the planner's batches", err);
    for (int64_t i = 0; status == GB10_OK && i < catalog->ndatasets; i++) {
        const io_dataset_t *d = &catalog->datasets[i];
        (*batches)[i] = (gb10_batch_t){d->dtype,
                                       d->m,
                                       d->n,
                                       d->count,
                                       d->quantum > 0 ? d->quantum : 1,
                                       d->m * d->n * (int64_t)gb10_dtype_size(d->dtype)};
    }
    return status;
}

/* FNV-1a: a fingerprint, not a defence. */
static uint64_t hash(uint64_t h, const void *bytes, size_t size)
{
    for (const unsigned char *p = bytes; size > 0; size--, p++)
        h = (h ^ *p) * 0x100000001b3u;
    return h;
}

static uint64_t hash_number(uint64_t h, int64_t number)
{
    unsigned char bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)((uint64_t)number >> (8 * i));
    return hash(h, bytes, sizeof bytes);
}

void io_catalog_fingerprint(const io_catalog_t *catalog, char *text)
{
    uint64_t h = hash_number(0xcbf29ce484222325u, catalog->file_size);
    for (int64_t i = 0; i < catalog->ndatasets; i++) {
        const io_dataset_t *d = &catalog->datasets[i];
        const io_element_t *e = &d->element;
        h = hash(h, d->name, strlen(d->name) + 1);
        h = hash_number(h, d->dtype);
        h = hash_number(h, e->cls | e->big_endian << 8 | e->is_complex << 9);
        h = hash_number(h, e->size);
        for (int j = 0; j < d->rank; j++)
            h = hash_number(h, d->dims[j]);
    }
    snprintf(text, 17, "%016llx", (unsigned long long)h);
}

/* Whether a path can be made: components that are not empty, "." or "..", and not too many. */
static bool good_path(const char *path)
{
    int depth = 0;
    for (const char *p = path + (path[0] == '/');; depth++) {
        size_t length = strcspn(p, "/");
        if (length == 0 || (length == 1 && p[0] == '.') || (length == 2 && !strncmp(p, "..", 2)))
            return false;
        if (p[length] == 0)
            return depth <= IO_DEPTH_MAX;
        p += length + 1;
    }
}

/* A batch in the catalog that has this path, or is a folder of it, or would lie below it. */
static const char *clash(const io_catalog_t *catalog, const char *path)
{
    size_t length = strlen(path);
    for (int64_t i = 0; i < catalog->ndatasets; i++) {
        const char *other = catalog->datasets[i].name;
        size_t theirs = strlen(other), least = theirs < length ? theirs : length;
        char next = theirs < length ? path[least] : other[least];
        if (memcmp(other, path, least) == 0 && (next == 0 || next == '/'))
            return other;
    }
    return NULL;
}

static gb10_status_t check_path(const io_catalog_t *catalog, const char *path, gb10_error_t *err)
{
    if (!good_path(path))
        return GB10_FAIL(err, GB10_ERR_USAGE,
                         "'%.200s' cannot be the path of a batch. Use names with '/' between them, "
                         "none of them empty, '.' or '..', at most %d deep.",
                         path, IO_DEPTH_MAX);
    const char *other = clash(catalog, path);
    if (!other)
        return GB10_OK;
    if (strcmp(other, path) == 0)
        return GB10_FAIL(err, GB10_ERR_USAGE,
                         "two batches are named %.200s. Give each a name of its own.", path);
    return GB10_FAIL(err, GB10_ERR_USAGE,
                     "%.200s and %.200s: a batch cannot lie below another batch. Rename one.",
                     other, path);
}

gb10_status_t io_catalog_add(io_catalog_t *catalog, const char *name, gb10_dtype_t dtype, int64_t m,
                             int64_t n, int64_t count, gb10_error_t *err)
{
    gb10_status_t status;
    io_dataset_t d = {.dtype = dtype, .rank = 3, .m = m, .n = n, .count = count, .quantum = 1};
    int64_t bytes = (int64_t)gb10_dtype_size(dtype);
    size_t size = strlen(name) + 2;
    if (m < 0 || n < 0 || count < 0 || __builtin_mul_overflow(bytes, m ? m : 1, &bytes) ||
        __builtin_mul_overflow(bytes, n ? n : 1, &bytes) ||
        __builtin_mul_overflow(bytes, count ? count : 1, &bytes))
        return GB10_FAIL(err, GB10_ERR_USAGE,
                         "%s: %lld matrices of %lld x %lld cannot be stored. Use smaller sizes.",
                         name, (long long)count, (long long)m, (long long)n);
    GB10_TRY(gb10_grow(&catalog->datasets, &catalog->dataset_capacity,
                       (size_t)catalog->ndatasets + 1, sizeof *catalog->datasets, "the catalog",
                       err));
    GB10_TRY(gb10_alloc(&d.dims, 3, sizeof *d.dims, "dimensions", err));
    GB10_TRY(gb10_alloc(&d.name, size, 1, "a path", err));
    snprintf(d.name, size, "%s%s", name[0] == '/' ? "" : "/", name);
    GB10_TRY(check_path(catalog, d.name, err));
    d.dims[0] = count;
    d.dims[1] = m;
    d.dims[2] = n;
    d.offset = -1;
    d.element = io_element_native(dtype);
    catalog->datasets[catalog->ndatasets++] = d;
    return GB10_OK;
cleanup:
    free_dataset(&d);
    return status;
}

gb10_status_t io_catalog_add_like(io_catalog_t *catalog, const io_dataset_t *like, int64_t m,
                                  int64_t n, gb10_error_t *err)
{
    int64_t *dims = NULL;
    gb10_status_t status = gb10_alloc(&dims, (size_t)like->rank, sizeof *dims, "dimensions", err);
    if (status == GB10_OK)
        status = io_catalog_add(catalog, like->name, like->dtype, m, n, like->count, err);
    if (status != GB10_OK) {
        gb10_free(dims);
        return status;
    }
    io_dataset_t *d = &catalog->datasets[catalog->ndatasets - 1];
    gb10_free(d->dims);
    d->dims = dims;
    d->rank = like->rank;
    memcpy(dims, like->dims, (size_t)(like->rank - 2) * sizeof *dims);
    dims[like->rank - 2] = m;
    dims[like->rank - 1] = n;
    return GB10_OK;
}
