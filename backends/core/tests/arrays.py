"""Run the arithmetic of foundry_core.functions on NumPy's arrays: on the host, bit for bit as a device does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from foundry_core.functions.arithmetic import Arithmetic
from foundry_core.functions.table import FUNCTIONS

FLOATS: dict[str, Any] = {"f32": np.float32, "f64": np.float64}
INTEGERS: dict[int, tuple[Any, Any]] = {32: (np.int32, np.uint32), 64: (np.int64, np.uint64)}


def compute(name: str, elem: str, *args: np.ndarray) -> np.ndarray:
    """Return the results of a function of table.py for arrays of one length."""
    with np.errstate(all="ignore"):
        return np.asarray(FUNCTIONS[name](Arrays(elem), *args))


class Arrays(Arithmetic):
    """Values are arrays. NumPy's operations on f32 and f64 are correctly rounded; on integers they wrap."""

    def equal(self, x: Any, y: Any) -> Any:
        return x == y

    def less_unsigned(self, x: Any, y: Any) -> Any:
        return _unsigned(x) < (y if isinstance(y, int) else _unsigned(y))

    def select(self, condition: Any, x: Any, y: Any) -> Any:
        kind = next(value.dtype for value in (x, y, self._float(condition)) if isinstance(value, np.ndarray))
        return np.where(condition, _typed(x, kind), _typed(y, kind))

    def _float(self, like: Any) -> Any:
        return np.zeros(np.shape(like), FLOATS[self.elem])

    def choose(self, condition: Any, x: Callable[[], Any], y: Callable[[], Any]) -> Any:
        return self.select(condition, x(), y())

    def repeat(self, count: Any, values: Sequence[Any], body: Callable[..., Sequence[Any]]) -> list[Any]:
        for turn in range(int(np.max(count))):
            values = [
                np.where(turn < count, after, before) for after, before in zip(body(*values), values, strict=True)
            ]
        return list(values)

    def bits(self, x: Any) -> Any:
        return x.view(INTEGERS[self.width][0])

    def number(self, bits: Any) -> Any:
        return bits.view(FLOATS[self.elem])

    def shift_right(self, x: Any, by: Any) -> Any:
        return (_unsigned(x) >> (by if isinstance(by, int) else _unsigned(by))).view(x.dtype)

    def divide(self, x: Any, y: Any) -> Any:
        return (_unsigned(x) // _unsigned(y)).view(x.dtype)

    def remainder(self, x: Any, y: Any) -> Any:
        return (_unsigned(x) % _unsigned(y)).view(x.dtype)

    def wide(self, x: Any, *, signed: bool = True) -> Any:
        return x.astype(np.int64) if signed else _unsigned(x).astype(np.int64)

    def narrow(self, x: Any) -> Any:
        return x.astype(np.int32)

    def to_float(self, x: Any) -> Any:
        return x.astype(FLOATS[self.elem])

    def to_wide(self, x: Any) -> Any:
        return x.astype(np.int64)

    def constant(self, value: float, like: Any) -> Any:
        return np.full(np.shape(like), value, FLOATS[self.elem])

    def word(self, value: int, like: Any, width: int = 32) -> Any:
        return np.full(np.shape(like), value % (1 << width), INTEGERS[width][1]).view(INTEGERS[width][0])

    def root(self, x: Any) -> Any:
        return np.sqrt(x)

    def call(self, name: str, *args: Any) -> Any:
        return FUNCTIONS[name](self, *args)


def _unsigned(x: Any) -> Any:
    return x.view(INTEGERS[8 * x.dtype.itemsize][1])


def _typed(value: Any, kind: Any) -> Any:
    return value if isinstance(value, np.ndarray) else np.array(value).astype(kind)
