"""Merge the copies that several DPUs have of an array which a kernel changes only by atomic operations of one kind.

Every DPU starts from the operation's neutral element instead of the array's contents. After the launch, what each DPU
has is combined with the array, one DPU after the other. So no precision is lost by differences, and the result is that
of the operations in some order; sums of floats are also grouped by DPU, and depend on the order as they do on a GPU.

The neutral element of a floating-point sum is -0.0: x + -0.0 is x for every x, including -0.0. Elements that still are
-0.0 leave the array as it is, NaNs included.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

_Array = npt.NDArray[Any]
_SIGNED: dict[str, Callable[[_Array, _Array], _Array]] = {"max": np.maximum, "min": np.minimum}
_UNSIGNED: dict[str, Callable[[_Array, _Array], _Array]] = {
    "add": np.add,
    "umax": np.maximum,
    "umin": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


@dataclass(frozen=True)
class Merge:
    """An atomic operation on elements of one type.

    Attributes:
        kind: as in structured form (tile.AtomicOp), or `fmax` and `fmin`: those of floats, by their bits.
        element: MLIR's name of the type.
    """

    kind: str
    element: str

    @classmethod
    def read(cls, text: str) -> Merge:
        """Read the text that atomics.merge_rules returns."""
        return cls(*text.split(" "))

    @property
    def _bits(self) -> int:
        return int(self.element.lstrip("bfi"))

    @property
    def _unsigned(self) -> np.dtype[Any]:
        return np.dtype(f"u{self._bits // 8}")

    @property
    def neutral(self) -> _Array:
        """The bits of the neutral element, as an array of one unsigned integer."""
        top, every = 1 << (self._bits - 1), (1 << self._bits) - 1
        # fmax starts from the least number of the order of `_ordered`, fmin from the greatest one.
        number = {"max": top, "min": top - 1, "umin": every, "and": every, "fadd": top, "fmax": every, "fmin": top - 1}
        return np.array([number.get(self.kind, 0)], self._unsigned)

    def combine(self, into: npt.NDArray[np.uint8], part: npt.NDArray[np.uint8]) -> None:
        """Combine the bytes of an array's elements with those that a DPU has, in place."""
        here, other = into.view(self._unsigned), part.view(self._unsigned)
        changed = other != self.neutral
        np.copyto(here, self._combined(here, other), where=changed)

    def _combined(self, a: _Array, b: _Array) -> _Array:
        """Combine unsigned integers that have the bits of elements."""
        with np.errstate(all="ignore"):
            if self.kind in _UNSIGNED:
                return _UNSIGNED[self.kind](a, b)
            if self.kind in _SIGNED:
                signed = np.dtype(f"i{self._bits // 8}")
                return _SIGNED[self.kind](a.view(signed), b.view(signed)).view(self._unsigned)
            if self.kind == "fadd":
                return np.asarray(a.view(self._float) + b.view(self._float)).view(self._unsigned)
        first = self._ordered(a) > self._ordered(b)
        return np.where(first if self.kind == "fmax" else ~first, a, b)

    @property
    def _float(self) -> np.dtype[Any]:
        dtype: np.dtype[Any] = np.dtype(f"f{self._bits // 8}")
        if self.element == "bf16":
            import ml_dtypes

            dtype = np.dtype(ml_dtypes.bfloat16)
        return dtype

    def _ordered(self, bits: _Array) -> _Array:
        """Return integers in the order of floats: -0.0 is less than 0.0, and NaNs are at both ends, by their sign."""
        signed = bits.view(np.dtype(f"i{self._bits // 8}"))
        return np.where(signed < 0, signed ^ np.iinfo(signed.dtype).max, signed)
