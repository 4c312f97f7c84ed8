// Find what the DPU's compiler refuses, before any code is generated.
#include "check.h"

#include "abi/abi.h"
#include "lower.h"
#include "target.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Operator.h"
#include "llvm/Support/WithColor.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace dpu {

namespace {

// The messages are those of the SDK's compiler where it has one, so that users find its documentation.
constexpr const char *CastMessage = "Cast between addresses of different address space is not supported";
constexpr const char *StackMessage = "Dynamic allocation of stack is not supported";

// Accepted is what cost.cpp has a cost for, what lower.cpp makes a call of, and what is no instruction at all.
// Everything else is refused even if this machine's processor could run it: it would cost no modelled time.
bool selectable(Intrinsic::ID id) {
  switch (id) {
  case Intrinsic::abs:
  case Intrinsic::bitreverse:
  case Intrinsic::bswap:
  case Intrinsic::copysign:
  case Intrinsic::ctlz:
  case Intrinsic::ctpop:
  case Intrinsic::cttz:
  case Intrinsic::fabs:
  case Intrinsic::fmuladd:
  case Intrinsic::fptosi_sat:
  case Intrinsic::fptoui_sat:
  case Intrinsic::fshl:
  case Intrinsic::fshr:
  case Intrinsic::powi:
  case Intrinsic::sadd_sat:
  case Intrinsic::sadd_with_overflow:
  case Intrinsic::smax:
  case Intrinsic::smin:
  case Intrinsic::smul_with_overflow:
  case Intrinsic::ssub_sat:
  case Intrinsic::ssub_with_overflow:
  case Intrinsic::uadd_sat:
  case Intrinsic::uadd_with_overflow:
  case Intrinsic::umax:
  case Intrinsic::umin:
  case Intrinsic::umul_with_overflow:
  case Intrinsic::usub_sat:
  case Intrinsic::usub_with_overflow:
  // Markers, and what the optimiser answers.
  case Intrinsic::annotation:
  case Intrinsic::assume:
  case Intrinsic::dbg_addr:
  case Intrinsic::dbg_declare:
  case Intrinsic::dbg_label:
  case Intrinsic::dbg_value:
  case Intrinsic::debugtrap:
  case Intrinsic::donothing:
  case Intrinsic::expect:
  case Intrinsic::expect_with_probability:
  case Intrinsic::experimental_noalias_scope_decl:
  case Intrinsic::invariant_end:
  case Intrinsic::invariant_start:
  case Intrinsic::is_constant:
  case Intrinsic::launder_invariant_group:
  case Intrinsic::lifetime_end:
  case Intrinsic::lifetime_start:
  case Intrinsic::objectsize:
  case Intrinsic::prefetch:
  case Intrinsic::ptr_annotation:
  case Intrinsic::sideeffect:
  case Intrinsic::strip_invariant_group:
  case Intrinsic::trap:
  case Intrinsic::ubsantrap:
  case Intrinsic::vacopy:
  case Intrinsic::vaend:
  case Intrinsic::vastart:
  case Intrinsic::var_annotation:
    return true;
  default:
    return isMathematics(id);
  }
}

class Checker {
public:
  explicit Checker(const Module &module) : module(module) {}

  bool run() {
    for (const GlobalVariable &global : module.globals()) {
      place = "variable '" + global.getName().str() + "'";
      if (global.getName() == "llvm.global_ctors" || global.getName() == "llvm.global_dtors")
        report("functions that run before main or after it: a DPU program has none");
      if (global.getName().startswith("llvm."))
        continue; // a list of names for the optimiser
      checkType(global.getValueType());
      checkSpace(global.getAddressSpace());
      if (global.isThreadLocal())
        report("thread-local variables are not known to the DPU");
      if (global.hasInitializer())
        checkConstant(global.getInitializer());
    }
    for (const Function &function : module) {
      place = "function '" + function.getName().str() + "'";
      checkType(function.getReturnType());
      for (const Argument &argument : function.args())
        checkType(argument.getType());
      frame = 0;
      for (const Instruction &instruction : instructions(function))
        checkInstruction(instruction);
      if (frame > FOUNDRY_DPU_WRAM_SIZE)
        report("a stack frame of " + Twine(frame) + " bytes; a DPU has " + Twine(FOUNDRY_DPU_WRAM_SIZE) +
               " bytes of WRAM");
    }
    return !failed;
  }

private:
  const Module &module;
  std::string place;
  uint64_t frame = 0; // bytes on the stack of the function that is looked at
  bool failed = false;
  SmallPtrSet<const Constant *, 32> seen;
  DenseMap<Type *, bool> known;

  void report(const Twine &message, const Instruction *where = nullptr) {
    failed = true;
    raw_ostream &out = WithColor::error(errs());
    if (where && where->getDebugLoc())
      out << where->getModule()->getSourceFileName() << ":" << where->getDebugLoc().getLine() << ": ";
    out << "in " << place << ": " << message << "\n";
  }

  void checkType(Type *type, const Instruction *where = nullptr) {
    auto inserted = known.try_emplace(type, true);
    if (!inserted.second)
      return;
    if (type->isHalfTy() || type->isBFloatTy())
      report(Twine(type->isHalfTy() ? "half" : "bfloat") +
                 " is not known to the DPU; keep the bits in i16 and compute in float",
             where);
    else if (type->isFloatingPointTy() && !type->isFloatTy() && !type->isDoubleTy())
      report("a floating-point type other than float and double is not known to the DPU", where);
    else if (type->isX86_MMXTy() || type->isX86_AMXTy() || isa<ScalableVectorType>(type))
      report("a type of another processor", where);
    else if (type->isIntegerTy() && type->getIntegerBitWidth() > 128)
      report("integers of more than 128 bits are not supported", where);
    for (Type *part : type->subtypes())
      checkType(part, where);
  }

  void checkSpace(unsigned space, const Instruction *where = nullptr) {
    if (space != Wram && space != Mram)
      report("address space " + Twine(space) + " has no memory on a DPU: 0 is WRAM, 255 is MRAM", where);
  }

  void checkConstant(const Constant *constant, const Instruction *where = nullptr) {
    if (isa<GlobalValue>(constant) || !seen.insert(constant).second)
      return;
    checkType(constant->getType(), where);
    if (const auto *expression = dyn_cast<ConstantExpr>(constant))
      if (expression->getOpcode() == Instruction::AddrSpaceCast)
        report(CastMessage, where);
    for (const Use &operand : constant->operands())
      if (const auto *part = dyn_cast<Constant>(operand))
        checkConstant(part, where);
  }

  void checkCall(const CallBase &call) {
    if (const auto *assembly = dyn_cast<InlineAsm>(call.getCalledOperand())) {
      // An empty one is how C programs keep the compiler from moving memory accesses; a nop is one on any processor.
      StringRef text = StringRef(assembly->getAsmString()).trim();
      if (!text.empty() && text != "nop")
        report("inline assembly: the emulator's compiler does not assemble DPU instructions", &call);
      return;
    }
    const Function *callee = call.getCalledFunction();
    if (!callee || !callee->getName().startswith("llvm."))
      return;
    if (const auto *memory = dyn_cast<MemIntrinsic>(&call)) {
      checkSpace(memory->getDestAddressSpace(), &call);
      if (const auto *transfer = dyn_cast<MemTransferInst>(&call))
        checkSpace(transfer->getSourceAddressSpace(), &call);
      return;
    }
    StringRef name = callee->getName();
    if (name.startswith("llvm.dpu.")) {
      if (name != "llvm.dpu.tid.i32" && name != "llvm.dpu.ldma" && name != "llvm.dpu.sdma")
        report("the intrinsic " + name + " is not known to the emulator's compiler", &call);
      return;
    }
    switch (callee->getIntrinsicID()) {
    case Intrinsic::stacksave:
    case Intrinsic::stackrestore:
      report(StackMessage, &call);
      break;
    case Intrinsic::not_intrinsic:
      report("the intrinsic " + name + " is not known to LLVM", &call);
      break;
    default:
      if (callee->isTargetIntrinsic())
        report("the intrinsic " + name + " is another processor's", &call);
      else if (!selectable(callee->getIntrinsicID()))
        report("the intrinsic " + name + " cannot be selected for a DPU", &call);
    }
  }

  void checkInstruction(const Instruction &instruction) {
    checkType(instruction.getType(), &instruction);
    for (const Use &operand : instruction.operands())
      if (const auto *constant = dyn_cast<Constant>(operand))
        checkConstant(constant, &instruction);
    if (const auto *load = dyn_cast<LoadInst>(&instruction))
      checkSpace(load->getPointerAddressSpace(), load);
    if (const auto *store = dyn_cast<StoreInst>(&instruction))
      checkSpace(store->getPointerAddressSpace(), store);
    if (instruction.isAtomic())
      report("atomic instructions do not exist on a DPU; use mutex.h or barrier.h", &instruction);
    if (isa<AddrSpaceCastInst>(instruction))
      report(CastMessage, &instruction);
    if (const auto *alloca = dyn_cast<AllocaInst>(&instruction)) {
      if (alloca->isStaticAlloca())
        frame += *alloca->getAllocationSizeInBits(module.getDataLayout()) / 8;
      else
        report(StackMessage, &instruction);
    }
    if (isa<InvokeInst>(instruction) || isa<LandingPadInst>(instruction) || isa<ResumeInst>(instruction) ||
        isa<CallBrInst>(instruction) || isa<FuncletPadInst>(instruction) || isa<CatchSwitchInst>(instruction))
      report("exceptions are not known to the DPU", &instruction);
    if (const auto *call = dyn_cast<CallBase>(&instruction))
      checkCall(*call);
  }
};

} // namespace

bool adoptTarget(Module &module) {
  StringRef triple = module.getTargetTriple();
  const std::string &layout = module.getDataLayoutStr();
  if (triple == FrontendTriple) {
    for (Function &function : module) {
      function.setCallingConv(CallingConv::C);
      for (Instruction &instruction : instructions(function))
        if (auto *call = dyn_cast<CallBase>(&instruction))
          call->setCallingConv(CallingConv::C);
    }
  } else {
    if (!triple.empty() && triple != TripleName) {
      WithColor::error(errs()) << module.getSourceFileName() << ": the IR is for the triple '" << triple
                               << "'; a DPU program's is '" << TripleName << "'\n";
      return false;
    }
    if (!layout.empty() && layout != LayoutString) {
      WithColor::error(errs()) << module.getSourceFileName() << ": the IR has the data layout\n  '" << layout
                               << "'; a DPU's is\n  '" << LayoutString << "'\n";
      return false;
    }
    if (!module.getModuleInlineAsm().empty()) {
      WithColor::error(errs())
          << module.getSourceFileName()
          << ": module-level assembly: the emulator's compiler does not assemble DPU instructions\n";
      return false;
    }
  }
  // What LLVM would know of the tasklet's number if it knew the intrinsic.
  if (Function *tasklet = module.getFunction("llvm.dpu.tid.i32"))
    for (Attribute::AttrKind kind : {Attribute::ReadNone, Attribute::NoUnwind, Attribute::WillReturn,
                                     Attribute::Speculatable, Attribute::NoFree, Attribute::NoSync})
      tasklet->addFnAttr(kind);
  module.setTargetTriple(TripleName);
  module.setDataLayout(LayoutString);
  return true;
}

bool checkKnown(const Module &module) { return Checker(module).run(); }

} // namespace dpu
