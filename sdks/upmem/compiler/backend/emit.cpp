// Generate an object file for the processor that runs the code instead of the DPU.
#include "emit.h"

#include "target.h"

#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/WithColor.h"
#include "llvm/Target/TargetMachine.h"

using namespace llvm;

namespace dpu {

namespace {

// The DPU's compiler chooses sections by address space; this one must be told them: MRAM is not WRAM, and variables
// without contents take no room in the object file, for which LLVM needs a name that begins with .bss.
void place(GlobalVariable &global) {
  if (global.getAddressSpace() != Mram)
    return;
  if (!global.hasSection())
    global.setSection(".mram");
  if (global.getSection().startswith(".mram.noinit") && global.getInitializer()->isNullValue())
    global.setSection((".bss" + global.getSection()).str());
}

} // namespace

bool emitObject(Module &module, bool optimise, raw_pwrite_stream &out) {
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmParser(); // for the records of instruction counts
  LLVMInitializeX86AsmPrinter();
  std::string why;
  const Target *target = TargetRegistry::lookupTarget(NativeTriple, why);
  if (!target) {
    WithColor::error(errs()) << why << "\n";
    return false;
  }
  // The two layouts have different default alignments, so every alignment is written into the IR.
  const DataLayout layout = module.getDataLayout();
  for (GlobalVariable &global : module.globals())
    if (!global.isDeclaration()) {
      if (!global.getAlign())
        global.setAlignment(layout.getPreferredAlign(&global));
      place(global);
    }
  // Programs are linked statically. Clang marks each symbol so; other IR may not, and would load addresses from a table.
  for (GlobalValue &value : module.global_values())
    value.setDSOLocal(true);
  for (Function &function : module) {
    function.addFnAttr(Attribute::NoRedZone); // below the stack pointer there may be the end of the stack
    function.addFnAttr(Attribute::NoUnwind);  // no .eh_frame
    function.removeFnAttr(Attribute::UWTable);
    function.removeFnAttr("frame-pointer");
    function.removeFnAttr("target-cpu");
    function.removeFnAttr("target-features");
  }
  TargetOptions options;
  options.FunctionSections = true;
  options.DataSections = true;
  std::unique_ptr<TargetMachine> machine(
      target->createTargetMachine(NativeTriple, "x86-64", "", options, Reloc::Static, CodeModel::Small,
                                  optimise ? CodeGenOpt::Default : CodeGenOpt::None));
  module.setTargetTriple(NativeTriple);
  module.setDataLayout(machine->createDataLayout());
  legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, out, nullptr, CGFT_ObjectFile)) {
    WithColor::error(errs()) << "LLVM cannot write object files for " << NativeTriple << "\n";
    return false;
  }
  passes.run(module);
  return true;
}

} // namespace dpu
