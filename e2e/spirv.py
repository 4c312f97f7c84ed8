"""Cases for spirv only: the variable that selects it in triton-spirv."""

from __future__ import annotations

from collections.abc import Iterator

from modes import run_other
from report import Case


def cases() -> Iterator[Case]:
    yield Case("modes", "TRITON_SPIRV_BACKEND=1 python e2e/vec_add.py", selected_by_variable)


def selected_by_variable() -> None:
    """Run the reference's own check on some of the cases."""
    run_other("vec_add.py", "--only", "n=1000 ", TRITON_DEFAULT_BACKEND=None, TRITON_SPIRV_BACKEND="1")
