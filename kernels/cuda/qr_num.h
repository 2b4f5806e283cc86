/* Numbers of the four types in kernels: float, double and pairs of them, one spelling for all.
 * Products are fused explicitly, so that a CPU and a GPU give the same bits. */
#ifndef KERNELS_CUDA_QR_NUM_H
#define KERNELS_CUDA_QR_NUM_H

#include "kernels/cuda/simt.h"

#define QR_INLINE static __device__ __forceinline__

typedef struct alignas(8) cfloat {
    float re, im;
} cfloat_t;
typedef struct alignas(16) cdouble {
    double re, im;
} cdouble_t;

/* What belongs to a real type: its bits as an integer whose order is that of magnitudes, and the
 * range of exponents that a column is brought into before anything is multiplied.
 *   LOW .. HIGH   the largest entry of a column is in [2^LOW, 2^HIGH): products of two columns and
 *                 sums of 2^24 of them stay inside the range
 *   DROP          what a larger column is divided by, 2^DROP
 *   LEAST         a sum of squares below 2^LEAST may have lost terms to underflow               */
template <class R> struct qr_real;
template <> struct qr_real<float> {
    typedef unsigned bits_t;
    enum { FRACTION = 23, BIAS = 127, LOW = -40, HIGH = 50, DROP = 78, LEAST = -100 };
    static const unsigned SIGN = 0x80000000u, INF = 0x7f800000u, NOT = 0x7fc00000u;
};
template <> struct qr_real<double> {
    typedef unsigned long long bits_t;
    enum { FRACTION = 52, BIAS = 1023, LOW = -400, HIGH = 480, DROP = 544, LEAST = -900 };
    static const unsigned long long SIGN = 1ull << 63, INF = 0x7ffull << 52, NOT = 0x7ff8ull << 48;
};

template <class T> struct qr_type;
template <> struct qr_type<float> {
    typedef float real_t;
    enum { COMPLEX = 0, PANEL = 16 };
};
template <> struct qr_type<double> {
    typedef double real_t;
    enum { COMPLEX = 0, PANEL = 8 };
};
template <> struct qr_type<cfloat_t> {
    typedef float real_t;
    enum { COMPLEX = 1, PANEL = 8 };
};
template <> struct qr_type<cdouble_t> {
    typedef double real_t;
    enum { COMPLEX = 1, PANEL = 8 };
};
#define QR_REAL(T) typename qr_type<T>::real_t
#define QR_BITS(R) typename qr_real<R>::bits_t

/* ---- real ---- */
QR_INLINE float qr_fma(float a, float b, float c)
{
    return fmaf(a, b, c);
}
QR_INLINE double qr_fma(double a, double b, double c)
{
    return fma(a, b, c);
}
QR_INLINE float qr_sqrt(float x)
{
    return sqrtf(x);
}
QR_INLINE double qr_sqrt(double x)
{
    return sqrt(x);
}
QR_INLINE float qr_sign(float x, float sign)
{
    return copysignf(x, sign);
}
QR_INLINE double qr_sign(double x, double sign)
{
    return copysign(x, sign);
}
QR_INLINE unsigned qr_size_bits(float x)
{
    return __float_as_uint(x) & ~qr_real<float>::SIGN;
}
QR_INLINE unsigned long long qr_size_bits(double x)
{
    return (unsigned long long)__double_as_longlong(x) & ~qr_real<double>::SIGN;
}
QR_INLINE float qr_from_bits(unsigned bits)
{
    return __uint_as_float(bits);
}
QR_INLINE double qr_from_bits(unsigned long long bits)
{
    return __longlong_as_double((long long)bits);
}
/* 2^e within the normal range. */
template <class R> QR_INLINE R qr_power(int e)
{
    return qr_from_bits((QR_BITS(R))(e + qr_real<R>::BIAS) << qr_real<R>::FRACTION);
}
/* Exponent of the number with these bits: of a subnormal one the smallest normal's. */
template <class R> QR_INLINE int qr_exponent(QR_BITS(R) bits)
{
    const int e = (int)(bits >> qr_real<R>::FRACTION);
    return (e > 0 ? e : 1) - qr_real<R>::BIAS;
}

/* ---- any type: real part, imaginary part (0), and a number from them ---- */
template <class R> QR_INLINE R qr_re(R x)
{
    return x;
}
QR_INLINE float qr_re(cfloat_t x)
{
    return x.re;
}
QR_INLINE double qr_re(cdouble_t x)
{
    return x.re;
}
QR_INLINE float qr_im(float)
{
    return 0;
}
QR_INLINE double qr_im(double)
{
    return 0;
}
QR_INLINE float qr_im(cfloat_t x)
{
    return x.im;
}
QR_INLINE double qr_im(cdouble_t x)
{
    return x.im;
}
template <class T> QR_INLINE T qr_make(QR_REAL(T) re, QR_REAL(T) im)
{
    if constexpr (qr_type<T>::COMPLEX)
        return T{re, im};
    else
        return re;
}
template <class T> QR_INLINE T qr_zero()
{
    return qr_make<T>(0, 0);
}
template <class T> QR_INLINE T qr_one()
{
    return qr_make<T>(1, 0);
}
template <class T> QR_INLINE T qr_conj(T x)
{
    return qr_make<T>(qr_re(x), -qr_im(x));
}
/* Of a factor, never of a sum: compilers make -a b - c of -(a b + c), where a zero may have the
 * other sign. */
template <class T> QR_INLINE T qr_neg(T x)
{
    return qr_make<T>(-qr_re(x), -qr_im(x));
}
template <class T> QR_INLINE T qr_add(T a, T b)
{
    if constexpr (qr_type<T>::COMPLEX)
        return T{a.re + b.re, a.im + b.im};
    else
        return a + b;
}
template <class T> QR_INLINE T qr_scale(T x, QR_REAL(T) factor)
{
    return qr_make<T>(qr_re(x) * factor, qr_im(x) * factor);
}
/* a b + c */
template <class T> QR_INLINE T qr_mac(T a, T b, T c)
{
    if constexpr (qr_type<T>::COMPLEX)
        return T{qr_fma(-a.im, b.im, qr_fma(a.re, b.re, c.re)),
                 qr_fma(a.im, b.re, qr_fma(a.re, b.im, c.im))};
    else
        return qr_fma(a, b, c);
}
/* conj(a) b + c */
template <class T> QR_INLINE T qr_cmac(T a, T b, T c)
{
    return qr_mac(qr_conj(a), b, c);
}
template <class T> QR_INLINE T qr_mul(T a, T b)
{
    return qr_mac(a, b, qr_zero<T>());
}
template <class T> QR_INLINE bool qr_is_zero(T x)
{
    return qr_re(x) == 0 && qr_im(x) == 0;
}
/* Bits of the larger part's magnitude; those of NaN and Inf are the largest. */
template <class T> QR_INLINE QR_BITS(QR_REAL(T)) qr_peak(T x)
{
    const QR_BITS(QR_REAL(T)) re = qr_size_bits(qr_re(x));
    if constexpr (!qr_type<T>::COMPLEX)
        return re;
    const QR_BITS(QR_REAL(T)) im = qr_size_bits(qr_im(x));
    return re > im ? re : im;
}
template <class T> QR_INLINE T qr_nan()
{
    typedef QR_REAL(T) R;
    return qr_make<T>(qr_from_bits(qr_real<R>::NOT), qr_from_bits(qr_real<R>::NOT));
}

/* x 2^e; an entry that would vanish keeps its sign as the smallest number, so that a tail is zero
 * only when all of it is. */
template <class R> QR_INLINE R qr_shift_part(R x, int e)
{
    const R y = x * qr_power<R>(e / 2) * qr_power<R>(e - e / 2);
    return y == 0 && x != 0 ? qr_sign(qr_from_bits((QR_BITS(R))1), x) : y;
}
template <class T> QR_INLINE T qr_shift(T x, int e)
{
    return qr_make<T>(qr_shift_part(qr_re(x), e), qr_shift_part(qr_im(x), e));
}

/* What a column with the largest entry of these bits is divided by, as an exponent: 0 mostly. */
template <class R> QR_INLINE int qr_column_shift(QR_BITS(R) peak)
{
    const int e = qr_exponent<R>(peak);
    if (peak == 0 || (e >= qr_real<R>::LOW && e < qr_real<R>::HIGH))
        return 0;
    return e < 0 ? e : (int)qr_real<R>::DROP;
}

/* ---- a reflector H = I - tau v v^H, H^H x = beta e_1 (LAPACK's larfg) ----
 * The tail of v is (x pre) scale; pre is a power of two that is 1 unless the squares of the tail
 * left the range, and `square` is the sum of squares of x pre below alpha. */
template <class T> struct qr_reflector {
    T tau, scale;
    QR_REAL(T) pre, beta;
};

/* alpha and square are of x pre; identity: tail (and imaginary part of alpha) are exactly zero. */
template <class T>
QR_INLINE qr_reflector<T> qr_reflect(T alpha, QR_REAL(T) square, QR_REAL(T) pre, bool identity)
{
    typedef QR_REAL(T) R;
    qr_reflector<T> h = {qr_zero<T>(), qr_zero<T>(), pre, qr_re(alpha) * (1 / pre)};
    if (identity)
        return h;
    const R ar = qr_re(alpha), ai = qr_im(alpha);
    const R norm = qr_sqrt(qr_fma(ar, ar, qr_fma(ai, ai, square)));
    const R beta = -qr_sign(norm, ar);
    const R dr = ar - beta, inverse = 1 / qr_fma(dr, dr, ai * ai);
    h.tau = qr_make<T>((beta - ar) / beta, -ai / beta);
    h.scale = qr_type<T>::COMPLEX ? qr_make<T>(dr * inverse, -ai * inverse) : qr_make<T>(1 / dr, 0);
    h.beta = beta * (1 / pre);
    return h;
}
/* A sum of squares that needs no second look. */
template <class R> QR_INLINE bool qr_square_safe(R square)
{
    return square >= qr_power<R>(qr_real<R>::LEAST) && square <= qr_power<R>(qr_real<R>::BIAS - 2);
}
/* pre for entries whose largest has these bits. */
template <class R> QR_INLINE R qr_pre(QR_BITS(R) peak)
{
    const int e = qr_exponent<R>(peak), most = qr_real<R>::BIAS - 3;
    return qr_power<R>(-e > most ? most : -e);
}

#endif
