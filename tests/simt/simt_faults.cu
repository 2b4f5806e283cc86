/* Wrong kernels: each of them holds one fault that the runtime must report, or answer with NaN. The
 * numbers are those of the table in test_simt_faults.c. */
#include "kernels/cuda/simt.h"
#include "tests/simt/simt_cases.h"

static const unsigned ALL = 0xffffffffu;

typedef struct fault_shared {
    alignas(1024) float x[256], y[256];
    simt_mbar_t bar, other;
} fault_shared_t;

static __device__ __forceinline__ void out_float(const case_args_t &a, float v)
{
    simt_store((float *)a.out, v);
}

/* ---- 0 to 9: barriers (blocks of 64, clusters of 2) ---- */

SIMT_KERNEL(fault_barrier, 64, a, case_args_t)
{
    const unsigned i = threadIdx.x;
    switch (a.which) {
    case 0: /* deadlock: half of the threads that the barrier waits for */
        if (i < 32)
            simt_bar_sync(1, 64);
        break;
    case 1: /* livelock: a flag that nobody sets */
        while (i == 0 && simt_load_acquire(&a.words[0]) == 0)
            ;
        break;
    case 2:
        simt_cluster_wait();
        break;
    case 3:
        simt_cluster_arrive();
        simt_cluster_arrive();
        break;
    case 4:
        simt_bar_sync(1, i < 32 ? 64 : 96);
        break;
    case 5:
        simt_bar_sync(16, 64);
        break;
    case 6:
        simt_bar_sync(2, 60);
        break;
    case 7: /* livelock: a lock that is never given back */
        while (i == 0 && atomicCAS(&a.words[0], 1u, 2u) != 1)
            ;
        break;
    case 8: /* deadlock at a block barrier: the other warp waits for a shuffle's lane */
        if (i < 32 || i == 40)
            __syncthreads();
        else
            out_float(a, __shfl_xor_sync(ALL, 1.0f, 1));
        break;
    default: /* deadlock of a cluster: its second block never arrives */
        if (simt_cluster_rank() == 0)
            simt_cluster_sync();
        else
            simt_bar_sync(1, 96);
    }
}

/* ---- 10 to 19: warps ---- */

SIMT_KERNEL(fault_warp, 64, a, case_args_t)
{
    SIMT_SHARED(s, fault_shared_t);
    const unsigned i = threadIdx.x;
    float v = 1;
    uint32_t r[4];
    switch (a.which) {
    case 10: /* two shuffles instead of one */
        if (i % 2)
            v = __shfl_xor_sync(ALL, v, 2);
        else
            v = __shfl_xor_sync(ALL, v, 4);
        break;
    case 11:
        if (i < 16)
            v = __shfl_sync(0xffffu, v, 20);
        break;
    case 12:
        if (i < 20)
            v = __shfl_sync(0xffffu, v, 0);
        break;
    case 13: /* lane 3 leaves; the others name it */
        if (i == 3)
            return;
        v = __shfl_sync(ALL, v, 0);
        break;
    case 14: /* the same two on one line */
        v = i % 2 ? __shfl_xor_sync(ALL, v, 2) : __shfl_xor_sync(ALL, v, 2);
        break;
    case 15:
        simt_ldmatrix(4, r, (const char *)s->x + 8 * i);
        break;
    case 16:
        if (i < 16)
            __syncwarp(0xffffu);
        else
            __syncwarp(ALL);
        v = __shfl_sync(ALL, v, 0);
        break;
    default:
        simt_ldmatrix(1, r, a.x);
    }
    simt_store(&((float *)a.out)[i + 64 * blockIdx.x], v);
}

/* ---- 20 to 39: mbarriers and copies ---- */

SIMT_KERNEL(fault_mbar, 64, a, case_args_t)
{
    SIMT_SHARED(s, fault_shared_t);
    if (threadIdx.x > 0 || simt_cluster_rank() > 0)
        return;
    if (a.which != 20)
        simt_mbar_init(&s->bar, 1);
    switch (a.which) {
    case 20:
        simt_mbar_arrive(&s->bar);
        break;
    case 21:
        simt_mbar_init((simt_mbar_t *)((char *)&s->bar + 4), 1);
        break;
    case 22: /* the second arrival of a phase that waits for bytes only */
        simt_mbar_arrive_tx(&s->bar, 16);
        simt_mbar_arrive(&s->bar);
        break;
    case 23:
        simt_mbar_wait(&s->other, 0);
        break;
    case 24:
        simt_mbar_init((simt_mbar_t *)a.out, 1);
        break;
    case 25: /* deadlock: bytes that nobody sends */
        simt_mbar_arrive_tx(&s->bar, 16);
        simt_mbar_wait(&s->bar, 0);
        break;
    case 26:
        simt_setmaxnreg_inc(100);
        break;
    default: /* livelock: the same with a test */
        while (!simt_mbar_test(&s->bar, 0))
            ;
    }
}

static __device__ __forceinline__ void load_x(const case_args_t &a, fault_shared_t *s)
{
    simt_mbar_init(&s->bar, 1);
    simt_mbar_arrive_tx(&s->bar, sizeof s->x);
    simt_bulk_load(s->x, a.x, sizeof s->x, &s->bar);
}

SIMT_KERNEL(fault_copy, 64, a, case_args_t)
{
    SIMT_SHARED(s, fault_shared_t);
    if (threadIdx.x > 0 || simt_cluster_rank() > 0)
        return;
    simt_mbar_init(&s->bar, 1);
    switch (a.which) {
    case 30:
        simt_bulk_load(s->x + 1, a.x, 16, &s->bar);
        break;
    case 31:
        simt_bulk_load(s->x, a.x, 20, &s->bar);
        break;
    case 32:
        load_x(a, s);
        break;
    case 33: /* the result is there too early: NaN */
        load_x(a, s);
        out_float(a, s->x[0]);
        simt_mbar_wait(&s->bar, 0);
        break;
    case 34: /* no proxy fence: what was there before the threads wrote */
        s->x[0] = s->x[1] = s->x[2] = s->x[3] = 5;
        simt_bulk_store(a.out, s->x, 16);
        simt_bulk_commit();
        simt_bulk_wait(0);
        break;
    case 35: /* a source that changes on the way */
        simt_proxy_fence();
        simt_bulk_store(a.out, s->x, 16);
        simt_bulk_commit();
        s->x[0] = 5;
        simt_bulk_wait(0);
        break;
    case 36:
        simt_bulk_load(s->y, a.x, 8192, &s->bar);
        break;
    case 37:
        simt_cp_async(16, s->x + 1, a.x);
        break;
    case 38: /* read before the wait: NaN */
        simt_cp_async(16, s->x, a.x);
        simt_cp_async_commit();
        out_float(a, s->x[0]);
        simt_cp_async_wait(0);
        break;
    default:
        simt_tma_load_2d(s->x, &a.map_in, 0, 0, &s->bar);
    }
}

/* ---- 40 and more: memory; 44 and up look at the cluster's other block ---- */

SIMT_KERNEL(fault_memory, 64, a, case_args_t)
{
    SIMT_SHARED(s, fault_shared_t);
    const unsigned rank = simt_cluster_rank();
    float *peer = nullptr;
    if (threadIdx.x > 0)
        return;
    switch (a.which) {
    case 40:
        out_float(a, simt_load((const float2 *)((const float *)a.x + 1)).x);
        break;
    case 41: /* nobody wrote it: NaN */
        out_float(a, s->x[7]);
        break;
    case 42:
        peer = simt_map((float *)a.out, 1);
        break;
    case 43:
        peer = simt_map(s->x, 2);
        break;
    case 44: /* written before the block began: lost */
        if (rank == (a.n ? 1u : 0u)) {
            *simt_map(s->x, rank ^ 1) = 5;
            simt_cluster_sync();
        } else {
            simt_cluster_sync();
            out_float(a, s->x[0]);
        }
        break;
    case 45: /* mapped in time, read after the block has gone: NaN */
        s->x[0] = 5;
        peer = simt_map(s->x, rank ^ 1);
        simt_cluster_sync();
        if (rank == 0) {
            while (simt_load_acquire(&a.words[0]) < 100)
                simt_add_acq_rel(&a.words[0], 1u);
            out_float(a, *peer);
        }
        break;
    case 46: /* mapped when it has gone */
        simt_cluster_sync();
        if (rank == 0) {
            while (simt_load_acquire(&a.words[0]) < 100)
                simt_add_acq_rel(&a.words[0], 1u);
            peer = simt_map(s->x, 1);
        }
        break;
    default: /* data to one block, its mbarrier in the other */
        simt_mbar_init(&s->bar, 1);
        simt_cluster_sync();
        if (rank == 0)
            simt_bulk_push(simt_map(s->x, 1), s->y, 16, &s->bar);
        simt_cluster_sync();
    }
    if (peer && a.n > 100)
        *peer = 0;
}

template <class A>
static gb10_status_t go(void (*kernel)(A), unsigned block, unsigned cluster, size_t shared,
                        const case_args_t *a, gb10_error_t *err)
{
    const simt_launch_t how = {2, 1, block, cluster, shared, nullptr};
    return simt_launch(&how, kernel, a, err);
}

gb10_status_t case_fault(const case_args_t *a, gb10_error_t *err)
{
    const size_t shared = sizeof(fault_shared_t);
    if (a->which < 10)
        return go(fault_barrier, 64, 2, 0, a, err);
    if (a->which < 20)
        return go(fault_warp, 64, 1, shared, a, err);
    if (a->which < 30)
        return go(fault_mbar, 64, 2, shared, a, err);
    if (a->which < 40)
        return go(fault_copy, 64, 2, shared, a, err);
    return go(fault_memory, 64, 2, shared, a, err);
}

gb10_status_t case_fault_shared(const case_args_t *a, gb10_error_t *err)
{
    return go(fault_warp, 64, 1, (size_t)a->n, a, err);
}

gb10_status_t case_fault_cluster(const case_args_t *a, gb10_error_t *err)
{
    const simt_launch_t how = {16, 1, 64, (unsigned)a->n, 0, nullptr};
    return simt_launch(&how, fault_barrier, a, err);
}

gb10_status_t case_fault_threads(const case_args_t *a, gb10_error_t *err)
{
    return go(fault_barrier, (unsigned)a->n, 1, 0, a, err);
}
