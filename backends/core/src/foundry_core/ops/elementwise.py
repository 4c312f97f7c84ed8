"""One row for each operation that computes element i of its result from elements i of its operands.

All tables of such operations derive from these rows: which libdevice function is which operation (front/calls.py),
how each is written (numeric.py), whether it may be computed twice (mapping/base/plan.py), and the
parameters of tests. To add an operation, add a row here and a test of its values. A DPU has no library of functions and
uses foundry_core/functions instead.

A function that OpenCL has is one line:

    _library(math.SinhOp, "sinh", "sinh"),

The row of any other operation says how to compute it, with methods of Numeric:

    Row(arith.MinSIOp, lambda n, op, args: n.pick("slt", *args)),
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from xdsl.dialects import arith, math
from xdsl.ir import Operation

from ..emit.mlir import Reg
from ..errors import unsupported
from ..ir import tile, tt
from ..ir.arith import (
    BitcastOp,
    CmpfOp,
    CmpiOp,
    ExtSIOp,
    ExtUIOp,
    FPToSIOp,
    FPToUIOp,
    RemFOp,
    SelectOp,
    SIToFPOp,
    TruncIOp,
    UIToFPOp,
)
from . import conversions, libdevice
from .numeric import Numeric, element_name

# Writes an operation on registers that all have the same number of lanes; floats of 16 bits or less are in f32.
Writer: TypeAlias = Callable[[Numeric, Any, Sequence[Reg]], Reg]


@dataclass(frozen=True)
class Row:
    """An elementwise operation.

    Attributes:
        operation: the operation's class.
        write: writes the operation.
        libdevice: equivalent functions of CUDA's libdevice: their names on f64 without `__nv_`. The names on f32 end in
            f.
        symbols: other equivalent functions, by their full names without `__nv_`. The fast ones may be inexact; ours may
            be exact.
        opencl: the equivalent OpenCL extended instruction, if there is one.
        is_rounded: whether the result, computed in f32, must be rounded if the type is narrower.
        is_costly: whether computing the operation twice costs more than keeping its result in memory.
    """

    operation: type[Operation]
    write: Writer
    libdevice: Sequence[str] = ()
    symbols: Sequence[str] = ()
    opencl: str = ""
    is_rounded: bool = False
    is_costly: bool = False


def _plain(operation: type[Operation]) -> Row:
    """Build the row of an operation that has the same name and meaning on registers."""
    return Row(operation, lambda n, op, args: n.text.binary(op.name, *args))


def _integer(operation: type[Operation]) -> Row:
    return Row(operation, lambda n, op, args: n.integer(op.name, *args))


def _float(
    operation: type[Operation],
    *symbols: str,
    is_costly: bool = False,
) -> Row:
    """Build the row of a float operation that has the same name and meaning on registers."""
    return replace(_plain(operation), symbols=symbols, is_rounded=True, is_costly=is_costly)


def _library(
    operation: type[Operation],
    opencl: str,
    *libdevice: str,
    symbols: Sequence[str] = (),
    is_costly: bool = True,
) -> Row:
    """Build the row of a function that OpenCL has under this name."""

    def write(n: Numeric, op: Operation, args: Sequence[Reg]) -> Reg:
        return n.library(opencl, args)

    return Row(operation, write, libdevice, symbols, opencl, is_rounded=True, is_costly=is_costly)


def _turning(operation: type[Operation], name: str, fast: str) -> Row:
    row = _library(operation, name, name, symbols=[fast])
    return replace(row, write=lambda n, op, args: n.trigonometric(name, args[0]))


def _cheap(operation: type[Operation], opencl: str, *libdevice: str) -> Row:
    """Build the row of a function that a device computes in one or two instructions."""
    return _library(operation, opencl, *libdevice, is_costly=False)


def _divided(operation: type[Operation]) -> Row:
    return Row(operation, lambda n, op, args: n.divide(op.name, *args), is_costly=True)


def _cast(operation: type[Operation], symbols: Sequence[str] = ()) -> Row:
    return Row(operation, lambda n, op, args: n.cast(op, args[0]), symbols=symbols)


def _picked(operation: type[Operation], predicate: str) -> Row:
    return Row(operation, lambda n, op, args: n.pick(predicate, *args))


def _compared(operation: type[Operation]) -> Row:
    return Row(operation, lambda n, op, args: n.text.compare(op.predicate_name, *args))


def _bits(operation: type[Operation], symbols: Sequence[str] = ()) -> Row:
    return Row(operation, lambda n, op, args: n.bitcast(op, args[0]), symbols=symbols)


def _from_integer(operation: type[Operation], *sources: str) -> Row:
    return _cast(operation, [f"{source}2{target}_rn" for target in ("float", "double") for source in sources])


def _extern(n: Numeric, op: tt.ExternElementwiseOp, args: Sequence[Reg]) -> Reg:
    """Write a function that has no operation in arith, math or tt: of libdevice, or a conversion.

    Raises:
        UnsupportedOperation: no function of that name exists for these types.
    """
    symbol = op.symbol.data
    if symbol in conversions.FUNCTIONS:
        return conversions.FUNCTIONS[symbol](n, args[0])
    found = libdevice.call_libdevice(n, symbol, args)
    if found is None:
        raise unsupported(op, f"{symbol}: no such function on elements of type {args[0].elem} here")
    return found


ROWS: tuple[Row, ...] = (
    # Integers.
    _integer(arith.AddiOp),
    _integer(arith.SubiOp),
    _integer(arith.MuliOp),
    _integer(arith.AndIOp),
    _integer(arith.OrIOp),
    _integer(arith.XOrIOp),
    _integer(arith.ShLIOp),
    _integer(arith.ShRSIOp),
    _integer(arith.ShRUIOp),
    _divided(arith.DivSIOp),
    _divided(arith.DivUIOp),
    _divided(arith.RemSIOp),
    _divided(arith.RemUIOp),
    _picked(arith.MinSIOp, "slt"),
    _picked(arith.MaxSIOp, "sgt"),
    _picked(arith.MinUIOp, "ult"),
    _picked(arith.MaxUIOp, "ugt"),
    Row(math.AbsIOp, lambda n, op, args: n.absolute_integer(args[0]), symbols=["abs", "llabs"]),
    Row(tt.MulhiUIOp, lambda n, op, args: n.upper_half_of(op, *args), symbols=["umulhi", "umul64hi"]),
    # Tiles of pointers, as addresses; scalar pointers are in mapping/base/operations/scalars.py.
    Row(tt.AddPtrOp, lambda n, op, args: n.advance_addresses(op, *args)),
    Row(tt.IntToPtrOp, lambda n, op, args: args[0]),
    Row(tt.PtrToIntOp, lambda n, op, args: args[0]),
    Row(tile.DistanceOp, lambda n, op, args: n.distance(*args)),
    # Selections.
    _compared(CmpiOp),
    _compared(CmpfOp),
    Row(SelectOp, lambda n, op, args: n.text.select(*args)),
    # Floats.
    _float(arith.AddfOp, "fadd_rn", "dadd_rn"),
    _float(arith.SubfOp, "fsub_rn", "dsub_rn"),
    _float(arith.MulfOp, "fmul_rn", "dmul_rn"),
    _float(arith.DivfOp, "fast_fdividef", is_costly=True),
    replace(_float(RemFOp, "fmod", "fmodf", is_costly=True), write=lambda n, op, args: n.remainder(*args)),
    Row(arith.NegfOp, lambda n, op, args: n.text.unary(op.name, args[0])),
    Row(math.AbsFOp, lambda n, op, args: n.absolute(args[0]), ["fabs"]),
    Row(arith.MinnumfOp, lambda n, op, args: n.pick_number("olt", *args)),
    Row(arith.MaxnumfOp, lambda n, op, args: n.pick_number("ogt", *args)),
    Row(arith.MinimumfOp, lambda n, op, args: n.pick_or_nan("olt", *args)),
    Row(arith.MaximumfOp, lambda n, op, args: n.pick_or_nan("ogt", *args)),
    Row(tt.ClampFOp, lambda n, op, args: n.clamp(*args, propagate_nan=op.propagate_nan.data == "all")),
    Row(math.FmaOp, lambda n, op, args: n.fma(op, args), ["fma"], ["fmaf_rn", "fma_rn"]),
    Row(
        tt.PreciseSqrtOp,
        lambda n, op, args: n.library("sqrt", args),
        symbols=["fsqrt_rn", "dsqrt_rn"],
        is_rounded=True,
        is_costly=True,
    ),
    Row(
        tt.PreciseDivFOp,
        lambda n, op, args: n.quotient(*args),
        symbols=["fdiv_rn", "ddiv_rn"],
        is_rounded=True,
        is_costly=True,
    ),
    # Functions.
    _library(math.ExpOp, "exp", "exp", symbols=["fast_expf"]),
    _library(math.Exp2Op, "exp2", "exp2"),
    _library(math.ExpM1Op, "expm1", "expm1"),
    _library(math.LogOp, "log", "log", symbols=["fast_logf"]),
    _library(math.Log2Op, "log2", "log2", symbols=["fast_log2f"]),
    _library(math.Log10Op, "log10", "log10", symbols=["fast_log10f"]),
    _library(math.Log1pOp, "log1p", "log1p"),
    _library(math.SqrtOp, "sqrt", "sqrt"),
    _library(math.RsqrtOp, "rsqrt", "rsqrt"),
    _library(math.CbrtOp, "cbrt", "cbrt"),
    _library(math.PowFOp, "pow", "pow", symbols=["fast_powf"]),
    _turning(math.SinOp, "sin", "fast_sinf"),
    _turning(math.CosOp, "cos", "fast_cosf"),
    _turning(math.TanOp, "tan", "fast_tanf"),
    _library(math.AsinOp, "asin", "asin"),
    _library(math.AcosOp, "acos", "acos"),
    _library(math.AtanOp, "atan", "atan"),
    _library(math.Atan2Op, "atan2", "atan2"),
    _library(math.SinhOp, "sinh", "sinh"),
    _library(math.CoshOp, "cosh", "cosh"),
    _library(math.TanhOp, "tanh", "tanh", symbols=["fast_tanhf"]),
    _library(math.AsinhOp, "asinh", "asinh"),
    _library(math.AcoshOp, "acosh", "acosh"),
    _library(math.AtanhOp, "atanh", "atanh"),
    _library(math.ErfOp, "erf", "erf"),
    _cheap(math.FloorOp, "floor", "floor"),
    _cheap(math.CeilOp, "ceil", "ceil"),
    _cheap(math.TruncOp, "trunc", "trunc"),
    _cheap(math.RoundOp, "round", "round"),
    _cheap(math.RoundEvenOp, "rint", "rint", "nearbyint"),
    _cheap(math.CopySignOp, "copysign", "copysign"),
    Row(tt.ExternElementwiseOp, _extern, is_costly=True),
    # Conversions.
    _cast(ExtSIOp),
    _cast(ExtUIOp),
    _cast(TruncIOp),
    _cast(FPToSIOp),
    _cast(FPToUIOp),
    _cast(arith.ExtFOp),
    _from_integer(SIToFPOp, "int", "ll"),
    _from_integer(UIToFPOp, "uint", "ull"),
    Row(tile.RoundOp, lambda n, op, args: args[0], is_rounded=True, is_costly=True),
    Row(arith.TruncFOp, lambda n, op, args: n.convert_float(op, args[0]), symbols=["double2float_rn"]),
    Row(tt.FpToFpOp, lambda n, op, args: n.convert_float(op, args[0])),
    _bits(BitcastOp),
    _bits(
        tt.BitcastOp,
        [
            "float_as_int",
            "float_as_uint",
            "int_as_float",
            "uint_as_float",
            "double_as_longlong",
            "longlong_as_double",
        ],
    ),
)
# All elementwise operations.
ELEMENTWISE: dict[type, Row] = {row.operation: row for row in ROWS}
# The operation of a libdevice function, by the symbol with which Triton calls it.
SYMBOLS: dict[str, type[Operation]] = {
    f"__nv_{name}": row.operation
    for row in ROWS
    for name in (*row.libdevice, *(f"{name}f" for name in row.libdevice), *row.symbols)
}


def apply_row(numeric: Numeric, op: Operation, args: Sequence[Reg]) -> Reg:
    """Return the result of one elementwise operation on registers that all have the same number of lanes.

    Raises:
        UnsupportedOperation: the operation is not elementwise, or not supported on these types.
    """
    return row_writer(numeric, op)(args)


def row_writer(numeric: Numeric, op: Operation) -> Callable[[Sequence[Reg]], Reg]:
    """Return `apply_row` of one operation, for many registers."""
    elem = element_name(op.results[0].type, op)
    row = ELEMENTWISE.get(type(op))
    if row is None:
        raise unsupported(op)
    write = functools.partial(row.write, numeric, op)
    return (lambda args: numeric.round_float(write(args), elem)) if row.is_rounded else write


def is_elementwise(op: object) -> bool:
    """Return whether an operation computes element i of its result from elements i of its operands."""
    return type(op) in ELEMENTWISE


def is_costly(op: object) -> bool:
    """Return whether an elementwise operation should be computed only once."""
    row = ELEMENTWISE.get(type(op))
    return row is not None and row.is_costly
