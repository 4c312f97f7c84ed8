/* printf: formatted by the emulator, which charges what a DPU would spend on it. */
#include <foundry_service.h>
#include <stdio.h>
#include <string.h>

/* A va_list as the emulator reads it, x86-64's, all of whose registers are used up: what is left is a row of 8-byte
 * slots. */
struct arguments {
    uint32_t gp_offset, fp_offset, overflow_arg_area, reg_save_area;
};

int vprintf(const char *restrict format, va_list arguments)
{
    struct arguments row = {48, 176, (uint32_t)arguments, 0};
    return (int)__foundry_service(FOUNDRY_DPU_OP_PRINTF, (uint32_t)format, (uint32_t)&row, 0);
}

int printf(const char *restrict format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int bytes = vprintf(format, arguments);
    va_end(arguments);
    return bytes;
}

int puts(const char *string)
{
    uint32_t bytes = strlen(string);
    __foundry_service(FOUNDRY_DPU_OP_LOG, (uint32_t)string, bytes, 0);
    return bytes + (putchar('\n') != EOF);
}

int putchar(int letter)
{
    char byte = (char)letter;
    __foundry_service(FOUNDRY_DPU_OP_LOG, (uint32_t)&byte, 1, 0);
    return (unsigned char)byte;
}
