"""Kernels that are packed for Vulkan, launched through the folder's own library: values, and what is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

# Launches each kernel once, and checks it, because an example that recorded wrong values would repeat them.
SCRIPT = """
import numpy as np
import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@triton.jit
def total(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + tl.program_id(0), tl.sum(tl.load(x + tl.program_id(0) * n + i, mask=i < n, other=0.0), 0))


@triton.jit
def product(a, b, c, SIZE: tl.constexpr):
    i, j = tl.arange(0, SIZE)[:, None], tl.arange(0, SIZE)[None, :]
    tl.store(c + i * SIZE + j, tl.dot(tl.load(a + i * SIZE + j), tl.load(b + i * SIZE + j)))


@triton.jit
def count(x, bins, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(bins + tl.load(x + i, mask=i < n, other=0), 1, mask=i < n)


@triton.jit
def numbers(
    out, a: tl.int8, b: tl.int16, c: tl.int32, d: tl.int64, e: tl.uint8, f: tl.uint16, g: tl.uint32, h: tl.uint64,
    i: tl.float16, j: tl.bfloat16, k: tl.float32, l: tl.float64, m: tl.int1, n, o,
):
    tl.store(out, a.to(tl.float64))
    tl.store(out + 1, b.to(tl.float64))
    tl.store(out + 2, c.to(tl.float64))
    tl.store(out + 3, d.to(tl.float64))
    tl.store(out + 4, e.to(tl.float64))
    tl.store(out + 5, f.to(tl.float64))
    tl.store(out + 6, g.to(tl.float64))
    tl.store(out + 7, h.to(tl.float64))
    tl.store(out + 8, i.to(tl.float64))
    tl.store(out + 9, j.to(tl.float64))
    tl.store(out + 10, k.to(tl.float64))
    tl.store(out + 11, l)
    tl.store(out + 12, m.to(tl.float64))
    tl.store(out + 13, n.to(tl.float64))
    tl.store(out + 14, o.to(tl.float64))


NUMBERS = (-5, -300, -70000, -(2**40), 200, 60000, 2**32 - 5, 2**63 + 2048, 0.1, 0.1, 0.1, 1e-300, True, 2**40, 7)
EXPECTED = [*NUMBERS[:8], float(np.float16(0.1)), 0.10009765625, float(np.float32(0.1)), 1e-300, 1, 2**40, 7]

if __name__ == "__main__":
    x = np.arange(100, dtype=np.float32)
    out = np.full(100, np.nan, np.float32)
    add[(2,)](x, x, out, 100, BLOCK=64)
    assert (out == 2 * x).all()
    out = np.full(1, np.nan, np.float32)
    total[(1,)](x, out, 100, BLOCK=128)
    assert out == x.sum()
    a, c = np.eye(16, dtype=np.float16), np.full((16, 16), np.nan, np.float32)
    product[(1,)](a, a, c, SIZE=16)
    assert (c == a).all()
    bins = np.zeros(4, np.int32)
    count[(2,)](np.arange(100, dtype=np.int32) % 4, bins, 100, BLOCK=64)
    assert (bins == 25).all()
    out = np.full(15, np.nan)
    numbers[(1,)](out, *NUMBERS)
    assert out.tolist() == EXPECTED
"""


def run(*words: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        list(map(str, words)), env={**os.environ, **variables}, capture_output=True, text=True, timeout=500
    )


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pack the script's kernels; the image's compiler builds the library and the example."""
    folder = tmp_path_factory.mktemp("packed")
    folder.joinpath("script.py").write_text(SCRIPT)
    done = run(sys.executable, "-m", "foundry_core.packed", "--name=kern", folder / "script.py", folder / "kern")
    assert done.returncode == 0, done.stderr
    return folder / "kern"


def check(packed: Path, program: str, **variables: str) -> None:
    """Run a program that imports the folder's loader as `kern`, and the script as `script`."""
    head = "import numpy as np, kern, script\nfrom pytest import raises\n"
    path = f"{packed}/python:{packed.parent}"
    done = run(
        sys.executable, "-c", head + program, PYTHONPATH=f"{path}:{os.environ.get('PYTHONPATH', '')}", **variables
    )
    assert done.returncode == 0, done.stderr


def test_example_computes_what_was_recorded(packed: Path) -> None:
    done = run(packed / "bin/kern_example", packed)
    assert (done.returncode, done.stderr) == (0, ""), done
    assert "0 of 5 recorded launches are wrong" in done.stdout and "llvmpipe" in done.stdout


def test_values_are_those_of_numpy(packed: Path) -> None:
    check(
        packed,
        """
random = np.random.default_rng(0)
for n in (1, 63, 64, 1000, 1008):
    x, y = random.standard_normal((2, n)).astype(np.float32)
    x[:1], y[-1:] = np.nan, -np.inf
    out = np.full(n + 16, np.nan, np.float32)
    out[n:] = 5
    kern.add[((n + 63) // 64,)](x, y, out, n, BLOCK=64)
    np.testing.assert_array_equal(out[:n], x + y)
    assert (out[n:] == 5).all()
for n in (1, 100, 128):
    x, out = random.standard_normal((3, n)).astype(np.float32), np.full(3, np.nan, np.float32)
    kern.total[(3,)](x, out, n, BLOCK=128)
    exact = x.astype(np.float64)
    # Seven levels of additions, each rounded to half a unit in the last place.
    assert (np.abs(out - exact.sum(1)) <= 7 * 2.0**-24 * 1.01 * np.abs(exact).sum(1)).all()
a, b = random.standard_normal((2, 16, 16)).astype(np.float16)
c = np.full((16, 16), np.nan, np.float32)
kern.product[(1,)](a, b, c, SIZE=16)
a, b = a.astype(np.float64), b.astype(np.float64)
# 16 additions; a product of two f16 is exact in f32.
assert (np.abs(c - a @ b) <= 16 * 2.0**-24 * 1.01 * (np.abs(a) @ np.abs(b))).all()
x, bins = random.integers(0, 4, 1000).astype(np.int32), np.zeros(4, np.int32)
kern.count[(16,)](x, bins, 1000, BLOCK=64)
assert (bins == np.bincount(x, minlength=4)).all()
out = np.full(15, np.nan)
kern.numbers[(1,)](out, *script.NUMBERS)
assert out.tolist() == script.EXPECTED
""",
    )


def test_a_grid_may_be_empty_and_larger_than_a_dispatch(packed: Path) -> None:
    check(
        packed,
        """
x, out = np.ones(64, np.float32), np.full(64, np.nan, np.float32)
for grid in ((0,), (1, 0), (1, 1, 0)):
    kern.add[grid](x, x, out, 64, BLOCK=64)
assert np.isnan(out).all()
# A dispatch has at most 65535 programs along x here.
n = 70000 * 64 - 1
x, out = np.arange(n).astype(np.float32), np.full(n, np.nan, np.float32)
kern.add[(70000,)](x, x, out, n, BLOCK=64)
assert (out == 2 * x).all()
with raises(kern.PackedError, match="65535"):
    kern.add[(1, 65536)](x, x, out, 64, BLOCK=64)
""",
    )


def test_arrays_of_the_host_may_be_parts_of_one_another(packed: Path) -> None:
    check(
        packed,
        """
x = np.arange(200, dtype=np.float32)
kern.add[(2,)](x[:100], x[100:], x[:100], 100, BLOCK=64)
assert (x == [*(2 * np.arange(100) + 100), *range(100, 200)]).all()
held = kern.Array(x)
kern.add[(2,)](held, held, held, 100, BLOCK=64)
assert (held.numpy() == [*(4 * np.arange(100) + 200), *range(100, 200)]).all()
""",
    )


@pytest.mark.parametrize(
    ("device", "said"),
    [("any-32", "subgroups of 32"), ('vulkan {"warp_size": 8, "preserves_denormals": [32]}', "subnormal numbers")],
)
def test_a_device_that_lacks_what_a_kernel_needs_is_refused(tmp_path: Path, device: str, said: str) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    words = ("--name=kern", f"--device={device}", f"{tmp_path}/script.py:add", tmp_path / "kern")
    done = run(sys.executable, "-m", "foundry_core.packed", *words)
    assert done.returncode == 0, done.stderr
    check(
        tmp_path / "kern",
        f"""
x, out = np.ones(100, np.float32), np.full(100, np.nan, np.float32)
with raises(kern.PackedError, match={said!r}):
    kern.add[(2,)](x, x, out, 100, BLOCK=64)
assert np.isnan(out).all()
""",
    )


def test_a_probe_that_finds_otherwise_refuses_the_kernel(tmp_path: Path) -> None:
    """Mesa's CPU rounds a fused multiplication and addition twice: a kernel that relies on one rounding is refused."""
    load = "tl.load(x + i, mask=i < n)"
    script = SCRIPT.replace(f"{load} +", f"tl.fma({load}, {load},").replace("i < n), mask", "i < n)), mask", 1)
    (tmp_path / "script.py").write_text(script.replace("(out == 2 * x)", "(out == x * x + x)"))
    words = (
        "--name=kern",
        '--device=vulkan {"warp_size": 8, "fuses": [32]}',
        f"{tmp_path}/script.py:add",
        tmp_path / "kern",
    )
    done = run(sys.executable, "-m", "foundry_core.packed", *words)
    assert done.returncode == 0, done.stderr
    check(
        tmp_path / "kern",
        """
x, out = np.ones(100, np.float32), np.full(100, np.nan, np.float32)
with raises(kern.PackedError, match="relies on") as caught:
    kern.add[(2,)](x, x, out, 100, BLOCK=64)
assert "f32.probe" in str(caught.value)
assert np.isnan(out).all()
""",
    )


def test_a_device_is_chosen_by_its_name(packed: Path) -> None:
    done = run(packed / "bin/kern_example", packed, "no such device")
    assert done.returncode == 2 and 'fits "no such device"' in done.stderr and "llvmpipe" in done.stderr
    assert run(packed / "bin/kern_example", packed, "LLVMPIPE").returncode == 0
