// Replace copies between MRAM and WRAM, of any length and alignment, by DMAs.
#include "legalize.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/KnownBits.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;

namespace legalize {

namespace {

constexpr uint64_t LargestDma = 2048;
constexpr uint64_t Word = 8;
// A copy of constant length becomes at most this many DMAs. A longer one becomes a call.
constexpr uint64_t MaxInline = 4;

constexpr const char *Helpers =
#include "copies.inc"
    ;

class Copy {
public:
  explicit Copy(MemTransferInst *transfer)
      : transfer(transfer), module(*transfer->getModule()), builder(transfer),
        in(transfer->getSourceAddressSpace() == Mram) {}

  void lower() {
    if (transfer->isVolatile())
      refuse(*transfer->getFunction(), "a volatile copy between MRAM and WRAM");
    Value *length = builder.CreateZExtOrTrunc(transfer->getLength(), builder.getInt32Ty());
    Value *to = builder.CreatePointerCast(transfer->getRawDest(), builder.getInt8PtrTy(in ? Wram : Mram));
    Value *from = builder.CreatePointerCast(transfer->getRawSource(), builder.getInt8PtrTy(in ? Mram : Wram));
    Value *wram = in ? to : from, *mram = in ? from : to;
    bool whole = aligned(transfer->getRawDest(), transfer->getDestAlign()) &&
                 aligned(transfer->getRawSource(), transfer->getSourceAlign()) && multiple(length);
    const auto *constant = dyn_cast<ConstantInt>(length);
    if (whole && constant && constant->getZExtValue() <= MaxInline * LargestDma)
      writeOut(wram, mram, constant->getZExtValue());
    else if (whole && atLeastOneWord(length) && atMostOneDma(length))
      builder.CreateCall(dma(), {wram, mram, length});
    else if (whole)
      builder.CreateCall(helper(in ? "__triton_copy_in_words" : "__triton_copy_out_words"), {wram, mram, length});
    else
      builder.CreateCall(helper(in ? "__triton_copy_in" : "__triton_copy_out"), {wram, mram, length});
    transfer->eraseFromParent();
  }

private:
  MemTransferInst *transfer;
  Module &module;
  IRBuilder<> builder;
  bool in; // from MRAM to WRAM

  // Whether an address is known to be a multiple of 8, from the copy itself or from how the address is computed.
  bool aligned(Value *address, MaybeAlign said) {
    return said.valueOrOne() >= Align(Word) ||
           getKnownAlignment(address, module.getDataLayout(), transfer) >= Align(Word);
  }

  bool multiple(Value *length) {
    return computeKnownBits(length, module.getDataLayout()).countMinTrailingZeros() >= Log2_64(Word);
  }

  bool atLeastOneWord(Value *length) {
    return computeKnownBits(length, module.getDataLayout()).getMinValue().uge(Word);
  }

  bool atMostOneDma(Value *length) {
    return computeKnownBits(length, module.getDataLayout()).getMaxValue().ule(LargestDma);
  }

  FunctionCallee dma() { return in ? readIntrinsic(module) : writeIntrinsic(module); }

  void writeOut(Value *wram, Value *mram, uint64_t bytes) {
    for (uint64_t offset = 0; offset < bytes; offset += LargestDma) {
      auto at = [&](Value *base) {
        return offset ? builder.CreateConstGEP1_32(builder.getInt8Ty(), base, offset) : base;
      };
      builder.CreateCall(dma(), {at(wram), at(mram), builder.getInt32(std::min(bytes - offset, LargestDma))});
    }
  }

  FunctionCallee helper(StringRef name) {
    FunctionType *type = FunctionType::get(
        builder.getVoidTy(), {builder.getInt8PtrTy(Wram), builder.getInt8PtrTy(Mram), builder.getInt32Ty()}, false);
    return module.getOrInsertFunction(name, type);
  }
};

// Links in the helper functions that are called, and nothing else.
void linkHelpers(Module &module) {
  SMDiagnostic diagnostic;
  std::unique_ptr<Module> helpers = parseAssemblyString(Helpers, diagnostic, module.getContext());
  if (!helpers) {
    diagnostic.print("dpu-legalize", errs());
    std::exit(1);
  }
  SmallVector<std::string, 8> names;
  for (const Function &function : *helpers)
    if (!function.isDeclaration())
      names.push_back(function.getName().str());
  helpers->setDataLayout(module.getDataLayout());
  helpers->setTargetTriple(module.getTargetTriple());
  if (Linker::linkModules(module, std::move(helpers), Linker::LinkOnlyNeeded))
    std::exit(1);
  for (const std::string &name : names)
    if (Function *function = module.getFunction(name)) {
      function->setLinkage(GlobalValue::InternalLinkage);
      function->setDSOLocal(true);
    }
}

} // namespace

void lowerCopies(Module &module) {
  SmallVector<MemTransferInst *, 16> copies;
  for (Function &function : module)
    for (Instruction &instruction : instructions(function)) {
      auto *memory = dyn_cast<MemIntrinsic>(&instruction);
      if (!memory)
        continue;
      auto *transfer = dyn_cast<MemTransferInst>(memory);
      unsigned to = memory->getDestAddressSpace(), from = transfer ? transfer->getSourceAddressSpace() : to;
      if (to == Wram && from == Wram)
        continue;
      if (!transfer || to == from || to + from != Mram + Wram)
        refuse(function, "a copy or a fill that is not between WRAM (0) and MRAM (255): " +
                             memory->getCalledFunction()->getName());
      copies.push_back(transfer);
    }
  for (MemTransferInst *transfer : copies)
    Copy(transfer).lower();
  // The module already defines them.
  bool missing = false;
  for (const char *name :
       {"__triton_copy_in", "__triton_copy_out", "__triton_copy_in_words", "__triton_copy_out_words"})
    if (const Function *helper = module.getFunction(name))
      missing |= helper->isDeclaration();
  if (missing)
    linkHelpers(module);
}

} // namespace legalize
