"""Descriptions of devices, and kernels that run on them: the mapping's SimtTarget, and the machine that promises it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from foundry_core.mapping.simt.lower import Simt, lower_simt
from foundry_core.mapping.simt.matrices.instructions import Use
from foundry_core.mapping.simt.target import Arrangement, Fragment, SimtTarget

from .machine import Device, launch
from .memory import Array, Result

_ALL = (16, 32, 64)


def _powers(low: int, high: int) -> list[int]:
    return [1 << bit for bit in range(low.bit_length() - 1, high.bit_length() - 1)]


def in_pairs(use: int, elem: str, rows: int, columns: int, lanes: int) -> Arrangement:
    """Return an arrangement such as NVIDIA's: 4 invocations have two neighbours each of 8 columns, the next ones of the
    rows below; the other elements follow."""
    bases, bits = [2, 4, *_powers(columns, rows * columns), 1, *_powers(8, columns)], lanes.bit_length() - 1
    return Arrangement(use, elem, rows, columns, tuple(sorted(bases[bits:])), tuple(bases[:bits]))


def by_columns(use: int, elem: str, rows: int, columns: int, lanes: int) -> Arrangement:
    """Return an arrangement such as lavapipe's: an invocation has every so many elements, which are of one column."""
    bits = lanes.bit_length() - 1
    bases = tuple(_powers(1, rows * columns))
    return Arrangement(use, elem, rows, columns, bases[bits:], bases[:bits])


def mixed(use: int, elem: str, rows: int, columns: int, lanes: int) -> Arrangement:
    """Return an arrangement in which each bit moves an element along both dimensions."""
    bases = _powers(1, rows * columns)
    order = [1 << int(place) for place in np.random.default_rng(rows + columns).permutation(len(bases))]
    mixed = [basis ^ order[place - 1] if place else basis for place, basis in enumerate(order)]
    bits = lanes.bit_length() - 1
    return Arrangement(use, elem, rows, columns, tuple(mixed[bits:]), tuple(mixed[:bits]))


def arranged(target: SimtTarget, how: Callable[[int, str, int, int, int], Arrangement]) -> SimtTarget:
    """Return a device whose sums and left factors are arranged in this way."""
    kinds = [(Use.TOTAL.value, each.total, each.rows, each.columns) for each in target.fragments]
    kinds += [(Use.LEFT.value, each.factor, each.rows, each.depth) for each in target.fragments if each.factor != "i8"]
    return replace(target, arrangements=tuple(how(*kind, target.warp_size) for kind in dict.fromkeys(kinds)))


# An H100 through Vulkan (driver 580): four subgroups a program; of which nothing was found by trying.
SECRET = SimtTarget(
    argument_bytes=256,
    accurate_exp2=True,
    preserves_denormals=(16,),
    preserves_special=_ALL,
    rounds_to_nearest=_ALL,
    fragments=(
        *(Fragment("f16", total, 16, 16, 16) for total in ("f16", "f32")),
        Fragment("f16", "f32", 16, 8, 16),
        Fragment("f16", "f32", 16, 8, 8),
        Fragment("bf16", "f32", 16, 16, 16),
        Fragment("i8", "i32", 16, 16, 32),
        Fragment("i8", "i32", 16, 8, 32),
    ),
    atomic_adds=(16, 32, 64),
)
# The same, where it is known which invocation holds which element of a sum.
H100 = arranged(SECRET, in_pairs)
# The same, of which every float keeps subnormal numbers.
KEEPING = replace(H100, preserves_denormals=_ALL)
# Mesa's lavapipe 26.1: it rounds a fused multiply and add twice, and takes subnormal numbers for zeros.
LAVAPIPE = SimtTarget(
    8,
    workgroup_bytes=32 << 10,
    argument_bytes=256,
    fuses=(),
    splits_grids=True,
    preserves_special=_ALL,
    rounds_to_nearest=_ALL,
    fragments=(
        *(Fragment("f16", total, 8, 8, 8) for total in ("f16", "f32")),
        Fragment("i8", "i32", 8, 8, 8),
    ),
    invocations=256,
    compiles_slowly=True,
)
# A device that promises nothing of f16, and not to keep subnormal numbers.
LEAST = SimtTarget(16, workgroup_bytes=16 << 10, fuses=(), rounds_to_nearest=(32, 64))
# An AMD GPU of RDNA 3 (Mesa's RADV 26.1 says so of a Radeon RX 7900 XTX). Values of its subgroups of 64 invocations.
RADV = SimtTarget(
    64,
    workgroup_bytes=64 << 10,
    argument_bytes=256,
    preserves_denormals=_ALL,
    preserves_special=_ALL,
    rounds_to_nearest=_ALL,
    fragments=(
        *(Fragment("f16", total, 16, 16, 16) for total in ("f16", "f32")),
        Fragment("i8", "i32", 16, 16, 16),
    ),
    atomic_adds=(32,),
)
# An Intel GPU of Xe 2 (Mesa's ANV 26.1 says so of Battlemage), with its least subgroups; its matrices are not square.
XE2 = SimtTarget(
    16,
    argument_bytes=256,
    preserves_denormals=_ALL,
    preserves_special=_ALL,
    rounds_to_nearest=_ALL,
    fragments=(
        *(Fragment(factor, total, 8, 16, 16) for factor in ("bf16", "f16") for total in (factor, "f32")),
        Fragment("i8", "i32", 8, 16, 32),
    ),
    atomic_adds=(32, 64),
)
# An OpenCL device such as PoCL's, whose invocations exchange through memory only.
OPENCL = SimtTarget(8, argument_bytes=1024, fuses=(64,), flavour="kernel", shuffles=False, converts_f16=False)
DEVICES = {
    "h100": H100,
    "keeping": KEEPING,
    "lavapipe": LAVAPIPE,
    "least": LEAST,
    "radv": RADV,
    "xe2": XE2,
    "opencl": OPENCL,
}


def promised(target: SimtTarget) -> Device:
    """Return the machine that does what a description promises, and no more."""
    nearest = _ALL if target.flavour == "kernel" else target.rounds_to_nearest
    keeps, known = target.preserves_denormals, target.arrangements
    return Device(target.warp_size, target.fuses, target.accurate_exp2, keeps, nearest, known)


def launch_on(
    made: Simt, target: SimtTarget, arguments: Sequence[Any], grid: Sequence[int] = (1, 1, 1), log: Array | None = None
) -> Result:
    """Launch a kernel that was lowered for a device; `log` as in machine.launch."""
    return launch(
        made.module,
        promised(target),
        arguments,
        grid,
        offsets=made.offsets if target.flavour == "shader" else (),
        tables=made.tables,
        trailing=(*grid, 0) if target.splits_grids else (),
        push_bytes=target.argument_bytes,
        shared=made.local_bytes,
        log=log,
    )


def run(ttgir: str, target: SimtTarget, arguments: Sequence[Any], grid: int = 1) -> list[Array]:
    """Lower a kernel for a device and launch it; return its arrays as they are afterwards."""
    return launch_on(lower_simt(ttgir, target), target, arguments, (grid, 1, 1)).arrays
