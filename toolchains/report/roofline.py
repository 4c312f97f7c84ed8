"""Draw a roofline: what kernels compute, against what the device could, over their operations per byte; log-log.

    operations a second
    |        _________ the roof of arithmetic
    |      / :
    |    /   1   a kernel, and up to the dotted line's end what its nearest roof allows
    |  /  the roof of memory
    +---------- operations per byte

Roofs of real devices were measured in the kernels' run. Those of emulated DPUs are derived from modelled cycles: what a
kernel would do if the DMA engine or the pipeline, which is busy in a share of the cycles, were always busy. No nominal
peak of a device is drawn, because the profile knows none. See docs/profiling.md.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from toolchains.report import charts
from toolchains.report.charts import Place, si
from toolchains.report.results import ProfiledKernel
from toolchains.system import durable
from toolchains.system.errors import UsageError

# The plot, of which x and y are logarithmic; below it stands what its numbers and letters mean.
_LEFT, _RIGHT, _TOP, _BOTTOM = 44.0, 352.0, 24.0, 224.0
# The most numbers of an axis.
_TICKS = 6
# What a figure must be between to be drawn: no device has others.
_LEAST, _LARGEST = 1e-12, 1e18
# From a point to its label: distances and directions, the nearest first. Half the size of a label, and of a dot.
_AROUND = [
    (distance * math.cos(angle * math.pi / 4), -distance * math.sin(angle * math.pi / 4))
    for distance in (15, 20, 26, 34, 44, 56, 70)
    for angle in (1, 3, 7, 5, 2, 6, 0, 4)
]
_HALF, _DOT = (8.0, 6.5), 4.0


@dataclass(frozen=True)
class _Roof:
    """A ceiling: bytes or operations, a second or a modelled cycle."""

    is_memory: bool
    rate: float
    label: str


@dataclass(frozen=True)
class _Drawn:
    """A kernel as a point; `roof` is the rate that its nearest roof allows, None if that is not known."""

    intensity: float
    rate: float
    roof: float | None
    label: str


def rooflines(kernels: Iterable[ProfiledKernel]) -> Markup:
    """Return a picture for each device of some kernels."""
    return Markup("\n").join(charts.picture(rows, height, title) for title, rows, height in _panels(kernels))


def read_place(option: str, name: str) -> Path | None:
    """Return the file that an option names; None if it is not given.

    Raises:
        UsageError: it is not named as SVG, or cannot be written.
    """
    if not name:
        return None
    path = Path(name)
    if path.suffix != ".svg" or path.is_dir():
        raise UsageError(f"{option}={name}: the picture is a file of SVG", next=f"{option}=roofline.svg")
    durable.require_writable(path.parent, f"{option}={name}")
    return path


def write(path: Path, kernels: Sequence[ProfiledKernel]) -> None:
    """Write the rooflines of kernels to a file, and print its name; without a kernel there is nothing to write."""
    if kernels:
        durable.write(path, file(kernels))
    print(f"roofline: {path}" if kernels else f"{path} is not written: no kernel was profiled", file=sys.stderr)


def file(kernels: Iterable[ProfiledKernel]) -> str:
    """Return a file with the rooflines of kernels, one below the other, each with its source."""
    by_source: dict[str, list[ProfiledKernel]] = {}
    for kernel in kernels:
        by_source.setdefault(kernel.key, []).append(kernel)
    rows = [Markup('<style>\n{}</style>\n<rect width="100%" height="100%" fill="var(--paper)"/>').format(charts.STYLE)]
    end = 0.0
    for source, each in by_source.items():
        for _, drawn, height in _panels(each):
            title = charts.paragraph((8, end + charts.ROW), source)
            end += charts.ROW * len(title) + 4
            rows += [*title, Markup('<g transform="translate(0 {:.0f})">{}</g>').format(end, Markup("\n").join(drawn))]
            end += height + charts.ROW
    return f"{charts.picture(rows, end, 'rooflines of ' + ', '.join(by_source))}\n"


def _panels(kernels: Iterable[ProfiledKernel]) -> Iterator[tuple[str, list[Markup], float]]:
    """Yield (title, what is drawn, its height) for the kernels of each device."""
    by_device: dict[tuple[str, bool], list[ProfiledKernel]] = {}
    for kernel in kernels:
        device = kernel.ran.get("device", "a device without a name")
        by_device.setdefault((device, kernel.cycles is not None), []).append(kernel)
    for (device, is_modelled), each in by_device.items():
        unit, style = ("cycle", "second") if is_modelled else ("s", "first")
        points: list[_Drawn] = []
        notes: list[str] = []
        for kernel in each:
            point = _point(kernel, unit)
            points += [point] if isinstance(point, _Drawn) else []
            notes += [point] if isinstance(point, str) else []
        roofs = [*(_derived(each) if is_modelled else _measured(each))]
        rows = _plot(points, roofs, style, "modelled cycle" if is_modelled else "second") if points else []
        how = (
            "Roofs are derived from modelled cycles: a rate, divided by the share of cycles in which the DMA engine or "
            "the pipeline is busy. No nominal peak of the device is drawn."
            if is_modelled
            else "Times are measured, and roofs in the same run. Nominal peaks of the device are not known."
        )
        entries = [("", f"On {device}. {how} Dotted: up to the kernel's nearest roof.")]
        if points:
            entries += [(_letter(number), roof.label) for number, roof in enumerate(roofs)]
        entries += [(str(number), point.label) for number, point in enumerate(points, 1)]
        entries += [("", note) for note in notes]
        height = _BOTTOM + 54 if points else charts.ROW
        for mark, words in entries:
            body = charts.paragraph((32 if mark else 8, height), words)
            rows += [*([charts.text((24, height), mark, "end")] if mark else []), *body]
            height += charts.ROW * len(body) + 3
        yield f"roofline of {', '.join(kernel.kernel for kernel in each)} on {device}", rows, height


def _point(kernel: ProfiledKernel, unit: str) -> _Drawn | str:
    """Return where a kernel is in the plot, or why it is not there."""
    name = f"{kernel.kernel}, grid {'x'.join(map(str, kernel.grid))}"
    if not kernel.bound:
        return f"not drawn: {name}: its work is not known: {kernel.unknown}"
    if not kernel.operations:
        return f"not drawn: {name}: it has no operations on floats"
    if not kernel.bytes:
        return f"not drawn: {name}: it reaches no memory"
    intensity = kernel.operations / kernel.bytes
    rate = kernel.operations / (kernel.seconds if kernel.cycles is None else kernel.cycles or math.inf)
    roof = rate / kernel.share if kernel.share else None
    if not (_is_drawn(intensity) and _is_drawn(rate) and (roof is None or _is_drawn(roof))):
        return f"not drawn: {name}: its figures are out of every range"
    label = f"{name}: {si(rate)}op/{unit} at {intensity:.3g} op/B"
    if kernel.share is None:
        return _Drawn(intensity, rate, None, f"{label}; faster than its roof was measured")
    return _Drawn(intensity, rate, roof, f"{label}; {kernel.share:.0%} of its roof, {kernel.bound}")


def _measured(kernels: Sequence[ProfiledKernel]) -> Iterator[_Roof]:
    """Yield the fastest and the slowest memory that kernels were compared with, and the roof of each arithmetic."""
    triads = sorted((k.roofs["memory"], k.bytes) for k in kernels if _is_drawn(k.roofs.get("memory", 0)))
    for which in {0, len(triads) - 1} if triads else ():
        rate, size = triads[which]
        yield _Roof(True, rate, f"memory, measured: {si(rate)}B/s, a triad of {si(size)}B")
    kinds = {kind: rate for each in kernels for kind, rate in each.roofs.items() if kind not in ("launch", "memory")}
    for kind, rate in sorted(kinds.items()):
        if _is_drawn(rate):
            how = "products of matrices" if kind.endswith("matrices") else "multiply-adds"
            yield _Roof(False, rate, f"{kind}, measured: {si(rate)}op/s, {how}")


def _derived(kernels: Sequence[ProfiledKernel]) -> Iterator[_Roof]:
    """Yield the largest roof of memory and of arithmetic that the modelled cycles of a kernel say."""
    for name, is_memory, unit in (("dma", True, "B"), ("pipeline", False, "op")):
        busy = [
            ((each.bytes if is_memory else each.operations) / each.cycles / each.roofs[name], each.kernel)
            for each in kernels
            if each.cycles and each.roofs.get(name)
        ]
        if found := [each for each in busy if _is_drawn(each[0])]:
            rate, kernel = max(found)
            yield _Roof(is_memory, rate, f"{name}, derived from {kernel}: {si(rate)}{unit}/cycle")


def _is_drawn(value: float) -> bool:
    return _LEAST < value < _LARGEST


def _letter(number: int) -> str:
    return chr(ord("A") + number)


class _Axis:
    """The logarithmic scale from a pixel to another one, over whole decades around some values."""

    def __init__(self, values: Sequence[float], start: float, end: float) -> None:
        self.first, last = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
        self.last = max(last, self.first + 1)
        self._start, self._pixels = start, (end - start) / (self.last - self.first)
        self.least, self.largest = 10.0**self.first, 10.0**self.last

    def __call__(self, value: float) -> float:
        return self._start + self._pixels * (math.log10(value) - self.first)

    def ticks(self) -> list[float]:
        step = math.ceil((self.last - self.first) / _TICKS)
        return [10.0**power for power in range(self.first, self.last + 1, step)]


def _plot(points: Sequence[_Drawn], roofs: Sequence[_Roof], style: str, per: str) -> list[Markup]:
    """Return the axes, the roofs with their letters, and the points with their numbers."""
    memory, arithmetic = ([roof.rate for roof in roofs if roof.is_memory is kind] for kind in (True, False))
    ridges = [a / m for a in arithmetic for m in memory if _is_drawn(a / m)]
    x = _Axis([*(point.intensity for point in points), *ridges], _LEFT, _RIGHT)
    y = _Axis([each for point in points for each in (point.rate, point.roof or point.rate)] + arithmetic, _BOTTOM, _TOP)
    rows = [
        charts.text((8, 12), f"operations per {per}"),
        charts.text((_RIGHT, _BOTTOM + 34), "operations per byte", "end"),
    ]
    for tick in x.ticks():
        rows += [charts.line("line", (x(tick), _TOP), (x(tick), _BOTTOM))]
        anchor = "middle" if tick < x.largest else "end"
        rows.append(charts.text((x(tick), _BOTTOM + 17), si(tick).strip(), anchor, "faint"))
    for tick in y.ticks():
        rows += [charts.line("line", (_LEFT, y(tick)), (_RIGHT, y(tick)))]
        rows.append(charts.text((_LEFT - 4, y(tick) + 4), si(tick).strip(), "end", "faint"))
    anchors: list[tuple[str, Place]] = []
    top = max(arithmetic, default=y.largest)
    for number, roof in enumerate(roofs):
        if roof.is_memory:
            ends = max(x.least, y.least / roof.rate), min(x.largest, top / roof.rate)
            places = [(x(end), y(end * roof.rate)) for end in ends]
        else:
            ends = max([x.least, *(roof.rate / rate for rate in (memory and [max(memory)]))]), x.largest
            places = [(x(end), y(roof.rate)) for end in ends]
        if ends[0] < ends[1]:
            rows.append(charts.line("roof", *places))
            (x0, y0), (x1, y1) = places
            anchors.append((_letter(number), ((x0 + 2 * x1) / 3, (y0 + 2 * y1) / 3)))
    dots = [(x(point.intensity), y(point.rate)) for point in points]
    for place, point in zip(dots, points, strict=True):
        if point.roof and point.roof > point.rate:
            rows.append(charts.line("reach", place, (place[0], y(point.roof))))
    rows += [charts.dot(style, place) for place in dots]
    anchors = [*((str(number), place) for number, place in enumerate(dots, 1)), *anchors]
    return [*rows, *_labels(anchors, dots)]


def _labels(anchors: Sequence[tuple[str, Place]], dots: Sequence[Place]) -> Iterator[Markup]:
    """Yield each label near its anchor, where it covers no dot and no other label; a line leads to one further away."""
    taken = [(*each, _DOT, _DOT) for each in dots]
    for label, (x, y) in anchors:
        around = [(x + dx, y + dy) for dx, dy in _AROUND]
        free = (
            (a, b)
            for a, b in around
            if _LEFT + _HALF[0] < a < _RIGHT - _HALF[0] and _TOP + _HALF[1] < b < _BOTTOM - _HALF[1]
            if not any(abs(a - c) < _HALF[0] + wide and abs(b - d) < _HALF[1] + high for c, d, wide, high in taken)
        )
        place = next(free, around[0])
        taken.append((*place, *_HALF))
        if math.dist(place, (x, y)) > 21:
            yield charts.line("lead", (x, y), place)
        yield charts.text((place[0], place[1] + 4), label, "middle")
