// Replace calls for program ids and grid sizes by loads of variables that the entry point has set.
#include "legalize.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace legalize {

namespace {

constexpr unsigned MaxTasklets = 24;

GlobalVariable *external(Module &module, StringRef name, Type *type) {
  if (GlobalVariable *existing = module.getGlobalVariable(name, true))
    return existing;
  auto *variable = new GlobalVariable(module, type, false, GlobalValue::ExternalLinkage, nullptr, name);
  variable->setAlignment(Align(4));
  return variable;
}

unsigned axisOf(const CallInst &call) {
  const auto *axis = dyn_cast<ConstantInt>(call.getArgOperand(0));
  if (!axis || axis->getZExtValue() > 2)
    refuse(*call.getFunction(), "the axis of " + call.getCalledFunction()->getName() + " must be 0, 1 or 2");
  return axis->getZExtValue();
}

// Replaces each call of `name`, declared as i32 (i32), by what `value` builds for its axis.
template <typename Value_> void replaceCalls(Module &module, StringRef name, Value_ value) {
  Function *function = module.getFunction(name);
  if (!function)
    return;
  while (!function->use_empty()) {
    auto *call = dyn_cast<CallInst>(function->user_back());
    if (!call || call->getCalledFunction() != function || call->arg_size() != 1) {
      errs() << "dpu-legalize: " << name << " is used otherwise than as a call with an axis\n";
      std::exit(1);
    }
    IRBuilder<> builder(call);
    call->replaceAllUsesWith(value(builder, axisOf(*call)));
    call->eraseFromParent();
  }
  function->eraseFromParent();
}

} // namespace

void lowerPrograms(Module &module) {
  Type *word = Type::getInt32Ty(module.getContext());
  replaceCalls(module, "__triton_program_id", [&](IRBuilder<> &builder, unsigned axis) {
    Type *rows = ArrayType::get(ArrayType::get(word, 4), MaxTasklets);
    GlobalVariable *programs = external(module, "__triton_program", rows);
    Value *tasklet = builder.CreateCall(taskletIntrinsic(module));
    Value *place = builder.CreateInBoundsGEP(rows, programs, {builder.getInt32(0), tasklet, builder.getInt32(axis)});
    return builder.CreateAlignedLoad(word, place, Align(4));
  });
  replaceCalls(module, "__triton_num_programs", [&](IRBuilder<> &builder, unsigned axis) {
    Type *sizes = ArrayType::get(word, 3);
    GlobalVariable *grid = external(module, "__triton_grid", sizes);
    Value *place = builder.CreateInBoundsGEP(sizes, grid, {builder.getInt32(0), builder.getInt32(axis)});
    return builder.CreateAlignedLoad(word, place, Align(4));
  });
}

} // namespace legalize
