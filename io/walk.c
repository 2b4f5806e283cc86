/* The walk over a file: hard links first, in name order, so that an object's name is its first hard
 * path; then soft and external links, which may reach further objects. A group is entered once, so
 * cycles end. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/catalog.h"
#include "kernels/core/alloc.h"

typedef struct identity {
    unsigned long file;
    haddr_t address;
    int64_t index; /* of the dataset in found, or -1: a group or something else */
} identity_t;

typedef struct link {
    char *path;
    bool external;
} link_t;

typedef struct state {
    io_walk_t *walk;
    gb10_error_t *err;
    gb10_status_t status;
    unsigned long main_file;
    int depth;        /* of the group the walk is in */
    identity_t *seen; /* hash table, a power of two of slots, address 0 with file 0 = free */
    size_t nseen, slots;
    link_t *links; /* to follow after the hard links */
    size_t nlinks, link_capacity;
    hid_t *held; /* objects in other files: kept open so that those files keep their number */
    size_t nheld, held_capacity;
} state_t;

/* The group an iteration is in. */
typedef struct place {
    state_t *s;
    const char *path; /* "" for the root */
} place_t;

gb10_status_t io_catalog_note(io_catalog_t *catalog, const char *name, bool warning,
                              gb10_error_t *err, const char *format, ...)
{
    char reason[GB10_MESSAGE_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    gb10_status_t status;
    GB10_TRY(gb10_grow(&catalog->notes, &catalog->note_capacity, (size_t)catalog->nnotes + 1,
                       sizeof *catalog->notes, "notes on the input", err));
    io_note_t *note = &catalog->notes[catalog->nnotes++];
    note->warning = warning;
    GB10_TRY(gb10_strdup(&note->name, name, err));
    GB10_TRY(gb10_strdup(&note->reason, reason, err));
cleanup:
    return status;
}

static size_t slot_of(const state_t *s, unsigned long file, haddr_t address)
{
    uint64_t h = (uint64_t)address * 0x9e3779b97f4a7c15u ^ (uint64_t)file * 0xbf58476d1ce4e5b9u;
    size_t i = (size_t)(h >> 20) & (s->slots - 1);
    while (s->seen[i].file && (s->seen[i].file != file || s->seen[i].address != address))
        i = (i + 1) & (s->slots - 1);
    return i;
}

static gb10_status_t more_slots(state_t *s)
{
    identity_t *old = s->seen;
    size_t nold = s->slots, slots = nold ? nold * 2 : 256;
    identity_t *bigger = NULL;
    gb10_status_t status = gb10_alloc(&bigger, slots, sizeof *bigger, "objects seen", s->err);
    if (status != GB10_OK)
        return status;
    s->seen = bigger;
    s->slots = slots;
    for (size_t i = 0; i < nold; i++)
        if (old[i].file)
            s->seen[slot_of(s, old[i].file, old[i].address)] = old[i];
    gb10_free(old);
    return GB10_OK;
}

/* The entry of an object, or NULL after a failure. *is_new: it was not there. File numbers of HDF5
 * start at 0; here they start at 1. */
static identity_t *remember(state_t *s, const H5O_info_t *info, bool *is_new)
{
    if (s->nseen * 2 >= s->slots && (s->status = more_slots(s)) != GB10_OK)
        return NULL;
    identity_t *entry = &s->seen[slot_of(s, info->fileno + 1, info->addr)];
    *is_new = !entry->file;
    if (*is_new) {
        *entry = (identity_t){info->fileno + 1, info->addr, -1};
        s->nseen++;
    }
    return entry;
}

static gb10_status_t join(char **path, const char *parent, const char *name, gb10_error_t *err)
{
    size_t size = strlen(parent) + strlen(name) + 2;
    gb10_status_t status = gb10_alloc(path, size, 1, "a path", err);
    if (status == GB10_OK)
        snprintf(*path, size, "%s/%s", parent, name);
    return status;
}

static gb10_status_t add_alias(io_dataset_t *dataset, const char *path, gb10_error_t *err)
{
    size_t old = dataset->aliases ? strlen(dataset->aliases) : 0;
    size_t size = old + strlen(path) + 2;
    char *text = NULL;
    gb10_status_t status = gb10_alloc(&text, size, 1, "other names of a dataset", err);
    if (status != GB10_OK)
        return status;
    snprintf(text, size, "%s%s%s", old ? dataset->aliases : "", old ? "\n" : "", path);
    gb10_free(dataset->aliases);
    dataset->aliases = text;
    return GB10_OK;
}

static void free_found(io_found_t *found)
{
    gb10_free(found->dataset.name);
    gb10_free(found->dataset.aliases);
    gb10_free(found->dataset.dims);
    gb10_free(found->refusal);
}

static gb10_status_t new_dataset(state_t *s, hid_t id, const H5O_info_t *info, const char *path,
                                 int64_t *index)
{
    io_walk_t *w = s->walk;
    gb10_status_t status;
    bool is_batch = false;
    GB10_TRY(gb10_grow(&w->found, &w->capacity, w->nfound + 1, sizeof *w->found,
                       "the datasets of the input", s->err));
    io_found_t *found = &w->found[w->nfound++];
    memset(found, 0, sizeof *found);
    found->file = info->fileno;
    found->address = info->addr;
    GB10_TRY(gb10_strdup(&found->dataset.name, path, s->err));
    GB10_TRY(io_describe(w->catalog, id, found, &is_batch, s->err));
    if (is_batch) {
        if (info->fileno != s->main_file)
            found->dataset.offset = -1; /* its bytes are in another file */
        *index = (int64_t)w->nfound - 1;
        return GB10_OK;
    }
    free_found(found);
    w->nfound--;
cleanup:
    return status;
}

static gb10_status_t walk_group(state_t *s, hid_t group, const char *path);

/* An object that is no batch, but an error if a pattern selects it. */
static gb10_status_t refused(state_t *s, const char *path, const char *why)
{
    io_walk_t *w = s->walk;
    gb10_status_t status;
    GB10_TRY(gb10_grow(&w->found, &w->capacity, w->nfound + 1, sizeof *w->found,
                       "the datasets of the input", s->err));
    io_found_t *found = &w->found[w->nfound++];
    memset(found, 0, sizeof *found);
    GB10_TRY(gb10_strdup(&found->dataset.name, path, s->err));
    GB10_TRY(gb10_strdup(&found->refusal, why, s->err));
cleanup:
    return status;
}

static gb10_status_t too_deep(state_t *s, const char *path)
{
    char start[128];
    snprintf(start, sizeof start, "%.100s...", path);
    return refused(s, start,
                   "is a group below 512 others; groups are followed to a depth of 512. Move it "
                   "up, or use --dataset to leave it out.");
}

/* An object that HDF5 cannot open: its datatype may be newer than the library. */
static gb10_status_t unreadable(state_t *s, const char *path)
{
    char reason[IO_REASON_MAX], text[GB10_MESSAGE_MAX];
    unsigned major = 0, minor = 0, release = 0;
    io_h5_reason(reason);
    H5get_libversion(&major, &minor, &release);
    bool newer = strstr(reason, "datatype") || strstr(reason, "version number");
    if (newer)
        snprintf(text, sizeof text,
                 "has a datatype that HDF5 %u.%u.%u does not know (%s), as the native complex type "
                 "of HDF5 2.0 is. Store it as a compound {r, i} of two floats, or use --dataset to "
                 "leave it out.",
                 major, minor, release, reason);
    else
        snprintf(text, sizeof text,
                 "cannot be opened (%s): the file is damaged. Use --dataset to leave it out.",
                 reason);
    return refused(s, path, text);
}

/* An object reached by `path`, for the first time or again. */
static gb10_status_t visit(state_t *s, hid_t id, const char *path)
{
    H5O_info_t info;
    bool is_new;
    if (H5Oget_info2(id, &info, H5O_INFO_BASIC) < 0)
        return unreadable(s, path);
    identity_t *entry = remember(s, &info, &is_new);
    if (!entry)
        return s->status;
    if (!is_new && entry->index >= 0)
        return add_alias(&s->walk->found[entry->index].dataset, path, s->err);
    if (!is_new)
        return io_catalog_note(s->walk->catalog, path, false, s->err,
                               "another path to an object that is listed already");
    if (info.type == H5O_TYPE_GROUP)
        return walk_group(s, id, path);
    if (info.type != H5O_TYPE_DATASET)
        return io_catalog_note(s->walk->catalog, path, false, s->err, "a named datatype");
    int64_t index = -1;
    gb10_status_t status = new_dataset(s, id, &info, path, &index);
    entry->index = index;
    return status;
}

static gb10_status_t defer(state_t *s, char **path, bool external)
{
    gb10_status_t status = gb10_grow(&s->links, &s->link_capacity, s->nlinks + 1, sizeof *s->links,
                                     "links of the input", s->err);
    if (status != GB10_OK)
        return status;
    s->links[s->nlinks++] = (link_t){*path, external};
    *path = NULL;
    return GB10_OK;
}

static herr_t each_link(hid_t group, const char *name, const H5L_info_t *info, void *context)
{
    const place_t *place = context;
    state_t *s = place->s;
    char *path = NULL;
    hid_t id = -1;
    gb10_status_t status;
    GB10_TRY(join(&path, place->path, name, s->err));
    if (info->type == H5L_TYPE_SOFT || info->type == H5L_TYPE_EXTERNAL) {
        GB10_TRY(defer(s, &path, info->type == H5L_TYPE_EXTERNAL));
    } else if (info->type != H5L_TYPE_HARD) {
        GB10_TRY(io_catalog_note(s->walk->catalog, path, true, s->err, "a user-defined link"));
    } else {
        H5Eclear2(H5E_DEFAULT);
        id = H5Oopen(group, name, H5P_DEFAULT);
        GB10_TRY(id < 0 ? unreadable(s, path) : visit(s, id, path));
    }
cleanup:
    io_h5_close(id);
    gb10_free(path);
    if (status != GB10_OK)
        s->status = status;
    return status != GB10_OK;
}

static gb10_status_t walk_group(state_t *s, hid_t group, const char *path)
{
    place_t place = {s, path};
    if (s->depth > IO_DEPTH_MAX)
        return too_deep(s, path);
    s->depth++;
    herr_t failed = H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, NULL, each_link, &place);
    s->depth--;
    if (failed >= 0 || s->status != GB10_OK)
        return s->status;
    return unreadable(s, path[0] ? path : "/");
}

/* What a link points to, for a note. */
static void link_target(hid_t file, const link_t *link, char *text, size_t size)
{
    H5L_info_t info;
    char value[512] = "";
    const char *name = "", *object = "";
    unsigned flags;
    bool good = H5Lget_info(file, link->path, &info, H5P_DEFAULT) >= 0 &&
                info.u.val_size < sizeof value &&
                H5Lget_val(file, link->path, value, sizeof value, H5P_DEFAULT) >= 0;
    if (good && link->external &&
        H5Lunpack_elink_val(value, info.u.val_size, &flags, &name, &object) >= 0)
        snprintf(text, size, "%s in %s", object, name);
    else
        snprintf(text, size, "%s", good && value[0] ? value : "nothing");
}

static gb10_status_t follow(state_t *s, hid_t file, link_t link)
{
    H5Eclear2(H5E_DEFAULT);
    hid_t id = H5Oopen(file, link.path, H5P_DEFAULT);
    if (id < 0) {
        char target[600];
        link_target(file, &link, target, sizeof target);
        return io_catalog_note(s->walk->catalog, link.path, true, s->err, "a broken %s link to %s",
                               link.external ? "external" : "soft", target);
    }
    gb10_status_t status = visit(s, id, link.path);
    H5O_info_t info;
    bool elsewhere = H5Oget_info2(id, &info, H5O_INFO_BASIC) >= 0 && info.fileno != s->main_file;
    char name[4096];
    if (status == GB10_OK && elsewhere && H5Fget_name(id, name, sizeof name) > 0)
        status = io_catalog_file(s->walk->catalog, name, s->err);
    if (status == GB10_OK && elsewhere)
        status = gb10_grow(&s->held, &s->held_capacity, s->nheld + 1, sizeof *s->held,
                           "objects of other files", s->err);
    if (status == GB10_OK && elsewhere)
        s->held[s->nheld++] = id;
    else
        io_h5_close(id);
    return status;
}

/* Names compare component by component, as the walk meets them: '/' sorts before all else. */
static int by_name(const void *a, const void *b)
{
    const unsigned char *x = (const void *)((const io_found_t *)a)->dataset.name;
    const unsigned char *y = (const void *)((const io_found_t *)b)->dataset.name;
    while (*x && *x == *y)
        x++, y++;
    int p = *x == '/' ? 1 : *x ? *x + 1 : 0, q = *y == '/' ? 1 : *y ? *y + 1 : 0;
    return p - q;
}

gb10_status_t io_walk_run(io_walk_t *walk, hid_t file, gb10_error_t *err)
{
    state_t s = {.walk = walk, .err = err};
    gb10_status_t status = GB10_OK;
    hid_t root = H5Oopen(file, "/", H5P_DEFAULT);
    H5O_info_t info;
    if (root < 0 || H5Oget_info2(root, &info, H5O_INFO_BASIC) < 0) {
        char reason[IO_REASON_MAX];
        status =
            GB10_FAIL(err, GB10_ERR_FORMAT, "%s is damaged: its root group cannot be read (%s)",
                      walk->catalog->path, io_h5_reason(reason));
        goto cleanup;
    }
    s.main_file = info.fileno;
    GB10_TRY(visit(&s, root, ""));
    for (size_t i = 0; i < s.nlinks; i++) /* following a link may defer more of them */
        GB10_TRY(follow(&s, file, s.links[i]));
    if (walk->nfound)
        qsort(walk->found, walk->nfound, sizeof *walk->found, by_name);
cleanup:
    for (size_t i = 0; i < s.nheld; i++)
        io_h5_close(s.held[i]);
    for (size_t i = 0; i < s.nlinks; i++)
        gb10_free(s.links[i].path);
    gb10_free(s.held);
    gb10_free(s.links);
    gb10_free(s.seen);
    io_h5_close(root);
    return status;
}

void io_walk_free(io_walk_t *walk)
{
    for (size_t i = 0; i < walk->nfound; i++)
        free_found(&walk->found[i]);
    gb10_free(walk->found);
    walk->found = NULL;
    walk->nfound = walk->capacity = 0;
}
