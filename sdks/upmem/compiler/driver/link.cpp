// From objects to a DPU program.
#include "link.h"

#include "abi/abi.h"
#include "budget.h"

#include <algorithm>
#include <filesystem>

namespace driver {

int link(const Arguments &arguments, const std::vector<std::string> &objects, const std::string &output,
         const Installation &installation, TemporaryFolder &temporary) {
  if (!checkTasklets(arguments))
    return 1;
  uint32_t tasklets = arguments.tasklets.value_or(1), stacks = 0;
  auto define = [](const std::string &name, uint32_t value) {
    return "--defsym=" + name + "=" + std::to_string(value);
  };
  std::vector<std::string> command = {
      FOUNDRY_LLVM_BIN "/ld.lld", "-m", "elf32_x86_64", "-static", "--gc-sections", "--discard-locals",
      "--orphan-handling=place"};
  if (std::find(arguments.linker.begin(), arguments.linker.end(), "-T") == arguments.linker.end())
    command.insert(command.end(), {"-T", installation.include() + "/link/dpu.lds"});
  command.push_back(define(FOUNDRY_DPU_SYMBOL_NR_TASKLETS, tasklets));
  command.push_back(define(FOUNDRY_DPU_SYMBOL_STACK_SIZE, arguments.stack));
  for (uint32_t i = 0; i < FOUNDRY_DPU_MAX_TASKLETS; ++i) {
    uint32_t size = i < tasklets ? stackOf(arguments, i) : 0;
    stacks += size;
    command.push_back(define(FOUNDRY_DPU_SYMBOL_STACK_SIZE_TASKLET + std::to_string(i), size));
  }
  command.push_back(define("__foundry_stacks", stacks));
  command.push_back(define("__foundry_clock", limitsOf(arguments.processor).clock));
  command.push_back(define(FOUNDRY_DPU_SYMBOL_INSTRUCTIONS, 0)); // counted in the result
  if (arguments.startFiles)
    command.push_back(installation.library() + "/crt0.o");
  command.insert(command.end(), objects.begin(), objects.end());
  command.insert(command.end(), arguments.linker.begin(), arguments.linker.end());
  if (arguments.standardLibrary)
    command.push_back(installation.library() + "/librt.a");
  std::string program = temporary.file(".elf");
  command.insert(command.end(), {"-o", program});
  if (int status = run(command, arguments.verbose, arguments.dryRun))
    return status;
  if (arguments.dryRun)
    return 0;
  if (!checkProgram(arguments, program))
    return 1;
  std::error_code failure;
  std::filesystem::copy_file(program, output, std::filesystem::copy_options::overwrite_existing, failure);
  if (failure) {
    error("cannot write '" + output + "': " + failure.message());
    return 1;
  }
  return 0;
}

} // namespace driver
