"""torch.compile on device vsi: when it is registered, and which parts of a graph become kernels. e2e checks results."""

from __future__ import annotations

from typing import Any

import pytest
from foundry_core.log import DeviceAssertionError
from image import printed
from inductor_cases import (
    check_in_place,
    in_place,
    nothing_compiled_before,  # noqa: F401 - a fixture of each test
    products,
    torch,
    whole,
)

pytest.importorskip("vpex")

from torch._inductor.codegen import common
from torch._inductor.utils import run_and_get_code
from triton_vsi_backend import inductor

REGISTERED = """
import torch._inductor.compile_fx
from torch._inductor.codegen.common import get_scheduling_for_device
from torch._inductor.utils import GPU_TYPES, get_gpu_type
from torch.utils._triton import has_triton
known = get_scheduling_for_device("vsi") is not None
print(known, "vsi" in GPU_TYPES, get_gpu_type(), has_triton())
"""
ORDERS = {
    "torch alone": "import torch, vpex",
    "as documented": "import vpex, triton, triton_vsi_backend",
    "triton first": "import triton, torch, vpex",
    "plugin first": "import triton_vsi_backend, vpex",
    "vpex after the compiler": "import torch._inductor.compile_fx, vpex",
    "vpex after the device was asked for": "from torch.utils._triton import has_triton; has_triton(); import vpex",
}


@pytest.mark.parametrize("order", ORDERS)
def test_device_is_registered_in_whatever_order_is_imported(order: str) -> None:
    assert printed("-c", ORDERS[order] + REGISTERED) == "True True vsi True\n"


@pytest.mark.parametrize("order", ["import vpex", "import torch._dynamo.device_interface, vpex"])
def test_triton_is_found_before_the_compiler_is_imported(order: str) -> None:
    asked = "from torch.utils._triton import has_triton; print(has_triton(), f'{inductor}.compile_fx' in sys.modules)"
    assert printed("-c", f"import sys, torch, triton; inductor = 'torch._inductor'; {order}; {asked}") == "True False\n"


def test_tensors_are_on_the_device_that_the_driver_names() -> None:
    import triton

    active = triton.runtime.driver.active.get_active_torch_device()
    assert torch.zeros(3, device=active).device == active
    assert torch.zeros(3, device="vsi").device == active


def test_an_expanded_tensor_is_not_written_to() -> None:
    from shared_kernels import place_kernel

    tensor = torch.full((1, 8), -1.0, device="vsi")
    with pytest.raises(Exception, match="whose elements share memory"):
        place_kernel[(8,)](tensor.expand(4, 8))
    assert (tensor == -1).all()
    place_kernel[(8,)](tensor)
    assert tensor.tolist() == [list(range(8))]


def test_a_torch_without_the_device_is_left_as_it_is() -> None:
    assert printed("-c", "import torch, triton_vsi_backend" + REGISTERED) == "False False cuda False\n"


def test_importing_torch_imports_neither_triton_nor_its_compiler() -> None:
    imported = (
        "print(*(name in sys.modules for name in ('triton_vsi_backend', 'triton', 'torch._inductor.compile_fx')))"
    )
    assert printed("-c", f"import sys, torch, vpex; {imported}") == "True False False\n"


def test_registering_again_does_nothing() -> None:
    from torch._inductor import utils

    assert inductor.register() and inductor.register()
    assert utils.GPU_TYPES.count("vsi") == 1


def test_another_release_of_torch_is_refused_when_it_compiles_for_vsi() -> None:
    output = printed(
        "-c",
        """
import torch, vpex
torch.__version__ = "2.99.0"
import torch._inductor.compile_fx
try:
    torch.compile(lambda x: x + 1)(torch.zeros(3, device="vsi"))
except Exception as error:
    print(error)
""",
    )
    assert "does not support torch 2.99.0" in output and "run with torch 2.6 with Triton 3.2" in output


def compiled(function: Any, *inputs: Any) -> tuple[Any, str, set[str]]:
    """Return a compiled function's result, its code, and the operators that the CPU computed when it ran."""
    run = torch.compile(function, fullgraph=True)
    code = run_and_get_code(run, *inputs)[1]
    before = torch.vsi.fallbacks()
    result = run(*inputs)
    after = torch.vsi.fallbacks()
    return result.cpu(), "\n".join(code), {name for name in after if after[name] != before.get(name, 0)}


@products
def test_products_become_kernels_of_ours(function: Any, shapes: list[tuple[int, ...]]) -> None:
    inputs = [whole(*shape) for shape in shapes]
    result, code, by_the_cpu = compiled(function, *(tensor.to("vsi") for tensor in inputs))
    assert torch.equal(result, function(*inputs))
    assert "tl.dot" in code and not by_the_cpu


@in_place
def test_elements_are_read_before_they_are_written_in_place(write: Any) -> None:
    check_in_place(write, "vsi")


def test_elements_are_taken_by_index() -> None:
    table, indices = torch.arange(63.0).reshape(9, 7), torch.tensor([3, 0, -1, 8, 1])
    result, _, by_the_cpu = compiled(lambda table, indices: table[indices], table.to("vsi"), indices.to("vsi"))
    assert torch.equal(result, table[indices])
    assert not by_the_cpu
    indices[1] = 9
    with pytest.raises(DeviceAssertionError, match="index out of bounds"):
        compiled(lambda table, indices: table[indices], table.to("vsi"), indices.to("vsi"))


@pytest.mark.parametrize(
    ("function", "operator"),
    [
        (lambda a: (a.long() @ a.long().t()).float(), "aten::mm.out"),
        (lambda a: torch.addmm(a * torch.nan, a, a, beta=0), "aten::addmm.out"),
        (lambda a: torch.cumsum(a, 0), "aten::cumsum.out"),
        (lambda a: torch.sort(a, 0).values, "aten::sort.values_stable"),
    ],
    ids=["integers", "no summand", "scan", "sort"],
)
def test_operator_that_inductor_cannot_compile_runs_on_the_device(function: Any, operator: str) -> None:
    inputs = torch.arange(25.0).reshape(5, 5) % 7
    result, _, by_the_cpu = compiled(function, inputs.to("vsi"))
    assert torch.equal(result, function(inputs))
    assert operator in by_the_cpu


def test_products_of_a_device_that_has_them_are_left_to_it() -> None:
    """The reference has no products, so the test registers one that returns zeros."""
    output = printed(
        "-c",
        """
import torch, vpex
library = torch.library.Library("aten", "IMPL")
library.impl("mm.out", lambda a, b, *, out: out.zero_(), "PrivateUse1")
a = torch.ones(4, 4, device="vsi")
print(torch.compile(lambda a: a @ a)(a).sum().item())
""",
    )
    assert output == "0.0\n"


def test_scans_and_sorting_are_not_offered() -> None:
    features = common.get_backend_features("vsi")
    assert common.BackendFeature.TRITON_TEMPLATES in features
    assert not {common.BackendFeature.SCAN, common.BackendFeature.SORT} & set(features)


def test_compiling_for_the_cpu_is_left_as_it_is() -> None:
    """The code generator is checked, because the image has no C++ compiler for torch's headers."""
    from torch._inductor.codegen.cpp import CppScheduling

    assert inductor.register()
    common.init_backend_registration()
    scheduling = common.get_scheduling_for_device("cpu")
    assert scheduling is not None
    assert isinstance(scheduling(None), CppScheduling)
