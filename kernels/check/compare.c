#include <math.h>

#include "kernels/check/check.h"
#include "kernels/check/planes.h"
#include "kernels/core/dd.h"

/* One comparison: columns are scaled by powers of two so that their norms in A are near 1. */
typedef struct compare {
    const gb10_compare_r_args_t *args;
    int64_t m, n, k, b;
    int parts;
    double u;
    double *row[2], *a2;
    int *shift;
    gb10_planes_t R, X; /* k x k: the leading columns of R1 and their inverse */
} compare_t;

static compare_t compare_of(const gb10_compare_r_args_t *args)
{
    compare_t c = {.args = args, .m = args->A->m, .n = args->A->n};
    c.k = c.m < c.n ? c.m : c.n;
    c.parts = gb10_dtype_is_complex(args->A->dtype) ? 2 : 1;
    c.u = gb10_dtype_u(args->A->dtype);
    return c;
}

static size_t row_bytes(const compare_t *c)
{
    return ((size_t)c->n + 8) / 8 * 8 * sizeof(double);
}

size_t gb10_compare_r_need(const gb10_compare_r_args_t *args)
{
    compare_t c = compare_of(args);
    return 4 * row_bytes(&c) + 2 * gb10_planes_bytes(c.k, c.k, c.parts, false);
}

/* Entry (i, j) of v, in c->row[.][j]. */
static void read_entry(compare_t *c, const gb10_view_t *v, int64_t i, int64_t j)
{
    gb10_read_row(v, c->b, i, j, j + 1, c->row[0], c->row[1]);
}

static double column_top(compare_t *c, const gb10_view_t *v, int64_t rows, int64_t j)
{
    double top = 0;
    for (int64_t i = 0; i < rows; i++) {
        read_entry(c, v, i, j);
        for (int q = 0; q < c->parts; q++)
            top = gb10_worse(top, fabs(c->row[q][j]));
    }
    return top;
}

static gb10_dd_t column_square(compare_t *c, const gb10_view_t *v, int64_t rows, int64_t j)
{
    gb10_dd_t s = {0, 0};
    for (int64_t i = 0; i < rows; i++) {
        read_entry(c, v, i, j);
        for (int q = 0; q < c->parts; q++) {
            double x = ldexp(c->row[q][j], -c->shift[j]);
            s = gb10_dd_mac(s, x, x);
        }
    }
    return gb10_dd_normal(s);
}

static double column_difference(compare_t *c, int64_t j)
{
    int64_t rows = j + 1 < c->k ? j + 1 : c->k;
    double top = column_top(c, c->args->A, c->m, j);
    c->shift[j] = top > 0 && top <= 0x1.fffffffffffffp1023 ? ilogb(top) : 0;
    gb10_dd_t a = column_square(c, c->args->A, c->m, j);
    gb10_dd_t r1 = column_square(c, c->args->R1, rows, j);
    gb10_dd_t r2 = column_square(c, c->args->R2, rows, j);
    c->a2[j] = a.hi;
    double difference = fabs((r1.hi - r2.hi) + (r1.lo - r2.lo));
    if (a.hi == 0)
        return r1.hi == 0 && r2.hi == 0 ? 0 : INFINITY;
    return difference / (sqrt(r1.hi) + sqrt(r2.hi)) / sqrt(a.hi);
}

/* || |R1| - |R2| ||_F / ||A||_F, in units of the longest column. */
static double modulus_difference(compare_t *c)
{
    double sum = 0, norm = 0;
    int exponent = -2000;
    for (int64_t j = 0; j < c->n; j++)
        if (!(c->a2[j] == 0) && c->shift[j] > exponent)
            exponent = c->shift[j];
    for (int64_t j = 0; j < c->n; j++)
        norm += ldexp(c->a2[j], 2 * (c->shift[j] - exponent));
    for (int64_t i = 0; i < c->k; i++)
        for (int64_t j = i; j < c->n; j++) {
            double modulus[2];
            for (int side = 0; side < 2; side++) {
                read_entry(c, side ? c->args->R2 : c->args->R1, i, j);
                double im = c->parts == 2 ? ldexp(c->row[1][j], -exponent) : 0;
                modulus[side] = hypot(ldexp(c->row[0][j], -exponent), im);
            }
            sum += (modulus[0] - modulus[1]) * (modulus[0] - modulus[1]);
        }
    return sum == 0 ? 0 : sqrt(sum / norm);
}

/* The k entries of a row of X divided by the diagonal entry at `diagonal`. */
static void divide_row(gb10_planes_t x, gb10_planes_t diagonal, int64_t k)
{
    bool pair = x.parts == 2;
    double re = *diagonal.hi[0], im = pair ? *diagonal.hi[1] : 0, square = re * re + im * im;
    for (int64_t j = 0; j < k; j++) {
        double a = x.hi[0][j], b = pair ? x.hi[1][j] : 0;
        x.hi[0][j] = (a * re + b * im) / square;
        if (pair)
            x.hi[1][j] = (b * re - a * im) / square;
    }
}

/* ||(R1 D)^-1||_F over the leading k columns, each divided by a power of two near its norm. */
static double inverse_norm(compare_t *c)
{
    double sum = 0;
    gb10_planes_zero(c->R, c->k, c->R.rs);
    gb10_planes_zero(c->X, c->k, c->X.rs);
    for (int64_t i = 0; i < c->k; i++) {
        gb10_read_row(c->args->R1, c->b, i, i, c->k, c->row[0], c->row[1]);
        for (int q = 0; q < c->parts; q++)
            for (int64_t j = i; j < c->k; j++) {
                int e = c->a2[j] > 0 ? c->shift[j] + ilogb(sqrt(c->a2[j])) : 0;
                c->R.hi[q][i * c->R.rs + j] = ldexp(c->row[q][j], -e);
            }
        c->X.hi[0][i * c->X.rs + i] = 1;
    }
    for (int64_t i = c->k - 1; i >= 0; i--) {
        int64_t first = i / GB10_PAD * GB10_PAD;
        gb10_planes_mac(gb10_planes_at(c->X, i, first), gb10_planes_at(c->R, i, i + 1),
                        gb10_planes_at(c->X, i + 1, first), -1, 1, c->k - i - 1,
                        gb10_padded(c->k) - first);
        divide_row(gb10_planes_at(c->X, i, i), gb10_planes_at(c->R, i, i), c->k - i);
        for (int q = 0; q < c->parts; q++)
            for (int64_t j = i; j < c->k; j++)
                sum += c->X.hi[q][i * c->X.rs + j] * c->X.hi[q][i * c->X.rs + j];
    }
    return sqrt(sum);
}

static gb10_r_difference_t compare_one(compare_t *c)
{
    gb10_r_difference_t d = {0, 0, 0, 0};
    for (int64_t j = 0; j < c->n; j++)
        d.worst_norm = gb10_worse(d.worst_norm, column_difference(c, j));
    d.worst_abs = modulus_difference(c);
    d.bound = 128 * sqrt((double)c->k) * c->u * inverse_norm(c);
    if (!(d.bound <= 0.0625))
        d.bound = INFINITY;
    d.agree = d.worst_norm <= 32 * c->u && d.worst_abs <= d.bound;
    return d;
}

void gb10_compare_r_run(const gb10_compare_r_args_t *args, void *workspace)
{
    compare_t c = compare_of(args);
    char *p = workspace;
    double **const arrays[] = {&c.row[0], &c.row[1], &c.a2};
    for (int i = 0; i < 3; i++, p += row_bytes(&c))
        *arrays[i] = (double *)p;
    c.shift = (int *)p;
    p += row_bytes(&c);
    c.R = gb10_planes_take(&p, c.k, c.k, c.parts, false);
    c.X = gb10_planes_take(&p, c.k, c.k, c.parts, false);
    for (c.b = 0; c.b < args->A->count; c.b++)
        args->result[c.b] = compare_one(&c);
}
