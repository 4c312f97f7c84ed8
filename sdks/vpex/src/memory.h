// The device's memory: host memory in counted blocks, poisoned before use, with a fence on either side.
#pragma once

#include <c10/core/Allocator.h>

#include <cstdint>

namespace vpex_reference {

// What PyTorch allocates its tensors of the device with.
c10::Allocator *allocator();

struct MemoryCounts {
  int64_t blocks;   // now held
  int64_t bytes;    // now held, as asked for
  int64_t peak;     // the most bytes that were held since the last reset_peak()
  int64_t damaged;  // fences that were found overwritten when their block was released, since the start
};

MemoryCounts memory_counts();
void reset_peak();

} // namespace vpex_reference
