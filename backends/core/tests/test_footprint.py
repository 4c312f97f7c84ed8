"""Footprints: the bytes that a part of a grid can reach. They are never too few, and exact for the usual kernels."""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from foundry_core.footprint import Footprint, Footprints, Span
from kernels import structured
from shared_kernels import imported, matmul, vec_add

# It takes a minute, and depends only on the meaning of structured kernels.
pytestmark = pytest.mark.anywhere


def even(programs: int, parts: int) -> list[int]:
    return [programs * part // parts for part in range(parts + 1)]


VEC_ADD = {"x": "*i32", "y": "*i16", "out": "*fp64", "n": "i32"}


@pytest.mark.parametrize(("n", "parts"), [(1000, 4), (1024, 8), (1, 1), (129, 2), (16 * 100_000, 64)])
def test_a_blocked_kernel_gets_its_blocks_and_no_more(n: int, parts: int) -> None:
    programs = triton.cdiv(n, 16)
    found = Footprints(structured(vec_add, VEC_ADD, {"BLOCK": 16}))
    bounds = even(programs, parts)
    for part, (first, last) in zip(
        found.compute([0, 0, 0, n], (programs, 1, 1), bounds), itertools.pairwise(bounds), strict=True
    ):
        low, high = 16 * first, min(16 * last, n)
        assert part[0] == Footprint(Span(4 * low, 4 * high), None, False)
        assert part[1] == Footprint(Span(2 * low, 2 * high), None, False)
        assert (part[2].reads, part[2].writes) == (None, Span(8 * low, 8 * high))


def test_stores_that_leave_no_byte_out_are_solid() -> None:
    found = Footprints(structured(vec_add, VEC_ADD, {"BLOCK": 16}))
    assert all(part[2].solid for part in found.compute([0, 0, 0, 1000], (63, 1, 1), even(63, 5)))


@triton.jit
def strided(out, n, stride, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i * stride, i, mask=i < n)


def test_a_strided_store_spans_its_elements_and_is_not_solid() -> None:
    found = Footprints(structured(strided, {"out": "*i32", "n": "i32", "stride": "i32"}, {"BLOCK": 8}))
    (part,) = found.compute([0, 20, 3], (3, 1, 1), [0, 3])
    assert part[0] == Footprint(None, Span(0, 4 * (19 * 3 + 1)), False)
    (part,) = found.compute([0, 20, -3], (3, 1, 1), [0, 3])
    assert part[0] == Footprint(None, Span(-4 * 19 * 3, 4), False)


MATMUL = dict.fromkeys("abc", "*fp32") | dict.fromkeys(("M", "N", "K", "am", "bk", "cm"), "i32")


def test_a_grouped_matmul_gets_its_rows() -> None:
    size, block, group = 256, 32, 2
    found = Footprints(structured(matmul, MATMUL, {"BM": block, "BN": block, "BK": block, "GROUP": group}))
    parts = found.compute([0, 0, 0, *[size] * 6], (64, 1, 1), even(64, 4))
    rows = 4 * size * block * group  # bytes of a group's rows
    for k, part in enumerate(parts):
        assert part[0] == Footprint(Span(k * rows, (k + 1) * rows), None, False)
        assert part[1] == Footprint(Span(0, 4 * size * size), None, False)
        assert part[2].writes == Span(k * rows, (k + 1) * rows)


@triton.jit
def grid3(out):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    tl.store(out + (z * tl.num_programs(1) + y) * tl.num_programs(0) + x, x)


def test_programs_are_numbered_with_x_fastest() -> None:
    found = Footprints(structured(grid3, {"out": "*i8"}, {}))
    bounds = even(3 * 5 * 7, 11)
    for part, (first, last) in zip(found.compute([0], (3, 5, 7), bounds), itertools.pairwise(bounds), strict=True):
        assert part[0] == Footprint(None, Span(first, last), True)


def test_neighbours_that_share_an_interval_are_still_covered() -> None:
    found = Footprints(structured(grid3, {"out": "*i8"}, {}))
    bounds = even(30 * 50 * 70, 7)
    for part, (first, last) in zip(found.compute([0], (30, 50, 70), bounds), itertools.pairwise(bounds), strict=True):
        writes = part[0].writes
        assert writes is not None and writes.low <= first and last <= writes.high
        assert writes.high - writes.low < 2 * (last - first)


@triton.jit
def gather(x, index, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = tl.load(index + i, mask=i < n)
    tl.store(out + i, tl.load(x + at, mask=i < n), mask=i < n)


@pytest.mark.parametrize("type", ["*i32", "*i64"])
def test_footprint_of_loaded_indices_covers_all_values_of_their_type(type: str) -> None:
    found = Footprints(structured(gather, {"x": "*fp32", "index": type, "out": "*fp32", "n": "i32"}, {"BLOCK": 16}))
    (part,) = found.compute([0, 0, 0, 100], (7, 1, 1), [0, 7])
    reads = part[0].reads
    assert reads is not None and reads.low <= -4 * 2**31 and reads.high >= 4 * 2**31
    assert reads.is_all == (type == "*i64")
    assert part[2] == Footprint(None, Span(0, 400), True)


@triton.jit
def searching(x, out, n):
    at = tl.program_id(0) * 0
    while tl.load(x + at) < n:
        at += 3
    tl.store(out + tl.program_id(0), at)


def test_footprint_of_a_while_loop_is_unbounded() -> None:
    found = Footprints(structured(searching, {"x": "*i32", "out": "*i32", "n": "i32"}, {}))
    part, _ = found.compute([0, 0, 5], (4, 1, 1), [0, 2, 4])
    reads = part[0].reads
    assert reads is not None and reads.low <= -(2**33) and reads.high >= 2**33
    assert part[1] == Footprint(None, Span(0, 8), True)


@triton.jit
def shifted(out, by, flag):
    at = tl.program_id(0) + tl.minimum(by, 0)
    tl.store(out + at, 1, mask=flag)


def test_arguments_are_read_as_the_kernel_reads_them() -> None:
    found = Footprints(structured(shifted, {"out": "*i8", "by": "i32", "flag": "i1"}, {}))
    assert found.compute([0, 2**32 - 5, True], (4, 1, 1), [0, 4])[0][0].writes == Span(-5, -1)
    assert found.compute([0, -5, True], (4, 1, 1), [0, 4])[0][0].writes == Span(-5, -1)
    assert found.compute([0, 5, False], (4, 1, 1), [0, 4])[0][0].writes is None


@triton.jit
def either(p, q, flag, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if flag > 0:
        tl.store(p + i, 1, mask=i < n)
    else:
        tl.store(q + i, 1, mask=i < n)


def test_a_branch_that_is_not_taken_reaches_nothing() -> None:
    found = Footprints(structured(either, {"p": "*i8", "q": "*i8", "flag": "i32", "n": "i32"}, {"BLOCK": 8}))
    (taken,) = found.compute([0, 0, 1, 20], (3, 1, 1), [0, 3])
    assert taken == {0: Footprint(None, Span(0, 20), True), 1: Footprint(None, None, False)}


def test_programs_that_touch_nothing_have_no_footprint() -> None:
    found = Footprints(structured(vec_add, VEC_ADD, {"BLOCK": 16}))
    first, second = found.compute([0, 0, 0, 10], (4, 1, 1), [0, 1, 4])
    assert first[0].reads == Span(0, 40)
    assert second == {i: Footprint(None, None, False) for i in range(3)}


def test_an_analysis_is_remembered_by_integers_grid_and_parts() -> None:
    found = Footprints(structured(vec_add, VEC_ADD, {"BLOCK": 16}))
    once = found.compute([object(), 0, 0, 100], (7, 1, 1), [0, 7])
    assert found.compute([object(), 1, 2, 100], (7, 1, 1), [0, 7]) is once
    assert found.compute([object(), 1, 2, 101], (7, 1, 1), [0, 7]) is not once


# ---- Random kernels, compared with their own text run as Python -----------------------------------------------------


class Number:
    """An integer or an array of them with Triton's division, so that a kernel's text runs as Python."""

    def __init__(self, value: Any) -> None:
        self.value = np.asarray(value, np.int64)

    def _with(self, other: Any, operation: Callable[..., Any]) -> Number:
        return Number(operation(self.value, number(other).value))

    def __add__(self, other: Any) -> Any:
        return other + self if isinstance(other, Pointer) else self._with(other, np.add)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Number:
        return self._with(other, np.subtract)

    def __rsub__(self, other: Any) -> Number:
        return number(other) - self

    def __mul__(self, other: Any) -> Number:
        return self._with(other, np.multiply)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Number:
        return self._with(other, lambda a, b: np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b)))

    def __mod__(self, other: Any) -> Number:
        return self - (self // other) * number(other)

    def __rfloordiv__(self, other: Any) -> Number:
        return number(other) // self

    def __rmod__(self, other: Any) -> Number:
        return number(other) % self

    def __and__(self, other: Any) -> Number:
        return self._with(other, np.bitwise_and)

    def __lt__(self, other: Any) -> Number:
        return self._with(other, np.less)

    def __gt__(self, other: Any) -> Number:
        return self._with(other, np.greater)

    def __le__(self, other: Any) -> Number:
        return self._with(other, np.less_equal)

    def __ge__(self, other: Any) -> Number:
        return self._with(other, np.greater_equal)

    def __eq__(self, other: object) -> Number:  # type: ignore[override]
        return self._with(other, np.equal)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __getitem__(self, index: Any) -> Number:
        return Number(self.value[index])


def number(value: Any) -> Number:
    return value if isinstance(value, Number) else Number(value)


class Pointer:
    """A parameter and offsets from it."""

    def __init__(self, name: str, item: int, offset: Any = 0) -> None:
        self.name, self.item, self.offset = name, item, number(offset)

    def __add__(self, by: Any) -> Pointer:
        return Pointer(self.name, self.item, self.offset + number(by))


class Recorder:
    """A triton.language that records the bytes of each access."""

    def __init__(self, ids: Sequence[int], grid: Sequence[int], seed: int) -> None:
        self._ids, self._grid = ids, grid
        self._data = random.Random(seed)
        self.reads: dict[str, set[int]] = defaultdict(set)
        self.writes: dict[str, set[int]] = defaultdict(set)
        self.constexpr = int

    def program_id(self, axis: int) -> Number:
        return number(self._ids[axis])

    def num_programs(self, axis: int) -> Number:
        return number(self._grid[axis])

    def arange(self, low: int, high: int) -> Number:
        return Number(np.arange(low, high))

    def minimum(self, a: Any, b: Any) -> Number:
        return number(a)._with(b, np.minimum)

    def maximum(self, a: Any, b: Any) -> Number:
        return number(a)._with(b, np.maximum)

    def where(self, condition: Any, a: Any, b: Any) -> Number:
        return Number(np.where(number(condition).value, number(a).value, number(b).value))

    @staticmethod
    def _note(kept: dict[str, set[int]], pointer: Pointer, mask: Number | None) -> np.ndarray:
        inside = np.ones((), bool) if mask is None else mask.value.astype(bool)
        offsets, inside = np.broadcast_arrays(pointer.offset.value, inside)
        for offset in offsets[inside].ravel().tolist():
            kept[pointer.name].update(range(offset * pointer.item, (offset + 1) * pointer.item))
        return offsets

    def load(self, pointer: Pointer, mask: Number | None = None, other: int = 0) -> Number:
        offsets = self._note(self.reads, pointer, mask)
        data = [self._data.randrange(-20, 20) for _ in range(offsets.size)]
        return Number(np.array(data).reshape(offsets.shape))

    def store(self, pointer: Pointer, value: Any, mask: Number | None = None) -> None:
        self._note(self.writes, pointer, mask)


class Writer:
    """Writes the text of a random kernel k(p, q, r, n, m)."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._scalars = ["pid", "pid1", "n", "m", "tl.num_programs(0)"]
        self._names = itertools.count()
        self.lines: list[str] = []

    def text(self) -> str:
        self._statements(1, self._random.randrange(1, 4))
        head = "def k(p, q, r, n, m):\n    pid, pid1 = tl.program_id(0), tl.program_id(1)\n"
        return head + "\n".join(self.lines) + "\n"

    def _pick(self, *of: Any) -> Any:
        return self._random.choice(of)

    def _scalar(self, depth: int = 3) -> str:
        if depth == 0 or self._random.random() < 0.25:
            return str(self._pick(*self._scalars, self._random.randrange(0, 9)))
        a, b = self._scalar(depth - 1), self._scalar(depth - 1)
        by = self._pick("n", "m", "(m + 2)", "3", "8", "tl.maximum(pid1, 1)", f"({self._pick('n', 'm')} % 5 + 1)")
        return str(
            self._pick(
                f"({a} + {b})",
                f"({a} - {b})",
                f"({a} * {self._pick('n', 'pid', 4, 16)})",
                f"({a} // {by})",
                f"({a} % {by})",
                f"tl.minimum({a}, {b})",
                f"tl.maximum({a}, {b})",
                f"tl.where({a} < {b}, {b}, {a})",
            )
        )

    def _offsets(self) -> tuple[str, list[str], list[str]]:
        """Return offsets of a tile, the indices along its dimensions, and masks in its shape."""
        if self._random.random() < 0.5:
            index = f"tl.arange(0, {self._pick(1, 4, 16)})"
            whole = f"({self._scalar(2)} + {index} * {self._pick(1, 1, 1, 3, 'm', -2)})"
            if self._random.random() < 0.25:
                whole = f"({whole} % {self._pick('n', 'm', 7)})"
            return whole, [index], [whole]
        i, j = f"tl.arange(0, {self._pick(2, 4)})[:, None]", f"tl.arange(0, {self._pick(4, 8)})[None, :]"
        row = f"({self._scalar(2)} + {i})"
        if self._random.random() < 0.25:
            row = f"({row} % {self._pick('n', 'm')})"
        return f"({row} * {self._pick(8, 'n', 5)} + {j} + {self._scalar(1)})", [i, j], [row]

    def _mask(self, indices: list[str], others: list[str]) -> str:
        ways = [f"({self._pick(*indices, *others)} < {self._scalar(1)})" for _ in range(self._random.randrange(1, 3))]
        if self._random.random() < 0.3:
            ways.append(f"({self._pick(*others)} >= {self._scalar(1)})")
        if self._random.random() < 0.2:
            ways.append(f"({self._pick(*indices)} % 3 == 1)")
        shape = f"(({' + '.join(indices)}) >= 0)"  # has the tile's whole shape, and is always true
        return " & ".join([*ways, shape])

    def _statements(self, depth: int, count: int) -> None:
        for _ in range(count):
            ways = [self._access, self._access, self._store_of_a_load]
            if depth < 4:
                ways += [self._loop, self._branch, self._carrying, self._moving]
            self._pick(*ways)(depth)

    def _line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def _arguments(self) -> str:
        offsets, indices, others = self._offsets()
        masked = f", mask={self._mask(indices, others)}" if self._random.random() < 0.6 else ""
        return f"{offsets}{masked}"

    def _access(self, depth: int) -> None:
        offsets, _, mask = self._arguments().partition(", mask=")
        self._line(depth, f"tl.store({self._pick('p', 'q', 'r')} + {offsets}, 0{', mask=' + mask if mask else ''})")

    def _store_of_a_load(self, depth: int) -> None:
        offsets, _, mask = self._arguments().partition(", mask=")
        masked = f", mask={mask}" if mask else ""
        name = f"v{next(self._names)}"
        self._line(depth, f"{name} = tl.load({self._pick('p', 'r')} + {offsets}{masked})")
        target = self._pick(offsets, offsets, f"({offsets} + {name})", name)
        self._line(depth, f"tl.store({self._pick('p', 'q', 'r')} + {target}, {name}{masked})")

    def _loop(self, depth: int) -> None:
        name = f"k{next(self._names)}"
        low = self._pick("0", "pid", self._scalar(1))
        high = self._pick("n", "m", f"{low} + 3", f"tl.minimum({self._scalar(2)}, 20)")
        self._line(depth, f"for {name} in range({low}, tl.minimum({high}, {low} + 6), {self._pick(1, 1, 2, 4)}):")
        self._inside(depth, [name])

    def _inside(self, depth: int, names: list[str]) -> None:
        before = list(self._scalars)
        self._scalars += names * 3
        self._statements(depth + 1, self._random.randrange(1, 3))
        self._scalars = before

    def _branch(self, depth: int) -> None:
        self._line(depth, f"if {self._scalar(2)} {self._pick('<', '>=', '==')} {self._scalar(1)}:")
        self._inside(depth, [])
        if self._random.random() < 0.4:
            self._line(depth, "else:")
            self._inside(depth, [])

    def _carrying(self, depth: int) -> None:
        name, counter = f"s{next(self._names)}", f"k{next(self._names)}"
        self._line(depth, f"{name} = {self._scalar(1)} + 0")
        self._line(depth, f"for {counter} in range(0, {self._pick('m', 'n % 4', 3)}):")
        self._inside(depth, [name])
        step = self._pick(
            f"{name} + {self._scalar(1)}",
            f"{name} - {self._pick('m', 2)}",
            f"{name} + {counter} * 4",
            f"{name} // 2 + pid",
            f"tl.minimum({name}, n) + 1",
        )
        self._line(depth + 1, f"{name} = {step}")
        self._scalars.append(name)

    def _moving(self, depth: int) -> None:
        name, counter = f"a{next(self._names)}", f"k{next(self._names)}"
        offsets, _, _ = self._offsets()
        self._line(depth, f"{name} = {self._pick('p', 'q', 'r')} + {offsets}")
        self._line(depth, f"for {counter} in range(0, {self._pick('m', 'pid % 4', 3)}):")
        self._line(depth + 1, f"tl.store({name}, {counter})")
        self._line(depth + 1, f"{name} += {self._pick(1, 'm', '8 * n', f'{counter} * 2')}")


ITEMS = {"p": ("*i32", 4), "q": ("*fp64", 8), "r": ("*i8", 1)}


def loaded(text: str, folder: Path, name: str) -> ModuleType:
    """Load a module with a kernel."""
    return imported(folder / f"{name}.py", f"import triton\nimport triton.language as tl\n\n@triton.jit\n{text}")


def counted(low: Any, high: Any = None, step: int = 1) -> Iterator[Number]:
    low, high = (0, low) if high is None else (low, high)
    return (Number(i) for i in range(int(number(low).value), int(number(high).value), step))


def truth(text: str, ids: Sequence[int], grid: Sequence[int], n: int, m: int) -> Recorder:
    """Return what one program really accesses."""
    recorder = Recorder(ids, grid, seed=n)
    space: dict[str, Any] = {"tl": recorder, "range": counted}
    exec(text, space)
    space["k"](*(Pointer(name, item) for name, (_, item) in ITEMS.items()), number(n), number(m))
    return recorder


@pytest.mark.parametrize("seed", range(150))
def test_no_access_of_a_random_kernel_lies_outside_its_footprint(seed: int, tmp_path: Path) -> None:
    text = Writer(seed).text()
    kernel = loaded(text, tmp_path, f"random_{seed}").k
    types = {name: type for name, (type, _) in ITEMS.items()} | {"n": "i32", "m": "i32"}
    found = Footprints(structured(kernel, types, {}))
    values = random.Random(seed)
    for _ in range(3):
        grid = (values.randrange(1, 9), values.randrange(1, 4), 1)
        n, m = values.choice([1, 7, 8, 33]), values.randrange(1, 6)
        programs = grid[0] * grid[1]
        bounds = even(programs, values.randrange(1, programs + 1))
        parts = found.compute([None, None, None, n, m], grid, bounds)
        for part, (first, last) in zip(parts, itertools.pairwise(bounds), strict=True):
            did = [truth(text, (p % grid[0], p // grid[0], 0), grid, n, m) for p in range(first, last)]
            for index, name in enumerate(ITEMS):
                check(part[index], [one.reads[name] for one in did], [one.writes[name] for one in did], text)


def check(found: Footprint, reads: Sequence[set[int]], writes: Sequence[set[int]], text: str) -> None:
    read, written = set().union(*reads), set().union(*writes)
    for span, bytes in ((found.reads, read), (found.writes, written)):
        if bytes:
            assert span is not None, text
            assert span.low <= min(bytes) and max(bytes) < span.high, (span, min(bytes), max(bytes), text)
    if found.solid:
        assert found.writes is not None
        assert written == set(range(found.writes.low, found.writes.high)), text


def test_footprints_of_random_kernels_are_mostly_exact(tmp_path: Path) -> None:
    """This shows that the test above is strong: kernels access memory, and footprints are not everything."""
    exact = spans = 0
    for seed in range(60):
        text = Writer(seed).text()
        kernel = loaded(text, tmp_path, f"random_{seed}").k
        types = {name: type for name, (type, _) in ITEMS.items()} | {"n": "i32", "m": "i32"}
        (part,) = Footprints(structured(kernel, types, {})).compute([None, None, None, 8, 3], (4, 1, 1), [1, 2])
        did = truth(text, (1, 0, 0), (4, 1, 1), 8, 3)
        for index, name in enumerate(ITEMS):
            for span, bytes in ((part[index].reads, did.reads[name]), (part[index].writes, did.writes[name])):
                spans += bool(bytes)
                exact += bool(bytes) and span == Span(min(bytes), max(bytes) + 1)
    assert spans > 80
    assert exact > 0.6 * spans, (exact, spans)
