#include "kernels/core/plan.h"

gb10_bucket_t gb10_bucket_of(int64_t m, int64_t n)
{
    int64_t k = m < n ? m : n;
    if (m > 4096 && m / 8 >= n)
        return GB10_TALL;
    if (k <= 32)
        return GB10_TINY;
    if (k <= 128)
        return GB10_SMALL;
    return k <= 512 ? GB10_MEDIUM : GB10_LARGE;
}

const char *gb10_bucket_name(gb10_bucket_t bucket)
{
    static const char *const name[GB10_BUCKETS] = {"tiny",  "small", "medium",
                                                   "large", "tall",  "huge"};
    return name[bucket];
}

double gb10_qr_flops(gb10_dtype_t dtype, int64_t m, int64_t n)
{
    double k = (double)(m < n ? m : n), p = (double)(m < n ? n : m);
    return (gb10_dtype_is_complex(dtype) ? 4.0 : 1.0) * 2.0 * k * k * (p - k / 3.0);
}
