/* Two counters are a v1B DPU's. */
/* refused as: counters_of_v1a -DNR_TASKLETS=1 -- perfcounter_get_both v1b */
/* taken as: counters_of_v1b -DNR_TASKLETS=1 -mcpu=v1B */
#include <perfcounter.h>

int main(void) { return (int)perfcounter_get_both(false).instr; }
