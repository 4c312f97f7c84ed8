/* Sums its words, each times a factor, and prints the factor. */
#include <defs.h>
#include <mram.h>
#include <stdint.h>
#include <stdio.h>
__mram_noinit uint64_t words[4];
__host uint32_t factor;
__host uint64_t total;
int main(void) {
    __dma_aligned uint64_t own[4];
    if (me() != 0) return 0;
    mram_read(words, own, sizeof own);
    total = 0;
    for (int i = 0; i < 4; i++) total += factor * own[i];
    printf("factor %u\n", factor);
    return 0;
}
