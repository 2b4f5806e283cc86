/* Q from V and T, Q or Q^H times C, and T from V and tau.
 *
 * A block takes W columns of C (16 of float, else 8) and keeps them while all reflectors pass: for
 * each piece of at most W reflectors inside a block of T, V comes from global memory in the form
 * with ones and zeros, the diagonal part of T with it (T of a piece is a part of T of its block),
 * and the update of qr_update.h does the rest; Q C takes the pieces from the last to the first, Q^H
 * C the other way round. C from the right is C^H from the left. Columns of C near the ends of the
 * range are scaled by a power of two meanwhile.
 * Form Q: columns of the identity, of which pieces that begin below a column leave it alone.
 *
 * Shared memory: qr_apply_layout; slabs that do not fit are in global memory. Barriers: of the
 * block; two a piece beside those of the update. */
#include "kernels/cuda/qr_kernels.h"
#include "kernels/cuda/qr_update.h"

template <class T> QR_INLINE block_ctx<T> context(const qr_apply_args_t &a, block_shared<T> *s)
{
    block_ctx<T> x = {};
    char *shared = (char *)s;
    x.s = s;
    x.m = a.m, x.k = a.k, x.nb = a.nb, x.n = QR_WIDTH(T);
    x.tid = (int)threadIdx.x, x.lane = x.tid % 32, x.warp = x.tid / 32;
    x.threads = (int)blockDim.x, x.warps = x.threads / 32;
    x.size = 1;
    x.w = (warp_shared_t<T> *)(shared + a.layout.warps);
    x.own = x.w + x.warp;
    x.late = (T *)(shared + a.layout.t);
    x.shift = (int *)(shared + a.layout.shift);
    x.slabs = (T *)(a.work ? a.work + blockIdx.x * a.stride : shared + a.layout.slabs);
    x.panels = (T *)(a.work ? (char *)x.slabs + a.stride / 2 : shared + a.layout.panel);
    return x;
}

/* Columns first .. of C to the slab. */
template <class T>
QR_INLINE void load(const block_ctx<T> &x, const qr_apply_args_t &a, qr_cells<T> C, int first)
{
    enum { W = QR_WIDTH(T) };
    for (int64_t e = x.tid; e < (int64_t)x.m * W; e += x.threads) {
        const int i = (int)(e / W), c = (int)(e % W), j = first + c;
        T value = qr_make<T>(a.form && i == j, 0);
        if (!a.form && j < a.cols)
            value = simt_load(qr_at(C, i, j));
        x.slabs[qr_slot<T>(i, c)] = a.right ? qr_conj(value) : value;
    }
}
template <class T>
QR_INLINE void store(const block_ctx<T> &x, const qr_apply_args_t &a, qr_cells<T> C, int first)
{
    enum { W = QR_WIDTH(T) };
    for (int64_t e = x.tid; e < (int64_t)x.m * W; e += x.threads) {
        const int i = (int)(e / W), c = (int)(e % W), j = first + c;
        T value = x.slabs[qr_slot<T>(i, c)];
        if (!a.form && x.shift[c] != 0)
            value = qr_shift(value, x.shift[c]);
        if (j < a.cols)
            simt_store(qr_at(C, i, j), a.right ? qr_conj(value) : value);
    }
}

/* Reflectors j0 .. j0 + count - 1 of V with ones and zeros, and their T; p: first of T's block. */
template <class T>
QR_INLINE void load_piece(const block_ctx<T> &x, qr_cells<T> V, qr_cells<T> t, int p, int j0,
                          int count)
{
    enum { W = QR_WIDTH(T) };
    for (int64_t e = (int64_t)j0 * W + x.tid; e < (int64_t)x.m * W; e += x.threads) {
        const int i = (int)(e / W), c = (int)(e % W);
        T value = qr_make<T>(i == j0 + c && c < count, 0);
        if (i > j0 + c && c < count)
            value = simt_load(qr_at(V, i, j0 + c));
        x.panels[qr_slot<T>(i, c)] = value;
    }
    for (int e = x.tid; e < W * W; e += x.threads) {
        const int l = e % W, q = e / W;
        T value = qr_zero<T>();
        if (l <= q && q < count)
            value = simt_load(qr_at(t, j0 - p + l, j0 + q));
        x.s->t[0][e] = value;
    }
}

template <class T>
QR_INLINE void all_pieces(const block_ctx<T> &x, const qr_apply_args_t &a, int64_t b, int first)
{
    enum { W = QR_WIDTH(T) };
    const int rows = a.nb < a.k ? a.nb : a.k, each = (rows + W - 1) / W;
    const int blocks = (a.k + rows - 1) / rows, pieces = blocks * each;
    const qr_cells<T> V = qr_matrix<T>(a.V, b, a.m, a.k), t = qr_matrix<T>(a.T, b, rows, a.k);
    for (int at = 0; at < pieces; at++) {
        const int piece = a.adjoint ? at : pieces - 1 - at;
        const int p = piece / each * rows, j0 = p + piece % each * W;
        const int end = p + rows < a.k ? p + rows : a.k, left = end - j0;
        if (left <= 0 || (a.form && j0 >= first + W))
            continue;
        load_piece(x, V, t, p, j0, left < W ? left : (int)W);
        __syncthreads();
        if (a.adjoint)
            qr_apply<T, 1>(x, x.panels, x.s->t[0], x.slabs, j0);
        else
            qr_apply<T, 0>(x, x.panels, x.s->t[0], x.slabs, j0);
        __syncthreads();
    }
}

template <class T>
SIMT_KERNEL(qr_apply_blocks, SIMT_BOUNDS(32 * QR_WARPS, sizeof(T) == 16 ? 1 : 2), a,
            qr_apply_args_t)
{
    enum { W = QR_WIDTH(T) };
    SIMT_SHARED(s, block_shared<T>);
    const block_ctx<T> x = context<T>(a, s);
    const int64_t panels = (a.cols + W - 1) / W;
    for (int64_t item = blockIdx.x; item < a.count * panels; item += gridDim.x) {
        const int64_t b = item / panels;
        const int first = (int)(item % panels) * W;
        qr_cells<T> C =
            a.right ? qr_matrix<T>(a.C, b, a.cols, a.m) : qr_matrix<T>(a.C, b, a.m, a.cols);
        if (a.right)
            C = {C.p, C.cs, C.rs};
        bool nonfinite = false; /* stays in its column */
        load(x, a, C, first);
        __syncthreads();
        if (!a.form)
            (void)qr_prepare(x, &nonfinite);
        all_pieces(x, a, b, first);
        store(x, a, C, first); /* load of the next has the same thread for each number */
    }
}

template <class T> SIMT_KERNEL(qr_form_t, 32 * QR_WARPS, a, qr_apply_args_t)
{
    SIMT_SHARED(s, block_shared<T>);
    const block_ctx<T> x = context<T>(a, s);
    const int rows = a.nb < a.k ? a.nb : a.k;
    for (int64_t b = blockIdx.x; b < a.count; b += gridDim.x) {
        const qr_cells<T> V = qr_matrix<T>(a.V, b, a.m, a.k), t = qr_matrix<T>(a.T, b, rows, a.k);
        const qr_cells<T> tau = qr_matrix<T>(a.tau, b, a.k, 1);
        for (int j = x.tid; j < a.k; j += x.threads)
            simt_store(qr_at(t, j % rows, j), simt_load(qr_at(tau, j, 0)));
        for (int first = 0; first < a.k; first += rows)
            qr_late_block(x, t, first, [&](int i, int j) {
                return i == j ? qr_one<T>() : simt_load(qr_at(V, i, j));
            });
    }
}

template <class T>
static gb10_status_t apply(const simt_launch_t *how, const qr_apply_args_t *a, gb10_error_t *err)
{
    return simt_launch(how, qr_apply_blocks<T>, a, err);
}
template <class T>
static gb10_status_t form_t(const simt_launch_t *how, const qr_apply_args_t *a, gb10_error_t *err)
{
    return simt_launch(how, qr_form_t<T>, a, err);
}
typedef gb10_status_t launch_fn(const simt_launch_t *, const qr_apply_args_t *, gb10_error_t *);

gb10_status_t qr_apply_launch(gb10_dtype_t dtype, const simt_launch_t *how,
                              const qr_apply_args_t *a, gb10_error_t *err)
{
    static launch_fn *const type[GB10_DTYPES] = {apply<float>, apply<double>, apply<cfloat_t>,
                                                 apply<cdouble_t>};
    return type[dtype](how, a, err);
}

gb10_status_t qr_form_t_launch(gb10_dtype_t dtype, const simt_launch_t *how,
                               const qr_apply_args_t *a, gb10_error_t *err)
{
    static launch_fn *const type[GB10_DTYPES] = {form_t<float>, form_t<double>, form_t<cfloat_t>,
                                                 form_t<cdouble_t>};
    return type[dtype](how, a, err);
}
