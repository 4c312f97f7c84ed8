// The operators that PyTorch builds all others on: make tensors, view them, copy them.
#include "memory.h"

#include <ATen/EmptyTensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/as_strided_cpu_dispatch.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/set_cpu_dispatch.h>
#include <ATen/ops/unfold_cpu_dispatch.h>
#include <ATen/ops/view_as_complex_cpu_dispatch.h>
#include <ATen/ops/view_as_real_cpu_dispatch.h>
#include <ATen/ops/view_cpu_dispatch.h>
#include <ATen/ops/_reshape_alias_cpu_dispatch.h>
#include <torch/library.h>

namespace vpex_reference {
namespace {

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

void check_options(std::optional<at::Layout> layout, std::optional<at::Device> device, std::optional<bool> pinned) {
  TORCH_CHECK(layout.value_or(at::kStrided) == at::kStrided, "vsi: there are strided tensors only, not ", *layout);
  TORCH_CHECK(!device || device->index() <= 0, "vsi: there is one device, vsi:0, not ", *device);
  TORCH_CHECK(!pinned.value_or(false), "vsi: only tensors on the CPU can be pinned");
}

at::Tensor empty(at::IntArrayRef size, std::optional<at::ScalarType> type, std::optional<at::Layout> layout,
                 std::optional<at::Device> device, std::optional<bool> pinned,
                 std::optional<at::MemoryFormat> format) {
  check_options(layout, device, pinned);
  return at::detail::empty_generic(size, allocator(), kKeys, at::dtype_or_default(type), format);
}

at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride, std::optional<at::ScalarType> type,
                         std::optional<at::Layout> layout, std::optional<at::Device> device,
                         std::optional<bool> pinned) {
  check_options(layout, device, pinned);
  return at::detail::empty_strided_generic(size, stride, allocator(), kKeys, at::dtype_or_default(type));
}

// The same elements as a tensor of the CPU, with its pending conjugation and negation.
at::Tensor on_cpu(const at::Tensor &tensor) {
  if (tensor.is_cpu())
    return tensor;
  TORCH_CHECK(tensor.is_privateuseone(), "vsi: copies are made from and to the CPU, not ", tensor.device());
  at::Tensor same = at::from_blob(tensor.mutable_data_ptr(), tensor.sizes(), tensor.strides(),
                                  tensor.options().device(at::kCPU));
  same._set_conj(tensor.is_conj());
  same._set_neg(tensor.is_neg());
  return same;
}

at::Tensor copy_from(const at::Tensor &source, const at::Tensor &target, bool) {
  on_cpu(target).copy_(on_cpu(source));
  return target;
}

const at::Tensor &resize_(const at::Tensor &self, at::IntArrayRef size, std::optional<at::MemoryFormat> format) {
  at::TensorImpl *tensor = self.unsafeGetTensorImpl();
  if (self.sizes() != size) {
    tensor->set_sizes_contiguous(size);
    const size_t bytes =
        at::detail::computeStorageNbytesContiguous(size, self.element_size(), tensor->storage_offset());
    const c10::Storage &storage = tensor->unsafe_storage();
    if (bytes > storage.nbytes())
      at::native::resize_bytes_nocuda(storage, bytes);
  }
  if (format.has_value())
    tensor->empty_tensor_restride(*format);
  return self;
}

at::Tensor copy_from_and_resize(const at::Tensor &source, const at::Tensor &target) {
  resize_(target, source.sizes(), std::nullopt);
  return copy_from(source, target, false);
}

at::Tensor &set_storage(at::Tensor &self, c10::Storage source) {
  const auto elements = static_cast<int64_t>(source.nbytes() / self.element_size());
  return at::cpu::set_(self, std::move(source), 0, {elements}, {});
}

at::Tensor &set_part(at::Tensor &self, c10::Storage source, int64_t offset, at::IntArrayRef size,
                     at::IntArrayRef stride) {
  return at::cpu::set_(self, std::move(source), offset, size, stride);
}

at::Tensor &set_tensor(at::Tensor &self, const at::Tensor &source) { return at::cpu::set_(self, source); }

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", TORCH_FN(empty));
  m.impl("empty_strided", TORCH_FN(empty_strided));
  m.impl("_copy_from", TORCH_FN(copy_from));
  m.impl("_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
  m.impl("resize_", TORCH_FN(resize_));
  // Views only change sizes and strides; the CPU's implementation does not read the memory.
  m.impl("as_strided", TORCH_FN(at::cpu::as_strided));
  m.impl("view", TORCH_FN(at::cpu::view));
  m.impl("view_as_complex", TORCH_FN(at::cpu::view_as_complex));
  m.impl("view_as_real", TORCH_FN(at::cpu::view_as_real));
  m.impl("unfold", TORCH_FN(at::cpu::unfold));
  m.impl("_reshape_alias", TORCH_FN(at::cpu::_reshape_alias));
  m.impl("set_.source_Storage", TORCH_FN(set_storage));
  m.impl("set_.source_Storage_storage_offset", TORCH_FN(set_part));
  m.impl("set_.source_Tensor", TORCH_FN(set_tensor));
}

// Copies apply a pending conjugation or negation themselves, because PyTorch would apply it by a copy.
TORCH_LIBRARY_IMPL(aten, Conjugate, m) { m.impl("_copy_from", torch::CppFunction::makeFallthrough()); }
TORCH_LIBRARY_IMPL(aten, Negative, m) { m.impl("_copy_from", torch::CppFunction::makeFallthrough()); }

} // namespace
} // namespace vpex_reference
