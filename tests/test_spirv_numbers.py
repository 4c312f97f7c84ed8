"""The numbers of SPIR-V that the lowering writes are those of Khronos's grammar."""

from __future__ import annotations

import pytest

from toolchains.fetch.store import Store
from toolchains.system import paths
from toolchains.testing import spirv_numbers


@pytest.mark.network
def test_file_of_numbers_is_what_the_grammar_says() -> None:
    written = spirv_numbers.FILE.read_text(encoding="utf-8")
    assert written == spirv_numbers.text(Store(paths.cache())), "python -m toolchains.testing.spirv_numbers"
