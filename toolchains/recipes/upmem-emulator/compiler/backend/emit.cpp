// An object file for the processor that runs the code in the DPU's place.
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

// What the DPU's compiler decides about sections by address space, told to one that does not: MRAM is not WRAM, and
// what has no contents takes no room in the object file, for which LLVM wants a name that begins with .bss.
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
  // The layouts differ in what they assume where the IR says nothing about alignment, so it is made to say it.
  const DataLayout layout = module.getDataLayout();
  for (GlobalVariable &global : module.globals())
    if (!global.isDeclaration()) {
      if (!global.getAlign())
        global.setAlignment(layout.getPreferredAlign(&global));
      place(global);
    }
  // Programs are linked statically. C says so of each symbol, IR need not, and would get its addresses from a table.
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
