"""Operators of conch-triton-kernels, which have no gradients, against torch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from operators import Case, Tensors, normal, rms_norm

TITLE, DISTRIBUTION, MODULE = "Conch", "conch-triton-kernels", "conch"


def plain(*shapes: tuple[int, ...]) -> Any:
    """Return what makes normally distributed float32 tensors that require no gradients."""
    made = normal(*shapes)
    return lambda generator: [each.detach() for each in made(generator)]


def halves(function: Any) -> Any:
    return lambda x: function(x[..., : x.shape[-1] // 2]) * x[..., x.shape[-1] // 2 :]


def positions(generator: torch.Generator) -> Tensors:
    tokens, size = 11, 32
    angle = torch.randn(64, size // 2, generator=generator)
    q, k = (torch.randn(tokens, heads * size, generator=generator) for heads in (4, 2))
    at = torch.randint(0, 64, (tokens,), generator=generator)
    return [at, q, k, torch.cat((angle.cos(), angle.sin()), -1)]


def rotary(at: Any, q: Any, k: Any, table: Any) -> Any:
    size = table.shape[-1]
    cos, sin = table[at][:, None, :].chunk(2, -1)

    def turned(x: Any) -> Any:
        first, second = x.view(len(x), -1, size).chunk(2, -1)
        return torch.cat((first * cos - second * sin, second * cos + first * sin), -1).view_as(x)

    return turned(q), turned(k)


def scaled(generator: torch.Generator) -> Tensors:
    return [torch.randn(13, 80, generator=generator) * 3, torch.tensor([0.05])]


def cases() -> Iterator[Case]:
    from conch.ops.activation.gelu_tanh_and_mul import gelu_tanh_and_mul
    from conch.ops.activation.silu_and_mul import silu_and_mul
    from conch.ops.embedding.rotary_embedding import rotary_embedding
    from conch.ops.normalization.gemma_rms_norm import gemma_rms_norm
    from conch.ops.normalization.rms_norm import fused_add_rms_norm
    from conch.ops.normalization.rms_norm import rms_norm as conch_rms_norm
    from conch.ops.quantization.int8 import scaled_int8_quant

    row, rows = (75,), (13, 75)
    yield Case("silu_and_mul", silu_and_mul, halves(F.silu), plain((13, 150)))
    yield Case(
        "gelu_tanh_and_mul", gelu_tanh_and_mul, halves(lambda x: F.gelu(x, approximate="tanh")), plain((13, 150))
    )
    yield Case("rms_norm", lambda x, w: conch_rms_norm(x, w, 1e-6), rms_norm, plain(rows, row))
    yield Case(
        "fused_add_rms_norm",
        lambda x, r, w: fused_add_rms_norm(x, r, w, 1e-6),
        lambda x, r, w: (rms_norm(x + r, w), x + r),
        plain(rows, rows, row),
    )
    yield Case(
        "gemma_rms_norm",
        lambda x, w: gemma_rms_norm(x, w, 1e-6),
        lambda x, w: rms_norm(x, w, offset=1.0),
        plain(rows, row),
    )
    yield Case("rotary_embedding", lambda at, q, k, t: rotary_embedding(at, q, k, t.shape[-1], t), rotary, positions)
    yield Case(
        "scaled_int8_quant",
        lambda x, scale: scaled_int8_quant(x, scale)[0],
        # It truncates, as its kernel says.
        lambda x, scale: (x / scale).clamp(-128, 127).to(torch.int8),
        scaled,
    )
