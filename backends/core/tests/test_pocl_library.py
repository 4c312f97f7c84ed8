"""PoCL's library of functions read lazily: what is compiled is the same to the byte."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

cl = pytest.importorskip("pyopencl", reason="this image has no OpenCL")

# Functions that call others, of several types, with tables; an own function with the name of one; and printf.
SOURCE = """
float recip(float x) { return 1 / x; }
kernel void f(global float4 *x, global double *d, global int *i) {
    int g = get_global_id(0);
    float4 v = x[g];
    x[g] = sin(v) + lgamma(v) * pow(v, v.wzyx) + convert_float4(convert_int4_sat_rte(v)) + recip(v.x);
    d[g] = tgamma(d[g]) + sinpi(d[g]);
    atomic_add(i, clz(g) + mul_hi(g, g));
    barrier(CLK_LOCAL_MEM_FENCE);
    if (g == 0) printf("%f\\n", d[0]);
}
"""
SCRIPT = f"""
import sys
from pathlib import Path
import numpy, pyopencl as cl
from foundry_core.runtime import opencl
from foundry_core.runtime import pocl
if sys.argv[1] == "whole":
    pocl._LAZY_READER = Path("/missing")
device = next(each for each in opencl.devices() if "Portable Computing Language" in each.platform.name)
context = cl.Context([device])
kernel = cl.Kernel(cl.Program(context, {SOURCE!r}).build(), "f")
buffers = [cl.Buffer(context, cl.mem_flags.READ_WRITE, 1024) for _ in range(3)]
kernel(cl.CommandQueue(context), (8,), (4,), *buffers).wait()
"""


@pytest.mark.skipif(
    not any("Portable Computing Language" in each.name for each in cl.get_platforms()), reason="PoCL is not here"
)
def test_pocl_compiles_the_same_bytes_with_the_lazy_library_reader(tmp_path: Path) -> None:
    objects = {}
    for how in ("whole", "lazily"):
        folder, said = tmp_path / how, tmp_path / f"{how}.txt"
        folder.mkdir()
        traced = {"LD_DEBUG": "bindings", "LD_DEBUG_OUTPUT": str(said)}
        own = {"POCL_CACHE_DIR": str(folder), "PYOPENCL_NO_CACHE": "1"}
        subprocess.run([sys.executable, "-c", SCRIPT, how], env=os.environ | own | traced, check=True)
        (objects[how],) = (path.read_bytes() for path in folder.rglob("*.so"))
        bindings = "".join(path.read_text() for path in tmp_path.glob(f"{how}.txt.*")).splitlines()
        ours = [line for line in bindings if "/libpocl.so" in line and "/pocl.so" in line]
        assert bool(ours) == (how == "lazily")
    assert objects["lazily"] == objects["whole"]
