"""Kernels in the forms that people write them, each against another backend of Triton on the same device, in turns.

corpus.toml has a row for each: the function that makes the problem, its sizes on a GPU and on a CPU, and the launch
options to choose from. `python -m bench.gpu --corpus` prints all ratios, their geometric mean and the worst. On a CPU,
`./foundry bench spirv-vulkan --only=corpus` compares lavapipe with PoCL, of some kernels, and with --full of all.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from ..problem import Problem

ROWS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("corpus.toml").read_text(encoding="utf-8"))


def problem(row: Mapping[str, Any], size: str) -> Problem:
    """Return the problem of a row, with the sizes for a "gpu" or a "cpu"."""
    module, _, name = row["problem"].partition(".")
    make: Callable[..., Problem] = getattr(import_module(f"{__name__}.{module}"), name)
    return make(*row[size])


def launches(row: Mapping[str, Any], size: str) -> dict[str, Mapping[str, Any]]:
    """Return the launch options of a row by their labels."""
    found = [dict(zip(row["names"], each, strict=True)) for each in row[f"{size}_launches"]]
    return {", ".join(f"{key}={value}" for key, value in each.items()): each for each in found}
