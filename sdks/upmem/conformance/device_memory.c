/* Accesses to MRAM: DMA of every legal length, scalars through pointers, memory that nobody wrote. */
/* built as: device_memory -DNR_TASKLETS=2 */
#include <defs.h>
#include <mram.h>
#include <stdint.h>

enum { EVERY_LENGTH, SCALARS, UNWRITTEN, HEAP, SHARED_WORD, EVERY_WRAM };
enum { ELEMENTS = 32 };

__host uint32_t task;
__host uint64_t seen[4];

__mram_noinit uint64_t from[256];
__mram_noinit uint64_t to[256];
__mram_noinit uint8_t bytes_in[ELEMENTS], bytes_out[ELEMENTS];
__mram_noinit uint16_t halves_in[ELEMENTS], halves_out[ELEMENTS];
__mram_noinit uint32_t words_in[ELEMENTS], words_out[ELEMENTS];
__mram_noinit float floats_in[ELEMENTS], floats_out[ELEMENTS];
__mram_noinit uint64_t longs_in[ELEMENTS], longs_out[ELEMENTS];
__mram_noinit uint64_t nobody_writes_this[16];

__dma_aligned static uint8_t buffer[2048];

/* For each legal length: read so many bytes, check that no more came, write them behind each other. */
static void every_length(void) {
    for (uint32_t length = 8; length <= 2048; length += 8) {
        for (uint32_t i = 0; i < 2048; i++) buffer[i] = 0x5a;
        mram_read(from, buffer, length);
        for (uint32_t i = length; i < 2048; i++) seen[0] += buffer[i] != 0x5a;
        seen[1]++;
        mram_write(buffer, to, length);
    }
}

/* A buffer at each multiple of 8 in WRAM that the compiler may choose, the stack too. */
static void every_wram(void) {
    __dma_aligned uint64_t local[4];
    mram_read(from, local, 32);
    mram_write(local, to, 32);
    for (uint32_t offset = 0; offset + 16 <= 2048; offset += 8) {
        mram_read(&from[2], buffer + offset, 16);
        mram_write(buffer + offset, &to[4], 16);
    }
}

static void scalars(void) {
    for (uint32_t i = 0; i < ELEMENTS; i++) {
        bytes_out[i] = bytes_in[i] + 1;
        halves_out[i] = halves_in[i] + 1;
        words_out[i] = words_in[i] + 1;
        floats_out[i] = floats_in[i] + 1.0f;
        longs_out[i] = longs_in[i] + 1;
    }
}

static void unwritten(void) {
    mram_read(nobody_writes_this, seen, 16);
    mram_read((__mram_ptr void *)((uint32_t)DPU_MRAM_HEAP_POINTER + (16 << 20)), &seen[2], 8);
    /* Nothing written is not nothing: half a word written leaves the other half as it was. */
    *(__mram_ptr uint32_t *)&nobody_writes_this[8] = 1;
    mram_read(&nobody_writes_this[8], &seen[3], 8);
}

static void heap(void) {
    __mram_ptr uint8_t *base = DPU_MRAM_HEAP_POINTER;
    mram_read(base, buffer, 64);
    for (uint32_t i = 0; i < 64; i++) buffer[i] ^= 0xff;
    mram_write(buffer, base + (60 << 20), 64);
}

int main(void) {
    if (task == SHARED_WORD) {
        /* Whole words of 8 bytes beside each other belong to different tasklets without harm. */
        for (uint32_t i = me(); i < ELEMENTS; i += NR_TASKLETS) longs_out[i] = 100 * me() + i;
        return 0;
    }
    if (me() != 0) return 0;
    switch (task) {
        case EVERY_LENGTH: every_length(); break;
        case EVERY_WRAM: every_wram(); break;
        case SCALARS: scalars(); break;
        case UNWRITTEN: unwritten(); break;
        case HEAP: heap(); break;
        default: break;
    }
    return 0;
}
