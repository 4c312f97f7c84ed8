"""The kernels whose texts are in texts/: backends/core/host runs these without Triton.

test_texts.py, in backends/spirv/tests, writes them again and compares. To write them after a change of a kernel or of
Triton:

    ./foundry run spirv backends/core/tests/text_kernels.py FOLDER

Each is TTIR, and TTGIR for subgroups of 8, 16, 32 and 64 invocations, 4 a program, without places in the source.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import triton
import triton.language as tl
from foundry_core.mapping.base.target import WorkItemTarget
from foundry_core.mapping.simt.target import SimtTarget
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import ASTSource

LANES = (8, 16, 32, 64)


@triton.jit
def limits(x, out, n, lo, B: tl.constexpr):
    offs = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + offs, mask=(offs <= n) & (offs > lo), other=-7)
    b = (v > 3) < (v > 100)
    c = (v > 3) <= ((v & 1) == 1)
    w = tl.arange(0, B) + tl.arange(0, B) * 33554432 + 1500000000
    found = v + b.to(tl.int64) * 1000 + c.to(tl.int64) * 100000 + w.to(tl.int64)
    tl.store(out + offs, found, mask=(n >= offs) & (lo < offs))


@triton.jit
def softmax(x, out, stride, n, B: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, B)
    v = tl.load(x + row * stride + offs, mask=offs < n, other=float("-inf"))
    v = v - tl.max(v, 0)
    e = tl.exp(v)
    tl.store(out + row * stride + offs, e / tl.sum(e, 0), mask=offs < n)


@triton.jit
def matmul(a, b, c, m, n, k, sa, sb, sc, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    pa = a + (rm % m)[:, None] * sa + rk[None, :]
    pb = b + rk[:, None] * sb + (rn % n)[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for at in range(0, k, BK):
        x = tl.load(pa, mask=rk[None, :] + at < k, other=0.0)
        y = tl.load(pb, mask=rk[:, None] + at < k, other=0.0)
        acc = tl.dot(x, y, acc, input_precision="ieee")
        pa += BK
        pb += BK * sb
    tl.store(c + rm[:, None] * sc + rn[None, :], acc, mask=(rm[:, None] < m) & (rn[None, :] < n))


@triton.jit
def _add(a, b):
    return a + b


@triton.jit
def histogram(x, counts, sums, n, B: tl.constexpr, BINS: tl.constexpr):
    offs = tl.program_id(0) * B + tl.arange(0, B)
    m = offs < n
    v = tl.load(x + offs, mask=m, other=0)
    tl.atomic_add(counts + (v & (BINS - 1)), 1, mask=m)
    tl.atomic_max(counts + BINS, tl.max(v, 0))
    tl.store(sums + offs, tl.associative_scan(v, 0, _add), mask=m)


@triton.jit
def transposes(x, out, steps, R: tl.constexpr, C: tl.constexpr):
    r = tl.arange(0, R)
    c = tl.arange(0, C)
    acc = tl.load(x + r[:, None] * C + c[None, :])
    for _ in range(steps):
        t = tl.trans(acc)
        m = tl.max(t, 0)
        acc = acc * 2 + m[:, None] + tl.sum(acc, 0)[None, :]
        acc = tl.reshape(tl.trans(acc), (R, C))
    tl.store(out + r[:, None] * C + c[None, :], acc)


@triton.jit
def exchanged(a, b, c, n, stride, B: tl.constexpr):
    offs = tl.arange(0, B)
    p = a
    q = b
    for k in range(n):
        tl.store(p + offs + stride * k * B, tl.load(c + offs) + k)
        t = p
        p = q
        q = t


@triton.jit
def strided(x, out, n, stride, B: tl.constexpr):
    offs = tl.arange(0, B)
    for k in range(n):
        tl.store(out + stride * k + offs, tl.load(x + offs) + k)


@triton.jit
def gathered(x, index, out, n, B: tl.constexpr):
    offs = tl.program_id(0) * B + tl.arange(0, B)
    at = tl.load(index + offs, mask=offs < n, other=0)
    v = tl.load(x + at, mask=(offs < n) & (at >= 0), other=-1.0)
    tl.store(out + n - 1 - offs, v * 2, mask=offs < n)


@triton.jit
def largest(x, values, places, rows, columns, R: tl.constexpr, C: tl.constexpr):
    r = tl.program_id(0) * R + tl.arange(0, R)
    c = tl.arange(0, C)
    inside = (r[:, None] < rows) & (c[None, :] < columns)
    v = tl.load(x + r[:, None] * columns + c[None, :], mask=inside, other=float("-inf"))
    tl.store(values + r, tl.max(v, 1), mask=r < rows)
    tl.store(places + r, tl.argmax(v, 1), mask=r < rows)


@triton.jit
def moved(x, out, n, steps, B: tl.constexpr):
    offs = tl.arange(0, B)
    here = x + offs
    total = tl.zeros((B,), tl.float32)
    scale = 1.0
    for step in range(steps):
        total += tl.load(here, mask=step * B + offs < n, other=3.0) * scale
        here += B
        scale *= 0.5
    tl.store(out + offs, total)


@triton.jit
def in_place(x, n, B: tl.constexpr):
    offs = tl.arange(0, B)
    for k in range(n):
        v = tl.load(x + offs)
        before = tl.load(x + (offs ^ 1))
        tl.store(x + offs, v + before + k)


@triton.jit
def _sign(v):
    if v < 0:
        return -1
    if v == 0:
        return 0
    return 1


@triton.jit
def branches(x, out, n, B: tl.constexpr):
    pid = tl.program_id(0)
    if pid >= n:
        return
    first = tl.load(x + pid)
    steps = 0
    while first > 1:
        first = tl.where(first % 2 == 0, first // 2, first * 3 + 1)
        steps += 1
    offs = tl.arange(0, B)
    if steps % 2 == 1:
        tl.store(out + pid * B + offs, offs * steps)
    else:
        tl.store(out + pid * B + offs, offs + steps + _sign(tl.load(x + pid)))


@triton.jit
def sums(x, out, rows, columns, R: tl.constexpr, C: tl.constexpr):
    r = tl.program_id(0) * R + tl.arange(0, R)
    total = tl.zeros((R,), tl.int32)
    for at in range(0, columns, C):
        c = at + tl.arange(0, C)
        inside = (r[:, None] < rows) & (c[None, :] < columns)
        total += tl.sum(tl.load(x + r[:, None] * columns + c[None, :], mask=inside, other=0).to(tl.int32), 1)
    tl.store(out + r, total, mask=r < rows)


@triton.jit
def halves(x, y, out, wide, n, B: tl.constexpr):
    offs = tl.program_id(0) * B + tl.arange(0, B)
    a = tl.load(x + offs, mask=offs < n, other=1.5)
    b = tl.load(y + offs, mask=offs < n, other=-2.0)
    s = a * b + a
    tl.store(out + offs, s, mask=offs < n)
    tl.store(wide + offs, s.to(tl.float32) + b.to(tl.float32), mask=offs < n)


@triton.jit
def diagonal(x, out, n, N: tl.constexpr):
    i = tl.arange(0, N)
    tile = tl.load(x + i[:, None] * n + i[None, :], mask=(i[:, None] < n) & (i[None, :] <= i[:, None]), other=0.0)
    turned = tl.trans(tile)
    tl.store(out + i[:, None] * n + i[None, :], tile + turned * 2, mask=(i[:, None] < n) & (i[None, :] < n))


@triton.jit
def joined(x, out, B: tl.constexpr):
    offs = tl.arange(0, B)
    v = tl.load(x + offs)
    both = tl.join(v, v * v)
    tl.store(out + tl.arange(0, 2 * B), tl.reshape(tl.flip(tl.cumsum(both, 0), 0), (2 * B,)))


@triton.jit
def chosen(a, b, out, n, first, B: tl.constexpr):
    offs = tl.arange(0, B)
    source = a if first > 0 else b
    tl.store(out + offs, tl.load(source + offs, mask=offs < n, other=0))


@triton.jit
def said(x, out, n, B: tl.constexpr):
    offs = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + offs, mask=offs < n, other=0)
    tl.device_assert(v < 100, "too large", mask=offs < n)
    tl.device_print("v", v)
    tl.store(out + offs, v + 1, mask=offs < n)


@triton.jit
def activated(a, b, row, column, out, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    pa = a + rm[:, None] * k + rk[None, :]
    pb = b + rk[:, None] * n + rn[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, k, BK):
        x = tl.load(pa, mask=rm[:, None] < m, other=0.0)
        y = tl.load(pb, mask=rn[None, :] < n, other=0.0)
        acc = tl.dot(x, y, acc)
        pa += BK
        pb += BK * n
    acc = acc * tl.load(column + rm, mask=rm < m, other=0.0)[:, None]
    acc = acc + tl.load(row + rn, mask=rn < n, other=0.0)[None, :]
    acc = tl.where(acc > 0, acc, acc * 0.25)
    tl.store(out + rm[:, None] * n + rn[None, :], acc.to(tl.float16), mask=(rm[:, None] < m) & (rn[None, :] < n))


@triton.jit
def attended(q, k, v, out, scale, length, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    rows, depth = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    x = tl.load(q + rows[:, None] * D + depth[None, :])
    highest, weight = tl.full((BM,), -float("inf"), tl.float32), tl.zeros((BM,), tl.float32)
    total = tl.zeros((BM, D), tl.float32)
    for start in range(0, length, BN):
        keys = start + tl.arange(0, BN)
        scores = tl.dot(x, tl.trans(tl.load(k + keys[:, None] * D + depth[None, :]))) * scale
        scores = tl.where(rows[:, None] >= keys[None, :], scores, -float("inf"))
        top = tl.maximum(highest, tl.max(scores, 1))
        powers = tl.exp2(scores - top[:, None])
        shrink = tl.exp2(highest - top)
        weight = weight * shrink + tl.sum(powers, 1)
        total = tl.dot(powers.to(tl.float16), tl.load(v + keys[:, None] * D + depth[None, :]), total * shrink[:, None])
        highest = top
    tl.store(out + rows[:, None] * D + depth[None, :], (total / weight[:, None]).to(tl.float16))


@triton.jit
def picked(x, values, places, n, B: tl.constexpr):
    offs = tl.arange(0, B)
    v = tl.load(x + offs, mask=offs < n, other=float("-inf"))
    for k in range(8):
        most, at = tl.max(v, 0, return_indices=True)
        tl.store(values + k, most)
        tl.store(places + k, at)
        v = tl.where(offs == at, float("-inf"), v)


@triton.jit
def sampled(logits, uniform, out, n, B: tl.constexpr):
    offs = tl.arange(0, B)
    v = tl.load(logits + offs, mask=offs < n, other=float("-inf"))
    noise = -tl.log(-tl.log(tl.load(uniform + offs, mask=offs < n, other=0.5)))
    tl.store(out, tl.argmax(v + noise, 0, tie_break_left=False))


@triton.jit
def top(x, out, n, B: tl.constexpr):
    offs = tl.arange(0, B)
    v = tl.load(x + offs, mask=offs < n, other=-9999)
    tl.store(out + tl.arange(0, 8), tl.topk(v, 8))


@triton.jit
def linear(q, k, v, out, length, D: tl.constexpr, CHUNK: tl.constexpr, BV: tl.constexpr):
    row = tl.arange(0, CHUNK)
    column = tl.arange(0, D)
    across = tl.arange(0, BV)
    state = tl.zeros((D, BV), tl.float32)
    for start in range(0, length, CHUNK):
        at = start + row[:, None]
        x = tl.load(q + at * D + column[None, :])
        y = tl.load(k + at * D + column[None, :])
        z = tl.load(v + at * BV + across[None, :])
        scores = tl.where(row[:, None] >= row[None, :], tl.dot(x, tl.trans(y)), 0.0)
        result = tl.dot(scores.to(z.dtype), z)
        result = tl.dot(x, state.to(x.dtype), result)
        state = tl.dot(tl.trans(y), z, state)
        tl.store(out + at * BV + across[None, :], result)


@triton.jit
def decoded(q, k, v, table, out, length, D: tl.constexpr, BN: tl.constexpr, PAGE: tl.constexpr):
    row = tl.arange(0, 16)
    column = tl.arange(0, D)
    x = tl.load(q + row[:, None] * D + column[None, :])
    largest = tl.full((16,), -float("inf"), tl.float32)
    total = tl.zeros((16,), tl.float32)
    result = tl.zeros((16, D), tl.float32)
    for start in range(0, length, BN):
        key = start + tl.arange(0, BN)
        inside = key < length
        page = tl.load(table + key // PAGE, mask=inside, other=0)
        at = (page * PAGE + key % PAGE)[:, None] * D + column[None, :]
        y = tl.load(k + at, mask=inside[:, None], other=0.0)
        scores = tl.where(inside[None, :], tl.dot(x, tl.trans(y)), -float("inf"))
        new = tl.maximum(largest, tl.max(scores, 1))
        weight = tl.exp(scores - new[:, None])
        again = tl.exp(largest - new)
        total = total * again + tl.sum(weight, 1)
        z = tl.load(v + at, mask=inside[:, None], other=0.0)
        result = result * again[:, None] + tl.dot(weight.to(z.dtype), z)
        largest = new
    tl.store(out + row[:, None] * D + column[None, :], result / total[:, None])


class Text(NamedTuple):
    """A kernel, the types of its parameters, its constants, and options of its launch."""

    kernel: Any
    types: Mapping[str, str]
    constants: Mapping[str, int]
    options: Mapping[str, Any] = {}


TEXTS = {
    "limits": Text(limits, {"x": "*i64", "out": "*i64", "n": "i32", "lo": "i32"}, {"B": 64}),
    "softmax": Text(softmax, {"x": "*fp32", "out": "*fp32", "stride": "i32", "n": "i32"}, {"B": 128}),
    "matmul": Text(
        matmul,
        {"a": "*fp32", "b": "*fp32", "c": "*fp32", **dict.fromkeys(("m", "n", "k", "sa", "sb", "sc"), "i32")},
        {"BM": 16, "BN": 16, "BK": 16},
    ),
    "activated": Text(
        activated,
        {
            **dict.fromkeys(("a", "b"), "*fp16"),
            **dict.fromkeys(("row", "column"), "*fp32"),
            "out": "*fp16",
            **dict.fromkeys(("m", "n", "k"), "i32"),
        },
        {"BM": 32, "BN": 32, "BK": 16},
    ),
    "attended": Text(
        attended,
        {**dict.fromkeys(("q", "k", "v", "out"), "*fp16"), "scale": "fp32", "length": "i32"},
        {"D": 16, "BM": 64, "BN": 32},
    ),
    "histogram": Text(histogram, {"x": "*i32", "counts": "*i32", "sums": "*i32", "n": "i32"}, {"B": 64, "BINS": 8}),
    "transposes": Text(transposes, {"x": "*i32", "out": "*i32", "steps": "i32"}, {"R": 16, "C": 8}),
    "exchanged": Text(exchanged, {"a": "*i32", "b": "*i32", "c": "*i32", "n": "i32", "stride": "i32"}, {"B": 16}),
    "strided": Text(strided, {"x": "*i32", "out": "*i32", "n": "i32", "stride": "i32"}, {"B": 16}),
    "gathered": Text(gathered, {"x": "*fp32", "index": "*i32", "out": "*fp32", "n": "i32"}, {"B": 32}),
    "largest": Text(
        largest, {"x": "*fp32", "values": "*fp32", "places": "*i32", "rows": "i32", "columns": "i32"}, {"R": 4, "C": 32}
    ),
    "moved": Text(moved, {"x": "*fp32", "out": "*fp32", "n": "i32", "steps": "i32"}, {"B": 32}),
    "in_place": Text(in_place, {"x": "*i32", "n": "i32"}, {"B": 32}),
    "branches": Text(branches, {"x": "*i32", "out": "*i32", "n": "i32"}, {"B": 16}),
    "sums": Text(sums, {"x": "*i8", "out": "*i32", "rows": "i32", "columns": "i32"}, {"R": 8, "C": 16}),
    "halves": Text(halves, {"x": "*fp16", "y": "*bf16", "out": "*fp32", "wide": "*fp32", "n": "i32"}, {"B": 32}),
    "diagonal": Text(diagonal, {"x": "*fp32", "out": "*fp32", "n": "i32"}, {"N": 16}),
    "joined": Text(joined, {"x": "*i32", "out": "*i32"}, {"B": 32}),
    "chosen": Text(chosen, {"a": "*i32", "b": "*i32", "out": "*i32", "n": "i32", "first": "i32"}, {"B": 16}),
    "picked": Text(picked, {"x": "*fp32", "values": "*fp32", "places": "*i32", "n": "i32"}, {"B": 4096}),
    "sampled": Text(sampled, {"logits": "*fp32", "uniform": "*fp32", "out": "*i32", "n": "i32"}, {"B": 4096}),
    "top": Text(top, {"x": "*i32", "out": "*i32", "n": "i32"}, {"B": 128}),
    "linear": Text(
        linear,
        {**dict.fromkeys(("q", "k", "v"), "*fp16"), "out": "*fp32", "length": "i32"},
        {"D": 64, "CHUNK": 64, "BV": 64},
        {"num_stages": 1},
    ),
    "narrow": Text(
        linear,
        {**dict.fromkeys(("q", "k", "v"), "*fp16"), "out": "*fp32", "length": "i32"},
        {"D": 32, "CHUNK": 64, "BV": 32},
    ),
    "decoded": Text(
        decoded,
        {**dict.fromkeys(("q", "k", "v"), "*fp16"), "table": "*i32", "out": "*fp32", "length": "i32"},
        {"D": 32, "BN": 32, "PAGE": 16},
    ),
    "said": Text(said, {"x": "*i32", "out": "*i32", "n": "i32"}, {"B": 16}, {"debug": True}),
}
_PLACE = re.compile(r" loc\((?:[^()]|\([^()]*\))*\)|^#loc.*\n", re.MULTILINE)


def texts() -> Iterator[tuple[str, str]]:
    """Yield the name of each file, and what it must contain."""
    from triton_spirv_backend.compiler import target as as_target

    targets: list[tuple[str, str, GPUTarget]] = [("ttir", "ttir", as_target(WorkItemTarget()))]
    targets += [(f"{lanes}.ttgir", "ttgir", as_target(SimtTarget(lanes))) for lanes in LANES]
    for name, (kernel, types, constants, options) in TEXTS.items():
        signature = {each: types.get(each, "constexpr") for each in kernel.arg_names}
        attributes = {(at,): [["tt.divisibility", 16]] for at, type in enumerate(signature.values()) if type[0] == "*"}
        for suffix, stage, target in targets:
            source = ASTSource(kernel, signature, dict(constants), attributes)
            warps = {"num_warps": 4} if stage == "ttgir" else {}
            asm = triton.compile(source, target=target, options={**options, **warps}).asm
            yield f"{name}.{suffix}", _PLACE.sub("", asm[stage])


if __name__ == "__main__":
    # Functions that are called have the module's name in theirs.
    import text_kernels

    for file, content in text_kernels.texts():
        Path(sys.argv[1], file).write_text(content)
