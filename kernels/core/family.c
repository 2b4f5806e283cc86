#include "kernels/core/family.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "kernels/core/alloc.h"
#include "kernels/core/rng.h"

/* The matrix being made, in double (real and imaginary planes, row-major), with the range and
 * precision of the type it will be rounded to. */
typedef struct maker {
    int64_t m, n, k, index;
    uint64_t seed, stream, counter;
    double cond, eps;
    int emin, emax, esub; /* exponents: smallest normal, largest, smallest subnormal */
    int parts;
    double *p[2];
    double *v[2], *w[2]; /* a reflector and its products: max(m, n) each */
} maker_t;

struct gb10_family {
    const char *name, *about;
    void (*make)(maker_t *);
    double cond; /* default */
    gb10_info_t info;
};

/* ---- numbers ---- */

static double uniform(maker_t *g)
{
    return gb10_uniform(g->seed, g->stream, g->counter++);
}

/* Sum of twelve uniforms minus 6 (Irwin-Hall): mean 0, variance 1, tails cut at 6, no logarithm.
 * The uniforms are 16-bit fields; a further one fills the bits below. */
static double normal(maker_t *g)
{
    int64_t sum = 0;
    for (int word = 0; word < 3; word++) {
        uint64_t bits = gb10_random(g->seed, g->stream, g->counter++);
        for (int field = 0; field < 4; field++)
            sum += (int64_t)(bits >> (16 * field) & 0xffff);
    }
    return ((double)(sum - 6 * 0xffff) + uniform(g) - 0.5) * 0x1p-16;
}

static int64_t below(maker_t *g, int64_t n)
{
    return n > 0 ? (int64_t)(uniform(g) * (double)n) : 0;
}

/* x * 2^e, exact or rounded once. */
static double shifted(double x, int e)
{
    return ldexp(x, e);
}

/* cond^-t for 0 <= t <= 1, by square roots and products. */
static double grade(double cond, double t)
{
    double root = 1 / cond, result = t >= 1 ? root : 1;
    for (int bit = 0; bit < 52 && t < 1; bit++) {
        root = sqrt(root);
        t *= 2;
        if (t >= 1) {
            result *= root;
            t -= 1;
        }
    }
    return result;
}

static double fraction(int64_t i, int64_t n)
{
    return n > 1 ? (double)i / (double)(n - 1) : 0;
}

/* ---- entries, rows, columns ---- */

static double *entry(maker_t *g, int q, int64_t i, int64_t j)
{
    return &g->p[q][i * g->n + j];
}

static void set(maker_t *g, int64_t i, int64_t j, double x)
{
    if (i < g->m && j < g->n) {
        *entry(g, 0, i, j) = x;
        if (g->parts == 2)
            *entry(g, 1, i, j) = 0;
    }
}

static void fill_normal(maker_t *g)
{
    for (int64_t i = 0; i < g->m * g->n; i++)
        for (int q = 0; q < g->parts; q++)
            g->p[q][i] = normal(g);
}

static void scale_column(maker_t *g, int64_t j, double factor)
{
    for (int q = 0; q < g->parts; q++)
        for (int64_t i = 0; i < g->m; i++)
            *entry(g, q, i, j) *= factor;
}

static void scale_row(maker_t *g, int64_t i, double factor)
{
    for (int q = 0; q < g->parts; q++)
        for (int64_t j = 0; j < g->n; j++)
            *entry(g, q, i, j) *= factor;
}

/* Rows of a fixed matrix times random numbers in [1, 2), so that no two matrices of a batch are
 * equal, nor their reflectors (which do not depend on the scale of columns). The first one is the
 * textbook's. */
static void vary(maker_t *g)
{
    for (int64_t i = 0; i < g->m && g->index > 0; i++)
        scale_row(g, i, 1 + uniform(g));
}

/* Multiplies by I - 2 v v^H / v^H v, v random, from the left; or (right) does that to the
 * transpose, which is a reflection from the right. */
static void reflect(maker_t *g, bool right)
{
    int64_t length = right ? g->n : g->m, lines = right ? g->m : g->n;
    int64_t rs = right ? 1 : g->n, cs = right ? g->n : 1;
    double square = 0;
    for (int64_t i = 0; i < length; i++)
        for (int q = 0; q < g->parts; q++) {
            g->v[q][i] = normal(g);
            square += g->v[q][i] * g->v[q][i];
        }
    for (int pass = 0; pass < 2 && square > 0; pass++)
        for (int64_t l = 0; l < lines; l++) {
            double dot[2] = {0, 0};
            for (int64_t i = 0; i < length; i++) {
                double *x = g->p[0] + i * rs + l * cs, *y = g->p[1] + i * rs + l * cs;
                double vr = g->v[0][i], vi = g->parts == 2 ? g->v[1][i] : 0;
                double im = g->parts == 2 ? *y : 0;
                if (pass == 0) {
                    dot[0] += vr * *x + vi * im;
                    dot[1] += vr * im - vi * *x;
                    continue;
                }
                *x -= vr * g->w[0][l] - vi * g->w[1][l];
                if (g->parts == 2)
                    *y -= vr * g->w[1][l] + vi * g->w[0][l];
            }
            for (int q = 0; q < 2 && pass == 0; q++)
                g->w[q][l] = dot[q] * 2 / square;
        }
}

/* A few random reflections on both sides: enough to fill the matrix and to mix its singular
 * vectors, at O(mn) each. */
static void mix(maker_t *g)
{
    for (int i = 0; i < 3; i++) {
        reflect(g, false);
        reflect(g, true);
    }
}

/* ---- families ---- */

static void make_gaussian(maker_t *g)
{
    fill_normal(g);
}

static void make_uniform(maker_t *g)
{
    for (int64_t i = 0; i < g->m * g->n; i++)
        for (int q = 0; q < g->parts; q++)
            g->p[q][i] = 2 * uniform(g) - 1;
}

static void make_svd_geometric(maker_t *g)
{
    for (int64_t j = 0; j < g->k; j++)
        set(g, j, j, grade(g->cond, fraction(j, g->k)));
    mix(g);
}

static void make_svd_arithmetic(maker_t *g)
{
    for (int64_t j = 0; j < g->k; j++)
        set(g, j, j, 1 - fraction(j, g->k) * (1 - 1 / g->cond));
    mix(g);
}

static void make_svd_one_small(maker_t *g)
{
    for (int64_t j = 0; j < g->k; j++)
        set(g, j, j, j + 1 < g->k ? 1 : 1 / g->cond);
    mix(g);
}

static void make_svd_one_large(maker_t *g)
{
    for (int64_t j = 0; j < g->k; j++)
        set(g, j, j, j == 0 ? 1 : 1 / g->cond);
    mix(g);
}

static void make_svd_log_random(maker_t *g)
{
    for (int64_t j = 0; j < g->k; j++)
        set(g, j, j, grade(g->cond, uniform(g)));
    mix(g);
}

static void make_hilbert(maker_t *g)
{
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++)
            set(g, i, j, 1 / (double)(i + j + 1));
    vary(g);
}

/* sin 1.2 and cos 1.2, Higham's angle. */
static void make_kahan(maker_t *g)
{
    const double s = 0.93203908596722634967, c = 0.36235775447667357764;
    double row = 1;
    for (int64_t i = 0; i < g->k; i++, row *= s)
        for (int64_t j = i; j < g->n; j++)
            set(g, i, j, i == j ? row : -c * row);
    vary(g);
}

static void make_vandermonde(maker_t *g)
{
    for (int64_t i = 0; i < g->m; i++) {
        double x = 2 * fraction(i, g->m) - 1, power = 1;
        for (int64_t j = 0; j < g->n; j++, power *= x)
            set(g, i, j, power);
    }
    vary(g);
}

static void make_lauchli(maker_t *g)
{
    for (int64_t j = 0; j < g->n; j++) {
        set(g, 0, j, 1);
        set(g, j + 1, j, 1 / g->cond);
    }
    vary(g);
}

static void make_frank(maker_t *g)
{
    int64_t size = g->m > g->n ? g->m : g->n;
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = i > 0 ? i - 1 : 0; j < g->n; j++)
            set(g, i, j, (double)(size - (i > j ? i : j)));
    vary(g);
}

static void make_wilkinson(maker_t *g)
{
    for (int64_t j = 0; j < g->n; j++) {
        double d = (double)(2 * j - g->k + 1) / 2;
        set(g, j, j, d < 0 ? -d : d);
        set(g, j + 1, j, 1);
        if (j > 0)
            set(g, j - 1, j, 1);
    }
    vary(g);
}

/* Pascal's symmetric matrix with each antidiagonal halved once more than the one before, so that it
 * stays in range at every size. */
static void make_pascal(maker_t *g)
{
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++) {
            double up = i > 0 ? *entry(g, 0, i - 1, j) : 0;
            double left = j > 0 ? *entry(g, 0, i, j - 1) : 0;
            set(g, i, j, i + j == 0 ? 1 : (up + left) / 2);
        }
    vary(g);
}

static void make_toeplitz(maker_t *g)
{
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++)
            for (int q = 0; q < g->parts; q++) {
                uint64_t at = (uint64_t)((i - j + g->n) * 2 + q);
                *entry(g, q, i, j) = 2 * gb10_uniform(g->seed, g->stream, at) - 1;
            }
}

static void make_identity_plus(maker_t *g)
{
    for (int64_t j = 0; j < g->k; j++)
        set(g, j, j, 1);
    reflect(g, false);
    scale_row(g, 0, 3);
    reflect(g, false);
}

static void make_orthogonal(maker_t *g)
{
    for (int64_t j = 0; j < g->k; j++)
        set(g, j, j, 1);
    mix(g);
}

static void make_upper(maker_t *g)
{
    fill_normal(g);
    for (int64_t j = 0; j < g->n; j++)
        for (int64_t i = j + 1; i < g->m; i++)
            set(g, i, j, 0);
}

static void make_diagonal(maker_t *g)
{
    for (int64_t j = 0; j < g->k; j++)
        set(g, j, j, normal(g));
}

/* Fisher and Yates on the rows, the places kept in v. */
static void make_permutation(maker_t *g)
{
    for (int64_t i = 0; i < g->m; i++)
        g->v[0][i] = (double)i;
    for (int64_t i = g->m - 1; i > 0; i--) {
        int64_t other = below(g, i + 1);
        double place = g->v[0][i];
        g->v[0][i] = g->v[0][other];
        g->v[0][other] = place;
    }
    for (int64_t j = 0; j < g->k; j++)
        set(g, (int64_t)g->v[0][j], j, 1);
}

static void make_zero(maker_t *g)
{
    (void)g;
}

static void make_zero_first(maker_t *g)
{
    fill_normal(g);
    scale_column(g, 0, 0);
}

static void make_zero_middle(maker_t *g)
{
    fill_normal(g);
    scale_column(g, g->n / 2, 0);
}

static void make_zero_last(maker_t *g)
{
    fill_normal(g);
    scale_column(g, g->n - 1, 0);
}

/* Column j = factor * column `from` + noise * normal. */
static void copy_column(maker_t *g, int64_t from, int64_t j, double factor, double noise)
{
    for (int64_t i = 0; i < g->m; i++)
        for (int q = 0; q < g->parts; q++) {
            double extra = noise > 0 ? noise * normal(g) : 0;
            *entry(g, q, i, j) = factor * *entry(g, q, i, from) + extra;
        }
}

static void make_duplicates(maker_t *g)
{
    fill_normal(g);
    for (int64_t j = 1; j < g->n; j += 2)
        copy_column(g, j - 1, j, 1, 0);
}

static void make_rank_one(maker_t *g)
{
    fill_normal(g);
    for (int64_t j = 1; j < g->n; j++)
        copy_column(g, 0, j, normal(g), 0);
}

static void make_graded_down(maker_t *g)
{
    fill_normal(g);
    for (int64_t j = 0; j < g->n; j++)
        scale_column(g, j, grade(g->cond, fraction(j, g->n)));
}

static void make_graded_up(maker_t *g)
{
    fill_normal(g);
    for (int64_t j = 0; j < g->n; j++)
        scale_column(g, j, grade(g->cond, fraction(g->n - 1 - j, g->n)));
}

static void make_rows_graded(maker_t *g)
{
    fill_normal(g);
    for (int64_t i = 0; i < g->m; i++)
        scale_row(g, i, grade(g->cond, uniform(g)));
}

/* Largest exponent e such that a column of m entries below 8 * 2^e has a norm in range. */
static int top_exponent(const maker_t *g)
{
    int e = g->emax - 4;
    for (int64_t rows = 1; rows < g->m; rows *= 4)
        e--;
    return e;
}

static void make_wide_range(maker_t *g)
{
    int top = top_exponent(g), bottom = g->emin + 60;
    bottom = bottom < top ? bottom : g->emin;
    fill_normal(g);
    for (int64_t j = 0; j < g->n; j++) {
        int e = j % 4 == 0 ? top : j % 4 == 1 ? bottom : bottom + (int)below(g, top - bottom);
        for (int q = 0; q < g->parts; q++)
            for (int64_t i = 0; i < g->m; i++)
                *entry(g, q, i, j) = shifted(*entry(g, q, i, j), e);
    }
}

static void make_rank_deficient(maker_t *g)
{
    fill_normal(g);
    for (int64_t j = g->n - g->n / 4; j < g->n; j++)
        scale_column(g, j, 0);
}

static void make_near_deficient(maker_t *g)
{
    fill_normal(g);
    for (int64_t j = g->n - g->n / 4; j < g->n; j++)
        copy_column(g, j - (g->n - g->n / 4), j, 1, 1e-5);
}

static void make_clustered(maker_t *g)
{
    double root = sqrt(g->eps);
    fill_normal(g);
    for (int64_t j = 0; j < g->n; j++)
        scale_column(g, j, j % 2 == 1 ? 4 * g->eps : j % 16 == 8 ? root : 1);
}

static void make_band(maker_t *g)
{
    int64_t width = g->n / 32 < 2 ? 2 : g->n / 32 > 32 ? 32 : g->n / 32;
    fill_normal(g);
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++)
            if (i - j > width || j - i > width)
                set(g, i, j, 0);
    for (int64_t j = 0; j < g->k; j++)
        *entry(g, 0, j, j) += (double)width;
}

static void make_near_collinear(maker_t *g)
{
    fill_normal(g);
    for (int64_t j = 1; j < g->n; j++)
        copy_column(g, 0, j, 1, 1e-4);
}

/* The first entry is -||rest|| (1 - u): beta - alpha must not be formed the wrong way round. */
static void make_cancelling(maker_t *g)
{
    double square = 0;
    fill_normal(g);
    for (int q = 0; q < g->parts; q++)
        for (int64_t i = 1; i < g->m; i++)
            square += *entry(g, q, i, 0) * *entry(g, q, i, 0);
    set(g, 0, 0, -sqrt(square) * (1 - g->eps / 2));
}

static void scale_all(maker_t *g, int e)
{
    for (int64_t i = 0; i < g->m * g->n; i++)
        for (int q = 0; q < g->parts; q++)
            g->p[q][i] = shifted(g->p[q][i], e);
}

static void make_subnormal(maker_t *g)
{
    fill_normal(g);
    scale_all(g, g->esub + 10);
}

static void make_near_overflow(maker_t *g)
{
    fill_normal(g);
    scale_all(g, top_exponent(g));
}

static void make_with(maker_t *g, double special)
{
    int64_t i = below(g, g->m), j = below(g, g->n);
    int part = (int)below(g, g->parts);
    fill_normal(g);
    *entry(g, part, i, j) = special;
}

static void make_nan(maker_t *g)
{
    make_with(g, NAN);
}

static void make_inf(maker_t *g)
{
    make_with(g, g->index % 2 == 0 ? INFINITY : -INFINITY);
}

static void make_beyond_range(maker_t *g)
{
    int64_t j = below(g, g->n);
    fill_normal(g);
    for (int64_t i = 0; i < g->m; i++)
        for (int q = 0; q < g->parts; q++)
            *entry(g, q, i, j) = shifted(1.75, g->emax);
}

static void make_integers(maker_t *g)
{
    for (int64_t i = 0; i < g->m * g->n; i++)
        for (int q = 0; q < g->parts; q++)
            g->p[q][i] = (double)(below(g, 17) - 8);
}

static void make_mixed(maker_t *g);

static const gb10_family_t families[] = {
    {"gaussian", "independent normal entries", make_gaussian, 0, GB10_INFO_OK},
    {"uniform", "independent entries, uniform in [-1, 1)", make_uniform, 0, GB10_INFO_OK},
    {"randsvd-geometric", "singular values from 1 to 1/cond, geometric", make_svd_geometric, 1e8,
     GB10_INFO_OK},
    {"randsvd-arithmetic", "singular values from 1 to 1/cond, arithmetic", make_svd_arithmetic, 1e8,
     GB10_INFO_OK},
    {"randsvd-one-small", "singular values 1, ..., 1, 1/cond", make_svd_one_small, 1e8,
     GB10_INFO_OK},
    {"randsvd-one-large", "singular values 1, 1/cond, ..., 1/cond", make_svd_one_large, 1e8,
     GB10_INFO_OK},
    {"randsvd-log-random", "singular values cond^-t, t uniform in [0, 1)", make_svd_log_random, 1e8,
     GB10_INFO_OK},
    {"hilbert", "1 / (i + j + 1)", make_hilbert, 0, GB10_INFO_OK},
    {"kahan", "Kahan's triangular matrix, angle 1.2", make_kahan, 0, GB10_INFO_OK},
    {"vandermonde", "powers of equally spaced points in [-1, 1]", make_vandermonde, 0,
     GB10_INFO_OK},
    {"lauchli", "a row of ones above the identity times 1/cond", make_lauchli, 1e9, GB10_INFO_OK},
    {"frank", "Frank's Hessenberg matrix", make_frank, 0, GB10_INFO_OK},
    {"wilkinson", "Wilkinson's W+, tridiagonal", make_wilkinson, 0, GB10_INFO_OK},
    {"pascal", "binomial coefficients, antidiagonal d times 2^-d", make_pascal, 0, GB10_INFO_OK},
    {"toeplitz", "random constants along diagonals", make_toeplitz, 0, GB10_INFO_OK},
    {"identity-plus", "the identity plus a matrix of low rank", make_identity_plus, 0,
     GB10_INFO_OK},
    {"orthogonal", "orthonormal rows or columns", make_orthogonal, 0, GB10_INFO_OK},
    {"upper", "upper trapezoidal, normal entries", make_upper, 0, GB10_INFO_OK},
    {"diagonal", "diagonal, normal entries", make_diagonal, 0, GB10_INFO_OK},
    {"permutation", "a permutation matrix", make_permutation, 0, GB10_INFO_OK},
    {"zero", "all zero", make_zero, 0, GB10_INFO_OK},
    {"zero-first", "normal, first column zero", make_zero_first, 0, GB10_INFO_OK},
    {"zero-middle", "normal, middle column zero", make_zero_middle, 0, GB10_INFO_OK},
    {"zero-last", "normal, last column zero", make_zero_last, 0, GB10_INFO_OK},
    {"duplicates", "normal, every second column repeats its neighbour", make_duplicates, 0,
     GB10_INFO_OK},
    {"rank-one", "an outer product", make_rank_one, 0, GB10_INFO_OK},
    {"graded-down", "normal, columns scaled from 1 to 1/cond", make_graded_down, 1e8, GB10_INFO_OK},
    {"graded-up", "normal, columns scaled from 1/cond to 1", make_graded_up, 1e8, GB10_INFO_OK},
    {"wide-range", "normal, columns times powers of two over the whole range", make_wide_range, 0,
     GB10_INFO_OK},
    {"rows-graded", "normal, rows times cond^-t, t uniform", make_rows_graded, 1e8, GB10_INFO_OK},
    {"rank-deficient", "normal, last quarter of the columns zero", make_rank_deficient, 0,
     GB10_INFO_OK},
    {"near-rank-deficient", "normal, last quarter = first quarter + 1e-5 noise",
     make_near_deficient, 0, GB10_INFO_OK},
    {"clustered", "normal, half the columns at 4 eps, a few at sqrt eps", make_clustered, 0,
     GB10_INFO_OK},
    {"band", "band of width max(2, min(32, n/32)) with a strong diagonal", make_band, 0,
     GB10_INFO_OK},
    {"near-collinear", "one vector + 1e-4 noise in every column", make_near_collinear, 0,
     GB10_INFO_OK},
    {"cancelling", "normal, first entry -||rest of its column|| (1 - u)", make_cancelling, 0,
     GB10_INFO_OK},
    {"subnormal", "normal entries in the subnormal range", make_subnormal, 0, GB10_INFO_OK},
    {"near-overflow", "normal entries close to the largest numbers", make_near_overflow, 0,
     GB10_INFO_OK},
    {"integers", "integers from -8 to 8", make_integers, 0, GB10_INFO_OK},
    {"mixed", "half gaussian, the rest drawn from the finite families", make_mixed, 0,
     GB10_INFO_OK},
    {"nan", "normal with one NaN", make_nan, 0, GB10_INFO_NONFINITE},
    {"inf", "normal with one infinity", make_inf, 0, GB10_INFO_NONFINITE},
    {"beyond-range", "normal, the norm of one column is beyond the type's range", make_beyond_range,
     0, GB10_INFO_NOT_REPRESENTABLE},
};
enum { FAMILIES = sizeof families / sizeof families[0] };

/* Families before `mixed` in the table. */
static void make_mixed(maker_t *g)
{
    bool plain = uniform(g) < 0.5;
    int64_t mixed = 0;
    while (families[mixed].make != make_mixed)
        mixed++;
    const gb10_family_t *other = &families[plain ? 0 : below(g, mixed)];
    g->cond = other->cond;
    other->make(g);
}

/* ---- interface ---- */

const gb10_family_t *gb10_family_at(int i)
{
    return i >= 0 && i < FAMILIES ? &families[i] : NULL;
}

const gb10_family_t *gb10_family_find(const char *name)
{
    for (int i = 0; i < FAMILIES; i++)
        if (strcmp(families[i].name, name) == 0)
            return &families[i];
    return NULL;
}

const char *gb10_family_name(const gb10_family_t *family)
{
    return family->name;
}

const char *gb10_family_about(const gb10_family_t *family)
{
    return family->about;
}

gb10_info_t gb10_family_info(const gb10_family_t *family, gb10_dtype_t dtype, int64_t m, int64_t n)
{
    /* One real entry of that size is a column that fits; a complex one has modulus 2.5 * 2^emax. */
    bool fits = m * (gb10_dtype_is_complex(dtype) ? 2 : 1) < 2;
    if (m == 0 || n == 0 || (family->info == GB10_INFO_NOT_REPRESENTABLE && fits))
        return GB10_INFO_OK;
    return family->info;
}

static void store(const maker_t *g, gb10_dtype_t dtype, void *A)
{
    for (int64_t i = 0; i < g->m * g->n; i++)
        for (int q = 0; q < g->parts; q++) {
            if (!gb10_dtype_is_double(dtype))
                ((float *)A)[i * g->parts + q] = (float)g->p[q][i];
            else
                ((double *)A)[i * g->parts + q] = g->p[q][i];
        }
}

gb10_status_t gb10_family_fill(const gb10_family_t *family, const gb10_family_args_t *args, void *A,
                               gb10_error_t *err)
{
    gb10_status_t status = GB10_OK;
    bool single = !gb10_dtype_is_double(args->dtype);
    int64_t m = args->m, n = args->n, line = m > n ? m : n;
    double *memory = NULL;
    maker_t g = {.m = m, .n = n, .k = m < n ? m : n, .index = args->index, .seed = args->seed};
    if (m <= 0 || n <= 0)
        return GB10_OK;
    g.parts = gb10_dtype_is_complex(args->dtype) ? 2 : 1;
    g.stream = (uint64_t)(family - families) + ((uint64_t)args->index << 8);
    g.cond = args->cond > 0 ? args->cond : family->cond;
    g.eps = 2 * gb10_dtype_u(args->dtype);
    g.emin = single ? -126 : -1022;
    g.emax = single ? 127 : 1023;
    g.esub = single ? -149 : -1074;
    GB10_TRY(
        gb10_alloc(&memory, (size_t)(m * n * 2 + line * 4), sizeof(double), "test matrix", err));
    for (int q = 0; q < 2; q++) {
        g.p[q] = memory + q * m * n;
        g.v[q] = memory + 2 * m * n + q * line;
        g.w[q] = g.v[q] + 2 * line;
    }
    family->make(&g);
    store(&g, args->dtype, A);
cleanup:
    gb10_free(memory);
    return status;
}
