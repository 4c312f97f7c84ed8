/* MRAM accesses of any address and length: partial words are written under a lock. */
#include <mram_unaligned.h>
#include <string.h>
#include <vmutex.h>

enum { LOCKS = 2048 };

VMUTEX_INIT(__foundry_mram_words, LOCKS, 1);

static __dma_aligned uint8_t words[FOUNDRY_DPU_MAX_TASKLETS][8];

static uint16_t lock_of(uint32_t address) { return (address >> 3) & (LOCKS - 1); }

uint8_t *__foundry_mram_word_open(const __mram_ptr void *address)
{
    uint32_t word = (uint32_t)address & ~7u;
    vmutex_lock(&__foundry_mram_words, lock_of(word));
    mram_read((const __mram_ptr void *)word, words[me()], 8);
    return words[me()];
}

void __foundry_mram_word_close(const __mram_ptr void *address)
{
    uint32_t word = (uint32_t)address & ~7u;
    mram_write(words[me()], (__mram_ptr void *)word, 8);
    vmutex_unlock(&__foundry_mram_words, lock_of(word));
}

void *mram_read_unaligned(const __mram_ptr void *from, void *buffer, unsigned int bytes)
{
    uint32_t before = (uint32_t)from & 7;
    mram_read((const __mram_ptr void *)((uint32_t)from - before), buffer, (before + bytes + 7) & ~7u);
    return (uint8_t *)buffer + before;
}

/* At most 8 bytes, within one word. */
static void write_part(const uint8_t *from, uint32_t to, uint32_t bytes)
{
    memcpy(__foundry_mram_word_open((const __mram_ptr void *)to) + (to & 7), from, bytes);
    __foundry_mram_word_close((const __mram_ptr void *)to);
}

void mram_write_unaligned(const void *from, __mram_ptr void *to, unsigned int bytes)
{
    const uint8_t *in = from;
    uint32_t out = (uint32_t)to, before = -out & 7;
    if (before > bytes) before = bytes;
    if (before) {
        write_part(in, out, before);
        in += before, out += before, bytes -= before;
    }
    if (bytes >= 8) mram_write(in, (__mram_ptr void *)out, bytes & ~7u);
    if (bytes & 7) write_part(in + (bytes & ~7u), out + (bytes & ~7u), bytes & 7);
}
