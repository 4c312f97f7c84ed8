/* Which DPUs the host library was made for. */
#ifndef DPU_TARGET_MACROS_H
#define DPU_TARGET_MACROS_H

#include <dpu_target.h>

#endif
