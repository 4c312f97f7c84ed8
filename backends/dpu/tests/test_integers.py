"""Each integer operation that address analysis supports: intervals and C code, compared with Python's integers."""

from __future__ import annotations

import itertools
import operator
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from foundry_core.footprint.integers import INTEGERS
from foundry_core.footprint.interval import exactly, fit

WIDTH = 32
EDGES = [0, 1, 2, 3, 7, 31, 100, 2**31 - 1, -1, -2, -7, -100, -(2**31)]
SHIFTS = [0, 1, 5, 31]


def quotient(a: int, b: int) -> int:
    return 0 if b == 0 else abs(a) // abs(b) * (-1 if (a < 0) != (b < 0) else 1)


def of_unsigned(function: Callable[[int, int], int]) -> Callable[[int, int], int]:
    return lambda a, b: function(a % 2**WIDTH, b % 2**WIDTH)


# The meaning from MLIR's documentation of arith. Shifts are by less than the width; other operands are arbitrary.
REFERENCES: dict[str, Callable[[int, int], int]] = {
    "arith.addi": operator.add,
    "arith.subi": operator.sub,
    "arith.muli": operator.mul,
    "arith.divsi": quotient,
    "arith.remsi": lambda a, b: 0 if b == 0 else a - b * quotient(a, b),
    "arith.minsi": min,
    "arith.maxsi": max,
    "arith.shli": operator.lshift,
    "arith.shrsi": operator.rshift,
    "arith.andi": operator.and_,
    "arith.ori": operator.or_,
    "arith.xori": operator.xor,
    "arith.divui": of_unsigned(quotient),
    "arith.remui": of_unsigned(lambda a, b: 0 if b == 0 else a % b),
    "arith.minui": of_unsigned(min),
    "arith.maxui": of_unsigned(max),
    "arith.shrui": of_unsigned(operator.rshift),
}


def wrapped(number: int) -> int:
    return (number + 2**31) % 2**WIDTH - 2**31


def pairs(name: str) -> list[tuple[int, int]]:
    return list(itertools.product(EDGES, SHIFTS if ".sh" in name else EDGES))


def test_each_operation_has_a_reference() -> None:
    assert set(REFERENCES) == set(INTEGERS)


@pytest.mark.parametrize("name", REFERENCES)
def test_an_interval_of_single_numbers_holds_what_the_operation_makes_of_them(name: str) -> None:
    for a, b in pairs(name):
        if b == 0 and (".div" in name or ".rem" in name):
            continue
        found = fit(INTEGERS[name].intervals(exactly(np.float64(a)), exactly(np.float64(b)), WIDTH), WIDTH)
        expected = wrapped(REFERENCES[name](a, b))
        assert found.low <= expected <= found.high, (a, b)
        if min(a, b, expected) >= 0 and REFERENCES[name](a, b) == expected:
            assert found.low == found.high == expected, (a, b)


def test_c_computes_what_the_operation_does(tmp_path: Path) -> None:
    lines, expected = [], []
    for name, meaning in INTEGERS.items():
        kind = "uint32_t" if meaning.is_unsigned else "int64_t"
        for a, b in pairs(name):
            code = meaning.c.format(f"({kind})INT64_C({a})", f"({kind})INT64_C({b})")
            lines.append(f'    printf("%d\\n", (int32_t){code});')
            expected.append(wrapped(REFERENCES[name](a, b)))
    functions = (
        "static int64_t quotient(int64_t a, int64_t b) { return b ? a / b : 0; }\n"
        "static int64_t remainder_of(int64_t a, int64_t b) { return b ? a % b : 0; }\n"
    )
    source, program = tmp_path / "integers.c", tmp_path / "integers"
    head = f"#include <stdint.h>\n#include <stdio.h>\n{functions}int main(void)\n{{\n"
    source.write_text(head + "\n".join(lines) + "\n    return 0;\n}\n")
    subprocess.run(["cc", "-o", str(program), str(source)], check=True, capture_output=True)
    text = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout
    assert [int(line) for line in text.split()] == expected
