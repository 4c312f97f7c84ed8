/* Data races: reported by symbol, both tasklets and the line; and no report of what is in order. */
#define _GNU_SOURCE
#include "conformance.h"

#include "races.h"

enum { TASKLETS = 16 };

static const char *const programs[] = {"device_races", "device_races_O0"};

static struct dpu_set_t ready(const char *program, uint32_t task) {
    struct dpu_set_t set = conformance_dpus(1, program);
    static const uint64_t zeros[64];
    OK(dpu_copy_to(set, "task", 0, &task, 4));
    OK(dpu_copy_to(set, "words", 0, zeros, 32));
    OK(dpu_copy_to(set, "far", 0, zeros, sizeof zeros));
    return set;
}

/* Runs a task of the programs of both levels of optimisation, which ends well with this result. */
static void works(uint32_t task, uint32_t expected) {
    for (int i = 0; i < 2; i++) {
        struct dpu_set_t set = ready(programs[i], task);
        for (int launch = 0; launch < 2 && task != TURNS && task != FLAG; launch++) OK(dpu_launch(set, DPU_SYNCHRONOUS));
        if (task == TURNS || task == FLAG) OK(dpu_launch(set, DPU_SYNCHRONOUS));
        uint32_t result;
        OK(dpu_copy_from(conformance_first(set), "result", 0, &result, 4));
        EXPECT_EQUAL(result, expected);
        OK(dpu_free(set));
    }
}

/* Of each program, what the report says of the place twice: of both tasklets. */
static void races_at(uint32_t task, const char *what, const char *symbol, const char *const places[2]) {
    for (int i = 0; i < 2; i++) {
        struct dpu_set_t set = ready(programs[i], task);
        conformance_hear();
        const dpu_error_t error = dpu_launch(set, DPU_SYNCHRONOUS);
        char *said = conformance_heard();
        EXPECT_ERROR(error, DPU_ERR_DPU_FAULT);
        EXPECT_WORDS(said, "data race in", what, symbol, "tasklet", places[i], "DPU_EMULATOR_RACES=ignore");
        EXPECT(strstr(strstr(said, places[i]) + 1, places[i]) != NULL);
        free(said);
        OK(dpu_free(set));
    }
}

static void races(uint32_t task, const char *what, const char *symbol) {
    static const char *const lines[2] = {"device_races.c:", "device_races.c:"};
    races_at(task, what, symbol, lines);
}

STRICTER(an_access_of_several_lines, "as a_count_without_a_mutex") {
    static const char *const places[2] = {"device_races.c (main)", "device_races.c:"};
    races_at(COUNT_ON_BOTH_WAYS, "WRAM", "counter", places);
}

STRICTER(a_count_without_a_mutex, "updates are lost: counter++ is a load, an addition and a store") {
    races(COUNT, "WRAM", "counter");
    races(COUNT_VOLATILE, "WRAM", "watched");
    works(COUNT_LOCKED, 0);
    works(COUNT_SEMAPHORE, 0);
}

STRICTER(a_copy_of_the_library_to_the_same_place, "what is there in the end is a mixture") {
    races(COPIES, "WRAM", "table");
    works(COPIES_LOCKED, 0);
}

STRICTER(a_barrier_that_is_missing, "what is read is old or new, by the cycles that each tasklet took") {
    races(MISSING_BARRIER, "WRAM", "table");
    works(WITH_BARRIER, TASKLETS * (TASKLETS + 1) / 2);
}

STRICTER(a_word_of_mram_read_changed_and_written_by_two, "one of the two changes is lost") {
    races(MRAM_COUNT, "MRAM", "words + 8 bytes");
    works(MRAM_COUNT_LOCKED, 0);
}

STRICTER(a_transfer_and_a_narrow_store_to_the_same_word, "one of the two is lost if they collide") {
    races(WIDE_AND_NARROW, "MRAM", "words + 8 bytes");
    races(NARROW_AND_WIDE, "MRAM", "words + 8 bytes");
    works(WIDE_AND_NARROW_HANDSHAKE, 0);
}

STRICTER(a_read_of_mram_before_which_a_barrier_is_missing, "what is read is old or new, by the cycles") {
    races(MRAM_READ, "MRAM", "far + 8 bytes");
    works(MRAM_READ_HANDSHAKE, 4);
    races(MRAM_LOAD, "MRAM", "far + 8 bytes");
    works(MRAM_LOAD_HANDSHAKE, 4);
    races(MRAM_FORWARD, "MRAM", "far");
    works(MRAM_FORWARD_HANDSHAKE, 0);
}

STRICTER(a_change_after_a_handshake_that_ordered_the_one_before, "what is read is old or new, by the cycles") {
    races(CHANGED_AGAIN, "WRAM", "table + 4 bytes");
    works(CHANGED_AGAIN_BARRIER, 7);
    races(BYTE_CHANGED_AGAIN, "WRAM", "bytes + 1 bytes");
    works(BYTE_CHANGED_AGAIN_BARRIER, 7);
}

STRICTER(transfers_that_meet_where_the_check_divides_mram, "one of the two is lost if they collide") {
    races(ACROSS_PAGES, "MRAM", "the MRAM heap");
    works(ACROSS_PAGES_HANDSHAKE, 0);
}

STRICTER(races_are_reported_on_demand, "there is no check") {
    static const uint32_t tasks[] = {MISSING_BARRIER, COUNT, COUNT};
    static const char *const symbols[] = {"table", "counter", "counter"};
    setenv("DPU_EMULATOR_RACES", "report", 1);
    struct dpu_set_t set = ready(programs[0], MISSING_BARRIER);
    for (int launch = 0; launch < 3; launch++) {
        OK(dpu_copy_to(set, "task", 0, &tasks[launch], 4));
        conformance_hear();
        const dpu_error_t error = dpu_launch(set, DPU_SYNCHRONOUS);
        char *said = conformance_heard(), *log = NULL;
        EXPECT_ERROR(error, DPU_OK);
        EXPECT_WORDS(said, "dpu 0 of rank 0", "data race in WRAM", symbols[launch], "device_races.c:");
        /* Of many accesses of the same two lines, one. */
        EXPECT(strstr(strstr(said, "data race") + 1, "data race") == NULL);
        EXPECT(strstr(said, "DPU_EMULATOR_RACES") == NULL);
        free(said);
        size_t length;
        FILE *stream = open_memstream(&log, &length);
        OK(dpu_log_read(conformance_first(set), stream));
        fclose(stream);
        EXPECT_WORDS(log, "data race in WRAM", symbols[launch]);
        free(log);
    }
    uint32_t result = 0;
    OK(dpu_copy_from(conformance_first(set), "result", 0, &result, 4));
    EXPECT(result > 0); /* the program went on after its race */
    unsetenv("DPU_EMULATOR_RACES");
    OK(dpu_free(set));
}

STRICTER(races_are_ignored_on_demand, "there is no check") {
    setenv("DPU_EMULATOR_RACES", "ignore", 1);
    works(COUNT, 0);
    works(MRAM_COUNT, 0);
    setenv("DPU_EMULATOR_RACES", "perhaps", 1);
    struct dpu_set_t set;
    OK(dpu_alloc(1, NULL, &set));
    conformance_hear();
    const dpu_error_t error = dpu_load(set, conformance_program(programs[0]), NULL);
    char *said = conformance_heard();
    EXPECT_ERROR(error, DPU_ERR_SYSTEM);
    EXPECT_WORDS(said, "DPU_EMULATOR_RACES=perhaps", "fault", "report", "ignore");
    free(said);
    unsetenv("DPU_EMULATOR_RACES");
    OK(dpu_free(set));
}

CONFORMS(bytes_next_to_each_other_are_stored_alone, "WRAM has stores of 1, 2, 4 and 8 bytes") { works(NEIGHBOURS, 0); }

CONFORMS(the_same_value_may_be_stored_by_all, "the value is there, whoever stored it last") { works(SAME_VALUE, 7); }

CONFORMS(a_loop_may_wait_for_a_flag, "WRAM has no caches, and tasklets issue in order") {
    works(FLAG, 0);
    works(TURNS, 0);
}

CONFORMS(a_value_may_be_read_long_before_it_changes, "the last tasklet of a chain of handshakes is late enough") {
    works(EARLY_READ, 0);
}

CONFORMS(a_barrier_may_be_for_some_tasklets, "barrier_wait counts down from the number of BARRIER_INIT") {
    works(PART_BARRIER, 0);
}

CONFORMS(an_mram_address_may_lack_its_base, "the bits above the 64 MiB of MRAM are not looked at") {
    works(NO_BASE, 0);
}

CONFORMS(the_heap_is_given_out_again, "mem_reset between two barriers") { works(ALLOCATIONS, 0); }

CONFORMS(a_transfer_may_read_what_a_neighbour_writes, "a transfer moves whole words of 8 bytes") {
    works(OVERREAD, 0);
    works(UNUSED, 0);
    works(OTHER_BYTES, 0);
}

CONFORMS(a_volatile_load_may_wait_for_a_word_of_mram, "each load is a transfer") { works(POLLED, 0); }

CONFORMS(long_unrolled_loops_fit_the_default_stack, "each access needs its value in a register and nothing more") {
    works(UNROLLED, 0);
}
