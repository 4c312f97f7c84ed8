/* Blocks of one size out of the WRAM heap, which can be given back. */
#ifndef FOUNDRY_FSB_ALLOCATOR_H
#define FOUNDRY_FSB_ALLOCATOR_H

typedef void **fsb_allocator_t;

/* Room for `blocks` blocks of `bytes` bytes, rounded up to a multiple of 8. */
fsb_allocator_t fsb_alloc(unsigned int bytes, unsigned int blocks);
/* A block, or NULL if none is free. */
void *fsb_get(fsb_allocator_t allocator);
void fsb_free(fsb_allocator_t allocator, void *block);

#endif
