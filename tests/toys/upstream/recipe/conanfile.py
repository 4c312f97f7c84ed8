"""An upstream project that is small: one program of two files."""

from conan import ConanFile


class Toy(ConanFile):
    name = "toy"
    license = "MIT"
    python_requires = "foundry-upstream/1.0"
    python_requires_extend = "foundry-upstream.Upstream"

    targets = programs = ("say",)
