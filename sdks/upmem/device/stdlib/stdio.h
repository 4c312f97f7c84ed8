/* printf: into the log that the host reads with dpu_log_read. */
#ifndef FOUNDRY_STDIO_H
#define FOUNDRY_STDIO_H

#include <stdarg.h>
#include <stddef.h>

/* The size in bytes of the log in MRAM on hardware; the emulator's has no end. */
#ifndef STDOUT_BUFFER_SIZE
#define STDOUT_BUFFER_SIZE (1 << 20)
#endif
#define STDOUT_BUFFER_INIT(size) _Static_assert((size) % 8 == 0, "the log's size is a multiple of 8")

#define EOF (-1)

int printf(const char *restrict format, ...) __attribute__((format(printf, 1, 2)));
int vprintf(const char *restrict format, va_list arguments);
int puts(const char *string);
int putchar(int letter);

#endif
