#include "kernels/check/planes.h"

#include <float.h>
#include <string.h>

#include "kernels/core/clones.h"
#include "kernels/core/dd.h"

/* TILE columns of the right operand and the result, INNER of its rows: 16 KB with low parts. */
enum { TILE = 32, INNER = 32 };

size_t gb10_planes_bytes(int64_t rows, int64_t n, int parts, bool low)
{
    size_t one = (size_t)rows * (size_t)gb10_padded(n) * sizeof(double) + 64;
    return one * (size_t)parts * (low ? 2 : 1);
}

static double *take(char **p, int64_t count)
{
    double *array = (double *)*p;
    *p += ((size_t)count * sizeof(double) + 63) / 64 * 64;
    return array;
}

gb10_planes_t gb10_planes_take(char **p, int64_t rows, int64_t n, int parts, bool low)
{
    gb10_planes_t a = {.rs = gb10_padded(n), .cs = 1, .parts = parts};
    for (int q = 0; q < parts; q++) {
        a.hi[q] = take(p, rows * a.rs);
        a.lo[q] = low ? take(p, rows * a.rs) : NULL;
    }
    return a;
}

gb10_planes_t gb10_planes_at(gb10_planes_t a, int64_t i, int64_t j)
{
    for (int q = 0; q < a.parts; q++) {
        a.hi[q] += i * a.rs + j * a.cs;
        if (a.lo[q])
            a.lo[q] += i * a.rs + j * a.cs;
    }
    return a;
}

gb10_planes_t gb10_planes_adjoint(gb10_planes_t a)
{
    int64_t rs = a.rs;
    a.rs = a.cs;
    a.cs = rs;
    a.conj = !a.conj;
    return a;
}

void gb10_planes_zero(gb10_planes_t a, int64_t rows, int64_t n)
{
    for (int q = 0; q < a.parts; q++)
        for (int64_t i = 0; i < rows; i++) {
            memset(a.hi[q] + i * a.rs, 0, (size_t)n * sizeof(double));
            if (a.lo[q])
                memset(a.lo[q] + i * a.rs, 0, (size_t)n * sizeof(double));
        }
}

/* One row of the result: hi, lo += sign * sum_q c[q * cs] * (x, xlo)[q * ld], n entries. */
typedef struct row {
    double *hi, *lo;
    const double *c, *clo;
    int64_t cs;
    double sign;
    const double *x, *xlo;
    int64_t ld, ldlo;
    int64_t inner, n;
} row_t;

GB10_INLINE void step(double *hi, double *lo, double c, double x, double xlo)
{
    double ep, es, p = gb10_two_prod(c, x, &ep);
    *hi = gb10_two_sum(*hi, p, &es);
    *lo = fma(c, xlo, *lo + (ep + es));
}

/* Four terms per pass, so that the result is loaded and stored once for them. */
static GB10_CLONES void mac_dd(const row_t *t)
{
    double *restrict hi = t->hi, *restrict lo = t->lo;
    int64_t q = 0, n = t->n;
    for (; q + 4 <= t->inner; q += 4) {
        const double *c = t->c + q * t->cs;
        const double c0 = t->sign * c[0], c1 = t->sign * c[t->cs];
        const double c2 = t->sign * c[2 * t->cs], c3 = t->sign * c[3 * t->cs];
        const double *restrict x0 = t->x + q * t->ld, *restrict x1 = x0 + t->ld;
        const double *restrict x2 = x1 + t->ld, *restrict x3 = x2 + t->ld;
        const double *restrict y0 = t->xlo + q * t->ldlo, *restrict y1 = y0 + t->ldlo;
        const double *restrict y2 = y1 + t->ldlo, *restrict y3 = y2 + t->ldlo;
#pragma GCC ivdep
        for (int64_t j = 0; j < n; j++) {
            double h = hi[j], l = lo[j];
            step(&h, &l, c0, x0[j], y0[j]);
            step(&h, &l, c1, x1[j], y1[j]);
            step(&h, &l, c2, x2[j], y2[j]);
            step(&h, &l, c3, x3[j], y3[j]);
            hi[j] = h;
            lo[j] = l;
        }
    }
    for (; q < t->inner; q++) {
        const double c0 = t->sign * t->c[q * t->cs];
        const double *restrict x0 = t->x + q * t->ld, *restrict y0 = t->xlo + q * t->ldlo;
#pragma GCC ivdep
        for (int64_t j = 0; j < n; j++)
            step(&hi[j], &lo[j], c0, x0[j], y0[j]);
    }
}

/* The low part of c times the high part of x, then lo is made small again. */
static GB10_CLONES void mac_low(const row_t *t)
{
    double *restrict hi = t->hi, *restrict lo = t->lo;
    for (int64_t q = 0; t->clo && q < t->inner; q++) {
        const double c0 = t->sign * t->clo[q * t->cs];
        const double *restrict x0 = t->x + q * t->ld;
#pragma GCC ivdep
        for (int64_t j = 0; j < t->n; j++)
            lo[j] = fma(c0, x0[j], lo[j]);
    }
#pragma GCC ivdep
    for (int64_t j = 0; j < t->n; j++) {
        double error, sum = gb10_two_sum(hi[j], lo[j], &error);
        hi[j] = sum;
        lo[j] = error;
    }
}

static GB10_CLONES void mac_plain(const row_t *t)
{
    double *restrict hi = t->hi;
    int64_t q = 0, n = t->n;
    for (; q + 4 <= t->inner; q += 4) {
        const double *c = t->c + q * t->cs;
        const double c0 = t->sign * c[0], c1 = t->sign * c[t->cs];
        const double c2 = t->sign * c[2 * t->cs], c3 = t->sign * c[3 * t->cs];
        const double *restrict x0 = t->x + q * t->ld, *restrict x1 = x0 + t->ld;
        const double *restrict x2 = x1 + t->ld, *restrict x3 = x2 + t->ld;
#pragma GCC ivdep
        for (int64_t j = 0; j < n; j++)
            hi[j] = fma(c3, x3[j], fma(c2, x2[j], fma(c1, x1[j], fma(c0, x0[j], hi[j]))));
    }
    for (; q < t->inner; q++) {
        const double c0 = t->sign * t->c[q * t->cs];
        const double *restrict x0 = t->x + q * t->ld;
#pragma GCC ivdep
        for (int64_t j = 0; j < n; j++)
            hi[j] = fma(c0, x0[j], hi[j]);
    }
}

/* One real product; hi and lo of each operand are arrays of the planes. */
typedef struct product {
    gb10_planes_t out, a, b;
    int po, pa, pb;
    double sign;
} product_t;

static void mac_tile(const product_t *g, int64_t rows, int64_t q, int64_t inner, int64_t j,
                     int64_t n)
{
    static const double zeros[TILE];
    const gb10_planes_t *o = &g->out, *a = &g->a, *b = &g->b;
    for (int64_t i = 0; i < rows; i++) {
        row_t t = {.sign = g->sign, .cs = a->cs, .ld = b->rs, .inner = inner, .n = n};
        t.hi = o->hi[g->po] + i * o->rs + j;
        t.c = a->hi[g->pa] + i * a->rs + q * a->cs;
        t.x = b->hi[g->pb] + q * b->rs + j;
        if (!o->lo[g->po]) {
            mac_plain(&t);
            continue;
        }
        t.lo = o->lo[g->po] + i * o->rs + j;
        t.clo = a->lo[g->pa] ? a->lo[g->pa] + i * a->rs + q * a->cs : NULL;
        t.xlo = b->lo[g->pb] ? b->lo[g->pb] + q * b->rs + j : zeros;
        t.ldlo = b->lo[g->pb] ? b->rs : 0;
        mac_dd(&t);
        mac_low(&t);
    }
}

static void mac_real(const product_t *g, int64_t rows, int64_t inner, int64_t n)
{
    for (int64_t j = 0; j < n; j += TILE)
        for (int64_t q = 0; q < inner; q += INNER)
            mac_tile(g, rows, q, inner - q < INNER ? inner - q : INNER, j,
                     n - j < TILE ? n - j : TILE);
}

void gb10_planes_mac(gb10_planes_t out, gb10_planes_t a, gb10_planes_t b, double sign, int64_t rows,
                     int64_t inner, int64_t n)
{
    double im = a.conj ? -sign : sign;
    const product_t terms[] = {{out, a, b, 0, 0, 0, sign},
                               {out, a, b, 0, 1, 1, -im},
                               {out, a, b, 1, 0, 1, sign},
                               {out, a, b, 1, 1, 0, im}};
    for (int i = 0; i < (out.parts == 2 ? 4 : 1); i++)
        mac_real(&terms[i], rows, inner, n);
}

#define COPY_REAL(type, step)                                                                      \
    for (int64_t j = first; j < last; j++)                                                         \
    re[j] = ((const type *)p)[at + j * (step)]
#define COPY_COMPLEX(type, step)                                                                   \
    for (int64_t j = first; j < last; j++) {                                                       \
        re[j] = ((const type *)p)[2 * (at + j * (step))];                                          \
        im[j] = ((const type *)p)[2 * (at + j * (step)) + 1];                                      \
    }
/* The step is a constant 1 for contiguous rows, so that those loops vectorise. */
#define COPY(copy, type)                                                                           \
    if (cs == 1) {                                                                                 \
        copy(type, 1);                                                                             \
    } else {                                                                                       \
        copy(type, cs);                                                                            \
    }

void gb10_read_row(const gb10_view_t *v, int64_t b, int64_t i, int64_t first, int64_t last,
                   double *restrict re, double *restrict im)
{
    const char *p = gb10_view_at(v, b);
    int64_t at = i * v->rs, cs = v->cs;
    switch (v->dtype) {
    case GB10_S:
        COPY(COPY_REAL, float);
        break;
    case GB10_D:
        COPY(COPY_REAL, double);
        break;
    case GB10_C:
        COPY(COPY_COMPLEX, float);
        break;
    case GB10_Z:
        COPY(COPY_COMPLEX, double);
        break;
    }
}

GB10_CLONES int64_t gb10_count_nonfinite(const double *x, int64_t n)
{
    int64_t bad = 0;
    for (int64_t j = 0; j < n; j++)
        bad += !(fabs(x[j]) <= DBL_MAX);
    return bad;
}
