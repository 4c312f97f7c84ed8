/* What the hand-written programs and the host program that runs them have agreed on.

   Arrays lie in MRAM's heap one behind the other, at the byte offsets of `struct peer_arguments`. */
#ifndef PEERS_H
#define PEERS_H

#include <stdint.h>

/* Bytes of a DMA transfer, as PrIM's programs choose by default. */
#define PEER_BLOCK 1024

struct peer_arguments {
    /* Elements of an array on this DPU; for gemv its rows. */
    uint32_t count;
    /* gemv: columns. */
    uint32_t columns;
    /* Offsets of the arrays from the heap's start. */
    uint32_t first, second, third;
    uint32_t pad;
};

#endif
