#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kernels/check/checker.h"
#include "kernels/core/clones.h"
#include "kernels/core/dd.h"

/* Squared norms outside this window are formed again from scaled entries. */
#define WINDOW_LOW  0x1p-600
#define WINDOW_HIGH 0x1p600

static GB10_CLONES void add_squares_dd(double *restrict hi, double *restrict lo,
                                       const double *restrict x, int64_t first, int64_t last)
{
    for (int64_t j = first; j < last; j++) {
        double ep, es, p = gb10_two_prod(x[j], x[j], &ep);
        hi[j] = gb10_two_sum(hi[j], p, &es);
        lo[j] += ep + es;
    }
}

static GB10_CLONES void add_squares(double *restrict hi, const double *restrict x, int64_t first,
                                    int64_t last)
{
    for (int64_t j = first; j < last; j++)
        hi[j] = fma(x[j], x[j], hi[j]);
}

/* sum[j] += |x[j]|: non-finite where an entry is. */
static GB10_CLONES void add_magnitudes(double *restrict sum, const double *restrict x,
                                       int64_t first, int64_t last)
{
    for (int64_t j = first; j < last; j++)
        sum[j] += fabs(x[j]);
}

static bool any_nonfinite(const double *x, int64_t n)
{
    return gb10_count_nonfinite(x, n) > 0;
}

/* True unless all are +0 or -0. */
static GB10_CLONES bool any_nonzero(const double *x, int64_t first, int64_t last)
{
    uint64_t bits = 0, word;
    for (int64_t j = first; j < last; j++) {
        memcpy(&word, &x[j], sizeof word);
        bits |= word << 1;
    }
    return bits != 0;
}

/* Columns [0, n) of row i of v as doubles: in place where they are, else in c->row. */
typedef struct row {
    const double *part[2];
} row_t;

static row_t row_of(gb10_checker_t *c, const gb10_view_t *v, int64_t i, int64_t n)
{
    if (v->dtype == GB10_D && v->cs == 1) {
        const double *p = (const double *)gb10_view_at(v, c->b) + i * v->rs;
        return (row_t){{p, p}};
    }
    gb10_read_row(v, c->b, i, 0, n, c->row[0], c->row[1]);
    return (row_t){{c->row[0], c->row[1]}};
}

static void add_row(const gb10_checker_t *c, row_t row, double *hi, double *lo, int64_t first)
{
    for (int q = 0; q < c->parts; q++) {
        if (c->low)
            add_squares_dd(hi, lo, row.part[q], first, c->n);
        else
            add_squares(hi, row.part[q], first, c->n);
    }
}

/* Number of NaN and Inf in the matrix of a view. */
static int64_t count_view(gb10_checker_t *c, const gb10_view_t *v)
{
    int64_t bad = 0;
    for (int64_t i = 0; v && i < v->m; i++) {
        row_t row = row_of(c, v, i, v->n);
        for (int q = 0; q < c->parts; q++)
            bad += gb10_count_nonfinite(row.part[q], v->n);
    }
    return bad;
}

static void scan_a(gb10_checker_t *c)
{
    for (int64_t i = 0; i < c->m; i++)
        add_row(c, row_of(c, c->args->A, i, c->n), c->a2, c->a2lo, 0);
    /* A square may overflow where the entry does not. */
    if (any_nonfinite(c->a2, c->n))
        c->bad_a = count_view(c, c->args->A);
}

/* The scans of outputs return true when an entry may be NaN or Inf. */
static bool scan_r(gb10_checker_t *c)
{
    double low = INFINITY, high = 0;
    for (int64_t i = 0; i < c->k; i++) {
        row_t row = row_of(c, c->args->R, i, c->n);
        for (int q = 0; q < c->parts; q++)
            c->bad_structure += any_nonzero(row.part[q], 0, q == 0 ? i : i + 1);
        add_row(c, row, c->r2, c->r2lo, i);
        double diagonal = fabs(row.part[0][i]);
        low = diagonal < low ? diagonal : low;
        high = diagonal > high ? diagonal : high;
    }
    if (c->k > 0) {
        c->metrics[GB10_RDIAG_MIN] = low;
        c->metrics[GB10_RDIAG_MAX] = high;
    }
    return any_nonfinite(c->r2, c->n);
}

static bool scan_v(gb10_checker_t *c)
{
    memset(c->tail, 0, (size_t)c->k * sizeof *c->tail);
    for (int64_t i = 0; i < c->m; i++) {
        row_t row = row_of(c, c->args->V, i, c->k);
        int64_t below = i < c->k ? i : c->k;
        for (int q = 0; q < c->parts; q++) {
            add_magnitudes(c->tail, row.part[q], 0, below);
            if (i < c->k)
                c->bad_structure += !(row.part[q][i] == (q == 0));
            c->bad_structure += any_nonzero(row.part[q], below + 1, c->k);
        }
    }
    return any_nonfinite(c->tail, c->k);
}

static void read_tau(gb10_checker_t *c, int64_t j, double tau[2])
{
    tau[1] = 0;
    gb10_read_row(c->args->tau, c->b, j, 0, 1, &tau[0], &tau[1]);
}

static bool scan_tau(gb10_checker_t *c)
{
    bool suspect = false;
    for (int64_t j = 0; j < c->k; j++) {
        double tau[2], limit = 1 + 4 * c->u;
        read_tau(c, j, tau);
        suspect = suspect || any_nonfinite(tau, 2);
        bool none = tau[0] == 0 && tau[1] == 0;
        double off = tau[1] == 0 ? fabs(tau[0] - 1) : hypot(tau[0] - 1, tau[1]);
        if (none)
            c->bad_structure += c->args->V && !(c->tail[j] == 0);
        else
            c->bad_structure += !(off <= limit);
    }
    return suspect;
}

static bool scan_t(gb10_checker_t *c)
{
    double *sum = c->dot[0];
    memset(sum, 0, (size_t)c->k * sizeof *sum);
    for (int64_t i = 0; i < c->nb; i++) {
        row_t row = row_of(c, c->args->T, i, c->k);
        for (int q = 0; q < c->parts; q++)
            add_magnitudes(sum, row.part[q], 0, c->k);
        for (int64_t p = 0; p < c->k; p += c->nb) {
            int64_t last = p + i < c->k ? p + i : c->k;
            for (int q = 0; q < c->parts; q++)
                c->bad_structure += any_nonzero(row.part[q], p, last);
            if (p + i >= c->k || !c->args->tau)
                continue;
            double tau[2];
            read_tau(c, p + i, tau);
            for (int q = 0; q < c->parts; q++)
                c->bad_structure += !(row.part[q][p + i] == tau[q]);
        }
    }
    return any_nonfinite(sum, c->k);
}

static bool scan_outputs(gb10_checker_t *c)
{
    bool suspect = scan_r(c);
    if (c->args->V)
        suspect = scan_v(c) || suspect;
    if (c->args->tau)
        suspect = scan_tau(c) || suspect;
    if (c->args->T)
        suspect = scan_t(c) || suspect;
    return suspect;
}

static double column_top(gb10_checker_t *c, const gb10_view_t *v, int64_t rows, int64_t j)
{
    double top = 0;
    for (int64_t i = 0; i < rows; i++) {
        gb10_read_row(v, c->b, i, j, j + 1, c->row[0], c->row[1]);
        for (int q = 0; q < c->parts; q++)
            top = fabs(c->row[q][j]) > top ? fabs(c->row[q][j]) : top;
    }
    return top;
}

static gb10_dd_t column_square(gb10_checker_t *c, const gb10_view_t *v, int64_t rows, int64_t j)
{
    gb10_dd_t s = {0, 0};
    for (int64_t i = 0; i < rows; i++) {
        gb10_read_row(v, c->b, i, j, j + 1, c->row[0], c->row[1]);
        for (int q = 0; q < c->parts; q++) {
            double x = ldexp(c->row[q][j], -c->shift[j]);
            s = gb10_dd_mac(s, x, x);
        }
    }
    return gb10_dd_normal(s);
}

/* Column j again, with entries scaled so that the largest of A's (or, in a zero column, of R's) is
 * near 1. */
static void rescale_column(gb10_checker_t *c, int64_t j)
{
    int64_t upper = j + 1 < c->k ? j + 1 : c->k;
    double top = column_top(c, c->args->A, c->m, j);
    if (top == 0)
        top = column_top(c, c->args->R, upper, j);
    if (top == 0 || !(top <= DBL_MAX))
        return;
    c->shift[j] = ilogb(top);
    c->down[j] = ldexp(1, -c->shift[j] / 2);
    c->down2[j] = ldexp(1, -(c->shift[j] - c->shift[j] / 2));
    gb10_dd_t a = column_square(c, c->args->A, c->m, j);
    gb10_dd_t r = column_square(c, c->args->R, upper, j);
    c->a2[j] = a.hi;
    c->a2lo[j] = a.lo;
    c->r2[j] = r.hi;
    c->r2lo[j] = r.lo;
}

/* | ||R e_j|| - ||a_j|| | / ||a_j|| from the squares, whose difference is what cancels. */
static double column_norm_error(const gb10_checker_t *c, int64_t j)
{
    if (c->a2[j] == 0)
        return c->r2[j] == 0 ? 0 : INFINITY;
    double a = sqrt(c->a2[j]), r = sqrt(c->r2[j]);
    double difference = (c->r2[j] - c->a2[j]) + (c->r2lo[j] - c->a2lo[j]);
    return gb10_beyond_tiny(c, fabs(difference) / (a + r) / a, a, c->shift[j]);
}

/* Columns in their own scale (shift 0) need no ldexp. */
static void frobenius_norm(gb10_checker_t *c)
{
    bool any = false;
    double top = 0, sum = 0;
    c->exponent = 0;
    for (int64_t j = 0; j < c->n; j++)
        if (c->shift[j] == 0)
            top = c->a2[j] > top ? c->a2[j] : top;
    if (top > 0) {
        c->exponent = ilogb(sqrt(top));
        any = true;
    }
    for (int64_t j = 0; j < c->n; j++) {
        if (c->shift[j] == 0 || !(c->a2[j] > 0))
            continue;
        int e = c->shift[j] + ilogb(sqrt(c->a2[j]));
        c->exponent = !any || e > c->exponent ? e : c->exponent;
        any = true;
    }
    bool near = c->exponent > -400 && c->exponent < 400;
    double plain = near ? ldexp(1, -2 * c->exponent) : 0;
    for (int64_t j = 0; j < c->n; j++)
        sum += near && c->shift[j] == 0 ? c->a2[j] * plain
                                        : ldexp(c->a2[j], 2 * (c->shift[j] - c->exponent));
    c->norm = sqrt(sum);
}

static bool in_window(double square)
{
    return square > WINDOW_LOW && square < WINDOW_HIGH;
}

void gb10_check_a_columns(gb10_checker_t *c)
{
    for (int64_t j = 0; j < c->n; j++) {
        c->shift[j] = 0;
        if (!in_window(c->a2[j]))
            rescale_column(c, j);
    }
}

static void finish_columns(gb10_checker_t *c)
{
    double worst = 0;
    memset(c->shift, 0, (size_t)c->n * sizeof *c->shift);
    for (int64_t j = 0; j < c->n; j++) {
        c->down[j] = c->down2[j] = 1;
        if (!in_window(c->a2[j]) || !in_window(c->r2[j]))
            rescale_column(c, j);
        worst = gb10_worse(worst, column_norm_error(c, j));
    }
    c->metrics[GB10_COLUMN_NORM_ERROR] = worst;
    frobenius_norm(c);
}

void gb10_check_norms(gb10_checker_t *c)
{
    size_t bytes = (size_t)c->n * sizeof(double);
    double *sums[] = {c->a2, c->a2lo, c->r2, c->r2lo};
    for (int i = 0; i < 4; i++)
        memset(sums[i], 0, bytes);
    c->bad_a = c->bad_out = c->bad_structure = 0;
    scan_a(c);
    /* NaN also breaks the structure where that wants a zero. */
    if (scan_outputs(c) || c->bad_structure > 0)
        c->bad_out = count_view(c, c->args->R) + count_view(c, c->args->V) +
                     count_view(c, c->args->T) + count_view(c, c->args->tau);
    if (c->bad_a == 0 && c->bad_out == 0)
        finish_columns(c);
}
