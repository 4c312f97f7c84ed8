"""The checks that e2e relies on can fail: stray stores are detected, all pairs are covered, reports say what ran."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import types
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from scripts import RAN, TRITON, judged, junit

from toolchains.system import paths
from toolchains.testing.junit import Count
from toolchains.testing.verdict import Verdict

E2E = paths.ROOT / "e2e"


class _Driver:
    def ran(self) -> types.SimpleNamespace:
        return types.SimpleNamespace(as_dict=lambda: RAN)


@pytest.fixture
def e2e(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make e2e's modules importable as in its scripts, on a machine without Triton."""
    triton = types.ModuleType("triton")
    driver = types.SimpleNamespace(active=_Driver())
    vars(triton).update(__version__="0.0", runtime=types.SimpleNamespace(driver=driver))
    monkeypatch.setitem(sys.modules, "triton", triton)
    monkeypatch.syspath_prepend(str(E2E))


def test_every_two_values_of_different_axes_meet(e2e: None) -> None:
    from covering import pairs

    axes = {"a": (1, 2, 3), "b": "xyzw", "c": (None, 0), "d": (1, 2)}
    choices = pairs(**axes)
    for first, second in itertools.combinations(axes, 2):
        met = {(choice[first], choice[second]) for choice in choices}
        assert met == set(itertools.product(axes[first], axes[second]))
    assert len(choices) < 3 * 4 * 2 * 2
    possible = pairs(lambda some: some.get("a", 1) + some.get("d", 1) < 5 and some.get("b") != "w", **axes)
    assert all(choice["a"] + choice["d"] < 5 and choice["b"] != "w" for choice in possible)
    for first, second in itertools.combinations(axes, 2):
        met = {(choice[first], choice[second]) for choice in possible}
        wanted = set(itertools.product(axes[first], axes[second])) - {(3, 2)}
        assert met == {pair for pair in wanted if "w" not in pair}


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.int64])
@pytest.mark.parametrize("stray", [-1, 10])
def test_a_store_beside_the_array_is_seen(e2e: None, dtype: type, stray: int) -> None:
    from guarded import Guarded, WrongMemory

    guarded = Guarded((10,), dtype, fence=4)
    guarded.fill(np.zeros(10))
    guarded.check_fences("out")
    np.ndarray((1,), dtype, guarded._bytes, guarded._before + stray * guarded.dtype.itemsize)[0] = 0
    with pytest.raises(WrongMemory, match=f"{stray} elements from the array's start"):
        guarded.check_fences("out")


def test_a_store_between_two_rows_is_seen(e2e: None) -> None:
    from guarded import Guarded, WrongMemory

    guarded = Guarded((3, 4), np.float32, fence=8, padding=2)
    assert guarded.array.strides == (24, 4)
    np.ndarray((3, 6), np.float32, guarded._bytes, guarded._before)[1, 4] = 1.0
    with pytest.raises(WrongMemory, match="10 elements"):
        guarded.check_fences("out")
    assert Guarded((3, 4), np.float32, fence=8, layout="column", padding=2).array.strides == (4, 20)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64])
def test_floats_are_poisoned_with_nan(e2e: None, dtype: type) -> None:
    from guarded import Guarded

    assert np.isnan(Guarded((5,), dtype, fence=1).array).all()


# A script with cases like those of e2e, and the minimum of Triton that workers need; run with `python script.py`.
_SCRIPT = """
import atexit, ctypes, json, os, signal, subprocess, sys, time
sys.path.append("E2E")
from report import Case, Refusal, run_script

def where():
    os.write(1, b"what a kernel prints ")
    return f"{os.environ.get('MODE')} in {os.getpid()}"

def raise_(error):
    raise error

def forge():
    # All that this process could write its results to, as if the next case had passed.
    line = json.dumps({"token": "x", "result": {"seconds": 0, "error": 0.0, "modelled": None, "failure": None}}) + "\\n"
    for fd in range(3, 64):
        try:
            os.write(fd, line.encode())
        except OSError:
            pass
    return 0.0

def supervisor(act):
    try:
        act(os.getppid())
    except OSError:
        raise AssertionError("refused")
    return 0.0

CASES = {
    "good": lambda: 0.5,
    "refused": lambda: Refusal("f64"),
    "wrong": lambda: raise_(AssertionError("3 of 8 elements are wrong")),
    "raises": lambda: raise_(RuntimeError("no such device")),
    "SystemExit": lambda: sys.exit(0),
    "interrupt": lambda: raise_(KeyboardInterrupt()),
    "_exit": lambda: os._exit(0),
    "segfault": lambda: ctypes.string_at(0),
    "loops": lambda: [None for _ in iter(int, 1)],
    "sleeps in a child": lambda: subprocess.run(["sleep", "1000"]),
    "closes all": lambda: os.closerange(0, 64),
    "forges": forge,
    "dies at exit": lambda: atexit.register(os._exit, 3) and 0.0,
    "too large": lambda: 1.5,
    "not a number": lambda: float("nan"),
    "measured": lambda: {"table": "the table", "failure": "a peer is wrong"},
    "writes to the supervisor": lambda: supervisor(lambda pid: open(f"/proc/{pid}/fd/1", "wb")),
    "kills the supervisor": lambda: supervisor(lambda pid: os.kill(pid, signal.SIGKILL) or time.sleep(5)),
}
run_script("title", lambda: [
    *(Case("k", name, CASES[name]) for name in NAMES),
    Case("k", "plain", where),
    Case("k", "a1", where, {"MODE": "A"}),
    Case("k", "b", where, {"MODE": "B"}),
    Case("k", "a2", where, {"MODE": "A"}),
    Case("k", "same", where, anywhere=True),
])
"""


def script(folder: Path, *options: str, names: Sequence[str] = ()) -> tuple[Verdict, subprocess.CompletedProcess[str]]:
    """Run the cases of _SCRIPT. Return the verdict of the machine that reads the records, and the script's process."""
    (folder / "triton.py").write_text(TRITON)
    (folder / "script.py").write_text(_SCRIPT.replace("NAMES", repr(tuple(names))).replace("E2E", str(E2E)))
    return judged(folder, "script.py", "--records", *options)


def failures(verdict: Verdict) -> dict[str, str]:
    return {name: result["failure"] for (_, name), result in verdict.results.items() if result["failure"] is not None}


def test_cases_that_pass_are_proof_and_are_shown(tmp_path: Path) -> None:
    verdict, done = script(tmp_path, names=["good"])
    assert (done.returncode, verdict.proven, verdict.faults) == (0, True, [])
    assert verdict.plan is not None
    assert [name for _, name in verdict.plan] == ["good", "plain", "same", "a1", "a2", "b"]
    assert verdict.ran == {"triton": "0.0", **RAN}
    assert "50.0% of the allowed error" in done.stderr
    assert "6 passed, 0 failed" in done.stderr and "only" not in done.stderr
    verdict.write(tmp_path)
    suite = junit(tmp_path)
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("6", "0", "0")
    document = json.loads((tmp_path / "results.json").read_text())
    assert (document["planned"], document["passed"], document["ran"]["kind"]) == (6, 6, "CPU OpenCL device")


def test_a_refusal_is_no_pass_in_the_table_the_summary_the_files_and_the_report(tmp_path: Path) -> None:
    verdict, done = script(tmp_path, names=["good", "refused"])
    assert (done.returncode, verdict.proven) == (0, True)
    row = next(line for line in done.stderr.splitlines() if line.startswith("k        refused"))
    assert "f64" in row and row.endswith("  refused")
    assert "\n6 passed, 1 refused, 0 failed in " in done.stderr
    verdict.write(tmp_path)
    suite = junit(tmp_path)
    assert (suite.get("tests"), suite.get("skipped")) == ("7", "1")
    skipped = suite.find("testcase[@name='refused']/skipped")
    assert skipped is not None and skipped.get("message") == "refused: f64"
    assert json.loads((tmp_path / "results.json").read_text())["passed"] == 6
    count = Count()
    count.add(tmp_path / "junit.xml")
    assert " 6 passed, 1 skipped in " in count.summary(1.0)


def test_only_takes_a_row_of_the_table(tmp_path: Path) -> None:
    _, done = script(tmp_path, names=["good"])
    row = next(line for line in done.stderr.splitlines() if line.startswith("k        good"))
    verdict, _ = script(tmp_path, f"--only={row[:30]}", names=["good"])
    assert verdict.plan == (("k", "good"),)


@pytest.mark.slow
def test_each_way_to_end_a_process_is_a_failure_of_its_case_and_the_next_one_runs(tmp_path: Path) -> None:
    expected = {
        "wrong": "3 of 8 elements are wrong",
        "raises": "RuntimeError: no such device",
        "SystemExit": "SystemExit: 0",
        "interrupt": "KeyboardInterrupt",
        "_exit": "the process ended with status 0 before this case was done",
        "segfault": "the process was ended by SIGSEGV before this case was done",
        "loops": "it was ended: the limit on time is 5 s",
        "sleeps in a child": "it was ended: the limit on time is 5 s",
        # 1, or 120 if Python has output left to flush to a closed stream
        "closes all": "the process ended with status 1",
        "forges": "something other than the result of this case was written",
        "too large": "the error is 1.5 of what is allowed",
        "not a number": "the error is nan of what is allowed",
        "writes to the supervisor": "refused",
    }
    if os.getuid() == 0:
        del expected["writes to the supervisor"]  # root is refused nothing, but kernels do not run as root
    verdict, done = script(tmp_path, "--limit=5", names=list(expected))
    found = failures(verdict)
    assert set(found) == set(expected)
    assert {name for name, text in expected.items() if text not in found[name]} == set()
    assert done.returncode == 1
    assert not verdict.proven
    assert verdict.faults == [], "each is the failure of a case"


@pytest.mark.slow
def test_when_the_supervisor_is_killed_the_case_is_named_and_earlier_results_are_kept(tmp_path: Path) -> None:
    verdict, done = script(tmp_path, "--only=s", names=["good", "kills the supervisor", "SystemExit"])
    assert done.returncode == -9
    assert not verdict.proven
    found = failures(verdict)
    assert found["kills the supervisor"] == "it was running when the run broke off: status -9"
    assert found["SystemExit"] == "not run: status -9"
    assert verdict.faults == ["it broke off: status -9"]


def test_a_run_of_some_cases_is_marked_everywhere_and_is_no_proof(tmp_path: Path) -> None:
    verdict, done = script(tmp_path, "--only=a")
    assert (done.returncode, verdict.succeeded, verdict.proven) == (0, True, False)
    assert "4 passed, 0 failed" in done.stderr and "(only 4 of 5 cases)" in done.stderr
    verdict.write(tmp_path)
    assert junit(tmp_path).get("name") == "title, only 4 of 5 cases"
    assert json.loads((tmp_path / "results.json").read_text())["partial"] == "only 4 of 5 cases"


def test_package_has_workers_whole_names_and_numbers_of_partial_failures(tmp_path: Path) -> None:
    script(tmp_path, "--only=nonsense", names=["good", "measured"])
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("EXACT = True\n")
    text = (tmp_path / "script.py").read_text().rstrip().removesuffix(")")
    (package / "__main__.py").write_text(f"from . import EXACT\n{text}, exact=EXACT)\n")
    verdict, done = judged(tmp_path, "-m", "package", "--records", "--only=good,measured,a")
    assert verdict.plan == (("k", "good"), ("k", "measured"))
    assert (done.returncode, failures(verdict)) == (1, {"measured": "a peer is wrong"})
    assert verdict.results["k", "measured"]["data"]["table"] == "the table" and "the table" in done.stderr


def test_a_run_without_cases_or_with_two_of_one_name_is_no_success(tmp_path: Path) -> None:
    verdict, done = script(tmp_path, "--only=nonsense")
    assert (done.returncode, verdict.plan, verdict.proven) == (5, (), False)
    assert done.stderr.splitlines()[:2] == ["the cases are:", "    k plain"]
    verdict, done = script(tmp_path, names=["good", "good"])
    assert done.returncode == 1
    assert not verdict.proven
    assert "two cases have the same name" in done.stderr


def test_a_script_that_ends_before_it_names_its_cases_proves_nothing(tmp_path: Path) -> None:
    (tmp_path / "triton.py").write_text("import os\nos._exit(0)\n")
    (tmp_path / "script.py").write_text(_SCRIPT.replace("NAMES", "()").replace("E2E", str(E2E)))
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert "no case was run: the process ended with status 0" in done.stdout


# A worker that lists files, each in 1.2 s, with a limit of 4 s; with HANGS it comes to no end with the third one.
_LISTING = """
import json, sys, time
sys.path.append("E2E")
import supervise
supervise.LIMIT = 4
if supervise.WORKER not in sys.argv:
    sys.exit(supervise.main("title", limit=1))
for number in range(5):
    print(json.dumps({"lists": f"test_{number}.py"}), flush=True)
    time.sleep(600 if HANGS and number == 2 else 1.2)
print(json.dumps({"cases": [], "ran": {"kind": "none"}, "device": ""}), flush=True)
sys.stdin.read()
"""


@pytest.mark.slow
@pytest.mark.parametrize("hangs", [False, True])
def test_the_limit_of_a_listing_is_for_each_file_and_its_cause_is_in_the_records(hangs: bool, tmp_path: Path) -> None:
    (tmp_path / "listing.py").write_text(_LISTING.replace("E2E", str(E2E)).replace("HANGS", str(hangs)))
    verdict, done = judged(tmp_path, "listing.py", "--records")
    if not hangs:
        assert (done.returncode, verdict.plan) == (5, ())
    else:
        assert done.returncode == 1 and not verdict.succeeded
        why = "no case was run: it was ended: the limit on time is 4 s; it listed the cases of test_2.py"
        assert verdict.faults[0] == why and f"FAILED: {why}" in done.stderr


def test_a_process_that_fails_after_its_last_case_is_a_fault(tmp_path: Path) -> None:
    verdict, _ = script(tmp_path, "--only=at exit", names=["dies at exit"])
    assert failures(verdict) == {}
    assert verdict.faults == ["the worker ended with status 3 after its last case: k dies at exit"]
    assert not verdict.proven


def test_modelled_cycles_are_called_modelled(e2e: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from report import Case, run
    from supervise import row

    launches = [types.SimpleNamespace(cycles=n, dma_read_bytes=8 * n, dma_write_bytes=n) for n in (100, 23)]
    active = sys.modules["triton"].runtime.driver.active
    monkeypatch.setattr(active, "profile", lambda: nullcontext(launches), raising=False)
    result = {"suite": "k", "name": "good", **asdict(run(Case("k", "good", lambda: 0.0)))}
    assert result["modelled"] == {"cycles": 123, "dma_bytes": 9 * 123}
    assert "modelled 123 cycles" in row(result)
    verdict = Verdict(plan=(("k", "good"),), results={("k", "good"): result})
    verdict.write(tmp_path)
    properties = junit(tmp_path).iterfind("testcase/properties/property")
    assert {item.get("name"): item.get("value") for item in properties} == {
        "modelled_cycles": "123",
        "modelled_dma_bytes": "1107",
    }


def test_cases_run_in_a_process_for_each_environment(tmp_path: Path) -> None:
    verdict, _ = script(tmp_path)
    found = {name: str(result["error"]).split(" in ") for (_, name), result in verdict.results.items()}
    assert {name: mode for name, (mode, _) in found.items()} == {
        "plain": "None",
        "same": "None",
        "a1": "A",
        "a2": "A",
        "b": "B",
    }
    processes = {name: process for name, (_, process) in found.items()}
    assert len(set(processes.values())) == 3
    assert processes["a1"] == processes["a2"]
    verdict, done = script(tmp_path, "--not-anywhere")
    assert ("k", "same") not in verdict.results
    assert verdict.proven, "another run has the case that was left out"
    assert "1 that say the same with every release of Triton were left" in done.stderr


@pytest.fixture
def refusing(e2e: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make the active target refuse f64 with an error that contains Float64."""
    import settings

    (tmp_path / "toy.toml").write_text('proof = ["toy"]\n[refused]\nf64 = "the kernel (?s:.*)Float64"\n')
    monkeypatch.setattr(settings, "TARGETS", tmp_path)
    driver = types.SimpleNamespace(get_current_target=lambda: types.SimpleNamespace(backend="toy"))
    monkeypatch.setattr("settings.triton.runtime.driver.active", driver)
    settings.load.cache_clear()
    yield
    settings.load.cache_clear()


@pytest.mark.parametrize(
    ("dtype", "error", "wrong"),
    [
        ("f64", "refused the kernel add:\nit needs Float64", None),
        ("f64", "refused the kernel add: it is too long", "does not match"),
        ("f32", "refused the kernel add:\nit needs Float64", "f32 was refused"),
    ],
)
def test_only_the_types_that_a_targets_file_lists_may_be_refused_and_by_the_right_error(
    dtype: str, error: str, wrong: str | None, refusing: None
) -> None:
    from settings import check_refusal

    with pytest.raises(AssertionError, match=wrong) if wrong else nullcontext():
        assert check_refusal(ValueError(error), dtype) == "f64"


class _Vsi:
    """A driver whose launches a test creates."""

    last_launch: object = None

    def get_current_target(self) -> types.SimpleNamespace:
        return types.SimpleNamespace(backend="vsi")

    def launched(self, threads: int = 1, matmuls: int = 0, command_bytes: int = 0) -> None:
        self.last_launch = types.SimpleNamespace(
            grid=(3, 2, 1), threads=threads, matmuls=matmuls, dmas=0, command_bytes=command_bytes
        )


@pytest.fixture
def vsi(e2e: None, monkeypatch: pytest.MonkeyPatch) -> _Vsi:
    """Make e2e/vsi.py importable, with this driver in default mode."""
    driver = _Vsi()
    monkeypatch.setattr(sys.modules["triton"].runtime.driver, "active", driver)
    for name, types_of in (("vec_add", ("f32", "f64")), ("matmul", ("f32->f32", "f16->f16"))):
        module = types.ModuleType(name)
        vars(module)["DTYPES"] = dict.fromkeys(types_of)
        monkeypatch.setitem(sys.modules, name, module)
    tensor = types.ModuleType("foundry_core.tensor")
    vars(tensor)["Tensor"] = object
    monkeypatch.setitem(sys.modules, "foundry_core", types.ModuleType("foundry_core"))
    monkeypatch.setitem(sys.modules, "foundry_core.tensor", tensor)
    monkeypatch.delitem(sys.modules, "vsi", raising=False)
    for variable in ("VSI_ENABLE_TC", "VSI_ENABLE_MULTI_THREADS"):
        monkeypatch.setenv(variable, "0")
    return driver


def test_vsi_cases_cover_each_mode_with_every_release(vsi: _Vsi) -> None:
    from report import Case
    from vsi import in_modes

    def cases_of(suite: str) -> list[Case]:
        kinds = [(f"n={n} {type}", n != 2) for n in (1, 2) for type in ("f32", "f64")]
        return list(in_modes(Case(suite, kind, lambda: 0.0, anywhere=anywhere) for kind, anywhere in kinds))

    modes = {("0", "0"), ("1", "0"), ("0", "1")}
    for suite, count in (("vec_add", 10), ("matmul", 12)):
        cases = cases_of(suite)
        assert len(cases) == count
        assert {tuple(case.variables.values()) for case in cases} == modes
        assert [case.name for case in cases if not case.anywhere] == [
            f"n=2 {type}{mode}" for mode in ("", " TC", " threads") for type in ("f32", "f64")
        ]
    # An addition has nothing for the tensor core.
    assert not any(case.anywhere for case in cases_of("vec_add") if case.variables["VSI_ENABLE_TC"] == "1")


@pytest.mark.parametrize(
    ("suite", "mode", "launch", "wrong"),
    [
        ("vec_add", "", {}, None),
        ("vec_add", "VSI_ENABLE_TC", {}, None),
        ("vec_add", "", {"threads": 128}, "128 work-items shared a program, not 1"),
        ("vec_add", "", {"matmuls": 1, "command_bytes": 6 * 256}, "there should be none"),
        ("matmul", "VSI_ENABLE_TC", {"matmuls": 1, "command_bytes": 6 * 256}, None),
        ("matmul", "VSI_ENABLE_TC", {"matmuls": 1, "command_bytes": 5 * 256}, "1280 bytes are 6 commands"),
        ("matmul", "VSI_ENABLE_TC", {}, "tl.dot did not go to the tensor core"),
        ("matmul", "VSI_ENABLE_MULTI_THREADS", {"threads": 128}, None),
        ("matmul", "VSI_ENABLE_MULTI_THREADS", {}, "1 work-items shared a program, not 128"),
        ("matmul", "VSI_ENABLE_MULTI_THREADS", None, "nothing was launched"),
    ],
)
def test_a_mode_must_show_in_what_was_launched(
    suite: str, mode: str, launch: dict[str, int] | None, wrong: str | None, vsi: _Vsi, monkeypatch: pytest.MonkeyPatch
) -> None:
    from report import Case
    from vsi import run_and_confirm_mode

    def run() -> float:
        if launch is not None:
            vsi.launched(**launch)
        return 0.0

    if mode:
        monkeypatch.setenv(mode, "1")
    case = Case(suite, "n=1 f32->f32" if suite == "matmul" else "n=1 f32", run)
    with pytest.raises(AssertionError, match=wrong) if wrong else nullcontext():
        assert run_and_confirm_mode(case) == 0.0


@pytest.mark.parametrize(
    ("type", "outcome", "wrong"),
    [("f64", "no Float64", None), ("f64", 0.0, "f64 was compiled"), ("f32", "refused", "f32 was refused")],
)
def test_vsi_must_refuse_f64_and_nothing_else(type: str, outcome: float | str, wrong: str | None, vsi: _Vsi) -> None:
    from report import Case
    from vsi import run_and_confirm_mode

    case = Case("vec_add", f"n=1 {type}", lambda: outcome)
    with pytest.raises(AssertionError, match=wrong) if wrong else nullcontext():
        assert run_and_confirm_mode(case) == outcome
