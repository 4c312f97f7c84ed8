/* Vector addition of int32 as PrIM does it: tasklets take blocks of 1 KiB in turn, and add one array into the other. */
#include <alloc.h>
#include <barrier.h>
#include <defs.h>
#include <mram.h>

#include "peers.h"

__host struct peer_arguments arguments;

BARRIER_INIT(everybody, NR_TASKLETS);

static void add(int32_t *total, const int32_t *other, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) total[i] += other[i];
}

int main(void) {
    if (me() == 0) mem_reset();
    barrier_wait(&everybody);
    const uint32_t bytes = arguments.count * sizeof(int32_t);
    const uint32_t heap = (uint32_t)DPU_MRAM_HEAP_POINTER;
    int32_t *total = mem_alloc(PEER_BLOCK), *other = mem_alloc(PEER_BLOCK);
    for (uint32_t start = me() * PEER_BLOCK; start < bytes; start += NR_TASKLETS * PEER_BLOCK) {
        const uint32_t here = start + PEER_BLOCK <= bytes ? PEER_BLOCK : bytes - start;
        __mram_ptr void *target = (__mram_ptr void *)(heap + arguments.second + start);
        mram_read((__mram_ptr void *)(heap + arguments.first + start), other, here);
        mram_read(target, total, here);
        add(total, other, here / sizeof(int32_t));
        mram_write(total, target, here);
    }
    return 0;
}
