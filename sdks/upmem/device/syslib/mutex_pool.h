/* Few mutexes for many locks: lock n shares a mutex with lock n + the pool's size. */
#ifndef FOUNDRY_MUTEX_POOL_H
#define FOUNDRY_MUTEX_POOL_H

#include <mutex.h>
#include <stdint.h>

struct mutex_pool {
    uint8_t *hw_mutexes;
    uint8_t hw_mutexes_mask;
};

/* `count` is a power of two. */
#define MUTEX_POOL_INIT(name, count)                                                                                   \
    _Static_assert((count) > 0 && ((count) & ((count)-1)) == 0, "a mutex pool has a power of two of mutexes");         \
    uint8_t __atomic_bit __CONCAT(hw_mutexes_, name)[count];                                                           \
    struct mutex_pool name = {.hw_mutexes = __CONCAT(hw_mutexes_, name), .hw_mutexes_mask = (count)-1};

static inline void mutex_pool_lock(struct mutex_pool *pool, uint16_t id)
{
    mutex_lock(pool->hw_mutexes + (id & pool->hw_mutexes_mask));
}

static inline void mutex_pool_unlock(struct mutex_pool *pool, uint16_t id)
{
    mutex_unlock(pool->hw_mutexes + (id & pool->hw_mutexes_mask));
}

#endif
