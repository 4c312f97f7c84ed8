"""The C library through which Triton's launches use Vulkan."""

from conan import ConanFile


class VulkanRuntime(ConanFile):
    name = "vulkan-runtime"
    description = "What a launch needs of Vulkan, as one C library: lib/libfoundry_vulkan.so"
    python_requires = "foundry-native/1.0"
    python_requires_extend = "foundry-native.Native"
