"""Parsers of what others wrote refuse what is damaged with an error that they document, whatever the damage is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import fuzz
import fuzz_faults
import fuzz_native
import fuzz_targets
import pytest

from toolchains.system import paths


def shows(name: str) -> list[int]:
    """Return the inputs of a target that show planted faults."""
    return [fault.number for fault in fuzz_faults.FAULTS if fault.target == name]


@pytest.mark.slow
@pytest.mark.parametrize("name", fuzz_targets.TARGETS)
def test_a_damaged_input_is_read_or_refused_with_a_documented_error(name: str) -> None:
    assert fuzz.first_wrong(name, range(150)) is None
    # They take a small part of the time that an endless one is given.
    assert fuzz.first_wrong(name, shows(name), fuzz_faults.SECONDS / 2) is None


def test_ttir_that_begins_with_a_string_without_end_is_refused(tmp_path: Path) -> None:
    fuzz_targets.run(fuzz_targets.TARGETS["ttir"], b'"' + b"a" * 40, tmp_path, fuzz_faults.SECONDS)


@pytest.mark.slow
@pytest.mark.parametrize("name", fuzz_native.TARGETS)
def test_a_damaged_input_of_a_reader_in_cpp_breaks_no_memory(name: str, tmp_path: Path) -> None:
    seeds = fuzz_native.TARGETS[name].seeds()
    fuzz_native.build(name, tmp_path / "program", fuzz_native.by_gcc())
    files = [tmp_path / f"seed-{number}" for number in range(len(seeds))]
    for file, seed in zip(files, seeds, strict=True):
        file.write_bytes(seed)
    # What nobody damaged is accepted, so the edits damage something that matters.
    assert fuzz_native.tried(tmp_path / "program", files, 60) == fuzz_native.Tried("", "", len(seeds))
    files += [
        fuzz.write_damaged(tmp_path, seeds, name, number)
        for number in (*range(fuzz_native.TARGETS[name].tries), *shows(name))
    ]
    tried = fuzz_native.tried(tmp_path / "program", files, 300)
    assert not tried.wrong
    assert len(seeds) < tried.accepted < len(files)


@pytest.mark.parametrize("fault", fuzz_faults.FAULTS, ids=lambda fault: fault.name)
def test_each_fault_can_still_be_planted(fault: fuzz_faults.Fault) -> None:
    assert fault.target in {*fuzz_targets.TARGETS, *fuzz_native.TARGETS}
    text = (paths.ROOT / fault.file).read_text()
    assert all(text.count(old) for old, _ in fault.changes)


@pytest.mark.slow
def test_each_planted_fault_is_found_by_an_input_that_passes_without_it() -> None:
    # That they pass without it is tested above.
    done = subprocess.run(
        [sys.executable, paths.ROOT / "tests/fuzz.py", "--faults"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
