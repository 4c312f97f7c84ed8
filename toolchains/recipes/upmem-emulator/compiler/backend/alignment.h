// Faults for accesses to WRAM that are not aligned to their size: a DPU has no others, the processor that emulates it
// does.
#pragma once

#include "llvm/IR/Function.h"

namespace dpu {

class Services;

// Takes from the module's declarations and arguments all promises of alignment, which nobody has kept yet.
void distrustAlignment(llvm::Module &module);

// Puts a check before each access of the function whose address is not aligned for all that is known, or before the
// loop around it where the address's low bits do not change in the loop.
void checkAlignment(llvm::Function &function, const Services &services);

} // namespace dpu
