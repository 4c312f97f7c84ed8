"""Products whose factors do not fit into workgroup memory at once are computed in parts along K."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from foundry_core.errors import TooLarge
from foundry_core.mapping.simt.lower import Simt, lower_simt, lower_to_fit
from foundry_core.mapping.simt.target import SimtTarget

from ..devices import H100, LAVAPIPE, LEAST, launch_on
from ..kernels import elementwise, product
from .test_neighbours import instructions

DTYPES: dict[str, Any] = {"f16": np.float16, "f32": np.float32, "i8": np.int8, "i32": np.int32}
SIZE = 128


def fitted(factor: str, total: str, target: SimtTarget) -> Simt:
    text = product(factor, total, 1, {"%d0": total}, [], lanes=target.warp_size, size=SIZE)
    return lower_to_fit(lambda parts: lower_simt(text, target, parts=parts))


def check(made: Simt, factor: str, total: str, target: SimtTarget) -> None:
    """Compare a product of small integers, NaN and infinities, which no order of the sum changes."""
    random = np.random.default_rng(1)
    a, b = (random.integers(-3, 4, (SIZE, SIZE)).astype(DTYPES[factor]) for _ in range(2))
    if factor[0] == "f":
        a[3, 5], a[7, 70], b[90, 11], b[2, 2] = np.nan, np.inf, -np.inf, -0.0
    out = np.full((SIZE, SIZE), 77, DTYPES[total])
    found = launch_on(made, target, [a.ravel(), b.ravel(), out.ravel()]).arrays[2].reshape(SIZE, SIZE)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(found, (a.astype(np.float64) @ b.astype(np.float64)).astype(DTYPES[total]))


FACTORS = [
    ("f16", "f32", {16: 4, 32: 2, 48: 1}, (H100, LAVAPIPE)),
    ("f32", "f32", {16: 8, 32: 4, 48: 2}, (H100, LEAST)),
    ("i8", "i32", {16: 2, 32: 1}, (H100, LAVAPIPE)),
]
CASES = [
    pytest.param(factor, total, kib, parts, device, id=f"{device.warp_size}-{factor}-{kib}")
    for factor, total, limits, devices in FACTORS
    for kib, parts in limits.items()
    for device in devices
]


@pytest.mark.parametrize(("factor", "total", "kib", "parts", "device"), CASES)
def test_product_has_as_few_parts_as_fit(factor: str, total: str, kib: int, parts: int, device: SimtTarget) -> None:
    target = replace(device, workgroup_bytes=kib << 10, compiles_slowly=False)
    made = fitted(factor, total, target)
    assert made.parts == parts and made.local_bytes <= kib << 10
    check(made, factor, total, target)


def test_product_that_fits_in_no_parts_is_refused() -> None:
    with pytest.raises(TooLarge, match="of which the device has 8192"):
        fitted("f32", "f32", replace(H100, workgroup_bytes=8 << 10))
    # A sum of f16 would be rounded after each part.
    with pytest.raises(TooLarge, match="of which the device has 16384"):
        fitted("f16", "f16", replace(H100, workgroup_bytes=16 << 10))


SHARED = "#ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>, #ttg.shared_memory, mutable"


@pytest.mark.parametrize("target", [H100, LAVAPIPE, LEAST], ids=["h100", "lavapipe", "least"])
@pytest.mark.parametrize("n", [0, 1])
def test_stores_to_places_of_different_tiles_have_no_barrier_between(n: int, target: SimtTarget) -> None:
    """Loops of several stages keep tiles of both factors, and only the launch tells which is next."""
    size = 4 * target.warp_size
    one, two = f"!ttg.memdesc<{size}xi32, {SHARED}>", f"!ttg.memdesc<2x{size}xi32, {SHARED}>"
    lines = [f"%{name} = ttg.local_alloc : () -> {two}" for name in "ab"]
    lines += [f"%{name}n = ttg.memdesc_index %{name}[%n] : {two} -> {one}" for name in "ab"]
    lines += [f"ttg.local_store %x{k}, %{name}n : TILE(i32) -> {one}" for k, name in enumerate("ab")]
    lines += [f"%{name}l = ttg.local_load %{name}n : {one} -> TILE(i32)" for name in "ab"]
    lines += ["%d = arith.subi %al, %bl : TILE(i32)"]
    text = elementwise(
        ["i32", "i32"], {"%d": "i32"}, lines, lanes=target.warp_size, size=size, numbers=["%n: i32"], each=1
    )
    made = lower_simt(text, target)
    assert instructions(made.module)["ControlBarrier"] == 1
    x, y = (np.random.default_rng(seed).integers(-9, 9, size).astype(np.int32) for seed in (1, 2))
    found = launch_on(made, target, [x, y, np.full(size, 77, np.int32), np.int32(n)]).arrays[2]
    np.testing.assert_array_equal(found, x - y)
