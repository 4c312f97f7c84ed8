// Faults for accesses to WRAM that are not aligned to their size: a DPU has no others, the processor that emulates it
// does.
#include "alignment.h"

#include "abi/abi.h"
#include "services.h"
#include "target.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/GetElementPtrTypeIterator.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Operator.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Local.h"
#include "llvm/Transforms/Utils/LoopUtils.h"

using namespace llvm;

namespace dpu {

namespace {

// An address and the size that it has to be aligned to.
struct Access {
  Instruction *where;
  Value *address;
  uint64_t size;
};

struct Check {
  Instruction *before;
  Value *address;
  uint64_t size;
};

class Checks {
public:
  Checks(Function &function, const Services &services)
      : function(function), services(services), layout(function.getParent()->getDataLayout()), tree(function),
        loops(tree) {}

  void run() {
    for (Instruction &instruction : instructions(function))
      collect(instruction);
    for (const Access &access : accesses)
      plan(access);
    for (const Check &check : checks)
      insert(check);
  }

private:
  Function &function;
  const Services &services;
  const DataLayout &layout;
  DominatorTree tree;
  LoopInfo loops;
  SmallVector<Access, 32> accesses;
  SmallVector<Check, 32> checks;

  void add(Instruction &where, Value *address, uint64_t size) {
    size = std::min<uint64_t>(PowerOf2Floor(size), 8);
    if (size > 1 && address->getType()->getPointerAddressSpace() == Wram)
      accesses.push_back({&where, address, size});
  }

  void collect(Instruction &instruction) {
    if (auto *load = dyn_cast<LoadInst>(&instruction))
      add(instruction, load->getPointerOperand(), accessSize(load->getType(), load->getAlign()));
    else if (auto *store = dyn_cast<StoreInst>(&instruction))
      add(instruction, store->getPointerOperand(), accessSize(store->getValueOperand()->getType(), store->getAlign()));
    else if (auto *memory = dyn_cast<MemIntrinsic>(&instruction)) {
      // The alignment that it claims is the size of the accesses that it is made of.
      uint64_t align = memory->getDestAlign().valueOrOne().value();
      if (auto *transfer = dyn_cast<MemTransferInst>(memory)) {
        align = std::min<uint64_t>(align, transfer->getSourceAlign().valueOrOne().value());
        add(instruction, transfer->getRawSource(), align);
      }
      add(instruction, memory->getRawDest(), align);
    }
  }

  // A load of 8 bytes that the program says is aligned to 4 is two loads of 4; so are packed structures bytes.
  uint64_t accessSize(Type *type, Align align) const {
    return std::min<uint64_t>(layout.getTypeStoreSize(type), align.value());
  }

  // The part of an address that decides about its alignment to `size`: without offsets that are multiples of it.
  Value *base(Value *address, uint64_t size) const {
    for (;;) {
      if (auto *cast = dyn_cast<BitCastOperator>(address)) {
        address = cast->getOperand(0);
        continue;
      }
      auto *element = dyn_cast<GEPOperator>(address);
      if (!element)
        return address;
      for (auto part = gep_type_begin(element), end = gep_type_end(element); part != end; ++part) {
        uint64_t step = 0;
        if (StructType *structure = part.getStructTypeOrNull())
          step =
              layout.getStructLayout(structure)->getElementOffset(cast<ConstantInt>(part.getOperand())->getZExtValue());
        else if (auto *index = dyn_cast<ConstantInt>(part.getOperand()))
          step = layout.getTypeAllocSize(part.getIndexedType()) * index->getZExtValue();
        else
          step = layout.getTypeAllocSize(part.getIndexedType());
        if (step % size)
          return address;
      }
      address = element->getPointerOperand();
    }
  }

  void plan(const Access &access) {
    if (getKnownAlignment(access.address, layout, access.where, nullptr, &tree).value() >= access.size)
      return;
    Value *address = base(access.address, access.size);
    Instruction *before = access.where;
    // Move the check out of each loop that always executes the access: the fault comes earlier, but never falsely.
    for (Loop *loop = loops.getLoopFor(before->getParent()); loop; loop = loop->getParentLoop()) {
      if (!loop->isLoopInvariant(address) || !alwaysReached(*loop, before->getParent()))
        break;
      BasicBlock *preheader = loop->getLoopPreheader();
      if (!preheader)
        preheader = InsertPreheaderForLoop(loop, &tree, &loops, nullptr, false);
      if (!preheader)
        break;
      before = preheader->getTerminator();
    }
    for (const Check &check : checks)
      if (check.address == address && check.size >= access.size &&
          (check.before == before || tree.dominates(check.before, before)))
        return;
    checks.push_back({before, address, access.size});
  }

  static bool callsOut(const BasicBlock &block) {
    return any_of(block, [](const Instruction &instruction) {
      const auto *call = dyn_cast<CallBase>(&instruction);
      return call && !isa<MemIntrinsic>(call) && !call->isInlineAsm();
    });
  }

  bool alwaysReached(const Loop &loop, const BasicBlock *block) const {
    if (loop.contains(block) && loop.getHeader() != block)
      for (const BasicBlock *other : loop.blocks())
        if (other != block && callsOut(*other) && !tree.dominates(block, other))
          return false;
    if (callsOut(*block))
      return false;
    SmallVector<BasicBlock *, 4> blocks;
    loop.getExitingBlocks(blocks);
    loop.getLoopLatches(blocks);
    return all_of(blocks, [&](BasicBlock *end) { return tree.dominates(block, end); });
  }

  void insert(const Check &check) {
    IRBuilder<> builder(check.before);
    Type *word = builder.getInt32Ty();
    Value *address = builder.CreatePtrToInt(check.address, word);
    Value *low = builder.CreateAnd(address, builder.getInt32(check.size - 1));
    Value *wrong = builder.CreateICmpNE(low, builder.getInt32(0));
    Instruction *end = SplitBlockAndInsertIfThen(wrong, check.before, true,
                                                 MDBuilder(function.getContext()).createBranchWeights(1, 1u << 20));
    builder.SetInsertPoint(end);
    services.fault(builder, FOUNDRY_DPU_REASON_MISALIGNED, address, check.size);
    end->eraseFromParent();
  }
};

} // namespace

void distrustAlignment(Module &module) {
  for (GlobalVariable &global : module.globals())
    if (global.isDeclarationForLinker())
      global.setAlignment(Align(1));
  for (Function &function : module) {
    for (Argument &argument : function.args())
      if (!argument.hasByValAttr())
        argument.removeAttr(Attribute::Alignment);
    for (Instruction &instruction : instructions(function)) {
      instruction.setMetadata(LLVMContext::MD_align, nullptr);
      if (auto *call = dyn_cast<CallBase>(&instruction))
        call->removeRetAttr(Attribute::Alignment);
    }
  }
}

void checkAlignment(Function &function, const Services &services) { Checks(function, services).run(); }

} // namespace dpu
