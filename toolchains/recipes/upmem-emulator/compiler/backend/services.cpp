// The emulator's entry points as IR sees them; addresses and numbers are in abi/abi.h.
#include "services.h"

#include "abi/abi.h"

using namespace llvm;

namespace dpu {

namespace {

Constant *fixed(Type *type, uint32_t address) {
  return ConstantExpr::getIntToPtr(ConstantInt::get(Type::getInt32Ty(type->getContext()), address),
                                   type->getPointerTo());
}

} // namespace

Services::Services(Module &module) : module(module) {}

CallInst *Services::call(IRBuilder<> &builder, Value *op, ArrayRef<Value *> operands) const {
  Type *word = builder.getInt32Ty();
  FunctionCallee service = module.getOrInsertFunction(
      "__foundry_service", FunctionType::get(builder.getInt64Ty(), {word, word, word, word}, false));
  SmallVector<Value *, 4> arguments{op};
  for (Value *operand : operands)
    arguments.push_back(operand->getType()->isPointerTy() ? builder.CreatePtrToInt(operand, word) : operand);
  while (arguments.size() < 4)
    arguments.push_back(builder.getInt32(0));
  CallInst *call = builder.CreateCall(service, arguments);
  call->setDoesNotThrow();
  return call;
}

CallInst *Services::call(IRBuilder<> &builder, uint32_t op, ArrayRef<Value *> operands) const {
  return call(builder, builder.getInt32(op), operands);
}

void Services::fault(IRBuilder<> &builder, uint32_t reason, Value *address, uint32_t value) const {
  call(builder, FOUNDRY_DPU_OP_FAULT, {builder.getInt32(reason), address, builder.getInt32(value)})->setDoesNotReturn();
  builder.CreateUnreachable();
}

void Services::yield(IRBuilder<> &builder) const {
  FunctionCallee function =
      module.getOrInsertFunction("__foundry_yield", FunctionType::get(builder.getVoidTy(), false));
  CallInst *call = builder.CreateCall(function);
  // It keeps every register, so that the loop around it has them all.
  call->setCallingConv(CallingConv::PreserveAll);
  cast<Function>(function.getCallee())->setCallingConv(CallingConv::PreserveAll);
  call->setDoesNotThrow();
}

Value *Services::budget() const { return fixed(Type::getInt64Ty(module.getContext()), FOUNDRY_DPU_BUDGET); }

Value *Services::tasklet() const { return fixed(Type::getInt32Ty(module.getContext()), FOUNDRY_DPU_TASKLET); }

} // namespace dpu
