"""A plugin in a repository of its own, proven in the image of a target: as docs/own-plugin.md does it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from toolchains.assembly.request import Request
from toolchains.engine.client import Engine
from toolchains.system import json_text, paths
from toolchains.system.errors import CheckError, ProofError
from toolchains.verbs import e2e, target

# Enough to see that kernels run: the verb proves a plugin by all cases.
CASES = "n=7 "


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    target.target("new", "sample_npu", like="spirv", out=str(tmp_path / "sample"))
    return tmp_path / "sample"


def read(plugin: Path, pytestconfig: pytest.Config) -> Request:
    return Request.read("spirv", plugin=str(plugin), allow_drift=pytestconfig.getoption("--allow-drift"))


@pytest.mark.docker
@pytest.mark.slow
def test_wheel_of_a_new_repository_runs_kernels_in_the_image(
    repository: Path, docker: Engine, pytestconfig: pytest.Config
) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel"]
    subprocess.run(command, cwd=repository, check=True, capture_output=True)
    (wheel,) = (repository / "dist").iterdir()
    assert wheel.name == "triton_sample_npu_backend-0.1.0-py3-none-any.whl"
    results = e2e.e2e(read(wheel, pytestconfig), only=CASES)
    assert results.relative_to(paths.RESULTS).parts[0] == "sample_npu-in-spirv"
    found = json_text.read(results / "results.json", dict[str, object])
    assert re.match(rf"{wheel.name}, sha256 [0-9a-f]{{64}}$", found["ran"]["plugin"])  # type: ignore[index]
    cases = found["cases"]
    assert cases and all(case["failure"] is None for case in cases)  # type: ignore[attr-defined]


@pytest.mark.docker
@pytest.mark.slow
def test_sources_are_built_in_the_container_and_a_wrong_kernel_fails(
    repository: Path, docker: Engine, pytestconfig: pytest.Config
) -> None:
    driver = repository / "src/triton_sample_npu_backend/driver.py"
    text = driver.read_text()
    launch = "self._like.launch(grid, function, arguments)"
    assert launch in text
    # The plugin of the repository runs, and not that of the image: it launches nothing.
    driver.write_text(text.replace(launch, "pass"))
    with pytest.raises(ProofError, match="sample_npu-in-spirv is not proven"):
        e2e.e2e(read(repository, pytestconfig), only=CASES)
    assert not (repository / "dist").exists()
    # A plugin whose kernels another backend would compile.
    name = "return GPUTarget(SampleNpuOptions.backend_name, found.arch, found.warp_size)"
    assert name in text
    driver.write_text(text.replace(name, "return found"))
    with pytest.raises(CheckError, match="is not what runs kernels"):
        e2e.e2e(read(repository, pytestconfig), only=CASES)
