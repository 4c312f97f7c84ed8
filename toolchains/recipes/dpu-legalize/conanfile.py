"""The pass that makes kernels legal for a DPU: a plugin for LLVM 14's opt, and an opt that loads it."""

from conan import ConanFile


class DpuLegalize(ConanFile):
    name = "dpu-legalize"
    description = "Lowers program ids, scratch memory and copies of Triton kernels to what UPMEM's LLVM accepts"
    python_requires = "foundry-native/1.0"
    python_requires_extend = "foundry-native.Native"
