/* The CUDA side of simt.h: intrinsics where CUDA has them, inline PTX where it has none. TMA loads
 * name .shared::cta as their destination; the .shared::cluster form becomes a driver call with a
 * large stack on sm_12x. Included by simt.h only. */
#ifndef KERNELS_CUDA_SIMT_CUDA_H
#define KERNELS_CUDA_SIMT_CUDA_H

#include <cuda_runtime.h>

#define SIMT_BOUNDS(threads, blocks) threads, blocks
#define SIMT_KERNEL(name, threads, a, ...)                                                         \
    __global__ void __launch_bounds__(threads) name(const __grid_constant__ __VA_ARGS__ a)
/* 1024: the 128-byte swizzle repeats after that many bytes. */
#define SIMT_SHARED(s, ...)                                                                        \
    extern __shared__ __align__(1024) unsigned char simt_shared_bytes[];                           \
    __VA_ARGS__ *const s = reinterpret_cast<__VA_ARGS__ *>(simt_shared_bytes)

#define SIMT_DEVICE static __device__ __forceinline__

template <class T> struct simt_same {
    typedef T type;
};

SIMT_DEVICE uint32_t simt_shared_address(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}
/* Of this block or, mapped, of another one of the cluster. */
SIMT_DEVICE uint32_t simt_cluster_address(const void *p)
{
    uint64_t address;
    asm("cvta.to.shared::cluster.u64 %0, %1;" : "=l"(address) : "l"(p));
    return (uint32_t)address;
}

/* ---- loads and stores: a struct moves as one word of its size ---- */
template <int BYTES> struct simt_word;
template <> struct simt_word<1> {
    typedef unsigned char type;
};
template <> struct simt_word<2> {
    typedef unsigned short type;
};
template <> struct simt_word<4> {
    typedef unsigned type;
};
template <> struct simt_word<8> {
    typedef uint2 type;
};
template <> struct simt_word<16> {
    typedef uint4 type;
};
template <class To, class From> SIMT_DEVICE To simt_bits(From from)
{
    static_assert(sizeof(To) == sizeof(From), "as many bits");
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}
#define SIMT_WORD(T) typename simt_word<sizeof(T)>::type
template <class T> SIMT_DEVICE T simt_load(const T *p)
{
    return simt_bits<T>(*(const SIMT_WORD(T) *)p);
}
template <class T> SIMT_DEVICE void simt_store(T *p, typename simt_same<T>::type v)
{
    *(SIMT_WORD(T) *)p = simt_bits<SIMT_WORD(T)>(v);
}
template <class T> SIMT_DEVICE T simt_load_once(const T *p)
{
    return simt_bits<T>(__ldcs((const SIMT_WORD(T) *)p));
}
template <class T> SIMT_DEVICE void simt_store_once(T *p, typename simt_same<T>::type v)
{
    __stcs((SIMT_WORD(T) *)p, simt_bits<SIMT_WORD(T)>(v));
}

#define SIMT_ACQUIRE(name, scope)                                                                  \
    template <class T> SIMT_DEVICE T name(const T *p)                                              \
    {                                                                                              \
        static_assert(sizeof(T) == 4 || sizeof(T) == 8, "4 or 8 bytes");                           \
        if constexpr (sizeof(T) == 4) {                                                            \
            uint32_t v;                                                                            \
            asm volatile("ld.acquire." scope ".b32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");      \
            return simt_bits<T>(v);                                                                \
        } else {                                                                                   \
            uint64_t v;                                                                            \
            asm volatile("ld.acquire." scope ".b64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");      \
            return simt_bits<T>(v);                                                                \
        }                                                                                          \
    }
#define SIMT_RELEASE(name, scope)                                                                  \
    template <class T> SIMT_DEVICE void name(T *p, typename simt_same<T>::type v)                  \
    {                                                                                              \
        static_assert(sizeof(T) == 4 || sizeof(T) == 8, "4 or 8 bytes");                           \
        if constexpr (sizeof(T) == 4)                                                              \
            asm volatile("st.release." scope ".b32 [%0], %1;" ::"l"(p),                            \
                         "r"(simt_bits<uint32_t>(v))                                               \
                         : "memory");                                                              \
        else                                                                                       \
            asm volatile("st.release." scope ".b64 [%0], %1;" ::"l"(p),                            \
                         "l"(simt_bits<uint64_t>(v))                                               \
                         : "memory");                                                              \
    }
SIMT_ACQUIRE(simt_load_acquire, "gpu")
SIMT_ACQUIRE(simt_load_acquire_cluster, "cluster")
SIMT_RELEASE(simt_store_release, "gpu")
SIMT_RELEASE(simt_store_release_cluster, "cluster")
template <class T> SIMT_DEVICE T simt_add_acq_rel(T *p, typename simt_same<T>::type v)
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "4 or 8 bytes");
    if constexpr (sizeof(T) == 4) {
        uint32_t old;
        asm volatile("atom.add.acq_rel.gpu.u32 %0, [%1], %2;"
                     : "=r"(old)
                     : "l"(p), "r"((uint32_t)v)
                     : "memory");
        return (T)old;
    } else {
        uint64_t old;
        asm volatile("atom.add.acq_rel.gpu.u64 %0, [%1], %2;"
                     : "=l"(old)
                     : "l"(p), "l"((uint64_t)v)
                     : "memory");
        return (T)old;
    }
}

/* ---- barriers, clusters ---- */
SIMT_DEVICE void simt_bar_sync(int id, int threads)
{
    asm volatile("barrier.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
SIMT_DEVICE void simt_bar_arrive(int id, int threads)
{
    asm volatile("barrier.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
#define simt_setmaxnreg_inc(n) asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(n))
#define simt_setmaxnreg_dec(n) asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(n))
SIMT_DEVICE unsigned simt_cluster_rank()
{
    unsigned rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}
SIMT_DEVICE unsigned simt_cluster_size()
{
    unsigned size;
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
    return size;
}
SIMT_DEVICE void simt_cluster_arrive()
{
    asm volatile("barrier.cluster.arrive.release;" ::: "memory");
}
SIMT_DEVICE void simt_cluster_wait()
{
    asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}
SIMT_DEVICE void simt_cluster_sync()
{
    simt_cluster_arrive();
    simt_cluster_wait();
}
template <class T> SIMT_DEVICE T *simt_map(T *p, unsigned rank)
{
    uint64_t mapped;
    asm("mapa.u64 %0, %1, %2;" : "=l"(mapped) : "l"(p), "r"(rank));
    return (T *)mapped;
}

/* ---- warps: a value of any type goes through in 32-bit pieces ---- */
#define SIMT_SHUFFLE(name, intrinsic, lane_t)                                                      \
    template <class T> SIMT_DEVICE T name(unsigned mask, T v, lane_t lane, int width = 32)         \
    {                                                                                              \
        static_assert(sizeof(T) % 4 == 0, "whole registers");                                      \
        unsigned word[sizeof(T) / 4];                                                              \
        memcpy(word, &v, sizeof v);                                                                \
        _Pragma("unroll") for (unsigned i = 0; i < sizeof(T) / 4; i++) word[i] =                   \
            intrinsic(mask, word[i], lane, width);                                                 \
        memcpy(&v, word, sizeof v);                                                                \
        return v;                                                                                  \
    }
SIMT_SHUFFLE(simt_shfl, __shfl_sync, int)
SIMT_SHUFFLE(simt_shfl_xor, __shfl_xor_sync, int)
SIMT_SHUFFLE(simt_shfl_up, __shfl_up_sync, unsigned)
SIMT_SHUFFLE(simt_shfl_down, __shfl_down_sync, unsigned)

/* ---- tensor cores ---- */
#define SIMT_LDMATRIX(name, trans)                                                                 \
    template <int N> SIMT_DEVICE void name(uint32_t *r, const void *row)                           \
    {                                                                                              \
        static_assert(N == 1 || N == 2 || N == 4, "1, 2 or 4 matrices");                           \
        const uint32_t p = simt_shared_address(row);                                               \
        if constexpr (N == 1)                                                                      \
            asm volatile("ldmatrix.sync.aligned.m8n8.x1" trans ".shared.b16 {%0}, [%1];"           \
                         : "=r"(r[0])                                                              \
                         : "r"(p)                                                                  \
                         : "memory");                                                              \
        else if constexpr (N == 2)                                                                 \
            asm volatile("ldmatrix.sync.aligned.m8n8.x2" trans ".shared.b16 {%0, %1}, [%2];"       \
                         : "=r"(r[0]), "=r"(r[1])                                                  \
                         : "r"(p)                                                                  \
                         : "memory");                                                              \
        else                                                                                       \
            asm volatile("ldmatrix.sync.aligned.m8n8.x4" trans                                     \
                         ".shared.b16 {%0, %1, %2, %3}, [%4];"                                     \
                         : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])                          \
                         : "r"(p)                                                                  \
                         : "memory");                                                              \
    }
SIMT_LDMATRIX(simt_ldmatrix_n, "")
SIMT_LDMATRIX(simt_ldmatrix_trans_n, ".trans")
#define simt_ldmatrix(n, r, row)       simt_ldmatrix_n<n>((r), (row))
#define simt_ldmatrix_trans(n, r, row) simt_ldmatrix_trans_n<n>((r), (row))

#define SIMT_MMA(name, type, letter, shape, operands)                                              \
    SIMT_DEVICE void name(type *d, const uint32_t *a, const uint32_t *b, const type *c)            \
    {                                                                                              \
        asm volatile("mma.sync.aligned." shape ".row.col." operands                                \
                     " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"        \
                     : "=" letter(d[0]), "=" letter(d[1]), "=" letter(d[2]), "=" letter(d[3])      \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]),           \
                       letter(c[0]), letter(c[1]), letter(c[2]), letter(c[3]));                    \
    }
SIMT_MMA(simt_mma_tf32, float, "f", "m16n8k8", "f32.tf32.tf32.f32")
SIMT_MMA(simt_mma_bf16, float, "f", "m16n8k16", "f32.bf16.bf16.f32")
SIMT_MMA(simt_mma_e4m3, float, "f", "m16n8k32", "f32.e4m3.e4m3.f32")
SIMT_MMA(simt_mma_s8, int, "r", "m16n8k32", "s32.s8.s8.s32")
SIMT_DEVICE void simt_mma_f64(double *d, double a, double b, const double *c)
{
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%4, %5};"
                 : "=d"(d[0]), "=d"(d[1])
                 : "d"(a), "d"(b), "d"(c[0]), "d"(c[1]));
}
SIMT_DEVICE uint32_t simt_tf32(float x)
{
    uint32_t bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return bits;
}
SIMT_DEVICE uint32_t simt_bf16x2(float low, float high)
{
    uint32_t bits;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
    return bits;
}
SIMT_DEVICE uint16_t simt_e4m3x2(float low, float high)
{
    uint16_t bits;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(bits) : "f"(high), "f"(low));
    return bits;
}

/* ---- mbarriers. Waits acquire at cluster scope: the data may come from another block. ---- */
SIMT_DEVICE void simt_mbar_init(simt_mbar_t *bar, unsigned count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(simt_shared_address(bar)),
                 "r"(count)
                 : "memory");
}
SIMT_DEVICE void simt_mbar_init_fence()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
SIMT_DEVICE void simt_mbar_arrive(simt_mbar_t *bar)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(simt_shared_address(bar))
                 : "memory");
}
SIMT_DEVICE void simt_mbar_arrive_tx(simt_mbar_t *bar, unsigned bytes)
{
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(simt_shared_address(bar)),
        "r"(bytes)
        : "memory");
}
SIMT_DEVICE void simt_mbar_expect_tx(simt_mbar_t *bar, unsigned bytes)
{
    asm volatile(
        "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(simt_shared_address(bar)),
        "r"(bytes)
        : "memory");
}
SIMT_DEVICE void simt_mbar_arrive_remote(simt_mbar_t *bar, unsigned rank)
{
    asm volatile("{\n\t"
                 ".reg .b32 remote;\n\t"
                 "mapa.shared::cluster.u32 remote, %0, %1;\n\t"
                 "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\n\t"
                 "}" ::"r"(simt_shared_address(bar)),
                 "r"(rank)
                 : "memory");
}
#define SIMT_MBAR_ASK(name, instruction)                                                           \
    SIMT_DEVICE bool name(simt_mbar_t *bar, unsigned parity)                                       \
    {                                                                                              \
        uint32_t over;                                                                             \
        asm volatile("{\n\t"                                                                       \
                     ".reg .pred p;\n\t" instruction                                               \
                     ".parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n\t"                    \
                     "selp.u32 %0, 1, 0, p;\n\t"                                                   \
                     "}"                                                                           \
                     : "=r"(over)                                                                  \
                     : "r"(simt_shared_address(bar)), "r"(parity)                                  \
                     : "memory");                                                                  \
        return over != 0;                                                                          \
    }
SIMT_MBAR_ASK(simt_mbar_test, "mbarrier.test_wait")
SIMT_MBAR_ASK(simt_mbar_try, "mbarrier.try_wait")
SIMT_DEVICE void simt_mbar_wait(simt_mbar_t *bar, unsigned parity)
{
    while (!simt_mbar_try(bar, parity))
        ;
}

/* ---- asynchronous copies ---- */
SIMT_DEVICE void simt_bulk_load(void *dst, const void *src, unsigned bytes, simt_mbar_t *bar)
{
    asm volatile("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(simt_shared_address(dst)),
                 "l"(__cvta_generic_to_global(src)), "r"(bytes), "r"(simt_shared_address(bar))
                 : "memory");
}
SIMT_DEVICE void simt_bulk_push(void *dst, const void *src, unsigned bytes, simt_mbar_t *bar)
{
    asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(simt_cluster_address(dst)),
                 "r"(simt_shared_address(src)), "r"(bytes), "r"(simt_cluster_address(bar))
                 : "memory");
}
SIMT_DEVICE void simt_bulk_store(void *dst, const void *src, unsigned bytes)
{
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(
                     __cvta_generic_to_global(dst)),
                 "r"(simt_shared_address(src)), "r"(bytes)
                 : "memory");
}
SIMT_DEVICE void simt_bulk_commit()
{
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
#define simt_bulk_wait(n)      asm volatile("cp.async.bulk.wait_group %0;" ::"n"(n) : "memory")
#define simt_bulk_wait_read(n) asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(n) : "memory")
SIMT_DEVICE void simt_proxy_fence()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
SIMT_DEVICE void simt_tma_load_2d(void *dst, const simt_tensor_map_t *map, int x, int y,
                                  simt_mbar_t *bar)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];" ::"r"(simt_shared_address(dst)),
                 "l"(map), "r"(x), "r"(y), "r"(simt_shared_address(bar))
                 : "memory");
}
SIMT_DEVICE void simt_tma_load_3d(void *dst, const simt_tensor_map_t *map, int x, int y, int z,
                                  simt_mbar_t *bar)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cta.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4}], [%5];" ::"r"(simt_shared_address(dst)),
                 "l"(map), "r"(x), "r"(y), "r"(z), "r"(simt_shared_address(bar))
                 : "memory");
}
SIMT_DEVICE void simt_tma_store_2d(const simt_tensor_map_t *map, int x, int y, const void *src)
{
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group "
                 "[%0, {%1, %2}], [%3];" ::"l"(map),
                 "r"(x), "r"(y), "r"(simt_shared_address(src))
                 : "memory");
}
SIMT_DEVICE void simt_tma_store_3d(const simt_tensor_map_t *map, int x, int y, int z,
                                   const void *src)
{
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group "
                 "[%0, {%1, %2, %3}], [%4];" ::"l"(map),
                 "r"(x), "r"(y), "r"(z), "r"(simt_shared_address(src))
                 : "memory");
}
template <int N> SIMT_DEVICE void simt_cp_async_n(void *dst, const void *src, int bytes)
{
    if constexpr (N == 16)
        asm volatile(
            "cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(simt_shared_address(dst)),
            "l"(__cvta_generic_to_global(src)), "r"(bytes)
            : "memory");
    else
        asm volatile(
            "cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(simt_shared_address(dst)),
            "l"(__cvta_generic_to_global(src)), "r"(bytes), "n"(N)
            : "memory");
}
#define simt_cp_async(n, dst, src)             simt_cp_async_n<n>((dst), (src), (n))
#define simt_cp_async_part(n, dst, src, bytes) simt_cp_async_n<n>((dst), (src), (bytes))
SIMT_DEVICE void simt_cp_async_commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}
#define simt_cp_async_wait(n) asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory")

/* ---- host (launch.cu) ---- */
gb10_status_t simt_cuda_launch(const simt_launch_t *how, const void *kernel, const void *args,
                               gb10_error_t *err);
template <class A>
static inline gb10_status_t simt_launch(const simt_launch_t *how, void (*kernel)(A), const A *args,
                                        gb10_error_t *err)
{
    return simt_cuda_launch(how, (const void *)kernel, args, err);
}

#endif
