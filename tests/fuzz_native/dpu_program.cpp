// The emulator's loader of DPU programs: what it accepts fits into the memories of a DPU.
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "program.h"
#include "report.h"

int accepted = 0;

// In the place of report.cpp: the text is made, and not printed.
dpu_error_t refuse(dpu_error_t error, const char *format, ...) {
    char line[2048];
    va_list list;
    va_start(list, format);
    std::vsnprintf(line, sizeof(line), format, list);
    va_end(list);
    return error;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
    std::shared_ptr<dpu_program_t> program;
    // A vector of just this size: a read behind it is found.
    const std::vector<std::uint8_t> file(data, data + size);
    if (read_program("input", file, program) != DPU_OK) {
        if (program) std::abort();
        return 0;
    }
    const shared::Program &layout = program->layout;
    bool fits = program->wram.size() == FOUNDRY_DPU_WRAM_SIZE && layout.nr_tasklets > 0 &&
                layout.nr_tasklets <= FOUNDRY_DPU_MAX_TASKLETS && layout.code_bytes <= FOUNDRY_DPU_CODE_SIZE &&
                layout.entry - FOUNDRY_DPU_CODE_BASE < layout.code_bytes && layout.line_bytes <= shared::COUNTERS_BYTES &&
                layout.heap_end >= FOUNDRY_DPU_WRAM_BASE &&
                layout.heap_end - FOUNDRY_DPU_WRAM_BASE <= FOUNDRY_DPU_WRAM_SIZE;
    for (const auto &block : program->mram)
        fits = fits && block.address >= FOUNDRY_DPU_MRAM_BASE &&
               block.address - FOUNDRY_DPU_MRAM_BASE + std::uint64_t{block.bytes.size()} <= FOUNDRY_DPU_MRAM_SIZE;
    if (!fits) std::abort();
    accepted++;
    return 0;
}
