/* The names of the system's types. */
#ifndef FOUNDRY_SYSDEF_H
#define FOUNDRY_SYSDEF_H

#include <defs.h>
#include <stdint.h>

typedef uint32_t mram_addr_t;

#endif
