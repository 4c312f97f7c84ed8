"""Compute matrix products in compiled code by a Triton kernel, and fuse the operations after it.

Inductor calls PyTorch's library for products, and offers Triton kernels as an alternative on CUDA only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._inductor.kernel.mm_common import acc_type, addmm_epilogue, mm_args
from torch._inductor.lowering import lowerings
from torch._inductor.runtime.runtime_utils import next_power_of_2
from torch._inductor.select_algorithm import TritonTemplate
from torch._inductor.virtualized import V

aten = torch.ops.aten

# Rows and columns that a program computes, and the depth of one step. They are smaller for smaller products, but at
# least the minimum of tl.dot.
_BLOCK_M, _BLOCK_N, _BLOCK_K = 32, 64, 32
_LEAST = 16

_SOURCE = """
{{def_kernel("A", "B")}}
    M = {{size("A", -2)}}
    N = {{size("B", -1)}}
    K = {{size("A", -1)}}
    across = (N + BLOCK_N - 1) // BLOCK_N
    row = ((tl.program_id(0) // across) * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    column = ((tl.program_id(0) % across) * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    depth = tl.arange(0, BLOCK_K)
{% if BATCHED %}
    batch = tl.program_id(1)
    A += batch * {{stride("A", 0)}}
    B += batch * {{stride("B", 0)}}
{% endif %}
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=ACC_TYPE)
    for done in range(0, K, BLOCK_K):
        inner_a = done + depth[None, :]
        inner_b = done + depth[:, None]
        a = tl.load(
            A + row * {{stride("A", -2)}} + inner_a * {{stride("A", -1)}},
            mask=(row < M) & (inner_a < K),
            other=0.0,
        )
        b = tl.load(
            B + inner_b * {{stride("B", -2)}} + column * {{stride("B", -1)}},
            mask=(inner_b < K) & (column < N),
            other=0.0,
        )
        acc = tl.dot(a, b, acc, input_precision="ieee")
    mask = (row < M) & (column < N)
{% if BATCHED %}
    {{store_output(("batch", "row", "column"), "acc", "mask")}}
{% else %}
    {{store_output(("row", "column"), "acc", "mask")}}
{% endif %}
"""


def grid(*sizes: Any) -> tuple[int, int, int]:
    """Return the number of programs for sizes [batch,] m, n and the block sizes. Generated code calls it."""
    *batch, m, n, blocks = sizes
    return -(-m // blocks["BLOCK_M"]) * -(-n // blocks["BLOCK_N"]), *(batch or [1]), 1


_TEMPLATE = TritonTemplate(name="foundry_matmul", grid=grid, source=_SOURCE)


def register(device: str, types: Sequence[torch.dtype], applies: Callable[[], bool] = lambda: True) -> None:
    """Compute aten's products of tensors on a device with our kernel.

    Args:
        device: the type of the device.
        types: the element types that the kernel computes; Inductor's own lowering computes all others.
        applies: whether a graph that is being compiled gets the kernel.
    """
    for operator, lowering in ((aten.mm, _mm), (aten.bmm, _mm), (aten.addmm, _addmm)):
        _take_over(operator.default, lowering, device, frozenset(types), applies)


def _take_over(
    operator: Any, lowering: Any, device: str, types: frozenset[torch.dtype], applies: Callable[[], bool]
) -> None:
    inductors = lowerings[operator]

    def ours_on_the_device(*arguments: Any, **options: Any) -> Any:
        ours = None
        if applies() and all(
            argument.get_device().type == device and argument.get_dtype() in types for argument in arguments
        ):
            ours = lowering(*arguments, **options)
        return inductors(*arguments, **options) if ours is None else ours

    lowerings[operator] = ours_on_the_device


def _mm(a: Any, b: Any, *, layout: Any = None) -> Any:
    m, n, k, layout, a, b = mm_args(a, b, layout=layout)
    return _product((m, n, k), layout, (a, b))


def _addmm(summand: Any, a: Any, b: Any, *, alpha: float = 1, beta: float = 1, layout: Any = None) -> Any:
    if not alpha or not beta:  # then a NaN that is multiplied by it must not count
        return None
    m, n, k, layout, a, b, summand = mm_args(a, b, summand, layout=layout)
    epilogue = addmm_epilogue(layout.dtype, alpha, beta)
    return _product((m, n, k), layout, (summand, a, b), prefix_args=1, epilogue_fn=epilogue)


def _product(sizes: Sequence[Any], layout: Any, inputs: tuple[Any, ...], **options: Any) -> Any:
    """Return the node of a product in Inductor's graph, or None if the kernel does not support it."""
    if any(input.get_dtype() != layout.dtype for input in inputs):
        return None
    if any(V.graph.sizevars.statically_known_equals(size, 0) for size in (*sizes, *layout.size)):
        return None
    blocks = [
        min(most, max(_LEAST, next_power_of_2(V.graph.sizevars.size_hint(size, fallback=most))))
        for size, most in zip(sizes, (_BLOCK_M, _BLOCK_N, _BLOCK_K), strict=True)
    ]
    choices: list[Any] = []
    refusal = _TEMPLATE.maybe_append_choice(
        choices,
        input_nodes=inputs,
        layout=layout,
        num_stages=1,
        num_warps=4,
        BLOCK_M=blocks[0],
        BLOCK_N=blocks[1],
        BLOCK_K=blocks[2],
        ACC_TYPE=acc_type(layout.dtype),
        BATCHED=len(layout.size) == 3,
        **options,
    )
    # A product that needs 64-bit offsets is refused.
    return choices[0].output_node() if refusal is None else None
