/* Right kernels for the tests of the runtime, one for each family of primitives. A line whose
 * synchronisation may be left out says "redundant" and why; every other one must be missed. */
#include "kernels/cuda/simt.h"
#include "tests/simt/simt_cases.h"

static const unsigned ALL = 0xffffffffu;

template <class A>
static gb10_status_t go(void (*kernel)(A), unsigned grid_x, unsigned grid_y, unsigned block,
                        unsigned cluster, size_t shared, const case_args_t *a, gb10_error_t *err)
{
    const simt_launch_t how = {grid_x, grid_y, block, cluster, shared, nullptr};
    return simt_launch(&how, kernel, a, err);
}

/* ---- shuffles ---- */

typedef struct complex_float {
    float re, im;
} complex_float_t;
typedef struct complex_double {
    double re, im;
} complex_double_t;

template <class T> static __device__ __forceinline__ T plus(T a, T b)
{
    return a + b;
}
template <> __device__ __forceinline__ complex_float_t plus(complex_float_t a, complex_float_t b)
{
    return {a.re + b.re, a.im + b.im};
}
template <> __device__ __forceinline__ complex_double_t plus(complex_double_t a, complex_double_t b)
{
    return {a.re + b.re, a.im + b.im};
}

/* One warp a block of 64 elements. Five ways to the same sum; any difference spoils the result. */
template <class T> SIMT_KERNEL(shuffle_sum, 128, a, case_args_t)
{
    const int lane = (int)threadIdx.x % 32;
    const int item = (int)(blockIdx.x * 4 + threadIdx.x / 32);
    if (item >= a.n)
        return;
    const T *x = (const T *)a.x + 64 * item;
    T v = plus(simt_load(&x[lane]), simt_load_once(&x[lane + 32])), w = v;
    for (int step = 16; step > 0; step /= 2)
        v = plus(v, simt_shfl_xor(ALL, v, step));
    for (int step = 16; step > 0; step /= 2)
        w = plus(w, simt_shfl_down(ALL, w, step));
    w = simt_shfl(ALL, w, 0);
    /* Up by one in parts of 8, then back down: the first lane of a part keeps its own. */
    T u = simt_shfl_down(ALL, simt_shfl_up(ALL, v, 1, 8), 1, 8);
    bool same = v.re == w.re && v.im == w.im && u.re == v.re;
    unsigned vote = __ballot_sync(ALL, same);
    if (lane == 0)
        simt_store(&((T *)a.out)[item], vote == ALL ? v : x[0]);
}
template <class T> SIMT_KERNEL(shuffle_scalar, 128, a, case_args_t)
{
    const int lane = (int)threadIdx.x % 32;
    const int item = (int)(blockIdx.x * 4 + threadIdx.x / 32);
    if (item >= a.n)
        return;
    const T *x = (const T *)a.x + 64 * item;
    T v = plus(simt_load(&x[lane]), simt_load(&x[lane + 32])), w = v;
    for (int step = 16; step > 0; step /= 2)
        v += __shfl_xor_sync(ALL, v, step);
    for (int step = 16; step > 0; step /= 2)
        w += __shfl_down_sync(ALL, w, step);
    w = __shfl_sync(ALL, w, 0);
    const bool good = __all_sync(ALL, v == w) && !__any_sync(ALL, v != w);
    if (lane == 0)
        simt_store_once(&((T *)a.out)[item], good ? v : x[0]);
}

gb10_status_t case_shuffle(const case_args_t *a, gb10_error_t *err)
{
    const unsigned blocks = (unsigned)(a->n + 3) / 4;
    switch (a->which) {
    case 0:
        return go(shuffle_scalar<float>, blocks, 1, 128, 1, 0, a, err);
    case 1:
        return go(shuffle_scalar<double>, blocks, 1, 128, 1, 0, a, err);
    case 2:
        return go(shuffle_sum<complex_float_t>, blocks, 1, 128, 1, 0, a, err);
    case 3:
        return go(shuffle_sum<complex_double_t>, blocks, 1, 128, 1, 0, a, err);
    default:
        return go(shuffle_scalar<long long>, blocks, 1, 128, 1, 0, a, err);
    }
}

/* ---- one block ---- */

typedef struct prefix_shared {
    float x[128], total[4];
} prefix_shared_t;

SIMT_KERNEL(prefix, 128, a, case_args_t)
{
    SIMT_SHARED(s, prefix_shared_t);
    const int i = (int)threadIdx.x, warp = i / 32;
    float carry = 0;
    int positive = 0;
    for (int at = 0; at < a.n; at += 128) {
        const float v = at + i < a.n ? simt_load(&((const float *)a.x)[at + i]) : 0;
        s->x[i] = v;
        positive += __syncthreads_count(v > 0);
        float sum = 0;
        for (int j = 0; j <= i % 32; j++)
            sum += s->x[32 * warp + j];
        if (i % 32 == 31)
            s->total[warp] = sum;
        __syncthreads();
        for (int w = 0; w < warp; w++)
            sum += s->total[w];
        if (at + i < a.n)
            simt_store(&((float *)a.out)[at + i], carry + sum);
        for (int w = 0; w < 4; w++)
            carry += s->total[w];
        __syncthreads(); /* redundant: the count above separates as well; kept for the reader */
    }
    if (i == 0)
        simt_store(&a.words[0], (unsigned)positive);
}

gb10_status_t case_prefix(const case_args_t *a, gb10_error_t *err)
{
    return go(prefix, 1, 1, 128, 1, sizeof(prefix_shared_t), a, err);
}

/* ---- clusters ---- */

typedef struct sum_shared {
    float warp[2], block;
} sum_shared_t;

SIMT_KERNEL(cluster_sum, 64, a, case_args_t)
{
    SIMT_SHARED(s, sum_shared_t);
    const unsigned first = blockIdx.x - simt_cluster_rank();
    const unsigned size = simt_cluster_size();
    float sum = 0;
    for (unsigned i = threadIdx.x + 64 * blockIdx.x; i < (unsigned)a.n; i += 64 * gridDim.x)
        sum += simt_load(&((const float *)a.x)[i]);
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_xor_sync(ALL, sum, step);
    if (threadIdx.x % 32 == 0)
        s->warp[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0)
        s->block = s->warp[0] + s->warp[1];
    simt_cluster_sync();
    if (threadIdx.x == 0) {
        float all = 0;
        for (unsigned r = 0; r < size; r++)
            all += *simt_map(&s->block, r);
        simt_store(&((float *)a.out)[first + simt_cluster_rank()], all);
    }
    simt_cluster_sync();
}

gb10_status_t case_cluster_sum(const case_args_t *a, gb10_error_t *err)
{
    return go(cluster_sum, 8, 1, 64, 4, sizeof(sum_shared_t), a, err);
}

typedef struct split_shared {
    unsigned from[4];
} split_shared_t;

SIMT_KERNEL(cluster_split, 32, a, case_args_t)
{
    SIMT_SHARED(s, split_shared_t);
    const unsigned rank = simt_cluster_rank();
    simt_cluster_arrive();
    const unsigned number = blockIdx.x + 10 * blockIdx.y;
    simt_cluster_wait();
    if (threadIdx.x < 4)
        simt_map(s, threadIdx.x)->from[rank] = number;
    simt_cluster_arrive();
    simt_cluster_wait();
    if (threadIdx.x < 4)
        simt_store(&a.words[4 * (blockIdx.x + gridDim.x * blockIdx.y) + threadIdx.x],
                   s->from[threadIdx.x]);
}

gb10_status_t case_cluster_split(const case_args_t *a, gb10_error_t *err)
{
    return go(cluster_split, 8, 2, 32, 4, sizeof(split_shared_t), a, err);
}

/* ---- bulk copies ---- */

enum { TILE = 256 };
typedef struct pipeline_shared {
    float in[2][TILE], out[2][TILE];
    simt_mbar_t full[2];
} pipeline_shared_t;

SIMT_KERNEL(pipeline, 64, a, case_args_t)
{
    SIMT_SHARED(s, pipeline_shared_t);
    const float *x = (const float *)a.x;
    float *out = (float *)a.out;
    const unsigned bytes = sizeof s->in[0];
    if (threadIdx.x == 0) {
        for (int i = 0; i < 2; i++)
            simt_mbar_init(&s->full[i], 1);
        simt_mbar_init_fence();
        for (int i = 0; i < 2 && i < a.n; i++) {
            simt_mbar_arrive_tx(&s->full[i], bytes);
            simt_bulk_load(s->in[i], x + TILE * i, bytes, &s->full[i]);
        }
    }
    __syncthreads();
    for (int tile = 0; tile < a.n; tile++) {
        const int stage = tile % 2;
        simt_mbar_wait(&s->full[stage], (unsigned)(tile / 2) % 2);
        if (threadIdx.x == 0)
            simt_bulk_wait_read(1);
        __syncthreads();
        for (unsigned i = threadIdx.x; i < TILE; i += 64)
            s->out[stage][i] = 2 * s->in[stage][i] + 1;
        simt_proxy_fence();
        __syncthreads();
        if (threadIdx.x == 0) {
            simt_bulk_store(out + TILE * tile, s->out[stage], bytes);
            simt_bulk_commit();
            if (tile + 2 < a.n) {
                simt_mbar_arrive_tx(&s->full[stage], bytes);
                simt_bulk_load(s->in[stage], x + TILE * (tile + 2), bytes, &s->full[stage]);
            }
        }
    }
    if (threadIdx.x == 0)
        simt_bulk_wait(0);
}

gb10_status_t case_pipeline(const case_args_t *a, gb10_error_t *err)
{
    return go(pipeline, 1, 1, 64, 1, sizeof(pipeline_shared_t), a, err);
}

/* Mailbox: full counts one arrival and its bytes, empty one remote arrival of the reader. */
typedef struct ring_shared {
    float mail[64], send[64];
    simt_mbar_t full, empty;
} ring_shared_t;

SIMT_KERNEL(ring, 64, a, case_args_t)
{
    SIMT_SHARED(s, ring_shared_t);
    const unsigned rank = simt_cluster_rank(), size = simt_cluster_size();
    const unsigned next = (rank + 1) % size, last = (rank + size - 1) % size;
    const unsigned i = threadIdx.x;
    if (i == 0) {
        simt_mbar_init(&s->full, 1);
        simt_mbar_init(&s->empty, 1);
        simt_mbar_init_fence();
    }
    float v = simt_load(&((const float *)a.x)[64 * rank + i]);
    simt_cluster_sync();
    for (int round = 0; round < a.n; round++) {
        const unsigned parity = (unsigned)round % 2;
        s->send[i] = v;
        simt_proxy_fence();
        __syncthreads();
        if (i == 0) {
            simt_mbar_arrive_tx(&s->full, sizeof s->mail);
            simt_bulk_push(simt_map(&s->mail[0], next), s->send, sizeof s->send,
                           simt_map(&s->full, next));
        }
        while (!simt_mbar_test(&s->full, parity))
            ;
        v = s->mail[i] + (float)rank;
        __syncthreads();
        if (i == 0)
            simt_mbar_arrive_remote(&s->empty, last);
        /* By this the next block says that it has read its mail, and so what send held. */
        simt_mbar_wait(&s->empty, parity);
    }
    /* Nobody touches this block any more: full and empty were its last visitors. */
    simt_store(&((float *)a.out)[64 * rank + i], v);
}

gb10_status_t case_ring(const case_args_t *a, gb10_error_t *err)
{
    return go(ring, 4, 1, 64, 4, sizeof(ring_shared_t), a, err);
}

/* ---- a persistent queue ---- */

typedef struct queue_shared {
    unsigned item;
} queue_shared_t;

SIMT_KERNEL(queue, 32, a, case_args_t)
{
    SIMT_SHARED(s, queue_shared_t);
    float *out = (float *)a.out;
    for (;;) {
        if (threadIdx.x == 0)
            s->item = atomicAdd(&a.words[0], 1);
        __syncthreads();
        const unsigned item = s->item;
        __syncthreads();
        if (item >= (unsigned)a.n)
            break;
        if (threadIdx.x == 31) { /* not the one that took the ticket */
            float before = 0;
            if (item > 0) {
                while (simt_load_acquire(&a.words[item]) == 0)
                    ;
                before = simt_load(&out[item - 1]);
            }
            simt_store(&out[item], before + simt_load(&((const float *)a.x)[item]));
            simt_store_release(&a.words[item + 1], 1u);
        }
    }
}

gb10_status_t case_queue(const case_args_t *a, gb10_error_t *err)
{
    return go(queue, 6, 1, 32, 1, sizeof(queue_shared_t), a, err);
}

SIMT_KERNEL(lock, 64, a, case_args_t)
{
    for (int i = 0; i < a.n; i++) {
        unsigned ticket = atomicAdd(&a.words[0], 1);
        while (simt_load_acquire(&a.words[1]) != ticket)
            ;
        *(float *)a.out += 1;
        simt_add_acq_rel(&a.words[1], 1u);
    }
    atomicMax(&a.words[2], threadIdx.x);
    atomicMin(&a.words[3], threadIdx.x);
    atomicOr(&a.words[4], 1u << blockIdx.x);
    atomicAdd((double *)(a.words + 6), 0.5);
    if (atomicCAS(&a.words[5], 0u, 1u) == 0)
        atomicExch(&a.words[8], 7u);
}

gb10_status_t case_lock(const case_args_t *a, gb10_error_t *err)
{
    return go(lock, 4, 1, 64, 1, 0, a, err);
}

/* ---- tensor cores ---- */

/* Operands as registers: row-major x (16 x k), y (k x 8); e elements of a register. */
template <int E, class PACK>
static __device__ __forceinline__ void fragments(uint32_t *ra, uint32_t *rb, PACK pack)
{
    const int lane = (int)threadIdx.x, g = lane / 4, t = lane % 4;
    for (int r = 0; r < 4; r++)
        ra[r] = pack(true, g + 8 * (r & 1), E * t + 4 * E * (r >> 1));
    for (int r = 0; r < 2; r++)
        rb[r] = pack(false, g, E * t + 4 * E * r);
}

/* An element of x (row, k) or of y (k, column). */
template <class T>
static __device__ __forceinline__ T operand(const case_args_t &a, int depth, bool left, int line,
                                            int k)
{
    return left ? simt_load(&((const T *)a.x)[line * depth + k])
                : simt_load(&((const T *)a.y)[k * 8 + line]);
}

template <int WHICH> SIMT_KERNEL(mma_float, 32, a, case_args_t)
{
    const int lane = (int)threadIdx.x, g = lane / 4, t = lane % 4;
    const int e = WHICH == 0 ? 1 : WHICH == 1 ? 2 : 4, depth = 8 * e;
    uint32_t ra[4], rb[2];
    fragments<e>(ra, rb, [&](bool left, int line, int k) -> uint32_t {
        const float v0 = operand<float>(a, depth, left, line, k);
        if (WHICH == 0)
            return simt_tf32(v0);
        const float v1 = operand<float>(a, depth, left, line, k + 1);
        if (WHICH == 1)
            return simt_bf16x2(v0, v1);
        const float v2 = operand<float>(a, depth, left, line, k + 2);
        const float v3 = operand<float>(a, depth, left, line, k + 3);
        return simt_e4m3x2(v0, v1) | (uint32_t)simt_e4m3x2(v2, v3) << 16;
    });
    float c[4];
    for (int r = 0; r < 4; r++)
        c[r] = simt_load(&((const float *)a.z)[(g + 8 * (r >> 1)) * 8 + 2 * t + (r & 1)]);
    if (WHICH == 0)
        simt_mma_tf32(c, ra, rb, c);
    else if (WHICH == 1)
        simt_mma_bf16(c, ra, rb, c);
    else
        simt_mma_e4m3(c, ra, rb, c);
    for (int r = 0; r < 4; r++)
        simt_store(&((float *)a.out)[(g + 8 * (r >> 1)) * 8 + 2 * t + (r & 1)], c[r]);
}

SIMT_KERNEL(mma_s8, 32, a, case_args_t)
{
    const int lane = (int)threadIdx.x, g = lane / 4, t = lane % 4;
    uint32_t ra[4], rb[2];
    fragments<4>(ra, rb, [&](bool left, int line, int k) -> uint32_t {
        uint32_t word = 0;
        for (int i = 0; i < 4; i++)
            word |= ((uint32_t)operand<int>(a, 32, left, line, k + i) & 0xff) << 8 * i;
        return word;
    });
    int c[4], d[4];
    for (int r = 0; r < 4; r++)
        c[r] = simt_load(&((const int *)a.z)[(g + 8 * (r >> 1)) * 8 + 2 * t + (r & 1)]);
    simt_mma_s8(d, ra, rb, c);
    for (int r = 0; r < 4; r++)
        simt_store(&((int *)a.out)[(g + 8 * (r >> 1)) * 8 + 2 * t + (r & 1)], d[r]);
}

SIMT_KERNEL(mma_f64, 32, a, case_args_t)
{
    const int lane = (int)threadIdx.x, g = lane / 4, t = lane % 4;
    const double2 c = simt_load(&((const double2 *)a.z)[g * 4 + t]);
    double d[2] = {c.x, c.y};
    simt_mma_f64(d, operand<double>(a, 4, true, g, t), operand<double>(a, 4, false, g, t), d);
    simt_store(&((double2 *)a.out)[g * 4 + t], double2{d[0], d[1]});
}

gb10_status_t case_mma(const case_args_t *a, gb10_error_t *err)
{
    switch (a->which) {
    case 0:
        return go(mma_float<0>, 1, 1, 32, 1, 0, a, err);
    case 1:
        return go(mma_float<1>, 1, 1, 32, 1, 0, a, err);
    case 2:
        return go(mma_s8, 1, 1, 32, 1, 0, a, err);
    case 3:
        return go(mma_float<2>, 1, 1, 32, 1, 0, a, err);
    default:
        return go(mma_f64, 1, 1, 32, 1, 0, a, err);
    }
}

typedef struct matrix_shared {
    alignas(16) uint16_t m[16][16];
} matrix_shared_t;

/* The four 8 x 8 corners by x4, the left two again by x2, the first by x1. */
template <bool TRANS> SIMT_KERNEL(ldmatrix, 32, a, case_args_t)
{
    SIMT_SHARED(s, matrix_shared_t);
    const int lane = (int)threadIdx.x, row = lane / 4, pair = lane % 4;
    for (int item = 0; item < a.n; item++) {
        const uint4 *x = (const uint4 *)a.x + 32 * item;
        ((uint4 *)s->m)[lane] = simt_load(&x[lane]);
        __syncwarp();
        const void *from = &s->m[lane % 16][8 * (lane / 16)];
        uint32_t r[4], r2[2], r1[1];
        if (TRANS) {
            simt_ldmatrix_trans(4, r, from);
            simt_ldmatrix_trans(2, r2, from);
            simt_ldmatrix_trans(1, r1, from);
        } else {
            simt_ldmatrix(4, r, from);
            simt_ldmatrix(2, r2, from);
            simt_ldmatrix(1, r1, from);
        }
        if (r2[0] != r[0] || r2[1] != r[1] || r1[0] != r[0])
            r[0] = ~r[0];
        /* Corner i has rows 8 (i % 2) and columns 8 (i / 2), or the other way round. */
        uint32_t *out = (uint32_t *)a.out + 128 * item;
        for (int i = 0; i < 4; i++) {
            const int down = TRANS ? i / 2 : i % 2, right = TRANS ? i % 2 : i / 2;
            simt_store(&out[(row + 8 * down) * 8 + pair + 4 * right], r[i]);
        }
        __syncwarp();
    }
}

gb10_status_t case_ldmatrix(const case_args_t *a, gb10_error_t *err)
{
    return a->which ? go(ldmatrix<true>, 1, 1, 32, 1, sizeof(matrix_shared_t), a, err)
                    : go(ldmatrix<false>, 1, 1, 32, 1, sizeof(matrix_shared_t), a, err);
}

/* ---- cp.async ---- */

enum { LINE = 128 };
typedef struct line_shared {
    alignas(16) float x[2][LINE + 4];
} line_shared_t;

/* 32 copies of 16 bytes and, from thread 32, one of a single real float and zeros. */
static __device__ __forceinline__ void fetch(line_shared_t *s, const float *x, int tile)
{
    const int i = (int)threadIdx.x;
    const float *from = x + (LINE + 4) * tile;
    if (i < 32)
        simt_cp_async(16, &s->x[tile % 2][4 * i], from + 4 * i);
    else if (i == 32)
        simt_cp_async_part(16, &s->x[tile % 2][LINE], from + LINE, 4);
    simt_cp_async_commit();
}

SIMT_KERNEL(cp_async, 64, a, case_args_t)
{
    SIMT_SHARED(s, line_shared_t);
    const float *x = (const float *)a.x;
    const int i = (int)threadIdx.x;
    fetch(s, x, 0);
    for (int tile = 0; tile < a.n; tile++) {
        if (tile + 1 < a.n) {
            fetch(s, x, tile + 1);
            simt_cp_async_wait(1);
        } else {
            simt_cp_async_wait(0);
        }
        __syncthreads();
        for (int j = i; j < LINE; j += 64) {
            const float *v = &s->x[tile % 2][j];
            simt_store(&((float *)a.out)[LINE * tile + j], v[0] + v[1] + s->x[tile % 2][LINE + 1]);
        }
        __syncthreads();
    }
}

gb10_status_t case_cp_async(const case_args_t *a, gb10_error_t *err)
{
    return go(cp_async, 1, 1, 64, 1, sizeof(line_shared_t), a, err);
}

/* ---- tensor maps ---- */

typedef struct tensor_shared {
    alignas(1024) float in[8][32];
    alignas(128) float out[8][32];
    simt_mbar_t full;
} tensor_shared_t;

SIMT_KERNEL(tensor_2d, 64, a, case_args_t)
{
    SIMT_SHARED(s, tensor_shared_t);
    const int x = 32 * (int)blockIdx.x - 4, y = 8 * (int)blockIdx.y - 2;
    if (threadIdx.x == 0) {
        simt_mbar_init(&s->full, 1);
        simt_mbar_init_fence();
        simt_mbar_expect_tx(&s->full, sizeof s->in);
        simt_tma_load_2d(s->in, &a.map_in, x, y, &s->full);
        simt_mbar_arrive(&s->full);
    }
    __syncthreads();
    simt_mbar_wait(&s->full, 0);
    for (unsigned i = threadIdx.x; i < 256; i += 64) {
        const unsigned at = simt_swizzle128(i * 4);
        s->out[i / 32][i % 32] = *(const float *)((const char *)s->in + at) + 1;
    }
    simt_proxy_fence();
    __syncthreads();
    if (threadIdx.x == 0) {
        simt_tma_store_2d(&a.map_out, x, y, s->out);
        simt_bulk_commit();
        simt_bulk_wait_read(0);
    }
}

gb10_status_t case_tensor(const case_args_t *a, gb10_error_t *err)
{
    return go(tensor_2d, (unsigned)a->n, (unsigned)a->which, 64, 1, sizeof(tensor_shared_t), a,
              err);
}

typedef struct cube_shared {
    alignas(128) unsigned char box[128];
    simt_mbar_t full;
} cube_shared_t;

SIMT_KERNEL(tensor_3d, 32, a, case_args_t)
{
    SIMT_SHARED(s, cube_shared_t);
    if (threadIdx.x > 0)
        return;
    const int x = 16 * (int)blockIdx.x, y = 4 * (int)blockIdx.y;
    simt_mbar_init(&s->full, 1);
    simt_mbar_init_fence();
    for (int z = 0; z < a.n; z += 2) {
        simt_mbar_arrive_tx(&s->full, sizeof s->box);
        simt_tma_load_3d(s->box, &a.map_in, x, y, z, &s->full);
        simt_mbar_wait(&s->full, (unsigned)z / 2 % 2);
        simt_tma_store_3d(&a.map_out, x, y, z, s->box);
        simt_bulk_commit();
        simt_bulk_wait_read(0);
    }
}

gb10_status_t case_tensor_3d(const case_args_t *a, gb10_error_t *err)
{
    return go(tensor_3d, 2, 2, 32, 1, sizeof(cube_shared_t), a, err);
}

/* ---- named barriers ---- */

enum { FULL = 1, EMPTY = 2 };
typedef struct named_shared {
    float tile[32];
} named_shared_t;

/* A block of three warps: the third does nothing and must not be waited for. */
SIMT_KERNEL(named, SIMT_BOUNDS(96, 1), a, case_args_t)
{
    SIMT_SHARED(s, named_shared_t);
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    if (warp == 0) {
        simt_setmaxnreg_dec(24);
        for (int tile = 0; tile < a.n; tile++) {
            if (tile > 0)
                simt_bar_sync(EMPTY, 64);
            s->tile[lane] = simt_load(&((const float *)a.x)[32 * tile + lane]);
            simt_bar_arrive(FULL, 64);
        }
    } else if (warp == 1) {
        for (int tile = 0; tile < a.n; tile++) {
            simt_bar_sync(FULL, 64);
            const float v = 2 * s->tile[lane] + s->tile[lane ^ 1] - s->tile[lane ^ 1];
            simt_store(&((float *)a.out)[32 * tile + lane], v + s->tile[lane]);
            if (tile + 1 < a.n)
                simt_bar_arrive(EMPTY, 64);
        }
    }
}

gb10_status_t case_named(const case_args_t *a, gb10_error_t *err)
{
    return go(named, 1, 1, 96, 1, sizeof(named_shared_t), a, err);
}
