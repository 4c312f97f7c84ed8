"""Check floats of 16 bits: how f32 are rounded to them, and how elements are replaced that a mask leaves out."""

from __future__ import annotations

import numpy as np
import pytest
from foundry_core.mapping.simt.lower import Simt, lower_simt

from ..devices import DEVICES, launch_on
from ..kernels import elementwise
from ..memory import Array
from ..spirv import Module

EACH = 8


def of_entry(made: Simt) -> list[str]:
    """Return the names of a kernel's instructions, without those of functions that it calls."""
    read = Module(made.module)
    return [name for _, block in read.functions[read.entry].blocks for name, _ in block]


def numbers() -> Array:
    """Return f32 of all kinds, at and beside the middle of two bf16: zeros, subnormals, the largest, infinities."""
    special = [0, 1, 0x7F, 0x80, 0x3F80, 0x7F7E, 0x7F7F, 0x7F80, 0x7F81, 0x7FBF, 0x7FC0, 0x7FFF]
    upper = np.array([*special, *np.random.default_rng(1).integers(0, 0x8000, 116)], np.uint32)
    upper = np.concatenate([upper, upper | 0x8000])
    lower = np.array([0, 1, 0x7FFF, 0x8000, 0x8001, 0xC000, 0xFFFE, 0xFFFF], np.uint32)
    return (upper[:, None] << 16 | lower).ravel()


@pytest.mark.parametrize("device", ["keeping", "lavapipe", "least", "opencl"])
def test_f32_is_rounded_to_bf16_and_nan_stays_nan(device: str) -> None:
    target, bits = DEVICES[device], numbers()
    lines = ["%v = arith.truncf %x0 : TILE(f32) to TILE(bf16)"]
    size = 4 * target.warp_size * EACH
    made = lower_simt(elementwise(["f32"], {"%v": "bf16"}, lines, lanes=target.warp_size, size=size, each=EACH), target)
    out = np.full(len(bits), 77, np.uint16)
    found = launch_on(made, target, [bits.view(np.float32), out], (len(bits) // size, 1, 1)).arrays[1]
    is_nan = np.isnan(bits.view(np.float32))
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    np.testing.assert_array_equal(found, np.where(is_nan, bits >> 16 | 0x40, rounded))
    # The rounding is written once, and called for each element.
    assert of_entry(made).count("FunctionCall") == EACH


@pytest.mark.parametrize(("elem", "other"), [("bf16", "1.5"), ("bf16", "0x7FC1"), ("f16", "-0.0"), ("i8", "-3")])
@pytest.mark.parametrize("device", ["h100", "lavapipe"])
def test_element_that_a_mask_leaves_out_is_replaced_in_whole_words(device: str, elem: str, other: str) -> None:
    target = DEVICES[device]
    lanes, size = target.warp_size, 4 * target.warp_size * EACH
    lines = [
        f"%limit = arith.constant dense<{size // 2}> : TILE(i32)",
        "%m = arith.cmpi slt, %i, %limit : TILE(i32)",
        f"%o = arith.constant dense<{other}> : TILE({elem})",
        f"%v = tt.load %a0, %m, %o : TILE(!tt.ptr<{elem}>)",
    ]
    made = lower_simt(elementwise([elem], {"%v": elem}, lines, lanes=lanes, size=size, each=EACH), target)
    dtype = np.int8 if elem == "i8" else np.uint16
    x = np.random.default_rng(2).integers(0, 1 << 8 * dtype(0).itemsize, size).astype(np.uint16).astype(dtype)
    bits = {"1.5": 0x3FC0, "0x7FC1": 0x7FC1, "-0.0": 0x8000, "-3": -3}[other]
    found = launch_on(made, target, [x, np.full(size, 77, dtype)]).arrays[1]
    np.testing.assert_array_equal(found, np.where(np.arange(size) < size // 2, x, np.array(bits).astype(dtype)))
    # One for the address, and one for each 4 bytes.
    assert of_entry(made).count("Select") == 1 + EACH * x.itemsize // 4


@pytest.mark.parametrize("elem", ["f16", "bf16", "f8E5M2"])
@pytest.mark.parametrize("device", sorted(DEVICES))
def test_bits_of_every_number_are_kept_where_elements_only_move(device: str, elem: str) -> None:
    target, dtype = DEVICES[device], np.uint8 if elem == "f8E5M2" else np.uint16
    bits = np.arange(np.iinfo(dtype).max + 1).astype(dtype)
    size = 4 * target.warp_size * EACH
    bits = np.tile(bits, max(1, size // len(bits)))
    single = f"sizePerThread = [1], threadsPerWarp = [{target.warp_size}], warpsPerCTA = [4], order = [0]"
    other = f"tensor<{size}x{elem}, #ttg.blocked<{{{single}}}>>"
    lines = [
        f"%c = ttg.convert_layout %x0 : TILE({elem}) -> {other}",
        f"%v = ttg.convert_layout %c : {other} -> TILE({elem})",
        f"%last = arith.constant dense<{size - 1}> : TILE(i32)",
        "%back = arith.subi %last, %r : TILE(i32)",
        f"%w = tt.gather %v[%back] {{axis = 0 : i32}} : (TILE({elem}), TILE(i32)) -> TILE({elem})",
    ]
    kernel = elementwise([elem], {"%v": elem, "%w": elem}, lines, lanes=target.warp_size, size=size, each=EACH)
    outputs = [np.full(len(bits), 77, dtype) for _ in range(2)]
    programs = len(bits) // size
    _, there, reversed = launch_on(lower_simt(kernel, target), target, [bits, *outputs], (programs, 1, 1)).arrays
    np.testing.assert_array_equal(there, bits)
    np.testing.assert_array_equal(reversed, bits.reshape(programs, size)[:, ::-1].ravel())
