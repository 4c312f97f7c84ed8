"""Run the conformance suite: every test of every host_*.c, and every program that must be accepted or refused.

    python -m pytest conformance

with an SDK's bin/ on PATH: the emulator's, or the vendor's.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from conformance_programs import (
    STRICTER,
    HostTest,
    Process,
    Program,
    build_device,
    build_from_ir,
    build_host,
    host_tests,
    programs,
)

_SKIPPED = 77
# No test takes more than a few seconds; what hangs on hardware must not hang here.
_LIMIT = 120
_HOSTS = sorted({test.source.stem for test in host_tests()})
_ALL = [*(program.name for program in programs("built")), "ir_program", *_HOSTS, "try_program"]


@dataclass(frozen=True)
class Built:
    """A folder with all programs of the suite, and how their compilers ended."""

    folder: Path
    processes: dict[str, Process]


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("conformance")
    processes = {program.name: build_device(program, folder) for program in programs("built")}
    processes["ir_program"] = build_from_ir(folder)
    processes |= {name: build_host(name, folder, "conformance") for name in _HOSTS}
    processes["try_program"] = build_host("try_program", folder)
    return Built(folder, processes)


@pytest.fixture(scope="session")
def emulated() -> bool:
    """Whether the SDK is the emulator."""
    program = shutil.which("dpu-pkg-config")
    assert program, "no SDK is on PATH"
    return (Path(program).parents[1] / "libexec" / "dpu-process").exists()


def _run(*command: str | Path) -> Process:
    return subprocess.run(
        [str(word) for word in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=_LIMIT,
        check=False,
    )


@pytest.mark.parametrize("name", _ALL)
def test_it_compiles_without_a_warning(built: Built, name: str) -> None:
    process = built.processes[name]
    assert (process.returncode, process.stdout) == (0, "")


@pytest.mark.parametrize("test", host_tests(), ids=str)
def test_conforms(built: Built, emulated: bool, test: HostTest) -> None:
    done = _run(built.folder / test.source.stem, test.name)
    if done.returncode == _SKIPPED and not emulated:
        pytest.skip(done.stdout.strip().splitlines()[-1])
    assert done.returncode == 0, f"status {done.returncode}\n{done.stdout}"


@pytest.fixture(scope="session")
def built_without_figures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The host programs, which find no function that only the emulator has, as with the vendor's libdpu.so."""
    folder = tmp_path_factory.mktemp("vendor")
    (folder / "dlsym.c").write_text("void *dlsym(void *library, const char *name) { return 0; }\n")
    for name in _HOSTS:
        process = build_host(name, folder, "conformance", more=[folder / "dlsym.c"])
        assert process.returncode == 0, process.stdout
    return folder


@pytest.mark.parametrize("test", [test for test in host_tests() if test.kind == STRICTER], ids=str)
def test_where_the_emulator_is_stricter_a_real_sdk_is_not_tested_but_described(
    built_without_figures: Path, test: HostTest
) -> None:
    done = _run(built_without_figures / test.source.stem, test.name)
    expected = f"the real SDK: {test.real}\nskipped: the emulator is stricter than hardware here\n"
    assert (done.returncode, done.stdout) == (_SKIPPED, expected)


@pytest.mark.parametrize("program", programs("taken"), ids=lambda program: program.name)
def test_a_program_within_the_limits_runs(built: Built, tmp_path: Path, program: Program) -> None:
    process = build_device(program, tmp_path)
    assert process.returncode == 0, process.stdout
    done = _run(built.folder / "try_program", tmp_path / program.name)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("program", programs("refused"), ids=lambda program: program.name)
def test_a_program_beyond_the_limits_is_refused(built: Built, tmp_path: Path, program: Program) -> None:
    """By the compiler or the linker, or where the vendor's are silent by dpu_load."""
    process = build_device(program, tmp_path)
    if process.returncode == 0:
        process = _run(built.folder / "try_program", tmp_path / program.name)
    assert process.returncode != 0, "it was built, loaded and run"
    missing = [word for word in program.words if word not in process.stdout.lower()]
    assert not missing, f"{missing} not in: {process.stdout}"
