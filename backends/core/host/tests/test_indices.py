"""Check loads through random integer expressions on the host: addresses, masks and sums that wrap, on several roads.

tests/test_indices.py launches such kernels in images. It draws the same expressions, as Triton's source.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

import numpy as np
import pytest

from backends.core.tests.expressions import (
    BLOCK,
    FAR,
    LAST_BLOCK,
    OTHER,
    POISON,
    PROGRAMS,
    TABLE,
    TURNS,
    Access,
    Expression,
    M,
    N,
    draw_accesses,
    draw_table,
    wrong_accesses,
)

from ..kernels import elementwise
from ..roads import Kernel, run

COUNT = 8
# What a kernel loads from memory, so that no compiler knows it.
NUMBERS = {"n": N, "m": M, "far": FAR, "last": LAST_BLOCK, "turns": TURNS}
_OPERATIONS = {
    ast.Add: "addi",
    ast.Sub: "subi",
    ast.Mult: "muli",
    ast.FloorDiv: "divsi",
    ast.Mod: "remsi",
    ast.BitAnd: "andi",
    ast.BitOr: "ori",
    ast.BitXor: "xori",
    ast.LShift: "shli",
    ast.RShift: "shrsi",
    ast.Lt: "cmpi slt,",
    ast.LtE: "cmpi sle,",
    ast.Gt: "cmpi sgt,",
    ast.GtE: "cmpi sge,",
    ast.Eq: "cmpi eq,",
    ast.NotEq: "cmpi ne,",
    "minimum": "minsi",
    "maximum": "maxsi",
}


class Writer:
    """Writes Triton's source of expressions as lines of TTIR. Numbers stay scalars until they meet a tile."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        # Names of values, and whether they are tiles.
        self._known = {"i": ("%r", True), "pid": ("%pid", False), "turn": ("%turn", False)}
        self.known("programs", self.add("tt.get_num_programs x : i32"))
        for place, name in enumerate(NUMBERS):
            at = self.add(f"tt.addptr %p1, {self.number(place)} : !tt.ptr<i32>, i32")
            self.known(name, self.add(f"tt.load {at} : !tt.ptr<i32>"))
        self.known("BLOCK", self.number(BLOCK))

    def known(self, name: str, value: str) -> None:
        self._known[name] = (value, False)

    def add(self, text: str) -> str:
        name = f"%w{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        return name

    def number(self, value: int) -> str:
        return self.add(f"arith.constant {value} : i32")

    def tile(self, value: str, is_tile: bool = False, elem: str = "i32") -> str:
        return value if is_tile else self.add(f"tt.splat {value} : {elem} -> TILE({elem})")

    def write(self, node: ast.expr) -> tuple[str, bool]:
        """Return the name of an expression's value, and whether it is a tile."""
        match node:
            case ast.Name(id=name):
                return self._known[name]
            case ast.Constant(value=int(value)):
                return self.number(value), False
            case ast.UnaryOp(operand=ast.Constant(value=int(value))):
                return self.number(-value), False
            case ast.BinOp(left=left, op=op, right=right):
                is_mask = isinstance(left, ast.Compare)
                return self._binary(_OPERATIONS[type(op)], left, right, "i1" if is_mask else "i32")
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self._binary(_OPERATIONS[type(op)], left, right, "i32")
            case ast.Call(func=ast.Attribute(attr="where"), args=[condition, *both]):
                chosen = self.tile(*self.write(condition), "i1")
                x, y = (self.tile(*self.write(each)) for each in both)
                return self.add(f"arith.select {chosen}, {x}, {y} : TILE(i1), TILE(i32)"), True
            case ast.Call(func=ast.Attribute(attr=name), args=[left, right]):
                return self._binary(_OPERATIONS[name], left, right, "i32")
        raise AssertionError(ast.dump(node))

    def _binary(self, operation: str, left: ast.expr, right: ast.expr, elem: str) -> tuple[str, bool]:
        operands = [self.write(left), self.write(right)]
        is_tile = any(tile for _, tile in operands)
        x, y = (self.tile(*operand, elem) if is_tile else operand[0] for operand in operands)
        return self.add(f"arith.{operation} {x}, {y} : {f'TILE({elem})' if is_tile else elem}"), is_tile

    def load_and_store(self, number: int, index: Expression, mask: Expression | None, turn: str) -> None:
        """Load through an index, and store the result in the row of this expression, turn and program."""
        place = self.tile(*self.write(ast.parse(index.text, mode="eval").body))
        at = self.add(f"tt.addptr %table, {place} : TILE(!tt.ptr<i32>), TILE(i32)")
        masked = ""
        if mask is not None:
            other = self.tile(self.number(OTHER))
            masked = f", {self.tile(*self.write(ast.parse(mask.text, mode='eval').body), 'i1')}, {other}"
        value = self.add(f"tt.load {at}{masked} : TILE(!tt.ptr<i32>)")
        row = ast.parse(f"(({number} * turns + {turn}) * programs + pid) * BLOCK + i", mode="eval").body
        to = self.add(f"tt.addptr %s2, {self.tile(*self.write(row))} : TILE(!tt.ptr<i32>), TILE(i32)")
        self.lines.append(f"tt.store {to}, {value} : TILE(!tt.ptr<i32>)")


def lines(outside: Sequence[Access], inside: Sequence[Access]) -> list[str]:
    writer = Writer()
    middle = writer.number(TABLE)
    base = writer.add(f"tt.addptr %p0, {middle} : !tt.ptr<i32>, i32")
    writer.lines.append(f"%table = tt.splat {base} : !tt.ptr<i32> -> TILE(!tt.ptr<i32>)")
    for number, (index, mask) in enumerate(outside):
        writer.load_and_store(number, index, mask, "0")
    zero, one, (end, _) = writer.number(0), writer.number(1), writer.write(ast.Name("turns"))
    writer.lines.append(f"scf.for %turn = {zero} to {end} step {one} : i32 {{")
    for number, (index, mask) in enumerate(inside, len(outside)):
        writer.load_and_store(number, index, mask, "turn")
    return [*writer.lines, "}"]


@pytest.mark.parametrize("road", ["tasklet", "work-item", "lavapipe"])
@pytest.mark.parametrize("seed", [pytest.param(seed, marks=[pytest.mark.slow] * (seed > 5)) for seed in range(20)])
def test_loads_through_random_indices_find_what_numpy_finds(seed: int, road: str) -> None:
    outside, inside = draw_accesses(seed, COUNT)
    table, out = draw_table(seed), np.full((COUNT, TURNS, PROGRAMS, BLOCK), POISON, np.int32)
    numbers = np.resize(np.array(list(NUMBERS.values()), np.int32), PROGRAMS * BLOCK)
    texts = (elementwise(["i32"] * 3, {}, lines(outside, inside), lanes=lanes, size=BLOCK) for lanes in (0, 8))
    launched = run(road, Kernel(*texts), [table, numbers, out], (PROGRAMS, 1, 1))
    wrong = wrong_accesses(table, outside, inside, launched.arrays[2])
    assert not wrong, "\n".join(wrong)
