"""The base class of the recipes of our own native parts, for Conan's python_requires."""

from pathlib import Path

from conan import ConanFile
from conan.tools.cmake import CMake, cmake_layout
from conan.tools.files import copy


class Native:
    """Build a folder with CMake and package what its install() rules install; a recipe adds name and description.

    Attributes:
        sources: the folder that is built, from the root of the checkout. Default: the recipe's own. If it has a file
            VERSION, that is the package's version.
    """

    version = "1.0"
    sources = ""
    license = "MIT"
    settings = "os", "arch", "compiler", "build_type"
    generators = "CMakeToolchain"

    @property
    def _sources(self) -> Path:
        own = Path(self.recipe_folder)
        if not self.sources:
            return own
        # In the checkout and in a builder's container, the folder is below another of those above the recipe.
        return next(above / self.sources for above in own.parents if (above / self.sources).is_dir())

    def set_version(self) -> None:
        if (file := self._sources / "VERSION").is_file():
            self.version = file.read_text().strip()

    def export_sources(self) -> None:
        copy(self, "*", str(self._sources), self.export_sources_folder)

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
