/* Counting semaphores. */
#ifndef FOUNDRY_SEM_H
#define FOUNDRY_SEM_H

#include <attributes.h>
#include <foundry_service.h>
#include <stdint.h>

typedef struct sem_t {
    uint8_t wait_queue;
    int8_t count;
    int8_t initial_count;
    uint8_t lock;
} sem_t;

typedef sem_t *sem_id_t;

#define SEMAPHORE_GET(name) ((sem_id_t)&name)
#define SEMAPHORE_INIT(name, units)                                                                                    \
    _Static_assert((units) < 128 && (units) >= -127, "a semaphore's count is a byte");                                 \
    sem_t __aligned(4) name = {.wait_queue = 0xff, .count = (units), .initial_count = (units), .lock = 0};

static inline void sem_take(sem_t *semaphore) { __foundry_service(FOUNDRY_DPU_OP_SEM_TAKE, (uint32_t)semaphore, 0, 0); }

static inline void sem_give(sem_t *semaphore) { __foundry_service(FOUNDRY_DPU_OP_SEM_GIVE, (uint32_t)semaphore, 0, 0); }

#endif
