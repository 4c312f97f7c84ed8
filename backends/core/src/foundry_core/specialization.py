"""NumPy arrays as arguments of a launch: Triton's runtime is shown the Tensor over each.

Triton 3.6 and 3.9 ask a function in C++ what to specialise a kernel for. It knows a tensor by `data_ptr`; a backend
cannot tell it what an array is, and numpy.ndarray cannot be given attributes. So `install` replaces the function where
triton.runtime.jit finds it. The new one calls the old one, and acts only if that refuses an argument of a launch
through a backend of this project. 3.2 asks the backend (compiling.ProgramBackend.compute_spec_key). The launcher wraps
the same arrays again (arguments.Parameters.pick).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from triton.runtime import jit

from .tensor import Tensor


def install(backends: type) -> None:
    """Let launches through backends of this class take NumPy arrays; a second call does nothing."""
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

    specialize.of_arrays = True  # type: ignore[attr-defined]
    jit.native_specialize_impl = specialize


def as_tensors(argument: Any) -> Any:
    """Return an argument of a launch with Tensors in the place of its arrays, also in tuples; itself if it has none.

    Raises:
        TypeError: an array of what Triton has no type for, or a number of NumPy's, which Triton does not take either.
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
