// Accesses to WRAM that two tasklets may race for, reported to the emulator as the program runs.
#pragma once

#include "llvm/IR/Function.h"

namespace dpu {

class Services;

// The accesses of a function that other tasklets may see, found before anything is added to it.
class Accesses {
public:
  explicit Accesses(llvm::Function &function);

  // Puts before each of them: if it is new in the tasklet's epoch (see SHADOW in abi/abi.h), a call of
  // __foundry_access.
  void check(Services &services) const;

private:
  struct Access {
    llvm::Instruction *before;
    llvm::Value *address;
    uint64_t bytes;
    uint32_t what;      // FOUNDRY_DPU_ACCESS_*, without the size
    llvm::Value *value; // what is stored, or null
  };

  llvm::Function &function;
  llvm::SmallVector<Access, 32> accesses;
};

// Keeps the optimiser from moving reads to paths on which the program does not read: harmless on a DPU, but reported
// as a race.
void forbidSpeculation(llvm::Module &module);

} // namespace dpu
