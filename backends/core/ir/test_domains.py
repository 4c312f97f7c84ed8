"""The analyses of addresses, compared with what one program after another reaches on plain numbers."""

from __future__ import annotations

import itertools
import operator
import re
from pathlib import Path

import numpy as np
import pytest
from foundry_core.codegen.pipeline import to_structured
from foundry_core.emit.mlir import ORDERS_OF_BOOLEANS
from foundry_core.errors import LoweringError
from foundry_core.footprint import Footprint, Footprints
from foundry_core.front.structured import kernel
from foundry_core.ir.parse import read_structured
from plain_numbers import Pointer, Program, Reached, Undecided, programs

FOLDER = Path(__file__).parent
GRID = (3, 2, 2)


def structured_kernels() -> dict[str, str]:
    """Return the kernels of this folder in structured form, without those in TTGIR and those that the front refuses."""
    found = {}
    for path in sorted(FOLDER.glob("*.mlir")):
        text = re.sub(r"^ *//.*\n", "", path.read_text(), flags=re.MULTILINE)
        if "#ttg" in text:
            continue
        try:
            found[path.stem] = text if " tile." in text else to_structured(text)
        except LoweringError:
            continue
    return found


def holds(found: Footprint, reached: Reached) -> bool:
    span = found.writes if reached.is_write else found.reads
    if not reached.firsts.size:
        return True
    return span is not None and span.low <= reached.firsts.min() and reached.firsts.max() + reached.item <= span.high


@pytest.mark.slow
def test_a_footprint_has_each_byte_that_a_program_reaches() -> None:
    compared = solid = 0
    for name, text in structured_kernels().items():
        arguments = kernel(read_structured(text)).body.block.args
        footprints = Footprints(text)
        for size in (5, 100):
            values = [size] * len(arguments)
            found = footprints.compute(values, GRID, range(len(list(programs(GRID))) + 1))
            for number, ids in enumerate(programs(GRID)):
                program = Program(ids, GRID)
                given = [Pointer(i, 0) if i in footprints.pointers else size for i in range(len(arguments))]
                try:
                    program.interpret(kernel(read_structured(text)).body.block, given)
                except Undecided:
                    continue
                known = [reached for reached in program.reached if reached is not None]
                for reached in known:
                    assert holds(found[number][reached.parameter], reached), (name, size, ids, reached)
                compared += len(known)
                for parameter, footprint in found[number].items():
                    if footprint.solid and footprint.writes is not None and len(known) == len(program.reached):
                        bytes = {
                            int(first) + at
                            for reached in known
                            if reached.is_write and reached.parameter == parameter
                            for first in np.ravel(reached.firsts)
                            for at in range(reached.item)
                        }
                        assert bytes == set(range(footprint.writes.low, footprint.writes.high)), (name, size, ids)
                        solid += 1
    assert compared > 2000 and solid > 500, (compared, solid)


@pytest.mark.parametrize("predicate", ORDERS_OF_BOOLEANS)
def test_booleans_are_ordered_as_numbers_of_one_bit(predicate: str) -> None:
    """As a signed number of one bit, true is -1."""
    name, inverted = ORDERS_OF_BOOLEANS[predicate]
    combine = {"arith.andi": operator.and_, "arith.ori": operator.or_}[name]
    order = {"lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge}[predicate[1:]]
    sign = -1 if predicate[0] == "s" else 1
    for pair in itertools.product((False, True), repeat=2):
        x, y = (not each if at == inverted else each for at, each in enumerate(pair))
        assert combine(x, y) == order(sign * pair[0], sign * pair[1])
