"""C programs mean the same at every level of optimisation, on the emulated DPU."""

from __future__ import annotations

from pathlib import Path

import pytest
from programs import HERE, build_program, built, faulted, launched

LEVELS = ("-O0", "-O1", "-O2", "-O3", "-Os")


@pytest.mark.parametrize("level", LEVELS)
def test_the_language_is_as_a_dpu_has_it(tmp_path: Path, level: str) -> None:
    built(tmp_path, level, "-Wall", "-Wextra", "-Werror", str(HERE / "device_language.c"), "-o", "program")
    ran = launched(tmp_path)
    assert ran.results[:2] == [44, 0], ran.log


@pytest.mark.parametrize("level", LEVELS)
def test_the_library_does_what_it_says(tmp_path: Path, level: str) -> None:
    stacks = ["-DSTACK_SIZE_DEFAULT=2048", "-DSTACK_SIZE_TASKLET_0=6144"]
    flags = ["-Wall", "-Wextra", "-Werror", "-DNR_TASKLETS=11", *stacks]
    built(tmp_path, level, *flags, str(HERE / "device_library.c"), "-o", "program")
    ran = launched(tmp_path)
    assert ran.results[:2] == [3009, 0], ran.log


def test_floats_are_computed_as_written(tmp_path: Path) -> None:
    # No fused multiply-add: the product is rounded before it is added to.
    build_program(
        tmp_path,
        '#include "checks.h"\n'
        "int main(void) {\n"
        "  float a = HIDDEN(float, 1.0f + 0x1p-12f), b = HIDDEN(float, -1.0f - 0x1p-11f);\n"
        "  CHECK(a * a + b == 0);\n"
        "  return 0;\n}\n",
    )
    assert launched(tmp_path).results[:2] == [1, 0]


def test_printf_has_a_dpus_types(tmp_path: Path) -> None:
    build_program(
        tmp_path,
        '#include "checks.h"\nint main(void) {\n'
        '  printf("%d %u %ld %lu %lld %zu|", -1, 4000000000u, -5000000000l, 1ul << 63, -1ll, sizeof(long));\n'
        '  printf("%hhd %hu %x %08X %c %s %5.2f %p|", 300, 65537, 255, 48879, \'q\', "text", 3.14159, (void *)16);\n'
        "  puts(\"line\");\n  putchar('!');\n  return 0;\n}\n",
        "-Wno-format",
    )
    first = "-1 4000000000 -5000000000 9223372036854775808 -1 8|"
    second = "44 1 ff 0000BEEF q text  3.14 0x10|"
    assert first + second + "line\n!" in launched(tmp_path).log


def test_tasklets_keep_their_registers(tmp_path: Path) -> None:
    # Each runs for many times the instructions after which another one has its turn.
    alone = []
    for tasklet in range(11):
        a, b, c, h, k = 0.0, 1.0, float(tasklet), tasklet, 7
        for i in range(1, 2001):
            a += 1.0 / i
            b = b * 0.999 + a
            c = c * 0.5 + b
            h = (h ^ i) * 1099511628211 % 2**64
            k += h >> 33
        alone.append((h + k + int(1e9 * (a + b + c))) % 2**64)
    build_program(
        tmp_path,
        '#include <defs.h>\n#include "checks.h"\n'
        "int main(void) {\n"
        "  double a = 0, b = 1, c = me(); uint64_t h = me(), k = 7;\n"
        "  for (uint32_t i = HIDDEN(uint32_t, 1); i <= 2000; i++) {\n"
        "    a += 1.0 / i; b = b * 0.999 + a; c = c * 0.5 + b; h = (h ^ i) * 1099511628211u; k += h >> 33;\n"
        "  }\n"
        "  results[me()] = h + k + (uint64_t)(1e9 * (a + b + c));\n"
        "  return 0;\n}\n",
        "-DNR_TASKLETS=11",
    )
    assert launched(tmp_path).results[:11] == alone


MISALIGNED = """#include "checks.h"
static uint8_t area[64] __attribute__((aligned(8)));
__attribute__((noinline)) static {type} get(const uint8_t *from, uint32_t count) {{
    {type} sum = 0;
    for (uint32_t i = 0; i < count; i++) sum += ((const {type} *)from)[i];
    return sum;
}}
int main(void) {{
    results[0] = get(area + HIDDEN(uint32_t, {offset}), {count});
    return 0;
}}
"""


@pytest.mark.parametrize("type_, size", [("uint16_t", 2), ("uint32_t", 4), ("uint64_t", 8)])
@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_a_misaligned_access_to_wram_faults(tmp_path: Path, type_: str, size: int, level: str) -> None:
    (tmp_path / "m.c").write_text(MISALIGNED.format(type=type_, offset=8 + size // 2, count=3))
    built(tmp_path, level, f"-I{HERE}", "m.c", "-o", "program")
    message = faulted(tmp_path)
    assert "misaligned WRAM access" in message
    assert f"an access of {size} bytes at 0x1000" in message


@pytest.mark.parametrize("type_", ["uint16_t", "uint32_t", "uint64_t"])
def test_aligned_or_skipped_access_does_not_fault(tmp_path: Path, type_: str) -> None:
    build_program(tmp_path, MISALIGNED.format(type=type_, offset=16, count=3))
    launched(tmp_path)
    build_program(tmp_path, MISALIGNED.format(type=type_, offset=1, count="HIDDEN(uint32_t, 0)"))
    launched(tmp_path)


@pytest.mark.parametrize(
    "what, statement",
    [
        ("assert", 'assert(HIDDEN(int, 0) && "never so");'),
        ("abort", "abort();"),
        ("halt", "halt();"),
        ("trap", "__builtin_trap();"),
        ("null pointer", "*HIDDEN(volatile int *, 0) = 1;"),
        ("endless recursion", "results[0] = deep(HIDDEN(uint32_t, 1));"),
        ("heap", "mem_alloc(1 << 20);"),
        ("buddy, given back twice", "buddy_init(2048); void *b = buddy_alloc(8); buddy_free(b); buddy_free(b);"),
    ],
)
def test_runtime_error_faults_the_dpu(tmp_path: Path, what: str, statement: str) -> None:
    build_program(
        tmp_path,
        "#include <alloc.h>\n#include <assert.h>\n#include <defs.h>\n#include <stdlib.h>\n"
        '#include "checks.h"\n'
        "__attribute__((noinline)) uint32_t deep(uint32_t n) { uint32_t a[8]; a[n & 7] = n; "
        "return n ? deep(n + 1) + HIDDEN(uint32_t, a[n & 7]) : 0; }\n"
        f"int main(void) {{ {statement} return 0; }}\n",
    )
    message = faulted(tmp_path)
    assert "tasklet 0" in message, what
    if what == "assert":
        assert "never so" in message
        assert "program.c:6" in message or "program.c:7" in message


def test_a_loop_without_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPU_EMULATOR_MAX_CYCLES", "1000000")
    build_program(tmp_path, '#include "checks.h"\nint main(void) { while (HIDDEN(int, 1)) results[2]++; return 0; }\n')
    assert "1000000" in faulted(tmp_path)
