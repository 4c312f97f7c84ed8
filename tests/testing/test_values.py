"""The values of the language in images: which cases run, and what refused.toml says of those that are refused."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from toolchains.system import paths

SUITE = """
import pytest
from foundry_core.errors import UnsupportedOperation

def refuse():
    raise UnsupportedOperation("tt.histogram", "here")

@pytest.mark.parametrize("dtype", ["f32", "f64", "i8"])
def test_each_type(dtype):
    if dtype == "f64":
        refuse()

@pytest.mark.values
@pytest.mark.parametrize("dtype", ["f32", "i8"])
def test_elementwise(dtype):
    pass

@pytest.mark.each_image
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_in_each_image(dtype):
    if dtype == "f64":
        refuse()

def test_listed_and_passing():
    pass

def test_refused_and_not_listed():
    refuse()

def test_wrong():
    assert 1 == 2
"""
TRITON = """
from types import SimpleNamespace as n
runtime = n(driver=n(active=n(get_current_target=lambda: n(backend="toy"))))
"""
REFUSED = """
[[refused]]
backend = "toy"
type = "f64"
why = "it has no f64"
[[refused]]
backend = "toy"
test = "test_toy.py::test_listed*"
why = "nothing"
[[refused]]
backend = "another"
test = "*"
type = "f32"
why = "not this one"
"""


def outcomes(folder: Path, which: str) -> dict[str, str]:
    """Run the suite with the plugin, and return each test's outcome and what is printed of it."""
    (folder / "language").mkdir(exist_ok=True)
    conftest = (paths.ROOT / "conformance/language/conftest.py").read_text()
    (folder / "language/conftest.py").write_text(conftest)
    (folder / "language/test_toy.py").write_text(SUITE)
    for name, text in (("triton.py", TRITON), ("checking.py", "bounds, DTYPES = [], {}\n"), ("refused.toml", REFUSED)):
        (folder / name).write_text(text)
    for name in ("listed.py", "outcomes.py", "rules.toml"):
        shutil.copy(paths.ROOT / "conformance" / name, folder)
    found = os.pathsep.join(map(str, (folder, paths.BACKENDS / "core/src")))
    options = ["-p", "listed", "-p", "no:cacheprovider", "-rA", "--import-mode=importlib", f"--rootdir={folder}"]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "-c", os.devnull, str(folder / "language")],
        env=os.environ | {"PYTHONPATH": found, "FOUNDRY_VALUES": which},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = re.findall(r"^(PASSED|FAILED|SKIPPED) (.*)$", ran.stdout, re.MULTILINE)
    assert lines, ran.stdout + ran.stderr
    return {rest.partition(" - ")[0].rpartition("::")[2]: f"{outcome} {rest}" for outcome, rest in lines}


@pytest.mark.slow
def test_each_image_runs_the_first_case_of_a_test_and_one_runs_all(tmp_path: Path) -> None:
    few, some, mapping, everything = (outcomes(tmp_path, which) for which in ("few", "some", "mapping", "all"))
    assert {name for name in few if name.startswith("test_")} == {"test_each_type[f32]", "test_in_each_image[f32]"}
    # The other two refused cases are one line.
    assert {name for name in set(everything) - set(some) if name.startswith("test_")} == {
        "test_each_type[i8]",
        "test_elementwise[i8]",
    }
    assert set(everything) - set(mapping) == {"test_elementwise[i8]"}
    assert "test_each_type[f32]" in some and "test_in_each_image[f32]" in some


@pytest.mark.slow
def test_another_refusal_and_a_listed_test_that_passes_fail(tmp_path: Path) -> None:
    found = outcomes(tmp_path, "all")
    skipped = next(text for name, text in found.items() if text.startswith("SKIPPED"))
    assert "[2]" in skipped and "refused: it has no f64" in skipped
    assert found["test_each_type[f32]"].startswith("PASSED") and found["test_each_type[i8]"].startswith("PASSED")
    for name in ("test_listed_and_passing", "test_refused_and_not_listed", "test_wrong"):
        assert found[name].startswith("FAILED")


def test_rows_of_refused_toml_name_tests_that_exist() -> None:
    """A pattern of a file or a function that has another name now would never match."""
    import tomllib

    suite = paths.ROOT / "conformance" / "language"
    names = {
        f"{file.name}::{name}"
        for file in suite.glob("test_*.py")
        for name in re.findall(r"def (test_\w+)", file.read_text())
    }
    for row in tomllib.loads((paths.ROOT / "conformance/refused.toml").read_text())["refused"]:
        if "test" in row:
            pattern = re.escape(row["test"].partition("[")[0]).replace(r"\*", ".*")
            assert any(re.match(pattern, name) for name in names), row
