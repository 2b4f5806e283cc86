#include "tests/simt/gpu_peers.h"

#include <dlfcn.h>
#include <stdio.h>

#include "kernels/core/view.h"

const char *const gpu_peer_names[GPU_PEERS] = {"cuBLAS", "cuSOLVER"};

/* As the manuals of cuBLAS and cuSOLVER declare them; 0 is success. */
typedef int open_fn(void **handle);
typedef int close_fn(void *handle);
typedef int stream_fn(void *handle, void *stream);
typedef int batched_fn(void *handle, int m, int n, void *const *A, int lda, void *const *tau,
                       int *info, int count);
typedef int need_fn(void *handle, int m, int n, void *A, int lda, int *lwork);
typedef int geqrf_fn(void *handle, int m, int n, void *A, int lda, void *tau, void *work, int lwork,
                     int *info);

static const struct {
    const char *file[2], *open, *close, *stream;
} names[GPU_PEERS] = {
    {{"libcublas.so.13", "libcublas.so"},
     "cublasCreate_v2",
     "cublasDestroy_v2",
     "cublasSetStream_v2"},
    {{"libcusolver.so.12", "libcusolver.so"},
     "cusolverDnCreate",
     "cusolverDnDestroy",
     "cusolverDnSetStream"},
};

/* A function of the library; a data pointer is read as one, as POSIX has it. */
#define FIND(fn, library, name) (*(fn **)&(void *){dlsym(library, name)})

void gpu_peers_open(gpu_peers_t *peers, void *stream)
{
    peers->stream = stream;
    for (int p = 0; p < GPU_PEERS; p++) {
        void *library = NULL;
        for (int f = 0; f < 2 && !library; f++)
            library = dlopen(names[p].file[f], RTLD_NOW | RTLD_LOCAL);
        peers->library[p] = library;
        peers->why[p][0] = 0;
        if (!library) {
            snprintf(peers->why[p], sizeof peers->why[p], "%s", dlerror());
            continue;
        }
        open_fn *open = FIND(open_fn, library, names[p].open);
        stream_fn *put = FIND(stream_fn, library, names[p].stream);
        int code = !open || !put ? -1 : open(&peers->handle[p]);
        if (code == 0)
            code = put(peers->handle[p], stream);
        if (code != 0)
            snprintf(peers->why[p], sizeof peers->why[p], "%s: code %d", names[p].open, code);
    }
}

void gpu_peers_close(gpu_peers_t *peers)
{
    for (int p = 0; p < GPU_PEERS; p++) {
        close_fn *shut =
            peers->handle[p] ? FIND(close_fn, peers->library[p], names[p].close) : NULL;
        if (shut)
            shut(peers->handle[p]);
        if (peers->library[p])
            dlclose(peers->library[p]);
        peers->library[p] = peers->handle[p] = NULL;
    }
}

static gb10_status_t batched(const gpu_peers_t *peers, const gpu_batch_t *b, gb10_error_t *err)
{
    const char *name = b->dtype == GB10_S ? "cublasSgeqrfBatched" : "cublasDgeqrfBatched";
    batched_fn *run = FIND(batched_fn, peers->library[GPU_CUBLAS], name);
    int info = 0;
    const int code = !run ? -1
                          : run(peers->handle[GPU_CUBLAS], b->n, b->n, b->A_list, b->n, b->tau_list,
                                &info, b->count);
    if (code != 0 || info != 0)
        return GB10_FAIL(err, GB10_ERR_DEVICE, "%s: code %d, info %d", name, code, info);
    return GB10_OK;
}

static gb10_status_t looped(const gpu_peers_t *peers, const gpu_batch_t *b, gb10_error_t *err)
{
    const int s = b->dtype == GB10_S;
    const char *name = s ? "cusolverDnSgeqrf" : "cusolverDnDgeqrf";
    void *library = peers->library[GPU_CUSOLVER], *handle = peers->handle[GPU_CUSOLVER];
    need_fn *need =
        FIND(need_fn, library, s ? "cusolverDnSgeqrf_bufferSize" : "cusolverDnDgeqrf_bufferSize");
    geqrf_fn *run = FIND(geqrf_fn, library, name);
    const int64_t size = (int64_t)gb10_dtype_size(b->dtype), n = b->n;
    int lwork = 0, code = need && run ? need(handle, b->n, b->n, b->A, b->n, &lwork) : -1;
    if (code == 0 && lwork * size > b->work_bytes)
        return GB10_FAIL(err, GB10_ERR_MEMORY, "%s of %d wants %d elements to work in", name, b->n,
                         lwork);
    for (int64_t i = 0; i < b->count && code == 0; i++)
        code = run(handle, b->n, b->n, (char *)b->A + i * n * n * size, b->n,
                   (char *)b->tau + i * n * size, b->work, lwork, b->info);
    return code == 0 ? GB10_OK : GB10_FAIL(err, GB10_ERR_DEVICE, "%s: code %d", name, code);
}

gb10_status_t gpu_peer_start(const gpu_peers_t *peers, int peer, const gpu_batch_t *batch,
                             gb10_error_t *err)
{
    return peer == GPU_CUBLAS ? batched(peers, batch, err) : looped(peers, batch, err);
}
