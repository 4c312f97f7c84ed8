"""Represent a kernel as steps. Each step has its text and its meaning in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .data import fill
from .job import POISON
from .values import Array, Type, Value, accumulated, arithmetic, integral

# Elements of each input array. Addresses stay within it.
SIZE = 8192
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Variable:
    """A name in the kernel.

    Attributes:
        safe: its value is never open, so that it may be used in an address, a mask or a condition.
        exact: it is a float whose error is always 0.
    """

    name: str
    type: Type
    shape: Shape
    safe: bool = False
    exact: bool = False


@dataclass
class Context:
    """The state of a program: its variables by name, and the arrays that it reads."""

    variables: dict[str, Value]
    inputs: dict[str, Array]


Compute = Callable[[Context], Value]


@dataclass(frozen=True)
class Step:
    """An assignment.

    Attributes:
        uses: the names in the text.
        arrays: the input arrays among these names.
        plain: whether Triton's interpreter computes it as the compiler does; drawing.py says what it does not.
    """

    result: Variable
    text: str
    uses: tuple[str, ...]
    compute: Compute
    arrays: tuple[str, ...] = ()
    plain: bool = True

    def run(self, context: Context) -> None:
        value = self.compute(context)
        assert value.data.dtype == self.result.type.numpy, (self.text, value.data.dtype)
        context.variables[self.result.name] = value

    def lines(self, indent: str) -> list[str]:
        return [f"{indent}{self.result.name} = {self.text}"]

    def needs(self) -> set[str]:
        return set(self.uses)


@dataclass(frozen=True)
class Loop:
    """`for counter in range(...)` around steps. The last step gives the accumulator its next value."""

    result: Variable
    start: Variable
    counter: Variable
    bounds: tuple[str, str, str]
    body: tuple[Any, ...]
    update: Variable
    uses: tuple[str, ...]

    def run(self, context: Context) -> None:
        values = context.variables
        values[self.result.name] = values[self.start.name]
        known = {name: int(values[name].data) for name in self.uses}
        first, last, step = (eval(text, {}, known) for text in self.bounds)
        for turn in range(first, last, step):
            values[self.counter.name] = Value(self.counter.type, np.asarray(turn, np.int32))
            for each in self.body:
                each.run(context)
            values[self.result.name] = values[self.update.name]

    def lines(self, indent: str) -> list[str]:
        text = [f"{indent}{self.result.name} = {self.start.name}"]
        text.append(f"{indent}for {self.counter.name} in range({', '.join(self.bounds)}):")
        if any(self.counter.name in each.needs() for each in self.body):
            # In the interpreter a counter is an int. An assignment makes it a tensor.
            text.append(f"{indent}    {self.counter.name} = {self.counter.name}")
        for each in self.body:
            text += each.lines(indent + "    ")
        return [*text, f"{indent}    {self.result.name} = {self.update.name}"]

    def needs(self) -> set[str]:
        return {self.start.name, *self.uses} | set().union(*(each.needs() for each in self.body))


@dataclass(frozen=True)
class Branch:
    """An `if` on a scalar, with the results of both sides."""

    result: Variable
    condition: Variable
    sides: tuple[tuple[Any, ...], tuple[Any, ...]]
    results: tuple[Variable, Variable]

    def run(self, context: Context) -> None:
        values = context.variables
        side = 0 if bool(values[self.condition.name].data) else 1
        for each in self.sides[side]:
            each.run(context)
        values[self.result.name] = values[self.results[side].name]

    def lines(self, indent: str) -> list[str]:
        text = []
        for word, side, result in zip((f"if {self.condition.name}", "else"), self.sides, self.results, strict=True):
            text.append(f"{indent}{word}:")
            for each in side:
                text += each.lines(indent + "    ")
            text.append(f"{indent}    {self.result.name} = {result.name}")
        return text

    def needs(self) -> set[str]:
        inner = set().union(*(each.needs() for side in self.sides for each in side))
        return {self.condition.name, *(each.name for each in self.results)} | inner


def live(steps: Sequence[Any], wanted: Iterable[str]) -> tuple[Any, ...]:
    """Return those steps that something in `wanted` depends on."""
    needed, kept = set(wanted), []
    for each in reversed(steps):
        if each.result.name in needed:
            kept.append(each)
            needed |= each.needs()
    return tuple(reversed(kept))


def inner(steps: Iterable[Any]) -> Iterable[Step]:
    """Yield all assignments, including those in loops and branches."""
    for each in steps:
        match each:
            case Loop():
                yield from inner(each.body)
            case Branch():
                yield from inner([*each.sides[0], *each.sides[1]])
            case _:
                yield each


# What scans and reductions combine elements by. The first two do not commute, and the first is not associative.
FUNCTIONS = """@triton.jit
def less(a, b):
    return a * 2 - b


@triton.jit
def linear(a, b, c, d):
    return a * c, b * c + d


@triton.jit
def times(a, b):
    return a * b


@triton.jit
def most(a, b):
    return tl.maximum(a, b)


@triton.jit
def least(a, b):
    return tl.minimum(a, b)


@triton.jit
def first(a, i, b, j):
    take = (a > b) | ((a == b) & (i < j))
    return tl.where(take, a, b), tl.where(take, i, j)"""

# Atomic operations on integers whose order does not matter. The order matters to the rounding of floats.
ATOMICS: dict[str, Any] = {
    "add": np.add,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


_PARTS = ("data", "error", "fused", "open")


@dataclass(frozen=True)
class Section:
    """Steps, and the store of one of their results, or an atomic operation with it.

    Attributes:
        offset: text and meaning of each element's index in the output.
        length: number of output elements for one program, including gaps.
        atomic: the atomic operation on the output, whose elements may have several indices alike; "" for a store.
        returned: whether what the atomic operation returns is stored, in another half of the output. No two indices
            are alike then.
        descriptor: the arguments of the output's descriptor, and the offsets of the tile; () without a descriptor.
        inside: which elements are within the described part of the output.
    """

    steps: tuple[Any, ...]
    value: Variable
    offset: tuple[str, Callable[[Context], Array]]
    mask: Variable | None
    length: int
    atomic: str = ""
    returned: bool = False
    descriptor: tuple[str, ...] = ()
    inside: Callable[[Context], Array] | None = None

    def size(self, programs: int) -> int:
        """Return the number of output elements."""
        return self.length * programs * (2 if self.returned else 1)

    def lines(self, out: str, programs: int) -> list[str]:
        """Return the text that writes to the output."""
        if self.descriptor:
            arguments, starts = self.descriptor
            verb = f"atomic_{self.atomic}" if self.atomic else "store"
            return [f"tl.make_tensor_descriptor({out}, {arguments}).{verb}({starts}, {self.value.name})"]
        mask = "" if self.mask is None else f", mask={self.mask.name}"
        place = f"{out} + {self.offset[0]}"
        if not self.atomic:
            return [f"tl.store({place}, {self.value.name}{mask})"]
        change = f"tl.atomic_{self.atomic}({place}, {self.value.name}{mask})"
        return [f"tl.store({place} + {self.length * programs}, {change}{mask})" if self.returned else change]

    @property
    def plain(self) -> bool:
        """Whether the interpreter computes the whole section as the compiler does."""
        # The interpreter stores bf16 as integers, has no atomic operations on f16, and exchanges integers only.
        kind = self.value.type
        known = not self.atomic or kind.kind != "f" or (kind.bits > 16 and self.atomic != "xchg")
        known = known and not (self.atomic and self.descriptor)
        return known and all(step.plain for step in inner(self.steps))


@dataclass(frozen=True)
class Dataset:
    """The data of a launch: the kind of numbers and their seed, and the scalar arguments."""

    kind: str
    seed: int
    n: int
    m: int
    f: float


@dataclass(frozen=True)
class Kernel:
    """Sections over the same inputs.

    Attributes:
        tile: shape of a program's tile.
        types: types of the inputs, by name.
    """

    tile: Shape
    programs: int
    types: dict[str, Type]
    sections: tuple[Section, ...]
    datasets: tuple[Dataset, ...]
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def inputs(self) -> dict[str, Type]:
        """The input arrays that are read."""
        read = {name for section in self.sections for step in inner(section.steps) for name in step.arrays}
        return {name: kind for name, kind in self.types.items() if name in read}

    def source(self) -> str:
        """Return the module's text."""
        outputs = [f"out{number}" for number in range(len(self.sections))]
        parameters = ", ".join([*self.inputs, *outputs, "n", "m", "factor"])
        lines = ["import triton", "import triton.language as tl", "", "", *FUNCTIONS.splitlines(), "", ""]
        # Otherwise an n or m that is 1 or a multiple of 16 would need another compilation.
        lines += ['@triton.jit(do_not_specialize=["n", "m"])', f"def kernel({parameters}):"]
        # In the interpreter a float argument is a float. An assignment makes it a tensor.
        lines += ["    f = factor", "    pid = tl.program_id(0)"]
        if len(self.tile) == 1:
            lines.append(f"    i = tl.arange(0, {self.tile[0]})")
        else:
            lines.append(f"    r = tl.arange(0, {self.tile[0]})[:, None]")
            lines.append(f"    c = tl.arange(0, {self.tile[1]})[None, :]")
            lines.append(f"    i = r * {self.tile[1]} + c")
        for number, section in enumerate(self.sections):
            for step in section.steps:
                lines += step.lines("    ")
            lines += [f"    {line}" for line in section.lines(f"out{number}", self.programs)]
        return "\n".join(lines) + "\n"

    def arrays(self, dataset: Dataset) -> dict[str, Array]:
        """Return the input arrays that are read."""
        every = list(self.types)
        return {
            name: fill(dataset.kind, dataset.seed + every.index(name), kind.numpy, SIZE)
            for name, kind in self.inputs.items()
        }

    def expected(self, dataset: Dataset) -> list[tuple[Value, Array]]:
        """Return for each output its values, and which of them are written. The others must be unchanged."""
        inputs = self.arrays(dataset)
        results = []
        for section in self.sections:
            size = section.size(self.programs)
            kind = section.value.type
            poison = np.full(size * kind.numpy.itemsize, POISON, np.uint8).view(kind.numpy)
            out = Value(kind, poison, np.zeros(size), np.zeros(size), np.zeros(size, bool))
            written = np.zeros(size, bool)
            changes: list[tuple[Array, Value]] = []
            for pid in range(self.programs):
                context = Context(self.leaves(pid, dataset), inputs)
                with np.errstate(all="ignore"):
                    for step in section.steps:
                        step.run(context)
                    _store(section, context, out, written, changes)
            if changes:
                with np.errstate(all="ignore"):
                    _change(section, out, changes)
            results.append((out, written))
        return results

    def leaves(self, pid: int, dataset: Dataset) -> dict[str, Value]:
        """Return the variables that every kernel has."""
        from .values import F32, I32

        found = {"pid": Value(I32, np.asarray(pid, np.int32)), "f": Value(F32, np.asarray(dataset.f, np.float32))}
        found |= {"n": Value(I32, np.asarray(dataset.n, np.int32)), "m": Value(I32, np.asarray(dataset.m, np.int32))}
        if len(self.tile) == 1:
            found["i"] = Value(I32, np.arange(self.tile[0], dtype=np.int32))
        else:
            rows, columns = (np.arange(extent, dtype=np.int32) for extent in self.tile)
            found["r"], found["c"] = Value(I32, rows[:, None]), Value(I32, columns[None, :])
            found["i"] = Value(I32, (rows[:, None] * np.int32(self.tile[1]) + columns[None, :]).astype(np.int32))
        return found


def _store(section: Section, context: Context, out: Value, written: Array, changes: list[tuple[Array, Value]]) -> None:
    """Store a program's value, or note the operands of its atomic operations, whose order is open."""
    where = section.offset[1](context)
    value = context.variables[section.value.name]
    mask = np.ones(where.shape, bool) if section.inside is None else section.inside(context)
    if section.mask is not None:
        mask = np.broadcast_to(context.variables[section.mask.name].data, where.shape)
    index = where[mask]
    parts = {name: np.broadcast_to(getattr(value, name), where.shape)[mask] for name in _PARTS}
    if section.atomic:
        changes.append((index, Value(value.type, **parts)))
        written[index] = True
        if section.returned:
            before = index + out.data.size // 2
            out.data[before], written[before] = out.data[index], True
        return
    assert not written[index].any() and np.unique(index).size == index.size
    for name, part in parts.items():
        getattr(out, name)[index] = part
    written[index] = True


def _change(section: Section, out: Value, changes: list[tuple[Array, Value]]) -> None:
    """Execute the atomic operations of all programs."""
    kind = out.type
    index = np.concatenate([where for where, _ in changes])
    parts = {name: np.concatenate([getattr(value, name) for _, value in changes]) for name in _PARTS}
    if kind.kind != "f" and section.atomic != "xchg":
        ATOMICS[section.atomic].at(out.data, index, parts["data"])
        np.logical_or.at(out.open, index, parts["open"])
        return
    places, counts = np.unique(index, return_counts=True)
    if counts.max(initial=1) == 1:
        old, new = Value(kind, out.data[index]), Value(kind, **parts)
        if section.atomic == "add":
            new = arithmetic("+", old, new)
        elif section.atomic != "xchg":
            rows = {name: np.stack([old.full(name), new.full(name)]) for name in _PARTS}
            new = accumulated(section.atomic, Value(kind, **rows))
        for name in _PARTS:
            getattr(out, name)[index] = new.full(name)
        return
    for place in places:
        rows = {name: np.append(getattr(out, name)[place], part[index == place]) for name, part in parts.items()}
        new = accumulated(section.atomic, Value(kind, **{name: part[:, None] for name, part in rows.items()}))
        for name in _PARTS:
            getattr(out, name)[place] = new.full(name)[0]


def binary(sign: str, a: Value, b: Value) -> Value:
    """Apply an operator of Triton to two values of a type."""
    return arithmetic(sign, a, b) if a.type.kind == "f" else integral(sign, a, b)
