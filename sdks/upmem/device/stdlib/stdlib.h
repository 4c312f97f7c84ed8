/* The part of the C library's odds and ends that a DPU has. Memory comes from alloc.h. */
#ifndef FOUNDRY_STDLIB_H
#define FOUNDRY_STDLIB_H

#include <stddef.h>

#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1

int abs(int value);
long labs(long value);
long long llabs(long long value);
int atoi(const char *string);
long atol(const char *string);

/* The tasklet ends; the others go on. */
void exit(int status) __attribute__((noreturn));
/* The DPU faults. */
void abort(void) __attribute__((noreturn, cold));

#endif
