/* The whole output file is laid out once, by the serial library: every group, attribute and
 * dataset, contiguous and allocated early, so that data can be written by position afterwards. */
#include "io/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/fault.h"
#include "io/part.h"
#include "io/rawfile.h"
#include "kernels/core/alloc.h"

const char *const io_conventions = "fugu-1.0";
const char *const io_conventions_gen = "fugu-gen-1.0";

/* Metadata is allocated in blocks of this size: few, large writes. */
enum { META_BLOCK = 4 << 20, JSON_MAX = 1024, JOIN_SECONDS = 60 };

/* Bytes of the attribute `grid`: of fixed length, so that it can be changed in its place. */
enum { GRID_SIZE = 128 };

/* One side of a kind's matrix. */
typedef enum side { NONE, SIDE_M, SIDE_N, SIDE_K, SIDE_NB, SIDE_METRICS } side_t;

typedef struct kind {
    const char *name;
    side_t rows, columns;
    int type; /* -1: the batch's own */
} kind_t;

static const kind_t kinds[IO_KINDS] = {
    [IO_V] = {"V", SIDE_M, SIDE_K, -1},
    [IO_T] = {"T", SIDE_NB, SIDE_K, -1},
    [IO_R] = {"R", SIDE_K, SIDE_N, -1},
    [IO_TAU] = {"tau", SIDE_K, NONE, -1},
    [IO_PACKED] = {"packed", SIDE_M, SIDE_N, -1},
    [IO_STATUS] = {"status", NONE, NONE, IO_TYPE_UINT8},
    [IO_METRICS] = {"metrics", SIDE_METRICS, NONE, IO_TYPE_DOUBLE},
    [IO_A] = {"", SIDE_M, SIDE_N, -1},
    [IO_SIGN] = {"sign", SIDE_K, NONE, IO_TYPE_INT8},
};

const char *io_kind_name(io_kind_t kind)
{
    return kinds[kind].name;
}

int io_kind_type(io_kind_t kind, gb10_dtype_t dtype)
{
    return kinds[kind].type < 0 ? (int)dtype : kinds[kind].type;
}

io_shape_t io_kind_shape(io_kind_t kind, gb10_dtype_t dtype, int64_t m, int64_t n, int64_t nb,
                         int nmetrics)
{
    static const size_t other[IO_TYPES] = {
        [IO_TYPE_UINT8] = 1, [IO_TYPE_INT8] = 1, [IO_TYPE_DOUBLE] = 8};
    int64_t k = m < n ? m : n;
    int64_t length[] = {[SIDE_M] = m,
                        [SIDE_N] = n,
                        [SIDE_K] = k,
                        [SIDE_NB] = nb < k ? nb : k,
                        [SIDE_METRICS] = nmetrics};
    int type = io_kind_type(kind, dtype);
    io_shape_t shape = {0};
    shape.element = type < GB10_DTYPES ? gb10_dtype_size(dtype) : other[type];
    if (kinds[kind].rows != NONE)
        shape.dims[shape.rank++] = length[kinds[kind].rows];
    if (kinds[kind].columns != NONE)
        shape.dims[shape.rank++] = length[kinds[kind].columns];
    return shape;
}

int64_t io_kind_bytes(io_kind_t kind, gb10_dtype_t dtype, int64_t m, int64_t n, int64_t nb,
                      int nmetrics)
{
    io_shape_t shape = io_kind_shape(kind, dtype, m, n, nb, nmetrics);
    int64_t bytes = (int64_t)shape.element;
    for (int i = 0; i < shape.rank; i++)
        bytes *= shape.dims[i];
    return bytes;
}

int64_t io_output_bytes(const io_catalog_t *catalog, const io_spec_t *spec)
{
    int64_t total = 0;
    for (int64_t i = 0; i < catalog->ndatasets; i++) {
        const io_dataset_t *d = &catalog->datasets[i];
        for (int kind = 0; kind < IO_KINDS; kind++) {
            int64_t bytes =
                io_kind_bytes((io_kind_t)kind, d->dtype, d->m, d->n, spec->nb, spec->nmetrics);
            if (spec->kinds >> kind & 1 && (__builtin_mul_overflow(bytes, d->count, &bytes) ||
                                            __builtin_add_overflow(total, bytes, &total)))
                return INT64_MAX;
        }
    }
    return total;
}

static hid_t complex_type(hid_t part)
{
    size_t size = H5Tget_size(part);
    hid_t type = H5Tcreate(H5T_COMPOUND, 2 * size);
    if (type >= 0 && (H5Tinsert(type, "r", 0, part) < 0 || H5Tinsert(type, "i", size, part) < 0)) {
        H5Tclose(type);
        type = -1;
    }
    return type;
}

bool io_types_open(io_types_t *types)
{
    types->id[GB10_S] = H5Tcopy(H5T_NATIVE_FLOAT);
    types->id[GB10_D] = H5Tcopy(H5T_NATIVE_DOUBLE);
    types->id[GB10_C] = complex_type(H5T_NATIVE_FLOAT);
    types->id[GB10_Z] = complex_type(H5T_NATIVE_DOUBLE);
    types->id[IO_TYPE_UINT8] = H5Tcopy(H5T_NATIVE_UINT8);
    types->id[IO_TYPE_INT8] = H5Tcopy(H5T_NATIVE_INT8);
    types->id[IO_TYPE_DOUBLE] = H5Tcopy(H5T_NATIVE_DOUBLE);
    bool good = true;
    for (int i = 0; i < IO_TYPES; i++)
        good = good && types->id[i] >= 0;
    return good;
}

void io_types_close(io_types_t *types)
{
    for (int i = 0; i < IO_TYPES; i++)
        io_h5_close(types->id[i]);
}

/* What the creation of every object needs, made once, and the group the last one was made in: link
 * properties, which make missing groups, cost a third of a creation. */
typedef struct maker {
    io_output_t *output;
    const io_spec_t *spec;
    hid_t file, links, groups, datasets, text, scalar;
    io_types_t types;
    hid_t folder;
    const char *folder_path; /* in the catalog's name of the dataset made before */
    size_t folder_length;
    gb10_error_t *err;
} maker_t;

static gb10_status_t refused(const maker_t *k, const char *what, const char *name)
{
    char reason[IO_REASON_MAX];
    io_h5_reason(reason);
    gb10_status_t status = strstr(reason, "No space left") ? GB10_ERR_SPACE : GB10_ERR_FILE;
    return GB10_FAIL(k->err, status, "%s: %s %s cannot be created: %s.", k->output->part, what,
                     name, reason);
}

static bool maker_open(maker_t *k)
{
    bool types = io_types_open(&k->types);
    k->links = H5Pcreate(H5P_LINK_CREATE);
    k->groups = H5Pcreate(H5P_GROUP_CREATE);
    k->datasets = H5Pcreate(H5P_DATASET_CREATE);
    k->text = io_h5_string_type();
    k->scalar = H5Screate(H5S_SCALAR);
    return types && k->text >= 0 && k->scalar >= 0 &&
           H5Pset_create_intermediate_group(k->links, 1) >= 0 &&
           H5Pset_obj_track_times(k->groups, false) >= 0 &&
           H5Pset_obj_track_times(k->datasets, false) >= 0 &&
           H5Pset_layout(k->datasets, H5D_CONTIGUOUS) >= 0 &&
           H5Pset_alloc_time(k->datasets, H5D_ALLOC_TIME_EARLY) >= 0 &&
           H5Pset_fill_time(k->datasets, H5D_FILL_TIME_NEVER) >= 0;
}

static void maker_close(maker_t *k)
{
    io_types_close(&k->types);
    io_h5_close(k->folder);
    io_h5_close(k->scalar);
    io_h5_close(k->text);
    io_h5_close(k->datasets);
    io_h5_close(k->groups);
    io_h5_close(k->links);
    io_h5_close(k->file);
}

static bool put_text(const maker_t *k, hid_t object, const char *name, const char *text)
{
    hid_t attribute = H5Acreate2(object, name, k->text, k->scalar, H5P_DEFAULT, H5P_DEFAULT);
    bool good = attribute >= 0 && H5Awrite(attribute, k->text, &text) >= 0;
    io_h5_close(attribute);
    return good;
}

static bool put_number(const maker_t *k, hid_t object, const char *name, long long number)
{
    hid_t attribute =
        H5Acreate2(object, name, H5T_NATIVE_INT64, k->scalar, H5P_DEFAULT, H5P_DEFAULT);
    bool good = attribute >= 0 && H5Awrite(attribute, H5T_NATIVE_LLONG, &number) >= 0;
    io_h5_close(attribute);
    return good;
}

/* Where a new object goes. */
typedef struct place {
    hid_t parent, links;
    const char *name;
} place_t;

/* The place of a catalogued path: under the folder of the object made before when it is the same
 * one, else under the root, with properties that make missing groups. */
static place_t place_of(maker_t *k, const char *path)
{
    size_t length = (size_t)(strrchr(path, '/') - path);
    char folder[1024];
    if (!k->folder_path || length != k->folder_length ||
        memcmp(path, k->folder_path, length) != 0) {
        io_h5_close(k->folder);
        k->folder = -1;
        k->folder_path = path;
        k->folder_length = length;
    } else if (k->folder < 0 && length < sizeof folder) {
        snprintf(folder, sizeof folder, "%.*s/", (int)length, path);
        k->folder = H5Gopen2(k->file, folder, H5P_DEFAULT);
    }
    if (k->folder < 0)
        return (place_t){k->file, k->links, path};
    return (place_t){k->folder, H5P_DEFAULT, path + length + 1};
}

static gb10_status_t make_dataset(maker_t *k, place_t place, int64_t i, io_kind_t kind)
{
    const io_dataset_t *d = &k->output->catalog->datasets[i];
    io_shape_t shape = io_kind_shape(kind, d->dtype, d->m, d->n, k->spec->nb, k->spec->nmetrics);
    hsize_t dims[IO_RANK_MAX];
    int rank = 0;
    for (int j = 0; j < d->rank - 2; j++)
        dims[rank++] = (hsize_t)d->dims[j];
    for (int j = 0; j < shape.rank; j++)
        dims[rank++] = (hsize_t)shape.dims[j];
    int pretend = io_fault(IO_FAULT_LAYOUT);
    if (pretend)
        return GB10_FAIL(k->err, pretend == EIO ? GB10_ERR_FILE : GB10_ERR_SPACE, "%s: %s: %s",
                         k->output->part, d->name, strerror(pretend));
    hid_t space = H5Screate_simple(rank, dims, NULL);
    hid_t id = H5Dcreate2(place.parent, place.name, k->types.id[io_kind_type(kind, d->dtype)],
                          space, place.links, k->datasets, H5P_DEFAULT);
    bool good = id >= 0;
    if (good && kind == IO_METRICS && k->spec->metric_columns)
        good = put_text(k, id, "columns", k->spec->metric_columns);
    haddr_t offset = good ? H5Dget_offset(id) : HADDR_UNDEF;
    gb10_status_t status = good ? GB10_OK : refused(k, "dataset", d->name);
    k->output->offset[i * IO_KINDS + kind] = offset == HADDR_UNDEF ? -1 : (int64_t)offset;
    io_h5_close(id);
    io_h5_close(space);
    return status;
}

/* text as a JSON string, cut at the end of `json` when it is too long. */
static void json_string(char *json, size_t size, const char *text)
{
    size_t at = 0;
    json[at++] = '"';
    for (const unsigned char *p = (const unsigned char *)text; *p && at + 8 < size; p++) {
        if (*p == '"' || *p == '\\')
            json[at++] = '\\';
        if (*p < 32)
            at += (size_t)snprintf(json + at, size - at, "\\u%04x", *p);
        else
            json[at++] = (char)*p;
    }
    json[at++] = '"';
    json[at] = 0;
}

/* The group's one attribute: what its datasets are. */
static bool put_description(const maker_t *k, hid_t group, const io_dataset_t *d, char *json,
                            size_t size)
{
    int64_t least = d->m < d->n ? d->m : d->n;
    int at = snprintf(json, size, "{\"source\": ");
    json_string(json + at, size - (size_t)at, d->name);
    at = (int)strlen(json);
    snprintf(json + at, size - (size_t)at,
             ", \"dtype\": \"%c\", \"m\": %lld, \"n\": %lld, \"k\": %lld, \"nb\": %lld, "
             "\"mode\": \"%.64s\", \"backend\": \"%.64s\"}",
             gb10_dtype_letter(d->dtype), (long long)d->m, (long long)d->n, (long long)least,
             (long long)(k->spec->nb < least ? k->spec->nb : least),
             k->spec->mode ? k->spec->mode : "", k->spec->backend ? k->spec->backend : "");
    return put_text(k, group, "fugu", json);
}

/* Writes the attribute `grid` of an open group, which is there unless `create`. */
static bool put_grid(hid_t group, bool create, const char *text)
{
    char padded[GRID_SIZE] = "";
    snprintf(padded, sizeof padded, "%s", text);
    hid_t type = H5Tcopy(H5T_C_S1), scalar = H5Screate(H5S_SCALAR), attribute = -1;
    if (H5Tset_size(type, GRID_SIZE) >= 0 && H5Tset_strpad(type, H5T_STR_NULLTERM) >= 0 &&
        H5Tset_cset(type, H5T_CSET_UTF8) >= 0)
        attribute = create ? H5Acreate2(group, "grid", type, scalar, H5P_DEFAULT, H5P_DEFAULT)
                           : H5Aopen(group, "grid", H5P_DEFAULT);
    bool good = attribute >= 0 && H5Awrite(attribute, type, padded) >= 0;
    io_h5_close_keeping(attribute);
    io_h5_close_keeping(scalar);
    io_h5_close_keeping(type);
    return good;
}

static gb10_status_t make_group(maker_t *k, int64_t i)
{
    const io_dataset_t *d = &k->output->catalog->datasets[i];
    gb10_status_t status;
    char *json = NULL;
    size_t size = JSON_MAX + 6 * strlen(d->name);
    place_t place = place_of(k, d->name);
    hid_t group = H5Gcreate2(place.parent, place.name, place.links, k->groups, H5P_DEFAULT);
    if (group < 0)
        return refused(k, "group", d->name);
    GB10_TRY(gb10_alloc(&json, size, 1, "a description", k->err));
    if (!put_description(k, group, d, json, size)) {
        status = refused(k, "attribute fugu of", d->name);
        goto cleanup;
    }
    if (k->spec->grid && k->spec->grid[i] && !put_grid(group, true, k->spec->grid[i])) {
        status = refused(k, "attribute grid of", d->name);
        goto cleanup;
    }
    for (int kind = 0; kind < IO_KINDS; kind++) {
        place = (place_t){group, H5P_DEFAULT, io_kind_name((io_kind_t)kind)};
        if (k->spec->kinds >> kind & 1)
            GB10_TRY(make_dataset(k, place, i, (io_kind_t)kind));
    }
cleanup:
    gb10_free(json);
    io_h5_close(group);
    return status;
}

static gb10_status_t put_root(maker_t *k, bool gen)
{
    char fingerprint[17], version[32];
    unsigned major = 0, minor = 0, release = 0;
    io_catalog_fingerprint(k->output->catalog, fingerprint);
    H5get_libversion(&major, &minor, &release);
    snprintf(version, sizeof version, "%u.%u.%u", major, minor, release);
    hid_t root = H5Gopen2(k->file, "/", H5P_DEFAULT);
    bool good =
        root >= 0 && put_text(k, root, "Conventions", gen ? io_conventions_gen : io_conventions) &&
        put_number(k, root, "complete", 0) && put_text(k, root, "fingerprint", fingerprint) &&
        put_text(k, root, "HDF5_version", version) &&
        (gen || put_number(k, root, "datasets", k->output->catalog->ndatasets));
    for (int i = 0; good && i < k->spec->nattributes; i++) {
        const io_attribute_t *a = &k->spec->attributes[i];
        good =
            a->text ? put_text(k, root, a->name, a->text) : put_number(k, root, a->name, a->number);
    }
    io_h5_close(root);
    return good ? GB10_OK : refused(k, "attributes of", "the root group");
}

/* The file is there, empty and locked by us, so HDF5 must not lock it too. */
static hid_t create_file(const char *part)
{
    hid_t file = -1;
    hid_t access = io_h5_unlocked(), creation = H5Pcreate(H5P_FILE_CREATE);
    if (H5Pset_meta_block_size(access, META_BLOCK) >= 0 &&
        H5Pset_obj_track_times(creation, false) >= 0)
        file = H5Fcreate(part, H5F_ACC_TRUNC, creation, access);
    io_h5_close_keeping(creation);
    io_h5_close_keeping(access);
    return file;
}

static gb10_status_t lay_out(maker_t *k)
{
    gb10_status_t status;
    const io_catalog_t *catalog = k->output->catalog;
    bool gen = k->spec->kinds >> IO_A & 1;
    char reason[IO_REASON_MAX];
    GB10_TRY(io_part_ours(k->output->fd, k->output->part, k->err));
    k->file = create_file(k->output->part);
    if (k->file < 0)
        return GB10_FAIL(k->err, GB10_ERR_FILE, "%s cannot be created: %s.", k->output->part,
                         io_h5_reason(reason));
    if (!maker_open(k))
        return refused(k, "the types of", "the file");
    GB10_TRY(put_root(k, gen));
    for (int64_t i = 0; i < catalog->ndatasets; i++)
        GB10_TRY(gen ? make_dataset(k, place_of(k, catalog->datasets[i].name), i, IO_A)
                     : make_group(k, i));
    if (H5Fflush(k->file, H5F_SCOPE_GLOBAL) < 0)
        status = refused(k, "the layout of", "the file");
cleanup:
    return status;
}

/* Blocks for every byte of the file, so that a full disk shows now. File systems that cannot do
 * this are left to statvfs in io_output_check. */
static gb10_status_t reserve(io_output_t *o, gb10_error_t *err)
{
    struct stat info;
    if (fstat(o->fd, &info) != 0)
        return GB10_FAIL(err, GB10_ERR_FILE, "%s: stat failed: %s.", o->part, strerror(errno));
    int failed = (errno = io_fault(IO_FAULT_RESERVE)) != 0;
    while (!failed && (failed = fallocate(o->fd, 0, 0, info.st_size)) && errno == EINTR)
        failed = 0;
    if (failed && (errno == ENOSPC || errno == EDQUOT))
        return GB10_FAIL(err, GB10_ERR_SPACE,
                         "%s: no space left on its disk: %lld bytes are needed. Free some and "
                         "start again.",
                         o->part, (long long)info.st_size);
    if (failed && errno != EOPNOTSUPP && errno != ENOSYS)
        return GB10_FAIL(err, GB10_ERR_FILE, "%s: reserving %lld bytes failed: %s.", o->part,
                         (long long)info.st_size, strerror(errno));
    if (fsync(o->fd) != 0)
        return GB10_FAIL(err, GB10_ERR_FILE, "%s: sync failed: %s.", o->part, strerror(errno));
    return io_sync_folder(o->part, err);
}

static gb10_status_t new_output(io_output_t **output, const char *path, const io_catalog_t *catalog,
                                gb10_error_t *err)
{
    gb10_status_t status;
    io_output_t *o = NULL;
    size_t size = strlen(path) + sizeof ".part";
    GB10_TRY(gb10_alloc(&o, 1, sizeof *o, "the output", err));
    o->fd = -1;
    o->catalog = catalog;
    *output = o;
    GB10_TRY(gb10_strdup(&o->path, path, err));
    GB10_TRY(gb10_alloc(&o->part, size, 1, "a path", err));
    snprintf(o->part, size, "%s.part", path);
    GB10_TRY(gb10_alloc(&o->offset, (size_t)catalog->ndatasets * IO_KINDS, sizeof *o->offset,
                        "the places of the output's datasets", err));
    for (int64_t i = 0; i < catalog->ndatasets * IO_KINDS; i++)
        o->offset[i] = -1;
cleanup:
    return status;
}

gb10_status_t io_output_create(io_output_t **output, const char *path, const io_catalog_t *catalog,
                               const io_spec_t *spec, gb10_error_t *err)
{
    gb10_status_t status;
    maker_t maker = {.spec = spec, .err = err};
    maker.file = maker.links = maker.groups = maker.datasets = maker.text = maker.scalar = -1;
    maker.folder = -1;
    for (int i = 0; i < IO_TYPES; i++)
        maker.types.id[i] = -1;
    *output = NULL;
    GB10_TRY(new_output(output, path, catalog, err));
    io_output_t *o = maker.output = *output;
    o->kinds = spec->kinds;
    o->nb = spec->nb;
    o->nmetrics = spec->nmetrics;
    GB10_TRY(io_part_kind(path, err));
    GB10_TRY(io_part_create(o->part, spec->overwrite, &o->fd, err));
    io_h5_lock();
    status = lay_out(&maker);
    maker_close(&maker);
    io_h5_unlock();
    if (status == GB10_OK)
        status = reserve(o, err);
cleanup:
    if (status != GB10_OK) { /* there is nothing in it yet */
        io_output_discard(*output);
        io_output_close(*output);
        *output = NULL;
    }
    return status;
}

/* Where the datasets of batch i are in a file that has them. */
static gb10_status_t find_datasets(hid_t file, io_output_t *o, int64_t i, gb10_error_t *err)
{
    const io_dataset_t *d = &o->catalog->datasets[i];
    hid_t group = H5Gopen2(file, d->name, H5P_DEFAULT);
    gb10_status_t status = GB10_OK;
    for (int kind = 0; kind < IO_KINDS && status == GB10_OK; kind++) {
        if (!(o->kinds >> kind & 1))
            continue;
        const char *name = io_kind_name((io_kind_t)kind);
        hid_t id = group < 0 ? -1 : H5Dopen2(group, name, H5P_DEFAULT);
        int64_t bytes =
            io_kind_bytes((io_kind_t)kind, d->dtype, d->m, d->n, o->nb, o->nmetrics) * d->count;
        haddr_t offset = id < 0 ? HADDR_UNDEF : H5Dget_offset(id);
        o->offset[i * IO_KINDS + kind] = offset == HADDR_UNDEF ? -1 : (int64_t)offset;
        if (id < 0 ||
            (bytes > 0 && (offset == HADDR_UNDEF || H5Dget_storage_size(id) != (hsize_t)bytes)))
            status = GB10_FAIL(err, GB10_ERR_FORMAT,
                               "%s: %s/%s is not as this run needs it. Use --overwrite to start "
                               "again.",
                               o->part, d->name, name);
        io_h5_close(id);
    }
    io_h5_close(group);
    return status;
}

/* Whether `item` is one of those that "; " joins. */
static bool has_item(const char *list, const char *item)
{
    size_t length = strlen(item);
    for (const char *at = list; at; at = strstr(at, "; "), at = at ? at + 2 : NULL)
        if (strncmp(at, item, length) == 0 && (!at[length] || at[length] == ';'))
            return true;
    return false;
}

/* Adds this run's grid to those of batch i; *file is opened for writing when that is needed. */
static gb10_status_t add_grid(hid_t *file, const io_output_t *o, int64_t i, const char *grid,
                              gb10_error_t *err)
{
    gb10_status_t status;
    char *old = NULL, text[GRID_SIZE];
    hid_t group = H5Gopen2(*file, o->catalog->datasets[i].name, H5P_DEFAULT);
    GB10_TRY(io_h5_get_text(group, "grid", &old, err));
    if (old && has_item(old, grid))
        goto cleanup;
    snprintf(text, sizeof text, "%s; %s", old ? old : "", grid);
    io_h5_close(group);
    io_h5_close(*file);
    *file = io_h5_open(o->part, true);
    group = H5Gopen2(*file, o->catalog->datasets[i].name, H5P_DEFAULT);
    if (!put_grid(group, false, text))
        status = GB10_FAIL(err, GB10_ERR_FORMAT,
                           "%s: %s has no attribute grid that can be written. Use --overwrite to "
                           "start again.",
                           o->part, o->catalog->datasets[i].name);
cleanup:
    gb10_free(old);
    io_h5_close(group);
    return status;
}

gb10_status_t io_output_reopen(io_output_t **output, const char *path, const io_catalog_t *catalog,
                               const io_spec_t *spec, gb10_error_t *err)
{
    gb10_status_t status;
    char reason[IO_REASON_MAX];
    *output = NULL;
    GB10_TRY(new_output(output, path, catalog, err));
    io_output_t *o = *output;
    o->kinds = spec->kinds;
    o->nb = spec->nb;
    o->nmetrics = spec->nmetrics;
    if (spec->shared)
        GB10_TRY(io_part_join(o->part, JOIN_SECONDS, &o->fd, err));
    else
        GB10_TRY(io_part_reopen(o->part, &o->fd, err));
    io_h5_lock();
    hid_t file = io_h5_open(o->part, false);
    if (file < 0)
        status = GB10_FAIL(err, GB10_ERR_FORMAT,
                           "%s cannot be read: %s. Use --overwrite to start again.", o->part,
                           io_h5_reason(reason));
    for (int64_t i = 0; i < catalog->ndatasets && status == GB10_OK; i++)
        status = find_datasets(file, o, i, err);
    for (int64_t i = 0; spec->grid && i < catalog->ndatasets && status == GB10_OK; i++)
        if (spec->grid[i])
            status = add_grid(&file, o, i, spec->grid[i], err);
    io_h5_close(file);
    io_h5_unlock();
cleanup:
    if (status != GB10_OK) {
        io_output_close(*output);
        *output = NULL;
    }
    return status;
}

typedef struct packed_head {
    int64_t kinds, nb, nmetrics, ndatasets, path_size;
} packed_head_t;

gb10_status_t io_output_pack(const io_output_t *output, void **bytes, size_t *size,
                             gb10_error_t *err)
{
    int64_t n = output->catalog->ndatasets;
    packed_head_t head = {output->kinds, output->nb, output->nmetrics, n,
                          (int64_t)strlen(output->path) + 1};
    size_t offsets = (size_t)n * IO_KINDS * sizeof *output->offset;
    *size = sizeof head + offsets + (size_t)head.path_size;
    gb10_status_t status = gb10_alloc(bytes, *size, 1, "the packed layout", err);
    if (status != GB10_OK)
        return status;
    char *to = *bytes;
    memcpy(to, &head, sizeof head);
    memcpy(to + sizeof head, output->offset, offsets);
    memcpy(to + sizeof head + offsets, output->path, (size_t)head.path_size);
    return GB10_OK;
}

gb10_status_t io_output_attach(io_output_t **output, const io_catalog_t *catalog, const void *bytes,
                               size_t size, gb10_error_t *err)
{
    gb10_status_t status;
    packed_head_t head;
    const char *from = bytes;
    size_t offsets = (size_t)catalog->ndatasets * IO_KINDS * sizeof(int64_t);
    *output = NULL;
    if (size < sizeof head)
        return GB10_FAIL(err, GB10_ERR_INTERNAL, "the layout received from rank 0 is damaged");
    memcpy(&head, from, sizeof head);
    if (head.ndatasets != catalog->ndatasets || head.path_size < 1 ||
        size != sizeof head + offsets + (size_t)head.path_size || from[size - 1])
        return GB10_FAIL(err, GB10_ERR_INTERNAL, "the layout received from rank 0 is damaged");
    GB10_TRY(new_output(output, from + sizeof head + offsets, catalog, err));
    (*output)->kinds = (uint32_t)head.kinds;
    (*output)->nb = head.nb;
    (*output)->nmetrics = (int)head.nmetrics;
    memcpy((*output)->offset, from + sizeof head, offsets);
    GB10_TRY(io_part_open((*output)->part, &(*output)->fd, err));
cleanup:
    if (status != GB10_OK) {
        io_output_close(*output);
        *output = NULL;
    }
    return status;
}
