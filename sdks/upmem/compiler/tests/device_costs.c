/* PrIM's microbenchmark for each operation: instructions an element of a loop that loads, operates, stores and
 * advances. */
#include <defs.h>
#include <perfcounter.h>

#include "checks.h"

enum { ELEMENTS = 64 };

int8_t bytes[2 * ELEMENTS];
int16_t halves[2 * ELEMENTS];
int32_t words[2 * ELEMENTS];
uint32_t naturals[2 * ELEMENTS];
int64_t longs[2 * ELEMENTS];
float reals[2 * ELEMENTS];
double doubles[2 * ELEMENTS];

static uint64_t issued(void) { return perfcounter_get(); }

/* Instructions of twice as many elements less those of as many, an element. */
#define MEASURE(place, type, array, expression)                                                                        \
    do {                                                                                                               \
        uint64_t took[2];                                                                                              \
        type scalar = HIDDEN(type, 3);                                                                                 \
        for (int twice = 0; twice < 2; twice++) {                                                                      \
            uint32_t count = HIDDEN(uint32_t, (uint32_t)ELEMENTS << twice);                                            \
            uint64_t start = issued();                                                                                 \
            _Pragma("clang loop unroll(disable)") for (uint32_t i = 0; i < count; i++)                                 \
            {                                                                                                          \
                type value = (array)[i];                                                                               \
                (array)[i] = (type)(expression);                                                                       \
            }                                                                                                          \
            took[twice] = issued() - start;                                                                            \
        }                                                                                                              \
        (void)scalar;                                                                                                  \
        results[place] = (took[1] - took[0]) / ELEMENTS;                                                               \
    } while (0)

int main(void)
{
    perfcounter_config(COUNT_INSTRUCTIONS, true);
    for (uint32_t i = 0; i < 2 * ELEMENTS; i++)
        words[i] = naturals[i] = longs[i] = 1000000 + i, halves[i] = bytes[i] = i;
#ifdef INTEGERS
    MEASURE(0, int32_t, words, value + scalar);
    MEASURE(1, int32_t, words, value * scalar);
    MEASURE(2, int32_t, words, value / scalar);
    MEASURE(3, int32_t, words, value * 8);
    MEASURE(4, int32_t, words, value * 10);
    MEASURE(5, uint32_t, naturals, value / 16);
    MEASURE(6, int8_t, bytes, value * scalar);
    MEASURE(7, int16_t, halves, value * scalar);
    MEASURE(8, int64_t, longs, value + scalar);
    MEASURE(9, int64_t, longs, value * scalar);
    MEASURE(10, int64_t, longs, value / scalar);
    MEASURE(11, int64_t, longs, value << 3);
    MEASURE(12, int32_t, words, value > scalar ? value : scalar);
    MEASURE(13, uint32_t, naturals, (value & 0xff) * (scalar & 0xff));
#else
    MEASURE(0, float, reals, value + scalar);
    MEASURE(1, float, reals, value - scalar);
    MEASURE(2, float, reals, value *scalar);
    MEASURE(3, float, reals, value / scalar);
    MEASURE(4, double, doubles, value + scalar);
    MEASURE(5, double, doubles, value *scalar);
    MEASURE(6, double, doubles, value / scalar);
    MEASURE(7, float, reals, -value);
    MEASURE(8, float, reals, value < scalar ? value : scalar);
    MEASURE(9, float, reals, (float)(int32_t)value);
#endif
    return 0;
}
