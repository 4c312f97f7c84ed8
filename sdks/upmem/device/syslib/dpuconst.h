/* Constants of the SDK's runtime. */
#ifndef FOUNDRY_DPUCONST_H
#define FOUNDRY_DPUCONST_H

/* What the queue of a barrier, a semaphore or a handshake has for nobody. */
#define __EMPTY_WAIT_QUEUE 0xff

#endif
