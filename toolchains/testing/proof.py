"""The verbs e2e and bench: checks and measurements run in a target's container, results come out.

Nothing of this machine is mounted: the scripts are copied in and the results out, so that an engine on another machine
serves as well. Which device ran the kernels stands in what is printed and in every result file.
"""

from __future__ import annotations

import ast
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from toolchains.artifacts import triton_wheel
from toolchains.assembly import container_files, ensure
from toolchains.assembly.request import Request
from toolchains.assembly.target_image import Image
from toolchains.config import components
from toolchains.engine.client import Engine
from toolchains.engine.container import Container
from toolchains.engine.sandbox import Sandbox
from toolchains.lockfile import lock
from toolchains.lockfile.lock import LockedTarget
from toolchains.system import paths
from toolchains.system.errors import FoundryError, ProofError, UsageError, suggestion
from toolchains.testing.verdict import Verdict

_HOME = "/foundry"
# The exit status with which e2e/supervise.py says that it had no case to run.
_NONE = 5
# How long a run may take (seconds), whatever becomes of its supervisor, which ends each case in much less.
_SECONDS = 4 * 3600
# What a variant with peers, and a folder with measurements, is named after.
_BENCH = "-bench"
# Where a measurement finds the plugins of the target's peers.
_PEERS_HOME = f"{_HOME}/peers"


def e2e(request: Request, *, only: str = "") -> Path:
    """Build a target's image if needed, and prove in it that kernels run and are right.

    Args:
        request: the image.
        only: run the cases whose name contains this; all if empty, but those that say the same with every release of
            Triton run with the target's default one alone.

    Returns:
        The folder with junit.xml and results.json.

    Raises:
        ProofError: a case failed; the results are there all the same. Or the run broke off before it had any.
        UsageError: no case's name contains `only`.
    """
    command = ["python", "e2e", "--records", "--only", only]
    target = request.target
    # Asked for by name, a case is run with any release.
    if not only and (target.variant or request.release.version != target.default_triton):
        command.append("--not-anywhere")
    results = results_folder(request)
    verdict = _run(request, ["e2e"], command, {}, results)
    if verdict.plan == () and only:
        raise UsageError(
            f"no case has {only!r} in its name", next="take a part of one of the names above, or leave out --only"
        )
    verdict.write(results)
    if not verdict.proven:
        why = _why(verdict, results / "junit.xml")
        raise ProofError(f"{target.name} is not proven", why=why, next=request.command("shell"))
    print(f"{target.name} is proven; results in {results}")
    return results


def bench(request: Request, *, only: str = "") -> Path:
    """Time a target against its peers, in the variant of its image that has them, or in its own if that has all.

    Args:
        request: the image of the target, or of the variant.
        only: name of one measurement; all if empty.

    Returns:
        The folder with bench.json.

    Raises:
        ProofError: a measurement failed, or one of the candidates computed something wrong.
        UsageError: there is no such measurement.
    """
    target = request.target.name
    request = _with_peers(request)
    known = measurements(request.target.name)
    if only and only not in known:
        raise UsageError(
            f"there is no measurement {only} of {target}{suggestion(only, known)}",
            why=f"known: {', '.join(known)}",
            next=f"./foundry bench {target}, or --only= one of these",
        )
    command = ["python", "bench", "--records", "--only", only]
    # bench/ times the kernels that e2e/ checks.
    peers = components.target(request.target.name).peers
    env = {"PYTHONPATH": ":".join([f"{_HOME}/e2e", *([_PEERS_HOME] if peers else [])])}
    # Next to e2e's results, so that it does not replace them.
    results = results_folder(request, f"{request.target.name.removesuffix(_BENCH)}{_BENCH}")
    verdict = _run(request, ["e2e", "bench"], command, env, results, peers=peers)
    taken = [each for result in verdict.results.values() for each in (result.get("data") or {}).get("measurements", [])]
    results.mkdir(parents=True, exist_ok=True)
    document = {"ran": verdict.ran, "measurements": taken}
    (results / "bench.json").write_text(json.dumps(document, indent=1) + "\n")
    if not verdict.proven:
        what = f"the measurements of {target} did not come to an end"
        raise ProofError(what, why=_why(verdict, results / "bench.json"), next=request.command("shell"))
    print(f"results in {results}")
    return results


def measurements(target: str) -> list[str]:
    """Return the names of a target's measurements, read off bench/, whose modules can be imported in images only.

    Raises:
        UsageError: it has none.
    """
    found = components.target(target)
    if not found.bench:
        raise UsageError(
            f"{found.backend} has no measurements",
            why="its file does not name a module of bench/",
            next=f'write one as bench/opencl.py, and bench = "MODULE" in toolchains/targets/{found.backend}.toml',
        )
    path = paths.ROOT / "bench" / f"{found.bench.replace('.', '/')}.py"
    for node in ast.parse(path.read_text()).body:
        match node:
            case ast.Assign([ast.Name("MEASUREMENTS")], ast.Dict(keys)) | ast.AnnAssign(
                ast.Name("MEASUREMENTS"), value=ast.Dict(keys)
            ):
                return [ast.literal_eval(key) for key in keys if key]
    raise LookupError(f"{path} has no table MEASUREMENTS")


def results_folder(request: Request, name: str = "") -> Path:
    """The folder for results of an image, by its target's name or by this one; an SDK or sources have their own."""
    kind = ("-sdk" if request.given else "") + ("-source" if request.choice else "")
    return paths.RESULTS / ((name or request.target.name) + kind) / triton_wheel.version(request.release)


def _why(verdict: Verdict, written: Path) -> str:
    """What is wrong, and where the results are."""
    planned = len(verdict.plan or ())
    lines = [f"{len(verdict.failed)} of {planned} cases failed or were not run"] if verdict.failed else []
    if verdict.plan == ():
        lines.append("there was no case to run")
    return "\n".join([*lines, *verdict.faults, f"what was found is in {written}"])


def _with_peers(request: Request) -> Request:
    variant = f"{request.target.name}{_BENCH}"
    return request if request.target.variant or variant not in lock.load().targets else request.for_target(variant)


def _run(
    request: Request,
    folders: Sequence[str],
    command: Sequence[str],
    env: Mapping[str, str],
    results: Path,
    *,
    peers: Sequence[str] = (),
) -> Verdict:
    """Run a command in a container of a target's image; returns what it came to.

    Args:
        results: the folder for results, which is removed once there is an image.
        peers: backends whose plugins the command finds in addition to the target's own.
    """
    docker, made = ensure.ensure_image(request)
    shutil.rmtree(results, ignore_errors=True)
    verdict = Verdict()

    def prepare(container: Sandbox) -> None:
        container_files.copy_checks(container, request.target, folders)
        for peer in peers:
            _install(container, peer)

    run_cases(docker, made, request.target, prepare, command, env, verdict)
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
) -> None:
    """Run a command that sends records in a container of an image, and judge them.

    Args:
        engine, image: see ensure.ensure_image.
        target: what the image is of.
        prepare: copies what the command needs into the container.
        command: starts e2e/supervise.py's main.
        env: variables for it.
        verdict: takes the records. It is concluded when this returns, and not if this raises.
        seconds: how long the container lives.
        line: called with each line that is no record.
        record: called with each record in place of `verdict.take`.
    """
    places = container_files.writable_folders(target)
    with engine.sandbox(image.info.id, folders=places, seconds=seconds) as container:
        line(f"limits: {container.limits}")
        prepare(container)
        container_files.copy_user_folders(container, target)
        try:
            done = container.run(command, env=env, cwd=_HOME, line=line, out=record or verdict.take)
        except FoundryError as error:
            # Results that came are kept.
            verdict.conclude(str(error))
        else:
            verdict.conclude(f"the process in the container ended with status {done.status}{_memory(container)}")
            if done.status not in (0, _NONE) and not verdict.failed and not verdict.faults:
                verdict.faults.append(f"the process in the container ended with status {done.status}")


def _memory(container: Sandbox) -> str:
    """A word on memory, if a process in the container was killed for lack of it."""
    try:
        killed = container.oom_killed()
    except FoundryError:
        return ", and its container is gone"
    return f"; a process was killed for lack of memory: {container.limits}" if killed else ""


def _install(container: Container, backend: str) -> None:
    """Put a backend's plugin into a separate folder in a container, so that its image need not have it."""
    sources = f"{_HOME}/{backend}"
    container.copy_into(paths.BACKENDS / backend, sources)
    # No dependencies: the image has what its own plugin needs, and measures with that.
    container.call(
        [
            "pip",
            "install",
            "--no-index",
            "--no-deps",
            "--no-build-isolation",
            "--no-cache-dir",
            "--quiet",
            "--disable-pip-version-check",
            "--root-user-action=ignore",
            "--target",
            _PEERS_HOME,
            sources,
        ],
        # A plugin's hook would look for core's folder, which is not in the container.
        env={"HATCH_BUILD_NO_HOOKS": "true"},
    )
