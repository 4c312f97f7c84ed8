// The profile of dpu_alloc: "key=value,key=value", or nothing.
#pragma once

#include <dpu_error.h>

// DPU_ERR_INVALID_PROFILE for keys that the SDK does not have, and for a backend that is not simulated.
dpu_error_t check_profile(const char *profile);
