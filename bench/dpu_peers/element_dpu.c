/* Vector addition of int32 as TritonPIM compiles it: one tasklet, element after element, straight in MRAM. */
#include <defs.h>
#include <mram.h>

#include "peers.h"

__host struct peer_arguments arguments;

int main(void) {
    if (me() != 0) return 0;
    const uint32_t heap = (uint32_t)DPU_MRAM_HEAP_POINTER;
    const __mram_ptr int32_t *first = (const __mram_ptr int32_t *)(heap + arguments.first);
    const __mram_ptr int32_t *second = (const __mram_ptr int32_t *)(heap + arguments.second);
    __mram_ptr int32_t *third = (__mram_ptr int32_t *)(heap + arguments.third);
    for (uint32_t i = 0; i < arguments.count; i++) third[i] = first[i] + second[i];
    return 0;
}
