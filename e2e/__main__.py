"""Everything in one report: `python e2e [--only TEXT]`."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from report import Case, run_script


def cases() -> Iterator[Case]:
    # Imported in workers only: the process that reports needs no Triton.
    import dpu
    import matmul
    import modes
    import torch_compile
    import vec_add
    import vsi

    yield from vsi.in_modes(itertools.chain(vec_add.cases(), matmul.cases()))
    yield from modes.cases()
    yield from dpu.cases()
    yield from vsi.cases()
    yield from torch_compile.cases()


run_script("e2e", cases)
