// The command line of dpu-upmem-dpurte-clang.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace driver {

enum class Stage { Preprocess, CheckSyntax, Compile, Link };

enum class Language { C, Cxx, Ir, Object };

struct Input {
  std::string path;
  Language language;
};

struct Arguments {
  Stage stage = Stage::Link;
  std::string output;             // empty: named after the input, or a.out
  bool emitIr = false;            // -emit-llvm
  bool asText = false;            // -S
  std::string level = "-O0";      // clang's default
  std::string processor = "v1A";  // -mcpu=
  std::string standard; // -std=; empty: gnu17, gnu++14
  std::vector<Input> inputs;
  std::vector<std::string> frontend;   // what clang is given for C: -I, -D, -W, -f, ...
  std::vector<std::string> linker;     // what ld.lld is given: -L, -l, -Wl,
  std::optional<uint32_t> tasklets;    // NR_TASKLETS
  uint32_t stack = 1024;               // STACK_SIZE_DEFAULT, bytes
  std::map<uint32_t, uint32_t> stacks; // STACK_SIZE_TASKLET_n, bytes
  bool countLines = false;             // -foundry-count-lines
  bool raceCheck = true;               // no -foundry-no-race-check
  bool library = false;                // -foundry-library: what the code does is reported at the line that calls it
  bool standardLibrary = true, startFiles = true, standardHeaders = true;
  bool verbose = false, dryRun = false; // -v, -###
  bool version = false, help = false, printTarget = false;
};

// Parses argv[1..]. Returns nothing after printing an error, as clang does for what it does not know.
std::optional<Arguments> parse(const std::vector<std::string> &words);

// Whether the words name the DPU as the target.
bool isForDevice(const std::vector<std::string> &words);

// Prints "dpu-upmem-dpurte-clang: error: MESSAGE".
void error(const std::string &message);

} // namespace driver
