"""The verb test: run every check of this repository, with one summary.

    ruff             all Python code of the repository: lint and format
    import-linter    the packages of toolchains/ and backends/ import only lower layers
    mypy             toolchains/, tasks.py, backends/*/src, bench/, tests/ strictly; the rest as type_checks.py says
    tests/           pytest on this machine, with the container engine
    e2e              the kernels, run like the verb `e2e`
    published IDs    the images and their parts are those that were published for the same inputs
    backends/*/tests pytest inside a target's image, which has Triton, LLVM and the device: tests of core, of its
                     backend and of the recipes of its native parts
    values           conformance/language in the same images: all cases in the first one with PoCL; all but those that
                     the host checks where a backend has a mapping of its own; in each other one the first case of
                     each test, or the first test of each file where a peer runs the same release. What a target
                     refuses is in conformance/refused.toml

The last three run for every target, and for variants with their own parts: e2e and the comparison with every pinned
release of Triton, tests with the releases that choose_runs() returns. Tests with the mark every_cpu run once more as
each of _PROCESSORS. In an image, the first line of output names the device, and so the kind of processor, on which its
tests run.

quick() runs what is above the last three, without the tests that need an engine, a network or seconds.

If a part fails, the next ones still run. One line a part says how it ended; logs and the record of what passed are in
build/results/test, in `quick` and `plugin` there for these. The last line is a summary like pytest's, summed over all
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
from typing import NotRequired, TypedDict

from toolchains.archives.received import Bounds
from toolchains.artifacts import native
from toolchains.assembly import container_files, ensure, target_image
from toolchains.assembly.request import Request
from toolchains.config import components, platforms
from toolchains.config.vendors import VendorSdk
from toolchains.engine import host
from toolchains.lockfile import lock
from toolchains.lockfile.lock import LockedTarget
from toolchains.repro import expected
from toolchains.system import json_text, paths
from toolchains.system.children import run
from toolchains.system.errors import CheckError, CommandError, EngineError, ImageError, PartError, PinError, UsageError
from toolchains.testing import planned, proof
from toolchains.testing.junit import Count
from toolchains.testing.parts import CheckPart, Line, run_parts
from toolchains.verbs import conformance

_RESULTS = paths.RESULTS / "test"
# The folders of other runs than those of all checks, whose results stay.
_QUICK, _PLUGIN = "quick", "plugin"
_INSIDE = "/foundry/test"
_PLANNED = f"{_INSIDE}/planned"
# The largest file of results that is copied out.
_LARGEST = Bounds(256 << 20)
# Most tests on this machine wait for pip, apt or the engine. Tests of one file share their session fixtures. A process
# that ended gets no successor: with loadfile, pytest-xdist would give it the tests again that ended it.
_PYTEST = ("pytest", "--numprocesses=2", "--dist=loadfile", "--max-worker-restart=0", "--durations=20")
# The marks of tests that quick() leaves out: together they take minutes.
_NOT_QUICK = ("docker", "network", "slow")
# What the others need, by the names in host.requirements(). Debian's package of strip has the assembler, too.
_QUICK_NEEDS = ("git", "strip")
# The limit for the tests in an image, and for a single test there and on this machine (seconds).
_SECONDS, _IN_IMAGE, _HERE = 40 * 60, 5 * 60, 20 * 60
_EVERY_CPU = "every_cpu"
# The folder with tests of the language's values in an image, and the plugin that chooses from them (its docstring).
_LANGUAGE, _LISTED, _VALUES = "language", "listed", "FOUNDRY_VALUES"
_LISTED_FILES = (
    "e2e/guarded.py",
    "conformance/listed.py",
    "conformance/outcomes.py",
    "conformance/rules.toml",
    "conformance/refused.toml",
)
# Prints in an image the device on which its driver launches kernels.
_DEVICE = "import triton; print('tests run on', triton.runtime.driver.active.device_report())"
# Marks of tests whose result is the same in several images, and of tests whose result depends on the processor.
_MARKS = (
    "anywhere: in every image",
    "any_release: with every release of Triton",
    f"{_EVERY_CPU}: as each kind of processor",
    "each_image: all its cases in each image",
    "values: the host, and one image, run all its cases",
)
_IN_CONTAINER = (
    *("--numprocesses=auto", "--dist=worksteal", "--import-mode=importlib"),
    *("-p", "planned", "-p", _LISTED, "-p", "no:cacheprovider", "-ra"),
    *("--durations=10", "-o", "markers=" + "\n".join(_MARKS)),
    *(f"--rootdir={_INSIDE}", f"--junitxml={_INSIDE}/junit.xml", "--ignore", f"{_INSIDE}/pytest"),
)
# PoCL's library is compiled for several kinds of x86-64 processors, and each passes vectors to calls in another way.
# PoCL uses the best kind that the machine supports; this variable selects another supported one. All tests run on the
# best kind. These kinds cover the differences: registers of 16 bytes, and of 32.
_PROCESSOR = "POCL_KERNELLIB_NAME"
_PROCESSORS = ("sse2", "avx2")
_POCL = "pocl-opencl-icd"
_E2E = "kernels run there, and agree with NumPy"
# Variables of this process that tests on this machine need, in addition to those of every child.
_PASSED = ("DOCKER_", "FOUNDRY_", "XDG_")


def requests(target: str, *, sdk: str, plugin: bool = False) -> list[Request]:
    """Return the requests to test: each release of a target, or of all targets of Lock.proven if none is named.

    They allow drift: what is tested is this checkout, so a package that Debian's archive dropped must not end the run.
    The store prints which packages are not as locked.

    Args:
        plugin: only the default release, for the plugin's own tests.

    Raises:
        UsageError: an SDK is given for all targets, or so is `plugin`; or see Request.read.
    """
    if target:
        first = [Request.read(target, allow_drift=True, sdk=sdk)]
    elif sdk or plugin:
        option = "--sdk" if sdk else "--plugin"
        raise UsageError(f"{option} is for one target", next="name the target too: --target=TARGET")
    else:
        first = [
            Request.read(target.name, allow_drift=True) for target in lock.load(platform=platforms.here()).proven()
        ]
    if plugin:
        return first
    return [replace(request, release=release) for request in first for release in request.target.tritons.values()]


def test(requested: Sequence[Request], *, target: str = "", continued: bool = False) -> int:
    """Run all checks, and print what failed. The last line is the summary.

    Args:
        requested: the images that the backends' tests and e2e run in.
        target: the only one of them, if it is named.
        continued: see run_parts.

    Returns:
        See parts.run_parts.

    Raises:
        MissingToolError: no container engine.
    """
    host.ensure_engine()
    options = [f"--target={target}", *_given(requested[0])] if target else []
    return run_parts(_parts(requested), _RESULTS, options=options, continued=continued)


def _given(request: Request) -> list[str]:
    return [f"--sdk={request.given.option}"] if request.given else []


def test_plugin(request: Request, *, continued: bool = False) -> int:
    """Run only the tests of a target's own plugin, in its image. The results of a run of all checks stay.

    Raises:
        UsageError: the target's file names the tests that run in its image, and none of them is the plugin's.
        MissingToolError: no container engine.
    """
    image, backend = _Image(request), request.target.backend
    folders = {name: paths.BACKENDS / name / "tests" for name in ("core", backend)}
    # They import modules of core's tests, which do not run here.
    chosen = [f"{_INSIDE}/{backend}"]
    if components.target(request.target.name).tests:
        chosen = [path for path in chosen_paths(request.target, folders) if path.startswith(f"{_INSIDE}/{backend}/")]
    if not chosen:
        raise UsageError(
            f"no test of the plugin {backend} runs in the image of {request.target.name}",
            next=f"./foundry test --target={request.target.name}",
        )
    host.ensure_engine()
    what = f"{_PLUGIN}/{request.target.name}/tests"
    tests = partial(image.tests, folders, what=what, chosen=chosen)
    part = CheckPart(f"tests of {backend} in the image of {image.title}", tests, image.junit(what))
    options = [f"--target={request.target.name}", "--plugin", *_given(request)]
    return run_parts([part], image.junit(what).parent, options=options, continued=continued)


def quick(*, for_images: bool = False, continued: bool = False) -> int:
    """Run what needs neither an engine nor a network, and print what failed. The last line is the summary.

    Results of an earlier test() stay as they are.

    Args:
        for_images: whether there are options that images are built with.
        continued: see run_parts.

    Returns:
        See parts.run_parts.

    Raises:
        UsageError: there are such options.
        MissingToolError: a program is missing that the tests need.
    """
    if for_images:
        raise UsageError(
            "--quick runs nothing in images",
            why="--target, --plugin and --sdk are for these",
            next="./foundry test --quick",
        )
    host.ensure_programs(*_QUICK_NEEDS)
    chosen = " and ".join(f"not {mark}" for mark in _NOT_QUICK)
    # One more than there are processors: many tests wait for a process.
    processes = (os.cpu_count() or 1) + 1
    folder = _RESULTS / _QUICK
    parts = _here(folder / "quick.xml", ["-m", chosen, f"--numprocesses={processes}"])
    return run_parts(parts, folder, options=["--quick"], continued=continued)


def _parts(requested: Sequence[Request]) -> list[CheckPart]:
    """Return all parts in order.

    Parts that use at most one processor run in parallel: this machine's checks run while e2e builds the images and runs
    kernels in them. The images with the most packages take longest, so they come first: at the end, no processor waits
    for the other one. Tests in images use all processors themselves.
    """
    images = [_Image(request) for request in requested]
    return [
        *_here(_RESULTS / "host.xml", ["--allow-drift"]),
        *(
            CheckPart(f"e2e {image.title}", image.e2e, image.junit("e2e"), beside=True, about=_E2E)
            for image in sorted(images, key=lambda image: -len(image.target.debs))
        ),
        CheckPart("published IDs", partial(_published, requested), about="images and parts have the published bytes"),
        *_suites_in_images(images),
    ]


def _published(requested: Sequence[Request], line: Line) -> None:
    """Compare the images and their parts with the published IDs, as far as these are of the same inputs.

    Raises:
        CheckError: some are different.
    """
    published = expected.load()
    images, others, parts, wrong = 0, 0, 0, []
    for request in requested:
        try:
            engine, image = ensure.ensure_image(request)
            compared = expected.check_image(published, engine, image, request.target, request.release.version)
            images, others = images + compared, others + (not compared)
            parts += expected.check_parts(published, request.store(), request.target, request.release)
        except (ImageError, PartError) as error:
            wrong.append(str(error))
    line(f"equal to their published IDs: {images} images and {parts} parts of images")
    if others:
        line(f"not compared, because what was published has other inputs: {others}; to publish: {expected.UPDATE}")
    if wrong:
        raise CheckError("what was built is not what was published", why="\n".join(wrong))


def _here(junit: Path, options: Sequence[str]) -> list[CheckPart]:
    """Return the parts that run on this machine.

    Args:
        junit: the file for the results of pytest.
        options: further options of pytest.
    """
    words = [*_PYTEST, *each_within(_HERE), *options, f"--junitxml={junit}"]
    return [
        *(
            CheckPart(title, run, beside=True, about=about)
            for title, run, about in (
                ("ruff check", partial(_tool, ["ruff", "check", "."]), "the rules for Python code"),
                ("ruff format", partial(_tool, ["ruff", "format", "--check", "."]), "the form of Python code"),
                (
                    "import-linter",
                    partial(_python, "lint-imports", ["-m", "toolchains.testing.import_layers"]),
                    "who imports whom",
                ),
                ("mypy", partial(_python, "mypy", ["-m", "toolchains.testing.type_checks"]), "types"),
            )
        ),
        CheckPart("tests/ on this machine", partial(_tool, words), junit, True, "Foundry itself and the lowering"),
    ]


def each_within(seconds: int) -> list[str]:
    """Return the options of pytest for tests that may hang.

    A process whose test takes longer prints the stacks of its threads and ends: the test has failed.
    """
    return ["-o", f"faulthandler_timeout={seconds}", "-o", "faulthandler_exit_on_timeout=true"]


def _suites_in_images(images: Sequence[_Image]) -> Iterator[CheckPart]:
    targets = list({image.target.name: image.target for image in images}.values())
    chosen = choose_runs(targets)
    language = {_LANGUAGE: conformance.SUITE}
    core = {"core": paths.BACKENDS / "core" / "tests"} | language
    first_with_pocl = next(((target.name, target.default_triton) for target in targets if _runs_on_pocl(target)), None)
    for image in images:
        name, release = image.target.name, image.release
        if (name, release) in chosen:
            folders = test_folders(image.target, release, recipes=own_recipes(image.target, targets)) | language
            title = f"tests of {', '.join(folders)} in the image of {image.title}"
            first = (name, release) == chosen[0]
            has_all = first_with_pocl == (name, release)
            without = _repeated(image, targets, first=first)
            # They run on the same device, and spirv's lowering is what vsi's compiler runs, too.
            peers = components.target(name).peers
            repeats = any((peer, release) in chosen for peer in peers)
            own_mapping = not peers and release == image.target.default_triton
            values = "all" if has_all else "few" if repeats else "mapping" if own_mapping else "some"
            inside = partial(image.tests, folders, without=without, values=values)
            yield CheckPart(title, inside, image.junit("backends"), about="the compiler, and values of the language")
            if has_all:
                for processor in _PROCESSORS:
                    title = f"tests of library functions in the image of {image.title}, as processor {processor}"
                    junit = image.junit(f"backends-{processor}")
                    yield CheckPart(title, partial(image.tests, core, processor=processor), junit)


def _runs_on_pocl(target: LockedTarget) -> bool:
    """Return whether all tests run in a target's image, and on PoCL."""
    return any(deb.name == _POCL for deb in target.debs) and not components.target(target.name).tests


def chosen_paths(target: LockedTarget, folders: Mapping[str, Path]) -> list[str]:
    """Return what pytest runs in a target's image: everything, or what the target's file names, and recipes' tests.

    Args:
        folders: see test_folders.

    Raises:
        PinError: a file that the target names does not exist.
    """
    named = components.target(target.name).tests
    if not named:
        return [_INSIDE]
    plugins = [name for name in folders if name not in target.recipes]
    chosen = [test for test in named if test.partition("/")[0] in plugins]
    for test in chosen:
        plugin, _, inner = test.partition("/")
        if not (folders[plugin] / inner).exists():
            raise PinError(
                f"there is no {folders[plugin] / inner}", next=f"correct tests in toolchains/targets/{target.name}.toml"
            )
    return [f"{_INSIDE}/{name}" for name in (*chosen, *(name for name in folders if name in target.recipes))]


def _repeated(image: _Image, targets: Sequence[LockedTarget], *, first: bool) -> list[str]:
    """Return the marks of tests that already run in another image: the first image, or the first one of the backend.

    Where a target's file names the tests, all of them run.
    """
    if components.target(image.target.name).tests:
        return []
    of_backend = next(target for target in targets if target.backend == image.target.backend)
    own = (image.target.name, image.release) == (of_backend.name, of_backend.default_triton)
    return ["anywhere"] * (not first) + ["any_release"] * (not own)


def choose_runs(targets: Sequence[LockedTarget]) -> list[tuple[str, str]]:
    """Return the targets and releases of Triton whose images run tests, chosen from all that these targets have.

    A test's result depends on a target's mapping and tools, and on how a release writes its IR, but not on both at
    once. So tests run for each target with its default release, and for each other release with one target: the one
    with the fewest native parts, where kernels run soonest. e2e runs with every release of every target.
    """
    chosen = [(target.name, target.default_triton) for target in targets]
    for release in sorted({release for target in targets for release in target.tritons}):
        having = [target for target in targets if release in target.tritons]
        if not any((target.name, release) in chosen for target in having):
            chosen.append((min(having, key=lambda target: len(target.recipes)).name, release))
    return chosen


def own_recipes(target: LockedTarget, targets: Sequence[LockedTarget]) -> list[str]:
    """Return the recipes whose tests run in a target's image; those of several targets run in the first one's."""
    before = {recipe for other in targets[: targets.index(target)] for recipe in other.recipes}
    return [recipe for recipe in target.recipes if recipe not in before]


def test_folders(target: LockedTarget, release: str, *, recipes: Sequence[str] | None = None) -> dict[str, Path]:
    """Return the folders with tests for a target's image, without those of other backends, which need their own image.

    A plugin that is another target's backend is tested in that target's image, also if this target's plugin depends on
    it. Recipes do not depend on Triton, so their tests run only in the image of the default release. The whole
    folder with a recipe's sources is included, because its tests use headers and tables of the sources.

    Args:
        recipes: the target's recipes whose tests are included; all if not given.
    """
    others = {components.target(name).backend for name in components.names()} - {target.backend}
    plugins = [name for name in target_image.plugins(target) if name not in others]
    own = {name: paths.BACKENDS / name / "tests" for name in plugins}
    if release == target.default_triton:
        own |= {name: native.source_folder(name) for name in (target.recipes if recipes is None else recipes)}
    return {name: folder for name, folder in own.items() if folder.is_dir()}


@dataclass(frozen=True)
class _Image:
    """A target's image with a release of Triton, and the checks that run in it."""

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
        # Remove old results, so that only results of this run are counted.
        shutil.rmtree(results, ignore_errors=True)
        # Parts that a user built from source on this machine are not tested.
        verb = ["-P", "-m", "invoke", "--search-root", str(paths.ROOT), "e2e", self.target.name, *self.request.options]
        sdk = VendorSdk.read(self.target.sdk).environment if self.request.given else {}
        try:
            _python(f"e2e-{self.target.name}-{self.release}", [*verb, "--from-source=none"], line, more=tuple(sdk))
        finally:
            if (results / "junit.xml").is_file():
                shutil.copy(results / "junit.xml", self.junit("e2e"))

    def tests(
        self,
        folders: Mapping[str, Path],
        line: Line,
        *,
        without: Sequence[str] = (),
        processor: str = "",
        values: str = "all",
        what: str = "backends",
        chosen: Sequence[str] = (),
    ) -> None:
        """Run tests in the image with this machine's pytest, because the image itself does not need one.

        The first line of output names the device.

        Args:
            folders: folders with tests, see test_folders.
            without: marks of tests that are not run.
            processor: one of _PROCESSORS, to run the tests with the mark every_cpu as that processor.
            values: which cases of the language's values run, see conformance/listed.py.
            what: how the name of the file with the results begins.
            chosen: what pytest runs there; see chosen_paths if not given.
        """
        marked = _EVERY_CPU if processor else " and ".join(f"not {mark}" for mark in without)
        # Tests may import modules next to them.
        env = {"PYTHONPATH": ":".join(f"{_INSIDE}/{name}" for name in ("pytest", *folders))}
        env |= {planned.VARIABLE: _PLANNED, _VALUES: values} | ({_PROCESSOR: processor} if processor else {})
        junit = self.junit(f"{what}-{processor}" if processor else what)
        engine, image = ensure.ensure_image(self.request)
        places = container_files.writable_folders(self.target)
        with (
            TemporaryDirectory(dir=paths.scratch()) as work,
            engine.sandbox(image.info.id, folders=places, seconds=_SECONDS) as container,
        ):
            line(f"limits: {container.limits}")
            for name in ("pytest-xdist", "hypothesis"):
                proof.copy_distribution(name, Path(work))
            for file in (Path(planned.__file__), *(paths.ROOT / name for name in _LISTED_FILES)):
                shutil.copy(file, work)
            container.copy_into(Path(work), f"{_INSIDE}/pytest")
            for name, folder in folders.items():
                container.copy_into(folder, f"{_INSIDE}/{name}")
            container_files.copy_user_folders(container, self.target)
            container.run(["python", "-c", _DEVICE], env=env, cwd="/tmp", line=line)
            paths_inside = chosen or chosen_paths(self.target, folders)
            done = container.run(
                ["python", "-m", "pytest", *_IN_CONTAINER, *each_within(_IN_IMAGE), "-m", marked, *paths_inside],
                env=env,
                cwd="/tmp",
                line=line,
            )
            killed = container.oom_killed()
            for name, file in ((f"{_INSIDE}/junit.xml", junit), (_PLANNED, Path(work, "planned.txt"))):
                # A missing file is reported as an error below.
                with suppress(EngineError):
                    container.copy_out(name, file, _LARGEST, only="file")
            wrong = incomplete(Path(work, "planned.txt"), junit)
        if killed:
            wrong = [f"a process was killed for lack of memory: {container.limits}", *wrong]
        if done.status != 0:
            what = f"pytest in the image of {self.title} ended with status {done.status}"
            raise CommandError(what, why="\n".join(wrong), next=self.request.command("shell"))
        if wrong:
            raise CommandError(f"the tests in the image of {self.title} are not all done", why="\n".join(wrong))


class _Event(TypedDict):
    """A line of the file that planned.py writes."""

    plan: NotRequired[list[str]]
    ended: NotRequired[str]


def incomplete(planned_file: Path, junit: Path) -> list[str]:
    """Return what is missing in a run of tests in an image: tests that did not end, or the results.

    Args:
        planned_file: the file that planned.py wrote.
        junit: the file that pytest wrote.
    """
    try:
        events = [json_text.parse(line, _Event) for line in planned_file.read_text().splitlines()]
    except (OSError, ValueError) as error:
        return [f"pytest ended before it knew its tests: {error}"]
    tests = next((event["plan"] for event in events if "plan" in event), [])
    if not tests:
        return ["pytest ended before it knew its tests: no test was collected"]
    ended = {event["ended"] for event in events if "ended" in event}
    missing = [test for test in tests if test not in ended]
    counted = Count()
    counted.add(junit)
    reported = counted.passed + counted.failed + counted.errors + counted.skipped
    wrong = [f"{len(missing)} of {len(tests)} tests did not end, the first of them is {missing[0]}"] if missing else []
    return wrong + ([f"the results have {reported} tests, {len(tests)} were to run"] if reported < len(tests) else [])


def _tool(words: Sequence[str], line: Line) -> None:
    _python(words[0], ["-m", *words], line)


def _python(log: str, words: Sequence[str], line: Line, more: Sequence[str] = ()) -> None:
    passed = {key: value for key, value in os.environ.items() if key.startswith(_PASSED) or key in more}
    try:
        run([sys.executable, *words], log=f"test-{log}", cwd=paths.ROOT, env=passed, network=True, line=line)
    except CommandError as error:
        # Its last lines were passed on.
        raise CommandError(f"{log} failed", next=error.next) from None
