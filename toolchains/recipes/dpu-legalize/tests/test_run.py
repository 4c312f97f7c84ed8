"""What dpu-legalize's copies do when they run: on a DPU, by the SDK's compiler and host library, emulated or not."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from tools import opt, run

HERE = Path(__file__).resolve().parent


@pytest.mark.parametrize("tasklets", [1, 16])
def test_copies_of_any_length_and_alignment_move_their_bytes_and_no_others(tmp_path: Path, tasklets: int) -> None:
    libraries = run(["dpu-pkg-config", "--cflags", "--libs", "dpu"])
    assert libraries.returncode == 0, libraries.stderr
    compile_program = ["dpu-upmem-dpurte-clang", "-O2", "-Wall", "-Wextra", f"-DNR_TASKLETS={tasklets}"]
    for command in (
        [opt(), "-dpu-legalize", "-S", str(HERE / "copies.ll"), "-o", "legal.ll"],
        [*compile_program, str(HERE / "copies_device.c"), "legal.ll", "-o", "copies"],
        ["cc", "-std=gnu11", "-O1", str(HERE / "copies_host.c"), "-o", "host", *shlex.split(libraries.stdout)],
    ):
        built = run(command, cwd=tmp_path)
        assert built.returncode == 0, built.stderr
    done = run(["./host"], cwd=tmp_path)
    cases = 2 * (64 * 37 + 24 + 12) + 37 * tasklets
    assert (done.stdout, done.returncode) == (f"cases {cases} wrong 0\n", 0), done.stderr
