"""Liger's operators, as `pip download liger-kernel --no-deps` brings them, against torch: docs/operator-libraries.md.

./foundry run spirv-torch --wheels=build/wheels conformance/libraries/liger.py [PART OF A NAME]...
"""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import torch
import torch.nn.functional as F
from liger_kernel import ops
from liger_kernel.transformers import functional as liger
from operators import Case, Tensors, normal, rms_norm

TITLE, DISTRIBUTION, MODULE = "Liger", "liger-kernel", "liger_kernel"
# Sizes that are no multiple of a block.
ROWS, COLUMNS = 13, 75


def labelled(*shapes: tuple[int, ...], classes: int, ignored: bool = True, scale: float = 1.0) -> Any:
    """Return what makes such tensors, and labels for the rows of the first, some of them ignored."""

    def made(generator: torch.Generator) -> Tensors:
        tensors = [(torch.randn(shape, generator=generator) * scale).requires_grad_() for shape in shapes]
        labels = torch.randint(0, classes, (shapes[0][0],), generator=generator)
        if ignored:
            labels[::5] = -100
        return [*tensors, labels]

    return made


def probabilities(*, log: tuple[bool, bool], gradients: tuple[bool, bool] = (True, False)) -> Any:
    """Return what makes two rows of distributions, each as probabilities or their logarithms."""

    def made(generator: torch.Generator) -> Tensors:
        tensors = [torch.log_softmax(torch.randn(ROWS, COLUMNS, generator=generator), -1) for _ in log]
        return [
            (tensor if logarithms else tensor.exp()).requires_grad_(wanted)
            for tensor, logarithms, wanted in zip(tensors, log, gradients, strict=True)
        ]

    return made


def rotate_half(x: Any) -> Any:
    first, second = x.chunk(2, -1)
    return torch.cat((-second, first), -1)


def rope(q: Any, k: Any, cos: Any, sin: Any) -> Any:
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin


def angles(generator: torch.Generator) -> Tensors:
    q, k = torch.randn(2, 4, 9, 16, generator=generator), torch.randn(2, 2, 9, 16, generator=generator)
    angle = torch.randn(1, 9, 8, generator=generator)
    angle = torch.cat((angle, angle), -1)
    return [q.requires_grad_(), k.requires_grad_(), angle.cos(), angle.sin()]


def angles_of_three(generator: torch.Generator) -> Tensors:
    q, k, _, _ = angles(generator)
    angle = torch.randn(3, 2, 9, 8, generator=generator)
    angle = torch.cat((angle, angle), -1)
    return [q, k, angle.cos(), angle.sin()]


SECTIONS = [2, 3, 3]


def mrope(q: Any, k: Any, cos: Any, sin: Any) -> Any:
    sections = SECTIONS * 2
    cos, sin = (torch.cat([part[i % 3] for i, part in enumerate(each.split(sections, -1))], -1) for each in (cos, sin))
    return rope(q, k, cos, sin)


def complex_angles(generator: torch.Generator) -> Tensors:
    q, k = torch.randn(2, 9, 4, 16, generator=generator), torch.randn(2, 9, 2, 16, generator=generator)
    angle = torch.randn(9, 8, generator=generator)
    return [q.requires_grad_(), k.requires_grad_(), torch.polar(torch.ones_like(angle), angle)]


def complex_rope(q: Any, k: Any, angle: Any) -> Any:
    def turned(x: Any) -> Any:
        pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * angle[None, :, None, :]).flatten(3)

    return turned(q), turned(k)


def jsd(student: Any, teacher: Any, beta: float = 0.5) -> Any:
    q, p = student.exp(), teacher.exp()
    mixed = (beta * p + (1 - beta) * q).log()
    each = beta * p * (teacher - mixed) + (1 - beta) * q * (student - mixed)
    return each.sum() / student.shape[0]


def linear_jsd(x: Any, w: Any, y: Any, v: Any) -> Any:
    return jsd(torch.log_softmax(x @ w.t(), -1), torch.log_softmax(y @ v.t(), -1))


def two_models(generator: torch.Generator) -> Tensors:
    tensors = [torch.randn(shape, generator=generator) * 0.3 for shape in ((ROWS, 24), (COLUMNS, 24)) * 2]
    return [each.requires_grad_(index < 2) for index, each in enumerate(tensors)]


def sparsemax(x: Any) -> Any:
    ordered = x.sort(-1, descending=True).values
    ranks = torch.arange(1, x.shape[-1] + 1, dtype=x.dtype)
    sums = ordered.cumsum(-1)
    support = (1 + ranks * ordered > sums).sum(-1, keepdim=True)
    threshold = (sums.gather(-1, support - 1) - 1) / support
    return (x - threshold).clamp(min=0)


def poly_norm(x: Any, w: Any, b: Any) -> Any:
    def norm(u: Any) -> Any:
        return u * torch.rsqrt((u * u).mean(-1, keepdim=True) + 1e-6)

    return w[0] * norm(x**3) + w[1] * norm(x**2) + w[2] * norm(x) + b


def masked_rows(scores: Any, value: float) -> Any:
    length = scores.shape[-1]
    return scores.masked_fill(torch.ones(length, length, dtype=torch.bool).triu(1), value)


def multi_token_attention(scores: Any, weight: Any, bias: Any) -> Any:
    return masked_rows(F.conv2d(torch.softmax(masked_rows(scores, -1e9), -1), weight, bias, padding=1), 0.0)


def neighborhood(q: Any, k: Any, v: Any) -> Any:
    length, reach = q.shape[2], 5 // 2
    near = (torch.arange(length)[:, None] - torch.arange(length)[None, :]).abs() <= reach
    scores = (q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5
    return torch.softmax(scores.masked_fill(~near, float("-inf")), -1) @ v


def attention_over_depth(blocks: Any, query: Any, norm: Any) -> Any:
    keys = rms_norm(blocks, norm)
    weights = torch.softmax((keys * query).sum(-1), 0)
    return (weights[..., None] * blocks).sum(0)


def mixture(x: Any, up: Any, down: Any, index: Any, weights: Any) -> Any:
    rows = []
    for token in range(len(x)):
        row = 0
        for expert, weight in zip(index[token].tolist(), weights[token], strict=True):
            gate, value = (up[expert] @ x[token]).chunk(2)
            row = row + weight * (down[expert] @ (F.silu(gate) * value))
        rows.append(row)
    return torch.stack(rows)


def routed(generator: torch.Generator) -> Tensors:
    tokens, experts, wide, inner = 11, 4, 32, 48
    x, up, down = (
        (torch.randn(shape, generator=generator) * 0.3).requires_grad_()
        for shape in ((tokens, wide), (experts, 2 * inner, wide), (experts, wide, inner))
    )
    index = torch.stack([torch.randperm(experts, generator=generator)[:2] for _ in range(tokens)]).int()
    weights = torch.rand(tokens, 2, generator=generator).requires_grad_()
    return [x, up, down, index, weights]


STREAMS = 4


def coefficients(x: Any, phi: Any, b: Any, pre: Any, post: Any, res: Any) -> Any:
    flat = x.flatten(-2)
    mixed = (flat @ phi) * torch.rsqrt((flat * flat).mean(-1, keepdim=True) + 1e-6)
    n = STREAMS
    h_pre = torch.sigmoid(mixed[..., :n] * pre + b[:n])
    h_post = 2 * torch.sigmoid(mixed[..., n : 2 * n] * post + b[n : 2 * n])
    logits = (mixed[..., 2 * n :] * res + b[2 * n :]).unflatten(-1, (n, n))
    balanced = torch.softmax(logits, -1) + 1e-6
    balanced = balanced / (balanced.sum(-2, keepdim=True) + 1e-6)
    for _ in range(19):
        balanced = balanced / (balanced.sum(-1, keepdim=True) + 1e-6)
        balanced = balanced / (balanced.sum(-2, keepdim=True) + 1e-6)
    return h_pre, h_post, balanced


def hyper_inputs(generator: torch.Generator) -> Tensors:
    n, c = STREAMS, 24
    m = n * n + 2 * n
    shapes: list[tuple[tuple[int, ...], float]] = [((7, n, c), 1), ((n * c, m), 0.1), ((m,), 0.3)]
    tensors = [torch.randn(shape, generator=generator) * scale for shape, scale in shapes]
    tensors += [torch.tensor(value) for value in (0.7, 1.1, 0.9)]
    return [each.requires_grad_() for each in tensors]


def post_and_residual(x: Any, f: Any, post: Any, res: Any) -> Any:
    return torch.einsum("noi,nic->noc", res, x) + post[..., None] * f[:, None, :]


def policy(generator: torch.Generator) -> Tensors:
    batch, length, words = 3, 6, 50
    logits = torch.randn(batch, length + 1, words, generator=generator)
    tokens = torch.randint(0, words, (batch, length), generator=generator)
    old, reference = (-torch.rand(batch, length, generator=generator) * 4 for _ in range(2))
    advantages = torch.randn(batch, generator=generator)
    mask = (torch.rand(batch, length, generator=generator) > 0.2).int()
    return [logits.requires_grad_(), old, reference, tokens, advantages, mask]


def grpo(logits: Any, old: Any, reference: Any, tokens: Any, advantages: Any, mask: Any) -> Any:
    chosen = torch.log_softmax(logits[:, :-1] / 0.9, -1).gather(-1, tokens[..., None])[..., 0]
    ratio = torch.exp(chosen - old)
    gain = advantages[:, None]
    loss = -torch.minimum(ratio * gain, ratio.clamp(1 - 0.2, 1 + 0.4) * gain)
    away = reference - chosen
    return (loss + 0.04 * (away.exp() - away - 1)) * mask


def triton_grpo(*inputs: Any) -> Any:
    from liger_kernel.transformers.grpo_loss import triton_grpo_loss

    return triton_grpo_loss(*inputs, inplace=False, loss_type="grpo", reduce=False)[0] * inputs[-1]


def tiled(x: Any, gate: Any, up: Any, down: Any) -> Any:
    """Run Liger's tiles of a network over the rows, with its SwiGLU."""

    def forward(module: Any, part: Any) -> Any:
        return liger.liger_swiglu(part @ module.gate.t(), part @ module.up.t()) @ module.down.t()

    module = SimpleNamespace(gate=gate, up=up, down=down)
    return ops.apply_tiled_mlp(fn=forward, mlp_module=module, x=x, num_shards=3, compute_params=[gate, up, down])


def feed_forward(x: Any, gate: Any, up: Any, down: Any) -> Any:
    return (F.silu(x @ gate.t()) * (x @ up.t())) @ down.t()


def looked_up(generator: torch.Generator) -> Tensors:
    return [
        torch.randn(40, 24, generator=generator).requires_grad_(),
        torch.randint(0, 40, (5, 7), generator=generator),
    ]


def modulated(x: Any, weight: Any, scale: Any, shift: Any) -> Any:
    return rms_norm(x, weight) * (1 + scale[:, None]) + shift[:, None]


def shards(logits: Any, labels: Any) -> Any:
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none").view_as(labels)


def vocabulary(generator: torch.Generator) -> Tensors:
    logits = torch.randn(5, 3, COLUMNS, generator=generator).requires_grad_()
    return [logits, torch.randint(0, COLUMNS, (5, 3), generator=generator)]


def cases() -> Iterator[Case]:
    square = (ROWS, COLUMNS)
    row = (COLUMNS,)
    yield Case("AttnRes", liger.liger_attn_res, attention_over_depth, normal((4, 2, 9, 40), (40,), (40,)))
    yield Case("CrossEntropy", liger.liger_cross_entropy, F.cross_entropy, labelled(square, classes=COLUMNS))
    yield Case(
        "CrossEntropy, label smoothing, sum",
        lambda x, y: liger.liger_cross_entropy(x, y, label_smoothing=0.1, reduction="sum"),
        lambda x, y: F.cross_entropy(x, y, label_smoothing=0.1, reduction="sum"),
        labelled(square, classes=COLUMNS),
    )
    yield Case(
        "CrossEntropy, softcap",
        # Liger gives elements beyond a row the logit -softcap, which counts where the softcap is small.
        lambda x, y: liger.liger_cross_entropy(x, y, softcap=30.0),
        lambda x, y: F.cross_entropy(30 * torch.tanh(x / 30), y),
        labelled(square, classes=COLUMNS, scale=9.0),
    )
    yield Case(
        "DyT",
        liger.liger_dyt,
        lambda x, alpha, gamma, beta: gamma * torch.tanh(alpha * x) + beta,
        normal(square, (1,), row, row),
    )
    yield Case("Embedding", ops.LigerEmbeddingFunction.apply, lambda table, index: F.embedding(index, table), looked_up)
    yield Case(
        "FusedAddRMSNorm",
        lambda x, r, w: liger.liger_fused_add_rms_norm(x, r, w, 1e-6),
        lambda x, r, w: (rms_norm(x + r, w), x + r),
        normal(square, square, row),
    )
    yield Case(
        "FusedGateUpSiLUMul",
        lambda y: ops.LigerFusedGateUpSiLUMulFunction.apply(y),
        lambda y: F.silu(y[..., : y.shape[-1] // 2]) * y[..., y.shape[-1] // 2 :],
        normal((ROWS, 2 * COLUMNS)),
    )
    yield Case(
        "FusedLinearCrossEntropy",
        lambda x, w, b, y: liger.liger_fused_linear_cross_entropy(x, w, y, b),
        lambda x, w, b, y: F.cross_entropy(x @ w.t() + b, y),
        labelled((ROWS, 24), (COLUMNS, 24), (COLUMNS,), classes=COLUMNS, scale=0.3),
    )
    yield Case("FusedLinearJSD", liger.liger_fused_linear_jsd, linear_jsd, two_models)
    yield Case(
        "FusedLinearScaledCrossEntropy",
        lambda x, w, y: ops.LigerFusedLinearScaledCrossEntropyFunction.apply(x, w, y, 0.7),
        lambda x, w, y: F.cross_entropy((x @ w.t()) / 0.7, y, reduction="none"),
        labelled((ROWS, 24), (COLUMNS, 24), classes=COLUMNS, scale=0.3, ignored=False),
    )
    yield Case("FusedMoE", ops.LigerFusedMoEFunction.apply, mixture, routed)
    yield Case(
        "FusedNeighborhoodAttention",
        lambda q, k, v: liger.liger_fused_neighborhood_attention(q, k, v, kernel_size=5),
        neighborhood,
        normal(*[(2, 2, 21, 16)] * 3),
    )
    yield Case(
        "GELUMul (GEGLU)", liger.liger_geglu, lambda a, b: F.gelu(a, approximate="tanh") * b, normal(square, square)
    )
    yield Case(
        "GroupNorm",
        lambda x, w, b: liger.liger_group_norm(x, w, b, 6, 3, 1e-6),
        lambda x, w, b: F.group_norm(x, 3, w, b, 1e-6),
        normal((2, 6, 35), (6,), (6,)),
    )
    yield Case("GrpoLoss", triton_grpo, grpo, policy)
    yield Case("JSD", liger.liger_jsd, jsd, probabilities(log=(True, True)))
    yield Case(
        "KLDiv",
        lambda x, y: liger.liger_kl_div(x, y, reduction="batchmean"),
        lambda x, y: F.kl_div(x, y, reduction="batchmean"),
        probabilities(log=(True, False)),
    )
    yield Case(
        "LayerNorm",
        lambda x, w, b: liger.liger_layer_norm(x, w, b, 1e-5),
        lambda x, w, b: F.layer_norm(x, x.shape[-1:], w, b, 1e-5),
        normal(square, row, row),
    )
    yield Case("Llama4Rope", ops.LigerLlama4RopeFunction.apply, complex_rope, complex_angles)
    yield Case(
        "MHCCoeffs", lambda *inputs: liger.liger_mhc_coeffs(*inputs, allow_fp32=True), coefficients, hyper_inputs
    )
    yield Case(
        "MHCPre",
        liger.liger_mhc_pre,
        lambda x, h: (h[..., None] * x).sum(-2),
        normal((7, STREAMS, 24), (7, STREAMS)),
    )
    yield Case(
        "MHCPostRes",
        liger.liger_mhc_post_res,
        post_and_residual,
        normal((7, STREAMS, 24), (7, 24), (7, STREAMS), (7, STREAMS, STREAMS)),
    )
    yield Case(
        "ModulatedRMSNorm",
        liger.liger_modulated_rms_norm,
        modulated,
        normal((2, 7, COLUMNS), row, (2, COLUMNS), (2, COLUMNS)),
    )
    yield Case(
        "MultiTokenAttention",
        lambda s, w, b: liger.liger_multi_token_attention(s, w, b, padding=1),
        multi_token_attention,
        normal((2, 3, 17, 17), (4, 3, 3, 3), (4,)),
    )
    yield Case("PolyNorm", liger.liger_poly_norm, poly_norm, normal(square, (3,), ()))
    yield Case(
        "Qwen2VLMRope",
        lambda q, k, cos, sin: liger.liger_qwen2vl_mrope(q, k, cos, sin, SECTIONS),
        mrope,
        angles_of_three,
    )
    yield Case("ReLUSquared", liger.liger_relu_squared, lambda x: F.relu(x) ** 2, normal(square))
    yield Case("RMSNorm", lambda x, w: liger.liger_rms_norm(x, w, 1e-6), rms_norm, normal(square, row))
    yield Case(
        "RMSNorm, Gemma's casts and offset",
        lambda x, w: liger.liger_rms_norm(x, w, 1e-6, 1.0, "gemma"),
        lambda x, w: rms_norm(x, w, offset=1.0),
        normal(square, row),
    )
    yield Case("Rope", liger.liger_rope, rope, angles)
    yield Case("SiLUMul (SwiGLU)", liger.liger_swiglu, lambda a, b: F.silu(a) * b, normal(square, square))
    yield Case("Softmax", liger.liger_softmax, lambda x: torch.softmax(x, -1), normal(square))
    yield Case(
        "Softmax, rows longer than a block", liger.liger_softmax, lambda x: torch.softmax(x, -1), normal((2, 70000))
    )
    yield Case("Sparsemax", liger.liger_sparsemax, sparsemax, normal(square))
    yield Case("TiledMLP", tiled, feed_forward, normal((ROWS, 24), (40, 24), (40, 24), (24, 40), scale=0.4))
    yield Case(
        "TVDLoss",
        lambda p, q: liger.liger_tvd(p, q, reduction="batchmean"),
        lambda p, q: 0.5 * (p - q).abs().sum() / p.shape[0],
        probabilities(log=(False, False)),
    )
    yield Case(
        "VocabParallelCE, one process",
        lambda x, y: ops.LigerVocabParallelCEFunction.apply(x, y, None, -100, 0.0, "", ""),
        shards,
        vocabulary,
    )
