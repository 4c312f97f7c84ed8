"""The stand-in for VeriSilicon's vpex as a Conan package: a library for PyTorch and the module `vpex` that loads it."""

from conan import ConanFile
from conan.tools.cmake import CMake, cmake_layout


class VsiVpexReference(ConanFile):
    name = "vsi-vpex-reference"
    version = "1.0"
    license = "MIT"
    description = "PyTorch's device type vsi, torch.vsi, in host memory"
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
