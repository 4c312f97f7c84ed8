"""The verb test cannot pass by accident: a failed part, a part without tests, and a run without tests are failures."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from toolchains.artifacts import triton_wheel
from toolchains.assembly.request import Request
from toolchains.config import components
from toolchains.engine import host
from toolchains.lockfile import lock
from toolchains.lockfile.lock import LockedTarget
from toolchains.system import paths
from toolchains.system.errors import CheckError, CommandError, PinError, UsageError
from toolchains.testing import import_layers, planned, proof
from toolchains.testing.parts import Line
from toolchains.testing.record import RunInputs
from toolchains.verbs import test

JUNIT = '<testsuites><testsuite tests="{tests}" failures="{failures}" errors="0" skipped="{skipped}"/></testsuites>'


@pytest.fixture(autouse=True)
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let results be written to the test's own folder, and let no file of the checkout change."""
    monkeypatch.setattr(test, "_RESULTS", tmp_path)
    monkeypatch.setattr(paths, "RESULTS", tmp_path)
    monkeypatch.setattr(RunInputs, "read", lambda options: RunInputs("commit", "files", tuple(options), "machine"))


def last_line(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out.splitlines()[-1]


def test_a_plugins_own_tests_are_run_alone_and_keep_the_results_of_all_checks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(host, "ensure_engine", lambda: None)
    (tmp_path / "host.xml").write_text("of all checks")
    ran = []

    def tests(image: test._Image, folders: dict[str, Path], line: Line, *, what: str, chosen: list[str]) -> None:
        ran.append((image.title, [*folders], chosen))
        image.junit(what).write_text(JUNIT.format(tests=5, failures=0, skipped=0))

    monkeypatch.setattr(test._Image, "tests", tests)
    request = Request.read("spirv-torch")
    assert test.test_plugin(request) == 0
    title = f"spirv-torch, Triton {request.release.version}"
    assert ran == [(title, ["core", "spirv"], ["/foundry/test/spirv/test_inductor.py"])], (
        "they import modules of core's tests"
    )
    assert " 5 passed in " in last_line(capsys)
    assert (tmp_path / "host.xml").read_text() == "of all checks"


def test_a_plugin_without_a_test_in_an_image_is_a_usage_error(monkeypatch: pytest.MonkeyPatch) -> None:
    without = replace(components.target("spirv-torch"), tests=("core/test_paths.py",))
    monkeypatch.setattr(components, "target", lambda name: without)
    with pytest.raises(UsageError, match="no test of the plugin spirv runs in the image of spirv-torch"):
        test.test_plugin(Request.read("spirv-torch"))


CONFTEST = """
def pytest_runtest_logreport(report):
    if "PYTEST_XDIST_WORKER" not in os.environ and os.environ.get("END"):
        os._exit(0)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "ending", ["", "in a test", "of a test that hangs", "in the process that counts", "at the start"]
)
def test_a_run_of_tests_that_ends_early_is_seen(tmp_path: Path, ending: str) -> None:
    tests, work = tmp_path / "tests", tmp_path / "work"
    tests.mkdir()
    work.mkdir()
    bad = {
        "in a test": "import os\ndef test_bad(): os._exit(0)\n",
        "of a test that hangs": "import time\ndef test_bad(): time.sleep(100)\n",
    }.get(ending, "")
    good = "import pytest\ndef test_a(): pass\n@pytest.mark.skip\ndef test_s(): pass\n"
    (tests / "test_it.py").write_text(good + bad)
    early = {"at the start": "os._exit(0)", "in the process that counts": CONFTEST}.get(ending, "")
    (tests / "conftest.py").write_text(f"import os\n{early}\n")
    shutil.copy(planned.__file__, work)
    # These tests may run in a worker of pytest-xdist, too.
    outside = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "--numprocesses=1", "-p", "planned", "-p", "no:cacheprovider"),
            *(f"--rootdir={tests}", f"--junitxml={work}/junit.xml", *test.each_within(2), str(tests)),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        env={**outside, "PYTHONPATH": str(work), planned.VARIABLE: f"{work}/planned.txt", "END": "1"},
    )
    wrong = test.incomplete(work / "planned.txt", work / "junit.xml")
    assert (done.returncode == 0) == (not bad)
    assert ("in test_bad" in done.stderr) == (ending == "of a test that hangs"), "its stack is printed"
    assert bool(wrong) == (ending in ("in the process that counts", "at the start")), wrong
    assert ending != "in the process that counts" or "the results have 0 tests, 2 were to run" in wrong


@pytest.mark.parametrize("text", ["", "5", "{}", '{"plan": 5}', '{"plan": [5]}', '{"plan": ["a"]}\n[]', "[" * 99999])
def test_a_list_of_tests_that_was_damaged_is_seen(tmp_path: Path, text: str) -> None:
    (tmp_path / "planned").write_text(text)
    (tmp_path / "junit").write_text(JUNIT.format(tests=9, failures=0, skipped=0))
    assert test.incomplete(tmp_path / "planned", tmp_path / "junit")


def test_checks_are_commands_and_e2e_comes_before_image_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []

    def remember(argv: Sequence[str], **how: object) -> None:
        called.append(" ".join(argv[1:]))

    monkeypatch.setattr(test, "run", remember)
    parts = test._parts(test.requests("dpu", sdk="/the/sdk.tar"))
    for part in parts:
        if part.beside:
            part.run(print)
    checks = [
        "ruff check .",
        "ruff format --check .",
        "toolchains.testing.import_layers",
        "toolchains.testing.type_checks",
        " --allow-drift --junitxml=",
    ]
    expected = [*checks, "e2e dpu", "e2e dpu"]
    assert [call for call, words in zip(called, expected, strict=True) if words not in call] == []
    for call in called[len(checks) :]:
        assert "--allow-drift --sdk=/the/sdk.tar" in call
        # The result must not depend on what was built from source on this machine.
        assert call.endswith("--from-source=none")
    inside = [number for number, part in enumerate(parts) if not part.beside]
    assert inside == [7, 8, 9], "after the checks, pytest and e2e of the two images"
    assert parts[7].title == "published IDs"
    assert [part.junit is None for part in parts] == [True] * 4 + [False] * 3 + [True] + [False] * 2


def test_quick_checks_need_no_engine_and_keep_the_results_of_whole_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    called: list[Sequence[str]] = []

    def remember(argv: Sequence[str], **how: object) -> None:
        called.append(argv)
        for word in argv:
            if word.startswith("--junitxml="):
                Path(word.partition("=")[2]).write_text(JUNIT.format(tests=2, failures=0, skipped=0))

    def refuse() -> None:
        raise AssertionError("the engine is asked")

    monkeypatch.setattr(test, "run", remember)
    monkeypatch.setattr(host, "ensure_engine", refuse)
    (tmp_path / "host.xml").write_text("earlier")
    assert test.quick() == 0
    assert " 2 passed in " in last_line(capsys)
    assert (tmp_path / "host.xml").read_text() == "earlier"
    assert len(called) == 5, "ruff twice, import-linter, mypy, pytest"
    assert sum("not docker and not network and not slow" in argv for argv in called) == 1
    with pytest.raises(UsageError, match="--quick runs nothing in images"):
        test.quick(for_images=True)


def test_results_of_an_earlier_e2e_are_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def break_off(*_: object, **how: object) -> None:
        raise CommandError("no engine")

    monkeypatch.setattr(test, "run", break_off)
    spirv = Request.read("spirv")
    earlier = tmp_path / "spirv" / triton_wheel.version(spirv.release)
    earlier.mkdir(parents=True)
    (earlier / "junit.xml").write_text(JUNIT.format(tests=3, failures=0, skipped=0))
    image = test._Image(spirv)
    with pytest.raises(CommandError):
        image.e2e(print)
    assert not image.junit("e2e").exists()


def test_a_target_is_tested_with_the_plugins_in_its_image_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("core", "spirv", "other"):
        (tmp_path / name / "tests").mkdir(parents=True)
    monkeypatch.setattr(paths, "BACKENDS", tmp_path)
    expected = {"core": tmp_path / "core/tests", "spirv": tmp_path / "spirv/tests"}
    assert test.test_folders(lock.load().targets["spirv-bench"], "3.9.0") == expected


def test_plugin_is_tested_with_one_target_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("core", "spirv", "derived"):
        (tmp_path / name / "tests").mkdir(parents=True)
    monkeypatch.setattr(paths, "BACKENDS", tmp_path)
    spirv = components.target("spirv")
    derived = replace(spirv, name="derived", backend="derived", plugins=("core", "spirv", "derived"))
    monkeypatch.setattr(components, "names", lambda: ["spirv", "derived"])
    monkeypatch.setattr(components, "target", lambda name: {"spirv": spirv, "derived": derived}[name])
    locked = replace(lock.load().targets["spirv"], name="derived", backend="derived")
    assert test.test_folders(locked, "3.9.0").keys() == {"core", "derived"}


def test_native_parts_are_tested_with_their_whole_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in (("part", ""), ("other", '    sources = "sdks/other"\n')):
        (tmp_path / name).mkdir()
        (tmp_path / name / "conanfile.py").write_text(text)
    (tmp_path / "sdks" / "other").mkdir(parents=True)
    monkeypatch.setattr(paths, "BACKENDS", tmp_path / "backends")
    monkeypatch.setattr(paths, "RECIPES", tmp_path)
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    target = replace(lock.load().targets["dpu"], recipes=("part", "other"))
    whole = {"part": tmp_path / "part", "other": tmp_path / "sdks" / "other"}
    assert test.test_folders(target, target.default_triton) == whole
    assert test.test_folders(target, "another release") == {}


def test_tests_are_run_once_for_each_target_and_release() -> None:
    locked = lock.load()
    spirv, dpu, torch = (locked.targets[name] for name in ("spirv", "dpu", "vsi-torch"))
    assert test.choose_runs([dpu, spirv, torch]) == [
        ("dpu", "3.9.0"),
        ("spirv", "3.9.0"),
        ("vsi-torch", "3.2.0"),
        ("spirv", "3.6.0"),
    ]
    assert test.choose_runs([dpu]) == [("dpu", "3.9.0"), ("dpu", "3.6.0")]
    targets = [locked.targets[name] for name in ("dpu", "vsi", "vsi-torch")]
    dpu, vsi, torch = targets

    def repeated(target: LockedTarget, release: str, first: bool = False) -> list[str]:
        return test._repeated(test._Image(Request.read(target.name, triton=release)), targets, first=first)

    assert repeated(dpu, "3.9.0", first=True) == []
    assert repeated(vsi, "3.9.0") == ["anywhere"]
    assert repeated(vsi, "3.6.0") == repeated(torch, "3.2.0") == ["anywhere", "any_release"]


def test_target_runs_the_tests_that_it_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("core/test_a.py", "core/test_b.py", "spirv/test_c.py", "part/test_d.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    locked, plain = replace(lock.load().targets["spirv"], recipes=("part",)), components.target("spirv")
    folders = {name: tmp_path / name for name in ("core", "spirv", "part")}
    assert test.chosen_paths(locked, folders) == ["/foundry/test"]
    named = replace(plain, tests=("core/test_b.py", "spirv/test_c.py"))
    monkeypatch.setattr(components, "target", lambda name: named)
    assert test.chosen_paths(locked, folders) == [
        f"/foundry/test/{inner}" for inner in ("core/test_b.py", "spirv/test_c.py", "part")
    ]
    assert test.chosen_paths(locked, {"core": tmp_path / "core"}) == ["/foundry/test/core/test_b.py"]
    # Nothing is repeated, and PoCL, which the image has too, is not what they run on.
    assert test._repeated(test._Image(Request.read("spirv")), [locked], first=False) == []
    assert not test._runs_on_pocl(locked)
    named = replace(plain, tests=("core/test_absent.py",))
    with pytest.raises(PinError, match=r"there is no .*core/test_absent\.py"):
        test.chosen_paths(locked, folders)


def test_recipes_and_library_functions_are_tested_in_one_image() -> None:
    targets = [lock.load().targets[name] for name in ("dpu", "vsi", "vsi-torch")]
    found = [test.own_recipes(target, targets) for target in targets]
    assert found == [["upmem-emulator", "dpu-legalize"], ["vsi-reference-sdk"], ["vsi-vpex-reference"]]
    images = [test._Image(each) for name in ("dpu", "spirv", "vsi") for each in test.requests(name, sdk="")]
    titles = [part.title for part in test._suites_in_images(images) if "processor" in part.title]
    assert titles == [
        f"tests of library functions in the image of spirv, Triton 3.9.0, as processor {name}"
        for name in ("sse2", "avx2")
    ]


def test_each_image_runs_the_values_that_no_other_one_runs() -> None:
    images = [test._Image(each) for each in test.requests("", sdk="")]
    chosen = {
        part.title.partition("in the image of ")[2]: part.run.keywords["values"]  # type: ignore[attr-defined]
        for part in test._suites_in_images(images)
        if "processor" not in part.title
    }
    assert chosen == {
        "dpu, Triton 3.9.0": "mapping",
        "spirv, Triton 3.9.0": "all",
        "spirv, Triton 3.6.0": "some",
        # They have tests of their own choice, and all their cases run.
        "spirv-torch, Triton 3.9.0": "mapping",
        "spirv-vulkan, Triton 3.9.0": "mapping",
        "vsi, Triton 3.9.0": "few",
        "vsi-torch, Triton 3.2.0": "some",
    }


def test_pure_distribution_is_copied_whole_for_another_python(tmp_path: Path) -> None:
    proof.copy_distribution("pytest", tmp_path)
    assert {"pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments"} <= {
        path.name for path in tmp_path.iterdir()
    }
    assert not list(tmp_path.rglob("*.pyc"))
    with pytest.raises(CheckError, match="numpy, which numpy needs, is not pure Python"):
        proof.copy_distribution("numpy", tmp_path)


@pytest.mark.parametrize(
    ("file", "text", "found"),
    [
        ("e2e/a.py", "import b\n", []),
        ("e2e/a.py", "import json, foundry_core.log\n", []),
        ("e2e/b.py", "def f():\n    from a import g\n", ["a circle: e2e/a.py -> e2e/b.py -> e2e/a.py"]),
        (
            "e2e/b.py",
            "if TYPE_CHECKING:\n    import toolchains.system\n",
            ["e2e/b.py is not allowed to import toolchains"],
        ),
        ("e2e/b.py", "import tasks\n", ["e2e/b.py is not allowed to import tasks"]),
        ("e2e/b.py", "import judge\n", ["e2e/b.py is not allowed to import judge"]),
        ("suite/language/c.py", "import a, tools, judge\n", []),
        ("suite/language/c.py", "import foundry_core\n", ["suite/language/c.py is not allowed to import foundry_core"]),
    ],
)
def test_an_import_that_scripts_may_not_have_is_found(tmp_path: Path, file: str, text: str, found: list[str]) -> None:
    for name in (
        *("backends/core/src/foundry_core/__init__.py", "toolchains/__init__.py", "tasks.py"),
        *("e2e/b.py", "suite/judge.py", "suite/language/tools.py"),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "e2e/a.py").write_text("import b\n")
    (tmp_path / file).write_text(text)
    scripts = {"e2e": ["foundry_core"], "suite": ["e2e"]}
    assert sorted(import_layers.wrong_imports(tmp_path, scripts)) == found
