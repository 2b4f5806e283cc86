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

/* What has the same size for every matrix, of elements of `size` bytes: at least block_shared. */
#define QR_HEAD_BYTES(size, w)                                                                     \
    ((4 * QR_WARPS * (w) + 3 * (w) + QR_WARPS * (w) * (w) + 4 * (w) * (w) + QR_T_BLOCK * (w) +     \
      QR_T_BLOCK * QR_T_BLOCK) *                                                                   \
         (size) +                                                                                  \
     512)

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

/* Bytes behind the head: shifts of the local columns; a row of sums for T made late; slabs and, in
 * a cluster, two panels that others send; in global memory (resident 0) one panel when it fits. */
typedef struct qr_layout {
    size_t shift, late, slabs, panel, total;
    int panel_shared; /* the panel being factored is in shared memory */
} qr_layout_t;

QR_BOTH size_t qr_aligned(size_t bytes)
{
    return (bytes + 127) / 128 * 128;
}
/* late: columns of a block of T when T is made late, else 0. limit: bytes that a block may have. */
QR_BOTH qr_layout_t qr_layout(size_t size, int width, int m, int n, int cluster, int resident,
                              int late, size_t limit)
{
    const size_t slab = (size_t)m * (size_t)width * size;
    const int local = qr_local_panels(n, width, cluster);
    qr_layout_t l;
    l.shift = qr_aligned(QR_HEAD_BYTES(size, (size_t)width));
    l.late = l.shift + qr_aligned((size_t)local * (size_t)width * sizeof(int));
    l.slabs = l.late + qr_aligned((size_t)late * size);
    l.panel = l.slabs + (resident ? qr_aligned((size_t)local * slab) : 0);
    l.total = l.panel + (cluster > 1 ? 2 * qr_aligned(slab) : 0);
    l.panel_shared = resident;
    if (!resident && l.panel + slab <= limit) {
        l.total = l.panel + slab;
        l.panel_shared = 1;
    }
    return l;
}

#endif
