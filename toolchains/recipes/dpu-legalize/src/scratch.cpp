// Move stack slots to variables in WRAM: a tasklet's stack has only a kilobyte, too little for tiles.
#include "legalize.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace legalize {

namespace {

constexpr uint64_t StackBytes = 64;
constexpr uint64_t Alignment = 8;

uint64_t bytesOf(const AllocaInst &slot) {
  const DataLayout &layout = slot.getModule()->getDataLayout();
  const auto *count = dyn_cast<ConstantInt>(slot.getArraySize());
  if (!count)
    refuse(*slot.getFunction(), "an alloca of a size that is not constant");
  return layout.getTypeAllocSize(slot.getAllocatedType()) * count->getZExtValue();
}

// A variable has no lifetime markers.
void dropMarkers(Function &function) {
  for (auto at = inst_begin(function), end = inst_end(function); at != end;) {
    Instruction &instruction = *at++;
    if (auto *marker = dyn_cast<IntrinsicInst>(&instruction))
      if (marker->isLifetimeStartOrEnd())
        marker->eraseFromParent();
  }
}

void moveSlotsOf(Function &function, unsigned tasklets) {
  SmallVector<AllocaInst *, 16> slots;
  uint64_t all = 0;
  for (Instruction &instruction : instructions(function))
    if (auto *slot = dyn_cast<AllocaInst>(&instruction)) {
      slots.push_back(slot);
      all += alignTo(bytesOf(*slot), Alignment);
    }
  for (AllocaInst *slot : slots)
    if (slot->getAlign() < Align(Alignment))
      slot->setAlignment(Align(Alignment));
  if (all <= StackBytes)
    return;
  for (AllocaInst *slot : slots)
    if (slot->getAlign() > Align(Alignment))
      refuse(function, "an alloca aligned to " + Twine(slot->getAlign().value()) + " bytes; DMA needs 8");
  dropMarkers(function);
  Module &module = *function.getParent();
  LLVMContext &context = module.getContext();
  Type *row = ArrayType::get(Type::getInt8Ty(context), all);
  Type *rows = ArrayType::get(row, tasklets);
  auto *scratch = new GlobalVariable(module, rows, false, GlobalValue::InternalLinkage, UndefValue::get(rows),
                                     "__triton_scratch_" + function.getName());
  scratch->setAlignment(Align(Alignment));
  IRBuilder<> builder(&*function.getEntryBlock().getFirstInsertionPt());
  Value *tasklet = builder.CreateCall(taskletIntrinsic(module));
  uint64_t offset = 0;
  for (AllocaInst *slot : slots) {
    Value *place = builder.CreateInBoundsGEP(rows, scratch, {builder.getInt32(0), tasklet, builder.getInt32(offset)});
    Value *typed = builder.CreateBitCast(place, slot->getType());
    offset += alignTo(bytesOf(*slot), Alignment);
    typed->takeName(slot);
    slot->replaceAllUsesWith(typed);
  }
  for (AllocaInst *slot : slots)
    slot->eraseFromParent();
}

} // namespace

void moveSlots(Module &module, unsigned tasklets) {
  for (Function &function : module)
    if (!function.isDeclaration())
      moveSlotsOf(function, tasklets);
}

} // namespace legalize
