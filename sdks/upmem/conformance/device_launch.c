/* A program that counts its launches, and prints, waits or faults when it is told to. */
/* built as: device_launch -DNR_TASKLETS=4 */
#include <defs.h>
#include <mram.h>
#include <stdint.h>
#include <stdio.h>

enum { QUIET, PRINT, LOOP, FAULT };

__host uint32_t task;
__host uint32_t rounds;
__host uint32_t launches;
__host uint32_t sum;
__host uint32_t private_count;
static uint32_t kept = 40;
__mram_noinit uint64_t heap_like[8];

int main(void) {
    if (me() != 0) return 0;
    launches++;
    private_count = ++kept;
    switch (task) {
        case PRINT:
            printf("launch %u of %s: %d %x %c %08u\n", launches, "this program", -5, 0xbeefu, 'z', 77u);
            printf("second line\n");
            break;
        case LOOP:
            for (volatile uint32_t i = 0; i < rounds; i++) sum += i;
            break;
        case FAULT:
            /* 1 MiB is behind the end of WRAM. */
            *(volatile uint32_t *)0x00100000 = 1;
            break;
        default:
            break;
    }
    return 0;
}
