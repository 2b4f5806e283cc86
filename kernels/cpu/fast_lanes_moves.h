/* In and out of the lanes of fast_lanes.h, and the batch; part of fast_type.h. */

/* Exchanges the off-diagonal blocks of size d of VL vectors of VL numbers; d is a constant. */
INLINE void N(exchange)(vec_t *x, int d)
{
    index_t low = {0}, high = {0};
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

INLINE void N(transpose)(vec_t *x)
{
    if (VL > 8)
        N(exchange)(x, 8);
    if (VL > 4)
        N(exchange)(x, 4);
    if (VL > 2)
        N(exchange)(x, 2);
    N(exchange)(x, 1);
}

/* One element of VL matrices between (re, im) pairs in memory and vectors of each. */
INLINE void N(take_apart)(REAL *to, const REAL *from)
{
    vec_t x[PARTS];
    memcpy(x, from, sizeof x);
#if CPLX
    index_t even = {0}, odd = {0};
    UNROLL for (int l = 0; l < (int)VL; l++)
    {
        even[l] = 2 * l;
        odd[l] = 2 * l + 1;
    }
    keep(to + VL, __builtin_shuffle(x[0], x[1], odd));
    x[0] = __builtin_shuffle(x[0], x[1], even);
#endif
    keep(to, x[0]);
}

INLINE void N(put_together)(REAL *to, const REAL *from)
{
    vec_t x[PARTS] = {load(from)};
#if CPLX
    vec_t re = x[0], im = load(from + VL);
    index_t first = {0}, second = {0};
    UNROLL for (int l = 0; l < (int)VL; l++)
    {
        first[l] = l / 2 + (l & 1) * (int)VL;
        second[l] = first[l] + (int)VL / 2;
    }
    x[0] = __builtin_shuffle(re, im, first);
    x[1] = __builtin_shuffle(re, im, second);
#endif
    memcpy(to, x, sizeof x);
}

/* Where number c of a run goes: elements lie `stride` apart. */
#define LANE_SLOT(c) (stride == 1 ? (c) : (c) / PARTS * PARTS * stride + (c) % PARTS)

/* `numbers` contiguous numbers of every matrix to vectors; the last block overlaps the one before.
 */
INLINE void N(run_in)(REAL *to, int64_t stride, REAL *const *from, int64_t at, int64_t numbers)
{
    for (int64_t c = 0; c < numbers && numbers < VL; c++)
        for (int l = 0; l < (int)VL; l++)
            to[LANE_SLOT(c) * VL + l] = from[l][at + c];
    for (int64_t next = 0; next < numbers && numbers >= VL; next += VL) {
        int64_t c = min64(next, numbers - VL);
        vec_t x[VL];
        UNROLL for (int l = 0; l < (int)VL; l++) memcpy(&x[l], from[l] + at + c, sizeof x[l]);
        N(transpose)(x);
        UNROLL for (int l = 0; l < (int)VL; l++) keep(to + LANE_SLOT(c + l) * VL, x[l]);
    }
}

INLINE void N(run_out)(REAL *const *to, const REAL *from, int64_t stride, int64_t at,
                       int64_t numbers)
{
    for (int64_t c = 0; c < numbers && numbers < VL; c++)
        for (int l = 0; l < (int)VL; l++)
            to[l][at + c] = from[LANE_SLOT(c) * VL + l];
    for (int64_t next = 0; next < numbers && numbers >= VL; next += VL) {
        int64_t c = min64(next, numbers - VL);
        vec_t x[VL];
        UNROLL for (int l = 0; l < (int)VL; l++) x[l] = load(from + LANE_SLOT(c + l) * VL);
        N(transpose)(x);
        UNROLL for (int l = 0; l < (int)VL; l++) memcpy(to[l] + at + c, &x[l], sizeof x[l]);
    }
}

/* The runs of contiguous numbers of an m x n view: whole matrices, rows or columns; rows of the
 * array are `width` elements. */
#define LANE_RUNS(view, width, RUN)                                                                \
    do {                                                                                           \
        int64_t m_ = (view)->m, n_ = (view)->n, rs_ = (view)->rs, cs_ = (view)->cs, w_ = width;    \
        bool whole_ = cs_ == 1 && ((rs_ == n_ && w_ == n_) || m_ == 1);                            \
        if (whole_)                                                                                \
            RUN(0, 1, 0, PARTS *m_ *n_);                                                           \
        for (int64_t i = 0; i < m_ && cs_ == 1 && !whole_; i++)                                    \
            RUN(i *PARTS *w_ *VL, 1, PARTS *i *rs_, PARTS *n_);                                    \
        for (int64_t j = 0; j < n_ && cs_ != 1; j++)                                               \
            RUN(j *PARTS *VL, w_, PARTS *j *cs_, PARTS *m_);                                       \
    } while (0)

/* Matrices b .. of a view, one a lane. Lanes after `valid` are all the last matrix: they are read
 * from it, compute the same, and write the same to the same place. */
INLINE void N(addresses)(const gb10_view_t *view, int64_t b, int64_t valid, REAL **p)
{
    p[0] = gb10_view_at(view, b);
    for (int64_t l = 1; l < VL; l++)
        if (l >= valid)
            p[l] = p[l - 1];
        else if (view->layout == GB10_STRIDED)
            p[l] = p[l - 1] + PARTS * view->bs;
        else
            p[l] = gb10_view_at(view, b + l);
}

/* Batch-interleaved views whose groups are whole groups of lanes are nearly what the lanes are:
 * element e of a group lies `step` numbers after the one before, complex ones as pairs. */
INLINE bool N(ready_made)(const gb10_view_t *view)
{
    return view->layout == GB10_INTERLEAVED && view->width % VL == 0;
}

/* Any other strides: number by number. */
static void N(gather)(const gb10_view_t *view, REAL *const *p, REAL *lanes_at, int64_t width,
                      bool out)
{
    for (int64_t i = 0; i < view->m; i++)
        for (int64_t c = 0; c < PARTS * view->n; c++)
            for (int l = 0; l < (int)VL; l++) {
                REAL *there = p[l] + PARTS * (i * view->rs + c / PARTS * view->cs) + c % PARTS;
                REAL *here = lanes_at + (i * PARTS * width + c) * VL + l;
                if (out)
                    *there = *here;
                else
                    *here = *there;
            }
}

static void N(lanes_in)(const gb10_view_t *view, int64_t b, int64_t valid, REAL *to, int64_t width)
{
    REAL *from[VL];
    N(addresses)(view, b, valid, from);
    if (N(ready_made)(view) && valid == VL) {
        for (int64_t i = 0; i < view->m; i++)
            for (int64_t j = 0; j < view->n; j++)
                N(take_apart)
        (to + (i * width + j) * PARTS * VL, from[0] + PARTS * (i * view->rs + j * view->cs));
        return;
    }
    if (view->rs != 1 && view->cs != 1) {
        N(gather)(view, from, to, width, false);
        return;
    }
#define RUN(slot, stride, at, numbers) N(run_in)(to + (slot), stride, from, at, numbers)
    LANE_RUNS(view, width, RUN);
#undef RUN
}

static void N(lanes_out)(const gb10_view_t *view, int64_t b, int64_t valid, REAL *from,
                         int64_t width)
{
    REAL *to[VL];
    if (!view)
        return;
    N(addresses)(view, b, valid, to);
    if (N(ready_made)(view) && valid == VL) {
        for (int64_t i = 0; i < view->m; i++)
            for (int64_t j = 0; j < view->n; j++)
                N(put_together)
        (to[0] + PARTS * (i * view->rs + j * view->cs), from + (i * width + j) * PARTS * VL);
        return;
    }
    if (view->rs != 1 && view->cs != 1) {
        N(gather)(view, to, from, width, true);
        return;
    }
#define RUN(slot, stride, at, numbers) N(run_out)(to, from + (slot), stride, at, numbers)
    LANE_RUNS(view, width, RUN);
#undef RUN
}

/* LAPACK's V\R: V below the diagonal of R. Rows k and beyond are V's alone. */
static void N(lanes_packed)(const lanes_t *q, REAL *A, const REAL *V)
{
    for (int64_t i = 1; i < q->m; i++)
        for (int64_t c = 0; c < PARTS * min64(i, q->k); c++)
            keep(A + (i * q->an * PARTS + c) * VL, load(V + (i * q->vn * PARTS + c) * VL));
}

/* ---- lanes that need more than the usual ---- */

/* Scales the columns of lane l, or finds that the matrix has no factorisation: then zeros take its
 * place. */
static gb10_info_t N(lane_prepare)(const lanes_t *q, REAL *A, int *shift, int l)
{
    gb10_info_t info = GB10_INFO_OK;
    int64_t rs = q->an * PARTS * VL;
    for (int64_t j = 0; j < q->n && info != GB10_INFO_NONFINITE; j++) {
        N(column_t) column = {A + j * PARTS * VL + l, rs, VL, q->m};
        REAL top = N(column_top)(&column);
        shift[j * VL + l] = 0;
        if (!(top <= TOP))
            info = GB10_INFO_NONFINITE;
        else if (!N(scale_column)(&column, top, &shift[j * VL + l]))
            info = GB10_INFO_NOT_REPRESENTABLE;
    }
    for (int64_t c = 0; c < q->m * q->an * PARTS && info == GB10_INFO_NONFINITE; c++)
        A[c * VL + l] = 0;
    return info;
}

static gb10_info_t N(lane_rescale)(const lanes_t *q, REAL *A, const int *shift, int l)
{
    bool fits = true;
    for (int64_t j = 0; j < q->n; j++) {
        N(column_t) column = {A + j * PARTS * VL + l, q->an * PARTS * VL, VL, min64(j + 1, q->k)};
        fits = N(unscale_column)(&column, shift[j * VL + l]) && fits;
    }
    return fits ? GB10_INFO_OK : GB10_INFO_NOT_REPRESENTABLE;
}

/* True when every column of every lane is well within the range. */
INLINE bool N(lanes_usual)(const lanes_t *q, const REAL *A)
{
    index_t bad = {0};
    int64_t rs = q->an * PARTS * VL;
    for (int64_t j = 0; j < q->n; j++) {
        vec_t top = splat(0), odd = splat(0);
        for (int64_t i = 0; i < q->m; i++)
            UNROLL for (int part = 0; part < PARTS; part++)
            {
                vec_t x = load(A + i * rs + (j * PARTS + part) * VL);
                top = VMAX(top, N(absolute)(x));
                odd = vfma(x, splat(0), odd); /* NaN for NaN and Inf */
            }
        top += odd;
        bad |= ~((top < splat(HIGHEST)) & (top > splat(LOWEST)));
    }
    return !N(any)(bad);
}

/* ---- the batch ---- */

/* Groups g0 .. of the batch, `count` of them, from reading to writing. */
static void N(lanes_some)(const lanes_t *q, const gb10_geqrf_args_t *args, int64_t g0,
                          int64_t count)
{
    gb10_times_t *times = args->times;
    double since = times ? gb10_seconds() : 0;
    const gb10_view_t *const out[] = {args->V, args->T, args->R, args->tau, args->packed};
#define LANE_ARRAY(name) (q->name + g * q->size)
#define FOR_GROUPS       for (int64_t g = 0; g < count; g++)
#define VALID            min64(VL, args->A->count - (g0 + g) * VL)
    FOR_GROUPS
    {
        int *shift = q->shift + g * q->n * VL;
        uint8_t *info = q->info + g * VL;
        N(lanes_in)(args->A, (g0 + g) * VL, VALID, LANE_ARRAY(A), q->an);
        q->odd[g] = !N(lanes_usual)(q, LANE_ARRAY(A));
        for (int l = 0; l < (int)VL; l++)
            info[l] =
                (uint8_t)(q->odd[g] ? N(lane_prepare)(q, LANE_ARRAY(A), shift, l) : GB10_INFO_OK);
    }
    gb10_lap(&since, times ? &times->pack : NULL);
    FOR_GROUPS
    {
        N(group_t) group = {LANE_ARRAY(A), LANE_ARRAY(V), LANE_ARRAY(T), LANE_ARRAY(tau)};
        N(lane_factor)(q, &group);
    }
    gb10_lap(&since, times ? &times->factor : NULL);
    for (int64_t g = 0; g < count && args->T && q->k > PANEL; g++)
        N(lane_form_t)(q, LANE_ARRAY(V), LANE_ARRAY(T), q->X);
    gb10_lap(&since, times ? &times->form_t : NULL);
    FOR_GROUPS
    {
        int64_t b = (g0 + g) * VL;
        uint8_t *info = q->info + g * VL;
        for (int l = 0; l < (int)VL && q->odd[g]; l++)
            if (info[l] == GB10_INFO_OK)
                info[l] = (uint8_t)N(lane_rescale)(q, LANE_ARRAY(A), q->shift + g * q->n * VL, l);
        N(lanes_out)(args->V, b, VALID, LANE_ARRAY(V), q->vn);
        N(lanes_out)(args->T, b, VALID, LANE_ARRAY(T), q->vn);
        N(lanes_out)(args->R, b, VALID, LANE_ARRAY(A), q->an);
        N(lanes_out)(args->tau, b, VALID, LANE_ARRAY(tau), 1);
        if (args->packed) {
            N(lanes_packed)(q, LANE_ARRAY(A), LANE_ARRAY(V));
            N(lanes_out)(args->packed, b, VALID, LANE_ARRAY(A), q->an);
        }
        for (int64_t l = 0; l < VALID; l++) {
            for (int i = 0; i < 5 && info[l] != GB10_INFO_OK; i++)
                gb10_view_fill_nan(out[i], b + l);
            if (args->info)
                args->info[b + l] = info[l];
        }
    }
    gb10_lap(&since, times ? &times->unpack : NULL);
#undef VALID
#undef FOR_GROUPS
#undef LANE_ARRAY
}

static size_t N(lanes_layout)(lanes_t *q, const gb10_geqrf_args_t *args, char *base)
{
    size_t used = 0;
    int64_t m = args->A->m, n = args->A->n, k = min64(m, n), nb = min64(args->nb, k);
    *q = (lanes_t){.m = m, .n = n, .k = k, .nb = nb, .an = lane_width(n), .vn = lane_width(k)};
    int64_t number = PARTS * VL, a = m * q->an * number;
    int64_t v = m * q->vn * number, t = nb * q->vn * number;
    q->size = a + v + t + k * number;
    q->groups = LANE_BYTES / (q->size * (int64_t)sizeof(REAL)) + 1;
    q->groups = min64(q->groups, LANE_GROUPS);
    q->A = N(take)(base, &used, q->size * q->groups);
    q->V = q->A + a;
    q->T = q->V + v;
    q->tau = q->T + t;
    q->X = N(take)(base, &used, nb * PANEL * number);
    q->shift = (int *)(void *)N(take)(base, &used, q->groups * n * VL * 2);
    q->info = (uint8_t *)(void *)N(take)(base, &used, q->groups * VL);
    q->odd = (bool *)(void *)N(take)(base, &used, q->groups);
    return used;
}

static void N(lanes_geqrf)(const gb10_geqrf_args_t *args, void *workspace)
{
    lanes_t q;
    N(lanes_layout)(&q, args, workspace);
    memset(q.A, 0, (size_t)(q.size * q.groups) * sizeof(REAL));
    for (int64_t g = 0; g < q.groups; g++)
        for (int64_t j = 0; j < q.k; j++)
            keep(q.V + g * q.size + (j * q.vn + j) * PARTS * VL, splat(1));
    int64_t groups = (args->A->count + VL - 1) / VL;
    for (int64_t g = 0; g < groups; g += q.groups)
        N(lanes_some)(&q, args, g, min64(q.groups, groups - g));
}
