"""The open reference SDK for VeriSilicon's devices: a prefix with the layout of the vendor's SDK."""

from conan import ConanFile


class VsiReferenceSdk(ConanFile):
    name = "vsi-reference-sdk"
    description = "Replaces the VeriSilicon SDK: zen-compiler, the tensor-core bridge, and PoCL as the driver"
    sources = "sdks/verisilicon"
    python_requires = "foundry-native/1.0"
    python_requires_extend = "foundry-native.Native"
