// Prints what is refused and why.
#include "report.h"

#include <cstdarg>
#include <cstdio>

dpu_error_t refuse(dpu_error_t error, const char *format, ...) {
    char line[2048];
    va_list list;
    va_start(list, format);
    std::vsnprintf(line, sizeof(line), format, list);
    va_end(list);
    std::fprintf(stderr, "libdpu: %s\n", line);
    return error;
}
