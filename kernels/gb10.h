/* libgb10qr: batched Householder QR of very many dense matrices.
 *
 * A = Q R with Q = H_1 ... H_k, k = min(m, n), H_j = I - tau_j v_j v_j^H, v_j(1) = 1; signs and tau
 * are LAPACK's (geqrf, geqrt). Block p of nb columns: H_(p nb + 1) ... = I - V_p T_p V_p^H, T_p
 * upper triangular with tau on its diagonal.
 *
 * One caller at a time per handle. Every function returns a status; gb10_last_error gives the
 * message of the last failure on that handle. Nothing here prints or exits. A matrix that cannot be
 * factored gets its own info value, never touches its neighbours and is not an error of the call.
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

/* Creates a handle. backend: "auto", "cpu", "cpu-ref", ... err may be NULL. Release with
 * gb10_destroy (NULL allowed). */
gb10_status_t gb10_create(gb10_handle_t **handle, const char *backend, gb10_error_t *err);
void gb10_destroy(gb10_handle_t *handle);

/* Name of the backend in use, the reason it was chosen, and the instruction set of its kernels
 * ("avx2+fma", "baseline", "neon"). Strings live as long as the handle. */
const char *gb10_backend_name(const gb10_handle_t *handle);
const char *gb10_backend_reason(const gb10_handle_t *handle);
const char *gb10_isa_name(const gb10_handle_t *handle);

/* Name of the i-th known backend and, in *reason, NULL when usable or why not. NULL past the end.
 */
const char *gb10_backend_list(int i, const char **reason);

/* The record of the last failed call. */
const gb10_error_t *gb10_last_error(const gb10_handle_t *handle);

/* Factorises a batch. Each matrix is read from A once; A is never written unless `packed` names the
 * same memory. Output views may be NULL when not wanted; shapes, with k = min(m, n) and
 * b = min(nb, max(k, 1)):
 *   V      m x k   unit lower trapezoidal, ones and zeros written
 *   T      b x k   LAPACK geqrt layout, zeros below each block's diagonal (and in unused rows)
 *   R      k x n   upper trapezoidal, exact zeros below the diagonal; real diagonal
 *   tau    k x 1
 *   packed m x n   LAPACK's V\R in one array
 * A matrix with info NONFINITE (3) or NOT_REPRESENTABLE (6) has all its outputs filled with one
 * quiet NaN. */
typedef struct gb10_geqrf_args {
    const gb10_view_t *A;
    const gb10_view_t *V, *T, *R, *tau, *packed;
    int64_t nb;       /* block size of T, >= 1 (32 is customary)                            */
    gb10_mode_t mode; /* GB10_MODE_NATIVE                                                   */
    uint32_t variant; /* 0; bits that switch single ideas of a kernel off, see the backend  */
    uint8_t *info;    /* count values of gb10_info_t, or NULL                               */
} gb10_geqrf_args_t;
gb10_status_t gb10_geqrf(gb10_handle_t *handle, const gb10_geqrf_args_t *args);

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

/* Measures how good a factorisation is, in the next precision (double for s and c, double-double
 * for d and z), with u = 2^-24 or 2^-53. Works on every backend's output; host memory only.
 *   level NORMS   column_norm_error, structure, finiteness         O(mn)
 *   level PROBE   NORMS and probe_error for a fixed +-1 vector     O(mn)
 *   level FULL    NORMS and all errors with Q rebuilt from V, T    O(mnk) */
typedef enum gb10_check_level {
    GB10_CHECK_NONE = 0,
    GB10_CHECK_NORMS = 1,
    GB10_CHECK_PROBE = 2,
    GB10_CHECK_FULL = 3
} gb10_check_level_t;

enum {
    GB10_BACKWARD_ERROR = 0,        /* ||A - QR||_F / ||A||_F                                  */
    GB10_COLUMN_BACKWARD_ERROR = 1, /* max_j ||(A - QR)e_j|| / ||a_j||                         */
    GB10_ORTHOGONALITY = 2,         /* ||I - Q^H Q||_F, thin Q                                 */
    GB10_COLUMN_NORM_ERROR = 3,     /* max_j | ||R e_j|| - ||a_j|| | / ||a_j||                 */
    GB10_T_CONSISTENCY = 4,         /* max over blocks of ||T + T^H - T V^H V T^H||_F          */
    GB10_PROBE_ERROR = 5,           /* max of ||(A - QR)x||/||A||_F and ||Q^H Q x - x||, x = +-1*/
    GB10_RDIAG_MIN = 6,             /* smallest and largest |R_jj|                             */
    GB10_RDIAG_MAX = 7,
    GB10_METRICS = 8
};

/* "backward_error", ... in the order above. */
extern const char *const gb10_metric_names[GB10_METRICS];

/* The gate of a metric for one shape: the largest value that passes (as stored in metrics, not in
 * units of u); NaN for metrics without a gate (RDIAG_*). */
double gb10_gate(int metric, gb10_dtype_t dtype, int64_t m, int64_t n);

typedef struct gb10_check_args {
    const gb10_view_t *A, *V, *T, *R, *tau; /* V, T, tau may be NULL for level NORMS           */
    int64_t nb;
    const uint8_t *level; /* count levels (gb10_check_level_t), one per matrix               */
    uint8_t *info;        /* in: from geqrf; out: OK may become GATE_MISSED                  */
    double *metrics;      /* count x GB10_METRICS, NaN where not measured                    */
    const char **failed;  /* count names of the first missed gate or NULL; may be NULL       */
} gb10_check_args_t;
gb10_status_t gb10_check(gb10_handle_t *handle, const gb10_check_args_t *args);

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

#ifdef __cplusplus
}
#endif
#endif
