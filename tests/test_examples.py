"""Examples run in the images to their end, with the command that they name, and their output files are copied out."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from toolchains.system import paths

# A view that starts inside its tensor, which the plugin must support, and a strided view.
TENSORS = """
import torch, triton, triton.language as tl

@triton.jit
def triple(x, y, n, stride, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i * stride, mask=i < n) * 3, mask=i < n)

for dtype in torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int8, torch.int64:
    x, y = torch.arange(40).to(dtype), torch.zeros(50, dtype=dtype)
    triple[(2,)](x[::2], y[10:30], 20, x[::2].stride(0), BLOCK=16)
    assert torch.equal(y[10:30], 3 * x[::2]), dtype
    assert not y[:10].any() and not y[30:].any(), dtype
"""


def run(*words: str | Path) -> str:
    """Run `./foundry run` with these words. Return its output; it must succeed."""
    invoke = [sys.executable, "-P", "-m", "invoke", "--search-root", paths.ROOT]
    done = subprocess.run(
        [*invoke, "run", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=3000, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.docker
@pytest.mark.parametrize(("target", "reference"), [("spirv-torch", "torch"), ("dpu", "numpy"), ("vsi", "numpy")])
def test_the_difference_the_table_and_the_plot_come_out(target: str, reference: str, tmp_path: Path) -> None:
    said = run(f"--results={tmp_path}", target, paths.ROOT / "examples" / "get_started.py", "--sizes", "4096", "65536")
    assert f"The maximum difference between {reference} and triton is 0.0\n" in said
    table = said.partition("vector-add-performance:\n")[2].splitlines()
    runs = re.fullmatch(r"Each is the median of (\d+) to \d+ additions\.", table.pop())
    assert runs is not None and int(runs[1]) >= 5
    assert table[0].split()[:2] == ["size", "Triton"]
    assert [float(line.split()[1]) for line in table[1:]] == [4096, 65536]
    assert all(float(number) > 0 for line in table[1:] for number in line.split()[2:])
    picture = (tmp_path / "vector-add-performance.png").read_bytes()
    assert picture.startswith(b"\x89PNG\r\n") and len(picture) > 5000


@pytest.mark.docker
@pytest.mark.parametrize("page", ["README.md", "docs/getting-started.md"])
def test_the_first_kernel_of_a_page_runs_as_it_is_printed(page: str, tmp_path: Path) -> None:
    (script,) = re.findall(r"^```python\n(.*?)^```", (paths.ROOT / page).read_text(encoding="utf-8"), re.DOTALL | re.M)
    # It would pass without its check, which every page must show.
    assert "assert" in script
    (tmp_path / "first.py").write_text(script, encoding="utf-8")
    assert " on CPU OpenCL device: " in run("spirv", tmp_path / "first.py")


@pytest.mark.docker
def test_torchs_tensors_are_taken(tmp_path: Path) -> None:
    (tmp_path / "tensors.py").write_text(TENSORS)
    run("spirv-torch", tmp_path / "tensors.py")
    said = run(f"--results={tmp_path}", "spirv-torch", paths.BACKENDS / "spirv" / "examples" / "softmax_torch.py")
    # A sum of 781 terms in f32: each addition rounds, and no value is above 1.
    assert float(said.rpartition(" ")[2]) < 781 * 2**-24


@pytest.mark.docker
@pytest.mark.parametrize(("target", "forms"), [("spirv-torch", 7), ("vsi-torch", 6)])
def test_host_code_in_the_forms_of_tritons_tutorials_runs_unchanged(target: str, forms: int, tmp_path: Path) -> None:
    said = run(f"--results={tmp_path}", target, paths.ROOT / "tests" / "host_code.py")
    assert f"{forms} forms on " in said and "triton.profiler recorded nothing" in said


@pytest.mark.docker
@pytest.mark.parametrize("target", ["spirv", "spirv-vulkan"])
@pytest.mark.parametrize("example", ["matmul", "attention"])
def test_the_same_example_runs_on_opencl_and_on_vulkan(target: str, example: str, tmp_path: Path) -> None:
    said = run(f"--results={tmp_path}", target, paths.BACKENDS / "spirv" / "examples" / f"{example}.py")
    assert ("CPU Vulkan device" if target == "spirv-vulkan" else "CPU OpenCL device") in said
    # The example prints its largest error as a part of what is allowed; NaN is not below 1.
    assert float(said.rpartition(" ")[2]) < 1
