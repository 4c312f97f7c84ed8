/* The counter of cycles or instructions. Emulated: both are modelled. */
#ifndef FOUNDRY_PERFCOUNTER_H
#define FOUNDRY_PERFCOUNTER_H

#include <foundry_service.h>
#include <stdbool.h>
#include <stdint.h>

typedef uint64_t perfcounter_t;

typedef enum _perfcounter_config_t {
    COUNT_SAME = FOUNDRY_DPU_PERF_SAME,
    COUNT_CYCLES = FOUNDRY_DPU_PERF_CYCLES,
    COUNT_INSTRUCTIONS = FOUNDRY_DPU_PERF_INSTRUCTIONS,
    COUNT_NOTHING = FOUNDRY_DPU_PERF_NOTHING,
} perfcounter_config_t;

/* Cycles a second, set by the host when it loads the program. */
extern const volatile uint32_t CLOCKS_PER_SEC;

static inline perfcounter_t perfcounter_get(void) { return __foundry_service(FOUNDRY_DPU_OP_PERF_GET, 0, 0, 0); }

/* Returns the count before. */
static inline perfcounter_t perfcounter_config(perfcounter_config_t what, bool from_zero)
{
    return __foundry_service(FOUNDRY_DPU_OP_PERF_CONFIG, what, from_zero, 0);
}

#endif
