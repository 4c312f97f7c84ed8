// The cycle model's table as C++ constants: model::DMA_READ_ALPHA and so on; units and sources are in cycles.def.
#pragma once

#include <cstdint>

namespace model {

#define FOUNDRY_MODEL(name, value, unit, source) inline constexpr std::int64_t name = value;
#include "cycles.def"

} // namespace model
