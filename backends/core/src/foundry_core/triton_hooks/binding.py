"""Errors of a launch's arguments: names the parameter, the line of the launch, and what to pass instead.

Triton generates a function that binds a launch's arguments to the parameters of its kernel. What that function raises
names neither the kernel nor the parameter, and in Triton 3.2 not even the rule. `install` wraps the function that
generates it; it acts only for launches through a backend of this project.
"""

from __future__ import annotations

import functools
import inspect
import reprlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from triton.runtime import jit

from .. import source_lines
from ..failure import nearest
from ..runtime.arguments import ArgumentError
from .front_errors import Advice
from .specialization import as_tensors, without_arrays

# What Triton raises for arguments that it cannot bind.
_ERRORS = (TypeError, ValueError, ArithmeticError, LookupError, AttributeError)


def install(backends: type) -> None:
    """Explain the errors of launches through backends of this class; a second call does nothing."""
    native = jit.create_function_from_signature
    if hasattr(native, "explains"):
        return

    def create(signature: inspect.Signature, parameters: Any, backend: Any) -> Callable[..., Any]:
        bind = native(signature, parameters, backend)
        if not isinstance(backend, backends):
            return bind  # type: ignore[no-any-return]
        # The caller is a method of the kernel.
        kernel = getattr(sys._getframe(1).f_locals.get("self"), "__name__", "")

        quick = without_arrays(bind)

        @functools.wraps(bind)
        def bound(*arguments: Any, **named: Any) -> Any:
            nonlocal quick
            try:
                return quick(*arguments, **named)
            except _ERRORS:
                pass
            try:
                known = bind(*arguments, **named)
            except _ERRORS:
                launch = f"kernel {kernel}, launched at {source_lines.caller()}"
                found = _explain(launch, signature, parameters, backend, arguments, named)
                if found is None:
                    raise
            else:
                # A kernel that was launched on arrays is so again.
                quick = bind
                return known
            raise found

        return bound

    create.explains = True  # type: ignore[attr-defined]
    jit.create_function_from_signature = create


def _explain(
    launch: str,
    signature: inspect.Signature,
    parameters: Any,
    backend: Any,
    arguments: tuple[Any, ...],
    named: Mapping[str, Any],
) -> ArgumentError | None:
    """Return what is wrong with a launch's arguments; None if nothing is found."""
    own = {name: value for name, value in named.items() if name in signature.parameters}
    try:
        values = signature.bind(*arguments, **own).arguments
    except TypeError:
        options = getattr(backend, "options_type", None)
        others = [name for name in named if name not in own and not hasattr(options, name)]
        return _unbound(launch, signature, parameters, arguments, own, others)
    for parameter in parameters:
        value = values.get(parameter.name)
        if parameter.is_constexpr or value is None:
            continue
        try:
            _specialize(backend, as_tensors(value))
        except Exception as error:
            shown = reprlib.repr(value).split("\n")[0]
            why, next = _refused(parameter.name, value, str(error))
            return ArgumentError(
                f"{launch}, cannot take {parameter.name}={shown}, of type {type(value).__name__}", why=why, next=next
            )
    return None


def _unbound(
    launch: str,
    signature: inspect.Signature,
    parameters: Any,
    arguments: tuple[Any, ...],
    named: Mapping[str, Any],
    others: Sequence[str],
) -> ArgumentError:
    """Return which parameters a launch gives no argument, or two.

    Args:
        named: the keywords that are parameters.
        others: the keywords that are neither parameters nor options.
    """
    names = list(signature.parameters)
    constants = [parameter.name for parameter in parameters if parameter.is_constexpr]
    given = {*names[: len(arguments)], *named}
    needed = [name for name, each in signature.parameters.items() if each.default is each.empty]
    missing = [name for name in needed if name not in given]
    why = f"its parameters are {', '.join(names)}"
    if missing:
        for wrong in others:
            if near := nearest(wrong, missing):
                what = f"{launch}, has no parameter {wrong}"
                return ArgumentError(what, why=f"{why}; {near} gets nothing", next=f"did you mean {near}=...?")
        why += f", and not {', '.join(others)}" * bool(others)
        what = f"{launch}, gets nothing for its parameter {' and '.join(missing)}"
        if missing[0] not in constants:
            return ArgumentError(what, why=why, next=f"pass it in this place, or as {missing[0]}=...")
        why += f"; {missing[0]} is a tl.constexpr, a value that is compiled in"
        return ArgumentError(what, why=why, next=f"pass it by keyword: kernel[grid](..., {missing[0]}=128)")
    if twice := [name for name in names[: len(arguments)] if name in named]:
        return ArgumentError(f"{launch}, gets two values for its parameter {twice[0]}", why=why, next="pass one")
    return ArgumentError(f"{launch}, gets {len(arguments)} arguments", why=why, next="pass one for each parameter")


def _specialize(backend: Any, value: Any) -> None:
    if hasattr(jit, "native_specialize_impl"):
        jit.native_specialize_impl(backend, value, False, True, True)
    else:  # 3.2
        jit.mangle_type(value, False)
        backend.compute_spec_key(value, True)


def _refused(name: str, value: Any, message: str) -> Advice:
    """Return why a value cannot be passed, and what to pass instead."""
    if "\n  next: " in message:  # by Tensor, or by as_tensors
        what, _, rest = message.partition("\n  why:  ")
        why, _, next = rest.partition("\n  next: ")
        return f"{what}: {why}", next
    if isinstance(value, list | set | dict | range):
        return "it has no memory that a kernel can read", f"pass an array: numpy.asarray({name}, numpy.float32)"
    if type(value) is int:
        return "Triton takes integers of up to 64 bits", "pass a smaller number"
    if isinstance(value, str) or callable(value):
        return "a kernel can only be compiled for it", f"declare the parameter as {name}: tl.constexpr"
    if hasattr(value, "__array__") or hasattr(value, "__dlpack__"):
        return "it has no data_ptr(), by which Triton knows an array", f"pass numpy.asarray({name})"
    why = "Triton takes arrays of NumPy, tensors, and Python's numbers"
    return why, f"pass one of these, or declare the parameter as {name}: tl.constexpr if it is compiled in"
