/* Virtual datasets: HDF5 reads a missing source as fill and reports success, so every source is
 * looked for before anything is read. */
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/catalog.h"
#include "kernels/core/alloc.h"

enum { PATH_SIZE = 4096, DEPTH_MAX = 16 };

/* The source file that was opened last: mappings of one file come together. */
typedef struct source {
    char name[PATH_SIZE];
    hid_t file;
    bool own; /* false: the file of the virtual dataset itself */
} source_t;

/* As HDF5 opens a source file, by its default properties. */
static hid_t open_file(const char *path)
{
    return H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
}

/* Where HDF5 looks for a source file: HDF5_VDS_PREFIX, the folder of the virtual dataset's file,
 * then the current folder. */
static hid_t open_source(const char *home, const char *name)
{
    char path[2 * PATH_SIZE], folder[PATH_SIZE];
    snprintf(folder, sizeof folder, "%s", home);
    const char *beside = dirname(folder), *prefix = getenv("HDF5_VDS_PREFIX");
    const char *origin = "${ORIGIN}";
    if (name[0] == '/' && access(name, F_OK) == 0)
        return open_file(name);
    const char *base = name[0] == '/' && strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
    if (prefix && strncmp(prefix, origin, strlen(origin)) == 0)
        snprintf(path, sizeof path, "%s%s/%s", beside, prefix + strlen(origin), base);
    else if (prefix && prefix[0])
        snprintf(path, sizeof path, "%s/%s", prefix, base);
    if (prefix && prefix[0] && access(path, F_OK) == 0)
        return open_file(path);
    snprintf(path, sizeof path, "%s/%s", beside, base);
    return open_file(access(path, F_OK) == 0 ? path : base);
}

/* True when the part of the source that is mapped lies inside it. A mapping of the whole source is
 * stored without its shape: there the numbers of elements must agree. */
static bool covers(hid_t properties, size_t i, hid_t source)
{
    hsize_t dims[IO_RANK_MAX], start[IO_RANK_MAX], end[IO_RANK_MAX];
    bool good = true;
    hid_t mapped = H5Pget_virtual_srcspace(properties, i), space = H5Dget_space(source);
    hid_t to = H5Pget_virtual_vspace(properties, i);
    int rank = H5Sget_simple_extent_dims(space, dims, NULL);
    if (mapped >= 0 && H5Sget_select_type(mapped) == H5S_SEL_ALL)
        good = H5Sget_select_npoints(to) == H5Sget_simple_extent_npoints(space);
    else if (mapped >= 0 && H5Sget_simple_extent_ndims(mapped) == rank && rank > 0 &&
             H5Sget_select_bounds(mapped, start, end) >= 0) /* fails for unlimited selections */
        for (int d = 0; d < rank; d++)
            good = good && end[d] < dims[d];
    io_h5_close(to);
    io_h5_close(space);
    io_h5_close(mapped);
    return good;
}

/* A stored name as HDF5 reads it: %% is a percent sign, %b the number of a member of a series, here
 * the first one's. *series: it has a %b. */
static void resolve(const char *stored, char name[PATH_SIZE], bool *series)
{
    size_t at = 0;
    for (const char *p = stored; *p && at + 1 < PATH_SIZE; p++) {
        bool escaped = p[0] == '%' && (p[1] == '%' || p[1] == 'b');
        *series = *series || (escaped && p[1] == 'b');
        name[at++] = escaped && p[1] == 'b' ? '0' : *p;
        p += escaped;
    }
    name[at] = 0;
}

static gb10_status_t check(io_catalog_t *catalog, hid_t id, int depth, char **why,
                           gb10_error_t *err);

static gb10_status_t check_mapping(io_catalog_t *catalog, hid_t properties, size_t i, hid_t id,
                                   source_t *source, int depth, char **why, gb10_error_t *err)
{
    char name[PATH_SIZE] = "", dataset[PATH_SIZE] = "", home[PATH_SIZE] = "", text[IO_WHY_MAX];
    char stored[2][PATH_SIZE] = {"", ""};
    bool series = false; /* HDF5 ends its extent at the first one missing */
    gb10_status_t status = GB10_OK;
    if (H5Pget_virtual_filename(properties, i, stored[0], PATH_SIZE) < 0 ||
        H5Pget_virtual_dsetname(properties, i, stored[1], PATH_SIZE) < 0 ||
        H5Fget_name(id, home, sizeof home) < 0)
        return gb10_strdup(why, "is virtual and one of its sources has no readable name.", err);
    resolve(stored[0], name, &series);
    resolve(stored[1], dataset, &series);
    if (strcmp(source->name, name) != 0) {
        if (source->own)
            io_h5_close(source->file);
        snprintf(source->name, sizeof source->name, "%s", name);
        source->own = strcmp(name, ".") != 0;
        source->file = source->own ? open_source(home, name) : id;
        char path[2 * PATH_SIZE];
        if (source->own && source->file >= 0 && H5Fget_name(source->file, path, sizeof path) > 0)
            status = io_catalog_file(catalog, path, err);
        if (status != GB10_OK)
            return status;
    }
    hid_t found = source->file < 0 ? -1 : H5Dopen2(source->file, dataset, H5P_DEFAULT);
    if (source->file < 0)
        snprintf(text, sizeof text,
                 "is virtual and its source file %.120s cannot be opened. Put it back beside the "
                 "input, or use --dataset to leave it out.",
                 name);
    else if (found < 0)
        snprintf(text, sizeof text,
                 "is virtual and its source %.100s is missing in %.100s. Put it back, or use "
                 "--dataset to leave it out.",
                 dataset, source->own ? name : "the same file");
    else if (!series && !covers(properties, i, found))
        snprintf(text, sizeof text,
                 "is virtual and its source %.100s in %.100s is smaller than the part mapped from "
                 "it. Write the source in full, or use --dataset to leave it out.",
                 dataset, source->own ? name : "the same file");
    else
        text[0] = 0;
    status = text[0] ? gb10_strdup(why, text, err) : check(catalog, found, depth + 1, why, err);
    io_h5_close(found);
    return status;
}

static gb10_status_t check(io_catalog_t *catalog, hid_t id, int depth, char **why,
                           gb10_error_t *err)
{
    gb10_status_t status = GB10_OK;
    size_t count = 0;
    source_t *source = NULL;
    hid_t properties = H5Dget_create_plist(id);
    if (H5Pget_layout(properties) != H5D_VIRTUAL)
        goto cleanup;
    if (depth > DEPTH_MAX) {
        GB10_TRY(gb10_strdup(why, "is virtual and its sources lead in a circle.", err));
        goto cleanup;
    }
    GB10_TRY(gb10_alloc(&source, 1, sizeof *source, "a virtual source", err));
    source->file = -1;
    H5Pget_virtual_count(properties, &count);
    for (size_t i = 0; i < count && !*why; i++)
        GB10_TRY(check_mapping(catalog, properties, i, id, source, depth, why, err));
cleanup:
    if (source && source->own)
        io_h5_close(source->file);
    gb10_free(source);
    io_h5_close(properties);
    return status;
}

gb10_status_t io_virtual_check(io_catalog_t *catalog, hid_t id, char **why, gb10_error_t *err)
{
    *why = NULL;
    return check(catalog, id, 0, why, err);
}
