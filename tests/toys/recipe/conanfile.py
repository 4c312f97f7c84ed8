"""A recipe of two files, for the tests of how recipes are built."""

from conan import ConanFile


class Toy(ConanFile):
    name = "toy"
    python_requires = "foundry-native/1.0"
    python_requires_extend = "foundry-native.Native"
