// Optimise as the DPU's compiler does before it selects instructions.
#include "optimise.h"

#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Transforms/Scalar/Scalarizer.h"
#include "llvm/Transforms/Utils/LowerSwitch.h"

using namespace llvm;

namespace dpu {

void optimise(Module &module, OptimizationLevel level) {
  // The generic cost model and no vectorisation: a DPU has no vector registers, and a native target's cost model would
  // unroll loops for another machine, which the instruction counts would show.
  PipelineTuningOptions tuning;
  tuning.LoopVectorization = false;
  tuning.LoopInterleaving = false;
  tuning.SLPVectorization = false;

  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager components;
  ModuleAnalysisManager modules;
  PassBuilder builder(nullptr, tuning);

  // The device library is small: a loop that looks like strlen must not become a call that nobody defines.
  TargetLibraryInfoImpl library(llvm::Triple(module.getTargetTriple()));
  library.disableAllFunctions();
  functions.registerPass([&] { return TargetLibraryAnalysis(library); });

  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);

  ModulePassManager pipeline = level == OptimizationLevel::O0 ? builder.buildO0DefaultPipeline(level)
                                                              : builder.buildPerModuleDefaultPipeline(level);
  FunctionPassManager last;
  // What instruction selection would do later: vectors element by element, a switch as comparisons.
  last.addPass(ScalarizerPass());
  last.addPass(LowerSwitchPass());
  pipeline.addPass(createModuleToFunctionPassAdaptor(std::move(last)));
  pipeline.run(module, modules);
}

} // namespace dpu
