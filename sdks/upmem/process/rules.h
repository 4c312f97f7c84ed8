// A broken rule, as an exception: thrown by services, which run on the scheduler's stack; ends the launch as a fault.
#pragma once

#include <cstdint>
#include <string>

#include "../shared/layout.h"

struct Broken {
    shared::Rule rule;
    std::uint32_t tasklet;
    std::uint32_t address;
    std::uint32_t size;
    std::string text; // what was asked for, and what the rule is
};

// The rule's name as messages show it.
const char *rule_name(shared::Rule rule);

// printf into a string.
std::string format(const char *format, ...);
