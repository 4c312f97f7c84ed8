"""Copy arrays to and from MRAM as planned: send to all DPUs at once, and read from those that wrote.

Bytes that only one DPU can have written are copied as they are. Where several DPUs may have written, each DPU's bytes
are compared with the bytes that were sent to it, and only changed bytes are copied. So a store has its effect, and
bytes that no program stored keep their value. An array that is merged (merging.py) starts as neutral elements on every
DPU, and what each DPU has is combined with the caller's array.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from foundry_core.log import Log, Words

from .host.dpus import HEAP, DpuSet
from .plan import ByteInterval, Round

# Fills the bytes next to an array in a transfer. It is a NaN as a float of any size, as in the emulator's MRAM.
_BESIDE = np.uint16(0x7FFA)
_Bytes = npt.NDArray[np.uint8]


class _Memory:
    """Host memory as NumPy's array interface."""

    def __init__(self, address: int, size: int) -> None:
        self.__array_interface__ = {"data": (address, False), "shape": (size,), "typestr": "|u1", "version": 3}


def view(interval: ByteInterval) -> _Bytes:
    """Return an array over the bytes at host addresses."""
    return np.asarray(_Memory(interval.low, interval.high - interval.low))


def send(dpus: DpuSet, one: Round) -> int:
    """Copy what a round's programs need to the DPUs. Return the number of bytes."""
    sent = 0
    for region in one.regions:
        if not region.sent or region.size == 0:
            continue
        sources, kept = [], []
        neutral = (
            np.resize(region.merge.neutral, region.size // region.merge.neutral.itemsize) if region.merge else None
        )
        for held in region.held:
            if held is None:
                sources.append(0)
            elif neutral is not None:
                sources.append(neutral.ctypes.data)
            elif region.memory.low <= held.low and held.low + region.size <= region.memory.high:
                sources.append(held.low)
            else:
                staged = np.full(region.size // 2, _BESIDE)
                low, high = max(held.low, region.memory.low), min(held.low + region.size, region.memory.high)
                ctypes.memmove(staged.ctypes.data + low - held.low, low, high - low)
                sources.append(staged.ctypes.data)
                kept.append(staged)
        dpus.send(HEAP, region.offset, region.size, sources)
        sent += region.size * sum(source != 0 for source in sources)
    return sent


def receive(dpus: DpuSet, one: Round) -> int:
    """Copy what a round's programs wrote from the DPUs into the caller's arrays. Return the number of bytes."""
    received = 0
    # Save all old bytes before storing any: an array may be in several regions, and is compared with its old value.
    stored = [region for region in one.regions if region.merge is None]
    contested = _contested([interval for region in stored for writes in region.writes for interval in writes])
    before = [(interval, view(interval).copy()) for interval in contested]
    for region in one.regions:
        ends = [
            (interval.low - held.low, interval.high - held.low)
            for held, writes in zip(region.held, region.writes, strict=True)
            if held is not None
            for interval in writes
        ]
        if not ends:
            continue
        # What any DPU may have written, from the start of the region.
        low = min(low for low, _ in ends) // 8 * 8
        size = -(-(max(high for _, high in ends) - low) // 8) * 8
        targets, staged = [], []
        for k, (held, writes) in enumerate(zip(region.held, region.writes, strict=True)):
            if held is None or not writes:
                targets.append(0)
            elif (
                region.merge is None
                and writes == (ByteInterval(held.low + low, held.low + low + size),)
                and not any(writes[0].overlaps(interval) for interval in contested)
            ):
                targets.append(writes[0].low)
            else:
                buffer = np.empty(size, np.uint8)
                targets.append(buffer.ctypes.data)
                staged.append((k, buffer))
        dpus.receive(HEAP, region.offset + low, size, targets)
        received += size * sum(target != 0 for target in targets)
        for k, buffer in staged:
            held = region.held[k]
            assert held is not None
            for interval in region.writes[k]:
                part = buffer[interval.low - held.low - low :][: interval.high - interval.low]
                if region.merge is not None:
                    region.merge.combine(view(interval), part)
                    continue
                _store(interval, part, before, region.item_bytes)
    return received


def send_header(dpus: DpuSet, log: Log, offset: int) -> None:
    """Write an empty log `offset` bytes after the start of each DPU's heap."""
    header = log.header()
    dpus.send(HEAP, offset, header.nbytes, [header.ctypes.data] * dpus.count)


def receive_logs(dpus: DpuSet, log: Log, offset: int) -> list[Words]:
    """Return the filled part of each DPU's log. All are as long as the longest, because a transfer has one length."""
    headers = [log.header() for _ in range(dpus.count)]
    dpus.receive(HEAP, offset, headers[0].nbytes, [header.ctypes.data for header in headers])
    size = max(map(log.used_bytes, headers))
    logs = [np.empty(size // header.itemsize, header.dtype) for header in headers]
    dpus.receive(HEAP, offset, size, [words.ctypes.data for words in logs])
    return logs


def _contested(writes: Sequence[ByteInterval]) -> list[ByteInterval]:
    """Return the intervals in which writes of several DPUs overlap."""
    contested: list[ByteInterval] = []
    stretch: ByteInterval | None = None
    several = False
    for interval in sorted(writes, key=lambda interval: interval.low):
        if stretch is not None and interval.low < stretch.high:
            stretch, several = ByteInterval(stretch.low, max(stretch.high, interval.high)), True
            continue
        if stretch is not None and several:
            contested.append(stretch)
        stretch, several = interval, False
    if stretch is not None and several:
        contested.append(stretch)
    return contested


def _store(interval: ByteInterval, new: _Bytes, before: Sequence[tuple[ByteInterval, _Bytes]], item_bytes: int) -> None:
    """Store the bytes that a DPU has for an interval into the caller's memory."""
    for stretch, old in before:
        if stretch.low <= interval.low and interval.high <= stretch.high:
            was = old[interval.low - stretch.low :][: len(new)]
            here = view(interval)
            if interval.low % item_bytes == 0 and len(new) % item_bytes == 0:
                # Compare whole elements, so that an element that several DPUs store is from one DPU, never a mixture.
                wide: Any = np.dtype(f"u{item_bytes}")
                here, new, was = here.view(wide), new.view(wide), was.view(wide)
            np.copyto(here, new, where=new != was)
            return
    ctypes.memmove(interval.low, new.ctypes.data, len(new))
