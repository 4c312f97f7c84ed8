"""The verb bench: time a target against its peers, in an image that has them."""

from __future__ import annotations

import ast
import json
import tomllib
from pathlib import Path

import msgspec

from toolchains.assembly.request import Request
from toolchains.config import components
from toolchains.engine.container import Container
from toolchains.lockfile import lock
from toolchains.report import roofline
from toolchains.report.results import profiled
from toolchains.system import document, paths
from toolchains.system.console import Console
from toolchains.system.errors import ProofError, UsageError, suggestion
from toolchains.testing import proof
from toolchains.testing.verdict import Ran
from toolchains.verbs.run import ScriptKernel

# The suffix of a variant with peers, and of a folder with measurements.
_BENCH = "-bench"
# The folder in the container with the plugins of the target's peers.
_PEERS_HOME = f"{proof.HOME}/peers"
# Without dependencies: the image has those of its own plugin, and the measurement uses them.
_PIP = (
    *("--no-index", "--no-deps", "--no-build-isolation", "--no-cache-dir"),
    *("--quiet", "--disable-pip-version-check", "--root-user-action=ignore"),
)
# The folder in the container with what measurements leave behind, such as plots.
_FILES = f"{proof.HOME}/files"


class Times(msgspec.Struct, frozen=True):
    """Wall-clock times in seconds.

    Attributes:
        min: the least.
        median: the median.
        runs: number of timed runs.
    """

    min: float
    median: float
    runs: int


class Candidate(msgspec.Struct, frozen=True):
    """What was timed: our kernel, or a peer's.

    Attributes:
        label: its name.
        times: the measured times; null if cycles are compared.
        rate: in the measurement's unit; null if it has none.
        cycles: of the slowest DPU, modelled by the emulator, never measured; null if times are compared.
        detail: how it was launched, if that was chosen, or "".
        error: the largest error of its result, as a share of the allowed one; null if it was not compared.
    """

    label: str
    times: Times | None = None
    rate: float | None = None
    cycles: int | None = None
    detail: str = ""
    error: float | None = None


class TimedMeasurement(msgspec.Struct, frozen=True):
    """Candidates that were timed together.

    Attributes:
        title: what was done, with sizes and types.
        unit: of the rates, or "".
        rows: the candidates.
        ratios: comparisons within this run, by label; larger is better for us.
        beyond: how many seconds we take more than a peer, by label; smaller is better.
        aim: the project's aim, in words, or "".
        on: what the candidates used, by library, and with how many threads.
        failed: why a candidate has no row, by name.
        kernels: what bounds our kernels, where that was found.
    """

    title: str
    rows: list[Candidate]
    unit: str = ""
    ratios: dict[str, float] = {}
    beyond: dict[str, float] = {}
    aim: str = ""
    on: dict[str, str] = {}
    failed: dict[str, str] = {}
    kernels: list[ScriptKernel] = []


class Measurements(Ran, kw_only=True, tag="bench"):
    """The times of a target and its peers: `bench`. The tables are printed while they are taken.

    Attributes:
        measurements: what was measured. Compare figures of one run only.
    """

    measurements: list[TimedMeasurement]

    def render(self, console: Console) -> None:
        if self.succeeded:
            print(f"results in {self.results}")


def bench(
    request: Request,
    *,
    only: str = "",
    full: bool = False,
    cpu: str = "",
    profile: bool = False,
    plot: Path | None = None,
) -> Path:
    """Time a target against its peers, in the image of the variant that has them, or in its own image if that has all.

    Args:
        plot: the file for the rooflines of the kernels, which are profiled, too; None for none.

    Returns:
        The folder with bench.json.

    Raises:
        ProofError: a measurement failed, or a candidate's result was wrong.
        UsageError: there is no such measurement, or no such kind of processor.
    """
    target = request.target.name
    variant = f"{target}{_BENCH}"
    if not request.target.variant and variant in lock.load(platform=request.target.platform).targets:
        request = request.for_target(variant)
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
    path = ":".join([f"{proof.HOME}/e2e", *([_PEERS_HOME] if peers else [])])
    env = {"PYTHONPATH": path, "FOUNDRY_MEASUREMENTS": wanted.bench, "FOUNDRY_BENCH_FILES": _FILES}
    if full:
        env["FOUNDRY_BENCH_FULL"] = "1"
    if profile or plot:
        env["FOUNDRY_BENCH_PROFILE"] = "1"
    if plot:
        # If this run fails, it leaves no picture of an earlier one.
        plot.unlink(missing_ok=True)
    if cpu:
        env |= {"FOUNDRY_BENCH_CPU": cpu, **limits[cpu]}
    # A separate folder, so that it does not replace e2e's results.
    name = f"{request.target.name.removesuffix(_BENCH)}{_BENCH}"
    results = proof.results_folder(request, name, suffix=f"-{cpu}" if cpu else "", only=only)

    def install(container: Container) -> None:
        for peer in peers:
            _install(container, peer)

    verdict = proof.run(request, ["e2e", "bench", "examples"], command, env, results, install=install, files=_FILES)
    data = [result.get("data") or {} for result in verdict.results.values()]
    taken = [measurement for reported in data for measurement in reported.get("measurements", [])]
    results.mkdir(parents=True, exist_ok=True)
    profiles = [
        {"name": name, "kernels": result["data"]["kernels"]}
        for (_, name), result in verdict.results.items()
        if (result.get("data") or {}).get("kernels")
    ]
    content = {"ran": verdict.ran, "measurements": taken, "profiles": profiles}
    (results / "bench.json").write_text(json.dumps(content, indent=1) + "\n")
    if plot:
        roofline.write(plot, profiled(results / "bench.json"))
    common = verdict.described(request.target.name, request.release.version, results)
    try:
        measured = msgspec.convert(taken, list[TimedMeasurement])
    except msgspec.ValidationError as error:
        measured, verdict.faults = [], [*verdict.faults, f"the measurements cannot be read: {error}"]
    document.show(Measurements(**common, measurements=measured))
    if not verdict.succeeded:
        what = f"the measurements of {target} did not come to an end"
        raise ProofError(what, why=proof.explain(verdict, results / "bench.json"), next=request.command("shell"))
    return results


def measurements(target: str) -> list[str]:
    """Return the names of a target's measurements, read from the source of bench/, which only images can import.

    Raises:
        UsageError: the target has no measurements.
    """
    configured = components.target(target)
    if not configured.bench:
        raise UsageError(
            f"{configured.backend} has no measurements",
            why="its file does not name a module of bench/",
            next=f'write one as bench/opencl.py, and bench = "MODULE" in toolchains/targets/{configured.backend}.toml',
        )
    path = paths.ROOT / "bench" / f"{configured.bench.replace('.', '/')}.py"
    for node in ast.parse(path.read_text()).body:
        match node:
            case ast.Assign([ast.Name("MEASUREMENTS")], ast.Dict(keys)) | ast.AnnAssign(
                ast.Name("MEASUREMENTS"), value=ast.Dict(keys)
            ):
                return [ast.literal_eval(key) for key in keys if key]
    raise LookupError(f"{path} has no table MEASUREMENTS")


def _install(container: Container, backend: str) -> None:
    """Install a backend's plugin into a separate folder in a container, so that its image need not have it."""
    sources = f"{proof.HOME}/{backend}"
    container.copy_into(paths.BACKENDS / backend, sources)
    # The plugin's build hook would look for core's folder, which is not in the container.
    container.call(["pip", "install", *_PIP, "--target", _PEERS_HOME, sources], env={"HATCH_BUILD_NO_HOOKS": "true"})
