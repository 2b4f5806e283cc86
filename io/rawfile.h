/* Positioned reads and writes of whole blocks. Private to io/. */
#ifndef IO_RAWFILE_H
#define IO_RAWFILE_H

#include <stdint.h>
#include <stddef.h>

#include "io/io.h"

/* Linux moves at most 2 GiB - 4 KiB in a call; so does every call here, in pieces of 1 GiB. */
enum { IO_CALL_MAX = 1 << 30 };

/* Reads all of it or fails; `path` and `what` (a dataset) are for the message. */
gb10_status_t io_raw_read(int fd, void *dst, size_t size, int64_t offset, const char *path,
                          const char *what, gb10_error_t *err);

/* Writes all of it or fails; no space or quota left is GB10_ERR_SPACE. */
gb10_status_t io_raw_write(int fd, const void *src, size_t size, int64_t offset, const char *path,
                           const char *what, gb10_error_t *err);

/* Whether a rectangle lies within rows x columns; and the error when it does not. */
bool io_rect_fits(const io_rect_t *rect, int64_t rows, int64_t columns);
gb10_status_t io_rect_outside(const char *path, const char *name, const io_rect_t *rect,
                              gb10_error_t *err);

/* fsync of a file's folder, so that a rename or a new file in it lasts. */
gb10_status_t io_sync_folder(const char *path, gb10_error_t *err);

#endif
