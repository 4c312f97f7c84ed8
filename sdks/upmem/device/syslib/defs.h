/* The tasklet that runs, and stopping. */
#ifndef FOUNDRY_DEFS_H
#define FOUNDRY_DEFS_H

#include <attributes.h>
#include <foundry_service.h>

typedef unsigned int sysname_t;
typedef unsigned int thread_id_t;

/* The number of this tasklet: 0 to NR_TASKLETS - 1. */
static inline sysname_t me(void) { return __builtin_dpu_tid(); }

/* The DPU faults. */
static inline __attribute__((noreturn)) void halt(void) { __foundry_fault(FOUNDRY_DPU_REASON_HALT, 0, 0); }

#endif
