/* Mutexes that are bits in WRAM, in any number. A few of the hardware's mutexes guard changes of a bit. */
#ifndef FOUNDRY_VMUTEX_H
#define FOUNDRY_VMUTEX_H

#include <mutex.h>
#include <stdint.h>

struct vmutex {
    uint8_t *vm;
    uint8_t *hw_mutexes;
    uint8_t hw_mutexes_mask;
};

/* `count` is a multiple of 8, `mutexes` a power of two. */
#define VMUTEX_INIT(name, count, mutexes)                                                                              \
    _Static_assert((mutexes) > 0 && ((mutexes) & ((mutexes)-1)) == 0,                                                  \
                   "the number of hardware mutexes is a power of two");                                                \
    _Static_assert(((count)&7) == 0, "the number of virtual mutexes is a multiple of 8");                              \
    uint8_t __atomic_bit __CONCAT(hw_mutexes_, name)[mutexes];                                                         \
    uint8_t __CONCAT(vmutex_, name)[(count) >> 3];                                                                     \
    struct vmutex name = {                                                                                             \
        .vm = __CONCAT(vmutex_, name), .hw_mutexes = __CONCAT(hw_mutexes_, name), .hw_mutexes_mask = (mutexes)-1};

static inline void vmutex_lock(struct vmutex *vm, uint16_t id)
{
    volatile uint8_t *byte = vm->vm + (id >> 3);
    uint8_t bit = 1 << (id & 7), before;
    mutex_id_t guard = vm->hw_mutexes + ((id >> 3) & vm->hw_mutexes_mask);
    do {
        mutex_lock(guard);
        before = *byte;
        *byte = before | bit;
        mutex_unlock(guard);
    } while (before & bit);
}

static inline void vmutex_unlock(struct vmutex *vm, uint16_t id)
{
    volatile uint8_t *byte = vm->vm + (id >> 3);
    mutex_id_t guard = vm->hw_mutexes + ((id >> 3) & vm->hw_mutexes_mask);
    mutex_lock(guard);
    *byte &= ~(1 << (id & 7));
    mutex_unlock(guard);
}

#endif
