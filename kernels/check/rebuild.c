#include <math.h>
#include <string.h>

#include "kernels/check/checker.h"
#include "kernels/core/clones.h"

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* V with its ones and zeros. */
static void load_v(gb10_checker_t *c)
{
    for (int64_t i = 0; i < c->m; i++) {
        gb10_planes_t row = gb10_planes_at(c->V, i, 0);
        gb10_planes_zero(row, 1, c->V.rs);
        gb10_read_row(c->args->V, c->b, i, 0, smaller(i, c->k), row.hi[0], row.hi[1]);
        if (i < c->k)
            row.hi[0][i] = 1;
    }
}

/* The upper triangle of the block of T from column p, and its conjugate transpose. */
static void load_t(gb10_checker_t *c, int64_t p, int64_t kb)
{
    gb10_planes_zero(c->T, kb, c->T.rs);
    gb10_planes_zero(c->TH, kb, c->TH.rs);
    for (int64_t i = 0; i < kb; i++) {
        gb10_read_row(c->args->T, c->b, i, p + i, p + kb, c->row[0], c->row[1]);
        for (int q = 0; q < c->parts; q++)
            for (int64_t j = i; j < kb; j++) {
                double t = c->row[q][p + j];
                c->T.hi[q][i * c->T.rs + j] = t;
                c->TH.hi[q][j * c->TH.rs + i] = q == 0 ? t : -t;
            }
    }
}

/* C <- H C or H^H C for the block of kb reflectors from p, columns [first, first + width) of C. */
static void apply_block(gb10_checker_t *c, int64_t p, int64_t kb, bool adjoint, int64_t first,
                        int64_t width)
{
    gb10_planes_t V = gb10_planes_at(c->V, p, p), C = gb10_planes_at(c->C, p, first);
    load_t(c, p, kb);
    gb10_planes_zero(c->W, kb, width);
    gb10_planes_zero(c->TW, kb, width);
    gb10_planes_mac(c->W, gb10_planes_adjoint(V), C, 1, kb, c->m - p, width);
    gb10_planes_mac(c->TW, adjoint ? c->TH : c->T, c->W, 1, kb, kb, width);
    gb10_planes_mac(C, V, c->TW, -1, c->m - p, kb, width);
}

/* C <- Q C. triangular: the rows from p on are zero in the columns before p, as in [R; 0] and I,
 * until the blocks before p are applied. */
static void apply_q(gb10_checker_t *c, int64_t width, bool triangular)
{
    int64_t blocks = (c->k + c->nb - 1) / c->nb;
    for (int64_t i = blocks - 1; i >= 0; i--) {
        int64_t p = i * c->nb, first = triangular ? p / GB10_PAD * GB10_PAD : 0;
        apply_block(c, p, smaller(c->nb, c->k - p), false, first, width - first);
    }
}

static void apply_q_adjoint(gb10_checker_t *c, int64_t width)
{
    for (int64_t p = 0; p < c->k; p += c->nb)
        apply_block(c, p, smaller(c->nb, c->k - p), true, 0, width);
}

/* ---- A - QR ---- */

static void load_scaled_row(gb10_checker_t *c, const gb10_view_t *v, int64_t i, int64_t first)
{
    gb10_read_row(v, c->b, i, first, c->n, c->row[0], c->row[1]);
    for (int q = 0; q < c->parts; q++)
        for (int64_t j = first; j < c->n; j++)
            c->row[q][j] = c->row[q][j] * c->down[j] * c->down2[j];
}

static void load_r(gb10_checker_t *c)
{
    gb10_planes_zero(c->C, c->m, c->C.rs);
    for (int64_t i = 0; i < c->k; i++) {
        load_scaled_row(c, c->args->R, i, i);
        for (int q = 0; q < c->parts; q++)
            memcpy(c->C.hi[q] + i * c->C.rs + i, c->row[q] + i,
                   (size_t)(c->n - i) * sizeof(double));
    }
}

/* row <- row - (hi + lo); sums of squares per column. */
static GB10_CLONES void subtract_row(double *restrict row, const double *restrict hi,
                                     const double *restrict lo, double *restrict square, int64_t n)
{
    for (int64_t j = 0; j < n; j++) {
        double d = row[j] - hi[j];
        row[j] = lo ? d - lo[j] : d;
        square[j] = fma(row[j], row[j], square[j]);
    }
}

/* ||(A - QR)x|| / 2^exponent, from the columns' errors. */
static double residual_of_x(gb10_checker_t *c)
{
    double sum = 0;
    for (int64_t i = 0; i < c->m; i++) {
        load_scaled_row(c, c->args->A, i, 0);
        for (int q = 0; q < c->parts; q++) {
            double *hi = c->C.hi[q] + i * c->C.rs;
            double *lo = c->low ? c->C.lo[q] + i * c->C.rs : NULL;
            double dot = 0;
            subtract_row(c->row[q], hi, lo, c->error2, c->n);
            for (int64_t j = 0; j < c->n; j++)
                dot += c->row[q][j] * c->weight[j];
            sum += dot * dot;
        }
    }
    return sqrt(sum);
}

static double ratio(const gb10_checker_t *c, double error, double norm, int shift)
{
    if (norm == 0)
        return error == 0 ? 0 : INFINITY;
    return gb10_beyond_tiny(c, error / norm, norm, shift);
}

static void backward_errors(gb10_checker_t *c)
{
    double worst = 0, sum = 0;
    memset(c->error2, 0, (size_t)c->n * sizeof(double));
    /* A zero column has no scale of its own, and an error there is Inf in its own metric. */
    for (int64_t j = 0; j < c->n; j++)
        c->weight[j] = c->a2[j] > 0 ? ldexp(gb10_probe_sign(c, j), c->shift[j] - c->exponent) : 0;
    load_r(c);
    apply_q(c, gb10_padded(c->n), true);
    double x = residual_of_x(c);
    for (int64_t j = 0; j < c->n; j++) {
        double e = sqrt(c->error2[j]);
        worst = gb10_worse(worst, ratio(c, e, sqrt(c->a2[j]), c->shift[j]));
        sum += ldexp(c->error2[j], 2 * (c->shift[j] - c->exponent));
    }
    c->metrics[GB10_COLUMN_BACKWARD_ERROR] = worst;
    c->metrics[GB10_BACKWARD_ERROR] = ratio(c, sqrt(sum), c->norm, c->exponent);
    c->probe[0] = ratio(c, x, c->norm, c->exponent);
}

/* ---- I - Q^H Q ---- */

static void load_identity(gb10_checker_t *c)
{
    gb10_planes_zero(c->C, c->m, c->C.rs);
    for (int64_t i = 0; i < c->k; i++)
        c->C.hi[0][i * c->C.rs + i] = 1;
}

/* Entry (i, j) of a strip of Q^H Q - I, i counted from `first`, is added to the sums for its own
 * place and for the mirrored one. Returns its share of the squared Frobenius norm. */
static double take_entry(gb10_checker_t *c, int64_t first, int64_t i, int64_t j)
{
    int64_t l = first + i, at = i * c->X.rs + j - first;
    double square = 0;
    for (int q = 0; q < c->parts; q++) {
        double e = c->X.hi[q][at] - (q == 0 && l == j);
        e += c->low ? c->X.lo[q][at] : 0;
        square += e * e;
        c->dot[q][l] += e * gb10_probe_sign(c, j);
        if (j > l)
            c->dot[q][j] += (q == 0 ? e : -e) * gb10_probe_sign(c, l);
    }
    return j > l ? 2 * square : square;
}

static void orthogonality(gb10_checker_t *c)
{
    double sum = 0, probe = 0;
    load_identity(c);
    apply_q(c, gb10_padded(c->k), true);
    for (int q = 0; q < c->parts; q++)
        memset(c->dot[q], 0, (size_t)c->k * sizeof(double));
    for (int64_t first = 0; first < c->k; first += GB10_STRIP) {
        int64_t rows = smaller(GB10_STRIP, c->k - first);
        int64_t width = gb10_padded(c->k) - first;
        gb10_planes_t Q = gb10_planes_at(c->C, 0, first);
        gb10_planes_zero(c->X, rows, width);
        gb10_planes_mac(c->X, gb10_planes_adjoint(Q), Q, 1, rows, c->m, width);
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = first + i; j < c->k; j++)
                sum += take_entry(c, first, i, j);
    }
    for (int q = 0; q < c->parts; q++)
        for (int64_t i = 0; i < c->k; i++)
            probe += c->dot[q][i] * c->dot[q][i];
    c->metrics[GB10_ORTHOGONALITY] = sqrt(sum);
    c->probe[1] = sqrt(probe);
}

/* ---- T against V ---- */

/* ||T + T^H - T V^H V T^H||_F / max(1, ||T||_F^2 / (2 kb)) of the block of kb reflectors from p. */
static double t_residual(gb10_checker_t *c, int64_t p, int64_t kb)
{
    gb10_planes_t V = gb10_planes_at(c->V, p, p);
    int64_t width = gb10_padded(kb);
    double sum = 0, square = 0;
    load_t(c, p, kb);
    gb10_planes_zero(c->G, kb, width);
    gb10_planes_zero(c->Y, kb, width);
    gb10_planes_zero(c->X, kb, width);
    gb10_planes_mac(c->G, gb10_planes_adjoint(V), V, 1, kb, c->m - p, width);
    gb10_planes_mac(c->Y, c->T, c->G, 1, kb, kb, width);
    gb10_planes_mac(c->X, c->Y, c->TH, -1, kb, kb, width);
    for (int q = 0; q < c->parts; q++)
        for (int64_t i = 0; i < kb; i++)
            for (int64_t j = 0; j < kb; j++) {
                int64_t at = i * c->X.rs + j, att = i * c->T.rs + j;
                double t = c->T.hi[q][att], e = c->X.hi[q][at] + t + c->TH.hi[q][att];
                e += c->low ? c->X.lo[q][at] : 0;
                sum += e * e;
                square += t * t;
            }
    double growth = square / (double)(2 * kb);
    return sqrt(sum) / (growth > 1 ? growth : 1);
}

static void t_consistency(gb10_checker_t *c)
{
    double worst = 0;
    for (int64_t p = 0; p < c->k; p += c->nb)
        worst = gb10_worse(worst, t_residual(c, p, smaller(c->nb, c->k - p)));
    c->metrics[GB10_T_CONSISTENCY] = worst;
}

void gb10_check_full(gb10_checker_t *c)
{
    load_v(c);
    backward_errors(c);
    orthogonality(c);
    t_consistency(c);
}

/* ---- the probe alone ---- */

/* Row i of v times x, in columns 0 of `out`, in units of 2^exponent. */
static void row_times_x(gb10_checker_t *c, const gb10_view_t *v, int64_t i, int64_t first,
                        gb10_planes_t out)
{
    gb10_planes_t row = {.hi = {c->row[0] + first, c->row[1] + first}, .cs = 1, .parts = c->parts};
    int half = -c->exponent / 2;
    double down = ldexp(1, half), down2 = ldexp(1, -c->exponent - half);
    gb10_read_row(v, c->b, i, first, c->n, c->row[0], c->row[1]);
    for (int q = 0; q < c->parts; q++)
        for (int64_t j = first; j < c->n; j++)
            c->row[q][j] = c->row[q][j] * down * down2;
    gb10_planes_zero(out, 1, GB10_PROBE_WIDTH);
    gb10_planes_mac(out, row, gb10_planes_at(c->ones, first, 0), 1, 1, c->n - first,
                    GB10_PROBE_WIDTH);
}

/* Squared distance of entry (i, column) of C from (hi, lo) of `from`. */
static double distance2(const gb10_checker_t *c, int64_t i, int column, gb10_planes_t from)
{
    double sum = 0;
    for (int q = 0; q < c->parts; q++) {
        int64_t at = i * c->C.rs + column;
        double e = from.hi[q][0] - c->C.hi[q][at];
        e += c->low ? from.lo[q][0] - c->C.lo[q][at] : 0;
        sum += e * e;
    }
    return sum;
}

void gb10_check_probe(gb10_checker_t *c)
{
    double residual = 0, drift = 0;
    load_v(c);
    /* Column 0 becomes Q R x, column 1 becomes Q x and then Q^H Q x. */
    gb10_planes_zero(c->C, c->m, c->C.rs);
    for (int64_t i = 0; i < c->k; i++) {
        row_times_x(c, c->args->R, i, i, gb10_planes_at(c->C, i, 0));
        c->C.hi[0][i * c->C.rs + 1] = gb10_probe_sign(c, i);
    }
    apply_q(c, GB10_PROBE_WIDTH, false);
    for (int64_t i = 0; i < c->m; i++) {
        row_times_x(c, c->args->A, i, 0, c->Y);
        residual += distance2(c, i, 0, c->Y);
    }
    apply_q_adjoint(c, GB10_PROBE_WIDTH);
    gb10_planes_zero(c->Y, 1, GB10_PROBE_WIDTH);
    for (int64_t i = 0; i < c->k; i++) {
        c->Y.hi[0][0] = gb10_probe_sign(c, i);
        drift += distance2(c, i, 1, c->Y);
    }
    c->probe[0] = ratio(c, sqrt(residual), c->norm, c->exponent);
    c->probe[1] = sqrt(drift);
}
