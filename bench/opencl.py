"""List the measurements of a target that runs on an OpenCL device; opencl.toml has their rows."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from . import first_launch, tutorials
from .devices import Options, Triton, blocks, torchs
from .measurement import Measurement, Measuring, Suite
from .problem import Problem, measure
from .problems import attention, gather, gemv, latency, layer_norm, matmul, reductions, softmax, transpose, vec_add
from .turns import Candidates

_ROWS: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_ONE: Mapping[str, Options] = {"a row a program": {}}


def _suite(name: str, problem: Callable[..., Problem], choose: Callable[..., Options] | None = None) -> Suite:
    """Return the measurements of a kernel; `choose` returns Triton's launches for a row, if they differ."""

    def measured(row: Sequence[Any]) -> list[Measurement]:
        made, device = problem(*row), Triton()
        ours = device.candidates(made, choose(*row) if choose else _blocks(name) or _ONE)
        by_hand, *others = made.peers().items()
        torch: dict[str, Candidates] = {"torch": torchs(made)} if made.torch else {}
        return [measure(made, {device.name: ours, **dict([by_hand]), **torch, **dict(others)}, device.plan)]

    def rows(which: str) -> dict[str, Measuring]:
        return {" ".join(map(str, row)): partial(measured, row) for row in _ROWS[name][which]}

    return Suite(rows("quick"), rows("more"))


def _blocks(name: str) -> Mapping[str, Options]:
    return blocks(*_ROWS[name].get("blocks", ()), names=_ROWS[name].get("names", ()))


def _elements(name: str) -> tuple[int, ...]:
    """Return the sizes of blocks for work-items, which are those of programs."""
    return tuple(block for (block,) in _ROWS[name]["blocks"])


def _reduction_launches(what: str, *_: Any) -> Mapping[str, Options]:
    if what == "sum":
        parts = _ROWS["reductions"]["parts"]
        return {f"{programs} programs, block {block}": {"parts": programs, "BLOCK": block} for programs, block in parts}
    return _blocks("reductions") if what == "sum-columns" else _ONE


def _gather_launches(rows: int, columns: int, *_: Any) -> Mapping[str, Options]:
    return _ONE if columns else _blocks("gather")


MEASUREMENTS: dict[str, Measuring | Suite] = {
    "launch": lambda: [latency.measure()],
    "vec_add": _suite("vec_add", partial(vec_add.problem, blocks=_elements("vec_add"))),
    "matmul": _suite("matmul", partial(matmul.problem, blocks=_blocks("matmul"))),
    "softmax": _suite("softmax", softmax.problem),
    "layer-norm": _suite("layer-norm", layer_norm.problem),
    "attention": _suite("attention", attention.problem),
    "gemv": _suite("gemv", gemv.problem),
    "reductions": _suite("reductions", reductions.problem, _reduction_launches),
    "transpose": _suite("transpose", transpose.problem),
    "gather": _suite("gather", partial(gather.problem, blocks=_elements("gather")), _gather_launches),
    "tutorials": tutorials.SUITE,
    "first": first_launch.measure,
    "compile": first_launch.measure_stages,
}
