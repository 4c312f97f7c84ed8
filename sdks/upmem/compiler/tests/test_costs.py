"""Modelled instructions: what PrIM's loop over WRAM costs for each operation, and what a program takes of IRAM."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from programs import HERE, built, launched, run

# Beside the operation: address, load, store, index, branch.
LOOP = 5
# Costs of one operation by model/cycles.def, and how they come about where they are not in it.
INTEGERS = {
    "i32 +": 1,
    "i32 *": 29,
    "i32 /": 26,
    "i32 * 8, a shift": 1,
    "i32 * 10, two shifts with an addition": 2,
    "u32 / 16, a shift": 1,
    "i8 *": 1,
    "i16 *": 8,
    "i64 +": 2,
    "i64 *": 132,
    "i64 /": 245,
    "i64 << 3": 3,
    "max, a jump and a move": 2,
    "a product of bytes, and taking them out": 2,
}
FLOATS = {
    "f32 +": 66,
    "f32 -": 71,
    "f32 *": 178,
    "f32 /": 1024,
    "f64 +": 100,
    "f64 *": 655,
    "f64 /": 2183,
    "f32 negated": 1,
    "f32 min, a comparison, a jump and a move": 22,
    "f32 to i32 and back": 80,
}


@pytest.mark.parametrize("level", ["-O2", "-O3"])
@pytest.mark.parametrize("flag, costs", [("-DINTEGERS", INTEGERS), ("-DFLOATS", FLOATS)])
def test_an_element_costs_the_loop_and_the_operation(
    tmp_path: Path, level: str, flag: str, costs: dict[str, int]
) -> None:
    built(tmp_path, level, flag, f"-I{HERE}", str(HERE / "device_costs.c"), "-o", "program")
    measured = launched(tmp_path).results[: len(costs)]
    assert dict(zip(costs, measured, strict=True)) == {name: LOOP + cost for name, cost in costs.items()}


def instructions(folder: Path, source: str, *flags: str) -> int:
    """IRAM places of a program, as the linker counted them."""
    (folder / "p.c").write_text(source)
    built(folder, "-O2", *flags, "p.c", "-o", "p")
    table = run(["llvm-readelf", "-s", "p"], folder).stdout
    symbol = re.search(r"([0-9a-f]{8}) .* __foundry_iram_instructions$", table, re.MULTILINE)
    assert symbol, table
    return int(symbol[1], 16)


def test_iram_counts_a_routine_once(tmp_path: Path) -> None:
    one = "float f(float a, float b) { return a + b; }\n"
    main = "volatile float v;\nint main(void) { v = f(v, 1); return 0; }\n"
    plain = instructions(tmp_path, "volatile float v;\nint main(void) { v = v; return 0; }\n")
    once = instructions(tmp_path, one + main)
    twice = instructions(tmp_path, one + main.replace("v = f(v, 1);", "v = f(v, 1); v = f(v, 2);"))
    assert once - plain > 100  # the routine
    assert 3 <= twice - once <= 6  # a call of it, a load and a store


def test_iram_does_not_count_what_nobody_calls(tmp_path: Path) -> None:
    main = "int main(void) { return 0; }\n"
    unused = "float unused(float a) { for (int i = 0; i < 99; i++) a = a * a + 1; return a; }\n"
    assert instructions(tmp_path, main + unused) == instructions(tmp_path, main)


def test_an_access_that_is_not_aligned_is_several(tmp_path: Path) -> None:
    def places(align: int) -> int:
        source = f"typedef int part __attribute__((aligned({align})));\nvolatile part *volatile from;\n"
        return instructions(tmp_path, source + "volatile int to;\nint main(void) { to = *from; return 0; }\n")

    assert places(2) == places(4) + 3  # a load, a shift, an or
    assert places(1) == places(4) + 9
