/* MRAM as a program sees it: DMA of legal lengths, scalars through pointers, the heap, memory that nobody wrote. */
#include "conformance.h"

#include <math.h>

enum { EVERY_LENGTH, SCALARS, UNWRITTEN, HEAP, SHARED_WORD, EVERY_WRAM };
enum { ELEMENTS = 32 };

static struct dpu_set_t ready(uint32_t task) {
    struct dpu_set_t set = conformance_dpus(1, "device_memory");
    OK(dpu_copy_to(set, "task", 0, &task, sizeof task));
    return set;
}

static uint64_t pattern(uint32_t i) { return 0x0123456789abcdefu * (i + 1); }

static void write_pattern(struct dpu_set_t set) {
    uint64_t words[256];
    for (uint32_t i = 0; i < 256; i++) words[i] = pattern(i);
    OK(dpu_copy_to(set, "from", 0, words, sizeof words));
}

CONFORMS(dma_moves_every_length_from_8_to_2048, "mram_read, mram_write: multiples of 8, neither more nor fewer bytes") {
    struct dpu_set_t set = ready(EVERY_LENGTH), dpu = conformance_first(set);
    uint64_t words[256], seen[2];
    write_pattern(set);
    OK(dpu_launch(set, DPU_SYNCHRONOUS));
    OK(dpu_copy_from(dpu, "to", 0, words, sizeof words));
    OK(dpu_copy_from(dpu, "seen", 0, seen, sizeof seen));
    EXPECT_EQUAL(seen[0], 0);
    EXPECT_EQUAL(seen[1], 256);
    for (uint32_t i = 0; i < 256; i++) EXPECT_EQUAL(words[i], pattern(i));
    OK(dpu_free(set));
}

CONFORMS(dma_takes_any_aligned_wram_address, "globals and stack, at multiples of 8") {
    struct dpu_set_t set = ready(EVERY_WRAM), dpu = conformance_first(set);
    uint64_t words[6];
    write_pattern(set);
    OK(dpu_launch(set, DPU_SYNCHRONOUS));
    OK(dpu_copy_from(dpu, "to", 0, words, sizeof words));
    for (uint32_t i = 0; i < 4; i++) EXPECT_EQUAL(words[i], pattern(i));
    EXPECT_EQUAL(words[4], pattern(2));
    EXPECT_EQUAL(words[5], pattern(3));
    OK(dpu_free(set));
}

CONFORMS(scalars_are_read_and_written_through_mram_pointers, "the compiler makes DMA of them, of 8 bytes each") {
    struct dpu_set_t set = ready(SCALARS), dpu = conformance_first(set);
    uint8_t bytes[ELEMENTS];
    uint16_t halves[ELEMENTS];
    uint32_t words[ELEMENTS];
    float floats[ELEMENTS];
    uint64_t longs[ELEMENTS];
    for (uint32_t i = 0; i < ELEMENTS; i++) {
        bytes[i] = (uint8_t)(7 * i);
        halves[i] = (uint16_t)(1000 * i);
        words[i] = 100000000 * i;
        floats[i] = 0.5f * (float)i;
        longs[i] = pattern(i);
    }
    OK(dpu_copy_to(set, "bytes_in", 0, bytes, sizeof bytes));
    OK(dpu_copy_to(set, "halves_in", 0, halves, sizeof halves));
    OK(dpu_copy_to(set, "words_in", 0, words, sizeof words));
    OK(dpu_copy_to(set, "floats_in", 0, floats, sizeof floats));
    OK(dpu_copy_to(set, "longs_in", 0, longs, sizeof longs));
    OK(dpu_launch(set, DPU_SYNCHRONOUS));
    OK(dpu_copy_from(dpu, "bytes_out", 0, bytes, sizeof bytes));
    OK(dpu_copy_from(dpu, "halves_out", 0, halves, sizeof halves));
    OK(dpu_copy_from(dpu, "words_out", 0, words, sizeof words));
    OK(dpu_copy_from(dpu, "floats_out", 0, floats, sizeof floats));
    OK(dpu_copy_from(dpu, "longs_out", 0, longs, sizeof longs));
    for (uint32_t i = 0; i < ELEMENTS; i++) {
        EXPECT_EQUAL(bytes[i], (uint8_t)(7 * i + 1));
        EXPECT_EQUAL(halves[i], (uint16_t)(1000 * i + 1));
        EXPECT_EQUAL(words[i], 100000000 * i + 1);
        EXPECT(floats[i] == 0.5f * (float)i + 1.0f);
        EXPECT(longs[i] == pattern(i) + 1);
    }
    OK(dpu_free(set));
}

CONFORMS(neighbouring_words_of_8_bytes_are_independent, "tasklets may write different 8-byte words at once") {
    struct dpu_set_t set = ready(SHARED_WORD), dpu = conformance_first(set);
    uint64_t longs[ELEMENTS];
    OK(dpu_launch(set, DPU_SYNCHRONOUS));
    OK(dpu_copy_from(dpu, "longs_out", 0, longs, sizeof longs));
    for (uint32_t i = 0; i < ELEMENTS; i++) EXPECT_EQUAL(longs[i], 100 * (i % 2) + i);
    OK(dpu_free(set));
}

CONFORMS(the_heap_starts_where_the_host_puts_it, "DPU_MRAM_HEAP_POINTER is the address of __sys_used_mram_end") {
    struct dpu_set_t set = ready(HEAP), dpu = conformance_first(set);
    uint8_t bytes[64], got[64];
    for (uint32_t i = 0; i < 64; i++) bytes[i] = (uint8_t)(3 * i);
    OK(dpu_copy_to(set, DPU_MRAM_HEAP_POINTER_NAME, 0, bytes, 64));
    OK(dpu_launch(set, DPU_SYNCHRONOUS));
    OK(dpu_copy_from(dpu, DPU_MRAM_HEAP_POINTER_NAME, 60 << 20, got, 64));
    for (uint32_t i = 0; i < 64; i++) EXPECT_EQUAL(got[i], bytes[i] ^ 0xff);
    OK(dpu_free(set));
}

/* Whether 8 bytes are no number however they are read, and not small integers. */
static void expect_poison(uint64_t word) {
    double real64;
    float real32[2];
    memcpy(&real64, &word, 8);
    memcpy(real32, &word, 8);
    EXPECT(isnan(real64));
    EXPECT(isnan(real32[0]) && isnan(real32[1]));
    for (int i = 0; i < 4; i++) {
        const uint16_t half = (uint16_t)(word >> 16 * i);
        EXPECT((half & 0x7c00) == 0x7c00 && (half & 0x03ff) != 0);
    }
    EXPECT((uint32_t)word > 1000000 && (int32_t)word != -1);
}

STRICTER(unwritten_mram_is_poison_for_the_program, "whatever an earlier program left there, often zeros") {
    struct dpu_set_t set = ready(UNWRITTEN), dpu = conformance_first(set);
    uint64_t seen[4];
    OK(dpu_launch(set, DPU_SYNCHRONOUS));
    OK(dpu_copy_from(dpu, "seen", 0, seen, sizeof seen));
    expect_poison(seen[0]);
    expect_poison(seen[1]);
    expect_poison(seen[2]);
    EXPECT_EQUAL((uint32_t)seen[3], 1);
    EXPECT_EQUAL(seen[3] >> 32, seen[0] >> 32);
    OK(dpu_free(set));
}

STRICTER(unwritten_mram_is_poison_for_the_host, "whatever an earlier program left there, often zeros") {
    struct dpu_set_t set = ready(UNWRITTEN), dpu = conformance_first(set);
    uint64_t word = 0;
    OK(dpu_copy_from(dpu, "to", 0, &word, 8));
    expect_poison(word);
    OK(dpu_copy_from(dpu, DPU_MRAM_HEAP_POINTER_NAME, 32 << 20, &word, 8));
    expect_poison(word);
    OK(dpu_free(set));
}

STRICTER(a_new_allocation_is_poison_again, "an earlier user's data stay in MRAM") {
    struct dpu_set_t set = ready(UNWRITTEN);
    uint64_t word = 1;
    OK(dpu_copy_to(set, "to", 0, &word, 8));
    OK(dpu_free(set));
    set = ready(UNWRITTEN);
    OK(dpu_copy_from(conformance_first(set), "to", 0, &word, 8));
    expect_poison(word);
    OK(dpu_free(set));
}
