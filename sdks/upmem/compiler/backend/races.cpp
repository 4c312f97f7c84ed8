// Accesses to WRAM that two tasklets may race for, reported to the emulator as the program runs.
//
// Not reported: variables on the stack whose address stays in the function, constants, and volatile reads other than of a
// loop that waits. A program declares volatile what it means to read while others write it; WRAM has no caches and a
// tasklet no reordering, so such a read gives the old value or the new one.
#include "races.h"

#include "abi/abi.h"
#include "services.h"
#include "target.h"

#include "llvm/Analysis/CaptureTracking.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace dpu {

namespace {

constexpr uint32_t Read = FOUNDRY_DPU_ACCESS_READ, Write = FOUNDRY_DPU_ACCESS_WRITE;

// Whether a value decides, without a detour through memory or another round, whether a loop ends.
bool decidesExit(const Value *value, const Loop &loop, unsigned depth = 0) {
  for (const User *user : value->users()) {
    const auto *instruction = dyn_cast<Instruction>(user);
    if (!instruction || !loop.contains(instruction) || depth > 8)
      continue;
    if (isa<BranchInst>(instruction) || isa<SwitchInst>(instruction)) {
      if (loop.isLoopExiting(instruction->getParent()))
        return true;
    } else if ((isa<CmpInst>(instruction) || isa<CastInst>(instruction) || isa<BinaryOperator>(instruction) ||
                isa<SelectInst>(instruction) || isa<FreezeInst>(instruction)) &&
               decidesExit(instruction, loop, depth + 1)) {
      return true;
    }
  }
  return false;
}

// Whether a read waits for another tasklet's write: in a loop that ends by what is read, and does not write it.
bool spins(const LoadInst &load, const LoopInfo &loops) {
  const Value *address = load.getPointerOperand();
  for (const Loop *loop = loops.getLoopFor(load.getParent()); loop; loop = loop->getParentLoop()) {
    if (!loop->isLoopInvariant(address))
      return false;
    bool writes = any_of(loop->blocks(), [&](const BasicBlock *block) {
      return any_of(*block, [&](const Instruction &other) {
        const auto *store = dyn_cast<StoreInst>(&other);
        return store && store->getPointerOperand()->stripPointerCasts() == address->stripPointerCasts();
      });
    });
    if (writes)
      return false;
    if (decidesExit(&load, *loop))
      return true;
  }
  return false;
}

class Visibility {
public:
  // Whether other tasklets may access what is at an address, and write it.
  bool shared(const Value *address) {
    if (address->getType()->getPointerAddressSpace() != Wram)
      return false;
    const Value *object = getUnderlyingObject(address, 0);
    if (const auto *global = dyn_cast<GlobalVariable>(object))
      return !global->isConstant();
    const auto *local = dyn_cast<AllocaInst>(object);
    if (!local)
      return true;
    auto known = captured.try_emplace(local, false);
    if (known.second)
      known.first->second = PointerMayBeCaptured(local, true, true);
    return known.first->second;
  }

private:
  DenseMap<const AllocaInst *, bool> captured;
};

// Instructions that may order this tasklet's accesses before another's, or that become a service.
bool endsRun(const Instruction &instruction) {
  const auto *call = dyn_cast<CallBase>(&instruction);
  return call && !isa<MemIntrinsic>(call) && !isa<DbgInfoIntrinsic>(call) && !call->isInlineAsm();
}

} // namespace

Accesses::Accesses(Function &function) : function(function) {
  const DataLayout &layout = function.getParent()->getDataLayout();
  DominatorTree tree(function);
  LoopInfo loops(tree);
  Visibility visibility;
  for (BasicBlock &block : function) {
    // Of each address, the access in this block that others learn of together with the next ones.
    DenseMap<const Value *, size_t> latest;
    for (Instruction &instruction : block) {
      if (endsRun(instruction)) {
        latest.clear();
      } else if (auto *load = dyn_cast<LoadInst>(&instruction)) {
        Value *address = load->getPointerOperand();
        if (!visibility.shared(address))
          continue;
        uint64_t bytes = layout.getTypeStoreSize(load->getType());
        if (spins(*load, loops)) {
          accesses.push_back({load, address, bytes, Read | FOUNDRY_DPU_ACCESS_SPIN, nullptr});
          continue;
        }
        if (load->isVolatile())
          continue;
        auto known = latest.find(address->stripPointerCasts());
        if (known != latest.end() && accesses[known->second].bytes >= bytes)
          continue;
        latest[address->stripPointerCasts()] = accesses.size();
        accesses.push_back({load, address, bytes, Read, nullptr});
      } else if (auto *store = dyn_cast<StoreInst>(&instruction)) {
        Value *address = store->getPointerOperand();
        if (!visibility.shared(address))
          continue;
        uint64_t bytes = layout.getTypeStoreSize(store->getValueOperand()->getType());
        uint32_t what = Write;
        auto known = latest.find(address->stripPointerCasts());
        // Of a value that is read, changed and written, both are one access.
        if (known != latest.end() && accesses[known->second].what == Read && accesses[known->second].bytes <= bytes) {
          accesses[known->second].before = nullptr;
          what |= Read;
        }
        latest[address->stripPointerCasts()] = accesses.size();
        accesses.push_back({store, address, bytes, what, store->getValueOperand()});
      } else if (auto *memory = dyn_cast<MemIntrinsic>(&instruction)) {
        auto *length = dyn_cast<ConstantInt>(memory->getLength());
        uint64_t bytes = length ? length->getZExtValue() : 0; // others have become calls, see lower.cpp
        if (auto *transfer = dyn_cast<MemTransferInst>(memory))
          if (visibility.shared(transfer->getRawSource()))
            accesses.push_back({memory, transfer->getRawSource(), bytes, Read, nullptr});
        if (visibility.shared(memory->getRawDest()))
          accesses.push_back({memory, memory->getRawDest(), bytes, Write, nullptr});
      }
    }
  }
}

// The checks split blocks, and the code generator orders instructions within blocks only. These two functions keep it
// from storing on the tasklet's small stack what it would otherwise need only for a moment.

// Moves arithmetic up to its last operand, if that ends the use of one: LLVM has put the loads of a long sum before the
// first addition.
static void useEarly(BasicBlock &block) {
  for (Instruction &instruction : make_early_inc_range(block)) {
    if (!isa<BinaryOperator, UnaryOperator, CastInst, SelectInst>(instruction) ||
        !isSafeToSpeculativelyExecute(&instruction))
      continue;
    Instruction *last = nullptr;
    bool ends = false;
    for (Value *operand : instruction.operands()) {
      auto *producer = dyn_cast<Instruction>(operand);
      if (!producer)
        continue;
      ends |= producer->hasOneUse();
      if (producer->getParent() == &block && (!last || last->comesBefore(producer)))
        last = producer;
    }
    if (ends && last && !isa<PHINode>(last) && last->getNextNode() != &instruction)
      instruction.moveAfter(last);
  }
}

// Computes an access's address for this check alone. Its constant part is added here: LLVM has moved the addresses of
// an unrolled loop out of the loop around it, since it can fold them into the accesses, but not into checks.
static Value *addressAt(IRBuilder<> &builder, const Instruction &access, Value *address, const DataLayout &layout) {
  APInt offset(layout.getIndexTypeSizeInBits(address->getType()), 0);
  Value *base = address->stripAndAccumulateConstantOffsets(layout, offset, true);
  Value *number = builder.CreatePtrToInt(base, builder.getInt32Ty());
  const auto *producer = dyn_cast<Instruction>(base);
  if (isa<Constant>(base) || (offset.isZero() && producer && producer->getParent() == access.getParent()))
    return builder.CreateAdd(number, builder.getInt(offset));
  // Nothing is known of the result, so it is not kept for the next check of the same address.
  FunctionType *type = FunctionType::get(builder.getInt32Ty(), {builder.getInt32Ty()}, false);
  number = builder.CreateCall(InlineAsm::get(type, "", "=r,0", true), {number});
  return builder.CreateAdd(number, builder.getInt(offset));
}

void Accesses::check(Services &services) const {
  const DataLayout &layout = function.getParent()->getDataLayout();
  for (BasicBlock &block : function)
    useEarly(block);
  MDNode *rarely = MDBuilder(function.getContext()).createBranchWeights(1, 1u << 20);
  for (const Access &access : accesses) {
    if (!access.before || access.bytes == 0 || access.bytes > UINT16_MAX)
      continue;
    IRBuilder<> builder(access.before);
    builder.SetCurrentDebugLocation(DebugLoc());
    Value *address = addressAt(builder, *access.before, access.address, layout);
    bool spin = access.what & FOUNDRY_DPU_ACCESS_SPIN;
    if (!spin && access.bytes <= 8 && isPowerOf2_64(access.bytes)) {
      Type *type = builder.getIntNTy(8 * access.bytes);
      Value *shadow = builder.CreateAlignedLoad(builder.getInt32Ty(), services.shadow(), Align(4));
      Value *at = builder.CreateAdd(shadow, builder.CreateAnd(address, builder.getInt32(FOUNDRY_DPU_SHADOW_MASK)));
      if (access.what & Write)
        at = builder.CreateAdd(at, builder.getInt32(FOUNDRY_DPU_SHADOW_WRITES));
      Value *seen = builder.CreateAlignedLoad(type, builder.CreateIntToPtr(at, type->getPointerTo()), Align(1));
      Value *now = builder.CreateAlignedLoad(type, services.epoch(type), Align(1));
      Instruction *end =
          SplitBlockAndInsertIfThen(builder.CreateICmpNE(seen, now), access.before, false, rarely);
      builder.SetInsertPoint(end);
    }
    uint32_t what = access.what | static_cast<uint32_t>(access.bytes);
    Value *value = builder.getInt64(0);
    if (access.value && access.bytes <= 8 && !access.value->getType()->isAggregateType()) {
      Type *type = access.value->getType();
      Value *bits = type->isPointerTy() ? builder.CreatePtrToInt(access.value, builder.getInt32Ty())
                    : type->isIntegerTy()
                        ? access.value
                        : builder.CreateBitCast(access.value, builder.getIntNTy(layout.getTypeSizeInBits(type)));
      value = builder.CreateZExtOrTrunc(bits, builder.getInt64Ty());
      what |= FOUNDRY_DPU_ACCESS_VALUE;
    }
    services.access(builder, address, what, services.site(builder, *access.before), value);
  }
}

void forbidSpeculation(Module &module) {
  // What LLVM has for its own sanitizer of races.
  for (Function &function : module)
    if (!function.isDeclaration())
      function.addFnAttr(Attribute::SanitizeThread);
}

} // namespace dpu
