"""Packing with Triton: scripts are run, and their folders launched by the example and by the loader."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from image import printed, python

_KINDS = """
import numpy as np
import triton
import triton.language as tl


@triton.jit
def scalars(out, flag, b: tl.int1, a8: tl.int8, a16: tl.int16, a32: tl.int32, a64: tl.int64, u8: tl.uint8,
            u16: tl.uint16, u32: tl.uint32, u64: tl.uint64, h: tl.float16, bf: tl.bfloat16, f, d: tl.float64, one, big,
            none, MODE: tl.constexpr, YES: tl.constexpr):
    tl.store(out + 0, flag.to(tl.float64))
    tl.store(out + 1, a8.to(tl.float64))
    tl.store(out + 2, a16.to(tl.float64))
    tl.store(out + 3, a32.to(tl.float64))
    tl.store(out + 4, a64.to(tl.float64))
    tl.store(out + 5, u8.to(tl.float64))
    tl.store(out + 6, u16.to(tl.float64))
    tl.store(out + 7, u32.to(tl.float64))
    tl.store(out + 8, u64.to(tl.float64))
    tl.store(out + 9, h.to(tl.float64))
    tl.store(out + 10, bf.to(tl.float64))
    tl.store(out + 11, f.to(tl.float64))
    tl.store(out + 12, d)
    tl.store(out + 13, b.to(tl.float64))
    tl.store(out + 14, (big // 2).to(tl.float64))
    if none is None:
        tl.store(out + 15, 5.0)
    if MODE == "five" and YES:
        tl.store(out + 16, one * 7.0)


@triton.jit
def shift(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out + i, tl.load(x + i, mask=mask) * 2, mask=mask)


out = np.full(18, -1.0)
numbers = [-100, -30000, 2**31 - 1, -(2**62), 255, 65535, 2**32 - 1, 2**64 - 1, 0.1, 0.1, 0.1, 0.1, 1, 2**40]
scalars[(1,)](out, True, False, *numbers, None, "five", True)
half, brain, single = float(np.float16(0.1)), 0.10009765625, float(np.float32(0.1))
assert out.tolist() == [1, *map(float, numbers[:8]), half, brain, single, 0.1, 0, 2**39, 5, 7, -1], out.tolist()
x = np.arange(1003, dtype=np.int32)
y = np.full(1003, -7, np.int32)
shift[(4,)](x[3:], y[1:], 1000, BLOCK=256)
assert (y[1:1001] == 2 * x[3:1003]).all() and y[0] == -7 and (y[1001:] == -7).all()
x = np.arange(1024, dtype=np.int64).reshape(32, 32)
y = np.full((32, 32), -7, np.int64)
shift[(4,)](x, y, 1024, BLOCK=256)
assert (y == 2 * x).all()
shift[(0,)](x, y, 16, BLOCK=16)
"""
_TUNED = """
import numpy as np
import triton
import triton.language as tl


@triton.autotune([triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 1024})], key=["n"])
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def scale(x, out, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    if EVEN:
        tl.store(out + i, tl.load(x + i) * 3)
    else:
        tl.store(out + i, tl.load(x + i, mask=mask) * 3, mask=mask)


for n in (100, 1 << 16):
    x = np.arange(n, dtype=np.float32)
    y = np.full(n, np.nan, np.float32)
    scale[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, n)
    assert (y == 3 * x).all()
"""


def _pack(tmp_path: Path, text: str, name: str, *kernels: str) -> Path:
    script, folder = tmp_path / "script.py", tmp_path / name
    script.write_text(text)
    words = ("-m", "foundry_core.packed", f"--name={name}", f"{script}:{','.join(kernels)}", str(folder))
    printed(*words)
    return folder


def _replayed(folder: Path) -> str:
    program = str(folder / "bin" / f"{json.loads((folder / 'foundry.json').read_text())['name']}_example")
    return printed("-m", "foundry_core.packed.replay", program, str(folder))


def _loaded(folder: Path, code: str) -> str:
    head = "from foundry_core.runtime.pocl import choose_library; choose_library()\nimport sys, numpy as np\n"
    return printed("-c", f"{head}sys.path.insert(0, {str(folder / 'python')!r})\n{code}")


def test_kernels_with_all_kinds_of_arguments_run_as_recorded_and_are_the_same_bytes(tmp_path: Path) -> None:
    folder = _pack(tmp_path, _KINDS, "kinds")
    assert "0 of 3 recorded launches are wrong" in _replayed(folder)
    kept = folder.rename(tmp_path / "first")
    again = _pack(tmp_path, _KINDS, "kinds")
    one, other = ({p.relative_to(top): p.read_bytes() for p in top.rglob("*") if p.is_file()} for top in (kept, again))
    assert one.keys() == other.keys()
    assert [str(path) for path in one if one[path] != other[path]] == []


def test_a_call_of_any_size_computes_what_triton_would(tmp_path: Path) -> None:
    folder = _pack(tmp_path, _KINDS, "kinds", "shift")
    code = """
import kinds
for type in (np.int32, np.int64):
    for shift in (0, 1, 3):
        for n in (0, 1, 16, 1000, 1001, 1024):
            x = np.arange(2000).astype(type)
            y = np.full(2000, -7, type)
            kinds.shift[(4,)](x[shift:], y[shift:], n, BLOCK=256)
            assert (y[shift:shift + n] == 2 * x[shift:shift + n]).all(), (type, shift, n)
            assert (y[:shift] == -7).all() and (y[shift + n:] == -7).all(), (type, shift, n)
try:
    kinds.shift[(4,)](x.astype(np.float32), y, 16, BLOCK=256)
except kinds.PackedError as error:
    print(error)
"""
    assert "x is *fp32, and packed is" in _loaded(folder, code)


def test_a_packed_tuned_kernel_keeps_its_choice(tmp_path: Path) -> None:
    folder = _pack(tmp_path, _TUNED, "tuned")
    assert "0 of 2 recorded launches are wrong" in _replayed(folder)
    code = """
import tuned
for n in (90, 100, 5000, 1 << 16):
    x, y = np.arange(n, dtype=np.float32), np.full(n, np.nan, np.float32)
    for even in (False, True):
        try:
            tuned.scale[lambda meta: (-(-n // meta["BLOCK"]),)](x, y, n, EVEN=even)
        except tuned.PackedError as error:
            # What was measured decides which BLOCK a size gets, and so whether EVEN was packed with it.
            assert "argument EVEN" in str(error) or "too short" in str(error), error
            continue
        assert (y == 3 * x).all()
        print(n, even)
"""
    assert _loaded(folder, code).split("\n")[0].startswith("90 False")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("tl.device_print('x', tl.load(x))", "it prints or asserts"),
        ("tl.store(tl.load(x).to(tl.pointer_type(tl.float32)), 1.0)", "it makes pointers of numbers"),
    ],
)
def test_kernels_that_cannot_leave_are_refused_with_the_reason(tmp_path: Path, body: str, message: str) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import numpy as np, triton, triton.language as tl\n@triton.jit\ndef kernel(x):\n"
        f"    {body}\nkernel[(1,)](np.zeros(4, np.int64))\n"
    )
    done = python("-m", "foundry_core.packed", f"{script}:kernel", str(tmp_path / "out"))
    assert done.returncode == 1
    assert "the kernel kernel cannot be packed" in done.stderr
    assert message in done.stderr
    assert not (tmp_path / "out").exists()
