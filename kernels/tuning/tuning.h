/* Tuning tables: which kernel and which block sizes for a type, a shape and an instruction set.
 * Data and pure look-up; nothing here reads a file. Private to kernels/. */
#ifndef GB10_TUNING_TUNING_H
#define GB10_TUNING_TUNING_H

#include "kernels/core/status.h"
#include "kernels/core/types.h"

/* Changes whenever a column gets another meaning: text of another version is refused. */
enum { GB10_TUNING_VERSION = 1 };

/* Shape classes: square n <= m < 4n, tall m >= 4n, wide m < n. */
typedef enum gb10_shape_class { GB10_SQUARE = 0, GB10_HIGH = 1, GB10_WIDE = 2 } gb10_shape_class_t;
enum { GB10_SHAPE_CLASSES = 3 };
gb10_shape_class_t gb10_shape_class(int64_t m, int64_t n);

/* LANES: one matrix in each lane of a vector. BLOCKS: panels and blocked updates. */
typedef enum gb10_kernel { GB10_LANES = 0, GB10_BLOCKS = 1 } gb10_kernel_t;
enum { GB10_KERNELS = 2 };

typedef struct gb10_tuning_row {
    char isa[16]; /* as gb10_isa_name says it */
    gb10_dtype_t dtype;
    gb10_shape_class_t shape;
    int64_t n_max; /* up to this min(m, n), inclusive; INT64_MAX in the last row of a series */
    gb10_kernel_t kernel;
    int64_t block;        /* reflectors that are applied together                           */
    int64_t group;        /* strips of four vectors of columns that are updated together    */
    char provenance[112]; /* device, date and command of the measurement                    */
} gb10_tuning_row_t;

/* Rows of one instruction set, type and class are a series: n_max ascends, the last has none. */
typedef struct gb10_tuning {
    char name[32];
    int64_t nrows, capacity; /* capacity 0: the rows are static */
    const gb10_tuning_row_t *rows;
} gb10_tuning_t;

/* The table that is built in: a series for every instruction set, type and class. */
const gb10_tuning_t *gb10_tuning_builtin(void);

/* The row for an m x n matrix: of its series, the first whose n_max is at least min(m, n). For an
 * instruction set without rows those of "baseline"; never NULL with the built-in table or one from
 * gb10_tuning_parse. A pure function of its arguments. */
const gb10_tuning_row_t *gb10_tuning_find(const gb10_tuning_t *table, const char *isa,
                                          gb10_dtype_t dtype, int64_t m, int64_t n);

/* Name, version and a hash of all that decides: "built-in v1 5f0a3c9e". Provenance is not in it. */
enum { GB10_TUNING_STAMP = 64 };
void gb10_tuning_write_stamp(const gb10_tuning_t *table, char text[GB10_TUNING_STAMP]);

/* The table as text that gb10_tuning_parse reads, as snprintf: at most size bytes with the final
 * zero are written, and the length that all of it takes is returned. */
size_t gb10_tuning_print(const gb10_tuning_t *table, char *text, size_t size);

/* A table from text; release with gb10_tuning_free. Lines: "#" and what follows, and blank lines,
 * say nothing; then, in this order,
 *     fugu-tuning,VERSION,NAME
 *     isa,dtype,shape,n_max,kernel,block,group,provenance
 * and one row a line: dtype s d c z, shape square tall wide, n_max a number or "any", kernel lanes
 * or blocks, provenance all the rest of the line. Series that are not there are taken from the
 * built-in table. GB10_ERR_FORMAT names the line; *table is NULL then. */
gb10_status_t gb10_tuning_parse(gb10_tuning_t **table, const char *text, gb10_error_t *err);
/* NULL allowed. */
void gb10_tuning_free(gb10_tuning_t *table);

/* "square", "tall", "wide"; "lanes", "blocks". */
extern const char *const gb10_shape_class_names[GB10_SHAPE_CLASSES];
extern const char *const gb10_kernel_names[GB10_KERNELS];

#endif
