/* Barriers: a number of tasklets wait for the last of them. */
#ifndef FOUNDRY_BARRIER_H
#define FOUNDRY_BARRIER_H

#include <atomic_bit.h>
#include <attributes.h>
#include <foundry_service.h>
#include <stdint.h>

typedef struct barrier_t {
    uint8_t wait_queue;
    uint8_t count;
    uint8_t initial_count;
    uint8_t lock;
} barrier_t;

/* `tasklets` is how many wait for each other: 1 to NR_TASKLETS. Any other number faults when the barrier is waited at.
 * As the other macros that define an object, it works with and without a semicolon behind it. */
#define BARRIER_INIT(name, tasklets)                                                                                   \
    _Static_assert((tasklets) < 128 && (tasklets) >= -127, "a barrier's count is a byte");                             \
    barrier_t __aligned(4) name = {.wait_queue = 0xff, .count = (tasklets), .initial_count = (tasklets), .lock = 0};

static inline void barrier_wait(barrier_t *barrier)
{
    __foundry_service(FOUNDRY_DPU_OP_BARRIER_WAIT, (uint32_t)barrier, 0, 0);
}

#endif
