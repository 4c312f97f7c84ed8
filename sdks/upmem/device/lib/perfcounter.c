/* The clock, which the linker knows. */
#include <perfcounter.h>

extern uint8_t __foundry_clock[];

const volatile uint32_t CLOCKS_PER_SEC = (uint32_t)__foundry_clock;
