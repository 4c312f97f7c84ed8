"""Run checks and measurements in a target's container, and copy the results out.

No folder of this machine is mounted: scripts are copied in and results are copied out, so that an engine on another
machine works as well. The output and every result file name the device that ran the kernels.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

from toolchains.archives.received import Bounds
from toolchains.artifacts import triton_wheel
from toolchains.assembly import container_files, ensure
from toolchains.assembly.request import Request
from toolchains.assembly.target_image import Image
from toolchains.config import components
from toolchains.engine.client import Engine
from toolchains.engine.gpus import Gpus, unused
from toolchains.engine.sandbox import DISK, Sandbox
from toolchains.lockfile.lock import LockedTarget
from toolchains.system import durable, paths
from toolchains.system.errors import CheckError, FoundryError
from toolchains.testing.verdict import Verdict

HOME = "/foundry"
# The exit status of e2e/supervise.py if there was no case to run.
_NONE = 5
# The limit for a run (seconds), independent of its supervisor, which ends each case much earlier.
_SECONDS = 4 * 3600
# The folder, in that of whole runs, with the results of a run with --only.
PART = "only"


def results_folder(request: Request, name: str = "", *, suffix: str = "", only: str = "") -> Path:
    """Return the folder for an image's results, by its target's name or the given one; SDKs and sources have others.

    Args:
        suffix: of the folder's name.
        only: the choice of cases. A run with one has a folder in that of the whole run, whose results it must keep.

    Raises:
        UsageError: nothing can be written there.
    """
    kind = ("-sdk" if request.given else "") + ("-source" if request.choice else "")
    folder = paths.RESULTS / ((name or request.subject) + kind) / (triton_wheel.version(request.release) + suffix)
    folder = folder / PART if only else folder
    durable.require_writable(folder, f"{folder}, the folder for results,")
    return folder


def explain(verdict: Verdict, written: Path) -> str:
    """Describe what is wrong, and where the results are."""
    planned = len(verdict.plan or ())
    lines = [f"{len(verdict.failed)} of {planned} cases failed or were not run"] if verdict.failed else []
    if verdict.plan == ():
        lines.append("there was no case to run")
    return "\n".join([*lines, *verdict.faults, f"what was found is in {written}"])


def run(
    request: Request,
    folders: Sequence[str],
    command: Sequence[str],
    env: Mapping[str, str],
    results: Path,
    *,
    install: Callable[[Sandbox], None] = lambda _: None,
    files: str = "",
) -> Verdict:
    """Run a command in a container of a target's image, and return the verdict.

    Args:
        results: the folder for results; old results are removed once there is an image.
        install: installs in the container what the command needs in addition to the image.
        files: a folder in the container that the command may write to; its content goes to the results' folder `files`.
    """
    docker, image = ensure.ensure_image(request)
    shutil.rmtree(results, ignore_errors=True)
    verdict = Verdict(ran=request.named)

    def prepare(container: Sandbox) -> None:
        container_files.copy_checks(container, request.target, folders)
        install(container)
        if files:
            container.call(["mkdir", "-p", files])

    def finish(container: Sandbox) -> None:
        if files:
            # A separate folder, so that they do not stand where this machine writes.
            container.copy_out(files, results / "files", Bounds(DISK))

    run_cases(docker, image, request.target, prepare, command, env, verdict, gpus=request.gpus, finish=finish)
    if components.target(request.target.name).gpus and (note := unused(request.gpus)):
        print(note)
        verdict.ran = {**verdict.ran, "GPUs": note}
    return verdict


def run_cases(
    engine: Engine,
    image: Image,
    target: LockedTarget,
    prepare: Callable[[Sandbox], None],
    command: Sequence[str],
    env: Mapping[str, str],
    verdict: Verdict,
    *,
    seconds: int = _SECONDS,
    line: Callable[[str], None] = lambda text: print(text, flush=True),
    record: Callable[[str], None] | None = None,
    gpus: Gpus | None = None,
    finish: Callable[[Sandbox], None] = lambda _: None,
) -> None:
    """Run a command that sends records in a container of an image, and judge the records.

    Args:
        engine, image: see ensure.ensure_image.
        target: the target of the image.
        prepare: copies the files that the command needs into the container.
        command: starts e2e/supervise.py's main.
        env: environment variables for the command.
        verdict: takes the records. It is concluded when this function returns, but not when it raises.
        seconds: the lifetime of the container.
        line: called with each line that is not a record.
        record: called with each record instead of `verdict.take`.
        gpus: the GPUs that the container gets.
        finish: copies files out of the container after the command has ended by itself.
    """
    places = container_files.writable_folders(target)
    with engine.sandbox(image.info.id, folders=places, seconds=seconds, gpus=gpus) as container:
        line(f"limits: {container.limits}")
        prepare(container)
        container_files.copy_user_folders(container, target)
        try:
            with container.disk_limited():
                done = container.run(command, env=env, cwd=HOME, line=line, out=record or verdict.take)
        except FoundryError as error:
            # Keep the results that arrived.
            verdict.conclude(str(error))
        else:
            verdict.conclude(f"the process in the container ended with status {done.status}{_memory(container)}")
            if done.status not in (0, _NONE) and not verdict.failed and not verdict.faults:
                verdict.faults.append(f"the process in the container ended with status {done.status}")
            finish(container)


def _memory(container: Sandbox) -> str:
    """Return a note on memory if a process in the container was killed for lack of it."""
    try:
        killed = container.oom_killed()
    except FoundryError:
        return ", and its container is gone"
    return f"; a process was killed for lack of memory: {container.limits}" if killed else ""


def copy_distribution(name: str, folder: Path) -> None:
    """Copy a distribution of this environment and its requirements into a folder, for another Python that runs it.

    Their programs and byte code are left out.

    Raises:
        CheckError: a distribution has compiled code, which would not run in another Python.
    """
    for distribution in sorted(_closure(name)):
        for file in metadata.files(distribution) or ():
            if ".." in file.parts or "__pycache__" in file.parts:
                continue
            if file.suffix == ".so":
                raise CheckError(f"{distribution}, which {name} needs, is not pure Python", why=f"it has {file}")
            target = folder / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(str(file.locate()), target)


def _closure(name: str) -> set[str]:
    """Return the names of a distribution and of all its requirements in this environment."""
    names: set[str] = set()

    def visit(name: str) -> None:
        if name in names:
            return
        names.add(name)
        for line in metadata.requires(name) or ():
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                visit(requirement.name)

    visit(name)
    return names
