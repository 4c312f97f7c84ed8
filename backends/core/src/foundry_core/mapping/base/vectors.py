"""Arithmetic on vectors of a CPU-like OpenCL device, which has OpenCL's library of functions.

minimum, maximum and absolute value stay compares and selects, because calls into an OpenCL library are not inlined in
hot loops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...emit.mlir import LLVM_INTRINSIC, WIDTHS, Reg, Text
from ...functions.table import ONE_BY_ONE
from ...ops.numeric import Numeric
from ...scalars import LAYOUTS, FloatLayout
from .target import Target

# The instructions of F16C for 8 elements. LLVM replaces the first one by an extension of halves when it reads a module.
_F16C = f"{LLVM_INTRINSIC}x86.vcvt"
_F16C_LANES = 8
# Vector functions that are wrong in PoCL 6: zeros and subnormals among the first arguments change the results of other
# lanes.
_ALONE = {("pow", "f64"), ("remainder", "f64")}


class VectorNumeric(Numeric):
    """Writes arithmetic to a Text; for call_bytes and converts_f16, see Target."""

    def __init__(self, text: Text, call_bytes: int = Target.call_bytes, converts_f16: bool = False) -> None:
        super().__init__(text)
        self._vectors = text
        self._call_bytes = call_bytes
        self._converts_f16 = converts_f16

    def unpack(self, x: Reg, layout: FloatLayout) -> Reg:
        if not self._converted(x, layout):
            return super().unpack(x, layout)
        return self._eight_by_eight(x, lambda part: self._vectors.call(f"{_F16C}ph2ps.256", [part], "f32", 8))

    def pack(self, x: Reg, layout: FloatLayout, *, saturate: bool = False) -> Reg:
        if not self._converted(x, layout) or saturate:
            return super().pack(x, layout, saturate=saturate)
        nearest = self._int(0, x._replace(lanes=1))
        return self._eight_by_eight(x, lambda part: self._vectors.call(f"{_F16C}ps2ph.256", [part, nearest], "i16", 8))

    def _converted(self, x: Reg, layout: FloatLayout) -> bool:
        """Return whether the device's instructions convert a register; they make a signalling NaN a quiet one."""
        return self._converts_f16 and layout is LAYOUTS["f16"] and x.lanes >= _F16C_LANES

    def _eight_by_eight(self, x: Reg, convert: Callable[[Reg], Reg]) -> Reg:
        """Apply an instruction for 8 elements to a register of 8 or 16."""
        parts = [convert(self._vectors.part(x, first, _F16C_LANES)) for first in range(0, x.lanes, _F16C_LANES)]
        return parts[0] if len(parts) == 1 else self._vectors.concatenate(*parts)

    def leading_zeros(self, x: Reg) -> Reg:
        return self._in_parts(lambda part: self.text.leading_zeros(part[0]), [x])

    def library(self, name: str, args: Sequence[Reg]) -> Reg:
        """Call an OpenCL extended instruction whose result has the type of its first argument.

        The call uses the mangled name that LLVM's SPIR-V backend recognizes.
        """
        alone = (name, args[0].elem) in _ALONE
        return self._in_parts(lambda part: self._library(name, part), args, 1 if alone else None)

    def own(self, name: str, args: Sequence[Reg], elem: str = "") -> Reg:
        write = super().own
        return self._in_parts(lambda part: write(name, part, elem), args, 1 if name in ONE_BY_ONE else args[0].lanes)

    def _library(self, name: str, args: Sequence[Reg]) -> Reg:
        x = args[0]
        mangled = ""
        for position, arg in enumerate(args):
            letter = {"f32": "f", "f64": "d", "i32": "i"}[arg.elem]
            again = position > 0 and arg.lanes > 1 and arg.elem == x.elem
            mangled += "S_" if again else letter if arg.lanes == 1 else f"Dv{arg.lanes}_{letter}"
        function = f"__spirv_ocl_{name}"
        return self._vectors.call(f"_Z{len(function)}{function}{mangled}", args, x.elem, x.lanes)

    def _in_parts(self, function: Callable[[Sequence[Reg]], Reg], args: Sequence[Reg], most: int | None = None) -> Reg:
        """Call a function on vectors in parts that have as many lanes as it accepts (`most`; by default call_bytes)."""
        lanes = args[0].lanes
        if most is None:
            most = self._call_bytes * 8 // max(WIDTHS[arg.elem] for arg in args)
        if lanes <= most:
            return function(args)
        t, half = self._vectors, lanes // 2
        results = [self._in_parts(function, [t.part(arg, first, half) for arg in args], most) for first in (0, half)]
        return t.concatenate(*results)

    def remainder(self, x: Reg, y: Reg) -> Reg:
        return self.text.binary("arith.remf", x, y)

    def trigonometric(self, name: str, x: Reg) -> Reg:
        """Return sin, cos or tan; in an f32 vector, compute large arguments separately from the others.

        PoCL 6 reduces a whole vector by multiples of pi / 2 differently if one element is beyond 2^23 or infinite. The
        small elements of such a vector are then wrong: the sin of (1e-3, 1e10) becomes (8e-3, -0.49), but the sin of
        1e-3 alone is 1e-3.
        """
        t = self.text
        if x.elem != "f32" or x.lanes == 1:
            return self.library(name, [x])
        near = t.compare("olt", self.absolute(x), t.float_constant(2.0**20, x.elem, x.lanes))
        large = t.float_constant(2.0**30, x.elem, x.lanes)
        one = self.library(name, [t.select(near, x, t.float_constant(0.0, x.elem, x.lanes))])
        return t.select(near, one, self.library(name, [t.select(near, large, x)]))
