"""Where a program that several invocations execute needs barriers between accesses of global memory."""

from __future__ import annotations

import re

import pytest
from foundry_core.codegen.pipeline import read_kernel
from foundry_core.front.structured import kernel
from foundry_core.ir import tt
from foundry_core.ir.parse import parse
from foundry_core.mapping.simt.program import SimtProgram
from foundry_core.mapping.simt.target import SimtTarget

# 16 invocations; %i has 4 elements in each, %few is in two of them each, and %other has the same elements elsewhere.
HEAD = """
#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [8], warpsPerCTA = [2], order = [0]}>
#c = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [8], warpsPerCTA = [2], order = [0]}>
module attributes {"ttg.num-warps" = 2 : i32} {
  tt.func public @k(%p: !tt.ptr<i32>, %q: !tt.ptr<i32>, %n: i32, %s: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c32 = arith.constant 32 : i32
    %c63 = arith.constant 63 : i32
    %c64 = arith.constant 64 : i32
    %true = arith.constant true
    %pid = tt.get_program_id x : i32
    %i = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #b>
    %few = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32, #b>
    %other = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #c>
    %v = arith.constant dense<7> : tensor<64xi32, #b>
    %vfew = arith.constant dense<7> : tensor<8xi32, #b>
    %vother = arith.constant dense<7> : tensor<64xi32, #c>
    %all = arith.constant dense<true> : tensor<64xi1, #b>
    %more = arith.cmpi slt, %n, %s : i32
"""


def written_out(body: str) -> str:
    """Return the lines of a kernel; those of the bodies below have no types, and constants for what they store."""
    found = []
    # The extent and the layout of each tile.
    tiles = {"%i": "64xT, #b", "%few": "8xT, #b", "%other": "64xT, #c", "%x": "64xT, #b"}
    values = {"64xT, #b": "%v", "8xT, #b": "%vfew", "64xT, #c": "%vother"}
    for number, line in enumerate(body.strip().splitlines()):
        words = line.split()
        name = words[0] if words[1:2] == ["="] else f"%l{number}"
        words = words[2:] if words[1:2] == ["="] else words
        shape = next((tiles[word] for word in words[1:] if word in tiles), "64xT, #b")
        of, mask, pointers = (f"tensor<{shape.replace('T', elem)}>" for elem in ("i32", "i1", "!tt.ptr<i32>"))
        match words:
            case ["splat", x]:
                line = f"{name} = tt.splat {x} : i32 -> {of}"
            case [("add" | "sub" | "mul") as op, x, y]:
                line = f"{name} = arith.{op}i {x}, {y} : {of}"
            case [("add1" | "mul1") as op, x, y]:
                line = f"{name} = arith.{op[:3]}i {x}, {y} : i32"
            case ["below", x, y]:
                line = f"{name} = arith.cmpi slt, {x}, {y} : {of}"
            case ["at", x, y]:
                line = f"%b{number} = tt.splat {x} : !tt.ptr<i32> -> {pointers}\n"
                line += f"{name} = tt.addptr %b{number}, {y} : {pointers}, {of}"
            case ["at1", x, y]:
                line = f"{name} = tt.addptr {x}, {y} : !tt.ptr<i32>, i32"
            case ["load", x, *masks]:
                line = f"{name} = tt.load {', '.join([x, *masks])} : {pointers}"
            case ["load1", x]:
                line = f"{name} = tt.load {x} : !tt.ptr<i32>"
            case ["store", x, *masks]:
                line = f"tt.store {', '.join([x, values[shape], *masks])} : {pointers}"
            case ["store1", x]:
                line = f"tt.store {x}, %n : !tt.ptr<i32>"
            case ["atomic", kind, x]:
                line = (
                    f"{name} = tt.atomic_rmw {kind}, acq_rel, gpu, {x}, %v, %all : ({pointers}, {of}, {mask}) -> {of}"
                )
            case _:
                name = ""
        if words[0] not in ("at1", "add1", "mul1", "load1"):
            tiles[name] = shape
        found.append(line)
    return "\n".join(found)


def places(body: str) -> list[str]:
    """Return the accesses and loops in order, each behind a `|` if a barrier comes before it."""
    function = kernel(parse(f"{HEAD}{written_out(body)}\ntt.return }} }}"))
    barriers = SimtProgram(function, SimtTarget(8, 2, 32 << 10)).barriers
    names: dict[type, str] = {tt.LoadOp: "load", tt.StoreOp: "store", tt.AtomicRMWOp: "atomic"}
    found = []
    for op in function.body.walk():
        name = names.get(type(op), "loop" if re.match("scf.(for|while)", op.name) else "")
        if name or op in barriers:
            found.append("| " * (op in barriers) + name)
    return found


MIRRORED = "%l = splat %c63\n%r = sub %l %i\n%b = at %p %r"
A = "%a = at %p %i"


@pytest.mark.parametrize(
    ("body", "expected"),
    {
        "the same offsets": (f"{A}\nload %a\nstore %a", "load, store"),
        "the same offsets in another layout": (f"{A}\n%b = at %p %other\nload %a\nstore %b", "load, | store"),
        "the same offsets, each in two invocations": (
            "%a = at %p %few\nload %a\nstore %a\nload %a",
            "load, | store, | load",
        ),
        "offsets in the other direction": (f"{A}\n{MIRRORED}\nload %a\nstore %b", "load, | store"),
        "loads": (f"{A}\n{MIRRORED}\nload %a\nload %b", "load, load"),
        "stores": (f"{A}\n{MIRRORED}\nstore %a\nstore %b\nstore %a", "store, | store, | store"),
        "another array": (f"{A}\n{MIRRORED.replace('%p', '%q')}\nload %a\nstore %b", "load, store"),
        "a barrier that is there": (f"{A}\n{MIRRORED}\nstore %a\ngpu.barrier\nload %b", "store, load"),
        "the next 64": (f"{A}\n%k = splat %c64\n%j = add %i %k\n%b = at %p %j\nstore %a\nload %b", "store, load"),
        "63 further": (f"{A}\n%k = splat %c63\n%j = add %i %k\n%b = at %p %j\nstore %a\nload %b", "store, | load"),
        "odd and even": (
            "%k = splat %c2\n%e = mul %i %k\n%k1 = splat %c1\n%o = add %e %k1\n%a = at %p %e\n%b = at %p %o\n"
            "store %a\nstore %b",
            "store, store",
        ),
        "even, and even again": (
            "%k = splat %c2\n%e = mul %i %k\n%o = add %e %k\n%a = at %p %e\n%b = at %p %o\nstore %a\nstore %b",
            "store, | store",
        ),
        "the part of each of two in a row of 128": (
            "%k = splat %c64\n%k2 = add %k %k\n%sn = splat %n\n%r = mul %sn %k2\n%e = add %i %r\n%o = add %e %k\n"
            "%a = at %p %e\n%b = at %p %o\nstore %a\nstore %b",
            "store, store",
        ),
        "n further, of n": (
            f"{A}\n%sn = splat %n\n%m = below %i %sn\n%j = add %i %sn\n%b = at %p %j\nstore %a %m\nload %b %m",
            "store, load",
        ),
        "n further, of all": (
            f"{A}\n%sn = splat %n\n%j = add %i %sn\n%b = at %p %j\nstore %a\nload %b",
            "store, | load",
        ),
        "rows of another stride": (
            f"{A}\n%sn = splat %n\n%j = mul %i %sn\n%b = at %p %j\nload %b\nstore %b\nload %a",
            "load, store, | load",
        ),
        "a scalar": ("load1 %p\nstore1 %p\nstore1 %p\nload1 %p", "load, | store, store, | load"),
        "the next scalar": ("%b = at1 %p %c1\nload1 %p\nstore1 %b", "load, store"),
        "a scalar and a tile": (f"{A}\n%b = at1 %p %n\nstore %a\nstore1 %b", "store, | store"),
        "sums": (f"{A}\n{MIRRORED}\natomic add %a\natomic add %b", "atomic, atomic"),
        "sums and a maximum": (f"{A}\n{MIRRORED}\natomic add %a\natomic max %b", "atomic, | atomic"),
        "sums whose old values are used": (
            f"{A}\n{MIRRORED}\natomic add %a\n%old = atomic add %b\n%u = add %old %old",
            "atomic, | atomic",
        ),
        "a sum at the same offsets": (f"{A}\nstore %a\natomic add %a\nload %a", "store, atomic, load"),
    }.values(),
)
def test_accesses_that_may_meet_have_a_barrier_between(body: str, expected: str) -> None:
    assert places(body) == expected.split(", ")


def loop(body: str, offset: str = "%k = mul1 %t %c64") -> str:
    """Return a loop over %t, with %b, a tile at an offset that depends on it."""
    before = f"scf.for %t = %c0 to %n step %c1 : i32 {{\n{offset}\n%sk = splat %k\n%j = add %i %sk\n%b = at %p %j\n"
    return f"{A}\n{MIRRORED.replace('%b', '%m')}\n{before}{body}\n}}"


def moved(step: str) -> str:
    """Return a loop that carries a tile of pointers."""
    pointers, numbers = "tensor<64x!tt.ptr<i32>, #b>", "tensor<64xi32, #b>"
    return (
        f"{A}\n%k = splat {step}\n"
        f"%e = scf.for %t = %c0 to %n step %c1 iter_args(%x = %a) -> ({pointers}) : i32 {{\n"
        f"store %x\n%y = tt.addptr %x, %k : {pointers}, {numbers}\nscf.yield %y : {pointers}\n}}"
    )


@pytest.mark.parametrize(
    ("body", "expected"),
    {
        "blocks one after the other": (loop("load %b\nstore %b"), "loop, load, store"),
        "blocks that overlap": (loop("load %b\nstore %b", "%k = mul1 %t %c32"), "loop, | load, store"),
        "rows of an unknown stride": (loop("store %b", "%k = mul1 %t %s"), "loop, | store"),
        "the same block": (loop("load %a\nstore %a"), "loop, load, store"),
        "the end of an iteration and the start of the next": (
            loop("load %a\nload %m\nstore %a"),
            "loop, load, | load, | store",
        ),
        "before a loop": (loop("load %a").replace("scf.for", "store %m\nscf.for"), "store, | loop, load"),
        "before a loop, whose iterations wait anyway": (
            loop("load %a\nstore %m").replace("scf.for", "store %m\nscf.for"),
            "store, loop, | load, | store",
        ),
        "behind a loop": (loop("store %a") + "\nload %m", "loop, store, | load"),
        "in one branch": (
            f"{A}\n{MIRRORED}\nstore %a\nscf.if %more {{\nload %b\n}} else {{\nload %a\n}}\nstore %b",
            "store, | load, load, | store",
        ),
        "on one of two ways": (f"{A}\n{MIRRORED}\nscf.if %more {{\nstore %a\n}}\nload %b", "store, | load"),
        "the condition of a loop": (
            f"{A}\n{MIRRORED}\nscf.while : () -> () {{\nload %a\nscf.condition(%more)\n}} do {{\n"
            "store %b\nscf.yield\n}\nload %a",
            "loop, | load, | store, load",
        ),
        "a pointer that a loop moves to the next block": (moved("%c64"), "loop, store"),
        "a pointer that a loop moves by less": (moved("%c32"), "loop, | store"),
        "pointers that a loop exchanges": (
            "%e:2 = scf.for %t = %c0 to %n step %c1 iter_args(%x = %p, %y = %q) -> (!tt.ptr<i32>, !tt.ptr<i32>)"
            " : i32 {\n"
            "%a = at %x %i\n%b = at %y %i\nload %a\nstore %b\nscf.yield %y, %x : !tt.ptr<i32>, !tt.ptr<i32>\n}",
            "loop, | load, | store",
        ),
    }.values(),
)
def test_control_flow_brings_accesses_together(body: str, expected: str) -> None:
    assert places(body) == expected.split(", ")


def test_addresses_from_memory_may_be_anywhere() -> None:
    pointer = "%x = tt.int_to_ptr %w : i64 -> !tt.ptr<i32>"
    body = f"{A}\n%w = arith.extsi %n : i32 to i64\n{pointer}\n%b = at %x %i\nstore %a\nload %b"
    assert places(body) == ["store", "| load"]


def test_indices_from_memory_may_be_equal() -> None:
    body = f"{A}\n%w = load %a\n%b = at %q %w\nload %b\nstore %b"
    assert places(body) == ["load", "load", "| store"]


def test_accesses_that_are_not_ordered_are_reported_in_the_order_of_their_lines() -> None:
    line = '    %v{0} = tt.load %q{0} : tensor<64x!tt.ptr<i32>> loc("k.py":{1}:0)'
    moved = [
        f"    %o{n} = arith.constant dense<{n}> : tensor<64xi32>\n    %i{n} = arith.addi %i, %o{n} : tensor<64xi32>\n"
        f"    %q{n} = tt.addptr %ps, %i{n} : tensor<64x!tt.ptr<i32>>, tensor<64xi32>\n{line.format(n, n)}"
        for n in range(1, 9)
    ]
    kept = [f"    %s{n} = arith.addi %{'v1' if n == 2 else f's{n - 1}'}, %v{n} : tensor<64xi32>" for n in range(2, 9)]
    text = "\n".join(
        [
            "module { tt.func public @k(%p: !tt.ptr<i32>) {",
            "    %i = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>",
            "    %ps = tt.splat %p : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>",
            "    %to = tt.addptr %ps, %i : tensor<64x!tt.ptr<i32>>, tensor<64xi32>",
            *moved,
            *kept,
            '    tt.store %to, %s8 : tensor<64x!tt.ptr<i32>> loc("k.py":9:0)',
            "    tt.return } }",
        ]
    )
    (site,) = (site for site in read_kernel(text, check=True).sites if " after " in site.text)
    assert re.findall(r"k\.py:(\d)", site.text) == list("12345678")
