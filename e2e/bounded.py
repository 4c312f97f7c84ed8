"""Error bounds of floating-point computations: torch's operators on pairs of a value and a bound of its error.

A function written with torch's operators runs on `Bounded` tensors instead. Each operator propagates the errors of its
inputs to its result, to first order, and adds its own error: the error that OpenCL C allows the function in f32, and
the rounding to the type of the tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from foundry_core.ops.limits import ULPS

_ULP = 2.0**-23
# Smaller f32 values may be flushed to zero.
_LEAST = 2.0**-126


@dataclass
class Bounded:
    """A tensor in float64, and the largest distance of a tensor of `dtype` that a device computed for it.

    Attributes:
        value, error: float64, of the same shape.
        dtype: the type to which every intermediate result may be rounded.
    """

    value: torch.Tensor
    error: torch.Tensor
    dtype: torch.dtype

    @classmethod
    def exact(cls, tensor: torch.Tensor) -> Bounded:
        """Return a tensor whose values the device has exactly."""
        return cls(tensor.double(), torch.zeros_like(tensor, dtype=torch.float64), tensor.dtype)

    @property
    def shape(self) -> torch.Size:
        return self.value.shape

    def relative(self) -> float:
        """Return the unit roundoff of the type."""
        return torch.finfo(self.dtype).eps / 2

    def _rounded(self, value: torch.Tensor, error: torch.Tensor, ulps: float = 0.5) -> Bounded:
        own = (ulps * _ULP + self.relative()) * value.abs()
        least = max(_LEAST, torch.finfo(self.dtype).tiny * self.relative())
        return Bounded(value, error + own + least, self.dtype)

    def _other(self, other: Bounded | float) -> Bounded:
        """Return an operand as Bounded; the device rounds a Python number to f32."""
        if isinstance(other, Bounded):
            return other
        value = torch.tensor(other, dtype=torch.float64)
        return Bounded(value, (value.float() - value).abs(), self.dtype)

    def __add__(self, other: Bounded | float) -> Bounded:
        other = self._other(other)
        return self._rounded(self.value + other.value, self.error + other.error)

    def __neg__(self) -> Bounded:
        return Bounded(-self.value, self.error, self.dtype)

    def __sub__(self, other: Bounded | float) -> Bounded:
        return self + -self._other(other)

    def __mul__(self, other: Bounded | float) -> Bounded:
        other = self._other(other)
        error = self.error * other.value.abs() + other.error * self.value.abs()
        return self._rounded(self.value * other.value, error)

    def __truediv__(self, other: Bounded) -> Bounded:
        value = self.value / other.value
        error = (self.error + value.abs() * other.error) / other.value.abs()
        return self._rounded(value, error, ULPS["division"])

    def __matmul__(self, other: Bounded) -> Bounded:
        """Multiply in f32, in any order: 2 k roundings, each at most half an ulp of the sum of absolute products."""
        size = self.value.abs() @ other.value.abs()
        error = self.error @ other.value.abs() + self.value.abs() @ other.error
        return self._rounded(self.value @ other.value, error + self.value.shape[-1] * _ULP * size)

    def t(self) -> Bounded:
        return Bounded(self.value.t(), self.error.t(), self.dtype)

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, arguments: Any = (), options: Any = None) -> Bounded:
        return _FUNCTIONS[function](*arguments, **options or {})


def _smooth(function: Any, slope: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Bounded], Bounded]:
    """Return the bounded form of a function of one element, given its derivative."""

    def bounded(x: Bounded) -> Bounded:
        return x._rounded(function(x.value), x.error * slope(x.value).abs(), ULPS[function.__name__])

    return bounded


def _softmax(x: Bounded, dim: int) -> Bounded:
    """Compute exp(x - max) / sum. A sum of n positive terms is rounded n times; each partial sum is at most the sum."""
    powers = torch.exp(x._rounded(x.value - x.value.amax(dim, keepdim=True), 2 * x.error))
    value, error = (part.sum(dim, keepdim=True) for part in (powers.value, powers.error))
    return powers / Bounded(value, error + x.value.shape[dim] * _ULP * value, x.dtype)


def _sum(x: Bounded, dim: int, keepdim: bool = False) -> Bounded:
    """Add in f32, in any order: n roundings, each at most an ulp of the sum of absolute values."""
    size = x.value.abs().sum(dim, keepdim)
    error = x.error.sum(dim, keepdim) + x.value.shape[dim] * _ULP * size
    return x._rounded(x.value.sum(dim, keepdim), error)


def _layer_norm(x: Bounded, shape: tuple[int], weight: Bounded, bias: Bounded, eps: float = 1e-5) -> Bounded:
    """Normalize rows: the variance is the mean of squared distances from the mean."""
    share = 1.0 / shape[0]
    distance = x - _sum(x, -1, True) * share
    return distance * torch.rsqrt(_sum(distance * distance, -1, True) * share + eps) * weight + bias


_FUNCTIONS: dict[Any, Callable[..., Bounded]] = {
    torch.abs: lambda x: Bounded(x.value.abs(), x.error, x.dtype),
    torch.relu: lambda x: Bounded(torch.relu(x.value), x.error, x.dtype),
    torch.sigmoid: lambda x: x._other(1.0) / (torch.exp(-x) + 1.0),
    torch.softmax: _softmax,
    torch.sum: _sum,
    torch.amax: lambda x, dim: Bounded(x.value.amax(dim), x.error.amax(dim), x.dtype),
    torch.nn.functional.layer_norm: _layer_norm,
    torch.exp: _smooth(torch.exp, torch.exp),
    torch.tanh: _smooth(torch.tanh, lambda x: 1 - torch.tanh(x) ** 2),
    torch.erf: _smooth(torch.erf, lambda x: 1.13 * torch.exp(-x * x)),
    torch.rsqrt: _smooth(torch.rsqrt, lambda x: 0.5 * x**-1.5),
    torch.log1p: _smooth(torch.log1p, lambda x: 1 / (1 + x)),
    torch.sin: _smooth(torch.sin, torch.cos),
}
