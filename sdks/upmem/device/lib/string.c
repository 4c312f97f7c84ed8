/* Strings in WRAM. */
#include <string.h>

int memcmp(const void *left, const void *right, size_t bytes)
{
    const unsigned char *a = left, *b = right;
    for (; bytes; bytes--, a++, b++)
        if (*a != *b) return *a - *b;
    return 0;
}

void *memchr(const void *area, int byte, size_t bytes)
{
    for (const unsigned char *at = area; bytes; bytes--, at++)
        if (*at == (unsigned char)byte) return (void *)at;
    return NULL;
}

size_t strlen(const char *string)
{
    const char *end = string;
    while (*end) end++;
    return end - string;
}

size_t strnlen(const char *string, size_t limit)
{
    size_t length = 0;
    while (length < limit && string[length]) length++;
    return length;
}

char *strcpy(char *restrict to, const char *restrict from)
{
    char *out = to;
    while ((*out++ = *from++)) continue;
    return to;
}

char *strncpy(char *restrict to, const char *restrict from, size_t limit)
{
    size_t i = 0;
    for (; i < limit && from[i]; i++) to[i] = from[i];
    for (; i < limit; i++) to[i] = 0;
    return to;
}

char *strcat(char *restrict to, const char *restrict from)
{
    strcpy(to + strlen(to), from);
    return to;
}

char *strncat(char *restrict to, const char *restrict from, size_t limit)
{
    char *out = to + strlen(to);
    for (; limit && *from; limit--) *out++ = *from++;
    *out = 0;
    return to;
}

int strcmp(const char *left, const char *right)
{
    for (; *left && *left == *right; left++, right++) continue;
    return (unsigned char)*left - (unsigned char)*right;
}

int strncmp(const char *left, const char *right, size_t limit)
{
    for (; limit && *left && *left == *right; limit--, left++, right++) continue;
    return limit ? (unsigned char)*left - (unsigned char)*right : 0;
}

char *strchr(const char *string, int letter)
{
    for (;; string++) {
        if (*string == (char)letter) return (char *)string;
        if (!*string) return NULL;
    }
}

char *strrchr(const char *string, int letter)
{
    const char *last = NULL;
    for (;; string++) {
        if (*string == (char)letter) last = string;
        if (!*string) return (char *)last;
    }
}

char *strstr(const char *string, const char *part)
{
    size_t length = strlen(part);
    for (; strncmp(string, part, length) != 0; string++)
        if (!*string) return NULL;
    return (char *)string;
}
