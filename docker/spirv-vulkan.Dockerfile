# What the variant spirv-vulkan has beside spirv's: these lines follow those of spirv.Dockerfile.

# Our C library for Vulkan, of each machine.
ADD parts/vulkan-runtime.tar /opt/foundry/vulkan/
RUN ln -s "$(uname -m)/libfoundry_vulkan.so" /opt/foundry/vulkan/lib/

# Kernels are launched by Vulkan, and any message of the validation layer is an error. On a busy machine, a launch on
# lavapipe takes more than the minute that is enough for a GPU.
ENV FOUNDRY_SPIRV_API=vulkan FOUNDRY_VULKAN_VALIDATION=1 FOUNDRY_VULKAN_TIMEOUT=300 \
    FOUNDRY_VULKAN_LIBRARY=/opt/foundry/vulkan/lib/libfoundry_vulkan.so
