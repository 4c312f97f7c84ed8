/* Blocks of any size out of an area of the WRAM heap, which can be given back. */
#ifndef FOUNDRY_BUDDY_ALLOC_H
#define FOUNDRY_BUDDY_ALLOC_H

#include <stddef.h>

/* Makes the area the first time that it is called: a power of two from 2048 to 32768 bytes. */
void buddy_init(size_t bytes);
/* Forgets all blocks and the area. */
void buddy_reset(void);
/* A block aligned to 8, or NULL (and errno ENOMEM) if there is no room. */
void *buddy_alloc(size_t bytes);
void buddy_free(void *block);
void *buddy_realloc(void *block, size_t bytes);

#endif
