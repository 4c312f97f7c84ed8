// Replace the operations for which the DPU's compiler calls a function by such calls.
#include "lower.h"

#include "target.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace dpu {

namespace {

// The DPU's compiler writes a block copy out as at most this many loads and stores.
constexpr unsigned MaxAccesses = 4;

// Number of accesses of at most `align` bytes, a power of two, that cover `bytes` bytes.
uint64_t accesses(uint64_t bytes, uint64_t align) {
  align = std::min<uint64_t>(align, 8);
  uint64_t count = bytes / align;
  for (bytes %= align; bytes; bytes -= PowerOf2Floor(bytes))
    ++count;
  return count;
}

// The C library's name of an intrinsic without its f; empty if the intrinsic is not a function of it.
StringRef mathName(Intrinsic::ID id) {
  switch (id) {
  case Intrinsic::sqrt:
    return "sqrt";
  case Intrinsic::exp:
    return "exp";
  case Intrinsic::exp2:
    return "exp2";
  case Intrinsic::log:
    return "log";
  case Intrinsic::log2:
    return "log2";
  case Intrinsic::log10:
    return "log10";
  case Intrinsic::pow:
    return "pow";
  case Intrinsic::sin:
    return "sin";
  case Intrinsic::cos:
    return "cos";
  case Intrinsic::fma:
    return "fma";
  case Intrinsic::floor:
    return "floor";
  case Intrinsic::ceil:
    return "ceil";
  case Intrinsic::trunc:
    return "trunc";
  case Intrinsic::rint:
    return "rint";
  case Intrinsic::nearbyint:
    return "nearbyint";
  case Intrinsic::round:
    return "round";
  case Intrinsic::roundeven:
    return "roundeven";
  case Intrinsic::minnum:
    return "fmin";
  case Intrinsic::maxnum:
    return "fmax";
  default:
    return "";
  }
}

class Lowering {
public:
  explicit Lowering(Module &module) : module(module) {}

  void run() {
    for (Function &function : module)
      for (Instruction &instruction : make_early_inc_range(instructions(function))) {
        if (auto *intrinsic = dyn_cast<IntrinsicInst>(&instruction))
          lowerIntrinsic(intrinsic);
        else if (instruction.getOpcode() == Instruction::FRem)
          replace(&instruction, suffixed("fmod", instruction), {instruction.getOperand(0), instruction.getOperand(1)});
      }
  }

private:
  Module &module;

  static std::string suffixed(StringRef name, const Instruction &instruction) {
    return (name + (instruction.getType()->isFloatTy() ? "f" : "")).str();
  }

  void replace(Instruction *instruction, StringRef name, ArrayRef<Value *> arguments) {
    IRBuilder<> builder(instruction);
    Type *type = instruction->getType();
    SmallVector<Type *, 3> types;
    for (Value *argument : arguments)
      types.push_back(argument->getType());
    FunctionCallee callee = module.getOrInsertFunction(name, FunctionType::get(type, types, false));
    instruction->replaceAllUsesWith(builder.CreateCall(callee, arguments));
    instruction->eraseFromParent();
  }

  // A block copy or fill, unless it is short and within WRAM, becomes memcpy, memmove, memset or one of the library's
  // functions for MRAM (device/lib/mram_copy.c).
  void lowerMemory(MemIntrinsic *memory) {
    unsigned to = memory->getDestAddressSpace(), from = to;
    uint64_t align = memory->getDestAlign().valueOrOne().value();
    StringRef name = "memset";
    if (auto *transfer = dyn_cast<MemTransferInst>(memory)) {
      from = transfer->getSourceAddressSpace();
      align = std::min<uint64_t>(align, transfer->getSourceAlign().valueOrOne().value());
      name = isa<MemMoveInst>(transfer) ? "memmove" : "memcpy";
    } else {
      from = Wram;
    }
    bool inWram = to == Wram && from == Wram;
    if (auto *length = dyn_cast<ConstantInt>(memory->getLength()))
      if (inWram && accesses(length->getZExtValue(), align) <= MaxAccesses)
        return;
    if (!inWram)
      name = isa<MemSetInst>(memory) ? "__foundry_mram_fill"
             : to == Wram            ? "__foundry_mram_copy_in"
             : from == Wram          ? "__foundry_mram_copy_out"
                                     : "__foundry_mram_copy";
    IRBuilder<> builder(memory);
    Value *destination = builder.CreatePointerCast(memory->getRawDest(), builder.getInt8PtrTy(to));
    Value *second = nullptr;
    if (auto *transfer = dyn_cast<MemTransferInst>(memory))
      second = builder.CreatePointerCast(transfer->getRawSource(), builder.getInt8PtrTy(from));
    else
      second = builder.CreateZExt(cast<MemSetInst>(memory)->getValue(), builder.getInt32Ty());
    Value *length = builder.CreateZExtOrTrunc(memory->getLength(), builder.getInt32Ty());
    Type *result = inWram ? destination->getType() : builder.getVoidTy();
    FunctionType *type =
        FunctionType::get(result, {destination->getType(), second->getType(), length->getType()}, false);
    builder.CreateCall(module.getOrInsertFunction(name, type), {destination, second, length});
    memory->eraseFromParent();
  }

  void lowerIntrinsic(IntrinsicInst *intrinsic) {
    Intrinsic::ID id = intrinsic->getIntrinsicID();
    if (auto *memory = dyn_cast<MemIntrinsic>(intrinsic)) {
      lowerMemory(memory);
      return;
    }
    StringRef name = mathName(id);
    if (!name.empty()) {
      SmallVector<Value *, 3> arguments(intrinsic->args());
      replace(intrinsic, suffixed(name, *intrinsic), arguments);
      return;
    }
    switch (id) {
    case Intrinsic::powi:
      replace(intrinsic, intrinsic->getType()->isFloatTy() ? "__powisf2" : "__powidf2",
              {intrinsic->getArgOperand(0), intrinsic->getArgOperand(1)});
      return;
    case Intrinsic::fmuladd: {
      IRBuilder<> builder(intrinsic);
      Value *product = builder.CreateFMul(intrinsic->getArgOperand(0), intrinsic->getArgOperand(1));
      intrinsic->replaceAllUsesWith(builder.CreateFAdd(product, intrinsic->getArgOperand(2)));
      intrinsic->eraseFromParent();
      return;
    }
    case Intrinsic::lifetime_start:
    case Intrinsic::lifetime_end:
      return; // they let stack slots share memory, as on the DPU
    case Intrinsic::assume:
    case Intrinsic::prefetch:
    case Intrinsic::experimental_noalias_scope_decl:
    case Intrinsic::donothing:
      intrinsic->eraseFromParent();
      return;
    default:
      return;
    }
  }
};

} // namespace

bool isMathematics(Intrinsic::ID id) { return !mathName(id).empty(); }

void lower(Module &module) { Lowering(module).run(); }

} // namespace dpu
