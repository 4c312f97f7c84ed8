"""List the measurements of a target that runs on an OpenCL device."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from . import first_launch, latency, stages
from .devices import Options, Triton, blocks, torchs
from .measurement import Measurement
from .problem import Problem, measure
from .problems import attention, gather, gemv, layer_norm, matmul, reductions, softmax, transpose, vec_add
from .turns import Candidates
from .tutorials import Tutorials

_ADDITIONS = (1024, 4096, 16384)
_TAKEN = (256, 1024, 4096)
_ROW: Mapping[str, Options] = {"a row a program": {}}
_TILES = blocks((32, 32, 32), (64, 64, 32), (64, 64, 64), (64, 128, 64), (128, 128, 64), (128, 256, 64), (256, 256, 64))
# A sum of everything: programs, and elements of a step.
_PARTS = ((8, 4096), (64, 128), (64, 256), (64, 1024))
_REDUCTIONS: Mapping[str, Mapping[str, Options]] = {
    "sum-rows": _ROW,
    "argmax-rows": _ROW,
    "sum-columns": {f"block {block}": {"BLOCK": block} for block in (64, 256, 1024)},
    "sum": {f"{parts} programs, block {block}": {"parts": parts, "BLOCK": block} for parts, block in _PARTS},
}


def _each(sizes: Sequence[int]) -> Mapping[str, Options]:
    return {f"block {block}": {"BLOCK": block} for block in sizes}


@dataclass(frozen=True)
class Suite:
    """A kernel in several sizes and types.

    Attributes:
        problem: makes the problem of each row of `quick` and, with --full, of `more`.
        launches: Triton's launch options, by label; or a function of the row.
    """

    problem: Callable[..., Problem]
    launches: Mapping[str, Options] | Callable[..., Mapping[str, Options]]
    quick: Sequence[tuple[Any, ...]]
    more: Sequence[tuple[Any, ...]] = ()

    def cases(self, *, full: bool) -> Iterator[tuple[str, Callable[[], list[Measurement]]]]:
        """Yield each problem by name, and what measures it."""
        for row in (*self.quick, *self.more) if full else self.quick:
            yield " ".join(map(str, row)), lambda row=row: [self.measure(row)]  # type: ignore[misc]

    def measure(self, row: tuple[Any, ...]) -> Measurement:
        """Compare Triton with everything that does the same work on this processor."""
        problem, launches, device = self.problem(*row), self.launches, Triton()
        ours = device.candidates(problem, launches(*row) if callable(launches) else launches)
        by_hand, *others = problem.peers().items()
        torch: dict[str, Candidates] = {"torch": torchs(problem)} if problem.torch else {}
        return measure(problem, {device.name: ours, **dict([by_hand]), **torch, **dict(others)}, device.plan)


MEASUREMENTS: dict[str, Callable[[], list[Measurement]] | Suite | Tutorials] = {
    "launch": lambda: [latency.measure()],
    # Elements, type.
    "vec_add": Suite(
        lambda n, kind: vec_add.problem(n, kind, _ADDITIONS),
        _each(_ADDITIONS),
        ((2**24, "f32"), (2**16, "f32")),
        (
            (2**25, "f32"),
            (2**12, "f32"),
            (2**20, "f32"),
            (98432, "f32"),
            (2**22, "f16"),
            (2**22, "bf16"),
            (2**22, "f64"),
            (2**22, "i32"),
        ),
    ),
    # Rows, columns, depth, type.
    "matmul": Suite(
        partial(matmul.problem, blocks=_TILES),
        _TILES,
        ((512, 512, 512, "f32"), (1024, 1024, 1024, "f32"), (1000, 1001, 999, "f32"), (1024, 1024, 1024, "f16")),
        (
            (256, 256, 256, "f32"),
            (2048, 2048, 2048, "f32"),
            (1024, 1024, 1024, "bf16"),
            (512, 512, 512, "f16"),
            (1000, 1001, 999, "f16"),
            (1000, 1001, 999, "bf16"),
        ),
    ),
    # Rows, columns, type.
    "softmax": Suite(
        softmax.problem,
        _ROW,
        ((4096, 1024, "f32"), (4096, 1000, "f16")),
        ((8192, 4096, "f32"), (256, 1024, "f32"), (128, 781, "f32"), (32768, 128, "f32"), (4096, 1024, "bf16")),
    ),
    "layer-norm": Suite(
        layer_norm.problem,
        _ROW,
        ((4096, 1024, "f32"), (4096, 1000, "f16")),
        ((8192, 4096, "f32"), (256, 1024, "f32"), (32768, 128, "f32"), (4096, 1024, "bf16")),
    ),
    # Heads, length, depth, type, causal.
    "attention": Suite(
        attention.problem,
        blocks((32, 32), (64, 32), (64, 64), (128, 64)),
        ((8, 512, 64, "f32", False), (8, 512, 64, "f16", True)),
        (
            (8, 512, 64, "f32", True),
            (8, 2048, 64, "f32", False),
            (8, 1024, 128, "f32", False),
            (8, 512, 64, "f16", False),
            (8, 512, 64, "bf16", False),
        ),
    ),
    "gemv": Suite(
        gemv.problem,
        blocks((1, 64), (1, 128), (1, 1024), (4, 16), (4, 32), (8, 16), (8, 32)),
        ((4096, 4096, "f32"), (1000, 1001, "f32"), (4096, 4096, "f16")),
        ((512, 512, "f32"), (65536, 256, "f32"), (256, 65536, "f32"), (4096, 4096, "bf16")),
    ),
    # What, rows, columns, type.
    "reductions": Suite(
        reductions.problem,
        lambda what, *_: _REDUCTIONS[what],
        (
            ("sum-rows", 4096, 4096, "f32"),
            ("sum-columns", 4096, 4096, "f32"),
            ("sum", 1, 2**24, "f32"),
            ("argmax-rows", 4096, 4096, "f32"),
        ),
        (
            ("sum-rows", 65536, 250, "f32"),
            ("sum-rows", 4096, 4096, "f16"),
            ("sum-rows", 4096, 4096, "bf16"),
            ("sum-columns", 1000, 1001, "f32"),
            ("sum-columns", 4096, 4096, "f16"),
            ("sum", 1, 2**16, "f32"),
            ("argmax-rows", 65536, 250, "f32"),
        ),
    ),
    "transpose": Suite(
        transpose.problem,
        blocks((16, 16), (32, 32), (64, 64), (16, 64), (64, 16)),
        ((2048, 2048, "f32"), (1000, 1001, "f32"), (2048, 2048, "f16")),
        ((512, 512, "f32"), (4096, 4096, "f32"), (65536, 64, "f32"), (2048, 2048, "f64"), (4096, 4096, "i8")),
    ),
    # Rows of the table, columns (0 for single elements), how many are taken, type.
    "gather": Suite(
        partial(gather.problem, blocks=_TAKEN),
        lambda rows, columns, *_: _ROW if columns else _each(_TAKEN),
        ((2**15, 512, 8192, "f32"), (2**20, 0, 2**20, "f32")),
        (
            (2**15, 512, 8192, "f16"),
            (2**15, 100, 8192, "f32"),
            (2**12, 0, 2**20, "f32"),
            (2**24, 0, 2**20, "f32"),
        ),
    ),
    "tutorials": Tutorials(),
    "first": first_launch.measure,
    "compile": stages.measure,
}
