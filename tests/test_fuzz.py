"""Parsers of what others wrote refuse what is damaged with an error that they document, whatever the damage is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from random import Random

import fuzz_edits
import fuzz_faults
import fuzz_native
import fuzz_targets
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolchains.system import paths

EDITS = st.lists(
    st.tuples(
        st.integers(0, 2**17),
        st.sampled_from(fuzz_edits.KINDS),
        st.none() | st.sampled_from(fuzz_edits.TOKENS) | st.binary(max_size=8),
    ),
    max_size=4,
)
# Processor time of one input, in seconds.
SECONDS = 20


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
    def check(seed: bytes, edits: list[fuzz_edits.Edit]) -> None:
        fuzz_targets.run(target, fuzz_edits.edited(seed, edits), work, SECONDS)

    check()


@pytest.mark.slow
@pytest.mark.parametrize("name", fuzz_native.TARGETS)
def test_a_damaged_input_of_a_reader_in_cpp_breaks_no_memory(name: str, tmp_path: Path) -> None:
    seeds = fuzz_native.TARGETS[name].seeds()
    fuzz_native.build(name, tmp_path / "program", fuzz_native.by_gcc())
    files = [tmp_path / f"seed-{number}" for number in range(len(seeds))]
    for file, seed in zip(files, seeds, strict=True):
        file.write_bytes(seed)
    # What nobody damaged is accepted, so the edits damage something that matters.
    assert fuzz_native.tried(tmp_path / "program", files, 60) == ("", len(seeds))
    for number in range(3000):
        random = Random(number)
        files.append(tmp_path / f"{number}")
        files[-1].write_bytes(fuzz_edits.edited(random.choice(seeds), fuzz_edits.drawn(random)))
    wrong, accepted = fuzz_native.tried(tmp_path / "program", files, 300)
    assert not wrong
    assert len(seeds) < accepted < len(files)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("faults") / "copy"
    fuzz_faults.copied(paths.ROOT, made)
    return made


@pytest.mark.parametrize("fault", fuzz_faults.FAULTS, ids=lambda fault: fault.name)
def test_each_fault_can_still_be_planted(fault: fuzz_faults.Fault) -> None:
    assert fault.target in {*fuzz_targets.TARGETS, *fuzz_native.TARGETS}
    text = (paths.ROOT / fault.file).read_text()
    assert all(text.count(old) for old, _ in fault.changes)


@pytest.mark.slow
@pytest.mark.parametrize("fault", [each for each in fuzz_faults.FAULTS if each.tries], ids=lambda fault: fault.name)
def test_a_planted_fault_is_found(fault: fuzz_faults.Fault, copy: Path) -> None:
    words = [f"--target={fault.target}", f"--tries={fault.tries}"]
    with fuzz_faults.planted(fault, copy):
        done = subprocess.run(
            [sys.executable, "-B", copy / "tests/fuzz.py", *words], capture_output=True, text=True, check=False
        )
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.startswith(f"{fault.target}: ") and "Traceback" not in done.stderr
