"""What tests of torch.compile share: an empty cache of compiled code, inputs, products, and operations in place."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

# Inductor would start processes that compile, and each imports torch, which takes longer than the tests' kernels.
os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def nothing_compiled_before() -> Iterator[None]:
    """Forget all compiled code before each test of a file that imports this."""
    torch._dynamo.reset()
    yield


def whole(*shape: int) -> Any:
    """Return small integers as float32, whose sums and products are exact."""
    return torch.arange(torch.Size(shape).numel(), dtype=torch.float32).reshape(shape) % 11 - 5


PRODUCTS = {
    "mm": (lambda a, b: a @ b, [(5, 7), (7, 3)]),
    "bmm": (lambda a, b: a @ b, [(2, 5, 7), (2, 7, 3)]),
    "addmm": (lambda a, b, c: torch.addmm(c, a, b, alpha=2, beta=3), [(5, 7), (7, 3), (3,)]),
    "outer": (lambda a, b: a @ b, [(100, 1), (1, 70)]),
}
products = pytest.mark.parametrize(("function", "shapes"), PRODUCTS.values(), ids=PRODUCTS)


def _shift(x: Any, after: Any, before: Any) -> None:
    x[1:] = x[:-1].clone()


def _shift_by_index(x: Any, after: Any, before: Any) -> None:
    x[after] = x[before]


def _view_by_index(x: Any, after: Any, before: Any) -> None:
    x[after] = x[:-1].clone()


def _add_to_indexed(x: Any, after: Any, before: Any) -> None:
    x.index_add_(0, after, x[:-1].clone())


def _transpose(x: Any, after: Any, before: Any) -> None:
    x[:4096].view(64, 64).copy_(x[:4096].view(64, 64).t().clone())


# Each reads elements that it writes elsewhere.
in_place = pytest.mark.parametrize(
    "write", [_shift, _shift_by_index, _view_by_index, _add_to_indexed, _transpose], ids=lambda write: write.__name__
)


def check_in_place(write: Any, device: str, **options: Any) -> None:
    """Check that compiled code writes what PyTorch writes; several programs and blocks are needed for that."""
    indices = torch.arange(5000)
    expected, x = (torch.arange(5001, dtype=torch.float32) for _ in range(2))
    write(expected, indices + 1, indices)
    x = x.to(device)
    torch.compile(write, fullgraph=True, **options)(x, (indices + 1).to(device), indices.to(device))
    assert torch.equal(x.cpu(), expected)
