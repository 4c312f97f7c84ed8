"""zen-compiler from files to files: what comes out runs, is the same each time, and is whole or absent."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyopencl as cl
import pytest
from sdk import (
    COMPILER,
    NO_TC,
    NOTHING_ENABLED,
    ONE_THREAD,
    SDK,
    command,
    commands,
    compiled,
    kernel,
    left,
    run,
    target,
)


def counts(library: Path) -> tuple[int, int]:
    """What a command library says of itself. From a copy: a library is loaded once, whatever its file is by then."""
    copy = shutil.copy(library, library.with_name(f"{time.monotonic_ns()}.so"))
    loaded = ctypes.CDLL(str(copy))
    return loaded.get_matmul_num(), loaded.get_dma_num()


def test_the_spirv_adds_on_an_opencl_device_and_only_where_it_must(add: Path) -> None:
    spirv, _ = compiled(add, *NOTHING_ENABLED)
    context = cl.Context([cl.get_platforms()[0].get_devices()[0]])
    queue = cl.CommandQueue(context)
    function = cl.Kernel(cl.Program(context, spirv).build(), "add_kernel")
    assert function.num_args == 7
    n = 300
    x = np.random.default_rng(0).standard_normal(384).astype(np.float32)
    out = np.full_like(x, np.float32(np.nan))
    buffers = [
        cl.Buffer(context, cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR, hostbuf=array) for array in (x, x, out)
    ]
    function(queue, (3, 1, 1), (1, 1, 1), *buffers, *map(np.int32, (n, 3, 1, 1)))
    cl.enqueue_copy(queue, out, buffers[2]).wait()
    np.testing.assert_array_equal(out[:n], x[:n] + x[:n])
    assert np.isnan(out[n:]).all()


def test_a_kernel_without_matrices_has_no_commands(add: Path) -> None:
    for flags in (NOTHING_ENABLED, (ONE_THREAD,)):
        _, library = compiled(add, *flags)
        assert counts(library) == (0, 0)


def test_a_dot_has_a_command_unless_the_tensor_core_is_disabled(dot: Path) -> None:
    _, library = compiled(dot, ONE_THREAD)
    assert counts(library) == (1, 0)
    _, library = compiled(dot, *NOTHING_ENABLED)
    assert counts(library) == (0, 0)


def test_two_compilations_give_the_same_bytes_wherever_the_files_are(tmp_path: Path) -> None:
    outputs = []
    for name in ("one", "another"):
        (tmp_path / name).mkdir()
        spirv, library = compiled(kernel("dot", tmp_path / name), ONE_THREAD)
        outputs.append((spirv, library.read_bytes()))
    assert outputs[0] == outputs[1]


def test_a_copy_of_the_one_file_compiles_elsewhere(add: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "another place"
    elsewhere.mkdir()
    copy = Path(shutil.copy(COMPILER, elsewhere / "compiler"))
    expected, library = compiled(add, *NOTHING_ENABLED)
    commands_there = library.read_bytes()
    spirv, library = compiled(add, *NOTHING_ENABLED, program=copy)
    assert (spirv, library.read_bytes()) == (expected, commands_there)


def test_a_relative_path_of_a_bridge_is_a_path_and_not_a_name_to_search_for(
    dot: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(SDK / "lib" / "libZenTCBridge.so", tmp_path / "bridge.so")
    monkeypatch.chdir(tmp_path)
    done = run(command(dot, ONE_THREAD, bridge=Path("bridge.so")))
    assert (done.returncode, done.stderr) == (0, "")


def refused(done: subprocess.CompletedProcess[str], *texts: str) -> None:
    assert done.returncode == 1
    assert done.stdout == ""
    for text in texts:
        assert text in done.stderr
    assert "Traceback" not in done.stderr


def test_an_operation_that_is_not_lowered_is_refused_by_name_and_line_and_leaves_no_files(add: Path) -> None:
    add.write_text(add.read_text().replace("arith.addf", "tt.nonsense"))
    refused(run(command(add, *NOTHING_ENABLED)), f"{add}: error: tt.nonsense at kernels.py:")
    assert left(add.parent) == ["add.ttir"]


@pytest.mark.parametrize("text", [b"", b"no IR at all {", b"\xff\xfe\x00"])
def test_malformed_ttir_is_refused_and_leaves_no_files(add: Path, text: bytes) -> None:
    add.write_bytes(text)
    refused(run(command(add, *NOTHING_ENABLED)), f"{add}: error: ")
    assert left(add.parent) == ["add.ttir"]


def test_a_capability_that_was_not_asked_for_is_refused_by_name(add: Path) -> None:
    text = add.read_text()
    add.write_text(text.replace("f32", "f64"))
    refused(run(command(add, *NOTHING_ENABLED)), "add_kernel needs the SPIR-V capability Float64")
    assert left(add.parent) == ["add.ttir"]
    more = target(caps="GenericPointer,Kernel,Addresses,Vector16,Int8,Int16,Int64,Float64")
    assert run(command(add, *NOTHING_ENABLED, options=more)).returncode == 0
    add.write_text(text)
    refused(run(command(add, *NOTHING_ENABLED, options=target(caps=""))), "Addresses", "Kernel", "none")


def test_a_kernel_that_module_does_not_match_is_refused(add: Path) -> None:
    refused(run(command(add, *NOTHING_ENABLED, options=target(module="^sub"))), "'^sub'", "add_kernel")
    assert run(command(add, *NOTHING_ENABLED, options=target(module="^add_k"))).returncode == 0


def test_invalid_bridge_is_refused_only_if_it_is_used(add: Path) -> None:
    other = SDK / "lib" / "libOpenCL.so.1"
    refused(run(command(add, ONE_THREAD, bridge=other)), f"{other} has no zen_tc_version, zen_tc_refuses")
    assert left(add.parent) == ["add.ttir"]
    assert run(command(add, *NOTHING_ENABLED, bridge=other)).returncode == 0


def test_a_run_that_fails_takes_away_what_an_earlier_one_left(add: Path) -> None:
    compiled(add, *NOTHING_ENABLED)
    assert left(add.parent) == ["add.spv", "add.ttir", "add_cmd_gen.so"]
    add.write_text("no IR")
    assert run(command(add, *NOTHING_ENABLED)).returncode == 1
    assert left(add.parent) == ["add.ttir"]


def test_failed_write_of_one_output_removes_the_other(add: Path) -> None:
    commands(add).mkdir()
    refused(run(command(add, *NOTHING_ENABLED)), "zen-compiler: ", "add_cmd_gen.so")
    assert left(add.parent) == ["add.ttir", "add_cmd_gen.so"]
    commands(add).rmdir()
    arguments = command(add, *NOTHING_ENABLED)
    arguments[arguments.index("-out-lib") + 1] = str(add.parent / "no" / "folder.so")
    refused(run(arguments), "zen-compiler: ", "folder.so")
    assert left(add.parent) == ["add.ttir"]


def test_a_device_as_output_is_written_to_and_stays_a_device(add: Path) -> None:
    arguments = command(add, *NOTHING_ENABLED)
    arguments[arguments.index("-out-lib") + 1] = os.devnull
    assert run(arguments).returncode == 0
    assert Path(os.devnull).is_char_device()
    assert left(add.parent) == ["add.spv", "add.ttir"]


def test_a_run_that_is_killed_leaves_no_outputs(add: Path, tmp_path: Path) -> None:
    tools, scratch, started = tmp_path / "tools", tmp_path / "scratch", tmp_path / "started"
    tools.mkdir()
    scratch.mkdir()
    for name in ("llc", "mlir-translate"):
        (tools / name).symlink_to(shutil.which(name) or "")
    (tools / "mlir-opt").write_text(f"#!/bin/sh\ntouch {started}\nexec sleep 600\n")
    (tools / "mlir-opt").chmod(0o755)
    environment = os.environ | {"FOUNDRY_LLVM_BIN": str(tools), "TMPDIR": str(scratch)}
    process = subprocess.Popen([COMPILER, *command(add, *NOTHING_ENABLED)], env=environment, start_new_session=True)
    deadline = time.monotonic() + 120
    while not started.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert left(tmp_path) == ["add.ttir", "scratch", "started", "tools"]


def test_without_llvm_it_says_what_is_not_there(add: Path, tmp_path: Path) -> None:
    empty = tmp_path / "bin"
    empty.mkdir()
    done = run([str(COMPILER), *command(add, *NOTHING_ENABLED)], Path(sys.executable), PATH=str(empty))
    refused(done, "is not on PATH", "LLVM")
    assert left(tmp_path) == ["add.ttir", "bin"]


def test_a_python_without_the_lowering_is_named(add: Path) -> None:
    done = run(["-I", "-S", str(COMPILER), *command(add, *NOTHING_ENABLED)], Path(sys.executable))
    refused(done, "python", "has no foundry_core", "PATH")


def test_the_tensor_core_is_off_in_one_word(dot: Path) -> None:
    """With the same kernel and no other difference, --disable-linalg-to-tc-pipeline changes the code."""
    with_it, _ = compiled(dot, ONE_THREAD)
    without_it, _ = compiled(dot, ONE_THREAD, NO_TC)
    assert with_it != without_it
