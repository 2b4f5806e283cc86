/* The CPU side of simt.h: macros that add the site to a call of the runtime, and the templates that
 * carry types. Loads, stores and atomics of kernel data happen here, inlined into the kernel, so
 * that sanitizers see them at the kernel's line. Included by simt.h only. */
#ifndef KERNELS_CUDA_SIMT_CPU_H
#define KERNELS_CUDA_SIMT_CPU_H

#include <string.h>

#include "kernels/cuda/simt_rt.h"

#define SIMT_SITE (simt_site_t{__FILE__, __LINE__, __COUNTER__})

#define __device__
#define __host__
#define __global__
#define __forceinline__ inline __attribute__((always_inline))

#define SIMT_BOUNDS(threads, blocks)       threads, blocks
#define SIMT_KERNEL(name, threads, a, ...) void name(const __VA_ARGS__ &a)
#define SIMT_SHARED(s, ...)                                                                        \
    __VA_ARGS__ *const s = (__VA_ARGS__ *)simt_rt_shared(sizeof(__VA_ARGS__), SIMT_SITE)

#define threadIdx (simt_ids->thread)
#define blockIdx  (simt_ids->block)
#define blockDim  simt_block_dim
#define gridDim   simt_grid_dim

/* ---- types and functions that CUDA has without a header ---- */
#define SIMT_VECTOR2(name, type)                                                                   \
    typedef struct name {                                                                          \
        alignas(2 * sizeof(type)) type x;                                                          \
        type y;                                                                                    \
    } name
#define SIMT_VECTOR4(name, type)                                                                   \
    typedef struct name {                                                                          \
        alignas(4 * sizeof(type)) type x;                                                          \
        type y, z, w;                                                                              \
    } name
SIMT_VECTOR2(float2, float);
SIMT_VECTOR2(double2, double);
SIMT_VECTOR2(int2, int);
SIMT_VECTOR2(uint2, unsigned);
SIMT_VECTOR4(float4, float);
SIMT_VECTOR4(int4, int);
SIMT_VECTOR4(uint4, unsigned);

template <class T> struct simt_same {
    typedef T type;
};
template <class T> static inline T min(T a, T b)
{
    return b < a ? b : a;
}
template <class T> static inline T max(T a, T b)
{
    return a < b ? b : a;
}
template <class To, class From> static inline To simt_bits(From from)
{
    static_assert(sizeof(To) == sizeof(From), "as many bits");
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}
#define __float_as_uint(x)      simt_bits<unsigned>((float)(x))
#define __uint_as_float(x)      simt_bits<float>((unsigned)(x))
#define __double_as_longlong(x) simt_bits<long long>((double)(x))
#define __longlong_as_double(x) simt_bits<double>((long long)(x))
#define __popc(x)               __builtin_popcount(x)
#define __ffs(x)                __builtin_ffs(x)
#define __clz(x)                ((x) ? __builtin_clz(x) : 32)
static inline float rsqrtf(float x)
{
    return 1 / sqrtf(x);
}
static inline double rsqrt(double x)
{
    return 1 / sqrt(x);
}

/* ---- loads and stores ---- */
template <class T> __forceinline__ T simt_load_at(const T *p, simt_site_t site)
{
    simt_rt_note(p, sizeof(T), 0, site);
    return *p;
}
template <class T>
__forceinline__ void simt_store_at(T *p, typename simt_same<T>::type v, simt_site_t site)
{
    simt_rt_note(p, sizeof(T), 1, site);
    *p = v;
}
#define simt_load(p)      simt_load_at((p), SIMT_SITE)
#define simt_load_once(p) simt_load_at((p), SIMT_SITE)
/* The value may be braced: its commas make several arguments of it. */
#define simt_store(p, ...)      simt_store_at((p), __VA_ARGS__, SIMT_SITE)
#define simt_store_once(p, ...) simt_store_at((p), __VA_ARGS__, SIMT_SITE)

template <class T> __forceinline__ T simt_load_acquire_at(const T *p, simt_site_t site)
{
    T v;
    if (simt_rt_poll(1, site))
        __atomic_load(p, &v, __ATOMIC_RELAXED);
    else
        __atomic_load(p, &v, __ATOMIC_ACQUIRE);
    simt_rt_note(p, sizeof(T), 0, site);
    return v;
}
template <class T>
__forceinline__ void simt_store_release_at(T *p, typename simt_same<T>::type v, simt_site_t site)
{
    if (simt_rt_poll(1, site))
        __atomic_store(p, &v, __ATOMIC_RELAXED);
    else
        __atomic_store(p, &v, __ATOMIC_RELEASE);
    simt_rt_note(p, sizeof(T), 1, site);
    simt_rt_progress();
}
#define simt_load_acquire(p)             simt_load_acquire_at((p), SIMT_SITE)
#define simt_store_release(p, v)         simt_store_release_at((p), (v), SIMT_SITE)
#define simt_load_acquire_cluster(p)     simt_load_acquire_at((p), SIMT_SITE)
#define simt_store_release_cluster(p, v) simt_store_release_at((p), (v), SIMT_SITE)

/* An atomic is a compare-exchange loop around one function: floats have no other. Only a change
 * counts as progress, so that spinning on a lock is seen as what it is. */
template <class T, class F> __forceinline__ T simt_atomic(T *p, F next, int order, simt_site_t site)
{
    if (simt_rt_poll(order != __ATOMIC_RELAXED, site))
        order = __ATOMIC_RELAXED;
    T old, now;
    __atomic_load(p, &old, __ATOMIC_RELAXED);
    do {
        now = next(old);
    } while (
        !(order == __ATOMIC_RELAXED
              ? __atomic_compare_exchange(p, &old, &now, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)
              : __atomic_compare_exchange(p, &old, &now, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)));
    simt_rt_note(p, sizeof(T), 1, site);
    if (memcmp(&old, &now, sizeof old) != 0)
        simt_rt_progress();
    return old;
}
#define SIMT_ATOMIC(name, order, expression)                                                       \
    template <class T>                                                                             \
    __forceinline__ T name(simt_site_t site, T *p, typename simt_same<T>::type v)                  \
    {                                                                                              \
        return simt_atomic(                                                                        \
            p, [v](T old) -> T { return expression; }, order, site);                               \
    }
SIMT_ATOMIC(simt_atomic_add, __ATOMIC_RELAXED, old + v)
SIMT_ATOMIC(simt_atomic_max, __ATOMIC_RELAXED, old < v ? v : old)
SIMT_ATOMIC(simt_atomic_min, __ATOMIC_RELAXED, v < old ? v : old)
SIMT_ATOMIC(simt_atomic_or, __ATOMIC_RELAXED, old | v)
SIMT_ATOMIC(simt_atomic_exch, __ATOMIC_RELAXED, ((void)old, v))
SIMT_ATOMIC(simt_atomic_add_acq_rel, __ATOMIC_ACQ_REL, old + v)
template <class T>
__forceinline__ T simt_atomic_cas(simt_site_t site, T *p, typename simt_same<T>::type expected,
                                  typename simt_same<T>::type v)
{
    return simt_atomic(
        p, [expected, v](T old) -> T { return old == expected ? v : old; }, __ATOMIC_RELAXED, site);
}
#define atomicAdd(...)        simt_atomic_add(SIMT_SITE, __VA_ARGS__)
#define atomicMax(...)        simt_atomic_max(SIMT_SITE, __VA_ARGS__)
#define atomicMin(...)        simt_atomic_min(SIMT_SITE, __VA_ARGS__)
#define atomicOr(...)         simt_atomic_or(SIMT_SITE, __VA_ARGS__)
#define atomicExch(...)       simt_atomic_exch(SIMT_SITE, __VA_ARGS__)
#define atomicCAS(...)        simt_atomic_cas(SIMT_SITE, __VA_ARGS__)
#define simt_add_acq_rel(...) simt_atomic_add_acq_rel(SIMT_SITE, __VA_ARGS__)
/* Execution is in order; ThreadSanitizer knows no fences: acquire and release say it better. */
#define __threadfence() ((void)0)

/* ---- barriers, clusters ---- */
#define __syncthreads()              ((void)simt_rt_block_sync(0, 0, SIMT_SITE))
#define __syncthreads_or(p)          simt_rt_block_sync((p), 0, SIMT_SITE)
#define __syncthreads_and(p)         simt_rt_block_sync((p), 1, SIMT_SITE)
#define __syncthreads_count(p)       simt_rt_block_sync((p), 2, SIMT_SITE)
#define simt_bar_sync(id, threads)   simt_rt_bar_sync((id), (threads), SIMT_SITE)
#define simt_bar_arrive(id, threads) simt_rt_bar_arrive((id), (threads), SIMT_SITE)
#define simt_setmaxnreg_inc(n)       simt_rt_setmaxnreg((n), SIMT_SITE)
#define simt_setmaxnreg_dec(n)       simt_rt_setmaxnreg((n), SIMT_SITE)
#define simt_cluster_arrive()        simt_rt_cluster_arrive(SIMT_SITE)
#define simt_cluster_wait()          simt_rt_cluster_wait(SIMT_SITE)
#define simt_cluster_rank()          simt_rt_cluster_rank()
#define simt_cluster_size()          simt_rt_cluster_size()
#define simt_cluster_sync()          simt_cluster_sync_at(SIMT_SITE)
#define simt_map(p, rank)            simt_map_at((p), (rank), SIMT_SITE)
static inline void simt_cluster_sync_at(simt_site_t site)
{
    simt_rt_cluster_arrive(site);
    simt_rt_cluster_wait(site);
}
template <class T> static inline T *simt_map_at(T *p, unsigned rank, simt_site_t site)
{
    return (T *)simt_rt_map((const void *)p, rank, site);
}

/* ---- warps ---- */
/* An object that is called: ISO C++17 has no macro with an optional argument behind a comma. */
struct simt_syncwarp_t {
    simt_site_t site;
    void operator()(uint32_t mask = 0xffffffffu) const
    {
        simt_part_t part = {nullptr, nullptr, 0, 0, 32};
        simt_rt_warp(SIMT_OP_SYNC, mask, &part, site);
    }
};
template <class T>
static inline T simt_shfl_at(simt_site_t site, simt_warp_op_t op, uint32_t mask, T v, int lane,
                             int width = 32)
{
    T result;
    simt_part_t part = {&v, &result, (int)sizeof(T), lane, width};
    simt_rt_warp(op, mask, &part, site);
    return result;
}
static inline uint32_t simt_ballot_at(simt_site_t site, uint32_t mask, int predicate)
{
    uint32_t result = 0;
    simt_part_t part = {&predicate, &result, 0, 0, 32};
    simt_rt_warp(SIMT_OP_BALLOT, mask, &part, site);
    return result;
}
#define __syncwarp             (simt_syncwarp_t{SIMT_SITE})
#define simt_shfl(...)         simt_shfl_at(SIMT_SITE, SIMT_OP_SHFL, __VA_ARGS__)
#define simt_shfl_xor(...)     simt_shfl_at(SIMT_SITE, SIMT_OP_SHFL_XOR, __VA_ARGS__)
#define simt_shfl_up(...)      simt_shfl_at(SIMT_SITE, SIMT_OP_SHFL_UP, __VA_ARGS__)
#define simt_shfl_down(...)    simt_shfl_at(SIMT_SITE, SIMT_OP_SHFL_DOWN, __VA_ARGS__)
#define __shfl_sync(...)       simt_shfl(__VA_ARGS__)
#define __shfl_xor_sync(...)   simt_shfl_xor(__VA_ARGS__)
#define __shfl_up_sync(...)    simt_shfl_up(__VA_ARGS__)
#define __shfl_down_sync(...)  simt_shfl_down(__VA_ARGS__)
#define __ballot_sync(mask, p) simt_ballot_at(SIMT_SITE, (mask), (p) != 0)
#define __any_sync(mask, p)    (simt_ballot_at(SIMT_SITE, (mask), (p) != 0) != 0)
#define __all_sync(mask, p)    (simt_ballot_at(SIMT_SITE, (mask), (p) == 0) == 0)

/* ---- tensor cores ---- */
template <int N>
static inline void simt_ldmatrix_at(uint32_t *r, const void *row, simt_warp_op_t op,
                                    simt_site_t site)
{
    simt_part_t part = {row, r, N, 0, 32};
    if ((int)(simt_ids->thread.x & 31) < 8 * N) {
        simt_rt_note(row, 16, 0, site);
        for (int i = 0; i < 4; i++) /* for sanitizers: it is this lane that reads the row */
            (void)((const volatile uint32_t *)row)[i];
    }
    simt_rt_warp(op, 0xffffffffu, &part, site);
}
static inline void simt_mma_at(simt_warp_op_t op, void *d, const void *a, const void *b,
                               const void *c, simt_site_t site)
{
    simt_operands_t in = {a, b, c};
    simt_part_t part = {&in, d, 0, 0, 32};
    simt_rt_warp(op, 0xffffffffu, &part, site);
}
/* The types are those of the GPU side. */
static inline void simt_mma_float(simt_warp_op_t op, float *d, const uint32_t *a, const uint32_t *b,
                                  const float *c, simt_site_t site)
{
    simt_mma_at(op, d, a, b, c, site);
}
static inline void simt_mma_int(int *d, const uint32_t *a, const uint32_t *b, const int *c,
                                simt_site_t site)
{
    simt_mma_at(SIMT_OP_MMA_S8, d, a, b, c, site);
}
static inline void simt_mma_double(double *d, double a, double b, const double *c, simt_site_t site)
{
    simt_mma_at(SIMT_OP_MMA_F64, d, &a, &b, c, site);
}
#define simt_ldmatrix(n, r, row) simt_ldmatrix_at<n>((r), (row), SIMT_OP_LDMATRIX, SIMT_SITE)
#define simt_ldmatrix_trans(n, r, row)                                                             \
    simt_ldmatrix_at<n>((r), (row), SIMT_OP_LDMATRIX_TRANS, SIMT_SITE)
#define simt_mma_tf32(d, a, b, c) simt_mma_float(SIMT_OP_MMA_TF32, d, a, b, c, SIMT_SITE)
#define simt_mma_bf16(d, a, b, c) simt_mma_float(SIMT_OP_MMA_BF16, d, a, b, c, SIMT_SITE)
#define simt_mma_e4m3(d, a, b, c) simt_mma_float(SIMT_OP_MMA_E4M3, d, a, b, c, SIMT_SITE)
#define simt_mma_s8(d, a, b, c)   simt_mma_int(d, a, b, c, SIMT_SITE)
#define simt_mma_f64(d, a, b, c)  simt_mma_double(d, a, b, c, SIMT_SITE)
#define simt_tf32(x)              simt_rt_tf32(x)
#define simt_bf16x2(low, high)    simt_rt_bf16x2((low), (high))
#define simt_e4m3x2(low, high)    simt_rt_e4m3x2((low), (high))

/* ---- mbarriers ---- */
#define simt_mbar_init(bar, count)      simt_rt_mbar_init(&(bar)->bits, (count), SIMT_SITE)
#define simt_mbar_init_fence()          ((void)0)
#define simt_mbar_arrive(bar)           simt_rt_mbar_arrive(&(bar)->bits, 1, 0, SIMT_SITE)
#define simt_mbar_arrive_tx(bar, bytes) simt_rt_mbar_arrive(&(bar)->bits, 1, (bytes), SIMT_SITE)
#define simt_mbar_expect_tx(bar, bytes) simt_rt_mbar_arrive(&(bar)->bits, 0, (bytes), SIMT_SITE)
#define simt_mbar_arrive_remote(bar, rank)                                                         \
    simt_rt_mbar_arrive_remote(&(bar)->bits, (rank), SIMT_SITE)
#define simt_mbar_test(bar, parity) (simt_rt_mbar_test(&(bar)->bits, (parity), SIMT_SITE) != 0)
#define simt_mbar_wait(bar, parity) simt_rt_mbar_wait(&(bar)->bits, (parity), SIMT_SITE)

/* ---- asynchronous copies ---- */
#define simt_bulk_load(dst, src, bytes, bar)                                                       \
    simt_rt_bulk_load((dst), (src), (bytes), &(bar)->bits, SIMT_SITE)
#define simt_bulk_push(dst, src, bytes, bar)                                                       \
    simt_rt_bulk_push((dst), (src), (bytes), &(bar)->bits, SIMT_SITE)
#define simt_bulk_store(dst, src, bytes) simt_rt_bulk_store((dst), (src), (bytes), SIMT_SITE)
#define simt_bulk_commit()               simt_rt_bulk_commit(SIMT_SITE)
#define simt_bulk_wait(n)                simt_rt_bulk_wait((n), 0, SIMT_SITE)
#define simt_bulk_wait_read(n)           simt_rt_bulk_wait((n), 1, SIMT_SITE)
#define simt_proxy_fence()               simt_rt_proxy_fence(SIMT_SITE)
static inline void simt_tensor_at(void *shared, const simt_tensor_map_t *map, int x, int y, int z,
                                  int rank, simt_mbar_t *bar, simt_site_t site)
{
    const int at[3] = {x, y, z};
    simt_rt_tensor(shared, map, at, rank, bar ? &bar->bits : nullptr, site);
}
#define simt_tma_load_2d(dst, map, x, y, bar)                                                      \
    simt_tensor_at((dst), (map), (x), (y), 0, 2, (bar), SIMT_SITE)
#define simt_tma_load_3d(dst, map, x, y, z, bar)                                                   \
    simt_tensor_at((dst), (map), (x), (y), (z), 3, (bar), SIMT_SITE)
#define simt_tma_store_2d(map, x, y, src)                                                          \
    simt_tensor_at((src), (map), (x), (y), 0, 2, nullptr, SIMT_SITE)
#define simt_tma_store_3d(map, x, y, z, src)                                                       \
    simt_tensor_at((src), (map), (x), (y), (z), 3, nullptr, SIMT_SITE)
#define simt_cp_async(n, dst, src) simt_rt_cp_async((dst), (src), (n), (n), SIMT_SITE)
#define simt_cp_async_part(n, dst, src, bytes)                                                     \
    simt_rt_cp_async((dst), (src), (n), (bytes), SIMT_SITE)
#define simt_cp_async_commit() simt_rt_cp_async_commit(SIMT_SITE)
#define simt_cp_async_wait(n)  simt_rt_cp_async_wait((n), SIMT_SITE)

/* ---- host ---- */
template <class A> static void simt_call(void *kernel, const void *args)
{
    ((void (*)(const A &))kernel)(*(const A *)args);
}
template <class A>
static inline gb10_status_t simt_launch(const simt_launch_t *how, void (*kernel)(const A &),
                                        const A *args, gb10_error_t *err)
{
    return simt_rt_launch(how, simt_call<A>, (void *)kernel, args, err);
}

#endif
