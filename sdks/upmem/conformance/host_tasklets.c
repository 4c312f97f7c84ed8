/* Tasklets together: identity, barriers, mutexes, semaphores, handshakes, the WRAM heap, sequential reads, counters. */
#include "conformance.h"

enum { IDENTITY, BARRIER, MUTEX, TRYLOCK, SEMAPHORE, HANDSHAKE, ALLOC, RESET, SEQUENTIAL, COUNTERS, CONTEND, SPIN, LEAVE };
enum { TASKLETS = 16, MOST = 24, READ = 4096, LOG = 256 };

static uint32_t results[MOST], extra[MOST], counter;

static void write_task(struct dpu_set_t set, uint32_t task) {
    OK(dpu_broadcast_to(set, "task", 0, &task, sizeof task, DPU_XFER_DEFAULT));
}

static struct dpu_set_t ready(const char *program, uint32_t task) {
    struct dpu_set_t set = conformance_dpus(1, program);
    write_task(set, task);
    return set;
}

static void launch(struct dpu_set_t set) {
    OK(dpu_launch(set, DPU_SYNCHRONOUS));
    struct dpu_set_t dpu = conformance_first(set);
    OK(dpu_copy_from(dpu, "results", 0, results, sizeof results));
    OK(dpu_copy_from(dpu, "extra", 0, extra, sizeof extra));
    OK(dpu_copy_from(dpu, "counter", 0, &counter, sizeof counter));
}

static void run(uint32_t task) {
    struct dpu_set_t set = ready("device_tasklets", task);
    launch(set);
    OK(dpu_free(set));
}

CONFORMS(every_tasklet_runs_main_with_its_number, "me() is 0 .. NR_TASKLETS - 1, up to 24 tasklets") {
    const struct {
        const char *program;
        uint32_t tasklets;
    } programs[] = {
        {"device_tasklets_1", 1}, {"device_tasklets", 16}, {"device_tasklets_v1b", 16}, {"device_tasklets_24", 24}};
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        struct dpu_set_t set = ready(programs[i].program, IDENTITY);
        launch(set);
        for (uint32_t tasklet = 0; tasklet < MOST; tasklet++)
            EXPECT_EQUAL(results[tasklet], tasklet < programs[i].tasklets ? tasklet + 1 : 0);
        uint32_t tasklets = 0;
        OK(dpu_copy_from(conformance_first(set), "tasklets", 0, &tasklets, 4));
        EXPECT_EQUAL(tasklets, programs[i].tasklets);
        OK(dpu_free(set));
    }
}

CONFORMS(programs_with_other_tasklets_follow_each_other, "dpu_load replaces the program and all that belongs to it") {
    const char *programs[] = {"device_tasklets_24", "device_tasklets_1", "device_tasklets", "device_tasklets_24"};
    const uint32_t tasklets[] = {24, 1, 16, 24};
    struct dpu_set_t set = conformance_dpus(3, programs[0]);
    for (int i = 0; i < 4; i++) {
        OK(dpu_load(set, conformance_program(programs[i]), NULL));
        write_task(set, BARRIER);
        launch(set);
        for (uint32_t tasklet = 0; tasklet < MOST; tasklet++)
            EXPECT_EQUAL(extra[tasklet], tasklet < tasklets[i] ? 10 : 0);
    }
    OK(dpu_free(set));
}

CONFORMS(a_barrier_lets_nobody_through_before_all_are_there, "barrier_wait, again and again") {
    run(BARRIER);
    for (uint32_t tasklet = 0; tasklet < TASKLETS; tasklet++) EXPECT_EQUAL(extra[tasklet], 10);
}

CONFORMS(a_mutex_lets_one_in_at_a_time, "mutex_lock, mutex_unlock") {
    run(MUTEX);
    EXPECT_EQUAL(counter, 100 * TASKLETS);
    EXPECT_EQUAL(results[0], 1);
}

CONFORMS(trylock_does_not_wait, "mutex_trylock gives true if it has locked") {
    run(TRYLOCK);
    EXPECT_EQUAL(results[0], 0);
    EXPECT_EQUAL(results[1], 1);
}

CONFORMS(a_launch_releases_what_the_one_before_it_left_locked, "the start-up releases all atomic bits") {
    struct dpu_set_t set = ready("device_tasklets", LEAVE);
    for (uint32_t launches = 1; launches <= 3; launches++) {
        launch(set);
        EXPECT_EQUAL(results[0], launches);
        EXPECT_EQUAL(results[1], launches);
    }
    OK(dpu_free(set));
}

CONFORMS(a_semaphore_counts, "sem_take waits while the count is 0, sem_give raises it") {
    run(SEMAPHORE);
    for (uint32_t tasklet = 1; tasklet < TASKLETS; tasklet++) EXPECT(results[tasklet] >= 1);
    EXPECT(counter == 1 || counter == 2);
}

CONFORMS(a_handshake_orders_two_tasklets, "handshake_wait_for waits for that tasklet's handshake_notify") {
    run(HANDSHAKE);
    for (uint32_t tasklet = 0; tasklet < TASKLETS; tasklet++) EXPECT_EQUAL(results[tasklet], tasklet);
}

CONFORMS(waiting_for_a_variable_ends, "all tasklets make progress: a loop on a volatile variable sees the store") {
    run(SPIN);
    for (uint32_t tasklet = 0; tasklet < TASKLETS; tasklet++) EXPECT_EQUAL(results[tasklet], 1);
}

static void expect_blocks(void) {
    EXPECT_EQUAL(counter, 0);
    for (uint32_t i = 0; i < TASKLETS; i++) {
        EXPECT_EQUAL(results[i] % 8, 0);
        EXPECT_EQUAL(extra[i] % 8, 0);
        for (uint32_t j = 0; j < TASKLETS; j++) {
            EXPECT(i == j || results[i] >= results[j] + 20 || results[j] >= results[i] + 20);
            EXPECT(results[i] >= extra[j] + 64 || extra[j] >= results[i] + 20);
        }
    }
}

CONFORMS(mem_alloc_gives_aligned_blocks_of_their_own, "a pointer that only rises, by multiples of 8") {
    run(ALLOC);
    expect_blocks();
}

CONFORMS(mem_reset_gives_all_of_the_heap_back, "the next mem_alloc starts where the first did") {
    struct dpu_set_t set = ready("device_tasklets", RESET);
    uint32_t lowest[2] = {UINT32_MAX, UINT32_MAX};
    /* Sixteen times 1.5 KiB would not fit into WRAM if nothing were given back, nor would two hundred launches. */
    for (int round = 0; round < 200; round++) {
        launch(set);
        if (round == 0) expect_blocks();
        for (uint32_t i = 0; i < TASKLETS; i++)
            if (results[i] < lowest[round > 0]) lowest[round > 0] = results[i];
    }
    EXPECT_EQUAL(lowest[0], lowest[1]);
    OK(dpu_free(set));
}

CONFORMS(sequential_reads_cover_an_array, "seqread_init, seqread_get, seqread_seek, seqread_tell") {
    static uint32_t numbers[READ];
    struct dpu_set_t set = ready("device_tasklets", SEQUENTIAL);
    for (uint32_t i = 0; i < READ; i++) numbers[i] = 3 * i + 1;
    OK(dpu_copy_to(set, "numbers", 0, numbers, sizeof numbers));
    launch(set);
    for (uint32_t tasklet = 0; tasklet < TASKLETS; tasklet++) {
        const uint32_t share = READ / TASKLETS;
        uint32_t sum = 0;
        for (uint32_t i = 0; i < share; i++) sum += numbers[tasklet * share + i];
        EXPECT_EQUAL(results[tasklet], sum);
        EXPECT_EQUAL(extra[tasklet], numbers[tasklet * share + 3]);
    }
    OK(dpu_free(set));
}

CONFORMS(both_performance_counters_count_on_v1b, "COUNT_ENABLE_BOTH and perfcounter_get_both, -mcpu=v1B") {
    struct dpu_set_t set = conformance_dpus(1, "device_counters"), dpu = conformance_first(set);
    struct {
        uint64_t cycles, instructions;
    } got[4];
    memset(got, 0x5a, sizeof got);
    OK(dpu_launch(set, DPU_SYNCHRONOUS));
    OK(dpu_copy_from(dpu, "counted", 0, got, sizeof got));
    /* 1000 rounds of a tasklet that is alone, then none: it issues every 11 cycles, and reads what was stopped. */
    EXPECT(got[0].instructions >= 2000 && got[0].instructions < 20000);
    EXPECT(got[0].cycles >= 10 * got[0].instructions && got[0].cycles <= 12 * got[0].instructions);
    /* Then as many again, which are added; after a reset, few. */
    EXPECT(got[1].instructions >= 2 * got[0].instructions - 100 && got[1].cycles >= 2 * got[0].cycles - 1100);
    EXPECT(got[2].instructions < 200 && got[2].cycles < 2200);
    EXPECT(got[3].instructions < 200);
    OK(dpu_free(set));
}

CONFORMS(both_performance_counters_are_a_fault_on_v1a, "COUNT_ENABLE_BOTH faults on v1A") {
    struct dpu_set_t set = conformance_dpus(1, "device_counters_v1a");
    conformance_hear();
    EXPECT_ERROR(conformance_plain(dpu_launch(set, DPU_SYNCHRONOUS)), DPU_ERR_DPU_FAULT);
    free(conformance_heard());
    OK(dpu_free(set));
}

CONFORMS(the_performance_counter_counts, "perfcounter_config(COUNT_CYCLES or COUNT_INSTRUCTIONS, true)") {
    uint64_t cycles = 0, instructions = 0;
    struct dpu_set_t set = ready("device_tasklets_1", COUNTERS), dpu = conformance_first(set);
    launch(set);
    OK(dpu_copy_from(dpu, "cycles", 0, &cycles, 8));
    OK(dpu_copy_from(dpu, "instructions", 0, &instructions, 8));
    EXPECT_EQUAL(extra[0], 1);
    /* 1000 rounds of some 3 to 8 instructions; one tasklet alone issues one in 11 cycles. */
    EXPECT(instructions >= 3000 && instructions <= 8000);
    EXPECT(cycles > 9 * instructions && cycles < 13 * instructions);
    OK(dpu_free(set));
}

STRICTER(two_runs_are_the_same_to_the_cycle, "nearly: order and cycles may differ with refresh and host accesses") {
    uint8_t order[2][LOG];
    uint64_t cycles[2];
    for (int round = 0; round < 2; round++) {
        struct dpu_set_t set = ready("device_tasklets", CONTEND), dpu = conformance_first(set);
        launch(set);
        OK(dpu_copy_from(dpu, "order", 0, order[round], LOG));
        OK(dpu_copy_from(dpu, "cycles", 0, &cycles[round], 8));
        EXPECT_EQUAL(counter, LOG);
        OK(dpu_free(set));
    }
    EXPECT(memcmp(order[0], order[1], LOG) == 0);
    EXPECT_EQUAL(cycles[0], cycles[1]);
    EXPECT(cycles[0] > 0);
}

STRICTER(two_dpus_are_the_same_to_the_cycle, "nearly: order and cycles may differ with refresh and host accesses") {
    struct dpu_set_t set = conformance_dpus(8, "device_tasklets"), dpu;
    uint8_t order[8][LOG];
    uint64_t cycles[8];
    uint32_t index;
    write_task(set, CONTEND);
    OK(dpu_launch(set, DPU_SYNCHRONOUS));
    DPU_FOREACH(set, dpu, index) {
        OK(dpu_copy_from(dpu, "order", 0, order[index], LOG));
        OK(dpu_copy_from(dpu, "cycles", 0, &cycles[index], 8));
        EXPECT(memcmp(order[index], order[0], LOG) == 0);
        EXPECT_EQUAL(cycles[index], cycles[0]);
    }
    OK(dpu_free(set));
}
