/* A program that counts cycles and instructions together. */
/* built as: device_counters -DNR_TASKLETS=1 -mcpu=v1B */
/* built as: device_counters_v1a -DNR_TASKLETS=1 */
#include <defs.h>
#include <perfcounter.h>
#include <stdint.h>

__host struct {
    uint64_t cycles, instructions;
} counted[4];

static void spin(void) {
    for (volatile uint32_t i = 0; i < 1000; i++) {}
}

static void note(int number, bool from_zero) {
#ifdef __dpu_v1B__
    perfcounter_pair_t both = perfcounter_get_both(from_zero);
    counted[number].cycles = both.cycles;
    counted[number].instructions = both.instr;
#else
    (void)number, (void)from_zero;
#endif
}

int main(void) {
    perfcounter_config(COUNT_ENABLE_BOTH, true);
    spin();
    note(0, false);
    spin();
    note(1, true);
    note(2, true);
    perfcounter_config(COUNT_DISABLE_BOTH, false);
    spin();
    note(3, true);
    return 0;
}
