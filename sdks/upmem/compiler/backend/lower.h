// Replace the operations for which the DPU's compiler calls a function by such calls.
#pragma once

#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/Module.h"

namespace dpu {

// Replaces block copies that are more than a few accesses, everything that copies from or to MRAM, and mathematical
// functions by calls. Functions that the SDK's library does not have (sqrtf, expf, ...) stay undefined, as they do
// there.
void lower(llvm::Module &module);

// Whether an intrinsic is one of those mathematical functions.
bool isMathematics(llvm::Intrinsic::ID id);

} // namespace dpu
