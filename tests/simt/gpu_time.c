/* What the QR kernels take on the GPU, in device memory: events around the launch alone, the best
 * of some tries; beside it a copy on the device of as many bytes, multiply-adds in registers, and
 * the libraries of gpu_peers.h, try by try in turn. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/cuda_call.h"
#include "kernels/cuda/qr_plan.h"
#include "kernels/gb10.h"
#include "tests/simt/gpu_peers.h"
#include "tests/simt/gpu_run.h"
#include "tests/support/test.h"

enum {
    BYTES = 256 << 20,
    TRIES = 5,
    NB = 32,
    LOOPED = 64, /* matrices that a loop over single calls is timed on */
    A = 0,
    V,
    T,
    R,
    TAU,
    OUTPUTS,
    INFO = OUTPUTS,
    BUFFERS
};

typedef struct bench {
    cuda_device_t device;
    void *stream;
    gpu_clock_t clock;
    char *memory[BUFFERS], *scratch;
    double bandwidth; /* bytes/s of the copy, read and written */
    double peak[2];   /* flops/s of s and d                    */
    gpu_peers_t peers;
} bench_t;

static gb10_error_t err;
#define GOOD(call)                                                                                 \
    do {                                                                                           \
        memset(&err, 0, sizeof err);                                                               \
        gb10_status_t status_ = (call);                                                            \
        cr_assert(status_ == GB10_OK, "%s", err.message);                                          \
    } while (0)

static double number(gb10_dtype_t dtype, const void *p, int64_t at)
{
    return dtype == GB10_S ? (double)((const float *)p)[at] : ((const double *)p)[at];
}

/* Numbers in (-1, 1). */
static void fill(const bench_t *b, gb10_dtype_t dtype)
{
    const int64_t numbers = BYTES / (int64_t)gb10_dtype_size(dtype);
    void *host = malloc(BYTES);
    uint32_t state = 1;
    cr_assert(host, "no memory");
    for (int64_t i = 0; i < numbers; i++) {
        state = state * 1664525u + 1013904223u;
        const double x = (double)(state >> 8) / (1 << 23) - 1;
        if (dtype == GB10_S)
            ((float *)host)[i] = (float)x;
        else
            ((double *)host)[i] = x;
    }
    gb10_status_t status = cuda_memory_copy(b->memory[A], host, BYTES, b->stream, &err);
    if (status == GB10_OK)
        status = cuda_stream_wait(b->stream, &err);
    free(host);
    cr_assert(status == GB10_OK, "%s", err.message);
}

static gb10_view_t view(const bench_t *b, int buffer, gb10_dtype_t dtype, int n, int64_t count)
{
    const int rows = buffer == T && n > NB ? NB : n, cols = buffer == TAU ? 1 : n;
    gb10_view_t v = gb10_view_rows(dtype, b->memory[buffer], rows, cols, count);
    v.memory = GB10_DEVICE;
    return v;
}

/* Reflections keep the length of columns: of the last matrix, and info of all. */
static void right(const bench_t *b, const gb10_view_t *v, int n, int64_t count)
{
    const size_t bytes = (size_t)n * (size_t)n * gb10_dtype_size(v->dtype);
    const size_t at = (size_t)(count - 1) * bytes;
    char *a = malloc(bytes), *r = malloc(bytes);
    uint8_t *info = malloc((size_t)count);
    int64_t bad = 0;
    double far = 0;
    cr_assert(a && r && info, "no memory");
    GOOD(cuda_memory_copy(a, b->memory[A] + at, bytes, b->stream, &err));
    GOOD(cuda_memory_copy(r, b->memory[R] + at, bytes, b->stream, &err));
    GOOD(cuda_memory_copy(info, b->memory[INFO], (size_t)count, b->stream, &err));
    GOOD(cuda_stream_wait(b->stream, &err));
    for (int64_t i = 0; i < count; i++)
        bad += info[i] != GB10_INFO_OK;
    for (int j = 0; j < n; j++) {
        double before = 0, after = 0;
        for (int i = 0; i < n; i++) {
            const double x = number(v->dtype, a, i * n + j), y = number(v->dtype, r, i * n + j);
            before += x * x;
            after += y * y;
        }
        const double d = fabs(after / before - 1);
        far = d <= far ? far : d;
    }
    cr_expect(bad == 0, "%lld of %lld matrices of %d have failed", (long long)bad, (long long)count,
              n);
    cr_expect(far <= 8 * n * gb10_dtype_u(v->dtype), "n %d: columns of R are off by %g", n, far);
    free(a);
    free(r);
    free(info);
}

/* A batch of `count` for a peer: matrices in the place of V, lists behind info, work in T. */
static void lists(const bench_t *b, int peer, gb10_dtype_t dtype, int n, int64_t count,
                  gpu_batch_t *batch)
{
    enum { PART = BYTES / 16 };
    const size_t size = gb10_dtype_size(dtype);
    char *at = b->memory[INFO];
    *batch = (gpu_batch_t){.dtype = dtype,
                           .n = n,
                           .count = (int)(peer == GPU_CUSOLVER && count > LOOPED ? LOOPED : count),
                           .A = b->memory[V],
                           .tau = b->memory[TAU],
                           .A_list = (void **)(void *)(at + PART),
                           .tau_list = (void **)(void *)(at + 2 * (size_t)PART),
                           .work = b->memory[T],
                           .work_bytes = BYTES,
                           .info = (int *)(void *)at};
    if (peer != GPU_CUBLAS)
        return;
    const size_t bytes = (size_t)batch->count * sizeof(void *);
    cr_assert(bytes <= PART);
    void **list = malloc(2 * bytes);
    cr_assert(list, "no memory");
    for (int i = 0; i < batch->count; i++) {
        list[i] = b->memory[V] + (size_t)i * (size_t)n * (size_t)n * size;
        list[batch->count + i] = b->memory[TAU] + (size_t)i * (size_t)n * size;
    }
    gb10_status_t status = cuda_memory_copy(batch->A_list, list, bytes, b->stream, &err);
    if (status == GB10_OK)
        status = cuda_memory_copy(batch->tau_list, list + batch->count, bytes, b->stream, &err);
    if (status == GB10_OK)
        status = cuda_stream_wait(b->stream, &err);
    free(list);
    cr_assert(status == GB10_OK, "%s", err.message);
}

/* One try of a peer; infinite where it is not there or failed. */
static double peer_seconds(const bench_t *b, int peer, const gpu_batch_t *batch)
{
    double seconds = INFINITY;
    if (b->peers.why[peer][0])
        return seconds;
    GOOD(cuda_memory_copy(b->memory[V], b->memory[A], BYTES, b->stream, &err));
    GOOD(gpu_clock_start(&b->clock, b->stream, &err));
    const gb10_status_t status = gpu_peer_start(&b->peers, peer, batch, &err);
    const gb10_error_t failed = err;
    GOOD(gpu_clock_stop(&b->clock, b->stream, &seconds, &err));
    if (status != GB10_OK)
        printf("%s: %s\n", gpu_peer_names[peer], failed.message);
    return status == GB10_OK ? seconds : INFINITY;
}

static void row(bench_t *b, gb10_dtype_t dtype, int n)
{
    const size_t size = gb10_dtype_size(dtype);
    const int64_t count = BYTES / ((int64_t)size * n * n);
    gb10_view_t v[OUTPUTS];
    qr_plan_t plan;
    const char *why = qr_plan_make(&plan, &b->device, dtype, n, n, NB, 1, 0);
    cr_assert(!why, "%s", why ? why : "");
    while (plan.most > 1 && plan.work * plan.most * (size_t)plan.cluster > b->device.memory / 8)
        plan.most /= 2;
    cuda_flight_t flight = {.count = count, .stream = b->stream};
    double bytes = 0, best = INFINITY;
    for (int i = 0; i < OUTPUTS; i++) {
        v[i] = view(b, i, dtype, n, count);
        flight.view[i] = cuda_view(&v[i]);
        bytes += (double)size * (double)(v[i].m * v[i].n * count);
    }
    const gb10_geqrf_args_t args = {
        .A = &v[A], .V = &v[V], .T = &v[T], .R = &v[R], .tau = &v[TAU], .nb = NB};
    const cuda_call_t call = {
        .work = plan.work * plan.most * (size_t)plan.cluster, .args = &args, .plan = &plan};
    cuda_memory_free(b->scratch, 0);
    b->scratch = NULL;
    GOOD(cuda_memory_new((void **)&b->scratch, 256 + call.work, 0, &err));
    flight.scratch = b->scratch;
    flight.info = (uint8_t *)b->memory[INFO];
    gpu_batch_t other[GPU_PEERS];
    double theirs[GPU_PEERS] = {INFINITY, INFINITY};
    for (int p = 0; p < GPU_PEERS; p++)
        lists(b, p, dtype, n, count, &other[p]);
    for (int i = 0; i <= TRIES; i++) {
        double seconds;
        for (int p = 0; p < GPU_PEERS; p++)
            theirs[p] = fmin(theirs[p], i > 0 ? peer_seconds(b, p, &other[p]) : INFINITY);
        GOOD(cuda_memory_zero(b->scratch, 256, b->stream, &err));
        GOOD(cuda_memory_zero(b->memory[INFO], (size_t)count, b->stream, &err));
        GOOD(gpu_clock_start(&b->clock, b->stream, &err));
        GOOD(cuda_geqrf_start(&call, &flight, &err));
        GOOD(gpu_clock_stop(&b->clock, b->stream, &seconds, &err));
        if (i > 0 && seconds < best) /* the first one loads the kernel */
            best = seconds;
    }
    const double flops = 4.0 / 3 * n * n * n * (double)count;
    printf("%-8s %c %5d %8lld %11.4f %9.1f %8.1f %% %8.1f %%", qr_kind_names[plan.kind],
           gb10_dtype_letter(dtype), n, (long long)count, best / (double)count * 1e6,
           bytes / best / 1e9, 100 * bytes / best / b->bandwidth,
           100 * flops / best / b->peak[dtype]);
    for (int p = 0; p < GPU_PEERS; p++)
        printf(" %11.4f", theirs[p] / other[p].count * 1e6);
    printf("\n");
    right(b, &v[A], n, count);
}

static void copies(bench_t *b)
{
    double best = INFINITY;
    for (int i = 0; i <= TRIES; i++) {
        double seconds;
        GOOD(gpu_clock_start(&b->clock, b->stream, &err));
        GOOD(cuda_memory_copy(b->memory[V], b->memory[A], BYTES, b->stream, &err));
        GOOD(gpu_clock_stop(&b->clock, b->stream, &seconds, &err));
        best = i > 0 && seconds < best ? seconds : best;
    }
    b->bandwidth = 2.0 * BYTES / best;
    printf("copy of %d MiB on the device: %.1f GB/s, read and written\n", BYTES >> 20,
           b->bandwidth / 1e9);
}

static void peaks(bench_t *b)
{
    void *out = NULL;
    GOOD(cuda_memory_new(&out, gpu_peak_bytes(b->device.processors), 0, &err));
    for (int wide = 0; wide < 2; wide++)
        for (int i = 0; i <= TRIES; i++) {
            double seconds, flops;
            GOOD(gpu_clock_start(&b->clock, b->stream, &err));
            GOOD(gpu_peak_start(wide, b->device.processors, out, b->stream, &flops, &err));
            GOOD(gpu_clock_stop(&b->clock, b->stream, &seconds, &err));
            if (i > 0)
                b->peak[wide] = fmax(b->peak[wide], flops / seconds);
        }
    cuda_memory_free(out, 0);
    printf("multiply-adds in registers on the device: %.2f TF/s fp32, %.2f TF/s fp64\n",
           b->peak[0] / 1e12, b->peak[1] / 1e12);
}

Test(time, device)
{
    cuda_device_t d;
    GOOD(cuda_device_query(&d, &err));
    printf("%s, sm_%d, %d multiprocessors, %zu bytes of shared memory a block, %s host memory\n",
           d.name, d.arch, d.processors, d.shared_block, d.direct ? "reads" : "does not read");
}

Test(time, kernels)
{
    static bench_t b;
    GOOD(cuda_device_query(&b.device, &err));
    GOOD(cuda_stream_open(&b.stream, &err));
    GOOD(gpu_clock_open(&b.clock, &err));
    for (int i = 0; i < BUFFERS; i++)
        GOOD(cuda_memory_new((void **)&b.memory[i], i < TAU ? BYTES : BYTES / 4, 0, &err));
    fill(&b, GB10_S);
    copies(&b);
    peaks(&b);
    gpu_peers_open(&b.peers, b.stream);
    for (int p = 0; p < GPU_PEERS; p++)
        if (b.peers.why[p][0])
            printf("skipped: %s: %s\n", gpu_peer_names[p], b.peers.why[p]);
    printf("%-8s %c %5s %8s %11s %9s %10s %10s %11s %11s\n", "kernel", 't', "n", "batch",
           "us/matrix", "GB/s", "of a copy", "of peak", gpu_peer_names[0], gpu_peer_names[1]);
    for (int dtype = GB10_S; dtype <= GB10_D; dtype++) {
        fill(&b, (gb10_dtype_t)dtype);
        for (int n = 8; n <= 512; n *= 2)
            row(&b, (gb10_dtype_t)dtype, n);
    }
    for (int i = 0; i < BUFFERS; i++)
        cuda_memory_free(b.memory[i], 0);
    cuda_memory_free(b.scratch, 0);
    gpu_peers_close(&b.peers);
    gpu_clock_close(&b.clock);
    cuda_stream_close(b.stream);
}
