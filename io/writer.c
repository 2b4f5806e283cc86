#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "io/fault.h"
#include "io/layout.h"
#include "io/part.h"
#include "io/rawfile.h"
#include "kernels/core/alloc.h"

static void human(int64_t bytes, char text[32])
{
    static const char *const unit[] = {"B", "KB", "MB", "GB", "TB", "PB", "EB"};
    double value = (double)bytes;
    int i = 0;
    while (value >= 1000 && i < 6) {
        value /= 1000;
        i++;
    }
    snprintf(text, 32, value < 10 && i ? "%.1f %s" : "%.0f %s", value, unit[i]);
}

static bool same_file(const struct stat *info, const io_catalog_t *catalog)
{
    return catalog && catalog->path && (uint64_t)info->st_dev == catalog->device &&
           (uint64_t)info->st_ino == catalog->inode;
}

static bool is_source(const struct stat *info, const io_catalog_t *catalog)
{
    for (int64_t i = 0; catalog && i < catalog->nfiles; i++)
        if ((uint64_t)info->st_dev == catalog->files[i].device &&
            (uint64_t)info->st_ino == catalog->files[i].inode)
            return true;
    return false;
}

static gb10_status_t check_there(const char *path, const char *name, const io_catalog_t *catalog,
                                 io_existing_t existing, int64_t *freed, gb10_error_t *err)
{
    struct stat info;
    *freed = 0;
    if (stat(name, &info) != 0 && (errno != ENOENT || lstat(name, &info) != 0))
        return errno == ENOENT
                   ? GB10_OK
                   : GB10_FAIL(err, GB10_ERR_FILE, "%s: stat failed: %s.", name, strerror(errno));
    if (same_file(&info, catalog))
        return GB10_FAIL(err, GB10_ERR_FILE,
                         "%s is the input %s itself. Name another file for the output.", name,
                         catalog->path);
    if (is_source(&info, catalog))
        return GB10_FAIL(err, GB10_ERR_FILE,
                         "%s is a file that the input %s is read from (an external link, virtual "
                         "source or raw data). Name another file for the output.",
                         name, catalog->path);
    bool alone = name != path && existing != IO_SHARE;
    gb10_status_t status = alone ? io_part_free(name, err) : GB10_OK;
    if (status != GB10_OK)
        return status;
    *freed = (int64_t)info.st_blocks * 512;
    if (existing == IO_REPLACE || ((existing == IO_RESUME || existing == IO_SHARE) && name != path))
        return GB10_OK;
    if (name == path)
        return GB10_FAIL(err, GB10_ERR_EXISTS, "%s exists. Use --overwrite to replace it.", path);
    return GB10_FAIL(err, GB10_ERR_EXISTS,
                     "%s was left by an unfinished run. Use %s--overwrite to start again.", name,
                     catalog ? "--resume to go on with it, or " : "");
}

static gb10_status_t check_folder(const char *path, const char *folder, int64_t bytes,
                                  gb10_error_t *err)
{
    struct stat info;
    struct statvfs disk;
    if (stat(folder, &info) != 0 || !S_ISDIR(info.st_mode))
        return GB10_FAIL(err, GB10_ERR_FILE, "%s: there is no folder %s. Make it first.", path,
                         folder);
    if (info.st_nlink == 0)
        return GB10_FAIL(err, GB10_ERR_FILE,
                         "%s: the current folder was removed. Change to another one.", path);
    if (faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) != 0)
        return GB10_FAIL(err, GB10_ERR_FILE, "%s: no permission to write in the folder %s.", path,
                         folder);
    if (statvfs(folder, &disk) != 0)
        return GB10_FAIL(err, GB10_ERR_FILE, "%s: statvfs of %s failed: %s.", path, folder,
                         strerror(errno));
    double space = (double)disk.f_bavail * (double)disk.f_frsize;
    if (space < (double)bytes) {
        char needed[32], there[32];
        human(bytes, needed);
        human((int64_t)space, there);
        return GB10_FAIL(err, GB10_ERR_SPACE,
                         "no space left on the disk of %s: %s needed, %s free. Nothing was "
                         "started.",
                         path, needed, there);
    }
    return GB10_OK;
}

gb10_status_t io_output_check(const char *path, const io_catalog_t *catalog, io_existing_t existing,
                              int64_t bytes, gb10_error_t *err)
{
    gb10_status_t status;
    char *part = NULL, *folder = NULL;
    size_t size = strlen(path) + sizeof ".part";
    int64_t old = 0, left = 0;
    GB10_TRY(io_part_kind(path, err));
    GB10_TRY(gb10_strdup(&folder, path, err));
    GB10_TRY(gb10_alloc(&part, size, 1, "a path", err));
    snprintf(part, size, "%s.part", path);
    GB10_TRY(check_there(path, path, catalog, existing, &old, err));
    GB10_TRY(check_there(path, part, catalog, existing, &left, err));
    GB10_TRY(check_folder(path, dirname(folder), bytes - left, err));
cleanup:
    gb10_free(part);
    gb10_free(folder);
    return status;
}

/* Place and size of a block, or an error for one that is not in the layout. */
static gb10_status_t locate(const io_output_t *o, io_kind_t kind, int64_t dataset, int64_t first,
                            int64_t count, int64_t *offset, size_t *size, gb10_error_t *err)
{
    const io_catalog_t *c = o->catalog;
    if ((int)kind < 0 || (int)kind >= IO_KINDS || !(o->kinds >> kind & 1) || dataset < 0 ||
        dataset >= c->ndatasets || first < 0 || count < 0 || count > c->datasets[dataset].count ||
        first > c->datasets[dataset].count - count)
        return GB10_FAIL(err, GB10_ERR_INTERNAL,
                         "%s: no matrices %lld + %lld of kind %d in dataset %lld", o->part,
                         (long long)first, (long long)count, (int)kind, (long long)dataset);
    const io_dataset_t *d = &c->datasets[dataset];
    int64_t bytes = io_kind_bytes(kind, d->dtype, d->m, d->n, o->nb, o->nmetrics);
    *size = (size_t)(count * bytes);
    *offset = o->offset[dataset * IO_KINDS + kind] + first * bytes;
    if (*size > 0 && o->offset[dataset * IO_KINDS + kind] < 0)
        return GB10_FAIL(err, GB10_ERR_INTERNAL, "%s: %s of %s has no place in the file", o->part,
                         io_kind_name(kind), d->name);
    return GB10_OK;
}

void io_output_share(io_output_t *output)
{
    io_part_share(output->fd);
}

bool io_output_claim(io_output_t *output)
{
    return io_part_claim(output->fd);
}

const char *io_output_part(const io_output_t *output)
{
    return output->part;
}

gb10_status_t io_write(io_output_t *output, io_kind_t kind, int64_t dataset, int64_t first,
                       int64_t count, const void *src, gb10_error_t *err)
{
    int64_t offset = 0;
    size_t size = 0;
    gb10_status_t status = locate(output, kind, dataset, first, count, &offset, &size, err);
    if (status != GB10_OK)
        return status;
    int pretend = size > 0 ? io_fault(IO_FAULT_DATA) : 0;
    if (pretend)
        return GB10_FAIL(err, pretend == EIO ? GB10_ERR_FILE : GB10_ERR_SPACE, "%s: %s: %s",
                         output->part, output->catalog->datasets[dataset].name, strerror(pretend));
    return io_raw_write(output->fd, src, size, offset, output->part,
                        output->catalog->datasets[dataset].name, err);
}

/* Rows of the rectangle lie a matrix's row apart; whole rows are one piece. */
gb10_status_t io_write_rect(io_output_t *output, io_kind_t kind, int64_t dataset, int64_t index,
                            const io_rect_t *rect, const void *src, gb10_error_t *err)
{
    int64_t offset = 0;
    size_t size = 0;
    gb10_status_t status = locate(output, kind, dataset, index, 1, &offset, &size, err);
    if (status != GB10_OK)
        return status;
    const io_dataset_t *d = &output->catalog->datasets[dataset];
    io_shape_t shape = io_kind_shape(kind, d->dtype, d->m, d->n, output->nb, output->nmetrics);
    int64_t width = shape.rank > 1 ? shape.dims[1] : 1, e = (int64_t)shape.element;
    if (!io_rect_fits(rect, shape.rank > 0 ? shape.dims[0] : 1, width))
        return io_rect_outside(output->part, d->name, rect, err);
    int pretend = io_fault(IO_FAULT_DATA);
    if (pretend)
        return GB10_FAIL(err, pretend == EIO ? GB10_ERR_FILE : GB10_ERR_SPACE, "%s: %s: %s",
                         output->part, d->name, strerror(pretend));
    int64_t pieces = rect->columns == width ? 1 : rect->rows;
    size_t piece = (size_t)(rect->rows / (pieces > 0 ? pieces : 1) * rect->columns * e);
    offset += (rect->row * width + rect->column) * e;
    for (int64_t i = 0; i < pieces && status == GB10_OK; i++)
        status = io_raw_write(output->fd, (const char *)src + (size_t)i * piece, piece,
                              offset + i * width * e, output->part, d->name, err);
    return status;
}

gb10_status_t io_read_back_bytes(io_output_t *output, io_kind_t kind, int64_t dataset, int64_t at,
                                 int64_t size, void *dst, gb10_error_t *err)
{
    int64_t offset = 0, count = dataset >= 0 && dataset < output->catalog->ndatasets
                                    ? output->catalog->datasets[dataset].count
                                    : 0;
    size_t whole = 0;
    gb10_status_t status = locate(output, kind, dataset, 0, count, &offset, &whole, err);
    if (status != GB10_OK)
        return status;
    if (at < 0 || size < 0 || size > (int64_t)whole || at > (int64_t)whole - size)
        return GB10_FAIL(err, GB10_ERR_INTERNAL, "%s: no bytes %lld + %lld of kind %d",
                         output->part, (long long)at, (long long)size, (int)kind);
    return io_raw_read(output->fd, dst, (size_t)size, offset + at, output->part,
                       output->catalog->datasets[dataset].name, err);
}

gb10_status_t io_read_back(io_output_t *output, io_kind_t kind, int64_t dataset, int64_t first,
                           int64_t count, void *dst, gb10_error_t *err)
{
    int64_t offset = 0;
    size_t size = 0;
    gb10_status_t status = locate(output, kind, dataset, first, count, &offset, &size, err);
    if (status != GB10_OK)
        return status;
    return io_raw_read(output->fd, dst, size, offset, output->part,
                       output->catalog->datasets[dataset].name, err);
}

gb10_status_t io_output_sync(io_output_t *output, gb10_error_t *err)
{
    int pretend = io_fault(IO_FAULT_SYNC);
    if (!pretend && fdatasync(output->fd) == 0)
        return GB10_OK;
    int reason = pretend ? pretend : errno;
    gb10_status_t status = reason == ENOSPC || reason == EDQUOT ? GB10_ERR_SPACE : GB10_ERR_FILE;
    return GB10_FAIL(err, status, "%s: sync failed: %s. What was written may be lost.",
                     output->part, strerror(reason));
}

static bool set_complete(hid_t file)
{
    long long one = 1;
    hid_t attribute = H5Aopen_by_name(file, "/", "complete", H5P_DEFAULT, H5P_DEFAULT);
    bool good = attribute >= 0 && H5Awrite(attribute, H5T_NATIVE_LLONG, &one) >= 0 &&
                H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0;
    io_h5_close_keeping(attribute);
    return good;
}

/* HDF5 may report success for a close whose writes failed, so the mark is read again. */
static gb10_status_t mark_complete(io_output_t *o, gb10_error_t *err)
{
    gb10_status_t status = GB10_OK;
    char reason[IO_REASON_MAX] = "";
    long long value = 0;
    io_h5_lock();
    hid_t file = io_h5_open(o->part, true);
    bool good = file >= 0 && set_complete(file);
    if (!good)
        io_h5_reason(reason);
    io_h5_close(file);
    file = good ? io_h5_open(o->part, false) : -1;
    if (file < 0 || !io_h5_get_number(file, "complete", &value) || value != 1)
        status = GB10_FAIL(err, GB10_ERR_FILE, "%s cannot be marked as complete%s%s.", o->part,
                           reason[0] ? ": " : "", reason);
    io_h5_close(file);
    io_h5_unlock();
    return status;
}

/* A fault on purpose. */
static gb10_status_t trouble(const io_output_t *o, const char *point, gb10_error_t *err)
{
    int pretend = io_fault(point);
    if (!pretend)
        return GB10_OK;
    return GB10_FAIL(err, pretend == EIO ? GB10_ERR_FILE : GB10_ERR_SPACE, "%s: %s", o->part,
                     strerror(pretend));
}

gb10_status_t io_output_finish(io_output_t *output, gb10_error_t *err)
{
    gb10_status_t status;
    GB10_TRY(io_output_sync(output, err));
    GB10_TRY(io_part_ours(output->fd, output->part, err));
    GB10_TRY(trouble(output, IO_FAULT_FINISH, err));
    GB10_TRY(mark_complete(output, err));
    GB10_TRY(io_output_sync(output, err));
    GB10_TRY(io_part_ours(output->fd, output->part, err));
    GB10_TRY(trouble(output, IO_FAULT_RENAME, err));
    if (rename(output->part, output->path) != 0)
        return GB10_FAIL(err, GB10_ERR_FILE, "%s cannot be renamed to %s: %s.", output->part,
                         output->path, strerror(errno));
    output->finished = true;
    GB10_TRY(io_sync_folder(output->path, err));
cleanup:
    return status;
}

void io_output_discard(io_output_t *output)
{
    if (output && !output->finished)
        io_part_remove(output->fd, output->part);
}

void io_output_close(io_output_t *output)
{
    if (!output)
        return;
    if (output->fd >= 0)
        close(output->fd);
    gb10_free(output->path);
    gb10_free(output->part);
    gb10_free(output->offset);
    gb10_free(output);
}
