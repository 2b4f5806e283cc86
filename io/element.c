#include "io/element.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "io/h5lib.h"

/* HDF5 2.0 calls its native complex class H5T_COMPLEX; older headers have no name for it. */
enum { CLASS_COMPLEX = 11 };

/* The floating-point formats, bit positions from the least significant bit. The x87 format stores
 * its leading bit. */
typedef struct format {
    const char *name;
    size_t exponent_at, exponent_bits, mantissa_bits;
    size_t bias;
    H5T_norm_t norm;
    uint8_t sizes[3]; /* bytes it may occupy */
    bool wide;        /* needs narrowing     */
} format_t;

static const format_t formats[] = {
    {"float16", 10, 5, 10, 15, H5T_NORM_IMPLIED, {2, 2, 2}, false},
    {"bfloat16", 7, 8, 7, 127, H5T_NORM_IMPLIED, {2, 2, 2}, false},
    {"float32", 23, 8, 23, 127, H5T_NORM_IMPLIED, {4, 4, 4}, false},
    {"float64", 52, 11, 52, 1023, H5T_NORM_IMPLIED, {8, 8, 8}, false},
    {"long double (x87)", 64, 15, 64, 16383, H5T_NORM_NONE, {10, 12, 16}, true},
    {"long double (binary128)", 112, 15, 112, 16383, H5T_NORM_IMPLIED, {16, 16, 16}, true},
};
enum { FORMATS = sizeof formats / sizeof formats[0] };

/* The names a complex compound may use. */
static const char *const complex_names[][2] = {{"r", "i"}, {"real", "imag"}, {"re", "im"}};

static const format_t *format_of(uint8_t exponent_bits, uint8_t mantissa_bits)
{
    for (int i = 0; i < FORMATS; i++)
        if (formats[i].exponent_bits == exponent_bits && formats[i].mantissa_bits == mantissa_bits)
            return &formats[i];
    return NULL;
}

const char *io_element_text(const io_element_t *element, char text[IO_ELEMENT_TEXT])
{
    char number[32];
    const format_t *format = format_of(element->exponent_bits, element->mantissa_bits);
    if (element->is_bool)
        snprintf(number, sizeof number, "bool");
    else if (element->cls == IO_FLOAT)
        snprintf(number, sizeof number, "%s", format ? format->name : "float");
    else
        snprintf(number, sizeof number, "%sint%d", element->cls == IO_UINT ? "u" : "",
                 element->bytes * 8);
    bool big = element->big_endian && element->bytes > 1;
    snprintf(text, IO_ELEMENT_TEXT, "%s%s%s", big ? "big-endian " : "",
             element->is_complex ? "complex of " : "", number);
    return text;
}

io_element_t io_element_native(gb10_dtype_t dtype)
{
    bool is_complex = gb10_dtype_is_complex(dtype);
    uint32_t bytes = (uint32_t)gb10_dtype_size(dtype) / (is_complex ? 2 : 1);
    io_element_t element = {0};
    element.cls = IO_FLOAT;
    element.big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
    element.is_complex = is_complex;
    element.bytes = (uint8_t)bytes;
    element.exponent_bits = bytes == 4 ? 8 : 11;
    element.mantissa_bits = bytes == 4 ? 23 : 52;
    element.size = (uint32_t)gb10_dtype_size(dtype);
    element.im_offset = is_complex ? bytes : 0;
    return element;
}

bool io_element_is_native(const io_element_t *element, gb10_dtype_t dtype)
{
    io_element_t native = io_element_native(dtype);
    return element->cls == native.cls && element->big_endian == native.big_endian &&
           element->is_complex == native.is_complex && element->bytes == native.bytes &&
           element->exponent_bits == native.exponent_bits &&
           element->mantissa_bits == native.mantissa_bits && element->size == native.size &&
           element->re_offset == native.re_offset && element->im_offset == native.im_offset;
}

static bool order_of(hid_t type, bool *big_endian)
{
    H5T_order_t order = H5Tget_order(type);
    *big_endian = order == H5T_ORDER_BE;
    return order == H5T_ORDER_LE || order == H5T_ORDER_BE || H5Tget_size(type) == 1;
}

static io_fitness_t float_number(hid_t type, bool narrow, io_element_t *element, char *why)
{
    size_t sign = 0, at = 0, exponent = 0, mantissa_at = 0, mantissa = 0, size = H5Tget_size(type);
    bool ordered = order_of(type, &element->big_endian);
    H5Tget_fields(type, &sign, &at, &exponent, &mantissa_at, &mantissa);
    for (int i = 0; i < FORMATS; i++) {
        const format_t *f = &formats[i];
        bool same = ordered && f->exponent_at == at && f->exponent_bits == exponent &&
                    f->mantissa_bits == mantissa && mantissa_at == 0 && sign == at + exponent &&
                    f->bias == H5Tget_ebias(type) && f->norm == H5Tget_norm(type) &&
                    H5Tget_offset(type) == 0;
        if (!same || (size != f->sizes[0] && size != f->sizes[1] && size != f->sizes[2]))
            continue;
        if (f->wide && !narrow) {
            snprintf(why, IO_WHY_MAX,
                     "is %s, which would be rounded to float64. Use --narrow to allow it, or "
                     "--dataset to leave it out.",
                     f->name);
            return IO_FIT_REFUSED;
        }
        element->cls = IO_FLOAT;
        element->bytes = (uint8_t)size;
        element->exponent_bits = (uint8_t)exponent;
        element->mantissa_bits = (uint8_t)mantissa;
        return IO_FIT_BATCH;
    }
    snprintf(why, IO_WHY_MAX,
             "has a floating-point format that is not supported (%zu bytes, %zu exponent and %zu "
             "mantissa bits). Convert it to float32 or float64, or use --dataset to leave it out.",
             size, exponent, mantissa);
    return IO_FIT_REFUSED;
}

static io_fitness_t integer_number(hid_t type, io_element_t *element, char *why)
{
    size_t size = H5Tget_size(type), precision = H5Tget_precision(type);
    bool ordered = order_of(type, &element->big_endian);
    element->cls = H5Tget_sign(type) == H5T_SGN_NONE ? IO_UINT : IO_INT;
    element->bytes = (uint8_t)size;
    if (ordered && (size == 1 || size == 2 || size == 4 || size == 8) && precision == size * 8)
        return IO_FIT_BATCH;
    snprintf(why, IO_WHY_MAX,
             "is an integer of %zu bits in %zu bytes, which is not supported. Convert it to int64 "
             "or float64, or use --dataset to leave it out.",
             precision, size);
    return IO_FIT_REFUSED;
}

/* h5py stores numpy.bool_ as an int8 enum {FALSE = 0, TRUE = 1}. */
static bool is_bool_enum(hid_t type)
{
    bool good = H5Tget_nmembers(type) == 2;
    hid_t base = good ? H5Tget_super(type) : -1;
    good = good && H5Tget_size(base) == 1;
    for (unsigned i = 0; good && i < 2; i++) {
        signed char value = -1;
        char *name = H5Tget_member_name(type, i);
        good = name && H5Tget_member_value(type, i, &value) >= 0 && (value == 0 || value == 1) &&
               strcasecmp(name, value ? "TRUE" : "FALSE") == 0;
        H5free_memory(name);
    }
    io_h5_close(base);
    return good;
}

static io_fitness_t real_number(hid_t type, bool narrow, io_element_t *element, char *why)
{
    switch (H5Tget_class(type)) {
    case H5T_FLOAT:
        return float_number(type, narrow, element, why);
    case H5T_INTEGER:
        return integer_number(type, element, why);
    case H5T_ENUM:
        if (!is_bool_enum(type))
            break;
        element->is_bool = true;
        element->cls = IO_INT;
        element->bytes = 1;
        return IO_FIT_BATCH;
    default:
        break;
    }
    return IO_FIT_NOT;
}

/* 0 when `names` are real and imaginary part in this order, 1 when swapped, -1 otherwise. */
static int complex_order(const char *first, const char *second)
{
    for (size_t i = 0; i < sizeof complex_names / sizeof complex_names[0]; i++)
        for (int swapped = 0; swapped < 2; swapped++)
            if (strcmp(first, complex_names[i][swapped]) == 0 &&
                strcmp(second, complex_names[i][!swapped]) == 0)
                return swapped;
    return -1;
}

static io_fitness_t complex_parts(hid_t type, int swapped, bool narrow, io_element_t *element,
                                  char *why)
{
    hid_t re = H5Tget_member_type(type, (unsigned)swapped);
    hid_t im = H5Tget_member_type(type, (unsigned)!swapped);
    io_fitness_t fitness = IO_FIT_REFUSED;
    size_t size = H5Tget_size(type);
    size_t re_offset = H5Tget_member_offset(type, (unsigned)swapped);
    size_t im_offset = H5Tget_member_offset(type, (unsigned)!swapped);
    if (H5Tget_class(re) != H5T_FLOAT || H5Tequal(re, im) <= 0 || size > UINT32_MAX)
        snprintf(why, IO_WHY_MAX,
                 "is a complex compound whose parts are not two floats of one type. Convert it to "
                 "complex64 or complex128, or use --dataset to leave it out.");
    else
        fitness = float_number(re, narrow, element, why);
    element->is_complex = true;
    element->re_offset = (uint32_t)re_offset;
    element->im_offset = (uint32_t)im_offset;
    element->size = (uint32_t)size;
    io_h5_close(im);
    io_h5_close(re);
    return fitness;
}

static io_fitness_t compound(hid_t type, bool narrow, io_element_t *element, char *why)
{
    int swapped = -1;
    if (H5Tget_nmembers(type) == 2) {
        char *first = H5Tget_member_name(type, 0), *second = H5Tget_member_name(type, 1);
        if (first && second)
            swapped = complex_order(first, second);
        H5free_memory(second);
        H5free_memory(first);
    }
    if (swapped < 0) {
        snprintf(why, IO_WHY_MAX, "a compound that is not a complex number");
        return IO_FIT_NOT;
    }
    return complex_parts(type, swapped, narrow, element, why);
}

static const char *class_noun(H5T_class_t cls)
{
    switch (cls) {
    case H5T_TIME:
        return "a time";
    case H5T_STRING:
        return "a string";
    case H5T_BITFIELD:
        return "a bit field";
    case H5T_OPAQUE:
        return "opaque";
    case H5T_REFERENCE:
        return "a reference";
    case H5T_ENUM:
        return "an enumeration";
    case H5T_VLEN:
        return "of variable length";
    case H5T_ARRAY:
        return "an array in each element";
    default:
        return "of an unknown class";
    }
}

static gb10_dtype_t factored_as(const io_element_t *element)
{
    bool single = element->cls == IO_FLOAT && element->bytes <= 4;
    if (element->is_complex)
        return single ? GB10_C : GB10_Z;
    return single ? GB10_S : GB10_D;
}

io_fitness_t io_element_classify(int64_t type, bool narrow, io_element_t *element,
                                 gb10_dtype_t *dtype, char why[IO_WHY_MAX])
{
    memset(element, 0, sizeof *element);
    why[0] = 0;
    H5T_class_t cls = H5Tget_class((hid_t)type);
    if ((int)cls == CLASS_COMPLEX) {
        snprintf(why, IO_WHY_MAX,
                 "has the native complex type of HDF5 2.0, which is not supported. Store it as a "
                 "compound {r, i} of two floats (h5py and older HDF5 do), or use --dataset to "
                 "leave it out.");
        return IO_FIT_REFUSED;
    }
    io_fitness_t fitness;
    if (cls == H5T_COMPOUND) {
        fitness = compound((hid_t)type, narrow, element, why);
    } else {
        fitness = real_number((hid_t)type, narrow, element, why);
        element->size = element->bytes;
    }
    if (fitness == IO_FIT_NOT && !why[0])
        snprintf(why, IO_WHY_MAX, "%s", class_noun(cls));
    *dtype = factored_as(element);
    return fitness;
}
