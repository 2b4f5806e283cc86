/* What every room does with a view. */
#ifndef GB10_CORE_VIEW_H
#define GB10_CORE_VIEW_H

#include <stdbool.h>

#include "kernels/core/types.h"

/* The one quiet NaN that fills the outputs of a matrix without a result: positive, no payload.
 * Complex elements carry it in both parts. */
#define GB10_NAN32 UINT32_C(0x7fc00000)
#define GB10_NAN64 UINT64_C(0x7ff8000000000000)

/* Fills matrix b with the canonical NaN; no effect when v is NULL. Padding is left alone. */
void gb10_view_fill_nan(const gb10_view_t *v, int64_t b);

/* True when every matrix has its elements at gb10_view_at + i rs + j cs. */
static inline bool gb10_view_linear(const gb10_view_t *v)
{
    return v->layout != GB10_TILES && v->layout != GB10_PANELS;
}

/* Elements from the first to one past the last of one matrix of a linear view: 0 when it is empty.
 */
int64_t gb10_view_extent(const gb10_view_t *v);

/* Writes the padding of a packed view: zeros in tiles, copies of the last matrix in place of those
 * that its last group lacks. */
void gb10_view_pad(const gb10_view_t *v);

/* The view of matrices first .. first+count-1 of v; first is a multiple of its granule. */
gb10_view_t gb10_view_part(const gb10_view_t *v, int64_t first, int64_t count);

/* True when the CPU can read and write it. */
static inline bool gb10_view_host(const gb10_view_t *v)
{
    return v->memory != GB10_DEVICE;
}

#endif
