"""The replacement for VeriSilicon's vpex: a library for PyTorch and the module `vpex` that loads it."""

from conan import ConanFile


class VsiVpexReference(ConanFile):
    name = "vsi-vpex-reference"
    description = "Implements PyTorch's device type vsi, torch.vsi, in host memory"
    sources = "sdks/vpex"
    python_requires = "foundry-native/1.0"
    python_requires_extend = "foundry-native.Native"
