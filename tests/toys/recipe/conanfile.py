"""A recipe of two files, for the tests of how recipes are built."""

from conan import ConanFile
from conan.tools.cmake import CMake, cmake_layout


class Toy(ConanFile):
    name = "toy"
    version = "1.0"
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
