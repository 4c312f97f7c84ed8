"""List the measurements of the dpu target. All cycles are modelled by the emulator; no hardware was measured.

A problem is measured against hand-written C on the same DPUs, against the bound of the model, DMA or arithmetic
(dpu_limits.py), and from 1 to 64 DPUs. The bound of the arithmetic counts the operations of the kernel's formulas, each
with what PrIM's throughput says. An exponential is the operations of foundry_core.functions: the SDK has none.
Everything else that a program does, such as addresses, loops, loads and stores in WRAM, and what is done for each row,
is above the bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

from . import first_launch
from .devices import Options, Triton, blocks, by
from .dpu_limits import (
    addition_bound,
    arithmetic_bound,
    c_cycles,
    dma_bound,
    multiplication_bound,
    operation_cycles,
)
from .measurement import Measurement, Measuring, Row
from .problem import Problem
from .problems import attention, gather, gemv, kernels, layer_norm, matmul, reductions, softmax, transpose, vec_add
from .turns import Times

MEGA, FREQUENCY = 1e6, 350e6
# The largest length whose three arrays fit into one DPU's MRAM: 48 of 64 MiB.
LENGTH, LONG = 2**20, 2**22
DPUS = (1, 2, 4, 8, 16, 32, 64)
MOST = DPUS[-1]
TASKLETS = 16
# PrIM's strong scaling on one rank (table 3 of arXiv 2105.03814): 8192 x 1024 elements, and 6.3 M of 8 bytes.
GEMV, ELEMENTS = (8192, 1024), 6_291_456
# No power of two: 64 DPUs get 15 or 16 rows each.
ROWS, COLUMNS = 1000, 256
SIDE, TABLE, TAKEN = 1024, 2**20, 2**18
HEADS, QUERIES, DEPTH = 16, 64, 32
# Operations of exp and exp2 in f32 (foundry_core/functions/exponential.py).
EXP = Counter(multiply=12, add=8, subtract=3, compare=2)
EXP2 = Counter(multiply=8, add=7, subtract=2, compare=2)


def launched(problem: Problem, label: str, work: float, dpus: int, options: Options) -> Row:
    """Check one launch, and return its modelled cycles; the rate is `work` in millions per modelled second.

    Raises:
        RuntimeError: the DPUs do not report the cost of a launch, as with the vendor's SDK.
    """
    from triton_dpu_backend.launches import profile

    (candidate,) = Triton().candidates(problem, {label: {**options, "num_dpus": dpus}}).values()
    with profile() as launches:
        error, _ = problem.check(label, candidate)
    (launch,) = launches
    if launch.cycles is None:
        raise RuntimeError("these DPUs have no model that says what a launch costs: bench dpu needs the emulator")
    return replace(modelled(f"Triton, {label}", launch.cycles, work), error=error)


def modelled(label: str, cycles: int, work: float) -> Row:
    return Row(label, cycles=cycles, rate=work / MEGA * FREQUENCY / cycles)


def by_hand(label: str, kind: str, size: str, dpus: int, work: float, tasklets: int = TASKLETS) -> Row:
    """Run a program in C, which checks its result."""
    return modelled(label, c_cycles(kind, size, dpus, tasklets=tasklets), work)


def cycles(row: Row) -> int:
    """Return a row's modelled cycles."""
    assert row.cycles is not None
    return row.cycles


def best(rows: Iterable[Row]) -> Row:
    return min(rows, key=cycles)


def table(title: str, rows: Sequence[Row], unit: str, ratios: Mapping[str, float], aim: str) -> Measurement:
    return Measurement(f"{title}, modelled", rows, unit, ratios, aim=aim)


def addition() -> list[Measurement]:
    """Measure one DPU against its bound, 1 to 64 DPUs for two lengths, and TritonPIM's way of copying."""
    problem, unit, title = vec_add.problem(LENGTH, "i32"), "M elements/s", _power("vec_add i32, n =", LENGTH)
    launch = partial(_add, problem, LENGTH, 1)
    candidates = {block: launch(block) for block in (128, 256, 512, 1024)}
    block = min(candidates, key=lambda block: cycles(candidates[block]))
    ours = cycles(candidates[block])
    c = by_hand("C, as PrIM's VA, 1 DPU", "va", str(LENGTH), 1, LENGTH)
    one = by_hand("C, 1 tasklet, one element at a time", "element", str(LENGTH), 1, LENGTH, tasklets=1)
    bound = addition_bound(LENGTH)
    ratios = {
        "modelled cycles over the DMA bound (smaller is better)": ours / bound,
        "C over the DMA bound": cycles(c) / bound,
        "Triton over C": cycles(c) / ours,
    }
    slower = "at least 0.9 of linear; on 64 DPUs a tasklet's last block of 4 or 5 weighs more"
    one_by_one = {"Triton over one element at a time": cycles(one) / ours}
    return [
        table(f"{title}, one DPU", [*candidates.values(), c], unit, ratios, "within 1.25 of the DMA bound"),
        _scaling(problem, LENGTH, block, slower),
        _scaling(vec_add.problem(LONG, "i32"), LONG, block, "at least 0.9 of linear"),
        table(f"{title}, one DPU, against TritonPIM's way", [candidates[block], one], unit, one_by_one, "above 20"),
    ]


def _add(problem: Problem, length: int, dpus: int, block: int) -> Row:
    return launched(problem, f"block {block}, {_many(dpus)}", length, dpus, {"BLOCK": block})


def _scaling(problem: Problem, length: int, block: int, aim: str) -> Measurement:
    one, *spread = [_add(problem, length, dpus, block) for dpus in DPUS]
    shares = {
        f"share of linear, {dpus} DPUs": cycles(one) / dpus / cycles(row)
        for dpus, row in zip(DPUS[1:], spread, strict=True)
    }
    title = f"{_power('vec_add i32, n =', length)}, 1 to {MOST} DPUs"
    return table(title, [one, *spread], "M elements/s", shares, aim)


def _power(of: str, length: int) -> str:
    return f"{of} 2^{length.bit_length() - 1}"


def _many(dpus: int) -> str:
    return f"{dpus} DPU{'s' * (dpus > 1)}"


def multiplication() -> list[Measurement]:
    """Measure matmul 256^3 on 16 DPUs, as a share of the limit set by DPUs that only multiply and add."""
    size, dpus, found = 256, 16, []
    rows = blocks((256, 1), (256, 2), (128, 2), (128, 4), (64, 8), (128, 8), names=("BN", "BK"))
    dots = blocks((16, 16, 16), (16, 16, 32), (16, 16, 64), (16, 16, 128))
    for kind in ("i32", "f32"):
        dot = matmul.problem(size, size, size, kind)
        by_rows = replace(dot, launch=partial(matmul.by_rows, (size, size, size)))
        tried = [(by_rows, f"columns of a row and depth {by(each.values())}", each) for each in rows.values()]
        if kind == "f32":
            tried += [(dot, f"tl.dot, {label}", {**each, "group": 1}) for label, each in dots.items()]
        candidates = [launched(problem, label, size**3, dpus, options) for problem, label, options in tried]
        limit = multiplication_bound(kind, size, size, size, dpus)
        cost = " + ".join(f"{operation_cycles(kind, name):.0f}" for name in ("multiply", "add"))
        ratios = {f"share of the limit of {limit:.0f} cycles ({cost} a multiply-add)": limit / cycles(best(candidates))}
        title, unit = f"matmul {kind}, {size}^3, {dpus} DPUs", "M multiply-adds/s"
        found.append(table(title, candidates, unit, ratios, "the share is reported"))
    return found


def matrix_vector() -> list[Measurement]:
    """Measure y = A x in int32. 8192 rows are 8 rows for each of 1024 tasklets."""
    problem, work = gemv.problem(*GEMV, "i32"), GEMV[0] * GEMV[1]
    candidates = []
    for rows, columns in ((2, 256), (4, 128), (4, 256), (8, 64), (8, 128)):
        label, options = f"{rows} rows a program, {columns} columns a step", {"BM": rows, "BN": columns, "even": True}
        candidates.append(launched(problem, label, work, MOST, options))
    c = by_hand("C, as PrIM's GEMV", "gemv", by(GEMV), MOST, work)
    return [_against_c(problem.title, candidates, c, "M multiply-adds/s")]


def reduction() -> list[Measurement]:
    """Measure sums of int64, one for each of 1024 tasklets; the host adds them, as it adds the DPUs' sums in PrIM."""
    programs = MOST * TASKLETS
    sums = reductions.problem("sum-rows", programs, ELEMENTS // programs, "i64")

    def launch(jit: Any, x: Any, y: Any, **options: Any) -> Any:
        return jit(kernels.sum_parts)[(programs,)](x, y, ELEMENTS, PART=ELEMENTS // programs, EVEN=True, **options)

    problem = replace(sums, launch=launch)
    candidates = []
    for how, block in product(("a vector of sums", "one sum"), (32, 64, 128, 256)):
        label, options = f"{how}, {block} elements a step", {"BLOCK": block, "SCALAR": how == "one sum"}
        candidates.append(launched(problem, label, ELEMENTS, MOST, options))
    c = by_hand("C, as PrIM's RED", "red", str(ELEMENTS), MOST, ELEMENTS)
    return [_against_c(f"sum of i64, n = {ELEMENTS}", candidates, c, "M elements/s")]


def _against_c(title: str, candidates: list[Row], c: Row, unit: str) -> Measurement:
    ratios = {"Triton over C": cycles(c) / cycles(best(candidates))}
    return table(f"{title}, {_many(MOST)}", [*candidates, c], unit, ratios, "at least 1.0")


def bounded() -> list[Measurement]:
    """Return a table for each kernel, with its bound."""
    row: Mapping[str, Options] = {f"block {COLUMNS}": {}}
    size, square, scores = ROWS * COLUMNS, SIDE**2, HEADS * QUERIES**2
    tiles = blocks((16, 16), (64, 16), (32, 32))
    each = {f"block {block}": {"BLOCK": block} for block in (128, 256)}
    even = {label: {**options, "even": True} for label, options in blocks((1, 256), (4, 64)).items()}
    # Tiles of 32 x 32, of which WRAM holds one for each of 11 tasklets.
    narrow = dma_bound(4 * square, 4 * square, 128)
    # A row is the longest run of bytes that there is. Each program reads its index, too, a word of 8 bytes.
    rows, indices = dma_bound(4 * size, 4 * size, 4 * COLUMNS), dma_bound(8 * ROWS, 0, 8)
    # Each element is a transfer of 8 bytes.
    elements = dma_bound(8 * TAKEN, 0, 8) + dma_bound(4 * TAKEN, 4 * TAKEN)
    of_softmax = EXP + Counter(compare=1, subtract=1, add=1, divide=1)
    of_score = EXP2 + Counter(multiply=2 * DEPTH + 1, add=2 * DEPTH + 1, compare=1, subtract=1)
    normalised = Counter(add=3, subtract=1, multiply=3)
    return [
        _bounded(softmax.problem(ROWS, COLUMNS, "f32"), row, size, of_softmax),
        _bounded(layer_norm.problem(ROWS, COLUMNS, "f32"), row, size, normalised),
        _bounded(reductions.problem("sum-rows", ROWS, COLUMNS, "f32"), row, size, Counter(add=1)),
        _bounded(transpose.problem(SIDE, SIDE, "f32"), tiles, square, dma_bound(4 * square, 4 * square), narrow),
        _bounded(gather.problem(TABLE // COLUMNS, COLUMNS, ROWS, "f32"), row, size, rows, rows + indices),
        _bounded(gather.problem(TABLE, 0, TAKEN, "f32"), each, TAKEN, elements),
        _bounded(gemv.problem(SIDE, SIDE, "f32"), even, square, Counter(multiply=1, add=1)),
        _bounded(attention.problem(HEADS, QUERIES, DEPTH, "f32", False), blocks((16, 16)), scores, of_score),
    ]


def _bounded(
    problem: Problem,
    launches: Mapping[str, Options],
    elements: int,
    work: float | Counter[str],
    transfers: float | None = None,
) -> Measurement:
    """Compare the best of some launches, on 1 and on 64 DPUs, with the bound.

    Args:
        elements: what the rate counts.
        work: the bound in cycles of one DPU, or the operations of an element.
        transfers: cycles of its DMA engine for the transfers that the kernel needs, where they are shorter or more than
            those of the bound.
    """
    bound = elements * arithmetic_bound("f32", work) if isinstance(work, Counter) else work
    one, many = (
        best(
            launched(problem, f"{label}, {_many(dpus)}", elements, dpus, options) for label, options in launches.items()
        )
        for dpus in (1, MOST)
    )
    ratios = {f"share of the bound of {bound:.0f} cycles, 1 DPU": bound / cycles(one)}
    if transfers is not None:
        ratios[f"share of {transfers:.0f} cycles, which its own transfers take, 1 DPU"] = transfers / cycles(one)
    ratios[f"share of linear, {MOST} DPUs"] = cycles(one) / MOST / cycles(many)
    return table(f"{problem.title}, 1 and {MOST} DPUs", [one, many], "M elements/s", ratios, "0.95 of both")


def speed() -> list[Measurement]:
    """Time vec_add of 2^24 int32 on 64 DPUs: the first launch, which allocates and loads, and later launches.

    This is the emulator's speed: wall time on this machine, and modelled DPU cycles per second of wall time.
    """
    from triton_dpu_backend.launches import profile

    length, rounds = 2**24, 5
    problem = vec_add.problem(length, "i32")
    (candidate,) = Triton().candidates(problem, {"": {"BLOCK": 256, "num_dpus": MOST}}).values()
    with profile() as launches:
        for _ in range(1 + rounds):
            problem.check("Triton", candidate)
    first, *later = launches
    done = (first.cycles or 0) * MOST / MEGA
    times = Times.of([launch.seconds for launch in later])
    rows = [
        Row("first launch: allocation, load, transfers", Times.of([first.seconds]), done / first.seconds),
        Row("launch with its transfers", times, done / times.median),
    ]
    title = f"speed of the emulator: {_power('vec_add i32, n =', length)}, {MOST} DPUs"
    unit, aim = "M modelled DPU-cycles/s of wall time", "wall time and modelled cycles a second are reported"
    return [Measurement(title, rows, unit, aim=aim)]


MEASUREMENTS: dict[str, Measuring] = {
    "vec_add": addition,
    "matmul": multiplication,
    "gemv": matrix_vector,
    "reduction": reduction,
    "bounded": bounded,
    "speed": speed,
    "compile": first_launch.measure_stages,
}
