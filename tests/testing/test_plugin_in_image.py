"""A plugin in a repository of its own, proven in the image of a target: as docs/own-plugin.md does it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from toolchains.assembly.request import Request
from toolchains.engine.client import Engine
from toolchains.system import json_text, paths
from toolchains.system.errors import CheckError, ProofError
from toolchains.testing import plugin_in_image
from toolchains.verbs import e2e, target

NAME = "sample_npu"
# Enough to see that kernels run: the verb proves a plugin by all cases.
CASES = "n=7 "


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[Path]:
    target.target("new", NAME, like="spirv", out=str(tmp_path / "sample"))
    yield tmp_path / "sample"
    # A report is not to show plugins that are wrong on purpose.
    shutil.rmtree(paths.RESULTS / f"{NAME}-in-spirv", ignore_errors=True)


def read(plugin: Path, pytestconfig: pytest.Config) -> Request:
    return Request.read("spirv", plugin=str(plugin), allow_drift=pytestconfig.getoption("--allow-drift"))


def build(repository: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel"]
    subprocess.run(command, cwd=repository, check=True, capture_output=True)
    (wheel,) = (repository / "dist").iterdir()
    return wheel


@pytest.mark.docker
@pytest.mark.slow
def test_wheel_of_a_new_repository_runs_kernels_in_the_image(
    repository: Path, docker: Engine, pytestconfig: pytest.Config
) -> None:
    wheel = build(repository)
    assert wheel.name == "triton_sample_npu_backend-0.1.0-py3-none-any.whl"
    results = e2e.e2e(read(wheel, pytestconfig), only=CASES)
    assert results.relative_to(paths.RESULTS).parts[0] == "sample_npu-in-spirv"
    found = json_text.read(results / "results.json", dict[str, Any])
    assert re.fullmatch(rf"{wheel.name}, sha256 [0-9a-f]{{64}}", found["ran"]["plugin"])
    assert found["cases"] and all(case["failure"] is None for case in found["cases"])


@pytest.mark.docker
@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "typed", "printed"),
    [
        (["run", "-m", "pytest", "tests"], "", " passed in "),
        (["run", "kernel.py"], "", "equal to NumPy on"),
        (["shell", "--with=."], "python -c 'import triton; print(triton.runtime.driver.active)'", "sample_npu"),
        (["conformance", "--only=test_where"], "", "sample_npu-in-spirv"),
    ],
)
def test_verbs_run_the_sources_that_the_current_folder_has(
    words: list[str], typed: str, printed: str, repository: Path, docker: Engine
) -> None:
    (first,) = re.findall(r"```python\n(.*?)^```", (paths.ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE)
    (repository / "kernel.py").write_text(first)
    command = [str(paths.ROOT / "foundry"), words[0], "spirv", "--plugin=.", *words[1:]]
    done = subprocess.run(command, cwd=repository, input=typed, capture_output=True, text=True)
    assert done.returncode == 0 and printed in done.stdout, done.stdout + done.stderr


@pytest.mark.docker
@pytest.mark.slow
def test_wheel_for_another_python_is_refused_in_the_image(
    repository: Path, docker: Engine, pytestconfig: pytest.Config
) -> None:
    wheel = build(repository)
    other = wheel.rename(wheel.with_name(wheel.name.replace("py3-none-any", "cp310-cp310-linux_x86_64")))
    with pytest.raises(CheckError, match="cannot be installed") as caught:
        e2e.e2e(read(other, pytestconfig), only=CASES)
    assert "not a supported wheel" in caught.value.why and "target show spirv" in caught.value.next


@pytest.mark.docker
@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "error", "why"),
    [
        # The plugin of the repository runs, and not that of the image: it launches nothing.
        ("self._like.launch(grid, function, arguments)", "pass", "sample_npu-in-spirv is not proven", "cases failed"),
        # Kernels that another backend would compile.
        ("return GPUTarget(", "return found or GPUTarget(", "is not what runs kernels", "target's backend is spirv"),
        (
            "import functools\n",
            "import functools\nraise OSError('no device')\n",
            "Triton cannot use",
            "OSError: no device",
        ),
        ("import functools\n", "import os\nos._exit(0)\n", "Triton cannot use", "before Triton chose a driver"),
        ("import functools\n", "import time\ntime.sleep(999)\n", "Triton cannot use", "did not answer within 2 s"),
    ],
)
def test_broken_sources_are_built_in_the_container_and_fail_with_the_reason(
    old: str,
    new: str,
    error: str,
    why: str,
    repository: Path,
    docker: Engine,
    pytestconfig: pytest.Config,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if "sleep" in new:
        monkeypatch.setattr(plugin_in_image, "_SECONDS", 2)
    driver = repository / "src/triton_sample_npu_backend/driver.py"
    text = driver.read_text()
    assert old in text
    driver.write_text(text.replace(old, new, 1))
    with pytest.raises((CheckError, ProofError), match=error) as caught:
        e2e.e2e(read(repository, pytestconfig), only=CASES)
    assert why in caught.value.why
    assert not (repository / "dist").exists()


@pytest.mark.docker
@pytest.mark.slow
def test_plugin_that_replaces_numpy_or_changes_after_it_was_read_is_refused(
    repository: Path, docker: Engine, pytestconfig: pytest.Config
) -> None:
    wheel = build(repository)
    before = read(wheel, pytestconfig)
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("numpy/__init__.py", "")
    with pytest.raises(CheckError, match="has changed since this command began"):
        e2e.e2e(before, only=CASES)
    with pytest.raises(CheckError, match="has a numpy of its own"):
        e2e.e2e(read(wheel.parent, pytestconfig), only=CASES)
