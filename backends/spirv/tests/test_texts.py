"""Check that the kernels' texts, which run on the host without Triton, are what this Triton and the backend write."""

from __future__ import annotations

from pathlib import Path

import pytest
import text_kernels

pytestmark = pytest.mark.any_release


def test_texts_of_kernels_are_what_this_triton_writes() -> None:
    folder = Path(text_kernels.__file__).with_name("texts")
    written = dict(text_kernels.texts())
    assert sorted(file.name for file in folder.iterdir()) == sorted(written)
    different = [name for name, content in written.items() if (folder / name).read_text() != content]
    assert not different, f"write them again as {text_kernels.__file__} says"
