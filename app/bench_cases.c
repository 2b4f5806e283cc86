#include "app/bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/core/plan.h"

enum { SIZE_MAX_ALLOWED = 65536, GROWTH_MAX = 64, TINY = 16 };

const char *const bench_place_names[2] = {"cache", "stream"};

/* A size at *text, which moves behind it; 0 when there is none. */
static int64_t read_size(const char **text)
{
    char *end;
    if (**text < '0' || **text > '9')
        return 0;
    long long value = strtoll(*text, &end, 10);
    *text = end;
    return value <= SIZE_MAX_ALLOWED ? value : 0;
}

gb10_status_t bench_parse_sizes(const char *text, int64_t *sizes, int *nsizes, gb10_error_t *err)
{
    *nsizes = 0;
    for (const char *at = text;; at++) {
        const char *word = at;
        int64_t size = read_size(&at);
        if (size < 1 || (*at && *at != ','))
            return GB10_FAIL(err, GB10_ERR_USAGE, "--sizes: '%.*s' is not a size of 1 .. %d",
                             (int)strcspn(word, ","), word, SIZE_MAX_ALLOWED);
        if (*nsizes == BENCH_SIZES_MAX)
            return GB10_FAIL(err, GB10_ERR_USAGE, "--sizes: more than %d sizes", BENCH_SIZES_MAX);
        sizes[(*nsizes)++] = size;
        if (!*at)
            return GB10_OK;
    }
}

static bool parse_shape(const char *word, size_t length, bench_shape_t *shape)
{
    static const bench_shape_t known[] = {{1, 1, "square", false},
                                          {4, 1, "tall4", false},
                                          {16, 1, "tall16", false},
                                          {1, 2, "wide2", false}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strlen(known[i].name) == length && strncmp(word, known[i].name, length) == 0) {
            *shape = known[i];
            return true;
        }
    const char *at = word;
    shape->rows = read_size(&at);
    if (shape->rows < 1 || *at++ != 'x' || length >= sizeof shape->name)
        return false;
    shape->cols = read_size(&at);
    shape->fixed = true;
    snprintf(shape->name, sizeof shape->name, "%.*s", (int)length, word);
    return shape->cols >= 1 && at == word + length;
}

/* Appends the words of `text`; the word all stands for other words. */
static gb10_status_t append_shapes(const char *text, bench_shape_t *shapes, int *nshapes,
                                   gb10_error_t *err)
{
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ",");
        bench_shape_t shape;
        gb10_status_t status = GB10_OK;
        if (length == 3 && strncmp(at, "all", length) == 0)
            status = append_shapes(BENCH_ALL_SHAPES, shapes, nshapes, err);
        else if (!parse_shape(at, length, &shape))
            status = GB10_FAIL(err, GB10_ERR_USAGE,
                               "--shapes: '%.*s' is none of square, tall4, tall16, wide2, all and "
                               "not MxN",
                               (int)length, at);
        else if (*nshapes == BENCH_SHAPES_MAX)
            status =
                GB10_FAIL(err, GB10_ERR_USAGE, "--shapes: more than %d shapes", BENCH_SHAPES_MAX);
        else
            shapes[(*nshapes)++] = shape;
        if (status != GB10_OK)
            return status;
        at += length;
        if (!*at)
            return GB10_OK;
    }
}

gb10_status_t bench_parse_shapes(const char *text, bench_shape_t *shapes, int *nshapes,
                                 gb10_error_t *err)
{
    *nshapes = 0;
    return append_shapes(text, shapes, nshapes, err);
}

double bench_bytes_in(const bench_case_t *c)
{
    return (double)c->m * (double)c->n * (double)gb10_dtype_size(c->dtype);
}

double bench_bytes_out(const bench_case_t *c)
{
    double m = (double)c->m, n = (double)c->n, k = m < n ? m : n;
    double b = (double)c->nb < k ? (double)c->nb : k;
    return (m * k + b * k + k * n + k) * (double)gb10_dtype_size(c->dtype);
}

int64_t bench_group(const bench_case_t *c)
{
    int64_t k = c->m < c->n ? c->m : c->n;
    return k <= TINY && c->granule < TINY ? TINY : c->granule;
}

int64_t bench_batch(const bench_case_t *c, int64_t level2, int64_t last)
{
    int64_t share = c->threads * bench_group(c), count;
    if (c->place == BENCH_CACHE) {
        double room = 0.5 * (double)level2 * c->threads;
        count = (int64_t)(room / (bench_bytes_in(c) + bench_bytes_out(c)));
    } else {
        count = (int64_t)(1.5 * (double)last / bench_bytes_in(c));
        count = count > 2 ? count : 2; /* results pass through the cache as well */
        count = (count + share - 1) / share * share;
    }
    count -= count % share;
    return count > share ? count : share;
}

double bench_memory_bound(const bench_case_t *c, double bandwidth)
{
    double seconds = (bench_bytes_in(c) + bench_bytes_out(c)) / bandwidth;
    return gb10_qr_flops(c->dtype, c->m, c->n) / seconds * 1e-9;
}

double bench_bound(const bench_case_t *c, double peak, double bandwidth)
{
    if (c->place == BENCH_CACHE)
        return peak;
    return fmin(peak, bench_memory_bound(c, bandwidth)); /* the other one when one is NaN */
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double *x, int n)
{
    if (n < 1)
        return NAN;
    qsort(x, (size_t)n, sizeof *x, by_value);
    return n % 2 ? x[n / 2] : 0.5 * (x[n / 2 - 1] + x[n / 2]);
}

int64_t bench_scale(const bench_case_t *c, int64_t matrices, double seconds, double target)
{
    double factor = seconds > 0 ? target / seconds : GROWTH_MAX;
    factor = fmin(fmax(factor, 1), GROWTH_MAX);
    int64_t wanted = (int64_t)ceil((double)matrices * factor);
    int64_t unit = c->place == BENCH_CACHE ? c->count : c->threads * bench_group(c);
    return (wanted + unit - 1) / unit * unit;
}
