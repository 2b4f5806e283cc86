/* Conversion of stored elements, every format in both byte orders, apart and in place. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "io/element.h"
#include "tests/support/test.h"

typedef struct number_case {
    const char *name;
    io_class_t cls;
    uint8_t bytes, exponent_bits, mantissa_bits;
    gb10_dtype_t dtype, complex_dtype;
    int values;
    struct {
        unsigned char stored[16]; /* least significant byte first */
        double value;
    } v[6];
} number_case_t;

static const number_case_t numbers[] = {
    {"float16",
     IO_FLOAT,
     2,
     5,
     10,
     GB10_S,
     GB10_C,
     6,
     {{{0x00, 0x3c}, 1},
      {{0x00, 0xc0}, -2},
      {{0x01, 0x00}, 0x1p-24},
      {{0xff, 0x83}, -0x1.ff8p-15},
      {{0xff, 0x7b}, 65504},
      {{0x00, 0xfc}, -INFINITY}}},
    {"bfloat16",
     IO_FLOAT,
     2,
     8,
     7,
     GB10_S,
     GB10_C,
     4,
     {{{0x80, 0x3f}, 1},
      {{0x49, 0xc0}, -3.140625},
      {{0x01, 0x00}, 0x1p-133},
      {{0x80, 0x7f}, INFINITY}}},
    {"float32",
     IO_FLOAT,
     4,
     8,
     23,
     GB10_S,
     GB10_C,
     3,
     {{{0, 0, 0x80, 0x3f}, 1},
      {{1, 0, 0, 0x80}, -0x1p-149},
      {{0xff, 0xff, 0x7f, 0x7f}, 0x1.fffffep127}}},
    {"float64",
     IO_FLOAT,
     8,
     11,
     52,
     GB10_D,
     GB10_Z,
     3,
     {{{0, 0, 0, 0, 0, 0, 0xf0, 0x3f}, 1},
      {{1, 0, 0, 0, 0, 0, 0, 0x80}, -0x1p-1074},
      {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xef, 0x7f}, 0x1.fffffffffffffp1023}}},
    {"x87",
     IO_FLOAT,
     16,
     15,
     64,
     GB10_D,
     GB10_Z,
     6,
     {{{0, 0, 0, 0, 0, 0, 0, 0x80, 0xff, 0x3f}, 1},
      {{0, 4, 0, 0, 0, 0, 0, 0x80, 0xff, 0x3f}, 1},                      /* tie, to even */
      {{0, 0x0c, 0, 0, 0, 0, 0, 0x80, 0xff, 0x3f}, 0x1.0000000000002p0}, /* tie, to even */
      {{1, 4, 0, 0, 0, 0, 0, 0x80, 0xff, 0x3f}, 0x1.0000000000001p0},
      {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe, 0x43}, INFINITY},
      {{0, 0, 0, 0, 0, 0, 0, 0x80, 0xcd, 0xbb}, -0x1p-1074}}},
    {"binary128",
     IO_FLOAT,
     16,
     15,
     112,
     GB10_D,
     GB10_Z,
     5,
     {{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0x3f}, 1},
      {{0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0xff, 0xbf}, -1}, /* tie, to even */
      {{1, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0xff, 0x3f}, 0x1.0000000000001p0},
      {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0x7f}, INFINITY},
      {{1}, 0}}},
    {"int8", IO_INT, 1, 0, 0, GB10_D, GB10_D, 2, {{{0x80}, -128}, {{0x7f}, 127}}},
    {"uint8", IO_UINT, 1, 0, 0, GB10_D, GB10_D, 1, {{{0xff}, 255}}},
    {"int16", IO_INT, 2, 0, 0, GB10_D, GB10_D, 2, {{{0, 0x80}, -32768}, {{1, 2}, 513}}},
    {"uint16", IO_UINT, 2, 0, 0, GB10_D, GB10_D, 1, {{{0, 0x80}, 32768}}},
    {"int32",
     IO_INT,
     4,
     0,
     0,
     GB10_D,
     GB10_D,
     2,
     {{{0, 0, 0, 0x80}, -2147483648.0}, {{1, 2, 3, 4}, 67305985}}},
    {"uint32", IO_UINT, 4, 0, 0, GB10_D, GB10_D, 1, {{{0xff, 0xff, 0xff, 0xff}, 4294967295.0}}},
    {"int64",
     IO_INT,
     8,
     0,
     0,
     GB10_D,
     GB10_D,
     3,
     {{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, -1},
      {{0, 0, 0, 0, 0, 0, 0x20, 0}, 0x1p53},
      {{0, 0, 0, 0, 0, 0, 0xe0, 0xff}, -0x1p53}}},
    {"uint64", IO_UINT, 8, 0, 0, GB10_D, GB10_D, 1, {{{0, 0, 0, 0, 0, 0, 0x20, 0}, 0x1p53}}},
};
enum { NUMBERS = sizeof numbers / sizeof numbers[0], COPIES = 37 };

static io_element_t element_of(const number_case_t *c, bool big, bool is_complex, int gap)
{
    io_element_t e = {.cls = c->cls,
                      .big_endian = big,
                      .is_complex = is_complex,
                      .bytes = c->bytes,
                      .exponent_bits = c->exponent_bits,
                      .mantissa_bits = c->mantissa_bits};
    e.im_offset = 0; /* the imaginary part comes first */
    e.re_offset = is_complex ? (uint32_t)(c->bytes + gap) : 0;
    e.size = is_complex ? 2u * (c->bytes + (uint32_t)gap) : c->bytes;
    return e;
}

static void store(unsigned char *to, const number_case_t *c, int value, bool big)
{
    for (int i = 0; i < c->bytes; i++)
        to[big ? c->bytes - 1 - i : i] = c->v[value].stored[i];
}

static double result(const void *out, gb10_dtype_t dtype, int64_t i)
{
    return dtype == GB10_S || dtype == GB10_C ? (double)((const float *)out)[i]
                                              : ((const double *)out)[i];
}

/* COPIES elements that run through the case's values, converted at `dst` from `src`. */
static void check(const number_case_t *c, bool big, bool is_complex, int gap, bool in_place)
{
    static unsigned char stored[COPIES * 40];
    static double out[COPIES * 2];
    io_element_t e = element_of(c, big, is_complex, gap);
    gb10_dtype_t dtype = is_complex ? c->complex_dtype : c->dtype;
    size_t size = gb10_dtype_size(dtype);
    unsigned char *src = in_place ? (unsigned char *)out + COPIES * (size - e.size) : stored;
    for (int i = 0; i < COPIES; i++) {
        store(src + (size_t)i * e.size + e.re_offset, c, i % c->values, big);
        if (is_complex)
            store(src + (size_t)i * e.size + e.im_offset, c, (i + 1) % c->values, big);
    }
    int64_t bad = io_convert(&e, dtype, false, src, out, COPIES);
    cr_expect_eq(bad, -1, "%s big %d: refused at %d", c->name, big, (int)bad);
    for (int i = 0; i < COPIES; i++) {
        double re = result(out, dtype, is_complex ? 2 * i : i), want = c->v[i % c->values].value;
        cr_expect(re == want, "%s big %d complex %d in place %d [%d]: %a, not %a", c->name, big,
                  is_complex, in_place, i, re, want);
        if (!is_complex)
            continue;
        double im = result(out, dtype, 2 * i + 1);
        want = c->v[(i + 1) % c->values].value;
        cr_expect(im == want, "%s big %d imaginary in place %d [%d]: %a, not %a", c->name, big,
                  in_place, i, im, want);
    }
}

Test(io_convert, every_number)
{
    for (int i = 0; i < NUMBERS; i++)
        for (int big = 0; big < 2; big++) {
            const number_case_t *c = &numbers[i];
            check(c, big, false, 0, false);
            if (c->bytes <= gb10_dtype_size(c->dtype))
                check(c, big, false, 0, true);
            if (c->cls != IO_FLOAT)
                continue;
            check(c, big, true, 0, false);
            check(c, big, true, 4, false);
            if (c->bytes <= gb10_dtype_size(c->dtype))
                check(c, big, true, 0, true);
        }
}

Test(io_convert, nan_stays_nan)
{
    static const unsigned char payload[16] = {1, 0, 0, 0, 0, 0, 0, 0xa0, 0xff, 0x7f};
    io_element_t x87 = {
        .cls = IO_FLOAT, .bytes = 16, .exponent_bits = 15, .mantissa_bits = 64, .size = 16};
    double value = 0;
    io_convert(&x87, GB10_D, true, payload, &value, 1);
    cr_expect(isnan(value));
    for (uint32_t h = 0x7c01; h < 0x8000; h++) {
        io_element_t half = {.cls = IO_FLOAT,
                             .bytes = 2,
                             .exponent_bits = 5,
                             .mantissa_bits = 10,
                             .size = 2,
                             .big_endian = true};
        unsigned char bytes[2] = {(unsigned char)(h >> 8), (unsigned char)h};
        float single = 0;
        io_convert(&half, GB10_S, false, bytes, &single, 1);
        cr_expect(isnan(single), "float16 %x", h);
    }
}

Test(io_convert, wide_integers)
{
    static const struct {
        io_class_t cls;
        uint64_t value;
        double rounded;
        const char *text;
    } cases[] = {{IO_INT, (UINT64_C(1) << 53) + 1, 0x1p53, "9007199254740993"},
                 {IO_INT, 0 - ((UINT64_C(1) << 53) + 1), -0x1p53, "-9007199254740993"},
                 {IO_INT, UINT64_C(1) << 63, -0x1p63, "-9223372036854775808"},
                 {IO_UINT, UINT64_MAX, 0x1p64, "18446744073709551615"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t stored[3] = {1, 2, cases[i].value};
        double out[3];
        char text[IO_ELEMENT_TEXT];
        io_element_t e = {.cls = cases[i].cls,
                          .bytes = 8,
                          .size = 8,
                          .big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__};
        cr_expect_eq(io_convert(&e, GB10_D, false, stored, out, 3), 2, "case %zu", i);
        io_integer_text(&e, &stored[2], text);
        cr_expect_str_eq(text, cases[i].text, "case %zu", i);
        cr_expect_eq(io_convert(&e, GB10_D, true, stored, out, 3), -1, "case %zu", i);
        cr_expect(out[2] == cases[i].rounded, "case %zu: %a", i, out[2]);
    }
}

Test(io_convert, native_is_known)
{
    for (int t = 0; t < GB10_DTYPES; t++) {
        io_element_t e = io_element_native((gb10_dtype_t)t);
        cr_expect(io_element_is_native(&e, (gb10_dtype_t)t), "type %d", t);
        cr_expect_eq(e.size, gb10_dtype_size((gb10_dtype_t)t), "type %d", t);
        for (int other = 0; other < GB10_DTYPES; other++)
            cr_expect_eq(io_element_is_native(&e, (gb10_dtype_t)other), t == other, "%d as %d", t,
                         other);
        e.big_endian = !e.big_endian;
        cr_expect_not(io_element_is_native(&e, (gb10_dtype_t)t), "swapped type %d", t);
    }
}

Test(io_convert, names)
{
    static const struct {
        io_element_t e;
        const char *text;
    } cases[] = {
        {{.cls = IO_FLOAT, .bytes = 4, .exponent_bits = 8, .mantissa_bits = 23}, "float32"},
        {{.cls = IO_FLOAT,
          .bytes = 2,
          .exponent_bits = 5,
          .mantissa_bits = 10,
          .big_endian = true,
          .is_complex = true},
         "big-endian complex of float16"},
        {{.cls = IO_INT, .bytes = 1, .is_bool = true}, "bool"},
        {{.cls = IO_UINT, .bytes = 1, .big_endian = true}, "uint8"},
        {{.cls = IO_INT, .bytes = 8, .big_endian = true}, "big-endian int64"},
        {{.cls = IO_FLOAT,
          .bytes = 16,
          .exponent_bits = 15,
          .mantissa_bits = 112,
          .big_endian = true,
          .is_complex = true},
         "big-endian complex of long double (binary128)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[IO_ELEMENT_TEXT];
        cr_expect_str_eq(io_element_text(&cases[i].e, text), cases[i].text, "case %zu: %s", i,
                         text);
    }
}
