"""Check that the tests of values see faults: each of planted.toml is planted in a copy, and its tests must fail."""

from __future__ import annotations

import compileall
import shutil
import tomllib
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

_CORE = Path(__file__).parents[2]
# It has the table of functions.
_LANGUAGE = _CORE.parents[1] / "conformance" / "language"
FAULTS = {
    f"{area}-{name}": fault
    for area, faults in tomllib.loads(Path(__file__).with_name("planted.toml").read_text()).items()
    for name, fault in faults.items()
}


@pytest.fixture(scope="module")
def processes() -> Iterator[ProcessPoolExecutor]:
    """Give processes for one run of pytest each, in which all modules but foundry_core are imported already."""
    context = get_context("forkserver")
    context.set_forkserver_preload(["pytest", "hypothesis", "numpy", "ml_dtypes", "xdsl.dialects.scf"])
    with ProcessPoolExecutor(1, context, max_tasks_per_child=1) as pool:
        yield pool


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the sources, and compile them, so that a run compiles the changed file only."""
    copy = shutil.copytree(_CORE / "src", tmp_path_factory.mktemp("planted") / "src")
    assert compileall.compile_dir(copy, quiet=1)
    return copy


def options(source: Path, report: Path, tests: list[str]) -> list[str]:
    """Return the words for pytest that run tests of this folder, of those that are quick, with another foundry_core."""
    file, *chosen = tests
    settings = ["-o", "addopts=", "-o", f"pythonpath={source} {_LANGUAGE}", f"--rootdir={_CORE.parents[1]}", "-n0"]
    silent = ["-p", "no:terminal", "-p", "no:cacheprovider", "--maxfail=1", f"--junitxml={report}"]
    return [*settings, *silent, "-m", "not slow", *chosen, str(_CORE / file)]


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_found(name: str, tmp_path: Path, compiled: Path, processes: ProcessPoolExecutor) -> None:
    fault = FAULTS[name]
    shutil.copytree(compiled, tmp_path / "src")
    file = tmp_path / "src" / "foundry_core" / fault["file"]
    text = file.read_text()
    assert text.count(fault["before"]) == 1
    file.write_text(text.replace(fault["before"], fault["after"]))
    report = tmp_path / "report.xml"
    status = processes.submit(pytest.main, options(tmp_path / "src", report, fault["tests"])).result()
    # Tests failed. Anything else, such as a module that cannot be imported, is no fault that a test saw.
    assert status == pytest.ExitCode.TESTS_FAILED, report.read_text()[-2000:]
