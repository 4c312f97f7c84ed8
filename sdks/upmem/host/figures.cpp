// What only an emulator can tell: modelled figures and faults.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include <dpu_emulator.h>

#include "machine.h"

// The rules' names are the DPU process's: both come from the same source.
#include "../process/rules.h"

namespace {

// Whether the figures can be read, that is, nothing runs. Does not wait.
bool idle(Selection &selection) {
    bool done;
    selection.progress(done);
    return done;
}

struct dpu_emulator_stats of(const dpu_t &dpu) {
    const shared::Statistics &all = dpu.control().statistics;
    return {all.cycles, all.instructions, all.dma_read_bytes, all.dma_write_bytes, all.dma_transfers, all.dma_cycles};
}

} // namespace

extern "C" {

int dpu_emulator_stats(struct dpu_set_t set, struct dpu_emulator_stats *out) {
    Selection selection(set);
    if (!out || !selection || !selection.one_dpu() || !idle(selection)) return -1;
    *out = of(*selection.dpus().front());
    return 0;
}

int dpu_emulator_totals(struct dpu_set_t set, struct dpu_emulator_totals *out) {
    Selection selection(set);
    if (!out || !selection || !idle(selection)) return -1;
    *out = {};
    for (const dpu_t *dpu : selection.dpus()) {
        struct dpu_emulator_stats one = of(*dpu), &sum = out->sum;
        out->nr_dpus++;
        out->max_cycles = std::max(out->max_cycles, one.cycles);
        sum.cycles += one.cycles;
        sum.instructions += one.instructions;
        sum.dma_read_bytes += one.dma_read_bytes;
        sum.dma_write_bytes += one.dma_write_bytes;
        sum.dma_transfers += one.dma_transfers;
        sum.dma_cycles += one.dma_cycles;
    }
    return 0;
}

int dpu_emulator_fault_of(struct dpu_set_t set, struct dpu_emulator_fault *out) {
    Selection selection(set);
    if (!out || !selection || !selection.one_dpu() || !idle(selection)) return -1;
    const dpu_t &dpu = *selection.dpus().front();
    if (!dpu.in_fault()) return -1;
    const shared::Fault &fault = dpu.control().fault;
    std::snprintf(out->rule, sizeof(out->rule), "%s", rule_name(fault.rule));
    out->tasklet = fault.tasklet;
    out->address = fault.address;
    out->size = fault.size;
    std::snprintf(out->message, sizeof(out->message), "%s", fault.message);
    return 0;
}

int dpu_emulator_next_line(struct dpu_set_t set, uint32_t *position, struct dpu_emulator_line *out) {
    Selection selection(set);
    if (!position || !out || !selection || !selection.one_dpu() || !idle(selection)) return -1;
    const dpu_t &dpu = *selection.dpus().front();
    if (!dpu.program) return -1;
    const std::string &lines = dpu.program->lines;
    // Records are aligned; a shorter one leaves zeros.
    while (*position < lines.size() && lines[*position] == 0) *position += FOUNDRY_DPU_LINE_ALIGNMENT;
    if (*position >= lines.size()) return -1;
    std::uint64_t counters[2];
    std::memcpy(counters, dpu.slot + shared::COUNTERS_OFFSET + *position, sizeof(counters));
    *out = {lines.c_str() + *position, counters[0], counters[1]};
    std::size_t bytes = std::strlen(out->place) + 1;
    *position += static_cast<std::uint32_t>((bytes + FOUNDRY_DPU_LINE_ALIGNMENT - 1) & -FOUNDRY_DPU_LINE_ALIGNMENT);
    return 0;
}

const char *dpu_emulator_symbol_name(const struct dpu_program_t *program, uint32_t number) {
    if (!program || number >= program->symbols.size()) return nullptr;
    return std::next(program->symbols.begin(), number)->first.c_str();
}
}
