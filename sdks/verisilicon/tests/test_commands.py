"""The command library gives each program the bytes that zen_tc_place gives, through its C interface, and no more."""

from __future__ import annotations

import ctypes
import itertools
import subprocess
from pathlib import Path

import pytest
from zen_compiler import commands
from zen_compiler.bridge import Bridge, Matmul

# Poison before, behind, and in place of commands; a guard is not a whole number of commands long.
POISON, GUARD = b"\xa5", 1000
# A C type and a value, that must not matter, for every type of a parameter; more floats than registers, and more of
# the rest.
SCALARS = {
    "i1": (ctypes.c_bool, True),
    "i8": (ctypes.c_int8, -7),
    "i16": (ctypes.c_int16, -300),
    "i32": (ctypes.c_int32, -70000),
    "i64": (ctypes.c_int64, -(2**40)),
    "f16": (ctypes.c_uint16, 0x3C00),
    "bf16": (ctypes.c_uint16, 0x3F80),
    "f32": (ctypes.c_float, 1.5),
    "f64": (ctypes.c_double, -2.5),
}
PARAMETERS = {
    "no parameters": (),
    "pointers": ("ptr", "ptr", "ptr", "i32"),
    "one of each": ("ptr", *SCALARS),
    "many": ("f64", "ptr", "f32", "i8") * 6,
}
GRIDS = [(1, 1, 1), (5, 1, 1), (1, 4, 1), (1, 1, 3), (4, 3, 2), (2, 3, 4), (17, 5, 3)]


@pytest.fixture(scope="module")
def templates(bridge: Bridge) -> list[bytes]:
    shapes = [(16, 16, 8), (64, 32, 128), (1, 1, 1)]
    return [bridge.encode(Matmul(m, n, k, (k, 1), (n, 1), (n, 1)), i) for i, (m, n, k) in enumerate(shapes)]


def built(parameters: tuple[str, ...], templates: list[bytes], bridge: Bridge, folder: Path) -> Path:
    fields = {name: bridge.field(name) for name in ("grid", "program", "checksum")}
    folder.mkdir(exist_ok=True)
    path = folder / "kernel_cmd_gen.so"
    path.write_bytes(commands.compile(commands.source(parameters, templates, fields), folder))
    return path


@pytest.fixture(scope="module", params=PARAMETERS)
def library(
    request: pytest.FixtureRequest, bridge: Bridge, templates: list[bytes], tmp_path_factory: pytest.TempPathFactory
) -> Library:
    parameters = PARAMETERS[request.param]
    return Library(built(parameters, templates, bridge, tmp_path_factory.mktemp("library")), parameters)


class Library:
    """A command library as a launcher calls it."""

    def __init__(self, path: Path, parameters: tuple[str, ...]) -> None:
        self.c = ctypes.CDLL(str(path))
        self.parameters = parameters
        for name in ("get_matmul_num", "get_dma_num"):
            getattr(self.c, name).argtypes, getattr(self.c, name).restype = [], ctypes.c_size_t
        types = [ctypes.c_void_p if kind == "ptr" else SCALARS[kind][0] for kind in parameters]
        shapes = [ctypes.c_void_p] * parameters.count("ptr")
        common = [*types, *[ctypes.c_int] * 3, *shapes, ctypes.c_void_p]
        self.c.generate_matmul_command.argtypes = [ctypes.c_size_t, ctypes.c_void_p, *common]
        self.c.generate_dma_command.argtypes = [ctypes.c_size_t, *common]
        self.c.generate_matmul_command.restype = self.c.generate_dma_command.restype = ctypes.c_bool

    def matmul(
        self, index: int, grid: tuple[int, int, int], ints: tuple[int, int, int] | None = None
    ) -> tuple[bool, bytes]:
        """What is returned, and the memory after: a guard, the commands, a guard, all poisoned before."""
        out = self._out(grid)
        # Pointers are passed and never followed: no memory is there.
        succeeded = self.c.generate_matmul_command(
            index, (ctypes.c_size_t * 3)(*grid), *self._common(ints or grid), ctypes.addressof(out) + GUARD
        )
        return succeeded, bytes(out)

    def dma(self, index: int, grid: tuple[int, int, int]) -> tuple[bool, bytes]:
        out = self._out(grid)
        return self.c.generate_dma_command(index, *self._common(grid), ctypes.addressof(out) + GUARD), bytes(out)

    @staticmethod
    def _out(grid: tuple[int, int, int]) -> ctypes.Array[ctypes.c_char]:
        size = 256 * max(grid[0] * grid[1] * grid[2], 1) + 2 * GUARD
        return (ctypes.c_char * size).from_buffer_copy(POISON * size)

    def _common(self, ints: tuple[int, int, int]) -> list[object]:
        values: list[object] = [16 if kind == "ptr" else SCALARS[kind][1] for kind in self.parameters]
        return [*values, *ints, *[32] * self.parameters.count("ptr")]


@pytest.mark.parametrize("grid", GRIDS)
def test_each_program_gets_the_command_that_the_bridge_places_and_no_byte_more(
    library: Library, bridge: Bridge, templates: list[bytes], grid: tuple[int, int, int]
) -> None:
    for index, template in enumerate(templates):
        succeeded, memory = library.matmul(index, grid)
        assert succeeded is True
        gx, gy, gz = grid
        expected = b"".join(
            bridge.place(template, grid, (x, y, z)) for z, y, x in itertools.product(range(gz), range(gy), range(gx))
        )
        assert memory == POISON * GUARD + expected + POISON * GUARD


def test_it_counts_its_commands(library: Library, templates: list[bytes]) -> None:
    assert library.c.get_matmul_num() == len(templates)
    assert library.c.get_dma_num() == 0


@pytest.mark.parametrize("index", [3, 4, 2**32, 2**64 - 1])
def test_an_index_beyond_the_last_is_refused_and_nothing_written(library: Library, index: int) -> None:
    succeeded, memory = library.matmul(index, (2, 2, 2))
    assert succeeded is False
    assert set(memory) == set(POISON)


@pytest.mark.parametrize("index", [0, 1, 2**64 - 1])
def test_there_are_no_dma_commands(library: Library, index: int) -> None:
    succeeded, memory = library.dma(index, (2, 2, 2))
    assert succeeded is False
    assert set(memory) == set(POISON)


@pytest.mark.parametrize("axis", range(3))
def test_two_grids_that_differ_are_refused_and_nothing_written(library: Library, axis: int) -> None:
    for other in (1, 5, -4, 2**31 - 1):
        ints = [4, 4, 4]
        ints[axis] = other
        succeeded, memory = library.matmul(0, (4, 4, 4), (ints[0], ints[1], ints[2]))
        assert succeeded is False
        assert set(memory) == set(POISON)


@pytest.mark.parametrize("grid", [(0, 1, 1), (1, 0, 1), (1, 1, 0), (0, 0, 0)])
def test_an_empty_grid_has_no_commands(library: Library, grid: tuple[int, int, int]) -> None:
    succeeded, memory = library.matmul(0, grid)
    assert succeeded is True
    assert set(memory) == set(POISON)


@pytest.mark.parametrize("axis", range(3))
def test_a_negative_extent_is_refused_even_if_both_say_it(library: Library, axis: int) -> None:
    grid = [1, 1, 1]
    grid[axis] = -1
    out = library._out((1, 1, 1))
    size_t = (ctypes.c_size_t * 3)(*(extent % 2**64 for extent in grid))
    common = library._common((grid[0], grid[1], grid[2]))
    assert library.c.generate_matmul_command(0, size_t, *common, ctypes.addressof(out) + GUARD) is False
    assert set(bytes(out)) == set(POISON)


def test_without_matmuls_there_are_no_commands(bridge: Bridge, tmp_path: Path) -> None:
    library = Library(built(PARAMETERS["one of each"], [], bridge, tmp_path), PARAMETERS["one of each"])
    assert (library.c.get_matmul_num(), library.c.get_dma_num()) == (0, 0)
    for succeeded, memory in (library.matmul(0, (2, 2, 2)), library.dma(0, (2, 2, 2))):
        assert succeeded is False
        assert set(memory) == set(POISON)


def test_the_library_needs_no_other(bridge: Bridge, templates: list[bytes], tmp_path: Path) -> None:
    """Whatever is undefined must be there for a program that loads it; of this, nothing is, not even libc."""
    path = built(PARAMETERS["many"], templates, bridge, tmp_path)
    linking = ["ld", "-shared", "-z", "defs", "-o", tmp_path / "alone.so", path]
    alone = subprocess.run(linking, capture_output=True, text=True, check=False)
    assert alone.returncode == 0, alone.stderr
    assert b"libc" not in path.read_bytes()


def test_the_same_commands_give_the_same_bytes_wherever_it_is_built(
    bridge: Bridge, templates: list[bytes], tmp_path: Path
) -> None:
    one, two = (built(PARAMETERS["pointers"], templates, bridge, tmp_path / name) for name in ("one", "another"))
    assert one.read_bytes() == two.read_bytes()
