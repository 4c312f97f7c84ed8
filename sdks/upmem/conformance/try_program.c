/* Loads a DPU program into one DPU and runs it: `try_program PATH`. Exit status 1 and the error if that fails. */
#include <dpu.h>

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    struct dpu_set_t set;
    DPU_ASSERT(dpu_alloc(1, NULL, &set));
    DPU_ASSERT(dpu_load(set, argv[1], NULL));
    DPU_ASSERT(dpu_launch(set, DPU_SYNCHRONOUS));
    DPU_ASSERT(dpu_free(set));
    return 0;
}
