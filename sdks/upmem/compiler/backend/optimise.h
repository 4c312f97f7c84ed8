// Optimise as the DPU's compiler does before it selects instructions.
#pragma once

#include "llvm/IR/Module.h"
#include "llvm/Passes/OptimizationLevel.h"

namespace dpu {

// Runs LLVM's pipeline of that level under the DPU's data layout, with no knowledge of the processor that will run it.
void optimise(llvm::Module &module, llvm::OptimizationLevel level);

} // namespace dpu
