/* Opening an output again: every group with an attribute `fugu` is a factored batch, and each of
 * its datasets must have the type, shape and place that the attribute and FORMAT.md give it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/catalog.h"
#include "io/layout.h"
#include "io/rawfile.h"
#include "kernels/core/alloc.h"

typedef struct scan {
    io_result_t *result;
    size_t capacity;
    int64_t file_size;
    int depth; /* of the group the scan is in */
    io_types_t types;
    gb10_error_t *err;
    gb10_status_t status;
} scan_t;

/* A group on the way down. */
typedef struct place {
    scan_t *scan;
    const char *path;
} place_t;

/* *ours: the file carries Conventions = "fugu-1.x". */
static gb10_status_t check_conventions(hid_t file, bool *ours, gb10_error_t *err)
{
    char *text = NULL;
    hid_t root = H5Gopen2(file, "/", H5P_DEFAULT);
    gb10_status_t status = root < 0 ? GB10_OK : io_h5_get_text(root, "Conventions", &text, err);
    *ours = text && strncmp(text, "fugu-1.", 7) == 0;
    gb10_free(text);
    io_h5_close(root);
    return status;
}

bool io_is_result(const char *path)
{
    bool ours = false;
    if (io_h5_probe(path, NULL) != GB10_OK)
        return false;
    io_h5_lock();
    hid_t file = io_h5_open(path, false);
    if (file >= 0)
        check_conventions(file, &ours, NULL);
    io_h5_close(file);
    io_h5_unlock();
    return ours;
}

/* The number after `"key": ` of the group's description, or -1. A quote inside the source's name is
 * escaped, so it cannot look like a key. */
static int64_t number_of(const char *json, const char *key)
{
    char pattern[32], *end;
    snprintf(pattern, sizeof pattern, "\"%s\": ", key);
    const char *at = strstr(json, pattern);
    if (!at)
        return -1;
    at += strlen(pattern);
    long long value = strtoll(at, &end, 10);
    return end == at || value < 0 ? -1 : value;
}

static bool parse(const char *json, io_group_t *g)
{
    const char *letter = strstr(json, "\"dtype\": \"");
    const char *known = letter ? strchr("sdcz", letter[10]) : NULL;
    g->m = number_of(json, "m");
    g->n = number_of(json, "n");
    g->k = number_of(json, "k");
    g->nb = number_of(json, "nb");
    if (!known || !*known || g->m < 0 || g->n < 0 || g->nb < 0 ||
        g->k != (g->m < g->n ? g->m : g->n))
        return false;
    g->dtype = (gb10_dtype_t)(known - "sdcz");
    return true;
}

/* The shape a group's datasets have in common: the leading dimensions. */
typedef struct lead {
    int rank; /* -1: not known yet */
    hsize_t dims[IO_RANK_MAX];
} lead_t;

static bool shape_fits(io_group_t *g, io_kind_t kind, hid_t space, lead_t *lead)
{
    hsize_t dims[IO_RANK_MAX];
    int rank = H5Sget_simple_extent_dims(space, dims, NULL);
    io_shape_t shape = io_kind_shape(kind, g->dtype, g->m, g->n, g->nb, g->nmetrics);
    if (rank < shape.rank || (lead->rank >= 0 && rank - shape.rank != lead->rank))
        return false;
    for (int i = 0; i < shape.rank; i++)
        if (dims[rank - shape.rank + i] != (hsize_t)shape.dims[i])
            return false;
    if (lead->rank >= 0)
        return memcmp(lead->dims, dims, (size_t)lead->rank * sizeof *dims) == 0;
    lead->rank = rank - shape.rank;
    memcpy(lead->dims, dims, (size_t)lead->rank * sizeof *dims);
    g->count = 1;
    for (int i = 0; i < lead->rank; i++)
        if (dims[i] > INT64_MAX || __builtin_mul_overflow(g->count, (int64_t)dims[i], &g->count))
            return false;
    return true;
}

static gb10_status_t bad_dataset(scan_t *s, const io_group_t *g, io_kind_t kind, const char *why)
{
    return GB10_FAIL(s->err, GB10_ERR_FORMAT,
                     "%s: %s/%s %s. The file is damaged or was changed after it was written; make "
                     "it again.",
                     s->result->path, g->name, io_kind_name(kind), why);
}

/* Type, shape and place of one open dataset; NULL or what is wrong. */
static const char *dataset_fault(scan_t *s, io_group_t *g, io_kind_t kind, hid_t id, lead_t *lead)
{
    const char *fault = NULL;
    int64_t bytes = 0;
    hid_t type = H5Dget_type(id), space = H5Dget_space(id);
    if (type < 0 || space < 0 || H5Tequal(type, s->types.id[io_kind_type(kind, g->dtype)]) <= 0)
        fault = "has another type than its group says";
    else if (!shape_fits(g, kind, space, lead))
        fault = "has another shape than its group says";
    haddr_t offset = fault ? HADDR_UNDEF : H5Dget_offset(id);
    g->offset[kind] = offset == HADDR_UNDEF ? -1 : (int64_t)offset;
    if (!fault &&
        (__builtin_mul_overflow(io_kind_bytes(kind, g->dtype, g->m, g->n, g->nb, g->nmetrics),
                                g->count, &bytes) ||
         (bytes > 0 && (offset == HADDR_UNDEF || g->offset[kind] > s->file_size - bytes))))
        fault = "is not stored in one piece inside the file";
    io_h5_close(space);
    io_h5_close(type);
    return fault;
}

/* g->nmetrics: the words of the attribute `columns`, joined by commas. */
static gb10_status_t read_columns(scan_t *s, hid_t id, io_group_t *g)
{
    char *columns = NULL;
    gb10_status_t status = io_h5_get_text(id, "columns", &columns, s->err);
    g->nmetrics = columns && columns[0] ? 1 : 0;
    for (const char *p = columns; p && *p; p++)
        g->nmetrics += *p == ',';
    gb10_free(columns);
    return status;
}

/* The datasets of g in the order of io_kind_t; those that are absent have no bit in g->kinds. */
static gb10_status_t read_datasets(scan_t *s, hid_t group, io_group_t *g)
{
    const uint32_t always = 1u << IO_STATUS | 1u << IO_METRICS;
    lead_t lead = {.rank = -1};
    for (int kind = 0; kind < IO_KINDS; kind++) {
        const char *name = io_kind_name((io_kind_t)kind);
        g->offset[kind] = -1;
        bool there = name[0] && H5Lexists(group, name, H5P_DEFAULT) > 0;
        if (!there && (always >> kind & 1))
            return bad_dataset(s, g, (io_kind_t)kind, "is missing");
        if (!there)
            continue;
        hid_t id = H5Dopen2(group, name, H5P_DEFAULT);
        gb10_status_t status = id >= 0 && kind == IO_METRICS ? read_columns(s, id, g) : GB10_OK;
        const char *fault = id < 0 ? "is not a dataset that can be opened"
                                   : dataset_fault(s, g, (io_kind_t)kind, id, &lead);
        io_h5_close(id);
        if (status != GB10_OK)
            return status;
        if (fault)
            return bad_dataset(s, g, (io_kind_t)kind, fault);
        g->kinds |= 1u << kind;
    }
    return GB10_OK;
}

static gb10_status_t read_group(scan_t *s, hid_t group, const char *path)
{
    io_result_t *r = s->result;
    gb10_status_t status;
    char *json = NULL;
    GB10_TRY(io_h5_get_text(group, "fugu", &json, s->err));
    GB10_TRY(gb10_grow(&r->groups, &s->capacity, (size_t)r->ngroups + 1, sizeof *r->groups,
                       "the groups of an output", s->err));
    io_group_t *g = &r->groups[r->ngroups++];
    memset(g, 0, sizeof *g);
    GB10_TRY(gb10_strdup(&g->name, path, s->err));
    if (!json || !parse(json, g)) {
        status = GB10_FAIL(s->err, GB10_ERR_FORMAT,
                           "%s: the attribute fugu of %s is damaged. Make the file again.", r->path,
                           path);
        goto cleanup;
    }
    GB10_TRY(io_h5_get_text(group, "grid", &g->grid, s->err));
    GB10_TRY(read_datasets(s, group, g));
cleanup:
    gb10_free(json);
    return status;
}

static gb10_status_t scan_group(scan_t *s, hid_t group, const char *path);

static herr_t each_link(hid_t parent, const char *name, const H5L_info_t *info, void *context)
{
    const place_t *place = context;
    scan_t *s = place->scan;
    char *path = NULL;
    size_t size = strlen(place->path) + strlen(name) + 2;
    gb10_status_t status = GB10_OK;
    hid_t id = info->type == H5L_TYPE_HARD ? H5Oopen(parent, name, H5P_DEFAULT) : -1;
    if (id >= 0 && H5Iget_type(id) == H5I_GROUP) {
        GB10_TRY(gb10_alloc(&path, size, 1, "a path", s->err));
        snprintf(path, size, "%s/%s", place->path, name);
        GB10_TRY(scan_group(s, id, path));
    } else if (id < 0) {
        status = GB10_FAIL(s->err, GB10_ERR_FORMAT,
                           "%s: %s/%s cannot be opened: the file is damaged. Make it again.",
                           s->result->path, place->path, name);
    }
cleanup:
    io_h5_close(id);
    gb10_free(path);
    if (status != GB10_OK)
        s->status = status;
    return status != GB10_OK;
}

/* A group of results, or one that holds others. */
static gb10_status_t scan_group(scan_t *s, hid_t group, const char *path)
{
    place_t place = {s, path};
    if (H5Aexists(group, "fugu") > 0)
        return read_group(s, group, path);
    if (s->depth > IO_DEPTH_MAX)
        return GB10_FAIL(s->err, GB10_ERR_UNSUPPORTED,
                         "%s: %.100s... is a group below %d others, deeper than an output goes. "
                         "Make the file again.",
                         s->result->path, path, IO_DEPTH_MAX);
    s->depth++;
    herr_t failed = H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, NULL, each_link, &place);
    s->depth--;
    if (s->status != GB10_OK)
        return s->status;
    if (failed < 0)
        return GB10_FAIL(s->err, GB10_ERR_FORMAT,
                         "%s: group %s cannot be read: the file is damaged. Make it again.",
                         s->result->path, path[0] ? path : "/");
    return GB10_OK;
}

/* A group that lost its attribute is taken for a folder, so the groups are counted. */
static gb10_status_t check_count(const io_result_t *r, gb10_error_t *err)
{
    if (r->ngroups == r->ndatasets_expected)
        return GB10_OK;
    if (r->ndatasets_expected < 0)
        return GB10_FAIL(err, GB10_ERR_FORMAT,
                         "%s has no root attribute datasets, the number of its groups: it was "
                         "changed after it was written. Make it again.",
                         r->path);
    return GB10_FAIL(err, GB10_ERR_FORMAT,
                     "%s holds %lld of %lld groups; it was changed after it was written. Make it "
                     "again.",
                     r->path, (long long)r->ngroups, (long long)r->ndatasets_expected);
}

static gb10_status_t read_root(io_result_t *r, hid_t root, gb10_error_t *err)
{
    const struct {
        const char *name;
        char **text;
    } wanted[] = {{"creator_version", &r->creator_version},
                  {"options", &r->options},
                  {"backend", &r->backend},
                  {"instruction_set", &r->isa},
                  {"fingerprint", &r->fingerprint}};
    gb10_status_t status = GB10_OK;
    long long complete = 0, datasets = 0;
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        GB10_TRY(io_h5_get_text(root, wanted[i].name, wanted[i].text, err));
    r->complete = io_h5_get_number(root, "complete", &complete) && complete == 1;
    r->ndatasets_expected = io_h5_get_number(root, "datasets", &datasets) ? datasets : -1;
cleanup:
    return status;
}

static gb10_status_t open_raw(io_result_t *r, int64_t *size, gb10_error_t *err)
{
    struct stat info;
    r->fd = open(r->path, O_RDONLY | O_CLOEXEC);
    if (r->fd < 0 || fstat(r->fd, &info) != 0)
        return GB10_FAIL(err, GB10_ERR_FILE, "%s cannot be opened: %s.", r->path, strerror(errno));
    *size = info.st_size;
    return GB10_OK;
}

gb10_status_t io_result_open(io_result_t *result, const char *path, gb10_error_t *err)
{
    gb10_status_t status;
    hid_t file = -1, root = -1;
    bool ours = false;
    scan_t scan = {.result = result, .err = err};
    memset(result, 0, sizeof *result);
    result->fd = -1;
    io_h5_lock();
    bool types = io_types_open(&scan.types);
    GB10_TRY(gb10_strdup(&result->path, path, err));
    GB10_TRY(io_h5_probe(path, err));
    GB10_TRY(open_raw(result, &scan.file_size, err));
    H5Eclear2(H5E_DEFAULT);
    file = io_h5_open(path, false);
    if (file < 0 || !types) {
        status = io_h5_open_failed(path, err);
        goto cleanup;
    }
    GB10_TRY(check_conventions(file, &ours, err));
    if (!ours) {
        status = GB10_FAIL(err, GB10_ERR_FORMAT,
                           "%s is not an output of fugu qr: it has no attribute Conventions = "
                           "\"fugu-1.x\".",
                           path);
        goto cleanup;
    }
    root = H5Gopen2(file, "/", H5P_DEFAULT);
    GB10_TRY(read_root(result, root, err));
    GB10_TRY(scan_group(&scan, root, ""));
    GB10_TRY(check_count(result, err));
cleanup:
    io_h5_close(root);
    io_h5_close(file);
    io_types_close(&scan.types);
    io_h5_unlock();
    if (status != GB10_OK)
        io_result_close(result);
    return status;
}

gb10_status_t io_result_read(io_result_t *result, io_kind_t kind, int64_t group, int64_t first,
                             int64_t count, void *dst, gb10_error_t *err)
{
    if (group < 0 || group >= result->ngroups || (int)kind < 0 || (int)kind >= IO_KINDS)
        return GB10_FAIL(err, GB10_ERR_INTERNAL, "%s: no kind %d in group %lld", result->path,
                         (int)kind, (long long)group);
    const io_group_t *g = &result->groups[group];
    if (!(g->kinds >> kind & 1))
        return GB10_FAIL(err, GB10_ERR_FORMAT,
                         "%s: %s has no dataset %s. Make the file again with --outputs naming it.",
                         result->path, g->name, io_kind_name(kind));
    if (first < 0 || count < 0 || count > g->count || first > g->count - count)
        return GB10_FAIL(err, GB10_ERR_INTERNAL, "%s: no matrices %lld + %lld in %s", result->path,
                         (long long)first, (long long)count, g->name);
    int64_t bytes = io_kind_bytes(kind, g->dtype, g->m, g->n, g->nb, g->nmetrics);
    return io_raw_read(result->fd, dst, (size_t)(count * bytes), g->offset[kind] + first * bytes,
                       result->path, g->name, err);
}

void io_result_close(io_result_t *result)
{
    for (int64_t i = 0; i < result->ngroups; i++) {
        gb10_free(result->groups[i].name);
        gb10_free(result->groups[i].grid);
    }
    gb10_free(result->groups);
    gb10_free(result->path);
    gb10_free(result->creator_version);
    gb10_free(result->options);
    gb10_free(result->backend);
    gb10_free(result->isa);
    gb10_free(result->fingerprint);
    if (result->fd >= 0)
        close(result->fd);
    memset(result, 0, sizeof *result);
    result->fd = -1;
}
