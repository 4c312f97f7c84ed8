"""Generate the C++ source of a kernel's launcher from launcher.cpp.in, npy.h and the facts about this kernel."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from importlib.resources import files
from string import Template

from foundry_core.errors import LoweringError
from foundry_core.strings import c_string

from .parameters import Parameter, divisors, parameter

_WARP = 32


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
    tensors = [index for index, argument in enumerate(arguments) if argument.is_tensor]
    types = [
        *("void *" if argument.is_tensor else argument.element.c_type for argument in arguments),
        "int",
        "int",
        "int",
        *("const std::size_t *" for _ in tensors),
        "std::int8_t *",
    ]
    values = [
        *(
            f"arguments[{index}].address()"
            if argument.is_tensor
            else f"arguments[{index}].as<{argument.element.c_type}>()"
            for index, argument in enumerate(arguments)
        ),
        *(f"static_cast<int>(grid[{axis}])" for axis in range(3)),
        *(f"arguments[{index}].shape()" for index in tensors),
        "commands",
    ]
    folder = files(__package__)
    spans = files("foundry_core").joinpath("footprint", "spans.h").read_text()
    return Template((folder / "launcher.cpp.in").read_text()).substitute(
        kernel=name,
        num_warps=num_warps,
        warp=_WARP,
        npy=(folder / "npy.h").read_text().rstrip(),
        spans=spans.rstrip(),
        reach=textwrap.indent(_reach(text), "    ").rstrip(),
        parameters="".join(f"\n    {_initializer(argument)}," for argument in arguments) + ("\n" if arguments else ""),
        matmul_takes=_list(["std::size_t", "const std::size_t *", *types]),
        matmul_passed=_list(["index", "grid.data()", *values]),
        dma_takes=_list(["std::size_t", *types]),
        dma_passed=_list(["index", *values]),
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


def _list(items: Sequence[str]) -> str:
    """Fill lines with as many items as fit. A type and its * stay on one line."""
    joined = ", ".join(item.replace(" ", "\0") for item in items)
    return textwrap.fill(joined, 120, initial_indent=" " * 8, subsequent_indent=" " * 8).replace("\0", " ")


def _initializer(parameter: Parameter) -> str:
    descrs = ", ".join(map(c_string, parameter.element.descrs))
    tensor = "true" if parameter.is_tensor else "false"
    fields = (
        f"{c_string(parameter.name)}, {c_string(parameter.type)}, {tensor}, {parameter.element.bytes}, {{{descrs}}}"
    )
    return f"{{{fields}, {c_string(parameter.element.numpy)}, {parameter.divisor}}}"
