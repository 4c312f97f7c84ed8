// dpu-backend: from LLVM IR for a DPU, or from the C frontend, to an object file that the emulator can run.
//
//     dpu-backend [-O0|-O1|-O2|-O3|-Os|-Oz] [-strip-lines] [-count-lines] [-library] [-no-race-check|-one-tasklet]
//                 [-emit-llvm [-S]] -o OUTPUT INPUT
//
// INPUT is IR as text or bitcode with typed pointers. With -emit-llvm the output is the optimised IR as a DPU would get
// it. With -strip-lines the input's debug information is used for the reports of races, and left out of the output.
// With -count-lines the code counts what each source line issues, see abi/abi.h. With -library its accesses are reported
// at the line that calls it. -no-race-check leaves out the check of races; so does -one-tasklet, which also marks the
// object, so that it is not linked into a program with more tasklets.
// dpu-upmem-dpurte-clang calls this program; users do not.
#include "check.h"
#include "emit.h"
#include "instrument.h"
#include "lower.h"
#include "optimise.h"
#include "races.h"
#include "target.h"
#include "variadic.h"

#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Verifier.h"
#include "llvm/IRReader/IRReader.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Support/WithColor.h"

using namespace llvm;

namespace {

struct Arguments {
  std::string input, output;
  OptimizationLevel level = OptimizationLevel::O2;
  bool optimise = true;
  bool emitIr = false;
  bool asText = false;
  bool stripLines = false;
  dpu::Instruments instruments;
};

bool parse(int argc, char **argv, Arguments &arguments) {
  for (int i = 1; i < argc; ++i) {
    StringRef argument = argv[i];
    if (argument == "-o" && i + 1 < argc)
      arguments.output = argv[++i];
    else if (argument == "-emit-llvm")
      arguments.emitIr = true;
    else if (argument == "-strip-lines")
      arguments.stripLines = true;
    else if (argument == "-count-lines")
      arguments.instruments.byLine = true;
    else if (argument == "-library")
      arguments.instruments.library = true;
    else if (argument == "-no-race-check")
      arguments.instruments.races = false;
    else if (argument == "-one-tasklet")
      arguments.instruments.races = !(arguments.instruments.oneTasklet = true);
    else if (argument == "-S")
      arguments.asText = true;
    else if (argument == "-O0")
      arguments.level = OptimizationLevel::O0;
    else if (argument == "-O1")
      arguments.level = OptimizationLevel::O1;
    else if (argument == "-O2")
      arguments.level = OptimizationLevel::O2;
    else if (argument == "-O3")
      arguments.level = OptimizationLevel::O3;
    else if (argument == "-Os")
      arguments.level = OptimizationLevel::Os;
    else if (argument == "-Oz")
      arguments.level = OptimizationLevel::Oz;
    else if (!argument.startswith("-") && arguments.input.empty())
      arguments.input = argument.str();
    else {
      WithColor::error(errs()) << "dpu-backend: unknown argument '" << argument << "'\n";
      return false;
    }
  }
  arguments.optimise = arguments.level != OptimizationLevel::O0;
  return !arguments.input.empty() && !arguments.output.empty();
}

std::unique_ptr<Module> read(const std::string &path, LLVMContext &context) {
  SMDiagnostic diagnostic;
  std::unique_ptr<Module> module =
      parseIRFile(path, diagnostic, context, [](StringRef triple) -> Optional<std::string> {
        // The layout sets the default alignments. IR without a layout means the DPU's.
        if (triple.empty())
          return std::string(dpu::LayoutString);
        return None;
      });
  if (!module) {
    diagnostic.print("dpu-upmem-dpurte-clang", errs());
    if (diagnostic.getMessage().contains("expected type"))
      WithColor::note(errs())
          << "a pointer is written 'ptr', which LLVM 12 does not know: the DPU's IR has typed pointers\n";
    if (diagnostic.getMessage().contains("found end of file"))
      WithColor::note(errs())
          << "the IR ends in the middle: write it with --out FILE instead of redirecting a preview\n";
    return nullptr;
  }
  if (!context.supportsTypedPointers()) {
    WithColor::error(errs()) << path << ": opaque pointers, which LLVM 12 does not know\n";
    return nullptr;
  }
  return module;
}

} // namespace

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  Arguments arguments;
  if (!parse(argc, argv, arguments)) {
    errs() << "usage: dpu-backend [-O0..-O3|-Os|-Oz] [-strip-lines] [-count-lines] [-library] "
              "[-no-race-check|-one-tasklet] [-emit-llvm [-S]] -o OUTPUT INPUT\n";
    return 2;
  }
  // The scalarizer leaves loads and stores of vectors alone unless told so.
  const char *options[] = {"dpu-backend", "-scalarize-load-store"};
  cl::ParseCommandLineOptions(2, options);

  LLVMContext context;
  std::unique_ptr<Module> module = read(arguments.input, context);
  if (!module)
    return 1;
  if (!dpu::adoptTarget(*module) || !dpu::checkKnown(*module) || !dpu::expandVariadic(*module))
    return 1;
  dpu::forbidSpeculation(*module);
  dpu::optimise(*module, arguments.level);
  if (arguments.stripLines && arguments.emitIr)
    StripDebugInfo(*module);

  std::error_code error;
  ToolOutputFile out(arguments.output, error, sys::fs::OF_None);
  if (error) {
    WithColor::error(errs()) << arguments.output << ": " << error.message() << "\n";
    return 1;
  }
  if (arguments.emitIr) {
    if (arguments.asText)
      module->print(out.os(), nullptr);
    else
      WriteBitcodeToFile(*module, out.os());
    out.keep();
    return 0;
  }
  dpu::lower(*module);
  dpu::instrument(*module, arguments.instruments);
  if (arguments.stripLines)
    StripDebugInfo(*module);
  if (verifyModule(*module, &errs())) {
    WithColor::error(errs()) << "the emulator's compiler made invalid IR of " << arguments.input << "\n";
    return 1;
  }
  if (!dpu::emitObject(*module, arguments.optimise, out.os()))
    return 1;
  out.keep();
  return 0;
}
