// The output of a DPU program: text in the shared log, formatted from the program's arguments.
#pragma once

#include <cstdint>
#include <string>

#include "memory.h"

class Log {
  public:
    Log(shared::Control &control, std::uint8_t *bytes) : control_(control), bytes_(bytes) {}

    void clear();
    // Adds text. What does not fit is dropped; a line in the log says so.
    void add(const char *text, std::size_t bytes);
    // Adds a line that the host also prints when the launch has ended.
    void report(const std::string &text);

  private:
    shared::Control &control_;
    std::uint8_t *bytes_;
};

// The text of printf with the arguments in the va_list at `list` (see abi.h). Throws Broken if the format, a string or
// the arguments are not in WRAM, or the format asks for what is not supported.
std::string print(const Memory &memory, std::uint32_t tasklet, std::uint32_t format, std::uint32_t list);

// The zero-terminated string at an address, at most `limit` bytes of it.
std::string string_at(const Memory &memory, std::uint32_t tasklet, std::uint32_t address, std::size_t limit = 0x10000);
