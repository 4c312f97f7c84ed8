// The command line of dpu-upmem-dpurte-clang.
#include "arguments.h"

#include <cstdio>
#include <cstdlib>
#include <iostream>

namespace driver {

namespace {

bool startsWith(const std::string &text, const std::string &prefix) {
  return text.compare(0, prefix.size(), prefix) == 0;
}

bool endsWith(const std::string &text, const std::string &suffix) {
  return text.size() >= suffix.size() && text.compare(text.size() - suffix.size(), suffix.size(), suffix) == 0;
}

bool isOneOf(const std::string &word, std::initializer_list<const char *> words) {
  for (const char *candidate : words)
    if (word == candidate)
      return true;
  return false;
}

class Parser {
public:
  explicit Parser(const std::vector<std::string> &words) : words(words) {}

  std::optional<Arguments> run() {
    for (at = 0; at < words.size() && !failed; ++at)
      parseWord(words[at]);
    if (failed)
      return std::nullopt;
    return result;
  }

private:
  const std::vector<std::string> &words;
  size_t at = 0;
  Arguments result;
  std::string language = "none"; // -x
  bool failed = false;

  void fail(const std::string &message) {
    error(message);
    failed = true;
  }

  // The argument of a flag: joined to it, or the next word.
  std::string value(const std::string &word, const std::string &flag) {
    if (word.size() > flag.size())
      return word.substr(flag.size());
    if (at + 1 >= words.size()) {
      fail("argument to '" + flag + "' is missing (expected 1 value)");
      return "";
    }
    return words[++at];
  }

  void parseWord(const std::string &word) {
    if (word.empty() || word[0] != '-' || word == "-")
      addInput(word);
    else if (!parseStage(word) && !parseFrontend(word) && !parseLinker(word) && !parseTarget(word))
      fail("unknown argument: '" + word + "'");
  }

  bool parseStage(const std::string &word) {
    if (word == "-c")
      result.stage = Stage::Compile;
    else if (word == "-S") {
      result.stage = Stage::Compile;
      result.asText = true;
    } else if (word == "-E")
      result.stage = Stage::Preprocess;
    else if (word == "-fsyntax-only")
      result.stage = Stage::CheckSyntax;
    else if (word == "-emit-llvm")
      result.emitIr = true;
    else if (word == "-foundry-count-lines")
      result.countLines = true;
    else if (word == "-foundry-no-race-check")
      result.raceCheck = false;
    else if (word == "-foundry-library")
      result.library = true;
    else if (startsWith(word, "-o"))
      result.output = value(word, "-o");
    else if (startsWith(word, "-x"))
      language = value(word, "-x");
    else if (startsWith(word, "-O")) {
      if (!isOneOf(word, {"-O", "-O0", "-O1", "-O2", "-O3", "-Os", "-Oz"})) {
        fail("invalid integral value '" + word.substr(2) + "' in '" + word + "'");
        return true;
      }
      result.level = word == "-O" ? "-O1" : word;
    } else if (isOneOf(word, {"-v", "--verbose"}))
      result.verbose = true;
    else if (word == "-###")
      result.verbose = result.dryRun = true;
    else if (isOneOf(word, {"--version", "-version"}))
      result.version = true;
    else if (isOneOf(word, {"--help", "-help"}))
      result.help = true;
    else if (isOneOf(word, {"-dumpmachine", "--print-target-triple", "-print-target-triple"}))
      result.printTarget = true;
    else
      return false;
    return true;
  }

  bool parseFrontend(const std::string &word) {
    for (const char *flag : {"-I", "-D", "-U"})
      if (startsWith(word, flag)) {
        std::string argument = value(word, flag);
        if (word[1] == 'D')
          defineSymbol(argument);
        result.frontend.push_back(flag + argument);
        return true;
      }
    for (const char *flag : {"-include", "-isystem", "-iquote", "-idirafter", "-MF", "-MT", "-MQ"})
      if (word == flag) {
        std::string argument = value(word, flag);
        result.frontend.push_back(flag);
        result.frontend.push_back(argument);
        return true;
      }
    if (startsWith(word, "-std=")) {
      result.standard = word.substr(5);
    } else if (isOneOf(word, {"-ansi"})) {
      result.standard = "c89";
    } else if (isOneOf(word, {"-nostdinc", "-nostdsysteminc"})) {
      result.standardHeaders = false;
    } else if (startsWith(word, "-flto") || isOneOf(word, {"-fno-lto", "-pg"})) {
      // The program computes the same without. Its objects stay objects, and nothing counts calls.
    } else if (isOneOf(word, {"-M", "-MM"})) {
      result.stage = Stage::Preprocess;
      result.frontend.push_back(word);
    } else if ((startsWith(word, "-W") && !startsWith(word, "-Wl,") && !startsWith(word, "-Wa,")) ||
               startsWith(word, "-f") || startsWith(word, "-g") ||
               isOneOf(word,
                       {"-w", "-pedantic", "-pedantic-errors", "-MD", "-MMD", "-MP", "-pipe", "-P", "-C", "-dM"})) {
      result.frontend.push_back(word);
    } else {
      return false;
    }
    return true;
  }

  bool parseLinker(const std::string &word) {
    if (startsWith(word, "-L")) {
      result.linker.push_back("-L" + value(word, "-L"));
    } else if (startsWith(word, "-l")) {
      result.linker.push_back("-l" + value(word, "-l"));
    } else if (word == "-Xlinker") {
      addLinkerOption(value(word, word));
    } else if (startsWith(word, "-Wl,")) {
      for (size_t from = 4; from <= word.size();) {
        size_t comma = std::min(word.find(',', from), word.size());
        addLinkerOption(word.substr(from, comma - from));
        from = comma + 1;
      }
    } else if (word == "-nostdlib") {
      result.standardLibrary = result.startFiles = false;
    } else if (word == "-nodefaultlibs") {
      result.standardLibrary = false;
    } else if (word == "-nostartfiles") {
      result.startFiles = false;
    } else if (isOneOf(word, {"-static", "-no-pie"})) {
      // A DPU program is nothing else.
    } else if (isOneOf(word, {"-s", "-r"})) {
      result.linker.push_back(word);
    } else {
      return false;
    }
    return true;
  }

  void addLinkerOption(const std::string &option) {
    for (const char *prefix : {"--defsym=", "-defsym="})
      if (startsWith(option, prefix) && defineSymbol(option.substr(std::string(prefix).size())))
        return;
    if (!option.empty())
      result.linker.push_back(option);
  }

  bool parseTarget(const std::string &word) {
    std::string target;
    if (startsWith(word, "-mcpu=")) {
      result.processor = word.substr(6);
      if (result.processor != "v1A" && result.processor != "v1B")
        fail("unknown target CPU '" + result.processor + "'; valid target CPU values are: v1A, v1B");
      return true;
    }
    if (startsWith(word, "--target="))
      target = word.substr(9);
    else if (word == "-target")
      target = value(word, "-target");
    else
      return false;
    if (!failed && target != "dpu-upmem-dpurte")
      fail("the target '" + target + "' is not this compiler's; it is dpu-upmem-dpurte");
    return true;
  }

  // NR_TASKLETS=, STACK_SIZE_DEFAULT= and STACK_SIZE_TASKLET_n= are also the linker's. Returns whether it was one of
  // them.
  bool defineSymbol(const std::string &definition) {
    size_t equals = definition.find('=');
    std::string name = definition.substr(0, equals);
    const std::string numbered = "STACK_SIZE_TASKLET_";
    bool tasklets = name == "NR_TASKLETS", stack = name == "STACK_SIZE_DEFAULT";
    if (!tasklets && !stack && !startsWith(name, numbered))
      return false;
    std::string text = equals == std::string::npos ? "" : definition.substr(equals + 1);
    char *end = nullptr;
    unsigned long number = std::strtoul(text.c_str(), &end, 0);
    if (text.empty() || *end || number > 0x10000) {
      fail("'" + definition + "': a number is expected");
      return true;
    }
    if (tasklets)
      result.tasklets = number;
    else if (stack)
      result.stack = number;
    else
      result.stacks[std::strtoul(name.c_str() + numbered.size(), nullptr, 10)] = number;
    return true;
  }

  void addInput(const std::string &path) {
    if (language == "c")
      return result.inputs.push_back({path, Language::C});
    if (language == "c++")
      return result.inputs.push_back({path, Language::Cxx});
    if (language == "ir")
      return result.inputs.push_back({path, Language::Ir});
    if (language != "none")
      return fail("language not recognized: '" + language + "'; the emulator's compiler takes c, c++ and ir");
    if (endsWith(path, ".c") || endsWith(path, ".i"))
      result.inputs.push_back({path, Language::C});
    else if (endsWith(path, ".cpp") || endsWith(path, ".cc") || endsWith(path, ".cxx") || endsWith(path, ".C"))
      result.inputs.push_back({path, Language::Cxx});
    else if (endsWith(path, ".ll") || endsWith(path, ".bc"))
      result.inputs.push_back({path, Language::Ir});
    else if (endsWith(path, ".s") || endsWith(path, ".S"))
      fail("'" + path + "': the emulator's compiler does not assemble DPU instructions");
    else if (path == "-")
      fail("-E or -x required when input is from standard input");
    else
      result.inputs.push_back({path, Language::Object});
  }
};

} // namespace

bool isForDevice(const std::vector<std::string> &words) {
  for (size_t i = 0; i < words.size(); ++i)
    if (words[i] == "--target=dpu-upmem-dpurte" ||
        (words[i] == "-target" && i + 1 < words.size() && words[i + 1] == "dpu-upmem-dpurte"))
      return true;
  return false;
}

void error(const std::string &message) { std::cerr << "dpu-upmem-dpurte-clang: error: " << message << "\n"; }

std::optional<Arguments> parse(const std::vector<std::string> &words) { return Parser(words).run(); }

} // namespace driver
