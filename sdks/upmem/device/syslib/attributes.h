/* Where variables live: WRAM that the host reaches, MRAM, alignment for DMA. */
#ifndef FOUNDRY_ATTRIBUTES_H
#define FOUNDRY_ATTRIBUTES_H

#define __section(name) __attribute__((section(name)))
#define __aligned(bytes) __attribute__((aligned(bytes)))
#define __used __attribute__((used))
#define __noinline __attribute__((noinline))
#define __weak __attribute__((weak))
#define __keep __used __weak
#define DEPRECATED __attribute__((deprecated))

/* Buffers of DMA transfers. */
#define __dma_aligned __aligned(8)

/* A variable in WRAM that the host reads and writes by its name. */
#define __host __section(".dpu_host") __dma_aligned __used

/* One of the hardware's bits for mutual exclusion; it has an address but no contents. */
#define __atomic_bit __section(".atomic") __used

/* A pointer to MRAM. The compiler does not convert it to or from one to WRAM. */
#define __mram_ptr __attribute__((address_space(255)))

/* Variables in MRAM: with contents; without (nothing is written there when the program is loaded); kept over a load. */
#define __mram __mram_ptr __section(".mram") __dma_aligned __used
#define __mram_noinit __mram_ptr __section(".mram.noinit") __dma_aligned __used
#define __mram_keep __mram_ptr __section(".mram.keep") __dma_aligned __used
#define __mram_noinit_keep __mram_ptr __section(".mram.noinit.keep") __dma_aligned __used

/* The hardware's short addresses; the emulator's compiler ignores them. */
#define __lower_data(name) __attribute__((used, section(".data.immediate_memory." name)))

#endif
