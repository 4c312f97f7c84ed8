"""A roofline has each kernel where its figures are, says what is not there and why, and how its roofs were got."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest

from toolchains.report import roofline
from toolchains.report.results import Figure, Measurement, ProfiledKernel, Row, _history
from toolchains.system.errors import UsageError

SVG = "{http://www.w3.org/2000/svg}"
MEASURED = ProfiledKernel(
    target="spirv",
    release="3.9.0",
    source="mine.py",
    kernel="k",
    grid=[2, 1, 1],
    launches=3,
    seconds=1e-3,
    cycles=None,
    bytes=1e6,
    operations=1e6,
    functions=0,
    roofs={"launch": 1e-5, "memory": 1e10, "f32": 1e11},
    bound="memory",
    share=0.1,
    unknown="",
    ran={"device": "a CPU"},
    taken="2026-11-27T01:00:00+00:00",
)
MODELLED = msgspec.structs.replace(
    MEASURED, seconds=0, cycles=1e6, roofs={"dma": 0.5, "pipeline": 0.1}, bound="dma", share=0.5, kernel="d"
)


@dataclass
class Drawn:
    """A file with rooflines, as a reader sees it: its words, and its lines and dots in pixels."""

    text: str

    @property
    def tree(self) -> ElementTree.Element:
        return ElementTree.fromstring(self.text)

    @property
    def words(self) -> str:
        return " ".join(" ".join(each.itertext()) for each in self.tree.iter(f"{SVG}text"))

    @property
    def dots(self) -> list[tuple[float, float]]:
        return [(float(each.attrib["cx"]), float(each.attrib["cy"])) for each in self.tree.iter(f"{SVG}circle")]

    def lines(self, kind: str) -> list[str]:
        return [each.attrib["d"] for each in self.tree.iter(f"{SVG}path") if each.attrib["class"] == kind]


def drawn(*kernels: ProfiledKernel, **changes: Any) -> Drawn:
    return Drawn(roofline.file(kernels or [msgspec.structs.replace(MEASURED, **changes)]))


def test_a_kernel_is_at_its_intensity_and_rate_below_its_roofs() -> None:
    found = drawn()
    # x is from 1 to 10 operations a byte, where the roofs meet; y from 1 to 100 G operations a second.
    assert found.dots == [(44, 224)]
    assert found.lines("roof") == ["M44.0 124.0 L352.0 24.0"], "of f32 only its end is there, at the plot's right edge"
    assert found.lines("reach") == ["M44.0 224.0 L44.0 124.0"], "up to its roof, ten times as high"
    assert "k, grid 2x1x1: 1 Gop/s at 1 op/B; 10% of its roof, memory" in found.words
    assert "memory, measured: 10 GB/s, a triad of 1 MB" in found.words
    assert "f32, measured: 100 Gop/s, multiply-adds" in found.words
    matrices = drawn(roofs={"memory": 1e10, "f16 matrices": 1e12}).words
    assert "f16 matrices, measured: 1 Top/s, products of matrices" in matrices
    assert "Nominal peaks of the device are not known" in found.words and "operations per second" in found.words


def test_roofs_of_modelled_cycles_are_derived_and_say_so() -> None:
    found = drawn(MODELLED)
    assert "operations per modelled cycle" in found.words
    # A byte a cycle in half of the cycles; an operation a cycle in a tenth.
    assert "dma, derived from d: 2 B/cycle" in found.words and "pipeline, derived from d: 10 op/cycle" in found.words
    assert "measured" not in found.words.replace("No nominal peak", "")
    assert 'circle class="second"' in found.text


def test_each_source_and_device_has_a_plot() -> None:
    other = msgspec.structs.replace(MEASURED, ran={"device": "a GPU"})
    third = msgspec.structs.replace(MEASURED, source="other.py")
    found = drawn(MEASURED, other, third, MODELLED)
    assert found.words.count("operations per byte") == 4
    assert found.words.count("spirv, Triton 3.9.0: mine.py") == 3 and found.words.count("3.9.0: other.py") == 1


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"bound": "", "unknown": "it is launched once"}, "its work is not known: it is launched once"),
        ({"operations": 0}, "it has no operations on floats"),
        ({"bytes": 0}, "it reaches no memory"),
        ({"operations": 1e300}, "its figures are out of every range"),
        ({"seconds": -1.0}, "its figures are out of every range"),
        ({"share": 1e-300}, "its figures are out of every range"),
    ],
)
def test_a_kernel_that_cannot_be_drawn_is_named_with_the_reason(changes: dict[str, Any], why: str) -> None:
    found = drawn(**changes)
    assert f"not drawn: k, grid 2x1x1: {why}" in " ".join(found.words.split())
    assert found.dots == [] and "operations per byte" not in found.words
    both = drawn(MEASURED, msgspec.structs.replace(MEASURED, kernel="k", **changes))
    assert len(both.dots) == 1 and why in " ".join(both.words.split())


def test_a_kernel_above_its_measured_roof_has_no_line_to_it() -> None:
    found = drawn(share=None)
    assert found.lines("reach") == [] and "faster than its roof was measured" in found.words


def test_the_file_is_the_same_each_time_and_runs_and_loads_nothing() -> None:
    nasty = "</text><script>alert(1)</script>&\x1b[31m\x00"
    text = drawn(MEASURED, msgspec.structs.replace(MEASURED, kernel=nasty, source=nasty)).text
    assert text == drawn(MEASURED, msgspec.structs.replace(MEASURED, kernel=nasty, source=nasty)).text
    assert not re.search(r"<script|url\(|href|@import", text)
    assert "prefers-color-scheme: dark" in text


def test_a_place_that_is_no_svg_or_cannot_be_written_is_refused(tmp_path: Path) -> None:
    assert roofline.read_place("--plot", "") is None
    assert roofline.read_place("--plot", str(tmp_path / "new" / "x.svg")) == tmp_path / "new" / "x.svg"
    (tmp_path / "file").touch()
    for name, why in (("x.png", "a file of SVG"), (str(tmp_path / "file" / "x.svg"), "cannot be written")):
        with pytest.raises(UsageError, match=why):
            roofline.read_place("--plot", name)


def test_candidates_have_the_share_of_the_fastest_one_of_their_kind() -> None:
    def shares(*rows: Row) -> list[float | None]:
        return Measurement("t", "3.9.0", "m", "", list(rows), {}, {}, "", {}, "").shares

    assert shares(Row("a", rate=1.0), Row("b", rate=4.0, seconds=9.0), Row("c", cycles=3)) == [0.25, 1, None]
    assert shares(Row("a", seconds=2.0), Row("b", seconds=1.0)) == [0.5, 1]
    assert shares(Row("a", cycles=100), Row("b", cycles=400)) == [1, 0.25]
    assert shares(Row("a", seconds=2.0), Row("b", cycles=400)) == [None, None]
    assert shares(Row("a", rate=-1.0), Row("b", rate=1.0)) == [None, None]


def test_a_history_keeps_the_last_runs_only() -> None:
    figures = [Figure(f"2026-11-27T{number:04}", number) for number in range(60)]
    assert _history({"k": figures[:49]}, (("k", each) for each in figures[49:])) == {"k": figures[10:]}
