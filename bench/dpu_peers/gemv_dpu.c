/* Matrix times vector in int32 as PrIM does it: rows in pairs split over tasklets, both operands in blocks of 1 KiB. */
#include <alloc.h>
#include <barrier.h>
#include <defs.h>
#include <mram.h>

#include "peers.h"

__host struct peer_arguments arguments;

BARRIER_INIT(everybody, NR_TASKLETS);

static int32_t dot(const int32_t *row, const int32_t *vector, uint32_t count) {
    int32_t total = 0;
    for (uint32_t i = 0; i < count; i++) total += row[i] * vector[i];
    return total;
}

int main(void) {
    if (me() == 0) mem_reset();
    barrier_wait(&everybody);
    const uint32_t heap = (uint32_t)DPU_MRAM_HEAP_POINTER, row_bytes = arguments.columns * sizeof(int32_t);
    int32_t *row = mem_alloc(PEER_BLOCK), *vector = mem_alloc(PEER_BLOCK), *pair = mem_alloc(8);
    const uint32_t pairs = arguments.count / 2, share = pairs / NR_TASKLETS, more = pairs % NR_TASKLETS;
    const uint32_t start = me() * share + (me() < more ? me() : more), end = start + share + (me() < more);
    for (uint32_t index = start; index < end; index++) {
        for (uint32_t half = 0; half < 2; half++) {
            const uint32_t line = heap + arguments.first + (2 * index + half) * row_bytes;
            pair[half] = 0;
            for (uint32_t offset = 0; offset < row_bytes; offset += PEER_BLOCK) {
                const uint32_t here = offset + PEER_BLOCK <= row_bytes ? PEER_BLOCK : row_bytes - offset;
                mram_read((__mram_ptr void *)(line + offset), row, here);
                mram_read((__mram_ptr void *)(heap + arguments.second + offset), vector, here);
                pair[half] += dot(row, vector, here / sizeof(int32_t));
            }
        }
        mram_write(pair, (__mram_ptr void *)(heap + arguments.third + 8 * index), 8);
    }
    return 0;
}
