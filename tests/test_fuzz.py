"""Parsers of what others wrote refuse what is damaged with an error that they document, whatever the damage is."""

from __future__ import annotations

import re
from pathlib import Path

import fuzz_targets
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

# A word or string of a text.
WORD = re.compile(rb'"[^"]*"|[-+.\w]+')
# A place, how many bytes are replaced there (None: the word at it), and by what (None: by themselves, twice).
EDITS = st.lists(
    st.tuples(
        st.integers(0, 2**16),
        st.sampled_from((None, 0, 1, 2, 8, 60, 512, 2**16)),
        st.none() | st.sampled_from(fuzz_targets.TOKENS) | st.binary(max_size=8),
    ),
    max_size=4,
)


def edited(data: bytes, edits: list[tuple[int, int | None, bytes | None]]) -> bytes:
    for place, size, new in edits:
        at = place % (len(data) + 1)
        if size is None:
            word = WORD.search(data, at)
            at, size = word.span() if word else (at, at)
            size -= at
        data = data[:at] + (2 * data[at : at + size] if new is None else new) + data[at + size :]
    return data


@pytest.mark.slow
@pytest.mark.parametrize("name", fuzz_targets.TARGETS)
def test_a_damaged_input_is_read_or_refused_with_a_documented_error(name: str, tmp_path: Path) -> None:
    target, work = fuzz_targets.TARGETS[name], tmp_path / "work"
    work.mkdir()
    seeds = target.seeds(tmp_path)

    @settings(
        derandomize=True,
        database=None,
        deadline=None,
        max_examples=150,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.large_base_example, HealthCheck.data_too_large],
    )
    @given(st.sampled_from(seeds), EDITS)
    def check(seed: bytes, edits: list[tuple[int, int | None, bytes | None]]) -> None:
        fuzz_targets.run(target, edited(seed, edits), work)

    check()
