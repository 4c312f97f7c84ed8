"""torch.compile through the plugin: Inductor's kernels run on its device, and results match eager PyTorch.

vsi has a device type of its own. On spirv, the tensors are the CPU's, and torch.compile gets backend="spirv".

Eager PyTorch computes on the CPU in float64 from the same inputs. bounded.py computes the allowed error of each
element; twice this bound is allowed, to cover the terms of higher order.

A case passes only if the plugin launched kernels of Inductor's, and PyTorch computed nothing in their place but the
operators that the case names: a convolution is no kernel of Inductor's. vpex reports such operators; for CPU tensors,
PyTorch's profiler does. New memory is filled with NaN. vpex also detects stores outside a tensor.

    python e2e/torch_compile.py [--only TEXT]
"""

from __future__ import annotations

import copy
import ctypes
import gc
import importlib.util
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from report import Case, run_command, run_script

# Inductor would start processes that compile, and each imports torch, which takes longer than these kernels.
os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
if importlib.util.find_spec("torch"):
    import torch
    from bounded import Bounded
    from foundry_core.runtime.launches import SynchronousLauncher
    from torch.utils._triton import has_triton
if importlib.util.find_spec("vpex"):
    import vpex  # noqa: F401 - makes torch.vsi

# The device type of the tensors, and the backend of torch.compile.
DEVICE, BACKEND = ("vsi", "inductor") if importlib.util.find_spec("vpex") else ("cpu", "spirv")
# Operators that give or describe memory, and compute nothing.
_NO_WORK = ("aten::empty", "aten::as_strided", "aten::view", "aten::detach", "aten::t", "aten::set_", "aten::alias")
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


def layer_norm(x: Any, weight: Any, bias: Any) -> Any:
    return torch.nn.functional.layer_norm(x, (x.shape[-1],), weight, bias)


def sums_and_maxima(x: Any) -> Any:
    """Reduce rows and columns."""
    return torch.sum(x, 1) + torch.amax(x, 1) * torch.sum(torch.amax(x, 0), 0)


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
    launch, ran = SynchronousLauncher.__call__, []

    def counted(self: Any, *arguments: Any) -> None:
        launch(self, *arguments)
        ran.append(self.kernel)

    with patch.object(SynchronousLauncher, "__call__", counted):
        yield ran


@contextmanager
def operators_run() -> Iterator[Counter[str]]:
    """Count the operators that PyTorch computes on the CPU, by name: those that no other operator calls."""
    found: Counter[str] = Counter()
    if DEVICE != "cpu":
        fallbacks: Callable[[], dict[str, int]] = getattr(torch.vsi, "fallbacks", dict)
        before = Counter(fallbacks())
        yield found
        found.update(Counter(fallbacks()) - before)
        return
    with torch.autograd.profiler.profile() as profile:
        yield found
    for event in profile.function_events:
        outer = event.cpu_parent
        while outer is not None and not outer.name.startswith("aten::"):
            outer = outer.cpu_parent
        if outer is None and event.name.startswith("aten::") and event.name not in _NO_WORK:
            found[event.name] += 1


@contextmanager
def on_the_device(operators: Collection[str] = ()) -> Iterator[Counter[str]]:
    """Check that calls within this context run as kernels of Inductor's; yield how often each kernel is launched.

    The function must be compiled before, because a compiler that folds constants may compute on the CPU.

    Args:
        operators: those that PyTorch must compute, because Inductor has no kernel for them.
    """
    damaged = getattr(torch.vsi, "damaged_blocks", lambda: 0) if DEVICE != "cpu" else lambda: 0
    unharmed = damaged()
    launched: Counter[str] = Counter()
    with kernels_run() as ran, operators_run() as elsewhere:
        yield launched
    assert set(elsewhere) == set(operators), f"PyTorch computed {dict(elsewhere)}, and should {list(operators)}"
    assert ran and all(name.startswith("triton_") for name in ran), f"the plugin launched {ran}"
    launched.update(ran)
    gc.collect()
    assert damaged() == unharmed, "a kernel stored beside a tensor"


@contextmanager
def poisoned_memory() -> Iterator[None]:
    """Fill with NaN what code that is compiled in this context allocates; vpex does so itself."""
    guards = torch._C._dynamo.guards
    allocate = guards._empty_strided_cpu

    def poisoned(*arguments: Any) -> torch.Tensor:
        tensor = allocate(*arguments)
        ctypes.memset(tensor.data_ptr(), 0xFF, tensor.untyped_storage().nbytes())
        return tensor

    with patch.object(guards, "_empty_strided_cpu", poisoned):
        yield


def compile_function(function: Any, **options: Any) -> Any:
    torch._dynamo.reset()  # dynamo limits how often it compiles a function again
    return torch.compile(function, backend=BACKEND, **options)


def described(share: float, launched: Counter[str], operators: Collection[str] = ()) -> str:
    """Return a case's outcome: the error, how many kernels were launched, and what PyTorch computed."""
    kernels = f"{len(launched)} kernels, {launched.total()} launches: {' '.join(sorted(launched))}"
    return f"error {share:.3f} of the allowed; {kernels}; by PyTorch: {', '.join(operators) or 'nothing'}"


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


def check(
    function: Any,
    sets: Sequence[Sequence[torch.Tensor]],
    *,
    dynamic: bool = False,
    operators: Collection[str] = (),
) -> str:
    """Run a compiled function on each of several sets of inputs.

    Args:
        dynamic: compile once for all sizes; the second and later sets must not compile again.
        operators: see `on_the_device`.
    """
    compiled = compile_function(function, dynamic=dynamic, fullgraph=True)
    results: list[torch.Tensor] = []
    launched: Counter[str] = Counter()
    for inputs in sets:
        passed = [to_device(tensor) for tensor in inputs]
        with (
            torch.compiler.set_stance("fail_on_recompile" if dynamic and results else "default"),
            poisoned_memory(),
        ):
            compiled(*passed)
            with on_the_device(operators) as counted:
                result = compiled(*passed)
        launched.update(counted)
        results.append(result.cpu())
    worst = 0.0
    for inputs, result in zip(sets, results, strict=True):
        eager = function(*(tensor.double() for tensor in inputs))
        worst = max(worst, share_of_allowed(result, eager, function(*map(Bounded.exact, inputs))))
    return described(worst, launched, operators)


def to_device(tensor: torch.Tensor) -> torch.Tensor:
    """Copy a tensor to the device, with the same strides and offset."""
    storage = torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage())
    return storage.to(DEVICE, copy=True).as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())


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


def elementwise(shape: tuple[int, ...], dtype: torch.dtype) -> str:
    return check(chain, [numbers(shape, shape, dtype=dtype)])


def broadcast() -> str:
    return check(chain, [numbers((33, 1), (1, 65), dtype=torch.float32)])


def strided() -> str:
    """Run with one tensor that starts at an unaligned address, and one that is transposed."""
    x, y = numbers((5 * 71 + 3,), (71, 5), dtype=torch.float32)
    return check(chain, [[x[3:].view(5, 71), y.t()]])


def in_place() -> str:
    x, y = numbers((1001,), (1001,), dtype=torch.float32)
    compiled = compile_function(lambda x, y: x.mul_(2).add_(y))
    compiled(to_device(x), to_device(y))
    target, summand = to_device(x), to_device(y)
    with on_the_device() as launched:
        compiled(target, summand)
    bound = Bounded.exact(x) * 2.0 + Bounded.exact(y)
    return described(share_of_allowed(target.cpu(), x.double() * 2 + y.double(), bound), launched)


def trained() -> str:
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
    model, inputs, weights = network().to(DEVICE), to_device(x), to_device(g)
    compiled = compile_function(model)
    with poisoned_memory():
        compiled(inputs).backward(weights)
        model.zero_grad(set_to_none=True)
        with on_the_device() as launched:
            compiled(inputs).backward(weights)
    bounds = gradients(*(Bounded.exact(tensor) for tensor in (x, w1, b1, w2, g)))
    shares = []
    for (name, found), same, bound in zip(model.named_parameters(), eager.parameters(), bounds, strict=True):
        assert found.grad is not None and same.grad is not None, f"{name} has no gradient"
        assert found.grad.device.type == DEVICE
        bound = Bounded(bound.value.view_as(same.grad), bound.error.view_as(same.grad), bound.dtype)
        shares.append(share_of_allowed(found.grad.cpu(), same.grad, bound))
    return described(max(shares), launched)


def convolved() -> str:
    """Run a convolution, which PyTorch computes, and what follows, which a kernel computes; integers are exact."""
    x, w = (numbers(shape, dtype=torch.float32, scale=3)[0].round() for shape in ((2, 3, 9, 11), (5, 3, 3, 3)))

    def function(x: Any, w: Any) -> Any:
        return torch.relu(torch.nn.functional.conv2d(x, w) * 0.5 + 1.0)

    compiled, operators = compile_function(function, fullgraph=True), ("aten::convolution",)
    compiled(x, w)
    with on_the_device(operators) as launched:
        result = compiled(x, w)
    assert torch.equal(result.double(), function(x.double(), w.double()))
    return described(0.0, launched, operators)


class Block(torch.nn.Module if importlib.util.find_spec("torch") else object):  # type: ignore[misc]
    """A block of a transformer, with attention written out."""

    def __init__(self, wide: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.after = torch.nn.LayerNorm(wide), torch.nn.LayerNorm(wide)
        self.qkv, self.out = torch.nn.Linear(wide, 3 * wide), torch.nn.Linear(wide, wide)
        self.up, self.down = torch.nn.Linear(wide, 4 * wide), torch.nn.Linear(4 * wide, wide)

    def forward(self, x: Any) -> Any:
        q, k, v = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(self.before(x)).chunk(3, -1)
        )
        x = x + self.out(attention(q, k.transpose(-1, -2), v).transpose(1, 2).flatten(2))
        return x + self.down(torch.nn.functional.gelu(self.up(self.after(x))))


def trained_block() -> str:
    """Run forward and backward of a block; each gradient may have 8 times the largest error of eager float32."""
    torch.manual_seed(5)
    plain, x = Block(48, 3), torch.randn(2, 19, 48)
    g = torch.randn(2, 19, 48)
    exact, ours = copy.deepcopy(plain).double(), copy.deepcopy(plain)
    plain(x).backward(g)
    exact(x.double()).backward(g.double())
    compiled = compile_function(ours, fullgraph=True)
    with poisoned_memory():
        compiled(x).backward(g)
        ours.zero_grad(set_to_none=True)
        with on_the_device() as launched:
            compiled(x).backward(g)
    worst = 0.0
    for (name, found), eager, right in zip(
        ours.named_parameters(), plain.parameters(), exact.parameters(), strict=True
    ):
        gradients = [parameter.grad for parameter in (found, eager, right)]
        assert all(gradient is not None for gradient in gradients), f"{name} has no gradient"
        mine, floats, doubles = (gradient.double() for gradient in gradients if gradient is not None)
        roundoff = torch.finfo(torch.float32).eps * doubles.abs().max()
        allowed = 8 * max((floats - doubles).abs().max(), roundoff)
        share = float((mine - doubles).abs().max() / allowed)
        assert share <= 1, f"the gradient of {name} has {share:.3g} of the allowed error"
        worst = max(worst, share)
    return described(worst, launched)


def from_caches() -> str:
    """Check that a second process takes the graph and the kernels from Inductor's cache if Triton's is deleted."""
    script = f"""
import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})
import torch, torch_compile
from torch._dynamo.utils import counters
torch_compile.elementwise((1001,), torch.float32)
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
    """Yield the cases; an image without torch has none, nor has one whose torch has none of our patches."""
    if importlib.util.find_spec("torch") is None or not has_triton():
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
    for shape, dtype in (((1, 3), f32), ((65, 1000), f32), ((7, 5000), bf16)):
        yield case("reduce", f"{sizes(shape)} {named(dtype)}", check, sums_and_maxima, [numbers(shape, dtype=dtype)])
        row = shape[1:]
        tensors = numbers(shape, row, row, dtype=dtype)
        yield case("layer norm", f"{sizes(shape)} {named(dtype)}", check, layer_norm, [tensors])
    several = [numbers(shape, shape[1:], shape[1:], dtype=f32) for shape in ((64, 100), (7, 33), (33, 1023))]
    yield case("layer norm", "dynamic 64x100, 7x33, 33x1023 f32", check, layer_norm, several, dynamic=True)
    yield case("mlp", "19 rows 33-65-7 f32, gradients", trained)
    heads = [numbers((3, 33, 64), (3, 64, 33), (3, 33, 64), dtype=f32)]
    yield case("mlp", "attention 3 heads of 33x64 f32", check, attention, heads)
    if DEVICE == "cpu":
        yield case("mlp", "block of a transformer 2x19x48 f32, gradients", trained_block)
        yield case("convolution", "2x3x9x11 with 5x3x3x3 f32", convolved)
    yield case("compile", "taken from Inductor's cache", from_caches)


def case(suite: str, name: str, run: Callable[..., str], *arguments: Any, **options: Any) -> Case:
    return Case(suite, name, lambda: run(*arguments, **options))


def sizes(shape: tuple[int, ...]) -> str:
    return f"n={shape[0]}" if len(shape) == 1 else "x".join(map(str, shape))


def named(dtype: torch.dtype) -> str:
    return {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16"}[dtype]


if __name__ == "__main__":
    run_script("torch.compile", cases)
