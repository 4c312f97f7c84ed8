// Generate an object file for the processor that runs the code instead of the DPU.
#pragma once

#include "llvm/IR/Module.h"
#include "llvm/Support/raw_ostream.h"

namespace dpu {

// Generates x32 code from an instrumented module into `out`. Returns false after printing why it could not.
bool emitObject(llvm::Module &module, bool optimise, llvm::raw_pwrite_stream &out);

} // namespace dpu
