#ifndef _STDLIB_H
#define _STDLIB_H
#include <stddef.h>
void *malloc(size_t bytes);
void *calloc(size_t count, size_t bytes);
void *realloc(void *memory, size_t bytes);
void *aligned_alloc(size_t alignment, size_t bytes);
void free(void *memory);
_Noreturn void exit(int status);
int on_exit(void (*function)(int status, void *with), void *with);
char *getenv(const char *name);
double strtod(const char *text, char **end);
double strtod_l(const char *text, char **end, void *locale);
long long strtoll(const char *text, char **end, int base);
unsigned long long strtoull(const char *text, char **end, int base);
long long atoll(const char *text);
#endif
