/* A program with a symbol of each kind, which adds a host variable into another and into MRAM. */
/* built as: device_symbols -DNR_TASKLETS=1 */
#include <mram.h>
#include <stdint.h>

__host uint32_t word = 7;
__host uint64_t pair[2];
__host uint32_t launches;
__host struct {
    uint32_t count;
    uint8_t bytes[12];
} record;
__host uint32_t heap_base;
uint32_t hidden = 3;

__mram uint32_t table[4] = {11, 22, 33, 44};
__mram uint32_t blank[4];
__mram_noinit uint64_t area[1024];

int main(void) {
    launches++;
    hidden++;
    pair[1] = pair[0] + word;
    heap_base = (uint32_t)DPU_MRAM_HEAP_POINTER;
    __dma_aligned uint64_t buffer[2];
    mram_read(area, buffer, sizeof buffer);
    buffer[1] = buffer[0] + word;
    mram_write(&buffer[1], &area[1], sizeof buffer[1]);
    return 0;
}
