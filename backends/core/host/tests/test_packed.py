"""Packed folders on this machine: of made-up kernels, built with its compiler, run on a libOpenCL of tests."""

from __future__ import annotations

import copy
import ctypes
import importlib.util
import json
import shlex
import shutil
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from foundry_core.packed import folder, tables
from foundry_core.packed.forms import Kernel, Name, Parameter, Variant, constant_text
from foundry_core.packed.recording import ArrayUse, Launch, Memory
from foundry_core.packed.roads import Form, OpenCLRoad, PackError
from foundry_core.scalars import passed

BLOCK = 256
_FAKE = Path(__file__).with_name("fake_opencl.c")
# What a program of `add` reaches; see footprint.code.
_REACH = """struct span reached = span_at(program[0] * 256);
int64_t left = argument[3] - program[0] * 256;
span_along(&reached, 0, left < 256 ? left : 256, 1);
reads(0, reached, 1);
reads(1, reached, 1);
writes(2, reached, 1);"""


def _add(mark: str, *, arrays: int = 1, n: Parameter | None = None, needs: str = "", block: int = BLOCK) -> Variant:
    array = Parameter("*fp32", divisor=arrays)
    parameters = {
        "x": array,
        "y": array,
        "out": Parameter("*fp32", divisor=arrays, is_written=True),
        "n": n or Parameter("i32"),
        "BLOCK": Parameter(constant=str(block)),
    }
    return Variant(parameters, Form("add", {"spv": mark.encode(), "more": b"more"}, needs=needs), _REACH)


def _add_kernel(*variants: Variant, launches: list[Launch] | None = None) -> Kernel:
    names = {name: Name() for name in ("x", "y", "out", "n")} | {"BLOCK": Name(constant=1)}
    forms = variants or (
        _add("both", arrays=16, n=Parameter("i32", divisor=16)),
        _add("arrays", arrays=16),
        _add("any"),
    )
    return Kernel("add", names, list(forms), [], launches or [])


def _recorded() -> Launch:
    x, y = np.random.default_rng(0).standard_normal((2, 1000), np.float32)
    before, after = np.full(1000, np.nan, np.float32), x + y
    memories = [
        Memory(x.tobytes(), x.tobytes()),
        Memory(y.tobytes(), y.tobytes()),
        Memory(before.tobytes(), after.tobytes()),
    ]
    uses = {name: ArrayUse(at, 0, 4000, (1000,), "*fp32") for at, name in enumerate(("x", "y", "out"))}
    return Launch(None, None, (4, 1, 1), {**uses, "n": 1000, "BLOCK": 256}, memories)


_NUMBERS = ("i1", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "fp16", "bf16", "fp64")


def _numbers_kernel() -> Kernel:
    names = {"out": Name()} | {f"a_{type}": Name(declared=True) for type in _NUMBERS}
    parameters = {"out": Parameter("*u8", is_written=True)} | {f"a_{type}": Parameter(type) for type in _NUMBERS}
    return Kernel("numbers", names, [Variant(parameters, Form("numbers", {"spv": b"numbers"}), None)], [], [])


def _tuned_kernel() -> Kernel:
    """Return a kernel whose BLOCK and FAST triton.autotune chose, and whose EVEN follows from them and n."""
    kernel = _add_kernel(_add("64", block=64), _add("1024", block=1024))
    kernel.names |= {"BLOCK": Name(constant=2), "FAST": Name(constant=2), "EVEN": Name(constant=1)}
    kernel.name = "tuned"
    arrays = dict.fromkeys(("x", "y", "out"), "*fp32")
    for variant, fast, even in zip(kernel.variants, ("True", "False"), ("False", "True"), strict=True):
        variant.parameters |= {"FAST": Parameter(constant=fast), "EVEN": Parameter(constant=even)}
    kernel.choices = [
        ({**arrays, "n": "100"}, {"BLOCK": "64", "FAST": "True"}),
        ({**arrays, "n": "65536"}, {"BLOCK": "1024", "FAST": "False"}),
    ]
    return kernel


def _sum_kernel() -> Kernel:
    """Return a kernel whose name is one of Python's, with constants that are hard to tell apart."""
    kernel = _add_kernel(*(_add(text) for text in _CONSTANTS))
    kernel.name = "sum"
    for variant, text in zip(kernel.variants, _CONSTANTS, strict=True):
        variant.parameters["BLOCK"] = Parameter(constant=text)
    return kernel


_CONSTANTS = ("0.0", "-0.0", "0.1", "nan", "0", "False", "None", "'relu'", "9223372036854775808", repr("a" * 240))


def _write(place: Path, *kernels: Kernel, name: str = "sums") -> Path:
    folder.write(place, name, "spirv", "1.2.3", kernels, OpenCLRoad())
    return place


@pytest.fixture(scope="module")
def fake(tmp_path_factory: pytest.TempPathFactory) -> Any:
    library = tmp_path_factory.mktemp("opencl") / "libOpenCL.so.1"
    command = ["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(_FAKE), "-Wl,-soname,libOpenCL.so.1"]
    subprocess.run(command, check=True)
    # What opens libOpenCL.so.1 later in this process gets this one.
    return ctypes.CDLL(str(library), ctypes.RTLD_GLOBAL)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("packed") / "sums"
    return _write(place, *_kernels())


def _kernels() -> tuple[Kernel, ...]:
    return _add_kernel(launches=[_recorded()]), _numbers_kernel(), _tuned_kernel(), _sum_kernel()


@pytest.fixture
def device(fake: Any) -> Iterator[Any]:
    defaults = {"shares": 1, "fp64": 1, "is_pocl": 1, "has_spirv": 1, "platforms": 1, "milliseconds": 0, "group": 4096}
    yield fake
    for name, value in {**defaults, "fails_launch": 0}.items():
        fake.fake_set(name.encode(), value)


def _load(place: Path, name: str = "sums") -> ModuleType:
    """Import a folder's loader, as a module of its own."""
    spec = importlib.util.spec_from_file_location(f"packed_{id(place)}", place / "python" / name / "__init__.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _arrays(n: int) -> tuple[Any, Any, Any]:
    x, y = np.random.default_rng(n).standard_normal((2, n), np.float32)
    return x.copy(), y.copy(), np.full(n, np.nan, np.float32)


def _chosen(fake: Any) -> str:
    """Return the form that was loaded last."""
    return str((ctypes.c_char * (1 << 16)).in_dll(fake, "fake_log").value.decode().split("\n")[-2])


@pytest.mark.parametrize("shares", [1, 0])
def test_a_launch_adds_on_devices_with_and_without_the_hosts_memory(written: Path, device: Any, shares: int) -> None:
    device.fake_set(b"shares", shares)
    packed = _load(written)
    for n in (1, 255, 256, 4096):
        x, y, out = _arrays(n)
        packed.add[(-(-n // BLOCK),)](x, y, out, n, BLOCK=BLOCK)
        np.testing.assert_array_equal(out, x + y)
    x, y, out = _arrays(1000)
    packed.add[(1,)](x, y, out, 100, 256)
    np.testing.assert_array_equal(out[:100], (x + y)[:100])
    assert np.isnan(out[100:]).all()


@pytest.mark.parametrize("shares", [1, 0])
def test_arrays_of_the_device_keep_their_elements(written: Path, device: Any, shares: int) -> None:
    device.fake_set(b"shares", shares)
    packed = _load(written)
    x, y, out = _arrays(512)
    there = [packed.Array(array) for array in (x, y, out)]
    packed.add[(2,)](*there, 512, BLOCK=BLOCK)
    np.testing.assert_array_equal(there[2].numpy(), x + y)
    assert np.isnan(out).all()


def test_an_empty_grid_and_empty_arrays_launch_nothing(written: Path, device: Any) -> None:
    packed = _load(written)
    x, y, out = _arrays(256)
    packed.add[(0,)](x, y, out, 256, BLOCK=BLOCK)
    packed.add[(4, 0, 7)](x, y, out, 256, BLOCK=BLOCK)
    assert np.isnan(out).all()
    empty = np.empty(0, np.float32)
    packed.add[(1,)](empty, empty, empty, 0, BLOCK=BLOCK)


@pytest.mark.parametrize("shares", [1, 0])
def test_arrays_that_share_memory_are_parts_of_one(written: Path, device: Any, shares: int) -> None:
    device.fake_set(b"shares", shares)
    packed = _load(written)
    all_of = np.arange(1024, dtype=np.float32)
    before = all_of.copy()
    packed.add[(1,)](all_of[:256], all_of[256:512], all_of[512:768], 256, BLOCK=BLOCK)
    np.testing.assert_array_equal(all_of[512:768], before[:256] + before[256:512])
    np.testing.assert_array_equal(all_of[:512], before[:512])
    np.testing.assert_array_equal(all_of[768:], before[768:])
    if shares:
        packed.add[(1,)](all_of[1:257], all_of[771:], all_of[771:], 253, BLOCK=BLOCK)
        np.testing.assert_array_equal(all_of[771:], before[1:254] + before[771:])


@pytest.mark.parametrize(
    ("shift", "n", "form"), [(0, 256, "both"), (0, 255, "arrays"), (0, 1, "arrays"), (1, 256, "any"), (1, 240, "any")]
)
def test_the_most_specialised_form_that_fits_is_launched(
    written: Path, device: Any, shift: int, n: int, form: str
) -> None:
    packed = _load(written)
    whole = np.full(4 * 1024, np.nan, np.float32)
    start = (-whole.ctypes.data // 4) % 4
    x, y, out = (whole[start + shift + 1024 * i : start + shift + 1024 * i + 256] for i in range(3))
    x[:], y[:] = _arrays(256)[:2]
    packed.add[(1,)](x, y, out, n, BLOCK=BLOCK)
    np.testing.assert_array_equal(out[:n], (x + y)[:n])
    assert _chosen(device) == form


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"x": np.zeros(256)}, r"takes the argument x\n  why:  x is \*fp64, and packed is \*fp32"),
        ({"x": 3}, r"argument x\n  why:  x is i32, and packed is \*fp32"),
        ({"out": None}, r"argument out\n  why:  out is None, and packed is \*fp32"),
        (
            {"n": 1 << 31},
            r"argument n\n  why:  n is 2147483648, to Triton i64, and packed is i32; the packed forms take "
            r"i32 divisible by 16; i32\n",
        ),
        ({"n": 1 << 63}, r"argument n\n  why:  n is 9223372036854775808, to Triton u64, and packed is i32"),
        ({"n": True}, r"argument n\n  why:  n is True, to Triton i1, and packed is i32"),
        ({"n": 2.5}, r"argument n\n  why:  n is 2.5, to Triton fp32, and packed is i32"),
        ({"BLOCK": 128}, r"argument BLOCK\n  why:  BLOCK is 128, and compiled in is 256"),
        ({"BLOCK": "256"}, r"argument BLOCK\n  why:  BLOCK is '256', and compiled in is 256"),
        (
            {"n": 257},
            r"x is too short for add: it has 256 elements\n  why:  with these numbers .* reaches elements 0 to 256",
        ),
        ({"out": np.full(255, np.nan, np.float32)}, "out is too short for add: it has 255 elements"),
    ],
)
def test_a_call_that_fits_no_form_says_which_argument_and_why_and_writes_nothing(
    written: Path, device: Any, changed: dict[str, Any], message: str
) -> None:
    packed = _load(written)
    x, y, out = _arrays(256)
    arguments = {"x": x, "y": y, "out": out, "n": 256, "BLOCK": 256} | changed
    with pytest.raises(packed.PackedError, match=message):
        packed.add[(2,)](**arguments)
    assert np.isnan(out).all()
    if isinstance(arguments["out"], np.ndarray):
        assert np.isnan(arguments["out"]).all()


@pytest.mark.parametrize("versioned", [True, False])
def test_arrays_of_other_libraries_share_their_memory(written: Path, device: Any, versioned: bool) -> None:
    class Tensor:
        def __init__(self, array: Any) -> None:
            self.array = array

        def __dlpack__(self, **how: Any) -> Any:
            if how and not versioned:
                raise TypeError("an older library")
            return self.array.__dlpack__(**how)

        def __dlpack_device__(self) -> Any:
            return self.array.__dlpack_device__()

    packed = _load(written)
    x, y, out = _arrays(256)
    packed.add[(1,)](*map(Tensor, (x, y, out)), 256, BLOCK=BLOCK)
    np.testing.assert_array_equal(out, x + y)


def test_wrong_calls_of_the_loader_are_errors(written: Path, device: Any) -> None:
    packed = _load(written)
    x, y, out = _arrays(256)
    with pytest.raises(TypeError, match="add was not passed n, BLOCK"):
        packed.add[(1,)](x, y, out)
    with pytest.raises(TypeError, match="add has no parameter m; it has x, y, out, n, BLOCK"):
        packed.add[(1,)](x, y, out, m=1)
    with pytest.raises(TypeError, match="got n twice"):
        packed.add[(1,)](x, y, out, 1, n=1, BLOCK=256)
    out.flags.writeable = False
    with pytest.raises(TypeError, match="add writes to out, which is read-only"):
        packed.add[(1,)](x, y, out, 256, BLOCK=256)
    with pytest.raises(ValueError, match="one to three sides"):
        packed.add[(1, 1, 1, 1)](x, y, out.copy(), 256, BLOCK=256)
    with pytest.raises(packed.PackedError, match="a launch can have 2147483647 programs"):
        packed.add[(65536, 65536)](x, y, out.copy(), 256, BLOCK=256)


_TEXTS = (
    "0 -0.0 1 0.1 -65519.9 65520 5.96e-8 2.98e-8 2.99e-8 6.1e-5 1e-45 3.4e38 3.39e38 1e39 1e300 5e-324 inf -inf nan"
)
_VALUES = [*map(float, _TEXTS.split())]
_VALUES += [1 + 2**-11, 1 + 2**-11 + 2**-40, 1 + 2**-8, 1 + 2**-8 + 2**-40]


@pytest.mark.parametrize("value", [*_VALUES, *np.random.default_rng(5).standard_normal(20).tolist()])
def test_numbers_are_passed_as_tritons_launcher_passes_them(written: Path, device: Any, value: float) -> None:
    packed = _load(written)
    out = np.full(88, 0xA5, np.uint8)
    whole = [True, -128, -32768, -(2**31), -(2**63), 255, 65535, 2**32 - 1]
    packed.numbers[(1,)](out, *whole, value, value, value)
    for at, (type, given) in enumerate(zip(_NUMBERS, [*whole, value, value, value], strict=True)):
        row = passed(type)
        expected = struct.pack(row.code, row.convert(given)).ljust(8, b"\0")
        got = out[8 * at : 8 * at + 8].tobytes()
        if value != value and row.layout:
            # Any NaN of the type will do.
            dtype = {"fp16": np.float16, "bf16": ml_dtypes.bfloat16}[type]
            assert np.isnan(np.frombuffer(got[:2], np.uint16).view(dtype).astype(np.float32)).all()
        else:
            assert got == expected, (type, given)


@pytest.mark.parametrize(("at", "value"), [(1, 128), (2, -32769), (5, -1), (5, 256), (7, 2**32), (0, 2)])
def test_numbers_out_of_their_range_are_refused(written: Path, device: Any, at: int, value: int) -> None:
    packed = _load(written)
    out = np.full(88, 0xA5, np.uint8)
    numbers: list[Any] = [True, 0, 0, 0, 0, 0, 0, 0, 0.0, 0.0, 0.0]
    numbers[at] = value
    with pytest.raises(packed.PackedError, match=f"argument a_{_NUMBERS[at]}"):
        packed.numbers[(1,)](out, *numbers)
    assert (out == 0xA5).all()


@pytest.mark.parametrize(
    ("n", "block"), [(100, 64), (65536, 1024), (90, 64), (3000, 1024), (2000, 64), (1 << 20, 1024)]
)
def test_a_tuned_call_launches_the_choice_of_the_nearest_size(written: Path, device: Any, n: int, block: int) -> None:
    packed = _load(written)
    x, y, out = _arrays(n)
    seen = []

    def grid(meta: dict[str, Any]) -> tuple[int]:
        seen.append((meta["BLOCK"], meta["FAST"]))
        return (-(-n // 256),)

    even = block == 1024
    packed.tuned[grid](x, y, out, n, EVEN=even)
    assert seen == [(block, not even)]
    with pytest.raises(
        packed.PackedError, match=f"argument EVEN\n.*compiled in is {even}; the packed forms take {even}\n"
    ):
        packed.tuned[grid](x, y, out, n, EVEN=not even)
    assert _chosen(device) == str(block)


@pytest.mark.parametrize("text", _CONSTANTS)
def test_a_constant_is_told_from_others(written: Path, device: Any, text: str) -> None:
    packed = _load(written)
    x, y, out = _arrays(16)
    value = eval(text, {"nan": float("nan")})
    packed.sum[(1,)](x, y, out, 16, value)
    assert _chosen(device) == text
    for other in (1, -0.5, True, "None", 2.0, "a" * 241, "a" * 239, 1 << 62):
        with pytest.raises(packed.PackedError, match="argument BLOCK"):
            packed.sum[(1,)](x, y, out, 16, other)


def test_arrays_that_a_kernel_would_misread_are_refused(written: Path, device: Any) -> None:
    packed = _load(written)
    x, y, out = _arrays(256)
    memory = np.zeros(4 * 260, np.uint8)
    shifted, straight = memory[2:1026].view(np.float32), memory[:1024].view(np.float32)
    for wrong, message in (
        (x.astype(">f4"), "cannot take an array of dtype\\('>f4'\\)"),
        (x.astype("M8[ns]"), "cannot take an array"),
        (shifted, "no multiple of its elements' size"),
        (x[::-1], "negative stride"),
    ):
        with pytest.raises(TypeError, match=message):
            packed.add[(1,)](straight, wrong, out, 256, BLOCK=BLOCK)
        assert np.isnan(out).all()
    with pytest.raises(TypeError, match="cannot take an array of dtype"):
        packed.Array(x.astype(">f4"))
    strided = np.repeat(x, 2)[::2]
    packed.add[(1,)](strided[:128], y, out, 128, BLOCK=BLOCK)
    np.testing.assert_array_equal(out[:128], np.repeat(x, 2)[:128] + y[:128])
    with pytest.raises(packed.PackedError, match="x is too short"):
        packed.add[(1,)](np.broadcast_to(x[:1], 256), y, out, 256, BLOCK=BLOCK)


def test_strides_that_overflow_are_out_of_bounds(device: Any, tmp_path: Path) -> None:
    variant = _add("strided", n=Parameter("i64"))
    variant.reach = "struct span span = span_at(0);\nspan_along(&span, 0, 5, argument[3]);\nwrites(2, span, 1);"
    packed = _load(_write(tmp_path / "sums", _add_kernel(variant)))
    x, y, out = _arrays(256)
    # The last element would be number 2^64, which is 0 in 64 bits.
    for stride in (1 << 62, -(1 << 62), 3 << 61):
        with pytest.raises(packed.PackedError, match="out is too short for add"):
            packed.add[(1,)](x, y, out, stride, BLOCK=BLOCK)


def test_copies_of_an_array_share_its_memory(written: Path, device: Any) -> None:
    packed = _load(written)
    x, y, out = _arrays(256)
    there = packed.Array(out)
    again = copy.copy(there)
    packed.add[(1,)](x, y, there, 256, BLOCK=BLOCK)
    del there
    np.testing.assert_array_equal(again.numpy(), x + y)


def test_names_of_the_loader_are_no_kernels(tmp_path: Path) -> None:
    for name in ("device", "Array", "np"):
        kernel = _add_kernel()
        kernel.name = name
        with pytest.raises(PackError, match=f"a kernel cannot have the name {name}"):
            _write(tmp_path / name, kernel)


def test_a_number_chooses_a_device_by_its_number_only(
    written: Path, device: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The device of tests is number 0, and 1 is in its driver's version.
    monkeypatch.setenv("FOUNDRY_SUMS_DEVICE", "1")
    assert 'no OpenCL device fits "1"' in _folder_error(written)
    monkeypatch.setenv("FOUNDRY_SUMS_DEVICE", "DEVICE of tests")
    assert _load(written).device().startswith("a device of tests")


@pytest.mark.slow
@pytest.mark.parametrize("sanitizer", ["address,undefined", "thread"])
def test_threads_and_wrong_calls_break_nothing(written: Path, tmp_path: Path, sanitizer: str) -> None:
    checked = [f"-fsanitize={sanitizer}", "-fno-sanitize-recover", "-g", "-O1"]
    common = ["cc", *checked, "-Wall", "-Wextra", "-Werror", f"-I{written}/include", f"-I{written}/src"]
    # It notes things for tests in variables that threads share.
    fake = [] if sanitizer == "thread" else checked
    subprocess.run(["cc", *fake, "-shared", "-fPIC", "-o", tmp_path / "libOpenCL.so.1", _FAKE], check=True)
    for source in (written / "src").glob("*.c"):
        subprocess.run([*common, "-std=c11", "-c", source], cwd=tmp_path, check=True)
    program = str(_FAKE.with_name("use_packed.c"))
    subprocess.run([*common, "-std=c99", "-pedantic", "-c", program], cwd=tmp_path, check=True)
    objects = map(str, tmp_path.glob("*.o"))
    subprocess.run([*common, *objects, "-pthread", "-o", "use", "-ldl"], cwd=tmp_path, check=True)
    for memory in ({}, {"FAKE_COPIES": "1"}):
        where = {"LD_LIBRARY_PATH": str(tmp_path), **memory}
        done = subprocess.run([tmp_path / "use", written], env=where, capture_output=True, text=True, check=False)
        assert done.returncode == 0 and "calls were launched" in done.stdout, done.stderr


def test_headers_and_examples_are_strict_c_and_cpp(tmp_path: Path) -> None:
    """The constants are those that an argument of any kind may have, and the names are hard ones."""
    values = [1, True, 0.5, -0.0, float("inf"), 'a\n"*/', (1 << 64) - 1, -(1 << 63), None]
    names = {"int64_t": Name(), "foundry_pack": Name(declared=True), "new": Name(), "v": Name(constant=1)}
    variants, launches = [], []
    for value in values:
        text = constant_text(value)
        parameters = {"int64_t": Parameter("*i1"), "foundry_pack": Parameter("u64"), "new": Parameter(constant="None")}
        variants.append(Variant({**parameters, "v": Parameter(constant=text)}, Form("f", {"spv": text.encode()}), None))
        for use in (ArrayUse(-1, 0, 0, (0,), "*u1"), ArrayUse(0, 4, 12, (3, 4), "*ku1")):
            given = {"int64_t": use, "foundry_pack": (1 << 64) - 1, "new": None, "v": value}
            launches.append(Launch(None, None, (1, 1, 1), given, [Memory(bytes(16), bytes(16))] * (use.memory == 0)))
    nothing = Kernel("nothing", {}, [Variant({}, Form("g", {"spv": b""}), None)], [], [])
    place = _write(tmp_path / "sums", Kernel("hard", names, variants, [], launches), nothing, _tuned_kernel())
    strict = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only", f"-I{place}/include"]
    subprocess.run(["cc", "-std=c99", *strict, str(place / "example.c")], check=True)
    for standard in ("c++11", "c++20"):
        subprocess.run(["c++", f"-std={standard}", *strict, "-x", "c++", str(place / "include/sums.h")], check=True)


def _folder_error(place: Path) -> str:
    packed = _load(place)
    x, y, out = _arrays(256)
    with pytest.raises(packed.PackedError) as error:
        packed.add[(1,)](x, y, out, 256, BLOCK=256)
    assert np.isnan(out).all()
    return str(error.value)


def test_damaged_folders_are_errors(written: Path, device: Any, tmp_path: Path) -> None:
    place = shutil.copytree(written, tmp_path / "sums")
    kernel = place / "kernels" / "add.0.spv"
    kernel.write_bytes(b"boTh")
    assert "kernels/add.0.spv is damaged\n  why:  its sha256 is not" in _folder_error(place)
    kernel.write_bytes(b"bot")
    assert "it has another length" in _folder_error(place)
    kernel.write_bytes(b"both and more")
    assert "it has another length" in _folder_error(place)
    kernel.unlink()
    assert "add.0.spv cannot be read\n  why:  No such file" in _folder_error(place)
    kernel.write_bytes(b"both")
    kernel.with_suffix(".more").write_bytes(b"moRe")
    assert "kernels/add.0.more is damaged\n  why:  its sha256 is not" in _folder_error(place)
    manifest = place / "foundry.json"
    text = manifest.read_text()
    manifest.write_text(text.replace('"version": "1.2.3"', '"version": "1.2.4"'))
    assert "kernels of another name, target or version" in _folder_error(place)
    manifest.write_text(text.replace('{"format": 1', '{"format": 2'))
    assert "another name, target or version" in _folder_error(place)
    manifest.write_bytes(b"")
    assert "another name, target or version" in _folder_error(place)


def test_a_damaged_library_is_an_error_of_the_loader(written: Path, device: Any, tmp_path: Path) -> None:
    place = shutil.copytree(written, tmp_path / "sums")
    (place / "lib" / "libsums.so").write_bytes(b"no library")
    assert "libsums.so cannot be loaded" in _folder_error(place)


@pytest.mark.parametrize(
    ("needs", "property", "value", "message"),
    [
        ("fp64", b"fp64", 0, "it computes with numbers of 64 bits (cl_khr_fp64)"),
        ("calls=64", b"is_pocl", 1, "vectors of 64 bytes; this device takes up to 32"),
        ("fp16", b"is_pocl", 1, "(cl_khr_fp16)"),
        ("subgroup", b"is_pocl", 1, "(cl_khr_subgroup_shuffle)"),
        ("local=65536", b"is_pocl", 1, "65536 bytes of local memory, and there are 32768"),
    ],
)
def test_a_device_that_lacks_a_feature_is_refused_before_anything_is_written(
    device: Any, tmp_path: Path, needs: str, property: bytes, value: int, message: str
) -> None:
    place = _write(tmp_path / "sums", _add_kernel(_add("any", needs=needs)))
    device.fake_set(property, value)
    assert message in _folder_error(place)


def test_devices_that_take_no_spirv_or_are_not_there_are_refused(
    written: Path, device: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    device.fake_set(b"has_spirv", 0)
    assert "no OpenCL device takes SPIR-V\n  why:  0: a device of tests" in _folder_error(written)
    device.fake_set(b"has_spirv", 1)
    device.fake_set(b"platforms", 0)
    assert "no OpenCL platform is installed" in _folder_error(written)
    device.fake_set(b"platforms", 1)
    monkeypatch.setenv("FOUNDRY_SUMS_DEVICE", "another")
    assert 'no OpenCL device fits "another"' in _folder_error(written)


def test_a_kernel_that_the_device_refuses_shows_its_log(device: Any, tmp_path: Path) -> None:
    place = _write(tmp_path / "sums", _add_kernel(_add("refused")))
    assert "did not accept the kernel add\n  why:  line 7 is wrong" in _folder_error(place)


def test_a_launch_that_fails_on_a_device_of_its_own_memory_writes_nothing(written: Path, device: Any) -> None:
    device.fake_set(b"shares", 0)
    device.fake_set(b"fails_launch", 1)
    assert "the launch failed\n  why:  the device is out of resources" in _folder_error(written)


def test_a_launch_from_a_second_thread_is_refused(written: Path, device: Any) -> None:
    packed = _load(written)
    x, y, out = _arrays(256)
    packed.add[(1,)](x, y, out, 256, BLOCK=BLOCK)
    device.fake_set(b"milliseconds", 700)
    first, second = np.full_like(out, np.nan), np.full_like(out, np.nan)
    there = [packed.Array(array) for array in (x, y, second)]
    thread = threading.Thread(target=lambda: packed.add[(1,)](x, y, first, 256, BLOCK=BLOCK))
    thread.start()
    threading.Event().wait(0.3)
    with pytest.raises(packed.PackedError, match="sums is in use\n  why:  another thread is in a call"):
        packed.add[(1,)](*there, 256, BLOCK=BLOCK)
    thread.join()
    np.testing.assert_array_equal(first, x + y)
    assert np.isnan(there[2].numpy()).all()


def test_null_pointers_and_wrong_words_are_errors_in_c(written: Path, device: Any) -> None:
    packed = _load(written)
    library, pack = packed._library, packed._library.pack
    handle = ctypes.c_void_p()
    with pytest.raises(packed.PackedError, match="foundry_array_create was passed a null pointer"):
        library.array_create(None, 11, 4, ctypes.byref(handle))
    with pytest.raises(packed.PackedError, match="99 is no type of elements"):
        library.array_create(pack, 99, 4, ctypes.byref(handle))
    with pytest.raises(packed.PackedError, match="there is no memory"):
        library.array_create(pack, 11, 1 << 62, ctypes.byref(handle))
    memory = (ctypes.c_char * 64)()
    with pytest.raises(packed.PackedError, match="no multiple of 4 bytes"):
        library.array_over(pack, 11, 4, ctypes.addressof(memory) + 1, ctypes.byref(handle))
    array = packed.Array(np.zeros(4, np.float32))
    with pytest.raises(packed.PackedError, match="elements 2 to 6 are asked for of an array of 4"):
        library.array_read(array._handle, 2, 4, ctypes.addressof(memory))
    with pytest.raises(packed.PackedError, match="cannot have this shape"):
        library.array_shape(array._handle, 2, (ctypes.c_uint64 * 2)(2, 3))
    grid = (ctypes.c_uint32 * 3)(1, 1, 1)
    with pytest.raises(packed.PackedError, match="sums has no kernel sub"):
        library.launch(pack, b"sub", grid, (packed._Argument * 1)(), 1)
    with pytest.raises(packed.PackedError, match="add takes 5 arguments, and was passed 1"):
        library.launch(pack, b"add", grid, (packed._Argument * 1)(), 1)
    other = _load(written)
    foreign = other.Array(np.zeros(256, np.float32))
    arguments = (packed._Argument * 5)()
    for argument in arguments[:3]:
        argument.kind, argument.value.array = 0, foreign._handle.value
    with pytest.raises(packed.PackedError, match="made for another opened folder"):
        library.launch(pack, b"add", grid, arguments, 5)


def test_the_same_kernels_give_the_same_bytes(written: Path, tmp_path: Path) -> None:
    again = _write(tmp_path / "elsewhere" / "sums", *_kernels())
    one, other = (
        {p.relative_to(top): p.read_bytes() for p in top.rglob("*") if p.is_file()} for top in (written, again)
    )
    one = {path: content for path, content in one.items() if "__pycache__" not in path.parts}
    assert one.keys() == other.keys()
    assert [path for path in one if one[path] != other[path]] == []


def test_the_manifest_lists_each_file(written: Path) -> None:
    listed = json.loads((written / "foundry.json").read_text())
    files = {
        p.relative_to(written).as_posix() for p in written.rglob("*") if p.is_file() and "__pycache__" not in p.parts
    }
    assert {*listed["files"], "foundry.json"} == files
    assert listed["format"] == tables.version_format()


@pytest.mark.parametrize("name", ["a b", "ä", "", "x" * 101, "a;b", "1a", "../a"])
def test_names_that_c_does_not_have_are_refused(name: str) -> None:
    with pytest.raises(PackError, match="cannot be a name in C"):
        tables.identifier(name)


def test_words_of_c_get_another_name() -> None:
    kernel = _add_kernel()
    kernel.names = {("int" if name == "x" else name): known for name, known in kernel.names.items()}
    for variant in kernel.variants:
        variant.parameters = {("int" if n == "x" else n): p for n, p in variant.parameters.items()}
    assert "foundry_array *int_," in tables.header("sums", [kernel])


@pytest.mark.parametrize(
    ("value", "text"), [(True, "True"), (256, "256"), (0.5, "0.5"), (None, "None"), ("relu", "'relu'"), (len, "len")]
)
def test_constants_have_the_text_of_python(value: Any, text: str) -> None:
    assert constant_text(value) == text


@pytest.mark.slow
def test_cmake_builds_tests_and_installs_a_package_that_programs_find(
    written: Path, device: Any, fake: Any, tmp_path: Path
) -> None:
    tmp_path = tmp_path / "a folder"
    place = shutil.copytree(written, tmp_path / "sums", ignore=shutil.ignore_patterns("lib", "bin", "__pycache__"))
    prefix, where = tmp_path / "first", {"LD_LIBRARY_PATH": str(Path(fake._name).parent), "PATH": "/usr/bin:/bin"}

    def run(*command: str, **more: str) -> str:
        done = subprocess.run(command, env={**where, **more}, capture_output=True, text=True, cwd=tmp_path, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    flags = "-DCMAKE_C_FLAGS=-Wall -Wextra -Werror"
    words = [flags, f"-DCMAKE_INSTALL_PREFIX={prefix}", "-DCMAKE_INSTALL_LIBDIR=lib/x86_64-linux-gnu"]
    run("cmake", "-S", str(place), "-B", "build", *words)
    run("cmake", "--build", "build")
    assert "100% tests passed" in run("ctest", "--test-dir", "build", "--output-on-failure")
    run("cmake", "--install", "build")
    prefix = prefix.rename(tmp_path / "moved")
    user = tmp_path / "user"
    user.mkdir()
    (user / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(user C)\nfind_package(sums 1.2.3 REQUIRED)\n"
        "add_executable(user user.c)\ntarget_link_libraries(user sums::sums)\n"
    )
    (user / "user.c").write_text(
        "#include <sums.h>\n#include <stdio.h>\nint main(void) { foundry_pack *pack;\n"
        'if (sums_open(NULL, "", &pack)) { puts(foundry_error()); return 1; }\n'
        "float x[3] = {1, 2, 3}, out[3] = {-1, -1, -1}; foundry_array *a, *b; const uint32_t grid[3] = {1, 1, 1};\n"
        "if (foundry_array_over(pack, FOUNDRY_FP32, 3, x, &a) || foundry_array_over(pack, FOUNDRY_FP32, 3, out, &b))\n"
        "return 1;\nif (add_launch(pack, grid, a, a, b, 3, 256)) { puts(foundry_error()); return 1; }\n"
        'foundry_array_release(a); foundry_array_release(b); printf("%g %g %g", out[0], out[1], out[2]);\n'
        "return foundry_close(pack); }\n"
    )
    run("cmake", "-S", str(user), "-B", "user/build", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", "user/build")
    assert run("user/build/user") == "2 4 6"
    (pc,) = prefix.rglob("sums.pc")
    known = run("pkg-config", "--cflags", "--libs", "sums", PKG_CONFIG_PATH=str(pc.parent))
    run("cc", str(user / "user.c"), *shlex.split(known), f"-Wl,-rpath,{pc.parent.parent}", "-o", "plain")
    assert run("./plain") == "2 4 6"


def test_the_example_finds_a_wrong_result(written: Path, device: Any, fake: Any, tmp_path: Path) -> None:
    place = shutil.copytree(written, tmp_path / "sums")
    where = {"LD_LIBRARY_PATH": str(Path(fake._name).parent)}
    command = [str(place / "bin" / "sums_example"), str(place)]
    good = subprocess.run(command, env=where, capture_output=True, text=True, check=False)
    assert (good.returncode, "0 of 1 recorded launches are wrong" in good.stdout) == (0, True), good.stderr
    recorded = place / "recorded" / "0.2.after"
    values = np.fromfile(recorded, np.float32)
    values[7] = np.nextafter(values[7], np.float32(np.inf))
    values.tofile(recorded)
    bad = subprocess.run(command, env=where, capture_output=True, text=True, check=False)
    assert bad.returncode == 1
    assert "1 of 1000 elements differ from recorded/0.2.after, the first at 7" in bad.stdout
    near = subprocess.run([*command, "", "1"], env=where, capture_output=True, text=True, check=False)
    assert near.returncode == 0


def test_nothing_is_left_when_a_program_closes(written: Path, device: Any) -> None:
    code = (
        "import ctypes, sys, numpy as np\n"
        f"fake = ctypes.CDLL({device._name!r}, ctypes.RTLD_GLOBAL)\n"
        f"sys.path.insert(0, {str(written / 'python')!r})\n"
        "import sums\nx = np.ones(256, np.float32)\n"
        "for shares in (1, 0):\n"
        "    sums.add[(1,)](x, x, x.copy(), 256, BLOCK=256)\n"
        "close = ctypes.CDLL(None)\n"
        "library = ctypes.CDLL(sums.__file__.rsplit('/', 3)[0] + '/lib/libsums.so')\n"
        "assert library.foundry_close_1(sums._library.pack) == 0\n"
        "print(ctypes.c_int.in_dll(fake, 'fake_objects').value)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "0", done.stdout + done.stderr
