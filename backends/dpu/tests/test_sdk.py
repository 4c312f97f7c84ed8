"""Find the SDK, and build the shim over its dpu.h."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from triton.backends import backends
from triton_dpu_backend.host import sdk
from triton_dpu_backend.host.errors import SdkError

DpuDriver = backends["dpu"].driver


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Forget what was found before, and use a separate cache folder."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    sdk.find.cache_clear()
    sdk.shim.cache_clear()
    yield
    sdk.find.cache_clear()
    sdk.shim.cache_clear()


def make_sdk(folder: Path, pkg_config: str) -> Path:
    """Make a folder with a dpu-pkg-config of these lines of sh."""
    program = folder / "bin" / "dpu-pkg-config"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{pkg_config}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return folder


def test_without_an_sdk_the_backend_is_inactive_and_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("UPMEM_HOME", str(tmp_path))
    assert not DpuDriver.is_active()
    assert f"dpu-pkg-config is not in UPMEM_HOME={tmp_path}/bin" in DpuDriver.inactive_reason()
    monkeypatch.delenv("UPMEM_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "not on PATH, and UPMEM_HOME is not set" in DpuDriver.inactive_reason()
    with pytest.raises(SdkError, match="no DPU can be used"):
        sdk.find()


def test_upmem_home_comes_before_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    one, other = (make_sdk(tmp_path / name, f"echo -I/{name} -L/{name}/lib -ldpu") for name in ("one", "other"))
    monkeypatch.delenv("UPMEM_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{one}/bin:{os.environ['PATH']}")
    assert sdk.find().folders == ("/one/lib",)
    sdk.find.cache_clear()
    monkeypatch.setenv("UPMEM_HOME", str(other))
    assert sdk.find().folders == ("/other/lib",)
    assert sdk.find().compile == ("-I/other", "-L/other/lib", "-ldpu")


def test_a_dpu_pkg_config_that_fails_is_quoted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("UPMEM_HOME", str(make_sdk(tmp_path / "broken", "echo no such package >&2; exit 3")))
    with pytest.raises(SdkError, match=r"(?s)--cflags dpu failed.*no such package"):
        sdk.find()


def test_a_shim_that_does_not_compile_shows_the_compilers_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("UPMEM_HOME", str(make_sdk(tmp_path / "empty", "echo -I/nowhere")))
    with pytest.raises(SdkError, match=r"(?s)does not compile.*dpu.h"):
        sdk.shim()
    assert not list((tmp_path / "cache").glob("*.so"))


def test_the_shim_is_built_once_and_found_by_the_next_process(tmp_path: Path) -> None:
    first = sdk.shim()
    (built,) = (tmp_path / "cache").glob("dpu-shim-*.so")
    before = built.stat().st_mtime_ns
    script = "from triton_dpu_backend.host import sdk; print(sdk.shim()._name)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(built) == first._name
    assert built.stat().st_mtime_ns == before
