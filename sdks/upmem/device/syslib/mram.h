/* DMA between MRAM and WRAM. */
#ifndef FOUNDRY_MRAM_H
#define FOUNDRY_MRAM_H

#include <attributes.h>
#include <stdint.h>

/* Its address is where the program's variables in MRAM end. */
extern __mram_ptr __dma_aligned uint8_t __sys_used_mram_end[0];

#define DPU_MRAM_HEAP_POINTER ((__mram_ptr void *)(&__sys_used_mram_end))

/* Both addresses are multiples of 8; `bytes` is a multiple of 8 from 8 to 2048. On hardware nothing checks that and
 * other data moves; here the DPU faults. */
static inline __attribute__((always_inline)) void mram_read(const __mram_ptr void *from, void *to, unsigned int bytes)
{
    __builtin_dpu_ldma(to, from, bytes);
}

static inline __attribute__((always_inline)) void mram_write(const void *from, __mram_ptr void *to, unsigned int bytes)
{
    __builtin_dpu_sdma(from, to, bytes);
}

#endif
