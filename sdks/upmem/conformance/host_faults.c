/* What a program must not do: refused as DPU_FAULT with address, size, tasklet and rule; done rightly, it works. */
#include "conformance.h"

#include "faults.h"

enum { TASKLETS = 4 };

/* A misdeed of tasklet `culprit`, and how it is to be called in the message. */
struct deed {
    uint32_t fault, culprit, size, offset;
};

static struct dpu_set_t ready(struct deed deed) {
    struct dpu_set_t set = conformance_dpus(1, "device_faults");
    static const uint64_t written[1024];
    OK(dpu_copy_to(set, "area", 0, written, sizeof written));
    OK(dpu_copy_to(set, "fault", 0, &deed.fault, 4));
    OK(dpu_copy_to(set, "culprit", 0, &deed.culprit, 4));
    OK(dpu_copy_to(set, "size", 0, &deed.size, 4));
    OK(dpu_copy_to(set, "offset", 0, &deed.offset, 4));
    return set;
}

static void works(struct deed deed) {
    struct dpu_set_t set = ready(deed);
    uint32_t finished[TASKLETS];
    OK(dpu_launch(set, DPU_SYNCHRONOUS));
    OK(dpu_copy_from(conformance_first(set), "finished", 0, finished, sizeof finished));
    for (uint32_t i = 0; i < TASKLETS; i++) EXPECT_EQUAL(finished[i], 1);
    OK(dpu_free(set));
}

/* Launches, expects a fault, and returns what was said of it, with the log; *touched is the address. */
static char *faults(struct deed deed, uint32_t *touched) {
    struct dpu_set_t set = ready(deed), dpu = conformance_first(set);
    conformance_hear();
    const dpu_error_t error = dpu_launch(set, DPU_SYNCHRONOUS);
    dpu_log_read(dpu, stderr);
    char *said = conformance_heard();
    EXPECT_ERROR(error, DPU_ERR_DPU_FAULT);
    if (touched != NULL) OK(dpu_copy_from(dpu, "touched", 0, touched, 4));
    OK(dpu_free(set));
    /* The host goes on: another DPU does its work. */
    works((struct deed){.fault = NOTHING});
    return said;
}

/* A fault whose message names the tasklet, the address and, if it is not 0, the size. */
static char *refused(struct deed deed) {
    uint32_t touched = 0;
    char *said = faults(deed, &touched), tasklet[32], address[32], size[32];
    if (!conformance_emulated()) return said;
    snprintf(tasklet, sizeof tasklet, "tasklet %u", deed.culprit);
    snprintf(address, sizeof address, "%x", touched);
    EXPECT_WORDS(said, tasklet, address);
    if (deed.size != 0) {
        snprintf(size, sizeof size, "%u", deed.size);
        EXPECT_WORDS(said, size);
    }
    return said;
}

#define REFUSED(misdeed, ...)                                                                                          \
    do {                                                                                                               \
        char *said_ = refused(misdeed);                                                                                \
        if (conformance_emulated()) EXPECT_WORDS(said_, __VA_ARGS__);                                                  \
        free(said_);                                                                                                   \
    } while (0)
#define DEED(...) ((struct deed){__VA_ARGS__})

STRICTER(dma_of_a_misaligned_mram_address, "the low 3 bits are dropped: other bytes are moved") {
    works(DEED(MRAM_READ, 1, 64, 16));
    REFUSED(DEED(MRAM_READ, 1, 64, 20), "MRAM", "align", "8");
    REFUSED(DEED(MRAM_READ, 3, 8, 1), "MRAM", "align", "8");
    works(DEED(MRAM_WRITE, 2, 64, 16));
    REFUSED(DEED(MRAM_WRITE, 2, 64, 12), "MRAM", "align", "8");
}

STRICTER(dma_of_a_misaligned_wram_address, "the low 3 bits are dropped: other bytes are moved") {
    works(DEED(WRAM_READ, 1, 64, 24));
    REFUSED(DEED(WRAM_READ, 1, 64, 4), "WRAM", "align", "8");
    works(DEED(WRAM_WRITE, 1, 64, 24));
    REFUSED(DEED(WRAM_WRITE, 0, 64, 2), "WRAM", "align", "8");
}

STRICTER(misaligned_dma_is_truncated_on_demand, "the low 3 bits are dropped: other bytes are moved") {
    REFUSED(DEED(MRAM_READ, 1, 64, 20), "DPU_EMULATOR_MISALIGNED_DMA=truncate");
    setenv("DPU_EMULATOR_MISALIGNED_DMA", "truncate", 1);
    works(DEED(MRAM_READ, 1, 64, 20));
    works(DEED(WRAM_READ, 1, 64, 4));
    works(DEED(WRAM_WRITE, 0, 64, 2));
    /* 12 bytes further is the second word of the area. */
    struct dpu_set_t set = ready(DEED(MRAM_WRITE, 2, 8, 12));
    uint64_t words[3] = {1, 2, 3};
    OK(dpu_copy_to(set, "area", 0, words, sizeof words));
    OK(dpu_launch(set, DPU_SYNCHRONOUS));
    OK(dpu_copy_from(conformance_first(set), "area", 0, words, sizeof words));
    EXPECT_EQUAL(words[0], 1);
    EXPECT_EQUAL(words[1], 0); /* the buffer's contents: .bss */
    EXPECT_EQUAL(words[2], 3);
    OK(dpu_free(set));
    unsetenv("DPU_EMULATOR_MISALIGNED_DMA");
}

STRICTER(dma_is_hardwares_on_demand, "the low 3 bits are dropped, and the length field has 8 bits") {
    REFUSED(DEED(MRAM_WRITE, 2, 0, 0), "DPU_EMULATOR_MODE=hardware");
    setenv("DPU_EMULATOR_MODE", "hardware", 1);
    works(DEED(MRAM_READ, 1, 64, 20));
    static const struct {
        uint32_t asked, moved;
    } lengths[] = {{0, 2048}, {4, 2048}, {12, 8}, {2048, 2048}, {2056, 8}, {4096, 2048}};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct dpu_set_t set = ready(DEED(MRAM_WRITE, 2, lengths[i].asked, 8));
        uint64_t words[258];
        memset(words, 0x55, sizeof words);
        OK(dpu_copy_to(set, "area", 0, words, sizeof words));
        OK(dpu_launch(set, DPU_SYNCHRONOUS));
        OK(dpu_copy_from(conformance_first(set), "area", 0, words, sizeof words));
        for (uint32_t word = 0; word < 258; word++)
            EXPECT_EQUAL(words[word] == 0x5555555555555555, word < 1 || word > lengths[i].moved / 8);
        OK(dpu_free(set));
    }
    works(DEED(MRAM_NOWHERE, 1, 8, 0x20000000));
    /* An explicit choice counts more. */
    setenv("DPU_EMULATOR_MISALIGNED_DMA", "fault", 1);
    REFUSED(DEED(MRAM_READ, 1, 64, 20), "align");
    unsetenv("DPU_EMULATOR_MISALIGNED_DMA");
    unsetenv("DPU_EMULATOR_MODE");
}

STRICTER(dma_of_more_than_2048_bytes, "the length field wraps: fewer bytes are moved") {
    works(DEED(MRAM_READ, 1, 2048, 0));
    works(DEED(MRAM_WRITE, 1, 2048, 0));
    REFUSED(DEED(MRAM_READ, 1, 2056, 0), "2048");
    REFUSED(DEED(MRAM_WRITE, 2, 4096, 0), "2048");
}

STRICTER(dma_of_a_length_that_is_no_multiple_of_8, "the length field has no room for the low bits") {
    REFUSED(DEED(MRAM_READ, 1, 12, 0), "multiple of 8");
    REFUSED(DEED(MRAM_WRITE, 1, 4, 0), "multiple of 8");
    REFUSED(DEED(WRAM_READ, 3, 2047, 0), "multiple of 8");
}

STRICTER(dma_of_no_bytes, "the length field, bytes / 8 - 1, wraps to 2048 bytes") {
    REFUSED(DEED(MRAM_READ, 1, 0, 0), "0");
    REFUSED(DEED(MRAM_WRITE, 1, 0, 0), "0");
}

STRICTER(dma_outside_mram, "addresses wrap around in MRAM") {
    works(DEED(MRAM_END, 1, 8, 0));
    REFUSED(DEED(MRAM_END, 1, 16, 0), "MRAM");
    REFUSED(DEED(MRAM_NOWHERE, 1, 8, 0x20000000), "MRAM");
}

STRICTER(dma_outside_wram, "a DMA fault, or addresses wrap around, by the version of the chip") {
    REFUSED(DEED(WRAM_READ, 2, 2048, 0x00100000), "WRAM");
    REFUSED(DEED(WRAM_WRITE, 2, 2048, 0x00100000), "WRAM");
}

STRICTER(a_scalar_outside_mram, "addresses wrap around in MRAM") {
    REFUSED(DEED(MRAM_SCALAR, 2, 0, 0x40), "MRAM");
}

STRICTER(a_misaligned_scalar_of_mram, "the low bits are dropped, or a word is torn, by what the compiler makes of it") {
    works(DEED(MRAM_SCALAR_ODD, 2, 0, 12));
    REFUSED(DEED(MRAM_SCALAR_ODD, 2, 0, 14), "multiple", "4 bytes");
}

STRICTER(a_misaligned_scalar_of_wram, "a memory fault, or the low bits are dropped, by the version of the chip") {
    works(DEED(WRAM_ODD, 2, 0, 12));
    REFUSED(DEED(WRAM_ODD, 2, 0, 14), "WRAM", "aligned");
}

CONFORMS(a_store_or_load_far_outside_wram, "a memory fault: DPU_FAULT") {
    REFUSED(DEED(STORE, 1, 0, 0x00100000), "WRAM");
    REFUSED(DEED(LOAD, 3, 0, 0x00200000), "WRAM");
}

CONFORMS(a_store_where_the_emulator_keeps_what_is_its_own, "a memory fault: DPU_FAULT") {
    REFUSED(DEED(STORE, 2, 0, 0x50001008), "WRAM");
}

STRICTER(a_null_pointer, "address 0 is the first word of WRAM: it is read and written") {
    struct deed deeds[] = {{STORE, 1, 0, 0}, {LOAD, 1, 0, 0}};
    for (int i = 0; i < 2; i++) {
        char *said = faults(deeds[i], NULL);
        EXPECT_WORDS(said, "tasklet 1", "0x0", "WRAM");
        free(said);
    }
}

STRICTER(an_mram_address_used_as_a_wram_pointer, "a memory fault, or the low bits address WRAM") {
    REFUSED(DEED(STORE, 1, 0, 0x08000010), "WRAM");
    REFUSED(DEED(LOAD, 1, 0, 0x08000010), "WRAM");
}

STRICTER(a_call_of_no_function, "whatever is in IRAM there is executed") {
    char *said = faults(DEED(CALL, 2, 0, 0x00300000), NULL);
    EXPECT_WORDS(said, "tasklet 2", "300000");
    free(said);
}

STRICTER(a_stack_that_overflows, "the stack of the next tasklet, or the heap, is overwritten") {
    works(DEED(DEEP, 1, 4, 0));
    char *said = faults(DEED(DEEP, 1, 40, 0), NULL);
    EXPECT_WORDS(said, "tasklet 1", "stack", "1024");
    free(said);
    said = faults(DEED(DEEP, 3, 100000, 0), NULL);
    EXPECT_WORDS(said, "tasklet 3", "stack", "1024");
    free(said);
    said = faults(DEED(WIDE, 0, 0, 0), NULL);
    EXPECT_WORDS(said, "tasklet 0", "stack", "1024");
    free(said);
}

CONFORMS(a_heap_that_is_full, "mem_alloc executes a fault instruction: DPU_FAULT") {
    char *said = faults(DEED(HEAP_FULL, 1, 4096, 0), NULL);
    if (conformance_emulated()) EXPECT_WORDS(said, "tasklet 1", "heap", "4096");
    free(said);
}

CONFORMS(a_division_by_zero, "the division routine executes a fault instruction: DPU_FAULT") {
    works(DEED(DIVISION, 1, 7, 0));
    char *said = faults(DEED(DIVISION, 1, 0, 0), NULL);
    if (conformance_emulated()) EXPECT_WORDS(said, "tasklet 1", "division by zero");
    free(said);
}

STRICTER(half_words_of_mram_written_at_once, "a read-modify-write of 8 bytes each: one of the two is lost") {
    struct dpu_set_t set = ready(DEED(HALF_WORDS_LOCKED, 0, 0, 0));
    uint32_t halves[2] = {0, 0};
    OK(dpu_launch(set, DPU_SYNCHRONOUS));
    OK(dpu_copy_from(conformance_first(set), "halves", 0, halves, sizeof halves));
    EXPECT_EQUAL(halves[0], 107);
    EXPECT_EQUAL(halves[1], 207);
    OK(dpu_free(set));
    uint32_t touched = 0;
    char *said = faults(DEED(HALF_WORDS, 0, 0, 0), &touched), address[32];
    snprintf(address, sizeof address, "%x", touched);
    EXPECT_WORDS(said, "tasklet 0", "tasklet 1", address, "8");
    free(said);
}

STRICTER(half_words_of_mram_written_in_no_order, "goes well as long as the one tasklet happens to be late enough") {
    works(DEED(HALF_WORDS_ORDERED, 0, 0, 0));
    char *said = faults(DEED(HALF_WORDS_LATER, 0, 0, 0), NULL);
    EXPECT_WORDS(said, "tasklet 0", "tasklet 1", "8");
    free(said);
}

STRICTER(a_barrier_at_which_the_wrong_number_waits, "waits for ever") {
    const uint32_t faulty[] = {BARRIER_TOO_FEW, BARRIER_TOO_MANY};
    const char *counts[] = {"3", "5"};
    for (int i = 0; i < 2; i++) {
        char *said = faults((struct deed){.fault = faulty[i]}, NULL);
        EXPECT_WORDS(said, "barrier", counts[i], "4", "tasklet");
        free(said);
    }
}

STRICTER(a_barrier_that_one_tasklet_never_reaches, "waits for ever") {
    char *said = faults(DEED(BARRIER_ONE_MISSING, 2, 0, 0), NULL);
    EXPECT_WORDS(said, "barrier", "tasklet");
    free(said);
}

STRICTER(a_mutex_that_is_never_unlocked, "waits for ever") {
    works(DEED(LOCKED_TWICE, 1, 1, 0));
    char *said = faults(DEED(LOCKED_TWICE, 1, 0, 0), NULL);
    EXPECT_WORDS(said, "tasklet 1", "mutex");
    free(said);
}

STRICTER(a_mutex_unlocked_by_another_tasklet, "the mutex is free, and two tasklets are inside") {
    works(DEED(UNLOCKED_BY_OTHER, 0, 0, 0));
    char *said = faults(DEED(UNLOCKED_BY_OTHER, 2, 0, 0), NULL);
    EXPECT_WORDS(said, "tasklet 2", "mutex", "tasklet 0");
    free(said);
}

STRICTER(a_semaphore_that_is_never_given, "waits for ever") {
    char *said = faults(DEED(NEVER_GIVEN, 3, 0, 0), NULL);
    EXPECT_WORDS(said, "tasklet 3", "semaphore");
    free(said);
}

STRICTER(a_handshake_that_nobody_answers, "waits for ever") {
    char *said = faults(DEED(NEVER_NOTIFIED, 2, 0, 0), NULL);
    EXPECT_WORDS(said, "tasklet 2", "handshake", "3");
    free(said);
}

STRICTER(a_loop_without_end, "runs for ever") {
    setenv("DPU_EMULATOR_MAX_CYCLES", "3000000", 1);
    works((struct deed){.fault = NOTHING});
    char *said = faults(DEED(ENDLESS, 1, 0, 0), NULL);
    EXPECT_WORDS(said, "3000000", "cycles");
    free(said);
}
