"""What a kind of device adds to a packed folder: its C sources, and what it takes of a compiled kernel.

A driver that can pack has a method `road()`, which returns a Road. The C side is road.h.
"""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from ..codegen.spirv import instructions, reading, widest_call, words_of
from ..failure import Failure
from ..spirv_numbers import numbers

# In each folder, as it is here.
COMMON = ("foundry_packed.h", "road.h", "reach.h", "packed.c")


class PackError(Failure, RuntimeError):
    """A kernel cannot be packed."""


@dataclass(frozen=True)
class Form:
    """What a road takes of a compiled kernel.

    Attributes:
        symbol: the kernel's name in the binary.
        files: contents by suffix, such as {"spv": ...}; the binary is the first.
        needs: what the device must have, as the road's C reads it (packed_variant.needs).
        threads, buffers, argument_bytes: see packed_variant.
        offsets: of the passed arguments, in the block of arguments; empty if there is none.
        extra: C code that defines a constant; NAME in it stands for its name, and `&NAME` is packed_variant.extra.
    """

    symbol: str
    files: Mapping[str, bytes]
    needs: str = ""
    threads: int = 1
    buffers: int = 0
    argument_bytes: int = 0
    offsets: Sequence[int] = ()
    extra: str = ""


@dataclass(frozen=True)
class Storage:
    """The memory that a tensor is a part of.

    Attributes:
        address: of its first byte: the same for tensors that share it.
        size: its bytes.
    """

    address: int
    size: int

    def content(self) -> bytes:
        """Return what it has now."""
        return ctypes.string_at(self.address, self.size)


@dataclass(frozen=True)
class Road(ABC):
    """A kind of device.

    Attributes:
        name: the C constant `NAME_road` is its packed_road.
        sources: its C sources and headers, by file name.
        head: lines of C that stand before the tables, such as an #include of its header.
        libraries: what its library is linked with, as "dl" for -ldl.
        flags: what a compiler needs to be told about the device's headers and library where the folder is packed.
        cmake: the same for any machine, as lines of CMake about the target @NAME@.
    """

    name: str
    sources: Mapping[str, str]
    head: str
    libraries: Sequence[str] = ("dl", "pthread")
    flags: Sequence[str] = ()
    cmake: str = ""

    @abstractmethod
    def form(self, compiled: Any) -> Form:
        """Return what the folder gets of a compiled kernel (triton.compiler.CompiledKernel)."""

    def storage(self, tensor: Any) -> Storage:
        """Return the memory in which a tensor of a launch is: the host's."""
        storage = tensor.untyped_storage()
        return Storage(storage.data_ptr(), storage.nbytes())

    def named_device(self, device: str, launched: Any) -> Any:
        """Return what kernels are compiled for (triton.backends.compiler.GPUTarget) if the device is not here.

        Args:
            device: its name or description.
            launched: what the script's launches are compiled for.

        Raises:
            PackError: there is no such device.
        """
        raise PackError(
            f"kernels of this target cannot be packed for {device!r}",
            why="they are for the device on which the script runs, and for those like it",
            next="leave out --device",
        )


def c_sources(*names: str) -> dict[str, str]:
    """Return sources that are beside this module."""
    return {name: files(__package__).joinpath(name).read_text() for name in names}


# Capabilities of SPIR-V that a device may lack, and the words of opencl.h for them.
(_CAPABILITY,) = numbers("Op", "Capability")
_CAPABILITIES = dict(
    zip(
        numbers("Capability", "Float64 Float16 Int64Atomics GroupNonUniformShuffle"),
        ("fp64", "fp16", "int64_atomics", "subgroup"),
        strict=True,
    )
)


@reading()
def spirv_needs(module: bytes) -> str:
    """Return what a device must have to run a module, in the words of opencl.h.

    Raises:
        ValueError: the module is damaged.
    """
    words = words_of(module)
    found = {_CAPABILITIES.get(words[at + 1], "") for at, opcode, _ in instructions(words) if opcode == _CAPABILITY}
    calls = widest_call(module)
    return " ".join(sorted(found - {""}) + [f"calls={calls}"] * bool(calls))


@dataclass(frozen=True)
class OpenCLRoad(Road):
    """SPIR-V on a device of OpenCL."""

    name: str = "opencl"
    sources: Mapping[str, str] = field(default_factory=lambda: c_sources("opencl.h", "opencl.c"))
    head: str = '#include "opencl.h"'

    def form(self, compiled: Any) -> Form:
        metadata, binary = compiled.metadata, compiled.asm["spv"]
        return Form(
            symbol=metadata.name,
            files={"spv": binary},
            needs=spirv_needs(binary),
            threads=getattr(metadata, "threads", 1),
            buffers=getattr(metadata, "tables", 0),
        )
