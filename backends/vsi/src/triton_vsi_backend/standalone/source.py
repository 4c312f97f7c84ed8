"""Generate the C++ source of a kernel's launcher from launcher.cpp.in, npy.h and the facts about this kernel."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from importlib.resources import files
from string import Template

from foundry_core.errors import LoweringError
from foundry_core.strings import c_string

from ..packing.calls import calls
from .parameters import Parameter, divisors, parameter

_WARP = 32
# What the generated parts need of packed kernels, in C and C++.
_HEADERS = (
    ("foundry_core", "packed", "foundry_packed.h"),
    ("foundry_core", "packed", "road.h"),
    ("foundry_core", "footprint", "spans.h"),
    ("foundry_core", "packed", "reach.h"),
    ("foundry_core", "packed", "opencl.h"),
    ("triton_vsi_backend", "packing", "vsi.h"),
)


def launcher(
    *, name: str, parameters: Sequence[str], names: Sequence[str], num_warps: int, threads: int, ttir: str | bytes
) -> str:
    """Return the C++ source. The arguments are those of `dump`.

    Raises:
        ValueError: see `dump`.
    """
    if not name.isidentifier() or not name.isascii():
        raise ValueError(f"{name!r} cannot name a kernel and its files: it is not an identifier")
    if threads != max(1, num_warps * _WARP):
        raise ValueError(f"{threads} work-items a program are not {num_warps} warps of {_WARP}")
    if names and len(names) != len(parameters):
        raise ValueError(f"{name} has {len(parameters)} parameters and {len(names)} names of them")
    text = ttir.decode() if isinstance(ttir, bytes) else ttir
    arguments = [
        parameter(type, called, 1 if type.startswith("*") else divisor)
        for type, called, divisor in zip(
            parameters,
            names or [f"arg_{index}" for index in range(len(parameters))],
            divisors(text, name, len(parameters)),
            strict=True,
        )
    ]
    folder = files(__package__)
    return Template((folder / "launcher.cpp.in").read_text()).substitute(
        kernel=name,
        num_warps=num_warps,
        warp=_WARP,
        npy=(folder / "npy.h").read_text().rstrip(),
        library="\n".join(map(_header, _HEADERS)).rstrip(),
        reach=textwrap.indent(_reach(text), "    ").rstrip(),
        parameters="".join(f"\n    {_initializer(argument)}," for argument in arguments) + ("\n" if arguments else ""),
        calls=calls(parameters).replace("NAME", "kernel").rstrip(),
    )


def _reach(ttir: str) -> str:
    """Return C code that computes what each program reaches (foundry_core.footprint.code), or why it is not known."""
    from foundry_core.codegen.pipeline import to_structured
    from foundry_core.footprint.code import reach_code
    from foundry_core.ir.depth import deep_expressions

    try:
        with deep_expressions():
            return reach_code(to_structured(ttir)).code
    except LoweringError:
        return "// Not known: zen-compiler understands more than the analysis does."


def _header(path: tuple[str, ...]) -> str:
    """Return a header without its includes of this project's other files."""
    package, *names = path
    text = files(package).joinpath(*names).read_text()
    return re.sub(r'^#include ".*"\n', "", text, flags=re.MULTILINE)


def _initializer(parameter: Parameter) -> str:
    descrs = ", ".join(map(c_string, parameter.element.descrs))
    tensor = "true" if parameter.is_tensor else "false"
    fields = (
        f"{c_string(parameter.name)}, {c_string(parameter.type)}, {tensor}, {parameter.element.bytes}, {{{descrs}}}"
    )
    return f"{{{fields}, {c_string(parameter.element.numpy)}, {parameter.divisor}}}"
