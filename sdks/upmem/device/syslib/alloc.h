/* The WRAM heap: memory between the program's variables and the stacks. */
#ifndef FOUNDRY_ALLOC_H
#define FOUNDRY_ALLOC_H

#include <buddy_alloc.h>
#include <fsb_allocator.h>
#include <stddef.h>

/* Returns `bytes` bytes, aligned to 8; they cannot be freed one by one. The DPU faults if there are not enough. */
void *mem_alloc(size_t bytes);
/* Frees everything; returns where the heap begins. No tasklet may allocate at the same time. */
void *mem_reset(void);

#endif
