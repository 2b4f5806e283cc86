/* Tensor-core arithmetic and operand rounding; alone, without the machine (simt_mma.c).
 *
 * Model (published with recorded vectors in MATLAB-tensor-core, North-numerical-computing): the
 * exact products of a group and C are aligned to the largest exponent among them (of a product: the
 * sum of the operands' exponents), each truncated to `bits` fraction bits below it, added exactly,
 * and the sum is truncated to fp32. Groups follow each other, each one's sum the next one's C. */
#include <math.h>
#include <string.h>

#include "tests/simt/simt_machine.h"

simt_dot_model_t simt_dot_model(int arch, simt_operand_t operand)
{
    /* fp8: mma.sync is expanded to fp16 products on sm_90 and sm_100 (recorded on a B200: the sum
     * with C = 0, then one addition); on sm_121 it is native and nobody has recorded it yet. */
    static const struct {
        int arch;
        simt_operand_t operand;
        simt_dot_model_t model;
    } table[] = {
        {80, SIMT_TF32, {4, 24, 0, 0}},   {80, SIMT_BF16, {8, 24, 0, 0}},
        {80, SIMT_E4M3, {16, 24, 0, 0}},  {90, SIMT_TF32, {8, 25, 0, 0}},
        {90, SIMT_BF16, {16, 25, 0, 0}},  {90, SIMT_E4M3, {32, 25, 1, 0}},
        {100, SIMT_TF32, {8, 25, 0, 0}},  {100, SIMT_BF16, {16, 25, 0, 0}},
        {100, SIMT_E4M3, {32, 25, 1, 0}}, {121, SIMT_TF32, {8, 25, 0, 0}},
        {121, SIMT_BF16, {16, 25, 0, 0}}, {121, SIMT_E4M3, {32, 25, 0, 0}},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].arch == arch && table[i].operand == operand)
            return table[i].model;
    return (simt_dot_model_t){8, 25, 0, 0};
}

/* value = significand * 2^(exponent - 23), or with 46 fraction bits for a product. */
typedef struct term {
    int64_t significand;
    int exponent;
} term_t;

static term_t split(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    int field = (int)(bits >> 23 & 0xff);
    int64_t significand = (int64_t)(bits & 0x7fffff) | (field ? 0x800000 : 0);
    return (term_t){bits >> 31 ? -significand : significand, field ? field - 127 : -126};
}

/* sum * 2^scale, truncated to fp32. */
static float truncated(int64_t sum, int scale)
{
    if (sum == 0)
        return 0;
    const uint32_t sign = sum < 0 ? 0x80000000u : 0;
    uint64_t magnitude = sum < 0 ? (uint64_t)-sum : (uint64_t)sum;
    int top = 63 - __builtin_clzll(magnitude), exponent = top + scale;
    if (exponent > 127)
        return from_bits(sign | 0x7f800000u);
    int drop = top - 23; /* bits below the 24 kept */
    if (exponent < -126)
        drop += -126 - exponent;
    if (drop >= 64)
        return from_bits(sign);
    magnitude = drop > 0 ? magnitude >> drop : magnitude << -drop;
    uint32_t field = exponent < -126 ? 0 : (uint32_t)(exponent + 127);
    return from_bits(sign | field << 23 | (uint32_t)(magnitude & 0x7fffff));
}

static float special(float c, const float *a, const float *b, int k)
{
    float sum = c;
    for (int i = 0; i < k; i++)
        sum += a[i] * b[i];
    return sum != sum ? from_bits(0x7fffffff) : sum;
}

static float dot_group(float c, const float *a, const float *b, int k, simt_dot_model_t model)
{
    term_t term[33];
    int count = 0, largest = -1000;
    for (int i = 0; i <= k; i++) {
        if (i < k && (!isfinite(a[i]) || !isfinite(b[i])))
            return special(c, a, b, k);
        term_t t = i < k ? split(a[i]) : split(c);
        if (i < k) {
            term_t u = split(b[i]);
            t = (term_t){t.significand * u.significand, t.exponent + u.exponent};
        } else {
            t.significand *= (int64_t)1 << 23;
        }
        if (t.significand == 0)
            continue;
        if (t.exponent > largest)
            largest = t.exponent;
        term[count++] = t;
    }
    if (!isfinite(c))
        return special(c, a, b, k);
    int64_t sum = 0;
    for (int i = 0; i < count; i++) {
        int drop = 46 - model.bits + largest - term[i].exponent;
        uint64_t m =
            (uint64_t)(term[i].significand < 0 ? -term[i].significand : term[i].significand);
        m = drop >= 64 ? 0 : m >> drop;
        sum += term[i].significand < 0 ? -(int64_t)m : (int64_t)m;
    }
    const float d = truncated(sum, largest - model.bits);
    return model.kept ? from_bits(bits_of(d) & ~0u << (23 - model.kept)) : d;
}

float simt_dot(simt_dot_model_t model, float c, const float *a, const float *b, int k)
{
    float sum = model.apart ? 0 : c;
    for (int i = 0; i < k; i += model.group)
        sum = dot_group(sum, a + i, b + i, k - i < model.group ? k - i : model.group, model);
    return model.apart ? c + sum : sum;
}

/* ---- operands ---- */

float simt_e4m3_value(unsigned char bits)
{
    int field = bits >> 3 & 15, fraction = bits & 7;
    float x = field ? ldexpf((float)(8 + fraction), field - 10) : ldexpf((float)fraction, -9);
    if ((bits & 0x7f) == 0x7f)
        x = from_bits(0x7fffffff);
    return bits & 0x80 ? -x : x;
}

uint32_t simt_rt_tf32(float x)
{
    if (x != x)
        return 0x7fffffff;
    if (isinf(x))
        return bits_of(x);
    return (bits_of(x) + 0x1000) & ~0x1fffu;
}

static uint32_t bf16(float x)
{
    uint32_t bits = bits_of(x);
    if (x != x)
        return 0x7fff;
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

uint32_t simt_rt_bf16x2(float low, float high)
{
    return bf16(low) | bf16(high) << 16;
}

static uint16_t e4m3(float x)
{
    const uint16_t sign = (uint16_t)(bits_of(x) >> 31 << 7);
    if (x != x)
        return 0x7f;
    x = fabsf(x);
    if (x >= 448)
        return sign | 0x7e;
    if (x == 0)
        return sign;
    int exponent = ilogbf(x);
    if (exponent < -6)
        exponent = -6;
    /* In units of the last place: exact, then nearest even. */
    int units = (int)rintf(ldexpf(x, 3 - exponent));
    int code = units < 8 ? units : (exponent + 6) * 8 + units;
    return (uint16_t)(sign | (code > 0x7e ? 0x7e : code));
}

uint16_t simt_rt_e4m3x2(float low, float high)
{
    return (uint16_t)(e4m3(low) | e4m3(high) << 8);
}
