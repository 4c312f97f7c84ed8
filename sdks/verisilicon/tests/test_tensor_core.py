"""A kernel's tl.dot does what its program's command says, and nothing where the command is a wrong one."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyopencl as cl
import pytest
from sdk import ONE_ENGINE, ONE_THREAD, compiled, kernel
from zen_compiler.bridge import COMMAND_BYTES, Bridge

PROGRAMS = 5
GRID = (PROGRAMS, 1, 1)
M, N, K = 16, 32, 8
SCALE = np.float32(0.5)
Words = npt.NDArray[np.uint32]


def generated(library: Path) -> Words:
    """The commands of all programs as cmd_gen.so makes them, a row of words a program."""
    commands = np.full((PROGRAMS, COMMAND_BYTES), 0xA5, np.uint8)
    generator = ctypes.CDLL(str(library))
    pointers = [ctypes.c_void_p()] * 3
    shapes = [(ctypes.c_size_t * 1)(1)] * 3
    generator.generate_matmul_command.restype = ctypes.c_bool
    assert generator.generate_matmul_command(
        ctypes.c_size_t(0),
        (ctypes.c_size_t * 3)(*GRID),
        *pointers,
        ctypes.c_float(SCALE),
        *map(ctypes.c_int, GRID),
        *shapes,
        ctypes.c_void_p(commands.ctypes.data),
    )
    return commands.view("<u4")


@pytest.fixture(params=[1, 32], ids=["one work-item", "a work-group"])
def program(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Program]:
    yield Program(tmp_path, request.param)


class Program:
    """The kernel beside this file, compiled for the tensor core."""

    def __init__(self, folder: Path, threads: int) -> None:
        more = [ONE_ENGINE] if threads > 1 else [ONE_ENGINE, ONE_THREAD]
        spirv, library = compiled(kernel("dot", folder), *more, threads=threads)
        self.commands = generated(library)
        self._threads = threads
        device = next(device for platform in cl.get_platforms() for device in platform.get_devices())
        self._context = cl.Context([device])
        self._kernel = cl.Kernel(cl.Program(self._context, spirv).build(), "dot_kernel")
        rng = np.random.default_rng(0)
        self.a = rng.uniform(-1, 1, (PROGRAMS, M, K)).astype("f")
        self.b = rng.uniform(-1, 1, (PROGRAMS, K, N)).astype("f")

    def run(self, commands: Words) -> npt.NDArray[np.float32]:
        """C, from poison, by these commands."""
        c = np.full((PROGRAMS, M, N), 77, np.float32)
        queue = cl.CommandQueue(self._context)
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        a, b, out, table = (
            cl.Buffer(self._context, flags, hostbuf=np.ascontiguousarray(array))
            for array in (self.a, self.b, c, commands)
        )
        passed = a, b, out, SCALE, *map(np.int32, GRID), table
        self._kernel(queue, (PROGRAMS * self._threads, 1, 1), (self._threads, 1, 1), *passed)
        cl.enqueue_copy(queue, c, out)
        queue.finish()
        return c

    @property
    def exact(self) -> npt.NDArray[np.float64]:
        return (self.a.astype(np.float64) @ self.b.astype(np.float64)) * SCALE

    @property
    def allowed(self) -> npt.NDArray[np.float64]:
        """gamma(K) |A| |B| (Higham, section 3.1); scaling by a half is exact."""
        gamma = K * 2.0**-24 / (1 - K * 2.0**-24)
        return gamma * (np.abs(self.a).astype(np.float64) @ np.abs(self.b).astype(np.float64)) * SCALE


def test_programs_multiply_as_the_command_library_says(program: Program) -> None:
    assert (np.abs(program.run(program.commands) - program.exact) <= program.allowed).all()


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("magic", lambda word: word ^ 1),
        ("opcode", lambda word: word + 1),
        ("index", lambda word: word + 1),
        ("program", lambda word: word + 1),
    ],
)
def test_a_program_computes_nothing_from_a_command_that_is_not_its_own(
    program: Program, bridge: Bridge, field: str, change: Callable[[np.uint32], np.uint32]
) -> None:
    commands = program.commands.copy()
    wrong = commands[2]
    place = bridge.field(field) // 4
    wrong[place] = change(wrong[place])
    wrong[bridge.field("checksum") // 4] = wrong[:-1].sum(dtype=np.uint32)
    c = program.run(commands)
    assert np.isnan(c[2]).all()
    others = [0, 1, 3, 4]
    assert (np.abs(c - program.exact) <= program.allowed)[others].all()


def test_a_program_computes_nothing_from_a_command_that_was_damaged(program: Program) -> None:
    for word in range(COMMAND_BYTES // 4):
        commands = program.commands.copy()
        commands[0, word] ^= 1 << 7
        assert np.isnan(program.run(commands)[0]).all(), f"word {word}"


def test_extents_and_strides_are_the_commands(program: Program, bridge: Bridge) -> None:
    """Half the rows, 20 columns (which are no vectors' length), three products of each, B transposed where it lies."""
    commands = program.commands.copy()
    for command in commands:
        for field, values in {"m": [M // 2], "n": [20], "k": [3], "b_strides": [1, K]}.items():
            place = bridge.field(field) // 4
            command[place : place + len(values)] = values
        command[bridge.field("checksum") // 4] = command[:-1].sum(dtype=np.uint32)
    c = program.run(commands)
    turned = program.b.reshape(PROGRAMS, N, K)[:, :20, :3].astype(np.float64)
    exact = program.a[:, : M // 2, :3].astype(np.float64) @ turned.transpose(0, 2, 1) * SCALE
    computed = np.zeros((PROGRAMS, M, N))
    computed[:, : M // 2, :20] = exact
    assert (np.abs(c - computed) <= 4 * 2.0**-24 * K).all()
    assert (c[:, M // 2 :] == 0).all() and (c[:, :, 20:] == 0).all()
