/* Blocked factorisation of one type; part of fast_type.h.
 *
 * The working copy of a matrix is cut into strips of four vectors of columns, each strip row-major:
 * vectors run along columns as in the caller's rows, so nothing is transposed and no sum crosses
 * lanes. Complex numbers stay (re, im) pairs: products with re and im of one factor are summed
 * apart and combined at the end. V of the panel at work is row-major with its ones and zeros, W
 * and T are row-major too, and two product kernels do all the rest.
 *
 * Columns near an end of the range are multiplied by a power of two first and R's columns divided
 * by it afterwards: V, T and tau do not depend on a column's length. */

/* Row-major numbers. */
typedef struct mat_t {
    REAL *p;
    int64_t rs;
} mat_t;

typedef struct work_t {
    int64_t m, n, k, nb, block;
    bool aligned; /* the file's T is cut from the diagonal of the blocks' T */
    bool plain;   /* updates are by Q, not by Q^H                             */
    REAL *A;      /* strip s at A + s * strip */
    int64_t strip;
    mat_t V, T, W, X, Y;  /* V: rows of the whole matrix, columns of the panel */
    REAL *tau;            /* PARTS each */
    int64_t apart;        /* numbers of one worker's W and X */
    int64_t apply, group; /* reflectors and strips that are taken together */
    gb10_crew_t *crew;
    int *shift;
    gb10_times_t *times;
} work_t;

/* Element (i, j) of the working copy. */
INLINE REAL *N(at)(const work_t *q, int64_t i, int64_t j)
{
    int64_t c = PARTS * j;
    return q->A + c / SW * q->strip + i * SW + c % SW;
}
#define at N(at)

/* ---- W = V^H C over `rows` rows, one tile of na columns of V x nv vectors ---- */

/* Sums run from the last row to the first: v's 1 and often the largest entries are at the top, and
 * small terms added on top of a large one would cost its last bits. The numbers at `ahead`, laid
 * out as C, are fetched on the way; NULL: none. */
INLINE void N(tn_tile)(int na, int nv, bool add, mat_t V, mat_t C, int64_t rows, mat_t W,
                       const REAL *ahead)
{
    vec_t re[TILE_SUMS][STRIP], im[TILE_SUMS][STRIP];
    (void)im;
    UNROLL for (int a = 0; a < na; a++) UNROLL for (int v = 0; v < nv; v++)
    {
        re[a][v] = splat(0);
        im[a][v] = splat(0);
    }
    for (int64_t i = rows - 1; i >= 0; i--) {
        const REAL *c = C.p + i * C.rs, *x = V.p + i * V.rs;
        if (ahead)
            __builtin_prefetch(ahead + i * C.rs);
        UNROLL for (int a = 0; a < na; a++) UNROLL for (int v = 0; v < nv; v++)
        {
            re[a][v] = vfma(splat(x[PARTS * a]), load(c + v * VL), re[a][v]);
            if (CPLX)
                im[a][v] = vfma(splat(x[PARTS * a + CPLX]), load(c + v * VL), im[a][v]);
        }
    }
    UNROLL for (int a = 0; a < na; a++) UNROLL for (int v = 0; v < nv; v++)
    {
        REAL *w = W.p + a * W.rs + v * VL;
        vec_t sum = join_conj(re[a][v], im[a][v]);
        if (add)
            sum += load(w);
        keep(w, sum);
    }
}

/* ---- C = C - V W or V W or -V W, one tile of nr rows x nv vectors ---- */

typedef enum N(put) { N(SUBTRACT), N(ASSIGN), N(ASSIGN_NEGATIVE) } N(put_t);

INLINE void N(nn_tile)(int nr, int nv, N(put_t) put, mat_t V, int64_t na, mat_t W, mat_t C)
{
    vec_t re[TILE_SUMS][STRIP], im[TILE_SUMS][STRIP];
    (void)im;
    UNROLL for (int r = 0; r < nr; r++) UNROLL for (int v = 0; v < nv; v++)
    {
        re[r][v] = splat(0);
        im[r][v] = splat(0);
    }
    for (int64_t a = 0; a < na; a++) {
        const REAL *w = W.p + a * W.rs, *x = V.p + PARTS * a;
        UNROLL for (int r = 0; r < nr; r++) UNROLL for (int v = 0; v < nv; v++)
        {
            re[r][v] = vfma(splat(x[r * V.rs]), load(w + v * VL), re[r][v]);
            if (CPLX)
                im[r][v] = vfma(splat(x[r * V.rs + CPLX]), load(w + v * VL), im[r][v]);
        }
    }
    UNROLL for (int r = 0; r < nr; r++) UNROLL for (int v = 0; v < nv; v++)
    {
        REAL *c = C.p + r * C.rs + v * VL;
        vec_t sum = join(re[r][v], im[r][v]);
        if (put == N(SUBTRACT))
            sum = load(c) - sum;
        else if (put == N(ASSIGN_NEGATIVE))
            sum = -sum;
        keep(c, sum);
    }
}

/* All of V's columns against nv vectors; every tile shape has its own code. TILE(nv) columns, then
 * two, then one. */
#define TILE(nv) (TILE_SUMS / ((nv)*PARTS) < 1 ? 1 : TILE_SUMS / ((nv)*PARTS))
INLINE void N(tn_vectors)(int nv, bool add, mat_t V, int64_t na, mat_t C, int64_t rows, mat_t W,
                          const REAL *ahead)
{
    int64_t a = 0;
    if (ahead && na >= TILE(nv)) {
        N(tn_tile)(TILE(nv), nv, add, V, C, rows, W, ahead);
        a = TILE(nv);
    }
#define TN_STEP(step)                                                                              \
    for (; a + (step) <= na; a += (step))                                                          \
        N(tn_tile)                                                                                 \
    (step, nv, add, (mat_t){V.p + PARTS * a, V.rs}, C, rows, (mat_t){W.p + a * W.rs, W.rs}, NULL)
    TN_STEP(TILE(nv));
    if (TILE(nv) > 4)
        TN_STEP(4);
    if (TILE(nv) > 2)
        TN_STEP(2);
    TN_STEP(1);
#undef TN_STEP
}

INLINE void N(nn_vectors)(int nv, N(put_t) put, mat_t V, int64_t na, mat_t W, int64_t rows, mat_t C)
{
    int64_t i = 0;
#define NN_STEP(step)                                                                              \
    for (; i + (step) <= rows; i += (step))                                                        \
        N(nn_tile)                                                                                 \
    (step, nv, put, (mat_t){V.p + i * V.rs, V.rs}, na, W, (mat_t){C.p + i * C.rs, C.rs})
    NN_STEP(TILE(nv));
    if (TILE(nv) > 4)
        NN_STEP(4);
    if (TILE(nv) > 2)
        NN_STEP(2);
    NN_STEP(1);
#undef NN_STEP
}

/* Complex tiles are two vectors wide: four would leave one column of V for each vector of C. */
#define WIDEST (CPLX ? STRIP / 2 : STRIP)

/* W (+)= V^H C over nv vectors. */
static void N(tn)(bool add, mat_t V, int64_t na, mat_t C, int64_t nv, int64_t rows, mat_t W,
                  const REAL *ahead)
{
    for (int64_t v = 0; v < nv; v += WIDEST) {
        const REAL *next = ahead ? ahead + v * VL : NULL;
        mat_t c = {C.p + v * VL, C.rs}, w = {W.p + v * VL, W.rs};
        int64_t left = min64(nv - v, WIDEST);
#define TN_CASE(width)                                                                             \
    if (left == (width))                                                                           \
    N(tn_vectors)(width, add, V, na, c, rows, w, next)
        TN_CASE(1);
        TN_CASE(2);
#if !CPLX
        TN_CASE(3);
        TN_CASE(4);
#endif
#undef TN_CASE
    }
}
#define tn N(tn)

static void N(nn)(N(put_t) put, mat_t V, int64_t na, mat_t W, int64_t nv, int64_t rows, mat_t C)
{
    for (int64_t v = 0; v < nv; v += WIDEST) {
        mat_t c = {C.p + v * VL, C.rs}, w = {W.p + v * VL, W.rs};
        int64_t left = min64(nv - v, WIDEST);
#define NN_CASE(width)                                                                             \
    if (left == (width) && put == N(SUBTRACT))                                                     \
        N(nn_vectors)(width, N(SUBTRACT), V, na, w, rows, c);                                      \
    else if (left == (width))                                                                      \
    N(nn_vectors)(width, put, V, na, w, rows, c)
        NN_CASE(1);
        NN_CASE(2);
#if !CPLX
        NN_CASE(3);
        NN_CASE(4);
#endif
#undef NN_CASE
    }
}
#define nn N(nn)

/* ---- updates ---- */

/* Rows of a run: V of w columns takes half the first cache, and a sum stays short. */
static int64_t N(run)(int64_t w)
{
    int64_t rows = RUN_BYTES / (w * PARTS * (int64_t)sizeof(REAL));
    return rows < RUN_LEAST ? RUN_LEAST : min64(rows, RUN_MOST);
}

/* Adds the sum W of one long run (w x nv vectors) to `total`, with the rounding error in `lost`:
 * however many there are, the error does not grow. */
static void N(fold)(bool first, int64_t w, int64_t nv, mat_t W, mat_t total, mat_t lost)
{
    for (int64_t a = 0; a < w; a++)
        for (int64_t v = 0; v < nv; v++) {
            REAL *t = total.p + a * total.rs + v * VL, *e = lost.p + a * lost.rs + v * VL;
            vec_t x = load(W.p + a * W.rs + v * VL), old = splat(0), error = splat(0);
            if (!first) {
                old = load(t);
                error = load(e);
            }
            vec_t sum = old + x, back = sum - old;
            keep(t, sum);
            keep(e, error + ((old - (sum - back)) + (x - back)));
        }
}

static void N(folded)(int64_t w, int64_t nv, mat_t W, mat_t total, mat_t lost)
{
    for (int64_t a = 0; a < w; a++)
        for (int64_t v = 0; v < nv; v++)
            keep(W.p + a * W.rs + v * VL,
                 load(total.p + a * total.rs + v * VL) + load(lost.p + a * lost.rs + v * VL));
}

/* X = T^H W, T upper triangular, zero below: by blocks of its columns. */
static void N(t_apply)(mat_t T, int64_t w, mat_t W, int64_t nv, mat_t X)
{
    for (int64_t a = 0; a < w; a += 8)
        tn(false, (mat_t){T.p + PARTS * a, T.rs}, min64(8, w - a), W, nv, min64(a + 8, w),
           (mat_t){X.p + a * X.rs, X.rs}, NULL);
}

/* One update: reflectors j0 .. j0+w-1 of the block from p, columns c0 .. c1-1, both multiples of
 * LEAF or the end. */
typedef struct N(update) {
    const work_t *q;
    int64_t p, j0, w, c0, c1;
} N(update_t);

/* Vectors of strip s that take part, from which on. */
INLINE int64_t N(piece)(const N(update_t) * u, int64_t s, REAL **c)
{
    int64_t from = PARTS * u->c0 - s * SW, to = PARTS * u->c1 - s * SW;
    from = from < 0 ? 0 : from;
    *c = u->q->A + s * u->q->strip + from;
    return ((to > SW ? SW : to) - from + VL - 1) / VL;
}

/* One strip's part of a work area. */
#define AREA(name) ((mat_t){(name) + (s - s0) * wide, SW})

/* C <- (I - V T^H V^H) C, or with T, for one group of strips. Rows in runs whose V stays in the
 * first cache. */
static void N(update_group)(void *ctx, int64_t part, int worker)
{
    const N(update_t) *u = ctx;
    const work_t *q = u->q;
    int64_t w = u->w, t0 = PARTS * (u->j0 - u->p), run = N(run)(w), wide = w * SW;
    int64_t s0 = PARTS * u->c0 / SW + part * q->group;
    int64_t s1 = min64(s0 + q->group, (PARTS * u->c1 + SW - 1) / SW);
    REAL *c, *W = q->W.p + worker * q->apart, *X = q->X.p + worker * q->apart;
    REAL *Y = q->Y.p + worker * q->apart;
    mat_t T = {q->T.p + (u->j0 - u->p) * q->T.rs + t0, q->T.rs};
    for (int64_t top = q->m; top > u->j0; top -= LONG_RUN) {
        int64_t low = top - LONG_RUN > u->j0 ? top - LONG_RUN : u->j0;
        for (int64_t end = top; end > low; end -= run) {
            int64_t i = end - run > low ? end - run : low;
            mat_t V = {q->V.p + i * q->V.rs + t0, q->V.rs};
            for (int64_t s = s0; s < s1; s++) {
                int64_t nv = N(piece)(u, s, &c);
                tn(end < top, V, w, (mat_t){c + i * SW, SW}, nv, end - i, AREA(W),
                   s + 1 < s1 ? c + q->strip + i * SW : NULL);
            }
        }
        for (int64_t s = s0; s < s1 && q->m - u->j0 > LONG_RUN; s++)
            N(fold)(top == q->m, w, N(piece)(u, s, &c), AREA(W), AREA(X), AREA(Y));
    }
    for (int64_t s = s0; s < s1 && q->m - u->j0 > LONG_RUN; s++)
        N(folded)(w, N(piece)(u, s, &c), AREA(W), AREA(X), AREA(Y));
    for (int64_t s = s0; s < s1; s++) {
        int64_t nv = N(piece)(u, s, &c);
        if (q->plain)
            nn(N(ASSIGN), T, w, AREA(W), nv, w, AREA(X));
        else
            N(t_apply)(T, w, AREA(W), nv, AREA(X));
    }
    for (int64_t i = u->j0; i < q->m; i += run) {
        mat_t V = {q->V.p + i * q->V.rs + t0, q->V.rs};
        for (int64_t s = s0; s < s1; s++) {
            int64_t nv = N(piece)(u, s, &c);
            nn(N(SUBTRACT), V, w, AREA(X), nv, min64(run, q->m - i), (mat_t){c + i * SW, SW});
        }
    }
}

/* All groups, by the team where there is one and enough to do. */
static void N(update_together)(const work_t *q, int64_t p, int64_t j0, int64_t w, int64_t c0,
                               int64_t c1)
{
    N(update_t) u = {q, p, j0, w, c0, c1};
    int64_t strips = (PARTS * c1 + SW - 1) / SW - PARTS * c0 / SW;
    int64_t parts = (strips + q->group - 1) / q->group;
    bool enough = (q->m - j0) * w * (c1 - c0) >= TEAM_LEAST;
    gb10_crew_run(enough ? q->crew : NULL, 0, N(update_group), &u, parts);
}

/* The same, some reflectors at a time, whose T are on the diagonal of T. Where V has few rows below
 * its triangle, that triangle decides how large T can grow, and with it the error. A leaf has
 * already treated the columns that share its last vector. */
static void N(update)(work_t *q, int64_t p, int64_t j0, int64_t w, int64_t c0, int64_t c1)
{
    int64_t below = q->m - j0 - w, step = below < w ? FEW : q->apply;
    c0 = round_up(c0, LEAF);
    c1 = min64(round_up(c1, LEAF), q->n);
    for (int64_t j = 0; j < w && c0 < c1; j += step)
        N(update_together)(q, p, j0 + j, min64(step, w - j), c0, c1);
}

/* T12 = -T1 (V1^H V2) T2 for reflectors j0 .. j0+w1-1 and the w2 after them, block from p. */
static void N(t_join)(work_t *q, int64_t p, int64_t j0, int64_t w1, int64_t w2)
{
    int64_t j1 = j0 + w1, t0 = j0 - p, t1 = j1 - p, run = N(run)(w1), rs = q->V.rs;
    int64_t nv = (PARTS * w2 + VL - 1) / VL;
    REAL *T1 = q->T.p + t0 * q->T.rs + PARTS * t0, *T12 = T1 + PARTS * w1;
    mat_t S = {q->W.p, rs}, X = {q->X.p, rs}, T2 = {q->T.p + t1 * q->T.rs + PARTS * t1, q->T.rs};
    for (int64_t v = 0; v < nv; v += STRIP) {
        int64_t some = min64(STRIP, nv - v), rows = min64(w2, (v + some) * VL / PARTS);
        mat_t Sv = {S.p + v * VL, rs}, Xv = {X.p + v * VL, rs};
        mat_t Yv = {q->Y.p + v * VL, rs};
        for (int64_t top = q->m; top > j1; top -= LONG_RUN) {
            int64_t low = top - LONG_RUN > j1 ? top - LONG_RUN : j1;
            for (int64_t end = top; end > low; end -= run) {
                int64_t i = end - run > low ? end - run : low;
                REAL *V = q->V.p + i * rs;
                tn(end < top, (mat_t){V + PARTS * t0, rs}, w1, (mat_t){V + PARTS * t1 + v * VL, rs},
                   some, end - i, Sv, NULL);
            }
            if (q->m - j1 > LONG_RUN)
                N(fold)(top == q->m, w1, some, Sv, Xv, Yv);
        }
        if (q->m - j1 > LONG_RUN)
            N(folded)(w1, some, Sv, Xv, Yv);
        nn(N(ASSIGN), S, rows, (mat_t){T2.p + v * VL, T2.rs}, some, w1, Xv);
    }
    for (int64_t v = 0; v < nv; v += STRIP)
        for (int64_t a = 0; a < w1; a += 8)
            nn(N(ASSIGN_NEGATIVE), (mat_t){T1 + a * q->T.rs + PARTS * a, q->T.rs}, w1 - a,
               (mat_t){X.p + a * rs + v * VL, rs}, min64(STRIP, nv - v), min64(8, w1 - a),
               (mat_t){T12 + a * q->T.rs + v * VL, q->T.rs});
}

/* ---- reflectors ---- */

/* A leaf at work: its columns are LEAF_VECTORS vectors of a strip. Tails stay unscaled, x, until
 * the leaf is done; v = x inv. */
typedef struct N(leaf) {
    REAL *base; /* row 0 */
    int64_t m, w;
    ALIGNED REAL inv[LEAF_VECTORS * VL], s[LEAF_VECTORS * VL];
    ALIGNED REAL t[LEAF][LEAF_VECTORS * VL]; /* columns of T */
} N(leaf_t);

typedef struct N(dots) {
    vec_t v[LEAF_VECTORS];
} N(dots_t);

/* Lanes of a leaf's columns from c0 to c1-1. */
INLINE index_t N(lane_mask)(int v, int64_t c0, int64_t c1)
{
    index_t lane = {0};
    UNROLL for (int l = 0; l < (int)VL; l++) lane[l] = (v * (int)VL + l) / PARTS;
    return (lane >= (index_t){0} + (INDEX)c0) & (lane < (index_t){0} + (INDEX)c1);
}
#define lanes N(lane_mask)

/* One row: r -= x step with x in column j, where the update is wanted, then sums of conj(y) r with
 * y in column next. */
INLINE void N(sweep_row)(bool update, bool sum, REAL *row, int64_t j, int64_t next,
                         const N(dots_t) * step, const N(dots_t) * turned, vec_t *re, vec_t *im)
{
    vec_t r[LEAF_VECTORS];
    UNROLL for (int v = 0; v < LEAF_VECTORS; v++) r[v] = load(row + v * VL);
    if (update) {
        REAL xr = row[PARTS * j], xi = row[PARTS * j + CPLX];
        (void)xi;
        UNROLL for (int v = 0; v < LEAF_VECTORS; v++)
        {
            r[v] = vfnma(splat(xr), step->v[v], r[v]);
            if (CPLX)
                r[v] = vfnma(splat(xi), turned->v[v], r[v]);
            keep(row + v * VL, r[v]);
        }
    }
    if (sum) {
        REAL yr = row[PARTS * next], yi = row[PARTS * next + CPLX];
        (void)yi;
        UNROLL for (int v = 0; v < LEAF_VECTORS; v++)
        {
            re[v] = vfma(splat(yr), r[v], re[v]);
            if (CPLX)
                im[v] = vfma(splat(yi), r[v], im[v]);
        }
    }
}

/* That for rows r0 .. r1-1 from the last to the first: the update of one column and the dots of the
 * next in one pass. */
INLINE N(dots_t) N(sweep_run)(bool update, const N(leaf_t) * f, int64_t j, int64_t next, int64_t r0,
                              int64_t r1, const N(dots_t) * step, const N(dots_t) * turned)
{
    vec_t re[2][LEAF_VECTORS] = {{{0}}}, im[2][LEAF_VECTORS] = {{{0}}};
    REAL *row = f->base + (r1 - 1) * SW;
    N(dots_t) dots;
    for (int64_t i = (r1 - r0) / 2; i > 0; i--) {
        N(sweep_row)(update, true, row, j, next, step, turned, re[0], im[0]);
        N(sweep_row)(update, true, row - SW, j, next, step, turned, re[1], im[1]);
        row -= 2 * SW;
    }
    if ((r1 - r0) % 2)
        N(sweep_row)(update, true, row, j, next, step, turned, re[0], im[0]);
    UNROLL for (int v = 0; v < LEAF_VECTORS; v++) dots.v[v] =
        join_conj(re[0][v] + re[1][v], im[0][v] + im[1][v]);
    return dots;
}

/* The same for all rows from r0 on: sums of short runs are added up over longer ones, and those to
 * the whole with their rounding errors. */
INLINE N(dots_t) N(sweep)(bool update, const N(leaf_t) * f, int64_t j, int64_t next, int64_t r0,
                          const N(dots_t) * step, const N(dots_t) * turned)
{
    N(dots_t) total = {{{0}}}, lost = {{{0}}};
    for (int64_t end = f->m; end > r0; end -= LONG_RUN) {
        int64_t first = end - LONG_RUN > r0 ? end - LONG_RUN : r0;
        N(dots_t) part = {{{0}}};
        for (int64_t i = end; i > first; i -= SWEEP_RUN) {
            int64_t begin = i - SWEEP_RUN > first ? i - SWEEP_RUN : first;
            N(dots_t) run = N(sweep_run)(update, f, j, next, begin, i, step, turned);
            UNROLL for (int v = 0; v < LEAF_VECTORS; v++) part.v[v] += run.v[v];
        }
        UNROLL for (int v = 0; v < LEAF_VECTORS; v++)
        {
            vec_t old = total.v[v], x = part.v[v], sum = old + x, back = sum - old;
            lost.v[v] += (old - (sum - back)) + (x - back);
            total.v[v] = sum;
        }
    }
    UNROLL for (int v = 0; v < LEAF_VECTORS; v++) total.v[v] += lost.v[v];
    return total;
}

/* Dots of column j with all columns over the rows below its diagonal. */
static N(dots_t) N(tail_dots)(const N(leaf_t) * f, int64_t j, int64_t row)
{
    return N(sweep)(false, f, j, j, row + 1, NULL, NULL);
}

/* What makes a reflector of a column (alpha, x): alpha and x are scale times the column's. */
typedef struct N(larfg) {
    double alpha[2], tail, beta, scale, tau[2], inv[2];
} N(larfg_t);

/* The sum of squares of x was out of the safe window: scales x in place by a power of two and forms
 * the dots again. False when x is zero and alpha real: H = I. */
static bool N(rescue)(const N(leaf_t) * f, int64_t j, int64_t row, N(larfg_t) * h, N(dots_t) * dots)
{
    REAL top = 0, scale;
    for (int64_t i = row + 1; i < f->m; i++)
        for (int part = 0; part < PARTS; part++) {
            REAL x = ABS(f->base[i * SW + PARTS * j + part]);
            top = x > top ? x : top;
        }
    if (top == 0 && h->alpha[1] == 0)
        return false;
    int e = ilogb(fmax((double)top, fmax(fabs(h->alpha[0]), fabs(h->alpha[1]))));
    e = e > 0 ? 0 : e < EXP_RESCUE ? EXP_RESCUE : e;
    scale = (REAL)ldexp(1, -e);
    for (int64_t i = row + 1; i < f->m; i++)
        for (int part = 0; part < PARTS; part++)
            f->base[i * SW + PARTS * j + part] *= scale;
    h->scale = (double)scale;
    h->alpha[0] *= h->scale;
    h->alpha[1] *= h->scale;
    *dots = N(tail_dots)(f, j, row);
    h->tail = (double)((const REAL *)dots)[PARTS * j];
    return true;
}

/* beta = -+ ||(alpha, x)||, tau = (beta - alpha) / beta, inv = 1 / (alpha - beta); all but scale
 * zero when H = I. */
static void N(larfg)(const N(leaf_t) * f, int64_t j, int64_t row, N(larfg_t) * h, N(dots_t) * dots)
{
    const REAL *a = f->base + row * SW + PARTS * j;
    *h = (N(larfg_t)){.alpha = {(double)a[0], CPLX ? (double)a[CPLX] : 0}, .scale = 1};
    h->tail = (double)((const REAL *)dots)[PARTS * j];
    if (!(h->tail > LEAST) && !N(rescue)(f, j, row, h, dots)) {
        h->beta = h->alpha[0];
        return;
    }
    double re = h->alpha[0], im = h->alpha[1];
    h->beta = -copysign(sqrt(FMA_D(re, re, FMA_D(im, im, h->tail))), re);
    double d = re - h->beta, square = FMA_D(d, d, im * im);
    (void)square;
    h->tau[0] = -d / h->beta;
    h->tau[1] = CPLX ? -im / h->beta : 0;
    h->inv[0] = CPLX ? d / square : 1 / d;
    h->inv[1] = CPLX ? -im / square : 0;
}

/* Column j of T: -tau T s, s = V^H v_j. */
static void N(t_column)(N(leaf_t) * f, int64_t j, REAL tr, REAL ti)
{
    vec_t re[LEAF_VECTORS] = {{0}}, im[LEAF_VECTORS] = {{0}};
    for (int64_t l = 0; l < j; l++) {
        REAL sr = f->s[PARTS * l], si = CPLX ? -f->s[PARTS * l + CPLX] : 0;
        UNROLL for (int v = 0; v < LEAF_VECTORS; v++)
        {
            re[v] = vfma(splat(sr), load(f->t[l] + v * VL), re[v]);
            if (CPLX)
                im[v] = vfma(splat(si), load(f->t[l] + v * VL), im[v]);
        }
    }
    UNROLL for (int v = 0; v < LEAF_VECTORS; v++)
        keep(f->t[j] + v * VL, multiple(-tr, -ti, join(re[v], im[v])));
    f->t[j][PARTS * j] = tr;
    if (CPLX)
        f->t[j][PARTS * j + CPLX] = ti;
}

/* Reflector of column j (larfg of LAPACK) with beta to the diagonal, tau, and its column of T; then
 * H^H on the leaf's other columns, and the dots of the next column from the same pass. */
static void N(reflect)(work_t *q, N(leaf_t) * f, int64_t j0, int64_t j, N(dots_t) * dots)
{
    N(larfg_t) h;
    N(dots_t) step, turned;
    int64_t row = j0 + j;
    REAL *a = f->base + row * SW;
    N(larfg)(f, j, row, &h, dots);
    REAL tr = (REAL)h.tau[0], ti = (REAL)h.tau[1], ir = (REAL)h.inv[0], ii = (REAL)h.inv[1];
    UNROLL for (int v = 0; v < LEAF_VECTORS; v++)
    {
        vec_t old = load(a + v * VL), z = multiple(ir, -ii, dots->v[v]) + old;
        vec_t w = (vec_t)((index_t)multiple(tr, -ti, z) & lanes(v, j + 1, LEAF));
        keep(f->s + v * VL, N(product)(load(f->inv + v * VL), z));
        keep(a + v * VL, old - w);
        step.v[v] = multiple(ir, ii, w);
        turned.v[v] = turn(step.v[v]);
    }
    a[PARTS * j] = (REAL)(h.beta / h.scale);
    q->tau[PARTS * row] = tr;
    f->inv[PARTS * j] = ir;
    if (CPLX) {
        a[PARTS * j + CPLX] = 0;
        q->tau[PARTS * row + CPLX] = ti;
        f->inv[PARTS * j + CPLX] = ii;
    }
    N(t_column)(f, j, tr, ti);
    if (j + 1 < LEAF && row + 1 < f->m) {
        *dots = N(sweep)(true, f, j, j + 1, row + 2, &step, &turned);
        N(sweep_row)(true, false, a + SW, j, 0, &step, &turned, NULL, NULL);
    }
}

/* v = x inv, to the working copy and to V, with V's ones and zeros. */
static void N(finish_leaf)(work_t *q, const N(leaf_t) * f, int64_t p, int64_t j0)
{
    for (int64_t i = j0; i < f->m; i++) {
        REAL *row = f->base + i * SW, *to = q->V.p + i * q->V.rs + PARTS * (j0 - p);
        int64_t width = min64(i - j0, f->w);
        UNROLL for (int v = 0; v < LEAF_VECTORS; v++)
        {
            vec_t x = load(row + v * VL), y = N(product)(load(f->inv + v * VL), x);
            index_t mask = lanes(v, 0, width);
            keep(to + v * VL, select(mask, y, splat(0)));
            keep(row + v * VL, select(mask, y, x));
        }
        if (i - j0 < f->w)
            to[PARTS * (i - j0)] = 1;
    }
}

/* Columns j0 .. j0+w-1, w <= LEAF, one by one, with their T. */
static void N(leaf)(work_t *q, int64_t p, int64_t j0, int64_t w)
{
    N(leaf_t) f = {.base = at(q, 0, j0), .m = q->m, .w = w};
    N(dots_t) dots = N(tail_dots)(&f, 0, j0);
    for (int64_t j = 0; j < w; j++)
        N(reflect)(q, &f, j0, j, &dots);
    N(finish_leaf)(q, &f, p, j0);
    for (int64_t l = 0; l < w; l++)
        for (int64_t a = 0; a <= l; a++)
            memcpy(q->T.p + (j0 - p + a) * q->T.rs + PARTS * (j0 - p + l), f.t[l] + PARTS * a,
                   PARTS * sizeof(REAL));
}

static void N(factor_panel)(work_t *q, int64_t p, int64_t j0, int64_t w)
{
    if (w <= LEAF) {
        N(leaf)(q, p, j0, w);
        return;
    }
    int64_t w1 = round_up(w / 2, LEAF);
    N(factor_panel)(q, p, j0, w1);
    N(update)(q, p, j0, w1, j0 + w1, j0 + w);
    N(factor_panel)(q, p, j0 + w1, w - w1);
    double since = q->times ? gb10_seconds() : 0;
    N(t_join)(q, p, j0, w1, w - w1);
    if (q->times) {
        q->times->factor -= gb10_seconds() - since;
        gb10_lap(&since, &q->times->form_t);
    }
}

/* ---- T of the file where its blocks are no multiple of a leaf ---- */

/* sum of conj(V(i, a)) V(i, j) over all rows of the panel; parts in `sum`. */
static void N(v_dot)(const work_t *q, int64_t p, int64_t a, int64_t j, double sum[2])
{
    sum[0] = sum[1] = 0;
    for (int64_t i = q->m - 1; i >= p + j; i--) {
        const REAL *x = q->V.p + i * q->V.rs + PARTS * a, *y = q->V.p + i * q->V.rs + PARTS * j;
        sum[0] += (double)x[0] * (double)y[0] + (CPLX ? (double)x[CPLX] * (double)y[CPLX] : 0);
        sum[1] += CPLX ? (double)x[0] * (double)y[CPLX] - (double)x[CPLX] * (double)y[0] : 0;
    }
}

/* T of columns j0 .. j0+w-1 of the panel from p, whose V is in place: by columns up to a leaf. */
static void N(larft)(work_t *q, int64_t p, int64_t j0, int64_t w)
{
    if (w > LEAF) {
        int64_t w1 = round_up(w / 2, LEAF);
        N(larft)(q, p, j0, w1);
        N(larft)(q, p, j0 + w1, w - w1);
        N(t_join)(q, p, p + j0, w1, w - w1);
        return;
    }
    for (int64_t j = j0; j < j0 + w; j++) {
        const REAL *tau = q->tau + PARTS * (p + j);
        double tr = (double)tau[0], ti = CPLX ? (double)tau[CPLX] : 0, s[LEAF][2];
        for (int64_t l = j0; l < j; l++)
            N(v_dot)(q, p, l, j, s[l - j0]);
        for (int64_t a = j0; a <= j; a++) {
            const REAL *row = q->T.p + a * q->T.rs;
            double re = a == j ? -1 : 0, im = 0;
            for (int64_t l = a; l < j; l++) {
                double xr = (double)row[PARTS * l], xi = CPLX ? (double)row[PARTS * l + CPLX] : 0;
                re += xr * s[l - j0][0] - xi * s[l - j0][1];
                im += xr * s[l - j0][1] + xi * s[l - j0][0];
            }
            REAL *to = q->T.p + a * q->T.rs + PARTS * j;
            to[0] = (REAL)(im * ti - re * tr);
            if (CPLX)
                to[CPLX] = (REAL) - (re * ti + im * tr);
        }
    }
}

/* ---- in and out ---- */

#include "kernels/cpu/fast_moves.h"
