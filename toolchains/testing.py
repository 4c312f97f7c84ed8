"""The verb test: everything that this repository checks of itself, in one run with one summary.

    ruff             over all Python here
    mypy             over toolchains/, tasks.py and backends/*/src; not e2e/ and bench/, which run in images
    tests/           pytest on this machine, with the container engine
    backends/*/tests pytest inside a target's image, where Triton, LLVM and the device are: of core, of its backend
                     and of the recipes that its native parts are made by
    e2e              the kernels, as `invoke e2e` runs them

The last two for every target, variants left out, with every pinned release of Triton.

A part that fails does not keep the next from running. The last line is pytest's own kind of summary, summed over all
parts; a run in which no test was executed has failed.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

from . import building, distributions, furnishing, host, lock, paths, proof
from .errors import CheckError, CommandError, FoundryError, UsageError
from .lock import LockedTarget
from .run import run
from .sdk import Given

_RESULTS = paths.RESULTS / "test"
_INSIDE = "/foundry/test"
_ANYWHERE = "anywhere: depends neither on the target nor on the release of Triton"
# Of this process's environment, what tests on this machine need beside what every child gets.
_PASSED = ("DOCKER_", "FOUNDRY_", "XDG_")


@dataclass(frozen=True)
class Part:
    """A part of the run: its title, what runs it, and the JUnit file with its results if it is made of tests."""

    title: str
    run: Callable[[], None]
    junit: Path | None = None


@dataclass
class Count:
    """Tests by outcome."""

    passed: int = 0
    failed: int = 0
    errors: int = 0
    skipped: int = 0

    def add(self, junit: Path) -> int:
        """Add what a JUnit file says; returns how many tests were executed."""
        executed = 0
        for suite in ElementTree.parse(junit).getroot().iter("testsuite"):
            tests, failed, errors, skipped = (
                int(suite.get(name, "0")) for name in ("tests", "failures", "errors", "skipped")
            )
            self.failed += failed
            self.errors += errors
            self.skipped += skipped
            self.passed += tests - failed - errors - skipped
            executed += tests - skipped
        return executed

    def summary(self, seconds: float) -> str:
        """The line that pytest would end with."""
        words = [
            f"{count} {word}"
            for count, word in (
                (self.failed, "failed"),
                (self.passed, "passed"),
                (self.skipped, "skipped"),
                (self.errors, "errors"),
            )
            if count
        ]
        return f" {', '.join(words) or 'no tests ran'} in {seconds:.2f}s ".center(100, "=")


def test(target: str, *, allow_drift: bool, given: Given | None = None) -> int:
    """Run all checks; what failed is said in what is printed, whose last line is the summary.

    Args:
        target: the only one whose image the backends' tests and e2e run in; those of Lock.proven if empty.
        allow_drift: see building.have.
        given: a vendor SDK for the target, which must be named then; see building.have.

    Returns:
        0, or CheckError's exit status if a part failed or executed no test.

    Raises:
        UsageError: no such target.
        MissingToolError: no container engine.
    """
    if given and not target:
        raise UsageError("--sdk is for one target", next="--target=dpu --sdk=PATH")
    targets = [building.locked(target)] if target else lock.load().proven()
    host.ensure()
    shutil.rmtree(_RESULTS, ignore_errors=True)
    _RESULTS.mkdir(parents=True)
    return run_parts(_parts(targets, allow_drift, given))


def run_parts(parts: list[Part]) -> int:
    """Run each part and print the summary over all of them; returns the exit status, as test() does."""
    start = time.monotonic()
    count = Count()
    failed = []
    for part in parts:
        print(f"\n== {part.title}", flush=True)
        try:
            part.run()
        except FoundryError as error:
            print(error, flush=True)
            failed.append(part.title)
        if part.junit is not None:
            executed = count.add(part.junit) if part.junit.is_file() else 0
            if executed == 0:
                count.errors += 1
                failed.append(f"{part.title}: no test was executed")
        elif part.title in failed:
            count.errors += 1
    for title in failed:
        print(f"\nfailed: {title}", end="")
    print("\n" + count.summary(time.monotonic() - start), flush=True)
    return CheckError.exit_code if failed else 0


def _parts(targets: Sequence[LockedTarget], allow_drift: bool, given: Given | None) -> list[Part]:
    drift = ["--allow-drift"] if allow_drift else []
    return [
        Part("ruff", lambda: _tool("ruff", "check", ".")),
        Part("mypy", lambda: _tool("mypy")),
        Part(
            "tests/ on this machine",
            lambda: _tool("pytest", *drift, f"--junitxml={_RESULTS / 'host.xml'}"),
            _RESULTS / "host.xml",
        ),
        *(part for target in targets for part in _in_images(target, core_runs(targets), allow_drift, given)),
    ]


def core_runs(targets: Sequence[LockedTarget]) -> list[tuple[str, str]]:
    """The targets and releases of Triton with which core's tests are run, of all that these targets have.

    What core does depends on a target's mapping and tools, and on how a release writes its IR, but not on both at once.
    So they are run for each target with its default release, and for each other release with one target: that with the
    fewest native parts, where kernels run soonest. Each target's own tests and e2e are run with every release.
    """
    runs = [(target.name, target.default_triton) for target in targets]
    for release in sorted({release for target in targets for release in target.tritons}):
        having = [target for target in targets if release in target.tritons]
        if not any((target.name, release) in runs for target in having):
            runs.append((min(having, key=lambda target: len(target.recipes)).name, release))
    return runs


def _in_images(
    target: LockedTarget, core: Sequence[tuple[str, str]], allow_drift: bool, given: Given | None
) -> Iterator[Part]:
    """What is run in the images of a target; `core` as core_runs gives it."""

    def kernels(release: str, junit: Path) -> None:
        folder = proof.e2e(target.name, triton=release, allow_drift=allow_drift, given=given)
        shutil.copy(folder / "junit.xml", junit)

    def backends(release: str, folders: dict[str, Path], junit: Path) -> None:
        once = (target.name, release) == core[0]
        _inside(target, release, folders, allow_drift, given, junit, anywhere=once)

    for release in target.tritons:
        junit = _RESULTS / f"backends-{target.name}-{release}.xml"
        folders = suites(target, release, core=(target.name, release) in core)
        if folders:
            title = f"tests of {', '.join(folders)} in the image of {target.name}, Triton {release}"
            yield Part(title, partial(backends, release, folders, junit), junit)
    for release in target.tritons:
        junit = _RESULTS / f"e2e-{target.name}-{release}.xml"
        yield Part(f"e2e {target.name}, Triton {release}", partial(kernels, release, junit), junit)


def _tool(name: str, *arguments: str) -> None:
    passed = {key: value for key, value in os.environ.items() if key.startswith(_PASSED)}
    run(
        [sys.executable, "-m", name, *arguments], log=f"test-{name}", cwd=paths.ROOT, env=passed, network=True,
        line=lambda text: print(text, flush=True),
    )  # fmt: skip


def suites(target: LockedTarget, release: str, *, core: bool = True) -> dict[str, Path]:
    """The folders with the tests of what is in a target's image: not those of other backends, which need their own.

    Recipes have nothing to do with Triton: theirs run in the image of the default release only. Of a recipe it is the
    whole folder, since its tests use its sources' headers and tables. `core` says whether core's are among them.
    """
    own = {name: paths.BACKENDS / name / "tests" for name in (*["core"] * core, target.backend)}
    if release == target.default_triton:
        own |= {name: paths.RECIPES / name for name in target.recipes}
    return {name: folder for name, folder in own.items() if folder.is_dir()}


def _inside(
    target: LockedTarget, release: str, folders: Mapping[str, Path], allow_drift: bool, given: Given | None,
    junit: Path, *, anywhere: bool,
) -> None:  # fmt: skip
    """Run tests in an image, with this machine's pytest: the image itself has no use for one.

    Args:
        folders: of tests, see suites.
        anywhere: run those too that say the same in every image.
    """
    engine, image = building.have(target.name, triton=release, allow_drift=allow_drift, given=given)
    with TemporaryDirectory() as work, engine.container(image.name) as container:
        distributions.copy("pytest-xdist", Path(work))
        container.copy_into(Path(work), f"{_INSIDE}/pytest")
        for name, folder in folders.items():
            container.copy_into(folder, f"{_INSIDE}/{name}")
        furnishing.furnish(container, target)
        done = container.run(
            ["python", "-m", "pytest", "--numprocesses=auto", "--dist=worksteal", "--import-mode=importlib",
             "-p", "no:cacheprovider", "-ra", "-o", f"markers={_ANYWHERE}",
             *([] if anywhere else ["-m", "not anywhere"]),
             f"--rootdir={_INSIDE}", f"--junitxml={_INSIDE}/junit.xml", "--ignore", f"{_INSIDE}/pytest", _INSIDE],
            # Tests may import what lies beside them.
            env={"PYTHONPATH": ":".join(f"{_INSIDE}/{name}" for name in ("pytest", *folders))}, cwd="/tmp",
            line=lambda text: print(text, flush=True),
        )  # fmt: skip
        container.copy_out(f"{_INSIDE}/junit.xml", junit)
    if done.status != 0:
        what = f"pytest in the image of {target.name} with Triton {release} ended with status {done.status}"
        shell = building.shell_command(target.name, triton=release, allow_drift=allow_drift, given=given)
        raise CommandError(what, next=shell)
