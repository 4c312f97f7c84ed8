"""Run a library's operators on torch's CPU tensors through the active backend, and compare with torch in float64.

A case has an operator of the library, the same function written with torch's operators, and inputs. Both compute the
result and the gradients of its product with random numbers for all inputs that require one. The largest error of each
of these tensors may be `FACTOR` times the largest error of torch's own operators in the inputs' type, or `FACTOR`
roundings of its largest element, whichever is more: both compute in that type, in another order.

A case that launches no kernel does not count as right. New memory is filled with NaN. Each case runs in a child
process, so that one that crashes or does not end leaves the others.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from unittest.mock import patch

import torch

FACTOR = 8
SECONDS = 900

Tensors = Sequence[torch.Tensor]


@dataclass(frozen=True)
class Case:
    """An operator and its reference.

    Attributes:
        name: what a table calls it.
        operator, reference: take the inputs, and return a tensor or several. The reference also takes them in float64.
        inputs: makes the inputs, from a generator of random numbers.
    """

    name: str
    operator: Callable[..., Any]
    reference: Callable[..., Any]
    inputs: Callable[[torch.Generator], Tensors]


@dataclass(frozen=True)
class Outcome:
    """What became of a case.

    Attributes:
        verdict: `right`, `wrong`, `no kernel` if torch's operators computed everything, `refused` by this backend,
            `error` of any other kind, or `no end`.
        share: the largest error as a share of the allowed one.
        launches: kernels that were launched.
        tensors: results and gradients that were compared.
        reason: the error, or what is wrong.
    """

    name: str
    verdict: str
    share: float | None = None
    launches: int = 0
    tensors: int = 0
    seconds: float = 0.0
    reason: str = ""


def results(function: Callable[..., Any], inputs: Tensors, seed: int) -> list[torch.Tensor]:
    """Return what a function computes, and the gradients for its inputs."""
    passed = [each.detach().clone().requires_grad_(each.requires_grad) for each in inputs]
    made = function(*passed)
    made = [each for each in (made if isinstance(made, (tuple, list)) else [made]) if each is not None]
    generator = torch.Generator().manual_seed(seed)
    differentiable = [each for each in made if each.requires_grad]
    weights = [torch.randn(each.shape, generator=generator, dtype=torch.float64) for each in differentiable]
    # An operator may write its gradients over its results, so these are kept first.
    kept = [each.detach().clone() for each in made]
    wanted = [each for each in passed if each.requires_grad]
    if differentiable and wanted:
        torch.autograd.backward(
            differentiable, [weight.to(each.dtype) for weight, each in zip(weights, differentiable, strict=True)]
        )
    return kept + [torch.zeros_like(each) if each.grad is None else each.grad for each in wanted]


def compare(case: Case) -> Outcome:
    """Run a case in this process."""
    from foundry_core.runtime.launches import SynchronousLauncher

    launch, launched = SynchronousLauncher.__call__, []

    def counted(self: Any, *arguments: Any) -> None:
        launch(self, *arguments)
        launched.append(self.kernel)

    inputs = case.inputs(torch.Generator().manual_seed(1))
    exact = results(case.reference, [wide(each) for each in inputs], 2)
    plain = results(case.reference, inputs, 2)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = True
    with patch.object(SynchronousLauncher, "__call__", counted):
        found = results(case.operator, inputs, 2)
    if len(found) != len(exact):
        return Outcome(case.name, "wrong", reason=f"{len(found)} results and gradients instead of {len(exact)}")
    worst = 0.0
    for index, (ours, torchs, right) in enumerate(zip(found, plain, exact, strict=True)):
        if ours.shape != right.shape:
            return Outcome(case.name, "wrong", reason=f"tensor {index} has shape {list(ours.shape)}")
        if right.numel() == 0:
            continue
        if not torch.equal(right.isfinite(), ours.isfinite()):
            return Outcome(case.name, "wrong", reason=f"tensor {index}: other elements are finite")
        at = right.isfinite()
        if not torch.equal(right[~at].nan_to_num(nan=7.0), ours[~at].to(right.dtype).nan_to_num(nan=7.0)):
            return Outcome(case.name, "wrong", reason=f"tensor {index}: other NaN or infinities")
        if not ours.is_floating_point():
            if not torch.equal(ours, right.to(ours.dtype)):
                return Outcome(case.name, "wrong", reason=f"tensor {index} has other integers")
            continue
        error = largest(ours[at].double() - right[at])
        allowed = FACTOR * max(largest(torchs[at].double() - right[at]), roundoff(ours) * largest(right[at]), 1e-30)
        worst = max(worst, error / allowed)
    verdict = "wrong" if worst > 1 else "right" if launched else "no kernel"
    return Outcome(case.name, verdict, worst, len(launched), len(found))


def wide(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor of numbers in float64, and any other as it is."""
    if not tensor.is_floating_point():
        return tensor.to(torch.complex128) if tensor.is_complex() else tensor
    return tensor.detach().double().requires_grad_(tensor.requires_grad)


def largest(tensor: torch.Tensor) -> float:
    return float(tensor.abs().max()) if tensor.numel() else 0.0


def roundoff(tensor: torch.Tensor) -> float:
    return torch.finfo(tensor.dtype).eps / 2


def run(case: Case) -> Outcome:
    """Run a case in a child, and return its outcome after at most `SECONDS`."""
    start = time.monotonic()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            outcome = compare(case)
        except BaseException as error:
            traceback.print_exc()
            text = str(error).strip().splitlines()
            refused = type(error).__module__.startswith(("foundry_core", "triton_"))
            said = f"{type(error).__name__}: {text[0] if text else ''}"
            outcome = Outcome(case.name, "refused" if refused else "error", reason=said)
        os.write(writing, json.dumps(asdict(outcome)).encode())
        sys.stderr.flush()
        os._exit(0)
    os.close(writing)
    ready = select.select([reading], [], [], SECONDS)[0]
    with os.fdopen(reading, "rb") as pipe:
        if not ready:
            os.kill(child, signal.SIGKILL)
        answer = pipe.read()
    status = os.waitpid(child, 0)[1]
    seconds = round(time.monotonic() - start, 1)
    if not answer:
        verdict, reason = ("error", f"the process ended with status {status}") if ready else ("no end", "")
        return Outcome(case.name, verdict, seconds=seconds, reason=reason)
    return Outcome(**(json.loads(answer) | {"seconds": seconds}))


def normal(*shapes: tuple[int, ...], scale: float = 1.0) -> Callable[[torch.Generator], Tensors]:
    """Return what makes normally distributed float32 tensors that require gradients."""

    def made(generator: torch.Generator) -> Tensors:
        return [(torch.randn(shape, generator=generator) * scale).requires_grad_() for shape in shapes]

    return made


def rms_norm(x: Any, weight: Any, eps: float = 1e-6, offset: float = 0.0) -> Any:
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + eps) * (weight + offset)
