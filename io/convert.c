#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "io/element.h"

/* One stored number, read and brought to this machine's byte order. */
static inline uint16_t load16(const unsigned char *p, bool swap)
{
    uint16_t x;
    memcpy(&x, p, sizeof x);
    return swap ? __builtin_bswap16(x) : x;
}

static inline uint32_t load32(const unsigned char *p, bool swap)
{
    uint32_t x;
    memcpy(&x, p, sizeof x);
    return swap ? __builtin_bswap32(x) : x;
}

static inline uint64_t load64(const unsigned char *p, bool swap)
{
    uint64_t x;
    memcpy(&x, p, sizeof x);
    return swap ? __builtin_bswap64(x) : x;
}

static inline float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline double double_of(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* binary16 -> binary32, exact; NaN payloads move to the upper mantissa bits. */
static inline uint32_t widen_half(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exponent = (h >> 10) & 31u, mantissa = h & 1023u;
    if (exponent == 31)
        return sign | 0x7f800000u | mantissa << 13;
    if (exponent)
        return sign | (exponent + 112) << 23 | mantissa << 13;
    /* Zero or subnormal: mantissa * 2^-24 is a normal binary32. */
    float value = (float)mantissa * 0x1p-24f;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return sign | bits;
}

/* A number sign * (high : low) * 2^(exponent - 127), the 128-bit significand normalised so that its
 * top bit is set, rounded to nearest even as binary64 does. */
static uint64_t round_to_double(uint64_t sign, uint64_t high, uint64_t low, int64_t exponent)
{
    int64_t e = exponent + 1023;
    int64_t drop = 11; /* bits of `high` below a 53-bit significand */
    if (e >= 2047)
        return sign | 0x7ff0000000000000u;
    if (e <= 0) {
        drop += 1 - e;
        e = 0;
    }
    if (drop > 64)
        return sign;
    uint64_t kept = drop == 64 ? 0 : high >> drop;
    uint64_t rest = high << (64 - drop);
    uint64_t half = (uint64_t)1 << 63;
    kept += rest > half || (rest == half && (low || (kept & 1)));
    /* The implicit bit, and a carry out of rounding, run into the exponent as they should. */
    return sign | (((uint64_t)(e ? e - 1 : 0) << 52) + kept);
}

/* Long double (x87 or binary128) -> binary64 bits. NaN stays NaN. */
static uint64_t narrow_long(const unsigned char *p, const io_element_t *element)
{
    unsigned char bytes[16] = {0};
    for (int i = 0; i < element->bytes; i++) /* least significant first */
        bytes[i] = p[element->big_endian ? element->bytes - 1 - i : i];
    bool x87 = element->mantissa_bits == 64;
    uint64_t low = 0, high = 0;
    for (int i = 7; i >= 0; i--) {
        low = low << 8 | bytes[i];
        high = high << 8 | bytes[8 + i];
    }
    uint64_t top = x87 ? high & 0xffff : high >> 48;
    uint64_t sign = (top >> 15) << 63;
    int64_t exponent = (int64_t)(top & 0x7fff);
    if (x87) {
        high = low;
        low = 0;
    } else { /* move the 112 mantissa bits up below an explicit leading bit */
        high = (exponent ? (uint64_t)1 << 63 : 0) | (high & 0xffffffffffffu) << 15 | low >> 49;
        low <<= 15;
    }
    if (exponent == 0x7fff) {
        bool nan = (high << 1) != 0 || low != 0;
        return sign | 0x7ff0000000000000u | (nan ? 0x8000000000000u | (high << 1) >> 12 : 0);
    }
    if (!(high >> 63) && exponent) /* x87 without its leading bit: no number */
        return sign | 0x7ff8000000000000u;
    if (!(high >> 63)) /* zero or a subnormal of the wide format: far below binary64 */
        return sign;
    return round_to_double(sign, high, low, exponent - 16383);
}

/* One number of a 2- or 4-byte float as binary32 bits. */
static inline uint32_t single_bits(const unsigned char *p, const io_element_t *e, bool swap)
{
    if (e->bytes == 4)
        return load32(p, swap);
    uint16_t half = load16(p, swap);
    return e->exponent_bits == 5 ? widen_half(half) : (uint32_t)half << 16;
}

static inline uint64_t double_bits(const unsigned char *p, const io_element_t *e, bool swap)
{
    return e->bytes == 8 ? load64(p, swap) : narrow_long(p, e);
}

/* Both parts are loaded before either is stored: source and destination may overlap. */
static void convert_single(const io_element_t *e, bool swap, const unsigned char *src, void *dst,
                           int64_t count)
{
    float *out = dst;
    if (e->is_complex)
        for (int64_t i = 0; i < count; i++, src += e->size) {
            uint32_t re = single_bits(src + e->re_offset, e, swap);
            uint32_t im = single_bits(src + e->im_offset, e, swap);
            memcpy(out + 2 * i, &re, sizeof re);
            memcpy(out + 2 * i + 1, &im, sizeof im);
        }
    else if (e->bytes == 4)
        for (int64_t i = 0; i < count; i++)
            out[i] = float_of(load32(src + 4 * i, swap));
    else if (e->exponent_bits == 5)
        for (int64_t i = 0; i < count; i++)
            out[i] = float_of(widen_half(load16(src + 2 * i, swap)));
    else
        for (int64_t i = 0; i < count; i++)
            out[i] = float_of((uint32_t)load16(src + 2 * i, swap) << 16);
}

static void convert_double(const io_element_t *e, bool swap, const unsigned char *src, void *dst,
                           int64_t count)
{
    double *out = dst;
    if (e->is_complex)
        for (int64_t i = 0; i < count; i++, src += e->size) {
            uint64_t re = double_bits(src + e->re_offset, e, swap);
            uint64_t im = double_bits(src + e->im_offset, e, swap);
            memcpy(out + 2 * i, &re, sizeof re);
            memcpy(out + 2 * i + 1, &im, sizeof im);
        }
    else if (e->bytes == 8)
        for (int64_t i = 0; i < count; i++)
            out[i] = double_of(load64(src + 8 * i, swap));
    else
        for (int64_t i = 0; i < count; i++, src += e->size)
            out[i] = double_of(narrow_long(src, e));
}

/* An integer widened to 64 bits, two's complement when signed. */
static inline uint64_t integer_bits(const unsigned char *p, const io_element_t *e, bool swap)
{
    bool is_signed = e->cls == IO_INT;
    switch (e->bytes) {
    case 1:
        return is_signed ? (uint64_t)(int8_t)*p : *p;
    case 2:
        return is_signed ? (uint64_t)(int16_t)load16(p, swap) : load16(p, swap);
    case 4:
        return is_signed ? (uint64_t)(int32_t)load32(p, swap) : load32(p, swap);
    default:
        return load64(p, swap);
    }
}

static int64_t convert_integer(const io_element_t *e, bool swap, bool narrow,
                               const unsigned char *src, double *out, int64_t count)
{
    const uint64_t limit = (uint64_t)1 << 53;
    bool is_signed = e->cls == IO_INT, check = e->bytes == 8 && !narrow;
    for (int64_t i = 0; i < count; i++, src += e->size) {
        uint64_t x = integer_bits(src, e, swap);
        uint64_t size = is_signed && x >> 63 ? 0 - x : x;
        if (check && size > limit)
            return i;
        out[i] = is_signed ? (double)(int64_t)x : (double)x;
    }
    return -1;
}

int64_t io_convert(const io_element_t *element, gb10_dtype_t dtype, bool narrow, const void *src,
                   void *dst, int64_t count)
{
    bool swap = element->big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
    if (element->cls != IO_FLOAT)
        return convert_integer(element, swap, narrow, src, dst, count);
    if (!gb10_dtype_is_double(dtype))
        convert_single(element, swap, src, dst, count);
    else
        convert_double(element, swap, src, dst, count);
    return -1;
}

void io_integer_text(const io_element_t *element, const void *src, char text[IO_ELEMENT_TEXT])
{
    bool swap = element->big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
    uint64_t x = integer_bits(src, element, swap);
    if (element->cls == IO_INT)
        snprintf(text, IO_ELEMENT_TEXT, "%" PRId64, (int64_t)x);
    else
        snprintf(text, IO_ELEMENT_TEXT, "%" PRIu64, x);
}
