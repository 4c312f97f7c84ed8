"""What a process imports that only compiles, as zen-compiler does once for each kernel."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import foundry_core
import pytest
from foundry_core.triton_hooks.registration import HOOKS

# NumPy takes a fifth of the time in which a compiler starts, and xDSL's llvm dialect a seventh.
SLOW = ("numpy", "ml_dtypes", "xdsl.dialects.llvm")


@pytest.mark.parametrize("module", ["codegen.pipeline", "mapping.workgroup.program"])
def test_the_lowering_starts_without_what_only_launches_and_dpus_need(module: str) -> None:
    path = str(next(iter(foundry_core.__path__))).rpartition("/")[0]
    script = f"import sys; sys.path.insert(0, {path!r}); import foundry_core.{module}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout.split()
    assert f"foundry_core.{module}" in loaded
    assert not set(SLOW) & set(loaded)


def test_each_function_that_extends_triton_is_registered_once() -> None:
    package = Path(next(iter(foundry_core.__path__)))
    defined = {
        f"triton_hooks.{path.stem}.{name}"
        for path in (package / "triton_hooks").glob("*.py")
        for name in re.findall(r"^def (install\w*)\(", path.read_text(), re.MULTILINE)
        if path.stem not in ("import_order", "registration")
    }
    named = [hook.install for hook in HOOKS if hook.install.startswith("triton_hooks.")]
    assert sorted(named) == sorted(defined)
