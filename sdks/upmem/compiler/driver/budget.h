// Whether a linked program fits into a DPU.
#pragma once

#include "arguments.h"

#include <string>

namespace driver {

// How many tasklets and how much of each memory a kind of DPU has.
struct Limits {
  uint32_t tasklets, instructions, atomicBits, clock; // clock: Hz
};

Limits limitsOf(const std::string &processor);

// The stack of one tasklet, bytes.
uint32_t stackOf(const Arguments &arguments, uint32_t tasklet);

// Checks NR_TASKLETS and the stacks' sizes; prints what is wrong. Returns whether they are right.
bool checkTasklets(const Arguments &arguments);

// Reads the linked ELF at `path`, checks IRAM, WRAM and MRAM against a DPU's, and writes the modelled number of
// instructions into its symbol __foundry_iram_instructions. Prints what does not fit, with both numbers. Returns
// whether all fits.
bool checkProgram(const Arguments &arguments, const std::string &path);

} // namespace driver
