/* Mutexes: one tasklet at a time. */
#ifndef FOUNDRY_MUTEX_H
#define FOUNDRY_MUTEX_H

#include <atomic_bit.h>
#include <stdbool.h>
#include <stdint.h>

typedef uint8_t *mutex_id_t;

#define MUTEX_GET(name) (name)
#define MUTEX_INIT(name)                                                                                               \
    ATOMIC_BIT_INIT(__CONCAT(mutex_, name));                                                                           \
    const mutex_id_t name = &ATOMIC_BIT_GET(__CONCAT(mutex_, name));

static inline void mutex_lock(const mutex_id_t mutex)
{
    __foundry_service(FOUNDRY_DPU_OP_MUTEX_LOCK, (uint32_t)mutex, 0, 0);
}

/* Whether it was free, and is now locked. */
static inline bool mutex_trylock(const mutex_id_t mutex)
{
    return __foundry_service(FOUNDRY_DPU_OP_MUTEX_TRYLOCK, (uint32_t)mutex, 0, 0) == 0;
}

static inline void mutex_unlock(const mutex_id_t mutex)
{
    __foundry_service(FOUNDRY_DPU_OP_MUTEX_UNLOCK, (uint32_t)mutex, 0, 0);
}

#endif
