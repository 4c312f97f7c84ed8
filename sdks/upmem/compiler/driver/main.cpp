// dpu-upmem-dpurte-clang and dpu-clang: compiles C and LLVM IR for a DPU and links DPU programs, with the SDK's command line.
//
// clang 14 compiles C, libexec/dpu-backend compiles IR, ld.lld 14 links objects. They decide what a DPU program may
// be; the driver only decides what to call. As `clang` and `clang++` it is the SDK's compiler for both sides: for the
// DPU if the target says so, otherwise clang 14 itself.
#include "arguments.h"
#include "compile.h"
#include "link.h"
#include "process.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <unistd.h>

using namespace driver;

namespace {

void printVersion(const Installation &installation) {
  std::cout << "dpu-upmem-dpurte-clang of Triton Foundry's UPMEM emulator, clang version " FOUNDRY_LLVM_VERSION "\n"
               "Target: dpu-upmem-dpurte\n"
               "InstalledDir: "
            << installation.bin() << "\n";
}

void printHelp() {
  std::cout << "usage: dpu-upmem-dpurte-clang [options] file...\n\n"
               "Files: C (.c), C++ (.cpp), LLVM IR (.ll, .bc), objects (.o), archives (.a).\n\n"
               "  -c, -S -emit-llvm, -E, -fsyntax-only   stop before linking; IR as text; preprocess; check\n"
               "  -x c|c++|ir                            the language of the files that follow\n"
               "  -o FILE, -O0 to -O3, -Os, -Oz, -I, -D, -U, -std=, -W..., -f..., -g...   as clang's\n"
               "  -mcpu=v1A|v1B                          which DPU\n"
               "  -DNR_TASKLETS=N                        tasklets, 1 by default\n"
               "  -DSTACK_SIZE_DEFAULT=N, -DSTACK_SIZE_TASKLET_n=N   bytes of stack, 1024 by default\n"
               "  -foundry-count-lines                   count modelled instructions and DMA cycles by source line\n"
               "  -foundry-no-race-check                 leave the check of data races out of the code\n"
               "  -L, -l, -Wl,..., -nostdlib, -nostartfiles          for the linker\n"
               "  -v, -###, --version\n";
}

// The name of an object or of IR for `-c` without -o: the input's with another suffix, in the working folder.
std::string defaultOutput(const Arguments &arguments, const Input &input) {
  const char *suffix = !arguments.emitIr ? ".o" : arguments.asText ? ".ll" : ".bc";
  return std::filesystem::path(input.path).filename().replace_extension(suffix).string();
}

int compileOnly(const Arguments &arguments, const Installation &installation, TemporaryFolder &temporary) {
  if (arguments.asText && !arguments.emitIr) {
    error("the emulator has no DPU assembly: use -S -emit-llvm, or -c");
    return 1;
  }
  if (!arguments.output.empty() && arguments.inputs.size() > 1) {
    error("cannot specify -o when generating multiple output files");
    return 1;
  }
  for (const Input &input : arguments.inputs) {
    if (input.language == Language::Object) {
      std::cerr << "dpu-upmem-dpurte-clang: warning: " << input.path << ": 'linker' input unused\n";
      continue;
    }
    std::string output = arguments.output.empty() ? defaultOutput(arguments, input) : arguments.output;
    if (int status = compile(arguments, input, output, installation, temporary))
      return status;
  }
  return 0;
}

int compileAndLink(const Arguments &arguments, const Installation &installation, TemporaryFolder &temporary) {
  if (arguments.emitIr) {
    error("-emit-llvm cannot be used when linking");
    return 1;
  }
  std::vector<std::string> objects;
  for (const Input &input : arguments.inputs) {
    if (input.language == Language::Object) {
      objects.push_back(input.path);
      continue;
    }
    objects.push_back(temporary.file(".o"));
    if (int status = compile(arguments, input, objects.back(), installation, temporary))
      return status;
  }
  return link(arguments, objects, arguments.output.empty() ? "a.out" : arguments.output, installation, temporary);
}

} // namespace

int main(int argc, char **argv) {
  Installation installation = Installation::find();
  std::string name = std::filesystem::path(argv[0]).filename().string();
  std::vector<std::string> words(argv + 1, argv + argc);
  if ((name == "clang" || name == "clang++") && !isForDevice(words)) {
    std::string path = std::string(FOUNDRY_LLVM_BIN "/") + name;
    execv(path.c_str(), argv);
    error("unable to execute '" + path + "': " + std::strerror(errno));
    return 127;
  }
  std::optional<Arguments> arguments = parse(words);
  if (!arguments)
    return 1;
  if (arguments->version || arguments->help || arguments->printTarget) {
    if (arguments->version)
      printVersion(installation);
    else if (arguments->help)
      printHelp();
    else
      std::cout << "dpu-upmem-dpurte\n";
    return 0;
  }
  if (arguments->verbose)
    printVersion(installation);
  if (arguments->inputs.empty()) {
    if (arguments->verbose)
      return 0;
    error("no input files");
    return 1;
  }
  for (const Input &input : arguments->inputs)
    if (input.path != "-" && access(input.path.c_str(), R_OK) != 0) {
      error(std::string(std::strerror(errno)) + ": '" + input.path + "'");
      return 1;
    }
  TemporaryFolder temporary;
  if (arguments->stage == Stage::Preprocess || arguments->stage == Stage::CheckSyntax) {
    for (const Input &input : arguments->inputs)
      if (int status = preprocess(*arguments, input, installation))
        return status;
    return 0;
  }
  return arguments->stage == Stage::Compile ? compileOnly(*arguments, installation, temporary)
                                            : compileAndLink(*arguments, installation, temporary);
}
