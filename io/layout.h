/* What the datasets of an output are, shared by its writer and its reader. Private to io/. */
#ifndef IO_LAYOUT_H
#define IO_LAYOUT_H

#include "io/h5lib.h"
#include "io/io.h"

/* The part of a dataset that belongs to one matrix: 0, 1 or 2 dimensions of elements. */
typedef struct io_shape {
    int rank;
    int64_t dims[2];
    size_t element; /* bytes */
} io_shape_t;

io_shape_t io_kind_shape(io_kind_t kind, gb10_dtype_t dtype, int64_t m, int64_t n, int64_t nb,
                         int nmetrics);

/* Datatypes of the file for each kind, made once per file: index by io_layout_type. */
enum { IO_TYPE_UINT8 = GB10_DTYPES, IO_TYPE_INT8, IO_TYPE_DOUBLE, IO_TYPES };
typedef struct io_types {
    hid_t id[IO_TYPES];
} io_types_t;
bool io_types_open(io_types_t *types);
void io_types_close(io_types_t *types);
int io_kind_type(io_kind_t kind, gb10_dtype_t dtype);

extern const char *const io_conventions;     /* "fugu-1.0"     */
extern const char *const io_conventions_gen; /* "fugu-gen-1.0" */

/* An output: io_output_create and io_output_attach make it, writer.c works on it. */
struct io_output {
    char *path, *part; /* OUT and OUT.part                            */
    const io_catalog_t *catalog;
    uint32_t kinds;
    int64_t nb;
    int nmetrics;
    int fd;          /* of OUT.part                                 */
    bool finished;   /* renamed                                     */
    int64_t *offset; /* of dataset i, kind k: offset[i * IO_KINDS + k]; -1: none */
};

#endif
