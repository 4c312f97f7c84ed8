"""Kernels as text, in TTIR, or in TTGIR for any subgroup: a test writes the operations that it is about."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence


def _module(layouts: Mapping[str, str], warps: int, lanes: int, parameters: str, lines: Sequence[str]) -> str:
    body = "".join(f"    {line}\n" for line in lines)
    function = (
        f"  tt.func public @kernel({parameters}) attributes {{noinline = false}} {{\n{body}    tt.return\n  }}\n}}\n"
    )
    if not lanes:
        return f"module {{\n{function}"
    head = "".join(f"#{name} = #ttg.{layout}\n" for name, layout in layouts.items())
    return (
        f'{head}module attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = {warps} : i32, ttg.target = '
        f'"hip:gfx942", "ttg.threads-per-warp" = {lanes} : i32}} {{\n{function}'
    )


def _parameters(types: Sequence[str]) -> str:
    return ", ".join(f"%p{k}: !tt.ptr<{type}> {{tt.divisibility = 16 : i32}}" for k, type in enumerate(types))


def elementwise(
    inputs: Sequence[str],
    outputs: Mapping[str, str],
    lines: Sequence[str],
    *,
    lanes: int,
    warps: int = 4,
    size: int,
    numbers: Sequence[str] = (),
    each: int = 4,
) -> str:
    """Return a kernel on arrays of `size` elements a program.

    Args:
        lanes: invocations of a subgroup; 0 for TTIR, which has no layouts.
        inputs: the types of arrays, which are the values %x0, %x1 and so on.
        outputs: the values that are stored, with their types.
        lines: what computes these values. TILE(f32) stands for the type of a tile of f32.
        size, each: an invocation has so many neighbours at a time.
        numbers: further parameters, such as "%n: i32".
    """

    def tile(elem: str) -> str:
        return f"tensor<{size}x{elem}{', #b' * bool(lanes)}>"

    types = [*inputs, *outputs.values()]
    made = [
        "%pid = tt.get_program_id x : i32",
        f"%size = arith.constant {size} : i32",
        "%first = arith.muli %pid, %size : i32",
        f"%r = tt.make_range {{end = {size} : i32, start = 0 : i32}} : {tile('i32')}",
        f"%firsts = tt.splat %first : i32 -> {tile('i32')}",
        f"%i = arith.addi %firsts, %r : {tile('i32')}",
    ]
    for k, type in enumerate(types):
        pointers = tile(f"!tt.ptr<{type}>")
        made.append(f"%s{k} = tt.splat %p{k} : !tt.ptr<{type}> -> {pointers}")
        made.append(f"%a{k} = tt.addptr %s{k}, %i : {pointers}, {tile('i32')}")
        if k < len(inputs):
            made.append(f"%x{k} = tt.load %a{k} : {pointers}")
    made += [_with_tiles(line, tile) for line in lines]
    for k, (value, type) in enumerate(outputs.items(), len(inputs)):
        made.append(f"tt.store %a{k}, {value} : {tile(f'!tt.ptr<{type}>')}")
    layout = f"blocked<{{sizePerThread = [{each}], threadsPerWarp = [{lanes}], warpsPerCTA = [{warps}], order = [0]}}>"
    return _module({"b": layout}, warps, lanes, ", ".join([_parameters(types), *numbers]), made)


def _with_tiles(line: str, tile: Callable[[str], str]) -> str:
    return re.sub(r"TILE\(([^)]*)\)", lambda found: tile(found[1]), line)


def product(
    factor: str,
    total: str,
    count: int,
    outputs: Mapping[str, str],
    lines: Sequence[str],
    *,
    lanes: int,
    warps: int = 4,
    size: int = 32,
) -> str:
    """Return a kernel that multiplies two square matrices several times, and computes with the products.

    Args:
        factor: the type of both, the first two arrays.
        total: the type of the products, which are the values %d0, %d1 and so on.
        count: how many there are.
        outputs, lines: see `elementwise`. %row and %column are tiles of the product's type and shape that repeat a row
            and a column: the numbers from `size` on.
    """
    half = lanes // 4

    def layout(high: int, wide: int, each: Sequence[int]) -> str:
        return (
            f"blocked<{{sizePerThread = [{each[0]}, {each[1]}], threadsPerWarp = [{high}, {wide}], "
            f"warpsPerCTA = [{warps}, 1], order = [1, 0]}}>"
        )

    def tile(elem: str, layout: str = "b", shape: str = f"{size}x{size}") -> str:
        return f"tensor<{shape}x{elem}, #{layout}>"

    types = [factor, factor, *outputs.values()]
    of = "n" if total[0] == "f" else "e"
    slices = [f"ttg.slice<{{dim = {dim}, parent = #b}}>" for dim in (1, 0)]
    line, (down, across) = f"{size}xi32", (f"{size}x1", f"1x{size}")
    made = [
        *(
            f"%r{k} = tt.make_range {{end = {size + first} : i32, start = {first} : i32}} : tensor<{line}, #{of}>"
            for k, (of, first) in enumerate([(slices[0], 0), (slices[1], 0), (slices[0], size), (slices[1], size)])
        ),
        *(
            f"%e{k} = tt.expand_dims %r{k} {{axis = {1 - k % 2} : i32}} : tensor<{line}, #{slices[k % 2]}> -> "
            f"{tile('i32', shape=(down, across)[k % 2])}"
            for k in range(4)
        ),
        f"%size = arith.constant dense<{size}> : {tile('i32', shape=down)}",
        f"%rows = arith.muli %e0, %size : {tile('i32', shape=down)}",
        f"%down = tt.broadcast %rows : {tile('i32', shape=down)} -> {tile('i32')}",
        f"%across = tt.broadcast %e1 : {tile('i32', shape=across)} -> {tile('i32')}",
        *(
            f"%n{k} = arith.sitofp %e{k} : {tile('i32', shape=shape)} to {tile(total, shape=shape)}"
            for k, shape in ((2, down), (3, across))
            if total[0] == "f"
        ),
        *(
            f"%{name} = tt.broadcast %{of}{k} : {tile(total, shape=shape)} -> {tile(total)}"
            for name, k, shape in (("column", 2, down), ("row", 3, across))
        ),
        f"%i = arith.addi %down, %across : {tile('i32')}",
        f"%zero = arith.constant dense<{'0' if total[0] == 'i' else '0.0'}> : {tile(total)}",
    ]
    for k, type in enumerate(types):
        pointers = tile(f"!tt.ptr<{type}>")
        made.append(f"%s{k} = tt.splat %p{k} : !tt.ptr<{type}> -> {pointers}")
        made.append(f"%a{k} = tt.addptr %s{k}, %i : {pointers}, {tile('i32')}")
        if k < 2:
            shared = f"!ttg.memdesc<{size}x{size}x{factor}, #s, #m>"
            operand = f"tensor<{size}x{size}x{factor}, #ttg.dot_op<{{opIdx = {k}, parent = #b}}>>"
            made.append(f"%x{k} = tt.load %a{k} : {pointers}")
            made.append(f"%l{k} = ttg.local_alloc %x{k} : ({tile(factor)}) -> {shared}")
            made.append(f"%o{k} = ttg.local_load %l{k} : {shared} -> {operand}")
    operands = [f"tensor<{size}x{size}x{factor}, #ttg.dot_op<{{opIdx = {k}, parent = #b}}>>" for k in (0, 1)]
    made += [f"%d{k} = tt.dot %o0, %o1, %zero : {operands[0]} * {operands[1]} -> {tile(total)}" for k in range(count)]
    made += [_with_tiles(line, tile) for line in lines]
    for k, (value, type) in enumerate(outputs.items(), 2):
        made.append(f"tt.store %a{k}, {value} : {tile(f'!tt.ptr<{type}>')}")
    layouts = {
        "b": layout(half, 4, (2, 2)),
        "s": "swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>",
        "m": "shared_memory",
    }
    return _module(layouts, warps, lanes, _parameters(types), made)
