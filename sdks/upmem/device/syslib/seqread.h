/* Items of an array in MRAM, one after the other, through a cache in WRAM. */
#ifndef FOUNDRY_SEQREAD_H
#define FOUNDRY_SEQREAD_H

#include <alloc.h>
#include <mram.h>
#include <stdint.h>

/* The most that seqread_get may advance, in bytes. The cache holds twice as much. */
#ifndef SEQREAD_CACHE_SIZE
#define SEQREAD_CACHE_SIZE 256
#endif
_Static_assert(SEQREAD_CACHE_SIZE >= 32 && SEQREAD_CACHE_SIZE <= 1024 &&
                   (SEQREAD_CACHE_SIZE & (SEQREAD_CACHE_SIZE - 1)) == 0,
               "SEQREAD_CACHE_SIZE is 32, 64, 128, 256, 512 or 1024");

typedef uintptr_t seqreader_buffer_t;

/* What is in the cache: twice SEQREAD_CACHE_SIZE bytes from mram_addr, a multiple of SEQREAD_CACHE_SIZE. */
typedef struct {
    seqreader_buffer_t wram_cache;
    uintptr_t mram_addr;
} seqreader_t;

static inline seqreader_buffer_t seqread_alloc(void) { return (seqreader_buffer_t)mem_alloc(2 * SEQREAD_CACHE_SIZE); }

/* Moves the cache to where an address of MRAM is in its first half. Returns where in WRAM its contents are then. */
static inline void *seqread_seek(__mram_ptr void *address, seqreader_t *reader)
{
    uintptr_t target = (uintptr_t)address, page = target & ~(uintptr_t)(SEQREAD_CACHE_SIZE - 1);
    if (reader->mram_addr != page) {
        mram_read((__mram_ptr void *)page, (void *)reader->wram_cache, 2 * SEQREAD_CACHE_SIZE);
        reader->mram_addr = page;
    }
    return (void *)(reader->wram_cache + (target - page));
}

/* Begins to read at an address of MRAM of any alignment. Returns the first item's address in WRAM. */
static inline void *seqread_init(seqreader_buffer_t cache, __mram_ptr void *address, seqreader_t *reader)
{
    reader->wram_cache = cache;
    reader->mram_addr = 1; /* no page's */
    return seqread_seek(address, reader);
}

/* Where the item is in MRAM. */
static inline __mram_ptr void *seqread_tell(void *item, seqreader_t *reader)
{
    return (__mram_ptr void *)(reader->mram_addr + ((uintptr_t)item - reader->wram_cache));
}

/* The next item's address in WRAM, `bytes` bytes further. */
static inline void *seqread_get(void *item, uint32_t bytes, seqreader_t *reader)
{
    uintptr_t next = (uintptr_t)item + bytes;
    if (__builtin_expect(next - reader->wram_cache >= SEQREAD_CACHE_SIZE, 0))
        return seqread_seek((__mram_ptr void *)(reader->mram_addr + (next - reader->wram_cache)), reader);
    return (void *)next;
}

#endif
