"""Values that stay in registers: no driver may skip a rounding, or compute in more bits than a type has.

A store makes a driver round: each row here uses a result in a further operation before it is stored. All results are
exact, so they are compared bit by bit with NumPy.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from foundry_core.tensor import Tensor
from image import BACKEND
from results import poisoned, unequal
from shared_kernels import imported

pytestmark = pytest.mark.any_release

HAS_F64 = BACKEND != "vsi"
TYPES: dict[str, Any] = {
    **{f"{sign}int{bits}": np.dtype(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float32": np.dtype(np.float32),
    **({"float64": np.dtype(np.float64)} if HAS_F64 else {}),
}
# Types that show more than the bits that a narrower one has.
SHOWING = [name for name in ("int64", "float32", "float64") if name in TYPES]
# One element for each invocation of four warps: lavapipe takes seconds for the instructions of one.
COUNT = 128


@dataclass(frozen=True)
class Row:
    """One expression of `a` and `b`, the type of its result, and the result that NumPy gives."""

    text: str
    result: str
    expected: np.ndarray
    # Where the result is defined.
    defined: np.ndarray


def row(text: str, result: str, expected: Any, defined: Any = True) -> Row:
    with np.errstate(all="ignore"):
        value = np.broadcast_to(np.asarray(expected).astype(TYPES[result]), COUNT)
    return Row(text, result, value, np.broadcast_to(defined, COUNT))


def check(folder: Path, a: np.ndarray, b: np.ndarray, rows: list[Row]) -> None:
    """Compile all rows as one kernel, and compare every result."""
    if BACKEND == "dpu":
        # All need more than a DPU's 4096 instructions. No driver compiles its programs again, so a sample is enough.
        rows = random.Random(0).sample(rows, min(8, len(rows)))
    results = list(dict.fromkeys(row.result for row in rows))
    lines = [
        "import triton",
        "import triton.language as tl",
        "@triton.jit",
        f"def kernel(x, y, {', '.join(results)}, BLOCK: tl.constexpr):",
        "    i = tl.arange(0, BLOCK)",
        "    a = tl.load(x + i)",
        "    b = tl.load(y + i)",
    ]
    for number, each in enumerate(rows):
        lines.append(f"    tl.store({each.result} + {number * COUNT} + i, {each.text})")
    kernel = imported(folder / "kernel.py", "\n".join(lines)).kernel
    outs = {name: poisoned(len(rows) * COUNT, dtype=TYPES[name]) for name in results}
    kernel[(1,)](Tensor(a), Tensor(b), *(Tensor(out) for out in outs.values()), BLOCK=COUNT)
    wrong = []
    for number, each in enumerate(rows):
        found = outs[each.result][number * COUNT : (number + 1) * COUNT]
        bad = unequal(found, each.expected) & each.defined
        if bad.any():
            at = int(np.argmax(bad))
            wrong.append(f"{each.text}: {bad.sum()} wrong; of {a[at]}, {b[at]}: {found[at]}, not {each.expected[at]}")
    assert not wrong, "\n".join(wrong)


def values(name: str, seed: int) -> np.ndarray:
    """Return extremes, ties and their neighbours, and random numbers of all magnitudes."""
    kind, drawn = TYPES[name], np.random.default_rng(seed)
    if kind.kind in "iu":
        limits = np.iinfo(kind)
        fixed = [
            limits.min,
            limits.max,
            0,
            1,
            limits.max - 1,
            limits.min + 1,
            limits.max // 2,
            limits.max // 2 + 1,
            2,
            3,
        ]
        wide = drawn.integers(limits.min, limits.max, COUNT - len(fixed), kind, endpoint=True)
        wide >>= drawn.integers(0, limits.bits, wide.size, kind)
        found = np.concatenate([np.array(fixed, kind), wide])
    else:
        ends = [0.0, -0.0, np.inf, -np.inf, np.nan, 65504, 65519.9, 65520, 1e-7, 2.0**-24, 2.0**-25, 6.1e-5, 3e38]
        ends += [s * (1 + 2.0**-k + d) for s in (1, -1) for k in (8, 9, 11, 12) for d in (0, 2.0**-20, -(2.0**-20))]
        rest = COUNT - len(ends)
        numbers = drawn.standard_normal(rest) * np.exp2(drawn.integers(-18, 20, rest))
        with np.errstate(over="ignore"):
            found = np.concatenate([ends, numbers]).astype(kind)
    return found[drawn.permutation(COUNT)]


def converted(x: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers in another type, and for which of them the conversion is defined."""
    kind = TYPES[name]
    with np.errstate(all="ignore"):
        if x.dtype.kind not in "iu" and kind.kind in "iu":
            limits, exact = np.iinfo(kind), np.trunc(x.astype(np.float64))
            defined = (exact >= float(limits.min)) & (exact < float(limits.max) + (limits.bits < 53))
            return np.where(defined, exact, 0).astype(kind), defined
        if kind == TYPES["bfloat16"] and x.dtype.kind in "iu":
            return integers_in_bf16(x), np.ones(x.shape, bool)
        if kind == TYPES["bfloat16"] and x.dtype == np.float64:
            return x.astype(np.float64).astype(kind), np.ones(x.shape, bool)
        return x.astype(kind), np.ones(x.shape, bool)


def integers_in_bf16(x: np.ndarray) -> np.ndarray:
    """Round integers once: NumPy goes by f32."""
    found = []
    for value in x.tolist():
        size = abs(value)
        drop = max(0, size.bit_length() - 8)
        low, half = size & ((1 << drop) - 1), (1 << drop) >> 1
        size >>= drop
        size += drop > 0 and (low > half or (low == half and size & 1))
        found.append(float(np.copysign(float(size << drop), value)))
    return np.array(found).astype(ml_dtypes.bfloat16)


def chains(source: str, x: np.ndarray) -> Iterator[Row]:
    for middle in TYPES:
        first, known = converted(x, middle)
        for last in SHOWING:
            second, also = converted(first, last)
            yield row(f"a.to(tl.{middle}).to(tl.{last})", last, second, known & also)


@pytest.mark.parametrize("source", TYPES)
def test_a_conversion_rounds_although_the_next_one_follows(source: str, tmp_path: Path) -> None:
    x = values(source, 1)
    check(tmp_path, x, x, list(chains(source, x)))


def divided(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.array(
        [abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) for a, b in zip(x.tolist(), y.tolist(), strict=True)],
        object,
    )


def wrapped(x: Any, kind: np.dtype[Any]) -> np.ndarray:
    """Return Python's integers modulo the width of a type."""
    bits = 8 * kind.itemsize
    return np.array([value % (1 << bits) for value in x], np.uint64).astype(kind)


@pytest.mark.parametrize("name", [name for name in TYPES if "int" in name])
def test_an_integer_has_the_bits_of_its_type_and_no_more(name: str, tmp_path: Path) -> None:
    kind = TYPES[name]
    a, b = values(name, 2), values(name, 3)
    b[b == 0] = 3
    x, y = a.astype(object), b.astype(object)
    shift = f"(b & {8 * kind.itemsize - 1})"
    amount = y & (8 * kind.itemsize - 1)
    results: dict[str, Any] = {
        "(-a)": -x,
        "(~a)": ~x,
        "(a + b)": x + y,
        "(a - b)": x - y,
        "(a * b)": x * y,
        "(a & b)": x & y,
        "(a | b)": x | y,
        "(a ^ b)": x ^ y,
        "(a // b)": divided(a, b),
        "(a % b)": x - divided(a, b) * y,
        f"(a << {shift})": x * 2**amount,
        f"(a >> {shift})": x // 2**amount,
        "tl.abs(a)": abs(x),
        "tl.minimum(a, b)": np.minimum(x, y),
        "tl.maximum(a, b)": np.maximum(x, y),
        "tl.minimum(a + b, b)": np.minimum(wrapped(x + y, kind).astype(object), y),
        "tl.maximum(-a, b)": np.maximum(wrapped(-x, kind).astype(object), y),
        "tl.where(a - b > b, a, b)": np.where(wrapped(x - y, kind).astype(object) > y, x, y),
    }
    if kind.kind == "u":
        del results["tl.abs(a)"]
    rows = []
    for text, exact in results.items():
        found = wrapped(exact, kind)
        for last in SHOWING:
            value, defined = converted(found, last)
            rows.append(row(f"{text}.to(tl.{last})", last, value, defined))
        sign = name.removeprefix("u") if name[0] == "u" else f"u{name}"
        rows.append(row(f"{text}.to(tl.{sign}, bitcast=True).to(tl.int64)", "int64", found.view(TYPES[sign])))
    check(tmp_path, a, b, rows)


COMPARED: dict[str, Callable[..., Any]] = {
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal,
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name in TYPES if "int" in name])
def test_integers_are_compared_with_or_without_a_sign_as_their_type_says(name: str, tmp_path: Path) -> None:
    a, b = values(name, 4), values(name, 5)
    b[::5] = a[::5]
    rows = []
    for sign, compare in COMPARED.items():
        rows.append(row(f"(a {sign} b).to(tl.int32)", "int32", compare(a, b)))
        rows.append(row(f"tl.where(a {sign} b, a, b)", name, np.where(compare(a, b), a, b)))
        rows.append(row(f"tl.where(a {sign} b, b, a)", name, np.where(compare(a, b), b, a)))
        total = a + b
        rows.append(row(f"tl.where(a + b {sign} b, 1, 2)", "int32", np.where(compare(total, b), 1, 2)))
    for text, value in (("tl.max(a)", a.max()), ("tl.min(a)", a.min()), ("tl.max(a ^ b)", (a ^ b).max())):
        rows.append(row(text, name, value))
    check(tmp_path, a, b, rows)


@pytest.mark.parametrize("name", ["int8", "uint32", "int64", "uint64"])
def test_one_operation_in_a_kernel_is_computed_as_among_others(name: str, tmp_path: Path) -> None:
    """A driver merges a comparison and a selection if nothing else uses the comparison."""
    a, b = values(name, 4), values(name, 5)
    b[::5] = a[::5]
    for number, (text, expected) in enumerate(
        {
            "tl.maximum(a, b)": np.maximum(a, b),
            "tl.minimum(a, b)": np.minimum(a, b),
            "tl.where(a < b, a, b)": np.minimum(a, b),
            "tl.where(a >= b, a, b)": np.maximum(a, b),
            "tl.max(a)": a.max(),
            "tl.min(a)": a.min(),
            "tl.sort(a)": np.sort(a),
        }.items()
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        check(folder, a, b, [row(text, name, expected)])


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_arithmetic_of_narrow_floats_rounds_each_result(name: str, tmp_path: Path) -> None:
    kind = TYPES[name]
    a, b = values("float32", 6), values("float32", 7)
    with np.errstate(all="ignore"):
        x, y = a.astype(kind), b.astype(kind)
        p, q = x.astype(np.float32), y.astype(np.float32)
        to, wide = f"a.to(tl.{name})", f"b.to(tl.{name})"
        rows = [
            row(f"({to} + {wide}).to(tl.float32)", "float32", (p + q).astype(kind).astype(np.float32)),
            row(f"({to} - {wide}).to(tl.float32)", "float32", (p - q).astype(kind).astype(np.float32)),
            row(f"({to} * {wide}).to(tl.float32)", "float32", (p * q).astype(kind).astype(np.float32)),
            row(f"{to}.to(tl.float32) + b", "float32", p + b),
            row(f"{to}.to(tl.float32) - a", "float32", p - a),
            row(f"({to}.to(tl.float32) == a).to(tl.int32)", "int32", p == a),
            row(f"({to} > {wide}).to(tl.int32)", "int32", p > q),
            row(f"({to} * {wide} + {to}).to(tl.float32)", "float32",
                ((p * q).astype(kind).astype(np.float32) + p).astype(kind).astype(np.float32)),
            row(f"{to}.to(tl.int16, bitcast=True).to(tl.int32)", "int32", x.view(np.int16), ~np.isnan(a)),
            # Triton 3.6 computes 0 - x.
            row(f"(-{to}).to(tl.float32)", "float32", -p, p != 0),
            row(f"tl.abs({to}).to(tl.float32)", "float32", np.abs(p)),
            row(f"tl.where({to} > {wide}, {to}, {wide}).to(tl.float32)", "float32", np.where(p > q, p, q)),
        ]  # fmt: skip
    check(tmp_path, a, b, rows)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_a_sum_adds_rounded_numbers(name: str, tmp_path: Path) -> None:
    drawn = np.random.default_rng(8)
    # Rounded, they have 11 digits at most after the point: their sum is exact in f32.
    a, b = drawn.uniform(1, 2, (2, COUNT)).astype(np.float32)
    total = a.astype(TYPES[name]).astype(np.float64).sum()
    product = (a.astype(TYPES[name]).astype(np.float64) > a).sum()
    check(
        tmp_path,
        a,
        b,
        [
            row(f"tl.sum(a.to(tl.{name}).to(tl.float32))", "float32", total),
            row(f"tl.sum((a.to(tl.{name}).to(tl.float32) > a).to(tl.int32))", "int32", product),
        ],
    )
