// What a function's frame takes of the stack on a DPU, counted as the program runs.
//
// The frames of the processor that runs the code are larger: it saves 8 bytes for each register, has other registers, and
// the checks need some. What is counted is the least that a DPU's frame has, so that no program that fits on hardware
// faults: no registers that are saved, no values that are kept on the stack because registers are few.
#include "stack.h"

#include "abi/abi.h"
#include "services.h"

#include "llvm/Analysis/StackLifetime.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace dpu {

namespace {

// Of the return address and the caller's stack pointer.
constexpr uint64_t Linkage = 8, Alignment = 8;

bool callsFunction(const Instruction &instruction) {
  const auto *call = dyn_cast<CallInst>(&instruction);
  if (!call || call->isInlineAsm())
    return false;
  const Function *callee = call->getCalledFunction();
  return !callee || !(callee->getName().startswith("llvm.") || Services::isEntry(callee->getName()));
}

// Whether a DPU's compiler may make a jump of a call, so that the frame is gone by then.
bool maybeTailCall(const Instruction &instruction) {
  const auto *call = cast<CallInst>(&instruction);
  const Instruction *next = call->getNextNonDebugInstruction();
  return call->isTailCall() && isa<ReturnInst>(next) &&
         (next->getNumOperands() == 0 || next->getOperand(0) == call || isa<Constant>(next->getOperand(0)));
}

// Bytes of variables. Those with disjoint lifetimes may have the same place.
uint64_t variables(const Function &function) {
  const DataLayout &layout = function.getParent()->getDataLayout();
  uint64_t always = 0, most = 0;
  SmallVector<const AllocaInst *, 16> sometimes;
  SmallVector<const Instruction *, 16> starts;
  for (const Instruction &instruction : instructions(function)) {
    if (const auto *start = dyn_cast<IntrinsicInst>(&instruction))
      if (start->getIntrinsicID() == Intrinsic::lifetime_start)
        starts.push_back(start);
    const auto *variable = dyn_cast<AllocaInst>(&instruction);
    if (variable && !variable->getMetadata(NotOnDpu))
      sometimes.push_back(variable);
  }
  auto bytes = [&](const AllocaInst *variable) {
    return variable->getAllocationSizeInBits(layout).getValueOr(TypeSize::Fixed(0)).getFixedSize() / 8;
  };
  if (starts.empty()) {
    for (const AllocaInst *variable : sometimes)
      always += bytes(variable);
    return always;
  }
  StackLifetime lifetime(function, sometimes, StackLifetime::LivenessType::Must);
  lifetime.run();
  for (const Instruction *start : starts) {
    uint64_t together = 0;
    for (const AllocaInst *variable : sometimes)
      if (lifetime.isAliveAfter(variable, start))
        together += bytes(variable);
    most = std::max(most, together);
  }
  return most;
}

} // namespace

Frame::Frame(Function &function) : function(function) {
  bool calls = false;
  for (Instruction &instruction : instructions(function)) {
    bool isCall = callsFunction(instruction), isTail = isCall && maybeTailCall(instruction);
    calls |= isCall && !isTail;
    if (isTail ||
        (isa<ReturnInst>(instruction) && (ends.empty() || ends.back()->getNextNonDebugInstruction() != &instruction)))
      ends.push_back(&instruction);
  }
  bytes = std::min<uint64_t>(alignTo(variables(function) + (calls ? Linkage : 0), Alignment), INT32_MAX / 2);
}

void Frame::count(const Services &services) const {
  if (bytes == 0)
    return;
  auto add = [&](IRBuilder<> &builder, int64_t number) {
    Value *left = builder.CreateAlignedLoad(builder.getInt32Ty(), services.stackLeft(), Align(4));
    left = builder.CreateAdd(left, builder.getInt32(static_cast<uint32_t>(number)));
    builder.CreateAlignedStore(left, services.stackLeft(), Align(4));
    return left;
  };
  int64_t size = static_cast<int64_t>(bytes);
  for (Instruction *end : ends) {
    IRBuilder<> builder(end);
    add(builder, size);
  }
  auto first = function.getEntryBlock().getFirstInsertionPt();
  while (isa<AllocaInst>(*first))
    ++first;
  IRBuilder<> builder(&*first);
  builder.SetCurrentDebugLocation(DebugLoc());
  Value *over = builder.CreateICmpSLT(add(builder, -size), builder.getInt32(0));
  Instruction *fault = SplitBlockAndInsertIfThen(over, &*first, true,
                                                 MDBuilder(function.getContext()).createBranchWeights(1, 1u << 20));
  builder.SetInsertPoint(fault);
  services.call(builder, FOUNDRY_DPU_OP_FAULT,
                {builder.getInt32(FOUNDRY_DPU_REASON_STACK), builder.getInt32(0),
                 builder.getInt32(static_cast<uint32_t>(size))})
      ->setDoesNotReturn();
}

} // namespace dpu
