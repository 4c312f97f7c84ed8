/* Checks in a DPU program: those that fail are counted, and the first few name their lines in the log. */
#ifndef CHECKS_H
#define CHECKS_H

#include <attributes.h>
#include <stdint.h>
#include <stdio.h>

__host uint64_t results[16]; /* 0: checks made, 1: checks failed */

static inline void check_at(int line, int holds)
{
    results[0]++;
    if (!holds && results[1]++ < 5) printf("line %d\n", line);
}

#define CHECK(condition) check_at(__LINE__, (condition) != 0)

/* A value that the compiler cannot know. */
#define HIDDEN(type, value) (*(volatile type *)&(type){value})

#endif
