// The emulator's entry points in IR. abi/abi.h has their addresses and numbers.
#include "services.h"

#include "abi/abi.h"

#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace dpu {

namespace {

Constant *fixed(Type *type, uint32_t address) {
  return ConstantExpr::getIntToPtr(ConstantInt::get(Type::getInt32Ty(type->getContext()), address),
                                   type->getPointerTo());
}

} // namespace

Services::Services(Module &module, bool library) : module(module), library(library) {}

bool Services::isEntry(StringRef name) {
  return name == "__foundry_service" || name == "__foundry_yield" || name == "__foundry_access";
}

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

// A call in a cold path. It preserves every register, so that the code around it can use them all.
static void callPreserving(IRBuilder<> &builder, FunctionCallee function, ArrayRef<Value *> arguments) {
  CallInst *call = builder.CreateCall(function, arguments);
  call->setCallingConv(CallingConv::PreserveAll);
  cast<Function>(function.getCallee())->setCallingConv(CallingConv::PreserveAll);
  call->setDoesNotThrow();
}

void Services::yield(IRBuilder<> &builder) const {
  callPreserving(builder,
                 module.getOrInsertFunction("__foundry_yield", FunctionType::get(builder.getVoidTy(), false)), {});
}

void Services::access(IRBuilder<> &builder, Value *address, uint32_t what, Value *site, Value *value) const {
  Type *word = builder.getInt32Ty();
  FunctionType *type = FunctionType::get(builder.getVoidTy(), {word, word, word, builder.getInt64Ty()}, false);
  callPreserving(builder, module.getOrInsertFunction("__foundry_access", type),
                 {address, builder.getInt32(what), site, value});
}

// The program's line, not that of the header whose function is inlined there.
static const DILocation *outsideOfHeaders(const DILocation *location) {
  while (location && location->getInlinedAt() &&
         (location->getDirectory() + "/" + location->getFilename()).str().find("/syslib/") != std::string::npos)
    location = location->getInlinedAt();
  return location;
}

Value *Services::site(IRBuilder<> &builder, const Instruction &instruction) {
  IntegerType *word = Type::getInt32Ty(module.getContext());
  if (library)
    return builder.CreateAlignedLoad(word, callSite(), Align(4));
  const DILocation *location = outsideOfHeaders(instruction.getDebugLoc());
  // An access that stands for several, of two branches or of a function inlined twice, has no line: its function then.
  const DISubprogram *program =
      location ? location->getScope()->getSubprogram() : instruction.getFunction()->getSubprogram();
  if (!program)
    return ConstantInt::get(word, 0);
  std::string text = location && location->getLine()
                         ? (sys::path::filename(location->getFilename()) + ":" + Twine(location->getLine())).str()
                         : (sys::path::filename(program->getFilename()) + " (" + program->getName() + ")").str();
  Constant *&known = sites[text];
  if (!known) {
    Constant *bytes = ConstantDataArray::getString(module.getContext(), text);
    auto *global = new GlobalVariable(module, bytes->getType(), true, GlobalValue::PrivateLinkage, bytes, "site");
    global->setSection(FOUNDRY_DPU_SECTION_SITES);
    global->setAlignment(Align(1));
    known = ConstantExpr::getPtrToInt(global, word);
  }
  return known;
}

Constant *Services::line(const Function &function, const DILocation *location) {
  location = outsideOfHeaders(location);
  std::string text = function.getName().str();
  auto place = [&](const auto *node) {
    SmallString<128> path(node->getFilename());
    sys::fs::make_absolute(node->getDirectory(), path);
    text = (path + ":" + Twine(node->getLine())).str();
  };
  if (location && location->getLine())
    place(location);
  else if (const DISubprogram *program = function.getSubprogram())
    place(program);
  Constant *&known = lines[text];
  if (!known) {
    text.resize(alignTo(text.size() + 1, FOUNDRY_DPU_LINE_ALIGNMENT));
    Constant *bytes = ConstantDataArray::getString(module.getContext(), text, false);
    auto *global = new GlobalVariable(module, bytes->getType(), false, GlobalValue::PrivateLinkage, bytes, "line");
    global->setSection(FOUNDRY_DPU_SECTION_LINES);
    global->setAlignment(Align(FOUNDRY_DPU_LINE_ALIGNMENT));
    IntegerType *word = Type::getInt32Ty(module.getContext());
    known = ConstantExpr::getAdd(ConstantExpr::getPtrToInt(global, word),
                                 ConstantInt::get(word, FOUNDRY_DPU_COUNTERS_BASE - FOUNDRY_DPU_LINES_BASE));
  }
  return known;
}

Value *Services::lineOfService() const { return fixed(Type::getInt32Ty(module.getContext()), FOUNDRY_DPU_LINE); }

Value *Services::caller() const { return fixed(Type::getInt32Ty(module.getContext()), FOUNDRY_DPU_CALLER); }

Value *Services::stackLeft() const { return fixed(Type::getInt32Ty(module.getContext()), FOUNDRY_DPU_STACK_LEFT); }

Value *Services::budget() const { return fixed(Type::getInt64Ty(module.getContext()), FOUNDRY_DPU_BUDGET); }

Value *Services::siteOfService() const { return fixed(Type::getInt32Ty(module.getContext()), FOUNDRY_DPU_SITE); }

Value *Services::callSite() const { return fixed(Type::getInt32Ty(module.getContext()), FOUNDRY_DPU_CALL_SITE); }

Value *Services::epoch(Type *type) const { return fixed(type, FOUNDRY_DPU_EPOCH); }

Value *Services::shadow() const { return fixed(Type::getInt32Ty(module.getContext()), FOUNDRY_DPU_SHADOW); }

Value *Services::tasklet() const { return fixed(Type::getInt32Ty(module.getContext()), FOUNDRY_DPU_TASKLET); }

} // namespace dpu
