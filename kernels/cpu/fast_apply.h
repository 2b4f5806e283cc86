/* Q from V and T, formed or applied; part of fast_type.h. C takes the place of the working copy, in
 * strips; blocks of APPLY reflectors, fewer where V has few rows below its triangle (as in the
 * factorisation), whose T are on the diagonal of the file's. C from the right is C^H from the left.
 *
 * Columns of C near an end of the range, and NaN and Inf, are left to cpu-ref. */

/* q.m x q.n: C, or C^H from the right. */
static size_t N(apply_layout)(work_t *q, const gb10_view_t *V, int64_t columns, char *base)
{
    size_t used = 0;
    const int64_t line = 64 / (int64_t)sizeof(REAL), strips = (PARTS * columns + SW - 1) / SW;
    const int64_t most = min64(APPLY, V->n > 0 ? V->n : 1), width = round_up(PARTS * most, VL);
    *q = (work_t){.m = V->m, .n = columns, .k = V->n, .group = APPLY_GROUP};
    q->strip = q->m * SW + line;
    q->V = q->T = (mat_t){NULL, width};
    q->apart = most * min64(q->group, strips) * SW;
    q->A = N(take)(base, &used, strips * q->strip);
    q->V.p = N(take)(base, &used, q->m * width);
    q->T.p = N(take)(base, &used, most * width);
    q->W.p = N(take)(base, &used, q->apart);
    q->X.p = N(take)(base, &used, q->apart);
    q->Y.p = N(take)(base, &used, q->m > LONG_RUN ? q->apart : 0);
    return used;
}

/* Reflectors j0 .. j0+w-1 of matrix b, which are rows t0 .. of a block of T: V with its ones and
 * zeros, T with zeros below. */
static void N(apply_load)(work_t *q, const gb10_view_t *V, const gb10_view_t *T, int64_t b,
                          int64_t j0, int64_t w, int64_t t0)
{
    const REAL *v = (const REAL *)gb10_view_at(V, b) + PARTS * j0 * V->cs;
    const REAL *t = (const REAL *)gb10_view_at(T, b) + PARTS * (t0 * T->rs + j0 * T->cs);
    for (int64_t i = j0; i < q->m; i++) {
        REAL *to = q->V.p + i * q->V.rs;
        const int64_t below = min64(i - j0, w);
        const REAL *from = v + PARTS * i * V->rs;
        for (int64_t e = 0; e < PARTS * below; e += PARTS, from += PARTS * V->cs) {
            to[e] = from[0];
            to[e + CPLX] = from[CPLX];
        }
        for (int64_t e = PARTS * below; e < PARTS * w; e++)
            to[e] = e == PARTS * (i - j0);
    }
    for (int64_t i = 0; i < w; i++)
        for (int64_t e = 0; e < PARTS * w; e++)
            q->T.p[i * q->T.rs + e] =
                e < PARTS * i ? 0 : t[PARTS * (i * T->rs + e / PARTS * T->cs) + e % PARTS];
}

/* Q^H C, the blocks from the first on, or (q.plain) Q C, from the last back. identity: C is I, so
 * that a reflector changes columns from its own on. */
static void N(apply_all)(work_t *q, const gb10_view_t *V, const gb10_view_t *T, int64_t nb,
                         int64_t b, bool identity)
{
    const int64_t block = nb < q->k ? nb : q->k > 0 ? q->k : 1, blocks = (q->k + block - 1) / block;
    for (int64_t at_block = 0; at_block < blocks; at_block++) {
        const int64_t p = block * (q->plain ? blocks - 1 - at_block : at_block);
        const int64_t all = min64(block, q->k - p), most = min64(APPLY, all);
        const int64_t step = q->m - p - all < all ? min64(FEW, most) : most;
        const int64_t steps = (all + step - 1) / step;
        for (int64_t s = 0; s < steps; s++) {
            const int64_t t0 = step * (q->plain ? steps - 1 - s : s), w = min64(step, all - t0);
            N(apply_load)(q, V, T, b, p + t0, w, t0);
            N(update_together)
            (q, p + t0, p + t0, w, identity ? (p + t0) / LEAF * LEAF : 0, q->n);
        }
    }
}

/* The strips to rows of a view, conjugated on request. */
static void N(apply_store)(const work_t *q, const gb10_view_t *C, int64_t b, bool conj)
{
    REAL *c = gb10_view_at(C, b);
    const REAL sign = conj ? -1 : 1;
    (void)sign;
    for (int64_t i = 0; i < q->m; i++) {
        REAL *row = c + PARTS * i * C->rs;
        for (int64_t s = 0; s * SW < PARTS * q->n; s++) {
            const REAL *x = q->A + s * q->strip + i * SW;
            const int64_t numbers = min64(SW, PARTS * q->n - s * SW);
            for (int64_t e = 0; e < numbers; e += PARTS, row += PARTS * C->cs) {
                row[0] = x[e];
                if (CPLX)
                    row[CPLX] = sign * x[e + CPLX];
            }
        }
    }
}

static size_t N(form_q_need)(const gb10_form_q_args_t *a)
{
    work_t q;
    return N(apply_layout)(&q, a->V, a->Q->n, NULL);
}

static void N(form_q)(const gb10_form_q_args_t *a, void *workspace)
{
    work_t q;
    N(apply_layout)(&q, a->V, a->Q->n, workspace);
    q.plain = true;
    for (int64_t b = 0; b < a->Q->count; b++) {
        memset(q.A, 0, (size_t)((PARTS * q.n + SW - 1) / SW * q.strip) * sizeof(REAL));
        for (int64_t j = 0; j < q.n; j++)
            *at(&q, j, j) = 1;
        N(apply_all)(&q, a->V, a->T, a->nb, b, true);
        N(apply_store)(&q, a->Q, b, false);
    }
}

/* Strip by strip from C, what is beyond its columns zero up to a whole vector; false when a column
 * is for cpu-ref. */
static bool N(apply_fetch)(work_t *q, const gb10_view_t *C, int64_t b, bool conj)
{
    const REAL *c = gb10_view_at(C, b);
    const REAL sign = conj ? -1 : 1;
    (void)sign;
    vec_t odd = splat(0);
    bool tame = true;
    for (int64_t s = 0; s * SW < PARTS * q->n; s++) {
        const int64_t numbers = min64(SW, PARTS * q->n - s * SW), nv = (numbers + VL - 1) / VL;
        vec_t high[STRIP];
        for (int64_t v = 0; v < nv; v++)
            high[v] = splat(0);
        for (int64_t i = 0; i < q->m; i++) {
            const REAL *from = c + PARTS * (i * C->rs + s * SW / PARTS * C->cs);
            REAL *row = q->A + s * q->strip + i * SW;
            for (int64_t e = 0; e < numbers; e += PARTS, from += PARTS * C->cs) {
                row[e] = from[0];
                if (CPLX)
                    row[e + CPLX] = sign * from[CPLX];
            }
            for (int64_t e = numbers; e < nv * VL; e++)
                row[e] = 0;
            for (int64_t v = 0; v < nv; v++) {
                const vec_t x = load(row + v * VL);
                high[v] = VMAX(N(absolute)(x), high[v]);
                odd += x * 0; /* NaN for NaN and Inf */
            }
        }
        for (int64_t e = 0; e < numbers; e += PARTS) {
            const REAL re = high[e / VL][e % VL], im = high[e / VL][e % VL + CPLX];
            const REAL top = re > im ? re : im;
            tame = tame && (top == 0 || (top < HIGHEST && top > LOWEST));
        }
    }
    for (int64_t l = 0; l < VL; l++)
        tame = tame && odd[l] == 0;
    return tame;
}

static size_t N(apply_q_need)(const gb10_apply_q_args_t *a)
{
    work_t q;
    return N(apply_layout)(&q, a->V, a->side == 'R' ? a->C->m : a->C->n, NULL);
}

/* Matrices b .. b+count-1; left[i]: the i-th of them is for cpu-ref and was not written. */
static void N(apply_q)(const gb10_apply_q_args_t *a, int64_t b, int64_t count, void *workspace,
                       bool *left)
{
    const bool right = a->side == 'R';
    work_t q;
    gb10_view_t C = *a->C;
    if (right) {
        C.m = a->C->n;
        C.n = a->C->m;
        C.rs = a->C->cs;
        C.cs = a->C->rs;
    }
    N(apply_layout)(&q, a->V, C.n, workspace);
    q.plain = (a->trans == 'N') != right;
    for (int64_t i = 0; i < count; i++) {
        left[i] = !N(apply_fetch)(&q, &C, b + i, right);
        if (left[i])
            continue;
        N(apply_all)(&q, a->V, a->T, a->nb, b + i, false);
        N(apply_store)(&q, &C, b + i, right);
    }
}
