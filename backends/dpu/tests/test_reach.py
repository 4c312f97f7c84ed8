"""The C code that tells a host what programs reach: it agrees with foundry_core.footprint for each program."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
import triton
import triton.language as tl
from foundry_core.footprint import Footprints
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton_dpu_backend.artifact import arguments
from triton_dpu_backend.artifact.runner import host_runner
from triton_dpu_backend.artifact.signature import facts, parse

# Replaces the runner's main: one DPU per program, whose part is what the program reaches.
_MAIN = """
#define main runner_main
#include "host_runner.c"
#undef main

int main(int count, char **words)
{
    launch.grid[0] = (uint32_t)strtoul(words[1], 0, 10);
    launch.grid[1] = (uint32_t)strtoul(words[2], 0, 10);
    launch.grid[2] = 1;
    nr_dpus = launch.grid[0] * launch.grid[1];
    for (int i = 0; i < COUNT; i++) {
        memories[i].bytes = -1;
        arguments[i].parameter = &passed[i];
        arguments[i].memory = is_pointer(i) ? &memories[i] : 0;
    }
    for (int i = 3; i < count; i++)
        arguments[i - 3].integer = strtoll(words[i], 0, 10);
    shards = shards_new(&launch, sizes, nr_dpus, 0);
    for (int i = 0; i < shards->count; i++)
        shards->regions[i].part = calloc(nr_dpus, sizeof *shards->regions[i].part);
    shards->is_planned = 1;
    const int64_t size[3] = {launch.grid[0], launch.grid[1], 1};
    for (shards->at_dpu = 0; shards->at_dpu < nr_dpus; shards->at_dpu++)
        reach_program(shards, size, shards->at_dpu);
    for (int i = 0; i < COUNT; i++)
        for (uint32_t dpu = 0; is_pointer(i) && dpu < nr_dpus; dpu++) {
            const struct shards_part *part = &region_of(i)->part[dpu];
            if (region_of(i)->anywhere)
                printf("%d %u anywhere\\n", i, dpu);
            else if (part->low < part->high)
                printf("%d %u %lld %lld\\n", i, dpu, (long long)part->low / parameters[i].bytes,
                       (long long)part->high / parameters[i].bytes);
        }
    return 0;
}
"""


@triton.jit
def blocks(x, out, n, first, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i + first, mask=i < n), mask=i < n)


@triton.jit
def grouped(a, c, M, N, BM: tl.constexpr, BN: tl.constexpr):
    pid = tl.program_id(0)
    columns = tl.cdiv(N, BN)
    group = pid // (2 * columns)
    size = min(tl.cdiv(M, BM) - group * 2, 2)
    row = group * 2 + pid % (2 * columns) % size
    column = pid % (2 * columns) // size
    i = (row * BM + tl.arange(0, BM)) % M
    j = (column * BN + tl.arange(0, BN)) % N
    tl.store(c + i[:, None] * N + j[None, :], tl.load(a + i[:, None] * N + j[None, :]))


@triton.jit
def looped(x, out, n, stride, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    row = tl.program_id(1) * 3 + tl.program_id(0)
    for k in range(0, n, BLOCK):
        i = k + tl.arange(0, BLOCK)
        total += tl.load(x + row * stride + i, mask=i < n, other=0)
    if row > 1:
        tl.store(out + row, tl.sum(total))


@triton.jit
def strided(x, out, n, BLOCK: tl.constexpr):
    step = tl.num_programs(0) * BLOCK
    for k in range(tl.program_id(0) * BLOCK, n, step):
        i = k + tl.arange(0, BLOCK)
        tl.store(out - i, tl.load(x + 3 * i, mask=i < n), mask=i < n)


@triton.jit
def chosen(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = tl.load(x + i, mask=i < n, other=0)
    tl.store(out + at, at, mask=i < n)


X = {"x": "*fp32", "out": "*fp32", "n": "i32"}
CASES = [
    (blocks, X | {"first": "i64"}, {"BLOCK": 16}, (7, 1), [0, 0, 100, 5]),
    (blocks, X | {"first": "i64"}, {"BLOCK": 16}, (9, 1), [0, 0, 100, -3]),
    (grouped, {"a": "*fp32", "c": "*fp32", "M": "i32", "N": "i32"}, {"BM": 8, "BN": 8}, (20, 1), [0, 0, 30, 33]),
    (looped, X | {"stride": "i32"}, {"BLOCK": 8}, (3, 2), [0, 0, 21, 40]),
    (strided, X, {"BLOCK": 8}, (3, 1), [0, 0, 100]),
    (chosen, {"x": "*i32", "out": "*i32", "n": "i32"}, {"BLOCK": 16}, (3, 1), [0, 0, 40]),
]


@pytest.mark.parametrize(("kernel", "signature", "constants", "grid", "values"), CASES)
def test_programs_reach_what_the_footprint_says(
    tmp_path: Path,
    kernel: triton.JITFunction,
    signature: dict[str, str],
    constants: dict[str, int],
    grid: tuple[int, int],
    values: Sequence[int],
) -> None:
    source = ASTSource(kernel, signature | dict.fromkeys(constants, "constexpr"), constants)
    stages = triton.compile(source, target=GPUTarget("dpu", "v1A", 1)).asm
    reached = _run(tmp_path, stages["llir"], grid, values)
    programs = grid[0] * grid[1]
    parts = Footprints(stages["tile"]).compute(values, (*grid, 1), range(programs + 1))
    for program, part in enumerate(parts):
        for index, footprint in part.items():
            spans = [span for span in (footprint.reads, footprint.writes) if span is not None]
            ours = reached.get((index, program))
            assert (ours is None) == (not spans), (index, program)
            if ours == "anywhere":
                # The footprint is everything, or the full range of 32-bit offsets.
                assert max(span.high - span.low for span in spans) > 2**32
            elif isinstance(ours, tuple):
                low, high = min(span.low for span in spans), max(span.high for span in spans)
                # Never more. Sometimes less, because the C code runs loops instead of bounding them.
                assert low <= 4 * ours[0] < 4 * ours[1] <= high, (index, program)
                if kernel not in (looped, strided):
                    assert (low, high) == (4 * ours[0], 4 * ours[1]), (index, program)


def _run(
    work: Path, ir: str, grid: tuple[int, int], values: Sequence[int]
) -> dict[tuple[int, int], tuple[int, int] | str]:
    """Return by parameter and program: the elements low <= i < high, or "anywhere"."""
    kernel = parse(ir)
    outs = [1]
    (work / "host_args.h").write_text(arguments.host_header(kernel))
    (work / "host_runner.c").write_text(host_runner(kernel, outs=outs, dpus=None, facts=facts(ir)))
    (work / "main.c").write_text(_MAIN)
    warnings = "-Wall -Wextra -Werror -Wno-unused-function"
    line = f"cc -std=c11 {warnings} main.c `dpu-pkg-config --cflags --libs dpu` -ldl -o main"
    subprocess.run(line, shell=True, cwd=work, check=True)
    words = [str(number) for number in (*grid, *values)]
    done = subprocess.run([work / "main", *words], capture_output=True, text=True, check=True)
    reached: dict[tuple[int, int], tuple[int, int] | str] = {}
    for text in done.stdout.splitlines():
        index, program, *bounds = text.split()
        reached[int(index), int(program)] = "anywhere" if len(bounds) == 1 else (int(bounds[0]), int(bounds[1]))
    return reached
