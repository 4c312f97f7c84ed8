"""The verbs e2e and bench: run checks and measurements in a target's container, and copy the results out.

No folder of this machine is mounted: scripts are copied in and results are copied out, so that an engine on another
machine works as well. The output and every result file name the device that ran the kernels.
"""

from __future__ import annotations

import ast
import json
import shutil
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from toolchains.archives.received import Bounds
from toolchains.artifacts import triton_wheel
from toolchains.assembly import container_files, ensure
from toolchains.assembly.request import Request
from toolchains.assembly.target_image import Image
from toolchains.config import components
from toolchains.engine.client import Engine
from toolchains.engine.container import Container
from toolchains.engine.gpus import Gpus, unused
from toolchains.engine.sandbox import DISK, Sandbox
from toolchains.lockfile import lock
from toolchains.lockfile.lock import LockedTarget
from toolchains.system import durable, paths
from toolchains.system.errors import FoundryError, ProofError, UsageError, suggestion
from toolchains.testing.verdict import REFUSED, Verdict, outcome_of

_HOME = "/foundry"
# The exit status of e2e/supervise.py if there was no case to run.
_NONE = 5
# The limit for a run (seconds), independent of its supervisor, which ends each case much earlier.
_SECONDS = 4 * 3600
# The suffix of a variant with peers, and of a folder with measurements.
_BENCH = "-bench"
# The folder in the container with the plugins of the target's peers.
_PEERS_HOME = f"{_HOME}/peers"
# The folder, in that of whole runs, with the results of a run with --only.
PART = "only"
# The folder in the container with what measurements leave behind, such as plots.
_FILES = f"{_HOME}/files"


def e2e(request: Request, *, only: str = "") -> Path:
    """Build a target's image if needed, and check in it that kernels run and give correct results.

    Args:
        request: the image.
        only: run the cases whose name contains this. If empty, run all; but cases whose result is the same with every
            release of Triton run only with the target's default release.

    Returns:
        The folder with junit.xml and results.json.

    Raises:
        ProofError: a case failed; the results are written all the same. Or the run ended before it had any results.
        UsageError: no case's name contains `only`.
    """
    command = ["python", "e2e", "--records", "--only", only]
    target = request.target
    # If cases are selected by name, they run with any release.
    if not only and (target.variant or request.release.version != target.default_triton):
        command.append("--not-anywhere")
    results = results_folder(request, only=only)
    verdict = _run(request, ["e2e"], command, {}, results)
    if verdict.plan == () and only:
        raise UsageError(
            f"no case has {only!r} in its name", next="take a part of one of the names above, or leave out --only"
        )
    verdict.write(results)
    if not verdict.succeeded:
        why = _why(verdict, results / "junit.xml")
        raise ProofError(f"{target.name} is not proven", why=why, next=request.command("shell"))
    said = (
        f"{target.name} is proven" if verdict.proven else f"{verdict.partial} passed: this does not prove {target.name}"
    )
    refused = sum(outcome_of(result) == REFUSED for result in verdict.results.values())
    print(f"{said}{f'; {refused} cases were refused, and did not run' * bool(refused)}; results in {results}")
    return results


def bench(request: Request, *, only: str = "", full: bool = False, cpu: str = "", profile: bool = False) -> Path:
    """Time a target against its peers, in the image of the variant that has them, or in its own image if that has all.

    Args:
        request: the image of the target, or of the variant.
        only: the name of one measurement; all if empty.
        full: measure all sizes and types of each kernel, not only those of a quick run.
        profile: print what bounds each kernel, too.
        cpu: the kind of processor to which libraries are limited, from bench/processors.toml; none if empty.

    Returns:
        The folder with bench.json.

    Raises:
        ProofError: a measurement failed, or a candidate's result was wrong.
        UsageError: there is no such measurement, or no such kind of processor.
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
    limits = tomllib.loads((paths.ROOT / "bench" / "processors.toml").read_text(encoding="utf-8"))
    if cpu and cpu not in limits:
        raise UsageError(
            f"there is no kind of processor {cpu}{suggestion(cpu, [*limits])}",
            why=f"known: {', '.join(limits)}",
            next="leave out --cpu, or add its variables to bench/processors.toml",
        )
    command = ["python", "-m", "bench", "--records", "--only", only]
    # bench/ measures the kernels that e2e/ checks, and the first launches of examples/.
    wanted = components.target(request.target.name)
    peers = wanted.peers
    path = ":".join([f"{_HOME}/e2e", *([_PEERS_HOME] if peers else [])])
    env = {"PYTHONPATH": path, "FOUNDRY_MEASUREMENTS": wanted.bench, "FOUNDRY_BENCH_FILES": _FILES}
    if full:
        env["FOUNDRY_BENCH_FULL"] = "1"
    if profile:
        env["FOUNDRY_BENCH_PROFILE"] = "1"
    if cpu:
        env |= {"FOUNDRY_BENCH_CPU": cpu, **limits[cpu]}
    # A separate folder, so that it does not replace e2e's results.
    name = f"{request.target.name.removesuffix(_BENCH)}{_BENCH}"
    results = results_folder(request, name, suffix=f"-{cpu}" if cpu else "", only=only)
    verdict = _run(request, ["e2e", "bench", "examples"], command, env, results, peers=peers, files=_FILES)
    taken = [each for result in verdict.results.values() for each in (result.get("data") or {}).get("measurements", [])]
    results.mkdir(parents=True, exist_ok=True)
    profiles = [
        {"name": name, "kernels": result["data"]["kernels"]}
        for (_, name), result in verdict.results.items()
        if (result.get("data") or {}).get("kernels")
    ]
    document = {"ran": verdict.ran, "measurements": taken, "profiles": profiles}
    (results / "bench.json").write_text(json.dumps(document, indent=1) + "\n")
    if not verdict.succeeded:
        what = f"the measurements of {target} did not come to an end"
        raise ProofError(what, why=_why(verdict, results / "bench.json"), next=request.command("shell"))
    print(f"results in {results}")
    return results


def measurements(target: str) -> list[str]:
    """Return the names of a target's measurements, read from the source of bench/, which only images can import.

    Raises:
        UsageError: the target has no measurements.
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


def results_folder(request: Request, name: str = "", *, suffix: str = "", only: str = "") -> Path:
    """Return the folder for an image's results, by its target's name or the given one; SDKs and sources have others.

    Args:
        suffix: of the folder's name.
        only: the choice of cases. A run with one has a folder in that of the whole run, whose results it must keep.

    Raises:
        UsageError: nothing can be written there.
    """
    kind = ("-sdk" if request.given else "") + ("-source" if request.choice else "")
    folder = paths.RESULTS / ((name or request.target.name) + kind) / (triton_wheel.version(request.release) + suffix)
    folder = folder / PART if only else folder
    durable.require_writable(folder, f"{folder}, the folder for results,")
    return folder


def _why(verdict: Verdict, written: Path) -> str:
    """Describe what is wrong, and where the results are."""
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
    files: str = "",
) -> Verdict:
    """Run a command in a container of a target's image, and return the verdict.

    Args:
        results: the folder for results; old results are removed once there is an image.
        peers: backends whose plugins are installed for the command in addition to the target's own.
        files: a folder in the container that the command may write to; its content goes to the results' folder `files`.
    """
    docker, made = ensure.ensure_image(request)
    shutil.rmtree(results, ignore_errors=True)
    verdict = Verdict()

    def prepare(container: Sandbox) -> None:
        container_files.copy_checks(container, request.target, folders)
        for peer in peers:
            _install(container, peer)
        if files:
            container.call(["mkdir", "-p", files])

    def finish(container: Sandbox) -> None:
        if files:
            # A separate folder, so that they do not stand where this machine writes.
            container.copy_out(files, results / "files", Bounds(DISK))

    run_cases(docker, made, request.target, prepare, command, env, verdict, gpus=request.gpus, finish=finish)
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
                done = container.run(command, env=env, cwd=_HOME, line=line, out=record or verdict.take)
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


def _install(container: Container, backend: str) -> None:
    """Install a backend's plugin into a separate folder in a container, so that its image need not have it."""
    sources = f"{_HOME}/{backend}"
    container.copy_into(paths.BACKENDS / backend, sources)
    # Without dependencies: the image has those of its own plugin, and the measurement uses them.
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
        # The plugin's build hook would look for core's folder, which is not in the container.
        env={"HATCH_BUILD_NO_HOOKS": "true"},
    )
