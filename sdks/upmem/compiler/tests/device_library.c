/* The library for DPU programs: strings, allocators, unaligned MRAM, locks in pools, instructions as macros. */
#include <alloc.h>
#include <assert.h>
#include <barrier.h>
#include <built_ins.h>
#include <ctype.h>
#include <defs.h>
#include <errno.h>
#include <mram.h>
#include <mram_unaligned.h>
#include <mutex_pool.h>
#include <perfcounter.h>
#include <stdlib.h>
#include <string.h>
#include <vmutex.h>

#include "checks.h"

enum { ROUNDS = 20, COUNTERS = 10 };

BARRIER_INIT(everybody, NR_TASKLETS);
MUTEX_POOL_INIT(pool, 4);
VMUTEX_INIT(virtual, 64, 2);
ATOMIC_BIT_INIT(bit);
static volatile uint32_t pooled[COUNTERS], singly[COUNTERS], bitwise;
__mram_noinit uint8_t area[256];
__mram_noinit uint8_t letters[4 * NR_TASKLETS];
__mram_noinit int32_t numbers[2];
__mram_noinit uint8_t touching[5 * NR_TASKLETS + 8];
__dma_aligned static uint8_t buffer[272];

static void strings(void)
{
    char text[32], other[32];
    CHECK(strlen("") == 0 && strlen("hello") == 5 && strnlen("hello", 3) == 3);
    CHECK(strcmp(strcpy(text, "alpha"), "alpha") == 0 && strcmp(strcat(text, "bet"), "alphabet") == 0);
    CHECK(strcmp("a", "b") < 0 && strcmp("b", "a") > 0 && strcmp("ab", "a") > 0 && strncmp("abc", "abd", 2) == 0);
    CHECK(strchr(text, 'b') == text + 5 && strrchr(text, 'a') == text + 4 && strchr(text, 'z') == NULL &&
          *strchr(text, 0) == 0);
    CHECK(strstr(text, "hab") == text + 3 && strstr(text, "xyz") == NULL && strstr(text, "") == text);
    memset(other, '.', sizeof other);
    strncpy(other, "ab", 4);
    CHECK(other[1] == 'b' && other[2] == 0 && other[3] == 0 && other[4] == '.');
    CHECK(strcmp(strncat(strcpy(text, "x"), "yz", 1), "xy") == 0);
    CHECK(memchr("abc", 'c', 3) != NULL && memchr("abc", 'c', 2) == NULL && memcmp("abc", "abd", 3) < 0);
    for (uint32_t i = 0; i < 32; i++) other[i] = (char)i;
    for (uint32_t to = 0; to < 8; to++)
        for (uint32_t from = 0; from < 8; from++)
            for (uint32_t length = 0; length < 20; length++) {
                memset(text, 99, sizeof text);
                memcpy(text + to, other + from, length);
                uint32_t right = 0;
                for (uint32_t i = 0; i < 32; i++) right += text[i] == (i - to < length ? (char)(from + i - to) : 99);
                CHECK(right == 32);
                for (uint32_t i = 0; i < 32; i++) text[i] = (char)i;
                memmove(text + to, text + from, length);
                right = 0;
                for (uint32_t i = 0; i < 32; i++) right += text[i] == (char)(i - to < length ? from + i - to : i);
                CHECK(right == 32);
            }
    CHECK(atoi(" -123x") == -123 && atol("9000000000") == 9000000000 && abs(-5) == 5 &&
          labs(-5000000000) == 5000000000);
    CHECK(isdigit('7') && !isdigit('a') && isalpha('Q') && toupper('q') == 'Q' && isspace('\n') && !ispunct('a') &&
          ispunct('!'));
}

static void allocators(void)
{
    uint8_t *first = mem_alloc(5), *second = mem_alloc(16);
    CHECK((uint32_t)first % 8 == 0 && (uint32_t)second % 8 == 0 && second - first == 8);
    fsb_allocator_t blocks = fsb_alloc(12, 3);
    void *a = fsb_get(blocks), *b = fsb_get(blocks), *c = fsb_get(blocks);
    CHECK(a && b && c && a != b && b != c && a != c && fsb_get(blocks) == NULL && (uint32_t)a % 8 == 0);
    fsb_free(blocks, b);
    CHECK(fsb_get(blocks) == b);

    buddy_init(4096);
    void *held[200];
    uint32_t count = 0;
    while (count < 200 && (held[count] = buddy_alloc(32))) memset(held[count], (int)count, 32), count++;
    CHECK(count == 128 && errno == ENOMEM);
    uint32_t whole = 0;
    for (uint32_t i = 0; i < count; i++) whole += *(uint8_t *)held[i] == i && ((uint8_t *)held[i])[31] == i;
    CHECK(whole == count);
    for (uint32_t i = 0; i < count; i += 2) buddy_free(held[i]);
    CHECK(buddy_alloc(64) == NULL);
    for (uint32_t i = 1; i < count; i += 2) buddy_free(held[i]);
    uint8_t *large = buddy_alloc(4096);
    CHECK(large && (uint32_t)large % 8 == 0 && buddy_alloc(1) == NULL);
    buddy_free(large);
    uint8_t *small = buddy_alloc(40), *beside = buddy_alloc(40);
    small[39] = 5;
    CHECK(buddy_realloc(small, 60) == small);
    small = buddy_realloc(small, 500);
    CHECK(small && small[39] == 5 && small != beside);
    buddy_free(small);
    buddy_free(beside);
    buddy_reset();
    CHECK(mem_reset() <= (void *)first);
}

static void add(int *value, void *by) { *value += *(int *)by; }
static void shout(uint8_t *letter, void *by) { *letter = (uint8_t)(*letter - *(int *)by); }

static void unaligned(void)
{
    for (uint32_t i = 0; i < 256; i++) buffer[i] = (uint8_t)(i * 3);
    mram_write(buffer, area, 256);
    for (uint32_t from = 0; from < 9; from++)
        for (uint32_t length = 1; length < 20; length++) {
            uint8_t *found = mram_read_unaligned(area + from, buffer, length);
            uint32_t right = 0;
            for (uint32_t i = 0; i < length; i++) right += found[i] == (uint8_t)((from + i) * 3);
            CHECK(right == length);
        }
    for (uint32_t to = 0; to < 9; to++)
        for (uint32_t length = 0; length < 20; length++) {
            memset(buffer, 0xee, 32);
            mram_write(buffer, area, 32);
            for (uint32_t i = 0; i < 32; i++) buffer[i] = (uint8_t)i;
            mram_write_unaligned(buffer + to, area + to, length);
            mram_read(area, buffer + 32, 32);
            uint32_t right = 0;
            for (uint32_t i = 0; i < 32; i++) right += buffer[32 + i] == (i - to < length ? i : 0xee);
            CHECK(right == 32);
        }
}

static void instructions(void)
{
    uint32_t r, a = HIDDEN(uint32_t, 0x80ff7f01), b = HIDDEN(uint32_t, 0x80ee7fff);
    int32_t p;
    __builtin_cao_rr(r, a);
    CHECK(r == 17);
    __builtin_clz_rr(r, HIDDEN(uint32_t, 0));
    CHECK(r == 32);
    __builtin_cmpb4_rrr(r, a, b);
    CHECK(r == 0x01000100);
    __builtin_mul_sl_sl_rrr(p, a, b);
    CHECK(p == -1);
    __builtin_mul_sl_ul_rrr(p, b, b);
    CHECK(p == -255);
    __builtin_mul_uh_uh_rrr(p, a, b);
    CHECK(p == 127 * 127);
    __builtin_lsl_add_rrri(r, a, b, 4);
    CHECK(r == a + (b << 4));
    __builtin_rol_rrr(r, a, 8);
    CHECK(r == 0xff7f0180);
    __builtin_extsb_rr(p, b);
    CHECK(p == -1);
}

static void locks(void)
{
    for (uint32_t i = 0; i < ROUNDS; i++) {
        uint32_t which = (me() + i) % COUNTERS;
        mutex_pool_lock(&pool, which);
        uint32_t value = pooled[which];
        perfcounter_get(); /* others may run here */
        pooled[which] = value + 1;
        mutex_pool_unlock(&pool, which);
        vmutex_lock(&virtual, which);
        value = singly[which];
        perfcounter_get();
        singly[which] = value + 1;
        vmutex_unlock(&virtual, which);
        ATOMIC_BIT_ACQUIRE(bit);
        value = bitwise;
        perfcounter_get();
        bitwise = value + 1;
        ATOMIC_BIT_RELEASE(bit);
    }
    int one = 1, distance = 'a' - 'A';
    mram_update_int_atomic(&numbers[1], add, &one);
    mram_write_byte_atomic(&letters[4 * me() + 1], (uint8_t)('a' + me()));
    mram_update_byte_atomic(&letters[4 * me() + 1], shout, &distance);
    __dma_aligned uint8_t mine[16];
    uint32_t phase = (uint32_t)(touching + 5 * me()) & 7;
    memset(mine + phase, (int)me(), 5);
    mram_write_unaligned(mine + phase, touching + 5 * me(), 5);
}

int main(void)
{
    if (me() == 0) {
        strings();
        allocators();
        unaligned();
        instructions();
        mram_write_int_atomic(&numbers[1], 40);
        assert(results[0] > 100);
    }
    barrier_wait(&everybody);
    locks();
    barrier_wait(&everybody);
    if (me() != 0) return 0;
    uint32_t all = 0, each = 0;
    for (uint32_t i = 0; i < COUNTERS; i++) all += pooled[i], each += singly[i];
    CHECK(all == ROUNDS * NR_TASKLETS && each == ROUNDS * NR_TASKLETS && bitwise == ROUNDS * NR_TASKLETS);
    CHECK(numbers[1] == 40 + NR_TASKLETS);
    for (uint32_t i = 0; i < NR_TASKLETS; i++) {
        CHECK(letters[4 * i + 1] == 'A' + i);
        for (uint32_t j = 0; j < 5; j++) CHECK(touching[5 * i + j] == i);
    }
    CHECK(CLOCKS_PER_SEC == 350000000);
    return 0;
}
