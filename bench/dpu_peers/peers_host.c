/* Runs a hand-written DPU program, checks its result, and prints the modelled cycles of its slowest DPU.

       peers_host va|element COUNT DPUS PROGRAM
       peers_host red COUNT DPUS PROGRAM
       peers_host gemv ROWSxCOLUMNS DPUS PROGRAM

   Builds with the emulator alone, which alone tells what a launch cost. */
#include <dpu.h>
#include <dpu_emulator.h>
#include <string.h>

#include "peers.h"

struct work {
    struct dpu_set_t set;
    uint32_t dpus;
    /* Elements or rows of all DPUs, and of one; the last DPUs may have fewer, or none. */
    uint32_t count, share, columns;
};

static void *zeroed(size_t bytes) {
    void *memory = calloc(1, bytes + 8);
    if (memory == NULL) exit(4);
    return memory;
}

static uint32_t upto(uint32_t value, uint32_t multiple) { return (value + multiple - 1) / multiple * multiple; }

/* Each DPU gets `bytes` of an array, from one host array that is long enough for all. */
static void move(struct work *work, dpu_xfer_t direction, void *array, uint32_t offset, uint32_t bytes) {
    struct dpu_set_t dpu;
    uint32_t index;
    DPU_FOREACH(work->set, dpu, index) { DPU_ASSERT(dpu_prepare_xfer(dpu, (char *)array + (size_t)index * bytes)); }
    DPU_ASSERT(dpu_push_xfer(work->set, direction, DPU_MRAM_HEAP_POINTER_NAME, offset, bytes, DPU_XFER_DEFAULT));
}

static void launch(struct work *work, struct peer_arguments arguments) {
    struct dpu_set_t dpu;
    uint32_t index;
    DPU_FOREACH(work->set, dpu, index) {
        const uint64_t before = (uint64_t)index * work->share;
        arguments.count = before >= work->count ? 0 : (uint32_t)(work->count - before);
        if (arguments.count > work->share) arguments.count = work->share;
        /* The arrays are padded: DMA moves pairs of int32. */
        arguments.count = upto(arguments.count, 2);
        DPU_ASSERT(dpu_copy_to(dpu, "arguments", 0, &arguments, sizeof arguments));
    }
    DPU_ASSERT(dpu_launch(work->set, DPU_SYNCHRONOUS));
}

static int add(struct work *work, int in_place) {
    const uint32_t bytes = work->share * sizeof(int32_t);
    const size_t all = (size_t)bytes * work->dpus;
    int32_t *first = zeroed(all), *second = zeroed(all), *total = zeroed(all);
    for (uint32_t i = 0; i < work->count; i++) {
        first[i] = (int32_t)(i * 2654435761u);
        second[i] = (int32_t)(i * 40503u);
    }
    move(work, DPU_XFER_TO_DPU, first, 0, bytes);
    move(work, DPU_XFER_TO_DPU, second, bytes, bytes);
    memset(total, 0xee, all);
    if (!in_place) move(work, DPU_XFER_TO_DPU, total, 2 * bytes, bytes);
    launch(work, (struct peer_arguments){.first = 0, .second = bytes, .third = 2 * bytes});
    move(work, DPU_XFER_FROM_DPU, total, in_place ? bytes : 2 * bytes, bytes);
    for (uint32_t i = 0; i < work->count; i++)
        if (total[i] != (int32_t)((uint32_t)first[i] + (uint32_t)second[i])) return 1;
    return 0;
}

static int reduce(struct work *work) {
    const uint32_t bytes = work->share * sizeof(int64_t);
    int64_t *values = zeroed((size_t)bytes * work->dpus), total = 0, expected = 0;
    for (uint32_t i = 0; i < work->count; i++) {
        values[i] = (int64_t)i * 1000003 - 5;
        expected += values[i];
    }
    move(work, DPU_XFER_TO_DPU, values, 0, bytes);
    launch(work, (struct peer_arguments){.first = 0});
    struct dpu_set_t dpu;
    DPU_FOREACH(work->set, dpu) {
        int64_t part = 0;
        DPU_ASSERT(dpu_copy_from(dpu, "result", 0, &part, sizeof part));
        total += part;
    }
    return total != expected;
}

static int multiply(struct work *work) {
    const uint32_t row = work->columns * sizeof(int32_t), bytes = work->share * row, results = work->share * 4;
    int32_t *matrix = zeroed((size_t)bytes * work->dpus), *vector = zeroed(row);
    int32_t *product = zeroed((size_t)results * work->dpus);
    for (size_t i = 0; i < (size_t)work->count * work->columns; i++) matrix[i] = (int32_t)(i % 50);
    for (uint32_t i = 0; i < work->columns; i++) vector[i] = (int32_t)(i % 50) - 7;
    move(work, DPU_XFER_TO_DPU, matrix, 0, bytes);
    DPU_ASSERT(dpu_broadcast_to(work->set, DPU_MRAM_HEAP_POINTER_NAME, bytes, vector, row, DPU_XFER_DEFAULT));
    memset(product, 0xee, (size_t)results * work->dpus);
    move(work, DPU_XFER_TO_DPU, product, bytes + row, results);
    launch(work, (struct peer_arguments){.columns = work->columns, .first = 0, .second = bytes, .third = bytes + row});
    move(work, DPU_XFER_FROM_DPU, product, bytes + row, results);
    for (uint32_t i = 0; i < work->count; i++) {
        int32_t expected = 0;
        for (uint32_t j = 0; j < work->columns; j++) expected += matrix[(size_t)i * work->columns + j] * vector[j];
        if (product[i] != expected) return 1;
    }
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    struct work work = {.count = (uint32_t)strtoul(argv[2], NULL, 10), .dpus = (uint32_t)strtoul(argv[3], NULL, 10)};
    const char *columns = strchr(argv[2], 'x');
    if (columns != NULL) work.columns = (uint32_t)strtoul(columns + 1, NULL, 10);
    work.share = upto((work.count + work.dpus - 1) / work.dpus, 2);
    DPU_ASSERT(dpu_alloc(work.dpus, NULL, &work.set));
    DPU_ASSERT(dpu_load(work.set, argv[4], NULL));
    int wrong = 2;
    if (strcmp(argv[1], "va") == 0) wrong = add(&work, 1);
    if (strcmp(argv[1], "element") == 0) wrong = add(&work, 0);
    if (strcmp(argv[1], "red") == 0) wrong = reduce(&work);
    if (strcmp(argv[1], "gemv") == 0) wrong = multiply(&work);
    if (wrong) {
        fprintf(stderr, "%s: the result is wrong\n", argv[1]);
        return wrong;
    }
    struct dpu_emulator_totals cost;
    if (dpu_emulator_totals(work.set, &cost) != 0) return 3;
    printf("%llu\n", (unsigned long long)cost.max_cycles);
    DPU_ASSERT(dpu_free(work.set));
    return 0;
}
