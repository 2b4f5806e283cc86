#include "app/sign.h"

#include <stdbool.h>

static int64_t parts_of(const gb10_view_t *R)
{
    return gb10_dtype_is_complex(R->dtype) ? 2 : 1;
}

/* Negates row i of matrix b from its diagonal on. */
static void flip_row(const gb10_view_t *R, int64_t b, int64_t i)
{
    int64_t parts = parts_of(R);
    for (int64_t j = i * parts; j < R->n * parts; j++) {
        if (gb10_dtype_is_double(R->dtype))
            ((double *)gb10_view_at(R, b))[i * R->rs * parts + j] *= -1;
        else
            ((float *)gb10_view_at(R, b))[i * R->rs * parts + j] *= -1;
    }
}

static double diagonal(const gb10_view_t *R, int64_t b, int64_t i)
{
    int64_t at = (i * R->rs + i) * parts_of(R);
    return gb10_number_at(R->dtype, gb10_view_at(R, b), at);
}

void sign_make_positive(const gb10_view_t *R, const uint8_t *info, int8_t *sign)
{
    for (int64_t b = 0; b < R->count; b++) {
        bool none = info[b] == GB10_INFO_NOT_COMPUTED || info[b] == GB10_INFO_NONFINITE ||
                    info[b] == GB10_INFO_NOT_REPRESENTABLE;
        for (int64_t i = 0; i < R->m; i++, sign++) {
            *sign = none ? 0 : diagonal(R, b, i) < 0 ? -1 : 1;
            if (*sign < 0)
                flip_row(R, b, i);
        }
    }
}

void sign_undo(const gb10_view_t *R, const int8_t *sign)
{
    for (int64_t b = 0; b < R->count; b++)
        for (int64_t i = 0; i < R->m; i++, sign++)
            if (*sign < 0)
                flip_row(R, b, i);
}
