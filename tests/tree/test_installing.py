"""`pip install -e` where users type it: at the root, and in a plugin's folder."""

from __future__ import annotations

import email
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from toolchains.system import paths


@pytest.mark.slow
def test_at_the_root_pip_prints_what_to_type() -> None:
    argv = [sys.executable, "-m", "pip", "install", "--no-index", "--no-deps", "--dry-run", f"--editable={paths.ROOT}"]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.returncode != 0
    assert "type: ./foundry help\n" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.parametrize("backend", ["spirv", "dpu"])
@pytest.mark.parametrize(("build", "where"), [("build_editable", " @ file://{core}"), ("build_wheel", "")])
def test_only_an_editable_plugin_names_the_folder_of_core(backend: str, build: str, where: str, tmp_path: Path) -> None:
    call = f"import sys, hatchling.build; hatchling.build.{build}(sys.argv[1])"
    # pip runs the build without this variable.
    environment = {name: value for name, value in os.environ.items() if name != "HATCH_BUILD_NO_HOOKS"}
    argv = [sys.executable, "-c", call, str(tmp_path)]
    subprocess.run(argv, cwd=paths.BACKENDS / backend, env=environment, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = email.message_from_bytes(archive.read(name))
    expected = f"triton-foundry-core{where.format(core=paths.BACKENDS / 'core')}"
    assert expected in (metadata.get_all("Requires-Dist") or [])
