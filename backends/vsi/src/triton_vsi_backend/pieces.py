"""Find the pieces of VeriSilicon's SDK that the plugin calls.

Environment:
    VSI_ZEN_COMPILER_PATH: the program zen-compiler. Default: the one in this package, which exists if the wheel was
        built with it.
    VSI_ZEN_TC_BRIDGE_PATH: libZenTCBridge.so, with the same kind of default.
    VSI_SDK_DIR: the SDK, whose folder drivers/ has the OpenCL driver.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from .errors import MissingError

COMPILER_VARIABLE = "VSI_ZEN_COMPILER_PATH"
BRIDGE_VARIABLE = "VSI_ZEN_TC_BRIDGE_PATH"
SDK_VARIABLE = "VSI_SDK_DIR"

_PACKAGE = Path(__file__).parent
# Processors by the number that an ELF file has for them (e_machine).
_PROCESSORS = {
    3: "x86",
    8: "MIPS",
    21: "PowerPC",
    40: "ARM",
    62: "x86-64",
    183: "AArch64",
    243: "RISC-V",
    258: "LoongArch",
}


def zen_compiler() -> Path:
    """Return the program that compiles kernels.

    Raises:
        MissingError: it does not exist, is not a file, is not executable, or is for another machine.
    """
    path = _piece("zen-compiler", COMPILER_VARIABLE, _PACKAGE / "bin" / "zen-compiler")
    if not os.access(path, os.X_OK):
        raise MissingError(
            f"zen-compiler cannot be run: {path}", why="the file is not executable", next=f"chmod +x {path}"
        )
    # Linux may start a program of another machine by an emulator (binfmt_misc), which then fails in its own words.
    its, ours = _machine(path), _machine(Path(sys.executable))
    if its and ours and its != ours:
        raise MissingError(
            f"zen-compiler cannot be run: {path}",
            why=f"it is a program for {its}; this machine is {ours}",
            next=f"export {COMPILER_VARIABLE}=/path/to/zen-compiler of the SDK for this machine",
        )
    return path


def _machine(path: Path) -> str:
    """Return the machine that an ELF file is for, such as "x86-64, 64 bits"; "" if it is another kind of file."""
    with path.open("rb") as file:
        head = file.read(20)
    if head[:4] != b"\x7fELF" or len(head) < 20:
        return ""
    number = int.from_bytes(head[18:20], "little" if head[5] == 1 else "big")
    return f"{_PROCESSORS.get(number, f'processor {number}')}, {32 * head[4]} bits"


def bridge() -> Path:
    """Return the library for the tensor core's commands. zen-compiler needs its path.

    Raises:
        MissingError: it does not exist, or is not a file.
    """
    return _piece("libZenTCBridge.so", BRIDGE_VARIABLE, _PACKAGE / "lib" / "libZenTCBridge.so")


def drivers() -> Path | None:
    """Return the folder of the SDK's OpenCL driver; None if the environment names no SDK.

    Raises:
        MissingError: the SDK that is named has no such folder.
    """
    sdk = os.environ.get(SDK_VARIABLE, "")
    if not sdk:
        return None
    folder = Path(sdk, "drivers")
    if not folder.is_dir():
        raise MissingError(
            f"{SDK_VARIABLE}={sdk} is not VeriSilicon's SDK",
            why=f"{folder} is not a folder",
            next=f"set {SDK_VARIABLE} to the folder that has include/, lib/ and drivers/",
        )
    return folder


def _piece(name: str, variable: str, packaged: Path) -> Path:
    named = os.environ.get(variable, "")
    path = Path(named) if named else packaged
    if path.is_file():
        return path
    if named:
        why = f"{variable}={named} {'is not a file' if path.exists() else 'does not exist'}"
    else:
        why = f"{variable} is not set, and this installation of triton-vsi-backend was made without one ({packaged})"
    raise MissingError(f"there is no {name}", why=why, next=f"export {variable}=/path/to/{name}")
