"""Draw random integer expressions as Triton source text, with their values computed by NumPy in int32.

Triton computes on int32 as C does: `//` and `%` truncate towards zero, `>>` keeps the sign, overflow wraps.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.int32]
# An index of several terms is within this distance of the table's middle.
REACH = 1024
_TERMS = 3
TABLE = 2 * REACH * _TERMS


@dataclass(frozen=True)
class Expression:
    """Text and values for each iteration of a loop, program and element: an int32 array of 3 dimensions.

    Attributes:
        overflows: whether the value is a sum or product that wrapped around, or that contains one that did.
    """

    text: str
    values: Values
    is_constant: bool = False
    overflows: bool = False


def _divided(x: Values, y: Values) -> Values:
    wide, by = x.astype(np.int64), y.astype(np.int64)
    return (np.sign(wide) * np.sign(by) * (np.abs(wide) // np.abs(by))).astype(np.int32)


def _remainder(x: Values, y: Values) -> Values:
    return x - _divided(x, y) * y


_PLAIN = {"+": np.add, "-": np.subtract, "*": np.multiply, "&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor}
_CHOSEN = {"tl.minimum": np.minimum, "tl.maximum": np.maximum}
_LINEAR = ("+", "-", "*")
_COMPARED = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
}
_DIVISORS = (1, 2, 3, 4, 5, 7, 8, 16, 17, 64, 1000, -2, -3, -8)


class Generator:
    """Draws expressions over given variables.

    Args:
        variables: values by name, in the form that Expression uses.
        overflowing: those names whose values are sums that wrap around.
    """

    def __init__(self, seed: int, variables: Mapping[str, Values], overflowing: Collection[str] = ()) -> None:
        self._random = np.random.default_rng(seed)
        self._variables = [
            Expression(name, values, overflows=name in overflowing) for name, values in variables.items()
        ]

    def _pick(self, choices: Sequence[Any]) -> Any:
        return choices[int(self._random.integers(len(choices)))]

    def _constant(self) -> Expression:
        exponent = int(self._random.integers(1, 12))
        value = self._pick([int(self._random.integers(-20, 100)), 1 << exponent, (1 << exponent) - 1, 2**31 - 1])
        return self._number(value)

    def _number(self, value: int) -> Expression:
        return Expression(f"({value})" if value < 0 else str(value), np.full((1, 1, 1), value, np.int32), True)

    def expression(self, depth: int) -> Expression:
        """Return an expression that is not a constant."""
        if depth == 0:
            found: Expression = self._pick(self._variables)
            return found
        x = self.expression(depth - 1)
        # Half of the operands are constants, because compilers fold constants.
        y = self._constant() if self._random.random() < 0.5 else self.expression(int(self._random.integers(depth)))
        match self._pick(["plain", "plain", "plain", "divide", "mask", "shift", "choose", "where"]):
            case "divide":
                by = self._number(self._pick(_DIVISORS))
                if not y.is_constant and self._random.random() < 0.5:
                    by = Expression(f"(({y.text} & 15) + 1)", (y.values & 15) + 1)
                sign = self._pick(["//", "%"])
                return Expression(
                    f"({x.text} {sign} {by.text})", (_divided if sign == "//" else _remainder)(x.values, by.values)
                )
            case "mask":
                mask = (1 << int(self._random.integers(1, 11))) - 1
                return Expression(f"({x.text} & {mask})", x.values & mask)
            case "shift":
                if y.is_constant:
                    by = self._number(int(self._random.integers(0, 32)))
                else:
                    by = Expression(f"({y.text} & 31)", y.values & 31)
                sign = self._pick([">>", ">>", "<<"])
                values = (np.right_shift if sign == ">>" else np.left_shift)(x.values, by.values)
                return Expression(f"({x.text} {sign} {by.text})", values)
            case "choose":
                name = self._pick(list(_CHOSEN))
                return Expression(f"{name}({x.text}, {y.text})", _CHOSEN[name](x.values, y.values))
            case "where":
                sign, z = self._pick(list(_COMPARED)), self.expression(int(self._random.integers(depth)))
                chosen = np.where(_COMPARED[sign](x.values, y.values), z.values, x.values)
                return Expression(f"tl.where({x.text} {sign} {y.text}, {z.text}, {x.text})", chosen)
        if self._random.random() < 0.5:
            x, y = y, x
        sign = self._pick(list(_PLAIN))
        values = _PLAIN[sign](x.values, y.values)
        wraps = not (values == _PLAIN[sign](x.values.astype(np.int64), y.values)).all()
        overflows = sign in _LINEAR and (wraps or x.overflows or y.overflows)
        return Expression(f"({x.text} {sign} {y.text})", values, overflows=overflows)

    def mask(self) -> Expression:
        """Return one or two comparisons of sums with numbers near their bounds. The values are bool."""
        found = self._comparison()
        if self._random.random() < 0.5:
            other = self._comparison()
            found = Expression(f"{found.text} & {other.text}", found.values & other.values)
        return found

    def _comparison(self) -> Expression:
        x = self._pick(self._variables) if self._random.random() < 0.7 else self.expression(1)
        low, high = int(x.values.min()), int(x.values.max())
        border = self._pick([low, high, x.values.flat[int(self._random.integers(x.values.size))]])
        y = self._number(int(np.clip(int(border) + int(self._random.integers(-2, 3)), -(2**31) + 1, 2**31 - 1)))
        if self._random.random() < 0.2:
            y = self._pick(self._variables)
        sign = self._pick(list(_COMPARED))
        return Expression(f"({x.text} {sign} {y.text})", _COMPARED[sign](x.values, y.values))

    def index(self) -> Expression:
        """Return a sum of terms, each within REACH of 0."""
        terms = [self._term() for _ in range(int(self._random.integers(1, _TERMS + 1)))]
        total = terms[0]
        for term in terms[1:]:
            total = Expression(f"{total.text} + {term.text}", total.values + term.values)
        return total

    def _term(self) -> Expression:
        term = self.expression(int(self._random.integers(1, 4)))
        # The lowering computes an address's sums in 64 bits (front/offsets.py). Sums that wrap are not part of one.
        if np.abs(term.values.astype(np.int64)).max() < REACH and not term.overflows:
            return term
        if self._random.random() < 0.5:
            return Expression(f"({term.text} & {REACH - 1})", term.values & (REACH - 1))
        return Expression(f"({term.text} % 1000)", _remainder(term.values, np.full((1, 1, 1), 1000, np.int32)))


# An access: the index of a load, and its mask.
Access = tuple[Expression, Expression | None]
BLOCK, PROGRAMS, TURNS = 64, 3, 3
N, M, OTHER, POISON = 48, 7, -5, -77
# A tile of 64 that starts at FAR exceeds the largest integer. A block of 64 that starts at LAST_BLOCK is the last one.
FAR, LAST_BLOCK = 2**31 - 40, 2**31 // BLOCK - 1


def draw_accesses(seed: int, count: int) -> tuple[list[Access], list[Access]]:
    """Return `count` accesses, half outside of a loop, half inside with its counter as a variable; some are masked."""
    one = np.ones((1, 1, 1), np.int32)
    i, pid = np.arange(BLOCK, dtype=np.int32).reshape(1, 1, -1), np.arange(PROGRAMS, dtype=np.int32).reshape(1, -1, 1)
    beyond = {"(far + i)": np.int32(FAR) + i, "((pid + last) * BLOCK + i)": (np.int32(LAST_BLOCK) + pid) * BLOCK + i}
    variables = {"i": i, "pid": pid, "(pid * BLOCK + i)": pid * BLOCK + i, "n": N * one, "m": M * one}
    variables |= {"programs": PROGRAMS * one} | beyond
    inside = variables | {"turn": np.arange(TURNS, dtype=np.int32).reshape(-1, 1, 1)}
    outer, inner = Generator(2 * seed, variables, beyond), Generator(2 * seed + 1, inside, beyond)
    with np.errstate(over="ignore"):
        first, second = (
            [(each.index(), each.mask() if k % 2 else None) for k in range(count // 2)] for each in (outer, inner)
        )
    return first, second


def draw_table(seed: int) -> Values:
    return np.random.default_rng(seed).permutation(2 * TABLE).astype(np.int32)


def wrong_accesses(table: Values, outside: list[Access], inside: list[Access], out: Values) -> list[str]:
    """Say which accesses found something else than NumPy does; `out` has a row for each, turn and program."""
    wrong = []
    for number, (index, mask) in enumerate(outside + inside):
        expected = np.full((TURNS, PROGRAMS, BLOCK), POISON, np.int32)
        turns = 1 if number < len(outside) else TURNS
        found = table[TABLE + np.broadcast_to(index.values, (turns, PROGRAMS, BLOCK)).astype(np.int64)]
        expected[:turns] = found if mask is None else np.where(mask.values, found, OTHER)
        if not np.array_equal(out[number], expected):
            wrong.append(f"{np.count_nonzero(out[number] != expected)} elements: {index.text}, {mask and mask.text}")
    return wrong
