/* Some host programs include this beside dpu.h, which has all of it. */
#ifndef DPU_LOG_H
#define DPU_LOG_H

#include <dpu.h>

#endif
