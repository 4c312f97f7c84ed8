// Whether a linked program fits into a DPU.
#include "budget.h"

#include "abi/abi.h"
#include "model/cycles.h"

#include <cstring>
#include <elf.h>
#include <fstream>
#include <iterator>
#include <vector>

namespace driver {

namespace {

struct Routine {
  const char *name;
  uint32_t places;
};

// In the order of the bits that the backend sets.
constexpr Routine Routines[] = {
#define FOUNDRY_ROUTINE(name, places, source) {#name, places},
#include "compiler/backend/routines.def"
};

class Program {
public:
  explicit Program(const std::string &path) : path(path) {
    std::ifstream in(path, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(in), {});
  }

  bool valid() const {
    return bytes.size() >= sizeof(Elf32_Ehdr) && std::memcmp(bytes.data(), ELFMAG, SELFMAG) == 0 &&
           header().e_shoff + header().e_shnum * sizeof(Elf32_Shdr) <= bytes.size();
  }

  // Instructions of all functions and of the routines that they call.
  uint32_t instructions() const {
    uint32_t total = 0, routines = 0;
    for (unsigned i = 0; i < header().e_shnum; ++i) {
      const Elf32_Shdr &section = this->section(i);
      if (std::strcmp(name(section), ".foundry.iram") != 0)
        continue;
      for (uint32_t offset = 0; offset + 8 <= section.sh_size; offset += 8) {
        uint32_t words[2];
        std::memcpy(words, bytes.data() + section.sh_offset + offset, sizeof words);
        total += words[0];
        routines |= words[1];
      }
    }
    for (const Routine &routine : Routines)
      if (routines & 1u << (&routine - Routines))
        total += routine.places;
    return total;
  }

  Elf32_Sym *symbol(const char *wanted) {
    for (unsigned i = 0; i < header().e_shnum; ++i) {
      const Elf32_Shdr &table = section(i);
      if (table.sh_type != SHT_SYMTAB)
        continue;
      const char *names = bytes.data() + section(table.sh_link).sh_offset;
      for (uint32_t offset = 0; offset + sizeof(Elf32_Sym) <= table.sh_size; offset += sizeof(Elf32_Sym)) {
        auto *symbol = reinterpret_cast<Elf32_Sym *>(bytes.data() + table.sh_offset + offset);
        if (std::strcmp(names + symbol->st_name, wanted) == 0)
          return symbol;
      }
    }
    return nullptr;
  }

  void save() const {
    std::fstream out(path, std::ios::binary | std::ios::in | std::ios::out);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

private:
  std::string path;
  std::vector<char> bytes;

  const Elf32_Ehdr &header() const { return *reinterpret_cast<const Elf32_Ehdr *>(bytes.data()); }
  const Elf32_Shdr &section(unsigned i) const {
    return *reinterpret_cast<const Elf32_Shdr *>(bytes.data() + header().e_shoff + i * sizeof(Elf32_Shdr));
  }
  const char *name(const Elf32_Shdr &of) const {
    return bytes.data() + section(header().e_shstrndx).sh_offset + of.sh_name;
  }
};

uint32_t value(Program &program, const char *name) {
  const Elf32_Sym *symbol = program.symbol(name);
  return symbol ? symbol->st_value : 0;
}

bool checkOneTasklet(const Arguments &arguments, Program &program) {
  if (arguments.tasklets.value_or(1) == 1 || !program.symbol(FOUNDRY_DPU_SYMBOL_ONE_TASKLET))
    return true;
  error("the program has " + std::to_string(*arguments.tasklets) +
        " tasklets, but an object in it was compiled with -DNR_TASKLETS=1, and so without the check of data races: "
        "compile all files with -DNR_TASKLETS=" + std::to_string(*arguments.tasklets));
  return false;
}

bool checkWram(const Arguments &arguments, Program &program) {
  uint32_t tasklets = arguments.tasklets.value_or(1), stacks = 0;
  for (uint32_t i = 0; i < tasklets; ++i)
    stacks += stackOf(arguments, i);
  uint32_t variables = value(program, FOUNDRY_DPU_SYMBOL_HEAP_START) - FOUNDRY_DPU_WRAM_BASE;
  if (variables + stacks <= FOUNDRY_DPU_WRAM_SIZE)
    return true;
  error("the program does not fit into WRAM: " + std::to_string(variables) + " bytes of variables and " +
        std::to_string(stacks) + " bytes of stacks for " + std::to_string(tasklets) + " tasklets are " +
        std::to_string(variables + stacks) + " bytes; a DPU has " + std::to_string(FOUNDRY_DPU_WRAM_SIZE));
  return false;
}

} // namespace

Limits limitsOf(const std::string &processor) {
  // Atomic bits: the SDK leaves 56 of 256 to programs on v1A.
  auto limits = [](int64_t tasklets, int64_t instructions, uint32_t atomicBits, int64_t megahertz) {
    return Limits{static_cast<uint32_t>(tasklets), static_cast<uint32_t>(instructions), atomicBits,
                  static_cast<uint32_t>(megahertz * 1000000)};
  };
  return processor == "v1B" ? limits(model::TASKLETS_V1B, model::IRAM_V1B, 256, model::CLOCK_V1B)
                            : limits(model::TASKLETS_V1A, model::IRAM_V1A, 56, model::CLOCK_V1A);
}

uint32_t stackOf(const Arguments &arguments, uint32_t tasklet) {
  auto own = arguments.stacks.find(tasklet);
  return own == arguments.stacks.end() ? arguments.stack : own->second;
}

bool checkTasklets(const Arguments &arguments) {
  uint32_t tasklets = arguments.tasklets.value_or(1), limit = limitsOf(arguments.processor).tasklets;
  if (tasklets < 1 || tasklets > limit) {
    error("NR_TASKLETS is " + std::to_string(tasklets) + "; a " + arguments.processor + " DPU has 1 to " +
          std::to_string(limit) + " tasklets");
    return false;
  }
  for (uint32_t i = 0; i < tasklets; ++i)
    if (stackOf(arguments, i) % 8) {
      error("the stack of tasklet " + std::to_string(i) + " has " + std::to_string(stackOf(arguments, i)) +
            " bytes, which is not a multiple of 8");
      return false;
    }
  return true;
}

bool checkProgram(const Arguments &arguments, const std::string &path) {
  Program program(path);
  if (!program.valid()) {
    error("the linker left no ELF file");
    return false;
  }
  bool fits = checkOneTasklet(arguments, program) && checkWram(arguments, program);
  uint32_t instructions = program.instructions(), places = limitsOf(arguments.processor).instructions;
  if (instructions > places) {
    error("the program does not fit into IRAM: " + std::to_string(instructions) + " instructions (modelled); a " +
          arguments.processor + " DPU has room for " + std::to_string(places));
    fits = false;
  }
  uint32_t mram = value(program, FOUNDRY_DPU_SYMBOL_MRAM_END) - FOUNDRY_DPU_MRAM_BASE;
  if (mram > FOUNDRY_DPU_MRAM_SIZE) {
    error("the program does not fit into MRAM: " + std::to_string(mram) + " bytes of variables; a DPU has " +
          std::to_string(FOUNDRY_DPU_MRAM_SIZE));
    fits = false;
  }
  uint32_t bits = value(program, "__foundry_atomic_end") - value(program, "__foundry_atomic_start");
  if (bits > limitsOf(arguments.processor).atomicBits) {
    error("the program has " + std::to_string(bits) + " atomic bits (mutexes); a " + arguments.processor + " DPU has " +
          std::to_string(limitsOf(arguments.processor).atomicBits));
    fits = false;
  }
  if (!fits)
    return false;
  Elf32_Sym *count = program.symbol(FOUNDRY_DPU_SYMBOL_INSTRUCTIONS);
  if (count) {
    count->st_value = instructions;
    program.save();
  }
  return true;
}

} // namespace driver
