/* host PROGRAM ELEMENTS LAUNCHES: launches a program of device.c on one DPU, on an array of that many numbers. */
#include <dpu.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    const uint32_t elements = (uint32_t)atoi(argv[2]), launches = (uint32_t)atoi(argv[3]);
    struct dpu_set_t set;
    DPU_ASSERT(dpu_alloc(1, NULL, &set));
    DPU_ASSERT(dpu_load(set, argv[1], NULL));
    uint64_t *numbers = malloc(elements * sizeof *numbers);
    for (uint32_t i = 0; i < elements; i++) numbers[i] = i * 2654435761u % 4096;
    DPU_ASSERT(dpu_broadcast_to(set, DPU_MRAM_HEAP_POINTER_NAME, 0, numbers, elements * sizeof *numbers,
                                DPU_XFER_DEFAULT));
    DPU_ASSERT(dpu_broadcast_to(set, "elements", 0, &elements, sizeof elements, DPU_XFER_DEFAULT));
    for (uint32_t i = 0; i < launches; i++) DPU_ASSERT(dpu_launch(set, DPU_SYNCHRONOUS));
    DPU_ASSERT(dpu_free(set));
    free(numbers);
    return 0;
}
