"""Check loops that load two iterations ahead: values, and that nothing is read behind the last block."""

from __future__ import annotations

import numpy as np
import pytest
from foundry_core.mapping.simt import ahead
from foundry_core.mapping.simt.lower import lower_simt

from ..devices import DEVICES, launch_on

SIZE, STEP = 32, 16
# What Triton's pipeliner makes of a loop over K: it loads the next blocks, multiplies, and stores them.
_PRODUCT = """
#b = #ttg.blocked<{{sizePerThread = [1, 2], threadsPerWarp = [{high}, {wide}], warpsPerCTA = [4, 1], order = [1, 0]}}>
#s = #ttg.swizzled_shared<{{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}}>
#m = #ttg.shared_memory
module attributes {{"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = {lanes} : i32}} {{
  tt.func public @kernel(%a: !tt.ptr<f16>, %b: !tt.ptr<f16>, %out: !tt.ptr<f32>, %k: i32) {{
    %c0 = arith.constant 0 : i32
    %c16 = arith.constant 16 : i32
    %zero = arith.constant dense<0.0> : tensor<32x32xf32, #b>
    %ozero = arith.constant dense<0.0> : tensor<32x16xf16, #b>
    %pzero = arith.constant dense<0.0> : tensor<16x32xf16, #b>
    %width = arith.constant dense<32> : tensor<16x1xi32, #b>
    %height = arith.constant dense<32> : tensor<32x1xi32, #b>
    %astep = arith.constant dense<16> : tensor<32x16xi32, #b>
    %bstep = arith.constant dense<512> : tensor<16x32xi32, #b>
    %i = tt.make_range {{end = 32 : i32, start = 0 : i32}} : tensor<32xi32, #ttg.slice<{{dim = 1, parent = #b}}>>
    %j = tt.make_range {{end = 32 : i32, start = 0 : i32}} : tensor<32xi32, #ttg.slice<{{dim = 0, parent = #b}}>>
    %l = tt.make_range {{end = 16 : i32, start = 0 : i32}} : tensor<16xi32, #ttg.slice<{{dim = 0, parent = #b}}>>
    %n = tt.make_range {{end = 16 : i32, start = 0 : i32}} : tensor<16xi32, #ttg.slice<{{dim = 1, parent = #b}}>>
    %i2 = tt.expand_dims %i {{axis = 1 : i32}} : tensor<32xi32, #ttg.slice<{{dim = 1, parent = #b}}>> -> tensor<32x1xi32, #b>
    %j2 = tt.expand_dims %j {{axis = 0 : i32}} : tensor<32xi32, #ttg.slice<{{dim = 0, parent = #b}}>> -> tensor<1x32xi32, #b>
    %l2 = tt.expand_dims %l {{axis = 0 : i32}} : tensor<16xi32, #ttg.slice<{{dim = 0, parent = #b}}>> -> tensor<1x16xi32, #b>
    %n2 = tt.expand_dims %n {{axis = 1 : i32}} : tensor<16xi32, #ttg.slice<{{dim = 1, parent = #b}}>> -> tensor<16x1xi32, #b>
    %ks = tt.splat %k : i32 -> tensor<32x1xi32, #b>
    %arow = arith.muli %i2, %ks : tensor<32x1xi32, #b>
    %arows = tt.broadcast %arow : tensor<32x1xi32, #b> -> tensor<32x16xi32, #b>
    %acols = tt.broadcast %l2 : tensor<1x16xi32, #b> -> tensor<32x16xi32, #b>
    %aat = arith.addi %arows, %acols : tensor<32x16xi32, #b>
    %as = tt.splat %a : !tt.ptr<f16> -> tensor<32x16x!tt.ptr<f16>, #b>
    %a0 = tt.addptr %as, %aat : tensor<32x16x!tt.ptr<f16>, #b>, tensor<32x16xi32, #b>
    %brow = arith.muli %n2, %width : tensor<16x1xi32, #b>
    %brows = tt.broadcast %brow : tensor<16x1xi32, #b> -> tensor<16x32xi32, #b>
    %bcols = tt.broadcast %j2 : tensor<1x32xi32, #b> -> tensor<16x32xi32, #b>
    %bat = arith.addi %brows, %bcols : tensor<16x32xi32, #b>
    %bs = tt.splat %b : !tt.ptr<f16> -> tensor<16x32x!tt.ptr<f16>, #b>
    %b0 = tt.addptr %bs, %bat : tensor<16x32x!tt.ptr<f16>, #b>, tensor<16x32xi32, #b>
    %abuf = ttg.local_alloc : () -> !ttg.memdesc<32x16xf16, #s, #m, mutable>
    %bbuf = ttg.local_alloc : () -> !ttg.memdesc<16x32xf16, #s, #m, mutable>
    %some = arith.cmpi sgt, %k, %c0 : i32
    %asome = tt.splat %some : i1 -> tensor<32x16xi1, #b>
    %bsome = tt.splat %some : i1 -> tensor<16x32xi1, #b>
    %fk = tt.splat %k : i32 -> tensor<1x16xi32, #b>
    %fk2 = tt.splat %k : i32 -> tensor<16x1xi32, #b>
    %fa = arith.cmpi slt, %l2, %fk : tensor<1x16xi32, #b>
    %fb = arith.cmpi slt, %n2, %fk2 : tensor<16x1xi32, #b>
    %fa2 = tt.broadcast %fa : tensor<1x16xi1, #b> -> tensor<32x16xi1, #b>
    %fb2 = tt.broadcast %fb : tensor<16x1xi1, #b> -> tensor<16x32xi1, #b>
    %x0 = tt.load %a0, {first_a}, %ozero : tensor<32x16x!tt.ptr<f16>, #b>
    %y0 = tt.load %b0, {first_b}, %pzero : tensor<16x32x!tt.ptr<f16>, #b>
    ttg.local_store %x0, %abuf : tensor<32x16xf16, #b> -> !ttg.memdesc<32x16xf16, #s, #m, mutable>
    ttg.local_store %y0, %bbuf : tensor<16x32xf16, #b> -> !ttg.memdesc<16x32xf16, #s, #m, mutable>
    %end = arith.subi %k, %c16 : i32
    %r:3 = scf.for %at = %c0 to %end step %c16 iter_args(%ap = %a0, %bp = %b0, %sum = %zero) -> (tensor<32x16x!tt.ptr<f16>, #b>, tensor<16x32x!tt.ptr<f16>, #b>, tensor<32x32xf32, #b>)  : i32 {{
      %an = tt.addptr %ap, %astep : tensor<32x16x!tt.ptr<f16>, #b>, tensor<32x16xi32, #b>
      %next = arith.addi %at, %c16 : i32
      %left = arith.subi %k, %next : i32
      %k1 = tt.splat %left : i32 -> tensor<1x16xi32, #b>
      %k2 = tt.splat %left : i32 -> tensor<16x1xi32, #b>
      %ma = arith.cmpi slt, %l2, %k1 : tensor<1x16xi32, #b>
      %mb = arith.cmpi slt, %n2, %k2 : tensor<16x1xi32, #b>
      %ma2 = tt.broadcast %ma : tensor<1x16xi1, #b> -> tensor<32x16xi1, #b>
      %mb2 = tt.broadcast %mb : tensor<16x1xi1, #b> -> tensor<16x32xi1, #b>
      %x = tt.load %an{mask_a} : tensor<32x16x!tt.ptr<f16>, #b>
      %bn = tt.addptr %bp, %bstep : tensor<16x32x!tt.ptr<f16>, #b>, tensor<16x32xi32, #b>
      %y = tt.load %bn{mask_b} : tensor<16x32x!tt.ptr<f16>, #b>
      %xo = ttg.local_load %abuf : !ttg.memdesc<32x16xf16, #s, #m, mutable> -> tensor<32x16xf16, #ttg.dot_op<{{opIdx = 0, parent = #b}}>>
      %yo = ttg.local_load %bbuf : !ttg.memdesc<16x32xf16, #s, #m, mutable> -> tensor<16x32xf16, #ttg.dot_op<{{opIdx = 1, parent = #b}}>>
      %d = tt.dot %xo, %yo, %sum : tensor<32x16xf16, #ttg.dot_op<{{opIdx = 0, parent = #b}}>> * tensor<16x32xf16, #ttg.dot_op<{{opIdx = 1, parent = #b}}>> -> tensor<32x32xf32, #b>
      ttg.local_store %x, %abuf : tensor<32x16xf16, #b> -> !ttg.memdesc<32x16xf16, #s, #m, mutable>
      ttg.local_store %y, %bbuf : tensor<16x32xf16, #b> -> !ttg.memdesc<16x32xf16, #s, #m, mutable>
      scf.yield %an, %bn, %d : tensor<32x16x!tt.ptr<f16>, #b>, tensor<16x32x!tt.ptr<f16>, #b>, tensor<32x32xf32, #b>
    }}
    %xl = ttg.local_load %abuf : !ttg.memdesc<32x16xf16, #s, #m, mutable> -> tensor<32x16xf16, #ttg.dot_op<{{opIdx = 0, parent = #b}}>>
    %yl = ttg.local_load %bbuf : !ttg.memdesc<16x32xf16, #s, #m, mutable> -> tensor<16x32xf16, #ttg.dot_op<{{opIdx = 1, parent = #b}}>>
    %total = tt.dot %xl, %yl, %r#2 : tensor<32x16xf16, #ttg.dot_op<{{opIdx = 0, parent = #b}}>> * tensor<16x32xf16, #ttg.dot_op<{{opIdx = 1, parent = #b}}>> -> tensor<32x32xf32, #b>
    %orow = arith.muli %i2, %height : tensor<32x1xi32, #b>
    %orows = tt.broadcast %orow : tensor<32x1xi32, #b> -> tensor<32x32xi32, #b>
    %ocols = tt.broadcast %j2 : tensor<1x32xi32, #b> -> tensor<32x32xi32, #b>
    %oat = arith.addi %orows, %ocols : tensor<32x32xi32, #b>
    %os = tt.splat %out : !tt.ptr<f32> -> tensor<32x32x!tt.ptr<f32>, #b>
    %op = tt.addptr %os, %oat : tensor<32x32x!tt.ptr<f32>, #b>, tensor<32x32xi32, #b>
    tt.store %op, %total : tensor<32x32x!tt.ptr<f32>, #b>
    tt.return
  }}
}}
"""  # noqa: E501  one operation a line


def pipelined(lanes: int, *, masked: bool) -> str:
    return _PRODUCT.format(
        lanes=lanes,
        high=lanes // 4,
        wide=4,
        first_a="%fa2" if masked else "%asome",
        first_b="%fb2" if masked else "%bsome",
        mask_a=", %ma2, %ozero" if masked else "",
        mask_b=", %mb2, %pzero" if masked else "",
    )


# The machine refuses what is read outside of an array. Where loads have no masks, K is a multiple of the step.
@pytest.mark.parametrize("masked", [True, False], ids=["masked", "whole"])
@pytest.mark.parametrize("device", sorted(DEVICES))
def test_product_is_the_same_for_each_number_of_iterations(device: str, masked: bool) -> None:
    target = DEVICES[device]
    made = lower_simt(pipelined(target.warp_size, masked=masked), target, ahead=True)
    assert made.is_ahead
    for k in (0, 1, 15, 16, 17, 32, 33, 48, 79, 80) if masked else (0, 16, 32, 48, 64, 80):
        random = np.random.default_rng(k)
        a, b = (random.integers(-8, 9, shape).astype(np.float16) for shape in ((SIZE, k), (k, SIZE)))
        out = np.full((SIZE, SIZE), np.nan, np.float32)
        found = launch_on(made, target, [a.ravel(), b.ravel(), out.ravel(), np.int32(k)]).arrays[2]
        np.testing.assert_array_equal(found.reshape(SIZE, SIZE), a.astype(np.float64) @ b)


_STORE = "tt.store %as, %ozero : tensor<32x16x!tt.ptr<f16>, #b>"
_CHANGES = {
    "each access of it counts": [
        ("tt.load %an", "tt.load %an {isVolatile = true}"),
        ("tt.load %bn", "tt.load %bn {isVolatile = true}"),
    ],
    "a store may change it": [("      %x = ", f"      {_STORE}\n      %x = ")],
    "its addresses come from memory": [
        (
            "%an = tt.addptr %ap, %astep",
            "%more = tt.load %ai : tensor<32x16x!tt.ptr<i32>, #b>\n      %an = tt.addptr %ap, %more",
        ),
        (
            "    %abuf = ",
            "    %ai = tt.bitcast %a0 : tensor<32x16x!tt.ptr<f16>, #b> -> tensor<32x16x!tt.ptr<i32>, #b>\n    %abuf = ",
        ),
    ],
}


@pytest.mark.parametrize("why", _CHANGES)
def test_loop_whose_loads_must_keep_their_place_is_left_as_it_is(why: str) -> None:
    target = DEVICES["h100"]
    text = pipelined(target.warp_size, masked=False)
    for before, after in _CHANGES[why]:
        assert text.count(before) == 1
        text = text.replace(before, after)
    assert not lower_simt(text, target, ahead=True).is_ahead


def test_loop_is_left_as_it_is_where_the_sums_need_the_registers(monkeypatch: pytest.MonkeyPatch) -> None:
    target = DEVICES["h100"]
    text = pipelined(target.warp_size, masked=True)
    elements = SIZE * SIZE // (4 * target.warp_size)
    monkeypatch.setattr(ahead, "_MOST_ELEMENTS", elements)
    assert lower_simt(text, target, ahead=True).is_ahead
    assert not lower_simt(text, target).is_ahead
    monkeypatch.setattr(ahead, "_MOST_ELEMENTS", elements - 1)
    assert not lower_simt(text, target, ahead=True).is_ahead
