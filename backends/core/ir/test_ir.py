"""Check what each stage makes of the kernels in this folder, in text: no Triton, no device, no container.

A file is a kernel in TTIR, in TTGIR or in structured form, with filecheck's comments. A comment's prefix names the
stage whose output it is about; a stage without a comment is not run.

| prefix | output |
|---|---|
| TILE | structured form (pipeline.to_structured) |
| CHECKED | structured form of the kernel in the checked mode |
| PLAN | a line for each tile: `memory` if the plan stores it where it is defined, `late` if it is computed at its use |
| WORKITEM | MLIR for a work-item with vectors of 16 bytes |
| WORKGROUP | MLIR for a work-group of 32 work-items |
| TASKLET | MLIR for a tasklet of a DPU |
| SIMT | SPIR-V for an invocation of Vulkan, in subgroups of 8, as spirv_text.py writes it; the file is TTGIR |
| MATRIX | the same on a device that multiplies matrices of 8 x 8 elements of f16, in f32 and f16 |
| SLOW | the same as SIMT on a device that compiles slowly |
| KERNEL | the same for an invocation of OpenCL, on a device without subgroup shuffles |

A kernel that a stage refuses gives `refused: ` and the message. `python test_ir.py FILE STAGE` prints a stage's output.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import Options
from filecheck.parser import Parser
from foundry_core.codegen.pipeline import (
    TaskletTarget,
    WorkGroupTarget,
    WorkItemTarget,
    read_kernel,
    to_mlir,
    to_structured,
    to_tasklet_mlir,
    to_work_group_mlir,
)
from foundry_core.errors import LoweringError
from foundry_core.front.structured import kernel
from foundry_core.ir.parse import read_structured
from foundry_core.mapping.base.plan import BufferPlan, is_tile
from foundry_core.mapping.simt.lower import lower_simt
from foundry_core.mapping.simt.target import Fragment, SimtTarget
from spirv_text import disassembled

FOLDER = Path(__file__).parent


def plan(structured: str) -> str:
    body = kernel(read_structured(structured)).body.block
    stored = BufferPlan(body).stored
    tiles = [value for op in body.walk() for value in op.results if is_tile(value)]
    return "\n".join(
        f"{'memory' if tile in stored else 'late'} %{tile.name_hint} = {tile.owner.name}" for tile in tiles
    )


def simt(ttgir: str, **known: Any) -> str:
    warps = re.search(r'"ttg.num-warps" = (\d+)', ttgir)
    assert warps is not None
    # lavapipe, but for its matrices.
    target = SimtTarget(8, int(warps[1]), 32 << 10, fuses=(), rounds_to_nearest=(16, 32, 64), **known)
    return disassembled(lower_simt(ttgir, target).module)


STAGES: dict[str, Callable[[str], str]] = {
    "TILE": lambda text: text,
    "CHECKED": lambda text: read_kernel(text, check=True).text,
    "PLAN": plan,
    "WORKITEM": lambda text: to_mlir(text, WorkItemTarget(vector_bytes=16)),
    "WORKGROUP": lambda text: to_work_group_mlir(text, WorkGroupTarget(vector_bytes=16, work_items=32)),
    "TASKLET": lambda text: to_tasklet_mlir(text, TaskletTarget()).text,
    "SIMT": simt,
    "MATRIX": lambda text: simt(text, fragments=tuple(Fragment("f16", total, 8, 8, 8) for total in ("f16", "f32"))),
    "SLOW": lambda text: simt(text, compiles_slowly=True),
    "KERNEL": lambda text: simt(text, flavour="kernel", shuffles=False, converts_f16=False),
}


def output(text: str, stage: str) -> str:
    """Return what a stage makes of a kernel, or its refusal."""
    text = re.sub(r"^ *//.*\n", "", text, flags=re.MULTILINE)
    try:
        is_read = " tile." in text or stage in ("CHECKED", "SIMT", "MATRIX", "SLOW", "KERNEL")
        return STAGES[stage](text if is_read else to_structured(text))
    except LoweringError as refusal:
        return f"refused: {refusal}\n"


def checks() -> list[tuple[str, str]]:
    """Return each file with each stage that it has a comment for."""
    found = []
    for path in sorted(FOLDER.glob("*.mlir")):
        text = path.read_text()
        prefixes = set(re.findall(r"^ *// ?([A-Z]+)(?:-[A-Z0-9-]+)?:", text, re.MULTILINE))
        assert prefixes and prefixes <= set(STAGES), f"{path.name} has comments for {prefixes or 'no stage'}"
        found += [(path.stem, stage) for stage in STAGES if stage in prefixes]
    return found


@pytest.mark.parametrize(("name", "stage"), checks())
def test_stage_of_a_kernel(name: str, stage: str) -> None:
    path = FOLDER / f"{name}.mlir"
    given = output(path.read_text(), stage)
    options = Options(str(path), check_prefixes=[stage])
    matcher = Matcher(options, FInput(stage, given), Parser.from_opts(options))
    matcher.stderr = io.StringIO()
    status = matcher.run()
    assert status == 0, f"{matcher.stderr.getvalue()}\n{given}"


if __name__ == "__main__":
    print(output(Path(sys.argv[1]).read_text(), sys.argv[2]))
