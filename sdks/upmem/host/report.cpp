// Prints what is refused and why.
#include "report.h"

#include <cstdarg>
#include <cstdio>

static void print(const char *format, va_list list) {
    char line[2048];
    std::vsnprintf(line, sizeof(line), format, list);
    std::fprintf(stderr, "libdpu: %s\n", line);
}

dpu_error_t refuse(dpu_error_t error, const char *format, ...) {
    va_list list;
    va_start(list, format);
    print(format, list);
    va_end(list);
    return error;
}

void note(const char *format, ...) {
    va_list list;
    va_start(list, format);
    print(format, list);
    va_end(list);
}
