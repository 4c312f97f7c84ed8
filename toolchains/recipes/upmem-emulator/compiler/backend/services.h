// The emulator's entry points as IR sees them; addresses and numbers are in abi/abi.h.
#pragma once

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

namespace dpu {

class Services {
public:
  explicit Services(llvm::Module &module);

  // uint64_t __foundry_service(op, a, b, c); operands that are missing are 0.
  llvm::CallInst *call(llvm::IRBuilder<> &builder, llvm::Value *op, llvm::ArrayRef<llvm::Value *> operands) const;
  llvm::CallInst *call(llvm::IRBuilder<> &builder, uint32_t op, llvm::ArrayRef<llvm::Value *> operands) const;

  // A call that does not come back, followed by unreachable.
  void fault(llvm::IRBuilder<> &builder, uint32_t reason, llvm::Value *address, uint32_t value) const;

  void yield(llvm::IRBuilder<> &builder) const;

  // Pointers to the tasklet's budget of instructions (int64_t) and to its number (uint32_t).
  llvm::Value *budget() const;
  llvm::Value *tasklet() const;

private:
  llvm::Module &module;
};

} // namespace dpu
