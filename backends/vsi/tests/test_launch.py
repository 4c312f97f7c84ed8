"""Launches: a kernel's arguments, their order, and the command buffers after them; with a handwritten kernel."""

from __future__ import annotations

import hashlib
import struct
import types
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from foundry_core.codegen.tools import llvm_to_spirv
from foundry_core.runtime.launches import GridError
from foundry_core.runtime.opencl import DeviceError, MemoryMode, OpenCLDevice
from foundry_core.tensor import Tensor
from made_up import shared_library
from triton.runtime.cache import get_cache_manager
from triton_vsi_backend import devices, launcher, launches
from triton_vsi_backend.commands import Commands
from triton_vsi_backend.errors import VsiError

# Number of 64-bit words that each program's first work-item writes. The others only mark that they ran.
WORDS = 24
# Triton's types, in commands.c's order, and values for all of them except the two tensors.
TYPES = ["*i64", "i1", "fp16", "bf16", "i64", "fp32", "fp64", "*i32"]
SCALARS = (True, 1.5, -2.25, 2**40 + 7, 0.1, 1e300)
POISON = -(2**30)
COMMANDS = Path(__file__).with_name("commands.c").read_text()

# Four groups of parameters: the Triton function's, the grid, matmul's buffers, DMA's.
KERNEL = """
define spir_kernel void @probe(ptr addrspace(1) %out, i8 %flag, i16 %half, i16 %brain, i64 %big, float %single,
                               double %precise, ptr addrspace(1) %marks, i32 %gx, i32 %gy, i32 %gz,
                               ptr addrspace(1) %matmul0, ptr addrspace(1) %matmul1, ptr addrspace(1) %dma0) {
  %x = call spir_func i64 @_Z12get_group_idj(i32 0)
  %y = call spir_func i64 @_Z12get_group_idj(i32 1)
  %z = call spir_func i64 @_Z12get_group_idj(i32 2)
  %size = call spir_func i64 @_Z14get_local_sizej(i32 0)
  %item = call spir_func i64 @_Z12get_local_idj(i32 0)
  %gx64 = sext i32 %gx to i64
  %gy64 = sext i32 %gy to i64
  %gz64 = sext i32 %gz to i64
  %zy = mul i64 %z, %gy64
  %row = add i64 %zy, %y
  %rowx = mul i64 %row, %gx64
  %program = add i64 %rowx, %x
  %first_mark = mul i64 %program, %size
  %mark = add i64 %first_mark, %item
  %mark_at = getelementptr i32, ptr addrspace(1) %marks, i64 %mark
  %item32 = trunc i64 %item to i32
  store i32 %item32, ptr addrspace(1) %mark_at
  %is_first = icmp eq i64 %item, 0
  br i1 %is_first, label %tell, label %done
tell:
  %flag64 = sext i8 %flag to i64
  %half64 = zext i16 %half to i64
  %brain64 = zext i16 %brain to i64
  %single32 = bitcast float %single to i32
  %single64 = zext i32 %single32 to i64
  %precise64 = bitcast double %precise to i64
  %base = mul i64 %program, WORDS
  %to = getelementptr i64, ptr addrspace(1) %out, i64 %base
  %from = mul i64 %program, 32
BODY
  br label %done
done:
  ret void
}
declare spir_func i64 @_Z12get_group_idj(i32)
declare spir_func i64 @_Z14get_local_sizej(i32)
declare spir_func i64 @_Z12get_local_idj(i32)
"""


def probe() -> bytes:
    """Return the kernel's SPIR-V. It writes 10 words of arguments, local size, 3 words of position, 2 per command."""
    words = [f"%{name}64" for name in ("flag", "half", "brain")] + ["%big", "%single64", "%precise64"]
    words += ["%gx64", "%gy64", "%gz64", "%size", "%x", "%y", "%z"]
    body = []
    for buffer in ("matmul0", "matmul1", "dma0"):
        for word in (0, 1):
            index = f"%{buffer}.{word}"
            body += [
                f"  {index}.i = add i64 %from, {word}",
                f"  {index}.p = getelementptr i64, ptr addrspace(1) %{buffer}, i64 {index}.i",
                f"  {index} = load i64, ptr addrspace(1) {index}.p",
            ]
            words.append(index)
    for place, name in enumerate(words):
        body += [
            f"  %to.{place} = getelementptr i64, ptr addrspace(1) %to, i64 {place}",
            f"  store i64 {name}, ptr addrspace(1) %to.{place}",
        ]
    text = KERNEL.replace("WORDS", str(WORDS)).replace("BODY", "\n".join(body))
    return llvm_to_spirv(text)


@pytest.fixture(scope="module")
def spirv() -> bytes:
    return probe()


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shared_library(tmp_path_factory.mktemp("cmd_gen") / "commands.so", COMMANDS)


@pytest.fixture(params=list(MemoryMode))
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> OpenCLDevice:
    """Return a device that shares the host's memory, and one that does not and maps buffers."""
    opened = OpenCLDevice(devices.choose_device(), request.param)
    monkeypatch.setattr(launcher, "open_device", lambda: opened)
    return opened


class Kernel:
    """A compiled kernel in the form that Triton's runtime passes."""

    def __init__(self, device: OpenCLDevice, spirv: bytes, library: Path, folder: Path, *, threads: int = 1) -> None:
        names = [f"p{index}" for index in range(len(TYPES))]
        source = types.SimpleNamespace(name="probe", signature=dict(zip(names, TYPES, strict=True)), constants={})
        key = hashlib.sha256(str(folder).encode()).hexdigest()
        metadata = types.SimpleNamespace(
            name="probe",
            hash=key,
            threads=threads,
            num_warps=0,
            dump_standalone=False,
            written=None,
            addresses=False,
        )
        cache = get_cache_manager(metadata.hash)
        self.library = Path(cache.put(library.read_bytes(), "probe_cmd_gen.so", binary=True))
        self._function = device.build(spirv), "probe"
        self._launcher = launcher.VsiLauncher(source, metadata)

    def __call__(self, grid: tuple[int, int, int], *arguments: Any) -> None:
        self._launcher(*grid, 0, self._function, None, None, None, None, *arguments)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path


def arrays(grid: tuple[int, int, int], threads: int) -> tuple[np.ndarray, np.ndarray]:
    programs = grid[0] * grid[1] * grid[2]
    return np.full(programs * WORDS, POISON, np.int64), np.full((programs, threads), POISON, np.int32)


def bits(code: str, value: float) -> int:
    return int.from_bytes(struct.pack(f"<{code}", value), "little")


@pytest.mark.parametrize("threads", [1, 64])
def test_a_kernel_gets_its_parameters_the_grid_and_the_command_buffers_in_that_order(
    threads: int, device: OpenCLDevice, spirv: bytes, library: Path, cache: Path
) -> None:
    grid = (3, 2, 4)
    out, marks = arrays(grid, threads)
    Kernel(device, spirv, library, cache, threads=threads)(grid, Tensor(out), *SCALARS, Tensor(marks))
    z, y, x = (index.ravel() for index in np.indices(grid[::-1]))
    seen = out.reshape(-1, WORDS)
    scalars = [
        1,
        int(np.float16(1.5).view(np.uint16)),
        int(np.array(-2.25, ml_dtypes.bfloat16).view(np.uint16)),
        2**40 + 7,
        bits("f", 0.1),
        bits("d", 1e300),
    ]
    assert (seen[:, :10] == [*scalars, *grid, threads]).all()
    assert np.array_equal(seen[:, 10:13], np.stack([x, y, z], 1))
    # Two words of each buffer: its number, and its program's number.
    place = x + 10 * y + 100 * z
    for column, kind in ((13, 1000), (15, 1100), (17, 2000)):
        assert (seen[:, column] == kind).all()
        assert np.array_equal(seen[:, column + 1], place)
    assert (seen[:, 19:] == POISON).all()
    assert (marks == np.arange(threads)).all()
    assert launches.last() == ("probe", grid, threads, 2, 1, 3 * 24 * 256)


def test_the_library_is_asked_with_the_launchs_arguments(library: Path) -> None:
    commands = Commands(library, TYPES, most_bytes=1 << 20)
    out, marks = arrays((2, 1, 3), 5)
    buffers = commands.make((2, 1, 3), [Tensor(out), *SCALARS, Tensor(marks)])
    assert (commands.matmuls, commands.dmas, len(buffers)) == (2, 1, 3)
    for kind, buffer in zip((1000, 1100, 2000), buffers, strict=True):
        words = buffer.view(np.int64).reshape(6, 32)
        assert (words[:, 0] == kind).all()
        assert words[:, 1].tolist() == [0, 1, 100, 101, 200, 201]
        addresses = [Tensor(out).data_ptr(), Tensor(marks).data_ptr()]
        halves = [int(np.float16(1.5).view(np.uint16)), int(np.array(-2.25, ml_dtypes.bfloat16).view(np.uint16))]
        numbers = [2**40 + 7, bits("f", 0.1), bits("d", 1e300)]
        assert (words[:, 2:13] == [*addresses, 1, *halves, *numbers, out.size, 6, 5]).all()
        assert (words[:, 13:16] == ([2, 1, 3] if kind < 2000 else [0, 0, 0])).all()


def test_a_library_that_refuses_stops_the_launch(
    device: OpenCLDevice, spirv: bytes, library: Path, cache: Path
) -> None:
    out, marks = arrays((1, 1, 1), 1)
    kernel = Kernel(device, spirv, library, cache)
    with pytest.raises(VsiError, match="the commands of matmul 0 cannot be made"):
        kernel((1, 1, 1), Tensor(out), *SCALARS[:3], -1, *SCALARS[4:], Tensor(marks))
    assert (out == POISON).all()


def test_a_grid_with_more_commands_than_fit_a_buffer_is_refused_with_numbers(library: Path) -> None:
    commands = Commands(library, TYPES, most_bytes=1000)
    out, marks = arrays((1, 1, 1), 1)
    with pytest.raises(VsiError, match=r"2 x 2 x 1 programs.*\n.*1024 bytes.* 1000"):
        commands.make((2, 2, 1), [Tensor(out), *SCALARS, Tensor(marks)])


@pytest.mark.parametrize("grid", [(0, 1, 1), (2, 0, 1), (1, 1, 0)])
def test_an_empty_grid_launches_nothing(
    grid: tuple[int, int, int], device: OpenCLDevice, spirv: bytes, library: Path, cache: Path
) -> None:
    out, marks = arrays((1, 1, 1), 1)
    Kernel(device, spirv, library, cache)(grid, Tensor(out), *SCALARS, Tensor(marks))
    assert (out == POISON).all()
    assert (marks == POISON).all()


def test_a_grid_of_too_many_programs_is_refused(device: OpenCLDevice, spirv: bytes, library: Path, cache: Path) -> None:
    out, marks = arrays((1, 1, 1), 1)
    with pytest.raises(GridError, match="a launch can have 2147483647 programs"):
        Kernel(device, spirv, library, cache)((1, 2**31, 1), Tensor(out), *SCALARS, Tensor(marks))
    assert (out == POISON).all()


def test_more_work_items_than_the_device_can_have_are_refused(
    device: OpenCLDevice, spirv: bytes, library: Path, cache: Path
) -> None:
    most = device.cl.max_work_group_size
    out, marks = arrays((1, 1, 1), 1)
    with pytest.raises(DeviceError, match=f"{2 * most} work-items.*\n.*{most} on"):
        Kernel(device, spirv, library, cache, threads=2 * most)((1, 1, 1), Tensor(out), *SCALARS, Tensor(marks))


def test_views_start_anywhere(device: OpenCLDevice, spirv: bytes, library: Path, cache: Path) -> None:
    base, marks = np.full(3 + 2 * WORDS, POISON, np.int64), np.full((2, 1), POISON, np.int32)
    Kernel(device, spirv, library, cache)((2, 1, 1), Tensor(base[3:]), *SCALARS, Tensor(marks))
    assert (base[:3] == POISON).all()
    assert base[3:].reshape(2, WORDS)[:, 10].tolist() == [0, 1]


def test_a_library_that_is_gone_from_the_cache_is_missed_with_a_way_out(
    device: OpenCLDevice, spirv: bytes, library: Path, cache: Path
) -> None:
    kernel = Kernel(device, spirv, library, cache)
    kernel.library.unlink()
    out, marks = arrays((1, 1, 1), 1)
    with pytest.raises(VsiError, match=r"of kernel probe is gone(.|\n)*probe_cmd_gen.so\n.*TRITON_ALWAYS_COMPILE=1"):
        kernel((1, 1, 1), Tensor(out), *SCALARS, Tensor(marks))


@pytest.mark.parametrize(
    ("source", "why"), [("int other(void) { return 1; }", "get_matmul_num"), (None, "invalid ELF header|too short")]
)
def test_a_file_that_makes_no_commands_is_refused(source: str | None, why: str, tmp_path: Path) -> None:
    path = tmp_path / "other.so"
    if source is None:
        path.write_text("no library")
    else:
        shared_library(path, source)
    with pytest.raises(VsiError, match=f"does not make command buffers(.|\n)*({why})"):
        Commands(path, [], most_bytes=1)
