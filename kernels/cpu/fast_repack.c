/* Layouts by blocks. In a block of at most BLOCK x BLOCK elements both layouts are linear: element
 * (i, j) lies at a start plus i rs + j cs. The matrices of a group (the lanes of an interleaved
 * layout) take turns block by block, so that the lines they share stay in the first cache. */
#include <stdbool.h>
#include <string.h>

#include "kernels/core/clones.h"
#include "kernels/core/view.h"
#include "kernels/cpu/fast.h"

enum { BLOCK = 16, GROUP = 64 };

/* A block of one matrix in one layout; steps in bytes. */
typedef struct block {
    char *at;
    int64_t rs, cs;
} block_t;

static block_t block_of(const gb10_view_t *v, int64_t b, int64_t i, int64_t j)
{
    int64_t size = (int64_t)gb10_dtype_size(v->dtype);
    char *base = v->layout == GB10_POINTERS ? v->list[b] : v->base;
    block_t block = {base + gb10_view_offset(v, b, i, j) * size, v->rs * size, v->cs * size};
    if (!gb10_view_linear(v)) {
        block.rs = size;
        block.cs = (v->layout == GB10_TILES ? v->width : v->m) * size;
    }
    return block;
}

/* The end of the block that starts at row (column) `at`: no further than `n`, BLOCK, or a seam. */
static int64_t block_end(int64_t at, int64_t n, int64_t seam)
{
    int64_t end = at + BLOCK < n ? at + BLOCK : n;
    int64_t next = seam > 0 ? (at / seam + 1) * seam : end;
    return next < end ? next : end;
}

static int64_t row_seam(const gb10_view_t *v)
{
    return v->layout == GB10_TILES ? v->width : 0;
}

static int64_t column_seam(const gb10_view_t *v)
{
    return gb10_view_linear(v) ? 0 : v->width;
}

/* Not 0 when one of the numbers of an element of `size` bytes has all exponent bits set: NaN, Inf.
 * Adding the lowest exponent bit carries into the sign then. */
GB10_INLINE uint64_t odd_numbers(const char *p, size_t size, bool wide)
{
    uint64_t odd = 0;
    for (size_t at = 0; wide && at < size; at += 8) {
        uint64_t x;
        memcpy(&x, p + at, 8);
        odd |= ((x & UINT64_C(0x7ff0000000000000)) + UINT64_C(0x0010000000000000)) >> 63;
    }
    for (size_t at = 0; !wide && at < size; at += 4) {
        uint32_t x;
        memcpy(&x, p + at, 4);
        odd |= ((x & UINT32_C(0x7f800000)) + UINT32_C(0x00800000)) >> 31;
    }
    return odd;
}

/* One line of a block, steps in bytes; returns whether a number in it is odd. */
GB10_INLINE uint64_t copy_line(char *to, int64_t ts, const char *from, int64_t fs, int64_t n,
                               size_t size, bool wide)
{
    uint64_t odd = 0;
    for (int64_t i = 0; i < n; i++) {
        odd |= odd_numbers(from + i * fs, size, wide);
        memcpy(to + i * ts, from + i * fs, size);
    }
    return odd;
}

/* The inner loop runs where the source is contiguous; both sides get constant steps where they have
 * them. */
GB10_INLINE uint64_t copy_any(block_t to, block_t from, const int64_t extent[2], size_t size,
                              bool wide)
{
    int64_t step = (int64_t)size, lines = extent[0], n = extent[1];
    uint64_t odd = 0;
    if (from.cs != step) { /* the other way round */
        to = (block_t){to.at, to.cs, to.rs};
        from = (block_t){from.at, from.cs, from.rs};
        lines = extent[1];
        n = extent[0];
    }
    for (int64_t l = 0; l < lines; l++) {
        char *x = to.at + l * to.rs;
        const char *y = from.at + l * from.rs;
        if (from.cs == step && to.cs == step)
            odd |= copy_line(x, step, y, step, n, size, wide);
        else
            odd |= copy_line(x, to.cs, y, from.cs, n, size, wide);
    }
    return odd;
}

typedef uint64_t copy_fn(block_t to, block_t from, const int64_t extent[2]);
static GB10_CLONES uint64_t copy_s(block_t to, block_t from, const int64_t extent[2])
{
    return copy_any(to, from, extent, 4, false);
}
static GB10_CLONES uint64_t copy_d(block_t to, block_t from, const int64_t extent[2])
{
    return copy_any(to, from, extent, 8, true);
}
static GB10_CLONES uint64_t copy_c(block_t to, block_t from, const int64_t extent[2])
{
    return copy_any(to, from, extent, 8, false);
}
static GB10_CLONES uint64_t copy_z(block_t to, block_t from, const int64_t extent[2])
{
    return copy_any(to, from, extent, 16, true);
}
static copy_fn *const copy_of[GB10_DTYPES] = {copy_s, copy_d, copy_c, copy_z};

/* Matrices b0 .. b1-1, at most GROUP; odd[b - b0] gathers their numbers that are not finite. */
static void copy_group(const gb10_repack_args_t *args, int64_t b0, int64_t b1, uint64_t *odd)
{
    const gb10_view_t *from = args->from, *to = args->to;
    copy_fn *copy = copy_of[from->dtype];
    for (int64_t j = 0, j1; j < from->n; j = j1) {
        j1 = block_end(j, block_end(j, from->n, column_seam(from)), column_seam(to));
        for (int64_t i = 0, i1; i < from->m; i = i1) {
            i1 = block_end(i, block_end(i, from->m, row_seam(from)), row_seam(to));
            const int64_t extent[2] = {i1 - i, j1 - j};
            for (int64_t b = b0; b < b1; b++)
                odd[b - b0] |= copy(block_of(to, b, i, j), block_of(from, b, i, j), extent);
        }
    }
}

void gb10_fast_repack(const gb10_repack_args_t *args)
{
    int64_t count = args->from->count, wide = gb10_view_granule(args->from);
    wide = wide > gb10_view_granule(args->to) ? wide : gb10_view_granule(args->to);
    wide = wide < GROUP ? wide : GROUP;
    for (int64_t b = 0; b < count; b += wide) {
        uint64_t odd[GROUP] = {0};
        int64_t end = b + wide < count ? b + wide : count;
        copy_group(args, b, end, odd);
        for (int64_t l = b; args->info && l < end; l++)
            args->info[l] = odd[l - b] ? GB10_INFO_NONFINITE : GB10_INFO_OK;
    }
    gb10_view_pad(args->to);
}
