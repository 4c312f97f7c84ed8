"""The functions, types and numbers of libdpu.so, as ctypes needs them."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DPU_OK, DPU_ERR_SYSTEM = 0, 2
DPU_ALLOCATE_ALL = NO_RANK = 2**32 - 1
DPU_ASYNCHRONOUS, DPU_SYNCHRONOUS = 0, 1
DPU_XFER_TO_DPU, DPU_XFER_FROM_DPU = 0, 1
DPU_XFER_DEFAULT, DPU_XFER_NO_RESET, DPU_XFER_ASYNC = 0, 1, 2
DPU_CALLBACK_DEFAULT, DPU_CALLBACK_ASYNC, DPU_CALLBACK_NONBLOCKING, DPU_CALLBACK_SINGLE_CALL = 0, 1, 2, 4


class Symbol(ctypes.Structure):
    """struct dpu_symbol_t."""

    _fields_ = (("address", ctypes.c_uint32), ("size", ctypes.c_uint32))


class _Ranks(ctypes.Structure):
    _fields_ = (("nr_ranks", ctypes.c_uint32), ("ranks", ctypes.c_void_p))


class _Members(ctypes.Union):
    _fields_ = (("list", _Ranks), ("dpu", ctypes.c_void_p))


class Set(ctypes.Structure):
    """struct dpu_set_t."""

    _anonymous_ = ("members",)
    _fields_ = (("kind", ctypes.c_int), ("members", _Members))


class _Iterator(ctypes.Structure):
    _fields_ = (
        ("set", Set),
        ("rank", ctypes.c_uint32),
        ("dpu", ctypes.c_uint32),
        ("count", ctypes.c_uint32),
        ("has_next", ctypes.c_bool),
        ("next", Set),
    )


CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, Set, ctypes.c_uint32, ctypes.c_void_p)

# The prefix is this file's, PREFIX/share/upmem/python/dpu/ffi.py.
library = ctypes.CDLL(str(Path(__file__).resolve().parents[4] / "lib" / "libdpu.so"))
_libc = ctypes.CDLL(None)

_u32, _size, _text, _void = ctypes.c_uint32, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_void_p
_ARGUMENTS: dict[str, list[Any]] = {
    "dpu_alloc": [_u32, _text, ctypes.POINTER(Set)],
    "dpu_alloc_ranks": [_u32, _text, ctypes.POINTER(Set)],
    "dpu_free": [Set],
    "dpu_load": [Set, _text, ctypes.POINTER(_void)],
    "dpu_load_from_memory": [Set, _void, _size, ctypes.POINTER(_void)],
    "dpu_get_symbol": [_void, _text, ctypes.POINTER(Symbol)],
    "dpu_launch": [Set, ctypes.c_int],
    "dpu_sync": [Set],
    "dpu_broadcast_to": [Set, _text, _u32, _void, _size, ctypes.c_int],
    "dpu_broadcast_to_symbol": [Set, Symbol, _u32, _void, _size, ctypes.c_int],
    "dpu_prepare_xfer": [Set, _void],
    "dpu_push_xfer": [Set, ctypes.c_int, _text, _u32, _size, ctypes.c_int],
    "dpu_push_xfer_symbol": [Set, ctypes.c_int, Symbol, _u32, _size, ctypes.c_int],
    "dpu_callback": [Set, CALLBACK, _void, ctypes.c_int],
    "dpu_log_read": [Set, _void],
}
for _name, _types in _ARGUMENTS.items():
    getattr(library, _name).argtypes = _types
for _kind in ("dpus", "ranks"):
    _first, _next = getattr(library, f"dpu_set_{_kind}"), getattr(library, f"dpu_set_{_kind}_next")
    _first.argtypes, _first.restype = [ctypes.POINTER(Set)], _Iterator
    _next.argtypes, _next.restype = [ctypes.POINTER(_Iterator)], None
library.dpu_error_to_string.restype = _void
library.dpu_emulator_symbol_name.argtypes = [_void, _u32]
library.dpu_emulator_symbol_name.restype = _text
_libc.free.argtypes = [_void]
_libc.fclose.argtypes = [_void]
_libc.open_memstream.argtypes = [ctypes.POINTER(_void), ctypes.POINTER(_size)]
_libc.open_memstream.restype = _void


def error_text(status: int) -> str:
    """Return the library's text for an error."""
    text = library.dpu_error_to_string(status)
    decoded = ctypes.string_at(text).decode()
    _libc.free(text)
    return decoded


def parts(whole: Set, kind: str) -> Iterator[Set]:
    """Yield the "dpus" or "ranks" of a set."""
    at = getattr(library, f"dpu_set_{kind}")(ctypes.byref(whole))
    while at.has_next:
        yield Set.from_buffer_copy(at.next)
        getattr(library, f"dpu_set_{kind}_next")(ctypes.byref(at))


def symbol_names(program: ctypes.c_void_p) -> Iterator[str]:
    """Yield the names of a program's symbols."""
    number = 0
    while name := library.dpu_emulator_symbol_name(program, number):
        yield name.decode()
        number += 1


def read_log(dpu: Set) -> tuple[int, str]:
    """Return the status of dpu_log_read, and what it wrote."""
    text, length = ctypes.c_void_p(), ctypes.c_size_t()
    stream = _libc.open_memstream(ctypes.byref(text), ctypes.byref(length))
    if not stream:
        return DPU_ERR_SYSTEM, ""
    status = library.dpu_log_read(dpu, stream)
    _libc.fclose(stream)
    log = ctypes.string_at(text, length.value).decode(errors="replace")
    _libc.free(text)
    return status, log
