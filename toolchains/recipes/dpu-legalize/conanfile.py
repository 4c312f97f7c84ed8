"""The pass that makes kernels legal for a DPU, as a Conan package: a plugin for LLVM 14's opt, and an opt with it."""

from conan import ConanFile
from conan.tools.cmake import CMake, cmake_layout


class DpuLegalize(ConanFile):
    name = "dpu-legalize"
    version = "1.0"
    license = "MIT"
    description = "Program ids, scratch memory and DMAs of Triton kernels as UPMEM's LLVM takes them"
    settings = "os", "arch", "compiler", "build_type"
    generators = "CMakeToolchain"
    exports_sources = "*"

    def layout(self) -> None:
        cmake_layout(self)

    def build(self) -> None:
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self) -> None:
        CMake(self).install()
