/* The oracle for one type; see ref.h. The including file defines LETTER, REAL, SINGLE, COMPLEX.
 *
 * Work arrays are row-major. geqrf keeps the matrix itself in the next precision: without blocks an
 * entry is updated k times, and k roundings of it would cost sqrt(k) u. Only v and tau are rounded
 * before use, R at the end. Every column whose largest entry is near either end of the range is
 * multiplied by a power of two first and its R divided by it afterwards: V, T and tau do not depend
 * on the length of a column, so this is exact and keeps every product inside the range. */
#include "kernels/cpu/ref_scalar.h"

#include "kernels/core/view.h"
#include "kernels/cpu/ref.h"

#define NAME3(letter, name) gb10_ref_##letter##_##name
#define NAME2(letter, name) NAME3(letter, name)
#define NAME(name)          NAME2(LETTER, name)

/* One matrix of a view. */
typedef struct cells {
    elem_t *p;
    int64_t m, n, rs, cs;
} cells_t;

static cells_t cells_of(const gb10_view_t *v, int64_t b)
{
    cells_t c = {NULL, 0, 0, 0, 0};
    if (v && v->m > 0 && v->n > 0)
        c = (cells_t){gb10_view_at(v, b), v->m, v->n, v->rs, v->cs};
    return c;
}

static cells_t transposed(cells_t c)
{
    return (cells_t){c.p, c.n, c.m, c.cs, c.rs};
}

static void load(elem_t *a, cells_t c, bool conj)
{
    for (int64_t i = 0; i < c.m; i++)
        for (int64_t j = 0; j < c.n; j++) {
            elem_t x = c.p[i * c.rs + j * c.cs];
            a[i * c.n + j] = conj ? conjugate(x) : x;
        }
}

static void store(cells_t c, const elem_t *a, bool conj)
{
    for (int64_t i = 0; i < c.m; i++)
        for (int64_t j = 0; j < c.n; j++) {
            elem_t x = a[i * c.n + j];
            c.p[i * c.rs + j * c.cs] = conj ? conjugate(x) : x;
        }
}

/* V with its ones and zeros, whatever the view holds there. */
static void load_v(elem_t *v, cells_t c)
{
    load(v, c, false);
    for (int64_t i = 0; i < c.m && i < c.n; i++) {
        v[i * c.n + i] = elem(1);
        for (int64_t j = i + 1; j < c.n; j++)
            v[i * c.n + j] = elem(0);
    }
}

static bool all_finite(const elem_t *a, int64_t n)
{
    bool finite = true;
    for (int64_t i = 0; i < n; i++)
        for (int q = 0; q < PARTS; q++)
            finite = finite && isfinite(a[i].p[q]);
    return finite;
}

/* An entry that would vanish keeps its sign as the smallest number: a tail is zero only when every
 * entry of it is. */
static elem_t scaled_down(elem_t x, REAL factor)
{
    elem_t y = scaled(x, factor);
    for (int q = 0; q < PARTS; q++)
        if (y.p[q] == 0 && x.p[q] != 0)
            y.p[q] = with_sign(TINY, x.p[q]);
    return y;
}

/* Brings column j of the m x n array a into the safe range; returns e: the column was multiplied
 * by 2^-e. Columns with Inf are left alone. */
static int equilibrate(elem_t *a, int64_t m, int64_t n, int64_t j)
{
    REAL top = 0;
    for (int64_t i = 0; i < m; i++)
        top = larger(top, a[i * n + j]);
    if (!(top > 0) || !isfinite(top))
        return 0;
    int e = exponent(top);
    e = e >= COL_MAX ? (int)COL_DROP : e < COL_MIN ? e : 0;
    REAL factor = power(-e);
    for (int64_t i = 0; e != 0 && i < m; i++)
        a[i * n + j] = e > 0 ? scaled_down(a[i * n + j], factor) : scaled(a[i * n + j], factor);
    return e;
}

/* Norm of len elements `stride` apart, each multiplied by factor first. */
static double scaled_norm(const sum_t *x, int64_t len, int64_t stride, double factor)
{
    wide_t s = wide(0);
    for (int64_t i = 0; i < len; i++)
        for (int q = 0; q < PARTS; q++)
            s = wide_square(s, wide_scaled(x[i * stride].p[q], factor));
    return wide_sqrt(s);
}

/* factor x / (d[0] + i d[1]), the divisor being near 1. */
static elem_t quotient(sum_t x, double factor, const double d[2])
{
    double re = wide_value(x.p[0]) * factor;
#if COMPLEX
    double im = wide_value(x.p[1]) * factor, square = fma(d[0], d[0], d[1] * d[1]);
    elem_t y;
    y.p[0] = (REAL)(fma(re, d[0], im * d[1]) / square);
    y.p[1] = (REAL)(fma(im, d[0], -re * d[1]) / square);
    return y;
#else
    return elem((REAL)(re / d[0]));
#endif
}

/* LAPACK's larfg on the column at x (alpha first): leaves beta and the tail of v, returns tau.
 * The column is scaled by a power of two to have entries of at most 2, which replaces LAPACK's
 * rescaling loop and its unprotected large end. */
static elem_t larfg(sum_t *x, int64_t len, int64_t stride)
{
    double tail = 0, top;
    for (int64_t i = 1; i < len; i++)
        tail = wide_larger(tail, x[i * stride]);
    if (tail == 0 && (!COMPLEX || wide_value(x[0].p[PARTS - 1]) == 0))
        return elem(0);
    top = wide_larger(tail, x[0]);
    int e = exponent(top);
    double factor = ldexp(1, -e), d[2] = {wide_value(x[0].p[0]) * factor, 0};
    if (COMPLEX)
        d[1] = wide_value(x[0].p[PARTS - 1]) * factor;
    double beta = -copysign(scaled_norm(x, len, stride, factor), d[0]);
    elem_t tau = elem((REAL)((beta - d[0]) / beta));
    if (COMPLEX)
        tau.p[PARTS - 1] = (REAL)(-d[1] / beta);
    d[0] -= beta;
    for (int64_t i = 1; i < len; i++)
        x[i * stride] = sum_of(quotient(x[i * stride], factor, d));
    x[0] = sum_of(elem(0));
    x[0].p[0] = wide_scaled(wide_of(beta), ldexp(1, e));
    return tau;
}

/* Columns j+1.. of a become H^H times themselves, H = I - tau v v^H with v below a(j, j). */
static GB10_CLONES void larf(sum_t *a, int64_t m, int64_t n, int64_t j, elem_t tau, sum_t *w)
{
    elem_t factor = negative(conjugate(tau));
    for (int64_t c = j + 1; c < n; c++)
        w[c] = a[j * n + c];
    for (int64_t i = j + 1; i < m; i++) {
        elem_t v = conjugate(sum_round(a[i * n + j]));
        for (int64_t c = j + 1; c < n; c++)
            sum_muladd(&w[c], v, a[i * n + c]);
    }
    for (int64_t c = j + 1; c < n; c++) {
        sum_t y = sum_of(elem(0));
        sum_muladd(&y, factor, w[c]);
        sum_muladd(&a[j * n + c], elem(1), y);
        w[c] = y;
    }
    for (int64_t i = j + 1; i < m; i++) {
        elem_t v = sum_round(a[i * n + j]);
        for (int64_t c = j + 1; c < n; c++)
            sum_muladd(&a[i * n + c], v, w[c]);
    }
}

/* T (kb x kb, row-major) of the block of reflectors p .. p+kb-1 stored below the diagonal of the
 * m-row array v (row length ld): LAPACK's larft. */
static GB10_CLONES void larft(const elem_t *v, int64_t m, int64_t ld, int64_t p, int64_t kb,
                              const elem_t *tau, elem_t *t, sum_t *w)
{
    for (int64_t j = 0; j < kb; j++) {
        int64_t row = p + j;
        for (int64_t l = 0; l < j; l++)
            w[l] = sum_of(conjugate(v[row * ld + p + l]));
        for (int64_t i = row + 1; i < m; i++)
            for (int64_t l = 0; l < j; l++)
                sum_dot(&w[l], v[i * ld + p + l], v[i * ld + row]);
        elem_t factor = negative(tau[row]);
        for (int64_t l = 0; l < kb; l++) {
            sum_t s = sum_of(elem(0));
            for (int64_t q = l; q < j; q++)
                sum_dot(&s, conjugate(t[l * kb + q]), sum_round(w[q]));
            t[l * kb + j] = l < j ? muladd(factor, sum_round(s), elem(0)) : elem(0);
        }
        t[row - p + j * kb] = tau[row];
    }
}

static void store_t_block(cells_t T, int64_t p, int64_t kb, const elem_t *t)
{
    for (int64_t i = 0; i < T.m; i++)
        for (int64_t j = 0; j < kb; j++)
            T.p[i * T.rs + (p + j) * T.cs] = i < kb ? t[i * kb + j] : elem(0);
}

static void form_t(cells_t T, const elem_t *v, int64_t m, int64_t ld, const elem_t *tau, elem_t *t,
                   sum_t *w)
{
    for (int64_t p = 0; p < T.n; p += T.m) {
        int64_t kb = T.n - p < T.m ? T.n - p : T.m;
        larft(v, m, ld, p, kb, tau, t, w);
        store_t_block(T, p, kb, t);
    }
}

typedef struct qr_work {
    elem_t *a, *tau, *t;
    sum_t *wide, *w;
    int *shift;
} qr_work_t;

/* Scales the columns; false when a column's norm is beyond the type's range. */
static bool prepare(qr_work_t *work, int64_t m, int64_t n)
{
    bool representable = true;
    for (int64_t j = 0; j < n; j++)
        work->shift[j] = equilibrate(work->a, m, n, j);
    for (int64_t i = 0; i < m * n; i++)
        work->wide[i] = sum_of(work->a[i]);
    for (int64_t j = 0; j < n; j++) {
        if (work->shift[j] <= 0)
            continue;
        REAL norm = (REAL)scaled_norm(work->wide + j, m, n, ldexp(1, -COL_MAX));
        representable = representable && isfinite(norm * power(COL_MAX) * power(work->shift[j]));
    }
    return representable;
}

/* Rounds V and R and undoes the scaling of R; false when an entry of it is beyond the range. */
static bool finish(qr_work_t *work, int64_t m, int64_t n)
{
    bool finite = true;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            elem_t x = sum_round(work->wide[i * n + j]);
            work->a[i * n + j] = i > j ? x : scaled(x, power(work->shift[j]));
            finite = finite && all_finite(&work->a[i * n + j], 1);
        }
    return finite;
}

static gb10_info_t factor(qr_work_t *work, cells_t A)
{
    load(work->a, A, false);
    if (!all_finite(work->a, A.m * A.n))
        return GB10_INFO_NONFINITE;
    if (!prepare(work, A.m, A.n))
        return GB10_INFO_NOT_REPRESENTABLE;
    for (int64_t j = 0; j < A.m && j < A.n; j++) {
        work->tau[j] = larfg(work->wide + j * A.n + j, A.m - j, A.n);
        if (!is_zero(work->tau[j]))
            larf(work->wide, A.m, A.n, j, work->tau[j], work->w);
    }
    return finish(work, A.m, A.n) ? GB10_INFO_OK : GB10_INFO_NOT_REPRESENTABLE;
}

static void store_factors(const gb10_geqrf_args_t *args, int64_t b, qr_work_t *work)
{
    int64_t m = args->A->m, n = args->A->n;
    const elem_t *a = work->a;
    cells_t V = cells_of(args->V, b), R = cells_of(args->R, b), tau = cells_of(args->tau, b);
    for (int64_t i = 0; i < V.m; i++)
        for (int64_t j = 0; j < V.n; j++)
            V.p[i * V.rs + j * V.cs] = i > j ? a[i * n + j] : elem(i == j);
    for (int64_t i = 0; i < R.m; i++)
        for (int64_t j = 0; j < R.n; j++)
            R.p[i * R.rs + j * R.cs] = i <= j ? a[i * n + j] : elem(0);
    for (int64_t j = 0; j < tau.m; j++)
        tau.p[j * tau.rs] = work->tau[j];
    form_t(cells_of(args->T, b), a, m, n, work->tau, work->t, work->w);
    store(cells_of(args->packed, b), a, false);
}

void NAME(geqrf)(const gb10_geqrf_args_t *args, void *workspace)
{
    int64_t m = args->A->m, n = args->A->n, k = m < n ? m : n;
    int64_t nb = args->nb < k ? args->nb : k;
    char *p = workspace;
    qr_work_t work;
    work.a = gb10_ref_take(&p, m * n, sizeof(elem_t));
    work.tau = gb10_ref_take(&p, k, sizeof(elem_t));
    work.t = gb10_ref_take(&p, nb * nb, sizeof(elem_t));
    work.wide = gb10_ref_take(&p, m * n, sizeof(sum_t));
    work.w = gb10_ref_take(&p, n, sizeof(sum_t));
    work.shift = gb10_ref_take(&p, n, sizeof(int));
    const gb10_view_t *out[] = {args->V, args->T, args->R, args->tau, args->packed};
    for (int64_t b = 0; b < args->A->count; b++) {
        gb10_info_t info = factor(&work, cells_of(args->A, b));
        if (info == GB10_INFO_OK)
            store_factors(args, b, &work);
        else
            for (int i = 0; i < 5; i++)
                gb10_view_fill_nan(out[i], b);
        if (args->info)
            args->info[b] = (uint8_t)info;
    }
}

void NAME(form_t)(const gb10_form_t_args_t *args, void *workspace)
{
    int64_t m = args->V->m, k = args->V->n, nb = args->nb < k ? args->nb : k;
    char *p = workspace;
    elem_t *v = gb10_ref_take(&p, m * k, sizeof(elem_t));
    elem_t *tau = gb10_ref_take(&p, k, sizeof(elem_t));
    elem_t *t = gb10_ref_take(&p, nb * nb, sizeof(elem_t));
    sum_t *w = gb10_ref_take(&p, k, sizeof(sum_t));
    for (int64_t b = 0; b < args->V->count; b++) {
        load_v(v, cells_of(args->V, b));
        load(tau, cells_of(args->tau, b), false);
        form_t(cells_of(args->T, b), v, m, k, tau, t, w);
    }
}

/* Q or Q^H (adjoint) from V (m x k) and T (nb x k) on the columns of c (m x n). */
typedef struct apply_work {
    int64_t m, k, nb, n;
    elem_t *v, *t, *c, *w, *tw;
    sum_t *sum;
    int *shift;
    bool adjoint;
} apply_work_t;

/* c -= V op(T) V^H c for the block of kb reflectors from p. */
static GB10_CLONES void larfb(const apply_work_t *q, int64_t p, int64_t kb)
{
    int64_t n = q->n, k = q->k;
    for (int64_t l = 0; l < kb; l++) {
        for (int64_t j = 0; j < n; j++)
            q->sum[j] = sum_of(elem(0));
        for (int64_t i = p + l; i < q->m; i++)
            for (int64_t j = 0; j < n; j++)
                sum_dot(&q->sum[j], q->v[i * k + p + l], q->c[i * n + j]);
        for (int64_t j = 0; j < n; j++)
            q->w[l * n + j] = sum_round(q->sum[j]);
    }
    for (int64_t l = 0; l < kb; l++)
        for (int64_t j = 0; j < n; j++) {
            sum_t s = sum_of(elem(0));
            for (int64_t i = q->adjoint ? 0 : l; i < (q->adjoint ? l + 1 : kb); i++) {
                elem_t t = q->adjoint ? q->t[i * k + p + l] : conjugate(q->t[l * k + p + i]);
                sum_dot(&s, t, q->w[i * n + j]);
            }
            q->tw[l * n + j] = negative(sum_round(s));
        }
    for (int64_t i = p; i < q->m; i++) {
        for (int64_t j = 0; j < n; j++)
            q->sum[j] = sum_of(q->c[i * n + j]);
        for (int64_t l = 0; l < kb && l <= i - p; l++)
            for (int64_t j = 0; j < n; j++)
                sum_dot(&q->sum[j], conjugate(q->v[i * k + p + l]), q->tw[l * n + j]);
        for (int64_t j = 0; j < n; j++)
            q->c[i * n + j] = sum_round(q->sum[j]);
    }
}

static void apply_blocks(const apply_work_t *q)
{
    int64_t blocks = (q->k + q->nb - 1) / q->nb;
    for (int64_t i = 0; i < blocks; i++) {
        int64_t p = (q->adjoint ? i : blocks - 1 - i) * q->nb;
        larfb(q, p, q->k - p < q->nb ? q->k - p : q->nb);
    }
}

static apply_work_t apply_work(const gb10_view_t *V, int64_t nb, int64_t n, void *workspace)
{
    char *p = workspace;
    apply_work_t q = {.m = V->m, .k = V->n, .n = n};
    q.nb = nb < q.k ? nb : q.k > 0 ? q.k : 1;
    q.v = gb10_ref_take(&p, q.m * q.k, sizeof(elem_t));
    q.t = gb10_ref_take(&p, q.nb * q.k, sizeof(elem_t));
    q.c = gb10_ref_take(&p, q.m * n, sizeof(elem_t));
    q.w = gb10_ref_take(&p, q.nb * n, sizeof(elem_t));
    q.tw = gb10_ref_take(&p, q.nb * n, sizeof(elem_t));
    q.sum = gb10_ref_take(&p, n, sizeof(sum_t));
    q.shift = gb10_ref_take(&p, n, sizeof(int));
    return q;
}

void NAME(form_q)(const gb10_form_q_args_t *args, void *workspace)
{
    apply_work_t q = apply_work(args->V, args->nb, args->Q->n, workspace);
    for (int64_t b = 0; b < args->V->count; b++) {
        load_v(q.v, cells_of(args->V, b));
        load(q.t, cells_of(args->T, b), false);
        for (int64_t i = 0; i < q.m; i++)
            for (int64_t j = 0; j < q.n; j++)
                q.c[i * q.n + j] = elem(i == j);
        apply_blocks(&q);
        store(cells_of(args->Q, b), q.c, false);
    }
}

void NAME(apply_q)(const gb10_apply_q_args_t *args, void *workspace)
{
    bool right = args->side == 'R';
    apply_work_t q = apply_work(args->V, args->nb, right ? args->C->m : args->C->n, workspace);
    q.adjoint = (args->trans != 'N') != right;
    for (int64_t b = 0; b < args->V->count; b++) {
        cells_t C = cells_of(args->C, b);
        /* C op(Q) = (op(Q)^H C^H)^H */
        C = right ? transposed(C) : C;
        load_v(q.v, cells_of(args->V, b));
        load(q.t, cells_of(args->T, b), false);
        load(q.c, C, right);
        for (int64_t j = 0; j < q.n; j++)
            q.shift[j] = equilibrate(q.c, q.m, q.n, j);
        apply_blocks(&q);
        for (int64_t i = 0; i < q.m; i++)
            for (int64_t j = 0; j < q.n; j++)
                q.c[i * q.n + j] = scaled(q.c[i * q.n + j], power(q.shift[j]));
        store(C, q.c, right);
    }
}

/* ---- rank-k update: the complex definition in working precision, each operation rounded, so that
 * overflow, Inf and NaN come out as it has them ---- */

static elem_t product(elem_t a, elem_t b)
{
    elem_t r = elem(0);
#if COMPLEX
    r.p[0] = a.p[0] * b.p[0] - a.p[1] * b.p[1];
    r.p[1] = a.p[0] * b.p[1] + a.p[1] * b.p[0];
#else
    r.p[0] = a.p[0] * b.p[0];
#endif
    return r;
}

static elem_t plus(elem_t a, elem_t b)
{
    for (int q = 0; q < PARTS; q++)
        a.p[q] += b.p[q];
    return a;
}

static elem_t number(const double x[2])
{
    elem_t r = elem((REAL)x[0]);
    if (COMPLEX)
        r.p[PARTS - 1] = (REAL)x[1];
    return r;
}

/* Entry (i, j) of C: op(A) has rows i and j of `a`. */
static elem_t syrk_entry(const gb10_syrk_args_t *args, cells_t a, int64_t i, int64_t j, elem_t old)
{
    elem_t alpha = number(args->alpha), beta = number(args->beta), sum = elem(0);
    bool first = args->trans == 'N', one = beta.p[0] == 1 && (!COMPLEX || beta.p[PARTS - 1] == 0);
    elem_t c = is_zero(beta) ? elem(0) : one ? old : product(beta, old);
    for (int64_t l = 0; l < a.n && !is_zero(alpha); l++) {
        elem_t x = a.p[i * a.rs + l * a.cs], y = a.p[j * a.rs + l * a.cs];
        if (args->hermitian && first)
            y = conjugate(y);
        else if (args->hermitian)
            x = conjugate(x);
        if (first)
            c = plus(c, product(product(alpha, y), x));
        else
            sum = plus(sum, product(x, y));
    }
    if (!first && a.n > 0 && !is_zero(alpha))
        c = plus(product(alpha, sum), c);
    if (args->hermitian && i == j && COMPLEX)
        c.p[PARTS - 1] = 0;
    return c;
}

void NAME(syrk)(const gb10_syrk_args_t *args)
{
    elem_t alpha = number(args->alpha), beta = number(args->beta);
    int64_t n = args->C->n, k = args->trans == 'N' ? args->A->n : args->A->m;
    bool one = beta.p[0] == 1 && (!COMPLEX || beta.p[PARTS - 1] == 0);
    if ((is_zero(alpha) || k == 0) && one)
        return;
    for (int64_t b = 0; b < args->C->count; b++) {
        cells_t C = cells_of(args->C, b), A = cells_of(args->A, b);
        A = args->trans == 'N' ? A : transposed(A);
        for (int64_t j = 0; j < n; j++)
            for (int64_t i = args->uplo == 'U' ? 0 : j; i < (args->uplo == 'U' ? j + 1 : n); i++) {
                elem_t *c = &C.p[i * C.rs + j * C.cs];
                *c = syrk_entry(args, A, i, j, *c);
            }
    }
}
