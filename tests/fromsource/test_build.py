"""Build a part from a commit of a git repository: all steps, with a small project."""

from __future__ import annotations

import json
import shutil
import subprocess
import tarfile
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import patch_series
import pytest
from fakes import NO_ENGINE
from repositories import Repository, mirror
from tiny import empty_store

from toolchains.config.projects import GitPin, Profile, Upstream
from toolchains.engine.client import Engine
from toolchains.fetch.store import Store
from toolchains.fromsource import build, progress, tree
from toolchains.fromsource.build import Built, Wanted
from toolchains.lockfile import lock
from toolchains.lockfile.lock import LockedSource, LockedTarget
from toolchains.system import paths
from toolchains.system.errors import CommandError, LlvmHashError, PatchError

TOYS = Path(__file__).parents[1] / "toys" / "upstream"
PATCH = """\
Subject: Say what is ours
Why: a test wants to see it
Upstream: no
Until: never

--- a/word.cpp
+++ b/word.cpp
@@ -1 +1 @@
-const char *word() { return "as upstream has it"; }
+const char *word() { return "as it was patched"; }
"""
HASH = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class Toy:
    """The project's repository, our patches, recipe and preset, to be edited; a separate store and ccache."""

    root: Path
    repository: Repository
    store: Store
    builder: LockedTarget

    def wanted(self, **profile: Any) -> Wanted:
        """Return the description of a build of the current commit."""
        commit, files = (self.repository.git("rev-parse", name) for name in ("HEAD", "HEAD^{tree}"))
        pin = GitPin((self.repository.url,), commit, tree=files)
        chosen = Profile("head", "1.0", pin, patches="toy/1.0", **profile)
        locked = LockedSource("git", commit=commit, tree=pin.tree, pin=pin.wanted)
        described = tree.describe_tree("toy", chosen, locked, folder=None)
        return Wanted(Upstream("toy", "head", {"head": chosen}, 0.01), chosen, described, locked, None, self.builder)

    @property
    def patch(self) -> Path:
        return self.root / "patches" / "toy" / "1.0" / "0001-word.patch"


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Toy:
    shutil.copytree(paths.CMAKE, tmp_path / "cmake")
    presets = json.loads((tmp_path / "cmake" / "CMakePresets.json").read_text())
    presets["configurePresets"].append({"name": "toy", "inherits": "upstream"})
    (tmp_path / "cmake" / "CMakePresets.json").write_text(json.dumps(presets))
    (tmp_path / "recipes").mkdir()
    shutil.copytree(TOYS / "recipe", tmp_path / "recipes" / "toy")
    shutil.copytree(paths.RECIPES / "upstream", tmp_path / "recipes" / "upstream")
    for name in ("cmake", "recipes", "patches"):
        monkeypatch.setattr(paths, name.upper(), tmp_path / name)
    repository = Repository(tmp_path / "toy")
    files = {path.name: path.read_bytes() for path in (TOYS / "source").iterdir()}
    # Two test runs may share an engine. Their builds must have different identities, and so different volumes.
    repository.commit(files | {"run": uuid.uuid4().bytes})
    mirror(tmp_path, monkeypatch)
    made = Toy(tmp_path, repository, empty_store(tmp_path / "store"), lock.load().builders["bookworm"])
    patch_series.write(made.patch.parent, {made.patch.name: PATCH})
    return made


@pytest.fixture
def make(
    toy: Toy, compilers: tuple[Engine, LockedTarget], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Built]]:
    """Return a function that builds. Its compiler cache is in a volume that is removed afterwards."""
    engine, toy.builder = compilers
    monkeypatch.setattr(build, "CCACHE_VOLUME", f"foundry-test-ccache-{uuid.uuid4().hex[:8]}")
    volumes = set()

    def made(want: Wanted, compiler_cache: str = "") -> Built:
        volumes.update({want.volume, build.CCACHE_VOLUME})
        return build.ensure_built(want, jobs=1, compiler_cache=compiler_cache, store=toy.store, engine=engine)

    yield made
    for volume in volumes:
        engine.remove_volume(volume)


def said(part: Built, tmp_path: Path) -> str:
    """Return what the part's program prints. It was linked on the oldest suite, so it runs on this machine, too."""
    with tarfile.open(part.path) as tar:
        assert tar.getnames() == ["bin/say"]
        tar.extract("bin/say", tmp_path, filter="data")
    return subprocess.run([tmp_path / "bin" / "say"], check=True, capture_output=True, text=True).stdout


def counted(part: Built) -> tuple[int, int]:
    """Return ccache's hits and misses. CMake causes two of the compilations, one for each compiler."""
    kept = json.loads((part.path.parent / "timings.json").read_text())
    return kept["ccache-hits"], kept["ccache-misses"]


class Storage(BaseHTTPRequestHandler):
    """A web server that keeps uploads, as ccache needs for a remote storage over HTTP."""

    protocol_version = "HTTP/1.1"
    kept: ClassVar[dict[str, bytes]] = {}

    def do_GET(self) -> None:
        self._answer(200 if self.path in self.kept else 404, self.kept.get(self.path, b""))

    def do_PUT(self) -> None:
        self.kept[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(201, b"")

    def _answer(self, status: int, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.mark.docker
def test_a_commit_becomes_a_patched_part_and_only_what_neither_compiler_cache_has_is_compiled_again(
    toy: Toy, make: Callable[..., Built], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The engine is on this machine. Its containers share the machine's network."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Storage) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        first = make(toy.wanted(), url)
        assert first.made and first.conan.is_file()
        assert said(first, tmp_path) == "as it was patched\n"
        assert counted(first) == (0, 4)
        # The part exists: no engine, no compiler, no fetch is needed.
        again = build.ensure_built(toy.wanted(), store=toy.store, engine=NO_ENGINE)
        assert again == replace(first, made=False)
        # Another machine's store and local cache are empty. It has the compiler cache that both name.
        toy.store = empty_store(tmp_path / "other")
        with monkeypatch.context() as elsewhere:
            elsewhere.setattr(build, "CCACHE_VOLUME", f"{build.CCACHE_VOLUME}-other")
            other = make(toy.wanted(), url)
        server.shutdown()
    assert Storage.kept
    assert counted(other) == (4, 0)
    assert other.path.read_bytes() == first.path.read_bytes()
    # On the first machine, with its local cache alone.
    toy.patch.write_text(PATCH.replace("as it was patched", "as it was patched again"))
    changed = make(toy.wanted())
    assert changed.identity != first.identity
    assert counted(changed) == (3, 1)
    assert said(changed, tmp_path) == "as it was patched again\n"


@pytest.mark.docker
def test_a_killed_build_goes_on_where_it_was(
    toy: Toy, make: Callable[[Wanted], Built], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Without ccache: what is not compiled again must have been in the build folder.
    monkeypatch.setattr(build, "_ENVIRONMENT", build._ENVIRONMENT | {"CCACHE_DISABLE": "1"})
    log = paths.LOGS / "upstream-toy.log"
    seen = progress.Watcher.line

    def killed(self: progress.Watcher, text: str) -> None:
        seen(self, text)
        if text.startswith("[1/"):
            raise KeyboardInterrupt

    with monkeypatch.context() as interrupted, pytest.raises(KeyboardInterrupt):
        interrupted.setattr(progress.Watcher, "line", killed)
        make(toy.wanted())
    (begun,) = {line.split()[-1] for line in log.read_text().splitlines() if line.startswith("[1/")}
    assert not toy.store.has_part("upstream", toy.wanted().identity)
    assert said(make(toy.wanted()), tmp_path) == "as it was patched\n"
    assert begun.endswith(".cpp.o")
    assert begun not in log.read_text()


@pytest.mark.docker
def test_compiler_error_appears_in_the_message(toy: Toy, make: Callable[[Wanted], Built]) -> None:
    toy.patch.write_text(PATCH.replace('return "as it was patched"', "return nothing"))
    with pytest.raises(CommandError, match=r"toy/1\.0 could not be built") as caught:
        make(toy.wanted())
    assert "word.cpp:1:29: error: use of undeclared identifier 'nothing'" in caught.value.why
    assert "upstream-toy.log" in caught.value.why
    assert not toy.store.has_part("upstream", toy.wanted().identity)


def test_a_tree_that_asks_for_another_llvm_is_refused_before_anything_is_built(toy: Toy) -> None:
    toy.repository.commit({"cmake/llvm-hash.txt": HASH + "\n"})
    other = HASH[::-1]
    with pytest.raises(LlvmHashError) as caught:
        build.ensure_built(toy.wanted(llvm_hash=other), store=toy.store, engine=NO_ENGINE)
    assert HASH in str(caught.value) and other in str(caught.value)
    # The right commit is accepted, and then the engine is needed.
    with pytest.raises(AssertionError, match="the engine was asked"):
        build.ensure_built(toy.wanted(llvm_hash=HASH), store=toy.store, engine=NO_ENGINE)


def test_a_patch_that_does_not_fit_is_refused_before_anything_is_built(toy: Toy) -> None:
    toy.repository.commit({"word.cpp": "const char *word() { return 0; }\n"})
    with pytest.raises(PatchError, match=r"0001-word\.patch, hunk 1 of word\.cpp does not fit"):
        build.ensure_built(toy.wanted(), store=toy.store, engine=NO_ENGINE)


BUILT_BY = ("recipes/toy/conanfile.py", "recipes/upstream/conanfile.py", "cmake/upstream.cmake")


@pytest.mark.parametrize("file", [*BUILT_BY, "cmake/upstream.profile", "cmake/reproducible.cmake"])
def test_an_edit_in_what_it_is_built_by_changes_the_name(toy: Toy, file: str) -> None:
    before = toy.wanted().identity
    path = toy.root / file
    path.write_text(path.read_text() + "\n# edited\n")
    assert toy.wanted().identity != before


def test_an_edit_in_another_projects_preset_builds_nothing_again(toy: Toy) -> None:
    file = toy.root / "cmake" / "CMakePresets.json"
    before, presets = toy.wanted().identity, json.loads(file.read_text())
    by_name = {each["name"]: each for each in presets["configurePresets"]}
    by_name["pocl"]["cacheVariables"]["ENABLE_ICD"] = "OFF"
    file.write_text(json.dumps(presets))
    assert toy.wanted().identity == before
    by_name["upstream"]["cacheVariables"]["CMAKE_BUILD_TYPE"] = "Debug"
    file.write_text(json.dumps(presets))
    assert toy.wanted().identity != before


def test_packages_of_the_builder_and_patches_are_part_of_the_name(toy: Toy) -> None:
    want = toy.wanted()
    other, before = replace(want, builder=replace(want.builder, debs=want.builder.debs[1:])), want.identity
    assert other.options["image"] != want.options["image"]
    assert other.identity != before
    toy.patch.write_text(PATCH.replace("Why: a", "Why: some"))
    assert toy.wanted().identity != before
