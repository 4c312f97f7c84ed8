/* C as a DPU has it: sizes, arithmetic of all types, structures, calls, MRAM variables. */
#include <defs.h>
#include <float.h>
#include <inttypes.h>
#include <limits.h>
#include <mram.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "checks.h"

#if !defined(__DPU__) || !defined(__dpu_v1A__) || defined(__x86_64__) || defined(__SPIR__)
#error the macros are not a DPU's
#endif

_Static_assert(sizeof(void *) == 4 && sizeof(size_t) == 4 && sizeof(int) == 4, "32-bit pointers");
_Static_assert(sizeof(long) == 8 && _Alignof(long) == 8 && sizeof(long double) == 8, "64-bit long");
_Static_assert(sizeof(struct {
                   char c;
                   double d;
               }) == 16 &&
                   sizeof(struct {
                       char c;
                       int i;
                   }) == 8,
               "natural alignment");
_Static_assert(_Alignof(struct { char a[40]; }) == 1, "arrays are aligned as their elements");

struct point {
    int32_t x;
    int64_t y;
    uint8_t tag[12];
};

static int32_t constants[4] = {1, -2, 3, INT32_MIN};
static const char *const names[] = {"zero", "one", "two"};
__mram_noinit uint8_t bytes[16];
__mram_noinit int16_t halves[8];
__mram_noinit int64_t longs[4];
__mram_noinit float reals[4];
__mram_noinit struct point points[4];
__mram int32_t told[3] = {7, 8, 9};

__attribute__((noinline)) static struct point moved(struct point from, int32_t by)
{
    from.x += by;
    from.y -= by;
    from.tag[11] ^= (uint8_t)by;
    return from;
}

__attribute__((noinline)) static double sum(int count, ...)
{
    va_list list, again;
    double total = 0;
    va_start(list, count);
    va_copy(again, list);
    for (int i = 0; i < count; i++) {
        switch (va_arg(list, int)) {
        case 0: total += va_arg(list, int); break;
        case 1: total += va_arg(list, double); break;
        case 2: total += (double)va_arg(list, int64_t); break;
        case 3: total += (double)strlen(va_arg(list, const char *)); break;
        default: total += 1e9;
        }
    }
    va_end(list);
    total += 100 * va_arg(again, int);
    va_end(again);
    return total;
}

__attribute__((noinline)) static uint32_t fibonacci(uint32_t n)
{
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

static int32_t twice(int32_t x) { return 2 * x; }
static int32_t negated(int32_t x) { return -x; }

static void integers(void)
{
    int32_t a = HIDDEN(int32_t, -100007), b = HIDDEN(int32_t, 13);
    uint32_t u = HIDDEN(uint32_t, 4000000000u);
    int64_t la = HIDDEN(int64_t, -10000000000007), lb = HIDDEN(int64_t, 1234567);
    uint64_t lu = HIDDEN(uint64_t, 0xfedcba9876543210);
    int16_t s = HIDDEN(int16_t, -12345);
    int8_t c = HIDDEN(int8_t, -77);
    uint8_t uc = HIDDEN(uint8_t, 200);
    CHECK(a + b == -99994 && a - b == -100020 && a * b == -1300091);
    CHECK(a / b == -7692 && a % b == -11);
    CHECK(u / 7 == 571428571 && u % 7 == 3 && u >> 3 == 500000000 && (int32_t)u >> 3 == -36870912);
    CHECK(la + lb == -9999998765440 && la * 3 == -30000000000021 && la / lb == -8100005 && la % lb == -1127172);
    CHECK(lu >> 12 == 0xfedcba9876543 && lu << 4 == 0xedcba98765432100 && (int64_t)lu >> 60 == -1);
    CHECK(lu / 10 == 1836475854449306472 && lu % 1000 == 720);
    CHECK((int16_t)(s * 3) == (int16_t)-37035 && (int8_t)(c - 100) == 79 && (uint8_t)(uc + 100) == 44);
    CHECK(c * s == 950565 && uc * uc == 40000);
    CHECK(__builtin_popcount(u) == 13 && __builtin_clz(HIDDEN(uint32_t, 1)) == 31 &&
          __builtin_ctz(HIDDEN(uint32_t, 8)) == 3);
    CHECK(__builtin_bswap32(HIDDEN(uint32_t, 0x01020304)) == 0x04030201);
    CHECK((a < b) + (u > 5) * 2 + ((uint32_t)a < 5) * 4 == 3);
    CHECK((la < lb) && !(lu < 1) && (la == la) && (int32_t)la == (int32_t)(uint64_t)la);
    int32_t least = HIDDEN(int32_t, INT32_MIN), minus = HIDDEN(int32_t, -1);
    int64_t long_least = HIDDEN(int64_t, INT64_MIN), long_minus = HIDDEN(int64_t, -1);
    int8_t small = HIDDEN(int8_t, INT8_MIN), small_minus = HIDDEN(int8_t, -1);
    CHECK(least / minus == INT32_MIN && least % minus == 0 && a / minus == 100007 && a % minus == 0);
    CHECK(long_least / long_minus == INT64_MIN && long_least % long_minus == 0);
    CHECK((int8_t)(small / small_minus) == INT8_MIN && small % small_minus == 0);
    int32_t overflow;
    CHECK(__builtin_add_overflow(HIDDEN(int32_t, INT32_MAX), 1, &overflow) && overflow == INT32_MIN);
}

static void floats(void)
{
    float f = HIDDEN(float, 1.5f), g = HIDDEN(float, -0.1f);
    double d = HIDDEN(double, 1e300), e = HIDDEN(double, 3.0);
    CHECK(f + g == 1.4f && f * g == -0.15f && f / g == -15.0f && f - g == 1.6f);
    CHECK(d / e == 3.3333333333333336e299 && d * 1e10 > DBL_MAX && e * e == 9);
    CHECK((int32_t)HIDDEN(float, -7.9f) == -7 && (uint32_t)HIDDEN(float, 3e9f) == 3000000000u);
    CHECK((float)HIDDEN(int32_t, 16777217) == 16777216.0f &&
          (double)HIDDEN(int64_t, -9007199254740993) == -9007199254740992.0);
    CHECK((float)HIDDEN(uint64_t, 0xffffffffffffffff) == 18446744073709551616.0f);
    CHECK((float)HIDDEN(double, 0.1) == 0.1f && (double)HIDDEN(float, 0.1f) != 0.1);
    float nan = HIDDEN(float, 0.0f) / HIDDEN(float, 0.0f);
    CHECK(nan != nan && !(nan < f) && !(nan >= f));
    CHECK(HIDDEN(float, 1e-45f) > 0 && HIDDEN(float, 1e-45f) / 2 == 0); /* subnormal numbers are kept */
    CHECK(-HIDDEN(float, 0.0f) == 0 && 1 / -HIDDEN(float, 0.0f) < 0);
    CHECK(__builtin_fabsf(g) == 0.1f && __builtin_copysign(e, -1.0) == -3);
    CHECK((f > g ? f : g) == 1.5f && (d < e ? d : e) == 3);
}

static void structures(void)
{
    struct point here = {1, 2, "abcdefghijk"}, there = moved(here, 5), copy = there;
    CHECK(there.x == 6 && there.y == -3 && there.tag[0] == 'a' && there.tag[11] == 5 && here.x == 1);
    CHECK(memcmp(&copy, &there, sizeof copy) == 0);
    struct {
        uint32_t low : 5, middle : 11, high : 16;
    } bits = {31, 1000, 60000};
    bits.middle += HIDDEN(uint32_t, 24);
    CHECK(bits.low == 31 && bits.middle == 1024 && bits.high == 60000);
    struct __attribute__((packed)) {
        uint8_t a;
        uint32_t b;
        uint64_t c;
    } packed = {1, 0x11223344, 0x5566778899aabbcc};
    packed.b += HIDDEN(uint32_t, 1);
    packed.c += HIDDEN(uint32_t, 1);
    CHECK(packed.b == 0x11223345 && packed.c == 0x5566778899aabbcd && sizeof packed == 13);
    union {
        float f;
        uint32_t u;
    } pun = {.f = HIDDEN(float, 1.0f)};
    CHECK(pun.u == 0x3f800000);
    int32_t local[20];
    memset(local, 0xff, sizeof local);
    local[HIDDEN(uint32_t, 7)] = 3;
    CHECK(local[6] == -1 && local[7] == 3 && local[19] == -1);
}

static void calls(void)
{
    int32_t (*volatile functions[])(int32_t) = {twice, negated};
    CHECK(functions[HIDDEN(uint32_t, 0)](21) == 42 && functions[HIDDEN(uint32_t, 1)](21) == -21);
    CHECK(sum(0, 5) == 500 && sum(4, 1, 2.5, 0, 3, 2, (int64_t)-10000000000, 3, "four") == 109.5 - 10000000000.0);
    CHECK(fibonacci(HIDDEN(uint32_t, 10)) == 55);
    int32_t total = 0;
    for (uint32_t i = 0; i < 12; i++) {
        switch (HIDDEN(uint32_t, i)) {
        case 0: total += 1; break;
        case 1: total += 20;
        case 2: total += 300; break;
        case 5: total += 4000; break;
        case 9: goto out;
        default: total += 50000;
        }
    }
out:
    CHECK(total == 1 + 320 + 300 + 4000 + 5 * 50000);
    CHECK(strcmp(names[HIDDEN(uint32_t, 2)], "two") == 0 && constants[HIDDEN(uint32_t, 3)] == INT32_MIN);
}

static void mram(void)
{
    for (int i = 0; i < 16; i++) bytes[i] = (uint8_t)(i * 17);
    for (int i = 0; i < 8; i++) halves[i] = (int16_t)(-i * 1000);
    for (int i = 0; i < 4; i++) longs[i] = -(int64_t)i << 40, reals[i] = i * 0.5f;
    CHECK(bytes[15] == 255 && bytes[1] == 17 && halves[7] == -7000 && longs[3] == -(3LL << 40) && reals[3] == 1.5f);
    CHECK(told[0] == 7 && told[1] == 8 && told[2] == 9);
    told[1] += 10;
    CHECK(told[0] == 7 && told[1] == 18 && told[2] == 9);
    struct point here = {1, 2, "abcdefghijk"};
    points[1] = here;
    points[2] = points[1];
    points[2].x = 77;
    points[2].tag[3] = 'X';
    struct point back = points[2];
    CHECK(back.x == 77 && back.y == 2 && back.tag[2] == 'c' && back.tag[3] == 'X' && points[1].tag[3] == 'd');
    __mram_ptr int16_t *pointer = &halves[2];
    pointer++;
    CHECK(*pointer == -3000 && pointer - halves == 3 && (uint32_t)pointer % 8 == 6);
    CHECK((uint32_t)DPU_MRAM_HEAP_POINTER % 8 == 0 && (uint32_t)DPU_MRAM_HEAP_POINTER > (uint32_t)points);
}

int main(void)
{
    if (me() != 0) return 0;
    integers();
    floats();
    structures();
    calls();
    mram();
    return 0;
}
