"""Headers that public programs include: what they declare works, and is what the standard says."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from programs import build_program, launched, refused, run

NUMBERS = [
    0.0,
    -0.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    8388607.5,
    1e30,
    math.inf,
    -math.inf,
    math.nan,
    1e-40,
    2.0,
    3.0,
    0.49999997,
]

MATH = """
#include <attributes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
static const BITS numbers[] = {NUMBERS};
typedef union { BITS bits; TYPE x; } both;
__host uint64_t results[16];
int main(void) {
    for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        both given = {numbers[i]};
        TYPE x = given.x;
        TYPE made[] = {trunc_(x), floor_(x),        ceil_(x),   round_(x),  fabs_(x),
                       sqrt_(x),  copysign_(x, -1), fmin_(x, 1), fmax_(x, 1)};
        for (unsigned k = 0; k < 9; k++) printf("%llx ", (unsigned long long)((both){.x = made[k]}).bits);
        printf("%d %d %d %d\\n", !!isnan(x), !!isinf(x), !!isfinite(x), !!signbit(x));
    }
    return 0;
}
"""


@pytest.mark.parametrize(("type", "name", "suffix"), [(np.float32, "float", "f"), (np.float64, "double", "")])
def test_functions_of_math_h_give_the_bits_of_numpys(tmp_path: Path, type: Any, name: str, suffix: str) -> None:
    random, bits = np.random.default_rng(0), np.dtype(type).itemsize * 8
    with np.errstate(all="ignore"):
        x = np.concatenate(
            [
                np.array(NUMBERS, type),
                random.integers(0, 2**bits, 60, f"u{bits // 8}").view(type),
                np.exp(random.uniform(-60, 60, 60)).astype(type),
                np.array([np.finfo(type).smallest_subnormal, np.finfo(type).max], type),
            ]
        )
    text = MATH.replace("TYPE", name).replace("BITS", f"uint{bits}_t")
    text = text.replace(
        "NUMBERS", ", ".join(f"{number:#x}u" + "ll" * (bits == 64) for number in x.view(f"u{bits // 8}"))
    )
    for function in ("trunc", "floor", "ceil", "round", "fabs", "sqrt", "copysign", "fmin", "fmax"):
        text = text.replace(f"{function}_(", f"{function}{suffix}(")
    build_program(tmp_path, text, "-DSTACK_SIZE_DEFAULT=4096")
    lines = [line.split() for line in launched(tmp_path).log.splitlines() if line and "===" not in line]
    assert len(lines) == x.size
    with np.errstate(all="ignore"):
        floor = np.floor(np.abs(x))
        away = np.where(np.isinf(x), x, np.copysign(floor + (np.abs(x) - floor >= 0.5).astype(type), x))
        one = type(1)
        expected = [np.trunc(x), np.floor(x), np.ceil(x), away, np.abs(x), np.sqrt(x)]
        expected += [np.copysign(x, -one), np.fmin(x, one), np.fmax(x, one)]
    for i, line in enumerate(lines):
        for k, column in enumerate(expected):
            got = np.array([int(line[k], 16)], f"u{bits // 8}").view(type)[0]
            if np.isnan(column[i]):
                assert np.isnan(got), (k, x[i], got)
            else:
                assert (got, np.signbit(got)) == (column[i], np.signbit(column[i])), (k, x[i], got, column[i])
        kinds = [np.isnan(x[i]), np.isinf(x[i]), np.isfinite(x[i]), np.signbit(x[i])]
        assert [bool(int(word)) for word in line[9:13]] == kinds, x[i]


def test_barrier_h_brings_atomic_bits_and_sections_are_profiled(tmp_path: Path) -> None:
    text = """
#include <barrier.h>
#include <dpuconst.h>
#include <profiling.h>
#include <sysdef.h>
__host uint64_t results[16];
ATOMIC_BIT_INIT(bit);
BARRIER_INIT(all, NR_TASKLETS);
PROFILING_INIT(section);
int main(void) {
    mram_addr_t at = 0;
    perfcounter_config(COUNT_INSTRUCTIONS, true);
    ATOMIC_BIT_ACQUIRE(bit);
    ATOMIC_BIT_RELEASE(bit);
    for (int round = 0; round < 2; round++) {
        profiling_start(&section);
        for (volatile int i = 0; i < 100; i++) continue;
        profiling_stop(&section);
    }
    results[0] = section.count[0] > 400 && section.count[0] < 4000;
    results[1] = at + __EMPTY_WAIT_QUEUE;
    return 0;
}
"""
    build_program(tmp_path, text)
    assert launched(tmp_path).results[:2] == [1, 255]


def test_fifos_are_refused_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "m.c").write_text("#include <wramfifo.h>\nint main(void) { return 0; }\n")
    assert "no FIFOs in WRAM" in refused(tmp_path, "m.c")


def test_host_headers_describe_a_rank_and_time_launches_and_refuse_energy(tmp_path: Path) -> None:
    (tmp_path / "host.c").write_text("""
#include <dpu.h>
#include <dpu_description.h>
#include <dpu_probe.h>
#include <dpu_rank.h>
#include <dpu_target.h>
#include <dpu_target_macros.h>
#include <stdio.h>
int main(void) {
    struct dpu_set_t set, dpu;
    DPU_ASSERT(dpu_alloc(1, NULL, &set));
    DPU_FOREACH(set, dpu) {
        dpu_description_t made = dpu_get_description(dpu_get_rank(dpu_from_set(dpu)));
        printf("%u %u %u\\n", made->hw.memories.mram_size, made->hw.memories.wram_size,
               made->type == FUNCTIONAL_SIMULATOR);
    }
    struct dpu_probe_t probe;
    double seconds = -1, energy = -1;
    DPU_ASSERT(dpu_probe_init("probe", &probe));
    DPU_ASSERT(dpu_probe_start(&probe));
    DPU_ASSERT(dpu_probe_stop(&probe));
    DPU_ASSERT(dpu_probe_get(&probe, DPU_TIME, DPU_AVERAGE, &seconds));
    printf("%d %d\\n", seconds >= 0 && seconds < 10, dpu_probe_get(&probe, DPU_ENERGY, DPU_AVERAGE, &energy) != DPU_OK);
    return dpu_free(set);
}
""")
    flags = run(["dpu-pkg-config", "--cflags", "--libs", "dpu"], tmp_path).stdout.split()
    done = run(["cc", "host.c", "-o", "host", "-Wall", "-Werror", *flags], tmp_path)
    assert done.returncode == 0, done.stderr
    output = run([str(tmp_path / "host")], tmp_path)
    assert output.stdout == "67108864 65536 1\n1 1\n", output.stdout + output.stderr
    assert "does not model energy" in output.stderr
