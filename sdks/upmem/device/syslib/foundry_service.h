/* Calls of the emulator, for this library only: programs that use them do not run on hardware. */
#ifndef FOUNDRY_SERVICE_H
#define FOUNDRY_SERVICE_H

#include <stdint.h>

#include "foundry_abi.h"

uint64_t __foundry_service(uint32_t op, uint32_t a, uint32_t b, uint32_t c) __attribute__((nothrow));

static inline __attribute__((noreturn, cold)) void __foundry_fault(uint32_t reason, uint32_t address, uint32_t value)
{
    __foundry_service(FOUNDRY_DPU_OP_FAULT, reason, address, value);
    __builtin_unreachable();
}

#endif
