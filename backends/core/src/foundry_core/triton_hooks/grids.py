"""Errors of `kernel[grid](...)` that Triton finds late or not at all: what is no grid, and what cannot be compiled in.

Triton reads a grid after it has compiled the kernel, and ignores a fourth side.
"""

from __future__ import annotations

import ast
import reprlib
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import FunctionType
from typing import Any

from .. import source_lines
from ..failure import Failure
from ..runtime.arguments import ArgumentError
from ..runtime.launches import GridError
from .import_order import call_after

# Functions of math and NumPy that have another name in Triton.
_RENAMED = {"fabs": "abs", "absolute": "abs", "power": "pow"}


class FunctionError(Failure, RuntimeError):
    """A kernel uses a function that cannot be compiled."""


def install(_: type) -> None:
    """Replace `kernel[grid]` and `kernel(...)`, as soon as Triton has defined them."""
    call_after(_replace_launch)


def _replace_launch() -> None:
    """Make `kernel[grid]` refuse what is no grid, and `kernel(...)` say that it needs one."""
    jit = sys.modules["triton.runtime.jit"]

    def launcher(self: Any, grid: Any) -> Callable[..., Any]:
        checked = grid
        if type(grid) is not tuple or not 1 <= len(grid) <= 3:
            checked = (lambda meta: _grid(self, grid(meta))) if callable(grid) else _grid(self, grid)

        def launched(*arguments: Any, **named: Any) -> Any:
            found: ArgumentError | FunctionError | None
            try:
                # As Triton's own function does.
                return self.run(*arguments, grid=checked, warmup=False, **named)
            except TypeError as error:
                # Triton makes a key of all constants.
                if "unhashable" not in str(error) or (found := _unhashable(self, arguments, named)) is None:
                    raise
            except RuntimeError as error:
                _, _, function = str(error).partition("Unsupported function referenced: ")
                if not function or (found := _not_compiled(_kernel(self), function)) is None:
                    raise
            raise found

        return launched

    def called(self: Any, *arguments: Any, **named: Any) -> Any:
        name = _kernel(self).__name__
        raise RuntimeError(
            f"kernel {name} is called at {source_lines.caller()} without a grid\n"
            "  why:  a kernel runs once for each program of a grid\n"
            f"  next: launch it: {name}[grid](...), such as grid=(triton.cdiv(n, BLOCK),)"
        )

    jit.KernelInterface.__getitem__ = launcher
    # Without it, Triton's kernels that are autotuned or have heuristics cannot be called.
    jit.KernelInterface.__call__ = jit.JITFunction.__call__ = called


def _kernel(function: Any) -> Any:
    """Return the kernel that triton.autotune and triton.heuristics wrap."""
    while hasattr(function, "fn") and not hasattr(function, "params"):
        function = function.fn
    return function


def _grid(function: Any, grid: Any) -> Any:
    """Return a grid.

    Raises:
        GridError: it does not have one to three sides.
    """
    sides = len(grid) if hasattr(grid, "__len__") and not isinstance(grid, str) else None
    if sides in (1, 2, 3):
        return grid
    name = getattr(_kernel(function), "__name__", "")
    raise GridError(
        f"kernel {name}, launched at {source_lines.caller()}, gets the grid {reprlib.repr(grid)}",
        why="a grid is a tuple of one, two or three numbers of programs, or a function that returns one",
        next=f"write a tuple: {name}[({grid},)](...)" if sides is None else "write one to three numbers",
    )


def _unhashable(function: Any, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> ArgumentError | None:
    """Return which argument for a tl.constexpr cannot be one; None if nothing is found."""
    kernel = _kernel(function)
    own = {name: value for name, value in named.items() if name in kernel.signature.parameters}
    values = kernel.signature.bind_partial(*arguments, **own).arguments
    for parameter in kernel.params:
        value = values.get(parameter.name)
        if parameter.is_constexpr and getattr(type(value), "__hash__", None) is None:
            return no_constant(kernel, parameter.name, value)
    return None


def _not_compiled(kernel: Any, wrong: str) -> FunctionError | None:
    """Return the error of a kernel, or of a function that it calls, that refers to a function of Python."""
    pending, seen = [kernel], {id(kernel)}
    while pending:
        function = pending.pop()
        # Triton has set it before it found the error, and would not look again.
        function.hash = None
        for node in ast.walk(function.parse()):
            if not isinstance(node, ast.Name | ast.Attribute):
                continue
            value = resolve_reference(node, function.fn.__globals__)
            if hasattr(value, "params") and id(value) not in seen:
                seen.add(id(value))
                pending.append(value)
            elif value is not None and str(value) == wrong:
                place = source_lines.line_of(function, node.lineno)
                return FunctionError(
                    f"kernel {kernel.__name__} uses {ast.unparse(node)} at {place}",
                    why="it is a function of Python, and a kernel is compiled with functions of Triton",
                    next=replacement(value),
                )
    return None


def replacement(function: Any) -> str:
    """Return advice on what to write instead of a call of a Python function in a kernel."""
    name = getattr(function, "__name__", "")
    if not isinstance(function, FunctionType):  # of math or NumPy, in C
        if same := same_function(name):
            return same
        return f"write it with functions of Triton, as @triton.jit, def {name}(...)"
    return f"decorate it with @triton.jit: def {name}(...)"


def same_function(name: str) -> str:
    """Return which function of Triton replaces one of another module; "" if Triton has none of this name."""
    same = _RENAMED.get(name, name)
    if hasattr(sys.modules["triton.language"], same):
        return f"use tl.{same}"
    if hasattr(import_module("triton.language.extra.libdevice"), same):
        return f"use libdevice.{same}, after: from triton.language.extra import libdevice"
    return ""


def resolve_reference(node: ast.AST, names: Mapping[str, Any]) -> Any:
    """Return what a name, or an attribute of one, is in a function's module; None if it is nothing there."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    return getattr(resolve_reference(node.value, names), node.attr, None) if isinstance(node, ast.Attribute) else None


def no_constant(kernel: Any, name: str, value: Any) -> ArgumentError:
    """Return the error of an argument that cannot be compiled in, such as an array."""
    next = f"pass a tuple: {name}=tuple(...)"
    if not isinstance(value, list):
        next = f"pass a number, or declare the parameter as {name}, without tl.constexpr, if the kernel reads the array"
    return ArgumentError(
        f"kernel {kernel.__name__}, launched at {source_lines.caller()}, gets an argument of type "
        f"{type(value).__name__} for {name}",
        why=f"{name} is a tl.constexpr, a value that is compiled in",
        next=next,
    )
