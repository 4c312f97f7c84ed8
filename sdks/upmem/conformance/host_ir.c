/* A program of LLVM IR and C, compiled apart, stripped of .eh_frame and linked, as TritonPIM documents the build. */
#include "conformance.h"

CONFORMS(a_program_of_typed_pointer_ir_runs, "dpu-upmem-dpurte-clang takes LLVM 12's IR with -x ir -c") {
    struct dpu_set_t set;
    struct dpu_program_t *program;
    struct dpu_symbol_t heap;
    uint64_t words[5] = {10, 20, 30, 40, 50};
    OK(dpu_alloc(1, NULL, &set));
    OK(dpu_load(set, conformance_program("ir_program"), &program));
    OK(dpu_get_symbol(program, DPU_MRAM_HEAP_POINTER_NAME, &heap));
    const struct {
        uint32_t base, n;
        uint64_t pad;
    } arguments = {.base = heap.address + 64, .n = 7, .pad = 0};
    OK(dpu_copy_to(set, "arguments", 0, &arguments, sizeof arguments));
    OK(dpu_copy_to(set, DPU_MRAM_HEAP_POINTER_NAME, 64, words, sizeof words));
    OK(dpu_launch(set, DPU_SYNCHRONOUS));
    OK(dpu_copy_from(conformance_first(set), DPU_MRAM_HEAP_POINTER_NAME, 64, words, sizeof words));
    for (uint32_t i = 0; i < 5; i++) EXPECT_EQUAL(words[i], 10 * (i + 1) + (i < 4 ? 7 : 0));
    OK(dpu_free(set));
}
