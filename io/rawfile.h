/* Positioned reads and writes of whole blocks. Private to io/. */
#ifndef IO_RAWFILE_H
#define IO_RAWFILE_H

#include <stdint.h>
#include <stddef.h>

#include "kernels/core/status.h"

/* Linux moves at most 2 GiB - 4 KiB in a call; so does every call here, in pieces of 1 GiB. */
enum { IO_CALL_MAX = 1 << 30 };

/* Reads all of it or fails; `path` and `what` (a dataset) are for the message. */
gb10_status_t io_raw_read(int fd, void *dst, size_t size, int64_t offset, const char *path,
                          const char *what, gb10_error_t *err);

/* Writes all of it or fails; no space or quota left is GB10_ERR_SPACE. */
gb10_status_t io_raw_write(int fd, const void *src, size_t size, int64_t offset, const char *path,
                           const char *what, gb10_error_t *err);

/* fsync of a file's folder, so that a rename or a new file in it lasts. */
gb10_status_t io_sync_folder(const char *path, gb10_error_t *err);

#endif
