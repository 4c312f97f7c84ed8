"""A first launch whose kernel is in the caches imports only what launches: neither xDSL nor the lowering."""

from __future__ import annotations

import json
from pathlib import Path

from image import python

SCRIPT = """
import json, sys
import numpy as np
import triton
import triton.language as tl

@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)

x, y = np.arange(200, dtype=np.float32).reshape(2, 100)
out = np.full(100, np.nan, np.float32)
add_kernel[(2,)](x, y, out, 100, BLOCK=64)
np.testing.assert_array_equal(out, x + y)
print(json.dumps([name for name in sys.modules if name.split(".")[0] in ("foundry_core", "xdsl")]))
"""
# The packages of foundry_core that read a kernel and write another form of it.
LOWERING = {"analysis", "emit", "footprint", "front", "functions", "ir", "ops"}
# Modules of the other packages that such a launch needs: how a device is described, how its binary is read, and what
# identifies the compiler.
NEEDED = {
    "codegen": {"lines", "programs", "spirv"},
    "mapping": {"arch", "base", "base.target", "simt", "simt.target"},
}


def test_launch_with_filled_caches_imports_neither_xdsl_nor_the_lowering(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    variables = {"TRITON_CACHE_DIR": str(tmp_path / "triton"), "XDG_CACHE_HOME": str(tmp_path / "other")}
    runs = [python(script, **variables) for _ in range(2)]
    assert [run.returncode for run in runs] == [0, 0], runs[-1].stderr
    first, second = ({*json.loads(run.stdout)} for run in runs)
    # The same launch without a cache imports both, so the names are those that are looked for.
    assert {"xdsl.ir", "foundry_core.ir.parse"} <= first
    assert not [name for name in second if name.split(".")[0] == "xdsl"]
    for name in second - {"foundry_core"}:
        package, _, rest = name.removeprefix("foundry_core.").partition(".")
        assert package not in LOWERING, name
        assert not rest or rest in NEEDED.get(package, {rest}), name
