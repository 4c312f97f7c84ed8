/* The device library beyond the essentials: allocators of blocks, locks by number, unaligned MRAM, strings. */
#include "conformance.h"

#include "library.h"

enum { TASKLETS = 8 };

static uint32_t results[16];

static struct dpu_set_t ready(uint32_t task) {
    struct dpu_set_t set = conformance_dpus(1, "device_library");
    OK(dpu_copy_to(set, "task", 0, &task, sizeof task));
    return set;
}

static void launch(struct dpu_set_t set) {
    OK(dpu_launch(set, DPU_SYNCHRONOUS));
    OK(dpu_copy_from(conformance_first(set), "results", 0, results, sizeof results));
}

static void run(uint32_t task) {
    struct dpu_set_t set = ready(task);
    launch(set);
    OK(dpu_free(set));
}

CONFORMS(blocks_of_one_size_come_and_go, "fsb_alloc, fsb_get (NULL when none is left), fsb_free") {
    run(BLOCKS);
    EXPECT(results[0] == 1 && results[1] == 1 && results[2] == 1);
}

CONFORMS(blocks_of_any_size_come_and_go, "buddy_init, buddy_alloc, buddy_free; freed neighbours are joined") {
    run(BUDDIES);
    EXPECT_EQUAL(results[0], 4);
    EXPECT_EQUAL(results[1], 0);
    EXPECT_EQUAL(results[2], 1);
}

static void expect_counts(uint32_t task) {
    run(task);
    for (uint32_t i = 0; i < 16; i++) EXPECT_EQUAL(results[i], 20 * TASKLETS);
}

CONFORMS(a_pool_of_mutexes_locks_by_number, "mutex_pool_lock takes the mutex of the number modulo the pool's size") {
    expect_counts(MUTEX_POOL);
}

CONFORMS(virtual_mutexes_lock_by_number, "vmutex_lock: as many as one likes on a few hardware mutexes") {
    expect_counts(VIRTUAL_MUTEXES);
}

CONFORMS(an_atomic_bit_is_a_lock, "ATOMIC_BIT_ACQUIRE waits until the bit is free") { expect_counts(ATOMIC_BIT); }

CONFORMS(updates_of_mram_words_are_atomic, "mram_update_int_atomic, mram_write_byte_atomic: safe among tasklets") {
    struct dpu_set_t set = ready(ATOMIC_UPDATES), dpu = conformance_first(set);
    const int32_t start[8] = {1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000};
    const uint8_t blank[8] = {0};
    int32_t counters[8];
    uint8_t bytes[8];
    OK(dpu_copy_to(set, "counters", 0, start, sizeof start));
    OK(dpu_copy_to(set, "copy", 0, blank, sizeof blank));
    launch(set);
    OK(dpu_copy_from(dpu, "counters", 0, counters, sizeof counters));
    OK(dpu_copy_from(dpu, "copy", 0, bytes, sizeof bytes));
    EXPECT_EQUAL(counters[0], 1000 + TASKLETS * 5 * 3);
    EXPECT_EQUAL(counters[1], 2000 + TASKLETS * 5 * 3);
    EXPECT_EQUAL(counters[2], 3000);
    for (uint32_t i = 0; i < 8; i++) EXPECT_EQUAL(bytes[i], i + 1);
    OK(dpu_free(set));
}

CONFORMS(unaligned_pieces_of_mram_are_moved, "mram_read_unaligned, mram_write_unaligned: any address, length") {
    struct dpu_set_t set = ready(UNALIGNED), dpu = conformance_first(set);
    uint8_t bytes[256], got[256];
    for (uint32_t i = 0; i < 256; i++) bytes[i] = (uint8_t)i;
    OK(dpu_copy_to(set, "text", 0, bytes, sizeof bytes));
    launch(set);
    EXPECT_EQUAL(results[0], 0);
    OK(dpu_copy_from(dpu, "text", 0, got, sizeof got));
    for (uint32_t i = 0; i < 256; i++) EXPECT_EQUAL(got[i], i >= 67 && i < 80 ? 100 + i - 67 : i);
    OK(dpu_free(set));
}

CONFORMS(strings_are_as_in_c, "string.h has C's functions") {
    run(STRINGS);
    EXPECT_EQUAL(results[0], 7);
    EXPECT_EQUAL(results[1], 14);
    EXPECT_EQUAL(results[2], 1);
    EXPECT_EQUAL(results[3], 1);
}

static void expect_fault(uint32_t task, const char *word) {
    struct dpu_set_t set = ready(task);
    conformance_hear();
    const dpu_error_t error = dpu_launch(set, DPU_SYNCHRONOUS);
    dpu_log_read(conformance_first(set), stderr);
    char *said = conformance_heard();
    EXPECT_ERROR(error, DPU_ERR_DPU_FAULT);
    if (conformance_emulated()) EXPECT_WORDS(said, "tasklet 0", word);
    free(said);
    OK(dpu_free(set));
}

CONFORMS(halt_is_a_fault, "halt() executes a fault instruction: DPU_FAULT") { expect_fault(HALT, "halt"); }

CONFORMS(a_failed_assertion_is_a_fault, "assert() prints to the log and halts: DPU_FAULT") {
    expect_fault(ASSERTION, "task == BLOCKS");
}
