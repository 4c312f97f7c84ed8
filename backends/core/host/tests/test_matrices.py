"""Check each elementwise operation on a product that is kept in cooperative matrices, for each type of the product.

The operation is the only use of the product, so that it may be computed on matrices; then the product is stored too.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from ..devices import DEVICES, run
from ..kernels import product
from ..memory import Array

DTYPES: dict[str, Any] = {
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    "bf16": np.uint16,
}
# The extents of the matrices: what the largest matrices of a device divide.
SIZES = {"h100": 32, "lavapipe": 16, "radv": 32, "xe2": 32}


class Row(NamedTuple):
    """An operation on the product %d and the number %n: its text, its result's type, and what NumPy says."""

    text: str
    result: str
    numpy: Callable[[Array, Any], Array]


def both(name: str, elem: str, how: Callable[..., Any]) -> list[Row]:
    """Return an operation on the product and a number, on the number and the product, on the product and itself, and
    on the product and a row or a column that is repeated."""

    def along(axis: int) -> Callable[[Array, Any], Array]:
        return lambda d, n: how(d, np.indices(d.shape, d.dtype)[axis] + d.dtype.type(len(d)))

    return [
        Row(f"{name} %d, %n : TILE({elem})", elem, how),
        Row(f"{name} %n, %d : TILE({elem})", elem, lambda d, n: how(n, d)),
        Row(f"{name} %d, %d : TILE({elem})", elem, lambda d, n: how(d, d)),
        Row(f"{name} %d, %row : TILE({elem})", elem, along(1)),
        Row(f"{name} %d, %column : TILE({elem})", elem, along(0)),
    ]


def unsigned(x: Array) -> Array:
    return np.asarray(x).view(f"u{np.asarray(x).itemsize}")


def divided(a: Array, b: Array) -> Array:
    return np.fix(np.asarray(a, np.float64) / np.where(b == 0, 1, b)).astype(np.int32)


_COMMON: dict[str, Callable[..., Any]] = {
    "arith.addi": np.add,
    "arith.subi": np.subtract,
    "arith.muli": np.multiply,
    "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or,
    "arith.xori": np.bitwise_xor,
    "arith.minsi": np.minimum,
    "arith.maxsi": np.maximum,
    "arith.minui": lambda a, b: np.minimum(unsigned(a), unsigned(b)).view(np.int32),
    "arith.maxui": lambda a, b: np.maximum(unsigned(a), unsigned(b)).view(np.int32),
}
INTEGERS = [
    *(row for name, how in _COMMON.items() for row in both(name, "i32", how)),
    Row("arith.divsi %d, %n : TILE(i32)", "i32", divided),
    Row("arith.remsi %d, %n : TILE(i32)", "i32", lambda d, n: d - divided(d, n) * n),
    Row("arith.divui %d, %n : TILE(i32)", "i32", lambda d, n: (unsigned(d) // unsigned(n)).view(np.int32)),
    Row("arith.remui %d, %n : TILE(i32)", "i32", lambda d, n: (unsigned(d) % unsigned(n)).view(np.int32)),
    Row("arith.shli %d, %n : TILE(i32)", "i32", np.left_shift),
    Row("arith.shrsi %d, %n : TILE(i32)", "i32", np.right_shift),
    Row("arith.shrui %d, %n : TILE(i32)", "i32", lambda d, n: (unsigned(d) >> unsigned(n)).view(np.int32)),
    Row("math.absi %d : TILE(i32)", "i32", lambda d, n: np.abs(d)),
    Row("arith.extsi %d : TILE(i32) to TILE(i64)", "i64", lambda d, n: d),
    Row("arith.extui %d : TILE(i32) to TILE(i64)", "i64", lambda d, n: unsigned(d)),
    Row("arith.trunci %d : TILE(i32) to TILE(i8)", "i8", lambda d, n: d.astype(np.int8)),
    Row("arith.trunci %d : TILE(i32) to TILE(i16)", "i16", lambda d, n: d.astype(np.int16)),
    Row("arith.sitofp %d : TILE(i32) to TILE(f32)", "f32", lambda d, n: d),
    Row("arith.uitofp %d : TILE(i32) to TILE(f32)", "f32", lambda d, n: unsigned(d)),
    Row("tt.bitcast %d : TILE(i32) -> TILE(f32)", "f32", lambda d, n: d.view(np.float32)),
    Row("arith.select %c, %d, %n : TILE(i1), TILE(i32)", "i32", lambda d, n: np.where(d > n, d, n)),
]


def floats(elem: str) -> list[Row]:
    named = {"arith.addf": np.add, "arith.subf": np.subtract, "arith.mulf": np.multiply, "arith.maxnumf": np.fmax}
    named |= {"arith.minnumf": np.fmin, "arith.maximumf": np.maximum, "arith.minimumf": np.minimum}
    rows = [row for name, how in named.items() for row in both(name, elem, how)]
    other = {"f32": "f16", "f16": "f32"}[elem]
    rows += [
        Row(f"arith.divf %d, %n : TILE({elem})", elem, lambda d, n: (d.astype(np.float64) / n).astype(d.dtype)),
        Row(f"arith.negf %d : TILE({elem})", elem, lambda d, n: -d),
        Row(f"math.absf %d : TILE({elem})", elem, lambda d, n: np.abs(d)),
        Row(f"math.floor %d : TILE({elem})", elem, lambda d, n: np.floor(d)),
        Row(f"arith.fptosi %d : TILE({elem}) to TILE(i32)", "i32", lambda d, n: d.astype(np.int32)),
        Row(f"arith.{'trunc' if elem == 'f32' else 'ext'}f %d : TILE({elem}) to TILE({other})", other, lambda d, n: d),
        Row(f"arith.select %c, %d, %n : TILE(i1), TILE({elem})", elem, lambda d, n: np.where(d > n, d, n)),
    ]
    return rows


TYPES = {
    ("i8", "i32"): INTEGERS,
    ("f16", "f32"): floats("f32"),
    ("bf16", "f32"): floats("f32"),
    ("f16", "f16"): floats("f16"),
}


def factors(factor: str, total: str, size: int) -> tuple[Array, Array, Array]:
    """Return two matrices whose product is exact, and the product: with zeros of both signs."""
    random = np.random.default_rng(7)
    if factor == "i8":
        a, b = random.integers(-128, 128, (2, size, size)).astype(np.int8)
        return a, b, a.astype(np.int32) @ b.astype(np.int32)
    a, b = random.integers(-8, 9, (2, size, size)) / 4
    a[3] = 0
    found = (a @ b).astype(DTYPES[total])
    if factor == "bf16":
        a, b = ((x.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16) for x in (a, b))
        return a, b, found
    return a.astype(np.float16), b.astype(np.float16), found


@pytest.mark.parametrize(("factor", "total"), TYPES)
@pytest.mark.parametrize("device", SIZES)
@pytest.mark.parametrize("is_stored", [False, True])
def test_elementwise_operation_on_a_product(device: str, factor: str, total: str, is_stored: bool) -> None:
    target, size, rows = DEVICES[device], SIZES[device], TYPES[factor, total]
    a, b, found = factors(factor, total, size)
    lines, outputs, expected = (
        [f"%n = arith.constant dense<{'5' if total == 'i32' else '5.0'}> : TILE({total})"],
        {},
        [],
    )
    for k, row in enumerate(rows):
        if "%c" in row.text:
            predicate = "i sgt" if total == "i32" else "f ogt"
            lines.append(f"%c{k} = arith.cmp{predicate}, %d{k}, %n : TILE({total})")
        text = re.sub(r"%([dc])(?![a-z])", rf"%\g<1>{k}", row.text)
        lines.append(f"%v{k} = {text}")
        outputs[f"%v{k}"] = row.result
        with np.errstate(all="ignore"):
            expected.append(np.asarray(row.numpy(found, DTYPES[total](5))).astype(DTYPES[row.result]))
        if is_stored:
            outputs[f"%d{k}"] = total
            expected.append(found)
    blank = [np.full_like(array, 77) for array in expected]
    text = product(factor, total, len(rows), outputs, lines, lanes=target.warp_size, size=size)
    for value, made, wanted in zip(outputs, run(text, target, [a, b, *blank])[2:], expected, strict=True):
        name = rows[int(value[2:])].text if value[1] == "v" else value
        np.testing.assert_array_equal(made, wanted, err_msg=name)
        if made.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(made), np.signbit(wanted), err_msg=name)
