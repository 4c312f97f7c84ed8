/* The headers' inline functions as functions of the library, as the SDK has them, for code that is not C, such as LLVM
 * IR. Structures are passed by address, whatever the types of the pointers. */
#include <foundry_service.h>
#include <stdbool.h>

void barrier_wait(void *barrier);
void sem_take(void *semaphore);
void sem_give(void *semaphore);
void handshake_notify(void);
int handshake_wait_for(uint32_t notifier);
uint64_t perfcounter_get(void);
uint64_t perfcounter_config(uint32_t what, bool from_zero);

void barrier_wait(void *barrier) { __foundry_service(FOUNDRY_DPU_OP_BARRIER_WAIT, (uint32_t)barrier, 0, 0); }

void sem_take(void *semaphore) { __foundry_service(FOUNDRY_DPU_OP_SEM_TAKE, (uint32_t)semaphore, 0, 0); }

void sem_give(void *semaphore) { __foundry_service(FOUNDRY_DPU_OP_SEM_GIVE, (uint32_t)semaphore, 0, 0); }

void handshake_notify(void) { __foundry_service(FOUNDRY_DPU_OP_HANDSHAKE_NOTIFY, 0, 0, 0); }

int handshake_wait_for(uint32_t notifier)
{
    __foundry_service(FOUNDRY_DPU_OP_HANDSHAKE_WAIT_FOR, notifier, 0, 0);
    return 0;
}

uint64_t perfcounter_get(void) { return __foundry_service(FOUNDRY_DPU_OP_PERF_GET, 0, 0, 0); }

uint64_t perfcounter_config(uint32_t what, bool from_zero)
{
    return __foundry_service(FOUNDRY_DPU_OP_PERF_CONFIG, what, from_zero, 0);
}
