"""Call libZenTCBridge.so as zen_tc_bridge.h declares it, which also documents the words of a command."""

from __future__ import annotations

import ctypes
import pkgutil
import re
from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass
from pathlib import Path

from foundry_core.prototypes import members, prototypes

# pack.py puts the header beside this module.
_HEADER = (pkgutil.get_data(__package__, "zen_tc_bridge.h") or b"").decode()
_PREFIX = "zen_tc_"
_FUNCTIONS = prototypes(_HEADER, _PREFIX)
_NUMBERS = {name: int(number) for name, number in re.findall(r"#define ZEN_TC_(\w+) (\d+)u?\n", _HEADER)}
COMMAND_BYTES = _NUMBERS["COMMAND_BYTES"]


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
    operand_type: int = _NUMBERS["F32"]
    result_type: int = _NUMBERS["F32"]


class _Matmul(ctypes.Structure):
    """As C has it."""

    _fields_ = members(_HEADER, "zen_tc_matmul")


_Command = ctypes.c_uint8 * COMMAND_BYTES
_Three = ctypes.c_uint32 * 3


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
        missing = [f"{_PREFIX}{name}" for name in _FUNCTIONS if not hasattr(self._library, f"{_PREFIX}{name}")]
        if missing:
            raise BridgeError(
                f"the tensor-core bridge {path} has no {', '.join(missing)}: it is not the reference SDK's, whose "
                "interface (zen_tc_bridge.h) is the only one that this zen-compiler knows"
            )
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(self._library, f"{_PREFIX}{name}")
            function.restype, function.argtypes = result, arguments
        version, known = self._library.zen_tc_version(), _NUMBERS["VERSION"]
        if version != known:
            raise BridgeError(
                f"the tensor-core bridge {path} has version {version} of its interface, "
                f"this zen-compiler knows version {known}"
            )

    def refuses(self, matmul: Matmul) -> str | None:
        """Return why the tensor core does not support a product; None if it does."""
        reason: bytes | None = self._library.zen_tc_refuses(ctypes.byref(_packed(matmul)))
        return reason.decode() if reason is not None else None

    def encode(self, matmul: Matmul, index: int) -> bytes:
        """Return a command, 256 bytes, in which grid, program and checksum are still zero.

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
        """Return a complete command for one program of a grid.

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
        if self._library.zen_tc_place(ctypes.byref(placed), *(ctypes.byref(extents) for extents in three)) != 0:
            raise BridgeError(f"there is no program {tuple(program)} in a grid of {tuple(grid)}, or that is no command")
        return bytes(placed)

    def field(self, name: str) -> int:
        """Return the byte at which a field of a command starts.

        Raises:
            BridgeError: commands have no such field.
        """
        offset: int = self._library.zen_tc_field(name.encode())
        if offset < 0:
            raise BridgeError(f"commands of {self.path} have no field {name!r}")
        return offset


def _packed(matmul: Matmul) -> _Matmul:
    """Return C's structure.

    Raises:
        BridgeError: a number is no uint32; ctypes would take it modulo 2^32.
    """
    numbers = [number for field in astuple(matmul) for number in (field if isinstance(field, tuple) else [field])]
    if not all(0 <= number < 1 << 32 for number in numbers):
        raise BridgeError(f"{matmul} is not for the tensor core: all its numbers must be 0 to 2^32 - 1")
    return _Matmul(**asdict(matmul))
