"""List the measurements of a target that runs on an OpenCL device; opencl.toml has their rows."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from . import first_launch, latency, stages
from .devices import Options, Triton, blocks, torchs
from .measurement import Measurement
from .problem import Problem, measure
from .problems import attention, gather, gemv, layer_norm, matmul, reductions, softmax, transpose, vec_add
from .turns import Candidates
from .tutorials import Tutorials

_ROWS: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_ONE: Mapping[str, Options] = {"a row a program": {}}


@dataclass(frozen=True)
class Suite:
    """A kernel in several sizes and types.

    Attributes:
        problem: makes the problem of each row of `quick` and, with --full, of `more`.
        launches: Triton's launch options, by label; or a function of the row.
    """

    problem: Callable[..., Problem]
    launches: Mapping[str, Options] | Callable[..., Mapping[str, Options]]
    quick: Sequence[Sequence[Any]]
    more: Sequence[Sequence[Any]]

    def cases(self, *, full: bool) -> Iterator[tuple[str, Callable[[], list[Measurement]]]]:
        """Yield each problem by name, and what measures it."""
        for row in (*self.quick, *self.more) if full else self.quick:
            yield " ".join(map(str, row)), lambda row=row: [self.measure(row)]  # type: ignore[misc]

    def measure(self, row: Sequence[Any]) -> Measurement:
        """Compare Triton with everything that does the same work on this processor."""
        problem, launches, device = self.problem(*row), self.launches, Triton()
        ours = device.candidates(problem, launches(*row) if callable(launches) else launches)
        by_hand, *others = problem.peers().items()
        torch: dict[str, Candidates] = {"torch": torchs(problem)} if problem.torch else {}
        return measure(problem, {device.name: ours, **dict([by_hand]), **torch, **dict(others)}, device.plan)


def _suite(name: str, problem: Callable[..., Problem], choose: Callable[..., Any] | None = None) -> Suite:
    """Return the suite with the rows of this name; `choose` returns the launches for a row, if they differ."""
    rows = _ROWS[name]
    return Suite(problem, choose or _blocks(name) or _ONE, rows["quick"], rows["more"])


def _blocks(name: str) -> Mapping[str, Options]:
    return blocks(*_ROWS[name].get("blocks", ()), names=_ROWS[name].get("names", ()))


def _elements(name: str) -> tuple[int, ...]:
    """Return the sizes of blocks for work-items, which are those of programs."""
    return tuple(block for (block,) in _ROWS[name]["blocks"])


def _of_reduction(what: str, *_: Any) -> Mapping[str, Options]:
    if what == "sum":
        parts = _ROWS["reductions"]["parts"]
        return {f"{programs} programs, block {block}": {"parts": programs, "BLOCK": block} for programs, block in parts}
    return _blocks("reductions") if what == "sum-columns" else _ONE


def _of_gather(_: int, columns: int, *__: Any) -> Mapping[str, Options]:
    return _ONE if columns else _blocks("gather")


MEASUREMENTS: dict[str, Callable[[], list[Measurement]] | Suite | Tutorials] = {
    "launch": lambda: [latency.measure()],
    "vec_add": _suite("vec_add", partial(vec_add.problem, blocks=_elements("vec_add"))),
    "matmul": _suite("matmul", partial(matmul.problem, blocks=_blocks("matmul"))),
    "softmax": _suite("softmax", softmax.problem),
    "layer-norm": _suite("layer-norm", layer_norm.problem),
    "attention": _suite("attention", attention.problem),
    "gemv": _suite("gemv", gemv.problem),
    "reductions": _suite("reductions", reductions.problem, _of_reduction),
    "transpose": _suite("transpose", transpose.problem),
    "gather": _suite("gather", partial(gather.problem, blocks=_elements("gather")), _of_gather),
    "tutorials": Tutorials(),
    "first": first_launch.measure,
    "compile": stages.measure,
}
