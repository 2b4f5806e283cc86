/* LAPACK-shaped entry points: thin wrappers around the calls with args structs. */
#include <inttypes.h>

#include "kernels/core/view.h"
#include "kernels/handle.h"

/* A column-major batch from an entry point's arguments. */
static gb10_view_t columns_of(gb10_dtype_t dtype, const void *A, int64_t m, int64_t n, int64_t lda,
                              int64_t stride, int64_t count)
{
    gb10_view_t v = {.dtype = dtype, .m = m, .n = n, .count = count};
    v.base = (void *)(uintptr_t)A;
    v.rs = 1;
    v.cs = lda;
    v.bs = stride;
    return v;
}

/* The sizes that the views below would report under other names. */
static gb10_status_t check_shape(int64_t m, int64_t n, int64_t lda, int64_t ldt, int64_t nb,
                                 int64_t count, gb10_error_t *err)
{
    int64_t k = m < n ? m : n, b = nb < k ? nb : k;
    const char *name = "batched_geqrf";
    if (m < 0)
        return GB10_FAIL(err, GB10_ERR_INVALID, "%s: m = %" PRId64 " is negative", name, m);
    if (n < 0)
        return GB10_FAIL(err, GB10_ERR_INVALID, "%s: n = %" PRId64 " is negative", name, n);
    if (lda < (m > 1 ? m : 1))
        return GB10_FAIL(err, GB10_ERR_INVALID,
                         "%s: lda = %" PRId64 " must be at least max(1, m), m = %" PRId64, name,
                         lda, m);
    if (nb < 1)
        return GB10_FAIL(err, GB10_ERR_INVALID, "%s: nb = %" PRId64 " must be at least 1", name,
                         nb);
    if (ldt < (b > 1 ? b : 1))
        return GB10_FAIL(err, GB10_ERR_INVALID,
                         "%s: ldt = %" PRId64 " must be at least max(1, min(nb, k)) = %" PRId64,
                         name, ldt, b);
    if (count < 0)
        return GB10_FAIL(err, GB10_ERR_INVALID, "%s: batch_count = %" PRId64 " is negative", name,
                         count);
    return GB10_OK;
}

/* In-place factorisation of A with the outputs that LAPACK has. */
static gb10_status_t factor_in_place(gb10_handle_t *handle, const gb10_view_t *A, void *tau,
                                     void *T, int64_t ldt, int64_t nb, gb10_mode_t mode,
                                     uint8_t *info)
{
    int64_t k = A->m < A->n ? A->m : A->n, b = nb < k ? nb : k > 1 ? k : 1;
    gb10_view_t tau_view = gb10_view_rows(A->dtype, tau, k, 1, A->count);
    gb10_view_t t_view = gb10_view_cols(A->dtype, T, b, k, T ? ldt : b, A->count);
    gb10_geqrf_args_t args = {.A = A,
                              .packed = A,
                              .tau = tau ? &tau_view : NULL,
                              .T = T ? &t_view : NULL,
                              .nb = nb,
                              .mode = mode,
                              .info = info};
    return gb10_geqrf(handle, &args);
}

gb10_status_t gb10_batched_geqrf(gb10_handle_t *handle, gb10_dtype_t dtype, int64_t m, int64_t n,
                                 void *A, int64_t lda, int64_t strideA, void *tau, void *T,
                                 int64_t ldt, int64_t nb, int64_t batch_count,
                                 gb10_mode_t precision_mode, uint8_t *info)
{
    if (!handle)
        return GB10_ERR_INVALID;
    gb10_error_t *err = gb10_handle_error(handle);
    gb10_status_t status = check_shape(m, n, lda, T ? ldt : nb, nb, batch_count, err);
    if (status != GB10_OK)
        return status;
    gb10_view_t view = columns_of(dtype, A, m, n, lda, strideA, batch_count);
    if (batch_count > 1 && m > 0 && n > 0 && strideA < gb10_view_extent(&view))
        return GB10_FAIL(err, GB10_ERR_INVALID,
                         "batched_geqrf: strideA = %" PRId64 " is too small for %" PRId64
                         " x %" PRId64 ", lda = %" PRId64,
                         strideA, m, n, lda);
    return factor_in_place(handle, &view, tau, T, ldt, nb, precision_mode, info);
}

gb10_status_t gb10_batched_geqrf_pointers(gb10_handle_t *handle, gb10_dtype_t dtype, int64_t m,
                                          int64_t n, void *const *A, int64_t lda, void *tau,
                                          void *T, int64_t ldt, int64_t nb, int64_t batch_count,
                                          gb10_mode_t precision_mode, uint8_t *info)
{
    if (!handle)
        return GB10_ERR_INVALID;
    gb10_error_t *err = gb10_handle_error(handle);
    gb10_status_t status = check_shape(m, n, lda, T ? ldt : nb, nb, batch_count, err);
    if (status != GB10_OK)
        return status;
    gb10_view_t view = columns_of(dtype, NULL, m, n, lda, 0, batch_count);
    view.layout = GB10_POINTERS;
    view.list = A;
    return factor_in_place(handle, &view, tau, T, ldt, nb, precision_mode, info);
}

/* Packed batches: the enum is checked here, since a view cannot be made without it. */
static gb10_status_t check_packed(const char *name, gb10_layout_t layout, int64_t m, int64_t n,
                                  int64_t count, gb10_error_t *err)
{
    if (layout != GB10_INTERLEAVED && layout != GB10_TILES && layout != GB10_PANELS)
        return GB10_FAIL(err, GB10_ERR_INVALID, "%s: layout = %d is not a packed one", name,
                         (int)layout);
    if (m < 0 || n < 0 || count < 0)
        return GB10_FAIL(err, GB10_ERR_INVALID,
                         "%s: m = %" PRId64 ", n = %" PRId64 ", batch_count = %" PRId64
                         ": one is negative",
                         name, m, n, count);
    return GB10_OK;
}

gb10_status_t gb10_batched_csyrk(gb10_handle_t *handle, gb10_dtype_t dtype, char uplo, char trans,
                                 int64_t n, int64_t k, const double alpha[2], const void *A,
                                 int64_t lda, int64_t strideA, const double beta[2], void *C,
                                 int64_t ldc, int64_t strideC, int64_t batch_count)
{
    if (!handle)
        return GB10_ERR_INVALID;
    gb10_error_t *err = gb10_handle_error(handle);
    const int64_t rows = trans == 'N' ? n : k, cols = trans == 'N' ? k : n;
    if (!alpha || !beta)
        return GB10_FAIL(err, GB10_ERR_INVALID, "batched_csyrk: %s is null",
                         alpha ? "beta" : "alpha");
    if (n < 0 || k < 0 || batch_count < 0)
        return GB10_FAIL(err, GB10_ERR_INVALID,
                         "batched_csyrk: n = %" PRId64 ", k = %" PRId64 ", batch_count = %" PRId64
                         " must not be negative",
                         n, k, batch_count);
    if (lda < (rows > 1 ? rows : 1) || ldc < (n > 1 ? n : 1))
        return GB10_FAIL(err, GB10_ERR_INVALID,
                         "batched_csyrk: lda = %" PRId64 ", ldc = %" PRId64
                         " must be at least %" PRId64 " and %" PRId64,
                         lda, ldc, rows > 1 ? rows : 1, n > 1 ? n : 1);
    gb10_view_t a = columns_of(dtype, (void *)A, rows, cols, lda, strideA, batch_count);
    gb10_view_t c = columns_of(dtype, C, n, n, ldc, strideC, batch_count);
    gb10_syrk_args_t args = {.A = &a,
                             .C = &c,
                             .alpha = {alpha[0], alpha[1]},
                             .beta = {beta[0], beta[1]},
                             .uplo = uplo,
                             .trans = trans};
    return gb10_syrk(handle, &args);
}

gb10_status_t gb10_packed_batched_geqrf(gb10_handle_t *handle, gb10_layout_t layout, int64_t width,
                                        int64_t group, gb10_dtype_t dtype, int64_t m, int64_t n,
                                        void *A, void *tau, void *T, int64_t ldt, int64_t nb,
                                        int64_t batch_count, gb10_mode_t precision_mode,
                                        uint8_t *info)
{
    if (!handle)
        return GB10_ERR_INVALID;
    gb10_error_t *err = gb10_handle_error(handle);
    gb10_status_t status = GB10_OK;
    GB10_TRY(check_packed("packed_batched_geqrf", layout, m, n, batch_count, err));
    GB10_TRY(check_shape(m, n, m > 1 ? m : 1, T ? ldt : nb, nb, batch_count, err));
    gb10_view_t view = gb10_view_packed(layout, dtype, A, m, n, batch_count, width, group);
    status = factor_in_place(handle, &view, tau, T, ldt, nb, precision_mode, info);
cleanup:
    return status;
}

gb10_status_t gb10_batched_pack(gb10_handle_t *handle, gb10_layout_t layout, int64_t width,
                                int64_t group, gb10_dtype_t dtype, int64_t m, int64_t n,
                                const void *A, int64_t lda, int64_t strideA, void *packed,
                                int64_t batch_count, uint8_t *info)
{
    if (!handle)
        return GB10_ERR_INVALID;
    gb10_status_t status =
        check_packed("batched_pack", layout, m, n, batch_count, gb10_handle_error(handle));
    if (status != GB10_OK)
        return status;
    gb10_view_t from = columns_of(dtype, A, m, n, lda, strideA, batch_count);
    gb10_view_t to = gb10_view_packed(layout, dtype, packed, m, n, batch_count, width, group);
    gb10_repack_args_t args = {.from = &from, .to = &to, .info = info};
    return gb10_repack(handle, &args);
}

gb10_status_t gb10_batched_unpack(gb10_handle_t *handle, gb10_layout_t layout, int64_t width,
                                  int64_t group, gb10_dtype_t dtype, int64_t m, int64_t n,
                                  const void *packed, void *A, int64_t lda, int64_t strideA,
                                  int64_t batch_count, uint8_t *info)
{
    if (!handle)
        return GB10_ERR_INVALID;
    gb10_status_t status =
        check_packed("batched_unpack", layout, m, n, batch_count, gb10_handle_error(handle));
    if (status != GB10_OK)
        return status;
    void *base = (void *)(uintptr_t)packed;
    gb10_view_t from = gb10_view_packed(layout, dtype, base, m, n, batch_count, width, group);
    gb10_view_t to = columns_of(dtype, A, m, n, lda, strideA, batch_count);
    gb10_repack_args_t args = {.from = &from, .to = &to, .info = info};
    return gb10_repack(handle, &args);
}
