/* Tiny matrices of one type: one matrix in every lane of a vector; part of fast_type.h.
 *
 * VL matrices are a group. Each number of a matrix becomes a vector: number (i n + j) PARTS + part
 * of all of them, so that reading and writing are transpositions of VL x VL numbers, and all sums
 * stay in their lane: a matrix does not know its neighbours. Panels of PANEL columns are factored
 * with one pass over the rows for each reflector and applied to the columns after them with V, T
 * and W in registers. R stays in A, below its diagonal zeros; V has its own array with ones and
 * zeros. Leftover lanes repeat the last matrix. */

#define lanes_t N(lanes_t)
typedef struct lanes_t {
    int64_t m, n, k, nb;
    int64_t an, vn; /* elements in a row of A, and of V and T                             */
    int64_t groups; /* groups treated together: they share the first cache                */
    int64_t size;   /* numbers of a group's arrays                                        */
    bool ahead;     /* the batch is too large for the cache: memory is asked for early    */
    REAL *A, *V, *T, *tau, *X;
    int *shift; /* n x VL */
    bool *odd;  /* one a group: some lane needs more than the usual */
    uint8_t *info;
} lanes_t;

/* Memory that will be wanted soon is asked for in pieces, `lines` of each range with every column,
 * so that it comes while there is work. */
typedef struct N(ahead) {
    const char *at[AHEAD_RANGES];
    int64_t lines[AHEAD_RANGES];
    bool any;
} N(ahead_t);

INLINE void N(lane_ahead)(N(ahead_t) * q)
{
    if (!q->any)
        return;
    UNROLL for (int i = 0; i < AHEAD_RANGES; i++)
    {
        int64_t lines = q->lines[i];
        for (int64_t l = 0; l < lines; l++, q->at[i] += 64)
            __builtin_prefetch(q->at[i]);
    }
}

/* ---- one panel ---- */

/* A number of all lanes: real, or complex in two vectors. */
typedef struct N(num) {
    vec_t re, im;
} N(num_t);
#define num_t N(num_t)

INLINE num_t N(get)(const REAL *p)
{
    return (num_t){load(p), CPLX ? load(p + VL * CPLX) : splat(0)};
}
#define get N(get)

INLINE void N(set)(REAL *p, num_t x)
{
    keep(p, x.re);
    if (CPLX)
        keep(p + VL * CPLX, x.im);
}
#define set N(set)

/* s + a b, s + conj(a) b, s - a b. */
INLINE num_t N(add)(num_t s, num_t a, num_t b)
{
    s.re = vfma(a.re, b.re, s.re);
    if (CPLX) {
        s.re = vfnma(a.im, b.im, s.re);
        s.im = vfma(a.re, b.im, s.im);
        s.im = vfma(a.im, b.re, s.im);
    }
    return s;
}

INLINE num_t N(add_conj)(num_t s, num_t a, num_t b)
{
    s.re = vfma(a.re, b.re, s.re);
    if (CPLX) {
        s.re = vfma(a.im, b.im, s.re);
        s.im = vfma(a.re, b.im, s.im);
        s.im = vfnma(a.im, b.re, s.im);
    }
    return s;
}

INLINE num_t N(subtract)(num_t s, num_t a, num_t b)
{
    s.re = vfnma(a.re, b.re, s.re);
    if (CPLX) {
        s.re = vfma(a.im, b.im, s.re);
        s.im = vfnma(a.re, b.im, s.im);
        s.im = vfnma(a.im, b.re, s.im);
    }
    return s;
}

INLINE num_t N(zero)(void)
{
    return (num_t){splat(0), splat(0)};
}

INLINE num_t N(plus)(num_t a, num_t b)
{
    a.re += b.re;
    if (CPLX)
        a.im += b.im;
    return a;
}

INLINE num_t N(mul)(num_t a, num_t b)
{
    num_t s = {a.re * b.re, splat(0)};
    if (CPLX) {
        s.re = vfnma(a.im, b.im, s.re);
        s.im = vfma(a.im, b.re, a.re * b.im);
    }
    return s;
}

INLINE num_t N(conjugate)(num_t a)
{
    if (CPLX)
        a.im = -a.im;
    return a;
}
#define conjugate N(conjugate)

/* A reflector of every lane, as larfg_t; inv = 1 / d and conj(tau) = less conj(d), so that
 * conj(tau) (x + conj(inv) s) = less (conj(d) x + s) need not wait for inv. */
typedef struct N(lane_larfg) {
    vec_t beta, scale, less;
    num_t tau, inv, d;
} N(lane_larfg_t);

/* Dots of column j with the w columns of the panel at `a` (row r0 on), rows from the last up. */
INLINE void N(lane_dots)(const REAL *a, int64_t rs, int64_t rows, int w, int j, num_t *dots)
{
    UNROLL for (int c = 0; c < w; c++) dots[c] = N(zero)();
    for (int64_t end = rows; end > 0; end -= LANE_RUN) {
        num_t part[PANEL];
        UNROLL for (int c = 0; c < w; c++) part[c] = N(zero)();
        for (int64_t i = end - 1; i >= 0 && i >= end - LANE_RUN; i--) {
            num_t y = get(a + i * rs + j * PARTS * VL);
            UNROLL for (int c = 0; c < w; c++) part[c] =
                N(add_conj)(part[c], y, get(a + i * rs + c * PARTS * VL));
        }
        UNROLL for (int c = 0; c < w; c++) dots[c] =
            end == rows ? part[c] : N(plus)(dots[c], part[c]);
    }
}

/* Lanes of column j whose sum of squares was out of the safe window. */
typedef struct N(lane_trouble) {
    num_t alpha, dots[PANEL];
    vec_t scale;
    index_t bad, same; /* same: x = 0 and a real alpha, H = I */
} N(lane_trouble_t);

/* Their x is scaled by a power of two and their dots are formed again. `a` is the panel from the
 * row after the diagonal on. */
static NOINLINE void N(lane_rescue)(REAL *a, int64_t rs, int64_t rows, int w, int j,
                                    N(lane_trouble_t) * h)
{
    num_t again[PANEL];
    for (int l = 0; l < (int)VL; l++) {
        REAL top = 0, im = CPLX ? ABS(h->alpha.im[l]) : 0, re = ABS(h->alpha.re[l]);
        for (int64_t i = 0; h->bad[l] && i < rows; i++)
            for (int part = 0; part < PARTS; part++) {
                REAL x = ABS(a[i * rs + (j * PARTS + part) * VL + l]);
                top = x > top ? x : top;
            }
        h->same[l] = h->bad[l] && top == 0 && im == 0 ? -1 : 0;
        top = re > top ? re : top;
        top = im > top ? im : top;
        if (!h->bad[l] || h->same[l])
            continue;
        int e = ilogb((double)top);
        h->scale[l] = (REAL)ldexp(1, e > 0 ? 0 : e < EXP_RESCUE ? -EXP_RESCUE : -e);
        h->alpha.re[l] *= h->scale[l];
        h->alpha.im[l] *= h->scale[l];
        for (int64_t i = 0; i < rows; i++)
            for (int part = 0; part < PARTS; part++)
                a[i * rs + (j * PARTS + part) * VL + l] *= h->scale[l];
    }
    N(lane_dots)(a, rs, rows, w, j, again);
    for (int c = 0; c < w; c++) {
        h->dots[c].re = select(h->bad, again[c].re, h->dots[c].re);
        h->dots[c].im = select(h->bad, again[c].im, h->dots[c].im);
    }
}

/* beta, tau and inv of column j; `a` is the panel's row with the diagonal, `rows` are below it.
 * What the rare cases take the address of is copied there, so that the rest stays in registers. */
INLINE N(lane_larfg_t) N(lane_larfg)(REAL *a, int64_t rs, int64_t rows, int w, int j, num_t *dots)
{
    N(lane_larfg_t) h;
    num_t alpha = get(a + j * PARTS * VL);
    vec_t minus = splat((REAL)-0.0), one = splat(1), real = alpha.re;
    index_t bad = ~(dots[j].re > splat((REAL)LEAST)), same = (index_t){0};
    h.scale = one;
    if (rows == 0 && !CPLX) /* H = I */
        return (N(lane_larfg_t)){.beta = alpha.re, .scale = one};
    if (rows == 0) /* no tail to look after, if alpha is neither real nor tiny */
        bad &= ~((alpha.im != splat(0)) & (alpha.im * alpha.im > splat((REAL)LEAST)));
    if (__builtin_expect(N(any)(bad), 0)) {
        N(lane_trouble_t) rare = {.alpha = alpha, .scale = one, .bad = bad};
        UNROLL for (int c = 0; c < w; c++) rare.dots[c] = dots[c];
        N(lane_rescue)(a + rs, rs, rows, w, j, &rare);
        UNROLL for (int c = 0; c < w; c++) dots[c] = rare.dots[c];
        alpha = rare.alpha;
        same = rare.same;
        h.scale = rare.scale;
    }
    vec_t sum = vfma(alpha.re, alpha.re, dots[j].re);
    if (CPLX)
        sum = vfma(alpha.im, alpha.im, sum);
    sum = select(same, one, sum); /* no division by zero */
    vec_t root = VSQRT(sum);
    vec_t beta = (vec_t)((index_t)root | (~(index_t)alpha.re & (index_t)minus));
    vec_t d = alpha.re - beta, keep_lane = (vec_t)~same;
    h.less = splat(-1) / beta;
    h.d = (num_t){d, alpha.im};
    h.tau.re = (beta - alpha.re) / beta;
    h.tau.im = h.inv.im = splat(0);
    if (CPLX) {
        vec_t square = vfma(d, d, alpha.im * alpha.im);
        h.tau.im = -alpha.im / beta;
        h.inv.re = d / square;
        h.inv.im = -alpha.im / square;
    } else {
        h.inv.re = one / d;
    }
    h.beta = beta;
    if (__builtin_expect(N(any)(bad), 0)) {
        h.beta = select(same, real, beta / h.scale);
        h.less = (vec_t)((index_t)h.less & (index_t)keep_lane);
        h.tau.re = (vec_t)((index_t)h.tau.re & (index_t)keep_lane);
        h.tau.im = (vec_t)((index_t)h.tau.im & (index_t)keep_lane);
        h.inv.re = (vec_t)((index_t)h.inv.re & (index_t)keep_lane);
        h.inv.im = (vec_t)((index_t)h.inv.im & (index_t)keep_lane);
    }
    return h;
}

/* Column j of T from s = V^H v_j: T(:, j) = -tau T s. */
INLINE void N(lane_t_column)(num_t t[PANEL][PANEL], int j, num_t tau, const num_t *s)
{
    UNROLL for (int a = 0; a < j; a++)
    {
        num_t sum = N(zero)();
        UNROLL for (int l = a; l < j; l++) sum = N(add)(sum, t[a][l], s[l]);
        t[a][j] = N(subtract)(N(zero)(), tau, sum);
    }
    t[j][j] = tau;
}

/* Row r of a panel: column j times inv is V's, and that times wc leaves the columns after it; y:
 * the row that comes of it. */
INLINE void N(lane_row)(int w, int j, REAL *r, REAL *v, num_t inv, const num_t *wc, num_t *y)
{
    num_t x = N(mul)(get(r + j * PARTS * VL), inv);
    set(v + j * PARTS * VL, x);
    UNROLL for (int c = 0; c < w; c++)
    {
        y[c] = get(r + c * PARTS * VL);
        if (c > j) {
            y[c] = N(subtract)(y[c], x, wc[c]);
            set(r + c * PARTS * VL, y[c]);
        }
    }
}

/* What a panel knows of one group between its columns. */
typedef struct N(lane_panel) {
    num_t dots[PANEL], inv[PANEL], wc[PANEL], t[PANEL][PANEL];
} N(lane_panel_t);

/* Reflector j of a panel from its dots: tau, column j of T, and the row with the diagonal, at
 * `row`, becomes R's. */
INLINE void N(lane_reflect)(int w, int j, REAL *row, int64_t rs, int64_t below, REAL *tau,
                            N(lane_panel_t) * q)
{
    num_t s[PANEL];
    N(lane_larfg_t) h = N(lane_larfg)(row, rs, below, w, j, q->dots);
    q->inv[j] = h.inv;
    set(tau + j * PARTS * VL, h.tau);
    UNROLL for (int c = 0; c < w; c++)
    {
        REAL *at_c = row + c * PARTS * VL;
        num_t old = get(at_c);
        if (c < j)
            s[c] = conjugate(N(mul)(q->inv[c], N(add)(old, conjugate(h.inv), q->dots[c])));
        if (c > j) {
            num_t z = N(add_conj)(q->dots[c], h.d, old), wc = {z.re * h.less, z.im * h.less};
            set(at_c, (num_t){old.re - wc.re, old.im - wc.im});
            q->wc[c] = wc;
        }
    }
    set(row + j * PARTS * VL, (num_t){h.beta, splat(0)});
    N(lane_t_column)(q->t, j, h.tau, s);
}

/* Applies reflector j to the rows below `row`; dots for the next one. */
INLINE void N(lane_sweep)(int w, int j, REAL *row, int64_t rs, int64_t below, REAL *v, int64_t vs,
                          N(lane_panel_t) * q)
{
    num_t y[PANEL], wc[PANEL], inv = q->inv[j];
    UNROLL for (int c = j + 1; c < w; c++) wc[c] = q->wc[c];
    if (j + 1 == w) {
        for (int64_t i = 1; i <= below; i++)
            N(lane_row)(w, j, row + i * rs, v + i * vs, inv, wc, y);
        return;
    }
    UNROLL for (int c = 0; c < w; c++) q->dots[c] = N(zero)();
    for (int64_t end = below; end > 1; end -= LANE_RUN) {
        num_t part[PANEL];
        UNROLL for (int c = 0; c < w; c++) part[c] = N(zero)();
        for (int64_t i = end; i > 1 && i > end - LANE_RUN; i--) {
            N(lane_row)(w, j, row + i * rs, v + i * vs, inv, wc, y);
            UNROLL for (int c = 0; c < w; c++) part[c] = N(add_conj)(part[c], y[j + 1], y[c]);
        }
        UNROLL for (int c = 0; c < w; c++) q->dots[c] =
            end == below ? part[c] : N(plus)(q->dots[c], part[c]);
    }
    if (below > 0)
        N(lane_row)(w, j, row + rs, v + vs, inv, wc, y);
}

/* Factors the w columns of a panel whose first diagonal element is at `a`, with `rows` rows from
 * there on: tau, T (upper), V to v, R in place with zeros below. */
INLINE void N(lane_panel)(int w, REAL *a, int64_t rs, int64_t rows, REAL *v, int64_t vs, REAL *tau,
                          N(ahead_t) * ahead, N(lane_panel_t) * q)
{
    N(lane_dots)(a + rs, rs, rows - 1, w, 0, q->dots);
    UNROLL for (int j = 0; j < w; j++)
    {
        N(lane_ahead)(ahead);
        N(lane_reflect)(w, j, a + j * rs, rs, rows - 1 - j, tau, q);
        N(lane_sweep)(w, j, a + j * rs, rs, rows - 1 - j, v + j * vs, vs, q);
    }
    UNROLL for (int i = 1; i < w; i++) UNROLL for (int c = 0; c < i; c++)
        set(a + i * rs + c * PARTS * VL, N(zero)());
    for (int64_t i = w; i < rows; i++)
        UNROLL for (int c = 0; c < w; c++) set(a + i * rs + c * PARTS * VL, N(zero)());
}

/* W = V^H C for the w columns of V and nc columns at c. The rows of V's triangle are written out:
 * what is known to be 0 or 1 is left out. */
INLINE void N(lane_sums)(int w, int nc, const REAL *v, int64_t vs, const REAL *c, int64_t rs,
                         int64_t rows, num_t W[PANEL][LANE_TILE_MOST])
{
    UNROLL for (int a = 0; a < w; a++) UNROLL for (int b = 0; b < nc; b++) W[a][b] = N(zero)();
    for (int64_t end = rows; end > w; end -= LANE_RUN) {
        num_t part[PANEL][LANE_TILE_MOST];
        UNROLL for (int a = 0; a < w; a++) UNROLL for (int b = 0; b < nc; b++) part[a][b] =
            N(zero)();
        for (int64_t i = end - 1; i >= w && i >= end - LANE_RUN; i--)
            UNROLL for (int a = 0; a < w; a++) UNROLL for (int b = 0; b < nc; b++) part[a][b] =
                N(add_conj)(part[a][b], get(v + i * vs + a * PARTS * VL),
                            get(c + i * rs + b * PARTS * VL));
        UNROLL for (int a = 0; a < w; a++) UNROLL for (int b = 0; b < nc; b++) W[a][b] =
            end == rows ? part[a][b] : N(plus)(W[a][b], part[a][b]);
    }
    UNROLL for (int i = w - 1; i >= 0; i--) UNROLL for (int b = 0; b < nc; b++)
    {
        num_t x = get(c + i * rs + b * PARTS * VL);
        UNROLL for (int a = 0; a < i; a++) W[a][b] =
            N(add_conj)(W[a][b], get(v + i * vs + a * PARTS * VL), x);
        W[i][b] = N(plus)(W[i][b], x);
    }
}

/* C <- (I - V T^H V^H) C for nc columns at c and the w columns of V, over `rows` rows. */
INLINE void N(lane_update)(int w, int nc, const REAL *v, int64_t vs, REAL *c, int64_t rs,
                           int64_t rows, num_t t[PANEL][PANEL])
{
    num_t W[PANEL][LANE_TILE_MOST];
    N(lane_sums)(w, nc, v, vs, c, rs, rows, W);
    UNROLL for (int a = w - 1; a >= 0; a--) UNROLL for (int b = 0; b < nc; b++)
    {
        num_t sum = N(mul)(conjugate(t[a][a]), W[a][b]);
        UNROLL for (int l = a - 1; l >= 0; l--) sum = N(add_conj)(sum, t[l][a], W[l][b]);
        W[a][b] = sum;
    }
    UNROLL for (int i = 0; i < w; i++) UNROLL for (int b = 0; b < nc; b++)
    {
        num_t sum = W[i][b];
        UNROLL for (int a = 0; a < i; a++) sum =
            N(add)(sum, get(v + i * vs + a * PARTS * VL), W[a][b]);
        REAL *at_c = c + i * rs + b * PARTS * VL;
        num_t old = get(at_c);
        set(at_c, (num_t){old.re - sum.re, old.im - sum.im});
    }
    for (int64_t i = w; i < rows; i++)
        UNROLL for (int b = 0; b < nc; b++)
        {
            num_t sum = N(mul)(get(v + i * vs), W[0][b]);
            UNROLL for (int a = 1; a < w; a++) sum =
                N(add)(sum, get(v + i * vs + a * PARTS * VL), W[a][b]);
            REAL *at_c = c + i * rs + b * PARTS * VL;
            num_t old = get(at_c);
            set(at_c, (num_t){old.re - sum.re, old.im - sum.im});
        }
}

/* Calls of TILE(columns) for `count` columns from x on: three and one are two and two. */
#define LANE_TILES(x, count, TILE)                                                                 \
    do {                                                                                           \
        for (; (count) - (x) >= LANE_TILE && !(LANE_TILE == 3 && (count) - (x) == 4);              \
             (x) += LANE_TILE)                                                                     \
            TILE(LANE_TILE);                                                                       \
        for (; LANE_TILE > 2 && (count) - (x) >= 2; (x) += 2)                                      \
            TILE(2);                                                                               \
        for (; (x) < (count); (x)++)                                                               \
            TILE(1);                                                                               \
    } while (0)

/* Sizes of lanes_t that may be constants. */
typedef struct N(lane_shape) {
    int64_t m, n, nb, an, vn;
} N(lane_shape_t);

/* The arrays of one group. */
typedef struct N(group) {
    REAL *A, *V, *T, *tau;
    N(ahead_t) ahead;
} N(group_t);

/* Panel of w columns from p, and its update of all columns after it. */
INLINE void N(lane_step)(int w, N(lane_shape_t) q, N(group_t) * g, int64_t p)
{
    N(lane_panel_t) panel;
    int64_t rs = q.an * PARTS * VL, vs = q.vn * PARTS * VL, rows = q.m - p, j = p + w;
    REAL *a = g->A + p * rs, *v = g->V + p * vs + p * PARTS * VL;
    REAL *t = g->T + p % q.nb * vs + p * PARTS * VL;
    N(lane_panel)
    (w, a + p * PARTS * VL, rs, rows, v, vs, g->tau + p * PARTS * VL, &g->ahead, &panel);
#define LANE_UPDATE(nc) N(lane_update)(w, nc, v, vs, a + j * PARTS * VL, rs, rows, panel.t)
    LANE_TILES(j, q.n, LANE_UPDATE);
#undef LANE_UPDATE
    UNROLL for (int i = 0; i < w; i++) UNROLL for (int l = i; l < w; l++)
        set(t + i * vs + l * PARTS * VL, panel.t[i][l]);
}

INLINE void N(lane_steps)(N(lane_shape_t) q, N(group_t) * g)
{
    int64_t p = 0, k = min64(q.m, q.n);
    for (; p + PANEL <= k; p += PANEL)
        N(lane_step)(PANEL, q, g, p);
    if (k - p == 3)
        N(lane_step)(3, q, g, p);
    else if (k - p == 2)
        N(lane_step)(2, q, g, p);
    else if (k - p == 1)
        N(lane_step)(1, q, g, p);
}

/* Common sizes have their own code. */
static void N(lane_factor)(const lanes_t *q, N(group_t) * g)
{
    if (q->m == 4 && q->n == 4)
        N(lane_steps)((N(lane_shape_t)){4, 4, 4, 4, 4}, g);
    else if (q->m == 8 && q->n == 8)
        N(lane_steps)((N(lane_shape_t)){8, 8, q->nb, 8, 8}, g);
    else if (q->m == 16 && q->n == 16)
        N(lane_steps)((N(lane_shape_t)){16, 16, q->nb, 17, 17}, g);
    else
        N(lane_steps)((N(lane_shape_t)){q->m, q->n, q->nb, q->an, q->vn}, g);
}

/* ---- T beyond the panels' own ---- */

/* Rows l .. l+nl-1 of X = V(:, l ..)^H V_p T_p for the panel of w columns at v, T_p at t. */
INLINE void N(lane_cross)(int nl, int w, const REAL *u, const REAL *v, int64_t vs, int64_t rows,
                          const REAL *t, int64_t ts, REAL *x)
{
    num_t S[PANEL][LANE_TILE_MOST]; /* conjugate transpose of V(:, l ..)^H V_p */
    N(lane_sums)(w, nl, v, vs, u, vs, rows, S);
    UNROLL for (int l = 0; l < nl; l++) UNROLL for (int c = 0; c < w; c++)
    {
        num_t sum = N(zero)();
        UNROLL for (int d = 0; d <= c; d++) sum =
            N(add_conj)(sum, S[d][l], get(t + d * ts + c * PARTS * VL));
        set(x + (l * PANEL + c) * PARTS * VL, sum);
    }
}

/* Rows l .. of T12 = -T1 X; T1 from its row and column l on, `count` columns of it. */
INLINE void N(lane_join)(int nl, int w, const REAL *t1, int64_t ts, int64_t count, const REAL *x,
                         REAL *t12)
{
    num_t S[LANE_TILE_MOST][PANEL];
    UNROLL for (int l = 0; l < nl; l++) UNROLL for (int c = 0; c < w; c++) S[l][c] = N(zero)();
    for (int64_t r = 0; r < count; r++)
        UNROLL for (int l = 0; l < nl; l++) UNROLL for (int c = 0; c < w; c++) S[l][c] =
            N(subtract)(S[l][c], get(t1 + l * ts + r * PARTS * VL),
                        get(x + (r * PANEL + c) * PARTS * VL));
    UNROLL for (int l = 0; l < nl; l++) UNROLL for (int c = 0; c < w; c++)
        set(t12 + l * ts + c * PARTS * VL, S[l][c]);
}

/* Columns p .. p+w-1 of T above the panel's own block; b columns of the same block of T precede. */
INLINE void N(lane_t_step)(int w, const lanes_t *q, const REAL *V, REAL *T, REAL *X, int64_t p)
{
    int64_t b = p % q->nb, q0 = p - b, vs = q->vn * PARTS * VL, l = 0;
    const REAL *v = V + p * vs;
    REAL *t = T + q0 * PARTS * VL, *tp = T + b * vs + p * PARTS * VL;
#define LANE_CROSS(nl)                                                                             \
    N(lane_cross)                                                                                  \
    (nl, w, v + (q0 + l) * PARTS * VL, v + p * PARTS * VL, vs, q->m - p, tp, vs,                   \
     X + l * PANEL * PARTS * VL)
#define LANE_JOIN(nl)                                                                              \
    N(lane_join)                                                                                   \
    (nl, w, t + l * vs + l * PARTS * VL, vs, b - l, X + l * PANEL * PARTS * VL,                    \
     T + l * vs + p * PARTS * VL)
    LANE_TILES(l, b, LANE_CROSS);
    l = 0;
    LANE_TILES(l, b, LANE_JOIN);
#undef LANE_CROSS
#undef LANE_JOIN
}

static void N(lane_form_t)(const lanes_t *q, const REAL *V, REAL *T, REAL *X)
{
    int64_t p = PANEL;
    for (; p + PANEL <= q->k; p += PANEL)
        N(lane_t_step)(PANEL, q, V, T, X, p);
    if (q->k - p == 3)
        N(lane_t_step)(3, q, V, T, X, p);
    else if (q->k - p == 2)
        N(lane_t_step)(2, q, V, T, X, p);
    else if (q->k - p == 1)
        N(lane_t_step)(1, q, V, T, X, p);
}
