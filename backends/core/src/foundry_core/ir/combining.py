"""In which order a reduction may combine its elements.

A region of comparisons, logic, choices, minima and maxima sees of its operands only which one is larger. So three
values of each operand, and NaN, show all that it can do: it is computed on all pairs of these, and the results say
whether it is associative and whether it commutes. Operands that depend on each other are looked at together; the
others, such as a sum next to an extreme, alone. Elements that are equal in all operands but for the sign of a zero
count as one if an integer is among the operands, such as a place.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Block, Operation, SSAValue

from .arith import CmpfOp, CmpiOp, ConstantOp
from .elements import index_mapping
from .facts import combined_axis, first_number

# Operations that combine elements in any order, but for the rounding of sums and products.
_FREE = (
    *(arith.AddiOp, arith.AddfOp, arith.MuliOp, arith.MulfOp, arith.AndIOp, arith.OrIOp, arith.XOrIOp),
    *(arith.MinSIOp, arith.MaxSIOp, arith.MinUIOp, arith.MaxUIOp),
    *(arith.MinnumfOp, arith.MaxnumfOp, arith.MinimumfOp, arith.MaximumfOp),
)
_FREE_NAMES = frozenset(op.name for op in _FREE)


class Order(NamedTuple):
    """What is known of a reduction's region.

    Attributes:
        is_free: whether the elements may be combined in any order; with NaN among them, only if the function has no
            order of its own there, because it is not associative.
        commutes: whether the same two elements give the same whichever comes first, NaN too.
        place: the elements may be combined in any order if, of two, the one with the smaller number in this operand
            always comes first.
    """

    is_free: bool
    commutes: bool = False
    place: int | None = None


# An operation by its name, and its operands: the values of a region are its arguments, then a value an operation.
_Step: TypeAlias = tuple[str, tuple[int, ...]]
# A boolean, or an operand's number with one of the numbers that it may be: None is NaN; the last is a zero's sign.
_Value: TypeAlias = "bool | tuple[int, int | None, bool]"
_Element: TypeAlias = tuple[_Value, ...]
_Table: TypeAlias = dict[tuple[_Element, _Element], _Element]


def reduction_order(op: Operation) -> Order:
    """Return in which order a reduction may combine its elements."""
    along, block = combined_axis(op), op.regions[0].block
    assert along is not None
    steps, results = _steps(block)
    kinds = tuple(
        ("bool" if arg.type.width.data == 1 else "integer") if isinstance(arg.type, IntegerType) else "float"
        for arg in block.args[: len(results)]
    )
    places = (number for number, operand in enumerate(op.operands) if _counts(operand, along.number))
    return _order(steps, results, kinds, next(places, None))


def _counts(value: SSAValue, axis: int) -> bool:
    """Return whether the elements of a tile are consecutive numbers along an axis."""
    while (of := index_mapping(value)) is not None and (inner := of.inner(axis)) is not None:
        value, axis = of.source, inner
    return first_number(value.owner) is not None


def _steps(block: Block) -> tuple[tuple[_Step, ...], tuple[int, ...]]:
    """Return the operations of a region in a form that can be compared, and the numbers of its results."""
    numbers: dict[SSAValue, int] = {arg: number for number, arg in enumerate(block.args)}
    steps: list[_Step] = []

    def add(result: SSAValue | None, name: str, operands: Sequence[int] = ()) -> int:
        steps.append((name, tuple(operands)))
        number = len(block.args) + len(steps) - 1
        if result is not None:
            numbers[result] = number
        return number

    def number(value: SSAValue) -> int:
        if value not in numbers:
            op = value.owner
            is_flag = isinstance(op, ConstantOp) and value.type == IntegerType(1)
            add(value, ("true" if op.splat else "false") if is_flag and isinstance(op, ConstantOp) else "unknown")
        return numbers[value]

    def walk(inside: Block) -> list[int]:
        assert inside.last_op is not None
        for op in inside.ops:
            if isinstance(op, scf.IfOp) and op.results:
                ways = zip(*(walk(region.block) for region in op.regions), strict=True)
                for result, way in zip(op.results, ways, strict=True):
                    add(result, "arith.select", (number(op.cond), *way))
            elif op is not inside.last_op and not isinstance(op, ConstantOp):
                name = f"{op.name} {op.predicate_name}" if isinstance(op, CmpiOp | CmpfOp) else op.name
                operands = [number(operand) for operand in op.operands]
                for result in op.results:
                    add(result, name, operands)
        return [number(operand) for operand in inside.last_op.operands]

    results = tuple(walk(block))
    return tuple(steps), results


@functools.lru_cache(256)
def _order(steps: Sequence[_Step], results: Sequence[int], kinds: Sequence[str], place: int | None) -> Order:
    count = len(kinds)
    reached = [{number % count} for number in range(2 * count)]
    for _, operands in steps:
        reached.append({part for operand in operands for part in reached[operand]})
    groups: list[set[int]] = []
    for number, result in enumerate(results):
        group = {number} | reached[result]
        for other in [each for each in groups if each & group]:
            groups.remove(other)
            group |= other
        groups.append(group)
    found = []
    for group in groups:
        first = results[min(group)] - 2 * count
        pair = {min(group), min(group) + count}
        if len(group) == 1 and first >= 0 and steps[first][0] in _FREE_NAMES and {*steps[first][1]} == pair:
            found.append(Order(True, True))
        else:
            found.append(_order_of_group(steps, results, kinds, sorted(group), place))
    if not all(each.is_free for each in found):
        return Order(False)
    by = {each.place for each in found} - {None}
    return Order(True, all(each.commutes for each in found), *by)


# A region with more values of an element than this is not computed.
_MOST = 40


def _order_of_group(
    steps: Sequence[_Step], results: Sequence[int], kinds: Sequence[str], group: Sequence[int], place: int | None
) -> Order:
    """Return the same for some of the operands, on which no other operand's result depends."""
    compute = _Region(steps, results, len(kinds), group)
    signed = "integer" not in {kinds[number] for number in group}

    def values(number: int) -> list[_Value]:
        if kinds[number] == "bool":
            return [False, True]
        if number not in compute.compared:
            return [(number, 0, False), (number, 1, False)]
        found: list[_Value] = [(number, value, False) for value in range(3)]
        return [*found, (number, None, False), *[(number, 0, True)] * signed] if kinds[number] == "float" else found

    elements = list(itertools.product(*map(values, group)))
    at = group.index(place) if place in group else None
    if len(elements) > _MOST:
        return Order(False)
    try:
        table: _Table = {(x, y): compute(x, y) for x in elements for y in elements if at is None or x[at] != y[at]}
    except _Unknown:
        return Order(False)
    is_exact = _is_associative(table, elements)
    numbers = [x for x in elements if not any(value[1] is None for value in x if isinstance(value, tuple))]
    looked_at = elements if is_exact else numbers
    if _commutes(table, looked_at):
        return Order(_is_associative(table, looked_at), _commutes(table, elements))
    if at is None:
        return Order(False)
    in_places = {(x, y): table[(x, y) if x[at] < y[at] else (y, x)] for x, y in table}  # type: ignore[operator]
    is_free = _is_associative(in_places, looked_at)
    return Order(is_free, place=place if is_free else None)


def _commutes(table: _Table, elements: Sequence[_Element]) -> bool:
    return all(table[x, y] == table[y, x] for x in elements for y in elements if (x, y) in table)


def _is_associative(table: _Table, elements: Sequence[_Element]) -> bool:
    return all(
        table[table[x, y], z] == table[x, table[y, z]]
        for x in elements
        for y in elements
        if (x, y) in table
        for z in elements
        if (x, z) in table and (y, z) in table
    )


class _Unknown(Exception):
    """A region does more than to compare and to choose."""


_ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")
}
_LOGIC: dict[str, Callable[[bool, bool], bool]] = {
    "arith.andi": operator.and_,
    "arith.ori": operator.or_,
    "arith.xori": operator.xor,
}


_EXTREMES: dict[str, Callable[[Any, Any], bool]] = {
    op.name: operator.ge if "max" in op.name else operator.le
    for op in _FREE
    if op.name.startswith(("arith.min", "arith.max"))
}


class _Region:
    """Computes a region on numbers.

    Args:
        count: the number of operands of the reduction.
        group: those among them that are of interest.

    Attributes:
        compared: those that are more than chosen.
    """

    def __init__(self, steps: Sequence[_Step], results: Sequence[int], count: int, group: Sequence[int]) -> None:
        self._steps, self._count, self._group = steps, count, group
        self._results = [results[number] for number in group]
        needed, compared = set(self._results), set[int]()
        for number in range(2 * count + len(steps) - 1, 2 * count - 1, -1):
            name, operands = steps[number - 2 * count]
            if number in needed:
                needed.update(operands)
                compared.update(operands if name != "arith.select" or number in compared else operands[:1])
        self._needed = [number for number in range(2 * count, 2 * count + len(steps)) if number in needed]
        self.compared = {number % count for number in compared if number < 2 * count}
        # Whether an operand is compared as signed or as unsigned numbers: not as both, which are two orders.
        self._signs: dict[int, str] = {}

    def __call__(self, x: _Element, y: _Element) -> _Element:
        known: dict[int, _Value] = dict(zip(self._group, x, strict=True))
        known.update(zip((number + self._count for number in self._group), y, strict=True))
        for number in self._needed:
            name, operands = self._steps[number - 2 * self._count]
            known[number] = self._compute(name, *(known[operand] for operand in operands))
        found = tuple(known[number] for number in self._results)
        for number, value in zip(self._group, found, strict=True):
            if isinstance(value, tuple) and value[0] != number:
                raise _Unknown
        return found

    def _compute(self, name: str, *operands: _Value) -> _Value:
        match name.split(), operands:
            case [("true" | "false") as flag], ():
                return flag == "true"
            case ["arith.select"], (bool() as condition, x, y) if isinstance(x, bool) or x[0] == y[0]:  # type: ignore[index]
                return x if condition else y
            case [logic], (bool() as x, bool() as y) if logic in _LOGIC:
                return _LOGIC[logic](x, y)
            case ["arith.cmpi", predicate], (bool() as x, bool() as y):
                return _ORDERS[predicate[-2:]](-x, -y) if predicate[0] == "s" else _ORDERS[predicate[-2:]](x, y)
            case ["arith.cmpi", predicate], ((_, int(), _) as x, (_, int(), _) as y) if x[0] == y[0]:
                self._check_sign(x[0], predicate[:-2])
                return _ORDERS[predicate[-2:]](x[1], y[1])
            case ["arith.cmpf", predicate], (tuple() as x, tuple() as y) if x[0] == y[0]:
                if x[1] is None or y[1] is None:
                    return predicate[0] in "ut"
                compares = _ORDERS.get(predicate[1:])
                return predicate in ("ord", "true") if compares is None else compares(x[1], y[1])
            case [extreme], (tuple() as x, tuple() as y) if extreme in _EXTREMES and x[0] == y[0]:
                self._check_sign(x[0], extreme[9] if extreme.endswith("i") else "")
                if x[1] is None or y[1] is None:
                    keeps = extreme in ("arith.minimumf", "arith.maximumf")
                    return x if (x[1] is None) == keeps else y
                return x if _EXTREMES[extreme](x[1], y[1]) else y
        raise _Unknown

    def _check_sign(self, number: int, sign: str) -> None:
        if sign and self._signs.setdefault(number, sign) != sign:
            raise _Unknown
