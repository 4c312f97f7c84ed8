"""NumPy arrays as arguments of a launch: passes Triton's runtime the Tensor over each array.

Triton 3.6 and 3.9 call a C++ function to specialize a kernel for an argument. It recognizes a tensor by `data_ptr`. A
backend cannot tell it what an array is, and numpy.ndarray cannot be given attributes. So `install` replaces the
function in triton.runtime.jit. The new function calls the old one, and acts only if the old one refuses an argument of
a launch through a backend of this project; launches without an array do without it (`without_arrays`). Triton 3.2 asks
the backend (ProgramBackend.compute_spec_key of backend/compiler.py). The launcher wraps the same arrays again
(runtime.arguments.Parameters.pick).
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from types import FunctionType
from typing import Any

import numpy as np
from triton.runtime import jit

from ..tensor import Tensor


def install(backends: type) -> None:
    """Make launches through backends of this class accept NumPy arrays; a second call does nothing."""
    native = getattr(jit, "native_specialize_impl", None)
    if native is None or hasattr(native, "of_arrays"):
        return

    def specialize(backend: Any, argument: Any, *how: Any) -> Any:
        try:
            return native(backend, argument, *how)
        except TypeError as error:
            refusal = error
        shown = as_tensors(argument) if isinstance(backend, backends) else argument
        if shown is argument:
            raise refusal
        return native(backend, shown, *how)

    specialize.of_arrays = native  # type: ignore[attr-defined]
    jit.native_specialize_impl = specialize
    if "torch" not in sys.modules:
        # At its first call, that of Triton 3.6 imports torch, which takes seconds, to recognize its tensors by their
        # type. Without that it recognizes them by `data_ptr`, as any others.
        without_torch = _WithoutTorch(threading.get_ident())
        sys.meta_path.insert(0, without_torch)
        try:
            native(None, 0, False, False, False)
        finally:
            sys.meta_path.remove(without_torch)


def without_arrays(bind: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that binds a launch's arguments as `bind` does, in half the time; it refuses NumPy's arrays."""
    native = getattr(bind.__globals__.get("specialize_impl"), "of_arrays", None)
    if native is None:  # 3.2
        return bind
    # The name tells a Tensor that a launch asks for its address.
    names = bind.__globals__ | {"specialize_impl": native, "__name__": __name__}
    quick = FunctionType(bind.__code__, names, bind.__name__, bind.__defaults__)
    quick.__kwdefaults__ = bind.__kwdefaults__
    return quick


class _WithoutTorch(MetaPathFinder):
    """Refuses to import torch in one thread."""

    def __init__(self, thread: int) -> None:
        self._thread = thread

    def find_spec(self, fullname: str, *_: Any) -> None:
        if fullname == "torch" and threading.get_ident() == self._thread:
            raise ModuleNotFoundError(name=fullname)


def as_tensors(argument: Any) -> Any:
    """Return an argument of a launch with arrays replaced by Tensors, also in tuples; itself if it has no array.

    Raises:
        TypeError: an array of a type that Triton does not have, or a NumPy number, which Triton does not accept either.
    """
    if isinstance(argument, np.ndarray):
        return Tensor(argument)
    if isinstance(argument, np.generic):
        raise TypeError(
            f"a kernel cannot take a number of type numpy.{type(argument).__name__}\n"
            "  why:  Triton takes Python's numbers\n  next: pass number.item()"
        )
    if isinstance(argument, tuple):
        parts = [as_tensors(part) for part in argument]
        if any(new is not old for new, old in zip(parts, argument, strict=True)):
            return type(argument)(*parts) if hasattr(argument, "_fields") else tuple(parts)
    return argument
