/* Ranks by their handles; what is in a rank is the library's. */
#ifndef DPU_RANK_H
#define DPU_RANK_H

#include <dpu_description.h>
#include <dpu_management.h>

#endif
