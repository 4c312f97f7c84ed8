// The emulator's entry points in IR. abi/abi.h has their addresses and numbers.
#pragma once

#include "llvm/ADT/StringMap.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

namespace dpu {

class Services {
public:
  // `library`: the sites are those of the calls of the module's functions.
  Services(llvm::Module &module, bool library);

  // Whether a function of this name is one of the emulator's entry points.
  static bool isEntry(llvm::StringRef name);

  // uint64_t __foundry_service(op, a, b, c); operands that are missing are 0.
  llvm::CallInst *call(llvm::IRBuilder<> &builder, llvm::Value *op, llvm::ArrayRef<llvm::Value *> operands) const;
  llvm::CallInst *call(llvm::IRBuilder<> &builder, uint32_t op, llvm::ArrayRef<llvm::Value *> operands) const;

  // A call that does not come back, followed by unreachable.
  void fault(llvm::IRBuilder<> &builder, uint32_t reason, llvm::Value *address, uint32_t value) const;

  void yield(llvm::IRBuilder<> &builder) const;

  // void __foundry_access(address, what, site, value), for the cold path of an access.
  void access(llvm::IRBuilder<> &builder, llvm::Value *address, uint32_t what, llvm::Value *site,
              llvm::Value *value) const;

  // The text FILE:LINE of an instruction as a number for __foundry_access and SITE; 0 where nothing is known.
  llvm::Value *site(llvm::IRBuilder<> &builder, const llvm::Instruction &instruction);

  // The address of the counters of an instruction's source line, in a program that counts by line. If the line is not
  // known, that of the function; if it has none, the record has its name.
  llvm::Constant *line(const llvm::Function &function, const llvm::DILocation *location);
  // Pointers to the tasklet's budget of instructions (int64_t) and to its number (uint32_t).
  llvm::Value *budget() const;
  llvm::Value *tasklet() const;
  // Pointers to what abi.h has for the check of races: the site (uint32_t), the epoch (bytes of a given number) and the
  // shadow's address (uint32_t); and to the line of the next service and of the last
  // call (uint32_t).
  llvm::Value *siteOfService() const;
  llvm::Value *callSite() const;
  llvm::Value *lineOfService() const;
  llvm::Value *caller() const;
  // Pointer to the bytes that are left of the stack (int32_t).
  llvm::Value *stackLeft() const;
  llvm::Value *epoch(llvm::Type *type) const;
  llvm::Value *shadow() const;

private:
  llvm::Module &module;
  bool library;
  llvm::StringMap<llvm::Constant *> sites, lines;
};

} // namespace dpu
