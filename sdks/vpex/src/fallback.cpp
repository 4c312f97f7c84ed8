// Compute every other operator on the CPU from copies, and count it, so that nobody takes it for the device's work.
#include "memory.h"

#include <ATen/core/Dict.h>
#include <ATen/native/CPUFallback.h>
#include <torch/library.h>

#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

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

// Convolutions on devices of this kind are operators of their own, which without a kernel are errors. Their arguments are
// those of the ordinary ones, but for the sizes of the bias, the fourth that a gradient takes. A CPU chooses the layout of
// a result by what it computes with; PyTorch takes it to be contiguous on such devices, and compiled code relies on it.
void convolution(const c10::OperatorHandle &, torch::jit::Stack *stack) {
  static const auto ordinary = c10::Dispatcher::singleton().findSchemaOrThrow("aten::convolution", "");
  fallback(ordinary, stack);
  stack->back() = stack->back().toTensor().contiguous();
}

void convolution_backward(const c10::OperatorHandle &own, torch::jit::Stack *stack) {
  static const auto ordinary = c10::Dispatcher::singleton().findSchemaOrThrow("aten::convolution_backward", "");
  const auto first = stack->end() - static_cast<std::ptrdiff_t>(own.schema().arguments().size());
  const at::Tensor weight = (first + 2)->toTensor();
  const bool transposed = (first + 6)->toBool();
  const int64_t groups = (first + 8)->toInt();
  const int64_t channels = transposed ? weight.size(1) * groups : weight.size(0);
  stack->insert(first + 3, c10::IValue(std::vector<int64_t>{channels}));
  fallback(ordinary, stack);
  for (auto result = stack->end() - 3; result != stack->end(); ++result)
    if (result->toTensor().defined())
      *result = result->toTensor().contiguous();
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

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("convolution_overrideable", torch::CppFunction::makeFromBoxedFunction<&convolution>());
  m.impl("convolution_backward_overrideable", torch::CppFunction::makeFromBoxedFunction<&convolution_backward>());
}

// What the module vpex asks.
TORCH_LIBRARY(vpex_reference, m) {
  m.def("fallbacks() -> Dict(str, int)", &fallbacks);
  m.def("memory() -> (int, int, int, int)", &memory);
  m.def("reset_peak() -> ()", &reset_peak);
}

} // namespace
} // namespace vpex_reference
