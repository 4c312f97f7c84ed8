// Set the DPU's triple and data layout, and remove what LLVM 13 and 14 added and LLVM 12's reader refuses.
#include "legalize.h"

#include "llvm/ADT/Triple.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/IR/Attributes.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace legalize {

namespace {

// Attributes newer than LLVM 12, oldest first. An LLVM that does not know one of them cannot have written it.
constexpr const char *Newer[] = {"elementtype", "nosanitize_coverage", "swiftasync", "vscale_range",
                                 "disable_sanitizer_instrumentation"};

template <typename Bearer> void strip(Bearer &bearer, unsigned operands) {
  AttributeList list = bearer.getAttributes();
  LLVMContext &context = bearer.getContext();
  SmallVector<unsigned, 8> places = {AttributeList::ReturnIndex, AttributeList::FunctionIndex};
  for (unsigned i = 0; i < operands; ++i)
    places.push_back(AttributeList::FirstArgIndex + i);
  for (const char *name : Newer) {
    Attribute::AttrKind kind = Attribute::getAttrKindFromName(name);
    if (kind == Attribute::None)
      continue;
    for (unsigned place : places)
#if LLVM_VERSION_MAJOR >= 14
      list = list.removeAttributeAtIndex(context, place, kind);
#else
      list = list.removeAttribute(context, place, kind);
#endif
  }
  bearer.setAttributes(list);
}

constexpr const char *DpuLayout = "e-m:e-p:32:32-i1:8:32-i8:8:32-i16:16:32-i32:32:32-i64:64:64-n32";

} // namespace

void adoptLayout(Module &module) {
  const std::string &layout = module.getDataLayoutStr();
  if (!layout.empty() && layout != DpuLayout) {
    errs() << "dpu-legalize: the module has the data layout\n  " << layout << "\na DPU's is\n  " << DpuLayout << "\n";
    std::exit(1);
  }
  module.setDataLayout(DpuLayout);
}

void keepDialect(Module &module) {
  // Upstream's opt does not know the architecture and is told `unknown` instead (bin/opt).
  if (Triple(module.getTargetTriple()).getArchName() == "unknown" || module.getTargetTriple().empty())
    module.setTargetTriple("dpu-upmem-dpurte");
  for (Function &function : module) {
    strip(function, function.arg_size());
    for (Instruction &instruction : instructions(function))
      if (auto *call = dyn_cast<CallBase>(&instruction))
        strip(*call, call->arg_size());
  }
}

} // namespace legalize
