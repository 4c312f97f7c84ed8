"""Stacks: what fits a DPU's frames runs although this machine's are larger, and says so; what does not is found."""

from __future__ import annotations

from pathlib import Path

import pytest
from programs import build_program, faulted, launched

# A frame of a DPU's has at least 8 bytes here, one of this machine's 16 or more.
RECURSION = """
#include <defs.h>
#include <stdint.h>
__host uint64_t results[16];
static uint32_t __attribute__((noinline)) sum(uint32_t depth, volatile uint32_t *more) {
    return depth == 0 ? 0 : sum(depth - 1, more) * 3 + *more;
}
static volatile uint32_t one = 1;
int main(void) { if (me() == 0) results[0] = sum(DEPTH, &one); return 0; }
"""
ARRAYS = """
#include <defs.h>
#include <stdint.h>
__host uint64_t results[16];
static uint32_t __attribute__((noinline)) fill(volatile uint8_t *bytes, uint32_t number) {
    for (uint32_t i = 0; i < number; i++) bytes[i] = i;
    return bytes[number - 1];
}
int main(void) {
    uint32_t made = 0;
    { uint8_t first[BYTES]; made += fill(first, BYTES); }
    { uint8_t second[BYTES]; made += fill(second, BYTES); }
    results[0] = made;
    return 0;
}
"""


def depth_sum(depth: int) -> int:
    total = 0
    for _ in range(depth):
        total = (total * 3 + 1) % 2**32
    return total


def test_frames_that_only_this_machine_has_do_not_fault_and_are_reported(tmp_path: Path) -> None:
    build_program(tmp_path, RECURSION, "-DNR_TASKLETS=2", "-DDEPTH=90")
    ran = launched(tmp_path)
    assert ran.results[0] == depth_sum(90)
    assert "tasklet 0 has used" in ran.errors
    assert "its stack has 1024 (STACK_SIZE_DEFAULT)" in ran.errors
    assert "tasklet 1" not in ran.errors


def test_a_stack_with_room_is_not_reported(tmp_path: Path) -> None:
    build_program(tmp_path, RECURSION, "-DNR_TASKLETS=2", "-DDEPTH=8")
    assert launched(tmp_path).errors == ""


@pytest.mark.parametrize("depth", [140, 1000, 10**6])
def test_recursion_beyond_a_dpus_own_frames_is_a_stack_overflow(tmp_path: Path, depth: int) -> None:
    build_program(tmp_path, RECURSION, "-DNR_TASKLETS=2", f"-DDEPTH={depth}")
    message = faulted(tmp_path)
    assert "stack overflow" in message
    assert "1024 bytes (STACK_SIZE_DEFAULT)" in message


def test_an_array_that_does_not_fit_is_a_stack_overflow_within_the_slack(tmp_path: Path) -> None:
    build_program(tmp_path, ARRAYS, "-DNR_TASKLETS=2", "-DBYTES=1040")
    assert "need at least 10" in faulted(tmp_path)


def test_arrays_of_disjoint_blocks_share_their_place(tmp_path: Path) -> None:
    build_program(tmp_path, ARRAYS, "-DNR_TASKLETS=2", "-DBYTES=800")
    assert launched(tmp_path).results[0] == 2 * (799 % 256)
