"""What the verb `bench` prints and stores: for each measurement its rows, its ratios and the project's aim."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .turns import Times

# The length of a bar for a ratio of 1.
_PARITY = 20


@dataclass(frozen=True)
class Row:
    """One candidate.

    Attributes:
        label: name of the candidate.
        times: wall-clock times, if they were measured.
        rate: in the measurement's unit.
        cycles: of the slowest DPU, modelled by the emulator, if cycles are compared.
        detail: how the candidate was launched, if that was chosen.
        error: the largest of its result, as a share of the allowed one.
    """

    label: str
    times: Times | None = None
    rate: float | None = None
    cycles: int | None = None
    detail: str = ""
    error: float | None = None


@dataclass(frozen=True)
class Measurement:
    """Candidates that were timed together.

    Attributes:
        title: what was done, with sizes and types.
        rows: the candidates.
        unit: of the rates, as "GB/s".
        ratios: comparisons within this run, by label; larger is better for us.
        beyond: how many seconds we take more than a peer of this run, by label; smaller is better.
        aim: the project's aim, in words.
        on: what the candidates used, by library, and with how many threads.
        bytes, operations: what one call reads and writes at least, and its operations of arithmetic, if both are known.
        aims: by peer, the least ratio to it, and that which the project aims at.
        failed: why a candidate has no row, by name.
        kernels: what bounds our kernels, as the profile's figures, where that is known.
    """

    title: str
    rows: Sequence[Row]
    unit: str = ""
    ratios: Mapping[str, float] = field(default_factory=dict)
    beyond: Mapping[str, float] = field(default_factory=dict)
    aim: str = ""
    on: Mapping[str, str] = field(default_factory=dict)
    bytes: int | None = None
    operations: int | None = None
    aims: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)
    kernels: Sequence[dict[str, Any]] = ()

    def table(self) -> str:
        lines = [self.title]
        for row in self.rows:
            columns = [f"  {f'{row.label}: {row.detail}' if row.detail else row.label:<58}"]
            if row.times is not None:
                columns.append(
                    f"min {_time(row.times.min)}  median {_time(row.times.median)}  ({row.times.runs} runs) "
                )
            if row.cycles is not None:
                columns.append(f"{row.cycles:>13,} modelled cycles ")
            if row.rate is not None:
                columns.append(f"{row.rate:8.{'1f' if row.rate >= 1 else '2g'}} {self.unit}")
            lines.append(" ".join(columns))
        width = max(map(len, self.ratios), default=0)
        lines += [f"  {f'{label}: {ratio:.2f}':<{width + 6}} {_bar(ratio)}" for label, ratio in self.ratios.items()]
        lines += [f"  {label}: {seconds:+.2f} s" for label, seconds in self.beyond.items()]
        lines += [f"  not measured: {name}: {why}" for name, why in self.failed.items()]
        if self.aim:
            lines.append(f"  aim: {self.aim}")
        if self.kernels:
            from foundry_core.profile.report import format_report

            for each in self.kernels:
                lines += [f"  {line}" for line in format_report(each).splitlines()]
        return "\n".join(lines)


Measuring = Callable[[], Sequence[Measurement]]


@dataclass(frozen=True)
class Suite:
    """Measurements of one kind, each by its name: a case for each, so that each is shown when it is done.

    Attributes:
        quick, more: of each run, and those added with --full.
    """

    quick: Mapping[str, Measuring]
    more: Mapping[str, Measuring] = field(default_factory=dict)


def _bar(ratio: float) -> str:
    """Return a bar for a ratio: `|` is where it is 1, `>` where a longer one is cut."""
    filled = "#" * min(round(ratio * _PARITY), 2 * _PARITY)
    whole = f"{filled[:_PARITY]:<{_PARITY}}|{filled[_PARITY:]}"
    return f"{whole}>" if ratio > 2 else whole


def _time(seconds: float) -> str:
    for unit, scale in (("s ", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:7.2f} {unit}"
    return f"{seconds / 1e-6:7.2f} us"
