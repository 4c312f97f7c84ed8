/* The hardware's bits for mutual exclusion. */
#ifndef FOUNDRY_ATOMIC_BIT_H
#define FOUNDRY_ATOMIC_BIT_H

#include <attributes.h>
#include <dpuruntime.h>
#include <foundry_service.h>
#include <stdint.h>

#define ATOMIC_BIT_GET(name) __CONCAT(__atomic_bit_, name)
#define ATOMIC_BIT_INIT(name) uint8_t __atomic_bit ATOMIC_BIT_GET(name)
#define ATOMIC_BIT_EXTERN(name) extern ATOMIC_BIT_INIT(name)

extern uint8_t __foundry_atomic_start[];
#define ATOMIC_BIT_INDEX(name) ((uint32_t)(&ATOMIC_BIT_GET(name) - __foundry_atomic_start))

#define ATOMIC_BIT_ACQUIRE(name)                                                                                       \
    do {                                                                                                               \
    } while (__foundry_service(FOUNDRY_DPU_OP_ACQUIRE, ATOMIC_BIT_INDEX(name), 0, 0))
#define ATOMIC_BIT_RELEASE(name) ((void)__foundry_service(FOUNDRY_DPU_OP_RELEASE, ATOMIC_BIT_INDEX(name), 0, 0))

#endif
