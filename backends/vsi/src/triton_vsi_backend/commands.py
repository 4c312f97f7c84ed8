"""Generate a kernel's command buffers with the library that zen-compiler wrote for the kernel.

The library has C functions:

    size_t get_matmul_num(void), get_dma_num(void)
    bool generate_matmul_command(size_t index, const size_t grid[3], PARAMETERS, int gx, int gy, int gz, SHAPES,
                                 int8_t *out)
    bool generate_dma_command(size_t index, PARAMETERS, int gx, int gy, int gz, SHAPES, int8_t *out)

and, if our reference zen-compiler wrote it for a kernel that takes a log (foundry_core.log) after its command buffers,

    const char *get_log_sites(void)

which returns the kernel's sites as JSON.

PARAMETERS are the kernel's: a pointer is a void * to the first element in host memory; a scalar has its C type, an i1
is a byte, and a 16-bit float is passed as its bits. SHAPES are one `const size_t *` for each pointer: the sizes of its
tensor. A call fills `out` for the whole grid, 256 bytes per program, x fastest, and returns whether it succeeded. The
vendor's documents do not say how large `out` is and what is returned when; this is our interpretation.
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from foundry_core.scalars import passed

from .errors import VsiError

COMMAND_BYTES = 256


def log_sites(library: Path) -> list[dict[str, Any]]:
    """Return where a kernel prints, asserts and checks, see foundry_core.log.Log; without any, it takes no log.

    Raises:
        VsiError: the file is no library.
    """
    loaded = _load(library)
    if not hasattr(loaded, "get_log_sites"):
        return []
    loaded.get_log_sites.restype, loaded.get_log_sites.argtypes = ctypes.c_char_p, []
    return list(json.loads(loaded.get_log_sites()))


def _load(library: Path) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(str(library))
    except OSError as error:
        raise _unfit(library, error) from error


def _unfit(library: Path, error: Exception) -> VsiError:
    return VsiError(f"{library} does not make command buffers", why=str(error))


class Commands:
    """The command buffers of one kernel.

    Args:
        library: the file, <kernel>_cmd_gen.so.
        types: Triton's types of the arguments that are passed to the kernel.
        most_bytes: the largest size of one buffer on the device.

    Attributes:
        matmuls, dmas: number of buffers of each kind that the kernel takes.

    Raises:
        VsiError: the file is not such a library.
    """

    def __init__(self, library: Path, types: Sequence[str], *, most_bytes: int) -> None:
        loaded = _load(library)
        try:
            counts, makers = (
                [getattr(loaded, name) for name in names]
                for names in (
                    ("get_matmul_num", "get_dma_num"),
                    ("generate_matmul_command", "generate_dma_command"),
                )
            )
        except AttributeError as error:
            raise _unfit(library, error) from error
        for count in counts:
            count.restype, count.argtypes = ctypes.c_size_t, []
        self.matmuls, self.dmas = (int(count()) for count in counts)
        self._convert = [None if type.startswith("*") else passed(type).convert for type in types]
        self._most_bytes = most_bytes
        parameters = [c_type(type) for type in types]
        shapes = [ctypes.POINTER(ctypes.c_size_t) for type in types if type.startswith("*")]
        grid = [ctypes.c_int] * 3
        self._matmul, self._dma = makers
        for maker, first in ((self._matmul, [ctypes.POINTER(ctypes.c_size_t)]), (self._dma, [])):
            maker.restype = ctypes.c_bool
            maker.argtypes = [ctypes.c_size_t, *first, *parameters, *grid, *shapes, ctypes.c_void_p]

    @property
    def count(self) -> int:
        """Number of buffers that the kernel takes after the grid."""
        return self.matmuls + self.dmas

    def make(self, grid: tuple[int, int, int], arguments: Sequence[Any]) -> list[npt.NDArray[np.uint8]]:
        """Return the buffers of a launch: matmul's, then DMA's, each with 256 bytes per program.

        Args:
            grid: programs along x, y and z, none of them 0.
            arguments: a tensor for each pointer, a number for each scalar.

        Raises:
            VsiError: a buffer is larger than the device allows, or the library refuses.
        """
        if not self.count:
            return []
        size = grid[0] * grid[1] * grid[2] * COMMAND_BYTES
        if size > self._most_bytes:
            raise VsiError(
                f"a grid of {grid[0]} x {grid[1]} x {grid[2]} programs has too many commands",
                why=f"they take {size} bytes, and a buffer of the device can have {self._most_bytes}",
                next="use larger blocks, launch in parts, or do without VSI_ENABLE_TC",
            )
        values, shapes = [], []
        for convert, argument in zip(self._convert, arguments, strict=True):
            if convert is None:
                values.append(argument.data_ptr())
                extents = tuple(argument.shape)
                shapes.append((ctypes.c_size_t * len(extents))(*extents))
            else:
                values.append(convert(argument))
        tail = (*values, *grid, *shapes)
        sizes = (ctypes.c_size_t * 3)(*grid)
        return [
            *(self._fill(self._matmul, "matmul", size, index, sizes, *tail) for index in range(self.matmuls)),
            *(self._fill(self._dma, "DMA", size, index, *tail) for index in range(self.dmas)),
        ]

    def _fill(self, maker: Any, kind: str, size: int, index: int, *arguments: Any) -> npt.NDArray[np.uint8]:
        commands = np.empty(size, np.uint8)
        if not maker(index, *arguments, commands.ctypes.data):
            raise VsiError(
                f"the commands of {kind} {index} cannot be made",
                why="the library that zen-compiler wrote for the kernel refuses these arguments",
            )
        return commands


def c_type(type: str) -> Any:
    """Return the ctypes type of a parameter of a Triton type.

    Raises:
        ScalarTypeError: a kernel cannot take a scalar of this type.
    """
    return ctypes.c_void_p if type.startswith("*") else getattr(ctypes, f"c_{passed(type).c_type.removesuffix('_t')}")
