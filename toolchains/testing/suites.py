"""The verb test: run every check of this repository, with one summary.

    ruff             over all Python here: lint and format
    import-linter    the packages of toolchains/ import downwards only
    mypy             over toolchains/, tasks.py and backends/*/src; not e2e/ and bench/, which run in images
    tests/           pytest on this machine, with the container engine
    backends/*/tests pytest inside a target's image, where Triton, LLVM and the device are: of core, of its backend
                     and of the recipes that its native parts are made by
    e2e              the kernels, as the verb `e2e` runs them

The last two for every target, and for variants with parts of their own: e2e with every pinned release of Triton, tests
with those that runs() chooses. Tests with the mark every_cpu are run once more as each of _PROCESSORS. The first line
that is printed in an image says on which device, so on which kind of processor, its tests run.

A part that fails does not keep the next from running. The last line is pytest's own kind of summary, summed over all
parts; a run in which no test was executed has failed.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from toolchains.assembly import container_files, ensure, target_image
from toolchains.assembly.request import Request
from toolchains.config import components
from toolchains.config.vendors import VendorSdk
from toolchains.engine import host
from toolchains.lockfile import lock
from toolchains.lockfile.lock import LockedTarget
from toolchains.system import paths
from toolchains.system.children import run
from toolchains.system.errors import CommandError, EngineError, UsageError
from toolchains.testing import distributions, planned, proof
from toolchains.testing.parts import CheckPart, Count, Line, run_parts

_RESULTS = paths.RESULTS / "test"
_INSIDE = "/foundry/test"
_PLANNED = f"{_INSIDE}/planned"
# Most tests on this machine wait for pip, apt or the engine. Those of a file share what is made once a session.
_PYTEST = ("pytest", "--numprocesses=2", "--dist=loadfile", "--durations=20")
# How long the tests in an image may take (seconds).
_SECONDS = 2 * 3600
_EVERY_CPU = "every_cpu"
# Says in an image what its driver launches on.
_DEVICE = "import triton; print('tests run on', triton.runtime.driver.active.ran())"
# Marks of tests that say the same in several images, and of those that do not say the same on each processor.
_MARKS = (
    "anywhere: in every image",
    "any_release: with every release of Triton",
    f"{_EVERY_CPU}: as each kind of processor",
)
# PoCL's library is compiled for some kinds of x86-64 processors, and calls pass vectors otherwise on each. PoCL takes
# the best one that the machine has; by this variable another one, but none that the machine does not have. All tests
# run on the best one. These are what the others differ in: registers of 16 bytes, and of 32.
_PROCESSOR = "POCL_KERNELLIB_NAME"
_PROCESSORS = ("sse2", "avx2")
_POCL = "pocl-opencl-icd"
# Variables of this process that tests on this machine need, in addition to what every child gets.
_PASSED = ("DOCKER_", "FOUNDRY_", "XDG_")


def requests(target: str, *, allow_drift: bool, sdk: str) -> list[Request]:
    """Return what is tested: each release of a target, or of those of Lock.proven if no target is named.

    Raises:
        UsageError: an SDK is given for all targets; or see Request.read.
    """
    if target:
        first = [Request.read(target, allow_drift=allow_drift, sdk=sdk)]
    elif sdk:
        raise UsageError("--sdk is for one target", next="name the target too: --target=TARGET --sdk=PATH")
    else:
        first = [Request.read(each.name, allow_drift=allow_drift) for each in lock.load().proven()]
    return [replace(each, release=release) for each in first for release in each.target.tritons.values()]


def test(requested: Sequence[Request]) -> int:
    """Run all checks, and print what failed. The last line is the summary.

    Args:
        requested: the images that the backends' tests and e2e run in.

    Returns:
        See parts.run_parts.

    Raises:
        MissingToolError: no container engine.
    """
    host.ensure_engine()
    shutil.rmtree(_RESULTS, ignore_errors=True)
    _RESULTS.mkdir(parents=True)
    return run_parts(_parts(requested))


# import-linter has a command and no module that can be run.
_LINT_IMPORTS = "from importlinter.cli import lint_imports_command; lint_imports_command()"


def _parts(requested: Sequence[Request]) -> list[CheckPart]:
    """All parts in their order.

    What keeps one processor busy at most runs side by side: the checks of this machine while e2e makes the images and
    runs kernels in them. Tests in images take all processors themselves.
    """
    drift = ["--allow-drift"] if any(each.allow_drift for each in requested) else []
    junit = _RESULTS / "host.xml"
    images = [_Image(each) for each in requested]
    return [
        CheckPart("ruff check", partial(_tool, ["ruff", "check", "."]), beside=True),
        CheckPart("ruff format", partial(_tool, ["ruff", "format", "--check", "."]), beside=True),
        CheckPart("import-linter", partial(_python, "lint-imports", ["-c", _LINT_IMPORTS]), beside=True),
        CheckPart("mypy", partial(_tool, ["mypy"]), beside=True),
        CheckPart(
            "tests/ on this machine", partial(_tool, [*_PYTEST, *drift, f"--junitxml={junit}"]), junit, beside=True
        ),
        *(CheckPart(f"e2e {image.title}", image.e2e, image.junit("e2e"), beside=True) for image in images),
        *_suites_in_images(images),
    ]


def _suites_in_images(images: Sequence[_Image]) -> Iterator[CheckPart]:
    targets = list({image.target.name: image.target for image in images}.values())
    chosen = choose_runs(targets)
    core = {"core": paths.BACKENDS / "core" / "tests"}
    first_with_pocl = next(((target.name, target.default_triton) for target in targets if _has_pocl(target)), None)
    for image in images:
        name, release = image.target.name, image.release
        if (name, release) in chosen:
            folders = test_folders(image.target, release, recipes=own_recipes(image.target, targets))
            title = f"tests of {', '.join(folders)} in the image of {image.title}"
            first = (name, release) == chosen[0]
            inside = partial(image.tests, folders, without=_repeated(image, targets, first=first))
            yield CheckPart(title, inside, image.junit("backends"))
            if first_with_pocl == (name, release):
                for processor in _PROCESSORS:
                    title = f"tests of library functions in the image of {image.title}, as processor {processor}"
                    junit = image.junit(f"backends-{processor}")
                    yield CheckPart(title, partial(image.tests, core, processor=processor), junit)


def _has_pocl(target: LockedTarget) -> bool:
    return any(deb.name == _POCL for deb in target.debs)


def _repeated(image: _Image, targets: Sequence[LockedTarget], *, first: bool) -> list[str]:
    """The marks of tests that another image has run: any but the first, or but the first of its backend's."""
    of_backend = next(target for target in targets if target.backend == image.target.backend)
    own = (image.target.name, image.release) == (of_backend.name, of_backend.default_triton)
    return ["anywhere"] * (not first) + ["any_release"] * (not own)


def choose_runs(targets: Sequence[LockedTarget]) -> list[tuple[str, str]]:
    """The targets and releases of Triton whose images tests are run in, of all that these targets have.

    What is tested depends on a target's mapping and tools, and on how a release writes its IR, but not on both at once.
    So tests are run for each target with its default release, and for each other release with one target: that with the
    fewest native parts, where kernels run soonest. e2e is run with every release of every target.
    """
    chosen = [(target.name, target.default_triton) for target in targets]
    for release in sorted({release for target in targets for release in target.tritons}):
        having = [target for target in targets if release in target.tritons]
        if not any((target.name, release) in chosen for target in having):
            chosen.append((min(having, key=lambda target: len(target.recipes)).name, release))
    return chosen


def own_recipes(target: LockedTarget, targets: Sequence[LockedTarget]) -> list[str]:
    """The recipes whose tests are run in a target's image: of those that several targets have, in the first one's."""
    before = {recipe for other in targets[: targets.index(target)] for recipe in other.recipes}
    return [recipe for recipe in target.recipes if recipe not in before]


def test_folders(target: LockedTarget, release: str, *, recipes: Sequence[str] | None = None) -> dict[str, Path]:
    """The folders with the tests of what is in a target's image: not those of other backends, which need their own.

    A plugin that is another target's backend is tested there, also if this target's plugin builds on it. Recipes have
    nothing to do with Triton: theirs run in the image of the default release only. Of a recipe it is the whole folder,
    since its tests use its sources' headers and tables.

    Args:
        recipes: those of the target's recipes whose tests are among them; all if not given.
    """
    others = {components.target(name).backend for name in components.names()} - {target.backend}
    plugins = [name for name in target_image.plugins(target) if name not in others]
    own = {name: paths.BACKENDS / name / "tests" for name in plugins}
    if release == target.default_triton:
        own |= {name: paths.RECIPES / name for name in (target.recipes if recipes is None else recipes)}
    return {name: folder for name, folder in own.items() if folder.is_dir()}


@dataclass(frozen=True)
class _Image:
    """A target's image with a release of Triton, and what is run in it."""

    request: Request

    @property
    def target(self) -> LockedTarget:
        return self.request.target

    @property
    def release(self) -> str:
        return self.request.release.version

    @property
    def title(self) -> str:
        return f"{self.target.name}, Triton {self.release}"

    def junit(self, what: str) -> Path:
        return _RESULTS / f"{what}-{self.target.name}-{self.release}.xml"

    def e2e(self, line: Line) -> None:
        """Run the verb e2e in a separate process, which can be ended."""
        results = proof.results_folder(self.request)
        # What is counted is of this run, or nothing.
        shutil.rmtree(results, ignore_errors=True)
        # What somebody built from source on this machine is not what is tested.
        verb = ["-P", "-m", "invoke", "--search-root", str(paths.ROOT), "e2e", self.target.name, *self.request.options]
        sdk = VendorSdk.read(self.target.sdk).environment if self.request.given else {}
        try:
            _python(f"e2e-{self.target.name}-{self.release}", [*verb, "--from-source=none"], line, more=tuple(sdk))
        finally:
            if (results / "junit.xml").is_file():
                shutil.copy(results / "junit.xml", self.junit("e2e"))

    def tests(
        self, folders: Mapping[str, Path], line: Line, *, without: Sequence[str] = (), processor: str = ""
    ) -> None:
        """Run tests in the image, with this machine's pytest: the image itself has no use for one.

        The first line says on what device.

        Args:
            folders: of tests, see suites.
            without: marks of tests that are not run.
            processor: one of _PROCESSORS, to run what is marked every_cpu as that processor.
        """
        chosen = _EVERY_CPU if processor else " and ".join(f"not {mark}" for mark in without)
        # Tests may import what lies next to them.
        env = {"PYTHONPATH": ":".join(f"{_INSIDE}/{name}" for name in ("pytest", *folders))}
        env |= {planned.VARIABLE: _PLANNED} | ({_PROCESSOR: processor} if processor else {})
        junit = self.junit(f"backends-{processor}" if processor else "backends")
        engine, image = ensure.ensure_image(self.request)
        places = container_files.writable_folders(self.target)
        with (
            TemporaryDirectory(dir=paths.scratch()) as work,
            engine.sandbox(image.info.id, folders=places, seconds=_SECONDS) as container,
        ):
            line(f"limits: {container.limits}")
            for name in ("pytest-xdist", "hypothesis"):
                distributions.copy(name, Path(work))
            shutil.copy(planned.__file__, work)
            container.copy_into(Path(work), f"{_INSIDE}/pytest")
            for name, folder in folders.items():
                container.copy_into(folder, f"{_INSIDE}/{name}")
            container_files.copy_user_folders(container, self.target)
            container.run(["python", "-c", _DEVICE], env=env, cwd="/tmp", line=line)
            done = container.run(
                [
                    "python",
                    "-m",
                    "pytest",
                    "--numprocesses=auto",
                    "--dist=worksteal",
                    "--import-mode=importlib",
                    "-p",
                    "planned",
                    "-p",
                    "no:cacheprovider",
                    "-ra",
                    "--durations=10",
                    "-o",
                    "markers=" + "\n".join(_MARKS),
                    "-m",
                    chosen,
                    f"--rootdir={_INSIDE}",
                    f"--junitxml={_INSIDE}/junit.xml",
                    "--ignore",
                    f"{_INSIDE}/pytest",
                    _INSIDE,
                ],
                env=env,
                cwd="/tmp",
                line=line,
            )
            killed = container.oom_killed()
            for name, file in ((f"{_INSIDE}/junit.xml", junit), (_PLANNED, Path(work, "planned.txt"))):
                # What is missing is an error below.
                with suppress(EngineError):
                    container.copy_out(name, file)
            wrong = incomplete(Path(work, "planned.txt"), junit)
        if killed:
            wrong = [f"a process was killed for lack of memory: {container.limits}", *wrong]
        if done.status != 0:
            what = f"pytest in the image of {self.title} ended with status {done.status}"
            raise CommandError(what, why="\n".join(wrong), next=self.request.command("shell"))
        if wrong:
            raise CommandError(f"the tests in the image of {self.title} are not all done", why="\n".join(wrong))


def incomplete(planned_file: Path, junit: Path) -> list[str]:
    """Say what is missing in a run of tests in an image, if anything: tests that did not end, or the results.

    Args:
        planned_file: what planned.py wrote.
        junit: what pytest wrote.
    """
    try:
        tests, missing = planned.read(planned_file.read_text())
    except (OSError, ValueError) as error:
        return [f"pytest ended before it knew its tests: {error}"]
    counted = Count()
    counted.add(junit)
    reported = counted.passed + counted.failed + counted.errors + counted.skipped
    wrong = [f"{len(missing)} of {len(tests)} tests did not end, the first of them is {missing[0]}"] if missing else []
    return wrong + ([f"the results have {reported} tests, {len(tests)} were to run"] if reported < len(tests) else [])


def _tool(words: Sequence[str], line: Line) -> None:
    _python(words[0], ["-m", *words], line)


def _python(log: str, words: Sequence[str], line: Line, more: Sequence[str] = ()) -> None:
    passed = {key: value for key, value in os.environ.items() if key.startswith(_PASSED) or key in more}
    run([sys.executable, *words], log=f"test-{log}", cwd=paths.ROOT, env=passed, network=True, line=line)
