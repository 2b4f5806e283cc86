/* The parts of the catalog that its files share. Private to io/. */
#ifndef IO_CATALOG_H
#define IO_CATALOG_H

#include "io/element.h"
#include "io/h5lib.h"
#include "io/io.h"

/* Groups in groups: the walks call themselves for each of them. */
enum { IO_DEPTH_MAX = 512 };

/* Something the walk met: a dataset with its identity, before patterns are applied. */
typedef struct io_found {
    io_dataset_t dataset;
    unsigned long file;
    haddr_t address;
    char *refusal; /* why it cannot be taken, or NULL          */
    bool is_virtual;
    bool file_missing; /* refused for a file beside the input        */
} io_found_t;

typedef struct io_walk {
    io_catalog_t *catalog;
    io_found_t *found;
    size_t nfound, capacity;
} io_walk_t;

/* Walks the open file: every dataset into walk->found in name order, notes into the catalog. */
gb10_status_t io_walk_run(io_walk_t *walk, hid_t file, gb10_error_t *err);
void io_walk_free(io_walk_t *walk);

gb10_status_t io_catalog_note(io_catalog_t *catalog, const char *name, bool warning,
                              gb10_error_t *err, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Keeps device and inode of a file that the input is read from besides itself. */
gb10_status_t io_catalog_file(io_catalog_t *catalog, const char *path, gb10_error_t *err);

/* Looks at an open dataset that is no link any more. Sets *is_batch; otherwise a note is made. */
gb10_status_t io_describe(io_catalog_t *catalog, hid_t id, io_found_t *found, bool *is_batch,
                          gb10_error_t *err);

/* Why a virtual dataset cannot be read in full (a source file or dataset is missing or too small),
 * or NULL; from gb10_alloc. */
gb10_status_t io_virtual_check(io_catalog_t *catalog, hid_t id, char **why, gb10_error_t *err);

#endif
