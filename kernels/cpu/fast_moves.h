/* In and out of the cpu backend, between the views of a call and the strips of the working copy;
 * and the layout of its workspace. Part of fast_body.h, which includes it once per type; its names
 * and macros are used here. */

/* ---- columns that need scaling ---- */

/* A column of a working copy: element i at x + i * rs, its parts `ps` apart. */
typedef struct N(column) {
    REAL *x;
    int64_t rs, ps, rows;
} N(column_t);

/* Largest entry, NaN when one is not finite. */
static REAL N(column_top)(const N(column_t) * c)
{
    REAL top = 0, odd = 0;
    for (int64_t i = 0; i < c->rows; i++)
        for (int part = 0; part < PARTS; part++) {
            REAL x = ABS(c->x[i * c->rs + part * c->ps]);
            top = x > top ? x : top;
            odd += x * 0;
        }
    return top + odd;
}

/* Scales a column with largest entry `top` by 2^-shift where it lies near an end of the range; an
 * entry stays different from zero. False when the column's norm exceeds the type's range. */
static bool N(scale_column)(const N(column_t) * c, REAL top, int *shift)
{
    double sum = 0, lost = 0;
    *shift = top == 0 || (top < HIGHEST && top > LOWEST) ? 0 : ilogb((double)top);
    for (int64_t i = 0; *shift != 0 && i < c->rows; i++)
        for (int part = 0; part < PARTS; part++) {
            REAL *x = c->x + i * c->rs + part * c->ps, old = *x;
            *x = (REAL)ldexp((double)old, -*shift);
            if (*x == 0 && old != 0)
                *x = (REAL)copysign((double)TINY, (double)old);
            double y = (double)*x, next = FMA_D(y, y, sum);
            lost += FMA_D(y, y, -(next - sum));
            sum = next;
        }
    return *shift <= 0 || sqrt(sum + lost) <= ldexp((double)TOP, -*shift);
}

/* Gives a column of R its scale back; false when an entry does not fit the type. */
static bool N(unscale_column)(const N(column_t) * c, int shift)
{
    bool fits = true;
    for (int64_t i = 0; shift != 0 && i < c->rows; i++)
        for (int part = 0; part < PARTS; part++) {
            REAL *x = c->x + i * c->rs + part * c->ps;
            *x = (REAL)ldexp((double)*x, shift);
            fits = fits && ABS(*x) <= TOP;
        }
    return fits;
}

/* ---- in ---- */

/* Row i of a strip's columns, `numbers` of them, the rest zero. */
INLINE void N(load_row)(REAL *row, const REAL *src, int64_t cs, int64_t numbers)
{
    if (cs == 1 && numbers == SW) {
        memcpy(row, src, (size_t)SW * sizeof(REAL));
        return;
    }
    for (int64_t c = 0; c < SW; c++)
        row[c] = c >= numbers ? 0 : src[cs == 1 ? c : c / PARTS * PARTS * cs + c % PARTS];
}

/* Columns from j0 on to their strip, with the largest entries of each, NaN where one is not finite.
 * Column-major views are read down their columns. */
static void N(load_strip)(work_t *q, const gb10_view_t *A, const REAL *src, int64_t j0, REAL *top)
{
    REAL *to = at(q, 0, j0);
    int64_t numbers = min64(SW, PARTS * (q->n - j0)), rs = PARTS * A->rs;
    vec_t high[STRIP], odd[STRIP];
    src += PARTS * j0 * A->cs;
    UNROLL for (int v = 0; v < STRIP; v++) high[v] = odd[v] = splat(0);
    for (int64_t i = 0; i < q->m; i++) {
        N(load_row)(to + i * SW, src + i * rs, A->cs, numbers);
        UNROLL for (int v = 0; v < STRIP; v++)
        {
            vec_t x = load(to + i * SW + v * VL), size = N(absolute)(x);
            index_t more = size > high[v];
            high[v] = select(more, size, high[v]);
            odd[v] += x * 0; /* NaN for NaN and Inf */
        }
    }
    UNROLL for (int v = 0; v < STRIP; v++) keep(top + v * VL, high[v] + odd[v]);
}

/* The working copy of matrix b, scanned, its columns scaled where they need it. */
static gb10_info_t N(load_matrix)(work_t *q, const gb10_view_t *A, int64_t b)
{
    const REAL *src = gb10_view_at(A, b);
    gb10_info_t info = GB10_INFO_OK;
    ALIGNED REAL tops[SW];
    for (int64_t j0 = 0; j0 < q->n; j0 += SW / PARTS) {
        N(load_strip)(q, A, src, j0, tops);
        for (int64_t j = j0; j < min64(q->n, j0 + SW / PARTS); j++) {
            REAL top = tops[PARTS * (j - j0)], other = tops[PARTS * (j - j0) + CPLX];
            N(column_t) column = {at(q, 0, j), SW, 1, q->m};
            top = top != top || other <= top ? top : other; /* NaN stays */
            if (!(top <= TOP))
                return GB10_INFO_NONFINITE;
            if (!N(scale_column)(&column, top, &q->shift[j]))
                info = GB10_INFO_NOT_REPRESENTABLE;
        }
    }
    return info;
}

/* ---- out ---- */

/* Gives rows i0 .. i1-1 of R their scale back; false when an entry does not fit the type. */
static bool N(rescale)(work_t *q, int64_t i0, int64_t i1)
{
    bool fits = true;
    for (int64_t j = i0; j < q->n; j++) {
        N(column_t) column = {at(q, i0, j), SW, 1, min64(j + 1, i1) - i0};
        fits = N(unscale_column)(&column, q->shift[j]) && fits;
    }
    return fits;
}

/* What an output shows of the working copy: below the diagonal, and on and above it. */
typedef enum N(show) { N(SHOW_V), N(SHOW_R), N(SHOW_BOTH) } N(show_t);

/* Numbers from .. to-1 of row i of the working copy. */
INLINE void N(copy_row)(const work_t *q, REAL *row, int64_t i, int64_t from, int64_t to)
{
    const REAL *a = q->A + i * SW;
    for (int64_t c = from, end; c < to; c = end) {
        end = min64(c / SW * SW + SW, to);
        const REAL *x = a + c / SW * q->strip + c % SW;
        if (end - c == SW)
            memcpy(row + c, x, (size_t)SW * sizeof(REAL));
        else
            memcpy(row + c, x, (size_t)(end - c) * sizeof(REAL));
    }
}

INLINE void N(clear)(REAL *p, int64_t numbers)
{
    if (numbers > 0)
        memset(p, 0, (size_t)numbers * sizeof(REAL));
}

/* Numbers from .. to-1 of row i of an output with contiguous rows. */
INLINE void N(store_row)(const work_t *q, REAL *row, int64_t i, int64_t from, int64_t to,
                         N(show_t) show)
{
    int64_t diagonal = PARTS * i, edge = diagonal < from ? from : min64(diagonal, to);
    int64_t begin = show == N(SHOW_R) ? edge : from, end = show == N(SHOW_V) ? edge : to;
    N(clear)(row + from, begin - from);
    N(copy_row)(q, row, i, begin, end);
    N(clear)(row + end, to - end);
    if (show == N(SHOW_V) && from <= diagonal && diagonal < to)
        row[diagonal] = 1;
}

/* Rows i0 .. i1-1 and columns j0 .. j1-1 of an output whose columns are contiguous. */
static void N(store_columns)(const work_t *q, const gb10_view_t *out, REAL *base, int64_t i0,
                             int64_t i1, int64_t j0, int64_t j1, N(show_t) show)
{
    for (int64_t j = j0; j < j1; j++)
        for (int64_t i = i0; i < i1; i++) {
            const REAL *x = at(q, i, j);
            REAL *to = base + PARTS * (i * out->rs + j * out->cs);
            bool shown = show == N(SHOW_BOTH) || (i > j) == (show == N(SHOW_V));
            to[0] = shown ? x[0] : show == N(SHOW_V) && i == j;
            if (CPLX)
                to[CPLX] = shown ? x[CPLX] : 0;
        }
}

/* Rows i0 .. i1-1 and columns j0 .. j1-1 of matrix b of an output, if there is one. */
static void N(store_part)(const work_t *q, const gb10_view_t *out, int64_t b, int64_t i0,
                          int64_t i1, int64_t j0, int64_t j1, N(show_t) show)
{
    if (!out)
        return;
    REAL *base = gb10_view_at(out, b);
    for (int64_t i = i0; i < i1 && out->cs == 1; i++)
        N(store_row)(q, base + PARTS * i * out->rs, i, PARTS * j0, PARTS * j1, show);
    for (int64_t i = i0; i < i1 && out->cs != 1; i += STORE_ROWS)
        N(store_columns)(q, out, base, i, min64(i + STORE_ROWS, i1), j0, j1, show);
}

/* The blocks of nb columns of the file's T that lie in the internal block from p. */
static void N(store_t)(const work_t *q, const gb10_view_t *T, int64_t b, int64_t p, int64_t w)
{
    if (!T)
        return;
    REAL *base = gb10_view_at(T, b);
    for (int64_t start = 0; start < w; start += q->nb)
        for (int64_t i = 0; i < T->m; i++) {
            const REAL *from = q->T.p + (start + i) * q->T.rs + PARTS * start;
            REAL *to = base + PARTS * (i * T->rs + (p + start) * T->cs);
            int64_t wide = min64(q->nb, w - start);
            for (int64_t c = 0; c < PARTS * wide; c++)
                to[T->cs == 1 ? c : c / PARTS * PARTS * T->cs + c % PARTS] = i < wide ? from[c] : 0;
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

/* V of columns p .. p+w-1 with its ones and zeros, from the working copy. */
static void N(load_v)(work_t *q, int64_t p, int64_t w)
{
    for (int64_t i = p; i < q->m; i++)
        for (int64_t j = 0; j < q->V.rs / PARTS; j++)
            for (int part = 0; part < PARTS; part++)
                q->V.p[i * q->V.rs + PARTS * j + part] =
                    j < w && p + j < i ? at(q, i, p + j)[part] : j < w && p + j == i && part == 0;
}

static void N(form_t)(work_t *q, const gb10_view_t *T, int64_t b)
{
    for (int64_t p = 0; T && p < q->k; p += q->nb) {
        int64_t w = min64(q->nb, q->k - p);
        memset(q->T.p, 0, (size_t)(q->T.rs * w) * sizeof(REAL));
        N(load_v)(q, p, w);
        N(larft)(q, p, 0, w);
        N(store_t)(q, T, b, p, w);
    }
}

/* One matrix. A panel's part of the outputs is written while it is in the cache; the caller fills
 * them with NaN when a later one turns out not to fit the type. */
static gb10_info_t N(factor)(work_t *q, const gb10_geqrf_args_t *args, int64_t b)
{
    gb10_times_t *times = args->times;
    double since = times ? gb10_seconds() : 0;
    gb10_info_t info = N(load_matrix)(q, args->A, b);
    if (info != GB10_INFO_OK)
        return info;
    gb10_lap(&since, times ? &times->pack : NULL);
    int64_t stored = 0; /* columns of V */
    for (int64_t p = 0; p < q->k; p += q->block) {
        int64_t w = min64(q->block, q->k - p), end = p + w;
        memset(q->T.p, 0, (size_t)(q->T.rs * w) * sizeof(REAL));
        memset(q->V.p + p * q->V.rs, 0, (size_t)(q->V.rs * w) * sizeof(REAL));
        N(factor_panel)(q, p, p, w);
        gb10_lap(&since, times ? &times->factor : NULL);
        if (q->aligned)
            N(store_t)(q, args->T, b, p, w);
        if ((end - stored) * PARTS * (int64_t)sizeof(REAL) >= STORE_BYTES || end == q->k) {
            N(store_part)(q, args->V, b, 0, q->m, stored, end, N(SHOW_V));
            stored = end;
        }
        gb10_lap(&since, times ? &times->unpack : NULL);
        N(update)(q, p, p, w, end, q->n);
        gb10_lap(&since, times ? &times->factor : NULL);
        if (!N(rescale)(q, p, end))
            return GB10_INFO_NOT_REPRESENTABLE;
        N(store_part)(q, args->R, b, p, end, 0, q->n, N(SHOW_R));
        N(store_part)(q, args->packed, b, p, q->m, p, end, N(SHOW_BOTH));
        N(store_part)(q, args->packed, b, p, end, end, q->n, N(SHOW_BOTH));
        gb10_lap(&since, times ? &times->unpack : NULL);
    }
    if (!q->aligned)
        N(form_t)(q, args->T, b);
    gb10_lap(&since, times ? &times->form_t : NULL);
    N(store_tau)(q, args->tau, b);
    gb10_lap(&since, times ? &times->unpack : NULL);
    return GB10_INFO_OK;
}

/* ---- workspace ---- */

/* The next `numbers` of the workspace; base NULL only counts. */
static REAL *N(take)(char *base, size_t *used, int64_t numbers)
{
    REAL *p = base ? (REAL *)(void *)(base + *used) : NULL;
    *used += (size_t)round_up(numbers * (int64_t)sizeof(REAL), 64);
    return p;
}

/* Lays the work arrays out in the workspace (NULL: only counts) and returns the bytes. */
static size_t N(layout)(work_t *q, const gb10_fast_call_t *call, char *base)
{
    const gb10_geqrf_args_t *args = call->args;
    size_t used = 0;
    int64_t line = 64 / (int64_t)sizeof(REAL);
    *q = (work_t){.m = args->A->m,
                  .n = args->A->n,
                  .group = call->row->group,
                  .apply = call->row->block,
                  .crew = call->crew,
                  .times = args->times};
    q->k = min64(q->m, q->n);
    q->nb = q->k > 0 ? min64(args->nb, q->k) : 1;
    q->aligned = q->nb == q->k || q->nb % LEAF == 0;
    q->block = min64(q->k, q->aligned ? round_up(BLOCK, q->nb) : BLOCK);
    int64_t widest = q->block > q->nb ? q->block : q->nb, strips = (PARTS * q->n + SW - 1) / SW;
    int64_t width = round_up(PARTS * widest, LEAF_VECTORS * VL), wide = round_up(width, SW);
    q->strip = q->m * SW + line; /* an odd number of lines: strips spread over sets */
    q->V = q->T = (mat_t){NULL, width};
    q->A = N(take)(base, &used, strips * q->strip);
    q->V.p = N(take)(base, &used, q->m * width);
    q->T.p = N(take)(base, &used, widest * width);
    int64_t strips_wide = min64(q->group, strips) * SW;
    q->apart = round_up(widest * (wide > strips_wide ? wide : strips_wide), line);
    q->W.p = N(take)(base, &used, q->apart * call->workers);
    q->X.p = N(take)(base, &used, q->apart * call->workers);
    q->Y.p = N(take)(base, &used, q->m > LONG_RUN ? q->apart * call->workers : 0);
    q->tau = N(take)(base, &used, PARTS * q->k);
    q->shift = base ? (int *)(void *)(base + used) : NULL;
    return used + (size_t)round_up(q->n * (int64_t)sizeof(int), 64);
}
