"""The open reference SDK for VeriSilicon's devices as a Conan package: a prefix of the shape of the vendor's SDK."""

from conan import ConanFile
from conan.tools.cmake import CMake, cmake_layout


class VsiReferenceSdk(ConanFile):
    name = "vsi-reference-sdk"
    version = "1.0"
    license = "MIT"
    description = "Stands in for the VeriSilicon SDK: zen-compiler, the tensor-core bridge, and PoCL as the driver"
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
