// What a function's frame takes of the stack on a DPU, counted as the program runs.
#pragma once

#include "llvm/IR/Function.h"

namespace dpu {

class Services;

// The name of the metadata of a variable that a DPU's frame does not have.
constexpr const char *NotOnDpu = "foundry.not_on_dpu";

// Subtracts the frame's bytes from STACK_LEFT (abi/abi.h) where the function begins, with a fault if none are left, and
// adds them where it ends.
void countStack(llvm::Function &function, const Services &services);

} // namespace dpu
