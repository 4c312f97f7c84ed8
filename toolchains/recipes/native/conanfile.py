"""The base class of the recipes of our own native parts, for Conan's python_requires."""

from conan import ConanFile
from conan.tools.cmake import CMake, cmake_layout


class Native:
    """Build a folder with CMake and package what its install() rules install; a recipe adds name and description."""

    version = "1.0"
    license = "MIT"
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


class NativeRecipes(ConanFile):
    name = "foundry-native"
    version = "1.0"
    package_type = "python-require"
