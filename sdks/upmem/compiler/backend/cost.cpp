// How many instructions a DPU would issue for an instruction of the IR, and how many places it would take in IRAM.
#include "cost.h"

#include "model/cycles.h"
#include "target.h"

#include "llvm/ADT/APInt.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/GetElementPtrTypeIterator.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Operator.h"
#include "llvm/Support/KnownBits.h"

using namespace llvm;

namespace dpu {

namespace {

// A call of a routine takes the places of the call and of bringing its operands into the first registers.
constexpr uint64_t RoutinePlaces = 3;

Cost plain(uint64_t instructions) { return {instructions, instructions, 0}; }

Cost routine(int64_t issued, Routine which) {
  return {static_cast<uint64_t>(issued), RoutinePlaces, 1u << static_cast<unsigned>(which)};
}

Cost times(Cost cost, uint64_t count) { return {cost.issued * count, cost.places * count, cost.routines}; }

unsigned elements(Type *type) {
  auto *vector = dyn_cast<FixedVectorType>(type);
  return vector ? vector->getNumElements() : 1;
}

// Bits of an integer or a pointer as the DPU's registers see it.
unsigned width(const Instruction &instruction, Type *type) {
  return instruction.getModule()->getDataLayout().getTypeSizeInBits(type->getScalarType());
}

// Number of 64-bit pieces: 128-bit integers are worked on in two.
uint64_t pieces(unsigned bits) { return (bits + 63) / 64; }

// Instructions of a multiplication by a constant: one shift-and-add for each digit of it that is not 0, with digits -1,
// 0, 1.
uint64_t constantProduct(const APInt &factor) {
  APInt value = factor.isNegative() ? -factor : factor;
  uint64_t digits = 0;
  value = value.zext(value.getBitWidth() + 2);
  while (!value.isZero()) {
    if (value[0]) {
      ++digits;
      if (value[1])
        value += 1;
      else
        value -= 1;
    }
    value.lshrInPlace(1);
  }
  return digits == 0 ? 1 : digits;
}

bool fits(const Value *value, unsigned bits, const DataLayout &layout) {
  unsigned all = value->getType()->getIntegerBitWidth();
  if (all <= bits)
    return true;
  if (computeKnownBits(value, layout).countMinLeadingZeros() >= all - bits)
    return true;
  return ComputeNumSignBits(value, layout) > all - bits;
}

Cost product(const Instruction &instruction) {
  const DataLayout &layout = instruction.getModule()->getDataLayout();
  unsigned bits = width(instruction, instruction.getType());
  Cost general = bits <= 8    ? plain(model::I8_MUL)
                 : bits <= 16 ? plain(model::I16_MUL)
                 : bits <= 32 ? routine(model::I32_MUL, Routine::MulI32)
                              : times(routine(model::I64_MUL, Routine::MulI64), pieces(bits) * pieces(bits));
  const Value *left = instruction.getOperand(0), *right = instruction.getOperand(1);
  if (isa<Constant>(left))
    std::swap(left, right);
  if (const auto *constant = dyn_cast<ConstantInt>(right)) {
    Cost digits = plain(constantProduct(constant->getValue()) * (bits > 32 ? model::I64_ADD + model::I64_SHIFT : 1));
    return digits.issued < general.issued ? digits : general;
  }
  if (!instruction.getType()->isVectorTy() && bits <= 32) {
    if (fits(left, 8, layout) && fits(right, 8, layout))
      return plain(model::I8_MUL);
    if (fits(left, 16, layout) && fits(right, 16, layout))
      return plain(model::I16_MUL);
  }
  return general;
}

Cost quotient(const Instruction &instruction) {
  unsigned bits = width(instruction, instruction.getType());
  const auto *divisor = dyn_cast<ConstantInt>(instruction.getOperand(1));
  uint64_t words = bits > 32 ? 2 : 1;
  if (divisor && divisor->getValue().abs().isPowerOf2()) {
    bool isSigned = instruction.getOpcode() == Instruction::SDiv || instruction.getOpcode() == Instruction::SRem;
    // The sign spread, its low bits added, a shift or a mask.
    return plain(words * (isSigned ? 4 : 1));
  }
  return bits <= 32 ? routine(model::I32_DIV, Routine::DivI32)
                    : times(routine(model::I64_DIV, Routine::DivI64), pieces(bits) * pieces(bits));
}

Cost shift(const Instruction &instruction) {
  unsigned bits = width(instruction, instruction.getType());
  if (bits <= 32)
    return plain(model::I32_LOGIC);
  if (const auto *amount = dyn_cast<ConstantInt>(instruction.getOperand(1)))
    return plain((amount->getValue().uge(32) ? 2 : 3) * pieces(bits));
  return times(routine(model::I64_SHIFT, Routine::ShiftI64), pieces(bits));
}

// A comparison that only branches and selects use is part of them.
bool foldsIntoJump(const Instruction &comparison) {
  for (const User *user : comparison.users()) {
    if (isa<BranchInst>(user))
      continue;
    const auto *select = dyn_cast<SelectInst>(user);
    if (!select || select->getCondition() != &comparison)
      return false;
  }
  return true;
}

Cost comparison(const Instruction &instruction) {
  unsigned bits = width(instruction, instruction.getOperand(0)->getType());
  if (bits <= 32)
    return plain(foldsIntoJump(instruction) ? 0 : model::I32_LOGIC);
  return plain(model::I64_LOGIC * pieces(bits) + (foldsIntoJump(instruction) ? 0 : model::MOVE));
}

Cost floating(const Instruction &instruction, Type *type) {
  bool single = type->getScalarType()->isFloatTy();
  switch (instruction.getOpcode()) {
  case Instruction::FAdd:
    return single ? routine(model::F32_ADD, Routine::AddF32) : routine(model::F64_ADD, Routine::AddF64);
  case Instruction::FSub:
    return single ? routine(model::F32_SUB, Routine::AddF32) : routine(model::F64_SUB, Routine::AddF64);
  case Instruction::FMul:
    return single ? routine(model::F32_MUL, Routine::MulF32) : routine(model::F64_MUL, Routine::MulF64);
  case Instruction::FDiv:
    return single ? routine(model::F32_DIV, Routine::DivF32) : routine(model::F64_DIV, Routine::DivF64);
  case Instruction::FCmp:
    return single ? routine(model::F32_COMPARE, Routine::CompareF32) : routine(model::F64_COMPARE, Routine::CompareF64);
  case Instruction::FNeg:
    return plain(single ? model::F32_NEG : model::F64_NEG);
  default:
    return single ? routine(model::F32_CONVERT, Routine::ConvertF32) : routine(model::F64_CONVERT, Routine::ConvertF64);
  }
}

// Loads and stores of up to 8 bytes are one instruction each, more are several. So are those that are not aligned to
// their size; parts of less than a register are also shifted, and put together or taken apart.
Cost access(const Instruction &instruction, Type *type, unsigned space, Align align, int64_t one) {
  if (space == Mram)
    return {}; // the service's own
  uint64_t bytes = instruction.getModule()->getDataLayout().getTypeStoreSize(type);
  uint64_t step = std::min<uint64_t>({align.value(), 8, PowerOf2Ceil(bytes)});
  uint64_t parts = std::max<uint64_t>(1, (bytes + step - 1) / step), registers = (bytes + 3) / 4;
  uint64_t joints = type->isAggregateType() || parts <= registers ? 0 : parts - registers;
  return plain(one * parts + 2 * model::I32_LOGIC * joints);
}

// An address with only constants in it is part of the load or store that uses it.
Cost address(const GetElementPtrInst &element) {
  const DataLayout &layout = element.getModule()->getDataLayout();
  uint64_t instructions = 0;
  for (auto part = gep_type_begin(element), end = gep_type_end(element); part != end; ++part) {
    if (isa<Constant>(part.getOperand()))
      continue;
    uint64_t stride = layout.getTypeAllocSize(part.getIndexedType());
    instructions += model::ADDRESS;
    if (!isPowerOf2_64(stride) && stride)
      instructions += constantProduct(APInt(32, stride));
  }
  if (instructions == 0 && !element.hasAllZeroIndices())
    for (const User *user : element.users())
      if (!isa<LoadInst>(user) && !isa<GetElementPtrInst>(user) &&
          !(isa<StoreInst>(user) && cast<StoreInst>(user)->getPointerOperand() == &element) && !isa<BitCastInst>(user))
        return plain(model::I32_ADD);
  return plain(instructions);
}

Cost extension(const Instruction &instruction) {
  const Value *operand = instruction.getOperand(0);
  unsigned from = width(instruction, operand->getType()), to = width(instruction, instruction.getType());
  if (const auto *load = dyn_cast<LoadInst>(operand))
    if (load->hasOneUse() && load->getPointerAddressSpace() == Wram)
      return {}; // the load extends
  if (isa<ICmpInst>(operand))
    return {}; // it is computed as 0 or 1 in a whole register
  return plain((from < 32 ? model::EXTEND : 0) + (to > 32 ? model::MOVE : 0));
}

// A jump costs nothing if its block follows, or if no other jump leads there.
Cost jump(const BranchInst &branch) {
  if (branch.isConditional())
    return plain(model::BRANCH);
  const BasicBlock *target = branch.getSuccessor(0);
  return plain(target->getSinglePredecessor() || branch.getParent()->getNextNode() == target ? 0 : model::BRANCH);
}

Cost intrinsic(const IntrinsicInst &call) {
  Type *type = call.getType();
  switch (call.getIntrinsicID()) {
  case Intrinsic::memcpy:
  case Intrinsic::memcpy_inline:
  case Intrinsic::memmove:
  case Intrinsic::memset: {
    const auto &memory = cast<MemIntrinsic>(call);
    uint64_t align = memory.getDestAlign().valueOrOne().value();
    if (const auto *transfer = dyn_cast<MemTransferInst>(&memory))
      align = std::min<uint64_t>(align, transfer->getSourceAlign().valueOrOne().value());
    uint64_t bytes = cast<ConstantInt>(memory.getLength())->getZExtValue();
    uint64_t step = std::min<uint64_t>(align, 8), count = bytes / step + countPopulation(bytes % step);
    return plain(count * (isa<MemSetInst>(memory) ? model::STORE : model::LOAD + model::STORE));
  }
  case Intrinsic::abs:
  case Intrinsic::smin:
  case Intrinsic::smax:
  case Intrinsic::umin:
  case Intrinsic::umax:
    return plain(model::SELECT + (width(call, type) > 32 ? model::I64_LOGIC : 0));
  case Intrinsic::ctlz:
  case Intrinsic::ctpop:
    return plain(width(call, type) > 32 ? 4 : 1);
  case Intrinsic::cttz:
    return plain(width(call, type) > 32 ? 7 : 4);
  case Intrinsic::bswap:
    return plain(2); // stored and loaded in the other order
  case Intrinsic::bitreverse:
    return plain(width(call, type) > 32 ? 40 : 20);
  case Intrinsic::fshl:
  case Intrinsic::fshr:
    return plain(call.getArgOperand(0) == call.getArgOperand(1) && width(call, type) == 32 ? 1 : 4);
  case Intrinsic::sadd_with_overflow:
  case Intrinsic::uadd_with_overflow:
  case Intrinsic::ssub_with_overflow:
  case Intrinsic::usub_with_overflow:
  case Intrinsic::sadd_sat:
  case Intrinsic::uadd_sat:
  case Intrinsic::ssub_sat:
  case Intrinsic::usub_sat:
    return plain(width(call, call.getArgOperand(0)->getType()) > 32 ? 6 : 3);
  case Intrinsic::smul_with_overflow:
  case Intrinsic::umul_with_overflow:
    return width(call, call.getArgOperand(0)->getType()) > 32 ? routine(2 * model::I64_MUL, Routine::MulI64)
                                                              : routine(model::I64_MUL, Routine::MulI64);
  case Intrinsic::fabs:
    return plain(type->getScalarType()->isFloatTy() ? model::F32_NEG : model::F64_NEG);
  case Intrinsic::copysign:
    return plain(3);
  case Intrinsic::fptosi_sat:
  case Intrinsic::fptoui_sat:
    return floating(call, call.getArgOperand(0)->getType());
  default:
    return {}; // markers, traps, MRAM accesses: nothing, or the service's own
  }
}

Cost call(const CallBase &call) {
  if (const auto *assembly = dyn_cast<InlineAsm>(call.getCalledOperand()))
    return plain(assembly->getAsmString().empty() ? 0 : 1); // nothing, or a nop: see check.cpp
  if (const auto *known = dyn_cast<IntrinsicInst>(&call))
    if (known->getIntrinsicID() != Intrinsic::not_intrinsic)
      return times(intrinsic(*known), elements(call.getType()));
  const Function *callee = call.getCalledFunction();
  StringRef name = callee ? callee->getName() : "";
  if (name == "llvm.dpu.ldma" || name == "llvm.dpu.sdma")
    // A length that is not known is shifted, decremented and put into the WRAM address's upper bits.
    return plain(isa<Constant>(call.getArgOperand(2)) ? 0 : 3);
  if (name.startswith("llvm.dpu.") || name == "__foundry_service")
    return {}; // the service's own; the tasklet's number is in a register
  uint64_t instructions = model::CALL / 2 + (callee ? 0 : 1);
  for (unsigned i = 0; i < call.arg_size(); ++i) {
    instructions += model::MOVE;
    if (Type *copied = call.getParamByValType(i)) // a structure, copied by words before its address is passed
      instructions += (model::LOAD + model::STORE) * (call.getModule()->getDataLayout().getTypeAllocSize(copied) / 4);
  }
  return plain(instructions);
}

} // namespace

Cost &Cost::operator+=(const Cost &other) {
  issued += other.issued;
  places += other.places;
  routines |= other.routines;
  return *this;
}

Cost costOf(const Instruction &instruction) {
  Type *type = instruction.getType();
  unsigned count = elements(type);
  switch (instruction.getOpcode()) {
  case Instruction::Add:
  case Instruction::Sub: {
    unsigned bits = width(instruction, type);
    return times(plain(bits > 32 ? model::I64_ADD * pieces(bits) : model::I32_ADD), count);
  }
  case Instruction::And:
  case Instruction::Or:
  case Instruction::Xor: {
    unsigned bits = width(instruction, type);
    return times(plain(bits > 32 ? model::I64_LOGIC * pieces(bits) : model::I32_LOGIC), count);
  }
  case Instruction::Shl:
  case Instruction::LShr:
  case Instruction::AShr:
    return times(shift(instruction), count);
  case Instruction::Mul:
    return times(product(instruction), count);
  case Instruction::UDiv:
  case Instruction::SDiv:
  case Instruction::URem:
  case Instruction::SRem:
    return times(quotient(instruction), count);
  case Instruction::ICmp:
    return times(comparison(instruction), count);
  case Instruction::FAdd:
  case Instruction::FSub:
  case Instruction::FMul:
  case Instruction::FDiv:
  case Instruction::FNeg:
  case Instruction::SIToFP:
  case Instruction::UIToFP:
    return times(floating(instruction, type), count);
  case Instruction::FCmp:
  case Instruction::FPToSI:
  case Instruction::FPToUI:
  case Instruction::FPTrunc:
    return times(floating(instruction, instruction.getOperand(0)->getType()), count);
  case Instruction::FPExt:
    return times(floating(instruction, type), count);
  case Instruction::Load:
    return access(instruction, type, cast<LoadInst>(instruction).getPointerAddressSpace(),
                  cast<LoadInst>(instruction).getAlign(), model::LOAD);
  case Instruction::Store:
    return access(instruction, instruction.getOperand(0)->getType(),
                  cast<StoreInst>(instruction).getPointerAddressSpace(), cast<StoreInst>(instruction).getAlign(),
                  model::STORE);
  case Instruction::GetElementPtr:
    return address(cast<GetElementPtrInst>(instruction));
  case Instruction::SExt:
  case Instruction::ZExt:
    return times(extension(instruction), count);
  case Instruction::Select:
    return times(plain(model::SELECT * pieces(width(instruction, type))), count);
  case Instruction::Br:
    return jump(cast<BranchInst>(instruction));
  case Instruction::IndirectBr:
    return plain(model::BRANCH);
  case Instruction::Ret:
    return plain(model::CALL - model::CALL / 2);
  case Instruction::Call:
    return call(cast<CallBase>(instruction));
  case Instruction::ExtractElement:
  case Instruction::InsertElement:
    return plain(isa<Constant>(instruction.getOperand(instruction.getNumOperands() - 1)) ? 0 : model::LOAD);
  default:
    return {}; // phis, conversions between types of one register, unreachable, stack slots
  }
}

Cost frameCost(const Function &function) {
  for (const Instruction &instruction : instructions(function)) {
    if (const auto *call = dyn_cast<CallBase>(&instruction)) {
      const Function *callee = call->getCalledFunction();
      if (!call->isInlineAsm() && (!callee || !callee->getName().startswith("llvm.")) &&
          !(callee && callee->getName() == "__foundry_service"))
        return plain(model::FRAME);
    }
    if (isa<AllocaInst>(instruction))
      return plain(model::FRAME);
  }
  return {};
}

} // namespace dpu
