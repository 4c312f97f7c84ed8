/* Symbols: what they are called, where they are, how much of them a transfer may touch. */
#include "conformance.h"

static const char program[] = "device_symbols";

static struct dpu_set_t loaded(struct dpu_program_t **info) {
    struct dpu_set_t set;
    OK(dpu_alloc(1, NULL, &set));
    OK(dpu_load(set, conformance_program(program), info));
    return set;
}

CONFORMS(get_symbol_gives_address_and_size, "WRAM symbols below 64 KiB of WRAM, MRAM symbols from 0x08000000") {
    struct dpu_program_t *info;
    struct dpu_set_t set = loaded(&info);
    struct dpu_symbol_t symbol;
    OK(dpu_get_symbol(info, "word", &symbol));
    EXPECT_EQUAL(symbol.size, 4);
    EXPECT_EQUAL(symbol.address % 4, 0);
    OK(dpu_get_symbol(info, "record", &symbol));
    EXPECT_EQUAL(symbol.size, 16);
    OK(dpu_get_symbol(info, "area", &symbol));
    EXPECT_EQUAL(symbol.size, 8192);
    EXPECT_EQUAL(symbol.address & 0xf8000007, 0x08000000);
    OK(dpu_get_symbol(info, "table", &symbol));
    EXPECT_EQUAL(symbol.size, 16);
    EXPECT_EQUAL(symbol.address & 0xf8000007, 0x08000000);
    OK(dpu_free(set));
}

CONFORMS(the_heap_symbols_address_is_the_heap, "__sys_used_mram_end lies behind the last MRAM symbol; size: the rest") {
    struct dpu_program_t *info;
    struct dpu_set_t set = loaded(&info);
    struct dpu_symbol_t heap, area, table, blank;
    EXPECT(strcmp(DPU_MRAM_HEAP_POINTER_NAME, "__sys_used_mram_end") == 0);
    OK(dpu_get_symbol(info, DPU_MRAM_HEAP_POINTER_NAME, &heap));
    OK(dpu_get_symbol(info, "area", &area));
    OK(dpu_get_symbol(info, "table", &table));
    OK(dpu_get_symbol(info, "blank", &blank));
    EXPECT(heap.address >= area.address + area.size);
    EXPECT(heap.address >= table.address + table.size);
    EXPECT(heap.address >= blank.address + blank.size);
    EXPECT_EQUAL(heap.address % 8, 0);
    EXPECT_EQUAL((heap.address & 0x07ffffff) + heap.size, 64 << 20);
    /* What the device sees as DPU_MRAM_HEAP_POINTER is that address, and not what is stored there. */
    OK(dpu_launch(set, DPU_SYNCHRONOUS));
    uint32_t base = 0;
    OK(dpu_copy_from(conformance_first(set), "heap_base", 0, &base, sizeof base));
    EXPECT_EQUAL(base & 0x07ffffff, heap.address & 0x07ffffff);
    OK(dpu_free(set));
}

CONFORMS(the_heap_is_reached_by_offsets_from_its_symbol, "offset 0 of __sys_used_mram_end is the heap's first byte") {
    struct dpu_program_t *info;
    struct dpu_set_t set = loaded(&info), dpu = conformance_first(set);
    struct dpu_symbol_t heap;
    OK(dpu_get_symbol(info, DPU_MRAM_HEAP_POINTER_NAME, &heap));
    const uint64_t first = 0x1122334455667788, last = 0x99aabbccddeeff00;
    uint64_t value = 0;
    OK(dpu_copy_to(set, DPU_MRAM_HEAP_POINTER_NAME, 0, &first, 8));
    OK(dpu_copy_to(set, DPU_MRAM_HEAP_POINTER_NAME, heap.size - 8, &last, 8));
    OK(dpu_copy_from(dpu, DPU_MRAM_HEAP_POINTER_NAME, 0, &value, 8));
    EXPECT(value == first);
    OK(dpu_copy_from(dpu, DPU_MRAM_HEAP_POINTER_NAME, heap.size - 8, &value, 8));
    EXPECT(value == last);
    EXPECT_ERROR(dpu_copy_to(set, DPU_MRAM_HEAP_POINTER_NAME, heap.size, &first, 8), DPU_ERR_INVALID_SYMBOL_ACCESS);
    OK(dpu_free(set));
}

CONFORMS(an_unknown_symbol_is_undefined, "UNKNOWN_SYMBOL: \"undefined symbol\"") {
    struct dpu_program_t *info;
    struct dpu_set_t set = loaded(&info);
    struct dpu_symbol_t symbol;
    uint32_t value = 0;
    EXPECT_ERROR(dpu_get_symbol(info, "nonesuch", &symbol), DPU_ERR_UNKNOWN_SYMBOL);
    EXPECT_ERROR(dpu_copy_to(set, "nonesuch", 0, &value, 4), DPU_ERR_UNKNOWN_SYMBOL);
    EXPECT_ERROR(dpu_copy_from(conformance_first(set), "nonesuch", 0, &value, 4), DPU_ERR_UNKNOWN_SYMBOL);
    EXPECT_ERROR(dpu_broadcast_to(set, "nonesuch", 0, &value, 4, DPU_XFER_DEFAULT), DPU_ERR_UNKNOWN_SYMBOL);
    OK(dpu_prepare_xfer(set, &value));
    EXPECT_ERROR(dpu_push_xfer(set, DPU_XFER_TO_DPU, "nonesuch", 0, 4, DPU_XFER_DEFAULT), DPU_ERR_UNKNOWN_SYMBOL);
    OK(dpu_free(set));
}

CONFORMS(a_variable_without_host_is_no_symbol, "only __host variables and MRAM are visible to the host") {
    struct dpu_program_t *info;
    struct dpu_set_t set = loaded(&info);
    struct dpu_symbol_t symbol;
    EXPECT_ERROR(dpu_get_symbol(info, "hidden", &symbol), DPU_ERR_UNKNOWN_SYMBOL);
    OK(dpu_free(set));
}

CONFORMS(a_transfer_beyond_a_symbol_is_refused, "INVALID_SYMBOL_ACCESS: \"invalid memory symbol access\"") {
    struct dpu_set_t set = loaded(NULL), dpu = conformance_first(set);
    uint64_t values[4] = {1, 2, 3, 4};
    EXPECT_ERROR(dpu_copy_to(set, "word", 0, values, 8), DPU_ERR_INVALID_SYMBOL_ACCESS);
    EXPECT_ERROR(dpu_copy_to(set, "pair", 8, values, 16), DPU_ERR_INVALID_SYMBOL_ACCESS);
    EXPECT_ERROR(dpu_copy_to(set, "pair", 16, values, 8), DPU_ERR_INVALID_SYMBOL_ACCESS);
    EXPECT_ERROR(dpu_copy_from(dpu, "pair", 16, values, 8), DPU_ERR_INVALID_SYMBOL_ACCESS);
    EXPECT_ERROR(dpu_copy_to(set, "area", 8192 - 8, values, 16), DPU_ERR_INVALID_SYMBOL_ACCESS);
    EXPECT_ERROR(dpu_broadcast_to(set, "area", 8192, values, 8, DPU_XFER_DEFAULT), DPU_ERR_INVALID_SYMBOL_ACCESS);
    OK(dpu_prepare_xfer(set, values));
    EXPECT_ERROR(dpu_push_xfer(set, DPU_XFER_FROM_DPU, "area", 8192 - 16, 24, DPU_XFER_DEFAULT),
                 DPU_ERR_INVALID_SYMBOL_ACCESS);
    /* The refusals touched nothing: the symbols before and behind are as they were loaded. */
    uint32_t word = 0, table[4];
    OK(dpu_copy_from(dpu, "word", 0, &word, 4));
    EXPECT_EQUAL(word, 7);
    OK(dpu_copy_from(dpu, "table", 0, table, sizeof table));
    EXPECT(table[0] == 11 && table[3] == 44);
    OK(dpu_free(set));
}

CONFORMS(an_offset_near_the_end_of_32_bits_is_beyond_the_symbol, "offset + length is compared as 64 bits") {
    struct dpu_set_t set = loaded(NULL);
    const uint64_t value = 1;
    EXPECT_ERROR(dpu_copy_to(set, "area", 0xfffffff8, &value, 8), DPU_ERR_INVALID_SYMBOL_ACCESS);
    OK(dpu_free(set));
}

CONFORMS(wram_is_transferred_in_whole_words, "INVALID_WRAM_ACCESS unless offset and length are multiples of 4") {
    struct dpu_set_t set = loaded(NULL), dpu = conformance_first(set);
    uint32_t value = 5;
    OK(dpu_copy_to(set, "record", 4, &value, 4));
    EXPECT_ERROR(dpu_copy_to(set, "record", 2, &value, 4), DPU_ERR_INVALID_WRAM_ACCESS);
    EXPECT_ERROR(dpu_copy_to(set, "record", 4, &value, 3), DPU_ERR_INVALID_WRAM_ACCESS);
    EXPECT_ERROR(dpu_copy_from(dpu, "record", 1, &value, 4), DPU_ERR_INVALID_WRAM_ACCESS);
    EXPECT_ERROR(dpu_broadcast_to(set, "record", 4, &value, 2, DPU_XFER_DEFAULT), DPU_ERR_INVALID_WRAM_ACCESS);
    OK(dpu_free(set));
}

STRICTER(mram_is_transferred_in_aligned_8_bytes,
         "INVALID_MRAM_ACCESS or, in later versions, a slow read-modify-write, unless 8-byte aligned") {
    struct dpu_set_t set = loaded(NULL), dpu = conformance_first(set);
    uint64_t values[2] = {1, 2};
    EXPECT_ERROR(dpu_copy_to(set, "area", 4, values, 8), DPU_ERR_INVALID_MRAM_ACCESS);
    EXPECT_ERROR(dpu_copy_to(set, "area", 0, values, 12), DPU_ERR_INVALID_MRAM_ACCESS);
    EXPECT_ERROR(dpu_copy_from(dpu, "area", 4, values, 8), DPU_ERR_INVALID_MRAM_ACCESS);
    EXPECT_ERROR(dpu_copy_from(dpu, "area", 0, values, 4), DPU_ERR_INVALID_MRAM_ACCESS);
    EXPECT_ERROR(dpu_broadcast_to(set, "area", 2, values, 8, DPU_XFER_DEFAULT), DPU_ERR_INVALID_MRAM_ACCESS);
    OK(dpu_prepare_xfer(set, values));
    EXPECT_ERROR(dpu_push_xfer(set, DPU_XFER_TO_DPU, "area", 0, 4, DPU_XFER_DEFAULT), DPU_ERR_INVALID_MRAM_ACCESS);
    EXPECT_ERROR(dpu_copy_to(set, DPU_MRAM_HEAP_POINTER_NAME, 4, values, 8), DPU_ERR_INVALID_MRAM_ACCESS);
    OK(dpu_free(set));
}

STRICTER(a_refused_transfer_says_what_was_wrong, "says the name of the error; the log, if switched on, the numbers") {
    struct dpu_set_t set = loaded(NULL);
    const uint64_t values[2] = {1, 2};
    conformance_hear();
    dpu_copy_to(set, "area", 4, values, 12);
    char *said = conformance_heard();
    EXPECT_WORDS(said, "area", "4", "12", "8");
    free(said);
    conformance_hear();
    dpu_copy_to(set, "pair", 8, values, 16);
    said = conformance_heard();
    EXPECT_WORDS(said, "pair", "8", "16");
    free(said);
    conformance_hear();
    dpu_copy_to(set, "nonesuch", 0, values, 8);
    said = conformance_heard();
    EXPECT_WORDS(said, "nonesuch");
    free(said);
    OK(dpu_free(set));
}

CONFORMS(initialised_variables_have_their_values_after_load, "the ELF's sections are loaded, bss as zeros") {
    struct dpu_set_t set = loaded(NULL), dpu = conformance_first(set);
    uint32_t word = 0, table[4] = {0}, blank[4] = {1, 1, 1, 1};
    uint64_t pair[2] = {1, 1};
    OK(dpu_copy_from(dpu, "word", 0, &word, 4));
    OK(dpu_copy_from(dpu, "table", 0, table, 16));
    OK(dpu_copy_from(dpu, "blank", 0, blank, 16));
    OK(dpu_copy_from(dpu, "pair", 0, pair, 16));
    EXPECT_EQUAL(word, 7);
    EXPECT(table[0] == 11 && table[1] == 22 && table[2] == 33 && table[3] == 44);
    EXPECT(blank[0] == 0 && blank[1] == 0 && blank[2] == 0 && blank[3] == 0);
    EXPECT(pair[0] == 0 && pair[1] == 0);
    OK(dpu_free(set));
}

CONFORMS(symbols_by_value_do_what_symbols_by_name_do, "dpu_copy_to_symbol, dpu_copy_from_symbol, ..._xfer_symbol") {
    struct dpu_program_t *info;
    struct dpu_set_t set = loaded(&info), dpu = conformance_first(set);
    struct dpu_symbol_t area;
    uint64_t value = 42, copy = 0;
    OK(dpu_get_symbol(info, "area", &area));
    OK(dpu_copy_to_symbol(set, area, 16, &value, 8));
    OK(dpu_copy_from(dpu, "area", 16, &copy, 8));
    EXPECT_EQUAL(copy, 42);
    value = 43;
    OK(dpu_broadcast_to_symbol(set, area, 24, &value, 8, DPU_XFER_DEFAULT));
    OK(dpu_copy_from_symbol(dpu, area, 24, &copy, 8));
    EXPECT_EQUAL(copy, 43);
    value = 44;
    OK(dpu_prepare_xfer(set, &value));
    OK(dpu_push_xfer_symbol(set, DPU_XFER_TO_DPU, area, 32, 8, DPU_XFER_DEFAULT));
    OK(dpu_copy_from_symbol(dpu, area, 32, &copy, 8));
    EXPECT_EQUAL(copy, 44);
    EXPECT_ERROR(dpu_copy_to_symbol(set, area, 8192, &value, 8), DPU_ERR_INVALID_SYMBOL_ACCESS);
    OK(dpu_free(set));
}
