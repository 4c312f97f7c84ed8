// Functions with a variable number of arguments, the way the DPU passes them: through memory.
#include "variadic.h"

#include "stack.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Support/WithColor.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace dpu {

namespace {

constexpr unsigned SlotBytes = 8;

FunctionType *fixedType(FunctionType *type) {
  SmallVector<Type *, 8> parameters(type->params().begin(), type->params().end());
  parameters.push_back(Type::getInt8PtrTy(type->getContext()));
  return FunctionType::get(type->getReturnType(), parameters, false);
}

class Expansion {
public:
  explicit Expansion(Module &module) : module(module) {}

  bool run() {
    SmallVector<CallBase *, 16> calls;
    SmallVector<Function *, 8> functions;
    for (Function &function : module) {
      if (function.isVarArg() && !function.isIntrinsic())
        functions.push_back(&function);
      for (Instruction &instruction : instructions(function))
        if (auto *call = dyn_cast<CallBase>(&instruction))
          if (call->getFunctionType()->isVarArg() && !call->isInlineAsm())
            calls.push_back(call);
    }
    for (CallBase *call : calls)
      if (!expandCall(cast<CallInst>(call)))
        return false;
    for (Function *function : functions)
      expandFunction(function);
    for (Function &function : module)
      expandReads(function);
    return true;
  }

private:
  Module &module;
  // One area a function: its calls do not overlap in time.
  DenseMap<Function *, AllocaInst *> areas;

  AllocaInst *area(Function *function, unsigned slots) {
    Type *word = Type::getInt64Ty(module.getContext());
    AllocaInst *&entry = areas[function];
    if (entry && cast<ConstantInt>(entry->getArraySize())->getZExtValue() >= slots)
      return entry;
    Value *size = ConstantInt::get(Type::getInt32Ty(module.getContext()), slots);
    if (entry)
      entry->setOperand(0, size);
    else
      entry = new AllocaInst(word, Wram, size, Align(SlotBytes), "further", &*function->getEntryBlock().begin());
    entry->setMetadata(NotOnDpu, MDNode::get(module.getContext(), {})); // a DPU passes some in registers
    return entry;
  }

  static constexpr unsigned Wram = 0;

  bool expandCall(CallInst *call) {
    FunctionType *type = call->getFunctionType();
    unsigned fixed = type->getNumParams();
    unsigned further = call->arg_size() - fixed;
    IRBuilder<> builder(call);
    Value *address = ConstantPointerNull::get(builder.getInt8PtrTy());
    if (further) {
      AllocaInst *slots = area(call->getFunction(), further);
      for (unsigned i = 0; i < further; ++i) {
        Value *value = call->getArgOperand(fixed + i);
        if (call->isByValArgument(fixed + i) || value->getType()->isAggregateType() ||
            module.getDataLayout().getTypeAllocSize(value->getType()) > SlotBytes) {
          WithColor::error(errs())
              << "in function '" << call->getFunction()->getName()
              << "': a struct or a value of more than 8 bytes is passed as one of a variable number "
                 "of arguments; pass its address\n";
          return false;
        }
        Value *slot = builder.CreateConstInBoundsGEP1_32(builder.getInt64Ty(), slots, i);
        slot = builder.CreateBitCast(slot, value->getType()->getPointerTo());
        builder.CreateAlignedStore(value, slot, Align(SlotBytes));
      }
      address = builder.CreateBitCast(slots, builder.getInt8PtrTy());
    }
    SmallVector<Value *, 8> arguments(call->arg_begin(), call->arg_begin() + fixed);
    arguments.push_back(address);
    FunctionType *expanded = fixedType(type);
    Value *callee = builder.CreateBitCast(call->getCalledOperand(), expanded->getPointerTo());
    CallInst *replacement = builder.CreateCall(expanded, callee, arguments);
    replacement->takeName(call);
    replacement->setDebugLoc(call->getDebugLoc());
    replacement->setCallingConv(call->getCallingConv());
    // Attributes of the further arguments (noundef) have nowhere to go.
    AttributeList attributes = call->getAttributes();
    SmallVector<AttributeSet, 8> kept;
    for (unsigned i = 0; i < fixed; ++i)
      kept.push_back(attributes.getParamAttrs(i));
    replacement->setAttributes(
        AttributeList::get(module.getContext(), attributes.getFnAttrs(), attributes.getRetAttrs(), kept));
    call->replaceAllUsesWith(replacement);
    call->eraseFromParent();
    return true;
  }

  void expandFunction(Function *function) {
    FunctionType *type = fixedType(function->getFunctionType());
    Function *replacement = Function::Create(type, function->getLinkage(), function->getAddressSpace());
    module.getFunctionList().insert(function->getIterator(), replacement);
    replacement->copyAttributesFrom(function);
    replacement->takeName(function);
    replacement->setComdat(function->getComdat());
    if (!function->isDeclaration()) {
      replacement->getBasicBlockList().splice(replacement->begin(), function->getBasicBlockList());
      replacement->setSubprogram(function->getSubprogram());
      function->setSubprogram(nullptr);
      auto target = replacement->arg_begin();
      for (Argument &argument : function->args()) {
        argument.replaceAllUsesWith(&*target);
        target->takeName(&argument);
        ++target;
      }
      target->setName("further");
      for (Instruction &instruction : make_early_inc_range(instructions(replacement)))
        if (auto *start = dyn_cast<VAStartInst>(&instruction)) {
          IRBuilder<> builder(start);
          builder.CreateAlignedStore(&*target, list(builder, start->getArgList()), Align(4));
          start->eraseFromParent();
        }
    }
    function->replaceAllUsesWith(ConstantExpr::getBitCast(replacement, function->getType()));
    function->eraseFromParent();
  }

  // A va_list is a pointer to the next slot.
  static Value *list(IRBuilder<> &builder, Value *address) {
    return builder.CreateBitCast(address, builder.getInt8PtrTy()->getPointerTo());
  }

  void expandReads(Function &function) {
    for (Instruction &instruction : make_early_inc_range(instructions(function))) {
      IRBuilder<> builder(&instruction);
      if (auto *read = dyn_cast<VAArgInst>(&instruction)) {
        Value *place = list(builder, read->getPointerOperand());
        Value *slot = builder.CreateAlignedLoad(builder.getInt8PtrTy(), place, Align(4));
        builder.CreateAlignedStore(builder.CreateConstGEP1_32(builder.getInt8Ty(), slot, SlotBytes), place, Align(4));
        Value *typed = builder.CreateBitCast(slot, read->getType()->getPointerTo());
        read->replaceAllUsesWith(builder.CreateAlignedLoad(read->getType(), typed, Align(SlotBytes)));
        read->eraseFromParent();
      } else if (auto *copy = dyn_cast<VACopyInst>(&instruction)) {
        Value *from = builder.CreateAlignedLoad(builder.getInt8PtrTy(), list(builder, copy->getSrc()), Align(4));
        builder.CreateAlignedStore(from, list(builder, copy->getDest()), Align(4));
        copy->eraseFromParent();
      } else if (isa<VAEndInst>(instruction)) {
        instruction.eraseFromParent();
      }
    }
  }
};

} // namespace

bool expandVariadic(Module &module) { return Expansion(module).run(); }

} // namespace dpu
