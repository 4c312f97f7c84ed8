"""Examples run in the images to their end, with the command that they name, and their output files are copied out."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from scripts_in_image import Printed

from toolchains.system import paths

pytestmark = pytest.mark.docker
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
print("6 types")
"""


PAGES = {"readme": paths.ROOT / "README.md", "kernel": paths.ROOT / "docs" / "kernel.md"}
FIRST = paths.ROOT / "examples" / "get_started.py"
HOST_CODE = Path(__file__).with_name("host_code.py")
OF_SPIRV = {
    name: paths.BACKENDS / "spirv" / "examples" / f"{name}.py" for name in ("matmul", "attention", "softmax_torch")
}
# The scripts that run in the image of each target.
SCRIPTS: Mapping[str, Sequence[Path]] = {
    "spirv": [OF_SPIRV["matmul"], OF_SPIRV["attention"]],
    "spirv-vulkan": [OF_SPIRV["matmul"], OF_SPIRV["attention"]],
    "spirv-torch": [FIRST, OF_SPIRV["softmax_torch"], HOST_CODE],
    "vsi-torch": [HOST_CODE],
    "dpu": [FIRST],
    "vsi": [FIRST],
}


def first_kernel(page: str) -> str:
    """Return the script in a page."""
    (script,) = re.findall(r"^```python\n(.*?)^```", PAGES[page].read_text(encoding="utf-8"), re.DOTALL | re.M)
    return str(script)


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Printed]:
    """Return a function that gives what all scripts print in the image of a target."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "tensors.py").write_text(TENSORS)
    for page in PAGES:
        (folder / f"{page}.py").write_text(first_kernel(page), encoding="utf-8")
    made = {"spirv": [folder / f"{page}.py" for page in PAGES], "spirv-torch": [folder / "tensors.py"]}

    @functools.cache
    def of(target: str) -> Printed:
        scripts = [*SCRIPTS[target], *made.get(target, ())]
        return Printed(tmp_path_factory.mktemp(target), target, scripts, {FIRST.stem: ["--sizes", "4096", "65536"]})

    return of


@pytest.mark.parametrize(("target", "reference"), [("spirv-torch", "torch"), ("dpu", "numpy"), ("vsi", "numpy")])
def test_difference_table_and_plot_come_out(target: str, reference: str, printed: Callable[[str], Printed]) -> None:
    said = printed(target).of(FIRST.stem)
    assert f"The maximum difference between {reference} and triton is 0.0\n" in said
    table = said.partition("vector-add-performance:\n")[2].splitlines()
    runs = re.fullmatch(r"Each is the median of (\d+) to \d+ additions\.", table.pop())
    assert runs is not None and int(runs[1]) >= 5
    assert table[0].split()[:2] == ["size", "Triton"]
    assert [float(line.split()[1]) for line in table[1:]] == [4096, 65536]
    assert all(float(number) > 0 for line in table[1:] for number in line.split()[2:])
    picture = (printed(target).folder / "vector-add-performance.png").read_bytes()
    assert picture.startswith(b"\x89PNG\r\n") and len(picture) > 5000


@pytest.mark.parametrize("page", PAGES)
def test_the_first_kernel_of_a_page_runs_as_it_is_printed(page: str, printed: Callable[[str], Printed]) -> None:
    # It would pass without its check, which every page must show.
    assert "assert" in first_kernel(page)
    assert " on CPU OpenCL device: " in printed("spirv").of(page)


def test_torchs_tensors_are_taken(printed: Callable[[str], Printed]) -> None:
    assert printed("spirv-torch").of("tensors") == "6 types\n"
    said = printed("spirv-torch").of("softmax_torch")
    # A sum of 781 terms in f32: each addition rounds, and no value is above 1.
    assert float(said.rpartition(" ")[2]) < 781 * 2**-24


@pytest.mark.parametrize(("target", "forms"), [("spirv-torch", 7), ("vsi-torch", 6)])
def test_host_code_of_tutorials_runs_unchanged(target: str, forms: int, printed: Callable[[str], Printed]) -> None:
    said = printed(target).of(HOST_CODE.stem)
    assert f"{forms} forms on " in said and "triton.profiler recorded nothing" in said


@pytest.mark.parametrize(("target", "device"), [("spirv", "CPU OpenCL device"), ("spirv-vulkan", "CPU Vulkan device")])
@pytest.mark.parametrize("example", ["matmul", "attention"])
def test_example_runs_on_opencl_and_vulkan(
    target: str, device: str, example: str, printed: Callable[[str], Printed]
) -> None:
    said = printed(target).of(example)
    assert device in said
    # The example prints its largest error as a part of what is allowed; NaN is not below 1.
    assert float(said.rpartition(" ")[2]) < 1
