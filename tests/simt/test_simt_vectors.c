/* The tensor-core arithmetic against bits recorded on GPUs, when they are there: lines
 * "a operands | b operands | c | d" in hexadecimal fp32 bits below ../shared/data/tensorcore.
 * Controls: an exactly rounded sum and a chain of fma must miss many of the vectors. The same
 * vectors through the kernels' mma: the runtime's own, or that of the GPU. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simt/simt_cases.h"
#include "tests/simt/simt_memory.h"
#include "tests/simt/simt_run.h"
#include "tests/support/test.h"

enum { K_MAX = 32 };

typedef struct vector {
    float a[K_MAX], b[K_MAX], c, d;
    int k;
} vector_t;

static float next_value(char **at)
{
    uint32_t bits = (uint32_t)strtoul(*at, at, 16);
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Operands until the bar; their number. */
static int next_list(char **at, float *list)
{
    int k = 0;
    while (**at && **at != '|') {
        if (k < K_MAX)
            list[k] = next_value(at);
        k++;
        *at += strspn(*at, " \n");
    }
    *at += **at == '|';
    return k;
}

static int read_vector(char *line, vector_t *v)
{
    char *at = line;
    v->k = next_list(&at, v->a);
    float rest[K_MAX];
    if (v->k < 1 || v->k > K_MAX || next_list(&at, v->b) != v->k || next_list(&at, rest) != 1)
        return 0;
    v->c = rest[0];
    if (next_list(&at, rest) != 1)
        return 0;
    v->d = rest[0];
    return 1;
}

/* The exact sum rounded once: products have 48 bits at most, so pairs of doubles hold it. */
static float exactly_rounded(const vector_t *v)
{
    double high = v->c, low = 0;
    for (int i = 0; i < v->k; i++) {
        double p = (double)v->a[i] * v->b[i], s = high + p, t = s - high;
        low += (high - (s - t)) + (p - t);
        high = s;
    }
    return (float)(high + low);
}

static float chain(const vector_t *v)
{
    float sum = v->c;
    for (int i = 0; i < v->k; i++)
        sum = fmaf(v->a[i], v->b[i], sum);
    return sum;
}

typedef struct misses {
    int vectors, model, rounded, chain;
} misses_t;

static misses_t compare(FILE *f, simt_dot_model_t model, int without_c)
{
    static char line[4096];
    misses_t n = {0};
    vector_t v;
    while (fgets(line, sizeof line, f)) {
        if (line[0] == '#')
            continue;
        cr_assert(read_vector(line, &v), "%.60s", line);
        if (without_c)
            v.c = 0;
        float d = simt_dot(model, v.c, v.a, v.b, v.k), r = exactly_rounded(&v), h = chain(&v);
        n.vectors++;
        n.model += memcmp(&d, &v.d, sizeof d) != 0;
        n.rounded += memcmp(&r, &v.d, sizeof r) != 0;
        n.chain += memcmp(&h, &v.d, sizeof h) != 0;
    }
    return n;
}

typedef struct recording {
    const char *name;
    int arch;
    simt_operand_t operand;
    int wgmma; /* recorded with wgmma: 13 fraction bits, and d without the addend */
} recording_t;
static const recording_t recordings[] = {
    {"a100_tf32", 80, SIMT_TF32, 0},  {"a100_bf16", 80, SIMT_BF16, 0},
    {"h100_tf32", 90, SIMT_TF32, 0},  {"h100_bf16", 90, SIMT_BF16, 0},
    {"h100_e4m3", 90, SIMT_E4M3, 1},  {"b200_tf32", 100, SIMT_TF32, 0},
    {"b200_bf16", 100, SIMT_BF16, 0}, {"b200_e4m3", 100, SIMT_E4M3, 0}};
enum { RECORDINGS = sizeof recordings / sizeof *recordings };

static FILE *recording_open(const recording_t *r)
{
    char path[128];
    snprintf(path, sizeof path, "../shared/data/tensorcore/%s.txt", r->name);
    return fopen(path, "r");
}

Test(tensor, recorded_vectors)
{
    int found = 0;
    for (int i = 0; i < RECORDINGS; i++) {
        const recording_t *r = &recordings[i];
        FILE *f = recording_open(r);
        if (!f)
            continue;
        simt_dot_model_t model = simt_dot_model(r->arch, r->operand);
        if (r->wgmma)
            model = (simt_dot_model_t){32, 13, 0, 13};
        misses_t n = compare(f, model, r->wgmma);
        fclose(f);
        found++;
        printf("%s: %d vectors, misses: model %d, exactly rounded %d, fma chain %d\n", r->name,
               n.vectors, n.model, n.rounded, n.chain);
        cr_expect(n.vectors > 0 && n.model == 0, "%s: %d of %d", r->name, n.model, n.vectors);
        /* fp8 with C = 0 is nearly always exact on a B200: its control is the truncating sum. */
        if (!model.apart)
            cr_expect(n.rounded > n.vectors / 10, "%s: a control agrees", r->name);
    }
    if (!found)
        cr_skip_test("no recorded vectors in ../shared/data/tensorcore");
}

/* Matrices of case_mma: vector i of eight is row i of x, column i of y, and (i, i) of z and out. */
typedef struct mma_memory {
    float *x, *y, *z, *out;
    float wanted[8];
} mma_memory_t;

/* The next vectors of a file, eight at most; their number. */
static int next_vectors(FILE *f, mma_memory_t *m, int depth, int without_c)
{
    static char line[4096];
    vector_t v;
    int n = 0;
    memset(m->x, 0, 16 * K_MAX * sizeof *m->x);
    memset(m->y, 0, K_MAX * 8 * sizeof *m->y);
    memset(m->z, 0, 128 * sizeof *m->z);
    memset(m->out, 0xa5, 128 * sizeof *m->out);
    while (n < 8 && fgets(line, sizeof line, f)) {
        if (line[0] == '#')
            continue;
        cr_assert(read_vector(line, &v) && v.k <= depth, "%.60s", line);
        for (int k = 0; k < v.k; k++) {
            m->x[n * depth + k] = v.a[k];
            m->y[k * 8 + n] = v.b[k];
        }
        m->z[n * 8 + n] = without_c ? 0 : v.c;
        m->wanted[n++] = v.d;
    }
    return n;
}

static misses_t compare_mma(FILE *f, const recording_t *r, mma_memory_t *m)
{
    static const int which[] = {[SIMT_TF32] = 0, [SIMT_BF16] = 1, [SIMT_E4M3] = 3};
    static const int depth[] = {[SIMT_TF32] = 8, [SIMT_BF16] = 16, [SIMT_E4M3] = 32};
    misses_t misses = {0};
    int n;
    while ((n = next_vectors(f, m, depth[r->operand], r->wgmma)) > 0) {
        gb10_error_t err = {0};
        const case_args_t a = {
            .x = m->x, .y = m->y, .z = m->z, .out = m->out, .which = which[r->operand]};
        cr_assert(case_mma(&a, &err) == GB10_OK && simt_wait(&err) == GB10_OK, "%s", err.message);
        for (int i = 0; i < n; i++)
            misses.model += memcmp(&m->out[9 * i], &m->wanted[i], sizeof(float)) != 0;
        misses.vectors += n;
    }
    return misses;
}

/* A GPU takes the recordings of its kind. What was recorded with another instruction (wgmma), or on
 * a B200 where this is another chip of its generation, is reported: nobody has said that it must
 * agree. */
Test(tensor, recorded_vectors_by_mma)
{
    simt_options_t options = simt_options_default();
    const int arch = options.arch, family = arch / 10 == 12 ? 100 : arch;
    mma_memory_t m = {.x = simt_new(16 * K_MAX * sizeof(float)),
                      .y = simt_new(K_MAX * 8 * sizeof(float)),
                      .z = simt_new(128 * sizeof(float)),
                      .out = simt_new(128 * sizeof(float))};
    cr_assert(m.x && m.y && m.z && m.out);
    int found = 0;
    for (int i = 0; i < RECORDINGS; i++) {
        const recording_t *r = &recordings[i];
        FILE *f = (simt_on_gpu() ? r->arch != family : r->wgmma) ? NULL : recording_open(r);
        if (!f)
            continue;
        options.arch = r->arch;
        simt_set_options(&options);
        const misses_t n = compare_mma(f, r, &m);
        fclose(f);
        found++;
        const bool must = !simt_on_gpu() || (r->arch == arch && !r->wgmma);
        printf("%s by mma on sm_%d: %d vectors, %d differ%s\n", r->name,
               simt_on_gpu() ? arch : r->arch, n.vectors, n.model, must ? "" : " (reported only)");
        cr_expect(n.vectors > 0 && (n.model == 0 || !must), "%s: %d of %d", r->name, n.model,
                  n.vectors);
    }
    simt_free(m.x);
    simt_free(m.y);
    simt_free(m.z);
    simt_free(m.out);
    if (!found)
        cr_skip_test("no recorded vectors in ../shared/data/tensorcore");
}

Test(tensor, truncates_towards_zero)
{
    /* 1 + 2^-24 + 2^-25: rounded up by an exact sum, cut off here; the same below zero. */
    simt_dot_model_t model = simt_dot_model(121, SIMT_TF32);
    float a[8] = {0x1p-24f, 0x1p-25f}, b[8] = {1, 1};
    cr_expect(simt_dot(model, 1, a, b, 8) == 1);
    a[0] = -a[0], a[1] = -a[1];
    cr_expect(simt_dot(model, -1, a, b, 8) == -1);
    /* Infinity and NaN, underflow to a subnormal number, cancellation to zero. */
    a[0] = INFINITY;
    cr_expect(isinf(simt_dot(model, 1, a, b, 8)));
    a[1] = -INFINITY;
    cr_expect(isnan(simt_dot(model, 1, a, b, 8)));
    a[0] = 0x1p-100f, b[0] = 0x1p-45f, a[1] = 0;
    cr_expect(simt_dot(model, 0, a, b, 8) == 0x1p-145f);
    a[0] = 3, b[0] = 5;
    cr_expect(simt_dot(model, -15, a, b, 8) == 0);
}
