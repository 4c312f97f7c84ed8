/* Sets of DPUs: allocation, ranks, iteration, release. */
#include "conformance.h"

#include <dpu_management.h>
#include <sys/wait.h>
#include <unistd.h>

CONFORMS(alloc_gives_as_many_dpus_as_asked_for, "dpu_alloc gives ranks and disables the DPUs above the number") {
    const uint32_t numbers[] = {1, 2, 5, 63, 64, 65};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct dpu_set_t set;
        const dpu_error_t error = dpu_alloc(numbers[i], NULL, &set);
        if (error == DPU_ERR_ALLOCATION && !conformance_emulated()) conformance_skip("the machine has too few DPUs");
        OK(error);
        uint32_t dpus = 0, ranks = 0;
        OK(dpu_get_nr_dpus(set, &dpus));
        OK(dpu_get_nr_ranks(set, &ranks));
        EXPECT_EQUAL(dpus, numbers[i]);
        EXPECT(ranks * 64 >= dpus && ranks >= 1);
        if (conformance_emulated()) EXPECT_EQUAL(ranks, (dpus + 63) / 64);
        OK(dpu_free(set));
    }
}

CONFORMS(allocate_all_gives_at_least_one, "DPU_ALLOCATE_ALL is UINT_MAX and gives all that are free") {
    struct dpu_set_t set;
    EXPECT_EQUAL(DPU_ALLOCATE_ALL, UINT_MAX);
    OK(dpu_alloc(DPU_ALLOCATE_ALL, NULL, &set));
    uint32_t dpus = 0;
    OK(dpu_get_nr_dpus(set, &dpus));
    EXPECT(dpus >= 1);
    OK(dpu_free(set));
}

CONFORMS(more_than_there_are_is_an_allocation_error, "ALLOCATION: \"dpu allocation error\"") {
    struct dpu_set_t set;
    EXPECT_ERROR(dpu_alloc(1000000, NULL, &set), DPU_ERR_ALLOCATION);
}

CONFORMS(a_profile_may_ask_for_the_simulator, "profile \"backend=simulator\" is documented and accepted") {
    struct dpu_set_t set;
    OK(dpu_alloc(1, "backend=simulator", &set));
    OK(dpu_load(set, conformance_program("device_symbols"), NULL));
    OK(dpu_launch(set, DPU_SYNCHRONOUS));
    OK(dpu_free(set));
}

CONFORMS(a_profile_that_makes_no_sense_is_refused, "INVALID_PROFILE: \"invalid profile\"") {
    struct dpu_set_t set;
    EXPECT_ERROR(dpu_alloc(1, "backend=no such backend", &set), DPU_ERR_INVALID_PROFILE);
}

CONFORMS(foreach_without_and_with_an_index, "DPU_FOREACH(set, dpu) and DPU_FOREACH(set, dpu, i), i from 0") {
    struct dpu_set_t set = conformance_dpus(5, "device_symbols"), dpu;
    uint32_t seen = 0, index = 99;
    DPU_FOREACH(set, dpu) {
        uint32_t one = 0;
        OK(dpu_get_nr_dpus(dpu, &one));
        EXPECT_EQUAL(one, 1);
        seen++;
    }
    EXPECT_EQUAL(seen, 5);
    seen = 0;
    DPU_FOREACH(set, dpu, index) {
        EXPECT_EQUAL(index, seen);
        const uint32_t value = 100 + index;
        OK(dpu_copy_to(dpu, "word", 0, &value, sizeof value));
        seen++;
    }
    EXPECT_EQUAL(seen, 5);
    DPU_FOREACH(set, dpu, index) {
        uint32_t value = 0;
        OK(dpu_copy_from(dpu, "word", 0, &value, sizeof value));
        EXPECT_EQUAL(value, 100 + index);
    }
    OK(dpu_free(set));
}

CONFORMS(foreach_on_one_dpu_gives_that_dpu, "a set of kind DPU_SET_DPU is its own only element") {
    struct dpu_set_t set = conformance_dpus(3, "device_symbols"), dpu, self;
    uint32_t index;
    DPU_FOREACH(set, dpu, index) {
        const uint32_t value = 10 + index;
        uint32_t seen = 0, copy = 0;
        OK(dpu_copy_to(dpu, "word", 0, &value, sizeof value));
        DPU_FOREACH(dpu, self) {
            OK(dpu_copy_from(self, "word", 0, &copy, sizeof copy));
            EXPECT_EQUAL(copy, value);
            seen++;
        }
        EXPECT_EQUAL(seen, 1);
    }
    OK(dpu_free(set));
}

CONFORMS(rank_foreach_covers_every_dpu_once, "DPU_RANK_FOREACH(set, rank[, i]), DPU_FOREACH inside it") {
    struct dpu_set_t set = conformance_dpus(130, "device_symbols"), rank, dpu;
    uint32_t ranks = 0, expected = 0, dpus = 0, index;
    OK(dpu_get_nr_ranks(set, &expected));
    DPU_RANK_FOREACH(set, rank) {
        uint32_t one = 0;
        OK(dpu_get_nr_ranks(rank, &one));
        EXPECT_EQUAL(one, 1);
        ranks++;
    }
    EXPECT_EQUAL(ranks, expected);
    ranks = 0;
    DPU_RANK_FOREACH(set, rank, index) {
        EXPECT_EQUAL(index, ranks++);
        uint32_t inside = 0, counted = 0, one = 0;
        OK(dpu_get_nr_dpus(rank, &inside));
        DPU_FOREACH(rank, dpu) {
            OK(dpu_get_nr_dpus(dpu, &one));
            counted += one;
        }
        EXPECT_EQUAL(counted, inside);
        dpus += inside;
    }
    EXPECT_EQUAL(dpus, 130);
    OK(dpu_free(set));
}

CONFORMS(dpus_and_ranks_have_numbers, "dpu_management.h: a rank's number, and slice and member in it, are a DPU's own") {
    struct dpu_set_t set = conformance_dpus(70, "device_symbols"), rank, dpu;
    uint32_t ids[70], count = 0;
    EXPECT(dpu_from_set(set) == NULL);
    DPU_RANK_FOREACH(set, rank) {
        DPU_FOREACH(rank, dpu) {
            struct dpu_t *one = dpu_from_set(dpu);
            EXPECT(dpu_get_rank(one) == rank.list.ranks[0]);
            EXPECT(dpu_get(dpu_get_rank(one), dpu_get_slice_id(one), dpu_get_member_id(one)) == one);
            EXPECT_EQUAL(dpu_get_id(one), dpu_get_rank_id(dpu_get_rank(one)) << 16 | dpu_get_slice_id(one) << 8 |
                                              dpu_get_member_id(one));
            for (uint32_t other = 0; other < count; other++) EXPECT(ids[other] != dpu_get_id(one));
            ids[count++] = dpu_get_id(one);
        }
        EXPECT(dpu_get(rank.list.ranks[0], 0, 8) == NULL);
        EXPECT(dpu_get(rank.list.ranks[0], 8, 0) == NULL);
    }
    EXPECT_EQUAL(count, 70);
    OK(dpu_free(set));
}

CONFORMS(only_an_allocated_set_is_freed, "INVALID_DPU_SET: \"invalid action for this dpu set\"") {
    struct dpu_set_t set = conformance_dpus(2, "device_symbols");
    EXPECT_ERROR(dpu_free(conformance_first(set)), DPU_ERR_INVALID_DPU_SET);
    OK(dpu_free(set));
}

CONFORMS(a_set_is_freed_once, "dpu_free of a set that is not allocated any more: INVALID_DPU_SET") {
    struct dpu_set_t set = conformance_dpus(2, "device_symbols");
    OK(dpu_free(set));
    EXPECT_ERROR(dpu_free(set), DPU_ERR_INVALID_DPU_SET);
}

CONFORMS(freed_dpus_can_be_allocated_again, "dpu_free gives the ranks back") {
    for (int round = 0; round < 4; round++) {
        struct dpu_set_t set = conformance_dpus(64, "device_symbols");
        OK(dpu_launch(set, DPU_SYNCHRONOUS));
        OK(dpu_free(set));
    }
}

CONFORMS(two_sets_do_not_share_dpus, "a rank belongs to one set at a time") {
    struct dpu_set_t first = conformance_dpus(2, "device_symbols"), second = conformance_dpus(2, "device_other"), dpu;
    const uint32_t ours = 5, theirs = 6;
    OK(dpu_broadcast_to(first, "word", 0, &ours, sizeof ours, DPU_XFER_DEFAULT));
    OK(dpu_broadcast_to(second, "word", 0, &theirs, sizeof theirs, DPU_XFER_DEFAULT));
    OK(dpu_launch(second, DPU_SYNCHRONOUS));
    DPU_FOREACH(first, dpu) {
        uint32_t value = 0;
        OK(dpu_copy_from(dpu, "word", 0, &value, sizeof value));
        EXPECT_EQUAL(value, ours);
    }
    DPU_FOREACH(second, dpu) {
        uint32_t value = 0;
        OK(dpu_copy_from(dpu, "word", 0, &value, sizeof value));
        EXPECT_EQUAL(value, 2 * theirs);
    }
    OK(dpu_free(first));
    OK(dpu_free(second));
}

enum { SERVER = 640 };

/* Each DPU runs the program on a number of its own, the first one on `first`. */
static void run_on_each(uint32_t count, uint64_t first) {
    struct dpu_set_t set = conformance_dpus(count, "device_symbols"), dpu;
    uint64_t inputs[SERVER], sums[SERVER];
    uint32_t index;
    DPU_FOREACH(set, dpu, index) {
        inputs[index] = first + 3 * (uint64_t)index;
        sums[index] = 0;
        OK(dpu_prepare_xfer(dpu, &inputs[index]));
    }
    OK(dpu_push_xfer(set, DPU_XFER_TO_DPU, "area", 0, sizeof *inputs, DPU_XFER_DEFAULT));
    OK(dpu_launch(set, DPU_SYNCHRONOUS));
    DPU_FOREACH(set, dpu, index) { OK(dpu_prepare_xfer(dpu, &sums[index])); }
    OK(dpu_push_xfer(set, DPU_XFER_FROM_DPU, "area", 8, sizeof *sums, DPU_XFER_DEFAULT));
    for (index = 0; index < count; index++) EXPECT_EQUAL(sums[index], inputs[index] + 7);
    OK(dpu_free(set));
}

CONFORMS(four_ranks_of_dpus_run, "256 DPUs are four ranks; each runs the program on its own memory") {
    run_on_each(256, 1000);
}

STRICTER(two_processes_with_many_ranks_do_not_see_each_other, "shares the machine's ranks between processes") {
    setenv("DPU_EMULATOR_NR_DPUS", "640", 1);
    const pid_t child = fork();
    if (child == 0) {
        run_on_each(SERVER / 2, 500000);
        exit(0);
    }
    run_on_each(SERVER, 1000);
    int status = -1;
    EXPECT_EQUAL(waitpid(child, &status, 0), child);
    EXPECT_EQUAL(status, 0);
}
