// Faults for accesses to WRAM that are not aligned to their size: a DPU has no others, the processor that emulates it
// does.
#pragma once

#include "llvm/IR/Function.h"

namespace dpu {

class Services;

// Removes all alignment attributes from the module's declarations and arguments: nothing has checked them yet.
void distrustAlignment(llvm::Module &module);

// Adds a check before each access of the function whose address is not known to be aligned, or before the loop around
// it if the address's low bits do not change in the loop.
void checkAlignment(llvm::Function &function, const Services &services);

} // namespace dpu
