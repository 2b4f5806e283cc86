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

/* VL numbers of every matrix from number `at` on and VL vectors, c the first of them. */
INLINE void N(block_in)(REAL *to, int64_t stride, int64_t c, REAL *const *from, int64_t at)
{
    vec_t x[VL];
    UNROLL for (int l = 0; l < (int)VL; l++) memcpy(&x[l], from[l] + at, sizeof x[l]);
    N(transpose)(x);
    UNROLL for (int l = 0; l < (int)VL; l++) keep(to + LANE_SLOT(c + l) * VL, x[l]);
}

INLINE void N(block_out)(REAL *const *to, int64_t at, const REAL *from, int64_t stride, int64_t c)
{
    vec_t x[VL];
    UNROLL for (int l = 0; l < (int)VL; l++) x[l] = load(from + LANE_SLOT(c + l) * VL);
    N(transpose)(x);
    UNROLL for (int l = 0; l < (int)VL; l++) memcpy(to[l] + at, &x[l], sizeof x[l]);
}

/* Runs of contiguous numbers of a view: `count` of them with `numbers` each, `apart` numbers from
 * one to the next. In the lanes' array they are `slots` numbers apart and the elements of one
 * `stride`. */
typedef struct N(runs) {
    int64_t count, numbers, apart, slots, stride;
} N(runs_t);

/* The runs are whole matrices, where these lie in the array as in memory, or rows or columns. */
INLINE N(runs_t) N(lane_runs)(const gb10_view_t *view, int64_t width)
{
    int64_t m = view->m, n = view->n;
    if (view->cs != 1)
        return (N(runs_t)){n, PARTS * m, PARTS * view->cs, PARTS, width};
    if (m == 1 || (view->rs == n && width == n))
        return (N(runs_t)){1, PARTS * m * n, 0, 0, 1};
    return (N(runs_t)){m, PARTS * n, PARTS * view->rs, PARTS * width, 1};
}

/* To vectors; the last block of a run overlaps the one before. */
INLINE void N(runs_in)(REAL *to, int64_t stride, REAL *const *from_all, N(runs_t) q)
{
    REAL *from[VL];
    UNROLL for (int l = 0; l < (int)VL; l++) from[l] = from_all[l];
    for (int64_t r = 0, at = 0; r < q.count; r++, at += q.apart, to += q.slots * VL) {
        int64_t c = 0, last = q.numbers - VL;
        for (; c <= last; c += VL)
            N(block_in)(to, stride, c, from, at + c);
        if (c < q.numbers)
            N(block_in)(to, stride, last, from, at + last);
    }
}

/* From vectors. Numbers of run r before `begin` r and, if `end` is not 0, from `end` (r + 1) on are
 * zeros. */
INLINE void N(runs_out)(REAL *const *to_all, const REAL *from, int64_t stride, N(runs_t) q,
                        int64_t begin, int64_t end)
{
    REAL *to[VL];
    vec_t zero = splat(0);
    int64_t low = 0, high = end ? end : q.numbers;
    UNROLL for (int l = 0; l < (int)VL; l++) to[l] = to_all[l];
    for (int64_t r = 0, at = 0; r < q.count; r++, at += q.apart, from += q.slots * VL) {
        int64_t c = 0, last = q.numbers - VL;
        for (; !begin && !end && c <= last; c += VL)
            N(block_out)(to, at + c, from, stride, c);
        for (; c <= last; c += VL)
            if (c + VL > low && c < high)
                N(block_out)(to, at + c, from, stride, c);
            else
                UNROLL for (int l = 0; l < (int)VL; l++) memcpy(to[l] + at + c, &zero, sizeof zero);
        if (c < q.numbers)
            N(block_out)(to, at + last, from, stride, last);
        low += begin;
        high += end;
    }
}

/* Matrices b .. of a view, one a lane. Lanes after `valid` are all the last matrix: they are read
 * from it, compute the same, and write the same to the same place. */
INLINE void N(addresses)(const gb10_view_t *view, int64_t b, int64_t valid, REAL **p)
{
    if (view->layout == GB10_STRIDED && valid == VL) {
        REAL *first = (REAL *)view->base + PARTS * b * view->bs;
        UNROLL for (int l = 0; l < (int)VL; l++) p[l] = first + PARTS * l * view->bs;
        return;
    }
    for (int64_t l = 0; l < VL; l++)
        p[l] = gb10_view_at(view, b + min64(l, valid - 1));
}

/* Batch-interleaved views whose groups are whole groups of lanes are nearly what the lanes are:
 * element e of a group lies `step` numbers after the one before, complex ones as pairs. */
INLINE bool N(ready_made)(const gb10_view_t *view)
{
    return view->layout == GB10_INTERLEAVED && view->width % VL == 0;
}

/* Any other strides, and short runs: number by number. */
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
    N(runs_t) q = N(lane_runs)(view, width);
    if (q.numbers < VL || (view->rs != 1 && view->cs != 1))
        N(gather)(view, from, to, width, false);
    else if (q.stride == 1)
        N(runs_in)(to, 1, from, q);
    else
        N(runs_in)(to, q.stride, from, q);
}

static NOINLINE void N(lanes_out)(const gb10_view_t *view, int64_t b, int64_t valid, REAL *from,
                                  int64_t width, lane_part_t part)
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
    N(runs_t) q = N(lane_runs)(view, width);
    bool all = q.count == 1 || part == LANE_FULL, begins = (part == LANE_UPPER) == (q.stride == 1);
    if (q.numbers < VL || (view->rs != 1 && view->cs != 1))
        N(gather)(view, to, from, width, true);
    else if (all && q.stride == 1)
        N(runs_out)(to, from, 1, q, 0, 0);
    else if (q.stride == 1)
        N(runs_out)(to, from, 1, q, begins ? PARTS : 0, begins ? 0 : PARTS);
    else
        N(runs_out)(to, from, q.stride, q, !all && begins ? PARTS : 0, all || begins ? 0 : PARTS);
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

/* True only when every column of every lane is well within the range, by its sum of squares: that
 * is not for NaN and Inf, and rounding is allowed for. What fails is looked at lane by lane. */
INLINE bool N(lanes_usual)(const lanes_t *q, const REAL *A)
{
    index_t bad = {0};
    int64_t rs = q->an * PARTS * VL;
    REAL least = (REAL)(LOWEST * LOWEST) * (REAL)(2 * PARTS * q->m);
    for (int64_t j = 0; j < q->n; j += PANEL) {
        const REAL *x[PANEL];
        vec_t sum[PANEL];
        UNROLL for (int c = 0; c < PANEL; c++)
        {
            x[c] = A + min64(j + c, q->n - 1) * PARTS * VL;
            sum[c] = splat(0);
        }
        for (int64_t i = 0; i < q->m * rs; i += rs)
            UNROLL for (int c = 0; c < PANEL; c++) UNROLL for (int part = 0; part < PARTS; part++)
            {
                vec_t y = load(x[c] + i + part * VL);
                sum[c] = vfma(y, y, sum[c]);
            }
        UNROLL for (int c = 0; c < PANEL; c++) bad |=
            ~((sum[c] < splat(HIGHEST * HIGHEST)) & (sum[c] > splat(least)));
    }
    return !N(any)(bad);
}

/* ---- the batch ---- */

/* A range of `ahead`: VL matrices from b on, where they are one piece of memory. */
INLINE void N(lanes_ahead)(N(ahead_t) * q, int i, const gb10_view_t *view, int64_t b, int64_t k)
{
    if (!view || view->layout != GB10_STRIDED || b + VL > view->count)
        return;
    q->at[i] = gb10_view_at(view, b);
    q->lines[i] = VL * PARTS * view->bs * (int64_t)sizeof(REAL) / 64 / k;
}

/* Factors matrices b .. in group g. Meanwhile memory for their outputs and the matrices from `next`
 * on, which are read after these are written, is asked for. */
static void N(lanes_one)(const lanes_t *q, const gb10_geqrf_args_t *args, int64_t b, int64_t next,
                         int64_t g)
{
    int64_t at = g * q->size;
    N(group_t) group = {q->A + at, q->V + at, q->T + at, q->tau + at, {.any = q->ahead}};
    bool small = q->size * (int64_t)sizeof(REAL) <= AHEAD_MOST;
    if (q->ahead) {
        N(lanes_ahead)(&group.ahead, 0, args->A, next, q->k);
        N(lanes_ahead)(&group.ahead, 1, small ? args->V : NULL, b, q->k);
        N(lanes_ahead)(&group.ahead, 2, small ? args->T : NULL, b, q->k);
        N(lanes_ahead)(&group.ahead, 3, small ? args->R : NULL, b, q->k);
    }
    N(lane_factor)(q, &group);
}

/* Writes the outputs of matrices b .. in group g. */
static void N(lanes_done)(const lanes_t *q, const gb10_geqrf_args_t *args, int64_t b, int64_t valid,
                          int64_t g)
{
    const gb10_view_t *const out[] = {args->V, args->T, args->R, args->tau, args->packed};
    REAL *A = q->A + g * q->size, *V = q->V + g * q->size;
    uint8_t *info = q->info + g * VL;
    for (int l = 0; l < (int)VL && q->odd[g]; l++)
        if (info[l] == GB10_INFO_OK)
            info[l] = (uint8_t)N(lane_rescale)(q, A, q->shift + g * q->n * VL, l);
    N(lanes_out)(args->V, b, valid, V, q->vn, LANE_LOWER);
    N(lanes_out)
    (args->T, b, valid, q->T + g * q->size, q->vn, q->nb < q->k ? LANE_FULL : LANE_UPPER);
    N(lanes_out)(args->R, b, valid, A, q->an, LANE_UPPER);
    N(lanes_out)(args->tau, b, valid, q->tau + g * q->size, 1, LANE_FULL);
    if (args->packed) {
        N(lanes_packed)(q, A, V);
        N(lanes_out)(args->packed, b, valid, A, q->an, LANE_FULL);
    }
    for (int l = 0; l < (int)valid && q->odd[g]; l++)
        for (int i = 0; i < 5 && info[l] != GB10_INFO_OK; i++)
            gb10_view_fill_nan(out[i], b + l);
    if (args->info && q->odd[g])
        memcpy(args->info + b, info, (size_t)valid);
    else if (args->info)
        memset(args->info + b, GB10_INFO_OK, (size_t)valid);
}

/* Groups g0 .. of the batch, `count` of them, from reading to writing. */
static void N(lanes_some)(const lanes_t *q, const gb10_geqrf_args_t *args, int64_t g0,
                          int64_t count)
{
    gb10_times_t *times = args->times;
    double since = times ? gb10_seconds() : 0;
    int64_t b = g0 * VL, all = args->A->count;
    for (int64_t g = 0; g < count; g++) {
        REAL *A = q->A + g * q->size;
        N(lanes_in)(args->A, b + g * VL, min64(VL, all - b - g * VL), A, q->an);
        q->odd[g] = !N(lanes_usual)(q, A);
        for (int l = 0; l < (int)VL && q->odd[g]; l++)
            q->info[g * VL + l] = (uint8_t)N(lane_prepare)(q, A, q->shift + g * q->n * VL, l);
    }
    gb10_lap(&since, times ? &times->pack : NULL);
    for (int64_t g = 0; g < count; g++)
        N(lanes_one)(q, args, b + g * VL, b + (count + g) * VL, g);
    gb10_lap(&since, times ? &times->factor : NULL);
    for (int64_t g = 0; g < count && args->T && q->k > PANEL; g++)
        N(lane_form_t)(q, q->V + g * q->size, q->T + g * q->size, q->X);
    gb10_lap(&since, times ? &times->form_t : NULL);
    for (int64_t g = 0; g < count; g++)
        N(lanes_done)(q, args, b + g * VL, min64(VL, all - b - g * VL), g);
    gb10_lap(&since, times ? &times->unpack : NULL);
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
    q->ahead = args->A->count * m * n * number / VL * (int64_t)sizeof(REAL) >= AHEAD_LEAST;
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
