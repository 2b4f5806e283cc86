/* Rank-k update of one type; part of fast_type.h.
 *
 * op(A) = X + i Y is packed once, in panels of VL rows: X, Y and X + Y (Hermitian: X - Y as well)
 * lie apart, and the VL rows of one column are a vector. Three real products make a complex one:
 *     op(A) op(A)^T:  re = X X^T - Y Y^T,  im = (X + Y) (X + Y)^T - X X^T - Y Y^T
 *     op(A) op(A)^H:  re = X X^T + Y Y^T,  im = (X + Y) (X - Y)^T - X X^T + Y Y^T
 * (Gauss; Higham, SIAM J. Matrix Anal. Appl. 13, 1992: the error is bounded by the norms of the
 * rows, not by each part alone.) A tile is two vectors of rows by SYRK_COLUMNS columns, whose
 * numbers are spread from their own panel; tiles of the triangle only. SYRK_DEPTH columns of op(A)
 * are summed in one run, for SYRK_GROUP panels at a time, which stay in the second cache. Small
 * matrices are taken VL together, one a lane, with four products.
 *
 * alpha multiplies the sums, products are fused. Where that could end otherwise than the definition
 * (numbers near the ends of the range, NaN, Inf) the matrix is left to cpu-ref. */

#define SYRK_COLUMNS  (TILE_SUMS / 2 < 8 ? TILE_SUMS / 2 : 8)
#define SYRK_PRODUCTS (CPLX ? 3 : 1)
#define SYRK_LARGEST  (SINGLE ? (REAL)0x1p30 : (REAL)0x1p250)

typedef struct N(syrk) {
    int64_t n, k;
    int64_t plane, panel; /* numbers of a panel's X, and of all of it, in one run */
    int64_t run;          /* numbers of all panels in one run                     */
    REAL *P;
    bool upper, hermitian, negate; /* negate: the sums' imaginary parts */
    bool keep_old;                 /* beta is not 0                     */
    int64_t crs, ccs;              /* numbers from row to row, column to column of C */
    REAL alpha[2], beta[2];
} N(syrk_t);

/* Memory that will be read for the next matrix: lines asked for at a time. */
typedef struct N(syrk_next) {
    const char *at, *end;
    int64_t share;
} N(syrk_next_t);

/* ---- packing ---- */

/* Vectors of the caller's memory, at any address. */
INLINE vec_t N(syrk_get)(const REAL *p)
{
    vec_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* Numbers of two vectors that lie in turn: x the even ones, y the odd ones; and back. */
INLINE void N(syrk_part)(vec_t *x, vec_t *y)
{
    index_t even = {0}, odd = {0};
    UNROLL for (int l = 0; l < (int)VL; l++)
    {
        even[l] = 2 * (INDEX)l;
        odd[l] = 2 * (INDEX)l + 1;
    }
    const vec_t a = *x, b = *y;
    *x = __builtin_shuffle(a, b, even);
    *y = __builtin_shuffle(a, b, odd);
}
INLINE void N(syrk_mix)(vec_t *x, vec_t *y)
{
    index_t low = {0}, high = {0};
    UNROLL for (int l = 0; l < (int)VL; l++)
    {
        low[l] = (INDEX)(l / 2 + l % 2 * VL);
        high[l] = (INDEX)(VL / 2 + l / 2 + l % 2 * VL);
    }
    const vec_t a = *x, b = *y;
    *x = __builtin_shuffle(a, b, low);
    *y = __builtin_shuffle(a, b, high);
}

/* Elements from .. to-1, `stride` numbers apart, to one behind the other; and back. */
INLINE void N(syrk_gather)(REAL *numbers, const REAL *C, int64_t stride, int64_t from, int64_t to)
{
    for (int64_t i = from; i < to; i++)
        memcpy(numbers + i * PARTS, C + i * stride, PARTS * sizeof(REAL));
}
INLINE void N(syrk_scatter)(REAL *C, const REAL *numbers, int64_t stride, int64_t from, int64_t to)
{
    for (int64_t i = from; i < to; i++)
        memcpy(C + i * stride, numbers + i * PARTS, PARTS * sizeof(REAL));
}

/* `rows` rows and `depth` columns of op(A) from A on to X and Y of a panel; zeros below. Whole
 * vectors are read where that stays within the matrix. */
static void N(syrk_pack_rows)(const N(syrk_t) * q, REAL *to, const REAL *A, int64_t rs, int64_t cs,
                              int64_t rows, int64_t depth)
{
    const index_t inside = N(numbers)() < (index_t){0} + (INDEX)rows;
    int64_t l = 0;
    if (cs == PARTS)
        for (; l + VL / PARTS <= depth; l += VL / PARTS) {
            vec_t x[VL];
            for (int64_t i = 0; i < VL; i++)
                x[i] = i < rows ? N(syrk_get)(A + i * rs + l * PARTS) : splat(0);
            N(transpose)(x);
            UNROLL for (int i = 0; i < (int)VL; i++)
                keep(to + i % PARTS * q->plane + (l + i / PARTS) * VL, x[i]);
        }
    REAL numbers[PARTS * VL] __attribute__((aligned(VECTOR_BYTES))) = {0};
    for (; l < depth; l++) {
        const REAL *from = A + l * cs;
        if (rs != PARTS || PARTS * (VL - rows) > (depth - 1 - l) * cs) {
            N(syrk_gather)(numbers, from, rs, 0, rows);
            from = numbers;
        }
        vec_t x = N(syrk_get)(from), y = x;
        (void)y;
        if (CPLX) {
            y = N(syrk_get)(from + VL);
            N(syrk_part)(&x, &y);
            keep(to + q->plane + l * VL, (vec_t)((index_t)y & inside));
        }
        keep(to + l * VL, (vec_t)((index_t)x & inside));
    }
}

/* The largest size of some numbers so far, and NaN once one of them was NaN or Inf. */
typedef struct N(syrk_top) {
    vec_t most, bad;
} N(syrk_top_t);

INLINE void N(syrk_look)(N(syrk_top_t) * t, vec_t x)
{
    t->most = VMAX(N(absolute)(x), t->most);
    t->bad += x * 0;
}

/* Whether all are small enough for sums and fused products to be what they should be. */
static bool N(syrk_tame)(const N(syrk_top_t) * t)
{
    REAL most = 0, sum = 0;
    for (int64_t l = 0; l < VL; l++) {
        most = t->most[l] > most ? t->most[l] : most;
        sum += t->bad[l];
    }
    return sum == 0 && most < SYRK_LARGEST;
}

/* Columns l0 .. of op(A) to panels. */
static void N(syrk_pack_run)(const N(syrk_t) * q, const REAL *A, int64_t rs, int64_t cs, int64_t l0,
                             N(syrk_top_t) * top)
{
    const int64_t depth = min64(SYRK_DEPTH, q->k - l0);
    for (int64_t p = 0; p * VL < q->n; p++) {
        REAL *x = q->P + l0 / SYRK_DEPTH * q->run + p * q->panel;
        const int64_t rows = min64(VL, q->n - p * VL);
        N(syrk_pack_rows)(q, x, A + p * VL * rs + l0 * cs, rs, cs, rows, depth);
        for (int64_t e = 0; e < depth * VL; e += VL) {
            const vec_t re = load(x + e);
            N(syrk_look)(top, re);
            if (CPLX) {
                REAL *y = x + q->plane + e;
                const vec_t im = load(y);
                N(syrk_look)(top, im);
                keep(y + q->plane, re + im);
                if (q->hermitian)
                    keep(y + 2 * q->plane, re - im);
            }
        }
    }
}

/* op(A) to panels, run by run; false when it is not tame. */
static bool N(syrk_pack)(const N(syrk_t) * q, const REAL *A, int64_t rs, int64_t cs)
{
    N(syrk_top_t) top = {splat(0), splat(0)};
    for (int64_t l = 0; l < q->k; l += SYRK_DEPTH)
        N(syrk_pack_run)(q, A, rs, cs, l, &top);
    return N(syrk_tame)(&top);
}

/* The part of column j of C that is in the triangle, as rows. */
INLINE void N(syrk_range)(const N(syrk_t) * q, int64_t j, int64_t *from, int64_t *to)
{
    *from = q->upper ? 0 : j;
    *to = q->upper ? j + 1 : q->n;
}

/* Whether what is read of C is tame. */
static bool N(syrk_c_tame)(const N(syrk_t) * q, const REAL *C, int64_t rs, int64_t cs)
{
    N(syrk_top_t) top = {splat(0), splat(0)};
    for (int64_t j = 0; j < q->n; j++) {
        int64_t i, to;
        N(syrk_range)(q, j, &i, &to);
        const REAL *c = C + j * cs;
        for (; rs == PARTS && (to - i) * PARTS >= VL; i += VL / PARTS)
            N(syrk_look)(&top, N(syrk_get)(c + i * rs));
        for (; i < to; i++)
            for (int e = 0; e < PARTS; e++)
                N(syrk_look)(&top, splat(c[i * rs + e]));
    }
    return N(syrk_tame)(&top);
}

/* ---- products ---- */

/* sum[c] = rows of v panels from x on, times row y[c] of op(A), over `depth` columns. */
INLINE void N(syrk_product)(int v, int columns, const REAL *x, int64_t panel, const REAL **y,
                            int64_t depth, vec_t (*sum)[2])
{
    vec_t s[SYRK_COLUMNS][2];
    UNROLL for (int c = 0; c < columns; c++) UNROLL for (int r = 0; r < v; r++) s[c][r] = splat(0);
    for (int64_t l = 0; l < depth * VL; l += VL) {
        vec_t rows[2];
        UNROLL for (int r = 0; r < v; r++) rows[r] = load(x + r * panel + l);
        UNROLL for (int c = 0; c < columns; c++)
        {
            const vec_t number = splat(y[c][l]);
            UNROLL for (int r = 0; r < v; r++) s[c][r] = vfma(rows[r], number, s[c][r]);
        }
    }
    UNROLL for (int c = 0; c < columns; c++) UNROLL for (int r = 0; r < v; r++) sum[c][r] = s[c][r];
}

static void N(syrk_products)(int v, int columns, const REAL *x, int64_t panel, const REAL **y,
                             int64_t depth, vec_t (*sum)[2])
{
#define WIDTH(w)                                                                                   \
    case (w):                                                                                      \
        if ((w) <= SYRK_COLUMNS && v == 2)                                                         \
            N(syrk_product)(2, (w), x, panel, y, depth, sum);                                      \
        else if ((w) <= SYRK_COLUMNS)                                                              \
            N(syrk_product)(1, (w), x, panel, y, depth, sum);                                      \
        break
    switch (columns) {
        WIDTH(1);
        WIDTH(2);
        WIDTH(3);
        WIDTH(4);
        WIDTH(5);
        WIDTH(6);
        WIDTH(7);
        WIDTH(8);
    }
#undef WIDTH
}

/* Sums of a tile: real parts, imaginary parts. */
typedef struct N(syrk_tile) {
    int64_t p, j; /* its first panel and column */
    int v, columns;
    vec_t re[SYRK_COLUMNS][2], im[SYRK_COLUMNS][2];
} N(syrk_tile_t);

static void N(syrk_sums)(const N(syrk_t) * q, N(syrk_tile_t) * t, int64_t l0, int64_t depth)
{
    const REAL *P = q->P + l0 / SYRK_DEPTH * q->run, *x = P + t->p * q->panel, *y[SYRK_COLUMNS];
    vec_t sum[SYRK_PRODUCTS][SYRK_COLUMNS][2];
    for (int e = 0; e < SYRK_PRODUCTS; e++) {
        const int64_t mate = (e == 2 && q->hermitian ? 3 : e) * q->plane;
        for (int c = 0; c < t->columns; c++)
            y[c] = P + (t->j + c) / VL * q->panel + (t->j + c) % VL + mate;
        N(syrk_products)(t->v, t->columns, x + e * q->plane, q->panel, y, depth, sum[e]);
    }
    for (int c = 0; c < t->columns; c++)
        for (int r = 0; r < t->v; r++) {
            const vec_t a = sum[0][c][r];
            t->re[c][r] = a;
#if CPLX
            const vec_t b = sum[1][c][r], both = sum[2][c][r];
            const vec_t im = q->hermitian ? both - a + b : both - a - b;
            t->re[c][r] = q->hermitian ? a + b : a - b;
            t->im[c][r] = q->negate ? -im : im;
#endif
        }
}

/* ---- C ---- */

/* VL rows of a column of C from i0 on: C <- beta C + alpha (re + i im), or C <- C + ... when not
 * `fresh`; only those in the triangle are read or written. */
INLINE void N(syrk_put)(const N(syrk_t) * q, REAL *C, int64_t i0, int64_t j, bool fresh, vec_t re,
                        vec_t im)
{
    int64_t from, to, rs = q->crs;
    N(syrk_range)(q, j, &from, &to);
    from = from > i0 ? from - i0 : 0;
    to = min64(to - i0, VL);
    const bool real = CPLX && q->hermitian && j >= i0 && j < i0 + VL;
    const bool whole = from == 0 && to == VL && rs == PARTS && !real;
    REAL numbers[PARTS * VL] __attribute__((aligned(VECTOR_BYTES)));
    vec_t x[2] = {splat(q->alpha[0]) * re, splat(0)};
    C += i0 * rs;
    if (CPLX) {
        x[0] = vfnma(splat(q->alpha[1]), im, x[0]);
        x[1] = vfma(splat(q->alpha[1]), re, splat(q->alpha[0]) * im);
        N(syrk_mix)(&x[0], &x[1]);
    }
    if (q->keep_old || !fresh) {
        if (!whole) {
            UNROLL for (int e = 0; e < PARTS; e++) keep(numbers + e * VL, splat(0));
            N(syrk_gather)(numbers, C, rs, from, to);
        }
        UNROLL for (int e = 0; e < PARTS; e++)
        {
            const vec_t old = N(syrk_get)((whole ? C : numbers) + e * VL);
            x[e] += fresh ? multiple(q->beta[0], q->beta[1], old) : old;
        }
    }
    if (whole) {
        memcpy(C, x, PARTS * sizeof *x);
        return;
    }
    memcpy(numbers, x, sizeof numbers);
    if (real)
        numbers[(j - i0) * PARTS + PARTS - 1] = 0;
    N(syrk_scatter)(C, numbers, rs, from, to);
}

/* Asks for the memory of a tile's part of C, which its sums will take a while to need. */
INLINE void N(syrk_ask)(const N(syrk_t) * q, const REAL *C, const N(syrk_tile_t) * t)
{
    enum { LINE = 64 / sizeof(REAL) };
    const int64_t i0 = t->p * VL, i1 = min64((t->p + t->v) * VL, q->n);
    if (q->crs != PARTS)
        return;
    for (int64_t j = t->j; j < t->j + t->columns; j++)
        for (int64_t i = i0 * PARTS; i < i1 * PARTS; i += LINE)
            __builtin_prefetch(C + j * q->ccs + i, 1);
}

/* Asks for a share of the next matrix's A, in equal shares over the tiles of this one. */
INLINE void N(syrk_ask_next)(N(syrk_next_t) * next)
{
    for (int64_t i = 0; i < next->share && next->at < next->end; i++, next->at += 64)
        __builtin_prefetch(next->at);
}

/* Columns j .. of the triangle in panels p0 .. p1-1, over one run of columns of op(A). */
static void N(syrk_columns)(const N(syrk_t) * q, N(syrk_next_t) * next, REAL *C, int64_t j,
                            int columns, int64_t p0, int64_t p1, int64_t l0, int64_t depth)
{
    const int64_t first = q->upper ? 0 : j / VL;
    const int64_t last = q->upper ? (j + columns + VL - 1) / VL : p1;
    N(syrk_tile_t) t = {.j = j, .columns = columns};
    for (t.p = p0 > first ? p0 : first; t.p < min64(p1, last); t.p += t.v) {
        t.v = (int)min64(2, min64(p1, last) - t.p);
        N(syrk_ask)(q, C, &t);
        N(syrk_ask_next)(next);
        N(syrk_sums)(q, &t, l0, depth);
        for (int c = 0; c < columns; c++)
            for (int r = 0; r < t.v; r++)
                N(syrk_put)
        (q, C + (j + c) * q->ccs, (t.p + r) * VL, j + c, l0 == 0, t.re[c][r], t.im[c][r]);
    }
}

static void N(syrk_triangle)(const N(syrk_t) * q, N(syrk_next_t) * next, REAL *C)
{
    const int64_t panels = (q->n + VL - 1) / VL, tiles = (q->n + SYRK_COLUMNS - 1) / SYRK_COLUMNS;
    for (int64_t l = 0; l < q->k; l += SYRK_DEPTH)
        for (int64_t p = 0; p < panels; p += SYRK_GROUP)
            for (int64_t t = 0; t < tiles; t++) {
                const int64_t j = t * q->n / tiles; /* tiles of about the same width */
                N(syrk_columns)
                (q, next, C, j, (int)((t + 1) * q->n / tiles - j), p, min64(p + SYRK_GROUP, panels),
                 l, min64(SYRK_DEPTH, q->k - l));
            }
}

/* ---- small matrices, one a lane ---- */

INLINE bool N(syrk_small)(int64_t n, int64_t k)
{
    return n <= SYRK_LANE_ROWS && n * k <= SYRK_LANE_MOST;
}

/* Two rows from i on and two columns from j on of the sums, times alpha; the last row stands in for
 * one that is not there. rs, cs: numbers from row to row and column to column of op(A). */
INLINE void N(syrk_square)(const N(syrk_t) * q, bool hermitian, const REAL *A, int64_t rs,
                           int64_t cs, int64_t i, int64_t j, REAL *S)
{
    const int64_t row[2] = {i, min64(i + 1, q->n - 1)}, column[2] = {j, min64(j + 1, q->n - 1)};
    num_t s[2][2];
    UNROLL for (int r = 0; r < 2; r++) UNROLL for (int c = 0; c < 2; c++) s[r][c] = N(zero)();
    for (int64_t l = 0; l < q->k; l++) {
        const REAL *at = A + l * cs;
        const num_t x[2] = {get(at + row[0] * rs), get(at + row[1] * rs)};
        const num_t y[2] = {get(at + column[0] * rs), get(at + column[1] * rs)};
        UNROLL for (int r = 0; r < 2; r++) UNROLL for (int c = 0; c < 2; c++) s[r][c] =
            hermitian ? N(add_conj)(s[r][c], y[c], x[r]) : N(add)(s[r][c], y[c], x[r]);
    }
    const num_t alpha = {splat(q->alpha[0]), splat(q->alpha[1])};
    UNROLL for (int r = 0; r < 2; r++) UNROLL for (int c = 0; c < 2; c++)
    {
        if (q->negate)
            s[r][c] = conjugate(s[r][c]);
        set(S + (column[c] * q->n + row[r]) * PARTS * VL, N(mul)(alpha, s[r][c]));
    }
}

/* The triangle of one matrix from lane l of the sums. */
static void N(syrk_lane_out)(const N(syrk_t) * q, const REAL *S, REAL *C, int64_t rs, int64_t cs)
{
    const REAL br = q->beta[0], bi = q->beta[1];
    (void)bi;
    for (int64_t j = 0; j < q->n; j++) {
        int64_t i, to;
        N(syrk_range)(q, j, &i, &to);
        const REAL *s = S + (j * q->n + i) * PARTS * VL;
        for (REAL *c = C + i * rs + j * cs; i < to; i++, c += rs, s += PARTS * VL) {
            REAL x[2] = {s[0], CPLX ? s[VL * CPLX] : 0};
            if (q->keep_old) {
                x[0] += br * c[0] - (CPLX ? bi * c[CPLX] : 0);
                x[1] += CPLX ? br * c[CPLX] + bi * c[0] : 0;
            }
            c[0] = x[0];
            if (CPLX)
                c[CPLX] = q->hermitian && i == j ? 0 : x[1];
        }
    }
}

/* Matrices b .. b+valid-1, at most VL. */
static void N(syrk_lanes)(const N(syrk_t) * q, const gb10_syrk_args_t *a, int64_t b, int64_t valid,
                          REAL *work, bool *left)
{
    const int64_t numbers = a->A->m * a->A->n * PARTS * VL;
    const int64_t down = a->A->n * PARTS * VL, right = PARTS * VL;
    const int64_t rs = a->trans == 'N' ? down : right, cs = a->trans == 'N' ? right : down;
    N(syrk_top_t) top = {splat(0), splat(0)};
    REAL *S = work + numbers;
    N(lanes_in)(a->A, b, valid, work, a->A->n);
    for (int64_t e = 0; e < numbers; e += VL)
        N(syrk_look)(&top, load(work + e));
    for (int64_t j = 0; j < q->n; j += 2)
        for (int64_t i = q->upper ? 0 : j; i < (q->upper ? j + 2 : q->n); i += 2)
            if (q->hermitian)
                N(syrk_square)(q, true, work, rs, cs, i, j, S);
            else
                N(syrk_square)(q, false, work, rs, cs, i, j, S);
    for (int64_t l = 0; l < valid; l++) {
        REAL *C = gb10_view_at(a->C, b + l);
        left[l] = !(top.bad[l] == 0 && top.most[l] < SYRK_LARGEST) ||
                  (q->keep_old && !N(syrk_c_tame)(q, C, q->crs, q->ccs));
        if (!left[l])
            N(syrk_lane_out)(q, S + l, C, q->crs, q->ccs);
    }
}

/* ---- a batch ---- */

static size_t N(syrk_need)(const gb10_syrk_args_t *a)
{
    const int64_t n = a->C->n, k = a->trans == 'N' ? a->A->n : a->A->m;
    if (N(syrk_small)(n, k))
        return (size_t)(n * (n + k) * PARTS * VL) * sizeof(REAL);
    const int64_t deep = k > SYRK_DEPTH ? round_up(k, SYRK_DEPTH) : k;
    return (size_t)(round_up(n, VL) * deep * (CPLX ? 4 : 1)) * sizeof(REAL);
}

static bool N(syrk_scalar_tame)(const REAL *x)
{
    return ABS(x[0]) < SYRK_LARGEST && ABS(x[1]) < SYRK_LARGEST;
}

/* A of matrix b, where it is small and lies in one piece. */
static N(syrk_next_t) N(syrk_next_of)(const N(syrk_t) * q, const gb10_view_t *A, int64_t b)
{
    const int64_t bytes = A->m * A->n * PARTS * (int64_t)sizeof(REAL);
    const bool dense = (A->cs == 1 && A->rs == A->n) || (A->rs == 1 && A->cs == A->m);
    const char *at = gb10_view_at(A, b);
    if (!dense || bytes > SYRK_AHEAD)
        return (N(syrk_next_t)){0};
    const int64_t tiles = (q->n / SYRK_COLUMNS + 1) * (q->n / (4 * VL) + 1);
    return (N(syrk_next_t)){at, at + bytes, bytes / 64 / tiles + 1};
}

/* Matrices b .. b+count-1, at most FAST_TOGETHER; left[i]: the i-th of them is for cpu-ref and
 * was not written. */
static void N(syrk)(const gb10_syrk_args_t *a, int64_t b, int64_t count, void *workspace,
                    bool *left)
{
    const bool first = a->trans == 'N';
    const int64_t k = first ? a->A->n : a->A->m;
    const int64_t rs = PARTS * (first ? a->A->rs : a->A->cs);
    const int64_t cs = PARTS * (first ? a->A->cs : a->A->rs);
    /* Row-major: the other triangle of the transpose, which is the same sums, conjugated. */
    const bool turned = a->C->cs == 1 && a->C->rs != 1;
    N(syrk_t)
    q = {.n = a->C->n,
         .k = k,
         .crs = PARTS * (turned ? a->C->cs : a->C->rs),
         .ccs = PARTS * (turned ? a->C->rs : a->C->cs),
         .plane = min64(k, SYRK_DEPTH) * VL,
         .P = workspace,
         .upper = (a->uplo == 'U') != turned,
         .hermitian = a->hermitian && CPLX,
         .negate = a->hermitian && first == turned,
         .alpha = {(REAL)a->alpha[0], CPLX ? (REAL)a->alpha[1] : 0},
         .beta = {(REAL)a->beta[0], CPLX ? (REAL)a->beta[1] : 0}};
    q.panel = q.plane * (q.hermitian ? 4 : SYRK_PRODUCTS);
    q.run = (q.n + VL - 1) / VL * q.panel;
    q.keep_old = q.beta[0] != 0 || q.beta[1] != 0;
    const bool usual = k > 0 && (q.alpha[0] != 0 || q.alpha[1] != 0) &&
                       N(syrk_scalar_tame)(q.alpha) && N(syrk_scalar_tame)(q.beta);
    for (int64_t i = 0; i < count && usual && N(syrk_small)(q.n, k); i += VL)
        N(syrk_lanes)(&q, a, b + i, min64(VL, count - i), workspace, left + i);
    for (int64_t i = 0; i < count && !(usual && N(syrk_small)(q.n, k)); i++) {
        REAL *C = gb10_view_at(a->C, b + i);
        left[i] = !usual || (q.keep_old && !N(syrk_c_tame)(&q, C, q.crs, q.ccs)) ||
                  !N(syrk_pack)(&q, gb10_view_at(a->A, b + i), rs, cs);
        N(syrk_next_t) next = {0};
        if (i + 1 < count)
            next = N(syrk_next_of)(&q, a->A, b + i + 1);
        if (!left[i])
            N(syrk_triangle)(&q, &next, C);
    }
}
#undef SYRK_COLUMNS
#undef SYRK_PRODUCTS
#undef SYRK_LARGEST
