"""Check atomic operations on tiles: the values, and the branches and loops that are written for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from foundry_core.mapping.simt.lower import lower_simt

from ..devices import DEVICES, H100, run
from ..kernels import elementwise
from ..memory import Array
from ..rows import DTYPES
from ..spirv import Module

# Of each element: changed or not, as a tile; of all, by a number that the kernel reads.
MASKS = {
    "all": ["%m = arith.constant dense<true> : TILE(i1)"],
    "some": [
        "%three = arith.constant dense<3> : TILE(i32)",
        "%rest = arith.remsi %i, %three : TILE(i32)",
        "%zero = arith.constant dense<0> : TILE(i32)",
        "%m = arith.cmpi ne, %rest, %zero : TILE(i32)",
    ],
    "row": [
        "%five = arith.constant 5 : i32",
        "%below = arith.cmpi slt, %pid, %five : i32",
        "%m = tt.splat %below : i1 -> TILE(i1)",
    ],
}
SPECIAL = [0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, 65504.0, -65504.0, 6e-8, -6e-8, 0.1, 2048.0, 1.0]


def kernel(kind: str, elem: str, mask: str, shift: int, *, lanes: int, size: int) -> str:
    """Return a kernel that changes %p1 by %x0, `shift` elements farther, and stores what was there."""
    lines = [
        *MASKS[mask],
        f"%shift = arith.constant dense<{shift}> : TILE(i32)",
        "%at = arith.addi %i, %shift : TILE(i32)",
        f"%s = tt.splat %p1 : !tt.ptr<{elem}> -> TILE(!tt.ptr<{elem}>)",
        f"%to = tt.addptr %s, %at : TILE(!tt.ptr<{elem}>), TILE(i32)",
        f"%old = tt.atomic_rmw {kind}, relaxed, gpu, %to, %x0, %m : (TILE(!tt.ptr<{elem}>), TILE({elem}), TILE(i1))"
        f" -> TILE({elem})",
        f"%none = arith.constant dense<{'7.0' if elem[0] == 'f' else '7'}> : TILE({elem})",
        f"%v = arith.select %m, %old, %none : TILE(i1), TILE({elem})",
        f"%sp = tt.splat %p2 : !tt.ptr<{elem}> -> TILE(!tt.ptr<{elem}>)",
        f"%there = tt.addptr %sp, %i : TILE(!tt.ptr<{elem}>), TILE(i32)",
        f"tt.store %there, %v : TILE(!tt.ptr<{elem}>)",
    ]
    text = elementwise([elem], {}, lines, lanes=lanes, size=size)
    pointers = ", ".join(f"%p{k}: !tt.ptr<{elem}> {{tt.divisibility = 16 : i32}}" for k in range(3))
    return text.replace(f"%p0: !tt.ptr<{elem}> {{tt.divisibility = 16 : i32}}", pointers)


KINDS: dict[str, tuple[Sequence[str], Callable[[Array, Array], Array]]] = {
    "fadd": (("f16", "f32"), np.add),
    "add": (("i16", "i32"), np.add),
    "exch": (("f16", "i16", "i8", "f32"), lambda old, new: new),
    "max": (("i16", "i8"), np.maximum),
    "xor": (("i16", "i8", "i64"), np.bitwise_xor),
}


def drawn(elem: str, size: int, seed: int) -> Array:
    random, dtype = np.random.default_rng(seed), DTYPES[elem]
    if elem[0] == "f":
        return random.choice(np.array(SPECIAL, np.float64), size).astype(dtype)
    known = np.iinfo(dtype)
    return random.choice(np.array([known.min, known.max, -1, 0, 1, 5]), size).astype(dtype)


@pytest.mark.parametrize("shift", [0, 1, 2])
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("kind", "elem"), [(kind, elem) for kind, (elems, _) in KINDS.items() for elem in elems])
def test_each_element_is_changed_once_and_what_was_there_is_returned(
    kind: str, elem: str, device: str, mask: str, shift: int
) -> None:
    target = DEVICES[device]
    programs, size = 6, 16 * target.warp_size
    total = programs * size
    x, before = drawn(elem, total, 1), drawn(elem, total + 4, 2)
    if elem == "f16" and target.flavour == "shader" and 16 not in target.preserves_denormals:
        # Such a device may compute with zeros in place of subnormal numbers.
        for array in (x, before):
            array[np.abs(array) < np.finfo(array.dtype).tiny] = -0.0
    text = kernel(kind, elem, mask, shift, lanes=target.warp_size, size=size)
    _, after, old = run(text, target, [x, before, np.full_like(x, 77)], programs)
    place = np.arange(total)
    changed = {"all": place >= 0, "some": place % 3 != 0, "row": place // size < 5}[mask]
    wanted, there = before.copy(), before[shift : shift + total]
    with np.errstate(all="ignore"):
        wanted[shift : shift + total][changed] = KINDS[kind][1](there, x)[changed]
    same(after, wanted)
    same(old, np.where(changed, there, there.dtype.type(7)))


def same(found: Array, wanted: Array) -> None:
    """Compare numbers and the signs of zeros."""
    np.testing.assert_array_equal(found, wanted)
    if wanted.dtype.kind == "f":
        numbers = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(found)[numbers], np.signbit(wanted)[numbers])


@pytest.mark.parametrize("elem", ["f16", "i16"])
@pytest.mark.parametrize("device", DEVICES)
def test_pairs_that_several_programs_change_lose_nothing(device: str, elem: str) -> None:
    target = DEVICES[device]
    programs, size = 3, 16 * target.warp_size
    x = np.random.default_rng(3).integers(-9, 9, programs * size).astype(DTYPES[elem])
    kind = "fadd" if elem == "f16" else "add"
    # All programs have the places of the first.
    text = kernel(kind, elem, "all", 0, lanes=target.warp_size, size=size).replace(
        "%to = tt.addptr %s, %at", "%to = tt.addptr %s, %r"
    )
    _, after, _ = run(text, target, [x, np.zeros(size, x.dtype), np.full_like(x, 77)], programs)
    np.testing.assert_array_equal(after, x.reshape(programs, size).sum(0))


def counted(text: str, target: Any = H100) -> Counter[str]:
    module = Module(lower_simt(text, target).module)
    return Counter(op for function in module.functions.values() for _, block in function.blocks for op, _ in block)


@pytest.mark.parametrize(
    ("elem", "shift", "loops"), [("f16", 0, 2), ("f16", 2, 2), ("f16", 1, 3), ("i16", 0, 2), ("i8", 0, 1)]
)
def test_neighbours_that_fill_a_word_share_a_loop(elem: str, shift: int, loops: int) -> None:
    # Four neighbours an invocation; a word of two f16 begins at an even element.
    text = kernel({"f16": "fadd", "i16": "add", "i8": "xor"}[elem], elem, "all", shift, lanes=32, size=512)
    assert counted(text, replace(H100, atomic_adds=(32,)))["AtomicCompareExchange"] == loops


@pytest.mark.parametrize(
    ("mask", "shift", "lengths"),
    [("all", 0, {4: 1}), ("row", 0, {4: 1}), ("all", 2, {2: 2}), ("all", 1, {2: 1, 1: 2}), ("some", 0, {1: 4})],
)
def test_neighbouring_halves_are_added_at_once(mask: str, shift: int, lengths: dict[int, int]) -> None:
    module = Module(lower_simt(kernel("fadd", "f16", mask, shift, lanes=32, size=512), H100).module)
    found: Counter[int] = Counter()
    for function in module.functions.values():
        for _, block in function.blocks:
            for op, words in block:
                if op == "AtomicFAdd":
                    found[module.types[words[0]].lanes] += 1
                elif op == "AtomicCompareExchange":
                    found[1] += 1
    assert found == lengths


@pytest.mark.parametrize(("mask", "branches"), [("all", 0), ("row", 1), ("some", 32)])
def test_elements_of_one_mask_share_a_branch(mask: str, branches: int) -> None:
    text = kernel("fadd", "f32", mask, 0, lanes=32, size=4096)
    found = counted(text)
    assert (found["AtomicFAdd"], found["BranchConditional"]) == (32, branches)


@pytest.mark.parametrize(
    ("order", "fences"), [("relaxed", ""), ("acquire", "after"), ("release", "before"), ("acq_rel", "before after")]
)
@pytest.mark.parametrize("device", ["h100", "lavapipe", "opencl"])
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize(("kind", "elem"), [("fadd", "f32"), ("fadd", "f16"), ("exch", "i32")])
def test_an_order_costs_one_fence_for_all_elements(
    kind: str, elem: str, mask: str, device: str, order: str, fences: str
) -> None:
    target = DEVICES[device]
    text = kernel(kind, elem, mask, 0, lanes=target.warp_size, size=16 * target.warp_size)
    module = Module(lower_simt(text.replace("relaxed", order), target).module)
    found = []
    for function in module.functions.values():
        for _, block in function.blocks:
            for op, words in block:
                if op == "MemoryBarrier":
                    found.append("fence")
                elif op.startswith("Atomic"):
                    orders = words[4:6] if op == "AtomicCompareExchange" else words[4:5]
                    assert not any(module.constants[word] for word in orders), "the instruction itself has no order"
                    found.append("atomic")
    assert found.count("fence") == len(fences.split())
    assert (found[0] == "fence", found[-1] == "fence") == ("before" in fences, "after" in fences)
