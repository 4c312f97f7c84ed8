"""torch.compile with backend="spirv": what becomes a kernel, and what is refused. e2e checks results."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.utils._triton import has_triton  # noqa: E402 - after the check that there is torch

if not has_triton():
    pytest.skip("this torch is Debian's without our patches", allow_module_level=True)

from torch._inductor.utils import run_and_get_code  # noqa: E402 - after the check that it is patched


@pytest.fixture(autouse=True)
def nothing_compiled_before() -> Iterator[None]:
    torch._dynamo.reset()
    yield


def script(text: str) -> str:
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def compiled(function: Any, *inputs: Any, **options: Any) -> tuple[Any, str]:
    """Return a compiled function's result, and its code."""
    result, code = run_and_get_code(torch.compile(function, backend="spirv", fullgraph=True, **options), *inputs)
    return result, "\n".join(code)


def whole(*shape: int) -> Any:
    """Return small integers as float32, whose sums and products are exact."""
    return torch.arange(torch.Size(shape).numel(), dtype=torch.float32).reshape(shape) % 11 - 5


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (lambda a, b: a @ b, [(5, 7), (7, 3)]),
        (lambda a, b: a @ b, [(2, 5, 7), (2, 7, 3)]),
        (lambda a, b, c: torch.addmm(c, a, b, alpha=2, beta=3), [(5, 7), (7, 3), (3,)]),
        (lambda a, b: (a.double() @ b.double()).float(), [(5, 7), (7, 3)]),
    ],
    ids=["mm", "bmm", "addmm", "float64"],
)
def test_products_become_kernels(function: Any, shapes: list[tuple[int, ...]]) -> None:
    inputs = [whole(*shape) for shape in shapes]
    result, code = compiled(function, *inputs)
    assert torch.equal(result, function(*inputs))
    assert "tl.dot" in code and "extern_kernels." not in code


@pytest.mark.parametrize(
    ("function", "called"),
    [
        (lambda a: (a.long() @ a.long().t()).float(), "extern_kernels.mm"),
        (lambda a: torch.nn.functional.conv2d(a[None, None], a[None, None, :3, :3]), "extern_kernels.convolution"),
    ],
    ids=["integers", "convolution"],
)
def test_the_code_names_what_pytorch_computes_itself(function: Any, called: str) -> None:
    inputs = whole(5, 5)
    result, code = compiled(function, inputs)
    assert torch.equal(result, function(inputs))
    assert called in code


@pytest.mark.parametrize(
    "function", [lambda a: torch.cumsum(a, 0), lambda a: torch.sort(a, dim=1, stable=True).values], ids=["scan", "sort"]
)
def test_scans_and_sorts_become_kernels(function: Any) -> None:
    inputs = whole(5, 7)
    result, code = compiled(function, inputs)
    assert torch.equal(result, function(inputs))
    called = [line for line in code.splitlines() if "torch.ops.aten." in line and not line.lstrip().startswith("#")]
    assert "@triton.jit" in code and not called


def test_numbers_that_are_not_finite_stay_what_they_are() -> None:
    x = torch.tensor([float("nan"), float("inf"), -float("inf"), -0.0, 0.0, 1e-40, 3e38])

    def function(x: Any) -> Any:
        return torch.relu(x), torch.maximum(x, -x), x.amax(), x * 2, torch.where(x > 0, x, -x)

    # Which of two zeros is the larger one is nobody's promise.
    zeros_signed = (False, False, False, True, True)
    for ours, eager, zeros in zip(compiled(function, x)[0], function(x), zeros_signed, strict=True):
        torch.testing.assert_close(ours, eager, rtol=0, atol=0, equal_nan=True)
        number = ~eager.isnan() & ((eager != 0) | torch.tensor(zeros))
        assert torch.equal(torch.signbit(ours)[number], torch.signbit(eager)[number])


@pytest.mark.parametrize("shape", [(0,), (0, 5), (5, 0)])
def test_empty_tensors(shape: tuple[int, ...]) -> None:
    x = torch.empty(shape)
    result, _ = compiled(lambda x: (torch.exp(x) + 1, x.sum(-1)), x)
    assert result[0].shape == shape and torch.equal(result[1], x.sum(-1))


def test_an_index_out_of_bounds_is_refused() -> None:
    table, indices = whole(9, 7), torch.tensor([3, 0, -1, 8, 1])
    run = torch.compile(lambda table, indices: table[indices], backend="spirv")
    assert torch.equal(run(table, indices), table[indices])
    indices[1] = 9
    with pytest.raises(Exception, match="index out of bounds"):
        run(table, indices)


def test_other_backends_of_torch_compile_are_left_as_they_are() -> None:
    """The code generator is checked, because the image has no C++ compiler for torch's headers."""
    from torch._inductor.codegen import common
    from torch._inductor.codegen.cpp import CppScheduling

    compiled(lambda x: x + 1, whole(3))
    scheduling = common.get_scheduling_for_device("cpu")
    assert scheduling is not None and isinstance(scheduling(None), CppScheduling)


def test_it_can_be_the_default() -> None:
    assert (
        script("""
import torch
from torch._inductor.utils import run_and_get_code
from triton_spirv_backend import inductor
inductor.make_default()
result, code = run_and_get_code(torch.compile(lambda x: x + 1), torch.zeros(3))
print(result.tolist(), "@triton.jit" in code[0])
""")
        == "[1.0, 1.0, 1.0] True\n"
    )


def test_another_release_of_torch_is_refused() -> None:
    output = script("""
import torch
torch.__version__ = "2.99.0"
try:
    torch.compile(lambda x: x + 1, backend="spirv")(torch.zeros(3))
except Exception as error:
    print(error)
""")
    assert "does not support torch 2.99.0" in output and "run with 2.6" in output
