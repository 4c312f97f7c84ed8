"""Run all checks into one report: `python e2e [--only TEXT]`.

Every target runs vec_add, matmul and the modes. The key `proof` of a target's file names modules with more cases for
that target: their `cases()` yields them. If such a module has `in_modes(cases)`, it transforms the cases of vec_add and
matmul.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator
from importlib import import_module

from report import Case, run_script

# More would load libraries for longer than they run cases.
_WORKERS = 4


def cases() -> Iterator[Case]:
    # Imported in workers only, because the reporting process needs no Triton.
    import matmul
    import modes
    import settings
    import vec_add

    particular = [import_module(name) for name in settings.load().get("proof", ())]
    common: Iterable[Case] = itertools.chain(vec_add.cases(), matmul.cases())
    for module in particular:
        if hasattr(module, "in_modes"):
            common = module.in_modes(common)
    yield from common
    yield from modes.cases()
    for module in particular:
        yield from module.cases()


# Compiling a kernel takes one processor, and most of a case's time.
run_script("e2e", cases, workers=min(len(os.sched_getaffinity(0)), _WORKERS))
