"""Draw kernels with hypothesis.

A section is a list of assignments, each with one operation on earlier values. Hypothesis shrinks a kernel by removing
assignments. Assignments that the stored value does not depend on are not printed. Drawn kernels are defined: no
integer division by zero, no shift by the width or more, no address or condition that depends on an open value (see
values.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from hypothesis import strategies as st

from . import values
from .program import (
    ATOMICS,
    SIZE,
    Branch,
    Compute,
    Context,
    Dataset,
    Kernel,
    Loop,
    Section,
    Shape,
    Step,
    Variable,
    binary,
    live,
)
from .values import F32, F64, FLOATS, I1, I32, INTEGERS, TYPES, Array, Type, Value

Draw = Callable[[Any], Any]


@dataclass(frozen=True)
class Limits:
    """Bounds of a target's random kernels.

    Attributes:
        without: operations that the target refuses for a documented reason. Tests of refusals use them.
        elements: maximum number of elements in a tile.
        sections, steps: maximum number of sections in a kernel, and of steps in a section.
        options: options of a launch, one of which is drawn.
    """

    without: frozenset[str] = frozenset()
    elements: int = 1024
    sections: int = 4
    steps: int = 12
    options: tuple[dict[str, Any], ...] = ({},)


_FLOAT_LITERALS = ["0.0", "1.0", "-1.0", "0.5", "2.0", "3.0", "-0.0", "float('inf')", "-0.25"]
_COMPARISONS = ["<", "<=", ">", ">=", "==", "!="]
_SCANS = ("cumsum", "cumprod", "scan", "scan_pairs")
# Those of integers of any width: the running maximum and minimum, and the largest element with its first place.
_ORDERED = ("scan_most", "scan_least", "reduce_first", "reduce_place", "scan_first", "scan_place")
_FUNCTIONS = [name for name in values.FUNCTIONS if name != "sqrt_rn"]


@dataclass
class _Builder:
    """Draws steps into a list. `known` are the variables that they may use."""

    draw: Draw
    limits: Limits
    tile: Shape
    types: dict[str, Type]
    known: list[Variable]
    prefix: str
    count: list[int] = field(default_factory=lambda: [0])
    depth: int = 0
    steps: list[Any] = field(default_factory=list)

    def name(self) -> str:
        self.count[0] += 1
        return f"{self.prefix}{self.count[0]}"

    def pick(self, choices: Sequence[Any]) -> Any:
        return self.draw(st.sampled_from(list(choices)))

    def flag(self) -> bool:
        return bool(self.draw(st.booleans()))

    def add(
        self,
        type: Type,
        shape: Shape,
        text: str,
        uses: Sequence[Variable],
        compute: Compute,
        *,
        safe: bool = False,
        exact: bool = False,
        arrays: tuple[str, ...] = (),
        plain: bool = True,
    ) -> Variable:
        result = Variable(self.name(), type, shape, safe, exact)
        names = tuple(each.name for each in uses)
        self.steps.append(Step(result, text, names, compute, arrays, plain))
        self.known.append(result)
        return result

    def change(
        self,
        a: Variable,
        text: str,
        function: Callable[[Value], Value],
        kind: Type | None = None,
        *,
        safe: bool = False,
        exact: bool = False,
        plain: bool = True,
    ) -> Variable:
        """Add a step that computes of one variable a tile of the same shape, of its type if no other is given."""
        compute: Compute = lambda known: function(known.variables[a.name])  # noqa: E731
        return self.add(kind or a.type, a.shape, text, [a], compute, safe=safe, exact=exact, plain=plain)

    def variable(self, accept: Callable[[Variable], bool] = lambda _: True) -> Variable | None:
        """Draw an accepted variable. The last one comes first, because hypothesis takes the first for the simplest."""
        found = [each for each in reversed(self.known) if accept(each)]
        return self.pick(found) if found else None

    # Leaves

    def load(self) -> Variable:
        """Add a load. Its addresses are safe and within the array, and its mask is safe."""
        array = self.pick(list(self.types))
        kind = self.types[array]
        if _has_descriptors(kind, self.tile) and self.draw(st.integers(0, 3)) == 3:
            return self.described(array)
        offset, shape, index, uses = self.address()
        masks = self.masks(shape)
        kinds = ["none", "none", "n", "n"] + ["variable"] * bool(masks)
        mask = self.mask(self.pick(kinds), masks, shape)
        if mask is None:
            text = f"tl.load({array} + {offset})"
            return self.add(
                kind,
                shape,
                text,
                uses,
                lambda known: Value(kind, known.inputs[array][index(known)]),
                safe=True,
                exact=True,
                arrays=(array,),
            )
        literal = self.literal(kind) if self.draw(st.integers(0, 4)) else None
        other = "" if literal is None else f", other={literal[0]}"

        def masked(known: Context) -> Value:
            taken = np.broadcast_to(known.variables[mask.name].data, shape)
            where = np.where(taken, index(known), 0)
            rest = np.zeros((), kind.numpy) if literal is None else literal[1].data
            return Value(kind, np.where(taken, known.inputs[array][where], rest), open=~taken & (literal is None))

        text = f"tl.load({array} + {offset}, mask={mask.name}{other})"
        defined = literal is not None
        # The interpreter has 0.0 in place of a scalar -0.0.
        plain = bool(shape) or other != ", other=-0.0"
        return self.add(
            kind, shape, text, [*uses, mask], masked, safe=defined, exact=True, arrays=(array,), plain=plain
        )

    def described(self, array: str) -> Variable:
        """Add a load by a descriptor of a part of an array; elements outside of the part are zeros or NaN."""
        kind, starts = self.types[array], [self.start(extent) for extent in self.tile]
        # The interpreter refuses a row that does not start at a multiple of 16 bytes.
        plain = starts[-1][3] * kind.bits % 128 == 0
        shape = tuple(self.pick([1, 5, 40]) for _ in self.tile)
        text, strides = _descriptor(kind, shape, self.tile, self.pick([0, 1]))
        nan = kind.kind == "f" and self.flag()
        other = np.array(np.nan if nan else 0, kind.numpy)

        def loaded(known: Context) -> Value:
            index, inside = _tile(self.tile, shape, strides, [start(known) for _, start, _, _ in starts])
            return Value(kind, np.where(inside, known.inputs[array][np.where(inside, index, 0)], other))

        offsets, padding = ", ".join(text for text, _, _, _ in starts), ', padding_option="nan"'
        return self.add(
            kind,
            self.tile,
            f"tl.make_tensor_descriptor({array}, {text}{padding * nan}).load([{offsets}])",
            [each for _, _, used, _ in starts for each in used],
            loaded,
            safe=True,
            exact=True,
            arrays=(array,),
            plain=plain,
        )

    def start(self, extent: int) -> tuple[str, Callable[[Context], int], list[Variable], int]:
        """Return the offset of a tile along one dimension: text, meaning, variables, a number that divides it."""
        scalars = [each for each in self.known if each.type == I32 and each.safe and not each.shape]
        match self.pick(["zero", "number", "pid", "scalar"]):
            case "number":
                number = self.pick([3, -2, extent])
                return str(number), lambda _: number, [], number
            case "pid":
                return f"pid * {extent}", lambda known: int(_at(known, "pid")) * extent, [], extent
            case "scalar":
                each = self.pick(scalars)
                return f"({each.name} & 31) - 9", lambda known: (int(_at(known, each.name)) & 31) - 9, [each], 1
        return "0", lambda _: 0, [], 0

    def mask(self, kind: str, masks: Sequence[Variable], shape: Shape) -> Variable | None:
        """Return a mask for tiles of this shape, or None."""
        if kind == "none":
            return None
        if kind == "variable":
            found: Variable = self.pick(masks)
            return found
        fitting = [each for each in self.leaves() if _fits(each.shape, shape) and bool(each.shape) == bool(shape)]
        if not fitting:  # for tiles of one element, which reductions make
            return None
        index = self.pick(fitting)
        whole = self.flag() and index.shape == self.tile
        size = int(np.prod(self.tile))
        text = f"pid * {size} + {index.name} < n" if whole else f"{index.name} < n"

        def below(known: Context) -> Value:
            first = known.variables["pid"].data * size if whole else 0
            return Value(I1, np.asarray(known.variables[index.name].data + first < known.variables["n"].data))

        return self.add(I1, index.shape, text, [index], below, safe=True)

    def leaves(self) -> list[Variable]:
        names = ("pid", "i") if len(self.tile) == 1 else ("pid", "i", "r", "c")
        return [each for each in self.known if each.name in names]

    def masks(self, shape: Shape) -> list[Variable]:
        """Return the variables that can mask tiles of this shape. Scalars are rare: the interpreter refuses them."""
        scalars = not shape or self.draw(st.integers(0, 9)) == 9
        found = [each for each in self.known if each.type == I1 and each.safe and _fits(each.shape, shape)]
        return [each for each in found if each.shape or scalars]

    def address(self) -> tuple[str, Shape, Callable[[Context], Array], list[Variable]]:
        """Return text, shape, meaning and variables of an index between 0 and SIZE."""
        size, full = int(np.prod(self.tile)), self.tile
        assert size * 5 + 8 < SIZE
        i = next(each for each in self.known if each.name == "i")
        safe = [each for each in self.known if each.type.kind in "iu" and each.safe and each.name not in ("n", "m")]
        kinds = ["linear", "linear", "strided", "reversed", "runtime", "scalar", "computed", "computed"]
        match self.pick(kinds + ["rows"] * (len(full) == 2)):
            case "linear":
                return f"pid * {size} + i", full, lambda known: _at(known, "pid") * size + _at(known, "i"), [i]
            case "strided":
                step, first = self.pick([0, 2, 3, 5]), self.pick([0, 1, 7])
                return f"i * {step} + {first}", full, lambda known: _at(known, "i") * step + first, [i]
            case "reversed":
                return f"({size - 1} - i)", full, lambda known: size - 1 - _at(known, "i"), [i]
            case "runtime":
                return "i * m", full, lambda known: _at(known, "i") * _at(known, "m"), [i]
            case "rows":
                across, down = self.pick([(1, full[1]), (full[0], 1), (1, full[1] + 3), (0, 1), (1, 0)])
                text = f"r * {down} + c * {across}"
                uses = [each for each in self.known if each.name in ("r", "c")]
                return text, full, lambda known: _at(known, "r") * down + _at(known, "c") * across, uses
            case "scalar":
                first = self.pick([0, 3])
                return f"pid + {first}", (), lambda known: np.asarray(_at(known, "pid") + first), []
        index, least = self.pick(list(reversed(safe))), self.pick([1, 15, 63, 1023])
        text = f"({index.name}{'.to(tl.int32)' if index.type.bits <= 16 else ''} & {least})"
        return text, index.shape, lambda known: known.variables[index.name].data.astype(np.int64) & least, [index]

    def literal(self, kind: Type) -> tuple[str, Value]:
        """Return text and value of a number of a type."""
        if kind.kind == "f":
            text = self.pick(_FLOAT_LITERALS)
            return text, values.number(kind, float(eval(text)))
        if kind.kind == "b":
            taken = self.flag()
            return str(taken), values.number(kind, taken)
        info = np.iinfo(kind.numpy)
        number = self.pick([1, 0, 2, 3, 7, 100, info.max] + ([-1, -3, info.min + 1] if info.min else []))
        return (f"({number})" if number < 0 else str(number)), Value(kind, np.asarray(number, kind.numpy))

    # Operations

    def operand(self, kind: Type, shape: Shape | None = None) -> Variable:
        """Return a variable of this type that broadcasts to `shape`. It is cast if necessary."""
        fitting = [each for each in reversed(self.known) if shape is None or _fits(each.shape, shape)]
        same = [each for each in fitting if each.type == kind]
        if same and self.draw(st.integers(0, 3)):
            found: Variable = self.pick(same)
            return found
        # `fitting` is never empty: i and pid fit any shape, or there is a scalar.
        return self.cast(self.pick(fitting), kind)

    def cast(self, a: Variable, kind: Type) -> Variable:
        """Return `a` cast to a type; `a` itself if it has the type."""
        if a.type == kind:
            return a
        if kind.kind == "b" or (a.type.kind == "f" and kind.kind in "iu"):
            safe = a.safe and (a.type.kind != "f" or (kind.kind == "b" and a.exact))
        else:
            safe = a.safe
        exact = a.type.kind != "f" or (a.exact and kind.kind == "f" and kind.bits >= a.type.bits)
        # The interpreter cuts off what bf16 does not have.
        plain = kind.name != "bf16"
        # A condition on a scalar float keeps the float's type in the interpreter, which then repeats it as a float.
        plain = plain and not (kind.kind == "b" and a.type.kind == "f" and not a.shape)
        text, exact = f"{a.name}.to(tl.{kind.triton})", exact and kind.kind == "f"
        return self.change(a, text, lambda x: values.cast(x, kind), kind, safe=safe, exact=exact, plain=plain)

    def second(self, a: Variable) -> tuple[str, Compute, list[Variable]]:
        """Return a second operand of a's type: a variable or a number."""
        if self.draw(st.integers(0, 2)) == 0:
            text, value = self.literal(a.type)
            return text, lambda _: value, []
        b = self.operand(a.type)
        return b.name, lambda known: known.variables[b.name], [b]

    def operation(self) -> Variable:
        """Add a step with one operation on a variable."""
        a = self.variable()
        assert a is not None
        if self.depth < 2 and self.draw(st.integers(0, 7)) == 7:
            return self.loop(a) if self.flag() else self.branch(a)
        names = ["cast", "where", "compare"]
        if a.type.kind == "f":
            names += ["+", "-", "*", "min", "max", "negate", "abs", "fp8"] + ["towards zero"] * (a.type.bits > 16)
            if a.type in (F32, F64):
                names += ["/", "%", "function", "function", "fma", "floor", "ceil", "clamp"]
        elif a.type.kind in "iu":
            names += ["+", "-", "*", "&", "|", "^", "//", "%", "<<", ">>", "min", "max", "abs", "invert"]
            names += ["negate"] * (a.type.kind == "i") + ["umulhi"] * (a.type.bits >= 32)
        else:
            names += ["&", "|", "^", "invert"]
        if a.type.kind != "b" and a.type.bits >= 32 and a.shape:
            names += ["sum", "max_of", "min_of", "argmax", "argmin"] + ["xor_sum"] * (a.type.kind != "f")
            names += [*_SCANS, "reduce_pairs"] * (a.type.kind != "f")
            names += ["sort", "flip"] * (a.type.kind != "f" and a.shape[-1] > 1)
            names += ["histogram"] * (a.type == I32 and a.shape == self.tile and len(a.shape) == 1)
        if a.type.kind in "iu" and a.shape:
            names += _ORDERED
        if a.type.kind == "f" and a.shape:
            names += ["long"] + ["sum"] * (a.type.bits < 32)
        if a.type.kind in "iuf" and a.type.bits >= 16 and _float_of(a.type.bits).name not in self.limits.without:
            names += ["bitcast"]
        if a.shape == self.tile and len(a.shape) == 2:
            names += ["trans"]
        if a.shape == self.tile:
            names += ["halves"] + ["dot"] * (a.type.kind in "iu" and self.square() is not None)
        if a.shape and any(each.safe and each.type.kind in "iu" and each.shape == a.shape for each in self.known):
            names += ["gather"]
        names += ["load"]
        return self.named(self.pick([name for name in names if name not in self.limits.without]), a)

    def named(self, name: str, a: Variable) -> Variable:
        kind = a.type
        plain = kind.name != "bf16"
        match name:
            case "load":
                return self.load()
            case "cast":
                target = self.pick(
                    [each for each in TYPES.values() if each != kind and each.name not in self.limits.without]
                )
                return self.cast(a, target)
            case "where":
                return self.where(a)
            case "compare":
                sign = self.pick(_COMPARISONS)
                text, other, uses = self.second(a) if kind != I1 else self.variable_of(a)
                safe = a.safe and all(each.safe for each in uses)
                safe = safe and (kind.kind != "f" or (a.exact and all(each.exact for each in uses)))
                compute = partial(_two, lambda x, y: values.compared(sign, x, y), a.name, other)
                shape = _joined(a, *uses)
                # As a cast to i1.
                plain = plain and not (kind.kind == "f" and not shape)
                return self.add(I1, shape, f"{a.name} {sign} {text}", [a, *uses], compute, safe=safe, plain=plain)
            case "+" | "-" | "*" | "/" | "&" | "|" | "^" | "//" | "%" | "<<" | ">>" | "min" | "max" | "umulhi":
                return self.two(name, a, plain)
            case "negate" | "abs" | "invert":
                changes = {"negate": _negated, "abs": values.absolute, "invert": values.inverted}
                text = {"negate": f"-{a.name}", "abs": f"tl.abs({a.name})", "invert": f"~{a.name}"}[name]
                # These change the sign, also of a NaN. In the interpreter, bf16 values are integers with another sign.
                return self.change(a, text, changes[name], safe=a.safe, exact=a.exact, plain=plain)
            case "function":
                allowed = [each for each in _FUNCTIONS if each not in self.limits.without]
                if kind == F64:
                    allowed = [each for each in allowed if f"{each}_f64" not in self.limits.without]
                each = self.pick([*allowed, "sqrt_rn"] if kind == F32 else allowed or ["floor"])
                return self.unary(each, a)
            case "floor" | "ceil":
                return self.unary(name, a)
            case "fma":
                b, c = self.operand(kind), self.operand(kind)
                text, all_three = f"tl.fma({a.name}, {b.name}, {c.name})", [a, b, c]
                return self.add(
                    *(kind, _joined(a, b, c), text, all_three),
                    lambda known: values.fused(*(known.variables[each.name] for each in all_three)),
                )
            case "clamp":
                high = self.pick(["1.0", "2.0"])

                def clamped(x: Value) -> Value:
                    y = values.chosen("max", x, values.number(kind, -1.0))
                    y = values.chosen("min", y, values.number(kind, float(high)))
                    return Value(kind, y.data, y.error, y.fused, y.open | np.isnan(x.data))

                return self.change(a, f"tl.clamp({a.name}, -1.0, {high})", clamped)
            case "bitcast":
                return self.bitcast(a)
            case "fp8" | "towards zero":
                return self.narrow(a, name == "fp8")
            case "trans":
                rows, columns = self.tile
                text = f"tl.reshape(tl.trans({a.name}), ({rows}, {columns}))"
                if rows == columns:
                    text = f"tl.trans({a.name})"
                return self.change(a, text, lambda x: _transposed(x, (rows, columns)), safe=a.safe, exact=a.exact)
            case "cumsum" | "cumprod" | "scan" | "scan_pairs" | "reduce_pairs":
                return self.combine(name, a)
            case _ if name in _ORDERED:
                return self.ordered(name, a)
            case "sort":
                down = self.flag()
                text = f"tl.sort({a.name}{', descending=True' * down})"
                return self.change(a, text, lambda x: _turned(values.sorted_rows(x), down), safe=a.safe)
            case "flip":
                text = f"tl.flip({a.name}, {len(a.shape) - 1})"
                return self.change(a, text, lambda x: _turned(x, True), safe=a.safe)
            case "histogram":
                text = f"tl.histogram({a.name}, {a.shape[0]})"
                return self.change(a, text, values.counted, I32, safe=a.safe)
            case "gather":
                return self.gather(a)
            case "halves":
                return self.halves(a)
            case "dot":
                return self.dot(a)
            case "long":
                return self.long(a)
        return self.reduce(name, a)

    def gather(self, a: Variable) -> Variable:
        """Add a gather along an axis. The index is within the tile."""
        axis = self.draw(st.integers(0, len(a.shape) - 1))
        index = self.variable(lambda each: each.safe and each.type.kind in "iu" and each.shape == a.shape)
        assert index is not None
        place, last = index.name, a.shape[axis] - 1
        text = f"tl.gather({a.name}, {place}{'.to(tl.int32)' * (index.type.bits <= 16)} & {last}, {axis})"

        def gathered(known: Context) -> Value:
            value, at = known.variables[a.name], known.variables[place].data.astype(np.int64) & last
            return _each_part(lambda part: np.take_along_axis(part, at, axis), value)

        return self.add(a.type, a.shape, text, [a, index], gathered, safe=a.safe, exact=a.exact)

    def halves(self, a: Variable) -> Variable:
        """Add every other element of the elements of two tiles, one after the other, in the tile's shape."""
        b, number, rank = self.operand(a.type, a.shape), self.draw(st.integers(0, 1)), len(a.shape)
        order = ", ".join(map(str, (rank, *range(rank))))
        pairs = ", ".join(map(str, (*a.shape, 2)))
        text = f"tl.split(tl.reshape(tl.permute(tl.join({a.name}, {b.name}), {order}), ({pairs})))[{number}]"

        def chosen(known: Context) -> Value:
            return _each_part(
                lambda *parts: np.concatenate([part.ravel() for part in parts])[number::2].reshape(a.shape),
                *(known.variables[each.name] for each in (a, b)),
            )

        return self.add(a.type, a.shape, text, [a, b], chosen, safe=a.safe and b.safe, exact=a.exact and b.exact)

    def square(self) -> tuple[int, int] | None:
        """Return (B, M) such that B tiles (M, M) have as many elements as the tile, M as large as possible."""
        size = int(np.prod(self.tile))
        return next(((size // m**2, m) for m in (16, 8, 4, 2, 1) if size % m**2 == 0), None)

    def dot(self, a: Variable) -> Variable:
        """Add a product of tiles of i8, or of a batch of them, in the tile's shape."""
        found = self.square()
        assert found is not None
        count, extent = found
        shape = (count, extent, extent) if count > 1 or self.flag() else (extent, extent)
        factors = [self.cast(each, TYPES["i8"]) for each in (a, self.operand(I32, a.shape))]
        written = ", ".join(f"tl.reshape({_full(each, a.shape)}, {shape})" for each in factors)

        def product(known: Context) -> Value:
            x, y = (known.variables[each.name] for each in factors)
            parts = [np.broadcast_to(each.data, a.shape).reshape(shape).astype(np.int32) for each in (x, y)]
            opens = [np.broadcast_to(each.open, a.shape).reshape(shape) for each in (x, y)]
            open = opens[0].any(-1, keepdims=True) | opens[1].any(-2, keepdims=True)
            return Value(I32, (parts[0] @ parts[1]).reshape(a.shape), open=open.reshape(a.shape))

        text = f"tl.reshape(tl.dot({written}), {a.shape})"
        return self.add(I32, a.shape, text, factors, product, safe=all(each.safe for each in factors))

    def variable_of(self, a: Variable) -> tuple[str, Compute, list[Variable]]:
        b = self.operand(a.type)
        return b.name, lambda known: known.variables[b.name], [b]

    def two(self, name: str, a: Variable, plain: bool) -> Variable:
        """Add an operator, or a function of two, on `a` and an operand of the same type."""
        kind = a.type
        text, other, uses = self.second(a)
        if kind.kind in "iu" and name in ("//", "%"):
            if uses:  # between 1 and 16
                text, raw = f"(({text} & 15) + 1)", other
                other = lambda known: _small(raw(known), 15, 1)  # noqa: E731
            else:
                number = self.pick([1, 2, 3, 7, 16, 100] + ([-2, -3] if kind.kind == "i" else []))
                text, fixed = f"({number})", Value(kind, np.asarray(number, kind.numpy))
                other = lambda _: fixed  # noqa: E731
        elif name in ("<<", ">>"):
            if uses:
                text, raw = f"({text} & {kind.bits - 1})", other
                other = lambda known: _small(raw(known), kind.bits - 1, 0)  # noqa: E731
            else:
                number = self.draw(st.integers(0, kind.bits - 1))
                text, fixed = str(number), Value(kind, np.asarray(number, kind.numpy))
                other = lambda _: fixed  # noqa: E731
        safe = a.safe and all(each.safe for each in uses) and kind.kind != "f"
        shape = _joined(a, *uses)
        function: Callable[[Value, Value], Value] = partial(binary, name)
        written, exact = f"{a.name} {name} {text}", False
        if name in ("min", "max"):
            nan = kind.kind == "f" and self.flag()
            extra = ", propagate_nan=tl.PropagateNan.ALL" * nan
            written = f"tl.{name}imum({a.name}, {text}{extra})"
            function = partial(values.chosen, name, propagate=nan)
        elif name == "umulhi":
            if not uses:
                b = self.operand(kind)
                text, other, uses = b.name, (lambda known: known.variables[b.name]), [b]
                shape, safe = _joined(a, b), a.safe and b.safe
            written = f"tl.umulhi({a.name}, {text})"
            # The interpreter of 3.6 extends the sign.
            plain = plain and kind.kind == "u"
        elif name == "%" and kind.kind == "f":
            function = values.fractional_remainder
        compute = partial(_two, function, a.name, other)
        return self.add(kind, shape, written, [a, *uses], compute, safe=safe, exact=exact, plain=plain)

    def where(self, a: Variable) -> Variable:
        condition = self.variable(lambda each: each.type == I1 and each != a)
        if condition is None:
            index = self.pick([each for each in self.known if each.type == I32 and each.safe])
            number = self.draw(st.integers(0, 9))
            condition = self.add(
                I1,
                index.shape,
                f"{index.name} < {number}",
                [index],
                lambda known: Value(I1, np.asarray(known.variables[index.name].data < number)),
                safe=True,
            )
        text, other, uses = self.second(a) if a.type != I1 else self.variable_of(a)
        chosen, first = condition, self.flag()
        pair = f"{a.name}, {text}" if first else f"{text}, {a.name}"

        def pick(known: Context) -> Value:
            x, y = known.variables[a.name], other(known)
            return values.selected(known.variables[chosen.name], *((x, y) if first else (y, x)))

        return self.add(
            a.type,
            _joined(a, chosen, *uses),
            f"tl.where({chosen.name}, {pair})",
            [chosen, a, *uses],
            pick,
            safe=all(each.safe for each in (chosen, a, *uses)),
            exact=a.exact and all(each.exact for each in uses),
        )

    def unary(self, name: str, a: Variable) -> Variable:
        return self.change(a, f"tl.{name}({a.name})", lambda x: values.function(name, x))

    def bitcast(self, a: Variable) -> Variable:
        """Add a bitcast between an integer and a float. The bits of a NaN, and of an inexact value, are open."""
        kind = TYPES[{16: "i16", 32: "i32", 64: "i64"}[a.type.bits]] if a.type.kind == "f" else _float_of(a.type.bits)

        def cast(x: Value) -> Value:
            open = x.open | ((x.error > 0) | np.isnan(values.wide(x))) if a.type.kind == "f" else x.open
            return Value(kind, np.asarray(x.data).view(kind.numpy), open=open)

        text = f"{a.name}.to(tl.{kind.triton}, bitcast=True)"
        is_float = a.type.kind == "f"
        return self.change(a, text, cast, kind, safe=a.safe and not is_float, exact=not is_float)

    def narrow(self, a: Variable, fp8: bool) -> Variable:
        """Add a conversion to an fp8 type and on to f32, or to a narrower float towards zero."""
        if fp8:
            rounding, triton, kind = self.pick(["rtne", "rtz"]), self.pick(list(values.FP8)), F32
            narrow = values.FP8[triton]
            text = f'{a.name}.to(tl.{triton}, fp_downcast_rounding="{rounding}").to(tl.float32)'
        else:
            rounding, kind = "rtz", self.pick([each for each in FLOATS if each.bits < a.type.bits])
            narrow = kind.numpy
            text = f'{a.name}.to(tl.{kind.triton}, fp_downcast_rounding="rtz")'
        # The interpreter rounds fp8 and towards zero in its own way.
        return self.change(
            a, text, lambda x: values.narrowed(x, kind, narrow, rounding), kind, exact=a.exact, plain=False
        )

    def reduce(self, name: str, a: Variable) -> Variable:
        operation = {"max_of": "max", "min_of": "min"}.get(name, name)
        axis = self.draw(st.integers(0, len(a.shape) - 1))
        # The reduced axis is kept with one element, so that the result broadcasts.
        keep = len(a.shape) == 2 or self.flag()
        kept = tuple(1 if dimension == axis else extent for dimension, extent in enumerate(a.shape))
        shape = kept if keep else ()
        kind = I32 if name in ("argmax", "argmin") else a.type
        text = f"tl.{operation}({a.name}, {axis}{', keep_dims=True' * keep})"

        def compute(known: Context) -> Value:
            value = known.variables[a.name]
            found = values.reduced(operation, value, axis)
            if keep:
                return found
            flat = {
                part: np.broadcast_to(getattr(found, part), kept).reshape(()) for part in ("error", "fused", "open")
            }
            return Value(kind, found.data.reshape(()), **flat)

        # The interpreter may round each partial sum to 16 bits.
        plain = a.type.kind != "f" or a.type.bits >= 32
        return self.add(kind, shape, text, [a], compute, safe=a.safe and a.type.kind != "f", plain=plain)

    def long(self, a: Variable) -> Variable:
        """Add the sum or the product of numbers near 1 along an axis: of 1024, both are in the range of f16."""
        adds = self.flag()
        axis, ends = self.draw(st.integers(0, len(a.shape) - 1)), (0.9921875, 1.0078125)
        near = f"tl.minimum(tl.maximum({a.name}, {ends[0]}), {ends[1]})"
        text = f"tl.sum({near}, {axis}" if adds else f"tl.reduce({near}, {axis}, times"

        def compute(known: Context) -> Value:
            low, high = (values.number(a.type, end) for end in ends)
            each = values.chosen("min", values.chosen("max", known.variables[a.name], low), high)
            return values.reduced("sum", each, axis) if adds else values.multiplied(each, axis)

        shape = tuple(1 if dimension == axis else extent for dimension, extent in enumerate(a.shape))
        return self.add(a.type, shape, f"{text}, keep_dims=True)", [a], compute, plain=a.type.bits >= 32)

    def combine(self, name: str, a: Variable) -> Variable:
        """Add a scan of integers, or a reduction of two operands."""
        axis, reverse = self.draw(st.integers(0, len(a.shape) - 1)), name != "reduce_pairs" and self.flag()
        pair, end = f"({a.name}, {a.name} + 1), {axis}", ", reverse=True" * reverse
        text = {
            "cumsum": f"tl.cumsum({a.name}, {axis}{end})",
            "cumprod": f"tl.cumprod({a.name}, {axis}{end})",
            "scan": f"tl.associative_scan({a.name}, {axis}, less{end})",
            "scan_pairs": f"tl.associative_scan({pair}, linear{end})[1]",
            "reduce_pairs": f"tl.reduce({pair}, linear, keep_dims=True)[1]",
        }[name]
        function = {"cumsum": "add", "cumprod": "multiply", "scan": "less"}.get(name, "linear")
        keep = name in _SCANS
        shape = a.shape if keep else tuple(1 if d == axis else extent for d, extent in enumerate(a.shape))
        return self.add(
            *(a.type, shape, text, [a]),
            lambda known: values.combined(function, known.variables[a.name], axis, reverse, keep=keep),
            safe=a.safe,
        )

    def ordered(self, name: str, a: Variable) -> Variable:
        """Add a running maximum or minimum, or one part of the largest element and its first place along an axis."""
        keep, function = name.startswith("scan"), name.partition("_")[2]
        axis, reverse = self.draw(st.integers(0, len(a.shape) - 1)), keep and self.flag()
        end = f"{', reverse=True' * reverse})" if keep else ", keep_dims=True)"
        call = "tl.associative_scan" if keep else "tl.reduce"
        if function in ("most", "least"):
            text = f"{call}({a.name}, {axis}, {function}{end}"
        else:
            along = ", ".join(":" if d == axis else "None" for d in range(len(a.shape)))
            places = f"tl.broadcast_to(tl.arange(0, {a.shape[axis]})[{along}], {a.shape})"
            text = f"{call}(({a.name}, {places}), {axis}, first{end}[{int(function == 'place')}]"
        return self.add(
            I32 if function == "place" else a.type,
            a.shape if keep else tuple(1 if d == axis else extent for d, extent in enumerate(a.shape)),
            text,
            [a],
            lambda known: values.ordered(function, known.variables[a.name], axis, reverse, keep=keep),
            safe=a.safe,
        )

    def inside(self, extra: Sequence[Variable], count: int) -> _Builder:
        """Return a builder for a nested block, which may use all variables that are known here."""
        known = [*self.known, *extra]
        builder = replace(self, known=known, depth=self.depth + 1, steps=[])
        for _ in range(self.draw(st.integers(0, count))):
            builder.operation()
        return builder

    def last(self, a: Variable) -> Variable:
        """Add an operator on `a` and an operand that broadcasts to it. The result has a's type and shape."""
        b = self.operand(a.type, a.shape)
        if a.type.kind == "b":
            sign = self.pick(["&", "|", "^"])
        else:
            sign = self.pick(["+", "-", "*"] if a.type.kind == "f" else ["+", "-", "*", "^", "&", "|"])
        compute = partial(_two, partial(binary, sign), a.name, lambda known: known.variables[b.name])
        safe = a.safe and b.safe and a.type.kind != "f"
        plain = a.type.name != "bf16"
        return self.add(a.type, a.shape, f"{a.name} {sign} {b.name}", [a, b], compute, safe=safe, plain=plain)

    def loop(self, a: Variable) -> Variable:
        # Whether the result is safe depends on the body, which is drawn later. Therefore it counts as not safe.
        result = Variable(self.name(), a.type, a.shape)
        counter = Variable(self.name(), I32, (), safe=True)
        body = self.inside([result, counter], 3)
        update = body.last(result)
        bounds = (self.pick(["0", "1", "pid"]), self.pick(["3", "5", "m", "pid + 2", "0", "1"]), self.pick(["1", "2"]))
        steps = live(body.steps, [update.name])
        self.steps.append(Loop(result, a, counter, bounds, steps, update, ("pid", "m")))
        self.known.append(result)
        return result

    def branch(self, a: Variable) -> Variable:
        condition = self.variable(lambda each: each.type == I1 and each.shape == () and each.safe)
        if condition is None or self.flag():
            left, number = self.pick(["pid", "n", "m"]), self.draw(st.integers(0, 5))
            sign = self.pick(["==", ">", "<="])
            condition = self.add(
                I1,
                (),
                f"{left} {sign} {number}",
                [],
                lambda known: values.compared(sign, known.variables[left], values.number(I32, number)),
                safe=True,
            )
        sides, results = [], []
        for _ in range(2):
            builder = self.inside([], 2)
            results.append(builder.last(a))
            sides.append(live(builder.steps, [results[-1].name]))
        result = Variable(self.name(), a.type, a.shape, all(each.safe for each in results))
        self.steps.append(Branch(result, condition, (sides[0], sides[1]), (results[0], results[1])))
        self.known.append(result)
        return result


def _has_descriptors(kind: Type, tile: Shape) -> bool:
    """Return whether Triton has descriptors of tiles of this type: their rows have at least 16 bytes."""
    return kind.kind != "b" and tile[-1] * kind.bits >= 128


def _descriptor(kind: Type, shape: Shape, tile: Shape, gap: int) -> tuple[str, Shape]:
    """Return the arguments of a descriptor, and the strides: rows are multiples of 16 bytes apart, with a gap."""
    least = 128 // kind.bits
    strides = ((shape[-1] + least - 1) // least * least + gap * least, 1)[2 - len(shape) :]
    return f"shape={list(shape)}, strides={list(strides)}, block_shape={list(tile)}", strides


def _tile(tile: Shape, shape: Shape, strides: Shape, starts: Sequence[int]) -> tuple[Array, Array]:
    """Return the index of each element of a descriptor's tile, and which of them exist."""
    index, inside = np.zeros(tile, np.int64), np.ones(tile, bool)
    for places, extent, stride, start in zip(np.indices(tile), shape, strides, starts, strict=True):
        index += (places + start) * stride
        inside &= (places + start >= 0) & (places + start < extent)
    return index, inside


def _at(known: Context, name: str) -> Array:
    return known.variables[name].data.astype(np.int64)


def _two(function: Callable[[Value, Value], Value], a: str, b: Compute, known: Context) -> Value:
    return function(known.variables[a], b(known))


def _negated(a: Value) -> Value:
    return values.negated(a) if a.type.kind == "f" else Value(a.type, (-a.data).astype(a.type.numpy), open=a.open)


def _small(a: Value, mask: int, plus: int) -> Value:
    kind = a.type.numpy
    return Value(a.type, ((a.data & kind.type(mask)) + kind.type(plus)).astype(kind), open=a.open)


def _full(a: Variable, shape: Shape) -> str:
    """Return the text of a variable as a tile of this shape."""
    return a.name if a.shape == shape else f"tl.broadcast_to({a.name}, {shape})"


def _each_part(move: Callable[..., Array], *of: Value) -> Value:
    """Return a value whose elements, with their errors, come from other places of values of one shape."""
    shape = np.broadcast_shapes(*(each.data.shape for each in of))
    parts = {
        name: move(*(np.broadcast_to(getattr(each, name), shape) for each in of))
        for name in ("data", "error", "fused", "open")
    }
    return Value(of[0].type, **parts)


def _turned(a: Value, turn: bool) -> Value:
    """Return a value with its last dimension reversed, if `turn` is set."""
    return _each_part(lambda part: part[..., :: -1 if turn else 1], a)


def _transposed(a: Value, shape: Shape) -> Value:
    return _each_part(lambda part: part.T.reshape(shape), a)


def _float_of(bits: int) -> Type:
    return TYPES[f"f{bits}"]


def _fits(shape: Shape, into: Shape) -> bool:
    """Return whether Triton broadcasts one shape to the other."""
    if not shape:
        return True
    return len(shape) == len(into) and all(a in (1, b) for a, b in zip(shape, into, strict=True))


def _joined(*variables: Variable) -> Shape:
    return np.broadcast_shapes(*(each.shape for each in variables))


def _section(draw: Draw, limits: Limits, tile: Shape, types: dict[str, Type], number: int, programs: int) -> Section:
    known = [Variable(name, I32, (), safe=True) for name in ("m", "n", "pid")]
    known.append(Variable("f", F32, (), exact=True, safe=True))
    if len(tile) == 2:
        known += [Variable("r", I32, (tile[0], 1), safe=True), Variable("c", I32, (1, tile[1]), safe=True)]
    known.append(Variable("i", I32, tile, safe=True))
    builder = _Builder(draw, limits, tile, types, known, "abcdefgh"[number] + "_")
    builder.load()
    for _ in range(draw(st.integers(0, limits.steps))):
        builder.operation()
    value = builder.variable(lambda each: each.name.startswith(builder.prefix))
    full = builder.variable(lambda each: each.shape == tile)
    assert value is not None and full is not None
    if draw(st.integers(0, 4)) == 4:
        # Few steps of a drawn kernel are sums of narrow floats.
        value = builder.long(builder.cast(full, builder.pick([TYPES["f16"], TYPES["bf16"]])))
    size = int(np.prod(tile))
    offsets: dict[str, tuple[str, Callable[[Context], Array]]] = {
        "linear": (f"pid * {size} + i", lambda known: _at(known, "pid") * size + _at(known, "i")),
        "spread": (f"(pid * {size} + i) * 2 + 1", lambda known: (_at(known, "pid") * size + _at(known, "i")) * 2 + 1),
        "reversed": (
            f"pid * {size} + ({size - 1} - i)",
            lambda known: (_at(known, "pid") + 1) * size - 1 - _at(known, "i"),
        ),
    }
    if len(tile) == 2:
        text = f"pid * {size} + c * {tile[0]} + r"
        offsets["columns"] = text, lambda known: _at(known, "pid") * size + _at(known, "c") * tile[0] + _at(known, "r")
    if value.shape == ():
        offsets = {"one": ("pid", lambda known: np.asarray(_at(known, "pid"))), **offsets}
    layout = draw(st.sampled_from(list(offsets)))
    shape = () if layout == "one" else tile
    masks = builder.masks(shape)
    kinds = ["none", "none"] + ["n"] * (layout != "one") + ["variable"] * bool(masks)
    mask = builder.mask(draw(st.sampled_from(kinds)), masks, shape)
    kinds = ["store", "store", "store", "atomic"] if layout != "one" else ["store"]
    whole = builder.variable(lambda each: _is_atomic(each, limits) and each.name.startswith(builder.prefix))
    offset, length, atomic, returned = offsets[layout], 2 * size if layout == "spread" else size, "", False
    if whole is not None and draw(st.sampled_from(kinds)) == "atomic":
        value, returned = whole, draw(st.booleans())
        atomic = draw(st.sampled_from(_atomics(whole.type) + ["xchg"] * (returned and whole.type.bits >= 32)))
        bins = draw(st.sampled_from([1, 3, 8]))
        if not returned:
            # The indices of all programs; `length` counts elements for each program.
            offset, length = (f"i % {bins}", lambda known: _at(known, "i") % bins), bins
    elif (
        (layout, mask, value.shape) == ("linear", None, tile)
        and _has_descriptors(value.type, tile)
        and draw(st.integers(0, 2)) == 2
    ):
        return _described_store(builder, value, programs)
    wanted = [value.name] + ([] if mask is None else [mask.name])
    return Section(live(builder.steps, wanted), value, offset, mask, length, atomic, returned)


def _described_store(builder: _Builder, value: Variable, programs: int) -> Section:
    """Return a section that stores a tile, or changes one by an atomic operation, by way of a descriptor."""
    tile, kind, cut = builder.tile, value.type, builder.pick([0, 1])
    # Tiles of all programs follow each other along the first dimension. The last one may reach over the edge.
    shape = (tile[0] * programs, *tile[1:])
    shape = tuple(max(extent - cut, 1) for extent in shape)
    text, strides = _descriptor(kind, shape, tile, builder.pick([0, 1]))
    shift = builder.pick([0, -1, 1]) * 128 // kind.bits if len(tile) == 2 else 0

    def place(known: Context) -> tuple[Array, Array]:
        return _tile(tile, shape, strides, [int(_at(known, "pid")) * tile[0], shift][: len(tile)])

    atomics = _descriptor_atomics(kind) if _is_atomic(value, builder.limits) else []
    return Section(
        live(builder.steps, [value.name]),
        value,
        ("", lambda known: place(known)[0]),
        None,
        tile[0] * strides[0],
        builder.pick(["", "", *atomics]),
        descriptor=(text, f"[pid * {tile[0]}, {shift}]" if len(tile) == 2 else f"[pid * {tile[0]}]"),
        inside=lambda known: place(known)[1],
    )


def _is_atomic(variable: Variable, limits: Limits) -> bool:
    """Return whether there are atomic operations on a type."""
    kind = variable.type
    return (kind.kind == "f" or (kind.kind in "iu" and kind.bits >= 32)) and f"atomic{kind.bits}" not in limits.without


def _atomics(kind: Type) -> list[str]:
    if kind.kind == "f":
        return ["add", "max", "min"] if kind.bits >= 32 else ["add"]
    return list(ATOMICS)


def _descriptor_atomics(kind: Type) -> list[str]:
    """Return the atomic operations that Triton's descriptors have on a type."""
    if kind.kind == "f":
        return ["add"] if kind.bits < 64 else []
    return [name for name in ATOMICS if name != "add" or kind.name != "i64"]


@st.composite
def kernels(draw: Draw, limits: Limits) -> Kernel:
    """Draw kernels within limits."""
    extents = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]
    if draw(st.booleans()):
        tile: Shape = (draw(st.sampled_from([each for each in extents if each <= limits.elements][2:])),)
    else:
        rows = draw(st.sampled_from([1, 2, 4, 16, 32]))
        tile = (rows, draw(st.sampled_from([each for each in extents if each * rows <= limits.elements])))
    allowed = [each for each in [*FLOATS, *INTEGERS, I1] if each.name not in limits.without]
    names = [f"x{number}" for number in range(draw(st.integers(1, 3)))]
    types = {f"{name}_{kind.name}": kind for name in names if (kind := draw(st.sampled_from(allowed)))}
    count = draw(st.integers(1, limits.sections))
    programs = draw(st.sampled_from([1, 2, 3]))
    sections = tuple(_section(draw, limits, tile, types, number, programs) for number in range(count))
    size = int(np.prod(tile)) * programs
    datasets = st.builds(
        Dataset,
        kind=st.sampled_from(["small", "special", "bits"]),
        seed=st.integers(0, 999),
        n=st.sampled_from([size - 3, 0, 5, 1, -1, size]),
        m=st.sampled_from([3, 0, 5]),
        f=st.sampled_from([1.5, 0.0, -2.0, 1e30]),
    )
    options = draw(st.sampled_from(list(limits.options)))
    return Kernel(tile, programs, types, sections, tuple(draw(st.lists(datasets, min_size=1, max_size=3))), options)
