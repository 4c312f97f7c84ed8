"""How the profile reads a disassembly, and adds up intervals (foundry_core/profile, footprint/work.py)."""

from __future__ import annotations

import numpy as np
from foundry_core.footprint.work import covered_bytes
from foundry_core.profile.objects import innermost, lines, parse_disassembly

DISASSEMBLY = """
0000000000001000 <helper>:
    1000:\tret
0000000000001100 <_pocl_kernel_k_workgroup>:
_pocl_kernel_k_workgroup():
/x/k.py:3
    1100:\tmov    (%rdi),%rax
    1103:\tje     1130 <_pocl_kernel_k_workgroup+0x30>
/x/k.py:5 (discriminator 2)
    1105:\txor    %ecx,%ecx
    1107:\tvmovups (%rax,%rcx,4),%ymm0
    110c:\tvaddps %ymm0,%ymm0,%ymm0
/x/k.py:6
    1111:\tcall   1000 <helper>
    1116:\tjb     1107 <_pocl_kernel_k_workgroup+0x7>
    1118:\tinc    %rdx
    111b:\tjb     1105 <_pocl_kernel_k_workgroup+0x5>
    1120:\tret
    1130:\tnopw   0x0(%rax,%rax,1)
    1136:\tjmp    1118 <_pocl_kernel_k_workgroup+0x18>
0000000000001200 <_pocl_kernel_k>:
    1200:\tret
"""


def test_instructions_have_their_line_and_the_loops_that_they_are_in() -> None:
    found = parse_disassembly(DISASSEMBLY, "k")
    assert [each.place[1] for each in found] == [3, 3, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6]
    # The jump into the outer loop at 1118 makes it no natural loop; a jump back alone does not make a loop.
    assert [each.depth for each in found] == [0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 0]
    loop = [each for each in found if each.depth]
    assert innermost(found) == loop
    assert [each.kind for each in loop] == ["vector", "vector", "call", "branch"]
    assert [each.reaches_memory for each in found if each.kind in ("vector", "integer")] == [
        *(True, False, True, False, False),
        *(False, False),
    ]
    assert [(line.depth, line.place[1]) for line in lines(found)] == [(1, 5), (1, 6), (0, 6), (0, 3), (0, 5)]


def test_intervals_that_overlap_count_once() -> None:
    low, high = np.array([0.0, 4.0, 20.0, np.inf]), np.array([8.0, 12.0, 24.0, -np.inf])
    assert covered_bytes(low, high) == (16.0, True)
    assert covered_bytes(np.array([0.0, -np.inf]), np.array([4.0, 4.0])) == (0.0, False)
