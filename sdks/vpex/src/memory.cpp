// The device's memory: host memory in counted blocks, poisoned before use, with a fence on either side.
//
//     | header: size, fence |  what the tensor sees: 0xFF, a NaN in every floating-point format  |  fence |
//
// The fences are checked when a block is released. A damaged one is counted and reported on stderr, because a deleter
// must not throw.
#include "memory.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace vpex_reference {
namespace {

// Also the alignment. It is that of OpenCL's largest type, double16, which devices may ask of buffers in host memory.
constexpr size_t kFence = 128;
constexpr int kPoison = 0xFF;
constexpr unsigned char kFenceByte = 0xA5;

struct alignas(kFence) Header {
  size_t bytes;
  unsigned char fence[kFence - sizeof(size_t)];
};
static_assert(sizeof(Header) == kFence);

std::atomic<int64_t> blocks{0}, held{0}, peak{0}, damaged{0};

bool intact(const unsigned char *fence, size_t bytes) {
  return std::all_of(fence, fence + bytes, [](unsigned char byte) { return byte == kFenceByte; });
}

void release(void *data) {
  auto *memory = static_cast<unsigned char *>(data);
  auto *header = reinterpret_cast<Header *>(memory - sizeof(Header));
  // An overwritten header no longer says where the block ends.
  const bool before = intact(header->fence, sizeof(header->fence));
  const bool after = !before || intact(memory + header->bytes, kFence);
  if (!before || !after) {
    ++damaged;
    std::fprintf(stderr, "vpex: memory %s a tensor of the device at %p was written to\n", before ? "behind" : "before",
                 data);
  }
  --blocks;
  if (before)
    held -= static_cast<int64_t>(header->bytes);
  std::free(header);
}

class HostAllocator final : public c10::Allocator {
public:
  c10::DataPtr allocate(size_t bytes) override {
    const c10::Device device(c10::DeviceType::PrivateUse1, 0);
    if (bytes == 0)
      return {nullptr, device};
    TORCH_CHECK(bytes <= SIZE_MAX / 2, "a tensor of ", bytes, " bytes does not fit any memory");
    const size_t total = sizeof(Header) + (bytes + kFence + kFence - 1) / kFence * kFence;
    auto *header = static_cast<Header *>(std::aligned_alloc(kFence, total));
    TORCH_CHECK_WITH(OutOfMemoryError, header != nullptr, "vsi: out of memory, which is the host's: ", bytes,
                     " bytes were asked for");
    auto *memory = reinterpret_cast<unsigned char *>(header) + sizeof(Header);
    header->bytes = bytes;
    std::memset(header->fence, kFenceByte, sizeof(header->fence));
    std::memset(memory, kPoison, bytes);
    std::memset(memory + bytes, kFenceByte, kFence);
    ++blocks;
    const int64_t now = held += static_cast<int64_t>(bytes);
    for (int64_t seen = peak; now > seen && !peak.compare_exchange_weak(seen, now);) {
    }
    return {memory, memory, &release, device};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &release; }

  void copy_data(void *to, const void *from, size_t bytes) const override { default_copy_data(to, from, bytes); }
};

} // namespace

c10::Allocator *allocator() {
  // Never destroyed: tensors may be released after static objects.
  static auto *const the_one = new HostAllocator;
  return the_one;
}

MemoryCounts memory_counts() { return {blocks, held, peak, damaged}; }

void reset_peak() { peak = held.load(); }

namespace {
[[maybe_unused]] const bool registered = (c10::SetAllocator(c10::DeviceType::PrivateUse1, allocator()), true);
} // namespace

} // namespace vpex_reference
