#include "kernels/cuda/qr_plan.h"

#include <stdbool.h>
#include <string.h>

enum {
    WARP_MAX = 32,
    REGISTERS = 65536,
    MOST = 1 << 24 /* rows, and columns: sums of that many squares stay in range */
};
static const char too_large[] = "the matrix is too large for the kernels";

const char *const qr_kind_names[4] = {"warp", "block", "cluster", "global"};

int qr_plan_width(gb10_dtype_t dtype)
{
    return dtype == GB10_S ? 16 : 8;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Whether T comes with the panels. */
static bool with_panels(int64_t k, int64_t nb, int width)
{
    return k <= nb ? k <= QR_T_BLOCK : nb <= QR_T_BLOCK && nb % width == 0;
}

/* Blocks of a multiprocessor: by shared memory (the system takes 1 KB of it for each), by threads,
 * by registers at 128 a thread. */
static int resident(const cuda_device_t *d, int threads, size_t shared)
{
    int64_t blocks = smaller(d->blocks_processor, d->threads_processor / threads);
    blocks = smaller(blocks, REGISTERS / 128 / threads);
    blocks = smaller(blocks, (int64_t)(d->shared_processor / (shared + 1024)));
    return blocks < 1 ? 1 : (int)blocks;
}

/* Warps of a block: as many as have eight rows to update, and enough columns to hide behind. */
static int threads_for(int64_t m, int64_t n)
{
    int warps = m <= 32 && n <= 32 ? 1 : m <= 48 ? 2 : m <= 96 ? 4 : QR_WARPS;
    return 32 * warps;
}

static void fill_grid(qr_plan_t *p, const cuda_device_t *d)
{
    p->resident = resident(d, p->threads, p->layout.total);
    p->most = (unsigned)(d->processors * p->resident) / (unsigned)p->cluster;
    if (p->most < 1)
        p->most = 1;
}

const char *qr_plan_make(qr_plan_t *p, const cuda_device_t *d, gb10_dtype_t dtype, int64_t m,
                         int64_t n, int64_t nb, int with_t, uint32_t variant)
{
    const int width = qr_plan_width(dtype);
    const size_t size = gb10_dtype_size(dtype);
    const int64_t k = smaller(m, n);
    memset(p, 0, sizeof *p);
    p->cluster = 1;
    p->variant = variant;
    if (m > MOST || n > MOST || (m + 1) * ((n + 15) / 16 * 16) > (int64_t)1 << 40)
        return too_large;
    if (m <= WARP_MAX && n <= WARP_MAX &&
        !(variant & (QR_NO_WARP | QR_GLOBAL | QR_NAIVE | QR_THREE_STAGE))) {
        p->kind = QR_KIND_WARP;
        p->threads = 128;
        p->resident = resident(d, p->threads, 0);
        p->most = (unsigned)(d->processors * d->blocks_processor);
        return NULL;
    }
    p->threads = threads_for(m, n);
    p->t = !with_t                                               ? QR_T_NONE
           : (variant & QR_LATE_T) || !with_panels(k, nb, width) ? QR_T_LATE
                                                                 : QR_T_PANELS;
    if (variant & QR_THREE_STAGE)
        p->work = qr_aligned((size_t)(qr_panels((int)n, width) * width * width) * size);
    const int clusters = variant & (QR_GLOBAL | QR_NAIVE) ? 0
                         : variant & QR_NO_CLUSTER        ? 1
                                                          : d->max_cluster;
    qr_shape_t shape = {.size = size,
                        .width = width,
                        .m = (int)m,
                        .n = (int)n,
                        .nb = (int)smaller(nb, MOST),
                        .warps = p->threads / 32,
                        .t = p->t,
                        .resident = 1,
                        .limit = d->shared_block};
    p->kind = QR_KIND_GLOBAL;
    /* Fewer blocks to a matrix are more matrices at a time: a small cluster with one place for the
       panels of others comes before a larger one with two. */
    for (int way = 1; p->kind == QR_KIND_GLOBAL && way <= 2 * clusters; way++) {
        shape.cluster = 1 << way / 2;
        shape.places = 2 - way % 2;
        if (shape.cluster > clusters)
            break;
        p->layout = qr_layout(&shape);
        if (p->layout.total > d->shared_block)
            continue;
        p->kind = shape.cluster == 1 ? QR_KIND_BLOCK : QR_KIND_CLUSTER;
        p->cluster = shape.cluster;
    }
    if (p->kind == QR_KIND_GLOBAL) {
        shape.cluster = 1;
        shape.resident = 0;
        p->layout = qr_layout(&shape);
        p->global = (size_t)qr_panels((int)n, width) * qr_slab_bytes(size, width, (int)m);
        p->work += p->global;
        if (p->layout.total > d->shared_block)
            return "block size of T too large for the kernels";
    }
    fill_grid(p, d);
    return NULL;
}

static qr_shape_t apply_shape(const cuda_device_t *d, const qr_plan_t *p, gb10_dtype_t dtype,
                              int64_t m, int64_t nb)
{
    return (qr_shape_t){.size = gb10_dtype_size(dtype),
                        .width = qr_plan_width(dtype),
                        .m = (int)m,
                        .nb = (int)nb,
                        .warps = p->threads / 32,
                        .resident = 1,
                        .limit = d->shared_block};
}

const char *qr_plan_apply(qr_plan_t *p, const cuda_device_t *d, gb10_dtype_t dtype, int64_t m,
                          int64_t cols)
{
    memset(p, 0, sizeof *p);
    if (m > MOST || cols > INT32_MAX)
        return too_large;
    p->cluster = 1;
    p->threads = threads_for(m, m);
    qr_shape_t shape = apply_shape(d, p, dtype, m, 0);
    p->layout = qr_apply_layout(&shape);
    if (p->layout.total > d->shared_block) {
        shape.resident = 0;
        p->work = 2 * (p->layout.panel - p->layout.slabs);
        p->layout = qr_apply_layout(&shape);
    }
    p->kind = p->work ? QR_KIND_GLOBAL : QR_KIND_BLOCK;
    fill_grid(p, d);
    return NULL;
}

const char *qr_plan_form_t(qr_plan_t *p, const cuda_device_t *d, gb10_dtype_t dtype, int64_t m,
                           int64_t k, int64_t nb)
{
    memset(p, 0, sizeof *p);
    if (m > MOST)
        return too_large;
    p->cluster = 1;
    p->threads = threads_for(m, k);
    p->t = QR_T_LATE;
    qr_shape_t shape = apply_shape(d, p, dtype, m, smaller(nb, k));
    shape.resident = 0;
    shape.t = p->t;
    p->layout = qr_apply_layout(&shape);
    if (p->layout.total > d->shared_block)
        return "block size of T too large for the kernels";
    fill_grid(p, d);
    return NULL;
}
