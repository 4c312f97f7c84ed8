"""Call libZenTCBridge.so. zen_tc_bridge.h documents its functions and the words of a command."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

COMMAND_BYTES = 256
# Types of operands and results; see zen_tc_matmul.
F32 = 1
_VERSION = 1


class BridgeError(Exception):
    """A bridge cannot be used, or refused a request."""


@dataclass(frozen=True)
class Matmul:
    """C += A B on tiles in memory: A is m by k, B is k by n, C is m by n; strides in elements, of rows and columns."""

    m: int
    n: int
    k: int
    a_strides: tuple[int, int]
    b_strides: tuple[int, int]
    c_strides: tuple[int, int]
    operand_type: int = F32
    result_type: int = F32


class _Matmul(ctypes.Structure):
    """zen_tc_matmul."""

    _fields_ = (
        *((name, ctypes.c_uint32) for name in ("m", "n", "k", "operand_type", "result_type")),
        *((name, ctypes.c_uint32 * 2) for name in ("a_strides", "b_strides", "c_strides")),
    )


_Command = ctypes.c_uint8 * COMMAND_BYTES
_Three = ctypes.c_uint32 * 3
_SIGNATURES = {
    "zen_tc_refuses": ([ctypes.POINTER(_Matmul)], ctypes.c_char_p),
    "zen_tc_encode": ([ctypes.POINTER(_Matmul), ctypes.c_uint32, ctypes.POINTER(_Command)], ctypes.c_int),
    "zen_tc_field": ([ctypes.c_char_p], ctypes.c_int32),
    "zen_tc_place": ([ctypes.POINTER(_Command), ctypes.POINTER(_Three), ctypes.POINTER(_Three)], ctypes.c_int),
    "zen_tc_version": ([], ctypes.c_uint32),
}


class Bridge:
    """A loaded bridge.

    Args:
        path: the library.

    Raises:
        BridgeError: it cannot be loaded, or has another interface than zen_tc_bridge.h describes; the vendor's has.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            # A slash makes it a path; a name without one would be searched for among the libraries.
            self._library = ctypes.CDLL(str(path.absolute()))
        except OSError as error:
            raise BridgeError(f"the tensor-core bridge {path} cannot be loaded: {error}") from error
        missing = [name for name in _SIGNATURES if not hasattr(self._library, name)]
        if missing:
            raise BridgeError(
                f"the tensor-core bridge {path} has no {', '.join(missing)}: it is not the reference SDK's, whose "
                "interface (zen_tc_bridge.h) is the only one that this zen-compiler knows"
            )
        for name, (arguments, result) in _SIGNATURES.items():
            function = getattr(self._library, name)
            function.argtypes, function.restype = arguments, result
        version = self._library.zen_tc_version()
        if version != _VERSION:
            raise BridgeError(
                f"the tensor-core bridge {path} has version {version} of its interface, "
                f"this zen-compiler knows version {_VERSION}"
            )

    def refuses(self, matmul: Matmul) -> str | None:
        """Return why the tensor core does not support a product; None if it does."""
        reason: bytes | None = self._library.zen_tc_refuses(ctypes.byref(_packed(matmul)))
        return reason.decode() if reason is not None else None

    def encode(self, matmul: Matmul, index: int) -> bytes:
        """A command, 256 bytes, in which grid, program and checksum are still zero.

        Args:
            matmul: what it does.
            index: which of the kernel's commands it is, from 0.

        Raises:
            BridgeError: the tensor core does not do it.
        """
        command = _Command()
        if self._library.zen_tc_encode(ctypes.byref(_packed(matmul)), index, ctypes.byref(command)) != 0:
            raise BridgeError(f"{matmul} is not for the tensor core: {self.refuses(matmul)}")
        return bytes(command)

    def place(self, command: bytes, grid: Sequence[int], program: Sequence[int]) -> bytes:
        """A command for one program of a grid, complete.

        Args:
            command: what `encode` returned.
            grid: programs along x, y and z.
            program: which of them.

        Raises:
            BridgeError: no command, or no program of that grid.
        """
        if len(command) != COMMAND_BYTES:
            raise BridgeError(f"a command has {COMMAND_BYTES} bytes, not {len(command)}")
        placed = _Command.from_buffer_copy(command)
        three = _Three(*grid), _Three(*program)
        if self._library.zen_tc_place(ctypes.byref(placed), *(ctypes.byref(each) for each in three)) != 0:
            raise BridgeError(f"there is no program {tuple(program)} in a grid of {tuple(grid)}, or that is no command")
        return bytes(placed)

    def field(self, name: str) -> int:
        """The byte at which a field of a command starts.

        Raises:
            BridgeError: commands have no such field.
        """
        offset: int = self._library.zen_tc_field(name.encode())
        if offset < 0:
            raise BridgeError(f"commands of {self.path} have no field {name!r}")
        return offset


def _packed(matmul: Matmul) -> _Matmul:
    """As C has it.

    Raises:
        BridgeError: a number is no uint32; ctypes would take it modulo 2^32.
    """
    pairs = (matmul.a_strides, matmul.b_strides, matmul.c_strides)
    numbers = (matmul.m, matmul.n, matmul.k, matmul.operand_type, matmul.result_type)
    if not all(0 <= number < 1 << 32 for number in (*numbers, *(stride for pair in pairs for stride in pair))):
        raise BridgeError(f"{matmul} is not for the tensor core: all its numbers must be 0 to 2^32 - 1")
    return _Matmul(*numbers, *((ctypes.c_uint32 * 2)(*pair) for pair in pairs))
