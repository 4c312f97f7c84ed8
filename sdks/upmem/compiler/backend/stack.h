// What a function's frame takes of the stack on a DPU, counted as the program runs.
#pragma once

#include "llvm/IR/Function.h"

namespace dpu {

class Services;

// The name of the metadata of a variable that a DPU's frame does not have.
constexpr const char *NotOnDpu = "foundry.not_on_dpu";

// The frame of a function, found before anything is added to it.
class Frame {
public:
  explicit Frame(llvm::Function &function);

  // Subtracts the frame's bytes from STACK_LEFT (abi/abi.h) where the function begins, with a fault if none are left,
  // and adds them where it ends.
  void count(const Services &services) const;

private:
  llvm::Function &function;
  llvm::SmallVector<llvm::Instruction *, 8> ends;
  uint64_t bytes;
};

} // namespace dpu
