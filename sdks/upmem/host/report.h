// Explain errors, and what DPUs report: one line on stderr, with the numbers.
#pragma once

#include <dpu_error.h>

// Prints "libdpu: ..." and returns `error`.
[[gnu::format(printf, 2, 3)]] dpu_error_t refuse(dpu_error_t error, const char *format, ...);

// Prints "libdpu: ...".
[[gnu::format(printf, 1, 2)]] void note(const char *format, ...);
