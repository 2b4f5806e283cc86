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
    char *base = gb10_view_at(v, b);
    size_t size = gb10_dtype_size(v->dtype);
    int parts = gb10_dtype_is_complex(v->dtype) ? 2 : 1;
    int narrow = !gb10_dtype_is_double(v->dtype);
    const void *number = narrow ? (const void *)&nan32 : (const void *)&nan64;
    for (int64_t i = 0; i < v->m; i++)
        fill_line(base + (size_t)(i * v->rs) * size, v->n, (size_t)v->cs * size, number,
                  size / (size_t)parts, parts);
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
