"""The emulator of UPMEM's DPUs as a Conan package: a prefix with the surface of UPMEM's SDK."""

from conan import ConanFile
from conan.tools.cmake import CMake, cmake_layout


class UpmemEmulator(ConanFile):
    name = "upmem-emulator"
    version = "1.0"
    license = "MIT"
    description = "Stands in for the UPMEM SDK: compiler, device library, host library and emulated DPUs"
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
