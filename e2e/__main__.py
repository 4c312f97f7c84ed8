"""Everything in one report: `python e2e [--only TEXT]`.

Every target proves vec_add, matmul and the modes. The modules that the key `proof` of a target's file names have more
for that target: `cases()` yields them. A module's `in_modes(cases)`, if it has one, changes vec_add's and matmul's.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from importlib import import_module

from report import Case, run_script


def cases() -> Iterator[Case]:
    # Imported in workers only: the process that reports needs no Triton.
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


run_script("e2e", cases)
