/* What the emulator adds to the SDK: what a launch cost, in its model. Found with dlsym; absent in a real SDK. */
#define _GNU_SOURCE
#include "conformance.h"

#include <dlfcn.h>
#if __has_include(<dpu_emulator.h>)
#include <dpu_emulator.h>
#else
struct dpu_emulator_stats {
    uint64_t cycles, instructions, dma_read_bytes, dma_write_bytes, dma_transfers, dma_cycles;
};
#endif

enum { EVERY_LENGTH, SCALARS, NOTHING = 99 };

static int (*find(void))(struct dpu_set_t, struct dpu_emulator_stats *) {
    int (*stats)(struct dpu_set_t, struct dpu_emulator_stats *);
    *(void **)&stats = dlsym(RTLD_DEFAULT, "dpu_emulator_stats");
    return stats;
}

static struct dpu_emulator_stats launch(struct dpu_set_t set, uint32_t task) {
    static const uint64_t words[256];
    struct dpu_emulator_stats stats;
    memset(&stats, 0xee, sizeof stats);
    OK(dpu_copy_to(set, "from", 0, words, sizeof words));
    OK(dpu_copy_to(set, "task", 0, &task, sizeof task));
    OK(dpu_launch(set, DPU_SYNCHRONOUS));
    EXPECT_EQUAL(find()(conformance_first(set), &stats), 0);
    return stats;
}

STRICTER(a_launch_says_how_many_bytes_its_dma_moved, "has no such function; a profiler of its own") {
    struct dpu_set_t set = conformance_dpus(1, "device_memory");
    /* 8, 16, ... 2048 bytes, each once in either direction. */
    const uint64_t bytes = 8 * 256 * 257 / 2;
    const struct dpu_emulator_stats stats = launch(set, EVERY_LENGTH);
    EXPECT_EQUAL(stats.dma_read_bytes, bytes);
    EXPECT_EQUAL(stats.dma_write_bytes, bytes);
    EXPECT_EQUAL(stats.dma_transfers, 512);
    uint64_t busy = 0;
    for (uint64_t length = 8; length <= 2048; length += 8) {
        const uint64_t engine = (34250 + 541 * length + 500) / 1000, read = 77 + length / 2, written = 61 + length / 2;
        busy += (read < engine ? read : engine) + (written < engine ? written : engine);
    }
    EXPECT_EQUAL(stats.dma_cycles, busy);
    EXPECT(stats.cycles > stats.dma_cycles);
    /* The check of 2048 bytes for each length, by one tasklet: 11 cycles an instruction. */
    EXPECT(stats.instructions > 256 * 2048 && stats.cycles > 10 * stats.instructions);
    OK(dpu_free(set));
}

STRICTER(the_cost_is_that_of_the_last_launch, "has no such function; a profiler of its own") {
    struct dpu_set_t set = conformance_dpus(1, "device_memory");
    const struct dpu_emulator_stats first = launch(set, EVERY_LENGTH), idle = launch(set, NOTHING);
    const struct dpu_emulator_stats second = launch(set, EVERY_LENGTH);
    EXPECT(memcmp(&first, &second, sizeof first) == 0);
    EXPECT_EQUAL(idle.dma_transfers, 0);
    EXPECT_EQUAL(idle.dma_read_bytes, 0);
    EXPECT(idle.cycles > 0 && idle.cycles < 2000);
    OK(dpu_free(set));
}

STRICTER(each_dpu_has_a_cost_of_its_own, "has no such function; a profiler of its own") {
    struct dpu_set_t set = conformance_dpus(3, "device_memory"), dpu;
    static const uint64_t words[256];
    uint32_t index;
    OK(dpu_copy_to(set, "from", 0, words, sizeof words));
    DPU_FOREACH(set, dpu, index) {
        const uint32_t task = index == 1 ? EVERY_LENGTH : NOTHING;
        OK(dpu_copy_to(dpu, "task", 0, &task, sizeof task));
    }
    OK(dpu_launch(set, DPU_SYNCHRONOUS));
    DPU_FOREACH(set, dpu, index) {
        struct dpu_emulator_stats stats;
        EXPECT_EQUAL(find()(dpu, &stats), 0);
        EXPECT_EQUAL(stats.dma_transfers, index == 1 ? 512 : 0);
    }
    OK(dpu_free(set));
}

STRICTER(a_set_of_ranks_has_no_cost, "has no such function; a profiler of its own") {
    struct dpu_set_t set = conformance_dpus(1, "device_memory");
    struct dpu_emulator_stats stats;
    launch(set, NOTHING);
    EXPECT(find()(set, &stats) != 0);
    OK(dpu_free(set));
}
