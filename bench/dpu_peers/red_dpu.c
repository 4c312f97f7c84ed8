/* Sum of int64 as PrIM does it: each tasklet sums blocks of 1 KiB in turn, tasklet 0 sums what the tasklets found. */
#include <alloc.h>
#include <barrier.h>
#include <defs.h>
#include <mram.h>

#include "peers.h"

__host struct peer_arguments arguments;
__host int64_t result;

BARRIER_INIT(everybody, NR_TASKLETS);
static int64_t found[NR_TASKLETS];

static int64_t sum(const int64_t *values, uint32_t count) {
    int64_t total = 0;
    for (uint32_t i = 0; i < count; i++) total += values[i];
    return total;
}

int main(void) {
    if (me() == 0) mem_reset();
    barrier_wait(&everybody);
    const uint32_t bytes = arguments.count * sizeof(int64_t);
    const uint32_t array = (uint32_t)DPU_MRAM_HEAP_POINTER + arguments.first;
    int64_t *values = mem_alloc(PEER_BLOCK), total = 0;
    for (uint32_t start = me() * PEER_BLOCK; start < bytes; start += NR_TASKLETS * PEER_BLOCK) {
        const uint32_t here = start + PEER_BLOCK <= bytes ? PEER_BLOCK : bytes - start;
        mram_read((__mram_ptr void *)(array + start), values, here);
        total += sum(values, here / sizeof(int64_t));
    }
    found[me()] = total;
    barrier_wait(&everybody);
    if (me() == 0) result = sum(found, NR_TASKLETS);
    return 0;
}
