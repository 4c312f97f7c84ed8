"""Progress of a build from source: a percentage of the whole build that never falls, errors, and a complete log."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from toolchains.artifacts import native
from toolchains.engine.client import Engine
from toolchains.fromsource import progress, timings
from toolchains.fromsource.progress import Watcher
from toolchains.lockfile.lock import LockedTarget
from toolchains.system.console import Console

BUILD = "conanfile.py (toy/1.0): RUN: cmake --build /foundry/work/build --parallel 2 --target opt"
# Output of Ninja 1.13 and clang 14.
FAILED = """\
[1/3  33% 00:00 00:01] Building CXX object a.o
FAILED: [code=1] f.o
: && clang-14 -c nothere.c -o f.o && :
clang: error: no such file or directory: 'nothere.c'
clang: error: no input files
[2/3  66% 00:00 00:01] Building CXX object b.o
warning: of b.o
ninja: build stopped: subcommand failed.
conanfile.py (toy/1.0): ERROR: Error in build() method
""".replace("f.o\n:", "f.o \n:")  # Ninja ends the line with a space.


@pytest.fixture
def watch(tmp_path: Path) -> Callable[[str], Watcher]:
    def watched(printed: str) -> Watcher:
        with Watcher(Console(file=io.StringIO()), tmp_path / "logs" / "log", "toy") as watcher:
            for text in printed.splitlines():
                watcher.line(text)
        return watcher

    return watched


def test_the_percentage_is_ninja_s_prediction_for_the_whole_build(watch: Callable[[str], Watcher]) -> None:
    watcher = watch(f"{BUILD}\n[1/5  14% 00:00 00:01] Building CXX object a.o")
    assert (watcher.phase, watcher.percent, watcher.steps, watcher.left) == ("build", 14, (1, 5), "00:01")
    # A build that goes on is a part of the whole.
    watcher = watch(f"{BUILD}\nsteps in all: 2000\n[1/500   0% 00:01 08:00] Building CXX object a.o")
    assert (watcher.percent, watcher.steps) == (75, (1501, 2000))
    assert watch(f"{BUILD}\nsteps in all: 2000\n[250/500  60% 04:00 04:00] x").percent == 90
    # How many steps there are may be said before the build.
    said = "conanfile.py (toy/1.0): steps in all: 2000"
    watcher = watch(f"{said}\n{BUILD}\n[1/500   0% 00:01 08:00] a")
    assert (watcher.percent, watcher.steps) == (75, (1501, 2000))
    again = watch(f"{said}\n{BUILD}\n[500/500 100% 00:01 00:00] a\n{BUILD}\n[1/4  25% 00:01 00:03] b")
    assert (again.percent, again.steps) == (25, (1, 4))
    # It does not fall within a run.
    assert watch("[50/100  60% 01:00 01:00] a\n[51/100  55% 01:00 01:00] b").percent == 60
    # A second run of Ninja begins at its first step.
    watcher = watch("[9/9 100% 00:01 00:00] a\n[1/4  25% 00:01 00:03] b")
    assert (watcher.percent, watcher.steps) == (25, (1, 4))
    # To run CMake again is no step.
    watcher = watch(f"{BUILD}\nsteps in all: 100\n[0/1   0% 00:00 ?] Re-running CMake...\n[1/100   1% 00:01 01:39] a")
    assert (watcher.percent, watcher.steps) == (1, (1, 100))


def test_failed_step_is_shown_with_the_output_of_its_compiler(watch: Callable[[str], Watcher]) -> None:
    watcher = watch(f"{BUILD}\n{FAILED}")
    message = "clang: error: no such file or directory: 'nothere.c'\nclang: error: no input files"
    assert watcher.failed_steps == [f"FAILED: f.o\n{message}"]
    assert watcher.why() == f"FAILED: f.o\n{message}"
    (failure,) = watcher.failures
    assert (failure.status, failure.command) == (1, ": && clang-14 -c nothere.c -o f.o && :")


def test_ninja_before_1_13_has_no_exit_status(watch: Callable[[str], Watcher]) -> None:
    (failure,) = watch("FAILED: a.o a.dwo \nclang -c a.c\na.c:1:1: error: no").failures
    assert (failure.output, failure.status, failure.message) == ("a.o a.dwo", None, ["a.c:1:1: error: no"])


def test_a_long_message_keeps_its_start_and_its_end(watch: Callable[[str], Watcher]) -> None:
    stack = [f"#{number} clang::CodeGen" for number in range(1000)]
    printed = "\n".join(["FAILED: [code=134] a.o ", "clang -c a.c", "LLVM ERROR: first", *stack, "clang: error: last"])
    lines = watch(printed).why().splitlines()
    assert len(lines) < 40
    assert (lines[1], lines[-1]) == ("LLVM ERROR: first", "clang: error: last")
    assert any("... 966 lines are left out ..." in line for line in lines)
    assert "lines are left out" not in watch("FAILED: [code=1] a.o \nclang -c a.c\nshort").why()


def test_error_of_cmake_or_else_the_last_lines_are_shown(watch: Callable[[str], Watcher]) -> None:
    error = "CMake Error at CMakeLists.txt:5 (message):\n  no such project\nCall Stack (most recent call first):\n  a\n"
    watcher = watch(f"-- Looking for dlfcn.h\n{error}\n-- Configuring incomplete, errors occurred!\n-- more\n")
    assert watcher.why().strip() == error.strip()
    watcher = watch("one\ntwo\nthree")
    assert watcher.why() == "one\ntwo\nthree"
    assert watcher.last(2) == ["two", "three"]


def test_every_line_is_in_the_log_as_soon_as_it_came(tmp_path: Path) -> None:
    with Watcher(Console(file=io.StringIO()), tmp_path / "log", "toy") as watcher:
        watcher.line("first")
        watcher.line("[1/5  14% 00:00 00:01] second")
        assert (tmp_path / "log").read_text() == "first\n[1/5  14% 00:00 00:01] second\n"


def test_without_a_terminal_phases_are_lines_and_steps_are_not_each_one(tmp_path: Path) -> None:
    file = io.StringIO()
    with Watcher(Console(file=file, width=200), tmp_path / "log", "toy") as watcher:
        watcher.line("conanfile.py (toy/1.0): RUN: cmake --preset toy -S . -B build")
        watcher.line(BUILD)
        for number in range(1, 1001):
            watcher.line(f"[{number}/1000 {number // 10}% 00:01 00:01] Building CXX object {number}.o")
    shown = file.getvalue().splitlines()
    assert [line.split(",")[0].strip() for line in shown[:2]] == ["toy: configure", "toy: build"]
    assert len(shown) < 10


def test_at_most_so_often_a_line_says_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    file = io.StringIO()
    with Watcher(Console(file=file, width=200), tmp_path / "log", "toy") as watcher:
        for number in range(1, 62):
            now[0] += 1
            watcher.line(f"[{number}/100 {number}% 00:01 10:00] Building [bold]{number}.o")
    assert file.getvalue().splitlines() == [
        "  toy: build 30 %, 30 of 100 steps, 00:30 passed, about 10:00 left",
        "  toy: build 60 %, 60 of 100 steps, 01:00 passed, about 10:00 left",
    ]


def test_on_a_terminal_a_bar_shows_the_step_at_work(tmp_path: Path) -> None:
    file = io.StringIO()
    console = Console(file=file, width=120, force_terminal=True)
    with Watcher(console, tmp_path / "log", "toy") as watcher:
        watcher.line("-- Looking for [/] dlfcn.h")
        watcher.line("[43/100  42% 09:41 12:50] Building CXX object lib/[x]/Deep.cpp.o")
    assert "toy: build 42 %, 43 of 100 steps" in file.getvalue()
    assert "about 12:50 left" in file.getvalue()
    assert "Deep.cpp.o" in file.getvalue()


NINJA = """\
dies = never
rule step
  command = test ! -e $dies || { rm $dies; kill -9 $$PPID; exit 1; }; echo > $out
  description = Making $out
build 1: step
build 2: step | 1
build 3: step | 2
build 4: step | 3
  dies = dies
build 5: step | 4
build all: phony 1 2 3 4 5
"""


@pytest.mark.docker
def test_killed_ninja_and_its_percentage_go_on(builder: tuple[Engine, LockedTarget], tmp_path: Path) -> None:
    engine, used = builder
    image = f"triton-foundry/{used.name}:{native.builder_identity(used)[:16]}"
    seen: list[tuple[int, float]] = []
    with engine.container(image) as container, Watcher(Console(), tmp_path / "log", "toy") as watcher:
        (tmp_path / "build.ninja").write_text(NINJA)
        container.copy_into(tmp_path / "build.ninja", "/foundry/work/build.ninja")
        container.call(["sh", "-c", "echo > /foundry/work/dies"])
        whole = len(container.call(["ninja", "-t", "commands", "all"], cwd="/foundry/work").splitlines())

        def run() -> int:
            def line(text: str) -> None:
                watcher.line(text)
                if watcher.steps[1]:
                    seen.append((watcher.steps[0], round(watcher.percent)))

            watcher.line(f"{progress.WHOLE}{whole}")
            argv = ["ninja", "-j1", "all"]
            return container.run(argv, cwd="/foundry/work", env={"NINJA_STATUS": progress.STATUS}, line=line).status

        assert run() == 137
        killed = len(seen)
        assert run() == 0
        steps = timings.read(container.call(["cat", "/foundry/work/.ninja_log"]))
    assert seen[:killed] == [(1, 20), (2, 40), (3, 60)]
    assert seen[killed:] == [(4, 80), (5, 100)]
    assert sorted(step.output for step in steps) == ["1", "2", "3", "4", "5"]
