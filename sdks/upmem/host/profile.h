// The profile of dpu_alloc: "key=value,key=value", or nothing. Only the backend and the scattered transfers have an effect.
#pragma once

#include <cstdint>

#include <dpu_error.h>

struct Profile {
    std::uint32_t sg_blocks = 0; // the most blocks of a DPU in a scattered transfer; 0: there are none
};

// DPU_ERR_INVALID_PROFILE for keys that the SDK does not have, and for a backend that is not simulated.
dpu_error_t read_profile(const char *text, Profile &profile);
