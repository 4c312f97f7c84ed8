"""Control a set of DPUs: load a program, copy to and from MRAM, run, and read the cost."""

from __future__ import annotations

import atexit
import ctypes
import os
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ..launches import LineCost
from .errors import DpuError, fault
from .sdk import STATS, TAKE_LINE, shim

MRAM_BYTES = 64 << 20
# The address of this symbol is the start of the MRAM that a program leaves free (DPU_MRAM_HEAP_POINTER_NAME).
HEAP = "__sys_used_mram_end"
# What the emulator reads when it loads a program: whether a data race is a fault.
_RACES = "DPU_EMULATOR_RACES"
# DPUs are allocated in whole ranks, even for a few DPUs.
_RANK = 64
# Ranks that a process keeps for later launches: enough for a process that changes its number of DPUs.
_KEPT_RANKS = 4


@dataclass(frozen=True)
class Symbol:
    """The location of a variable of a DPU program, and its size in bytes."""

    address: int
    size: int


@dataclass(frozen=True)
class Stats:
    """The cost of one launch in the emulator's model, for each DPU."""

    cycles: npt.NDArray[np.uint64]
    instructions: npt.NDArray[np.uint64]
    dma_read_bytes: npt.NDArray[np.uint64]
    dma_write_bytes: npt.NDArray[np.uint64]
    dma_transfers: npt.NDArray[np.uint64]
    dma_cycles: npt.NDArray[np.uint64]


class DpuSet:
    """DPUs that run one program together.

    Raises:
        DpuError: the machine does not have as many DPUs.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self.heap = 0
        """The first MRAM address that the loaded program leaves free."""
        self._program: Path | None = None
        self._set = ctypes.c_void_p()
        self._call("triton_dpu_allocate", count, ctypes.byref(self._set), what=f"{count} DPUs cannot be allocated")

    @staticmethod
    def _call(name: str, *arguments: object, what: str) -> None:
        message = getattr(shim(), name)(*arguments)
        if message is not None:
            raise DpuError(what, why=message.decode(errors="replace"))

    def free(self) -> None:
        """Release the DPUs; this object cannot be used afterwards."""
        self._call("triton_dpu_free", self._set, what="DPUs cannot be freed")

    def load(self, program: Path, *, races: bool = True) -> bool:
        """Load a program; return False if it was loaded before.

        Args:
            races: whether the emulator stops the program at a data race.
        """
        if self._program == program:
            return False
        self._program = None
        before = os.environ.get(_RACES)
        if not races:
            os.environ[_RACES] = "ignore"
        try:
            self._call("triton_dpu_load", self._set, str(program).encode(), what=f"{program.name} cannot be loaded")
        finally:
            if before is None:
                os.environ.pop(_RACES, None)
            else:
                os.environ[_RACES] = before
        self.heap = self.symbol(HEAP).address
        self._program = program
        return True

    def symbol(self, name: str) -> Symbol:
        """Return a variable of the loaded program.

        Raises:
            DpuError: it has none of that name.
        """
        address, size = ctypes.c_uint32(), ctypes.c_uint32()
        out = ctypes.byref(address), ctypes.byref(size)
        self._call("triton_dpu_symbol", self._set, name.encode(), *out, what=f"the DPU program lacks {name}")
        return Symbol(address.value, size.value)

    def send(self, symbol: str, offset: int, size: int, sources: Sequence[int]) -> None:
        """Copy `size` bytes to `offset` bytes after a symbol: to DPU i from host address sources[i], 0 for none."""
        self._transfer(1, symbol, offset, size, sources)

    def send_each(self, symbol: str, contents: Sequence[bytes]) -> None:
        """Set a variable of the DPU program: DPU i gets contents[i]. All have one length, a multiple of 8."""
        size = len(contents[0])
        together = np.frombuffer(b"".join(contents), np.uint8)
        first = together.ctypes.data
        self.send(symbol, 0, size, [first + size * i for i in range(self.count)])

    def receive(self, symbol: str, offset: int, size: int, targets: Sequence[int]) -> None:
        """Copy `size` bytes from `offset` bytes after a symbol: from DPU i to host address targets[i], 0 for none."""
        self._transfer(0, symbol, offset, size, targets)

    def _transfer(self, to_dpus: int, symbol: str, offset: int, size: int, buffers: Sequence[int]) -> None:
        arguments = to_dpus, symbol.encode(), offset, size, (ctypes.c_void_p * self.count)(*buffers)
        self._call("triton_dpu_transfer", self._set, *arguments, what="a transfer failed")

    def launch(self, kernel: str) -> None:
        """Run the loaded program on all DPUs until it ends.

        Args:
            kernel: its name, for the error.

        Raises:
            DpuError: a DPU is in fault; the message has its source line, if the emulator names an instruction, and log.
        """
        message = shim().triton_dpu_launch(self._set)
        if message is not None:
            raise fault(kernel, message.decode(errors="replace"), self._program)

    def stats(self) -> Stats | None:
        """Return what the last launch cost; None if the DPUs have no cost model."""
        numbers = np.zeros((self.count, len(STATS)), np.uint64)
        known = ctypes.c_int()
        self._call(
            "triton_dpu_stats", self._set, numbers.ctypes.data, ctypes.byref(known), what="no statistics of a launch"
        )
        return Stats(**dict(zip(STATS, numbers.T, strict=True))) if known.value else None

    def lines(self) -> dict[str, LineCost]:
        """Return what each source line cost in the last launch, on all DPUs; nothing of lines that cost nothing."""
        costs: dict[str, LineCost] = {}

        def take(place: bytes, instructions: int, dma_cycles: int) -> None:
            if not instructions and not dma_cycles:
                return
            key = place.decode(errors="replace")
            costs[key] = costs.get(key, LineCost(0, 0)).add(LineCost(instructions, dma_cycles))

        self._call("triton_dpu_lines", self._set, TAKE_LINE(take), what="no counts by line")
        return costs


def is_emulator() -> bool:
    """Return whether the library is the project's emulator, which models what launches cost."""
    return bool(shim().triton_dpu_is_emulator())


class Pool:
    """The DPU sets of a process. A set is allocated at its first use and kept for later launches on as many DPUs."""

    def __init__(self) -> None:
        self._sets: OrderedDict[int, DpuSet] = OrderedDict()
        self._process: int | None = None

    def get(self, count: int) -> DpuSet:
        """Return a set of `count` DPUs, with the program that was loaded last, if any.

        Raises:
            DpuError: the machine does not have as many DPUs, or this process was forked from one that has used DPUs.
        """
        if self._process is None:
            self._process = os.getpid()
            atexit.register(self.clear)
        elif self._process != os.getpid():
            raise DpuError(
                "this process cannot use DPUs",
                why=f"it was forked from process {self._process}, whose DPUs it would take over",
                next="launch in one of the two only; multiprocessing can start processes with the method 'spawn'",
            )
        if count in self._sets:
            self._sets.move_to_end(count)
            return self._sets[count]
        while self._sets and sum(-(-size // _RANK) for size in (count, *self._sets)) > _KEPT_RANKS:
            self._sets.popitem(last=False)[1].free()
        try:
            dpus = DpuSet(count)
        except DpuError:
            if not self._sets:
                raise
            self.clear()
            dpus = DpuSet(count)
        self._sets[count] = dpus
        return dpus

    def drop(self, dpus: DpuSet) -> None:
        """Release a set that is in fault."""
        if self._sets.get(dpus.count) is dpus:
            del self._sets[dpus.count]
            dpus.free()

    def clear(self) -> None:
        """Release all sets."""
        while self._sets and self._process == os.getpid():
            self._sets.popitem(last=False)[1].free()
