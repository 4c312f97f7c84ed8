// Add to the code what the DPU's hardware does by itself: counting instructions, faults, transfers, yielding.
#include "instrument.h"

#include "abi/abi.h"
#include "alignment.h"
#include "cost.h"
#include "races.h"
#include "services.h"
#include "stack.h"
#include "target.h"

#include <optional>

#include "llvm/ADT/MapVector.h"
#include "llvm/Analysis/CFG.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace dpu {

namespace {

class Instrumentation {
public:
  Instrumentation(Module &module, const Instruments &wanted)
      : module(module), services(module, wanted.library), byLine(wanted.byLine), library(wanted.library),
        races(wanted.races) {}

  void run() {
    distrustAlignment(module);
    SmallVector<Function *, 32> functions;
    for (Function &function : module)
      if (!function.isDeclaration())
        functions.push_back(&function);
    for (Function *function : functions) {
      std::optional<Accesses> accesses;
      if (races)
        accesses.emplace(*function);
      Frame frame(*function);
      Cost total = count(*function);
      frame.count(services);
      yieldAtEntry(*function);
      yieldInLoops(*function);
      checkAlignment(*function, services);
      if (accesses)
        accesses->check(services);
      serve(*function);
      record(*function, total);
    }
  }

private:
  Module &module;
  Services services;
  bool byLine, library, races;

  static bool callsOut(const Instruction &instruction) {
    const auto *call = dyn_cast<CallBase>(&instruction);
    if (!call || call->isInlineAsm())
      return false;
    const Function *callee = call->getCalledFunction();
    return !callee || !callee->isIntrinsic() || callee->getName().startswith("llvm.dpu.") || callee->doesNotReturn();
  }

  static bool reachesMram(const Instruction &instruction) {
    if (const auto *load = dyn_cast<LoadInst>(&instruction))
      return load->getPointerAddressSpace() == Mram;
    const auto *store = dyn_cast<StoreInst>(&instruction);
    return store && store->getPointerAddressSpace() == Mram;
  }

  // Subtracts what was issued since the last time, before everything that may read the count and at each end.
  Cost count(Function &function) {
    Cost total = frameCost(function);
    for (BasicBlock &block : function) {
      Issued pending;
      if (&block == &function.getEntryBlock())
        note(pending, function, nullptr, total.issued);
      for (Instruction &instruction : make_early_inc_range(block)) {
        Cost cost = costOf(instruction);
        total += cost;
        note(pending, function, instruction.getDebugLoc(), cost.issued);
        if (callsOut(instruction) || reachesMram(instruction) || instruction.isTerminator()) {
          charge(&instruction, pending);
          pending = {};
        }
        if (byLine && function.getSubprogram() && isa<CallBase>(instruction) && callsOut(instruction))
          IRBuilder<>(&instruction)
              .CreateAlignedStore(services.line(function, instruction.getDebugLoc()), services.caller(), Align(4));
      }
    }
    return total;
  }

  // Instructions that were issued since they were last counted: all, and those of each source line.
  struct Issued {
    uint64_t all = 0;
    MapVector<Constant *, uint64_t> lines;
  };

  void note(Issued &pending, const Function &function, const DILocation *location, uint64_t instructions) {
    pending.all += instructions;
    if (byLine && instructions)
      pending.lines[services.line(function, location)] += instructions;
  }

  // The address of a line's counters in a function. What a function without lines does is the line's that calls it.
  Value *counters(IRBuilder<> &builder, const Function &function, Constant *line) {
    if (function.getSubprogram())
      return line;
    Value *caller = builder.CreateAlignedLoad(builder.getInt32Ty(), services.caller(), Align(4));
    return builder.CreateSelect(builder.CreateICmpEQ(caller, builder.getInt32(0)), line, caller);
  }

  void charge(Instruction *before, const Issued &pending) {
    if (!pending.all)
      return;
    IRBuilder<> builder(before);
    auto add = [&](Value *place, int64_t number) {
      Value *was = builder.CreateAlignedLoad(builder.getInt64Ty(), place, Align(8));
      builder.CreateAlignedStore(builder.CreateAdd(was, builder.getInt64(number)), place, Align(8));
    };
    add(services.budget(), -static_cast<int64_t>(pending.all));
    for (const auto &[line, number] : pending.lines)
      add(builder.CreateIntToPtr(counters(builder, *before->getFunction(), line), Type::getInt64PtrTy(module.getContext())),
          static_cast<int64_t>(number));
  }

  void yieldBefore(Instruction *before) {
    IRBuilder<> builder(before);
    Value *left = builder.CreateAlignedLoad(builder.getInt64Ty(), services.budget(), Align(8));
    Value *spent = builder.CreateICmpSLT(left, builder.getInt64(0));
    Instruction *end = SplitBlockAndInsertIfThen(spent, before, false,
                                                 MDBuilder(module.getContext()).createBranchWeights(1, 1u << 20));
    builder.SetInsertPoint(end);
    services.yield(builder);
  }

  // Only functions that call others can be part of a recursion.
  void yieldAtEntry(Function &function) {
    for (const Instruction &instruction : instructions(function)) {
      const auto *call = dyn_cast<CallBase>(&instruction);
      if (!call || call->isInlineAsm())
        continue;
      const Function *callee = call->getCalledFunction();
      if (callee && (callee->getName().startswith("llvm.") || callee->getName().startswith("__foundry_")))
        continue;
      auto first = function.getEntryBlock().getFirstInsertionPt();
      while (isa<AllocaInst>(*first))
        ++first;
      return yieldBefore(&*first);
    }
  }

  void yieldInLoops(Function &function) {
    SmallVector<std::pair<const BasicBlock *, const BasicBlock *>, 16> edges;
    FindFunctionBackedges(function, edges);
    SmallPtrSet<const BasicBlock *, 16> done;
    for (const auto &edge : edges)
      if (done.insert(edge.first).second)
        yieldBefore(const_cast<BasicBlock *>(edge.first)->getTerminator());
  }

  void serve(Function &function) {
    for (Instruction &instruction : make_early_inc_range(instructions(function))) {
      IRBuilder<> builder(&instruction);
      if (auto *call = dyn_cast<CallInst>(&instruction)) {
        serveCall(*call, builder);
      } else if (instruction.getOpcode() == Instruction::SDiv || instruction.getOpcode() == Instruction::SRem) {
        instruction.replaceAllUsesWith(divide(instruction, builder));
        instruction.eraseFromParent();
      } else if (auto *load = dyn_cast<LoadInst>(&instruction)) {
        if (reachesMram(*load)) {
          noteSite(*load, builder);
          load->replaceAllUsesWith(
              serveLoad(builder, load->getPointerOperand(), load->getType(), load->isVolatile()));
          load->eraseFromParent();
        }
      } else if (auto *store = dyn_cast<StoreInst>(&instruction)) {
        if (reachesMram(*store)) {
          noteSite(*store, builder);
          serveStore(builder, store->getPointerOperand(), store->getValueOperand());
          store->eraseFromParent();
        }
      } else if (isa<UnreachableInst>(instruction)) {
        const auto *previous = dyn_cast_or_null<CallInst>(instruction.getPrevNode());
        if (!previous || !previous->doesNotReturn())
          services.call(builder, FOUNDRY_DPU_OP_FAULT, {builder.getInt32(FOUNDRY_DPU_REASON_UNREACHABLE)})
              ->setDoesNotReturn();
      }
    }
  }

  // The routines of a DPU give the smallest number for its quotient by -1, and the remainder 0. Those of this machine's
  // processor do not.
  Value *divide(Instruction &division, IRBuilder<> &builder) {
    Value *number = division.getOperand(0), *by = division.getOperand(1);
    Type *type = division.getType();
    Value *negates = builder.CreateICmpEQ(by, Constant::getAllOnesValue(type));
    by = builder.CreateSelect(negates, ConstantInt::get(type, 1), by);
    if (division.getOpcode() == Instruction::SRem)
      return builder.CreateSRem(number, by);
    return builder.CreateSelect(negates, builder.CreateNeg(number), builder.CreateSDiv(number, by));
  }

  void serveCall(CallInst &call, IRBuilder<> &builder) {
    const Function *callee = call.getCalledFunction();
    StringRef name = callee ? callee->getName() : "";
    Value *value = nullptr;
    if (name == "llvm.dpu.tid.i32")
      value = builder.CreateAlignedLoad(builder.getInt32Ty(), services.tasklet(), Align(4));
    else if (name == "llvm.dpu.ldma" || name == "llvm.dpu.sdma")
      noteSite(call, builder);
    if (name == "llvm.dpu.ldma")
      value = services.call(builder, FOUNDRY_DPU_OP_MRAM_READ,
                            {call.getArgOperand(1), call.getArgOperand(0), call.getArgOperand(2)});
    else if (name == "llvm.dpu.sdma")
      value = services.call(builder, FOUNDRY_DPU_OP_MRAM_WRITE,
                            {call.getArgOperand(1), call.getArgOperand(0), call.getArgOperand(2)});
    else if (callee &&
             (callee->getIntrinsicID() == Intrinsic::trap || callee->getIntrinsicID() == Intrinsic::ubsantrap))
      value = services.call(builder, FOUNDRY_DPU_OP_FAULT, {builder.getInt32(FOUNDRY_DPU_REASON_UNREACHABLE)});
    else if (!value) {
      if (!library && callee && callee->isDeclaration() && !callee->isIntrinsic() && !Services::isEntry(name))
        builder.CreateAlignedStore(services.site(builder, call), services.callSite(), Align(4));
      return;
    }
    if (!call.getType()->isVoidTy())
      call.replaceAllUsesWith(value);
    call.eraseFromParent();
  }

  // For the report of a fault, and the count by line, before the service.
  void noteSite(const Instruction &access, IRBuilder<> &builder) {
    builder.CreateAlignedStore(services.site(builder, access), services.siteOfService(), Align(4));
    if (byLine) {
      const Function &function = *access.getFunction();
      Constant *line = services.line(function, access.getDebugLoc());
      builder.CreateAlignedStore(counters(builder, function, line), services.lineOfService(), Align(4));
    }
  }

  uint64_t bytes(Type *type) const { return module.getDataLayout().getTypeStoreSize(type); }

  Type *bits(IRBuilder<> &builder, Type *type) const { return builder.getIntNTy(8 * bytes(type)); }

  // A struct or an array in registers is accessed part by part; the rest in 1, 2, 4 or 8 bytes.
  Value *serveLoad(IRBuilder<> &builder, Value *address, Type *type, bool isVolatile) {
    if (type->isAggregateType() || type->isVectorTy() || bytes(type) > 8 || !isPowerOf2_64(bytes(type)))
      return serveParts(builder, address, type, nullptr, isVolatile);
    Value *raw = services.call(builder, FOUNDRY_DPU_OP_MRAM_LOAD | isVolatile << 8,
                               {address, builder.getInt32(bytes(type))});
    return fromBits(builder, builder.CreateTrunc(raw, bits(builder, type)), type);
  }

  void serveStore(IRBuilder<> &builder, Value *address, Value *value) {
    Type *type = value->getType();
    if (type->isAggregateType() || type->isVectorTy() || bytes(type) > 8 || !isPowerOf2_64(bytes(type))) {
      serveParts(builder, address, type, value, false);
      return;
    }
    Value *wide = builder.CreateZExt(toBits(builder, value), builder.getInt64Ty());
    services.call(builder, builder.getInt32(FOUNDRY_DPU_OP_MRAM_STORE | bytes(type) << 8),
                  {address, builder.CreateTrunc(wide, builder.getInt32Ty()),
                   builder.CreateTrunc(builder.CreateLShr(wide, 32), builder.getInt32Ty())});
  }

  Value *toBits(IRBuilder<> &builder, Value *value) {
    Type *type = value->getType();
    if (type->isPointerTy())
      return builder.CreatePtrToInt(value, bits(builder, type));
    if (type->isIntegerTy())
      return builder.CreateZExt(value, bits(builder, type)); // an i1 takes a byte
    return builder.CreateBitCast(value, bits(builder, type));
  }

  Value *fromBits(IRBuilder<> &builder, Value *value, Type *type) {
    if (type->isPointerTy())
      return builder.CreateIntToPtr(value, type);
    if (type->isIntegerTy())
      return builder.CreateTrunc(value, type);
    return builder.CreateBitCast(value, type);
  }

  // Loads (value null) or stores the members of an aggregate or vector, or the 8 bytes pieces of a wide integer.
  Value *serveParts(IRBuilder<> &builder, Value *address, Type *type, Value *value, bool isVolatile) {
    const DataLayout &layout = module.getDataLayout();
    Value *bytesAt = builder.CreatePointerCast(address, builder.getInt8PtrTy(Mram));
    auto at = [&](uint64_t offset, Type *part) {
      return builder.CreatePointerCast(builder.CreateConstGEP1_32(builder.getInt8Ty(), bytesAt, offset),
                                       part->getPointerTo(Mram));
    };
    if (type->isIntegerTy()) {
      Value *result = ConstantInt::get(type, 0);
      for (uint64_t offset = 0, all = bytes(type); offset < all;) {
        uint64_t size = PowerOf2Floor(std::min<uint64_t>(all - offset, 8));
        Type *part = builder.getIntNTy(8 * size);
        Value *place = at(offset, part);
        if (value) {
          serveStore(builder, place, builder.CreateZExtOrTrunc(builder.CreateLShr(value, 8 * offset), part));
        } else {
          Value *piece = builder.CreateZExtOrTrunc(serveLoad(builder, place, part, isVolatile), type);
          result = builder.CreateOr(result, builder.CreateShl(piece, 8 * offset));
        }
        offset += size;
      }
      return result;
    }
    Value *result = UndefValue::get(type);
    auto *vector = dyn_cast<FixedVectorType>(type);
    auto *structure = dyn_cast<StructType>(type);
    unsigned count = vector ? vector->getNumElements() : type->getNumContainedTypes();
    if (auto *array = dyn_cast<ArrayType>(type))
      count = array->getNumElements();
    for (unsigned i = 0; i < count; ++i) {
      Type *part = structure ? structure->getElementType(i) : type->getContainedType(0);
      uint64_t offset =
          structure ? layout.getStructLayout(structure)->getElementOffset(i) : i * layout.getTypeAllocSize(part);
      Value *place = at(offset, part);
      if (value)
        serveStore(builder, place,
                   vector ? builder.CreateExtractElement(value, i) : builder.CreateExtractValue(value, i));
      else if (vector)
        result = builder.CreateInsertElement(result, serveLoad(builder, place, part, isVolatile), i);
      else
        result = builder.CreateInsertValue(result, serveLoad(builder, place, part, isVolatile), i);
    }
    return result;
  }

  // A piece of the section .foundry.iram goes with the function's own section: if the linker drops one, it drops both.
  // It is written from within the function, where the assembler knows that section.
  void record(Function &function, const Cost &cost) {
    std::string name;
    for (char letter : function.getName()) {
      if (letter == '$')
        name += '$'; // doubled in inline assembly
      name += letter;
    }
    std::string text = ".pushsection .foundry.iram,\"o\",@progbits,\"" + name + "\",unique," +
                       std::to_string(++records) + "\n.long " + std::to_string(cost.places) + ", " +
                       std::to_string(cost.routines) + "\n.popsection";
    FunctionType *type = FunctionType::get(Type::getVoidTy(module.getContext()), false);
    IRBuilder<> builder(&*function.getEntryBlock().getFirstInsertionPt());
    builder.CreateCall(InlineAsm::get(type, text, "", true));
  }

  unsigned records = 0;
};

} // namespace

void instrument(Module &module, const Instruments &wanted) {
  Instrumentation(module, wanted).run();
  if (wanted.oneTasklet)
    module.appendModuleInlineAsm(".weak " FOUNDRY_DPU_SYMBOL_ONE_TASKLET "\n.set " FOUNDRY_DPU_SYMBOL_ONE_TASKLET ", 1");
}

} // namespace dpu
