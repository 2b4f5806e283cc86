/* OUT.part as a file: who may make, mark, rename and remove it. Private to io/. */
#ifndef IO_PART_H
#define IO_PART_H

#include <stdbool.h>

#include "kernels/core/status.h"

/* Refuses a name that is empty or stands for something that is not a regular file. */
gb10_status_t io_part_kind(const char *name, gb10_error_t *err);

/* GB10_ERR_EXISTS when `part` is there and another run writes it. Changes nothing. */
gb10_status_t io_part_free(const char *part, gb10_error_t *err);

/* Makes a new, empty `part`, locked until *fd is closed. overwrite: one that an earlier run left is
 * removed first. */
gb10_status_t io_part_create(const char *part, bool overwrite, int *fd, gb10_error_t *err);

/* The `part` that an earlier run left, locked as a new one; GB10_ERR_EXISTS when another run has
 * it. */
gb10_status_t io_part_reopen(const char *part, int *fd, gb10_error_t *err);

/* Shared by several writers that know of each other's parts: waits up to `seconds` while one run
 * has it for itself, GB10_ERR_EXISTS when that does not end. Then: one's own lock made shared; and
 * a shared one made one's own, false when others hold it (the lock is lost then). */
gb10_status_t io_part_join(const char *part, double seconds, int *fd, gb10_error_t *err);
void io_part_share(int fd);
bool io_part_claim(int fd);

/* The same file on another rank, without a lock. */
gb10_status_t io_part_open(const char *part, int *fd, gb10_error_t *err);

/* Whether the name still stands for the open file; GB10_ERR_FILE when not. */
bool io_part_is(int fd, const char *part);
gb10_status_t io_part_ours(int fd, const char *part, gb10_error_t *err);

/* Removes it unless the name stands for another file by now. */
void io_part_remove(int fd, const char *part);

#endif
