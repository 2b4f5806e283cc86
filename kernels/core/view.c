#include "kernels/core/view.h"

#include <string.h>

/* n elements of `parts` numbers each, `stride` bytes apart. */
static void fill_line(char *line, int64_t n, size_t stride, const void *number, size_t bytes,
                      int parts)
{
    for (int64_t j = 0; j < n; j++)
        for (int part = 0; part < parts; part++)
            memcpy(line + (size_t)j * stride + (size_t)part * bytes, number, bytes);
}

void gb10_view_fill_nan(const gb10_view_t *v, int64_t b)
{
    static const uint32_t nan32 = GB10_NAN32;
    static const uint64_t nan64 = GB10_NAN64;
    if (!v || v->m <= 0 || v->n <= 0)
        return;
    size_t size = gb10_dtype_size(v->dtype);
    int parts = gb10_dtype_is_complex(v->dtype) ? 2 : 1;
    int narrow = !gb10_dtype_is_double(v->dtype);
    const void *number = narrow ? (const void *)&nan32 : (const void *)&nan64;
    char *base = v->layout == GB10_POINTERS ? v->list[b] : v->base;
    bool linear = gb10_view_linear(v);
    for (int64_t i = 0; i < v->m; i++)
        for (int64_t j = 0; j < (linear ? 1 : v->n); j++)
            fill_line(base + (size_t)gb10_view_offset(v, b, i, j) * size, linear ? v->n : 1,
                      (size_t)v->cs * size, number, size / (size_t)parts, parts);
}

static char *element(const gb10_view_t *v, int64_t b, int64_t i, int64_t j)
{
    return (char *)v->base + (size_t)gb10_view_offset(v, b, i, j) * gb10_dtype_size(v->dtype);
}

static void pad_tiles(const gb10_view_t *v, int64_t b)
{
    int64_t t = v->width, rows = (v->m + t - 1) / t * t, cols = (v->n + t - 1) / t * t;
    gb10_view_t whole = *v; /* the same tiles, all of them full */
    whole.m = rows;
    whole.n = cols;
    for (int64_t j = 0; j < cols; j++)
        for (int64_t i = j < v->n ? v->m : 0; i < rows; i++)
            memset(element(&whole, b, i, j), 0, gb10_dtype_size(v->dtype));
}

void gb10_view_pad(const gb10_view_t *v)
{
    int64_t granule = gb10_view_granule(v), end = (v->count + granule - 1) / granule * granule;
    if (v->m <= 0 || v->n <= 0 || v->count <= 0)
        return;
    for (int64_t b = 0; v->layout == GB10_TILES && b < v->count; b++)
        pad_tiles(v, b);
    for (int64_t b = v->count; b < end; b++)
        for (int64_t j = 0; j < v->n; j++)
            for (int64_t i = 0; i < v->m; i++)
                memcpy(element(v, b, i, j), element(v, v->count - 1, i, j),
                       gb10_dtype_size(v->dtype));
}

int64_t gb10_view_extent(const gb10_view_t *v)
{
    if (v->m <= 0 || v->n <= 0)
        return 0;
    return (v->m - 1) * v->rs + (v->n - 1) * v->cs + 1;
}

gb10_view_t gb10_view_part(const gb10_view_t *v, int64_t first, int64_t count)
{
    gb10_view_t part = *v;
    part.count = count;
    if (v->layout == GB10_POINTERS)
        part.list = v->list ? v->list + first : NULL;
    else if (v->base)
        part.base = gb10_view_at(v, first);
    return part;
}
