"""Run rounds of kernels, each with its own seed, until the time is over."""

from __future__ import annotations

import datetime
import os
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis.configuration import set_hypothesis_home_dir

from .comparing import Comparison, Difference
from .drawing import Limits, kernels
from .process import Worker
from .program import Kernel
from .targets import LIMITS, REFUSALS

_KERNELS = 20


def today() -> int:
    """Return the date as a number, which is the first seed of a day's runs."""
    return int(datetime.date.today().strftime("%Y%m%d")) * 1000


def backend() -> str:
    """Return the name of the backend that kernels run on, or of its variant that goes by Vulkan."""
    import triton

    if os.environ.get("FOUNDRY_SPIRV_API") == "vulkan":
        return "spirv-vulkan"
    return str(triton.runtime.driver.active.get_current_target().backend)


@dataclass
class Outcome:
    """The result of the rounds.

    Attributes:
        failures: a script for each round in which the three did not agree.
        counts: what was compared; see Comparison.
    """

    failures: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


def run(first: int, seconds: float = 0, *, rounds: int | None = None) -> Outcome:
    """Compare rounds of kernels; print each round's seed, the failures, and what was compared.

    Args:
        first: seed of the first round. Each later round has the next number.
        seconds: no round starts after this time. Shrinking a kernel may take longer.
        rounds: the number of rounds, instead of a time.
    """
    name, began, number, outcome = backend(), time.monotonic(), first, Outcome()
    limits, counts = LIMITS.get(name, Limits()), outcome.counts
    with (
        tempfile.TemporaryDirectory() as folder,
        Worker(interpret=False) as target,
        Worker(interpret=True) as interpreter,
    ):
        # Otherwise hypothesis keeps files in the current folder.
        set_hypothesis_home_dir(folder)
        comparison = Comparison(Path(folder), target, interpreter, REFUSALS.get(name, ()), counts)
        while (number < first + rounds) if rounds is not None else (time.monotonic() - began < seconds):
            failure = one_round(comparison, limits, number)
            if failure is not None:
                outcome.failures.append(f"{failure}\n# Found by: compare_kernels.py --seed {number} --rounds 1")
                print(outcome.failures[-1])
            print(f"seed {number}: {counts['kernels']} kernels in {time.monotonic() - began:.0f} s", flush=True)
            number += 1
    counted = ", ".join(f"{value} {key}" for key, value in sorted(counts.items()))
    print(f"differential: seeds {first} to {number - 1} on {name}: {counted}", flush=True)
    return outcome


def one_round(comparison: Comparison, limits: Limits, number: int) -> str | None:
    """Compare the kernels of one seed.

    Returns:
        A script that shows the difference with the smallest kernel; None if there is no difference.
    """

    @seed(number)
    @settings(
        max_examples=_KERNELS,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        print_blob=False,
        verbosity=Verbosity.quiet,
    )
    @given(kernels(limits))
    def check(kernel: Kernel) -> None:
        comparison.check(kernel)

    try:
        check()
    except Difference as difference:
        return str(difference)
    return None
