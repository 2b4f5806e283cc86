/* Where a block of the family K2, K3 keeps what, in C for the host's plan and the kernels alike.
 *
 * The columns of a matrix form panels of `width` columns (16 of float, else 8); panel p belongs to
 * block p / each mod size of the cluster, each = 32 / width, so that a block of T with nb = 32 has
 * its panels in one place. A slab is a panel's m rows, row by row; chunks of 16 bytes of a row are
 * permuted by the row's number, so that threads with a row each meet no bank twice. */
#ifndef KERNELS_CUDA_QR_SHARED_H
#define KERNELS_CUDA_QR_SHARED_H

#include <stddef.h>
#include <stdint.h>

#ifdef __CUDACC__
#define QR_BOTH static __host__ __device__ inline
#else
#define QR_BOTH static inline
#endif

enum { QR_WARPS = 8, QR_T_BLOCK = 32 };

/* At least what block_shared, warp_shared_t and tblock_shared take, of elements of `size` bytes. */
#define QR_FIXED_BYTES(size, w) ((3 * (w) + 5 * (w) * (w)) * (size) + 256)
#define QR_WARP_BYTES(size, w)  ((4 * (w) + (w) * (w)) * (size) + 16)
#define QR_T_BYTES(size, w)     ((QR_T_BLOCK * (w) + QR_T_BLOCK * QR_T_BLOCK) * (size))

/* Panels of an m x n matrix, and how many of them a block of a cluster has at most. */
QR_BOTH int qr_panels(int n, int width)
{
    return (n + width - 1) / width;
}
QR_BOTH int qr_local_panels(int n, int width, int cluster)
{
    const int each = QR_T_BLOCK / width, round = each * cluster, panels = qr_panels(n, width);
    const int rest = panels % round;
    return panels / round * each + (rest < each ? rest : each);
}

/* How T is made: not at all, with the panels in blocks of nb <= QR_T_BLOCK, or from V at the end.
 */
typedef enum qr_t_way { QR_T_NONE = 0, QR_T_PANELS = 1, QR_T_LATE = 2 } qr_t_way_t;

/* What decides about shared memory: element bytes and panel width of the type, the matrix, warps of
 * a block and blocks of a cluster; places (1 or 2) that panels of others come to: with two, a panel
 * can come while the one before is used; resident: slabs are in shared memory; t: how T is made, nb
 * its columns; limit: bytes that a block may have. */
typedef struct qr_shape {
    size_t size;
    int width, m, n, nb, warps, cluster, places, resident;
    qr_t_way_t t;
    size_t limit;
} qr_shape_t;

/* Offsets in a block's shared memory: of what each warp has, of T's block or of a row of sums for T
 * made late, shifts of the local columns, slabs, and panels that others send, or, when
 * slabs are in global memory, a copy of one panel if it fits. */
typedef struct qr_layout {
    size_t warps, t, shift, slabs, panel, total;
    int copied, places; /* copied: the panel being factored is a copy */
} qr_layout_t;

QR_BOTH size_t qr_aligned(size_t bytes)
{
    return (bytes + 127) / 128 * 128;
}
/* Swizzled tiles begin on 1024 bytes; a slab's rows are padded to eight, after which their pattern
 * repeats. */
QR_BOTH size_t qr_whole(size_t bytes)
{
    return (bytes + 1023) / 1024 * 1024;
}
QR_BOTH size_t qr_slab_bytes(size_t size, int width, int m)
{
    return ((size_t)m + 7) / 8 * 8 * (size_t)width * size;
}
QR_BOTH qr_layout_t qr_layout(const qr_shape_t *x)
{
    const size_t w = (size_t)x->width, slab = qr_slab_bytes(x->size, x->width, x->m);
    const size_t local = (size_t)qr_local_panels(x->n, x->width, x->cluster);
    const size_t k = (size_t)(x->m < x->n ? x->m : x->n),
                 nb = (size_t)x->nb < k ? (size_t)x->nb : k;
    qr_layout_t l;
    l.warps = qr_aligned(QR_FIXED_BYTES(x->size, w));
    l.t = l.warps + qr_aligned((size_t)x->warps * QR_WARP_BYTES(x->size, w));
    l.shift = l.t + qr_aligned(x->t == QR_T_PANELS ? QR_T_BYTES(x->size, w)
                               : x->t == QR_T_LATE ? nb * x->size
                                                   : 0);
    l.slabs = qr_whole(l.shift + local * w * sizeof(int));
    l.panel = l.slabs + (x->resident ? local * slab : 0);
    l.places = x->cluster > 1 ? x->places : 1;
    l.total = l.panel + (x->cluster > 1 ? (size_t)l.places * slab : 0);
    l.copied = !x->resident && l.panel + slab <= x->limit;
    if (l.copied)
        l.total = l.panel + slab;
    return l;
}

/* For kernels that apply V and T to W columns of m rows: the columns' slab, and V's (both or none
 * in shared memory). */
QR_BOTH qr_layout_t qr_apply_layout(const qr_shape_t *x)
{
    const size_t w = (size_t)x->width, slab = qr_slab_bytes(x->size, x->width, x->m);
    qr_layout_t l;
    l.warps = qr_aligned(QR_FIXED_BYTES(x->size, w));
    l.t = l.warps + qr_aligned((size_t)x->warps * QR_WARP_BYTES(x->size, w));
    l.shift = l.t + qr_aligned(x->t == QR_T_LATE ? (size_t)x->nb * x->size : 0);
    l.slabs = qr_whole(l.shift + w * sizeof(int));
    l.panel = l.slabs + slab;
    l.total = x->resident ? l.panel + slab : l.slabs;
    l.copied = 0;
    l.places = 1;
    return l;
}

#endif
