"""torch.compile for CPU tensors: Inductor's Triton kernels run on this backend's device.

    torch.compile(model, backend="spirv")    # one model; needs no import, see the entry point in pyproject.toml
    triton_spirv_backend.inductor.make_default()    # from now on also torch.compile(model)

Kernels access the tensors' memory in place. Inductor generates Triton kernels of elementwise operations, reductions,
scans and sorts, and with `foundry_core.inductor.products` of matrix products. What it has no kernel for, such as
convolutions, PyTorch computes on the CPU as without us; `extern_kernels` and `torch.ops` in the generated code name it.

PyTorch has no public interface for kernels of CPU tensors. `RELEASES` lists the releases of torch that this was run
with; any other is refused. The torch of spirv-torch images has our patches (patches/torch-spirv), because Inductor of
torch 2.6 is written for Triton 3.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from foundry_core.failure import Failure

RELEASES = ("2.6",)
# Inductor's settings for a graph that is compiled for this backend.
_SETTINGS = {"cpu_backend": "triton"}


class CompilerError(Failure, NotImplementedError):
    """torch.compile cannot use this backend here."""


def compile_graph(
    graph: torch.fx.GraphModule, inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None
) -> Callable[..., Any]:
    """Compile a graph that dynamo captured; torch.compile calls this for backend="spirv".

    Args:
        options: Inductor's settings, as torch.compile takes them.

    Raises:
        CompilerError: this release of torch is not supported, it lacks our patches, or no device is active.
    """
    register()
    from torch._inductor.compile_fx import compile_fx

    return compile_fx(graph, inputs, config_patches={**(options or {}), **_SETTINGS})  # type: ignore[no-any-return]


def make_default() -> None:
    """Let torch.compile without a backend compile CPU tensors for this backend in this process.

    Raises:
        CompilerError: see `compile_graph`.
    """
    register()
    from torch._inductor import config

    for name, value in _SETTINGS.items():
        setattr(config, name, value)


def register() -> None:
    """Let Inductor compute matrix products of CPU tensors with Triton kernels. A second call does nothing.

    Raises:
        CompilerError: see `compile_graph`.
    """
    global _registered
    if _registered:
        return
    if ".".join(torch.__version__.split(".")[:2]) not in RELEASES:
        raise CompilerError(
            f"torch.compile on backend spirv does not support torch {torch.__version__}",
            why=f"it uses interfaces of PyTorch's that change from release to release; run with {', '.join(RELEASES)}",
            next="use the image spirv-torch, or run eagerly what you compile",
        )
    from torch.utils._triton import has_triton

    if not has_triton():
        raise CompilerError(
            "Inductor finds no Triton for CPU tensors",
            why="torch lacks the patches in patches/torch-spirv, or the active backend of Triton is another one",
            next="use the image spirv-torch",
        )
    # First: PyTorch's lowerings and their kernels import each other.
    from torch._inductor import compile_fx, config  # noqa: F401, I001
    from foundry_core.inductor import in_place, products

    def applies() -> bool:
        return bool(config.cpu_backend == _SETTINGS["cpu_backend"])

    in_place.register("cpu", applies)
    products.register("cpu", (torch.float64, torch.float32, torch.float16, torch.bfloat16), applies)
    _registered = True


_registered = False
