/* OUT.part and whose it is. The run that writes it holds a lock (flock) on it for as long as it has
 * it open; where the file system has no locks, device and inode still tell when it was replaced. */
#include "io/part.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* False only when somebody else has the lock. */
static bool lock(int fd)
{
    int failed;
    do
        failed = flock(fd, LOCK_EX | LOCK_NB);
    while (failed && errno == EINTR);
    return !failed || errno != EWOULDBLOCK;
}

static gb10_status_t held(const char *part, gb10_error_t *err)
{
    return GB10_FAIL(err, GB10_ERR_EXISTS,
                     "%s is being written by another run, or open in another program. Wait for its "
                     "end, or name another output.",
                     part);
}

bool io_part_is(int fd, const char *part)
{
    struct stat ours, there;
    return fd >= 0 && fstat(fd, &ours) == 0 && stat(part, &there) == 0 &&
           ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

gb10_status_t io_part_kind(const char *name, gb10_error_t *err)
{
    struct stat info;
    if (name[0] == 0)
        return GB10_FAIL(err, GB10_ERR_USAGE, "the output's name is empty. Name a file for it.");
    if (stat(name, &info) == 0 && S_ISDIR(info.st_mode))
        return GB10_FAIL(err, GB10_ERR_FILE, "%s is a directory. Name a file for the output.",
                         name);
    if (name[strlen(name) - 1] == '/')
        return GB10_FAIL(err, GB10_ERR_USAGE,
                         "%s ends with '/', as a folder does. Name a file for the output.", name);
    if (stat(name, &info) == 0 && !S_ISREG(info.st_mode))
        return GB10_FAIL(err, GB10_ERR_FILE,
                         "%s is not a regular file. Name another file for the output.", name);
    return GB10_OK;
}

/* *fd: the file that is there, locked, or -1 when there is none. */
static gb10_status_t lock_old(const char *part, int *fd, gb10_error_t *err)
{
    gb10_status_t status = io_part_kind(part, err);
    *fd = -1;
    if (status != GB10_OK)
        return status;
    *fd = open(part, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (*fd < 0 && errno != ENOENT)
        *fd = open(part, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*fd < 0 && errno != ENOENT)
        return GB10_FAIL(err, GB10_ERR_FILE,
                         "%s was left by another run and cannot be opened: %s. Remove it, or name "
                         "another output.",
                         part, strerror(errno));
    if (*fd >= 0 && lock(*fd))
        return GB10_OK;
    if (*fd < 0)
        return GB10_OK;
    close(*fd);
    *fd = -1;
    return held(part, err);
}

gb10_status_t io_part_free(const char *part, gb10_error_t *err)
{
    int fd;
    gb10_status_t status = lock_old(part, &fd, err);
    if (fd >= 0)
        close(fd);
    return status;
}

/* Removes what an earlier run left. Its lock is held meanwhile: of two runs that both want to
 * remove it, the second one finds another file under the name. */
static gb10_status_t remove_old(const char *part, gb10_error_t *err)
{
    int fd;
    gb10_status_t status = lock_old(part, &fd, err);
    if (status == GB10_OK && fd >= 0 && !io_part_is(fd, part))
        status = held(part, err);
    else if (status == GB10_OK && unlink(part) != 0 && errno != ENOENT)
        status = GB10_FAIL(err, GB10_ERR_FILE, "%s cannot be removed: %s.", part, strerror(errno));
    if (fd >= 0)
        close(fd);
    return status;
}

gb10_status_t io_part_create(const char *part, bool overwrite, int *fd, gb10_error_t *err)
{
    gb10_status_t status = overwrite ? remove_old(part, err) : io_part_free(part, err);
    *fd = -1;
    if (status != GB10_OK)
        return status;
    *fd = open(part, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (*fd >= 0 && lock(*fd) && io_part_is(*fd, part))
        return GB10_OK;
    if (*fd >= 0) {
        close(*fd);
        *fd = -1;
        return held(part, err);
    }
    if (errno == EEXIST && overwrite)
        return held(part, err);
    if (errno == EEXIST)
        return GB10_FAIL(err, GB10_ERR_EXISTS,
                         "%s was left by an unfinished run. Use --overwrite to start again.", part);
    if (errno == ENOENT || errno == ENOTDIR)
        return GB10_FAIL(err, GB10_ERR_FILE,
                         "%s cannot be created: its folder is not there. Make it first.", part);
    return GB10_FAIL(err, errno == ENOSPC || errno == EDQUOT ? GB10_ERR_SPACE : GB10_ERR_FILE,
                     "%s cannot be created: %s.", part, strerror(errno));
}

gb10_status_t io_part_reopen(const char *part, int *fd, gb10_error_t *err)
{
    gb10_status_t status = lock_old(part, fd, err);
    if (status != GB10_OK)
        return status;
    if (*fd >= 0 && (fcntl(*fd, F_GETFL) & O_ACCMODE) == O_RDWR && io_part_is(*fd, part))
        return GB10_OK;
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    return GB10_FAIL(err, GB10_ERR_FILE, "%s cannot be opened for writing.", part);
}

gb10_status_t io_part_join(const char *part, double seconds, int *fd, gb10_error_t *err)
{
    const double nap = 0.05;
    *fd = open(part, O_RDWR | O_CLOEXEC);
    if (*fd < 0)
        return GB10_FAIL(err, errno == ENOENT ? GB10_ERR_EXISTS : GB10_ERR_FILE,
                         "%s cannot be opened: %s.", part, strerror(errno));
    while (flock(*fd, LOCK_SH | LOCK_NB) != 0 && (errno == EWOULDBLOCK || errno == EINTR)) {
        seconds -= nap;
        if (seconds < 0) {
            close(*fd);
            *fd = -1;
            return held(part, err);
        }
        nanosleep(&(struct timespec){0, (long)(nap * 1e9)}, NULL);
    }
    return GB10_OK;
}

void io_part_share(int fd)
{
    flock(fd, LOCK_SH | LOCK_NB);
}

bool io_part_claim(int fd)
{
    return lock(fd);
}

gb10_status_t io_part_open(const char *part, int *fd, gb10_error_t *err)
{
    *fd = open(part, O_RDWR | O_CLOEXEC);
    if (*fd < 0)
        return GB10_FAIL(err, GB10_ERR_FILE, "%s cannot be opened: %s.", part, strerror(errno));
    return GB10_OK;
}

gb10_status_t io_part_ours(int fd, const char *part, gb10_error_t *err)
{
    if (io_part_is(fd, part))
        return GB10_OK;
    return GB10_FAIL(err, GB10_ERR_FILE,
                     "%s was removed or replaced while this run wrote it, so the results are lost. "
                     "Start again with an output that no other run uses.",
                     part);
}

void io_part_remove(int fd, const char *part)
{
    if (io_part_is(fd, part))
        unlink(part);
}
