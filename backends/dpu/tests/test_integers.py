"""Each integer operation that address analysis supports: numbers, intervals and C code, compared with Python's."""

from __future__ import annotations

import itertools
import operator
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
from foundry_core.analysis.integers import INTEGERS, OperationForm
from foundry_core.analysis.interval import exactly, fit

WIDTH = 32
SAME, ONE_BIT = OperationForm(WIDTH, WIDTH), OperationForm(1, WIDTH)
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


# Casts, comparisons and selections: a form, operands and the result.
OTHERS: list[tuple[str, OperationForm, tuple[int, ...], int]] = [
    *(("arith.extsi", OperationForm(8, WIDTH), (a,), a) for a in (0, 127, -1, -128)),
    *(("arith.extui", OperationForm(8, WIDTH), (a,), a % 256) for a in (0, 127, -1, -128)),
    ("arith.extsi", ONE_BIT, (1,), -1),
    ("arith.extui", ONE_BIT, (1,), 1),
    *(("arith.trunci", OperationForm(WIDTH, 8), (a,), (a + 128) % 256 - 128) for a in EDGES),
    *(("arith.trunci", OperationForm(WIDTH, 1), (a,), a & 1) for a in EDGES),
    *(("arith.index_cast", OperationForm(64, WIDTH), (a,), a) for a in EDGES),
    *(("arith.select", SAME, (c, 3, -4), 3 if c else -4) for c in (0, 1)),
    *(
        ("arith.cmpi", OperationForm(WIDTH, 1, kind + order), (a, b), int(compared(a, b)))
        for kind, order in (*itertools.product("su", ("lt", "le", "gt", "ge")), ("", "eq"), ("", "ne"))
        for compared in [of_unsigned(getattr(operator, order)) if kind == "u" else getattr(operator, order)]
        for a, b in itertools.product(EDGES, EDGES)
    ),
]


def wrapped(number: int) -> int:
    return (number + 2**31) % 2**WIDTH - 2**31


def cases() -> list[tuple[str, OperationForm, tuple[int, ...], int]]:
    """Return operations with operands and the result. The result of a division by 0 is 0."""
    binary = [
        (name, SAME, pair, wrapped(reference(*pair)))
        for name, reference in REFERENCES.items()
        for pair in itertools.product(EDGES, SHIFTS if ".sh" in name else EDGES)
    ]
    return [*binary, *OTHERS]


def test_each_operation_has_a_reference() -> None:
    assert {name for name, *_ in cases()} == set(INTEGERS)


def test_numbers_are_what_the_operation_makes() -> None:
    for name, form, operands, expected in cases():
        assert INTEGERS[name].number(form, operands) == expected, (name, form, operands)


def test_a_selection_by_sign_of_one_bit_takes_a_set_bit_for_minus_one() -> None:
    assert INTEGERS["arith.cmpi"].number(OperationForm(1, 1, "slt"), (1, 0)) == 1
    assert INTEGERS["arith.minsi"].number(OperationForm(1, 1), (1, 0)) == 1


def test_an_interval_of_single_numbers_holds_what_the_operation_makes_of_them() -> None:
    for name, form, operands, expected in cases():
        if operands[-1] == 0 and (".div" in name or ".rem" in name):
            continue
        intervals = INTEGERS[name].intervals(form, [exactly(np.float64(a)) for a in operands])
        if intervals is None:
            assert form.result == 1 and name == "arith.trunci"
            continue
        interval = fit(intervals, form.result)
        assert interval.low <= expected <= interval.high, (name, operands)
        if name in REFERENCES and min(*operands, expected) >= 0 and REFERENCES[name](*operands) == expected:
            assert interval.low == interval.high == expected, (name, operands)


def test_c_computes_what_the_operation_does(tmp_path: Path) -> None:
    lines, expected = [], []
    for name, form, operands, result in cases():
        code = INTEGERS[name].c(form, [f"(int64_t)INT64_C({a})" for a in operands])
        lines.append(f'    printf("%d\\n", (int32_t){code});')
        expected.append(result)
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
