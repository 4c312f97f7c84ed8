/* Strings and blocks of memory in WRAM. */
#ifndef FOUNDRY_STRING_H
#define FOUNDRY_STRING_H

#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t bytes);
void *memmove(void *to, const void *from, size_t bytes);
void *memset(void *to, int byte, size_t bytes);
int memcmp(const void *left, const void *right, size_t bytes);
void *memchr(const void *area, int byte, size_t bytes);
size_t strlen(const char *string);
size_t strnlen(const char *string, size_t limit);
char *strcpy(char *restrict to, const char *restrict from);
char *strncpy(char *restrict to, const char *restrict from, size_t limit);
char *strcat(char *restrict to, const char *restrict from);
char *strncat(char *restrict to, const char *restrict from, size_t limit);
int strcmp(const char *left, const char *right);
int strncmp(const char *left, const char *right, size_t limit);
char *strchr(const char *string, int letter);
char *strrchr(const char *string, int letter);
char *strstr(const char *string, const char *part);

#endif
