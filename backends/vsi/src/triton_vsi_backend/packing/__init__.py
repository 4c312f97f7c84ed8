"""How kernels for VeriSilicon's GPGPUs are packed: as OpenCL's, with the library that makes their commands.

vsi.h and vsi.c are the part in C. The library's functions take the kernel's own arguments, so calls.py writes a call
of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from foundry_core.packed.roads import Form, OpenCLRoad, PackError, spirv_needs
from foundry_core.runtime.arguments import Parameters
from triton.runtime.cache import get_cache_manager

from ..compiler import cmd_gen_name
from .calls import calls

_FUNCTIONS = "{vsi_load, vsi_unload, vsi_count, vsi_make}, NAME_matmul, NAME_dma"


@dataclass(frozen=True)
class VsiRoad(OpenCLRoad):
    """A device of VeriSilicon's OpenCL driver. The kernels are those of zen-compiler."""

    sources: Mapping[str, str] = field(
        default_factory=lambda: {
            **OpenCLRoad().sources,
            **{name: files(__package__).joinpath(name).read_text() for name in ("vsi.h", "vsi.c")},
        }
    )
    head: str = '#include "vsi.h"'

    def form(self, compiled: Any) -> Form:
        metadata, binary = compiled.metadata, compiled.asm["spv"]
        library = get_cache_manager(metadata.hash).get_file(cmd_gen_name(metadata.name))
        if library is None:
            raise PackError(
                f"the kernel {metadata.name} cannot be packed",
                why=f"Triton's cache has the kernel, {metadata.hash}, and not its library of commands",
                next="compile it again: run once with TRITON_ALWAYS_COMPILE=1",
            )
        types = Parameters(compiled.src, metadata.name, metadata.written).types
        return Form(
            symbol=metadata.name,
            files={"spv": binary, "so": Path(library).read_bytes()},
            needs=f"cl_mem {spirv_needs(binary)}".strip(),
            threads=metadata.threads,
            extra=calls(types) + "static const struct vsi_extra NAME = {" + _FUNCTIONS + "};",
        )
