/* Constants, classification, and the functions of which the results are exact. Those that need a libm are not declared. */
#ifndef FOUNDRY_MATH_H
#define FOUNDRY_MATH_H

#include <stdint.h>

typedef float float_t;
typedef double double_t;

#define HUGE_VAL __builtin_huge_val()
#define HUGE_VALF __builtin_huge_valf()
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")

#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440

#define isnan(x) __builtin_isnan(x)
#define isinf(x) __builtin_isinf(x)
#define isfinite(x) __builtin_isfinite(x)
#define isnormal(x) __builtin_isnormal(x)
#define signbit(x)                                                                                                     \
    (sizeof(x) == sizeof(float) ? (int)(__foundry_bits_f32((float)(x)) >> 31)                                          \
                                : (int)(__foundry_bits_f64((double)(x)) >> 63))

static inline uint32_t __foundry_bits_f32(float x)
{
    union {
        float x;
        uint32_t bits;
    } both = {x};
    return both.bits;
}

static inline uint64_t __foundry_bits_f64(double x)
{
    union {
        double x;
        uint64_t bits;
    } both = {x};
    return both.bits;
}

static inline float __foundry_f32(uint32_t bits)
{
    union {
        uint32_t bits;
        float x;
    } both = {bits};
    return both.x;
}

static inline double __foundry_f64(uint64_t bits)
{
    union {
        uint64_t bits;
        double x;
    } both = {bits};
    return both.x;
}

/* For both types: F: the functions' suffix; BITS of the type, of which MANTISSA are behind the point. */
#define __FOUNDRY_MATH(type, F, BITS, MANTISSA, BIAS)                                                                  \
    static inline type fabs##F(type x)                                                                                 \
    {                                                                                                                  \
        return __foundry_f##BITS(__foundry_bits_f##BITS(x) & ~((uint##BITS##_t)1 << (BITS - 1)));                      \
    }                                                                                                                  \
    static inline type copysign##F(type x, type sign)                                                                  \
    {                                                                                                                  \
        uint##BITS##_t bit = (uint##BITS##_t)1 << (BITS - 1);                                                          \
        return __foundry_f##BITS((__foundry_bits_f##BITS(x) & ~bit) | (__foundry_bits_f##BITS(sign) & bit));           \
    }                                                                                                                  \
    static inline type fmin##F(type x, type y) { return isnan(y) || x < y ? x : y; }                                   \
    static inline type fmax##F(type x, type y) { return isnan(y) || x > y ? x : y; }                                   \
    static inline type trunc##F(type x)                                                                                \
    {                                                                                                                  \
        uint##BITS##_t bits = __foundry_bits_f##BITS(x);                                                               \
        int exponent = (int)(bits >> MANTISSA & (2 * BIAS + 1)) - BIAS;                                                \
        if (exponent < 0)                                                                                              \
            return __foundry_f##BITS(bits & (uint##BITS##_t)1 << (BITS - 1));                                          \
        if (exponent >= MANTISSA)                                                                                      \
            return x;                                                                                                  \
        return __foundry_f##BITS(bits & ~(((uint##BITS##_t)1 << (MANTISSA - exponent)) - 1));                          \
    }                                                                                                                  \
    static inline type floor##F(type x)                                                                                \
    {                                                                                                                  \
        type whole = trunc##F(x);                                                                                      \
        return whole > x ? whole - 1 : whole;                                                                          \
    }                                                                                                                  \
    static inline type ceil##F(type x)                                                                                 \
    {                                                                                                                  \
        type whole = trunc##F(x);                                                                                      \
        return copysign##F(whole < x ? whole + 1 : whole, x);                                                          \
    }                                                                                                                  \
    static inline type round##F(type x)                                                                                \
    {                                                                                                                  \
        type whole = trunc##F(x);                                                                                      \
        return copysign##F(fabs##F(x - whole) >= (type)0.5 ? fabs##F(whole) + 1 : whole, x);                           \
    }                                                                                                                  \
    /* One bit of the root after the other; rounded to nearest. */                                                     \
    static __attribute__((noinline, unused)) type sqrt##F(type x)                                                      \
    {                                                                                                                  \
        if (isnan(x) || x == 0 || (x > 0 && isinf(x)))                                                                 \
            return x;                                                                                                  \
        if (x < 0)                                                                                                     \
            return NAN;                                                                                                \
        uint##BITS##_t bits = __foundry_bits_f##BITS(x);                                                               \
        uint##BITS##_t hidden = (uint##BITS##_t)1 << MANTISSA;                                                         \
        int exponent = (int)(bits >> MANTISSA) - BIAS;                                                                 \
        uint##BITS##_t rest = bits & (hidden - 1);                                                                     \
        if (exponent == -BIAS)                                                                                         \
            for (exponent++; rest < hidden; exponent--)                                                                \
                rest <<= 1;                                                                                            \
        else                                                                                                           \
            rest |= hidden;                                                                                            \
        if (exponent & 1)                                                                                              \
            rest <<= 1;                                                                                                \
        exponent >>= 1;                                                                                                \
        uint##BITS##_t root = 0, twice = 0;                                                                            \
        rest <<= 1;                                                                                                    \
        for (uint##BITS##_t bit = hidden << 1; bit; bit >>= 1) {                                                       \
            uint##BITS##_t next = twice + bit;                                                                         \
            if (next <= rest) {                                                                                        \
                twice = next + bit;                                                                                    \
                rest -= next;                                                                                          \
                root += bit;                                                                                           \
            }                                                                                                          \
            rest <<= 1;                                                                                                \
        }                                                                                                              \
        root += root & 1;                                                                                              \
        return __foundry_f##BITS((root >> 1) + ((uint##BITS##_t)(exponent + BIAS - 1) << MANTISSA));                   \
    }

__FOUNDRY_MATH(float, f, 32, 23, 127)
__FOUNDRY_MATH(double, , 64, 52, 1023)
#undef __FOUNDRY_MATH

#endif
