"""The resources of a build: jobs that fit into memory, a full disk found early, out-of-memory kills detected."""

from __future__ import annotations

import itertools

import pytest

from toolchains.engine.client import Engine
from toolchains.fromsource import resources
from toolchains.system.errors import FileError

GB = 10**9


@pytest.mark.parametrize(
    ("cpus", "memory", "asked", "compile", "link"),
    [
        (2, 24, 0, 2, 2),  # enough of everything
        (64, 24, 0, 10, 1),  # memory limits compilers; a link needs the memory of several of them
        (8, 11, 0, 3, 1),
        (8, 1, 0, 1, 1),  # never zero
        (1, 2, 0, 1, 1),
        (2, 24, 8, 8, 2),  # an explicit number is used as it is; links still fit
        (2, 4, 8, 8, 1),
    ],
)
def test_as_many_jobs_run_as_memory_allows(cpus: int, memory: int, asked: int, compile: int, link: int) -> None:
    made = resources.jobs(cpus, memory * GB, per_compile=2 * GB, per_link=6 * GB, asked=asked)
    assert (made.compile, made.link) == (compile, link)


def test_parallel_jobs_fit_in_memory_unless_one_link_does_not() -> None:
    for cpus, memory in itertools.product(range(1, 20), range(1, 80, 7)):
        made = resources.jobs(cpus, memory * GB, per_compile=2 * GB, per_link=6 * GB)
        assert 1 <= made.link <= made.compile <= cpus
        needed = made.link * 6 + (made.compile - made.link) * 2
        assert needed <= max(memory, 6)


def test_the_choice_of_jobs_is_explained() -> None:
    assert str(resources.jobs(2, 24 * GB, per_compile=15 * GB // 10, per_link=20 * GB)) == (
        "2 compile jobs, 1 link job: 2 processors, 24.0 GB of memory free, 1.5 GB a compilation, 20.0 GB a link"
    )
    assert "8 asked for; that is more than there is" in str(resources.jobs(2, 4 * GB, per_compile=GB, asked=8))


@pytest.mark.docker
def test_a_container_s_limits_are_what_the_machine_has(docker: Engine, tiny: str) -> None:
    with docker.container(tiny) as free, docker.container(tiny, memory="64m", cpus=1) as limited:
        whole, part = resources.machine(free), resources.machine(limited)
    assert part == resources.Machine(1, 64 << 20)
    assert whole.cpus >= 1
    assert whole.memory > part.memory


@pytest.mark.docker
def test_a_disk_without_room_is_found_before_work_and_what_is_there_counts(docker: Engine, tiny: str) -> None:
    # A disk that no other process writes to: the container's own /dev/shm, 64 MiB.
    work = "/dev/shm/work"
    with docker.container(tiny) as container:
        container.call(["mkdir", work])
        resources.check_disk(container, work, 60 << 20)
        with pytest.raises(FileError, match="no room") as raised:
            resources.check_disk(container, work, 10**9)
        assert raised.value.why.startswith(f"1.0 GB are needed at {work}: 0.0 GB are there from before, and 0.1 GB are")
        # A build that is resumed needs only the rest.
        container.call(["sh", "-c", f"head -c 50000000 /dev/zero > {work}/file"])
        resources.check_disk(container, work, 60 << 20)


# Output of Ninja 1.13, dash, clang 14, GCC 12 and binutils 2.40 when the running process got SIGKILL, or when a limit
# (ulimit -v) denied it memory.
KILLED = {
    "clang": "FAILED: [code=137] a.cpp.o \nclang++-14 -O2 -c a.cpp -o a.cpp.o\nKilled",
    "clang, cc1 apart": "clang: error: unable to execute command: Killed\n"
    "clang: error: clang frontend command failed due to signal (use -v to see invocation)",
    "gcc": "FAILED: [code=1] g1.o \ng++ -O2 -c heavy.cpp -o g1.o\n"
    "g++: fatal error: Killed signal terminated program cc1plus\ncompilation terminated.",
    "lld": "FAILED: [code=254] bin/opt \n: && clang++-14 m.cpp -o bin/opt && :\n"
    "clang: error: unable to execute command: Killed\n"
    "clang: error: linker command failed due to signal (use -v to see invocation)",
    "ld": "FAILED: [code=1] l2 \ng++ m.cpp -o l2\ncollect2: fatal error: ld terminated with signal 9 [Killed]",
}
REFUSED = {
    "clang": "FAILED: [code=134] v1.o \nclang++-14 -O2 -c heavy.cpp -o v1.o\nLLVM ERROR: out of memory\n"
    "Allocation failed",
    "gcc": "FAILED: [code=1] v2.o \ng++ -O2 -c heavy.cpp -o v2.o\nvirtual memory exhausted: Cannot allocate memory",
    "new": "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc",
    "python": 'Traceback (most recent call last):\n  File "<string>", line 1, in <module>\nMemoryError',
}


@pytest.mark.parametrize("printed", KILLED.values(), ids=KILLED)
def test_a_killed_compiler_is_recognised(printed: str) -> None:
    lines = ["[1/2  50% 00:01 00:01] Building CXX object z.o", *printed.splitlines()]
    said = resources.cause_of_death([*lines, "ninja: build stopped: subcommand failed."], 1, oom_killed=False)
    assert said is not None
    assert "was killed (signal 9), most often for lack of memory: " in said
    known = resources.cause_of_death(lines, 1, oom_killed=True)
    assert known is not None
    assert known.startswith("the kernel killed a compiler or linker for lack of memory: ")


@pytest.mark.parametrize("printed", REFUSED.values(), ids=REFUSED)
def test_a_compiler_that_got_no_memory_is_recognised(printed: str) -> None:
    said = resources.cause_of_death(printed.splitlines(), 1, oom_killed=False)
    assert said is not None
    assert said.startswith("a compiler or linker got no more memory: ")


def test_the_step_that_died_is_named_and_a_build_that_died_without_a_word_was_killed_as_a_whole() -> None:
    said = resources.cause_of_death(KILLED["lld"].splitlines(), 1, oom_killed=True)
    assert said is not None
    assert "bin/opt: clang: error: unable to execute command: Killed" in said
    said = resources.cause_of_death(["[1/2  50% 00:01 00:01] Building CXX object z.o"], 137, oom_killed=False)
    assert said == "the whole build was killed (signal 9), most often for lack of memory"


def test_a_full_disk_is_told_from_a_lack_of_memory() -> None:
    lines = [
        "FAILED: [code=1] a.o ",
        "clang -c a.c",
        "LLVM ERROR: IO failure on output stream: No space left on device",
    ]
    said = resources.cause_of_death(lines, 1, oom_killed=False)
    assert said is not None
    assert said.startswith("the container engine's disk is full: a.o: ")


@pytest.mark.parametrize(
    "printed",
    [
        "a.cpp:1:10: error: unknown type name 'Killed'",
        "a.cpp:3:9: error: expected ';' after throw\n  throw std::bad_alloc()\n        ^",
        "CMake Error at CMakeLists.txt:1 (message):\n  out of ideas",
    ],
)
def test_an_error_in_the_code_is_no_death_of_memory(printed: str) -> None:
    assert (
        resources.cause_of_death(["FAILED: [code=1] a.o ", "clang++ -c a.cpp", *printed.splitlines()], 1, False) is None
    )


def test_a_build_that_succeeded_did_not_die() -> None:
    assert resources.cause_of_death(["Killed"], 0, oom_killed=True) is None


@pytest.mark.docker
def test_a_process_that_dies_of_the_container_s_limit_is_recognised(docker: Engine, tiny: str) -> None:
    lines: list[str] = []
    with docker.container(tiny, memory="32m") as container:
        # A shell variable doubles until the kernel kills that shell. The outer shell reports it, as for a compiler.
        done = container.run(["sh", "-c", "sh -c 'x=0123456789; while :; do x=$x$x; done'; exit $?"], line=lines.append)
        said = resources.cause_of_death(lines, done.status, container.oom_killed())
    assert done.status == 137
    assert said == "the kernel killed a compiler or linker for lack of memory: Killed"
