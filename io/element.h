/* How the elements of a dataset are stored, and their conversion. Private to io/. */
#ifndef IO_ELEMENT_H
#define IO_ELEMENT_H

#include "io/io.h"

/* What a datatype is to this program. */
typedef enum io_fitness {
    IO_FIT_BATCH = 0,  /* numbers it can factor                           */
    IO_FIT_NOT = 1,    /* not numbers: left out with a note               */
    IO_FIT_REFUSED = 2 /* numbers it cannot take: an error when selected  */
} io_fitness_t;

enum { IO_WHY_MAX = 400 };

/* Classifies the file datatype `type` (an HDF5 identifier). Fills *element and *dtype for
 * IO_FIT_BATCH, else `why`: for IO_FIT_NOT a noun ("a string"), for IO_FIT_REFUSED the rest of a
 * sentence that starts with the dataset's name. Call it under io_h5_lock. */
io_fitness_t io_element_classify(int64_t type, bool narrow, io_element_t *element,
                                 gb10_dtype_t *dtype, char why[IO_WHY_MAX]);

/* The element of a dense native array of `dtype`. */
io_element_t io_element_native(gb10_dtype_t dtype);

/* True when the stored bytes are the values of `dtype` as they are. */
bool io_element_is_native(const io_element_t *element, gb10_dtype_t dtype);

/* Converts `count` stored elements at src into `dtype` at dst. The two may overlap when
 * element->size <= size of dtype and the ends of both arrays coincide. Integers beyond 2^53 are
 * rounded when narrow; else the index of the first one is returned and conversion stops there.
 * Returns -1 when all went well. */
int64_t io_convert(const io_element_t *element, gb10_dtype_t dtype, bool narrow, const void *src,
                   void *dst, int64_t count);

/* The integer stored at element `src` as text, for a message. */
void io_integer_text(const io_element_t *element, const void *src, char text[IO_ELEMENT_TEXT]);

#endif
