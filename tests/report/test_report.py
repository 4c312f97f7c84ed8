"""The report says what the files in build/results say, names what was not run, and needs nothing but itself."""

from __future__ import annotations

import functools
import html
import json
import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import fuzz_targets
import pytest
from damage import altered
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jinja2 import Environment

from toolchains.lockfile import lock
from toolchains.report import page, results, roofline
from toolchains.report.results import FORMAT, Report, collect
from toolchains.resolve import age
from toolchains.system import paths
from toolchains.system.errors import FileError, UsageError
from toolchains.verbs import report as verb

# What a test, a kernel or a device might be called by somebody who wants to write into the page.
NASTY = "</script><script>alert(1)</script><b>&\"'"
DEVICE = {"device": "CPU OpenCL device: a processor"}


def case(name: str, failure: str | None = None, outcome: str = "", cycles: int | None = None) -> dict[str, Any]:
    found: dict[str, Any] = {"suite": "suite", "name": name, "seconds": 0.5, "failure": failure}
    found["modelled"] = {"cycles": cycles} if cycles else None
    return found | ({"outcome": outcome} if outcome else {})


def put(file: Path, document: object) -> None:
    """Write a document; what is no text becomes JSON."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(document if isinstance(document, str) else json.dumps(document))


def verdict(
    folder: Path, *cases: dict[str, Any], ran: dict[str, str] = DEVICE, faults: Sequence[str] = (), partial: str = ""
) -> None:
    document = {"ran": ran, "faults": list(faults), "partial": partial, "cases": list(cases)}
    put(folder / "results.json", document)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return results of each kind: a proven target, one with failures, tests, conformance, a measurement, an image."""
    made = tmp_path / "results"
    verdict(made / "spirv/3.9.0+foundry.3", case("vec_add"), case("matmul"))
    verdict(made / "dpu-sdk/3.9.0", case("vec_add", cycles=1000), case(NASTY, f"{NASTY}\nmore"), faults=["it broke"])
    cases = [case("a", outcome="pass"), case("b", outcome="refused"), case("c", outcome="not applicable")]
    verdict(made / "vsi/conformance/3.9.0/own", *cases)
    put(
        made / "test/backends-spirv-3.6.0.xml",
        '<testsuites><testsuite tests="3"><testcase classname="t" name="one"/><testcase classname="t" name="two">'
        '<failure message="wrong sum"/></testcase><testcase classname="t" name="three"><skipped/></testcase>'
        "</testsuite></testsuites>",
    )
    times = {"min": 0.001, "median": 0.0015, "runs": 5}
    rows = [
        {"label": "ours", "times": times, "rate": 90.0, "cycles": None},
        {"label": "OpenCL C", "times": times, "rate": 100.0, "cycles": None, "detail": "block 64"},
        {"label": "64 DPUs", "times": None, "rate": None, "cycles": 123456},
    ]
    measured = {"title": "vec_add f32", "unit": "GB/s", "rows": rows, "ratios": {"ours / OpenCL C": 0.9}}
    measured |= {"beyond": {"first launch": 0.25}, "aim": "0.95", "on": {"torch": "AVX2"}}
    # The work of a kernel may be counted in floats.
    kernel = {"kernel": "k", "grid": [2, 1, 1], "launches": 3, "seconds": 0.002, "bytes": 4096, "operations": 0.0}
    bounded = kernel | {"functions": 0, "bound": "memory", "share": 0.5, "memory_roof": 8e9, "launch": 1e-5}
    fast = bounded | {"kernel": "fast", "bound": "arithmetic", "share": None}
    fast["arithmetic_roofs"] = {"f16 matrices": 5e12}
    modelled = kernel | {"functions": 7, "bound": "dma", "share": 0.9}
    modelled["modelled"] = {"cycles": 54321, "dma": 0.9, "pipeline": 0.25, "lines": []}
    refused = kernel | {"kernel": NASTY, "unknown": "it is refused\nat length"}
    profiles = [{"name": "softmax", "kernels": [bounded, fast, refused]}]
    bench = {"ran": DEVICE, "measurements": [measured], "profiles": profiles}
    put(made / "spirv-bench/3.9.0/bench.json", bench)
    mine = {"ran": {"device": "our emulator"}, "script": "mine.py", "kernels": [modelled]}
    put(made / "dpu/3.9.0/profiles/mine.json", mine)
    sizes = {"image": "triton-foundry/spirv:0123", "packages": {"libc6": 2_000_000, "python: triton": 5_000_000}}
    put(made / "spirv/3.9.0+foundry.3/sizes.json", sizes)
    behind = {"kind": "deb", "name": NASTY, "locked": "1", "current": "2", "is_security": True, "systems": ["dpu"]}
    put(made / age.NAME, {"lock": lock.load().digest, "newer": [behind]})
    return made


class Page(HTMLParser):
    """A page's rows, and everything that it would load or run. Elements must be closed in order."""

    VOID = ("meta", "!doctype", "br")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.rows: list[list[str]] = []
        self.loads: list[str] = []
        self.scripts: list[str | None] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        known = dict(attributes)
        self.loads += [
            f"{name}={value}" for name, value in attributes if name in ("src", "href", "xlink:href", "data", "action")
        ]
        self.loads += [name for name, _ in attributes if name.startswith("on")]
        if tag == "script":
            self.scripts.append(known.get("type"))
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if {"style", "script"} & {*self.open}:
            return
        self.text += data
        if {"td", "th"} & {*self.open}:
            self.rows[-1][-1] += data

    def row(self, *cells: str) -> list[str]:
        """Return the one row that begins with these cells, with single spaces."""
        plain = [[" ".join(cell.split()) for cell in row] for row in self.rows]
        (found,) = [row for row in plain if row[: len(cells)] == list(cells)]
        return found


@pytest.fixture
def made(folder: Path) -> Report:
    return collect(folder, lock.load())


def shown(report: Report, other: Report | None = None) -> Page:
    return Page(page.render(report, lock.load(), other))


def test_each_run_has_its_outcome_its_device_and_how_its_figures_were_got(made: Report) -> None:
    found = shown(made)
    row = found.row("spirv", "3.9.0", "our own parts", "e2e")
    assert row[4] == "passed 2 pass"
    assert row[5].startswith("device: CPU OpenCL device: a processor")
    row = found.row("dpu", "3.9.0", "the vendor's SDK", "e2e")
    assert row[4] == "not passed 1 failed, 1 pass"
    assert row[5].endswith("1 cases with modelled cycles")
    assert (
        found.row("vsi", "3.9.0", "our own parts", "conformance: own")[4]
        == "passed 1 not applicable, 1 pass, 1 refused"
    )
    assert found.row("spirv", "3.6.0", "our own parts", "tests")[4] == "not passed 1 failed, 1 not applicable, 1 pass"
    assert "it broke" in found.text and "t: two: wrong sum" in found.text
    assert found.row("ours")[1:] == ["measured", "1.5 ms", "90", "90 %"]
    assert found.row("64 DPUs")[1:] == ["modelled", "123,456 cycles", "", ""]
    assert "OpenCL C block 64" in found.text and "torch: AVX2" in found.text
    assert "ours / OpenCL C: 0.90" in found.text and "first launch: +0.25 s" in found.text
    bounded = found.row("k grid 2 x 1 x 1, launched 3 times", "measured")
    assert bounded[2:] == ["2 ms", "4.1 kB", "0 op", "memory", "launch 10 us, memory 8 GB/s", "50 %"]
    fast = found.row("fast grid 2 x 1 x 1, launched 3 times", "measured")
    assert fast[5] == "arithmetic" and fast[6].endswith("f16 matrices 5 Top/s")
    assert fast[7] == "not known: faster than the roof"
    modelled = found.row("k grid 2 x 1 x 1, launched 3 times", "modelled")
    assert modelled[2:] == [
        "54,321 cycles",
        "4.1 kB",
        "0 op, 7 functions",
        "dma",
        "dma busy 90 %, pipeline busy 25 %",
        "90 %",
    ]
    assert "not known: it is refused" in found.text and "dpu, Triton 3.9.0: mine.py" in found.text
    assert found.row("python: triton") == ["python: triton", "5.0"]
    assert found.row("Together") == ["Together", "7.0"]


def test_a_run_of_some_cases_is_no_pass_and_no_point_of_the_history(folder: Path) -> None:
    part = "only 1 of 83 cases"
    verdict(folder / "vsi" / "3.9.0" / "only", case("matmul"), partial=part)
    verdict(folder / "vsi" / "conformance" / "3.9.0" / "own" / "only", case("a", outcome="pass"), partial=part)
    found = collect(folder, lock.load())
    assert shown(found).row("vsi", "3.9.0", "our own parts", f"e2e, {part}")[4] == "partly run 1 pass"
    assert shown(found).row("vsi", "3.9.0", "our own parts", "e2e")[4] == "not run"
    assert shown(found).row("vsi", "3.9.0", "our own parts", f"conformance: own, {part}")[4] == "partly run 1 pass"
    assert [[(point.passed, point.applicable) for point in points] for points in found.history.values()] == [[(1, 2)]]


def test_report_marks_what_was_not_run_or_compared(made: Report, tmp_path: Path) -> None:
    for target in lock.load().proven():
        for release in target.tritons:
            row = shown(made).row(target.name, release, "our own parts", "e2e")
            assert row[4] == ("passed 2 pass" if (target.name, release) == ("spirv", "3.9.0") else "not run")
    empty = shown(collect(tmp_path / "none", lock.load()))
    assert "There are no results yet" in empty.text
    assert empty.text.count("Not run") == 3 and "Not measured" in empty.text
    assert shown(made).row(f"deb {NASTY}") == [f"deb {NASTY}", "1", "2", "yes", "dpu"]
    assert "Not compared with the archives" in shown(collect(tmp_path / "none", lock.load())).text


def test_a_run_without_a_case_or_with_a_fault_is_not_passed(tmp_path: Path) -> None:
    verdict(tmp_path / "spirv" / "3.9.0")
    verdict(tmp_path / "vsi" / "3.9.0", case("vec_add"), faults=["it broke off"])
    verdict(tmp_path / "dpu" / "3.9.0", case("vec_add", outcome="not applicable"))
    assert not any(run.succeeded for run in collect(tmp_path, lock.load()).runs)


def test_the_page_loads_and_runs_nothing_and_takes_no_markup_from_results(made: Report) -> None:
    found = shown(made)
    assert [load for load in found.loads if not load.startswith("href=#")] == []
    assert found.scripts == ["application/json"]
    assert NASTY in found.text
    text = page.render(made, lock.load())
    assert not re.search(r"@import|url\(|http://(?!www\.w3\.org/)|https://", re.sub(r"<!--.*?-->", "", text))


def test_report_is_the_same_each_time_and_is_read_back_from_its_page(made: Report, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(page.render(made, lock.load()))
    assert page.read(tmp_path / "page.html") == made
    assert page.render(made, lock.load()) == page.render(made, lock.load())


def test_two_reports_stand_side_by_side(folder: Path, made: Report) -> None:
    verdict(folder / "spirv" / "3.9.0+foundry.3", case("vec_add"), case("matmul", "wrong"))
    bench = folder / "spirv-bench" / "3.9.0" / "bench.json"
    bench.write_text(bench.read_text().replace("90.0", "95.0").replace("0.9}", "0.95}"))
    spirv = lock.load().targets["spirv"]
    changed = replace(lock.load(), targets={"spirv": replace(spirv, debs=spirv.debs[1:])})
    found = shown(collect(folder, changed), made)
    assert found.row("spirv", "3.9.0", "our own parts", "e2e")[4:6] == ["not passed 1 failed, 1 pass", "passed 2 pass"]
    assert found.row("ours")[1:] == ["measured", "1.5 ms", "95", "90", "95 %"]
    assert "ours / OpenCL C: 0.95 (there 0.90)" in found.text
    assert found.row("k grid 2 x 1 x 1, launched 3 times", "measured")[-2:] == ["50 %", "50 %"]
    gone = [row for row in found.rows if row[0].startswith("deb ") and "spirv" in row[1] and "spirv" not in row[2]]
    assert spirv.debs[0].name in " ".join(row[0] for row in gone)


def test_changes_and_history_count_from_the_last_report(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "report.html"

    def write() -> Report:
        verb.report(output=str(place), results=str(folder), compare="")
        return page.read(place)

    first = write()
    assert first.changed == []
    (points,) = write().history.values()
    assert len(points) == 1  # the same run is no second one
    verdict(folder / "vsi/conformance/3.9.0/own", case("a", outcome="pass"), case("b", outcome="pass"))
    os.utime(folder / "vsi/conformance/3.9.0/own/results.json", (2e9, 2e9))
    bench = folder / "spirv-bench/3.9.0/bench.json"
    bench.write_text(bench.read_text().replace("0.9}", "0.95}"))
    known = lock.everything()
    spirv = known.targets["spirv"]
    debs = (replace(spirv.debs[0], version="99", sha256="9" * 64), *spirv.debs[1:])
    other = replace(known, targets={**known.targets, "spirv": replace(spirv, debs=debs)})
    monkeypatch.setattr(lock, "everything", lambda: other)
    second = write()
    (points,) = second.history.values()
    assert [(point.passed, point.applicable) for point in points] == [(1, 2), (2, 2)]
    ((key, figures),) = second.trends.items()
    assert key.endswith(f"vec_add f32, on {DEVICE['device']}: ours / OpenCL C")
    assert [figure.value for figure in figures] == [0.9, 0.95]
    ((name, before, after),) = second.changed
    assert name == f"deb {spirv.debs[0].name}" and "99 (999999999999)" in after and "99 (" not in before
    place.write_text("<html></html>")
    assert write().changed == []
    assert "this report begins a new history" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("", UsageError),
        ('<script type="application/json" id="foundry-report">{}</script>', FileError),
        (f'<script type="application/json" id="foundry-report">{"[" * 99999}</script>', FileError),
        ('<script type="application/json" id="foundry-report">{"format": 0}</script>', UsageError),
        (f'<script type="application/json" id="foundry-report">{{"format": {FORMAT}}}</script>', FileError),
    ],
)
def test_malformed_or_missing_report_is_refused(tmp_path: Path, content: str, error: type[Exception]) -> None:
    (tmp_path / "page.html").write_text(content)
    with pytest.raises(error):
        page.read(tmp_path / "page.html")
    with pytest.raises(FileError):
        page.read(tmp_path / "missing.html")


@pytest.mark.parametrize(
    "name",
    [
        "vsi/conformance/3.9.0/own/results.json",
        "spirv-bench/3.9.0/bench.json",
        "dpu/3.9.0/profiles/mine.json",
        "spirv/3.9.0+foundry.3/sizes.json",
    ],
)
def test_damaged_results_are_an_error_that_names_them(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    known, text = lock.load(), (folder / name).read_text()
    locked = results._locked(known)

    @functools.cache
    def environment(**options: Any) -> Environment:
        made = Environment(**options)
        monkeypatch.setattr(made, "from_string", functools.cache(made.from_string))
        return made

    # What takes long and depends on no results: the template is compiled once.
    monkeypatch.setattr(page, "Environment", environment)
    monkeypatch.setattr(results, "_locked", lambda known: locked)
    monkeypatch.setattr(results, "_commit", str)
    alone = folder.with_name("alone")
    file = alone / name
    file.parent.mkdir(parents=True)
    refused = 0
    for damaged in (text[:50], "[" * 99999, "\xff", *map(json.dumps, altered(json.loads(text)))):
        file.write_text(damaged)
        try:
            found = collect(alone, known)
        except FileError as error:
            assert error.what == f"{file} is damaged", damaged
            refused += 1
        else:
            assert page.render(found, known)
    assert refused > 20


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<testsuites>",
        "<?xml version='1.0' encoding='nothing'?><testsuites/>",
        "<?xml version='1.0' encoding='utf-7'?><testsuites/>",
        "\x00",
    ],
)
def test_a_damaged_file_of_tests_is_an_error_that_names_it(folder: Path, text: str) -> None:
    file = folder / "test" / "backends-spirv-3.6.0.xml"
    file.write_text(text)
    with pytest.raises(FileError) as raised:
        collect(folder, lock.load())
    assert raised.value.what == f"{file} is damaged"


def test_the_message_of_a_failed_test_is_found_behind_what_else_it_has(folder: Path) -> None:
    file = folder / "test" / "backends-spirv-3.6.0.xml"
    file.write_text(
        '<testsuite><testcase classname="t" name="two"><properties/><failure message="wrong sum"/></testcase>'
        "</testsuite>"
    )
    (run,) = [run for run in collect(folder, lock.load()).runs if run.kind == "tests"]
    assert run.failures == [("t: two", "wrong sum")]


# Reads in a browser what it made of a page: what a reader with good eyes would say.
CONTRAST = """
const number = colour => colour.match(/[\\d.]+/g).slice(0, 3).map(Number);
const linear = c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
const light = colour => { const [r, g, b] = number(colour).map(linear); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const contrast = (ink, paper) => (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
const ink = e => { const style = getComputedStyle(e); return light(e.tagName == "text" ? style.fill : style.color); };
"""
# What is wrong with the place of a text, a pixel aside: it covers another one, or a part of it is not to be seen.
PROBE = """
const paper = light(getComputedStyle(document.body).backgroundColor);
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), texts = [];
for (let node; node = walker.nextNode();) {
  const range = document.createRange(), e = node.parentElement;
  range.selectNodeContents(node);
  if (node.data.trim() && e.tagName != "SCRIPT")
    texts.push(...[...range.getClientRects()].filter(r => r.width).map(r => ({ r, node, e, text: node.data.trim() })));
}
const both = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
  Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1;
const overlaps = texts.flatMap((a, i) => texts.slice(i + 1).filter(b => a.node != b.node && both(a.r, b.r))
  .map(b => [a.text, b.text]));
const cut = texts.filter(({ r, e }) => { const svg = e.closest("svg")?.getBoundingClientRect();
  return r.left < 0 || r.right > innerWidth || (svg && (r.left < svg.left - 1 || r.right > svg.right + 1 ||
    r.top < svg.top - 1 || r.bottom > svg.bottom + 1)); }).map(({ text }) => text);
document.title = JSON.stringify({ paper, overlaps, cut, inner: innerWidth, width: document.documentElement.scrollWidth,
  scrolled: [...document.querySelectorAll(".wide")].filter(e => e.scrollWidth > e.clientWidth).length,
  contrast: Math.min(...texts.map(({ e }) => contrast(ink(e), paper))), texts: texts.length,
  lowest: Math.min(...texts.map(({ r }) => r.height)), cells: document.querySelectorAll("#runs td").length,
  charts: [...document.querySelectorAll("svg")].map(e => e.getAttribute("aria-label").split(/[ :]/)[0]),
  dots: [...document.querySelectorAll("circle")].map(e => getComputedStyle(e).fill),
  bars: [...document.querySelectorAll(".bar i")].map(e => [getComputedStyle(e).backgroundColor,
    Math.round(100 * e.getBoundingClientRect().width / e.parentElement.clientWidth)]) });
"""
# The same of a picture, and which texts leave their boxes.
PICTURE = """
const style = getComputedStyle(document.querySelector(".paper, main"));
const paper = light(document.querySelector(".paper") ? style.fill : style.backgroundColor);
const texts = [...document.querySelectorAll("svg text, td, th, h1, h2")];
const whole = document.querySelector("svg").getBoundingClientRect();
const boxes = [...document.querySelectorAll(".box")].map(e => e.getBoundingClientRect());
const fits = e => { const r = e.getBoundingClientRect();
  const box = boxes.find(b => b.left <= r.left && r.left < b.right && b.top <= r.top && r.top < b.bottom) || whole;
  return r.right <= box.right && r.bottom <= box.bottom; };
document.title = JSON.stringify({ paper, texts: texts.length,
  outside: texts.filter(e => !fits(e)).map(e => e.textContent),
  contrast: Math.min(...texts.map(e => contrast(ink(e), paper))) });
"""


@pytest.fixture(scope="module")
def browser(installed: Callable[[str, str], str]) -> str:
    return installed("chromium-headless-shell", "shows the report as a browser does")


def probed(browser: str, folder: Path, page: str, probe: str, width: int, *, dark: bool) -> dict[str, Any]:
    """Return what a probe finds when a browser shows a page."""
    (folder / "page.html").write_text(page.replace("</body>", f"<script>{CONTRAST}{probe}</script></body>"))
    words = [browser, "--no-sandbox", "--disable-gpu", f"--window-size={width},900", "--dump-dom"]
    words += [f"--blink-settings=preferredColorScheme={0 if dark else 1}", f"--user-data-dir={folder / 'profile'}"]
    words.append((folder / "page.html").as_uri())
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True)
    title = re.search("<title>(.*?)</title>", done.stdout)
    assert title
    found: dict[str, Any] = json.loads(html.unescape(title[1]))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("picture", sorted((paths.ROOT / "docs").glob("*.svg")), ids=lambda path: path.stem)
def test_text_of_pictures_is_readable_and_in_its_box(browser: str, tmp_path: Path, picture: Path, dark: bool) -> None:
    # An SVG has a title of its own.
    text = f"<!doctype html><title></title><body>{picture.read_text(encoding='utf-8')}</body>"
    found = probed(browser, tmp_path, text, PICTURE, 960, dark=dark)
    assert found["outside"] == [] and found["texts"] > 10
    assert found["contrast"] >= 4.5
    assert (found["paper"] < 0.1) == dark


@pytest.fixture
def pictured(folder: Path) -> Report:
    """Return a report with every kind of picture: trends of two runs, and rooflines with many kernels in one place."""
    before = collect(folder, lock.load())
    for name in ("vsi/conformance/3.9.0/own/results.json", "spirv-bench/3.9.0/bench.json"):
        file = folder / name
        file.write_text(file.read_text().replace('"refused"', '"pass"').replace("0.9}", "0.95}"))
        os.utime(file, (2e9, 2e9))
    many = [
        kernel(name, seconds=1e-3 * (1 + number / 50), launch=1e-5, memory_roof=1e9 * (number + 2), share=0.4)
        for number, name in enumerate(["softmax", "a" * 90, "\u6838" * 60, *("matmul " * 9 + str(n) for n in range(9))])
    ]
    many[0]["arithmetic_roofs"] = {"f32": 5e11, "f16 matrices": 5e12}
    models = [{"cycles": 1e5 * dma, "dma": dma, "pipeline": 0.3} for dma in (0.2, 0.9)]
    many += [kernel(f"on a DPU {each['dma']}", modelled=each, bound="dma", share=each["dma"]) for each in models]
    put(folder / "spirv/3.9.0/profiles/many.json", {"ran": DEVICE, "script": "many.py", "kernels": many})
    return collect(folder, lock.load(), before)


def kernel(name: str, **figures: Any) -> dict[str, Any]:
    """Return a kernel's figures, as the profile writes them: 4 operations a byte, if nothing else is given."""
    known = {"kernel": name, "grid": [64, 1, 1], "launches": 3, "seconds": 1e-3, "bytes": 1e6, "operations": 4e6}
    return known | {"functions": 0, "bound": "memory", "share": 0.5} | figures


@pytest.mark.slow
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [390, 1440])
def test_no_text_of_the_page_covers_another_or_is_cut_light_and_dark(
    browser: str, pictured: Report, tmp_path: Path, width: int, dark: bool
) -> None:
    found = probed(browser, tmp_path, page.render(pictured, lock.load(), pictured), PROBE, width, dark=dark)
    assert found["overlaps"] == [] and found["cut"] == [] and found["scrolled"] == 0
    # Nothing is wider than the screen, and text is readable: 4.5 is what WCAG 2 asks of it (AA).
    assert found["width"] <= found["inner"] == width
    assert found["contrast"] >= 4.5 and found["texts"] > 100 and found["lowest"] > 10
    assert (found["paper"] < 0.1) == dark
    assert found["cells"] > 20
    assert Counter(found["charts"]) == {"vsi,": 1, "spirv,": 1, "roofline": 4}
    # The page's colours have arrived in the pictures, and bars are as long as the shares.
    first, second = ("108, 178, 255", "229, 181, 103") if dark else ("11, 98, 184", "154, 91, 0")
    assert {*found["dots"]} == {f"rgb({first})", f"rgb({second})"}
    (ours, theirs) = found["bars"]
    assert ours[0] == theirs[0] == f"rgb({first})" and ours[1] == pytest.approx(0.9 * theirs[1], abs=1)


@pytest.mark.slow
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [390, 1440])
def test_no_text_of_a_file_with_rooflines_covers_another_or_is_cut(
    browser: str, pictured: Report, tmp_path: Path, width: int, dark: bool
) -> None:
    text = f"<!doctype html><meta charset=utf-8><title></title><body>{roofline.file(pictured.profiles)}</body>"
    # Without the margin that a browser gives a page.
    text = text.replace("<style>", "<style>body { margin: 0; background: var(--paper); }", 1)
    found = probed(browser, tmp_path, text, PROBE, width, dark=dark)
    assert found["overlaps"] == [] and found["cut"] == []
    assert found["contrast"] >= 4.5 and found["texts"] > 40 and found["lowest"] > 10
    assert (found["paper"] < 0.1) == dark


class Skeleton(HTMLParser):
    """The elements of a page, each with the names of its attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, list[str]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = tag, [name for name, _ in attrs]
        # A long text of a picture has several lines.
        if tag != "text" or self.elements[-1] != element:
            self.elements.append(element)


# Fields of results whose keys are what a run calls its devices, ratios and packages.
NAMED = {"ran", "on", "ratios", "beyond", "packages", "arithmetic_roofs"}


def renamed(value: Any, text: str, field: str = "") -> Any:
    """Return results with a text in place of each text."""
    if isinstance(value, dict):
        named = {key: f"{text} {number}" if field in NAMED else key for number, key in enumerate(value)}
        return {named[key]: renamed(each, text, key) for key, each in value.items()}
    if isinstance(value, list):
        return [renamed(each, text) for each in value]
    return text if isinstance(value, str) else value


def page_with(folder: Path, text: str) -> str:
    """Return the page of results of each kind that have this text everywhere."""
    shutil.rmtree(folder, ignore_errors=True)
    for place, seeds in fuzz_targets.RESULTS.items():
        (content,) = seeds(folder)
        if place.endswith(".xml"):
            case = f"<testcase classname={quoteattr(text)} name={quoteattr(text)}>"
            put(folder / place, f"<testsuite>{case}<failure message={quoteattr(text)}/></testcase></testsuite>")
        else:
            put(folder / place, renamed(json.loads(content), text))
    return fuzz_targets.report_of(folder)


@pytest.mark.slow
def test_no_text_of_a_container_becomes_an_element_or_an_attribute_of_the_page(tmp_path: Path) -> None:
    harmless = Skeleton(page_with(tmp_path / "results", "harmless"))
    assert len(harmless.elements) > 100

    @settings(derandomize=True, database=None, deadline=None, max_examples=25)
    @given(st.lists(st.sampled_from(fuzz_targets.HTML), min_size=1, max_size=8).map("".join))
    @example("".join(fuzz_targets.HTML))
    def check(text: str) -> None:
        written = page_with(tmp_path / "results", f"x{text}")
        assert Skeleton(written).elements == harmless.elements
        (tmp_path / "report.html").write_text(written)
        assert f"x{text} 0" in page.read(tmp_path / "report.html").contents[0].packages

    check()


@pytest.mark.parametrize("size", [10**400, 10**20, -1])
def test_a_size_that_no_package_has_is_damage(tmp_path: Path, size: int) -> None:
    put(tmp_path / "spirv/3.9.0/sizes.json", {"image": "a:b", "packages": {"a": size}})
    with pytest.raises(FileError, match=r"sizes\.json is damaged"):
        fuzz_targets.report_of(tmp_path)
