"""The values in the analysis of a kernel: numbers, and pointers into one or several parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects.builtin import FixedBitwidthType
from xdsl.ir import Attribute

from ..analysis.integers import element_type, integer_bits
from ..analysis.interval import Interval, add, fit, full_interval, join
from ..ir import tile, tt


@dataclass(frozen=True)
class Pointer:
    """A pointer, as byte offsets from parameters; None if nothing is known of it."""

    offsets: dict[int, Interval] | None

    def advance(self, by: Interval) -> Pointer:
        if self.offsets is None:
            return self
        return Pointer({parameter: fit(add(offset, by), 64) for parameter, offset in self.offsets.items()})

    def or_else(self, other: Pointer) -> Pointer:
        """Return a pointer that is one of the two."""
        if self.offsets is None or other.offsets is None:
            return Pointer(None)
        both = dict(self.offsets)
        for parameter, offset in other.offsets.items():
            both[parameter] = join(both[parameter], offset) if parameter in both else offset
        return Pointer(both)


@dataclass(frozen=True)
class Axis:
    """An axis, in elements: stride * ((first + i) rem modulus), or stride * i, or any of the offsets.

    The sum first + i is an integer of `bits` bits.
    """

    stride: Interval | None = None
    first: Interval | None = None
    modulus: Interval | None = None
    bits: int = 64
    offsets: Interval | None = None


@dataclass(frozen=True)
class Range:
    """The indices of a dimension that exist: low <= i < high."""

    low: Interval
    high: Interval


# None is a value on which no address can depend, such as a float.
Value: TypeAlias = "Interval | Pointer | Axis | Range | None"


def item_bytes(pointer: Attribute) -> int:
    """Return the size of the pointee of a pointer, or of a tensor of pointers."""
    found = element_type(pointer)
    assert isinstance(found, tt.PointerType) and isinstance(found.pointee, FixedBitwidthType)
    return max(8, found.pointee.bitwidth) // 8


def unknown_value(type: Attribute) -> Value:
    """Return the value of a type about which nothing is known."""
    bits = integer_bits(type)
    if bits is not None:
        return full_interval(bits)
    if isinstance(element_type(type), tt.PointerType):
        return Pointer(None)
    assert not isinstance(type, tile.AxisType | tile.RangeType)
    return None


def either(a: Value, b: Value) -> Value:
    """Return a value that is one of two of the same type."""
    if isinstance(a, Interval) and isinstance(b, Interval):
        return join(a, b)
    if isinstance(a, Pointer) and isinstance(b, Pointer):
        return a.or_else(b)
    return None
