/* In and out of the cpu backend: between the views of a call and the panels of the working copy.
 * Part of fast_body.h, which includes it once per type; its names and macros are used here. */

/* Transposes VL vectors of VL numbers: each step exchanges the off-diagonal blocks of size d. */
INLINE void N(transpose)(vec_t *x)
{
    UNROLL for (int d = (int)VL / 2; d > 0; d /= 2)
    {
        index_t low, high;
        UNROLL for (int l = 0; l < (int)VL; l++)
        {
            low[l] = l & d ? (int)VL + l - d : l;
            high[l] = l & d ? (int)VL + l : l + d;
        }
        UNROLL for (int r = 0; r < (int)VL; r++)
        {
            if (r & d)
                continue;
            vec_t a = x[r], b = x[r + d];
            x[r] = __builtin_shuffle(a, b, low);
            x[r + d] = __builtin_shuffle(a, b, high);
        }
    }
}

/* VL x VL numbers between rows of a view (contiguous, any alignment) and columns of a panel. */
INLINE void N(rows_to_panel)(const REAL *row, int64_t rs, REAL *column, int64_t cs, int64_t ld)
{
    vec_t re[VL], im[VL];
    (void)ld, (void)im;
    UNROLL for (int r = 0; r < (int)VL; r++)
    {
#if CPLX
        vec_t a, b;
        memcpy(&a, row + r * rs, sizeof a);
        memcpy(&b, row + r * rs + VL, sizeof b);
        index_t even, odd;
        UNROLL for (int l = 0; l < (int)VL; l++)
        {
            even[l] = 2 * l;
            odd[l] = 2 * l + 1;
        }
        re[r] = __builtin_shuffle(a, b, even);
        im[r] = __builtin_shuffle(a, b, odd);
#else
        memcpy(&re[r], row + r * rs, sizeof re[r]);
#endif
    }
    N(transpose)(re);
    if (CPLX)
        N(transpose)(im);
    UNROLL for (int c = 0; c < (int)VL; c++)
    {
        keep(column + c * cs, re[c]);
        if (CPLX)
            keep(column + c * cs + ld, im[c]);
    }
}

INLINE void N(panel_to_rows)(REAL *row, int64_t rs, const REAL *column, int64_t cs, int64_t ld)
{
    vec_t re[VL], im[VL];
    (void)ld, (void)im;
    UNROLL for (int c = 0; c < (int)VL; c++)
    {
        re[c] = load(column + c * cs);
        if (CPLX)
            im[c] = load(column + c * cs + ld);
    }
    N(transpose)(re);
    if (CPLX)
        N(transpose)(im);
    UNROLL for (int r = 0; r < (int)VL; r++)
    {
#if CPLX
        index_t first, second;
        UNROLL for (int l = 0; l < (int)VL; l++)
        {
            first[l] = l / 2 + (l & 1) * (int)VL;
            second[l] = first[l] + (int)VL / 2;
        }
        vec_t a = __builtin_shuffle(re[r], im[r], first);
        vec_t b = __builtin_shuffle(re[r], im[r], second);
        memcpy(row + r * rs, &a, sizeof a);
        memcpy(row + r * rs + VL, &b, sizeof b);
#else
        memcpy(row + r * rs, &re[r], sizeof re[r]);
#endif
    }
}

INLINE void N(get)(REAL *column, int64_t ld, int64_t i, const REAL *src)
{
    column[i] = src[0];
    if (CPLX)
        column[ld * CPLX + i] = src[CPLX];
}

/* The working copy of matrix b: by square blocks where the view is row-major. */
static void N(load_matrix)(work_t *q, const gb10_view_t *A, int64_t b)
{
    const REAL *src = gb10_view_at(A, b);
    const panel_t *to = &q->A;
    int64_t rs = PARTS * A->rs, cs = PARTS * A->cs;
    int64_t m = A->cs == 1 ? q->m / VL * VL : 0, n = A->cs == 1 ? q->n / VL * VL : 0;
    for (int64_t i = 0; i < m; i += VL)
        for (int64_t j = 0; j < n; j += VL)
            N(rows_to_panel)(src + i * rs + j * cs, rs, to->p + j * to->cs + i, to->cs, to->ld);
    for (int64_t j = 0; j < q->n; j++) {
        REAL *column = to->p + j * to->cs;
        for (int64_t i = j < n ? m : 0; i < q->m; i++)
            N(get)(column, to->ld, i, src + i * rs + j * cs);
        for (int part = 0; part < PARTS; part++)
            memset(column + part * to->ld + q->m, 0, (size_t)(to->ld - q->m) * sizeof(REAL));
    }
}

/* Largest entry of column j, or NaN when one is not finite. */
static REAL N(column_top)(const work_t *q, int64_t j)
{
    const REAL *x = q->A.p + j * q->A.cs;
    REAL top[16] = {0}, odd[16] = {0};
    for (int64_t i = 0; i < PARTS * q->A.ld; i += VL) {
        for (int l = 0; l < (int)VL; l++) {
            REAL y = ABS(x[i + l]);
            top[l] = y > top[l] ? y : top[l];
            odd[l] += x[i + l] * 0; /* NaN for NaN and Inf */
        }
    }
    for (int l = 1; l < (int)VL; l++) {
        top[0] = top[l] > top[0] ? top[l] : top[0];
        odd[0] += odd[l];
    }
    return top[0] + odd[0];
}

/* Scans and scales the columns. */
static gb10_info_t N(prepare)(work_t *q)
{
    gb10_info_t info = GB10_INFO_OK;
    for (int64_t j = 0; j < q->n; j++) {
        REAL top = N(column_top)(q, j), *x = q->A.p + j * q->A.cs;
        q->shift[j] = 0;
        if (!(top <= TOP))
            return GB10_INFO_NONFINITE;
        if (top == 0)
            continue;
        int e = ilogb((double)top), shift = e >= EXP_HIGH ? EXP_DROP : e < EXP_LOW ? e : 0;
        q->shift[j] = shift;
        for (int64_t i = 0; shift != 0 && i < PARTS * q->A.ld; i++) {
            REAL y = (REAL)ldexp((double)x[i], -shift);
            x[i] = y == 0 && x[i] != 0 ? (REAL)copysign((double)TINY, (double)x[i]) : y;
        }
        if (shift > 0) {
            sum_t s = {{0}, {0}};
            double scale = ldexp(1, -(EXP_HIGH > 900 ? 900 : EXP_HIGH));
            for (int part = 0; part < PARTS; part++)
                N(squares)(&s, x + part * q->A.ld, q->m, scale);
            if (!(sqrt(sum_total(&s)) <= ldexp((double)TOP, -shift) * scale))
                info = GB10_INFO_NOT_REPRESENTABLE;
        }
    }
    return info;
}

/* Gives R its scale back; false when an entry does not fit the type. */
static bool N(rescale)(work_t *q)
{
    bool fits = true;
    for (int64_t j = 0; j < q->n; j++)
        for (int part = 0; q->shift[j] != 0 && part < PARTS; part++)
            for (int64_t i = 0; i <= j && i < q->k; i++) {
                REAL *x = q->A.p + j * q->A.cs + part * q->A.ld + i;
                *x = (REAL)ldexp((double)*x, q->shift[j]);
                fits = fits && ABS(*x) <= TOP;
            }
    return fits;
}

INLINE void N(put)(REAL *dst, const REAL *src, int64_t ld, int64_t i)
{
    dst[0] = src[i];
    if (CPLX)
        dst[CPLX] = src[ld * CPLX + i];
}

INLINE void N(put_number)(REAL *dst, REAL x)
{
    dst[0] = x;
    if (CPLX)
        dst[CPLX] = 0;
}

/* Part of row i of a matrix, columns j0 .. j1-1; `from` NULL gives zeros. */
INLINE void N(put_row)(REAL *row, int64_t cs, const panel_t *from, int64_t i, int64_t j0,
                       int64_t j1)
{
    for (int64_t j = j0; from && j < j1; j++)
        N(put)(row + PARTS * j * cs, from->p + j * from->cs, from->ld, i);
    for (int64_t j = j0; !from && j < j1; j++)
        N(put_number)(row + PARTS * j * cs, 0);
}

/* Rows i0 .. i1-1 and columns j0 .. j1-1 of a matrix at `base`, which may cross the diagonal. */
static void N(put_block)(const gb10_view_t *out, REAL *base, const panel_t *lower,
                         const panel_t *upper, const int64_t at[4])
{
    int64_t j0 = at[2], j1 = at[3];
    for (int64_t i = at[0]; i < at[1]; i++) {
        REAL *row = base + PARTS * i * out->rs;
        int64_t middle = i < j0 ? j0 : min64(i, j1);
        N(put_row)(row, out->cs, lower, i, j0, middle);
        N(put_row)(row, out->cs, upper, i, middle, j1);
        if (!upper && middle == i && i < j1)
            N(put_number)(row + PARTS * i * out->cs, 1);
    }
}

/* Writes an m x n view: below the diagonal from `lower`, on and above it from `upper`; NULL gives
 * zeros, below, and a unit diagonal with zeros beyond it, above. */
static void N(store_matrix)(const gb10_view_t *out, int64_t b, const panel_t *lower,
                            const panel_t *upper)
{
    if (!out)
        return;
    REAL *base = gb10_view_at(out, b);
    for (int64_t i = 0; i < out->m; i += VL)
        for (int64_t j = 0; j < out->n; j += VL) {
            const panel_t *from = i >= j + VL ? lower : j >= i + VL ? upper : NULL;
            const int64_t at[4] = {i, min64(out->m, i + VL), j, min64(out->n, j + VL)};
            if (from && out->cs == 1 && at[1] - i == VL && at[3] - j == VL)
                N(panel_to_rows)
            (base + PARTS * (i * out->rs + j), PARTS * out->rs, from->p + j * from->cs + i,
             from->cs, from->ld);
            else N(put_block)(out, base, lower, upper, at);
        }
}

/* The blocks of nb columns of the file's T that lie in the internal block from p. */
static void N(store_t)(const work_t *q, const gb10_view_t *T, int64_t b, int64_t p, int64_t w)
{
    if (!T)
        return;
    REAL *base = gb10_view_at(T, b);
    for (int64_t j = 0; j < w; j++) {
        int64_t start = j / q->nb * q->nb;
        for (int64_t i = 0; i < T->m; i++) {
            REAL *dst = base + PARTS * (i * T->rs + (p + j) * T->cs);
            if (start + i <= j)
                N(put)(dst, q->T.p + (start + i) * q->T.rs, q->T.plane, j);
            else
                N(put_number)(dst, 0);
        }
    }
}

static void N(store_tau)(const work_t *q, const gb10_view_t *tau, int64_t b)
{
    if (!tau)
        return;
    REAL *base = gb10_view_at(tau, b);
    for (int64_t j = 0; j < q->k; j++)
        memcpy(base + PARTS * j * tau->rs, q->tau + PARTS * j, PARTS * sizeof(REAL));
}

/* One matrix. The outputs are written only when the whole of it is known to be good. */
static gb10_info_t N(factor)(work_t *q, const gb10_geqrf_args_t *args, int64_t b)
{
    gb10_times_t *times = args->times;
    double since = times ? gb10_seconds() : 0;
    N(load_matrix)(q, args->A, b);
    gb10_info_t info = N(prepare)(q);
    if (info != GB10_INFO_OK)
        return info;
    gb10_lap(&since, times ? &times->pack : NULL);
    for (int64_t p = 0; p < q->k; p += q->block) {
        int64_t w = min64(q->block, q->k - p);
        memset(q->T.p, 0, (size_t)(q->T.rs * w) * sizeof(REAL));
        N(factor_panel)(q, p, p, w);
        N(store_t)(q, args->T, b, p, w);
        if (p + w < q->n)
            N(update)(q, p, p, w, p + w, q->n - p - w);
    }
    gb10_lap(&since, times ? &times->factor : NULL);
    if (!N(rescale)(q))
        return GB10_INFO_NOT_REPRESENTABLE;
    N(store_matrix)(args->V, b, &q->V, NULL);
    N(store_matrix)(args->R, b, NULL, &q->A);
    N(store_matrix)(args->packed, b, &q->V, &q->A);
    N(store_tau)(q, args->tau, b);
    gb10_lap(&since, times ? &times->unpack : NULL);
    return GB10_INFO_OK;
}
