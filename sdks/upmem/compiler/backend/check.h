// Find what the DPU's compiler refuses, before any code is generated.
#pragma once

#include "llvm/IR/Module.h"

namespace dpu {

// Checks the module as it was read: triple and data layout. A module without them gets the DPU's, and so does one that
// came from the C frontend. Returns false after printing what is wrong.
bool adoptTarget(llvm::Module &module);

// Checks every instruction, constant and type; prints one line for each function that has something unknown to the DPU.
// Returns false if there was any.
bool checkKnown(const llvm::Module &module);

} // namespace dpu
