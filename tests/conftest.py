"""Fixtures that tests share, created once per session or module: a target's images, a made-up suite's libraries."""

from __future__ import annotations

import functools
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import elves
import made_up_triton
import patch_series
import pytest
from archive_files import DebianArchive, Index
from tiny import tiny_image

from toolchains.artifacts import native
from toolchains.assembly import ensure
from toolchains.assembly.request import Request
from toolchains.engine import client, host
from toolchains.engine.client import Engine
from toolchains.engine.container import Container
from toolchains.fetch.store import Store
from toolchains.lockfile import lock
from toolchains.lockfile.lock import LockedTarget
from toolchains.patching.layout import WheelTree
from toolchains.system import paths
from toolchains.system.errors import MissingToolError

# Tests that must fail; tests/testing/test_conformance.py runs them.
collect_ignore = ["toys"]
# The files that take minutes. The first of them build images that no other part of `./foundry test` builds, while e2e
# builds those that other files use: who waits for an image that is being built leaves a processor idle.
_LONGEST = (
    "test_build.py",
    "test_examples.py",
    "test_dpu_dev.py",
    "test_fuzz.py",
    "test_faults.py",
    "test_remote.py",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--allow-drift", action="store_true", help="take current versions of packages that are gone")


def pytest_configure(config: pytest.Config) -> None:
    # pytest-xdist hands out files in their order instead of those with the most tests first.
    config.option.loadscopereorder = False
    # A shell that starts a run in the background lets it ignore Ctrl-C, and so all that the tests start.
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # hypothesis would write into the checkout.
    os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(paths.BUILD / "hypothesis"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first, then those that use containers or a network: at the end, one process would wait."""
    first = {item.path for item in items if any(map(item.get_closest_marker, ("docker", "network")))}
    longest = {name: place for place, name in enumerate(_LONGEST)}
    items.sort(key=lambda item: (longest.get(item.path.name, len(longest)), item.path not in first))


@pytest.fixture(scope="session", autouse=True)
def _records_of_the_users_images_stay() -> Iterator[None]:
    """Fail if a test removed one: the images would be made again, which takes minutes."""
    images = paths.cache() / "images"
    before = {place.name for place in images.glob("*.json")}
    yield
    removed = before - {place.name for place in images.glob("*.json")}
    assert not removed, f"tests removed the records of these images: {sorted(removed)}"


@pytest.fixture(scope="module")
def docker() -> Engine:
    """Return the engine."""
    return client.connect()


@pytest.fixture(scope="module")
def tiny(docker: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the name of an image of a few megabytes, which exists for one module's tests."""
    with tiny_image(docker, tmp_path_factory.mktemp("tiny")) as name:
        yield name


@pytest.fixture(scope="session")
def installed() -> Callable[[str, str], str]:
    """Return a function that finds a program, given its name and its purpose; in CI, it installs it, or fails."""

    def path(name: str, purpose: str) -> str:
        try:
            return host.ensure_program(name, purpose)
        except MissingToolError as error:
            if os.environ.get("CI") == "true":
                raise
            pytest.skip(str(error))

    return path


@pytest.fixture(scope="session")
def builder(request: pytest.FixtureRequest) -> tuple[Engine, LockedTarget]:
    """Return the engine, after building the image for native parts, and what that image was built from."""
    docker = host.ensure_engine()
    store = Store(paths.cache(), allow_drift=request.config.getoption("--allow-drift"))
    locked = lock.load().targets["dpu"].builder
    assert locked is not None
    used = native.fetch_builder(locked, store)
    native.ensure_builder(used, store=store, engine=docker)
    return docker, used


@pytest.fixture(scope="session")
def compilers(request: pytest.FixtureRequest) -> tuple[Engine, LockedTarget]:
    """Return the engine, after building the image for upstream's projects, and what that image was built from."""
    docker = host.ensure_engine()
    store = Store(paths.cache(), allow_drift=request.config.getoption("--allow-drift"))
    used = native.fetch_builder(lock.load().builders["bookworm"], store)
    native.ensure_builder(used, store=store, engine=docker)
    return docker, used


@pytest.fixture(scope="session")
def container(request: pytest.FixtureRequest) -> Callable[[str], Container]:
    """Return a function that gives a container of the spirv image with a release of Triton, for a with statement."""

    @functools.cache
    def image(release: str) -> tuple[Engine, str]:
        drift = request.config.getoption("--allow-drift")
        engine, made = ensure.ensure_image(Request.read("spirv", triton=release, allow_drift=drift))
        return engine, made.name

    def make(release: str) -> Container:
        engine, name = image(release)
        return engine.container(name)

    return make


@pytest.fixture(scope="session")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> elves.Runtime:
    """Return the libraries of a made-up Debian suite, to compare SDKs with."""
    return elves.runtime(tmp_path_factory.mktemp("runtime"))


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Index:
    """Return an empty Python index, which pip uses."""
    return Index(tmp_path / "index", monkeypatch)


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the wheel of the made-up Triton, with a series of one patch and the project's rules of what is left out."""
    wheel = made_up_triton.make(tmp_path / "in", made_up_triton.FILES)
    patch_series.for_triton(tmp_path, monkeypatch, "1.0", made_up_triton.PATCH, WheelTree(wheel))
    return wheel


@pytest.fixture
def archive(tmp_path: Path) -> DebianArchive:
    """Return an empty Debian archive."""
    return DebianArchive(tmp_path / "archive")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Return an empty store."""
    return Store(tmp_path / "store")


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield the path where DOCKER_HOST looks for a socket. It is short enough for a socket."""
    with TemporaryDirectory(dir="/tmp") as folder:
        path = Path(folder, "s")
        monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
        for name in ("DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setattr(client, "_PATIENCE", (1, 2))
        yield path
