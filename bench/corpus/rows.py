"""Kernels that work on rows: normalisations, softmax, cross entropy, sums, scans, sorts, quantisation."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import triton
import triton.language as tl
from triton.language import constexpr

from ..problem import TYPES, Array, Problem, empty, normal, unit

F32 = unit("f32")


def spread(rows: int, count: int = 64) -> Array:
    """Return the rows that are compared."""
    return np.unique(np.linspace(0, rows - 1, count).astype(int))


def streamed(title: str, inputs: Any, output: Array, exact: Array, allowed: Any, launch: Any, **more: Any) -> Problem:
    """Return a problem that is bound by its bytes; `exact` may be of `checked` rows."""
    moved = sum(each.nbytes for each in (*inputs, output))
    return Problem(title, "GB/s", moved, output.size, inputs, output, exact, allowed, launch, **more)


@triton.jit
def rms_norm_kernel(x_ptr, w_ptr, y_ptr, stride, columns, eps, BLOCK: constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    x = tl.load(x_ptr + row * stride + column, mask=mask, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / columns + eps)
    w = tl.load(w_ptr + column, mask=mask, other=0.0).to(tl.float32)
    tl.store(y_ptr + row * stride + column, (x * scale * w).to(y_ptr.dtype.element_ty), mask=mask)


def rms_norm(rows: int, columns: int, kind: str) -> Problem:
    x, w, y = normal((rows, columns), kind), normal((columns,), kind, 1), empty((rows, columns), kind)
    checked = spread(rows)
    wide = x[checked].astype(np.float64)
    exact = wide / np.sqrt((wide**2).mean(axis=1, keepdims=True) + 1e-5) * w.astype(np.float64)

    def launch(jit: Any, x: Any, w: Any, y: Any, **options: Any) -> Any:
        block = triton.next_power_of_2(columns)
        return jit(rms_norm_kernel)[(rows,)](x, w, y, columns, columns, 1e-5, BLOCK=block, **options)

    # All terms of the sum are positive. rsqrt has 4 ulp, and four operations round.
    allowed = np.abs(exact) * ((columns / 2 + 12) * F32 + unit(kind)) + 2.0**-25
    return streamed(f"rms norm {kind}, {rows} x {columns}", (x, w), y, exact, allowed, launch, checked=checked)


@triton.jit
def rms_norm_backward_kernel(x_ptr, w_ptr, g_ptr, dx_ptr, stride, columns, eps, BLOCK: constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    x = tl.load(x_ptr + row * stride + column, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + column, mask=mask, other=0.0).to(tl.float32)
    g = tl.load(g_ptr + row * stride + column, mask=mask, other=0.0).to(tl.float32) * w
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / columns + eps)
    part = tl.sum(g * x, axis=0) * scale * scale / columns
    tl.store(dx_ptr + row * stride + column, (scale * (g - x * part)).to(dx_ptr.dtype.element_ty), mask=mask)


def rms_norm_backward(rows: int, columns: int, kind: str) -> Problem:
    x, w, g = normal((rows, columns), kind), normal((columns,), kind, 1), normal((rows, columns), kind, 2)
    dx, checked = empty((rows, columns), kind), spread(rows)
    wide, gw = x[checked].astype(np.float64), g[checked].astype(np.float64) * w.astype(np.float64)
    scale = 1 / np.sqrt((wide**2).mean(axis=1, keepdims=True) + 1e-5)
    exact = scale * (gw - wide * (gw * wide).mean(axis=1, keepdims=True) * scale**2)
    size = scale * (np.abs(gw) + np.abs(wide) * np.abs(gw * wide).mean(axis=1, keepdims=True) * scale**2)

    def launch(jit: Any, x: Any, w: Any, g: Any, dx: Any, **options: Any) -> Any:
        block = triton.next_power_of_2(columns)
        return jit(rms_norm_backward_kernel)[(rows,)](x, w, g, dx, columns, columns, 1e-5, BLOCK=block, **options)

    allowed = (3 * columns + 30) * F32 * size + unit(kind) * np.abs(exact) + 2.0**-25
    title = f"rms norm backward {kind}, {rows} x {columns}"
    return streamed(title, (x, w, g), dx, exact, allowed, launch, checked=checked)


@triton.jit
def layer_norm_backward_kernel(x_ptr, w_ptr, g_ptr, mean_ptr, scale_ptr, dx_ptr, stride, columns, BLOCK: constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    x = tl.load(x_ptr + row * stride + column, mask=mask, other=0.0).to(tl.float32)
    g = tl.load(g_ptr + row * stride + column, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + column, mask=mask, other=0.0).to(tl.float32)
    scale = tl.load(scale_ptr + row)
    normed = tl.where(mask, (x - tl.load(mean_ptr + row)) * scale, 0.0)
    weighted = tl.where(mask, w * g, 0.0)
    first = tl.sum(normed * weighted, axis=0) / columns
    second = tl.sum(weighted, axis=0) / columns
    dx = (weighted - (normed * first + second)) * scale
    tl.store(dx_ptr + row * stride + column, dx.to(dx_ptr.dtype.element_ty), mask=mask)


def _normed(x: Array) -> tuple[Array, Array]:
    """Return each row's mean and reciprocal of the deviation, in f32."""
    mean, scale = empty((len(x),), "f32"), empty((len(x),), "f32")
    mean[:] = x.mean(axis=1, dtype=np.float64)
    scale[:] = 1 / np.sqrt(x.var(axis=1, dtype=np.float64) + 1e-5)
    return mean, scale


def layer_norm_backward(rows: int, columns: int, kind: str) -> Problem:
    x, w, g = normal((rows, columns), kind), normal((columns,), kind, 1), normal((rows, columns), kind, 2)
    dx, checked = empty((rows, columns), kind), spread(rows)
    mean, scale = _normed(x)
    m, s = (each[checked, None].astype(np.float64) for each in (mean, scale))
    gw = g[checked].astype(np.float64) * w.astype(np.float64)
    hat = (x[checked].astype(np.float64) - m) * s
    exact = (gw - hat * (hat * gw).mean(axis=1, keepdims=True) - gw.mean(axis=1, keepdims=True)) * s
    high = (np.abs(x[checked].astype(np.float64)) + np.abs(m)) * s
    size = s * (np.abs(gw) + high * (high * np.abs(gw)).mean(axis=1, keepdims=True))
    size += s * np.abs(gw).mean(axis=1, keepdims=True)

    def launch(jit: Any, *arrays: Any, **options: Any) -> Any:
        block = triton.next_power_of_2(columns)
        return jit(layer_norm_backward_kernel)[(rows,)](*arrays, columns, columns, BLOCK=block, **options)

    allowed = (columns + 20) * F32 * size + unit(kind) * np.abs(exact) + 2.0**-25
    title = f"layer norm backward {kind}, {rows} x {columns}"
    return streamed(title, (x, w, g, mean, scale), dx, exact, allowed, launch, checked=checked)


@triton.jit
def layer_norm_weights_kernel(x_ptr, g_ptr, mean_ptr, scale_ptr, dw_ptr, rows, columns, BR: constexpr, BC: constexpr):
    column = tl.program_id(0) * BC + tl.arange(0, BC)
    total = tl.zeros((BR, BC), tl.float32)
    for start in range(0, rows, BR):
        row = start + tl.arange(0, BR)
        mask = (row[:, None] < rows) & (column[None, :] < columns)
        at = row[:, None] * columns + column[None, :]
        x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
        g = tl.load(g_ptr + at, mask=mask, other=0.0).to(tl.float32)
        mean = tl.load(mean_ptr + row, mask=row < rows, other=0.0)
        scale = tl.load(scale_ptr + row, mask=row < rows, other=0.0)
        total += tl.where(mask, g * (x - mean[:, None]) * scale[:, None], 0.0)
    tl.store(dw_ptr + column, tl.sum(total, axis=0), mask=column < columns)


def layer_norm_weights(rows: int, columns: int, kind: str) -> Problem:
    x, g, dw = normal((rows, columns), kind), normal((rows, columns), kind, 2), empty((columns,), "f32")
    mean, scale = _normed(x)
    checked = spread(columns)
    m, s = (each[:, None].astype(np.float64) for each in (mean, scale))
    wide, gs = x[:, checked].astype(np.float64), g[:, checked].astype(np.float64) * s
    size = (np.abs(gs) * (np.abs(wide) + np.abs(m))).sum(axis=0)

    def launch(jit: Any, *arrays: Any, BR: int, BC: int, **options: Any) -> Any:
        grid = (triton.cdiv(columns, BC),)
        return jit(layer_norm_weights_kernel)[grid](*arrays, rows, columns, BR=BR, BC=BC, **options)

    title = f"layer norm, gradient of the weights {kind}, {rows} x {columns}"
    exact = (gs * (wide - m)).sum(axis=0)
    return streamed(title, (x, g, mean, scale), dw, exact, (rows + 8) * F32 * size, launch, checked=checked)


@triton.jit
def long_softmax_kernel(x_ptr, y_ptr, columns, BLOCK: constexpr):
    row = tl.program_id(0).to(tl.int64)
    largest = tl.full((BLOCK,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + column, mask=column < columns, other=-float("inf")).to(tl.float32)
        new = tl.maximum(largest, x)
        old = tl.where(largest == -float("inf"), 0.0, total * tl.exp(largest - new))
        total = old + tl.where(column < columns, tl.exp(x - new), 0.0)
        largest = new
    top = tl.max(largest, axis=0)
    whole = tl.sum(tl.where(total > 0, total * tl.exp(largest - top), 0.0), axis=0)
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + column, mask=column < columns, other=-float("inf")).to(tl.float32)
        y = tl.exp(x - top) / whole
        tl.store(y_ptr + row * columns + column, y.to(y_ptr.dtype.element_ty), mask=column < columns)


def _powers(x: Array) -> tuple[Array, Array, Array]:
    """Return the largest of each row, exp(x - largest), and a bound of the relative error of such an exponential."""
    largest = x.max(axis=1, keepdims=True)
    return largest, np.exp(x - largest), (12 + 4 * np.abs(x - largest).max()) * F32


def long_softmax(rows: int, columns: int, kind: str) -> Problem:
    x, y, checked = normal((rows, columns), kind), empty((rows, columns), kind), spread(rows)
    _, powers, relative = _powers(x[checked].astype(np.float64))
    exact = powers / powers.sum(axis=1, keepdims=True)

    def launch(jit: Any, x: Any, y: Any, **options: Any) -> Any:
        return jit(long_softmax_kernel)[(rows,)](x, y, columns, **options)

    # A rescaling of the sum for each block has the error of an exponential.
    allowed = exact * (columns * (F32 + relative / 64) + 4 * relative + unit(kind)) + 2.0**-25
    return streamed(
        f"softmax of long rows {kind}, {rows} x {columns}", (x,), y, exact, allowed, launch, checked=checked
    )


@triton.jit
def cross_entropy_kernel(x_ptr, label_ptr, loss_ptr, columns, BLOCK: constexpr):
    row = tl.program_id(0).to(tl.int64)
    label = tl.load(label_ptr + row)
    largest = -float("inf")
    total = 0.0
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + column, mask=column < columns, other=-float("inf")).to(tl.float32)
        new = tl.maximum(largest, tl.max(x, axis=0))
        total = total * tl.exp(largest - new) + tl.sum(tl.exp(x - new), axis=0)
        largest = new
    chosen = tl.load(x_ptr + row * columns + label).to(tl.float32)
    tl.store(loss_ptr + row, largest + tl.log(total) - chosen)


def cross_entropy(rows: int, columns: int, kind: str) -> Problem:
    x, labels, loss = normal((rows, columns), kind), empty((rows,), "i32"), empty((rows,), "f32")
    labels[:] = np.random.default_rng(1).integers(0, columns, rows)
    checked = spread(rows)
    wide = x[checked].astype(np.float64)
    largest, powers, relative = _powers(wide)
    chosen = wide[np.arange(len(checked)), labels[checked]]
    exact = largest[:, 0] + np.log(powers.sum(axis=1)) - chosen

    def launch(jit: Any, *arrays: Any, **options: Any) -> Any:
        return jit(cross_entropy_kernel)[(rows,)](*arrays, columns, **options)

    # The logarithm makes the sum's relative error an absolute one.
    allowed = columns * F32 + (columns / 64 + 4) * relative + 8 * F32 * (np.abs(largest[:, 0]) + np.abs(chosen) + 20)
    title = f"cross entropy {kind}, {rows} x {columns}"
    return streamed(title, (x, labels), loss, exact, allowed, launch, checked=checked)


@triton.jit
def argmax_kernel(x_ptr, y_ptr, columns, BLOCK: constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + column, mask=column < columns, other=-float("inf"))
    tl.store(y_ptr + row, tl.argmax(x, axis=0))


@triton.jit
def sum_rows_kernel(x_ptr, y_ptr, columns, BLOCK: constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * columns + column, mask=column < columns, other=0.0).to(tl.float32)
    tl.store(y_ptr + row, tl.sum(total, axis=0))


@triton.jit
def sum_columns_kernel(x_ptr, y_ptr, rows, columns, BR: constexpr, BC: constexpr):
    column = tl.program_id(0) * BC + tl.arange(0, BC)
    total = tl.zeros((BR, BC), tl.float32)
    for start in range(0, rows, BR):
        row = start + tl.arange(0, BR)
        mask = (row[:, None] < rows) & (column[None, :] < columns)
        total += tl.load(x_ptr + row[:, None] * columns + column[None, :], mask=mask, other=0.0).to(tl.float32)
    tl.store(y_ptr + column, tl.sum(total, axis=0), mask=column < columns)


def argmax(rows: int, columns: int, kind: str) -> Problem:
    x, y = normal((rows, columns), kind), empty((rows,), "i32")

    def launch(jit: Any, x: Any, y: Any, **options: Any) -> Any:
        return jit(argmax_kernel)[(rows,)](x, y, columns, BLOCK=triton.next_power_of_2(columns), **options)

    return streamed(f"argmax {kind}, {rows} x {columns}", (x,), y, x.argmax(axis=1).astype(np.int32), 0, launch)


def sum_rows(rows: int, columns: int, kind: str) -> Problem:
    x, y = normal((rows, columns), kind), empty((rows,), "f32")
    wide = x.astype(np.float64)

    def launch(jit: Any, x: Any, y: Any, **options: Any) -> Any:
        return jit(sum_rows_kernel)[(rows,)](x, y, columns, **options)

    allowed = columns * F32 * np.abs(wide).sum(axis=1)
    return streamed(f"sum of rows {kind}, {rows} x {columns}", (x,), y, wide.sum(axis=1), allowed, launch)


def sum_columns(rows: int, columns: int, kind: str) -> Problem:
    x, y = normal((rows, columns), kind), empty((columns,), "f32")
    wide = x.astype(np.float64)

    def launch(jit: Any, x: Any, y: Any, BC: int, **options: Any) -> Any:
        return jit(sum_columns_kernel)[(triton.cdiv(columns, BC),)](x, y, rows, columns, BC=BC, **options)

    allowed = rows * F32 * np.abs(wide).sum(axis=0)
    return streamed(f"sum of columns {kind}, {rows} x {columns}", (x,), y, wide.sum(axis=0), allowed, launch)


@triton.jit
def cumsum_kernel(x_ptr, y_ptr, columns, BLOCK: constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    mask = column < columns
    x = tl.load(x_ptr + row * columns + column, mask=mask, other=0.0).to(tl.float32)
    tl.store(y_ptr + row * columns + column, tl.cumsum(x, axis=0), mask=mask)


@triton.jit
def sort_kernel(x_ptr, y_ptr, columns, BLOCK: constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    mask = column < columns
    x = tl.load(x_ptr + row * columns + column, mask=mask, other=float("inf"))
    tl.store(y_ptr + row * columns + column, tl.sort(x), mask=mask)


@triton.jit
def topk_kernel(x_ptr, y_ptr, columns, K: constexpr, BLOCK: constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + column, mask=column < columns, other=-float("inf"))
    tl.store(y_ptr + row * K + tl.arange(0, K), tl.topk(x, K))


def by_row(kernel: Any, rows: int, columns: int, jit: Any, *arrays: Any, **options: Any) -> Any:
    block = triton.next_power_of_2(columns)
    return jit(kernel)[(rows,)](*arrays, columns, BLOCK=block, **options)


def cumsum(rows: int, columns: int, kind: str) -> Problem:
    x, y, checked = normal((rows, columns), kind), empty((rows, columns), "f32"), spread(rows)
    wide = x[checked].astype(np.float64)
    allowed = columns * F32 * np.abs(wide).cumsum(axis=1)
    launch = partial(by_row, cumsum_kernel, rows, columns)
    title = f"cumulative sum {kind}, {rows} x {columns}"
    return streamed(title, (x,), y, wide.cumsum(axis=1), allowed, launch, checked=checked)


def sort(rows: int, columns: int, kind: str) -> Problem:
    x, y = normal((rows, columns), kind), empty((rows, columns), kind)
    launch = partial(by_row, sort_kernel, rows, columns)
    return streamed(f"sort {kind}, {rows} x {columns}", (x,), y, np.sort(x, axis=1), 0, launch)


def topk(rows: int, columns: int, k: int, kind: str) -> Problem:
    x, y = normal((rows, columns), kind), empty((rows, k), kind)
    launch = partial(by_row, topk_kernel, rows, columns, K=k)
    exact = np.ascontiguousarray(np.sort(x, axis=1)[:, : -k - 1 : -1])
    return streamed(f"largest {k} {kind}, {rows} x {columns}", (x,), y, exact, 0, launch)


@triton.jit
def quantise_kernel(x_ptr, y_ptr, scale_ptr, columns, BLOCK: constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    mask = column < columns
    x = tl.load(x_ptr + row * columns + column, mask=mask, other=0.0).to(tl.float32)
    largest = tl.max(tl.abs(x), axis=0)
    tl.store(scale_ptr + row, largest / 127.0)
    y = tl.floor(x * (127.0 / largest) + 0.5)
    tl.store(y_ptr + row * columns + column, y.to(tl.int8), mask=mask)


def quantise(rows: int, columns: int, kind: str) -> Problem:
    x, scales, y = normal((rows, columns), kind), empty((rows,), "f32"), empty((rows, columns), "i8")
    checked = spread(rows)
    wide = x[checked].astype(np.float64)
    scaled = wide * (127 / np.abs(wide).max(axis=1, keepdims=True)) + 0.5

    def launch(jit: Any, x: Any, scales: Any, y: Any, **options: Any) -> Any:
        return by_row(quantise_kernel, rows, columns, jit, x, y, scales, **options)

    # Where the scaled number is as near to the next integer as its error, either is right.
    close = np.abs(scaled - np.round(scaled)) <= 128 * 4 * F32
    exact = np.floor(scaled).astype(np.int8)
    title = f"quantise rows {kind} -> i8, {rows} x {columns}"
    return streamed(title, (x, scales), y, exact, close.astype(np.float64), launch, checked=checked)


@triton.jit
def dequantise_kernel(x_ptr, scale_ptr, y_ptr, columns, BLOCK: constexpr):
    row, column = tl.program_id(0), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = column < columns
    x = tl.load(x_ptr + row * columns + column, mask=mask, other=0)
    y = x.to(tl.float32) * tl.load(scale_ptr + row)
    tl.store(y_ptr + row * columns + column, y.to(y_ptr.dtype.element_ty), mask=mask)


def dequantise(rows: int, columns: int, kind: str) -> Problem:
    x, scales, y = normal((rows, columns), "i8"), normal((rows,), "f32", 1), empty((rows, columns), kind)
    checked = spread(rows)

    def launch(jit: Any, *arrays: Any, BLOCK: int, **options: Any) -> Any:
        grid = (rows, triton.cdiv(columns, BLOCK))
        return jit(dequantise_kernel)[grid](*arrays, columns, BLOCK=BLOCK, **options)

    exact = x[checked].astype(np.float64) * scales[checked, None].astype(np.float64)
    allowed = np.abs(exact) * (F32 + unit(kind)) * 1.001 + (2.0**-25 if TYPES[kind] == np.float16 else 0)
    title = f"dequantise rows i8 -> {kind}, {rows} x {columns}"
    return streamed(title, (x, scales), y, exact, allowed, launch, checked=checked)


@triton.jit
def group_norm_kernel(x_ptr, w_ptr, b_ptr, y_ptr, channels, plane, groups, eps, BLOCK: constexpr):
    """Normalise a group of an image's channels, whose planes are next to each other; weights are of channels."""
    program = tl.program_id(0)
    size = channels // groups * plane
    base = program.to(tl.int64) * size
    first, second = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    for start in range(0, size, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + at, mask=at < size, other=0.0).to(tl.float32)
        first += x
        second += x * x
    mean = tl.sum(first, axis=0) / size
    scale = tl.rsqrt(tl.sum(second, axis=0) / size - mean * mean + eps)
    for start in range(0, size, BLOCK):
        at = start + tl.arange(0, BLOCK)
        mask = at < size
        channel = program % groups * (channels // groups) + at // plane
        x = tl.load(x_ptr + base + at, mask=mask, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + channel, mask=mask, other=0.0).to(tl.float32)
        b = tl.load(b_ptr + channel, mask=mask, other=0.0).to(tl.float32)
        tl.store(y_ptr + base + at, ((x - mean) * scale * w + b).to(y_ptr.dtype.element_ty), mask=mask)


def group_norm(images: int, channels: int, plane: int, groups: int, kind: str) -> Problem:
    size = channels // groups * plane
    x, y = (make((images * groups, size), kind) for make in (normal, empty))
    w, b, checked = normal((channels,), kind, 1), normal((channels,), kind, 2), spread(images * groups)
    wide = x[checked].astype(np.float64)
    of_group = np.repeat(np.stack([w, b]).astype(np.float64), plane, axis=1).reshape(2, groups, size)
    weight, bias = of_group[:, checked % groups]
    mean, square = wide.mean(axis=1, keepdims=True), (wide**2).mean(axis=1, keepdims=True)
    variance = wide.var(axis=1, keepdims=True) + 1e-5
    normed = (wide - mean) / np.sqrt(variance)
    # Of a sum whose lanes add a 64th of the elements before their tree; and of the difference of squares.
    of_sum = (size / 64 + 80) * F32
    of_mean = of_sum * np.abs(wide).mean(axis=1, keepdims=True)
    of_scale = (2 * of_sum * square + 2 * np.abs(mean) * of_mean) / variance + 8 * F32
    error = np.abs(normed) * of_scale + (of_mean + 2 * F32 * (np.abs(wide) + np.abs(mean))) / np.sqrt(variance)
    exact = normed * weight + bias

    def launch(jit: Any, *arrays: Any, **options: Any) -> Any:
        return jit(group_norm_kernel)[(images * groups,)](*arrays, channels, plane, groups, 1e-5, **options)

    allowed = np.abs(weight) * error + 4 * F32 * (np.abs(normed * weight) + np.abs(bias))
    allowed += unit(kind) * np.abs(exact) + 2.0**-25
    title = f"group norm {kind}, {images} x {channels} x {plane}, {groups} groups"
    return streamed(title, (x, w, b), y, exact, allowed, launch, checked=checked)


@triton.jit
def segments_kernel(x_ptr, starts_ptr, y_ptr, columns, BR: constexpr, BC: constexpr):
    """Sum rows starts[s] to starts[s + 1]; how many these are, only memory says."""
    segment = tl.program_id(0)
    column = tl.program_id(1) * BC + tl.arange(0, BC)
    low, high = tl.load(starts_ptr + segment), tl.load(starts_ptr + segment + 1)
    total = tl.zeros((BR, BC), tl.float32)
    for start in range(low, high, BR):
        row = start + tl.arange(0, BR)
        mask = (row[:, None] < high) & (column[None, :] < columns)
        total += tl.load(x_ptr + row[:, None] * columns + column[None, :], mask=mask, other=0.0).to(tl.float32)
    tl.store(y_ptr + segment * columns + column, tl.sum(total, axis=0), mask=column < columns)


def segments(rows: int, columns: int, count: int, kind: str) -> Problem:
    x, starts, y = normal((rows, columns), kind), empty((count + 1,), "i32"), empty((count, columns), "f32")
    starts[:] = np.sort(np.random.default_rng(1).integers(0, rows, count + 1))
    # The first is empty.
    starts[:2], starts[-1] = 0, rows
    checked = spread(count, 256)
    parts = [x[starts[each] : starts[each + 1]].astype(np.float64) for each in checked]
    exact, size = (np.stack([part.sum(axis=0) for part in of]) for of in (parts, map(np.abs, parts)))

    def launch(jit: Any, *arrays: Any, BC: int, **options: Any) -> Any:
        return jit(segments_kernel)[(count, triton.cdiv(columns, BC))](*arrays, columns, BC=BC, **options)

    allowed = np.array([[len(part) + 8] for part in parts]) * F32 * size
    title = f"sums of {count} segments {kind}, {rows} x {columns}"
    return streamed(title, (x, starts), y, exact, allowed, launch, checked=checked)
