// Faults of a tasklet that the processor detects: signals, turned into broken rules.
#pragma once

#include "memory.h"
#include "rules.h"

// Installs handlers on a stack of their own. A signal that a tasklet causes ends foundry_resume with OP_SIGNAL; one
// that the emulator causes ends the process.
void install_signal_handlers();

// Which rule the last signal means for the tasklet that caused it.
Broken broken_by_signal(const Memory &memory, std::uint32_t nr_tasklets, std::uint32_t tasklet);

// The address in the program's code at which the last signal came.
std::uint32_t signal_code_address();

// Begins or ends the watch over a launch: a tasklet that uses this process's time for long without any event is
// stopped.
void watch(bool on);

// How often a tasklet has been made to run: the scheduler counts, the watch looks.
extern volatile std::uint64_t switches;
