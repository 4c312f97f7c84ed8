/* MRAM accesses of any address and length, and atomic updates. */
#ifndef FOUNDRY_MRAM_UNALIGNED_H
#define FOUNDRY_MRAM_UNALIGNED_H

#include <attributes.h>
#include <defs.h>
#include <mram.h>
#include <stdint.h>

/* Reads `bytes` bytes, at most 2048 with what is before them in their first word. `buffer` is aligned to 8 and has room
 * for `bytes` + 16. Returns where in the buffer the first one is. */
void *mram_read_unaligned(const __mram_ptr void *from, void *buffer, unsigned int bytes);

/* Writes `bytes` bytes, at most 2048. `from` and `to` leave the same remainder when divided by 8. */
void mram_write_unaligned(const void *from, __mram_ptr void *to, unsigned int bytes);

/* The word of 8 bytes around an address of MRAM, locked and in WRAM; and written back and unlocked. */
uint8_t *__foundry_mram_word_open(const __mram_ptr void *address);
void __foundry_mram_word_close(const __mram_ptr void *address);

/* update(pointer to the value in WRAM, arguments) on an int or a byte of MRAM, atomically. */
#define mram_update_int_atomic(address, update, arguments)                                                             \
    do {                                                                                                               \
        (*(update))((int *)(__foundry_mram_word_open(address) + ((uintptr_t)(address)&4)), arguments);                 \
        __foundry_mram_word_close(address);                                                                            \
    } while (0)

#define mram_write_int_atomic(address, value)                                                                          \
    do {                                                                                                               \
        *(int *)(__foundry_mram_word_open(address) + ((uintptr_t)(address)&4)) = (value);                              \
        __foundry_mram_word_close(address);                                                                            \
    } while (0)

#define mram_update_byte_atomic(address, update, arguments)                                                            \
    do {                                                                                                               \
        (*(update))(__foundry_mram_word_open(address) + ((uintptr_t)(address)&7), arguments);                          \
        __foundry_mram_word_close(address);                                                                            \
    } while (0)

#define mram_write_byte_atomic(address, value)                                                                         \
    do {                                                                                                               \
        __foundry_mram_word_open(address)[(uintptr_t)(address)&7] = (value);                                           \
        __foundry_mram_word_close(address);                                                                            \
    } while (0)

#endif
