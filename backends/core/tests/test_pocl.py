"""The kind of processor that PoCL is told to compile for where the image lacks the library of the machine's own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from foundry_core.runtime.pocl import choose_library

pytestmark = pytest.mark.anywhere

SANDYBRIDGE = ["sse2", "ssse3", "sse4_1", "cx16", "popcnt", "avx"]
HASWELL = [*SANDYBRIDGE, "avx2", "abm", "f16c", "fma", "bmi1", "bmi2"]


@pytest.mark.parametrize(
    ("libraries", "features", "chosen"),
    [
        ("sse2 avx2 avx512", SANDYBRIDGE, "sse2"),
        ("sse2 avx2 avx512", HASWELL, None),
        ("sse2 avx2 avx512", [*HASWELL, "avx512f"], None),
        ("sse2 avx2", [*HASWELL, "avx512f"], "avx2"),
        # A virtual machine that hides an instruction that PoCL's library for AVX2 has.
        ("sse2 avx2 avx512", [each for each in HASWELL if each != "bmi2"], "sse2"),
        ("sse2 avx avx2", SANDYBRIDGE, None),
        ("", SANDYBRIDGE, None),
    ],
)
def test_the_best_library_that_is_there_is_chosen(
    libraries: str, features: list[str], chosen: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("POCL_KERNELLIB_NAME", raising=False)
    for name in libraries.split():
        (tmp_path / f"kernel-x86_64-pc-linux-gnu-{name}.bc").touch()
    choose_library(tmp_path, features)
    assert os.environ.get("POCL_KERNELLIB_NAME") == chosen
    monkeypatch.delenv("POCL_KERNELLIB_NAME", raising=False)


def test_choose_library_keeps_the_users_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POCL_KERNELLIB_NAME", "avx2")
    (tmp_path / "kernel-x86_64-pc-linux-gnu-sse2.bc").touch()
    choose_library(tmp_path, SANDYBRIDGE)
    assert os.environ["POCL_KERNELLIB_NAME"] == "avx2"
