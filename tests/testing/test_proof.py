"""The verbs e2e and bench with a container that only records: its inputs, its outputs, the effects of a failure."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from damage import altered
from scripts import junit

from toolchains.artifacts import triton_wheel
from toolchains.assembly import ensure
from toolchains.assembly.request import Request
from toolchains.config import components
from toolchains.engine.gpus import Gpus
from toolchains.engine.sandbox import Limits
from toolchains.lockfile import lock
from toolchains.report.results import collect
from toolchains.system import paths
from toolchains.system.children import Completed
from toolchains.system.errors import EngineError, FoundryError, LimitError, ProofError, UsageError
from toolchains.testing import proof
from toolchains.testing.verdict import Verdict
from toolchains.verbs import bench, conformance, e2e

PLAN = {"plan": [["k", "a"], ["k", "b"]], "of": 2, "title": "e2e", "ran": {"triton": "3.9.0"}}


def result(name: str, failure: str | None = None, /, **more: object) -> dict[str, Any]:
    blank = {"suite": "k", "name": name, "seconds": 1.0, "error": 0.0, "modelled": None, "failure": failure}
    return {"result": blank | more}


def whole(failure: str | None = None, /, **more: object) -> list[dict[str, Any]]:
    """Return the records of a run that was not cut off."""
    began = [{"began": ["k", name]} for name in ("a", "b")]
    return [PLAN, began[0], result("a", **more), began[1], result("b", failure, **more), {"end": 2, "faults": []}]


class FakeContainer:
    """A container that accepts every command. One command sends records and prints a row."""

    limits = Limits(10**9, 100, 60)

    def __init__(self, records: Sequence[object], status: int | FoundryError) -> None:
        self.records = [record if isinstance(record, str) else json.dumps(record) for record in records]
        self.status = status
        self.options: Mapping[str, object] = {}
        self.copied: list[str] = []
        self.called: list[tuple[str, Mapping[str, str]]] = []
        self.commands: list[tuple[tuple[str, ...], Mapping[str, str]]] = []

    def __enter__(self) -> FakeContainer:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def disk_limited(self) -> AbstractContextManager[None]:
        return nullcontext()

    def copy_into(self, source: Path, destination: str) -> None:
        assert source.exists()
        self.copied.append(destination)

    def copy_out(self, source: str, destination: Path, *_: object) -> None:
        assert ("mkdir -p " + source, {}) in self.called
        assert self.commands[-1][1]["FOUNDRY_BENCH_FILES"] == source
        destination.mkdir(parents=True)
        (destination / "plot.png").touch()

    def call(self, argv: Sequence[str], *, env: Mapping[str, str] | None = None) -> str:
        self.called.append((" ".join(argv), env or {}))
        return ""

    def run(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: str,
        line: Callable[[str], None],
        out: Callable[[str], None],
    ) -> Completed:
        self.commands.append((tuple(argv), env))
        line("a row of the table")
        for record in self.records:
            out(record)
        if isinstance(self.status, FoundryError):
            raise self.status
        return Completed(self.status, "", "")

    def oom_killed(self) -> bool:
        return False


Start = Callable[..., FakeContainer]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Start:
    """Return a function that prepares the next container: what it sends and its exit status. Results go to tmp_path."""
    monkeypatch.setattr(paths, "RESULTS", tmp_path)
    monkeypatch.setattr(triton_wheel, "version", lambda locked: f"{locked.version}+foundry.1")

    def make(records: Sequence[object] | None = None, status: int | FoundryError = 0) -> FakeContainer:
        container = FakeContainer(whole() if records is None else records, status)

        def sandbox(name: str, **options: object) -> FakeContainer:
            container.options = options
            return container

        engine = types.SimpleNamespace(sandbox=sandbox)

        def have(request: Request) -> tuple[Any, Any]:
            return engine, types.SimpleNamespace(info=types.SimpleNamespace(id=request.target.name))

        monkeypatch.setattr(ensure, "ensure_image", have)
        return container

    return make


def cases(tmp_path: Path) -> dict[str, str | None]:
    document = json.loads((tmp_path / "spirv/3.9.0+foundry.1/results.json").read_text())
    return {case["name"]: case["failure"] for case in document["cases"]}


FORGED = result("b", None)
BROKEN: dict[str, tuple[Sequence[object], int | FoundryError]] = {
    "nothing at all": ([], 0),
    "no plan": (whole()[1:], 0),
    "an empty plan": ([{**PLAN, "plan": []}, {"end": 0, "faults": []}], 0),
    "no end": (whole()[:-1], 0),
    "one case did not run": ([*whole()[:3], {"end": 1, "faults": []}], 0),
    "one result is missing": ([*whole()[:4], {"end": 2, "faults": []}], 0),
    "a case that is not planned": ([*whole()[:-1], {"began": ["k", "c"]}, result("c"), {"end": 3, "faults": []}], 0),
    "a result before its case began": ([PLAN, result("a"), *whole()[1:]], 0),
    "two results of a case": ([*whole("wrong")[:-1], FORGED, {"end": 2, "faults": []}], 1),
    "a plan that changes": ([*whole()[:3], {**PLAN, "plan": [["k", "a"]]}, {"end": 1, "faults": []}], 0),
    "a record after the end": ([*whole(), result("b")], 0),
    "a result without its time": ([*whole()[:4], {"result": {"suite": "k", "name": "b", "failure": None}}], 0),
    "a result whose outcome is unknown": (whole(outcome="fine"), 0),
    "a wrong result without a failure": (whole(outcome="wrong"), 0),
    "four bytes": ([*whole()[:3], "<x/>"], 0),
    "a fault of the whole": ([*whole()[:-1], {"end": 2, "faults": ["a worker died"]}], 1),
    "a failed case": (whole("3 of 8 are wrong"), 0),
    "a status": (whole(), 1),
    "a death": (whole()[:4], 137),
    "a container that is gone": (whole()[:4], EngineError("it is gone")),
    "a limit": (whole()[:4], LimitError("python was ended", why="it reached its time limit of 60 s")),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_run_is_no_proof(start: Start, how: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records, status = BROKEN[how]
    start(records, status)
    with pytest.raises(ProofError, match="spirv is not proven"):
        e2e.e2e(Request.read("spirv"))
    assert "is proven" not in capsys.readouterr().out
    suite = junit(tmp_path / "spirv/3.9.0+foundry.1")
    if how not in ("an empty plan", "a status"):
        assert int(suite.get("failures", "")) + int(suite.get("errors", "")) > 0


def test_records_of_another_shape_break_nothing(tmp_path: Path) -> None:
    records = whole(
        modelled={"cycles": 5}, outcome="refused", reason="a reason", data={"measurements": [{}], "kernels": []}
    )
    refused = 0
    for place, record in enumerate(records):
        for each in altered(record):
            verdict = Verdict()
            for one in [*records[:place], each, *records[place + 1 :]]:
                verdict.take(json.dumps(one))
            verdict.conclude("status 0")
            verdict.write(tmp_path)
            refused += bool(verdict.faults)
            junit(tmp_path)
            json.loads((tmp_path / "results.json").read_text())
    assert refused > 100
    verdict = Verdict()
    verdict.take("[" * 99999)
    assert len(verdict.faults) == 1


@pytest.mark.parametrize("how", ["a death", "a container that is gone", "a limit", "no end"])
def test_broken_run_names_its_case_and_keeps_earlier_results(start: Start, how: str, tmp_path: Path) -> None:
    records, status = BROKEN[how]
    start(records, status)
    with pytest.raises(ProofError) as raised:
        e2e.e2e(Request.read("spirv"))
    found = cases(tmp_path)
    assert found["a"] is None
    said = found["b"] or ""
    assert how == "no end" or said.startswith("it was running when the run broke off: ")
    reason = {"a death": "status 137", "a limit": "it reached its time limit of 60 s"}.get(how, "")
    assert reason in said
    assert reason in raised.value.why


def test_table_is_shown_and_results_come(start: Start, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stale = tmp_path / "spirv" / "3.9.0+foundry.1" / "stale.json"
    stale.parent.mkdir(parents=True)
    stale.write_text("{}")
    container = start()
    folder = e2e.e2e(Request.read("spirv"))
    assert folder == stale.parent and not stale.exists()
    assert (folder / "junit.xml").is_file()
    # e2e/settings.py reads from the target's file what is proven.
    assert container.copied == ["/foundry/e2e", "/foundry/toolchains/targets/spirv.toml"]
    assert container.commands[0][0][-2:] == ("--only", "")
    printed = capsys.readouterr().out
    assert "a row of the table" in printed
    assert "spirv is proven" in printed


def test_a_run_of_some_cases_proves_nothing_and_keeps_the_results_of_the_whole_run(
    start: Start, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start()
    folder = e2e.e2e(Request.read("spirv"))
    before = {path: path.read_bytes() for path in folder.iterdir()}
    capsys.readouterr()
    container = start([{**PLAN, "of": 83}, *whole()[1:]])
    part = e2e.e2e(Request.read("spirv"), only="bf16")
    assert container.commands[0][0][-2:] == ("--only", "bf16")
    printed = capsys.readouterr().out
    assert "only 2 of 83 cases passed: this does not prove spirv" in printed
    assert "is proven" not in printed
    assert {path: path.read_bytes() for path in before} == before
    assert json.loads((part / "results.json").read_text())["partial"] == "only 2 of 83 cases"
    found = {run.kind: (run.succeeded, run.partial) for run in collect(tmp_path, lock.load()).runs}
    assert found == {"e2e": (True, ""), "e2e, only 2 of 83 cases": (True, "only 2 of 83 cases")}


def test_kernels_of_a_measurement_are_drawn_into_a_file(start: Start, tmp_path: Path) -> None:
    kernel = {"kernel": "add", "grid": [1, 1, 1], "launches": 1, "seconds": 1e-3, "bytes": 12e6, "operations": 1e6}
    kernel |= {"bound": "memory", "share": 0.5, "memory_roof": 2.4e10}
    container = start([PLAN, *whole(data={"measurements": [], "kernels": [kernel], "table": ""})[1:]])
    picture = tmp_path / "new" / "roofline.svg"
    bench.bench(Request.read("spirv"), only="vec_add", plot=picture)
    assert container.commands[0][1]["FOUNDRY_BENCH_PROFILE"] == "1"
    assert "add, grid 1x1x1: 1 Gop/s" in picture.read_text()
    start([*whole()[:4]], 0)
    with pytest.raises(ProofError):
        bench.bench(Request.read("spirv"), plot=picture)
    assert not picture.exists(), "a run that fails leaves none of an earlier one"


def test_one_measurement_keeps_the_others_and_is_the_one_reported(start: Start, tmp_path: Path) -> None:
    def measured(*rates: tuple[str, float]) -> list[dict[str, Any]]:
        rest = {"unit": "GB/s", "ratios": {}, "beyond": {}, "aim": ""}
        entries = [
            {"title": title, "rows": [{"label": "ours", "times": None, "cycles": None, "rate": rate}], **rest}
            for title, rate in rates
        ]
        return [PLAN, *whole(data={"measurements": entries, "table": ""})[1:]]

    start(measured(("vec_add", 1.0), ("matmul", 2.0)))
    file = bench.bench(Request.read("spirv")) / "bench.json"
    os.utime(file, (0, 0))
    start(measured(("matmul", 3.0)))
    bench.bench(Request.read("spirv"), only="matmul")
    found = collect(tmp_path, lock.load()).measurements
    assert [(each.title, each.rows[0].rate) for each in found] == [("vec_add", 1.0), ("matmul", 3.0)]


@pytest.mark.parametrize(
    ("target", "triton", "only", "all_of_them"),
    [
        ("vsi", "", "", True),
        ("vsi", "3.9.0", "", True),
        ("vsi", "3.6.0", "", False),
        ("vsi", "3.6.0", "TC", True),
        ("vsi-torch", "", "", False),
        ("spirv-vulkan", "", "", True),
    ],
)
def test_cases_equal_in_every_triton_run_with_the_default_release_or_on_request(
    start: Start, target: str, triton: str, only: str, all_of_them: bool
) -> None:
    container = start()
    e2e.e2e(Request.read(target, triton=triton), only=only)
    assert ("--not-anywhere" not in container.commands[0][0]) == all_of_them


def test_choice_without_a_case_and_a_failed_image_have_advice(start: Start) -> None:
    start([], 1)
    with pytest.raises(ProofError) as caught:
        e2e.e2e(Request.read("spirv", triton="3.6.0", allow_drift=True))
    assert caught.value.next == "./foundry shell spirv --triton=3.6.0 --allow-drift"
    start([{**PLAN, "plan": []}], 5)
    with pytest.raises(UsageError, match="no case has 'nonsense' in its name"):
        e2e.e2e(Request.read("spirv"), only="nonsense")


@pytest.mark.parametrize("target", ["spirv", "dpu", "vsi"])
def test_unknown_measurement_is_refused_before_an_image_is_made(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ensure, "ensure_image", None)
    with pytest.raises(UsageError, match="there is no measurement nonsense") as caught:
        bench.bench(Request.read(target), only="nonsense")
    assert "vec_add, matmul" in caught.value.why


@pytest.mark.parametrize("verb", [e2e.e2e, bench.bench, conformance.conformance])
def test_results_that_cannot_be_written_are_said_before_an_image_is_made(
    verb: Callable[[Request], object], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "results").touch()
    monkeypatch.setattr(paths, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(ensure, "ensure_image", None)
    with pytest.raises(UsageError, match=f"{tmp_path}/results/.*, the folder for results, cannot be written to"):
        verb(Request.read("spirv"))


def test_a_target_without_measurements_is_refused_with_what_to_write(monkeypatch: pytest.MonkeyPatch) -> None:
    request, spirv = Request.read("spirv"), components.target("spirv")
    monkeypatch.setattr(components, "target", lambda name: replace(spirv, bench=""))
    with pytest.raises(UsageError, match="spirv has no measurements") as caught:
        bench.bench(request)
    assert "toolchains/targets/spirv.toml" in caught.value.next


@pytest.mark.parametrize(("name", "image"), [("spirv", "spirv-bench"), ("spirv-bench", "spirv-bench"), ("dpu", "dpu")])
def test_measurement_runs_in_the_variant_with_the_peers(start: Start, tmp_path: Path, name: str, image: str) -> None:
    container = start()
    assert bench.bench(Request.read(name)) == tmp_path / f"{name.removesuffix('-bench')}-bench" / "3.9.0+foundry.1"
    assert container.copied[:3] == ["/foundry/e2e", "/foundry/bench", "/foundry/examples"]
    assert (tmp_path / f"{name.removesuffix('-bench')}-bench" / "3.9.0+foundry.1" / "files" / "plot.png").exists()
    assert container.commands[0][1]["PYTHONPATH"] == "/foundry/e2e"


def test_vsi_is_measured_beside_the_spirv_plugin_which_its_image_does_not_have(start: Start, tmp_path: Path) -> None:
    container = start()
    bench.bench(Request.read("vsi"))
    assert "/foundry/spirv" in container.copied
    (env,) = [env for line, env in container.called if line.endswith("--target /foundry/peers /foundry/spirv")]
    assert container.commands[0][1]["PYTHONPATH"] == "/foundry/e2e:/foundry/peers"
    # The container has nothing else of backends/.
    alone = shutil.copytree(paths.BACKENDS / "spirv", tmp_path / "alone" / "spirv")
    argv = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path / "built")]
    subprocess.run(argv, cwd=alone, env={**os.environ, **env}, check=True, capture_output=True)
    assert list((tmp_path / "built").glob("*.whl"))


@pytest.mark.parametrize("given", ["", "all"])
def test_a_run_with_gpus_hands_them_over_and_one_without_reports_those_it_does_not_use(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(proof, "unused", lambda gpus: "" if gpus else "/dev/nvidia0: not used")
    container = start()
    folder = e2e.e2e(Request.read("spirv-vulkan", gpus=given))
    assert container.options["gpus"] == Gpus.read(given)
    said = ("/dev/nvidia0: not used" in capsys.readouterr().out, "GPUs" in (folder / "results.json").read_text())
    assert said == (not given, not given)
    assert ("/dev/nvidia0" in (folder / "junit.xml").read_text()) == (not given)
    # A target that has no driver of them says nothing.
    start()
    assert "GPUs" not in (e2e.e2e(Request.read("spirv")) / "results.json").read_text()


def test_variant_and_kind_of_processor_have_their_own_results(start: Start, tmp_path: Path) -> None:
    container = start()
    assert bench.bench(Request.read("spirv-vulkan")).parent == tmp_path / "spirv-vulkan-bench"
    assert container.commands[0][1]["FOUNDRY_MEASUREMENTS"] == "vulkan"
    assert "sum" in bench.measurements("spirv-vulkan") and "sum" not in bench.measurements("spirv")
    container = start()
    folder = bench.bench(Request.read("spirv"), full=True, cpu="avx2")
    assert folder == tmp_path / "spirv-bench" / "3.9.0+foundry.1-avx2" and (folder / "bench.json").exists()
    env = container.commands[0][1]
    assert (env["FOUNDRY_BENCH_FULL"], env["FOUNDRY_BENCH_CPU"]) == ("1", "avx2")
    assert {"POCL_KERNELLIB_NAME", "OPENBLAS_CORETYPE", "ATEN_CPU_CAPABILITY"} <= {*env}
    start()
    bench.bench(Request.read("spirv"))
    assert (folder / "bench.json").exists(), "a run without the limit leaves it"
    with pytest.raises(UsageError, match="did you mean avx2"):
        bench.bench(Request.read("spirv"), cpu="avx")


def test_a_measurement_that_breaks_off_is_an_error(start: Start, tmp_path: Path) -> None:
    start([*whole(data={"measurements": [{"title": "m"}], "table": ""})[:4]], 0)
    with pytest.raises(ProofError, match="did not come to an end"):
        bench.bench(Request.read("spirv"))
    document = json.loads((tmp_path / "spirv-bench/3.9.0+foundry.1/bench.json").read_text())
    assert document["measurements"] == [{"title": "m"}], "what was measured before is kept"
