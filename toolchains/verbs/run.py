"""The verbs run and shell: copy a user's folder into a target's container, and copy changes back to this machine.

    this machine                     container
    folder of the script, or --with  /foundry/work       copied in; the command starts in it
    the same folder, or --results    /foundry/work       new and changed files are copied out at the end
    --wheels                         /foundry/wheels     installed, and found by `pip install`
    examples/, docs/, README.md      /foundry/examples, /foundry/docs
    e2e/                             /foundry/e2e
    Jupyter, if a notebook needs it  /foundry/jupyter

Everything is copied, so an engine on another machine works as well. Files are copied out even if the command fails,
after all processes in the container have ended. This machine decides what is taken (archives/received.py). Files that
were deleted in the container are not deleted on this machine, and links are not copied out.

`python` is that of /foundry/env, an environment on top of the image's /opt/foundry: it has the same packages, and
`python -m pip install` can write to it. It exists in the container only.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from toolchains.archives import cell_outputs, received
from toolchains.archives import folders as trees
from toolchains.archives.received import Bounds, Sent
from toolchains.archives.tar_file import TarWriter
from toolchains.assembly import container_files, ensure, jupyter
from toolchains.assembly.request import Request
from toolchains.cli import commandline
from toolchains.config import components
from toolchains.engine.container import Container
from toolchains.engine.gpus import unused
from toolchains.engine.sandbox import DISK, HOME, USER, Sandbox
from toolchains.report import roofline
from toolchains.report.results import profiled
from toolchains.system import document, durable, foreign, json_text, paths, terminal
from toolchains.system.document import ShownDocument
from toolchains.system.errors import CommandError, EngineError, FoundryError, UsageError
from toolchains.system.values import read_size
from toolchains.system.waiting import doing
from toolchains.testing import plugin_in_image, proof
from toolchains.verbs import conformance

WORK = f"{HOME}/work"
_PROFILED = "profile.json"
_PROFILE = ["-m", "foundry_core.profile", f"--json={_PROFILED}"]
_ENVIRONMENT = f"{HOME}/env"
_WHEELS = f"{HOME}/wheels"
_PYTEST = f"{HOME}/pytest"
# The program that runs a notebook's cells, and the file to which it writes what they show.
_CELLS = f"{HOME}/notebook_cells.py"
_OUTPUTS = f"{HOME}/outputs"
# The largest profile in bytes.
_LARGEST_PROFILE = 64 << 20
# What to type for a higher limit on what is written.
_MORE = "a higher limit, if this machine and the container engine's have the room: --disk=10GB"
# Number of names of files that are printed.
_LISTED = 200
# The limit in bytes for a folder that the user did not name: running a script in a download folder is a mistake.
_UNNAMED = 10**9
# Runs in the container with the image's own Python: creates the environment that users install into. It adds the
# image's packages by path, with the folders that their .pth files name, and then Jupyter, if it is in the container.
_MAKE_ENVIRONMENT = """
import pathlib, subprocess, sys, sysconfig
place, missing, below = pathlib.Path(sys.argv[1]), sys.argv[2], sysconfig.get_path("purelib")
subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
own = next(place.glob("lib/python*/site-packages"))
(own / "image.pth").write_text(
    f"import site; site.addsitedir({below!r})\\nimport foundry_missing\\n/foundry/jupyter\\n"
)
(own / "foundry_missing.py").write_text(missing)
for name in "pip", "pip3":
    (place / "bin" / name).write_text('#!/bin/sh\\nexec "$(dirname "$0")/python" -m pip "$@"\\n')
    (place / "bin" / name).chmod(0o755)
"""
CHECK = "FOUNDRY_CHECK"
INTERPRET = "TRITON_INTERPRET"
# Variables that authors of kernels set, and that a container gets: these, and what the targets' files name.
_PASSED = ("FOUNDRY_*", "TRITON_*")
# It does not get those of them that are for this machine: of ./foundry itself, of measurements and tests, with paths of
# this machine, and those that choose the backend, which the target does.
KEPT = (
    *("FOUNDRY_CACHE", "FOUNDRY_YES", "FOUNDRY_DEBIAN_*", "FOUNDRY_BENCH_*", "FOUNDRY_MEASUREMENTS", "FOUNDRY_SUITE"),
    "FOUNDRY_VALUES",
    *("*_DIR", "*_DIRS", "*_PATH", "*_PATHS", "*_BIN", "*_LIBRARY", "*_HOME", "TRITON_PY", "TRITON_SRC"),
    *("TRITON_BUILD_*", "TRITON_OFFLINE_BUILD", "TRITON_BACKENDS_*", "TRITON_*_BACKEND"),
)
_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")
# Signals with which a process ends whose memory a kernel damaged: glibc aborts if it finds its heap damaged.
_CRASHES = (signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS)
# What an engine adds to the number of a signal that ended a process.
_SIGNALLED = 128
# Runs in the container at the start of each Python of the environment: adds a line to the traceback of a script that
# imports what is not there. A finder of modules that raised the error itself would break importlib.util.find_spec.
MISSING = """
import sys
def _hook(kind, error, trace, before=sys.excepthook, torch={torch!r}):
    before(kind, error, trace)
    if isinstance(error, ModuleNotFoundError) and error.name:
        name = error.name.partition(".")[0]
        advice = f"download the wheel that has {{name}}, and what it needs, and name its folder: --wheels=DIR"
        print("  next:", torch if name == "torch" and torch else advice, file=sys.stderr)
sys.excepthook = _hook
"""
# Prints in the container the device that kernels run on, or why there is none.
_DEVICE = """
import sys, triton
try:
    print("kernels run on", triton.runtime.driver.active.device_report())
except Exception as error:
    sys.exit(str(error))
"""


@dataclass(frozen=True)
class Place:
    """The user's folders on this machine.

    Attributes:
        folder: the folder to copy in; None for nothing.
        results: the folder for new and changed files.
        wheels: the folder with wheels to install; None for none.
        script: the path in `folder` of the script or notebook to run; "-m" or "-c" if a module or a text is run; "" for
            a shell.
        disk: the most bytes that programs in the container write.
        environment: variables of the container's programs.
        given: the options and the script as the user typed them.
    """

    folder: Path | None
    results: Path | None
    wheels: Path | None
    script: str = ""
    disk: int = DISK
    environment: Mapping[str, str] = field(default_factory=dict)
    given: tuple[str, ...] = ()

    @classmethod
    def read(
        cls,
        *,
        script: str = "",
        folder: str = "",
        results: str = "",
        wheels: str = "",
        disk: str = "",
        env: Sequence[str] = (),
        check: bool = False,
        interpret: bool = False,
    ) -> Place:
        """Check the words of a command line.

        Raises:
            UsageError: --disk is no size, or --env no variable; there is no such script or folder, the script is not in
                the folder, a folder for wheels has no wheel, results were requested without a folder, or nothing can be
                written to the folder for them.
        """
        size = read_size("--disk", disk, example="10GB", default=DISK)
        source = Path(folder) if folder else None
        if source and not source.is_dir():
            raise UsageError(f"--with={folder}: there is no such folder", next="name a folder of this machine")
        inside = ""
        if program := commandline.program(script):
            inside = script = program
            if program == "-m":
                source = source or unnamed(Path.cwd())
        elif script:
            path = _script(script)
            source = source or unnamed(path.parent)
            if not path.is_relative_to(source.resolve()):
                raise UsageError(
                    f"{script} is not in {folder}",
                    why="only what is in --with is copied into the container",
                    next=f"--with={Path(script).parent}",
                )
            inside = path.relative_to(source.resolve()).as_posix()
        if source is None and results:
            raise UsageError("--results needs a folder that is copied in", next="add --with=PATH")
        packages = Path(wheels) if wheels else None
        if packages and not any(packages.glob("*.whl")):
            why = "it has no file *.whl" if packages.is_dir() else "there is no such folder"
            raise UsageError(
                f"--wheels={wheels}: there is nothing to install",
                why=why,
                next=f"pip download --only-binary=:all: --dest {shlex.quote(wheels)} NAME",
            )
        if results:
            durable.require_writable(Path(results), f"--results={results}")
        elif source is not None:
            durable.require_writable(source, f"{source}, to which files are copied back,")
        back = Path(results) if results else source
        if back and received.is_protected(back):
            raise UsageError(
                f"{back} is an environment of Python or a repository of git itself, so nothing is copied back to it",
                next="--results=DIR, with another folder",
            )
        options = {"with": folder, "results": results, "wheels": wheels, "disk": disk}
        typed = [f"--{name}={value}" for name, value in options.items() if value] + [f"--env={word}" for word in env]
        switches = {CHECK: check, INTERPRET: interpret}
        environment = read_environment(env, [name for name, is_on in switches.items() if is_on])
        return cls(source, back, packages, inside, size, environment, (*typed, *([script] if script else [])))


class Sign(msgspec.Struct, frozen=True):
    """What may keep a kernel below its roof, as its module or the driver's compiler shows; it is not measured.

    Attributes:
        kind: of what there is too much or too little: "spills", "matrix units", "bytes", "workgroup memory",
            "barriers", "exchanges", "atomics" or "instructions".
        shows: the figures, in words.
        next: what to try.
    """

    kind: str
    shows: str
    next: str


class Shader(msgspec.Struct, frozen=True):
    """What is known of a kernel on a Vulkan device beside its time; see docs/profiling.md.

    Attributes:
        counts: what its SPIR-V has, each instruction once, by name.
        statistics: what the driver's compiler says of its own code, by the driver's names; empty if it says nothing.
        chosen: what the compiler did not take as it was asked for, such as fewer stages of loops, or "".
        variant: of two variants of the kernel the one that was launched, "wide" or "narrow"; "" if there is one.
        workgroup_limit: the device's bytes of workgroup memory.
        signs: what may keep it below its roof, the likeliest first.
    """

    counts: dict[str, int]
    statistics: dict[str, float]
    chosen: str
    variant: str
    workgroup_limit: int
    signs: list[Sign]


class ScriptKernel(msgspec.Struct, frozen=True):
    """What bounds a kernel, with one grid and one set of integer arguments; see docs/profiling.md.

    Attributes:
        kernel: its name.
        configuration: what tells it from others of its name that an autotuner tried, or "".
        grid: the programs in each direction.
        launches: how often it was launched.
        seconds: of the fastest launch.
        total: seconds of all launches.
        ran: what it ran on.
        bytes: of the arrays that it reaches; null if they cannot be counted.
        operations: on floats; null if they cannot be counted.
        modelled: what an emulator with a cost model counted; null if the device is none.
        bound: the nearest roof: "memory", "arithmetic" or "launch", on an emulator "dma" or "pipeline"; "" if it is
            unknown.
        share: of that roof; null if it is unknown, or the kernel is faster than the measured roof.
        unknown: why its work cannot be counted, or "".
        by_device: whether the device took the time, and not the host.
        shader: what its module and the driver show, on a Vulkan device; null on others.
        next: what to try, the likeliest to help first; empty on other devices.
    """

    kernel: str
    grid: list[int]
    launches: int
    seconds: float
    total: float
    configuration: str = ""
    ran: dict[str, str] = {}
    bytes: float | None = None
    operations: float | None = None
    modelled: dict[str, float] | None = None
    bound: str = ""
    share: float | None = None
    unknown: str = ""
    by_device: bool = False
    shader: Shader | None = None
    next: list[str] = []


class Profiled(msgspec.Struct, frozen=True):
    """What profile.json has."""

    ran: dict[str, str]
    kernels: list[ScriptKernel]


class ScriptProfile(ShownDocument, kw_only=True, tag="run --profile-kernels"):
    """What bounds each kernel that a script launched: `run --profile-kernels`. What the script prints goes to stderr.

    Attributes:
        target: the target.
        triton: the release of Triton.
        status: the script's exit status, which is that of this verb.
        ran: what the kernels ran on; empty if the script ended without a profile.
        kernels: the kernels, those that took most time first.
    """

    target: str
    triton: str
    status: int
    ran: dict[str, str]
    kernels: list[ScriptKernel]


def read_environment(
    words: Sequence[str], switched: Sequence[str] = (), *, environ: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Return the variables that a script gets: those of this machine that are for it, and those of options.

    Args:
        words: each --env: NAME=VALUE, or NAME for the value on this machine.
        switched: the variables that --check and --interpret set.
        environ: this machine's variables.

    Raises:
        UsageError: a word names no variable, or one that this machine does not have.
    """
    variables = {name: value for name, value in sorted(environ.items()) if is_passed(name)}
    variables |= dict.fromkeys(switched, "1")
    for word in words:
        name, sign, value = word.partition("=")
        if not _NAME.fullmatch(name):
            raise UsageError(f"--env={word} names no variable", next="--env=NAME=VALUE, or --env=NAME")
        if not sign and name not in environ:
            raise UsageError(f"--env={word}: this machine has no such variable", next=f"--env={name}=VALUE")
        variables[name] = value if sign else environ[name]
    return variables


@cache
def passed() -> tuple[str, ...]:
    """Return the patterns of the variables that a container gets without --env, except for those in KEPT."""
    of_targets = {pattern for name in components.names() for pattern in components.target(name).variables}
    return *_PASSED, *sorted(of_targets)


def is_passed(name: str) -> bool:
    """Return whether a container gets a variable of this machine without --env."""
    is_kept = any(fnmatchcase(name, pattern) for pattern in KEPT)
    return not is_kept and any(fnmatchcase(name, pattern) for pattern in passed())


def crash(status: int) -> str:
    """Return the name of the signal by which a script crashed; "" if it ended otherwise."""
    return next((number.name for number in _CRASHES if status == _SIGNALLED + number), "")


def run_script(
    request: Request, place: Place, words: Sequence[str], *, profile: bool = False, plot: Path | None = None
) -> int:
    """Run the place's script with these arguments in a target's container; return its exit status.

    The outputs of a notebook's cells are written back. With `profile`, it also prints what bounds each kernel, and
    writes profile.json, there and for the verb report. With `plot`, it does so, too, and draws the kernels' roofline
    into that file.

    Raises:
        CommandError: a wheel cannot be installed.
        FileError: the profile that came out of the container is damaged.
        UsageError: there is no script to profile, or a notebook gets arguments.
        UnsafeArchiveError: what came back is no output of a notebook.
    """
    is_notebook = place.script.endswith(cell_outputs.SUFFIX)
    profile = profile or plot is not None
    if document.is_asked() and not profile:
        raise UsageError(
            "--json is for --profile-kernels",
            why="without it, stdout is the script's own",
            next="add --profile-kernels, or leave --json out",
        )
    if profile and (is_notebook or place.script in ("-m", "-c")):
        raise UsageError("--profile profiles a script", next="put what is to run into a script")
    if is_notebook and words:
        raise UsageError(f"{place.script} takes no arguments", why="it is a notebook", next="--env=NAME=VALUE")
    kept = proof.results_folder(request) / "profiles" / f"{Path(place.script).stem}.json" if profile else None
    with open_container(request, place, with_jupyter=is_notebook) as container:
        with_torch = _with_torch(request, "run", *place.given, *words)
        written_back = outputs_written(container, place) if is_notebook else nullcontext([place.script, *words])
        with written_back as program, open_folder(container, place, with_torch=with_torch):
            if kept:
                # A run that ends without a profile leaves none of an earlier one.
                kept.unlink(missing_ok=True)
                if plot:
                    plot.unlink(missing_ok=True)
                if place.results:
                    (place.results / _PROFILED).unlink(missing_ok=True)
            if [place.script, *words[:1]] == ["-m", "pytest"]:
                # Images have none.
                with TemporaryDirectory(prefix="foundry-", dir=paths.scratch()) as work:
                    proof.copy_distribution("pytest", Path(work))
                    container.copy_into(Path(work), _PYTEST)
            argv = ["python", *(_PROFILE if profile else []), *program]
            with doing(f"running {place.script} in the image of {request.target.name}"):
                status = container.interactive(inside(argv, _variables(request, place)), cwd=WORK)
        if kept:
            with suppress(EngineError):
                container.copy_out(f"{WORK}/{_PROFILED}", kept, Bounds(_LARGEST_PROFILE), only="file")
            if plot:
                roofline.write(plot, profiled(kept) if kept.is_file() else [])
    if kept and document.is_asked():
        found = json_text.read(kept, Profiled) if kept.is_file() else Profiled({}, [])
        target, triton = request.target.name, request.release.version
        document.show(ScriptProfile(target=target, triton=triton, status=status, ran=found.ran, kernels=found.kernels))
    if (name := crash(status)) and CHECK not in place.environment:
        print(
            f"{name} ended the script: a kernel may have accessed memory outside of its arrays\n"
            f"  next: {_command(request, 'run', '--check', *place.given, *words)}",
            file=sys.stderr,
        )
    return status


@contextmanager
def outputs_written(container: Sandbox, place: Place) -> Iterator[list[str]]:
    """Yield the words that run the place's notebook; at the end, write what its cells showed into it."""
    assert place.folder and place.results, "a notebook is in a folder"
    document = cell_outputs.read(place.folder / place.script)
    container.copy_into(Path(jupyter.__file__).with_name("notebook_cells.py"), _CELLS)
    try:
        yield [_CELLS, place.script, _OUTPUTS]
    finally:
        with TemporaryDirectory(prefix="foundry-", dir=paths.scratch()) as work:
            sent = Path(work, "outputs")
            # There are none if no cell ran.
            with suppress(EngineError):
                container.copy_out(_OUTPUTS, sent, Bounds(foreign.TEXT), only="file")
                shown = cell_outputs.parse_shown(sent.read_bytes())
                cell_outputs.write(document, shown, place.results / place.script)
                cells = f"{len(shown)} cells" if len(shown) != 1 else "1 cell"
                print(f"outputs of {cells} written: {place.results / place.script}", file=sys.stderr)


def open_shell(request: Request, place: Place) -> int:
    """Open a shell in a target's container, in the user's folder if there is one; return its exit status.

    Raises:
        CommandError: a wheel cannot be installed.
    """
    with open_container(request, place) as container:
        container_files.copy_checks(container, request.target)
        container_files.copy_documents(container, request.target)
        with open_folder(container, place, with_torch=_with_torch(request, "shell", *place.given)):
            command = inside(["bash"], _variables(request, place))
            return container.interactive(command, cwd=WORK if place.folder else HOME)


def _variables(request: Request, place: Place) -> dict[str, str]:
    return plugin_in_image.environment(request.plugin, _PYTEST) | dict(place.environment)


def _command(request: Request, verb: str, *words: str) -> str:
    return f"{request.command(verb)} {shlex.join(words)}".strip()


@contextmanager
def open_container(request: Request, place: Place, *, with_jupyter: bool = False) -> Iterator[Sandbox]:
    """Yield a container of the requested image, with the target's user folders, and with Jupyter if it is needed."""
    docker, image = ensure.ensure_image(request)
    packed = None
    if with_jupyter:
        packed = jupyter.ensure_tar(request.target, image.info.id, store=request.store(), engine=docker)
    places = container_files.writable_folders(request.target)
    if place.environment:
        print(f"the container's programs get {', '.join(place.environment)}", file=sys.stderr, flush=True)
    with docker.sandbox(image.info.id, folders=places, disk=place.disk, gpus=request.gpus) as container:
        container.more_disk = _MORE
        container_files.copy_user_folders(container, request.target)
        if packed:
            container.put(packed, HOME)
        plugin_in_image.install(container, request.plugin, request.target)
        if request.gpus:
            done = container.run(["python", "-c", _DEVICE], cwd="/tmp")
            if done.status != 0:
                raise EngineError(f"--gpus={request.gpus.text}: no GPU can be used", why=done.stderr.strip())
            print(done.stdout.strip(), file=sys.stderr, flush=True)
        elif components.target(request.target.name).gpus and (note := unused(None)):
            print(note, file=sys.stderr, flush=True)
        yield container


@contextmanager
def open_folder(container: Sandbox, place: Place, *, with_torch: str = "") -> Iterator[None]:
    """Copy a user's folder into a container, and create an environment to install into; copy changes out at the end.

    Args:
        with_torch: the command that does the same where there is torch; "" if nothing is to be advised.

    Raises:
        CommandError: a wheel cannot be installed.
        UnsafeArchiveError: a file would be written outside the folder for results.
    """
    missing = MISSING.format(torch=with_torch)
    with doing("copying files into the container"):
        container.call(["python", "-I", "-c", _MAKE_ENVIRONMENT, _ENVIRONMENT, missing])
        container.call(["mkdir", "-p", WORK, _WHEELS])
        # Before the wheels: what they install may start processes, which could replace folders that are written to.
        sent = _copy_in(container, place.folder) if place.folder else {}
    if place.wheels:
        with doing(f"installing the wheels of {place.wheels}"):
            _install(container, place.wheels)
    try:
        with container.disk_limited():
            yield
    except BaseException:
        # Report the error that ended the command, and not that the container may be gone because of it.
        try:
            _copy_out(container, sent, place)
        except FoundryError as lost:
            print(f"the files that were written are lost: {lost.what}", file=sys.stderr)
        raise
    with doing("copying back what was written"):
        _copy_out(container, sent, place)


def inside(argv: Sequence[str], environment: Mapping[str, str] | None = None) -> list[str]:
    """Return a command that runs with the environment of a user's programs."""
    settings = {
        "VIRTUAL_ENV": _ENVIRONMENT,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": f"{_WHEELS} {WORK}",
        "PIP_NO_CACHE_DIR": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PYTHONUNBUFFERED": "1",
        **jupyter.ENVIRONMENT,
    }
    words = [f"{key}={value}" for key, value in (settings | dict(environment or {})).items()]
    return ["env", *words, "sh", "-c", f'PATH={_ENVIRONMENT}/bin:$PATH; export PATH; exec "$@"', "sh", *argv]


def _with_torch(request: Request, verb: str, *words: str) -> str:
    """Return the command for the image that has torch; "" if there is none, or if this image has it."""
    name = conformance.variant_with_torch(request.target)
    if name in ("", request.target.name):
        return ""
    with suppress(UsageError):
        return _command(request.for_target(name), verb, *words)
    return ""


def _install(container: Container, folder: Path) -> None:
    wheels = sorted(folder.glob("*.whl"))
    for wheel in wheels:
        container.copy_into(wheel, f"{_WHEELS}/{wheel.name}")
    done = container.run(
        inside(["python", "-m", "pip", "install", "--quiet", *(f"{_WHEELS}/{wheel.name}" for wheel in wheels)])
    )
    if done.status != 0:
        raise CommandError(
            f"the wheels of {folder} cannot be installed",
            why=(done.stdout + done.stderr).strip(),
            next="put what is missing into that folder: pip download --only-binary=:all: --python-version VERSION NAME",
        )


def _script(name: str) -> Path:
    path = Path(name)
    if path.is_file():
        if path.suffix == cell_outputs.SUFFIX:
            cell_outputs.read(path)
        return path.resolve()
    packed = (path / "meta.json").is_file()
    raise UsageError(
        f"{name} is not a Python script",
        why="it is a folder" if path.is_dir() else "there is no such file",
        next=f"./foundry run-packed {name}" if packed else "./foundry help run",
    )


def unnamed(folder: Path) -> Path:
    """Return the folder of a script if it may be copied although the user did not name it.

    Raises:
        UsageError: it is the user's home or a parent of it, or it is large.
    """
    what = f"all of {folder} would be copied into the container"
    advice = "put the script into a separate folder, or name the folder: --with=PATH"
    if Path.home().is_relative_to(folder):
        raise UsageError(what, why="the script's folder is copied, and this one has your home in it", next=advice)
    size = 0
    for _, path in _files(folder):
        size += path.stat().st_size
        if size > _UNNAMED:
            raise UsageError(what, why=f"it has more than {_UNNAMED / 1e9:.0f} GB", next=advice)
    return folder


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the files below a folder with their relative names, and folders too, so that empty ones are copied.

    Links to files are followed, links to folders are not.
    """
    for top, folders, files in os.walk(folder):
        folders[:] = sorted(
            name
            for name in folders
            if name not in received.LEFT_OUT
            and not Path(top, name, "pyvenv.cfg").exists()
            and not Path(top, name).is_symlink()
        )
        for name in (*folders, *sorted(files)):
            path = Path(top, name)
            if name not in received.LEFT_OUT and (path.is_file() or path.is_dir()):
                yield path.relative_to(folder).as_posix(), path


def _copy_in(container: Container, folder: Path) -> dict[str, Sent]:
    """Copy a folder into the container; return its files."""
    sent = {}
    with TemporaryDirectory(prefix="foundry-", dir=paths.scratch()) as work:
        packed = Path(work, "work.tar")
        with packed.open("wb") as file, TarWriter(file, owner=USER) as tar:
            for name, path in _files(folder):
                date = int(path.stat().st_mtime)
                if path.is_dir():
                    tar.folder(name, date=date)
                    continue
                # Read each file once, so that the recorded sha256 is that of the copied content.
                content = path.read_bytes()
                sent[name] = Sent(len(content), hashlib.sha256(content).hexdigest())
                tar.file(name, content, executable=trees.mode(path) == 0o755, date=date)
        container.put(packed, WORK)
    return sent


def _copy_out(container: Container, sent: Mapping[str, Sent], place: Place) -> None:
    """Copy new and changed files to the folder for results, and print their names.

    Raises:
        LimitError: they are more than the limits allow.
        UnsafeArchiveError: some files cannot be written; the others are.
    """
    if place.results is None:
        return
    taken = container.take(WORK, place.results, Bounds(place.disk), sent=sent, only="folder")
    if sys.stderr.isatty():
        # What the script printed may have set the terminal so that these lines cannot be read.
        terminal.reset()
    lines = received.some([f"written: {place.results / received.shown(name)}" for name in taken.written], _LISTED)
    lines += received.some([f"not copied out: {received.shown(name)}: {why}" for name, why in taken.left.items()])
    print("".join(f"{line}\n" for line in lines), end="", file=sys.stderr)
    received.print_executed(taken.written)
    taken.check("not all files of the container were copied out", more=_MORE)
