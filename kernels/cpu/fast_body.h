/* One type of the cpu backend; included four times by fast_isa.c with LETTER, REAL, SINGLE, CPLX.
 *
 * Working copies are column-major, each column `ld` numbers (a multiple of the vector length, rows
 * past m zero), complex ones followed by `ld` imaginary parts. V holds its ones and zeros, so the
 * products need no triangular cases. W and T are row-major with the same split.
 *
 * Columns near an end of the range are multiplied by a power of two first and R's columns divided
 * by it afterwards: V, T and tau do not depend on a column's length. */

#define NAME3(letter, name) letter##_##name
#define NAME2(letter, name) NAME3(letter, name)
#define N(name)             NAME2(LETTER, name)

#define vec_t   N(vec_t)
#define work_t  N(work_t)
#define panel_t N(panel_t)
#define rows_t  N(rows_t)
typedef REAL vec_t __attribute__((vector_size(VECTOR_BYTES), may_alias));
#define index_t N(index_t)
#if SINGLE
typedef int32_t index_t __attribute__((vector_size(VECTOR_BYTES)));
#else
typedef int64_t index_t __attribute__((vector_size(VECTOR_BYTES)));
#endif

#define VL    ((int64_t)(VECTOR_BYTES / sizeof(REAL)))
#define PARTS (1 + CPLX)
#if SINGLE
#define FMA(a, b, c)   FMA_F(a, b, c)
#define vfma(a, b, c)  VFMA_F(a, b, c)
#define vfnma(a, b, c) VFNMA_F(a, b, c)
#define ABS(x)         fabsf(x)
#define TOP            FLT_MAX
#define TINY           FLT_TRUE_MIN
/* Exponents of a column's largest entry beyond which it is scaled, and by how much at the top. */
#define EXP_HIGH 90
#define EXP_DROP 40
#define EXP_LOW  (-60)
#else
#define FMA(a, b, c)   FMA_D(a, b, c)
#define vfma(a, b, c)  VFMA_D(a, b, c)
#define vfnma(a, b, c) VFNMA_D(a, b, c)
#define ABS(x)         fabs(x)
#define TOP            DBL_MAX
#define TINY           DBL_TRUE_MIN
#define EXP_HIGH       940
#define EXP_DROP       90
#define EXP_LOW        (-900)
#endif

/* Columns of a working copy. */
typedef struct panel_t {
    REAL *p;
    int64_t ld, cs; /* rows of a plane; distance of columns */
} panel_t;

/* Rows of W or T: the imaginary parts of a row lie `plane` behind the real ones. */
typedef struct rows_t {
    REAL *p;
    int64_t rs, plane;
} rows_t;

typedef struct work_t {
    int64_t m, n, k, nb, block;
    panel_t A, V;
    rows_t T, W, X;
    REAL *tau; /* PARTS each */
    int *shift;
} work_t;

INLINE vec_t N(splat)(REAL x)
{
    return x - (vec_t){0};
}
#define splat N(splat)

INLINE REAL N(hsum)(vec_t a)
{
    REAL s = 0;
    for (int half = (int)VL / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            a[i] += a[i + half];
    s = a[0];
    return s;
}
#define hsum N(hsum)

INLINE vec_t N(load)(const REAL *p)
{
    return *(const vec_t *)(const void *)p;
}
#define load N(load)

INLINE void N(keep)(REAL *p, vec_t v)
{
    *(vec_t *)(void *)p = v;
}
#define keep N(keep)

/* ---- W += V^H C over `rows` rows, one tile of na x nc ---- */

/* Sums run from the last row to the first: v's 1 and often the largest entries are at the top, and
 * small terms added on top of a large one would cost its last bits. */

INLINE void N(tn_tile)(int na, int nc, const REAL *v, int64_t vs, const REAL *c, int64_t cs,
                       int64_t ld, int64_t rows, REAL *w, int64_t rs, int64_t plane)
{
    vec_t re[TILE_OUT][TILE_OUT], im[TILE_OUT][TILE_OUT];
    (void)ld, (void)plane, (void)im;
    UNROLL for (int a = 0; a < na; a++) UNROLL for (int b = 0; b < nc; b++)
    {
        re[a][b] = splat(0);
        im[a][b] = splat(0);
    }
    for (int64_t i = rows - VL; i >= 0; i -= VL) {
        UNROLL for (int b = 0; b < nc; b++)
        {
            vec_t cr = load(c + b * cs + i);
#if CPLX
            vec_t ci = load(c + b * cs + ld + i);
#endif
            UNROLL for (int a = 0; a < na; a++)
            {
                vec_t vr = load(v + a * vs + i);
                re[a][b] = vfma(vr, cr, re[a][b]);
#if CPLX
                vec_t vi = load(v + a * vs + ld + i);
                re[a][b] = vfma(vi, ci, re[a][b]);
                im[a][b] = vfma(vr, ci, im[a][b]);
                im[a][b] = vfnma(vi, cr, im[a][b]);
#endif
            }
        }
    }
    UNROLL for (int a = 0; a < na; a++) UNROLL for (int b = 0; b < nc; b++)
    {
        w[a * rs + b] += hsum(re[a][b]);
#if CPLX
        w[a * rs + plane + b] += hsum(im[a][b]);
#endif
    }
}

#if CPLX
#define TN_A 3
#define TN_C 2
#else
#define TN_A TILE_OUT
#define TN_C TILE_COLS
#endif

/* One column of V against all columns of C, and so on: every tile shape has its own code. */
static void N(tn_row)(int na, const REAL *v, int64_t vs, const panel_t *C, int64_t r0, int64_t rows,
                      int64_t c0, int64_t nc, REAL *w, int64_t rs, int64_t plane)
{
    int64_t b = 0;
#define TN_CASE(A, B)                                                                              \
    N(tn_tile)(A, B, v, vs, C->p + (c0 + b) * C->cs + r0, C->cs, C->ld, rows, w + b, rs, plane)
#define TN_COLUMNS(A)                                                                              \
    for (; b + TN_C <= nc; b += TN_C)                                                              \
        TN_CASE(A, TN_C);                                                                          \
    for (; b < nc; b++)                                                                            \
        TN_CASE(A, 1);
    if (na == TN_A) {
        TN_COLUMNS(TN_A)
    } else if (na == 2) {
        TN_COLUMNS(2)
    } else {
        TN_COLUMNS(1)
    }
#undef TN_COLUMNS
#undef TN_CASE
}

/* W (na x nc) = V(:, a0..)^H C(:, c0..) over rows r0 .. ld. */
static void N(tn)(const panel_t *V, int64_t a0, int64_t na, const panel_t *C, int64_t c0,
                  int64_t nc, int64_t r0, rows_t W)
{
    for (int64_t a = 0; a < na; a++)
        for (int q = 0; q < PARTS; q++)
            memset(W.p + a * W.rs + q * W.plane, 0, (size_t)nc * sizeof(REAL));
    for (int64_t end = V->ld; end > r0; end -= ROWS_CHUNK) {
        int64_t rows = min64(ROWS_CHUNK, end - r0), r = end - rows;
        for (int64_t a = 0; a < na;) {
            int step = a + TN_A <= na ? TN_A : a + 2 <= na ? 2 : 1;
            N(tn_row)
            (step, V->p + (a0 + a) * V->cs + r, V->cs, C, r, rows, c0, nc, W.p + a * W.rs, W.rs,
             W.plane);
            a += step;
        }
    }
}
#define tn N(tn)

/* ---- C -= V W, one tile of nr vectors x nc columns ---- */

INLINE void N(nn_tile)(int nr, int nc, int64_t na, const REAL *v, int64_t vs, REAL *c, int64_t cs,
                       int64_t ld, const REAL *w, int64_t rs, int64_t plane)
{
    vec_t re[TILE_OUT][TILE_OUT], im[TILE_OUT][TILE_OUT];
    (void)ld, (void)plane, (void)im;
    UNROLL for (int b = 0; b < nc; b++) UNROLL for (int r = 0; r < nr; r++)
    {
        re[r][b] = splat(0);
        im[r][b] = splat(0);
    }
    for (int64_t a = 0; a < na; a++) {
        UNROLL for (int b = 0; b < nc; b++)
        {
            vec_t wr = splat(w[a * rs + b]);
#if CPLX
            vec_t wi = splat(w[a * rs + plane + b]);
#endif
            UNROLL for (int r = 0; r < nr; r++)
            {
                vec_t vr = load(v + a * vs + r * VL);
                re[r][b] = vfma(vr, wr, re[r][b]);
#if CPLX
                vec_t vi = load(v + a * vs + ld + r * VL);
                re[r][b] = vfnma(vi, wi, re[r][b]);
                im[r][b] = vfma(vr, wi, im[r][b]);
                im[r][b] = vfma(vi, wr, im[r][b]);
#endif
            }
        }
    }
    UNROLL for (int b = 0; b < nc; b++) UNROLL for (int r = 0; r < nr; r++)
    {
        REAL *at = c + b * cs + r * VL;
        keep(at, load(at) - re[r][b]);
#if CPLX
        keep(at + ld, load(at + ld) - im[r][b]);
#endif
    }
}

#if CPLX
#define NN_R 3
#define NN_C 2
#else
#define NN_R TILE_ROWS
#define NN_C TILE_OUT
#endif

/* One tile of rows against all columns: its part of V stays in the first cache. */
INLINE void N(nn_rows)(int nr, int64_t na, const REAL *v, int64_t vs, REAL *c, int64_t cs,
                       int64_t ld, int64_t nc, const REAL *w, int64_t rs, int64_t plane)
{
    int64_t b = 0;
    for (; b + NN_C <= nc; b += NN_C)
        N(nn_tile)(nr, NN_C, na, v, vs, c + b * cs, cs, ld, w + b, rs, plane);
    for (; b < nc; b++)
        N(nn_tile)(nr, 1, na, v, vs, c + b * cs, cs, ld, w + b, rs, plane);
}

static void N(nn)(const panel_t *V, int64_t a0, int64_t na, const panel_t *C, int64_t c0,
                  int64_t nc, int64_t r0, rows_t W)
{
    const REAL *v = V->p + a0 * V->cs;
    REAL *c = C->p + c0 * C->cs;
    int64_t i = r0;
    for (; i + NN_R * VL <= V->ld; i += NN_R * VL)
        N(nn_rows)(NN_R, na, v + i, V->cs, c + i, C->cs, C->ld, nc, W.p, W.rs, W.plane);
    for (; i < V->ld; i += VL)
        N(nn_rows)(1, na, v + i, V->cs, c + i, C->cs, C->ld, nc, W.p, W.rs, W.plane);
}
#define nn N(nn)

/* ---- rows of W and T ---- */

/* out = sum over l < count of s_l X(l, :), s_l at s[l * stride]: conjugated or negated on the way
 * in. n numbers, rounded up to whole vectors (rows are padded); out may be a row of X. */
static void N(combine)(REAL *out, int64_t plane, const REAL *s, int64_t stride, int64_t s_plane,
                       REAL sign_re, REAL sign_im, const rows_t *X, int64_t count, int64_t n)
{
    enum { WIDE = 4 };
    (void)plane, (void)s_plane, (void)sign_im;
    for (int64_t i = 0; i < n; i += WIDE * VL) {
        vec_t re[WIDE], im[WIDE];
        int64_t left = (n - i + VL - 1) / VL, nv = left < WIDE ? left : WIDE;
        UNROLL for (int v = 0; v < WIDE; v++) re[v] = im[v] = splat(0);
        for (int64_t l = 0; l < count; l++) {
            const REAL *x = X->p + l * X->rs + i;
            vec_t sr = splat(sign_re * s[l * stride]);
#if CPLX
            vec_t si = splat(sign_im * s[l * stride + s_plane]);
#endif
            UNROLL for (int v = 0; v < WIDE; v++)
            {
                if (v >= nv)
                    break;
                vec_t xr = load(x + v * VL);
                re[v] = vfma(sr, xr, re[v]);
#if CPLX
                vec_t xi = load(x + X->plane + v * VL);
                re[v] = vfnma(si, xi, re[v]);
                im[v] = vfma(sr, xi, im[v]);
                im[v] = vfma(si, xr, im[v]);
#endif
            }
        }
        for (int v = 0; v < nv; v++) {
            keep(out + i + v * VL, re[v]);
            if (CPLX)
                keep(out + plane + i + v * VL, im[v]);
        }
    }
}
#define combine N(combine)

INLINE void N(row_scale)(REAL *y, int64_t plane, REAL sr, REAL si, int64_t n)
{
    vec_t vr = splat(sr), vi = splat(si);
    (void)plane, (void)vi;
    for (int64_t i = 0; i < n; i += VL) {
        vec_t yr = load(y + i);
#if CPLX
        vec_t yi = load(y + plane + i);
        keep(y + plane + i, vfma(vr, yi, vi * yr));
        keep(y + i, vfma(vr, yr, -(vi * yi)));
#else
        keep(y + i, vr * yr);
#endif
    }
}
#define row_scale N(row_scale)

/* W (na x nc) <- T^H W with the upper triangle of T at (t0, t0). */
static void N(t_apply)(rows_t T, int64_t t0, rows_t W, int64_t na, int64_t nc)
{
    for (int64_t a = na - 1; a >= 0; a--)
        combine(W.p + a * W.rs, W.plane, T.p + t0 * T.rs + t0 + a, T.rs, T.plane, 1, -1, &W, a + 1,
                nc);
}

/* One strip of columns of C <- (I - V T^H V^H) C for reflectors j0 .. j0+w-1, block from p. */
static void N(update_strip)(work_t *q, int64_t p, int64_t j0, int64_t w, int64_t c0, int64_t nc)
{
    int64_t r0 = j0 / VL * VL;
    tn(&q->V, j0, w, &q->A, c0, nc, r0, q->W);
    N(t_apply)(q->T, j0 - p, q->W, w, nc);
    nn(&q->V, j0, w, &q->A, c0, nc, r0, q->W);
}

/* The same for all columns c0 .. c0+nc-1. Where V has few rows below its triangle, that triangle
 * decides how large T can grow, and with it the error: then a few reflectors are applied at a time,
 * whose T are on the diagonal of T. */
static void N(update)(work_t *q, int64_t p, int64_t j0, int64_t w, int64_t c0, int64_t nc)
{
    int64_t below = q->m - j0 - w, step = below < w ? FEW : w;
    int64_t strip = STRIP_BYTES / ((q->m - j0) * PARTS * (int64_t)sizeof(REAL));
    strip = strip < STRIP_LEAST ? STRIP_LEAST : strip > STRIP ? STRIP : strip / 12 * 12;
    for (int64_t at = 0; at < nc; at += strip)
        for (int64_t j = 0; j < w; j += step)
            N(update_strip)(q, p, j0 + j, min64(step, w - j), c0 + at, min64(strip, nc - at));
}

/* T12 = -T1 (V1^H V2) T2 for reflectors j0 .. j0+w1-1 and the w2 after them, block from p. T is
 * zero below its diagonal. */
static void N(t_join)(work_t *q, int64_t p, int64_t j0, int64_t w1, int64_t w2)
{
    int64_t j1 = j0 + w1, t0 = j0 - p, t1 = j1 - p;
    rows_t T2 = {q->T.p + t1 * q->T.rs + t1, q->T.rs, q->T.plane};
    tn(&q->V, j0, w1, &q->V, j1, w2, j1 / VL * VL, q->W);
    for (int64_t a = 0; a < w1; a++)
        combine(q->X.p + a * q->X.rs, q->X.plane, q->W.p + a * q->W.rs, 1, q->W.plane, 1, 1, &T2,
                w2, w2);
    for (int64_t a = 0; a < w1; a++) {
        REAL *row = q->T.p + (t0 + a) * q->T.rs;
        rows_t X = {q->X.p + a * q->X.rs, q->X.rs, q->X.plane};
        combine(row + t1, q->T.plane, row + t0 + a, 1, q->T.plane, -1, -1, &X, w1 - a, w2);
    }
}

/* ---- reflectors ---- */

/* Largest |x| of n numbers. */
static REAL N(amax)(const REAL *x, int64_t n)
{
    REAL top = 0;
    for (int64_t i = 0; i < n; i++)
        top = ABS(x[i]) > top ? ABS(x[i]) : top;
    return top;
}

/* Adds (x * scale)^2 for n numbers. */
static void N(squares)(sum_t *sum, const REAL *x, int64_t n, double scale)
{
    sum_t s = *sum;
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int l = 0; l < 8; l++)
            sum_add(&s, l, (double)x[i + l] * scale);
    for (; i < n; i++)
        sum_add(&s, 0, (double)x[i] * scale);
    *sum = s;
}

/* What makes a reflector of a column (alpha, x): all numbers are scale times the column's. */
typedef struct N(larfg) {
    double alpha[2], beta, scale;
    bool identity; /* x is zero, alpha real: H = I */
} N(larfg_t);

/* beta = -+ ||(alpha, x)||. A sum of squares outside a safe window is formed again from numbers
 * scaled by a power of two. */
static N(larfg_t) N(find_beta)(const work_t *q, int64_t j)
{
    const REAL *a = q->A.p + j * q->A.cs, *x = a + j + 1;
    int64_t ld = q->A.ld, tail = q->m - j - 1;
    N(larfg_t) h = {.alpha = {(double)a[j], CPLX ? (double)a[ld * CPLX + j] : 0}, .scale = 1};
    sum_t s = {{0}, {0}};
    for (int part = 0; part < PARTS; part++)
        N(squares)(&s, x + part * ld, tail, 1);
    double below = sum_total(&s);
    if (!(below > 0x1p-900 && below < 0x1p1000 && fabs(h.alpha[0]) < 0x1p500 &&
          fabs(h.alpha[1]) < 0x1p500)) {
        double top = 0;
        for (int part = 0; part < PARTS; part++)
            top = fmax(top, (double)N(amax)(x + part * ld, tail));
        h.identity = top == 0 && h.alpha[1] == 0;
        if (h.identity)
            return h;
        int e = ilogb(fmax(top, fmax(fabs(h.alpha[0]), fabs(h.alpha[1]))));
        h.scale = ldexp(1, -(e < -1000 ? -1000 : e > 1000 ? 1000 : e));
        h.alpha[0] *= h.scale;
        h.alpha[1] *= h.scale;
        s = (sum_t){{0}, {0}};
        for (int part = 0; part < PARTS; part++)
            N(squares)(&s, x + part * ld, tail, h.scale);
    }
    sum_add(&s, 1, h.alpha[0]);
    sum_add(&s, 2, h.alpha[1]);
    h.beta = -copysign(sqrt(sum_total(&s)), h.alpha[0]);
    return h;
}

/* v below its 1: x / (alpha - beta). */
static void N(fill_v)(const work_t *q, int64_t j, const N(larfg_t) * h)
{
    const REAL *x = q->A.p + j * q->A.cs;
    REAL *v = q->V.p + j * q->V.cs;
    double d = h->alpha[0] - h->beta;
#if CPLX
    int64_t ld = q->A.ld;
    double e = h->alpha[1], square = FMA_D(d, d, e * e);
    for (int64_t i = j + 1; i < q->m; i++) {
        double xr = (double)x[i] * h->scale, xi = (double)x[ld + i] * h->scale;
        v[i] = (REAL)(FMA_D(xr, d, xi * e) / square);
        v[ld + i] = (REAL)(FMA_D(xi, d, -(xr * e)) / square);
    }
#else
    for (int64_t i = j + 1; i < q->m; i++)
        v[i] = (REAL)((double)x[i] * h->scale / d);
#endif
}

/* Reflector of column j (larfg of LAPACK): beta to the diagonal of A, v to V, tau. */
static void N(reflect)(work_t *q, int64_t p, int64_t j)
{
    REAL *a = q->A.p + j * q->A.cs, *v = q->V.p + j * q->V.cs, *tau = q->tau + PARTS * j;
    int64_t ld = q->A.ld, start = p / VL * VL;
    N(larfg_t) h = N(find_beta)(q, j);
    for (int part = 0; part < PARTS; part++) { /* zeros around v, all of it when H = I */
        int64_t from = h.identity ? j : q->m;
        memset(v + part * ld + start, 0, (size_t)(j - start) * sizeof(REAL));
        memset(v + part * ld + from, 0, (size_t)(ld - from) * sizeof(REAL));
        v[part * ld + j] = part == 0;
        tau[part] = 0;
    }
    if (h.identity)
        return;
    tau[0] = (REAL)((h.beta - h.alpha[0]) / h.beta);
    a[j] = (REAL)(h.beta / h.scale);
    if (CPLX) {
        tau[CPLX] = (REAL)(-h.alpha[1] / h.beta);
        a[ld * CPLX + j] = 0;
    }
    N(fill_v)(q, j, &h);
}

/* Columns j0 .. j0+w-1, w <= LEAF, one by one, with their T. */
static void N(leaf)(work_t *q, int64_t p, int64_t j0, int64_t w)
{
    for (int64_t j = j0; j < j0 + w; j++) {
        N(reflect)(q, p, j);
        int64_t rest = j0 + w - 1 - j, r0 = j / VL * VL, before = j - j0;
        const REAL *tau = q->tau + PARTS * j;
        REAL tr = tau[0], ti = CPLX ? tau[CPLX] : 0;
        if (rest > 0 && (tr != 0 || ti != 0)) {
            tn(&q->V, j, 1, &q->A, j + 1, rest, r0, q->W);
            row_scale(q->W.p, q->W.plane, tr, -ti, rest);
            nn(&q->V, j, 1, &q->A, j + 1, rest, r0, q->W);
        }
        if (before > 0)
            tn(&q->V, j0, before, &q->V, j, 1, r0, q->W);
        for (int64_t a = 0; a < before; a++) {
            REAL *row = q->T.p + (j0 - p + a) * q->T.rs;
            double sr = 0, si = 0;
            for (int64_t l = a; l < before; l++) {
                double xr = (double)row[j0 - p + l],
                       xi = CPLX ? (double)row[q->T.plane * CPLX + j0 - p + l] : 0;
                double wr = (double)q->W.p[l * q->W.rs],
                       wi = CPLX ? (double)q->W.p[l * q->W.rs + q->W.plane * CPLX] : 0;
                sr += xr * wr - xi * wi;
                si += xr * wi + xi * wr;
            }
            row[j - p] = (REAL) - (sr * (double)tr - si * (double)ti);
            if (CPLX)
                row[q->T.plane * CPLX + j - p] = (REAL) - (sr * (double)ti + si * (double)tr);
        }
        q->T.p[(j - p) * q->T.rs + j - p] = tr;
        if (CPLX)
            q->T.p[(j - p) * q->T.rs + q->T.plane * CPLX + j - p] = ti;
    }
}

static void N(factor_panel)(work_t *q, int64_t p, int64_t j0, int64_t w)
{
    if (w <= LEAF) {
        N(leaf)(q, p, j0, w);
        return;
    }
    int64_t w1 = round_up(w / 2, LEAF);
    N(factor_panel)(q, p, j0, w1);
    N(update)(q, p, j0, w1, j0 + w1, w - w1);
    N(factor_panel)(q, p, j0 + w1, w - w1);
    N(t_join)(q, p, j0, w1, w - w1);
}

/* ---- in and out ---- */

#include "kernels/cpu/fast_moves.h"

/* ---- workspace ---- */

/* The next `numbers` of the workspace; base NULL only counts. */
static REAL *N(take)(char *base, size_t *used, int64_t numbers)
{
    REAL *p = base ? (REAL *)(void *)(base + *used) : NULL;
    *used += (size_t)round_up(numbers * (int64_t)sizeof(REAL), 64);
    return p;
}

/* Lays the work arrays out in the workspace (NULL: only counts) and returns the bytes. */
static size_t N(layout)(work_t *q, const gb10_geqrf_args_t *args, char *base)
{
    size_t used = 0;
    int64_t line = 64 / (int64_t)sizeof(REAL);
    *q = (work_t){.m = args->A->m, .n = args->A->n};
    q->k = min64(q->m, q->n);
    q->nb = min64(args->nb, q->k);
    q->block = block_width(q->nb, q->k);
    int64_t ld = round_up(q->m, VL), width = round_up(q->block, VL) + VL;
    if (ld >= 4 * line)
        ld = round_up(ld, 2 * line) + line; /* an odd number of lines: columns spread over sets */
    int64_t strip = round_up(STRIP > width ? STRIP : width, VL);
    int64_t cs = ld * PARTS + (CPLX && ld >= 4 * line ? line : 0); /* odd as well */
    q->A = q->V = (panel_t){NULL, ld, cs};
    q->T = q->X = (rows_t){NULL, width * PARTS, width};
    q->W = (rows_t){NULL, strip * PARTS, strip};
    q->A.p = N(take)(base, &used, q->A.cs * q->n);
    q->V.p = N(take)(base, &used, q->V.cs * q->k);
    q->T.p = N(take)(base, &used, q->T.rs * q->block);
    q->X.p = N(take)(base, &used, q->X.rs * q->block);
    q->W.p = N(take)(base, &used, q->W.rs * q->block);
    q->tau = N(take)(base, &used, PARTS * q->k);
    q->shift = base ? (int *)(void *)(base + used) : NULL;
    return used + (size_t)round_up(q->n * (int64_t)sizeof(int), 64);
}

static size_t N(need)(const gb10_geqrf_args_t *args)
{
    work_t q;
    return N(layout)(&q, args, NULL);
}

static void N(geqrf)(const gb10_geqrf_args_t *args, void *workspace)
{
    work_t q;
    const gb10_view_t *const out[] = {args->V, args->T, args->R, args->tau, args->packed};
    N(layout)(&q, args, workspace);
    for (int64_t b = 0; b < args->A->count; b++) {
        gb10_info_t info = N(factor)(&q, args, b);
        for (int i = 0; info != GB10_INFO_OK && i < 5; i++)
            gb10_view_fill_nan(out[i], b);
        if (args->info)
            args->info[b] = (uint8_t)info;
    }
}

#undef NAME3
#undef NAME2
#undef vec_t
#undef index_t
#undef work_t
#undef panel_t
#undef rows_t
#undef VL
#undef PARTS
#undef FMA
#undef ABS
#undef TOP
#undef TINY
#undef EXP_HIGH
#undef EXP_DROP
#undef EXP_LOW
#undef vfma
#undef vfnma
#undef splat
#undef hsum
#undef load
#undef keep
#undef TN_A
#undef TN_C
#undef NN_R
#undef NN_C
#undef tn
#undef nn
#undef combine
#undef row_scale
#undef N
#undef LETTER
#undef REAL
#undef SINGLE
#undef CPLX
