"""Compare vsi with the spirv target: the same kernels on the same device, compiled by zen-compiler and in the process.

The spirv plugin must be installed next to vsi's plugin. Kernels in vsi's modes are timed too, but the ratios leave them
out: the device is a CPU, which does the work of a tensor core and of many threads without having either.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from . import first_launch, tutorials
from .devices import Options, Triton, blocks, by, driver_of
from .measurement import Measurement, Measuring, Row, Suite
from .problem import Problem, measure
from .problems import latency, matmul, vec_add
from .turns import Times

OURS, PEER = "vsi", "spirv"
TENSOR_CORES, THREADS = {"enable_tc": True}, {"enable_multi_threads": True}
LENGTH, BLOCKS = 2**25, (1024, 4096, 16384)
SIZE = 1024
# Rows, columns and depth of a program's block.
TILES = ((32, 32, 32), (64, 64, 32), (64, 64, 64), (64, 128, 64), (128, 128, 64), (128, 256, 64), (256, 256, 64))
# A block size that is good for both targets.
TILE = {"BM": 64, "BN": 64, "BK": 32}


def _devices() -> tuple[Triton, Triton]:
    ours, peer = (Triton(target, driver_of(target)) for target in (OURS, PEER))
    on = [device.driver.device_report().device for device in (ours, peer)]
    assert on[0] == on[1], f"{on[0]} and {on[1]} cannot be compared"
    return ours, peer


def _compared(problem: Problem, launches: Mapping[str, Options], modes: Mapping[str, Options]) -> list[Measurement]:
    """Let both targets take turns, and our modes."""
    ours, peer = _devices()
    groups = {device.name: device.candidates(problem, launches) for device in (ours, peer)}
    others = {f"{OURS}, {what}": call for what, call in ours.candidates(problem, modes).items()}
    plain = replace(problem, others=others, aim=f"at least 0.95 of {PEER}")
    return [measure(plain, groups, ours.plan)]


def addition() -> list[Measurement]:
    """Measure the addition of `bench spirv` on both targets."""
    launches = {f"block {block}": {"BLOCK": block} for block in BLOCKS}
    threads = {f"128 work-items a program, block {BLOCKS[-1]}": {"BLOCK": BLOCKS[-1], **THREADS}}
    return _compared(vec_add.problem(LENGTH, "f32"), launches, threads)


def multiplication() -> list[Measurement]:
    """Measure the multiplication of `bench spirv` on both targets."""
    block = f"block {by(TILE.values())}"
    modes = {f"TC, {block}": TILE | TENSOR_CORES, f"128 work-items a program, {block}": TILE | THREADS}
    return _compared(matmul.problem(SIZE, SIZE, SIZE, "f32"), blocks(*TILES), modes)


def launch() -> list[Measurement]:
    """Time the host's part of a launch: one small program, no program, and with a command to create and pass."""
    addition, product = vec_add.problem(latency.BLOCK, "f32"), matmul.problem(16, 16, 16, "f32")
    ours, peer = _devices()
    candidates = latency.launches(addition, ours, f"{OURS}, ") | latency.launches(addition, peer, f"{PEER}, ")
    tile = {"BM": 16, "BN": 16, "BK": 16, "group": 1}
    more = {"16x16x16 matmul": tile, "16x16x16 matmul, TC: with its command": tile | TENSOR_CORES}
    for what, candidate in ours.candidates(product, more).items():
        product.check(what, candidate)
        candidates[f"{OURS}, {what}"] = candidate
    return [latency.timed(candidates)]


def first() -> list[Measurement]:
    """Measure each kernel's first launch in a process; the two targets take turns."""
    measurements = []
    for kernel in first_launch.KERNELS:
        rows, compiling = [], {}
        for target, (cold, warm) in first_launch.timings(kernel, OURS, PEER).items():
            compiling[target] = Times.of([timing.compiling for timing in cold])
            rows += [
                Row(f"{target}: from TTIR to SPIR-V", compiling[target]),
                Row(f"{target}: empty caches, from the call to the result", Times.of([each.launched for each in cold])),
                Row(
                    f"{target}: filled caches, from the call to the result", Times.of([each.launched for each in warm])
                ),
            ]
        beyond = {
            f"zen-compiler beyond {PEER}'s compiler, {name}": getattr(compiling[OURS], name)
            - getattr(compiling[PEER], name)
            for name in ("median", "min")
        }
        title, aim = f"first launch of {kernel} in a process", f"at most 0.5 s from TTIR to SPIR-V beyond {PEER}"
        measurements.append(Measurement(title, rows, beyond=beyond, aim=aim))
    return measurements


MEASUREMENTS: dict[str, Measuring | Suite] = {
    "launch": launch,
    "vec_add": addition,
    "matmul": multiplication,
    "tutorials": tutorials.SUITE,
    "first": first,
    "compile": first_launch.measure_stages,
}
