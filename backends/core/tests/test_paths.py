"""A kernel's file may have any name that Python reads, in any folder."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

KERNEL = """import numpy as np, triton, triton.language as tl

@triton.jit
def add_one({x}, out, astray, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.device_assert(i >= 0, "ñ \\" \\\\ */ ??/ %s")
    tl.store(out + astray + i, tl.load({x} + i) + 1)
"""
NAMES = ["añadir 加🦙.py", "a\"'\\\\22\\n\n\t\x01%s %d*-??'{x}$HOME`,;#<b>//.py"]


@pytest.mark.any_release
@pytest.mark.parametrize("name", NAMES, ids=["not ascii", "marks"])
def test_a_kernel_in_an_odd_file_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A kernel of the same text in another file would be taken from the cache.
    monkeypatch.setenv("TRITON_ALWAYS_COMPILE", "1")
    file = tmp_path / name.replace(".py", "").replace("/", "_") / name.replace("/", "_")
    file.parent.mkdir()
    file.write_text(KERNEL.format(x="größe"))
    spec = importlib.util.spec_from_file_location("odd", file)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    x = np.arange(256, dtype=np.float32)
    out = np.full_like(x, np.nan)
    module.add_one[(2,)](x, out, 0, BLOCK=128, debug=True)
    np.testing.assert_array_equal(out, x + 1)
