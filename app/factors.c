#include "app/factors.h"

#include <string.h>

const io_kind_t factors_kind[FACTORS] = {IO_V, IO_T, IO_R, IO_TAU};

int64_t factors_bytes(gb10_dtype_t dtype, int64_t m, int64_t n, int64_t nb, int factor)
{
    return io_kind_bytes(factors_kind[factor], dtype, m, n, nb, 0);
}

void factors_views(gb10_dtype_t dtype, int64_t m, int64_t n, int64_t nb, int64_t count,
                   const void *const data[FACTORS], gb10_view_t view[FACTORS])
{
    int64_t k = m < n ? m : n;
    const int64_t rows[FACTORS] = {m, nb < k ? nb : k, k, k}, cols[FACTORS] = {k, k, n, 1};
    for (int f = 0; f < FACTORS; f++)
        view[f] = gb10_view_rows(dtype, (void *)(uintptr_t)data[f], rows[f], cols[f], count);
}

static void unpack_one(gb10_dtype_t dtype, int64_t m, int64_t n, const char *packed, char *v,
                       char *r)
{
    int64_t k = m < n ? m : n;
    size_t e = gb10_dtype_size(dtype);
    bool single = !gb10_dtype_is_double(dtype);
    const float one_f = 1;
    const double one_d = 1;
    if (v)
        memset(v, 0, (size_t)(m * k) * e);
    if (r)
        memset(r, 0, (size_t)(k * n) * e);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            const char *from = packed + (size_t)(i * n + j) * e;
            if (v && i > j && j < k)
                memcpy(v + (size_t)(i * k + j) * e, from, e);
            if (v && i == j)
                memcpy(v + (size_t)(i * k + j) * e, single ? (const void *)&one_f : &one_d,
                       single ? sizeof one_f : sizeof one_d);
            if (r && i <= j && i < k)
                memcpy(r + (size_t)(i * n + j) * e, from, e);
        }
}

void factors_unpack(gb10_dtype_t dtype, int64_t m, int64_t n, int64_t count, const void *packed,
                    void *v, void *r)
{
    size_t e = gb10_dtype_size(dtype);
    int64_t k = m < n ? m : n;
    for (int64_t b = 0; b < count; b++)
        unpack_one(dtype, m, n, (const char *)packed + (size_t)(b * m * n) * e,
                   v ? (char *)v + (size_t)(b * m * k) * e : NULL,
                   r ? (char *)r + (size_t)(b * k * n) * e : NULL);
}
