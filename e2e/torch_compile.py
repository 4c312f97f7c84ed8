"""torch.compile on the device type vsi: Inductor's kernels run through the plugin, and results match eager PyTorch.

Eager PyTorch computes on the CPU in float64 from the same inputs. bounded.py computes the allowed error of each
element; twice this bound is allowed, to cover the terms of higher order.

A case passes only if the plugin launched kernels of Inductor's, and the CPU computed nothing in the device's place. The
latter is checked if the device reports it: the reference device vpex does. vpex also fills new memory with NaN, and
detects stores outside a tensor.

    python e2e/torch_compile.py [--only TEXT]
"""

from __future__ import annotations

import gc
import importlib.util
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from report import Case, run_command, run_script

if importlib.util.find_spec("torch"):
    import torch
    from bounded import Bounded
if importlib.util.find_spec("vpex"):
    import vpex  # noqa: F401 - makes torch.vsi
    from triton_vsi_backend.launcher import VsiLauncher

# The factor for a first-order bound.
HIGHER_ORDER = 2


def chain(x: Any, y: Any) -> Any:
    """Compute elementwise functions that are common between the products of networks."""
    gate = torch.sigmoid(x) * torch.tanh(y)
    return torch.relu(gate + torch.exp(-(x * x)) * torch.rsqrt(y * y + 1.0)) - torch.log1p(torch.abs(x)) * torch.sin(y)


def softmax(x: Any) -> Any:
    return torch.softmax(x, -1)


def softmax_of_columns(x: Any) -> Any:
    return torch.softmax(x, 0)


def gelu(x: Any) -> Any:
    return x * 0.5 * (torch.erf(x * 0.7071067811865476) + 1.0)


def mlp(x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
    """Compute two layers with GELU between them, weights as torch.nn.Linear has them."""
    return gelu(x @ w1.t() + b1) @ w2.t() + b2


def attention(q: Any, k: Any, v: Any) -> Any:
    return torch.softmax((q @ k) * 0.125, -1) @ v


def gradients(x: Any, w1: Any, b1: Any, w2: Any, g: Any) -> Any:
    """Return the gradients of g's product with relu(x w1' + b1) w2' for w1, b1 and w2, written out for the bounds."""
    inner = x @ w1.t() + b1
    hidden = torch.relu(inner)
    # If rounding decides whether relu is 0, both results are correct.
    undecided = inner.value.abs() <= HIGHER_ORDER * inner.error
    active = Bounded((inner.value > 0).double(), undecided.double(), inner.dtype)
    back = (g @ w2) * active
    ones = Bounded.exact(torch.ones(1, len(x.value), dtype=x.dtype))
    return back.t() @ x, ones @ back, g.t() @ hidden


# ---- running and comparing


@contextmanager
def kernels_run() -> Iterator[list[str]]:
    """Record the names of the kernels that the plugin's launchers run, for any instance of its driver."""
    launch, ran = VsiLauncher.__call__, []

    def counted(self: Any, *arguments: Any) -> None:
        launch(self, *arguments)
        ran.append(self._metadata.name)

    with patch.object(VsiLauncher, "__call__", counted):
        yield ran


@contextmanager
def on_the_device() -> Iterator[None]:
    """Check that calls within this context run as kernels of Inductor's; otherwise the case fails.

    The function must be compiled before, because a compiler that folds constants may compute on the CPU.
    """
    fallbacks: Callable[[], dict[str, int]] = getattr(torch.vsi, "fallbacks", dict)
    damaged = getattr(torch.vsi, "damaged_blocks", lambda: 0)
    before, unharmed = fallbacks(), damaged()
    with kernels_run() as ran:
        yield
    elsewhere = {name: count - before.get(name, 0) for name, count in fallbacks().items() if count != before.get(name)}
    assert not elsewhere, f"the CPU computed {elsewhere}"
    assert ran and all(name.startswith("triton_") for name in ran), f"the plugin launched {ran}"
    gc.collect()
    assert damaged() == unharmed, "a kernel stored beside a tensor"


def share_of_allowed(result: torch.Tensor, eager: torch.Tensor, bound: Bounded) -> float:
    """Return the largest error as a share of the allowed error.

    Raises:
        AssertionError: an element has a larger error than allowed, or the result has the wrong type or shape.
    """
    assert result.dtype == bound.dtype and result.shape == eager.shape, f"{result.dtype} {result.shape}"
    torch.testing.assert_close(bound.value, eager, rtol=1e-12, atol=1e-12)
    if result.numel() == 0:
        return 0.0
    error = (result.double() - eager).abs()
    allowed = HIGHER_ORDER * bound.error
    wrong = ~(error <= allowed)
    if wrong.any():
        first = tuple(wrong.nonzero()[0].tolist())
        raise AssertionError(
            f"{int(wrong.sum())} of {wrong.numel()} elements are wrong; the first is {list(first)}: "
            f"{result[first]}, eager in float64 {eager[first]}, allowed are {allowed[first]:.3g}"
        )
    return float((error / allowed).max())


def check(function: Any, sets: Sequence[Sequence[torch.Tensor]], *, dynamic: bool = False) -> float:
    """Run a compiled function on each of several sets of inputs; return the largest error as a share of the allowed.

    Args:
        dynamic: compile once for all sizes; the second and later sets must not compile again.
    """
    torch._dynamo.reset()  # dynamo limits how often it compiles a function again
    compiled = torch.compile(function, dynamic=dynamic, fullgraph=True)
    results: list[torch.Tensor] = []
    for inputs in sets:
        passed = [to_device(tensor) for tensor in inputs]
        with torch.compiler.set_stance("fail_on_recompile" if dynamic and results else "default"):
            compiled(*passed)
            with on_the_device():
                result = compiled(*passed)
        results.append(result.cpu())
    worst = 0.0
    for inputs, result in zip(sets, results, strict=True):
        eager = function(*(tensor.double() for tensor in inputs))
        worst = max(worst, share_of_allowed(result, eager, function(*map(Bounded.exact, inputs))))
    return worst


def to_device(tensor: torch.Tensor) -> torch.Tensor:
    """Copy a tensor to the device, with the same strides and offset."""
    storage = torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage())
    return storage.to("vsi").as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())


def numbers(*shapes: tuple[int, ...], dtype: torch.dtype, scale: float = 1.0) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(sum(map(sum, shapes)))
    return [(torch.randn(shape, generator=generator) * scale).to(dtype) for shape in shapes]


def layers(batch: int, wide: int, hidden: int, narrow: int, dtype: torch.dtype) -> list[torch.Tensor]:
    """Return inputs of `mlp`; the weights are scaled so that each layer keeps the magnitude of its input."""
    x, b1, b2 = numbers((batch, wide), (hidden,), (narrow,), dtype=dtype)
    (w1,), (w2,) = (
        numbers((hidden, wide), dtype=dtype, scale=wide**-0.5),
        numbers((narrow, hidden), dtype=dtype, scale=hidden**-0.5),
    )
    return [x, w1, b1, w2, b2]


# ---- the cases


def elementwise(shape: tuple[int, ...], dtype: torch.dtype) -> float:
    return check(chain, [numbers(shape, shape, dtype=dtype)])


def broadcast() -> float:
    return check(chain, [numbers((33, 1), (1, 65), dtype=torch.float32)])


def strided() -> float:
    """Run with one tensor that starts at an unaligned address, and one that is transposed."""
    x, y = numbers((5 * 71 + 3,), (71, 5), dtype=torch.float32)
    return check(chain, [[x[3:].view(5, 71), y.t()]])


def in_place() -> float:
    x, y = numbers((1001,), (1001,), dtype=torch.float32)
    compiled = torch.compile(lambda x, y: x.mul_(2).add_(y))
    compiled(to_device(x), to_device(y))
    target = to_device(x)
    with on_the_device():
        compiled(target, to_device(y))
    return share_of_allowed(target.cpu(), x.double() * 2 + y.double(), Bounded.exact(x) * 2.0 + Bounded.exact(y))


def trained() -> float:
    """Run forward and backward through torch.nn's modules; gradients come from autograd's graph, compiled too."""
    batch, wide, hidden, narrow = 19, 33, 65, 7
    x, w1, b1, w2, _ = layers(batch, wide, hidden, narrow, torch.float32)
    (g,) = numbers((batch, narrow), dtype=torch.float32)

    def network() -> torch.nn.Sequential:
        first, second = torch.nn.Linear(wide, hidden), torch.nn.Linear(hidden, narrow, bias=False)
        with torch.no_grad():
            for parameter, value in ((first.weight, w1), (first.bias, b1), (second.weight, w2)):
                parameter.copy_(value)
        return torch.nn.Sequential(first, torch.nn.ReLU(), second)

    eager = network().double()
    eager(x.double()).backward(g.double())
    model, inputs, weights = network().to("vsi"), to_device(x), to_device(g)
    compiled = torch.compile(model)
    compiled(inputs).backward(weights)
    model.zero_grad(set_to_none=True)
    with on_the_device():
        compiled(inputs).backward(weights)
    bounds = gradients(*(Bounded.exact(tensor) for tensor in (x, w1, b1, w2, g)))
    shares = []
    for (name, found), same, bound in zip(model.named_parameters(), eager.parameters(), bounds, strict=True):
        assert found.grad is not None and same.grad is not None, f"{name} has no gradient"
        assert found.grad.device.type == "vsi"
        bound = Bounded(bound.value.view_as(same.grad), bound.error.view_as(same.grad), bound.dtype)
        shares.append(share_of_allowed(found.grad.cpu(), same.grad, bound))
    return max(shares)


def from_caches() -> str:
    """Check that a second process takes the graph and the kernels from Inductor's cache if Triton's is deleted."""
    script = f"""
import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})
import torch, torch_compile
from torch._dynamo.utils import counters
assert torch_compile.elementwise((1001,), torch.float32) <= 1
print(counters["inductor"]["fxgraph_cache_hit"], counters["inductor"]["triton_bundler_read_and_emit_kernel"])
"""
    said = []
    with tempfile.TemporaryDirectory() as kept:
        for _ in range(2):
            with tempfile.TemporaryDirectory() as gone:
                caches = {"TORCHINDUCTOR_CACHE_DIR": kept, "TRITON_CACHE_DIR": gone}
                said.append(run_command(sys.executable, "-c", script, variables=caches).stdout.split())
    assert said[0] == ["0", "0"] and said[1][0] == "1" and int(said[1][1]) > 0, f"hits and files: {said}"
    return f"{said[1][1]} files of kernels from the cache"


def cases() -> Iterator[Case]:
    """Yield the cases; an image without torch has none."""
    if importlib.util.find_spec("torch") is None or not hasattr(torch, "vsi"):
        return
    f32, f16, bf16 = torch.float32, torch.float16, torch.bfloat16
    shapes = ((1,), (7,), (1000,), (33, 65), (3, 5, 7), (2**20,))
    types = (f32, f16, bf16, f32, f16, f32)
    for shape, dtype in zip(shapes, types, strict=True):
        yield case("chain", f"{sizes(shape)} {named(dtype)}", elementwise, shape, dtype)
    yield case("chain", "33x1 with 1x65 f32", broadcast)
    yield case("chain", "5x71 transposed and unaligned f32", strided)
    yield case("chain", "in place n=1001 f32", in_place)
    several = [numbers((n,), (n,), dtype=f32) for n in (1000, 7, 98432, 333)]
    yield case("chain", "dynamic n=1000, 7, 98432, 333 f32", check, chain, several, dynamic=True)
    for function, shape, dtype in (
        (softmax, (1, 3), f32),
        (softmax, (7, 33), f16),
        (softmax, (64, 1000), f32),
        (softmax, (5, 5000), bf16),
        (softmax_of_columns, (65, 33), f32),
    ):
        name = f"{sizes(shape)} {named(dtype)}{' along columns' if function is softmax_of_columns else ''}"
        yield case("softmax", name, check, function, [numbers(shape, dtype=dtype, scale=3)])
    several = [numbers(shape, dtype=f32, scale=3) for shape in ((64, 100), (7, 33), (33, 1023))]
    yield case("softmax", "dynamic 64x100, 7x33, 33x1023 f32", check, softmax, several, dynamic=True)
    for batch, wide, hidden, narrow, dtype in ((1, 8, 16, 4, f32), (17, 33, 65, 7, f32), (64, 128, 256, 10, f16)):
        name = f"{batch} rows {wide}-{hidden}-{narrow} {named(dtype)}"
        yield case("mlp", name, check, mlp, [layers(batch, wide, hidden, narrow, dtype)])
    several = [layers(batch, 30, 50, 10, f32) for batch in (64, 5, 17)]
    yield case("mlp", "dynamic 64, 5, 17 rows 30-50-10 f32", check, mlp, several, dynamic=True)
    yield case("mlp", "19 rows 33-65-7 f32, gradients", trained)
    heads = [numbers((3, 33, 64), (3, 64, 33), (3, 33, 64), dtype=f32)]
    yield case("mlp", "attention 3 heads of 33x64 f32", check, attention, heads)
    yield case("compile", "taken from Inductor's cache", from_caches)


def case(suite: str, name: str, run: Callable[..., float | str], *arguments: Any, **options: Any) -> Case:
    return Case(suite, name, lambda: run(*arguments, **options))


def sizes(shape: tuple[int, ...]) -> str:
    return f"n={shape[0]}" if len(shape) == 1 else "x".join(map(str, shape))


def named(dtype: torch.dtype) -> str:
    return {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16"}[dtype]


if __name__ == "__main__":
    run_script("torch.compile", cases)
