/* The WRAM heap: memory between the program's variables and the stacks. */
#ifndef FOUNDRY_ALLOC_H
#define FOUNDRY_ALLOC_H

#include <buddy_alloc.h>
#include <fsb_allocator.h>
#include <stddef.h>

/* `bytes` bytes, aligned to 8; never given back one by one. The DPU faults if there are not so many. */
void *mem_alloc(size_t bytes);
/* Gives back everything; returns where the heap begins. No tasklet may be allocating meanwhile. */
void *mem_reset(void);

#endif
