// How many instructions a DPU would issue for an instruction of the IR, and how many places it would take in IRAM.
#pragma once

#include "llvm/IR/Instructions.h"

#include <cstdint>

namespace dpu {

enum class Routine : unsigned {
#define FOUNDRY_ROUTINE(name, places, source) name,
#include "routines.def"
};

// All modelled. `issued` counts pipeline slots when it runs, routines included; `places` instructions in IRAM at this
// point of the program; `routines` a bit for each Routine that it calls.
struct Cost {
  uint64_t issued = 0;
  uint64_t places = 0;
  uint32_t routines = 0;

  Cost &operator+=(const Cost &other);
};

// The cost of one instruction as it stands in optimised IR. Instructions that a DPU folds into others cost nothing:
// address arithmetic with constants, comparisons of which only a branch or a select makes use, extensions of what was
// just loaded.
Cost costOf(const llvm::Instruction &instruction);

// What a function costs beside its instructions each time it is called: saving and restoring registers.
Cost frameCost(const llvm::Function &function);

} // namespace dpu
