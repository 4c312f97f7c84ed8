"""Runs the conformance suite: every test of every host_*.c, and every program that has to be taken or refused.

    python -m pytest toolchains/recipes/upmem-emulator/conformance

with an SDK's bin/ on PATH: the emulator's, or the vendor's.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from conformance_programs import Program, build_device, build_from_ir, build_host, host_tests, programs

_SKIPPED = 77
# No test takes more than a few seconds; what hangs on hardware must not hang here.
_LIMIT = 120


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all programs of the suite."""
    folder = tmp_path_factory.mktemp("conformance")
    for program in programs("built"):
        said = build_device(program, folder)
        assert said.returncode == 0, f"{program.name}: {said.stdout}"
    build_from_ir(folder)
    for source in {source for source, _ in host_tests()}:
        build_host(source.stem, folder, "conformance")
    build_host("try_program", folder)
    return folder


def _run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in command],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=_LIMIT, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("source", "name"), [pytest.param(*test, id=f"{test[0].stem}-{test[1]}") for test in host_tests()]
)
def test_conforms(built: Path, source: Path, name: str) -> None:
    done = _run(built / source.stem, name)
    if done.returncode == _SKIPPED:
        pytest.skip(done.stdout.strip().splitlines()[-1])
    assert done.returncode == 0, f"status {done.returncode}\n{done.stdout}"


@pytest.mark.parametrize("source", sorted({source for source, _ in host_tests()}), ids=lambda source: source.stem)
def test_every_test_says_what_the_real_sdk_does(built: Path, source: Path) -> None:
    listed = [line.split("\t") for line in _run(built / source.stem, "--list").stdout.splitlines()]
    assert {line[0] for line in listed} == {name for path, name in host_tests() if path == source}
    assert all(kind in ("conforms", "stricter") and len(real) > 10 for _, kind, real in listed)


@pytest.mark.parametrize("program", programs("taken"), ids=lambda program: program.name)
def test_a_program_within_the_limits_runs(built: Path, tmp_path: Path, program: Program) -> None:
    said = build_device(program, tmp_path)
    assert said.returncode == 0, said.stdout
    done = _run(built / "try_program", tmp_path / program.name)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("program", programs("refused"), ids=lambda program: program.name)
def test_a_program_beyond_the_limits_is_refused(built: Path, tmp_path: Path, program: Program) -> None:
    """By the compiler or the linker, or where the vendor's are silent by dpu_load."""
    said = build_device(program, tmp_path)
    if said.returncode == 0:
        said = _run(built / "try_program", tmp_path / program.name)
    assert said.returncode != 0, "it was built, loaded and run"
    missing = [word for word in program.words if word not in said.stdout.lower()]
    assert not missing, f"{missing} not in: {said.stdout}"
