"""How kernels for DPUs are packed: the DPU programs, and host/dpu.c with what it stands on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from foundry_core.packed.roads import Form, Road

from .artifact.runner import sources
from .artifact.signature import facts, parse
from .host.sdk import find

_HEAD = '#define _GNU_SOURCE\n#include "road.h"\n'
_CMAKE = """\
# The SDK's headers and library, or its emulator's.
find_program(DPU_PKG_CONFIG dpu-pkg-config HINTS $ENV{UPMEM_HOME}/bin REQUIRED)
execute_process(COMMAND ${DPU_PKG_CONFIG} --cflags dpu OUTPUT_VARIABLE DPU_CFLAGS COMMAND_ERROR_IS_FATAL ANY
  OUTPUT_STRIP_TRAILING_WHITESPACE)
execute_process(COMMAND ${DPU_PKG_CONFIG} --libs dpu OUTPUT_VARIABLE DPU_LIBS COMMAND_ERROR_IS_FATAL ANY
  OUTPUT_STRIP_TRAILING_WHITESPACE)
separate_arguments(DPU_CFLAGS UNIX_COMMAND "${DPU_CFLAGS}")
separate_arguments(DPU_LIBS UNIX_COMMAND "${DPU_LIBS}")
target_compile_options(@NAME@ PRIVATE ${DPU_CFLAGS})
target_link_libraries(@NAME@ PRIVATE ${DPU_LIBS})
"""


def _flags() -> Sequence[str]:
    sdk = find()
    return (*sdk.compile, *sdk.link)


@dataclass(frozen=True)
class DpuRoad(Road):
    """UPMEM's DPUs, by the SDK's host library or that of its emulator."""

    name: str = "dpu"
    sources: Mapping[str, str] = field(default_factory=lambda: {"dpu.c": _HEAD + sources("dpu.c")})
    libraries: Sequence[str] = ("dl",)
    head: str = "extern const struct packed_road dpu_road;"
    flags: Sequence[str] = field(default_factory=_flags)
    cmake: str = _CMAKE

    def form(self, compiled: Any) -> Form:
        """Return the DPU program of a compiled kernel, and where its arguments are."""
        ir = compiled.asm["llir"]
        kernel = parse(ir, compiled.metadata.name)
        return Form(
            symbol=kernel.name,
            files={"dpu": compiled.asm["dpu"]},
            needs="atomic" if "atomic" in facts(ir) else "",
            argument_bytes=kernel.arguments_bytes,
            offsets=[parameter.offset or 0 for parameter in kernel.host_parameters],
        )
