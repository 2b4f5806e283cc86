/* The tensor-core arithmetic against bits recorded on GPUs, when they are there: lines
 * "a operands | b operands | c | d" in hexadecimal fp32 bits below ../shared/data/tensorcore.
 * Controls: an exactly rounded sum and a chain of fma must miss many of the vectors. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

Test(tensor, recorded_vectors)
{
    static const struct {
        const char *name;
        int arch;
        simt_operand_t operand;
        int wgmma; /* recorded with wgmma: 13 fraction bits, and d without the addend */
    } file[] = {{"a100_tf32", 80, SIMT_TF32, 0},  {"a100_bf16", 80, SIMT_BF16, 0},
                {"h100_tf32", 90, SIMT_TF32, 0},  {"h100_bf16", 90, SIMT_BF16, 0},
                {"h100_e4m3", 90, SIMT_E4M3, 1},  {"b200_tf32", 100, SIMT_TF32, 0},
                {"b200_bf16", 100, SIMT_BF16, 0}, {"b200_e4m3", 100, SIMT_E4M3, 0}};
    int found = 0;
    for (size_t i = 0; i < sizeof file / sizeof *file; i++) {
        char path[128];
        snprintf(path, sizeof path, "../shared/data/tensorcore/%s.txt", file[i].name);
        FILE *f = fopen(path, "r");
        if (!f)
            continue;
        simt_dot_model_t model = simt_dot_model(file[i].arch, file[i].operand);
        if (file[i].wgmma)
            model = (simt_dot_model_t){32, 13, 0, 13};
        misses_t n = compare(f, model, file[i].wgmma);
        fclose(f);
        found++;
        printf("%s: %d vectors, misses: model %d, exactly rounded %d, fma chain %d\n", file[i].name,
               n.vectors, n.model, n.rounded, n.chain);
        cr_expect(n.vectors > 0 && n.model == 0, "%s: %d of %d", file[i].name, n.model, n.vectors);
        /* fp8 with C = 0 is nearly always exact on a B200: its control is the truncating sum. */
        if (!model.apart)
            cr_expect(n.rounded > n.vectors / 10, "%s: a control agrees", file[i].name);
    }
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
