"""What the standalone launcher accepts from files and from its command line, and its errors for everything else."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from foundry_core.codegen.tools import llvm_to_spirv
from made_up import shared_library
from standalone_program import Program

# These tests use no kernel of Triton's.
pytestmark = pytest.mark.any_release

# out[i] = x[i] + n, in each work-item of program i.
KERNEL = """
define spir_kernel void @shift(ptr addrspace(1) %x, ptr addrspace(1) %out, i32 %n, i32 %gx, i32 %gy, i32 %gz) SIZE {
  %i = call spir_func i64 @_Z12get_group_idj(i32 0)
  %from = getelementptr i32, ptr addrspace(1) %x, i64 %i
  %to = getelementptr i32, ptr addrspace(1) %out, i64 %i
  %value = load i32, ptr addrspace(1) %from
  %sum = add i32 %value, %n
  store i32 %sum, ptr addrspace(1) %to
  ret void
}
declare spir_func i64 @_Z12get_group_idj(i32)
"""
TTIR = "  tt.func public @shift(%x: !tt.ptr<i32>, %out: !tt.ptr<i32>, %n: i32 {tt.divisibility = 16 : i32}) {"
LIBRARY = "#include <stddef.h>\nsize_t get_matmul_num(void) { return 0; }\nsize_t get_dma_num(void) { return 0; }\n"
X = np.arange(6, dtype=np.int32).reshape(2, 3)
N = np.int32(-32)
POISON = -(10**9)


def spirv(threads: int | None = None, *, old: str = "", new: str = "") -> bytes:
    """Return the kernel, for a number of work-items per program or without one, with a part of its text replaced."""
    text = KERNEL.replace("SIZE", "" if threads is None else "!reqd_work_group_size !0")
    if threads is not None:
        text += f"!0 = !{{i32 {threads}, i32 1, i32 1}}\n"
    assert old in text
    return llvm_to_spirv(text.replace(old, new) if old else text)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return shared_library(tmp_path_factory.mktemp("library") / "shift.so", LIBRARY).read_bytes()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, library: bytes) -> Path:
    folder = tmp_path_factory.mktemp("dump") / "shift"
    facts: dict[str, Any] = {"parameters": ["*i32", "*i32", "i32"], "names": ["x", "out", "n"], "irs": {"ttir": TTIR}}
    return Program.dump(folder, folder, spirv=spirv(64), library=library, threads=64, **facts).folder


@pytest.fixture
def program(built: Path, library: bytes, tmp_path: Path) -> Program:
    """Return the launcher, with valid inputs, and a command generator for a kernel in its folder."""
    program = Program(built, tmp_path)
    program.take([X, np.full_like(X, POISON), N])
    (tmp_path / "shift_cmd_gen.so").write_bytes(library)
    return program


def saved(array: Any, version: tuple[int, int] | None = None) -> bytes:
    file = BytesIO()
    np.lib.format.write_array(file, np.asanyarray(array), version)
    return file.getvalue()


def file(header: str, data: bytes = b"", version: tuple[int, int] = (1, 0), length: int | None = None) -> bytes:
    """Return a .npy file with this text as its header."""
    text = header.encode() + b"\n"
    size = struct.pack("<H" if version[0] == 1 else "<I", len(text) if length is None else length)
    return b"\x93NUMPY" + bytes(version) + size + text + data


def header(descr: str = "'<i4'", order: str = "False", shape: str = "(2, 3)") -> str:
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}"


DATA = X.tobytes()
GOOD: dict[str, bytes] = {
    "version 1.0": saved(X, (1, 0)),
    "version 2.0": saved(X, (2, 0)),
    "version 3.0": saved(X, (3, 0)),
    "not padded": file(header(), DATA),
    "keys in another order": file("{'shape': (2, 3), 'descr': '<i4', 'fortran_order': False}", DATA),
    "double quotes": file('{"descr": "<i4", "fortran_order": False, "shape": (2,3)}', DATA),
    "one dimension": saved(X.ravel()),
    "four dimensions": saved(X[:, None, :, None]),
    "Fortran order": saved(np.asfortranarray(X)),
    "more than is used": saved(np.arange(100, dtype=np.int32)),
}


@pytest.mark.parametrize("content", GOOD.values(), ids=GOOD)
def test_a_file_of_numpys_is_taken_and_written_back_as_it_was(content: bytes, program: Program) -> None:
    for index in range(2):
        (program.work / f"inputs/arg_{index}.npy").write_bytes(content)
    done = program.run("-g", "6")
    assert (done.returncode, done.stderr) == (0, "")
    assert (program.work / "outputs/arg_0.npy").read_bytes() == content
    array, output = np.load(BytesIO(content)), program.output(1)
    assert (output.dtype, output.shape, output.flags.fnc) == (array.dtype, array.shape, array.flags.fnc)
    # The kernel sees memory order, which is by columns if the file's order is.
    expected = array.ravel("K").copy()
    expected[:6] += N
    assert np.array_equal(output.ravel("K"), expected)


@pytest.mark.parametrize("scalar", [N, np.array([N]), np.array([[N]]), np.asfortranarray([[N]])])
def test_a_scalar_is_a_number_or_an_array_of_one_element(scalar: Any, program: Program) -> None:
    np.save(program.work / "inputs/arg_2.npy", scalar)
    assert program.run("-g", "6").returncode == 0
    assert np.array_equal(program.output(1), X + N)


def test_tensors_may_be_empty_or_a_number(library: bytes, tmp_path: Path) -> None:
    binary = spirv(old="%value = load i32, ptr addrspace(1) %from", new="%value = add i32 3, 4")
    parameters = ["*i32", "*i32", "i32"]
    program = Program.dump(tmp_path / "shift", tmp_path, parameters=parameters, spirv=binary, library=library)
    program.launch([np.zeros((3, 0), np.int32), np.array(POISON, np.int32), np.int32(5)], "-g", "1")
    assert program.output(0).shape == (3, 0)
    assert program.output(1).shape == ()
    assert program.output(1) == 12


TENSOR = "it is x, a tensor (*i32): np.save('inputs/arg_0.npy', x) with an array of np.int32"
BAD: dict[str, tuple[bytes, str]] = {
    "empty": (b"", f"is empty; {TENSOR}"),
    "text": (b"1, 2, 3\n", f"is not a .npy file; {TENSOR}"),
    "one byte of text": (b"1", f"is not a .npy file; {TENSOR}"),
    "npz": (b"PK\x03\x04" + bytes(60), f"is an .npz archive; {TENSOR}"),
    "cut in the magic": (saved(X)[:4], "is cut off within its first bytes"),
    "cut in the version": (saved(X)[:7], "is cut off within its version"),
    "cut in the length": (saved(X)[:9], "is cut off within the length of its header"),
    "cut in the length, 2.0": (saved(X, (2, 0))[:11], "is cut off within the length of its header"),
    "cut in the header": (saved(X)[:50], "is cut off within its header"),
    "a header longer than the file": (file(header(), DATA, (2, 0), 2**32 - 1), "is cut off within its header"),
    "cut in the data": (saved(X)[:-1], "is cut off: its shape means 24 bytes of data, and there are 23"),
    "without data": (file(header()), "is cut off: its shape means 24 bytes of data, and there are 0"),
    "trailing bytes": (
        saved(X) + b"\0",
        "has something behind its data: its shape means 24 bytes of data, and there are 25",
    ),
    "two arrays": (saved(X) + saved(X), "has something behind its data"),
    "data of an empty array": (
        file(header(shape="(0, 3)"), b"1234"),
        "has something behind its data: its shape means 0 bytes",
    ),
    "version 4": (file(header(), DATA, (4, 0)), "has version 4.0 of the format; 1.0, 2.0 and 3.0 are known"),
    "version 1.1": (file(header(), DATA, (1, 1)), "has version 1.1 of the format"),
    "big-endian": (saved(X.astype(">i4")), "holds '>i4' (big-endian) where '<i4' is taken; it is x, a tensor (*i32)"),
    "of the machine's order": (file(header("'=i4'"), DATA), "holds '=i4' where '<i4' is taken"),
    "unsigned": (saved(X.astype("<u4")), f"holds '<u4' where '<i4' is taken; {TENSOR}"),
    "int64": (saved(X.astype("<i8")), f"holds '<i8' where '<i4' is taken; {TENSOR}"),
    "float32": (saved(X.astype("<f4")), "holds '<f4' where '<i4' is taken"),
    "bool": (saved(X.astype("bool")), "holds '|b1' where '<i4' is taken"),
    "pickled": (file(header("'|O'"), DATA), "holds '|O' (pickled Python objects) where '<i4' is taken"),
    "structured": (saved(np.zeros(2, [("a", "<i4"), ("b", "<i4")])), "holds a structured array; save one field of it"),
    "no dictionary": (file("(2, 3)", DATA), "the header is not NumPy's: there should be a { at \"(2, 3)"),
    "no descr": (file("{'fortran_order': False, 'shape': (2, 3)}", DATA), "header is not NumPy's: it has no 'descr'"),
    "no order": (file("{'descr': '<i4', 'shape': (2, 3)}", DATA), "it has no 'fortran_order'"),
    "no shape": (file("{'descr': '<i4', 'fortran_order': False}", DATA), "it has no 'shape'"),
    "another key": (file(header()[:-1] + "'more': 1}", DATA), "it has a key 'more', which the format does not"),
    "a key twice": (file(header()[:-1] + "'shape': (2, 3)}", DATA), "it has the key 'shape' twice"),
    "an order that is none": (file(header(order="0"), DATA), "'fortran_order' is neither True nor False at \"0, "),
    "a descr that is none": (file(header("4"), DATA), 'there should be a dtype in quotes at "4,'),
    "a quote left open": (file("{'descr", DATA), "there should be a key in quotes"),
    "a shape that is a number": (file(header(shape="6"), DATA), "'shape' is not a tuple at \"6,"),
    "a shape without a comma": (file(header(shape="(6)"), DATA), "'shape' is not a tuple, it lacks a comma"),
    "a shape that is a list": (file(header(shape="[2, 3]"), DATA), "'shape' is not a tuple at \"[2, 3]"),
    "a negative shape": (
        file(header(shape="(-2, -3)"), DATA),
        "'shape' has an entry that is not a number of elements at \"-2,",
    ),
    "a shape of fractions": (file(header(shape="(2.0, 3)"), DATA), "the numbers of 'shape' are not separated at \".0,"),
    "a shape left open": (file("{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3", DATA), "are not separated"),
    "a shape beyond 64 bits": (file(header(shape="(18446744073709551616,)"), DATA), "a number of 'shape' is too large"),
    "a shape of more than memory": (file(header(shape="(4294967296, 4294967296)"), DATA), "more elements than"),
    "a shape that wraps to its data": (file(header(shape="(4611686018427387910,)"), DATA), "more elements than"),
    "text behind the header": (file(header() + " 1", DATA), "something follows its closing brace"),
    "a header left open": (file(header()[:-1], DATA), 'there should be a key in quotes at ""'),
    "a header without colons": (file("{'descr' '<i4'}", DATA), "there should be a : at \"'<i4'}"),
}


@pytest.mark.parametrize(("content", "message"), BAD.values(), ids=BAD)
def test_a_bad_file_is_refused_by_name_with_what_is_wrong(content: bytes, message: str, program: Program) -> None:
    (program.work / "inputs/arg_0.npy").write_bytes(content)
    refusal = program.refusal("-g", "6")
    assert refusal.startswith("shift_standalone: inputs/arg_0.npy: ")
    assert message in refusal


def remove(path: Path) -> None:
    path.unlink()


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def save(value: Any) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(saved(value))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (
            remove,
            "there is no such file; it is n, a scalar (i32), a multiple of 16: "
            "np.save('inputs/arg_2.npy', n) with a number of np.int32",
        ),
        (folder, "is not a file; it is n, a scalar"),
        (save(32), "holds '<i8' where '<i4' is taken; it is n, a scalar (i32)"),
        (save(32.0), "holds '<f8' where '<i4' is taken"),
        (save(np.array([16, 32], np.int32)), "holds 2 elements where one number is taken"),
        (save(np.array([], np.int32)), "holds 0 elements where one number is taken"),
        (save(np.int32(24)), "not a multiple of 16, and shift was compiled for one that is"),
        (save(np.int32(-8)), "not a multiple of 16"),
    ],
)
def test_a_scalar_of_another_kind_is_refused(spoil: Callable[[Path], object], message: str, program: Program) -> None:
    spoil(program.work / "inputs/arg_2.npy")
    refusal = program.refusal("-g", "6")
    assert refusal.startswith("shift_standalone: inputs/arg_2.npy: ")
    assert message in refusal


def test_a_bool_file_with_another_byte_is_refused(library: bytes, tmp_path: Path) -> None:
    program = Program.dump(tmp_path / "shift", tmp_path, parameters=["i1"], spirv=spirv(), library=library)
    program.take([])
    (tmp_path / "inputs/arg_0.npy").write_bytes(file(header("'|b1'", shape="()"), b"\2"))
    assert "inputs/arg_0.npy: holds bytes that are neither False (0) nor True (1)" in program.refusal("-g", "1")


def test_a_file_too_many_is_refused(program: Program) -> None:
    np.save(program.work / "inputs/arg_3.npy", np.int32(128))
    refusal = program.refusal("-g", "6")
    assert "inputs/arg_3.npy: shift takes 3 arguments, so this file is one too many" in refusal


def test_outputs_that_cannot_be_written_are_an_error(program: Program) -> None:
    shutil.rmtree(program.work / "outputs")
    (program.work / "outputs").write_text("a file")
    done = program.run("-g", "6")
    assert (done.returncode, done.stdout) == (1, "")
    assert "outputs: cannot be made" in done.stderr


def test_an_output_replaces_a_file_and_not_a_folder(program: Program) -> None:
    (program.work / "outputs/arg_1.npy").unlink()
    (program.work / "outputs/arg_1.npy").mkdir()
    done = program.run("-g", "6")
    assert (done.returncode, done.stdout) == (1, "")
    assert "outputs/arg_1.npy: cannot be written: Is a directory" in done.stderr


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ((), "the grid is missing: -g x,y,z"),
        (("-g",), "-g is given without its value"),
        (("-g", ""), "-g  is not a grid: one to three numbers from 1 to 2147483647, such as -g 16,4,1"),
        (("-g", "0"), "-g 0 is not a grid"),
        (("-g", "-1"), "-g -1 is not a grid"),
        (("-g", "6,"), "-g 6, is not a grid"),
        (("-g", "6,,1"), "-g 6,,1 is not a grid"),
        (("-g", "6,1,1,1"), "-g 6,1,1,1 is not a grid"),
        (("-g", "6x1"), "-g 6x1 is not a grid"),
        (("-g", " 6"), "-g  6 is not a grid"),
        (("-g", "1.5"), "-g 1.5 is not a grid"),
        (("-g", "2147483648"), "-g 2147483648 is not a grid"),
        (("-g", "2147483647,2147483647,2147483647"), "is a grid of too many programs"),
        (("-g", "6", "-d", "first"), "-d first is not an index of a device"),
        (("-g", "6", "-d", "-1"), "-d -1 is not an index of a device"),
        (("-g", "6", "-w", "2.0"), "-w 2.0 is not a number of warps"),
        (("-g", "6", "-w", "-1"), "-w -1 is not a number of warps"),
        (("-g", "6", "-q"), "there is no option -q"),
        (("-g", "6", "--help"), "there is no option --"),
        (("-g", "6", "7"), "'7' belongs to no option"),
    ],
)
def test_a_wrong_command_line_is_refused_with_status_2(flags: tuple[str, ...], message: str, program: Program) -> None:
    refusal = program.refusal(*flags, status=2)
    assert message in refusal
    assert refusal.endswith("\nTry -h.\n")


def test_a_device_that_is_not_there_is_refused_with_those_that_are(program: Program) -> None:
    refusal = program.refusal("-g", "6", "-d", "99")
    assert refusal.startswith("shift_standalone: there is no OpenCL device 99; there are:\n  0: ")


def test_the_grid_may_have_one_to_three_numbers(program: Program) -> None:
    for grid in ("6", "6,1", "6,1,1"):
        program.launch([X, np.full_like(X, POISON), N], "-g", grid)
        assert np.array_equal(program.output(1), X + N)
    # Only the programs of the grid run.
    program.launch([X, np.full_like(X, POISON), N], "-g", "4")
    assert program.output(1).ravel().tolist() == [-32, -31, -30, -29, POISON, POISON]


def test_help_names_the_arguments_and_runs_nothing(program: Program) -> None:
    shutil.rmtree(program.work / "inputs")
    done = program.run("-h")
    assert (done.returncode, done.stderr) == (0, "")
    for line in (
        "usage: shift_standalone -g x[,y[,z]] [-d index] [-w num_warps] [-m path]",
        "  inputs/arg_0.npy  x, a tensor (*i32), of np.int32",
        "  inputs/arg_2.npy  n, a scalar (i32), a multiple of 16, of np.int32",
        "OpenCL devices:",
    ):
        assert line in done.stdout.splitlines()


def test_another_kernel_may_be_named_and_brings_its_command_generator(
    program: Program, library: bytes, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "any name").write_bytes(spirv(old="add i32 %value", new="sub i32 %value"))
    refusal = program.refusal("-g", "6", "-m", "other/any name")
    assert "other/shift_cmd_gen.so" in refusal
    assert "cannot be loaded" in refusal
    (other / "shift_cmd_gen.so").write_bytes(library)
    assert program.run("-g", "6", "-m", "other/any name").returncode == 0
    assert np.array_equal(program.output(1), X - N)
    # A kernel in the current folder: dlopen searches the system's libraries for a bare file name.
    shutil.copy(other / "any name", tmp_path / "here.spv")
    (program.work / "outputs/arg_1.npy").unlink()
    assert program.run("-g", "6", "-m", "here.spv").returncode == 0
    assert np.array_equal(program.output(1), X - N)


def test_the_number_of_warps_is_the_kernels(program: Program, tmp_path: Path) -> None:
    assert program.run("-g", "6", "-w", "2").returncode == 0
    program.take([X, np.full_like(X, POISON), N])
    refusal = program.refusal("-g", "6", "-w", "4")
    assert "-w 4 means 128 work-items a program, and the kernel was compiled for 64" in refusal
    # A kernel that specifies another number of work-items, and one that specifies none.
    (tmp_path / "four.spv").write_bytes(spirv(128))
    assert "compiled for 128" in program.refusal("-g", "6", "-m", "four.spv")
    done = program.run("-g", "6", "-m", "four.spv", "-w", "4")
    assert done.returncode == 0
    assert "128 work-items a program" in done.stdout
    (tmp_path / "any.spv").write_bytes(spirv())
    assert "1 work-items a program" in program.run("-g", "6", "-m", "any.spv", "-w", "0").stdout


def test_a_kernel_that_does_not_state_its_work_items_still_has_those_it_was_dumped_with(
    built: Path, tmp_path: Path
) -> None:
    shutil.copytree(built, tmp_path / "shift", symlinks=True)
    program = Program(tmp_path / "shift", tmp_path)
    (program.folder / "shift.spv").write_bytes(spirv())
    program.take([X, np.full_like(X, POISON), N])
    assert "compiled for 64" in program.refusal("-g", "6", "-w", "0")
    assert "64 work-items a program" in program.run("-g", "6").stdout


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "there is no such file; -m names the kernel's SPIR-V"),
        (b"", "cannot be read, or is empty"),
        (b"no SPIR-V at all", "was not accepted by"),
    ],
)
def test_a_file_that_is_no_kernel_is_refused(
    content: bytes | None, message: str, program: Program, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / "bad.spv").write_bytes(content)
    refusal = program.refusal("-g", "6", "-m", "bad.spv")
    assert refusal.startswith("shift_standalone: bad.spv: ")
    assert message in refusal


def test_a_module_with_another_kernel_is_refused_with_the_names_it_has(program: Program, tmp_path: Path) -> None:
    (tmp_path / "lift.spv").write_bytes(spirv(old="@shift", new="@lift"))
    assert "lift.spv: has no kernel shift; it has: lift" in program.refusal("-g", "6", "-m", "lift.spv")


def test_a_kernel_with_other_parameters_is_refused(program: Program, tmp_path: Path) -> None:
    (tmp_path / "more.spv").write_bytes(spirv(old="i32 %n, i32 %gx", new="i32 %n, i32 %more, i32 %gx"))
    refusal = program.refusal("-g", "6", "-m", "more.spv")
    assert "more.spv: shift takes 7 arguments and would be passed 6" in refusal


def test_a_library_that_makes_no_commands_is_refused(program: Program, tmp_path: Path) -> None:
    shared_library(tmp_path / "shift_cmd_gen.so", "int unrelated;\n")
    (tmp_path / "shift.spv").write_bytes(spirv(64))
    refusal = program.refusal("-g", "6", "-m", "shift.spv")
    assert "shift_cmd_gen.so: has no get_matmul_num: this is not a command generator of a kernel" in refusal
