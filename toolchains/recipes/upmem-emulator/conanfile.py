"""The emulator of UPMEM's DPUs: a prefix with the interface of UPMEM's SDK."""

from conan import ConanFile


class UpmemEmulator(ConanFile):
    name = "upmem-emulator"
    description = "Replaces the UPMEM SDK: compiler, device library, host library and emulated DPUs"
    sources = "sdks/upmem"
    python_requires = "foundry-native/1.0"
    python_requires_extend = "foundry-native.Native"
