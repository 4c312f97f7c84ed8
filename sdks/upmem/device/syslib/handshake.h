/* Two tasklets meet: one notifies, another one waits for it; the first of them waits for the other. */
#ifndef FOUNDRY_HANDSHAKE_H
#define FOUNDRY_HANDSHAKE_H

#include <defs.h>
#include <foundry_service.h>

static inline void handshake_notify(void) { __foundry_service(FOUNDRY_DPU_OP_HANDSHAKE_NOTIFY, 0, 0, 0); }

/* Returns 0. A number that is no tasklet's, or the tasklet's own, faults. */
static inline int handshake_wait_for(sysname_t notifier)
{
    __foundry_service(FOUNDRY_DPU_OP_HANDSHAKE_WAIT_FOR, notifier, 0, 0);
    return 0;
}

#endif
