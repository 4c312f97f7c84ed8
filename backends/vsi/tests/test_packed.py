"""Packed kernels on the vsi target: the folder's own example, the tensor core's commands, and what is refused."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from image import RELEASE, printed, python

PACKS = RELEASE >= (3, 6)
SCRIPT = """
import ml_dtypes
import numpy as np
import triton
import triton.language as tl


@triton.jit
def product(a, b, c, M, N, K, scale, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for first in range(0, K, BK):
        x = tl.load(a + i[:, None] * K + first + k, mask=(i[:, None] < M) & (first + k < K), other=0)
        y = tl.load(b + (first + k[:, None]) * N + j, mask=(first + k[:, None] < K) & (j < N), other=0)
        total += tl.dot(x, y)
    tl.store(c + i[:, None] * N + j, total * scale, mask=(i[:, None] < M) & (j < N))


random = np.random.default_rng(0)
a, b = random.standard_normal((50, 33), np.float32), random.standard_normal((33, 70), np.float32)
c = np.full((50, 70), np.nan, np.float32)
product[(4, 5)](a, b, c, 50, 70, 33, 0.5, BM=16, BN=16, BK=16)
"""
USE = """
import numpy as np, product
random = np.random.default_rng(1)
for m, n, k in ((50, 70, 33), (48, 64, 32), (1, 2, 3), (16, 16, 1)):
    a, b = random.standard_normal((m, k), np.float32), random.standard_normal((k, n), np.float32)
    c = np.full((m, n), np.nan, np.float32)
    product.product[(-(-m // 16), -(-n // 16))](a, b, c, m, n, k, -1.5, BM=16, BN=16, BK=16)
    # Each of k products and sums, and the product with the scale, is rounded once.
    exact, size = (np.float64(f(a)) @ np.float64(f(b)) * s for f, s in ((np.asarray, -1.5), (np.abs, 1.5)))
    assert (np.abs(c - exact) <= (k + 2) * 2.0**-24 * size).all(), (m, n, k)
try:
    product.product[(4, 5)](a, b, c, 50, 70, 33, 0.5, BM=16, BN=16, BK=16)
except product.PackedError as error:
    print(error)
"""


@pytest.mark.skipif(PACKS, reason="this release of Triton packs")
def test_a_release_whose_kernels_do_not_pack_is_named(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    done = python("-m", "foundry_core.packed", f"{tmp_path}/script.py:product", tmp_path / "product")
    assert done.returncode == 1 and "Triton 3.2 compiled it; pack it with 3.6 or a later release" in done.stderr
    assert not (tmp_path / "product").exists()


@pytest.fixture(scope="module", params=["", "tensor core", "threads"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not PACKS:
        pytest.skip("kernels that this release of Triton compiled are refused")
    work = tmp_path_factory.mktemp("packed")
    (work / "script.py").write_text(SCRIPT)
    switches = {"tensor core": {"VSI_ENABLE_TC": "1"}, "threads": {"VSI_ENABLE_MULTI_THREADS": "1"}}
    words = ("-m", "foundry_core.packed", f"{work}/script.py:product", f"{work}/product")
    assert "product: " in printed(*words, **switches.get(request.param, {}))
    return work / "product"


def test_example_computes_what_was_recorded(folder: Path) -> None:
    done = subprocess.run([folder / "bin/product_example", folder], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("as recorded on ")
    (after,) = folder.glob("recorded/*.after")
    content = bytearray(after.read_bytes())
    content[5] ^= 0x10
    changed = Path(shutil.copytree(folder, folder.with_name("changed"), dirs_exist_ok=True))
    (changed / after.relative_to(folder)).write_bytes(content)
    done = subprocess.run([changed / "bin/product_example", changed], capture_output=True, text=True, check=False)
    assert done.returncode != 0 and "WRONG" in done.stdout


def test_other_sizes_agree_with_numpy_and_short_arrays_are_refused(folder: Path) -> None:
    assert "is too short for product" in printed("-c", USE, PYTHONPATH=str(folder / "python"))
