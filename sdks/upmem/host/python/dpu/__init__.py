"""The Python interface of the UPMEM SDK, over libdpu.so: sets of DPUs, their programs, copies and launches.

    with DpuSet(nr_dpus=4, binary="program") as dpus:
        dpus.word = bytes(4)                       # to all DPUs
        dpus.copy("area", [first, second, third, fourth])
        dpus.exec(log=sys.stdout)
        print([dpu.word.uint32() for dpu in dpus])

Buffers are whatever has the buffer protocol: bytes, bytearray, memoryview, array.array, NumPy's arrays. A buffer that
an asynchronous copy reads or writes must stay unchanged until `sync`.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partialmethod
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, TypeAlias

from . import ffi

ALLOCATE_ALL = ffi.DPU_ALLOCATE_ALL

__all__ = ["ALLOCATE_ALL", "DpuError", "DpuProgram", "DpuSet", "DpuSymbol", "DpuVariable"]


class DpuError(Exception):
    """A call of the library that failed, or arguments that no call can have."""


class Stream(Protocol):
    """What a log is written to."""

    def write(self, text: str, /) -> object:
        """Write a text."""


Source: TypeAlias = Any  # a path, or an open file
Log: TypeAlias = Any  # a stream, a list with a stream or None for each DPU, or a mapping from sets of one DPU


def _check(status: int) -> None:
    if status != ffi.DPU_OK:
        raise DpuError(ffi.error_text(status))


def _one_or_all(values: Sequence[Any]) -> Any:
    return values[0] if len(values) == 1 else values


class DpuVariable:
    """What a symbol held on each DPU.

    A method returns the elements as the type of its name: an element or a sequence, or for several DPUs a list.
    """

    def __init__(self, contents: list[memoryview]) -> None:
        self.contents = contents

    def data(self) -> Any:
        """Return the bytes."""
        return _one_or_all(self.contents)

    def _cast(self, format: Any) -> Any:
        return _one_or_all([_one_or_all(view.cast(format)) for view in self.contents])

    int8, uint8 = partialmethod(_cast, "b"), partialmethod(_cast, "B")
    int16, uint16 = partialmethod(_cast, "h"), partialmethod(_cast, "H")
    int32, uint32 = partialmethod(_cast, "i"), partialmethod(_cast, "I")
    int64, uint64 = partialmethod(_cast, "q"), partialmethod(_cast, "Q")
    float, double = partialmethod(_cast, "f"), partialmethod(_cast, "d")


class DpuSymbol:
    """A variable of a program that the host can see: its name, and a symbol of the library or (address, size)."""

    def __init__(self, name: str, c_symbol: ffi.Symbol | tuple[int, int]) -> None:
        self.name = name
        self.c_symbol = ffi.Symbol(*c_symbol) if isinstance(c_symbol, tuple) else c_symbol

    def value(self) -> int:
        """Return the address."""
        return int(self.c_symbol.address)

    def size(self) -> int:
        """Return the size in bytes."""
        return int(self.c_symbol.size)


class DpuProgram:
    """A loaded program."""

    def __init__(self, c_program: ctypes.c_void_p) -> None:
        self.c_program = c_program
        self.symbols: dict[str, DpuSymbol] = {}
        for name in ffi.symbol_names(c_program):
            symbol = ffi.Symbol()
            _check(ffi.library.dpu_get_symbol(c_program, name.encode(), ctypes.byref(symbol)))
            self.symbols[name] = DpuSymbol(name, symbol)

    def get_symbol(self, symbol: str) -> DpuSymbol | None:
        """Return the symbol of a name, or None."""
        return self.symbols.get(symbol)

    def fetch_all_symbols(self) -> dict[str, DpuSymbol]:
        """Return all symbols by their names."""
        return self.symbols


class _Host:
    """A buffer of the host: its address and length."""

    def __init__(self, buffer: Any, writable: bool) -> None:
        self.view = memoryview(buffer)
        if not self.view.c_contiguous:
            raise DpuError("a host buffer is not contiguous")
        if writable and self.view.readonly:
            raise DpuError("a host buffer to copy to is read-only")
        self.bytes = self.view.nbytes
        # ctypes gives no address of a read-only buffer, so such a one is copied.
        array = ctypes.c_char * self.bytes
        self.memory = array.from_buffer_copy(self.view) if self.view.readonly else array.from_buffer(self.view)
        self.address = ctypes.c_void_p(ctypes.addressof(self.memory))


class DpuSet:
    """A set of DPUs; as a context manager it frees them at its end.

    Arguments:
        nr_dpus, nr_ranks: how many DPUs or ranks; neither or ALLOCATE_ALL: all that are free.
        profile: "key=value,...", as of dpu_alloc.
        binary: a program to load, a path or its bytes.
        c_source: the same to compile, a path or an open file, or a list of them.
        asm_source: refused: the emulator has no assembler of DPUs.
        log: where `exec` writes what the DPUs print, or a list with a stream for each DPU.
        async_mode: whether copies and launches are asynchronous unless they say otherwise.

    The symbols of the loaded program are attributes: `dpus.word` copies from all DPUs, `dpus.word = ...` to them.
    """

    def __init__(
        self,
        nr_dpus: int | None = None,
        nr_ranks: int | None = None,
        profile: str = "",
        binary: str | bytes | bytearray | None = None,
        c_source: Source | list[Source] | None = None,
        asm_source: Source | list[Source] | None = None,
        log: Stream | list[Stream | None] | None = None,
        async_mode: bool = False,
        *,
        _c_set: ffi.Set | None = None,
        _whole: DpuSet | None = None,
    ) -> None:
        self._symbols: dict[str, DpuSymbol] = {}
        self._whole = _whole
        self._async_mode = async_mode
        self._log: Stream | None = None
        self._dpus: list[DpuSet] = []
        self._ranks: list[DpuSet] = []
        # What asynchronous copies and callbacks use, until sync.
        self._kept: list[Any] = []
        self._kept_lock = threading.Lock()
        if _c_set is not None:
            self.c_set = _c_set
            return
        if nr_dpus is not None and nr_ranks is not None:
            raise DpuError("cannot specify nr_dpus and nr_ranks")
        self.c_set = ffi.Set()
        allocate = ffi.library.dpu_alloc if nr_ranks is None else ffi.library.dpu_alloc_ranks
        wanted = ALLOCATE_ALL if nr_ranks is None and nr_dpus is None else nr_dpus if nr_ranks is None else nr_ranks
        _check(allocate(wanted, profile.encode(), ctypes.byref(self.c_set)))
        try:
            for c_rank in ffi.parts(self.c_set, "ranks"):
                rank = DpuSet(_c_set=c_rank, _whole=self, async_mode=async_mode)
                rank._ranks = [rank]
                for c_dpu in ffi.parts(c_rank, "dpus"):
                    dpu = DpuSet(_c_set=c_dpu, _whole=self, async_mode=async_mode)
                    dpu._dpus, dpu._ranks = [dpu], [rank]
                    rank._dpus.append(dpu)
                self._ranks.append(rank)
                self._dpus += rank._dpus
            logs = log if isinstance(log, list) else [log] * len(self._dpus)
            if len(logs) != len(self._dpus):
                raise DpuError("log list length does not match number of DPUs in DpuSet")
            for dpu, stream in zip(self._dpus, logs, strict=True):
                dpu._log = stream
            if binary is not None or c_source is not None or asm_source is not None:
                DpuSet.load(self, binary, c_source, asm_source)
        except BaseException:
            ffi.library.dpu_free(self.c_set)
            raise

    def __enter__(self) -> DpuSet:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        DpuSet.free(self)

    def __iter__(self) -> Iterator[DpuSet]:
        return iter(self._dpus)

    def __len__(self) -> int:
        return len(self._dpus)

    def __getattribute__(self, name: str) -> Any:
        symbols = object.__getattribute__(self, "__dict__").get("_symbols", {})
        if name not in symbols:
            return object.__getattribute__(self, name)
        symbol = symbols[name]
        views = [memoryview(bytearray(symbol.size())) for _ in self._dpus]
        DpuSet.copy(self, views, symbol, async_mode=False)
        return DpuVariable(views)

    def __setattr__(self, name: str, value: Any) -> None:
        symbol = self.__dict__.get("_symbols", {}).get(name)
        if symbol is None:
            object.__setattr__(self, name, value)
        else:
            DpuSet.copy(self, symbol, value)

    def dpus(self) -> list[DpuSet]:
        """Return a set for each DPU."""
        return self._dpus

    def ranks(self) -> list[DpuSet]:
        """Return a set for each rank."""
        return self._ranks

    def free(self) -> None:
        """Release the DPUs."""
        _check(ffi.library.dpu_free(self.c_set))  # waits for the callbacks
        _callbacks.pop(id(self), None)

    def load(
        self,
        binary: str | bytes | bytearray | None = None,
        c_source: Source | list[Source] | None = None,
        asm_source: Source | list[Source] | None = None,
    ) -> DpuProgram:
        """Load a program into the DPUs, or compile sources and load the result."""
        if asm_source is not None:
            raise DpuError("asm_source: the emulator has no assembler of DPUs")
        if (binary is None) == (c_source is None):
            raise DpuError("one and only one source or binary program must be defined")
        with tempfile.TemporaryDirectory() as folder:
            if c_source is not None:
                binary = _compile(c_source if isinstance(c_source, list) else [c_source], Path(folder))
            program = ctypes.c_void_p()
            if isinstance(binary, (str, os.PathLike)):
                status = ffi.library.dpu_load(self.c_set, os.fsencode(binary), ctypes.byref(program))
            else:
                host = _Host(binary, writable=False)
                status = ffi.library.dpu_load_from_memory(self.c_set, host.address, host.bytes, ctypes.byref(program))
        _check(status)
        loaded = DpuProgram(program)
        for part in {id(part): part for part in (self, *self._ranks, *self._dpus)}.values():
            # The rank of a set of one DPU has other DPUs too, and so has the whole set.
            one_program = part is self or len(part) <= len(self)
            object.__setattr__(part, "_symbols", loaded.symbols if one_program else {})
        if self._whole is not None:
            object.__setattr__(self._whole, "_symbols", {})
        return loaded

    def copy(
        self,
        dst: Any,
        src: Any,
        size: int | None = None,
        offset: int = 0,
        async_mode: bool | None = None,
    ) -> None:
        """Copy between the host and the DPUs.

        Arguments:
            dst, src: one is a symbol, a name or a DpuSymbol; the other a buffer, which is copied to all DPUs or from
                the only one, or a list with a buffer for each DPU, or None for a DPU that takes no part.
            size: how many bytes; by default the length of the buffers, which must then all be the same.
            offset: in the symbol, in bytes.
        """
        to_dpu, from_dpu = isinstance(dst, (str, DpuSymbol)), isinstance(src, (str, DpuSymbol))
        if to_dpu == from_dpu:
            raise DpuError("can only execute Host <-> DPU transfers")
        symbol, host = (dst, src) if to_dpu else (src, dst)
        several = isinstance(host, list)
        if several and len(host) != len(self):
            raise DpuError("invalid number of host buffers for this DPU set")
        if not several and from_dpu and len(self) != 1:
            raise DpuError("a copy from several DPUs needs a list with a buffer for each")
        buffers = [None if one is None else _Host(one, from_dpu) for one in (host if several else [host])]
        lengths = {one.bytes for one in buffers if one is not None}
        if size is None:
            if len(lengths) > 1:
                raise DpuError("the host buffers have different sizes: say how many bytes to copy")
            size = max(lengths, default=0)
        elif lengths and min(lengths) < size:
            raise DpuError("host buffer is too small")
        is_async = self._async_mode if async_mode is None else async_mode
        flags = ffi.DPU_XFER_ASYNC if is_async else ffi.DPU_XFER_DEFAULT
        at = (symbol.encode(), offset) if isinstance(symbol, str) else (symbol.c_symbol, offset)
        suffix = "" if isinstance(symbol, str) else "_symbol"
        if to_dpu and not several:
            (one,) = buffers
            if one is None:
                raise DpuError("a copy to all DPUs needs a buffer")
            broadcast = getattr(ffi.library, f"dpu_broadcast_to{suffix}")
            _check(broadcast(self.c_set, *at, one.address, size, flags))
        else:
            for dpu, buffer in zip(self._dpus, buffers, strict=True):
                _check(ffi.library.dpu_prepare_xfer(dpu.c_set, None if buffer is None else buffer.address))
            push = getattr(ffi.library, f"dpu_push_xfer{suffix}")
            direction = ffi.DPU_XFER_TO_DPU if to_dpu else ffi.DPU_XFER_FROM_DPU
            _check(push(self.c_set, direction, *at, size, flags))
        if is_async:
            with self._kept_lock:
                (self._whole or self)._kept.append(buffers)

    def exec(self, log: Log = None, async_mode: bool | None = None) -> None:
        """Run the program; `log`: where to write what it prints, if the launch is not asynchronous."""
        if self._async_mode if async_mode is None else async_mode:
            _check(ffi.library.dpu_launch(self.c_set, ffi.DPU_ASYNCHRONOUS))
            return
        _check(ffi.library.dpu_launch(self.c_set, ffi.DPU_SYNCHRONOUS))
        self._write_log(log, None)

    def log(self, stream: Log = None) -> None:
        """Write what the DPUs printed in their last launch: to the stream, or the set's, or the standard output."""
        self._write_log(stream, sys.stdout)

    def _write_log(self, log: Log, default: Stream | None) -> None:
        streams = {dpu: dpu._log if dpu._log is not None else default for dpu in self._dpus}
        if isinstance(log, Mapping):
            streams.update(log)
        elif isinstance(log, (list, tuple)):
            if len(log) != len(self._dpus):
                raise DpuError("cannot log, log list length does not match the number of DPUs in DpuSet")
            streams.update({dpu: one for dpu, one in zip(self._dpus, log, strict=True) if one is not None})
        elif log is not None:
            streams = dict.fromkeys(self._dpus, log)
        for dpu, stream in streams.items():
            if stream is None:
                continue
            if not callable(getattr(stream, "write", None)):
                raise DpuError("stream argument is not an object with a 'write' method")
            status, text = ffi.read_log(dpu.c_set)
            stream.write(text)
            _check(status)

    def sync(self) -> None:
        """Wait for all asynchronous operations."""
        kept, self._kept = self._kept, []
        try:
            _check(ffi.library.dpu_sync(self.c_set))
        finally:
            kept.clear()

    def call(
        self,
        fn: Callable[[DpuSet, int, Any], None],
        arg: Any = None,
        async_mode: bool | None = None,
        is_blocking: bool = True,
        single_call: bool = False,
    ) -> None:
        """Call `fn(set, index of the rank, arg)` for each rank, or once for the set; see dpu_callback.

        An exception of `fn` is printed; the call, or if it is asynchronous `sync`, raises a DpuError.
        """
        flags = ffi.DPU_CALLBACK_ASYNC if (self._async_mode if async_mode is None else async_mode) else 0
        flags |= 0 if is_blocking else ffi.DPU_CALLBACK_NONBLOCKING
        flags |= ffi.DPU_CALLBACK_SINGLE_CALL if single_call else 0

        def call_one(_: Any, rank: int, __: Any) -> int:
            try:
                if single_call or rank == ffi.NO_RANK:
                    fn(self, rank, arg)
                else:
                    fn(self._ranks[rank], rank, arg)
            except BaseException:
                sys.excepthook(*sys.exc_info())
                return ffi.DPU_ERR_SYSTEM
            return ffi.DPU_OK

        function = ffi.CALLBACK(call_one)
        # A nonblocking callback may run after sync, so what ctypes makes for it stays until the DPUs are freed.
        _callbacks.setdefault(id(self._whole or self), []).append(function)
        _check(ffi.library.dpu_callback(self.c_set, function, None, flags))


_callbacks: dict[int, list[Any]] = {}


def _compile(sources: list[Source], folder: Path) -> str:
    paths = []
    for number, source in enumerate(sources):
        if isinstance(source, (str, os.PathLike)):
            paths.append(os.fspath(source))
        else:
            path = folder / f"source{number}.c"
            path.write_text(source.read())
            paths.append(str(path))
    out = str(folder / "program")
    done = subprocess.run(
        ["dpu-upmem-dpurte-clang", "-O2", "-o", out, *paths], stderr=subprocess.PIPE, text=True, check=False
    )
    if done.returncode != 0:
        raise DpuError(f"the program does not compile:\n{done.stderr}")
    return out
