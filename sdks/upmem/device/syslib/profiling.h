/* What sections of code take, counted by perfcounter.h's counter. */
#ifndef FOUNDRY_PROFILING_H
#define FOUNDRY_PROFILING_H

#include <defs.h>
#include <perfcounter.h>

/* What each tasklet has spent between start and stop: cycles or instructions, as perfcounter_config says. There is no
 * dpu-profiling, which reads them; a debugger or the program itself does. */
typedef struct _profiling_t {
    perfcounter_t start[NR_TASKLETS], count[NR_TASKLETS];
} profiling_t;

#define PROFILING_INIT(name) profiling_t name

static inline void profiling_start(profiling_t *section) { section->start[me()] = perfcounter_get(); }

static inline void profiling_stop(profiling_t *section)
{
    section->count[me()] += perfcounter_get() - section->start[me()];
}

#endif
