/* Globals, stacks and the least of a heap must fit into the 64 KiB of WRAM: the linker refuses what does not. */
/* refused as: wram_globals -DNR_TASKLETS=16 -DBYTES=61440 -- wram */
/* refused as: wram_stacks -DNR_TASKLETS=24 -DSTACK_SIZE_DEFAULT=4096 -DBYTES=64 -- wram */
/* refused as: wram_both -DNR_TASKLETS=16 -DSTACK_SIZE_DEFAULT=2048 -DBYTES=40960 -- wram */
/* taken as: wram_fits -DNR_TASKLETS=16 -DSTACK_SIZE_DEFAULT=2048 -DBYTES=24576 */
#include <defs.h>
#include <stdint.h>

__host uint8_t bytes[BYTES];

int main(void) {
    bytes[me()]++;
    return 0;
}
