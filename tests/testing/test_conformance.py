"""The verb conformance: how a test is judged, which tests are lost when a process ends, and what is reported."""

from __future__ import annotations

import importlib
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scripts import TRITON, judged, junit

from toolchains.artifacts import triton_wheel
from toolchains.assembly import ensure
from toolchains.assembly.request import Request
from toolchains.system import paths
from toolchains.system.errors import ProofError, UsageError
from toolchains.testing import proof
from toolchains.testing.verdict import BAD, Verdict
from toolchains.verbs import conformance

TOYS = Path(__file__).parents[1] / "toys" / "conformance"
RUNNER = paths.ROOT / "conformance"
LIMIT = "it was ended: the limit on time is 5 s"
SEGFAULT = "the process was ended by SIGSEGV before this case was done"
# The expected result of each test of the toy suite: the outcome, and the reason or the failure.
EXPECTED = {
    "test_outcomes.py::test_passes": ("pass", ""),
    "test_outcomes.py::test_refused": ("refused", "tt.histogram"),
    "test_outcomes.py::test_inline_ptx": ("not applicable", "inline PTX or other assembly of a GPU"),
    "test_outcomes.py::test_asserts_ttgir": ("not applicable", "asserts the text of ttgir"),
    "test_outcomes.py::test_wrong[1]": ("wrong", "AssertionError: assert 1 == 2"),
    "test_outcomes.py::test_wrong[2]": ("pass", ""),
    "test_outcomes.py::test_wrong[3]": ("wrong", "AssertionError: assert 3 == 2"),
    "test_outcomes.py::test_numpy_says_wrong": ("wrong", "AssertionError: Arrays are not equal"),
    "test_outcomes.py::test_not_refused_though_it_should_be": ("wrong", "Failed: DID NOT RAISE ValueError"),
    "test_outcomes.py::test_assertion_of_the_compiler": ("error", "AssertionError: no layout"),
    "test_outcomes.py::test_raises": ("error", "RuntimeError: no such device"),
    "test_outcomes.py::test_ends_the_interpreter": ("error", "SystemExit: 0"),
    "test_outcomes.py::test_segfault": ("crash", SEGFAULT),
    "test_outcomes.py::test_exits": ("crash", "the process ended with status 0 before this case was done"),
    "test_outcomes.py::test_endless_loop": ("time-out", LIMIT),
    "test_outcomes.py::test_skipped": ("not applicable", "the test skips: needs two GPUs"),
    "test_outcomes.py::test_expected_to_fail": ("not applicable", "the test expects to fail: a defect of upstream's"),
    "test_outcomes.py::test_after_all_of_that": ("pass", ""),
    "test_import_error.py::collection": ("error", "ModuleNotFoundError: No module named 'no_such_module'"),
    "test_segfault_in_import.py::collection": ("crash", SEGFAULT),
    "test_skips_itself.py::collection": ("not applicable", "the test skips: needs CUDA"),
    "test_needs_torch.py::collection": ("not applicable", "needs torch, which this image does not have"),
}


def said(result: dict[str, Any]) -> tuple[str, str]:
    return result["outcome"], result.get("reason") or result["failure"] or ""


def run(folder: Path, suite: Path, *options: str) -> tuple[Verdict, subprocess.CompletedProcess[str]]:
    """Run the tests of a folder on this machine, which has no Triton. Return the verdict and the process."""
    (folder / "triton.py").write_text(TRITON)
    path = f"{folder}:{paths.ROOT / 'e2e'}"
    return judged(folder, RUNNER, "--records", "--limit", "5", *options, PYTHONPATH=path, FOUNDRY_SUITE=str(suite))


@pytest.mark.slow
def test_each_test_has_its_outcome_and_one_that_ends_its_process_loses_only_itself(tmp_path: Path) -> None:
    verdict, done = run(tmp_path, TOYS)
    found = {"::".join(key): said(result) for key, result in verdict.results.items()}
    assert found == EXPECTED, done.stderr
    results = {key[1]: result for key, result in verdict.results.items()}
    assert results["test_passes"]["properties"] == {"operation": "a + b"}
    assert results["test_refused"]["why"] == "of f64"
    assert verdict.faults == []
    assert not verdict.proven
    verdict.write(tmp_path)
    suite = junit(tmp_path)
    outcomes = [outcome for outcome, _ in EXPECTED.values()]
    assert {name: int(suite.get(name, "")) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": len(outcomes),
        "failures": outcomes.count("wrong"),
        "errors": sum(map(outcomes.count, ("crash", "time-out", "error"))),
        "skipped": outcomes.count("refused") + outcomes.count("not applicable"),
    }
    messages = [skipped.get("message") for skipped in suite.iter("skipped")]
    assert "refused: tt.histogram" in messages


@pytest.mark.slow
def test_file_name_or_sample_chooses_tests_and_a_seed_repeats_it(tmp_path: Path) -> None:
    names, suite = [f"test_it[{number}]" for number in range(20)], tmp_path / "suite"
    suite.mkdir()
    (suite / "test_it.py").write_text(
        "import pytest\n@pytest.mark.parametrize('number', range(20))\ndef test_it(number): pass\n"
    )

    def planned(suite: Path, *options: str) -> list[str]:
        verdict, done = run(tmp_path, suite, *options)
        assert verdict.succeeded, done.stderr
        assert verdict.proven == (len(verdict.plan or ()) == 20)
        return [name for _, name in verdict.plan or ()]

    first, again, other = (planned(suite, "--sample", "5", "--seed", seed) for seed in ("1", "1", "2"))
    assert first == again and len(first) == 5 and first == [name for name in names if name in first]
    assert len(other) == 5 and other != first
    assert planned(suite, "--sample", "30", "--seed", "1") == names
    (suite / "test_other.py").write_text("import no_such_module\n")
    verdict, _ = run(tmp_path, suite, "--sample", "1", "--seed", "1")
    assert len(verdict.results) == 2 and ("test_other.py", "collection") in verdict.results
    assert planned(suite / "test_it.py", "--only", "test_it[1]") == ["test_it[1]"]


def test_a_suite_with_a_conftest_for_gpus_gets_tensors_on_the_cpu(tmp_path: Path) -> None:
    """The conftest is like upstream's: it has an option --device with the default cuda."""
    suite = tmp_path / "suite"
    suite.mkdir()
    (suite / "conftest.py").write_text(
        "import pytest\n"
        "def pytest_addoption(parser): parser.addoption('--device', default='cuda')\n"
        "@pytest.fixture\n"
        "def device(request): return request.config.getoption('--device')\n"
    )
    (suite / "test_it.py").write_text("def test_device(device): assert device == 'cpu'\n")
    verdict, done = run(tmp_path, suite)
    assert verdict.proven, done.stderr


@pytest.fixture
def outcomes(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the module that runs in images."""
    monkeypatch.syspath_prepend(str(RUNNER))
    return importlib.import_module("outcomes")


class ZenCompilerError(Exception):
    """The vsi backend has an exception of this name. Its compiler is another process."""


class LoweringError(Exception):
    """foundry_core has an exception of this name. It is raised for errors that no single operation causes."""


class OptionError(ValueError):
    """foundry_core has an exception of this name, for an option of a launch."""


class ArgumentError(TypeError):
    """foundry_core has an exception of this name, for an argument of a launch."""


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            OptionError("num_threads=4 is not possible\n  why:  a launch\n  next: x"),
            "a launch: num_threads=4 is not possible",
        ),
        (
            ArgumentError("kernel k writes to x, which is read-only\n  why:  it"),
            "a launch: kernel k writes to x, which is read-only",
        ),
        (OptionError("no reason"), None),
        (ZenCompilerError("zen-compiler refused the kernel k\n  why: tt.scan at k.py:7 is not supported"), "tt.scan"),
        (ZenCompilerError("zen-compiler refused the kernel k\n  why: out of memory"), None),
        (ValueError("type fp8e4nv not supported in this architecture. The supported types are ('fp8e5',)"), "fp8e4nv"),
        (LoweringError("kernel k keeps 70000 bytes of tiles in WRAM, of which"), "tiles that do not fit in WRAM"),
        (LoweringError("a constant of type i7"), None),
    ],
)
def test_refusal_by_a_rule_is_told_from_an_error(outcomes: Any, error: Exception, expected: str | None) -> None:
    found = outcomes.judge(error, outcomes.read_rules())
    assert (found.outcome, found.reason) == (
        ("refused", expected) if expected else ("error", f"{type(error).__name__}: {str(error).splitlines()[0]}")
    )


@pytest.mark.parametrize(
    ("backend", "outcome"), [("cuda", "not applicable"), ("hip", "not applicable"), ("dpu", "error")]
)
def test_a_test_that_compiles_for_another_driver_is_not_applicable(outcomes: Any, backend: str, outcome: str) -> None:
    error = RuntimeError(f"0 compatible backends for target ({backend}) ([]). There should only be one.")
    assert outcomes.judge(error, outcomes.read_rules()).outcome == outcome


def test_the_lowering_refuses_as_the_rules_expect(outcomes: Any) -> None:
    """The rules match the error's class, and phrases that the lowering's sources contain."""
    from foundry_core.errors import UnsupportedOperation

    found = outcomes.judge(UnsupportedOperation("tt.scan", "kernels.py:3"), outcomes.read_rules())
    assert (found.outcome, found.reason) == ("refused", "tt.scan")
    sources = [path.read_text() for path in (paths.BACKENDS / "core" / "src").rglob("*.py")]
    for words in (
        "bytes of tiles in WRAM",
        "KiB of tiles in private memory",
        "KiB of tiles in memory that its work-items",
    ):
        assert any(words in text for text in sources), words


def test_reason_of_a_kernel_error_omits_its_location(outcomes: Any) -> None:
    error = ValueError("at 9:18:\ndef kernel(x):\n    tl.load(x[10:])\n    ^\nunsupported tensor index: slice")
    assert outcomes.judge(error, ()).reason == "ValueError: unsupported tensor index: slice"
    explained = ValueError(f"at:   /k.py:7, in kernel\n{error}\n  why:  a pointer\n  next: add the offset")
    assert outcomes.judge(explained, ()).reason == "ValueError: unsupported tensor index: slice"


def test_a_rule_that_could_hide_a_wrong_value_is_refused(outcomes: Any, tmp_path: Path) -> None:
    judge, read_rules = outcomes.judge, outcomes.read_rules
    rules = read_rules()
    for text in ("ttgir", "KeyError: 'ttgir'", "assert 'ptx' in asm", "No module named 'torch'", "1 != 2"):
        assert judge(AssertionError(text), rules).outcome == "wrong", text
    # An assert in an except clause stays wrong: the exception before it does not change the outcome.
    hidden = AssertionError()
    hidden.__context__ = KeyError("ttgir")
    assert judge(hidden, rules).outcome == "wrong"
    for rule in ('"not applicable"\nreason = "whatever"', '"pass"\nreason = "it is fine"\nerror = "."'):
        (tmp_path / "rules.toml").write_text(f"[[rule]]\noutcome = {rule}\n")
        with pytest.raises(ValueError, match="this is no rule"):
            read_rules(tmp_path / "rules.toml")


def record(name: str, outcome: str, reason: str = "") -> dict[str, Any]:
    failure = reason if outcome in BAD else None
    blank = {"suite": "test_a.py", "name": name, "seconds": 1.0, "error": None, "modelled": None}
    return blank | {"failure": failure, "outcome": outcome, "reason": reason}


def events(*, whole: bool = True, **outcomes: str) -> list[dict[str, Any]]:
    """Return the records of a run that ended with these outcomes; a whole run was of all tests."""
    keys = [["test_a.py", name] for name in outcomes]
    ran = {"device": "a device"}
    found: list[dict[str, Any]] = [{"plan": keys, "of": len(keys) + (not whole), "title": "conformance", "ran": ran}]
    for key, outcome in zip(keys, outcomes.values(), strict=True):
        if outcome != "not run":
            found += [{"began": key}, {"result": record(key[1], outcome, "a reason")}]
    return [*found, {"end": len(keys), "faults": []}]


def verdict_of(*, whole: bool = True, **outcomes: str) -> Verdict:
    verdict, records = Verdict(), events(whole=whole, **outcomes)
    stopped = "not run" in outcomes.values()
    for event in records[:-1] if stopped else records:
        verdict.take(json.dumps(event))
    verdict.conclude("the run was stopped" if stopped else "status 0")
    return verdict


REQUEST = Request.read("spirv", triton="3.9.0")


def report(folder: Path, capsys: pytest.CaptureFixture[str], *, whole: bool = True, **outcomes: str) -> str:
    conformance._report(verdict_of(whole=whole, **outcomes), REQUEST, folder, folder / "outcomes.json")
    return " ".join(capsys.readouterr().out.split())


def test_report_lists_changes_of_each_test(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "there is no earlier run" in report(tmp_path, capsys, a="pass", b="refused", c="wrong", d="pass")
    assert "are those of the last run" in report(tmp_path, capsys, a="pass", b="refused", c="wrong", d="pass")
    found = report(tmp_path, capsys, a="crash", b="pass", c="wrong", d="refused", e="wrong")
    assert "newly failing: 1 test_a.py::a no longer passing: 1 test_a.py::d newly passing: 1 test_a.py::b" in found
    changes = json.loads((tmp_path / "results.json").read_text())["changes"]
    assert changes["newly_failing"] == ["test_a.py::a"]
    # If only some tests ran, or the run was stopped, the other tests keep their last outcomes.
    assert "only 1 of 2 cases" in report(tmp_path, capsys, whole=False, c="pass")
    report(tmp_path, capsys, a="not run", b="pass", c="not run", d="refused", e="wrong")
    found = report(tmp_path, capsys, a="pass", b="pass", c="wrong", d="refused")
    assert "newly failing: 1 test_a.py::c newly passing: 1 test_a.py::a" in found
    assert set(json.loads((tmp_path / "outcomes.json").read_text())) == {f"test_a.py::{name}" for name in "abcd"}


def test_report_counts_by_file_function_and_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = {"f[1]": "pass", "f[2]": "wrong", "f[3]": "refused", "g": "not applicable", "h": "not run"}
    text = report(tmp_path, capsys, whole=True, **names)
    assert "wrong, 1 times: test_a.py::f a reason" in text
    document = json.loads((tmp_path / "results.json").read_text())
    assert document["files"] == {
        "test_a.py": {"pass": 1, "refused": 1, "not applicable": 1, "wrong": 1, "not run": 1},
    }
    assert document["groups"]["test_a.py::f"] == {"pass": 1, "refused": 1, "wrong": 1}
    assert document["refused"] == document["not_applicable"] == {"a reason": 1}
    assert document["passed"] == 1


def test_names_and_reasons_are_shown_as_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nasty = ("[red]x[/]", "[/]", "a:bug:[bold]")
    verdict = verdict_of(
        whole=True, **{f"f[{name}]": "wrong" for name in nasty}, **{f"{name}": "refused" for name in nasty}, p="pass"
    )
    verdict.ran = {"device": nasty[0]}
    for key, result in verdict.results.items():
        result["reason"] = f"since {key[1]}"
    verdict.faults += nasty
    last = tmp_path / "outcomes.json"
    conformance._report(verdict, REQUEST, tmp_path, last)
    conformance._report(verdict_of(whole=False, **dict.fromkeys(nasty, "crash")), REQUEST, tmp_path, last)
    printed = capsys.readouterr().out
    for name in nasty:
        for said in (f"since f[{name}]", f"since {name}", f"failed: {name}", f"test_a.py::{name}"):
            assert said in printed
    assert f"device: {nasty[0]}" in printed


@pytest.mark.parametrize("text", ["", "[]", '{"test_a.py::a": 5}', "[" * 99999])
def test_damaged_outcomes_lose_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    (tmp_path / "outcomes.json").write_text(text)
    assert "this run is compared with none" in report(tmp_path, capsys, a="pass")
    assert json.loads((tmp_path / "outcomes.json").read_text()) == {"test_a.py::a": "pass"}


@pytest.fixture
def image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """Replace image and container. `records` is what the container sends, `used` the target whose image is used."""
    state: dict[str, Any] = {"records": [], "used": ""}

    def have(request: Request) -> tuple[None, None]:
        state["used"] = request.target.name
        return None, None

    def run_cases(*words: Any, record: Any, **_: Any) -> None:
        state["command"] = words[4]
        for each in state["records"]:
            if isinstance(each, BaseException):
                raise each
            record(json.dumps(each))
        words[6].conclude("status 0")

    monkeypatch.setattr(paths, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(triton_wheel, "version", lambda locked: f"{locked.version}+foundry.1")
    monkeypatch.setattr(ensure, "ensure_image", have)
    monkeypatch.setattr(proof, "run_cases", run_cases)
    yield state


@pytest.mark.parametrize("outcome", BAD)
def test_a_test_that_is_not_fine_is_a_failure_of_the_run(image: dict[str, Any], outcome: str) -> None:
    image["records"] = events(good="pass", bad=outcome)
    with pytest.raises(ProofError, match="spirv does not conform"):
        conformance.conformance(Request.read("spirv"))


def test_passed_count_leaves_out_refused_and_inapplicable_tests(image: dict[str, Any]) -> None:
    image["records"] = events(good="pass", refused="refused", other="not applicable")
    results = conformance.conformance(Request.read("spirv"))
    assert json.loads((results / "results.json").read_text())["passed"] == 1
    assert results.parts[-4:] == ("spirv", "conformance", "3.9.0+foundry.1", "own")
    image["records"] = events(other="not applicable")
    with pytest.raises(ProofError, match="no test was applicable"):
        conformance.conformance(Request.read("spirv"))


def test_partial_run_keeps_the_whole_results(image: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    image["records"] = events(good="pass", other="pass")
    results = conformance.conformance(Request.read("spirv"))
    before = (results / "results.json").read_bytes()
    capsys.readouterr()
    image["records"] = [image["records"][0] | {"plan": [["test_a.py", "good"]]}, *image["records"][1:3]]
    image["records"].append({"end": 1, "faults": []})
    part = conformance.conformance(Request.read("spirv"), only="good")
    assert "only 1 of 2 cases were run: this does not say that spirv conforms" in capsys.readouterr().out
    assert (results / "results.json").read_bytes() == before
    assert json.loads((part / "results.json").read_text())["partial"] == "only 1 of 2 cases"
    assert len(json.loads((results / "outcomes.json").read_text())) == 2


def test_sample_prints_its_seed(image: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    image["records"] = events(a="pass", b="pass")
    results = conformance.conformance(Request.read("spirv"))
    assert "--sample" not in image["command"]
    image["records"] = events(whole=False, a="pass")
    capsys.readouterr()
    conformance.conformance(Request.read("spirv"), sample=7)
    command = image["command"]
    assert command[-4:-1] == ["--sample", "7", "--seed"]
    assert f"--sample=7 --seed={command[-1]}\n" in capsys.readouterr().out
    conformance.conformance(Request.read("spirv"), sample=7, seed=0)
    assert image["command"][-1] == "0"
    assert set(json.loads((results / "outcomes.json").read_text())) == {"test_a.py::a", "test_a.py::b"}
    for wrong in ({"sample": 7, "table": "x.md"}, {"seed": 3}):
        with pytest.raises(UsageError, match=r"--table is of|--seed draws"):
            conformance.conformance(Request.read("spirv"), **wrong)


def test_a_run_without_a_test_is_a_mistake(image: dict[str, Any]) -> None:
    image["records"] = [{"plan": [], "of": 1, "title": "conformance", "ran": {}}]
    with pytest.raises(UsageError, match=r"no test of .* has 'nothing' in its name"):
        conformance.conformance(Request.read("spirv"), only="nothing")
    with pytest.raises(UsageError, match="there is no such folder"):
        conformance.conformance(Request.read("spirv"), suite="no/such/folder")


def test_nothing_of_an_earlier_run_stays_in_the_results_whatever_ends_the_next_one(image: dict[str, Any]) -> None:
    image["records"] = events(whole=False, good="pass", other="refused")
    results = conformance.conformance(Request.read("spirv"), only="o")
    assert json.loads((results / "results.json").read_text())["refused"] == {"a reason": 1}
    image["records"] = [{"plan": [], "of": 1, "title": "conformance", "ran": {}}]
    with pytest.raises(UsageError):
        conformance.conformance(Request.read("spirv"), only="nothing")
    assert not (results / "results.json").exists() and not (results / "junit.xml").exists()
    # The next run is still compared with the last outcome of each test.
    assert "test_a.py::other" in (results.parent / "outcomes.json").read_text()


def test_interrupted_run_keeps_its_results(image: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    image["records"] = [*events(a="pass", b="pass", c="pass")[:4], KeyboardInterrupt()]
    with pytest.raises(KeyboardInterrupt):
        conformance.conformance(Request.read("spirv"))
    written = json.loads(next(paths.RESULTS.rglob("results.json")).read_text())
    assert written["outcomes"] == {"pass": 1, "not run": 2}
    assert "not run" in capsys.readouterr().out


@pytest.mark.slow
def test_torch_tests_run_in_a_variant(
    image: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image["records"] = events(a="pass")
    suite = tmp_path / "suite"
    suite.mkdir()
    (suite / "test_it.py").write_text("import numpy\n")
    conformance.conformance(Request.read("spirv"), suite=str(suite))
    assert image["used"] == "spirv"
    (suite / "test_it.py").write_text("import numpy\nfrom triton._internal_testing import is_cuda\n")
    conformance.conformance(Request.read("spirv"), suite=str(suite))
    assert image["used"] == "spirv-torch"
    conformance.conformance(Request.read("vsi"), suite=str(suite))
    assert image["used"] == "vsi-torch"
    capsys.readouterr()
    conformance.conformance(Request.read("dpu"), suite=str(suite))
    assert image["used"] == "dpu"
    assert "no image of dpu has torch" in capsys.readouterr().out


@pytest.mark.docker
def test_the_suite_runs_in_an_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The image without torch is used, because it has the oldest Python."""
    monkeypatch.setattr(paths, "RESULTS", tmp_path)
    with pytest.raises(ProofError):
        conformance.conformance(Request.read("dpu"), suite=str(TOYS), timeout=5)
    written = json.loads(next(tmp_path.rglob("results.json")).read_text())
    found = {f"{case['suite']}::{case['name']}": said(case) for case in written["cases"]}
    assert found == EXPECTED
    assert written["ran"]["kind"] == "our emulator"
