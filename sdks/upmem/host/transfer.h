// Moving bytes between host buffers and DPUs' memories.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <dpu_error.h>
#include <dpu_types.h>

#include "machine.h"

// One DPU's part of a transfer.
struct Move {
    dpu_t *dpu;
    std::uint8_t *host;
};

// Where a transfer begins and how much of each DPU it touches.
struct Range {
    std::uint32_t address = 0;
    std::size_t bytes = 0;
};

// The range of `bytes` at an offset of a symbol, if hardware could transfer it; otherwise says why not. `what` names
// the symbol in messages.
dpu_error_t range_of(const char *what, dpu_symbol_t symbol, std::uint32_t offset, std::size_t bytes, Range &range);

bool in_mram(std::uint32_t address);

// Moves them all, side by side where that pays.
void move(const std::vector<Move> &moves, const Range &range, bool to_dpu);
