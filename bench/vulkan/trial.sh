for f in .simt/gl/*.deb; do dpkg -x $f /; done; ldconfig
[ -e /usr/share/vulkan/icd.d/nvidia_icd.json ] || export VK_DRIVER_FILES=/usr/local/nvidia/share/vulkan/icd.d/nvidia_icd.json
export FOUNDRY_SPIRV_API=vulkan PYTHONUNBUFFERED=1 FOUNDRY_VULKAN_DEVICE=NVIDIA P=$PWD/.simt/sp:$PWD/.simt/core:$PWD/.simt/spirv:$PWD/.simt/e2e
