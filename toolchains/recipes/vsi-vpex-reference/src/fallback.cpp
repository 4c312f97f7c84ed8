// Every other operator: computed on the CPU from copies, and counted, so that nobody takes it for the device's work.
#include "memory.h"

#include <ATen/core/Dict.h>
#include <ATen/native/CPUFallback.h>
#include <torch/library.h>

#include <map>
#include <mutex>
#include <string>
#include <tuple>

namespace vpex_reference {
namespace {

std::mutex mutex;
std::map<std::string, int64_t> counts;

void fallback(const c10::OperatorHandle &operation, torch::jit::Stack *stack) {
  {
    const std::lock_guard<std::mutex> guard(mutex);
    ++counts[c10::toString(operation.operator_name())];
  }
  at::native::cpu_fallback(operation, stack);
}

c10::Dict<std::string, int64_t> fallbacks() {
  const std::lock_guard<std::mutex> guard(mutex);
  c10::Dict<std::string, int64_t> result;
  for (const auto &[name, count] : counts)
    result.insert(name, count);
  return result;
}

std::tuple<int64_t, int64_t, int64_t, int64_t> memory() {
  const MemoryCounts now = memory_counts();
  return {now.blocks, now.bytes, now.peak, now.damaged};
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>()); }

// What the module vpex asks.
TORCH_LIBRARY(vpex_reference, m) {
  m.def("fallbacks() -> Dict(str, int)", &fallbacks);
  m.def("memory() -> (int, int, int, int)", &memory);
  m.def("reset_peak() -> ()", &reset_peak);
}

} // namespace
} // namespace vpex_reference
