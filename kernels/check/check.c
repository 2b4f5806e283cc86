#include "kernels/check/check.h"

#include <float.h>
#include <math.h>

#include "kernels/check/checker.h"
#include "kernels/core/rng.h"

const char *const gb10_metric_names[GB10_METRICS] = {
    "backward_error", "column_backward_error", "orthogonality", "column_norm_error",
    "t_consistency",  "probe_error",           "rdiag_min",     "rdiag_max"};

/* Gates of the two parts of probe_error. */
static double probe_gate(int part, gb10_dtype_t dtype, int64_t m, int64_t n)
{
    return 4 * gb10_gate(part == 0 ? GB10_BACKWARD_ERROR : GB10_ORTHOGONALITY, dtype, m, n);
}

double gb10_gate(int metric, gb10_dtype_t dtype, int64_t m, int64_t n)
{
    double u = gb10_dtype_u(dtype), k = (double)(m < n ? m : n);
    switch (metric) {
    case GB10_BACKWARD_ERROR:
        return 16 * u * (k > 1024 ? sqrt(k / 1024) : 1);
    case GB10_COLUMN_BACKWARD_ERROR:
        return 32 * u;
    case GB10_ORTHOGONALITY:
    case GB10_T_CONSISTENCY:
        return 20 * sqrt(k) * u;
    case GB10_COLUMN_NORM_ERROR:
        return 16 * u;
    case GB10_PROBE_ERROR:
        return fmax(probe_gate(0, dtype, m, n), probe_gate(1, dtype, m, n));
    default:
        return NAN;
    }
}

double gb10_beyond_tiny(const gb10_checker_t *c, double x, double value, int shift)
{
    double longer = (double)(c->m > c->n ? c->m : c->n);
    double allowance = 4 * sqrt(longer * (double)c->k) / value;
    double tiny = shift == 0 ? c->tiny : ldexp(1, c->tiny_exponent - shift);
    double beyond = x - allowance * tiny;
    return beyond < 0 ? 0 : beyond;
}

/* ---- workspace ---- */

static int highest_level(const gb10_check_args_t *args)
{
    int highest = 0;
    for (int64_t b = 0; b < args->A->count; b++)
        highest = args->level[b] > highest ? args->level[b] : highest;
    return highest;
}

static void *take(char **p, int64_t count, size_t size, size_t *total)
{
    size_t bytes = ((size_t)count * size + 63) / 64 * 64;
    void *array = *p;
    if (*p)
        *p += bytes;
    *total += bytes;
    return array;
}

static gb10_planes_t take_planes(char **p, int64_t rows, int64_t n, int parts, bool low,
                                 size_t *total)
{
    gb10_planes_t none = {.parts = parts};
    *total += gb10_planes_bytes(rows, n, parts, low);
    return *p ? gb10_planes_take(p, rows, n, parts, low) : none;
}

/* Lays the arrays out from p and returns their size; with p NULL only the size. */
static size_t lay_out(gb10_checker_t *c, char *p, int level)
{
    size_t total = 0;
    int64_t wide = (c->n > c->k ? c->n : c->k) + GB10_PAD;
    int64_t width = level == GB10_CHECK_FULL ? wide : GB10_PROBE_WIDTH;
    int64_t strip = c->nb > GB10_STRIP ? c->nb : GB10_STRIP;
    double **const arrays[] = {&c->row[0], &c->row[1], &c->tail,  &c->a2,    &c->a2lo,
                               &c->r2,     &c->r2lo,   &c->down,  &c->down2, &c->error2,
                               &c->weight, &c->dot[0], &c->dot[1]};
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++)
        *arrays[i] = take(&p, wide, sizeof(double), &total);
    c->shift = take(&p, wide, sizeof(int), &total);
    if (level < GB10_CHECK_PROBE)
        return total;
    /* A block may read up to GB10_PAD columns past its own: V has that many to spare. */
    c->V = take_planes(&p, c->m, c->k + GB10_PAD, c->parts, false, &total);
    c->T = take_planes(&p, c->nb, c->nb, c->parts, false, &total);
    c->TH = take_planes(&p, c->nb, c->nb, c->parts, false, &total);
    c->C = take_planes(&p, c->m, width, c->parts, c->low, &total);
    c->W = take_planes(&p, c->nb, width, c->parts, c->low, &total);
    c->TW = take_planes(&p, c->nb, width, c->parts, c->low, &total);
    c->Y = take_planes(&p, c->nb, c->nb, c->parts, c->low, &total);
    c->ones = take_planes(&p, c->n, GB10_PROBE_WIDTH, c->parts, false, &total);
    if (level < GB10_CHECK_FULL)
        return total;
    c->G = take_planes(&p, c->nb, c->nb, c->parts, c->low, &total);
    c->X = take_planes(&p, strip, width > strip ? width : strip, c->parts, c->low, &total);
    return total;
}

static gb10_checker_t checker_of(const gb10_check_args_t *args)
{
    gb10_dtype_t dtype = args->A->dtype;
    gb10_checker_t c = {.args = args, .m = args->A->m, .n = args->A->n};
    c.k = c.m < c.n ? c.m : c.n;
    c.nb = args->nb < c.k ? args->nb : c.k > 1 ? c.k : 1;
    c.parts = gb10_dtype_is_complex(dtype) ? 2 : 1;
    c.low = gb10_dtype_is_double(dtype);
    c.u = gb10_dtype_u(dtype);
    c.tiny = gb10_dtype_tiny(dtype);
    c.tiny_exponent = ilogb(gb10_dtype_tiny(dtype));
    return c;
}

size_t gb10_check_need(const gb10_check_args_t *args)
{
    gb10_checker_t c = checker_of(args);
    return lay_out(&c, NULL, highest_level(args));
}

/* ---- verdict ---- */

/* True when info NONFINITE or NOT_REPRESENTABLE says what is there: some entry of A is not finite;
 * or all are and some column's norm is beyond the range, give or take its rounding. */
static bool claim_holds(gb10_checker_t *c, uint8_t info)
{
    double limit = c->low ? DBL_MAX : (double)FLT_MAX;
    bool beyond = false;
    gb10_check_norms(c);
    if (info == GB10_INFO_NONFINITE || c->bad_a > 0)
        return info == GB10_INFO_NONFINITE && c->bad_a > 0;
    gb10_check_a_columns(c);
    for (int64_t j = 0; j < c->n && !beyond; j++)
        beyond = sqrt(c->a2[j]) * (1 + 64 * c->u) > ldexp(limit, -c->shift[j]);
    return beyond;
}

static const char *missed_gate(const gb10_checker_t *c, int level)
{
    gb10_dtype_t dtype = c->args->A->dtype;
    if (c->bad_a > 0 || c->bad_out > 0)
        return "finite";
    if (c->bad_structure > 0)
        return "structure";
    for (int i = 0; i < GB10_PROBE_ERROR; i++) {
        bool measured = i == GB10_COLUMN_NORM_ERROR || level == GB10_CHECK_FULL;
        if (measured && !(c->metrics[i] <= gb10_gate(i, dtype, c->m, c->n)))
            return gb10_metric_names[i];
    }
    for (int part = 0; part < 2 && level >= GB10_CHECK_PROBE; part++)
        if (!(c->probe[part] <= probe_gate(part, dtype, c->m, c->n)))
            return gb10_metric_names[GB10_PROBE_ERROR];
    return NULL;
}

static const char *judge(gb10_checker_t *c, int level)
{
    gb10_check_norms(c);
    if (c->bad_a == 0 && c->bad_out == 0 && level >= GB10_CHECK_PROBE) {
        if (level == GB10_CHECK_FULL)
            gb10_check_full(c);
        else
            gb10_check_probe(c);
        c->metrics[GB10_PROBE_ERROR] = gb10_worse(c->probe[0], c->probe[1]);
    }
    return missed_gate(c, level);
}

static const char *check_one(gb10_checker_t *c, int level, uint8_t info)
{
    for (int i = 0; i < GB10_METRICS; i++)
        c->metrics[i] = NAN;
    if (level == GB10_CHECK_NONE)
        return NULL;
    if (info == GB10_INFO_OK || info == GB10_INFO_OK_ESCALATED || info == GB10_INFO_GATE_MISSED)
        return judge(c, level);
    if (info != GB10_INFO_NONFINITE && info != GB10_INFO_NOT_REPRESENTABLE)
        return NULL;
    bool holds = claim_holds(c, info);
    for (int i = 0; i < GB10_METRICS; i++)
        c->metrics[i] = NAN;
    return holds ? NULL : "finite";
}

void gb10_check_run(const gb10_check_args_t *args, void *workspace)
{
    gb10_checker_t c = checker_of(args);
    int highest = highest_level(args);
    lay_out(&c, workspace, highest);
    if (highest >= GB10_CHECK_PROBE) {
        gb10_planes_zero(c.ones, c.n, GB10_PROBE_WIDTH);
        for (int64_t j = 0; j < c.n; j++)
            c.ones.hi[0][j * c.ones.rs] = gb10_mix64((uint64_t)j + 1) & 1 ? 1 : -1;
    }
    for (c.b = 0; c.b < args->A->count; c.b++) {
        c.metrics = args->metrics + c.b * GB10_METRICS;
        const char *failed = check_one(&c, args->level[c.b], args->info[c.b]);
        if (failed)
            args->info[c.b] = GB10_INFO_GATE_MISSED;
        if (args->failed)
            args->failed[c.b] = failed;
    }
}
