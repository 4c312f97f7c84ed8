"""What identifies a compiler, and Triton, in the keys of Triton's cache."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from foundry_core.codegen.programs import triton_fingerprint


def test_triton_is_identified_by_its_source_and_by_the_size_and_date_of_libtriton(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    source, library = tmp_path / "tiny_triton" / "runtime" / "jit.py", tmp_path / "tiny_triton" / "_C" / "libtriton.so"
    for path in (tmp_path / "tiny_triton" / "__init__.py", source, library):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    def after(path: Path, text: str, seconds: int) -> str:
        path.write_text(text)
        os.utime(path, (seconds, seconds))
        return triton_fingerprint("tiny_triton")

    first = after(library, "a", 1)
    assert after(library, "b", 1) == first  # it is not read
    found = [first, after(library, "b", 2), after(library, "bb", 2), after(source, "x = 1", 1)]
    assert len(set(found)) == len(found)
    assert after(source, "x = 1", 2) == found[-1]
