/* Transfers between host and DPUs: one, all alike, each its own, later. */
#include "conformance.h"

enum { DPUS = 70, WORDS = 64, BYTES = WORDS * 8 };

static uint64_t value(uint32_t dpu, uint32_t word) { return ((uint64_t)dpu << 32) + word + 1; }

static void fill(uint64_t buffers[DPUS][WORDS]) {
    for (uint32_t dpu = 0; dpu < DPUS; dpu++)
        for (uint32_t word = 0; word < WORDS; word++) buffers[dpu][word] = value(dpu, word);
}

static void prepare(struct dpu_set_t set, uint64_t buffers[DPUS][WORDS]) {
    struct dpu_set_t dpu;
    uint32_t index;
    DPU_FOREACH(set, dpu, index) { OK(dpu_prepare_xfer(dpu, buffers[index])); }
}

CONFORMS(broadcast_reaches_every_dpu, "dpu_broadcast_to writes the same bytes into each DPU of the set") {
    struct dpu_set_t set = conformance_dpus(DPUS, "device_symbols"), dpu;
    uint64_t sent[WORDS], got[WORDS];
    uint32_t seen = 0;
    for (uint32_t word = 0; word < WORDS; word++) sent[word] = value(3, word);
    OK(dpu_broadcast_to(set, "area", 64, sent, BYTES, DPU_XFER_DEFAULT));
    DPU_FOREACH(set, dpu) {
        memset(got, 0xee, sizeof got);
        OK(dpu_copy_from(dpu, "area", 64, got, BYTES));
        EXPECT(memcmp(sent, got, sizeof got) == 0);
        seen++;
    }
    EXPECT_EQUAL(seen, DPUS);
    OK(dpu_free(set));
}

CONFORMS(copy_to_a_set_reaches_every_dpu, "dpu_copy_to on a set of ranks is a broadcast") {
    struct dpu_set_t set = conformance_dpus(DPUS, "device_symbols"), dpu;
    const uint64_t sent = value(1, 1);
    OK(dpu_copy_to(set, "area", 8, &sent, 8));
    DPU_FOREACH(set, dpu) {
        uint64_t got = 0;
        OK(dpu_copy_from(dpu, "area", 8, &got, 8));
        EXPECT_EQUAL(got, sent);
    }
    OK(dpu_free(set));
}

CONFORMS(copy_to_one_dpu_leaves_the_others_alone, "a set of one DPU is that DPU") {
    struct dpu_set_t set = conformance_dpus(3, "device_symbols"), dpu;
    uint32_t index;
    DPU_FOREACH(set, dpu, index) {
        const uint32_t word = 50;
        if (index == 1) OK(dpu_copy_to(dpu, "word", 0, &word, 4));
    }
    DPU_FOREACH(set, dpu, index) {
        uint32_t word = 0;
        OK(dpu_copy_from(dpu, "word", 0, &word, 4));
        EXPECT_EQUAL(word, index == 1 ? 50 : 7);
    }
    OK(dpu_free(set));
}

CONFORMS(push_gives_each_dpu_its_own_buffer, "dpu_prepare_xfer per DPU, then one dpu_push_xfer each way") {
    static uint64_t sent[DPUS][WORDS], got[DPUS][WORDS];
    struct dpu_set_t set = conformance_dpus(DPUS, "device_symbols");
    fill(sent);
    prepare(set, sent);
    OK(dpu_push_xfer(set, DPU_XFER_TO_DPU, "area", 128, BYTES, DPU_XFER_DEFAULT));
    memset(got, 0xee, sizeof got);
    prepare(set, got);
    OK(dpu_push_xfer(set, DPU_XFER_FROM_DPU, "area", 128, BYTES, DPU_XFER_DEFAULT));
    EXPECT(memcmp(sent, got, sizeof got) == 0);
    OK(dpu_free(set));
}

CONFORMS(push_moves_wram_as_well, "symbols of WRAM are pushed in words of 4 bytes") {
    struct dpu_set_t set = conformance_dpus(DPUS, "device_symbols"), dpu;
    uint32_t sent[DPUS], got[DPUS], index;
    DPU_FOREACH(set, dpu, index) {
        sent[index] = 1000 + index;
        OK(dpu_prepare_xfer(dpu, &sent[index]));
    }
    OK(dpu_push_xfer(set, DPU_XFER_TO_DPU, "word", 0, 4, DPU_XFER_DEFAULT));
    memset(got, 0xee, sizeof got);
    DPU_FOREACH(set, dpu, index) { OK(dpu_prepare_xfer(dpu, &got[index])); }
    OK(dpu_push_xfer(set, DPU_XFER_FROM_DPU, "word", 0, 4, DPU_XFER_DEFAULT));
    EXPECT(memcmp(sent, got, sizeof got) == 0);
    OK(dpu_free(set));
}

CONFORMS(a_push_forgets_the_buffers, "DPU_XFER_DEFAULT clears them: a DPU without a buffer takes no part") {
    static uint64_t sent[DPUS][WORDS], got[DPUS][WORDS];
    struct dpu_set_t set = conformance_dpus(DPUS, "device_symbols"), dpu;
    uint32_t index;
    fill(sent);
    prepare(set, sent);
    OK(dpu_push_xfer(set, DPU_XFER_TO_DPU, "area", 0, BYTES, DPU_XFER_DEFAULT));
    memset(got, 0xee, sizeof got);
    DPU_FOREACH(set, dpu, index) {
        if (index % 2 == 0) OK(dpu_prepare_xfer(dpu, got[index]));
    }
    OK(dpu_push_xfer(set, DPU_XFER_FROM_DPU, "area", 0, BYTES, DPU_XFER_DEFAULT));
    for (index = 0; index < DPUS; index++)
        EXPECT_EQUAL(got[index][1], index % 2 == 0 ? sent[index][1] : 0xeeeeeeeeeeeeeeee);
    OK(dpu_free(set));
}

CONFORMS(no_reset_keeps_the_buffers, "DPU_XFER_NO_RESET: the next push uses them again") {
    static uint64_t sent[DPUS][WORDS];
    struct dpu_set_t set = conformance_dpus(DPUS, "device_symbols"), dpu;
    uint32_t index;
    fill(sent);
    prepare(set, sent);
    OK(dpu_push_xfer(set, DPU_XFER_TO_DPU, "area", 0, BYTES, DPU_XFER_NO_RESET));
    OK(dpu_push_xfer(set, DPU_XFER_TO_DPU, "area", 1024, BYTES, DPU_XFER_DEFAULT));
    DPU_FOREACH(set, dpu, index) {
        uint64_t got[2] = {0, 0};
        OK(dpu_copy_from(dpu, "area", 0, &got[0], 8));
        OK(dpu_copy_from(dpu, "area", 1024, &got[1], 8));
        EXPECT(got[0] == value(index, 0) && got[1] == value(index, 0));
    }
    OK(dpu_free(set));
}

CONFORMS(preparing_twice_is_said, "TRANSFER_ALREADY_SET: \"dpu transfer is already set\"; the second buffer holds") {
    struct dpu_set_t set = conformance_dpus(1, "device_symbols");
    uint64_t first = 1, second = 2, got = 0;
    OK(dpu_prepare_xfer(set, &first));
    EXPECT_ERROR(dpu_prepare_xfer(set, &second), DPU_ERR_TRANSFER_ALREADY_SET);
    OK(dpu_push_xfer(set, DPU_XFER_TO_DPU, "area", 0, 8, DPU_XFER_DEFAULT));
    OK(dpu_copy_from(conformance_first(set), "area", 0, &got, 8));
    EXPECT_EQUAL(got, 2);
    OK(dpu_free(set));
}

CONFORMS(preparing_null_takes_the_buffer_back, "dpu_prepare_xfer(set, NULL) clears, and is no error") {
    struct dpu_set_t set = conformance_dpus(1, "device_symbols");
    uint64_t first = 1, second = 2, got = 0;
    OK(dpu_prepare_xfer(set, &first));
    OK(dpu_prepare_xfer(set, NULL));
    OK(dpu_prepare_xfer(set, &second));
    OK(dpu_push_xfer(set, DPU_XFER_TO_DPU, "area", 0, 8, DPU_XFER_DEFAULT));
    OK(dpu_copy_from(conformance_first(set), "area", 0, &got, 8));
    EXPECT_EQUAL(got, 2);
    OK(dpu_free(set));
}

CONFORMS(a_set_of_ranks_may_be_prepared_with_one_buffer, "each DPU of the set then reads the same buffer") {
    struct dpu_set_t set = conformance_dpus(5, "device_symbols"), dpu;
    uint64_t sent = 77;
    OK(dpu_prepare_xfer(set, &sent));
    OK(dpu_push_xfer(set, DPU_XFER_TO_DPU, "area", 0, 8, DPU_XFER_DEFAULT));
    DPU_FOREACH(set, dpu) {
        uint64_t got = 0;
        OK(dpu_copy_from(dpu, "area", 0, &got, 8));
        EXPECT_EQUAL(got, 77);
    }
    OK(dpu_free(set));
}

CONFORMS(copy_from_a_set_of_ranks_is_refused,
         "INVALID_DPU_SET: \"invalid action for this dpu set\", even for one DPU") {
    struct dpu_set_t set = conformance_dpus(1, "device_symbols");
    uint64_t got = 5;
    EXPECT_ERROR(dpu_copy_from(set, "area", 0, &got, 8), DPU_ERR_INVALID_DPU_SET);
    EXPECT_EQUAL(got, 5);
    OK(dpu_free(set));
}

CONFORMS(an_unknown_direction_is_refused, "INVALID_MEMORY_TRANSFER: \"invalid memory transfer\"") {
    struct dpu_set_t set = conformance_dpus(1, "device_symbols");
    uint64_t buffer = 5;
    OK(dpu_prepare_xfer(set, &buffer));
    EXPECT_ERROR(dpu_push_xfer(set, (dpu_xfer_t)7, "area", 0, 8, DPU_XFER_DEFAULT), DPU_ERR_INVALID_MEMORY_TRANSFER);
    OK(dpu_free(set));
}

CONFORMS(asynchronous_transfers_are_done_after_sync, "DPU_XFER_ASYNC queues; launches and transfers keep their order") {
    static uint64_t sent[DPUS][WORDS], got[DPUS];
    struct dpu_set_t set = conformance_dpus(DPUS, "device_symbols"), dpu;
    uint32_t index;
    fill(sent);
    prepare(set, sent);
    OK(dpu_push_xfer(set, DPU_XFER_TO_DPU, "area", 0, BYTES, DPU_XFER_ASYNC));
    OK(dpu_launch(set, DPU_ASYNCHRONOUS));
    memset(got, 0xee, sizeof got);
    DPU_FOREACH(set, dpu, index) { OK(dpu_prepare_xfer(dpu, &got[index])); }
    OK(dpu_push_xfer(set, DPU_XFER_FROM_DPU, "area", 8, 8, DPU_XFER_ASYNC));
    OK(dpu_sync(set));
    for (index = 0; index < DPUS; index++) EXPECT_EQUAL(got[index], value(index, 0) + 7);
    OK(dpu_free(set));
}

CONFORMS(an_asynchronous_broadcast_is_done_after_sync, "dpu_broadcast_to with DPU_XFER_ASYNC") {
    struct dpu_set_t set = conformance_dpus(5, "device_symbols"), dpu;
    const uint64_t sent = 321;
    OK(dpu_broadcast_to(set, "area", 0, &sent, 8, DPU_XFER_ASYNC));
    OK(dpu_sync(set));
    DPU_FOREACH(set, dpu) {
        uint64_t got = 0;
        OK(dpu_copy_from(dpu, "area", 0, &got, 8));
        EXPECT_EQUAL(got, 321);
    }
    OK(dpu_free(set));
}

CONFORMS(symbols_of_a_set_need_one_program,
         "DIFFERENT_DPU_PROGRAMS: \"cannot access symbol on dpus with different programs\"") {
    struct dpu_set_t set = conformance_dpus(2, "device_symbols"), dpu;
    uint32_t word = 1;
    OK(dpu_load(conformance_first(set), conformance_program("device_other"), NULL));
    EXPECT_ERROR(dpu_copy_to(set, "word", 0, &word, 4), DPU_ERR_DIFFERENT_DPU_PROGRAMS);
    EXPECT_ERROR(dpu_broadcast_to(set, "word", 0, &word, 4, DPU_XFER_DEFAULT), DPU_ERR_DIFFERENT_DPU_PROGRAMS);
    uint32_t index, expected[] = {8, 7};
    DPU_FOREACH(set, dpu, index) {
        OK(dpu_copy_from(dpu, "word", 0, &word, 4));
        EXPECT_EQUAL(word, expected[index]);
    }
    OK(dpu_free(set));
}

CONFORMS(a_transfer_of_megabytes_arrives, "a transfer may be as long as MRAM is") {
    enum { LARGE = 48 << 20 };
    struct dpu_set_t set = conformance_dpus(1, "device_symbols");
    uint64_t *sent = malloc(LARGE), *got = calloc(1, LARGE);
    for (size_t i = 0; i < LARGE / 8; i++) sent[i] = i * 0x9e3779b97f4a7c15u;
    OK(dpu_copy_to(set, DPU_MRAM_HEAP_POINTER_NAME, 1 << 20, sent, LARGE));
    OK(dpu_copy_from(conformance_first(set), DPU_MRAM_HEAP_POINTER_NAME, 1 << 20, got, LARGE));
    EXPECT(memcmp(sent, got, LARGE) == 0);
    free(sent);
    free(got);
    OK(dpu_free(set));
}

/* The SDK's own answers to null pointers differ by function and version: many are a crash of the host program. */
/* Blocks of 1, 2, ... words out of each DPU's row, in reverse order; `counts` says how many blocks each DPU has. */
struct pieces {
    uint64_t (*rows)[WORDS];
    uint32_t counts[DPUS];
};

static bool piece(struct sg_block_info *out, uint32_t dpu, uint32_t block, void *arguments) {
    struct pieces *pieces = arguments;
    if (block >= pieces->counts[dpu]) return false;
    out->length = 8 * (block + 1);
    out->addr = (uint8_t *)&pieces->rows[dpu][WORDS - (block + 1) * (block + 2) / 2];
    return true;
}

/* DPUs whose profile allows 4 blocks each. */
static struct dpu_set_t scattered_dpus(void) {
    struct dpu_set_t set;
    const dpu_error_t error = dpu_alloc(DPUS, "sgXferEnable=true,sgXferMaxBlocksPerDpu=4", &set);
    if (error == DPU_ERR_ALLOCATION && !conformance_emulated()) conformance_skip("the machine has too few DPUs");
    OK(error);
    OK(dpu_load(set, conformance_program("device_symbols"), NULL));
    return set;
}

enum { SIX = 6 * 8 }; /* the bytes of three blocks */

CONFORMS(scattered_blocks_follow_each_other_in_mram, "dpu_push_sg_xfer calls the function for each DPU of the set and block") {
    static uint64_t sent[DPUS][WORDS], got[DPUS][WORDS];
    struct dpu_set_t set = scattered_dpus(), dpu;
    struct pieces pieces = {.rows = sent};
    get_block_t blocks = {.f = piece, .args = &pieces, .args_size = sizeof pieces};
    uint32_t index;
    fill(sent);
    for (index = 0; index < DPUS; index++) pieces.counts[index] = 3;
    OK(dpu_push_sg_xfer(set, DPU_XFER_TO_DPU, "area", 64, SIX, &blocks, DPU_SG_XFER_DEFAULT));
    DPU_FOREACH(set, dpu, index) {
        static const uint32_t order[6] = {WORDS - 1, WORDS - 3, WORDS - 2, WORDS - 6, WORDS - 5, WORDS - 4};
        uint64_t words[6];
        OK(dpu_copy_from(dpu, "area", 64, words, sizeof words));
        for (int word = 0; word < 6; word++) EXPECT(words[word] == value(index, order[word]));
    }
    /* And back, later: the arguments are those of the call. */
    memset(got, 0xee, sizeof got);
    pieces.rows = got;
    OK(dpu_push_sg_xfer(set, DPU_XFER_FROM_DPU, "area", 64, SIX, &blocks, DPU_SG_XFER_ASYNC));
    memset(&pieces, 0xee, sizeof pieces);
    OK(dpu_sync(set));
    for (index = 0; index < DPUS; index++) {
        EXPECT(memcmp(&got[index][WORDS - 6], &sent[index][WORDS - 6], SIX) == 0);
        for (uint32_t word = 0; word < WORDS - 6; word++) EXPECT(got[index][word] == 0xeeeeeeeeeeeeeeee);
    }
    OK(dpu_free(set));
}

CONFORMS(scattered_blocks_may_be_shorter_if_that_is_said, "DPU_SG_XFER_DISABLE_LENGTH_CHECK: zeros follow in MRAM") {
    static uint64_t rows[DPUS][WORDS];
    struct dpu_set_t set = scattered_dpus(), dpu;
    struct pieces pieces = {.rows = rows};
    get_block_t blocks = {.f = piece, .args = &pieces, .args_size = sizeof pieces};
    uint64_t words[6];
    uint32_t index;
    fill(rows);
    memset(words, 0x55, sizeof words);
    OK(dpu_broadcast_to(set, "area", 0, words, sizeof words, DPU_XFER_DEFAULT));
    for (index = 0; index < DPUS; index++) pieces.counts[index] = index % 3;
    EXPECT_ERROR(dpu_push_sg_xfer(set, DPU_XFER_TO_DPU, "area", 0, SIX, &blocks, DPU_SG_XFER_DEFAULT),
                 DPU_ERR_SG_LENGTH_MISMATCH);
    OK(dpu_push_sg_xfer(set, DPU_XFER_TO_DPU, "area", 0, SIX, &blocks, DPU_SG_XFER_DISABLE_LENGTH_CHECK));
    DPU_FOREACH(set, dpu, index) {
        OK(dpu_copy_from(dpu, "area", 0, words, sizeof words));
        /* A DPU without blocks takes no part. */
        const uint32_t sent = index % 3 * (index % 3 + 1) / 2;
        for (uint32_t word = sent; word < 6; word++) EXPECT(words[word] == (sent ? 0 : 0x5555555555555555));
        if (sent) EXPECT(words[0] == value(index, WORDS - 1));
    }
    OK(dpu_free(set));
}

CONFORMS(what_a_scattered_transfer_needs, "SG_NOT_ACTIVATED, SG_TOO_MANY_BLOCKS, SG_NOT_MRAM_SYMBOL") {
    static uint64_t rows[DPUS][WORDS];
    struct pieces pieces = {.rows = rows};
    get_block_t blocks = {.f = piece, .args = &pieces, .args_size = sizeof pieces};
    for (uint32_t index = 0; index < DPUS; index++) pieces.counts[index] = 5;
    struct dpu_set_t set = conformance_dpus(DPUS, "device_symbols");
    EXPECT_ERROR(dpu_push_sg_xfer(set, DPU_XFER_TO_DPU, "area", 0, 120, &blocks, DPU_SG_XFER_DEFAULT),
                 DPU_ERR_SG_NOT_ACTIVATED);
    OK(dpu_free(set));
    set = scattered_dpus();
    EXPECT_ERROR(dpu_push_sg_xfer(set, DPU_XFER_TO_DPU, "area", 0, 120, &blocks, DPU_SG_XFER_DEFAULT),
                 DPU_ERR_SG_TOO_MANY_BLOCKS);
    EXPECT_ERROR(dpu_push_sg_xfer(set, DPU_XFER_TO_DPU, "word", 0, 4, &blocks, DPU_SG_XFER_DEFAULT),
                 DPU_ERR_SG_NOT_MRAM_SYMBOL);
    EXPECT_ERROR(dpu_push_sg_xfer(conformance_first(set), DPU_XFER_TO_DPU, "area", 0, 120, &blocks, DPU_SG_XFER_DEFAULT),
                 DPU_ERR_INTERNAL);
    OK(dpu_free(set));
}

STRICTER(a_null_pointer_is_an_error, "an error or a crash of the host program, by the function") {
    struct dpu_set_t set = conformance_dpus(2, "device_symbols"), dpu = conformance_first(set);
    struct dpu_program_t *program;
    struct dpu_symbol_t symbol;
    uint64_t word = 0;
    OK(dpu_load(set, conformance_program("device_symbols"), &program));
    OK(dpu_get_symbol(program, "area", &symbol));
    EXPECT_ERROR(dpu_copy_to(set, "area", 0, NULL, 8), DPU_ERR_INVALID_MEMORY_TRANSFER);
    EXPECT_ERROR(dpu_copy_to_symbol(set, symbol, 0, NULL, 8), DPU_ERR_INVALID_MEMORY_TRANSFER);
    EXPECT_ERROR(dpu_copy_from(dpu, "area", 0, NULL, 8), DPU_ERR_INVALID_MEMORY_TRANSFER);
    EXPECT_ERROR(dpu_copy_from_symbol(dpu, symbol, 0, NULL, 8), DPU_ERR_INVALID_MEMORY_TRANSFER);
    EXPECT_ERROR(dpu_broadcast_to(set, "area", 0, NULL, 8, DPU_XFER_DEFAULT), DPU_ERR_INVALID_MEMORY_TRANSFER);
    EXPECT_ERROR(dpu_broadcast_to(set, "area", 0, NULL, 8, DPU_XFER_ASYNC), DPU_ERR_INVALID_MEMORY_TRANSFER);
    EXPECT_ERROR(dpu_copy_to(set, NULL, 0, &word, 8), DPU_ERR_UNKNOWN_SYMBOL);
    EXPECT_ERROR(dpu_copy_from(dpu, NULL, 0, &word, 8), DPU_ERR_UNKNOWN_SYMBOL);
    EXPECT_ERROR(dpu_push_xfer(set, DPU_XFER_TO_DPU, NULL, 0, 8, DPU_XFER_DEFAULT), DPU_ERR_UNKNOWN_SYMBOL);
    EXPECT_ERROR(dpu_get_symbol(program, NULL, &symbol), DPU_ERR_UNKNOWN_SYMBOL);
    EXPECT_ERROR(dpu_get_symbol(program, "area", NULL), DPU_ERR_INVALID_SYMBOL_ACCESS);
    EXPECT_ERROR(dpu_get_symbol(NULL, "area", &symbol), DPU_ERR_NO_PROGRAM_LOADED);
    EXPECT_ERROR(dpu_load(set, NULL, NULL), DPU_ERR_ELF_NO_SUCH_FILE);
    EXPECT_ERROR(dpu_load_from_memory(set, NULL, 8, NULL), DPU_ERR_ELF_INVALID_FILE);
    EXPECT_ERROR(dpu_alloc(1, NULL, NULL), DPU_ERR_INVALID_DPU_SET);
    EXPECT(dpu_get_nr_dpus(set, NULL) != DPU_OK);
    EXPECT(dpu_get_nr_ranks(set, NULL) != DPU_OK);
    EXPECT(dpu_log_read(dpu, NULL) != DPU_OK);
    OK(dpu_status(set, NULL, NULL));
    OK(dpu_prepare_xfer(set, NULL)); /* takes the buffers back */
    OK(dpu_copy_to(set, "area", 0, NULL, 0)); /* nothing is read */
    OK(dpu_free(set));
    uint32_t steps = 0;
    DPU_FOREACH(set, dpu) { steps++; }
    EXPECT_EQUAL(steps, 0);
}
