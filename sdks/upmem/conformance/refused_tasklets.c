/* 24 tasklets in v1A, 16 in v1B: more are refused by the linker, or by dpu_load with TOO_MANY_TASKLETS. */
/* refused as: tasklets_25 -DNR_TASKLETS=25 -mcpu=v1A -- tasklets 24 */
/* refused as: tasklets_17 -DNR_TASKLETS=17 -mcpu=v1B -- tasklets 16 */
/* refused as: tasklets_0 -DNR_TASKLETS=0 -- tasklets */
/* taken as: tasklets_24 -DNR_TASKLETS=24 -mcpu=v1A */
/* taken as: tasklets_16 -DNR_TASKLETS=16 -mcpu=v1B */
#include <defs.h>
#include <stdint.h>

__host uint32_t ran[32];

int main(void) {
    ran[me()] = 1;
    return 0;
}
