"""Dumped kernels, built with both documented lines, compared with NumPy."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import triton
import triton.language as tl
from foundry_core.tensor import Tensor
from made_up import shared_library
from results import check_product
from shared_kernels import matmul_2d, vec_add
from standalone_program import LINES, Program
from test_launch import COMMANDS, SCALARS, TYPES, WORDS, probe

BLOCK = 128
N = 1000
POISON = np.float32(-1e30)
# Triton 3.2 passes every float scalar as fp32.
HALVES = (np.float32, np.float32) if triton.__version__ < "3.3" else (np.float16, ml_dtypes.bfloat16)
MODES: dict[str, dict[str, Any]] = {
    "default": {},
    "tc": {"enable_tc": True},
    "threads": {"enable_multi_threads": True, "num_warps": 2},
    "tc-threads": {"enable_tc": True, "enable_multi_threads": True, "num_warps": 2},
}


@triton.jit
def widen(
    out_ptr,
    half_ptr,
    brain_ptr,
    bit_ptr,
    byte_ptr,
    long_ptr,
    flag: tl.int1,
    a: tl.int8,
    b: tl.int16,
    c,
    d: tl.int64,
    e: tl.float16,
    f: tl.bfloat16,
    g,
):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    at = out_ptr + 16 * ((z * tl.num_programs(1) + y) * tl.num_programs(0) + x)
    tl.store(at + 0, flag.to(tl.float32))
    tl.store(at + 1, a.to(tl.float32))
    tl.store(at + 2, b.to(tl.float32))
    tl.store(at + 3, c.to(tl.float32))
    tl.store(at + 4, e.to(tl.float32))
    tl.store(at + 5, f.to(tl.float32))
    tl.store(at + 6, g)
    tl.store(at + 7, tl.load(half_ptr).to(tl.float32))
    tl.store(at + 8, tl.load(brain_ptr).to(tl.float32))
    tl.store(at + 9, tl.load(bit_ptr).to(tl.float32))
    tl.store(at + 10, tl.load(byte_ptr).to(tl.float32))
    tl.store(at + 11, (x + 10 * y + 100 * z).to(tl.float32))
    tl.store(long_ptr, d)


Dumped = Callable[..., Path]


@pytest.fixture(scope="session")
def kernel_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return Triton's cache folder for a process, which keeps compiled kernels as long as it lives.

    pytest-xdist may leave this module for another one and return to it.
    """
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def dumped(kernel_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dumped]:
    """Yield `dumped(kernel, grid, *arguments, **options)`, which launches a kernel once and returns its folder."""
    folders: dict[str, Path] = {}

    def launch(kernel: Any, grid: tuple[int, ...], *arguments: Any, **options: Any) -> Path:
        key = repr([kernel.__name__, grid, sorted(options.items())])
        if key not in folders:
            patch.setenv("VSI_DUMP_DIR", str(tmp_path_factory.mktemp("dump")))
            kernel[grid](
                *(Tensor(value) if isinstance(value, np.ndarray) else value.item() for value in arguments),
                dump_standalone=True,
                **options,
            )
            folders[key] = Path(os.environ["VSI_DUMP_DIR"], kernel.__name__)
        return folders[key]

    with pytest.MonkeyPatch.context() as patch:
        for name in ("VSI_ENABLE_TC", "VSI_ENABLE_MULTI_ENGINES", "VSI_ENABLE_MULTI_THREADS"):
            patch.delenv(name, raising=False)
        patch.setenv("TRITON_CACHE_DIR", str(kernel_cache))
        yield launch


def program(folder: Path, tmp_path: Path, line: str = "libstdc++") -> Program:
    """Return a kernel's launcher. Its build must print nothing."""
    built = Program(Path(shutil.copytree(folder, tmp_path / folder.name)), tmp_path)
    assert built.build(line) == ""
    return built


def arguments(seed: int = 0) -> list[Any]:
    random = np.random.default_rng(seed)
    x, y = (random.standard_normal(N, np.float32) for _ in range(2))
    return [x, y, np.full(N, POISON), np.int32(N)]


@pytest.mark.parametrize(("mode", "line"), [*(("default", line) for line in LINES), ("threads", "libstdc++")])
def test_vec_add(mode: str, line: str, dumped: Dumped, tmp_path: Path) -> None:
    values = arguments()
    built = program(dumped(vec_add, (8,), *values, BLOCK=BLOCK, **MODES[mode]), tmp_path, line)
    values = arguments(1)
    built.launch(values, "-g", "8", "-d", "0")
    for index in range(2):
        assert np.array_equal(built.output(index), values[index])
    assert np.array_equal(built.output(2), values[0] + values[1])
    # A scalar's output file is not written.
    assert (tmp_path / "outputs/arg_3.npy").read_bytes() == b"old"


@pytest.mark.any_release
def test_a_tensor_that_lacks_elements_which_a_program_reaches_is_refused(dumped: Dumped, tmp_path: Path) -> None:
    values = arguments()
    built = program(dumped(vec_add, (8,), *values, BLOCK=BLOCK), tmp_path)
    built.take([values[0][:10], *values[1:]])
    message = built.refusal("-g", "8")
    assert "inputs/arg_0.npy: has 10 elements, and program 0,0,0 reads elements 0 to 127 of it" in message
    built.take([*values[:2], np.full(N - 1, POISON), values[3]])
    message = built.refusal("-g", "8")
    assert "inputs/arg_2.npy: has 999 elements, and program 7,0,0 writes elements 896 to 999 of it" in message
    # Fewer are enough for a smaller number, and for fewer programs.
    built.launch([values[0][:10], values[1][:10], np.full(10, POISON), np.int32(10)], "-g", "8")
    assert np.array_equal(built.output(2), values[0][:10] + values[1][:10])
    built.launch([*(array[:256] for array in values[:2]), np.full(256, POISON), values[3]], "-g", "2")
    assert np.array_equal(built.output(2), values[0][:256] + values[1][:256])


@pytest.mark.parametrize(("mode", "line"), [*((mode, "libstdc++") for mode in MODES), ("tc-threads", "libc++")])
def test_matmul(mode: str, line: str, dumped: Dumped, tmp_path: Path) -> None:
    M, N, K = 50, 70, 33
    random = np.random.default_rng(1)
    a, b = random.standard_normal((M, K), np.float32), random.standard_normal((K, N), np.float32)
    values = [a, b, np.full((M, N), POISON), np.int32(M), np.int32(N), np.int32(K)]
    built = program(dumped(matmul_2d, (4, 5), *values, BM=16, BN=16, BK=16, **MODES[mode]), tmp_path, line)
    values[2] = np.full((M, N), POISON)
    built.launch(values, "-g", "4,5")
    check_product(built.output(2), a, b)


def test_a_matmul_on_the_tensor_core_computes_by_its_commands(dumped: Dumped, tmp_path: Path) -> None:
    a = np.eye(16, dtype=np.float32)
    values = [a, a, np.full_like(a, POISON), np.int32(16), np.int32(16), np.int32(16)]
    built = program(dumped(matmul_2d, (1,), *values, BM=16, BN=16, BK=16, **MODES["tc"]), tmp_path)
    values[2] = np.full_like(a, POISON)
    built.launch(values, "-g", "1")
    assert np.array_equal(built.output(2), a)
    # The reference's kernel writes NaN for an invalid command.
    source = built.folder / "matmul_2d_standalone.cpp"
    spoilt = source.read_text().replace("        return made;\n", "        made[0] ^= 1;\n        return made;\n")
    assert spoilt != source.read_text()
    source.write_text(spoilt)
    built.build("libstdc++")
    built.launch(values, "-g", "1")
    assert np.isnan(built.output(2)).all()


@pytest.fixture(scope="module")
def widening(dumped: Dumped, tmp_path_factory: pytest.TempPathFactory) -> Program:
    return program(dumped(widen, (1,), *widen_arguments((1, 1, 1))), tmp_path_factory.mktemp("widen"))


def widen_arguments(grid: tuple[int, int, int]) -> list[Any]:
    return [
        np.full((grid[2], grid[1], grid[0], 16), POISON),
        np.full(1, 0.5, np.float16),
        np.full(1, -3.5, ml_dtypes.bfloat16),
        np.ones(1, np.bool_),
        np.full(1, -5, np.int8),
        np.full(1, -1, np.int64),
        np.bool_(True),
        np.int8(-7),
        np.int16(-30000),
        np.int32(1234567),
        np.int64(-(2**40) - 1),
        *(kind(value) for kind, value in zip(HALVES, (1.5, -2.25), strict=True)),
        np.float32(0.1),
    ]


@pytest.mark.any_release
def test_every_type_and_a_grid_of_three_dimensions(widening: Program) -> None:
    grid = (2, 3, 4)
    widening.launch(widen_arguments(grid), "-g", "2,3,4")
    seen = widening.output(0)
    assert (seen[..., :11] == [1, -7, -30000, 1234567, 1.5, -2.25, np.float32(0.1), 0.5, -3.5, 1, -5]).all()
    z, y, x = np.indices(grid[::-1])
    assert np.array_equal(seen[..., 11], x + 10 * y + 100 * z)
    assert (seen[..., 12:] == POISON).all()
    assert widening.output(5) == -(2**40) - 1


@pytest.mark.any_release
def test_bfloat16_may_be_a_file_of_its_bits(widening: Program) -> None:
    values = widen_arguments((1, 1, 1))
    values[2] = values[2].view(np.uint16)
    widening.launch(values, "-g", "1")
    assert widening.output(0)[0, 0, 0, 8] == -3.5
    assert widening.output(2).dtype == np.uint16


@pytest.mark.any_release
def test_false_arrives_as_false(widening: Program) -> None:
    values = widen_arguments((1, 1, 1))
    values[3], values[6] = np.zeros(1, np.bool_), np.bool_(False)
    widening.launch(values, "-g", "1")
    assert widening.output(0)[0, 0, 0, [0, 9]].tolist() == [0, 0]


@pytest.mark.any_release
@pytest.mark.parametrize("threads", [1, 64])
def test_arguments_grid_and_command_buffers_are_the_plugins(threads: int, tmp_path: Path) -> None:
    """This uses the kernel and the library of the plugin's own test, which record everything that they get."""
    library = shared_library(tmp_path / "commands.so", COMMANDS).read_bytes()
    program = Program.dump(
        tmp_path / "probe", tmp_path, parameters=TYPES, spirv=probe(), library=library, threads=threads
    )
    out, marks = np.full(24 * WORDS, -1), np.full((24, threads), -1, np.int32)
    kinds = (np.bool_, np.float16, ml_dtypes.bfloat16, np.int64, np.float32, np.float64)
    scalars = [kind(value) for kind, value in zip(kinds, SCALARS, strict=True)]
    program.launch([out, *scalars, marks], "-g", "3,2,4")
    seen = program.output(0).reshape(-1, WORDS)
    bits = [int.from_bytes(scalar.tobytes(), "little") for scalar in scalars]
    assert (seen[:, :10] == [*bits, 3, 2, 4, threads]).all()
    z, y, x = (index.ravel() for index in np.indices((4, 2, 3)))
    assert np.array_equal(seen[:, 10:13], np.stack([x, y, z], 1))
    for column, kind in ((13, 1000), (15, 1100), (17, 2000)):
        assert (seen[:, column] == kind).all()
        assert np.array_equal(seen[:, column + 1], x + 10 * y + 100 * z)
    assert (program.output(7) == np.arange(threads)).all()
    # commands.c refuses this argument.
    program.take([out, *scalars[:3], np.int64(-1), *scalars[4:], marks])
    message = program.refusal("-g", "1")
    assert "probe_cmd_gen.so: generate_matmul_command refused command 0" in message


@pytest.mark.any_release
@pytest.mark.parametrize("compiler", ["clang++ -stdlib=libstdc++", "clang++ -stdlib=libc++"])
def test_the_source_has_no_warnings(compiler: str, widening: Program) -> None:
    done = subprocess.run(
        f"{compiler} -std=c++17 -fsyntax-only -Wall -Wextra -Wpedantic -Wconversion -Werror -I include "
        "widen_standalone.cpp",
        shell=True,
        cwd=widening.folder,
        env=os.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
