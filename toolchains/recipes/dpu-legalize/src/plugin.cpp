// dpu-legalize as a pass of opt: `-dpu-legalize` and `-passes=dpu-legalize`, with -dpu-nr-tasklets=N.
#include "legalize.h"

#include "llvm/IR/Function.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/PassManager.h"
#include "llvm/Pass.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Passes/PassPlugin.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

static cl::opt<unsigned> NrTasklets("dpu-nr-tasklets", cl::init(16), cl::value_desc("1..24"),
                                    cl::desc("Tasklets for which dpu-legalize reserves scratch memory"));

namespace legalize {

void run(Module &module, unsigned tasklets) {
  adoptLayout(module);
  lowerPrograms(module);
  moveSlots(module, tasklets);
  lowerCopies(module);
  keepDialect(module);
}

void refuse(const Function &function, const Twine &message) {
  errs() << "dpu-legalize: in '" << function.getName() << "': " << message << "\n";
  std::exit(1);
}

static FunctionCallee dma(Module &module, StringRef name) {
  LLVMContext &context = module.getContext();
  FunctionType *type = FunctionType::get(
      Type::getVoidTy(context),
      {Type::getInt8PtrTy(context, Wram), Type::getInt8PtrTy(context, Mram), Type::getInt32Ty(context)}, false);
  return module.getOrInsertFunction(name, type);
}

FunctionCallee taskletIntrinsic(Module &module) {
  return module.getOrInsertFunction("llvm.dpu.tid.i32",
                                    FunctionType::get(Type::getInt32Ty(module.getContext()), false));
}

FunctionCallee readIntrinsic(Module &module) { return dma(module, "llvm.dpu.ldma"); }

FunctionCallee writeIntrinsic(Module &module) { return dma(module, "llvm.dpu.sdma"); }

} // namespace legalize

namespace {

unsigned tasklets() {
  if (NrTasklets < 1 || NrTasklets > 24) {
    errs() << "dpu-legalize: -dpu-nr-tasklets=" << NrTasklets << ": a DPU has 1 to 24 tasklets\n";
    std::exit(1);
  }
  return NrTasklets;
}

struct DpuLegalizePass : PassInfoMixin<DpuLegalizePass> {
  PreservedAnalyses run(Module &module, ModuleAnalysisManager &) {
    legalize::run(module, tasklets());
    return PreservedAnalyses::none();
  }
  static bool isRequired() { return true; }
};

struct DpuLegalizeLegacyPass : ModulePass {
  static char ID;
  DpuLegalizeLegacyPass() : ModulePass(ID) {}
  bool runOnModule(Module &module) override {
    legalize::run(module, tasklets());
    return true;
  }
};

} // namespace

char DpuLegalizeLegacyPass::ID = 0;
static RegisterPass<DpuLegalizeLegacyPass> Registration("dpu-legalize", "Make kernels legal for a DPU");

// opt finds the pass by this function if it is linked in, and by the one below if it is a plugin.
PassPluginLibraryInfo getDpuLegalizePluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "dpu-legalize", "1.0", [](PassBuilder &builder) {
            builder.registerPipelineParsingCallback(
                [](StringRef name, ModulePassManager &passes, ArrayRef<PassBuilder::PipelineElement>) {
                  if (name != "dpu-legalize")
                    return false;
                  passes.addPass(DpuLegalizePass());
                  return true;
                });
          }};
}

#ifndef LLVM_DPULEGALIZE_LINK_INTO_TOOLS
extern "C" LLVM_ATTRIBUTE_WEAK PassPluginLibraryInfo llvmGetPassPluginInfo() { return getDpuLegalizePluginInfo(); }
#endif
