// Add to the code what the DPU's hardware does by itself: counting instructions, faults, transfers, yielding.
#pragma once

#include "llvm/IR/Module.h"

namespace dpu {

// What is added beyond the cycles and the services.
struct Instruments {
  bool byLine = false;     // counters of source lines
  bool library = false;    // sites are those of the calls of the module's functions
  bool races = true;       // the check of data races
  bool oneTasklet = false; // the module may not be a part of a program with more tasklets
};

// Adds to every function of the module, which must be optimised and lowered and keeps its DPU triple:
// - the subtraction of each piece of straight code's modelled cost from the tasklet's budget, before each call and
// jump; and, if `byLine`, its addition to the counters of the source lines that it is of;
// - a call of the emulator where a loop starts again or a function that calls others begins with the budget used up;
// - the count of the stack that a DPU's frames take, and a fault where they exceed it;
// - a fault where an access to WRAM is not aligned to its size, unless it provably is;
// - services in place of the DPU's intrinsics and of accesses through pointers to MRAM;
// - the site of each call of another file's function, for the reports of what the library does; or, if the module is of
// the `library`, that site in place of its own;
// - a section .foundry.iram that tells the linker of each function's size in IRAM.
void instrument(llvm::Module &module, const Instruments &wanted);

} // namespace dpu
