// From one C or IR file to an object, or to IR.
#include "compile.h"

#include "budget.h"

#include <algorithm>

namespace driver {

namespace {

// Clang with the target whose C types are the DPU's (backend/target.h), its macros replaced by the DPU's.
std::vector<std::string> frontend(const Arguments &arguments, Language language, const Installation &installation) {
  std::string standard = !arguments.standard.empty() ? arguments.standard : language == Language::C ? "gnu17" : "gnu++14";
  std::vector<std::string> command = {FOUNDRY_LLVM_BIN "/clang", "-target", "spir-unknown-unknown",
                                      "-Wno-unused-command-line-argument", "-std=" + standard,
                                      // SPIR's own convention is not for functions without a prototype.
                                      "-Xclang", "-fdefault-calling-conv=cdecl"};
  for (const char *name : {"SPIR", "__SPIR", "__SPIR__", "SPIR32", "__SPIR32", "__SPIR32__"})
    command.push_back(std::string("-U") + name);
  for (const char *name : {"__DPU", "__DPU__", "__dpu__", "__ELF__"})
    command.push_back(std::string("-D") + name + "=1");
  if (standard.compare(0, 3, "gnu") == 0)
    command.push_back("-DDPU=1");
  command.push_back("-D__dpu_" + arguments.processor + "__=1");
  command.push_back("-DNR_THREADS=" + std::to_string(limitsOf(arguments.processor).tasklets));
  if (!arguments.tasklets)
    command.push_back("-DNR_TASKLETS=1");
  if (language == Language::Cxx) // a DPU has neither's runtime
    command.insert(command.end(), {"-fno-exceptions", "-fno-rtti"});
  command.push_back("-nostdinc");
  if (arguments.standardHeaders)
    for (const char *folder : {"stdlib", "syslib"}) {
      command.push_back("-isystem");
      command.push_back(installation.include() + "/" + folder);
    }
  if (arguments.standardHeaders)
    command.insert(command.end(), {"-include", "dpu_builtins.h"});
  command.insert(command.end(), arguments.frontend.begin(), arguments.frontend.end());
  return command;
}

bool isSource(Language language) { return language == Language::C || language == Language::Cxx; }

const char *nameOf(Language language) { return language == Language::C ? "c" : "c++"; }

} // namespace

int preprocess(const Arguments &arguments, const Input &input, const Installation &installation) {
  if (!isSource(input.language)) {
    error("'" + input.path + "' is neither C nor C++");
    return 1;
  }
  std::vector<std::string> command = frontend(arguments, input.language, installation);
  command.push_back(arguments.stage == Stage::CheckSyntax ? "-fsyntax-only" : "-E");
  if (!arguments.output.empty())
    command.insert(command.end(), {"-o", arguments.output});
  command.insert(command.end(), {"-x", nameOf(input.language), input.path});
  return run(command, arguments.verbose, arguments.dryRun);
}

int compile(const Arguments &arguments, const Input &input, const std::string &output, const Installation &installation,
            TemporaryFolder &temporary) {
  std::string ir = input.path;
  // Lines, for the reports of races; what the user asks for beyond that decides what is in the output.
  bool lines = isSource(input.language) &&
               std::none_of(arguments.frontend.begin(), arguments.frontend.end(),
                            [](const std::string &flag) { return flag.compare(0, 2, "-g") == 0; });
  if (isSource(input.language)) {
    ir = temporary.file(".bc");
    std::vector<std::string> command = frontend(arguments, input.language, installation);
    // Clang marks functions for the level and optimises nothing: that happens under the DPU's data layout.
    command.insert(command.end(), {arguments.level, "-Xclang", "-disable-llvm-passes", "-emit-llvm", "-c", "-x",
                                   nameOf(input.language), input.path, "-o", ir});
    if (lines)
      command.push_back("-gline-tables-only");
    for (const char *flag : {"-MD", "-MMD"})
      for (const std::string &given : arguments.frontend)
        if (given == flag && !arguments.output.empty()) // named after the object, not after the temporary file
          command.insert(command.end(), {"-MF", output.substr(0, output.rfind('.')) + ".d", "-MT", output});
    if (int status = run(command, arguments.verbose, arguments.dryRun))
      return status;
  }
  std::vector<std::string> command = {installation.backend(), arguments.level};
  if (lines)
    command.push_back("-strip-lines");
  if (arguments.countLines)
    command.push_back("-count-lines");
  if (arguments.library)
    command.push_back("-library");
  // Objects for one tasklet need no check of races: with one command, the program's number is known, and otherwise, if
  // it is given. The linker refuses them in a program with more.
  if (!arguments.raceCheck)
    command.push_back("-no-race-check");
  else if (arguments.tasklets.value_or(arguments.stage == Stage::Link ? 1 : 0) == 1)
    command.push_back("-one-tasklet");
  if (arguments.emitIr)
    command.push_back("-emit-llvm");
  if (arguments.asText)
    command.push_back("-S");
  command.insert(command.end(), {"-o", output, ir});
  return run(command, arguments.verbose, arguments.dryRun);
}

} // namespace driver
