"""Launches on DPUs: any number of DPUs, valid arguments, what is sharded, and the results."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import launch_cases
import numpy as np
import pytest
import triton
import triton.language as tl
import triton_dpu_backend
from foundry_core.checked.findings import CheckError
from foundry_core.profile.recording import recording
from foundry_core.runtime.device_report import Kind
from foundry_core.tensor import Tensor
from launch_cases import BLOCK, LaunchCases, integers
from results import check_product, poisoned
from shared_kernels import matmul, place_kernel, scale_kernel, vec_add
from triton.runtime import driver
from triton_dpu_backend.host.errors import DpuError, fault
from triton_dpu_backend.launcher import pool
from triton_dpu_backend.launches import profile

rng = np.random.default_rng(0)


@triton.jit
def columns_kernel(x_ptr, out_ptr, rows, stride, ROWS: tl.constexpr):
    """Each program writes a column: the elements that two programs write are adjacent."""
    i = tl.arange(0, ROWS)
    at = i * stride + tl.program_id(0)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=i < rows) + 1, mask=i < rows)


@triton.jit
def every_other_kernel(out_ptr, n, BLOCK: tl.constexpr):
    offsets = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)) * 2
    tl.store(out_ptr + offsets, offsets, mask=offsets < n)


@triton.jit
def gather_kernel(x_ptr, index_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + tl.load(index_ptr + offsets, mask=mask, other=0), mask=mask), mask=mask)


@triton.jit
def moved_kernel(x_ptr, start_ptr, out_ptr, to_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    value = tl.load(x_ptr + tl.load(start_ptr + tl.program_id(0)) + offsets)
    tl.store(out_ptr + tl.load(to_ptr + tl.program_id(0)) + offsets, tl.exp(value))


class TestLaunches(LaunchCases):
    stages: ClassVar[list[str]] = ["ttir", "tile", "mlir", "llir", "dpu"]
    tool, reads_kernels, turns = "dpu-upmem-dpurte-clang", True, 5

    @pytest.fixture(autouse=True, params=[1, 7])
    def dpus(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
        """Run a test on several numbers of DPUs. With the option num_dpus, each number compiles the kernel again."""
        monkeypatch.setenv("TRITON_DPU_NUM_DPUS", str(request.param))

    def options(self, number: int) -> dict[str, Any]:
        return {"num_dpus": 1 + number % 2}


def add(x: Any, y: Any, out: Any, n: int, **options: Any) -> triton_dpu_backend.LaunchCost:
    with triton_dpu_backend.profile() as launches:
        launch_cases.add(x, y, out, n, **options)
    (launch,) = launches
    return launch


def operands(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return two arrays, and poisoned memory for their sum."""
    return integers(n), integers(n), poisoned(n, dtype=np.int32)


# ---- Any number of DPUs ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dpus", [*range(1, 18), 31, 32, 33, 47, 63, 64])
def test_vec_add_on_any_number_of_dpus(dpus: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_DPU_NUM_DPUS", str(dpus))
    for n in (64 * BLOCK, 64 * BLOCK - 1, 65 * BLOCK + 7, 1000):
        x, y, out = integers(n), integers(n), poisoned(n + 8, dtype=np.int32)
        launch = add(x, y, out[:n], n)
        assert np.array_equal(out[:n], x + y)
        assert (out[n:] == 0x5A5A5A5A).all()
        assert launch.dpus == min(dpus, launch.programs)


@pytest.mark.parametrize("dpus", [1, 2, 3, 5, 8, 16, 27, 64])
def test_matmul_on_any_number_of_dpus(dpus: int) -> None:
    m, n, k = 70, 50, 33
    a, b, c = rng.standard_normal((m, k)).astype("f"), rng.standard_normal((k, n)).astype("f"), poisoned(m, n)
    grid = (triton.cdiv(m, 16) * triton.cdiv(n, 16),)
    matmul[grid](Tensor(a), Tensor(b), Tensor(c), m, n, k, k, n, n, BM=16, BN=16, BK=16, GROUP=2, num_dpus=dpus)
    check_product(c, a, b)


def test_launch_chooses_the_number_of_dpus() -> None:
    x, y, out = operands(2000 * BLOCK)
    for n, dpus in ((1, 1), (11 * BLOCK, 1), (12 * BLOCK, 2), (2000 * BLOCK, 64)):
        assert add(x, y, out, n).dpus == dpus
        assert np.array_equal(out[:n], (x + y)[:n])


def test_never_more_dpus_than_programs() -> None:
    out = np.full((4, 3, 2), -1, np.int32)
    place_kernel[(2, 3, 4)](Tensor(out), num_dpus=64)
    assert driver.active.last_launch.dpus == 24
    z, y, x = np.indices(out.shape)
    assert np.array_equal(out, x + 10 * y + 100 * z)


def test_an_empty_grid_costs_nothing() -> None:
    with triton_dpu_backend.profile() as launches:
        place_kernel[(2, 0)](Tensor(np.full(4, -1, np.int32)))
    assert not launches


# ---- What sets the number of DPUs -----------------------------------------------------------------------------------


def test_the_launch_says_how_many_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_DPU_NUM_DPUS", "3")
    x, y, out = operands(500)
    assert add(x, y, out, 500).dpus == 3
    assert add(x, y, out, 500, num_dpus=5).dpus == 5


def test_the_script_says_how_many_and_does_not_fight_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y, out = operands(500)
    add(x, y, out, 500)  # from here on the launcher exists
    monkeypatch.setitem(vec_add.fn.__globals__, "TRITON_DPU_NUM_DPUS", 4)
    assert add(x, y, out, 500).dpus == 4
    assert add(x, y, out, 500, num_dpus=2).dpus == 2
    monkeypatch.setenv("TRITON_DPU_NUM_DPUS", "3")
    with pytest.raises(DpuError, match="two numbers of DPUs"):
        add(x, y, out, 500)


@pytest.mark.parametrize("number", ["0", "-1", "2.5", "many", "2561"])
def test_invalid_number_of_dpus_in_the_environment_is_refused(number: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_DPU_NUM_DPUS", number)
    with pytest.raises(DpuError, match=f"TRITON_DPU_NUM_DPUS='?{number}'? .* from 1 to 2560"):
        add(*operands(64), 64)


@pytest.mark.parametrize("number", [0, -1, 2.5, True, "4", 2561, np.float32(4), np.bool_(True)])
def test_launch_and_script_refuse_an_invalid_number_of_dpus(number: object) -> None:
    x, y, out = operands(64)
    with pytest.raises(ValueError, match=r"num_dpus=.* is not allowed: give an integer from 1 to 2560"):
        add(x, y, out, 64, num_dpus=number)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(vec_add.fn.__globals__, "TRITON_DPU_NUM_DPUS", number)
        vec_add.device_caches.clear()
        try:
            with pytest.raises(DpuError, match=r"TRITON_DPU_NUM_DPUS in the script=.* from 1 to 2560"):
                add(x, y, out, 64)
        finally:
            vec_add.device_caches.clear()


def test_numpys_integers_say_how_many_dpus_and_a_small_machine_refuses_more(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y, out = operands(500)
    assert add(x, y, out, 500, num_dpus=np.int64(5)).dpus == 5
    assert np.array_equal(out, x + y)
    pool.clear()  # DPUs that are kept for later launches
    monkeypatch.setenv("DPU_EMULATOR_NR_DPUS", "2")
    with pytest.raises(DpuError, match="8 DPUs cannot be allocated"):  # one for each program
        add(x, y, out, 500, num_dpus=15)


def test_autotune_compares_numbers_of_dpus_by_modelled_cycles() -> None:
    configs = [triton.Config({"BLOCK": 32, "num_dpus": dpus}) for dpus in (1, 4)]
    tuned = triton.autotune(configs, key=["n"])(vec_add)
    n = 4096
    x, y, out = operands(n)
    with triton_dpu_backend.profile() as launches:
        tuned[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](Tensor(x), Tensor(y), Tensor(out), n)
    assert np.array_equal(out, x + y)
    assert {launch.dpus for launch in launches} == {1, 4}
    assert tuned.best_config.kwargs["num_dpus"] == 4
    assert launches[-1].dpus == 4


def test_a_config_carries_num_dpus() -> None:
    if "+foundry." not in triton.__version__:
        pytest.skip("a Config that takes num_dpus is one of this project's patches to Triton")
    tuned = triton.autotune([triton.Config({"BLOCK": 32}, num_dpus=6)], key=["n"])(vec_add)
    x, y, out = operands(1000)
    tuned[lambda meta: (triton.cdiv(1000, meta["BLOCK"]),)](Tensor(x), Tensor(y), Tensor(out), 1000)
    assert np.array_equal(out, x + y)
    assert driver.active.last_launch.dpus == 6
    with pytest.raises(ValueError, match="given twice: num_dpus"):
        triton.Config({"num_dpus": 3}, num_dpus=6)
    with pytest.raises(TypeError, match="num_dpus"):
        tuned[lambda meta: (32,)](Tensor(x), Tensor(y), Tensor(out), 1000, num_dpus=2)


# ---- Valid arguments ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dtype", [np.int8, np.int16, np.int32, np.int64, np.uint32, np.float16, np.float32, np.float64]
)
def test_element_types(dtype: Any) -> None:
    n = 999
    x, y = (rng.integers(-50, 50, n).astype(dtype) for _ in range(2))
    out = np.full(n, 77, dtype)
    add(x, y, out, n, num_dpus=5)
    assert np.array_equal(out, x + y)


@pytest.mark.parametrize("dpus", [1, 3, 8])
def test_outputs_whose_elements_alternate_between_dpus_are_merged(dpus: int) -> None:
    x, out = integers(24 * 20).reshape(24, 20), poisoned(24, 20, dtype=np.int32)
    columns_kernel[(20,)](Tensor(x), Tensor(out), 24, 20, ROWS=32, num_dpus=dpus)
    assert np.array_equal(out, x + 1)


@pytest.mark.parametrize("dpus", [1, 4])
def test_elements_that_are_not_written_keep_their_values(dpus: int) -> None:
    out = poisoned(1000, dtype=np.int32)
    every_other_kernel[(triton.cdiv(500, 32),)](Tensor(out), 1000, BLOCK=32, num_dpus=dpus)
    assert np.array_equal(out[::2], np.arange(0, 1000, 2))
    assert (out[1::2] == 0x5A5A5A5A).all()


@pytest.mark.parametrize("dpus", [1, 4])
def test_a_gather_finds_all_of_its_source(dpus: int) -> None:
    x, index, out = integers(300), rng.integers(0, 300, 1000).astype(np.int32), poisoned(1000, dtype=np.int32)
    gather_kernel[(triton.cdiv(1000, BLOCK),)](Tensor(x), Tensor(index), Tensor(out), 1000, BLOCK=BLOCK, num_dpus=dpus)
    assert np.array_equal(out, x[index])


def test_a_program_is_never_there_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads load the same program: one may launch it while the other one writes it."""
    paths: list[Path] = []
    write = Path.write_bytes

    def noted(path: Path, data: bytes) -> int:
        paths.append(path)
        return write(path, data)

    monkeypatch.setattr(Path, "write_bytes", noted)
    utils = driver.active.utils
    (program, *_), (again, *_) = (utils.load_binary("twice", b"a program", 0, 0) for _ in range(2))
    assert program.path == again.path
    assert paths and program.path not in paths
    assert program.path.read_bytes() == b"a program"


@triton.jit
def turned_kernel(x_ptr, out_ptr, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    j = tl.arange(0, COLUMNS)[None, :]
    inside = (i < rows) & (j < columns)
    tl.store(out_ptr + j * rows + i, tl.load(x_ptr + i * columns + j, mask=inside) + 1, mask=inside)


@pytest.mark.parametrize("dtype", [np.int8, np.int32])
def test_transposed_tile_moves_by_rows_in_both_directions(dtype: Any) -> None:
    x = rng.integers(-50, 50, (100, 60)).astype(dtype)
    out = np.full((60, 100), 0x5A, dtype)
    with triton_dpu_backend.profile() as launches:
        turned_kernel[(7,)](Tensor(x), Tensor(out), 100, 60, ROWS=16, COLUMNS=64, num_dpus=1)
    assert np.array_equal(out, x.T + 1)
    # A row of the source, and a row of the result in each of 7 programs, with the words at its ends.
    transfers = launches[0].dma_transfers
    assert transfers is not None and transfers <= 100 + 7 * 60 * 5


# ---- Arrays larger than one memory -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dpus", [1, 3])
def test_arrays_larger_than_mram_take_several_rounds(dpus: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_DPU_MRAM_BYTES", "16384")
    n = 20_000
    x, y, out = operands(n)
    launch = add(x, y, out, n, num_dpus=dpus)
    assert np.array_equal(out, x + y)
    assert launch.rounds >= 12 * n // (16384 * dpus)


def test_a_matmul_larger_than_mram_takes_several_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_DPU_MRAM_BYTES", "20000")
    m, n, k = 128, 32, 64
    a, b, c = rng.standard_normal((m, k)).astype("f"), rng.standard_normal((k, n)).astype("f"), poisoned(m, n)
    with triton_dpu_backend.profile() as launches:
        matmul[(16,)](Tensor(a), Tensor(b), Tensor(c), m, n, k, k, n, n, BM=16, BN=16, BK=16, GROUP=1, num_dpus=2)
    check_product(c, a, b)
    assert launches[0].rounds > 1


def test_an_array_that_no_mram_holds_is_refused_with_the_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_DPU_MRAM_BYTES", "4096")
    x, index, out = integers(2000), rng.integers(0, 2000, 64).astype(np.int32), poisoned(64, dtype=np.int32)
    with pytest.raises(DpuError, match=r"one program alone needs \d+ bytes of MRAM, a DPU has room for \d+: x_ptr 80"):
        gather_kernel[(1,)](Tensor(x), Tensor(index), Tensor(out), 64, BLOCK=BLOCK)
    assert (out == 0x5A5A5A5A).all()


# ---- Reports --------------------------------------------------------------------------------------------------------


def test_verbose_says_what_is_sharded_and_why(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRITON_DPU_VERBOSE", "1")
    x, index, out = integers(300), rng.integers(0, 300, 1000).astype(np.int32), poisoned(1000, dtype=np.int32)
    gather_kernel[(16,)](Tensor(x), Tensor(index), Tensor(out), 1000, BLOCK=BLOCK, num_dpus=4)
    output = capfd.readouterr().err
    assert "grid (16, 1, 1) on 4 DPUs (num_dpus of the launch) x " in output
    assert "x_ptr: replicated, its addresses depend on more than program ids and integer arguments" in output
    assert "index_ptr: sharded, its addresses follow the program ids; up to 1024 bytes a DPU, sent" in output
    assert "out_ptr: sharded, its addresses follow the program ids; up to 1024 bytes a DPU, received" in output


def test_the_environment_overrides_what_is_sharded(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRITON_DPU_VERBOSE", "1")
    monkeypatch.setenv("TRITON_DPU_SHARD", "x=replicated,out=replicated,of_another_kernel=sharded")
    x, y, out = operands(1000)
    add(x, y, out, 1000, num_dpus=4)
    assert np.array_equal(out, x + y)
    output = capfd.readouterr().err
    assert "x: replicated, as asked; up to 4000 bytes a DPU" in output
    assert "y: sharded" in output
    assert "out: replicated, as asked; up to 4000 bytes a DPU, sent and received" in output


def test_impossible_shard_override_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    x, index, out = integers(300), np.zeros(64, np.int32), poisoned(64, dtype=np.int32)
    monkeypatch.setenv("TRITON_DPU_SHARD", "x_ptr=sharded")
    with pytest.raises(DpuError, match="x_ptr cannot be sharded"):
        gather_kernel[(1,)](Tensor(x), Tensor(index), Tensor(out), 64, BLOCK=BLOCK)
    monkeypatch.setenv("TRITON_DPU_SHARD", "x_ptr=everywhere")
    with pytest.raises(DpuError, match="is not NAME=sharded or NAME=replicated"):
        gather_kernel[(1,)](Tensor(x), Tensor(index), Tensor(out), 64, BLOCK=BLOCK)


def test_cycles_of_a_launch_are_modelled_and_the_same_each_time() -> None:
    if driver.active.device_report().kind is not Kind.EMULATOR:
        pytest.skip("only the emulator has a model of cycles")
    x, y, out = operands(4096)
    first, second = (add(x, y, out, 4096, num_dpus=4) for _ in range(2))
    assert first.cycles == second.cycles
    assert first.cycles is not None and first.cycles > 0
    assert first.dma_read_bytes is not None and first.dma_read_bytes >= 2 * 4 * 4096
    assert first.dma_write_bytes is not None and first.dma_write_bytes >= 4 * 4096
    assert first.sent_bytes == 2 * 4 * 4096
    assert first.received_bytes == 4 * 4096
    assert "modelled" in str(first)
    assert driver.active.last_launch == second


def test_reports_say_what_ran() -> None:
    add(*operands(1000), 1000, num_dpus=3)
    ran = driver.active.device_report()
    assert "UPMEM v1A, 3 DPUs" in ran.device
    assert (ran.kind is Kind.EMULATOR) == ("modelled" in ran.device)


def test_a_fault_says_which_dpu_and_why_and_the_next_launch_works() -> None:
    x, index, out = integers(300), np.zeros(256, np.int32), poisoned(256, dtype=np.int32)
    index[200] = 2**28  # bytes beyond any MRAM
    with pytest.raises(DpuError, match=r"(?s)kernel gather_kernel crashed at .*DPU 3") as raised:
        gather_kernel[(4,)](Tensor(x), Tensor(index), Tensor(out), 256, BLOCK=BLOCK, num_dpus=4)
    assert any("gather_kernel" in note for note in raised.value.__notes__)
    index[200] = 7
    gather_kernel[(4,)](Tensor(x), Tensor(index), Tensor(out), 256, BLOCK=BLOCK, num_dpus=4)
    assert np.array_equal(out, x[index])


@pytest.mark.parametrize(("bad", "line"), [("start", "value = tl.load"), ("to", "tl.store(out_ptr + tl.load(to_ptr")])
def test_a_fault_names_the_line_of_the_access_and_not_that_of_its_use(bad: str, line: str) -> None:
    x, out = np.ones(512, np.float32), np.zeros(512, np.float32)
    places = {name: np.arange(4, dtype=np.int32) * BLOCK for name in ("start", "to")}
    places[bad][2] = 2**28
    with pytest.raises(DpuError) as raised:
        moved_kernel[(4,)](*map(Tensor, (x, places["start"], out, places["to"])), BLOCK=BLOCK, num_dpus=1)
    lines = Path(__file__).read_text().splitlines()
    number = next(at for at, text in enumerate(lines, 1) if text.strip().startswith(line))
    assert str(raised.value).splitlines()[0] == f"kernel moved_kernel crashed at {__file__}:{number}"


@triton.jit
def store_twice_kernel(out, FIRST: tl.constexpr, PER: tl.constexpr, MORE: tl.constexpr):
    first = FIRST + tl.program_id(0) * PER
    i = first + tl.arange(0, 256)
    tl.store(out + i, i)
    tl.store(out + first + MORE, -tl.program_id(0))


@pytest.mark.parametrize("dpus", [1, 2, 5])
@pytest.mark.parametrize("mram", ["", "6000"])
def test_programs_that_store_different_values_to_one_element_are_reported_wherever_they_run(
    dpus: int, mram: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # With little MRAM, each program of a DPU runs in a round of its own.
    monkeypatch.setenv("TRITON_DPU_MRAM_BYTES", mram)
    monkeypatch.setenv("FOUNDRY_PRINT_LINES", "0")
    out = np.full(5 * 257, 7, np.int32)
    store_twice_kernel[(5,)](Tensor(out), FIRST=0, PER=257, MORE=256, num_dpus=dpus, check=True)
    assert out.tolist() == [-(i // 257) if i % 257 == 256 else i for i in range(out.size)]
    # Each program stores to an element of the next one, forwards and, by negative indices, backwards.
    for sign, array, first, more in ((1, out, 0, 256), (-1, out[:1281][::-1], -255, -1)):
        with pytest.raises(CheckError) as raised, profile() as launches:
            store_twice_kernel[(5,)](Tensor(array), FIRST=first, PER=sign * 256, MORE=more, num_dpus=dpus, check=True)
        assert (launches[0].dpus, launches[0].rounds) == (dpus, -(-5 // dpus) if mram else 1)
        conflicts = {(finding.index, frozenset([finding.program, finding.other])) for finding in raised.value.findings}
        assert conflicts == {(sign * 256 * (n + 1), frozenset([(n, 0, 0), (n + 1, 0, 0)])) for n in range(4)}
        assert {finding.kind for finding in raised.value.findings} == {"conflict"}


@triton.jit
def count_kernel(out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, i)


def test_a_kernel_that_leaves_no_room_to_compare_its_stores_has_all_other_checks_and_says_so(
    capfd: pytest.CaptureFixture[str],
) -> None:
    size = 2 * 16384 - 5
    out = np.full(size, -1, np.int32)
    with pytest.raises(CheckError) as raised:
        count_kernel[(2,)](Tensor(out), BLOCK=16384, check=True)
    assert [(finding.kind, finding.index) for finding in raised.value.findings] == [("outside", size)]
    assert np.array_equal(out, np.arange(size))
    output = capfd.readouterr().err
    assert "kernel count_kernel: " in output and "has no room to compare what several programs write here" in output


def test_a_stack_that_is_too_small_names_the_option_that_makes_it_larger() -> None:
    output = "DPU 0: tasklet 0: stack overflow: an access at 0x2001fff8, 8 bytes below the stack (code 0x4000b101)"
    error = str(fault("deep_kernel", output, None))
    assert error.splitlines()[0] == "kernel deep_kernel crashed at an unknown line"
    assert "num_tasklets=8" in error and "FOUNDRY_CHECK" not in error


def test_a_profile_shows_what_each_line_costs_and_changes_no_figure() -> None:
    x, out = np.ones(512, np.float32), np.zeros(512, np.float32)
    places = np.arange(4, dtype=np.int32) * BLOCK
    with profile() as launches:
        moved_kernel[(4,)](*map(Tensor, (x, places, out, places)), BLOCK=BLOCK, num_dpus=2)
        with recording():
            moved_kernel[(4,)](*map(Tensor, (x, places, out, places)), BLOCK=BLOCK, num_dpus=2)
    plain, counted = launches
    figures = ("cycles", "instructions", "dma_read_bytes", "dma_write_bytes", "dma_transfers", "dma_cycles")
    assert [getattr(plain, name) for name in figures] == [getattr(counted, name) for name in figures]
    assert plain.lines == {}
    texts = Path(__file__).read_text().splitlines()
    lines = {texts[int(place.rpartition(":")[2]) - 1].strip()[:9]: cost for place, cost in counted.lines.items()}
    load, store = lines["value = t"], lines["tl.store("]
    # exp, a function of the program, is its line's. Each line reads an index in each program, and moves the elements.
    assert store.instructions > 4 * BLOCK * 100 > load.instructions > 0
    busy = 34 + 4 * BLOCK / 2
    assert 4 * busy <= load.dma_cycles and 4 * busy <= store.dma_cycles
    assert counted.instructions is not None
    assert 0.99 * counted.instructions < sum(cost.instructions for cost in lines.values()) < counted.instructions


def test_dpus_are_kept_for_the_next_launch_and_programs_with_them() -> None:
    x, y, out = operands(1000)
    add(x, y, out, 1000, num_dpus=3)
    kept = pool.get(3)
    add(x, y, out, 1000, num_dpus=3)
    assert pool.get(3) is kept
    scale_kernel[(16,)](Tensor(x), Tensor(out), 1000, -2, BLOCK=BLOCK, num_dpus=3)
    assert np.array_equal(out, -2 * x)
    add(x, y, out, 1000, num_dpus=3)
    assert np.array_equal(out, x + y)


@triton.jit
def spins(out, n, USED: tl.constexpr):
    k = n
    while k > 0:
        k = k | 1
    tl.store(out, k if USED else 7)


@pytest.mark.parametrize("used", [True, False])
def test_a_loop_that_never_ends_runs_into_the_limit(used: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPU_EMULATOR_MAX_CYCLES", "1000000")
    out = np.full(1, -1, np.int32)
    with pytest.raises(DpuError, match="DPU_EMULATOR_MAX_CYCLES"):
        spins[(1,)](Tensor(out), 2, USED=used)
    assert out.tolist() == [-1]
    spins[(1,)](Tensor(out), 0, USED=used)
    assert out.tolist() == [0 if used else 7]
