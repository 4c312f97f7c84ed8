"""A pytest plugin that provides what upstream's Triton tests expect of their conftest.py and of torch, on the CPU.

The worker passes the plugin to pytest; nothing is written into the folder with the tests. If a conftest.py in that
folder defines the same fixtures, that conftest.py takes precedence.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

_DEVICE = "cpu"
_HAS_TORCH = importlib.util.find_spec("torch") is not None


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "interpreter: Triton's interpreter runs it, too")
    # An option of upstream's conftest.py, whose default is a GPU device.
    if hasattr(config.option, "device"):
        config.option.device = _DEVICE


@pytest.fixture
def device() -> str:
    return _DEVICE


@pytest.fixture
def fresh_triton_cache(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """Use an empty cache for one test."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    return str(tmp_path)


@pytest.fixture
def fresh_knobs() -> Iterator[Any]:
    """Yield Triton's settings as without environment variables, except those that locate compilers."""
    yield from _knobs({"build", "nvidia", "amd"})


@pytest.fixture
def fresh_knobs_including_libraries() -> Iterator[Any]:
    """Yield Triton's settings as without environment variables."""
    yield from _knobs(set())


def _knobs(kept: set[str]) -> Iterator[Any]:
    from triton._internal_testing import _fresh_knobs_impl

    fresh, reset = _fresh_knobs_impl(skipped_attr=kept)
    try:
        yield fresh()
    finally:
        reset()


@pytest.fixture
def with_allocator() -> Iterator[None]:
    """Allocate memory for kernels that request it from the host."""
    import torch
    import triton
    from triton.runtime._allocation import NullAllocator

    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8))
    try:
        yield
    finally:
        triton.set_allocator(NullAllocator())


if _HAS_TORCH:

    def _on_cpu(value: Any) -> Any:
        return _DEVICE if str(value).split(":")[0] == "cuda" else value

    def _redirected() -> Any:
        import torch
        from torch.overrides import TorchFunctionMode

        class OnCpu(TorchFunctionMode):  # type: ignore[misc]
            """Makes tensors on the CPU when a test names "cuda" because it was written for one kind of device."""

            def __torch_function__(
                self,
                func: Callable[..., Any],
                types: Any,
                args: tuple[Any, ...] = (),
                kwargs: Mapping[str, Any] | None = None,
            ) -> Any:
                if func is torch.Tensor.cuda:
                    return args[0]
                if func is torch.Tensor.to:
                    args = tuple(map(_on_cpu, args))
                kwargs = dict(kwargs or {})
                if "device" in kwargs:
                    kwargs["device"] = _on_cpu(kwargs["device"])
                return func(*args, **kwargs)

        return OnCpu()

    @pytest.fixture(autouse=True)
    def foundry_tensors_on_cpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        """Make torch work without a GPU: tensors are on the CPU, and torch.cuda.synchronize does nothing."""
        import torch

        monkeypatch.setattr(torch.cuda, "synchronize", lambda device=None: None)
        with _redirected():
            yield
