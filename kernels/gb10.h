/* libgb10qr: batched Householder QR of very many dense matrices.
 *
 * A = Q R with Q = H_1 ... H_k, k = min(m, n), H_j = I - tau_j v_j v_j^H, v_j(1) = 1; signs and tau
 * are LAPACK's (geqrf, geqrt). Block p of nb columns: H_(p nb + 1) ... = I - V_p T_p V_p^H, T_p
 * upper triangular with tau on its diagonal.
 *
 * Threads: one caller at a time per handle; two handles in two threads are independent. A call
 * works in the caller's thread unless gb10_set_threads gave the handle a team. The handle
 * owns the workspace of its calls, which grows to the largest need and is kept; a call that finds
 * it large enough allocates nothing. Every function returns a status; gb10_last_error gives the
 * message of the last failure on that handle. Nothing here prints or exits. A matrix that cannot be
 * factored gets its own info value, never touches its neighbours and is not an error of the call.
 *
 * Arguments are checked before any work: GB10_ERR_INVALID names the operation, the argument and its
 * sizes, and nothing has been written. Outputs may not overlap each other or an input, except that
 * `packed` may be exactly A; with pointer lists only matrices of equal index are compared, the rest
 * is the caller's duty. m, n or count = 0 succeeds and touches nothing.
 */
#ifndef GB10_H
#define GB10_H

#include "kernels/core/status.h"
#include "kernels/core/types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GB10_VERSION "0.1.0"

typedef struct gb10_handle gb10_handle_t;

/* Creates a handle. backend: "auto" (or NULL: the highest priority that is usable here) or a name
 * of gb10_backend_list; an unknown name is GB10_ERR_INVALID and lists the names, one that cannot be
 * used here is GB10_ERR_UNSUPPORTED. err may be NULL. *handle is NULL on failure. Release with
 * gb10_destroy (NULL allowed). An operation that the backend lacks is done by cpu-ref when all its
 * views are in memory that the CPU can read. */
gb10_status_t gb10_create(gb10_handle_t **handle, const char *backend, gb10_error_t *err);
void gb10_destroy(gb10_handle_t *handle);

/* Name of the backend in use, the reason it was chosen, and the instruction set of its kernels
 * ("baseline", "avx2", "avx512", "neon"). Strings live as long as the handle. */
const char *gb10_backend_name(const gb10_handle_t *handle);
const char *gb10_backend_reason(const gb10_handle_t *handle);
const char *gb10_isa_name(const gb10_handle_t *handle);

/* Instruction sets of the handle's backend from the lowest (level 0); NULL past the end. The level
 * in use. FUGU_ISA=<name> at gb10_create forces one: ranks of a run agree on the lowest. */
const char *gb10_isa_at(const gb10_handle_t *handle, int level);
int gb10_isa_level(const gb10_handle_t *handle);

/* The team that the handle's calls share a batch out to, the caller's thread included: 1 at first.
 * 0: as many as the process may use cores (its affinity mask). Results have the same bits for any
 * number. The threads sleep between calls, block all signals and end with the handle or with the
 * next call of this. Each has its own workspace. On failure the old team stays. */
gb10_status_t gb10_set_threads(gb10_handle_t *handle, int threads);
int gb10_threads(const gb10_handle_t *handle);

/* The table that the kernels choose block sizes by. Text as gb10_tuning_text gives it (isa, dtype,
 * shape, n_max, kernel, block, strip and provenance by commas; "#" starts a comment); series that
 * are not in it are the built-in ones; NULL: all are. GB10_ERR_FORMAT, with the line, for what
 * cannot be read or has another version; the old table stays then. Bits may depend on the table:
 * the stamp, "built-in v1 5f0a3c9e", names it and changes with everything that decides. It lives
 * until the next gb10_set_tuning. gb10_tuning_text is as snprintf: it returns the length. */
gb10_status_t gb10_set_tuning(gb10_handle_t *handle, const char *text);
const char *gb10_tuning_stamp(const gb10_handle_t *handle);
size_t gb10_tuning_text(const gb10_handle_t *handle, char *text, size_t size);

/* Name of the i-th known backend and, in *reason, NULL when usable or why not. NULL past the end.
 */
const char *gb10_backend_list(int i, const char **reason);

/* The record of the last call that can fail; status GB10_OK when it succeeded. */
const gb10_error_t *gb10_last_error(const gb10_handle_t *handle);

/* Where the time of a factorisation goes, in seconds of the calling threads (summed over a team).
 */
typedef struct gb10_times {
    double pack;   /* reading A into the working copy, with scan and scaling    */
    double factor; /* reflectors and updates                                    */
    double form_t; /* T beyond what the updates need anyway is not told apart   */
    double unpack; /* writing V, T, R, tau, packed                              */
} gb10_times_t;

/* Factorises a batch. Each matrix is read from A once; A is never written unless `packed` names the
 * same memory. Output views may be NULL when not wanted; shapes, with k = min(m, n) and
 * b = min(nb, k):
 *   V      m x k   unit lower trapezoidal, ones and zeros written
 *   T      b x k   LAPACK geqrt layout, zeros below each block's diagonal (and in unused rows)
 *   R      k x n   upper trapezoidal, exact zeros below the diagonal; real diagonal
 *   tau    k x 1
 *   packed m x n   LAPACK's V\R in one array
 * A matrix with info NONFINITE (3) or NOT_REPRESENTABLE (6) has all its outputs filled with one
 * quiet NaN. Views may have any layout; those that the kernels do not read or write themselves are
 * repacked on the way, a slice of the batch at a time. */
typedef struct gb10_geqrf_args {
    const gb10_view_t *A;
    const gb10_view_t *V, *T, *R, *tau, *packed;
    int64_t nb;          /* block size of T, >= 1 (32 is customary)                            */
    gb10_mode_t mode;    /* GB10_MODE_NATIVE                                                   */
    uint32_t variant;    /* 0: no backend has variants yet                                    */
    uint8_t *info;       /* count values of gb10_info_t, or NULL                               */
    gb10_times_t *times; /* or NULL; otherwise what was spent is added (the clock costs a little) */
} gb10_geqrf_args_t;
gb10_status_t gb10_geqrf(gb10_handle_t *handle, const gb10_geqrf_args_t *args);

/* Matrices of this kind that the handle's kernels factor together, one in each lane of a vector (1:
 * each alone). A batch that is no multiple takes as long as the next multiple; its bits are the
 * same. */
int64_t gb10_geqrf_granule(const gb10_handle_t *handle, gb10_dtype_t dtype, int64_t m, int64_t n,
                           int64_t nb);

/* Copies a batch from one layout into another, any pair of the layouts of types.h: bit for bit,
 * with the padding of `to` (zeros in tiles, copies of the last matrix in an incomplete group).
 * Packs, unpacks and transposes; a matrix with NaN or Inf is copied as well. */
enum { GB10_SCALE_MAX = 4096 };
typedef struct gb10_repack_args {
    const gb10_view_t *from, *to; /* same dtype, m, n, count; apart from each other              */
    const int32_t *scale;         /* count exponents within GB10_SCALE_MAX: matrix b is multiplied
                                     by 2^scale[b], rounded where that leaves the range; or NULL */
    uint8_t *info;                /* count: OK, or NONFINITE for a matrix of `from`; or NULL     */
} gb10_repack_args_t;
gb10_status_t gb10_repack(gb10_handle_t *handle, const gb10_repack_args_t *args);

/* T (b x k, geqrt layout) from V (m x k, unit lower trapezoidal) and tau (k x 1): larft by
 * blocks.*/
typedef struct gb10_form_t_args {
    const gb10_view_t *V, *tau, *T;
    int64_t nb;
} gb10_form_t_args_t;
gb10_status_t gb10_form_t(gb10_handle_t *handle, const gb10_form_t_args_t *args);

/* Q (m x q columns, k <= q <= m: k thin, m full) from V and T. */
typedef struct gb10_form_q_args {
    const gb10_view_t *V, *T, *Q;
    int64_t nb;
} gb10_form_q_args_t;
gb10_status_t gb10_form_q(gb10_handle_t *handle, const gb10_form_q_args_t *args);

/* C <- op(Q) C (side 'L', C is m x c) or C op(Q) (side 'R', C is c x m), op by trans:
 * 'N' or 'C' ('T' is accepted for real types). C is overwritten. */
typedef struct gb10_apply_q_args {
    const gb10_view_t *V, *T, *C;
    int64_t nb;
    char side, trans;
} gb10_apply_q_args_t;
gb10_status_t gb10_apply_q(gb10_handle_t *handle, const gb10_apply_q_args_t *args);

/* Symmetric rank-k update of one triangle: C <- alpha op(A) op(A)^T + beta C, without conjugation
 * (BLAS csyrk, zsyrk); hermitian: C <- alpha op(A) op(A)^H + beta C with real alpha and beta
 * (cherk, zherk). C is n x n. trans 'N'       op(A) = A, n x k trans 'T', 'C'  op(A) = A^T (A^H
 * when hermitian), A is k x n; 'C' acts as 'T' when not hermitian, 'T' is not accepted when
 * hermitian uplo 'U' or 'L': that triangle of C is read and written, the other one keeps its bits.
 * alpha = 0: A is not read; beta = 0: C is not read; alpha = 0 (or k = 0) and beta = 1: C keeps its
 * bits. The diagonal keeps its imaginary part; hermitian: it gets 0. Inf, NaN and overflow come out
 * as in the complex definition, the products summed in the order of the reference BLAS: with 'N'
 * alpha times the entry of column j first, with 'T' and 'C' alpha times the sum. */
typedef struct gb10_syrk_args {
    const gb10_view_t *A, *C;
    double alpha[2], beta[2]; /* real and imaginary part; rounded to the type                     */
    char uplo, trans;
    int hermitian;
} gb10_syrk_args_t;
gb10_status_t gb10_syrk(gb10_handle_t *handle, const gb10_syrk_args_t *args);

/* Measures how good a factorisation is, in the next precision (double for s and c, double-double
 * for d and z), with u = 2^-24 or 2^-53. Works on every backend's output; host memory only.
 *   level NORMS   column_norm_error, rdiag, structure, finiteness  O(mn)
 *   level PROBE   NORMS and probe_error for a fixed +-1 vector     O(mn)
 *   level FULL    PROBE and all errors with Q rebuilt from V, T    O(mnk) */
typedef enum gb10_check_level {
    GB10_CHECK_NONE = 0,
    GB10_CHECK_NORMS = 1,
    GB10_CHECK_PROBE = 2,
    GB10_CHECK_FULL = 3
} gb10_check_level_t;

/* The three errors relative to A or a_j are what exceeds 4 sqrt(max(m, n) k) times the smallest
 * subnormal, so that results which had to be rounded to subnormals are judged fairly; a zero column
 * must be reproduced exactly (else the error is Inf). */
enum {
    GB10_BACKWARD_ERROR = 0,        /* ||A - QR||_F / ||A||_F                                  */
    GB10_COLUMN_BACKWARD_ERROR = 1, /* max_j ||(A - QR)e_j|| / ||a_j||                         */
    GB10_ORTHOGONALITY = 2,         /* ||I - Q^H Q||_F, thin Q                                 */
    GB10_COLUMN_NORM_ERROR = 3,     /* max_j | ||R e_j|| - ||a_j|| | / ||a_j||                 */
    GB10_T_CONSISTENCY = 4,         /* max over blocks of ||T + T^H - T V^H V T^H||_F
                                       / max(1, ||T||_F^2 / (2 b)), b columns in the block     */
    GB10_PROBE_ERROR = 5,           /* max of ||(A - QR)x||/||A||_F and ||Q^H Q x - x||, x = +-1*/
    GB10_RDIAG_MIN = 6,             /* smallest and largest |R_jj|                             */
    GB10_RDIAG_MAX = 7,
    GB10_METRICS = 8
};

/* "backward_error", ... in the order above. */
extern const char *const gb10_metric_names[GB10_METRICS];

/* The gate of a metric for one shape: the largest value that passes (as stored in metrics, not in
 * units of u); NaN for metrics without a gate (RDIAG_*). With k = min(m, n):
 *   backward_error         16 u max(1, sqrt(k / 1024))
 *   column_backward_error  32 u
 *   orthogonality          20 sqrt(k) u
 *   column_norm_error      16 u
 *   t_consistency          20 sqrt(k) u, as I - Q_p Q_p^H of a block is V X V^H with X what is
 *                          measured. An error E of T T^-1 gives X = -(E T^H + T E^H), and E grows
 *                          with |T|: so X is divided by ||T||_F^2 per column where that is more
 *                          than two reflectors' worth (usual blocks: 1 to 2.5, Frank's: 16)
 *   probe_error            4 times the larger gate of its two parts, each part being judged by 4
 *                          times its own: x is one draw, and the mean square over all x is the
 *                          Frobenius norm */
double gb10_gate(int metric, gb10_dtype_t dtype, int64_t m, int64_t n);

typedef struct gb10_check_args {
    const gb10_view_t *A, *V, *T, *R, *tau; /* V, T, tau may be NULL for level NORMS           */
    int64_t nb;
    const uint8_t *level; /* count levels (gb10_check_level_t), one per matrix               */
    uint8_t *info;        /* in: from geqrf; out: OK may become GATE_MISSED                  */
    double *metrics;      /* count x GB10_METRICS, NaN where not measured                    */
    const char **failed;  /* count names of the first missed gate or NULL; may be NULL       */
} gb10_check_args_t;

/* Judges every matrix with level above NONE and info OK, OK_ESCALATED or GATE_MISSED. A missed gate
 * sets GATE_MISSED and `failed` to the name of a metric, or to
 *   "finite"     A is finite and an output is not, or the other way round
 *   "structure"  V not unit lower trapezoidal, R not upper, non-zeros in T outside its triangles,
 *                imaginary part on R's diagonal, |tau - 1| > 1 + 4u with tau != 0, tau = 0 with a
 *                non-zero tail of v, or T's diagonal not exactly tau
 * info NONFINITE on a finite matrix, and NOT_REPRESENTABLE where every column norm is within the
 * range, are claims that do not hold: "finite" as well. Pointers in `failed` are static. */
gb10_status_t gb10_check(gb10_handle_t *handle, const gb10_check_args_t *args);

/* Compares the R of two factorisations of the same A, as far as R is determined. Signs (phases) of
 * rows may differ. Only the upper trapezoid is read. */
typedef struct gb10_r_difference {
    double worst_norm; /* max_j | ||R1 e_j|| - ||R2 e_j|| | / ||a_j||; gate 32 u                */
    double worst_abs;  /* || |R1| - |R2| ||_F / ||A||_F                                         */
    double bound;      /* gate of worst_abs: INFINITY when A is so ill-conditioned that R is not
                          determined, then the column norms (and backward errors) decide        */
    int agree;         /* 1 when both gates hold                                                */
} gb10_r_difference_t;
typedef struct gb10_compare_r_args {
    const gb10_view_t *A, *R1, *R2; /* R1, R2: k x n, or m x n as in packed                    */
    gb10_r_difference_t *result;    /* count                                                   */
} gb10_compare_r_args_t;
/* bound = 128 sqrt(k) u ||(R1 D)^-1||_F over the leading k columns, D the powers of two that make
 * their norms lie in [1, 2): two factorisations with columnwise backward errors of 22 u differ by
 * at most that to first order (Stewart 1977, Sun 1991, with column scaling). INFINITY when the
 * bound exceeds 1/16. */
gb10_status_t gb10_compare_r(gb10_handle_t *handle, const gb10_compare_r_args_t *args);

/* LAPACK-shaped entry points: column-major, fixed stride, factors in place as geqrf does.
 * A (lda >= max(1, m)) is overwritten by V\R; tau has k and T (ldt >= min(nb, k)) has ldt*k
 * elements per matrix, one matrix after the other; T, tau and info may be NULL. strideA in
 * elements. */
gb10_status_t gb10_batched_geqrf(gb10_handle_t *handle, gb10_dtype_t dtype, int64_t m, int64_t n,
                                 void *A, int64_t lda, int64_t strideA, void *tau, void *T,
                                 int64_t ldt, int64_t nb, int64_t batch_count,
                                 gb10_mode_t precision_mode, uint8_t *info);
/* The same with one pointer per matrix. */
gb10_status_t gb10_batched_geqrf_pointers(gb10_handle_t *handle, gb10_dtype_t dtype, int64_t m,
                                          int64_t n, void *const *A, int64_t lda, void *tau,
                                          void *T, int64_t ldt, int64_t nb, int64_t batch_count,
                                          gb10_mode_t precision_mode, uint8_t *info);

/* BLAS-shaped csyrk (dtype GB10_C; any type works), column-major, one matrix after the other: A
 * with lda >= max(1, n) for 'N', else max(1, k), C with ldc >= max(1, n); strides in elements. The
 * single matrix is batch_count 1. */
gb10_status_t gb10_batched_csyrk(gb10_handle_t *handle, gb10_dtype_t dtype, char uplo, char trans,
                                 int64_t n, int64_t k, const double alpha[2], const void *A,
                                 int64_t lda, int64_t strideA, const double beta[2], void *C,
                                 int64_t ldc, int64_t strideC, int64_t batch_count);

/* A packed batch (layout, width, group as in gb10_view_packed), factored in place: V\R in the
 * layout of A; tau and T as above. */
gb10_status_t gb10_packed_batched_geqrf(gb10_handle_t *handle, gb10_layout_t layout, int64_t width,
                                        int64_t group, gb10_dtype_t dtype, int64_t m, int64_t n,
                                        void *A, void *tau, void *T, int64_t ldt, int64_t nb,
                                        int64_t batch_count, gb10_mode_t precision_mode,
                                        uint8_t *info);
/* Between a column-major batch as above and a packed one of gb10_view_elements elements. info as in
 * gb10_repack. */
gb10_status_t gb10_batched_pack(gb10_handle_t *handle, gb10_layout_t layout, int64_t width,
                                int64_t group, gb10_dtype_t dtype, int64_t m, int64_t n,
                                const void *A, int64_t lda, int64_t strideA, void *packed,
                                int64_t batch_count, uint8_t *info);
gb10_status_t gb10_batched_unpack(gb10_handle_t *handle, gb10_layout_t layout, int64_t width,
                                  int64_t group, gb10_dtype_t dtype, int64_t m, int64_t n,
                                  const void *packed, void *A, int64_t lda, int64_t strideA,
                                  int64_t batch_count, uint8_t *info);

#ifdef __cplusplus
}
#endif
#endif
