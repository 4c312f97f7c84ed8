"""torch.compile with backend="spirv": what becomes a kernel, and what is refused. e2e checks results."""

from __future__ import annotations

from typing import Any

import pytest
from image import printed
from inductor_cases import (
    check_in_place,
    in_place,
    nothing_compiled_before,  # noqa: F401 - a fixture of each test
    products,
    torch,
    whole,
)
from torch.utils._triton import has_triton

if not has_triton():
    pytest.skip("this torch is Debian's without our patches", allow_module_level=True)

from torch._inductor.utils import run_and_get_code


def compiled(function: Any, *inputs: Any, **options: Any) -> tuple[Any, str]:
    """Return a compiled function's result, and its code."""
    result, code = run_and_get_code(torch.compile(function, backend="spirv", fullgraph=True, **options), *inputs)
    return result, "\n".join(code)


@products
def test_products_become_kernels(function: Any, shapes: list[tuple[int, ...]]) -> None:
    inputs = [whole(*shape) for shape in shapes]
    result, code = compiled(function, *inputs)
    assert torch.equal(result, function(*inputs))
    assert "tl.dot" in code and "extern_kernels." not in code


def test_products_of_float64_become_kernels() -> None:
    result, code = compiled(lambda a, b: a.double() @ b.double(), whole(5, 7), whole(7, 3))
    assert torch.equal(result, whole(5, 7).double() @ whole(7, 3).double())
    assert "tl.dot" in code and "extern_kernels." not in code


@pytest.mark.parametrize(
    ("function", "called"),
    [
        (lambda a: (a.long() @ a.long().t()).float(), "extern_kernels.mm"),
        (lambda a: torch.addmm(a * torch.nan, a, a, beta=0), "extern_kernels.addmm"),
        (lambda a: torch.addmm(a, a * torch.nan, a, alpha=0), "extern_kernels.addmm"),
        (lambda a: torch.special.ndtri(a), "torch.ops.aten.special_ndtri"),
        (lambda a: torch.nn.functional.conv2d(a[None, None], a[None, None, :3, :3]), "extern_kernels.convolution"),
    ],
    ids=["integers", "no summand", "no product", "function", "convolution"],
)
def test_the_code_names_what_pytorch_computes_itself(function: Any, called: str) -> None:
    inputs = whole(5, 5)
    result, code = compiled(function, inputs)
    torch.testing.assert_close(result, function(inputs), rtol=0, atol=0, equal_nan=True)
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


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("type", ["float16", "float32", "float64", "int8", "bool"])
def test_sorts_have_pytorchs_order(type: str, descending: bool) -> None:
    """NaN is the largest number, and equal elements stay in their order."""
    inf, nan = float("inf"), float("nan")
    numbers = [1, nan, -1, inf, nan, 0, -0.0, -inf, 7, 7, nan, 2]
    if "float" not in type:
        numbers = [1, 0, 100, -5, 5, 1, 0, 7, 0, 1, -128, 127]
    inputs = torch.tensor(numbers).to(getattr(torch, type))

    def function(x: Any) -> Any:
        return torch.sort(x, stable=True, descending=descending)

    result, code = compiled(function, inputs)
    torch.testing.assert_close(tuple(result), tuple(function(inputs)), rtol=0, atol=0, equal_nan=True)
    assert "sort_with_index" in code


@in_place
def test_elements_are_read_before_they_are_written_in_place(write: Any) -> None:
    check_in_place(write, "cpu", backend="spirv")


def test_an_element_that_is_written_where_it_was_read_needs_one_kernel() -> None:
    def function(x: Any) -> Any:
        return x.add_(1)

    result, code = compiled(function, whole(5, 7))
    assert torch.equal(result, whole(5, 7) + 1)
    assert code.count("@triton.jit") == 1


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
        printed(
            "-c",
            """
import torch
from torch._inductor.utils import run_and_get_code
from triton_spirv_backend import inductor
inductor.make_default()
result, code = run_and_get_code(torch.compile(lambda x: x + 1), torch.zeros(3))
print(result.tolist(), "@triton.jit" in code[0])
""",
        )
        == "[1.0, 1.0, 1.0] True\n"
    )


def test_another_release_of_torch_is_refused() -> None:
    output = printed(
        "-c",
        """
import torch
torch.__version__ = "2.99.0"
try:
    torch.compile(lambda x: x + 1, backend="spirv")(torch.zeros(3))
except Exception as error:
    print(error)
""",
    )
    assert "does not support torch 2.99.0" in output and "run with 2.6" in output
