#ifndef _STRING_H
#define _STRING_H
#include <stddef.h>
void *memcpy(void *to, const void *from, size_t bytes);
void *memmove(void *to, const void *from, size_t bytes);
void *memset(void *to, int byte, size_t bytes);
int memcmp(const void *one, const void *other, size_t bytes);
size_t strlen(const char *text);
int strcmp(const char *one, const char *other);
int strncmp(const char *one, const char *other, size_t count);
char *strcat(char *to, const char *from);
char *strcpy(char *to, const char *from);
char *strdup(const char *text);
char *strchr(const char *text, int character);
char *strrchr(const char *text, int character);
char *strstr(const char *text, const char *part);
char *strcasestr(const char *text, const char *part);
char *strpbrk(const char *text, const char *any);
size_t strspn(const char *text, const char *any);
size_t strcspn(const char *text, const char *any);
char *strerror(int number);
#endif
