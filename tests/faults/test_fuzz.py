"""Parsers of what others wrote refuse what is damaged with an error that they document, whatever the damage is."""

from __future__ import annotations

import struct
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


@pytest.mark.slow
def test_a_dpu_program_whose_segments_name_more_bytes_than_mram_is_refused(tmp_path: Path) -> None:
    fuzz_native.build("dpu-program", tmp_path / "program", fuzz_native.by_gcc())
    (program,) = fuzz_native.programs()
    place = -(-len(program) // 4) * 4
    table = place + (1 << 20)

    def with_segments(count: int) -> Path:
        """Return the program with this many segments that all have the same MiB of the file."""
        again = struct.pack("<IIIIIIII", 1, place, 0x08000000, 0, 1 << 20, 1 << 20, 6, 8)
        header = program[:28] + struct.pack("<I", table) + program[32:44] + struct.pack("<H", 3 + count) + program[46:]
        file = tmp_path / f"{count}.elf"
        file.write_bytes(header.ljust(table, b"\0") + program[52 : 52 + 3 * 32] + again * count)
        return file

    assert fuzz_native.tried(tmp_path / "program", [with_segments(63)], 60).accepted == 1
    assert fuzz_native.tried(tmp_path / "program", [with_segments(64)], 60).accepted == 0


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
