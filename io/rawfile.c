#include "io/rawfile.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <string.h>
#include <unistd.h>

#include "kernels/core/alloc.h"

gb10_status_t io_raw_read(int fd, void *dst, size_t size, int64_t offset, const char *path,
                          const char *what, gb10_error_t *err)
{
    char *to = dst;
    while (size > 0) {
        size_t piece = size < IO_CALL_MAX ? size : IO_CALL_MAX;
        ssize_t got = pread(fd, to, piece, offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return GB10_FAIL(err, GB10_ERR_FILE, "%s: %s: reading %zu bytes at %lld failed: %s.",
                             path, what, piece, (long long)offset, strerror(errno));
        if (got == 0)
            return GB10_FAIL(
                err, GB10_ERR_FILE,
                "%s: %s: the file ends at byte %lld, %zu bytes early. It was cut short "
                "while in use.",
                path, what, (long long)offset, size);
        to += got;
        offset += got;
        size -= (size_t)got;
    }
    return GB10_OK;
}

gb10_status_t io_raw_write(int fd, const void *src, size_t size, int64_t offset, const char *path,
                           const char *what, gb10_error_t *err)
{
    const char *from = src;
    while (size > 0) {
        size_t piece = size < IO_CALL_MAX ? size : IO_CALL_MAX;
        ssize_t done = pwrite(fd, from, piece, offset);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0) {
            int reason = done < 0 ? errno : ENOSPC;
            if (reason == ENOSPC || reason == EDQUOT)
                return GB10_FAIL(err, GB10_ERR_SPACE,
                                 "%s: %s: no %s left: %zu bytes at %lld were not written. Free "
                                 "some and start again.",
                                 path, what, reason == EDQUOT ? "quota" : "space on the disk", size,
                                 (long long)offset);
            return GB10_FAIL(err, GB10_ERR_FILE, "%s: %s: writing %zu bytes at %lld failed: %s.",
                             path, what, piece, (long long)offset, strerror(reason));
        }
        from += done;
        offset += done;
        size -= (size_t)done;
    }
    return GB10_OK;
}

bool io_rect_fits(const io_rect_t *rect, int64_t rows, int64_t columns)
{
    return rect->rows >= 0 && rect->columns >= 0 && rect->row >= 0 && rect->column >= 0 &&
           rect->rows <= rows && rect->columns <= columns && rect->row <= rows - rect->rows &&
           rect->column <= columns - rect->columns;
}

gb10_status_t io_rect_outside(const char *path, const char *name, const io_rect_t *rect,
                              gb10_error_t *err)
{
    return GB10_FAIL(err, GB10_ERR_INTERNAL, "%s: %s has no rows %lld + %lld, columns %lld + %lld",
                     path, name, (long long)rect->row, (long long)rect->rows,
                     (long long)rect->column, (long long)rect->columns);
}

gb10_status_t io_sync_folder(const char *path, gb10_error_t *err)
{
    char *copy = NULL;
    gb10_status_t status = gb10_strdup(&copy, path, err);
    if (status != GB10_OK)
        return status;
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* Some file systems refuse fsync of a folder with EINVAL: then there is nothing to sync. */
    if (fd < 0 || (fsync(fd) != 0 && errno != EINVAL))
        status = GB10_FAIL(err, GB10_ERR_FILE, "the folder of %s cannot be synced: %s.", path,
                           strerror(errno));
    if (fd >= 0)
        close(fd);
    gb10_free(copy);
    return status;
}
