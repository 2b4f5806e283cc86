/* Layouts by their address formulas: the oracle of every faster repack. */
#include <math.h>
#include <string.h>

#include "kernels/core/view.h"
#include "kernels/cpu/ref.h"

static char *element(const gb10_view_t *v, int64_t b, int64_t i, int64_t j)
{
    char *base = v->layout == GB10_POINTERS ? v->list[b] : v->base;
    return base + (size_t)gb10_view_offset(v, b, i, j) * gb10_dtype_size(v->dtype);
}

static void store_scaled(gb10_dtype_t dtype, char *to, const char *from, int parts, int scale)
{
    for (int q = 0; q < parts; q++) {
        double x = ldexp(gb10_number_at(dtype, from, q), scale);
        float single = (float)x;
        if (gb10_dtype_is_double(dtype))
            memcpy(to + (size_t)q * sizeof x, &x, sizeof x);
        else
            memcpy(to + (size_t)q * sizeof single, &single, sizeof single);
    }
}

/* True when the matrix is finite. */
static bool copy_matrix(const gb10_repack_args_t *args, int64_t b)
{
    const gb10_view_t *from = args->from, *to = args->to;
    int parts = gb10_dtype_is_complex(from->dtype) ? 2 : 1;
    bool finite = true;
    for (int64_t i = 0; i < from->m; i++)
        for (int64_t j = 0; j < from->n; j++) {
            const char *x = element(from, b, i, j);
            char *y = element(to, b, i, j);
            for (int q = 0; q < parts; q++)
                finite = finite && isfinite(gb10_number_at(from->dtype, x, q));
            if (args->scale && args->scale[b] != 0)
                store_scaled(from->dtype, y, x, parts, args->scale[b]);
            else
                memcpy(y, x, gb10_dtype_size(from->dtype));
        }
    return finite;
}

void gb10_ref_repack(const gb10_repack_args_t *args)
{
    for (int64_t b = 0; b < args->from->count; b++) {
        bool finite = copy_matrix(args, b);
        if (args->info)
            args->info[b] = finite ? GB10_INFO_OK : GB10_INFO_NONFINITE;
    }
    gb10_view_pad(args->to);
}
