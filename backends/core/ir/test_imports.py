"""What a process imports that only compiles, as zen-compiler does once for each kernel."""

from __future__ import annotations

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


def test_each_module_that_extends_triton_is_registered_once() -> None:
    hooks = Path(next(iter(foundry_core.__path__))) / "triton_hooks"
    installing = [path.stem for path in sorted(hooks.glob("*.py")) if "\ndef install(" in path.read_text()]
    named = [hook.module.rpartition(".")[2] for hook in HOOKS if hook.module.startswith("triton_hooks.")]
    assert sorted(named) == [name for name in installing if name not in ("import_order", "registration")]
