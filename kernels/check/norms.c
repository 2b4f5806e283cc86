#include <float.h>
#include <math.h>
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

static void add_row(const gb10_checker_t *c, double *hi, double *lo, int64_t first)
{
    for (int q = 0; q < c->parts; q++) {
        if (c->low)
            add_squares_dd(hi, lo, c->row[q], first, c->n);
        else
            add_squares(hi, c->row[q], first, c->n);
    }
}

static int64_t count_nonzero(const double *x, int64_t first, int64_t last)
{
    int64_t bad = 0;
    for (int64_t j = first; j < last; j++)
        bad += !(x[j] == 0);
    return bad;
}

/* Reads columns [0, n) of row i of v into c->row; returns the number of NaN and Inf. */
static int64_t read_whole_row(gb10_checker_t *c, const gb10_view_t *v, int64_t i, int64_t n)
{
    int64_t bad = 0;
    gb10_read_row(v, c->b, i, 0, n, c->row[0], c->row[1]);
    for (int q = 0; q < c->parts; q++)
        bad += gb10_count_nonfinite(c->row[q], n);
    return bad;
}

static void scan_a(gb10_checker_t *c)
{
    for (int64_t i = 0; i < c->m; i++) {
        c->bad_a += read_whole_row(c, c->args->A, i, c->n);
        add_row(c, c->a2, c->a2lo, 0);
    }
}

static void scan_r(gb10_checker_t *c)
{
    double low = INFINITY, high = 0;
    for (int64_t i = 0; i < c->k; i++) {
        c->bad_out += read_whole_row(c, c->args->R, i, c->n);
        for (int q = 0; q < c->parts; q++)
            c->bad_structure += count_nonzero(c->row[q], 0, q == 0 ? i : i + 1);
        add_row(c, c->r2, c->r2lo, i);
        double diagonal = fabs(c->row[0][i]);
        low = diagonal < low ? diagonal : low;
        high = diagonal > high ? diagonal : high;
    }
    if (c->k > 0) {
        c->metrics[GB10_RDIAG_MIN] = low;
        c->metrics[GB10_RDIAG_MAX] = high;
    }
}

static void scan_v(gb10_checker_t *c)
{
    memset(c->tail, 0, (size_t)c->k * sizeof *c->tail);
    for (int64_t i = 0; i < c->m; i++) {
        c->bad_out += read_whole_row(c, c->args->V, i, c->k);
        int64_t below = i < c->k ? i : c->k;
        for (int q = 0; q < c->parts; q++) {
            for (int64_t j = 0; j < below; j++)
                c->tail[j] += fabs(c->row[q][j]);
            if (i < c->k)
                c->bad_structure += !(c->row[q][i] == (q == 0));
            c->bad_structure += count_nonzero(c->row[q], below + 1, c->k);
        }
    }
}

static void read_tau(gb10_checker_t *c, int64_t j, double tau[2])
{
    tau[1] = 0;
    gb10_read_row(c->args->tau, c->b, j, 0, 1, &tau[0], &tau[1]);
}

static void scan_tau(gb10_checker_t *c)
{
    for (int64_t j = 0; j < c->k; j++) {
        double tau[2], limit = 1 + 4 * c->u;
        read_tau(c, j, tau);
        c->bad_out += gb10_count_nonfinite(tau, 2);
        bool none = tau[0] == 0 && tau[1] == 0;
        if (none)
            c->bad_structure += c->args->V && !(c->tail[j] == 0);
        else
            c->bad_structure += !(hypot(tau[0] - 1, tau[1]) <= limit);
    }
}

static void scan_t(gb10_checker_t *c)
{
    for (int64_t i = 0; i < c->nb; i++) {
        c->bad_out += read_whole_row(c, c->args->T, i, c->k);
        for (int64_t p = 0; p < c->k; p += c->nb) {
            int64_t last = p + i < c->k ? p + i : c->k;
            for (int q = 0; q < c->parts; q++)
                c->bad_structure += count_nonzero(c->row[q], p, last);
            if (p + i >= c->k || !c->args->tau)
                continue;
            double tau[2];
            read_tau(c, p + i, tau);
            for (int q = 0; q < c->parts; q++)
                c->bad_structure += !(c->row[q][p + i] == tau[q]);
        }
    }
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

static void frobenius_norm(gb10_checker_t *c)
{
    bool first = true;
    double sum = 0;
    c->exponent = 0;
    for (int64_t j = 0; j < c->n; j++) {
        if (!(c->a2[j] > 0))
            continue;
        int e = c->shift[j] + ilogb(sqrt(c->a2[j]));
        c->exponent = first || e > c->exponent ? e : c->exponent;
        first = false;
    }
    for (int64_t j = 0; j < c->n; j++)
        sum += ldexp(c->a2[j], 2 * (c->shift[j] - c->exponent));
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
    for (int64_t j = 0; j < c->n; j++) {
        c->shift[j] = 0;
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
    scan_r(c);
    if (c->args->V)
        scan_v(c);
    if (c->args->tau)
        scan_tau(c);
    if (c->args->T)
        scan_t(c);
    if (c->bad_a == 0 && c->bad_out == 0)
        finish_columns(c);
}
