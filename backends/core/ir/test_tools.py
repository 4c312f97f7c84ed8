"""The tools that the lowering runs, and the kind of processor that PoCL is told to compile for."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from foundry_core.codegen import tools
from foundry_core.errors import ToolError
from foundry_core.runtime.pocl import choose_library

Install = Callable[..., None]
# More than a pipe holds, so that programs that wait for each other would wait for ever.
LARGE = "x" * (1 << 20)


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Return a function that installs scripts of a shell as tools, by name; llc answers --version as LLVM 22's does."""
    monkeypatch.setenv("FOUNDRY_LLVM_BIN", str(tmp_path))
    for cache in (tools.tool, tools._path, tools._check_folder):
        cache.cache_clear()

    def write(**scripts: str) -> None:
        scripts = {"llc": f"echo LLVM version {tools.LLVM_MAJOR}.1.0", **scripts}
        for name, script in scripts.items():
            path = tmp_path / name.replace("_", "-")
            path.write_text(f"#!/bin/sh\n{script}\n")
            path.chmod(0o755)

    return write


def test_a_text_larger_than_a_pipe_goes_through_both_programs(install: Install) -> None:
    install(mlir_opt="cat | tr x y", mlir_translate='test "$1" = --mlir-to-llvmir && cat | tr y z')
    assert tools.mlir_to_llvm(LARGE) == LARGE.replace("x", "z")


@pytest.mark.parametrize("failing", ["mlir-opt", "mlir-translate"])
def test_the_first_program_that_fails_is_named_with_what_it_printed(install: Install, failing: str) -> None:
    # It ends before it has read its input.
    scripts = {"mlir-opt": "cat", "mlir-translate": "cat"} | {failing: "echo no such dialect >&2; exit 3"}
    install(**{name.replace("-", "_"): script for name, script in scripts.items()})
    with pytest.raises(ToolError, match=rf"^{failing} .*failed with exit status 3:\nno such dialect$"):
        tools.mlir_to_llvm(LARGE)


def test_a_program_that_died_of_a_signal_is_not_taken_for_one_that_succeeded(install: Install) -> None:
    install(mlir_opt="echo half; kill -SEGV $$", mlir_translate="cat")
    with pytest.raises(ToolError, match=r"mlir-opt .*failed with exit status -11"):
        tools.mlir_to_llvm("")


def test_long_messages_do_not_stop_a_program(install: Install) -> None:
    install(mlir_opt=f"head -c {1 << 20} /dev/zero | tr '\\0' e >&2; exit 1", mlir_translate="cat")
    with pytest.raises(ToolError, match=r"eeee$"):
        tools.mlir_to_llvm("")


@pytest.mark.parametrize("program", ["cat", "exit 1"])
@pytest.mark.parametrize("stage", [tools.mlir_to_llvm_dialect, tools.llvm_to_spirv])
def test_another_llvm_is_refused_whether_it_fails_or_not(
    install: Install, stage: Callable[[str], object], program: str
) -> None:
    llc = f'test "$1" = --version && echo LLVM version 21.1.0 || {program}'
    install(mlir_opt=program, llc=llc)
    with pytest.raises(ToolError, match="has LLVM 21, the lowering needs LLVM 22"):
        stage("; 12 bytes or more, and no module")


def test_llc_output_that_is_no_spirv_of_the_needed_llvm_is_refused(install: Install) -> None:
    install(llc=f'test "$1" = --version && echo LLVM version {tools.LLVM_MAJOR}.1.0 || head -c 20 /dev/zero')
    with pytest.raises(ToolError, match=f"did not write a SPIR-V module of LLVM {tools.LLVM_MAJOR}"):
        tools.llvm_to_spirv("")


def test_a_missing_program_is_named(install: Install) -> None:
    install(mlir_opt="cat")
    with pytest.raises(ToolError, match="mlir-translate is not on PATH"):
        tools.mlir_to_llvm("")


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
