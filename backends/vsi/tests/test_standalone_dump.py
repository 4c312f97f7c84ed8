"""The folder of a dumped kernel: its contents, what happens to an older dump, and what is refused."""

from __future__ import annotations

import fcntl
import os
import re
import threading
from pathlib import Path
from typing import Any

import pytest
from triton_vsi_backend.standalone import dump
from triton_vsi_backend.standalone.parameters import divisors

TTIR = """\
#loc = loc("kernels.py":1:0)
module {
  tt.func public @kernel(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32} loc("x"(#loc)), %n: i32 loc("n"(#loc)), \
%m: i32 {tt.divisibility = 8 : i32} loc("m"(#loc))) attributes {noinline = false} {
    %c = arith.constant 7 : i32
    tt.return
  }
}
"""


def write(folder: Path, **changes: Any) -> Path:
    facts: dict[str, Any] = {
        "name": "kernel",
        "parameters": ["*fp32", "i32", "i32"],
        "names": ["x", "n", "m"],
        "irs": {"ttir": TTIR, "source": b"bytes"},
        "spirv": b"spirv",
        "cmd_gen": b"library",
        "num_warps": 4,
        "threads": 128,
    }
    return dump(folder, **facts | changes)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "kernel_standalone.cpp"}


def test_a_dump_has_the_irs_both_binaries_and_the_launcher(tmp_path: Path) -> None:
    source = write(tmp_path / "a/b")
    assert source == tmp_path / "a/b/kernel_standalone.cpp"
    assert contents(source.parent) == {
        "kernel.ttir": TTIR.encode(),
        "kernel.source": b"bytes",
        "kernel.spv": b"spirv",
        "kernel_cmd_gen.so": b"library",
    }
    text = source.read_text()
    assert '{"x", "\\052fp32", true, 4, {"<f4"}, "np.float32", 1},' in text
    assert '{"n", "i32", false, 4, {"<i4"}, "np.int32", 1},' in text
    assert '{"m", "i32", false, 4, {"<i4"}, "np.int32", 8},' in text
    assert "NUM_WARPS = 4;" in text
    assert "$" not in text


def test_a_dump_replaces_an_older_one_and_leaves_other_files_alone(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "inputs").mkdir()
    (tmp_path / "inputs/arg_0.npy").write_bytes(b"mine")
    write(tmp_path, spirv=b"other", cmd_gen=b"another", irs={}, num_warps=0, threads=1)
    assert (tmp_path / "kernel.spv").read_bytes() == b"other"
    assert (tmp_path / "kernel_cmd_gen.so").read_bytes() == b"another"
    assert "NUM_WARPS = 0;" in (tmp_path / "kernel_standalone.cpp").read_text()
    assert (tmp_path / "inputs/arg_0.npy").read_bytes() == b"mine"
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_a_program_that_has_a_file_open_keeps_the_file_it_opened(tmp_path: Path) -> None:
    write(tmp_path)
    with (tmp_path / "kernel_cmd_gen.so").open("rb") as opened:
        write(tmp_path, cmd_gen=b"replaced")
        assert opened.read() == b"library"


def test_a_dump_that_fails_halfway_leaves_no_launcher_and_no_part_of_a_file(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "kernel_cmd_gen.so").unlink()
    (tmp_path / "kernel_cmd_gen.so").mkdir()
    with pytest.raises(OSError):
        write(tmp_path, spirv=b"new")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "kernel.source",
        "kernel.spv",
        "kernel.ttir",
        "kernel_cmd_gen.so",
    ]


def test_a_dump_waits_for_one_that_is_being_written(tmp_path: Path) -> None:
    before = contents(tmp_path)
    descriptor = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    second = threading.Thread(target=write, args=(tmp_path,))
    second.start()
    # If it did not wait, it would take some milliseconds.
    second.join(timeout=0.5)
    assert second.is_alive()
    assert contents(tmp_path) == before
    os.close(descriptor)
    second.join()
    assert (tmp_path / "kernel_standalone.cpp").is_file()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "../kernel"}, "is not an identifier"),
        ({"name": ""}, "is not an identifier"),
        ({"parameters": ["*fp32", "i32", "tensordesc<fp32[1]>"]}, "cannot take m, a tensordesc<fp32[1]>"),
        ({"parameters": ["*fp32", "i32", "fp8e5"]}, "cannot take m, a fp8e5"),
        ({"parameters": ["**fp32", "i32", "i32"]}, r"cannot take x, a **fp32"),
        ({"parameters": ["*fp32", "i32"], "names": [], "irs": {"ttir": TTIR}}, "3 arguments by its TTIR and 2"),
        ({"names": ["x", "n"]}, "3 parameters and 2 names"),
        ({"threads": 64}, "64 work-items a program are not 4 warps"),
        ({"threads": 1}, "1 work-items a program are not 4 warps"),
        ({"num_warps": 0}, "128 work-items a program are not 0 warps"),
    ],
)
def test_kernel_without_a_possible_launcher_is_refused_before_any_file_is_written(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        write(tmp_path / "made", **{"irs": {}} | changes)
    assert not (tmp_path / "made").exists()


def test_parameters_without_names_are_numbered_as_their_files(tmp_path: Path) -> None:
    assert '{"arg_1", "i32"' in write(tmp_path, names=()).read_text()


def test_divisors_are_those_of_the_kernels_own_signature() -> None:
    assert divisors(TTIR, "kernel", 3) == [16, 1, 8]
    assert divisors(TTIR, "other", 2) == [1, 1]
    assert divisors("", "kernel", 1) == [1]
    assert divisors("tt.func public @kernel() attributes {noinline = false} {\n" + TTIR, "kernel", 0) == []
