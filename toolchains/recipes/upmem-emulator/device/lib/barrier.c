/* barrier_wait as a function, for code that is not C and so has not the header's: `struct barrier_t *` is its argument. */
#include <foundry_service.h>

void barrier_wait(void *barrier);

void barrier_wait(void *barrier)
{
    __foundry_service(FOUNDRY_DPU_OP_BARRIER_WAIT, (uint32_t)barrier, 0, 0);
}
