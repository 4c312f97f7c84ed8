/* The counter of cycles or instructions. Emulated: both are modelled. */
#ifndef FOUNDRY_PERFCOUNTER_H
#define FOUNDRY_PERFCOUNTER_H

#include <foundry_service.h>
#include <stdbool.h>
#include <stdint.h>

typedef uint64_t perfcounter_t;

#ifdef __dpu_v1B__
#define __FOUNDRY_PERF_BOTH(kind) (kind)
#else
#define __FOUNDRY_PERF_BOTH(kind) ((kind) + FOUNDRY_DPU_PERF_V1A)
#endif

typedef enum _perfcounter_config_t {
    COUNT_SAME = FOUNDRY_DPU_PERF_SAME,
    COUNT_CYCLES = FOUNDRY_DPU_PERF_CYCLES,
    COUNT_INSTRUCTIONS = FOUNDRY_DPU_PERF_INSTRUCTIONS,
    COUNT_NOTHING = FOUNDRY_DPU_PERF_NOTHING,
    /* Of v1B: two counters, which perfcounter_get_both reads. On v1A a fault. */
    COUNT_DISABLE_BOTH = __FOUNDRY_PERF_BOTH(FOUNDRY_DPU_PERF_NEITHER),
    COUNT_ENABLE_BOTH = __FOUNDRY_PERF_BOTH(FOUNDRY_DPU_PERF_BOTH),
} perfcounter_config_t;

/* Cycles a second, set by the host when it loads the program. */
extern const volatile uint32_t CLOCKS_PER_SEC;

static inline perfcounter_t perfcounter_get(void) { return __foundry_service(FOUNDRY_DPU_OP_PERF_GET, 0, 0, 0); }

/* Returns the count before. */
static inline perfcounter_t perfcounter_config(perfcounter_config_t what, bool from_zero)
{
    return __foundry_service(FOUNDRY_DPU_OP_PERF_CONFIG, what, from_zero, 0);
}

typedef struct {
    perfcounter_t cycles, instr;
} perfcounter_pair_t;

#ifdef __dpu_v1B__
/* Stops both counters, reads them, and continues. */
static inline perfcounter_pair_t perfcounter_get_both(bool from_zero)
{
    perfcounter_pair_t both;
    perfcounter_config(COUNT_DISABLE_BOTH, false);
    both.cycles = __foundry_service(FOUNDRY_DPU_OP_PERF_GET, FOUNDRY_DPU_PERF_CYCLES, 0, 0);
    both.instr = __foundry_service(FOUNDRY_DPU_OP_PERF_GET, FOUNDRY_DPU_PERF_INSTRUCTIONS, 0, 0);
    perfcounter_config(COUNT_ENABLE_BOTH, from_zero);
    return both;
}
#else
#define perfcounter_get_both(from_zero)                                                                                \
    ({                                                                                                                 \
        _Static_assert(0, "perfcounter_get_both is only available on v1B (-mcpu=v1B)");                                \
        (perfcounter_pair_t){0, 0};                                                                                    \
    })
#endif

#endif
