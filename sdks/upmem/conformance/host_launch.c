/* Loading, launching, waiting, logs; and that a fault of one DPU is nobody else's. */
#include "conformance.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { QUIET, PRINT, LOOP, FAULT };

static uint32_t read_word(struct dpu_set_t dpu, const char *symbol) {
    uint32_t value = 0xeeeeeeee;
    OK(dpu_copy_from(dpu, symbol, 0, &value, sizeof value));
    return value;
}

static void write_word(struct dpu_set_t set, const char *symbol, uint32_t value) {
    OK(dpu_broadcast_to(set, symbol, 0, &value, sizeof value, DPU_XFER_DEFAULT));
}

CONFORMS(a_synchronous_launch_returns_when_all_dpus_are_done, "dpu_launch with DPU_SYNCHRONOUS") {
    struct dpu_set_t set = conformance_dpus(70, "device_launch"), dpu;
    OK(dpu_launch(set, DPU_SYNCHRONOUS));
    DPU_FOREACH(set, dpu) { EXPECT_EQUAL(read_word(dpu, "launches"), 1); }
    OK(dpu_free(set));
}

CONFORMS(a_launch_of_one_dpu_runs_that_dpu, "dpu_launch on a set of one DPU") {
    struct dpu_set_t set = conformance_dpus(3, "device_launch"), dpu;
    uint32_t index;
    DPU_FOREACH(set, dpu, index) {
        if (index == 2) OK(dpu_launch(dpu, DPU_SYNCHRONOUS));
    }
    DPU_FOREACH(set, dpu, index) { EXPECT_EQUAL(read_word(dpu, "launches"), index == 2); }
    OK(dpu_free(set));
}

CONFORMS(globals_are_kept_over_launches, "a launch does not load again: variables keep their values") {
    struct dpu_set_t set = conformance_dpus(2, "device_launch"), dpu;
    for (uint32_t launch = 1; launch <= 3; launch++) {
        OK(dpu_launch(set, DPU_SYNCHRONOUS));
        DPU_FOREACH(set, dpu) {
            EXPECT_EQUAL(read_word(dpu, "launches"), launch);
            EXPECT_EQUAL(read_word(dpu, "private_count"), 40 + launch);
        }
    }
    OK(dpu_free(set));
}

CONFORMS(loading_again_initialises_globals, "dpu_load writes WRAM anew") {
    struct dpu_set_t set = conformance_dpus(1, "device_launch");
    OK(dpu_launch(set, DPU_SYNCHRONOUS));
    OK(dpu_launch(set, DPU_SYNCHRONOUS));
    OK(dpu_load(set, conformance_program("device_launch"), NULL));
    EXPECT_EQUAL(read_word(conformance_first(set), "launches"), 0);
    OK(dpu_launch(set, DPU_SYNCHRONOUS));
    EXPECT_EQUAL(read_word(conformance_first(set), "private_count"), 41);
    OK(dpu_free(set));
}

CONFORMS(mram_is_kept_over_launches_and_loads, "dpu_load writes the program's own MRAM sections and no more") {
    struct dpu_set_t set = conformance_dpus(1, "device_launch"), dpu = conformance_first(set);
    const uint64_t written = 0x123456789abcdef0;
    uint64_t got = 0;
    OK(dpu_copy_to(set, DPU_MRAM_HEAP_POINTER_NAME, 1 << 20, &written, 8));
    OK(dpu_launch(set, DPU_SYNCHRONOUS));
    OK(dpu_load(set, conformance_program("device_launch"), NULL));
    OK(dpu_copy_from(dpu, DPU_MRAM_HEAP_POINTER_NAME, 1 << 20, &got, 8));
    EXPECT(got == written);
    OK(dpu_free(set));
}

CONFORMS(an_asynchronous_launch_is_over_after_sync, "dpu_launch with DPU_ASYNCHRONOUS, then dpu_sync") {
    struct dpu_set_t set = conformance_dpus(8, "device_launch"), dpu;
    write_word(set, "task", LOOP);
    write_word(set, "rounds", 1000);
    OK(dpu_launch(set, DPU_ASYNCHRONOUS));
    OK(dpu_sync(set));
    DPU_FOREACH(set, dpu) { EXPECT_EQUAL(read_word(dpu, "sum"), 999 * 1000 / 2); }
    OK(dpu_free(set));
}

CONFORMS(a_copy_waits_for_the_launch_before_it, "synchronous transfers queue behind an asynchronous launch") {
    struct dpu_set_t set = conformance_dpus(4, "device_launch"), dpu;
    write_word(set, "task", LOOP);
    write_word(set, "rounds", 20000);
    OK(dpu_launch(set, DPU_ASYNCHRONOUS));
    DPU_FOREACH(set, dpu) { EXPECT_EQUAL(read_word(dpu, "sum"), 19999u * 20000u / 2); }
    OK(dpu_sync(set));
    OK(dpu_free(set));
}

CONFORMS(a_launch_during_a_launch_waits_or_is_refused, "queued since 2021; before, DPU_ALREADY_RUNNING") {
    struct dpu_set_t set = conformance_dpus(2, "device_launch"), dpu;
    write_word(set, "task", LOOP);
    write_word(set, "rounds", 20000);
    OK(dpu_launch(set, DPU_ASYNCHRONOUS));
    const dpu_error_t second = conformance_plain(dpu_launch(set, DPU_ASYNCHRONOUS));
    EXPECT(second == DPU_OK || second == DPU_ERR_DPU_ALREADY_RUNNING);
    OK(dpu_sync(set));
    DPU_FOREACH(set, dpu) { EXPECT_EQUAL(read_word(dpu, "launches"), second == DPU_OK ? 2 : 1); }
    OK(dpu_free(set));
}

CONFORMS(status_says_when_it_is_done, "dpu_status: done, and whether a DPU is in fault") {
    struct dpu_set_t set = conformance_dpus(2, "device_launch");
    bool done = false, fault = true;
    OK(dpu_launch(set, DPU_ASYNCHRONOUS));
    while (!done) OK(dpu_status(set, &done, &fault));
    EXPECT(!fault);
    OK(dpu_sync(set));
    OK(dpu_free(set));
}

CONFORMS(sync_without_a_launch_is_no_error, "dpu_sync waits for nothing") {
    struct dpu_set_t set = conformance_dpus(2, "device_launch");
    OK(dpu_sync(set));
    OK(dpu_free(set));
}

CONFORMS(symbols_need_a_loaded_program, "NO_PROGRAM_LOADED: \"no program has been loaded in the dpu set\"") {
    struct dpu_set_t set;
    uint32_t word = 0;
    OK(dpu_alloc(1, NULL, &set));
    EXPECT_ERROR(dpu_copy_to(set, "word", 0, &word, 4), DPU_ERR_NO_PROGRAM_LOADED);
    EXPECT_ERROR(dpu_copy_from(conformance_first(set), "word", 0, &word, 4), DPU_ERR_NO_PROGRAM_LOADED);
    OK(dpu_free(set));
}

STRICTER(a_launch_needs_a_loaded_program, "depends on the version: NO_PROGRAM_LOADED, or whatever is in IRAM runs") {
    struct dpu_set_t set;
    OK(dpu_alloc(1, NULL, &set));
    EXPECT_ERROR(dpu_launch(set, DPU_SYNCHRONOUS), DPU_ERR_NO_PROGRAM_LOADED);
    OK(dpu_free(set));
}

CONFORMS(a_missing_program_is_an_error, "SYSTEM (realpath fails) or ELF_NO_SUCH_FILE; the set stays usable") {
    struct dpu_set_t set;
    OK(dpu_alloc(1, NULL, &set));
    const dpu_error_t error = dpu_load(set, "/nonexistent/program", NULL);
    EXPECT(error == DPU_ERR_SYSTEM || error == DPU_ERR_ELF_NO_SUCH_FILE || error == DPU_ERR_ELF_INVALID_FILE);
    OK(dpu_load(set, conformance_program("device_launch"), NULL));
    OK(dpu_launch(set, DPU_SYNCHRONOUS));
    OK(dpu_free(set));
}

static void expect_no_program(const void *bytes, size_t length) {
    char path[] = "/tmp/conformance-XXXXXX";
    const int file = mkstemp(path);
    EXPECT(file >= 0 && write(file, bytes, length) == (ssize_t)length);
    close(file);
    struct dpu_set_t set;
    OK(dpu_alloc(1, NULL, &set));
    const dpu_error_t error = dpu_load(set, path, NULL);
    unlink(path);
    EXPECT_ERROR(error, DPU_ERR_ELF_INVALID_FILE);
    OK(dpu_load(set, conformance_program("device_launch"), NULL));
    OK(dpu_launch(set, DPU_SYNCHRONOUS));
    OK(dpu_free(set));
}

CONFORMS(a_file_that_is_no_elf_is_refused, "ELF_INVALID_FILE: \"invalid ELF file\"") {
    expect_no_program("#!/bin/sh\n", 10);
    expect_no_program("", 0);
}

CONFORMS(an_elf_of_another_machine_is_refused, "ELF_INVALID_FILE: the host's own program is no program of a DPU") {
    static char bytes[4 << 20];
    const int file = open("/proc/self/exe", O_RDONLY);
    const ssize_t length = read(file, bytes, sizeof bytes);
    close(file);
    EXPECT(length > 0 && (size_t)length < sizeof bytes);
    expect_no_program(bytes, (size_t)length);
}

CONFORMS(a_truncated_elf_is_refused, "ELF_INVALID_FILE, at whatever byte the file ends") {
    static char bytes[4 << 20];
    const int file = open(conformance_program("device_launch"), O_RDONLY);
    const ssize_t length = read(file, bytes, sizeof bytes);
    close(file);
    EXPECT(length > 64);
    for (ssize_t cut = 8; cut < length; cut = cut * 2 + 3) expect_no_program(bytes, (size_t)cut);
}

CONFORMS(a_program_is_loaded_from_memory, "dpu_load_from_memory takes the bytes of an ELF file") {
    static uint8_t bytes[4 << 20];
    const int file = open(conformance_program("device_launch"), O_RDONLY);
    const ssize_t length = read(file, bytes, sizeof bytes);
    close(file);
    struct dpu_set_t set;
    OK(dpu_alloc(2, NULL, &set));
    OK(dpu_load_from_memory(set, bytes, (size_t)length, NULL));
    OK(dpu_launch(set, DPU_SYNCHRONOUS));
    EXPECT_EQUAL(read_word(conformance_first(set), "launches"), 1);
    OK(dpu_free(set));
}

DPU_INCBIN(this_source, __FILE__)

CONFORMS(a_program_is_loaded_from_the_host_program, "DPU_INCBIN embeds a file; dpu_load_from_incbin loads it") {
    static uint8_t bytes[4 << 20];
    const int source = open(__FILE__, O_RDONLY), file = open(conformance_program("device_launch"), O_RDONLY);
    EXPECT_EQUAL(read(source, bytes, sizeof bytes), this_source.size);
    EXPECT(memcmp(this_source.buffer, bytes, this_source.size) == 0);
    struct dpu_incbin_t program = {bytes, (size_t)read(file, bytes, sizeof bytes), "device_launch"};
    close(source);
    close(file);
    struct dpu_set_t set;
    OK(dpu_alloc(2, NULL, &set));
    EXPECT_ERROR(dpu_load_from_incbin(set, &this_source, NULL), DPU_ERR_ELF_INVALID_FILE);
    OK(dpu_load_from_incbin(set, &program, NULL));
    OK(dpu_launch(set, DPU_SYNCHRONOUS));
    EXPECT_EQUAL(read_word(conformance_first(set), "launches"), 1);
    OK(dpu_free(set));
}

static char *log_of(struct dpu_set_t dpu) {
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);
    OK(dpu_log_read(dpu, stream));
    fclose(stream);
    return text;
}

CONFORMS(the_log_is_what_the_program_printed, "dpu_log_read writes printf's text of the last launch, formatted") {
    struct dpu_set_t set = conformance_dpus(1, "device_launch");
    write_word(set, "task", PRINT);
    OK(dpu_launch(set, DPU_SYNCHRONOUS));
    char *text = log_of(conformance_first(set));
    EXPECT_WORDS(text, "launch 1 of this program: -5 beef z 00000077\n", "second line\n");
    free(text);
    char printed[128] = "";
    FILE *stream = fmemopen(printed, sizeof printed, "w");
    OK(dpulog_read_for_dpu(conformance_first(set).dpu, stream));
    fclose(stream);
    EXPECT(strncmp(printed, "launch 1 of", 11) == 0);
    OK(dpu_free(set));
}

CONFORMS(every_dpu_has_a_log_of_its_own, "dpu_log_read takes a set of one DPU") {
    struct dpu_set_t set = conformance_dpus(3, "device_launch"), dpu;
    uint32_t index;
    DPU_FOREACH(set, dpu, index) {
        const uint32_t launches = 10 * index;
        OK(dpu_copy_to(dpu, "launches", 0, &launches, 4));
    }
    write_word(set, "task", PRINT);
    OK(dpu_launch(set, DPU_SYNCHRONOUS));
    DPU_FOREACH(set, dpu, index) {
        char expected[32], *text = log_of(dpu);
        snprintf(expected, sizeof expected, "launch %u of", 10 * index + 1);
        EXPECT_WORDS(text, expected);
        free(text);
    }
    OK(dpu_free(set));
}

CONFORMS(a_store_behind_wram_is_a_fault, "DPU_FAULT: \"dpu is in fault\"") {
    struct dpu_set_t set = conformance_dpus(1, "device_launch");
    write_word(set, "task", FAULT);
    EXPECT_ERROR(dpu_launch(set, DPU_SYNCHRONOUS), DPU_ERR_DPU_FAULT);
    OK(dpu_free(set));
}

CONFORMS(a_fault_is_said_by_sync_as_well, "after DPU_ASYNCHRONOUS, dpu_sync gives DPU_FAULT and status says fault") {
    struct dpu_set_t set = conformance_dpus(2, "device_launch");
    write_word(set, "task", FAULT);
    OK(dpu_launch(set, DPU_ASYNCHRONOUS));
    EXPECT_ERROR(dpu_sync(set), DPU_ERR_DPU_FAULT);
    OK(dpu_free(set));
}

CONFORMS(a_fault_of_one_dpu_leaves_the_others_results, "the other DPUs of the rank end as usual; the host lives") {
    struct dpu_set_t set = conformance_dpus(4, "device_launch"), dpu;
    uint32_t index;
    DPU_FOREACH(set, dpu, index) {
        const uint32_t task = index == 2 ? FAULT : LOOP, rounds = 100 * (index + 1);
        OK(dpu_copy_to(dpu, "task", 0, &task, 4));
        OK(dpu_copy_to(dpu, "rounds", 0, &rounds, 4));
    }
    EXPECT_ERROR(dpu_launch(set, DPU_SYNCHRONOUS), DPU_ERR_DPU_FAULT);
    DPU_FOREACH(set, dpu, index) {
        const uint32_t rounds = 100 * (index + 1);
        if (index != 2) EXPECT_EQUAL(read_word(dpu, "sum"), rounds * (rounds - 1) / 2);
    }
    OK(dpu_free(set));
    set = conformance_dpus(4, "device_launch");
    OK(dpu_launch(set, DPU_SYNCHRONOUS));
    OK(dpu_free(set));
}

STRICTER(after_a_fault_a_load_makes_the_dpu_usable, "a DPU in fault has to be reset, in some versions by dpu_alloc") {
    struct dpu_set_t set = conformance_dpus(2, "device_launch"), dpu;
    for (int round = 0; round < 3; round++) {
        write_word(set, "task", FAULT);
        EXPECT_ERROR(dpu_launch(set, DPU_SYNCHRONOUS), DPU_ERR_DPU_FAULT);
        OK(dpu_load(set, conformance_program("device_launch"), NULL));
        OK(dpu_launch(set, DPU_SYNCHRONOUS));
        DPU_FOREACH(set, dpu) { EXPECT_EQUAL(read_word(dpu, "launches"), 1); }
    }
    OK(dpu_free(set));
}

CONFORMS(dpu_assert_prints_the_error_and_exits, "DPU_ASSERT: \"FILE:LINE(FUNCTION): DPU Error (MESSAGE)\", exit 1") {
    struct dpu_set_t set = conformance_dpus(1, "device_launch");
    conformance_hear();
    const pid_t child = fork();
    if (child == 0) {
        DPU_ASSERT(dpu_copy_to(set, "nonesuch", 0, &set, 4));
        _exit(0);
    }
    int status = 0;
    EXPECT(waitpid(child, &status, 0) == child);
    EXPECT_EQUAL((status >> 8) & 0xff, EXIT_FAILURE);
    char *said = conformance_heard();
    EXPECT_WORDS(said, "host_launch.c:", "(test_dpu_assert_prints_the_error_and_exits): DPU Error (undefined symbol)");
    free(said);
    OK(dpu_free(set));
}

static const struct {
    dpu_error_t error;
    const char *message;
} messages[] = {
    {DPU_OK, "success"},
    {DPU_ERR_ALLOCATION, "dpu allocation error"},
    {DPU_ERR_INVALID_DPU_SET, "invalid action for this dpu set"},
    {DPU_ERR_INVALID_WRAM_ACCESS, "invalid wram access"},
    {DPU_ERR_INVALID_IRAM_ACCESS, "invalid iram access"},
    {DPU_ERR_INVALID_MRAM_ACCESS, "invalid mram access"},
    {DPU_ERR_INVALID_SYMBOL_ACCESS, "invalid memory symbol access"},
    {DPU_ERR_TRANSFER_ALREADY_SET, "dpu transfer is already set"},
    {DPU_ERR_NO_PROGRAM_LOADED, "no program has been loaded in the dpu set"},
    {DPU_ERR_DIFFERENT_DPU_PROGRAMS, "cannot access symbol on dpus with different programs"},
    {DPU_ERR_DPU_ALREADY_RUNNING, "dpu is already running"},
    {DPU_ERR_INVALID_MEMORY_TRANSFER, "invalid memory transfer"},
    {DPU_ERR_INVALID_PROFILE, "invalid profile"},
    {DPU_ERR_DPU_FAULT, "dpu is in fault"},
    {DPU_ERR_ELF_INVALID_FILE, "invalid ELF file"},
    {DPU_ERR_ELF_NO_SUCH_FILE, "no such ELF file"},
    {DPU_ERR_UNKNOWN_SYMBOL, "undefined symbol"},
};

CONFORMS(errors_have_their_messages, "dpu_error_to_string") {
    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++) {
        const char *said = dpu_error_to_string(messages[i].error);
        if (strcmp(said, messages[i].message) != 0) FAIL("\"%s\" is not \"%s\"", said, messages[i].message);
    }
    EXPECT(DPU_ERR_TOO_MANY_TASKLETS != DPU_OK);
    EXPECT_EQUAL(DPU_ERR_SG_NOT_MRAM_SYMBOL, DPU_ERR_TOO_MANY_TASKLETS + 4);
}
