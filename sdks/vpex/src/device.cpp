// The device: there is one. A call returns when its work is done, so streams are only names and events are times.
#include "memory.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/GeneratorForPrivateuseone.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <atomic>
#include <chrono>
#include <cstring>

namespace vpex_reference {
namespace {

using Clock = std::chrono::steady_clock;

constexpr c10::DeviceIndex kDevices = 1;
const c10::Device kDevice(c10::DeviceType::PrivateUse1, 0);

thread_local c10::StreamId current_stream = 0;
std::atomic<c10::StreamId> last_stream{0};

void check(c10::DeviceIndex index) {
  TORCH_CHECK(index == -1 || index == 0, "vsi:", static_cast<int>(index), " is no device: there is one, vsi:0");
}

c10::Stream named(c10::StreamId id) { return c10::Stream(c10::Stream::UNSAFE, kDevice, id); }

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return c10::DeviceType::PrivateUse1; }
  c10::DeviceIndex deviceCount() const noexcept override { return kDevices; }
  c10::Device getDevice() const override { return kDevice; }
  c10::Device exchangeDevice(c10::Device device) const override {
    check(device.index());
    return kDevice;
  }
  void setDevice(c10::Device device) const override { check(device.index()); }
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  void synchronizeDevice(const c10::DeviceIndex device) const override { check(device); }

  c10::Stream getStream(c10::Device) const noexcept override { return named(current_stream); }
  c10::Stream getDefaultStream(c10::Device) const override { return named(0); }
  c10::Stream getNewStream(c10::Device device, int) const override {
    check(device.index());
    return named(++last_stream);
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override { return getNewStream(device, 0); }
  c10::Stream exchangeStream(c10::Stream stream) const noexcept override {
    const c10::StreamId before = current_stream;
    current_stream = stream.id();
    return named(before);
  }
  bool queryStream(const c10::Stream &) const override { return true; }
  void synchronizeStream(const c10::Stream &) const override {}

  void record(void **event, const c10::Stream &, const c10::DeviceIndex, const c10::EventFlag) const override {
    if (*event == nullptr)
      *event = new Clock::time_point;
    *static_cast<Clock::time_point *>(*event) = Clock::now();
  }
  void block(void *, const c10::Stream &) const override {}
  bool queryEvent(void *) const override { return true; }
  void synchronizeEvent(void *) const override {}
  void destroyEvent(void *event, const c10::DeviceIndex) const noexcept override {
    delete static_cast<Clock::time_point *>(event);
  }
  double elapsedTime(void *from, void *to, const c10::DeviceIndex) const override {
    const auto time = *static_cast<Clock::time_point *>(to) - *static_cast<Clock::time_point *>(from);
    return std::chrono::duration<double, std::milli>(time).count();
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

at::Generator new_generator(c10::DeviceIndex index) {
  check(index);
  return at::detail::createCPUGenerator();
}

REGISTER_GENERATOR_PRIVATEUSE1(new_generator)

struct Hooks final : at::PrivateUse1HooksInterface {
  void init() const override {}
  bool hasPrimaryContext(c10::DeviceIndex index) const override { return index == 0; }
  c10::DeviceIndex deviceCount() const override { return kDevices; }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  void setCurrentDevice(c10::DeviceIndex index) const override { check(index); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    check(index);
    return 0;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override { return exchangeDevice(index); }
  at::Device getDeviceFromPtr(void *) const override { return kDevice; }
  // Random numbers are drawn on the CPU, by the fallback, and so by the CPU's generators.
  const at::Generator &getDefaultGenerator(c10::DeviceIndex) const override {
    return at::detail::getDefaultCPUGenerator();
  }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override { return new_generator(index); }

  void resizePrivateUse1Bytes(const c10::Storage &storage, size_t bytes) const override {
    c10::DataPtr data = allocator()->allocate(bytes);
    const size_t kept = std::min(bytes, storage.nbytes());
    if (kept != 0)
      std::memcpy(data.get(), storage.data(), kept);
    storage.set_data_ptr_noswap(std::move(data));
    storage.set_nbytes(bytes);
  }
};

[[maybe_unused]] const bool registered = (at::RegisterPrivateUse1HooksInterface(new Hooks), true);

} // namespace
} // namespace vpex_reference
