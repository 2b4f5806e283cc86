/* The one place that includes HDF5 for io/. Every HDF5 call in io/ is made between io_h5_lock and
 * io_h5_unlock. Private to io/. */
#ifndef IO_H5LIB_H
#define IO_H5LIB_H

/* Debian maps unnumbered names to the 1.8 forms; the structures below are those of 1.10. */
#define H5_USE_110_API 1
#include <hdf5.h>

#include <stdbool.h>
#include <stddef.h>

#include "kernels/core/status.h"

enum { IO_REASON_MAX = 256 };

/* One mutex over the library; turns its error printing off for this thread and clears its error
 * stack. Not recursive. */
void io_h5_lock(void);
void io_h5_unlock(void);

/* The most specific message of the last failed HDF5 call of this thread. */
const char *io_h5_reason(char text[IO_REASON_MAX]);

/* Properties to open or create a file without a file lock, or negative. */
hid_t io_h5_unlocked(void);

/* Opens a file. Reading uses the library's defaults: a file that refers to itself (virtual
 * datasets, external links) is opened with those again, and HDF5 refuses two ways of locking one
 * file. Only where locks do not work is it read without. Writing takes no lock: the caller has its
 * own. */
hid_t io_h5_open(const char *path, bool write);

/* Closes any kind of identifier; negative ones are ignored. */
void io_h5_close(hid_t id);

/* The same between a failed call and io_h5_reason: every HDF5 call forgets earlier errors. */
void io_h5_close_keeping(hid_t id);

/* A variable-length UTF-8 string type, or negative. */
hid_t io_h5_string_type(void);

/* *text = a scalar string attribute (any kind of string) from gb10_alloc, or NULL when it is absent
 * or not a string. */
gb10_status_t io_h5_get_text(hid_t object, const char *name, char **text, gb10_error_t *err);

/* True and *value when the object has a scalar integer attribute of that name. */
bool io_h5_get_number(hid_t object, const char *name, long long *value);

/* Checks that `path` is a regular file that can be read and carries the HDF5 signature; the message
 * says which of these is not so. */
gb10_status_t io_h5_probe(const char *path, gb10_error_t *err);

/* Records why io_h5_open failed on a file that io_h5_probe accepted. Call it before any other HDF5
 * call. */
gb10_status_t io_h5_open_failed(const char *path, gb10_error_t *err);

#endif
