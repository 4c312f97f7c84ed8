"""What the SDK's Python interface does, with the program words.c; prints [OK]."""

from __future__ import annotations

import array
import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
from dpu import ALLOCATE_ALL, DpuError, DpuSet, DpuSymbol

DPUS = 70
SOURCE = Path("words.c").read_text()


def expect_error(words: str, act: Callable[[], object]) -> None:
    try:
        act()
    except DpuError as error:
        assert words in str(error), error
    else:
        raise AssertionError(f"no DpuError: {words}")


def poisoned(length: int, count: int = DPUS) -> list[bytearray]:
    return [bytearray(b"\x5a" * length) for _ in range(count)]


def copies(dpus: DpuSet, words: DpuSymbol) -> None:
    own = [np.array([i, i + 1000], np.uint64) for i in range(DPUS)]
    dpus.copy("words", array.array("Q", [1, 2, 3, 4]))
    dpus.copy(words, own, offset=8)
    got = poisoned(32)
    dpus.copy(got, words)
    assert [np.frombuffer(one, np.uint64).tolist() for one in got] == [[1, i, i + 1000, 4] for i in range(DPUS)]
    # None leaves a DPU out; a size takes the first bytes; read-only bytes may be sent.
    dpus.copy("words", [None, *[bytes([7] * 16)] * (DPUS - 1)], size=8)
    got = poisoned(16)
    dpus.copy(got, "words", size=8, offset=0)
    assert [one[:8] for one in got] == [bytes([1, *[0] * 7]), *[bytes([7] * 8)] * (DPUS - 1)]
    assert all(one[8:] == b"\x5a" * 8 for one in got)
    block = np.full((2, 2), -1.5, np.float64)
    dpus.dpus()[5].copy("words", block)
    back = np.zeros((2, 2))
    dpus.dpus()[5].copy(back, "words")
    assert (back == block).all()
    expect_error("Host <-> DPU", lambda: dpus.copy(bytearray(8), bytearray(8)))
    expect_error("number of host buffers", lambda: dpus.copy("words", [bytearray(8)] * 3))
    expect_error("too small", lambda: dpus.copy("words", bytearray(8), size=16))
    expect_error("different sizes", lambda: dpus.copy("words", [bytes(8 + 8 * (i == 3)) for i in range(DPUS)]))
    expect_error("list with a buffer", lambda: dpus.copy(bytearray(8), "words"))
    expect_error("needs a buffer", lambda: dpus.copy("words", None))
    expect_error("read-only", lambda: dpus.dpus()[0].copy(bytes(8), "words"))
    expect_error("not contiguous", lambda: dpus.copy("words", np.zeros((4, 4), np.uint64)[:, 0]))
    expect_error("undefined symbol", lambda: dpus.copy("no such", bytes(8)))
    expect_error("invalid memory symbol access", lambda: dpus.copy("words", bytes(40)))


def launches(dpus: DpuSet, streams: list[io.StringIO]) -> None:
    dpus.words = np.arange(4, dtype=np.uint64)
    dpus.factor = bytearray([5, 0, 0, 0])
    dpus.dpus()[3].factor = np.uint32(6)
    dpus.exec()
    assert dpus.total.uint64() == [36 if i == 3 else 30 for i in range(DPUS)]
    assert dpus.dpus()[3].total.uint64() == 36
    assert list(dpus.dpus()[3].words.uint64()) == [0, 1, 2, 3]
    assert dpus.ranks()[1].factor.int32() == [5] * 6
    assert streams[3].getvalue() == "=== DPU#0x3 ===\nfactor 6\n"
    stream = io.StringIO()
    dpus.exec(log=stream)
    assert stream.getvalue().count("factor 5") == DPUS - 1
    dpus.log({dpus.dpus()[3]: stream})
    assert stream.getvalue().endswith("=== DPU#0x3 ===\nfactor 6\n")


def fail(*_: object) -> None:
    raise ValueError("a callback that fails")


def asynchronous(dpus: DpuSet) -> None:
    seen: list[object] = []
    dpus.copy("factor", bytes([2, 0, 0, 0]), async_mode=True)
    dpus.exec(async_mode=True)
    dpus.call(lambda rank, index, arg: seen.append((index, arg, rank.total.uint64())), "rank", async_mode=True)
    dpus.call(lambda whole, _, arg: seen.append((arg, len(whole))), "whole", async_mode=True, single_call=True)
    got = poisoned(8)
    dpus.copy(got, "total", async_mode=True)
    dpus.sync()
    assert {bytes(one) for one in got} == {bytes([12, *[0] * 7])}
    assert sorted(map(str, seen[:2])) == sorted(map(str, [(0, "rank", [12] * 64), (1, "rank", [12] * 6)]))
    assert seen[2:] == [("whole", DPUS)]
    dpus.call(lambda *_: seen.clear(), single_call=True)
    assert not seen
    expect_error("system error", lambda: dpus.call(fail))


streams = [io.StringIO() for _ in range(DPUS)]
with DpuSet(nr_dpus=DPUS, binary="bin/words", log=[*streams]) as dpus:
    assert len(dpus) == len(list(dpus)) == DPUS
    assert [len(rank) for rank in dpus.ranks()] == [64, 6]
    program = dpus.load(Path("bin/words").read_bytes())
    words = program.get_symbol("words")
    assert words is not None and words.size() == 32 and program.get_symbol("no such") is None
    assert {"words", "factor", "total"} <= set(program.fetch_all_symbols())
    copies(dpus, words)
    copies(dpus, DpuSymbol("words", (words.value(), words.size())))
    launches(dpus, streams)
    asynchronous(dpus)
for _ in range(5):
    with DpuSet(nr_ranks=2, c_source=io.StringIO(SOURCE), async_mode=True) as dpus:
        assert len(dpus) == 128
        dpus.words, dpus.factor = bytes([1, *[0] * 31]), bytes([9, 0, 0, 0])
        dpus.exec()
        assert dpus.total.uint64() == [9] * 128
with DpuSet(ALLOCATE_ALL) as dpus:
    assert len(dpus) == 256
    expect_error("allocation", lambda: DpuSet(1))
expect_error("nr_dpus and nr_ranks", lambda: DpuSet(1, 1))
expect_error("no such ELF file", lambda: DpuSet(1, binary="no such"))
expect_error("does not compile", lambda: DpuSet(1, c_source=io.StringIO("int main(")))
expect_error("no assembler", lambda: DpuSet(1, asm_source=io.StringIO("stop")))
expect_error("invalid profile", lambda: DpuSet(1, profile="x"))
print("[OK]")
