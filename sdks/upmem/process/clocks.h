// Which tasklet knows of what others have done: vector clocks.
#pragma once

#include <array>
#include <cstdint>

#include "../abi/abi.h"

struct Clock {
    std::array<std::uint32_t, FOUNDRY_DPU_MAX_TASKLETS> at{};

    void join(const Clock &other) {
        for (std::size_t i = 0; i < at.size(); i++) at[i] = at[i] < other.at[i] ? other.at[i] : at[i];
    }
};
