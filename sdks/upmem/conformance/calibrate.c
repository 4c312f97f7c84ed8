/* Runs the microbenchmarks of device_calibration.c and prints what took how many cycles, by the program's own counter:

       dma_read BYTES TASKLETS CYCLES OPERATIONS        one transfer is an operation, or a read with a write
       add_int32 0 TASKLETS CYCLES OPERATIONS

   `calibrate FOLDER` with the programs calibration_1 to calibration_24 in the folder. */
#include <dpu.h>

#include "calibration.h"

static const char *const names[TASKS] = {"dma_read",     "dma_write", "dma_update",     "add_int32",      "multiply_int32",
                                         "divide_int32", "add_float", "multiply_float", "divide_float"};

static void measure(struct dpu_set_t set, uint32_t task, uint32_t bytes, uint32_t tasklets) {
    const uint64_t none = 0;
    struct dpu_set_t dpu;
    uint64_t cycles = 0;
    static const uint8_t zeros[IN_A_ROW * 2048];
    DPU_ASSERT(dpu_copy_to(set, "area", 0, zeros, sizeof zeros));
    DPU_ASSERT(dpu_copy_to(set, "task", 0, &task, sizeof task));
    DPU_ASSERT(dpu_copy_to(set, "bytes", 0, &bytes, sizeof bytes));
    DPU_ASSERT(dpu_copy_to(set, "cycles", 0, &none, sizeof none));
    DPU_ASSERT(dpu_launch(set, DPU_SYNCHRONOUS));
    DPU_FOREACH(set, dpu) { DPU_ASSERT(dpu_copy_from(dpu, "cycles", 0, &cycles, sizeof cycles)); }
    const uint32_t each = ROUNDS * (task <= DMA_UPDATE ? IN_A_ROW : ELEMENTS);
    printf("%s %u %u %llu %u\n", names[task], bytes, tasklets, (unsigned long long)cycles, each * tasklets);
}

int main(int argc, char **argv) {
    static const uint32_t counts[] = {1, 2, 4, 8, 11, 16, 24};
    static const uint32_t lengths[] = {8, 16, 32, 64, 128, 256, 512, 1024, 2048};
    if (argc != 2) return 2;
    struct dpu_set_t set;
    DPU_ASSERT(dpu_alloc(1, NULL, &set));
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/calibration_%u", argv[1], counts[i]);
        DPU_ASSERT(dpu_load(set, path, NULL));
        for (uint32_t task = DMA_READ; task <= DMA_UPDATE; task++)
            for (size_t j = 0; j < sizeof lengths / sizeof *lengths; j++)
                if (task != DMA_UPDATE || lengths[j] <= LONGEST_UPDATE) measure(set, task, lengths[j], counts[i]);
        for (uint32_t task = ADD_INT32; task < TASKS; task++) measure(set, task, 0, counts[i]);
    }
    DPU_ASSERT(dpu_free(set));
    return 0;
}
