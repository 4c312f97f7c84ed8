"""Triton compiled from source: a made-up Triton with a made-up LLVM, all steps, and how the wheel is changed.

The made-up Triton's setup.py reads what the real one reads, and fails where the real one would fetch something. The
real Triton was not compiled, because its repository and LLVM's could not be reached where these tests were written.
"""

from __future__ import annotations

import io
import shutil
import tarfile
import uuid
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import patch_series
import pytest
from made_up_triton import LLVM, library
from repositories import Repository
from tiny import empty_store

from toolchains.artifacts import triton_wheel
from toolchains.config.projects import FolderPin, Profile, Upstream
from toolchains.engine.client import Engine
from toolchains.fetch.store import Store
from toolchains.fromsource import build, compiled_triton, tree
from toolchains.fromsource.build import Built, Wanted
from toolchains.lockfile import lock
from toolchains.lockfile.lock import Artifact, LockedTarget, LockedTriton
from toolchains.patching.layout import FolderTree
from toolchains.system import paths
from toolchains.system.errors import LlvmHashError, PinError

TOYS = Path(__file__).parents[1] / "toys"
RELEASE = LockedTriton("1.0.0", "f" * 40, Artifact("wheel", "triton", "1.0.0", "triton.whl", 1, "0" * 64))


@dataclass
class Trees:
    """Checkouts of the made-up LLVM and Triton, to be edited."""

    llvm: Repository
    triton: Repository
    builder: LockedTarget

    def wanted(self, patches: str = "triton/1.0.0") -> Wanted:
        """Return the description of a build of both."""
        commit = self.llvm.git("rev-parse", "HEAD")
        llvm = self._wanted(self.llvm.folder, Profile("triton-1.0.0", "1.2.3git", FolderPin(), take=("llvm",)))
        triton = Profile("1.0.0", "1.0.0", FolderPin(), patches=patches, llvm_hash=commit)
        made = self._wanted(self.triton.folder, triton)
        return replace(made, settings={"llvm": "1.2.3git"}, requires=(llvm,))

    def _wanted(self, folder: Path, profile: Profile) -> Wanted:
        described = tree.describe_tree(folder.name, profile, None, folder=folder)
        upstream = Upstream(folder.name, profile.name, {profile.name: profile}, 0.01)
        return Wanted(upstream, profile, described, None, folder, self.builder)


@pytest.fixture
def trees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trees:
    """Check out both, with a series of one patch, which adds a line."""
    patch = patch_series.hello("python/triton/__init__.py", "__version__ = '1.0.0'")
    source = FolderTree(TOYS / "triton-source", "source")
    patch_series.for_triton(tmp_path, monkeypatch, "1.0.0", patch, source)
    llvm, made = Repository(tmp_path / "llvm"), Repository(tmp_path / "triton")
    shutil.copytree(TOYS / "llvm-source", llvm.folder, dirs_exist_ok=True)
    shutil.copytree(TOYS / "triton-source", made.folder, dirs_exist_ok=True)
    made.commit({"cmake/llvm-hash.txt": llvm.commit()})
    return Trees(llvm, made, lock.load().builders["bookworm"])


@pytest.mark.docker
def test_a_wheel_comes_out_with_the_patches_the_plugin_and_the_llvm_that_it_was_given(
    trees: Trees, compilers: tuple[Engine, LockedTarget], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, trees.builder = compilers
    monkeypatch.setattr(build, "CCACHE_VOLUME", f"foundry-test-ccache-{uuid.uuid4().hex[:8]}")
    trees.triton.commit({"plugins/mine/backend/name.conf": "mine\n", "plugins/mine/backend/__init__.py": "a = 1\n"})
    store, want = empty_store(tmp_path / "store"), trees.wanted()
    try:
        made = build.ensure_built(want, jobs=1, store=store, engine=engine)
    finally:
        for volume in (want.volume, want.requires[0].volume, build.CCACHE_VOLUME):
            engine.remove_volume(volume)
    with tarfile.open(made.path) as part:
        (inside,) = part.getnames()
    assert inside.startswith("wheel/triton-1.0.0-")
    result = compiled_triton.make_wheel(RELEASE, want, made, store)
    assert result.name.startswith("triton-1.0.0+foundry.1-cp311-cp311-")
    with zipfile.ZipFile(result) as archive:
        names = set(archive.namelist())
        assert archive.read("triton/__init__.py") == b"__version__ = '1.0.0+foundry.1'\nhello = 2\n"
        assert archive.read("triton/backends/mine/__init__.py") == b"a = 1\n"
        points = archive.read("triton-1.0.0+foundry.1.dist-info/entry_points.txt").decode()
        library = archive.read("triton/_C/libtriton.so")
    assert not [name for name in names if "nvidia" in name]
    assert "mine = triton.backends.mine" in points and "nvidia" not in points
    assert triton_wheel.llvm_hash(io.BytesIO(library)) == trees.llvm.git("rev-parse", "HEAD")


# The tests below need no compilers: the wheel is assembled from files.

Part = Callable[..., tuple[Wanted, Built]]


@pytest.fixture
def part(trees: Trees, tmp_path: Path) -> Part:
    """Return a function that makes the part of a Triton that was linked with an LLVM, and the request for it."""

    def make(*, given: str = LLVM, linked: str = LLVM, version: str = "1.0.0") -> tuple[Wanted, Built]:
        info = f"triton-{version}.dist-info"
        files = {
            "triton/__init__.py": f"__version__ = '{version}'\n".encode(),
            "triton/backends/__init__.py": b"",
            "triton/backends/amd/__init__.py": b"",
            "triton/backends/nvidia/bin/ptxas": b"tool",
            "triton/backends/mine/__init__.py": b"",
            "triton/_C/libproton.so": b"profiler",
            "triton/_C/libtriton.so": library(linked),
            f"{info}/METADATA": f"Metadata-Version: 2.4\nName: triton\nVersion: {version}\n".encode(),
            f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: setuptools\nTag: cp313-cp313-linux_x86_64\n",
            f"{info}/entry_points.txt": b"[triton.backends]\namd = triton.backends.amd\nmine = triton.backends.mine\n",
            f"{info}/RECORD": b"",
        }
        file = tmp_path / f"triton-{version}-cp313-cp313-linux_x86_64.whl"
        with zipfile.ZipFile(file, "w") as archive:
            for name, content in files.items():
                archive.writestr(name, content)
        with tarfile.open(tmp_path / "triton.tar", "w") as tar:
            tar.add(file, f"wheel/{file.name}")
        want = trees.wanted()
        llvm = replace(want.requires[0], source=replace(want.requires[0].source, commit=given))
        want = replace(want, requires=(llvm,))
        return want, Built("triton", tmp_path / "triton.tar", tmp_path / "triton.tgz", want.identity, True)

    return make


def test_it_is_made_like_the_official_one(part: Part, store: Store) -> None:
    result = compiled_triton.make_wheel(RELEASE, *part(), store)
    assert result.name == "triton-1.0.0+foundry.1-cp313-cp313-linux_x86_64.whl"
    info = "triton-1.0.0+foundry.1.dist-info"
    with zipfile.ZipFile(result) as archive:
        assert archive.namelist() == [
            f"{info}/METADATA",
            f"{info}/WHEEL",
            f"{info}/entry_points.txt",
            "triton/_C/libtriton.so",
            "triton/__init__.py",
            "triton/backends/__init__.py",
            "triton/backends/mine/__init__.py",
            f"{info}/sboms/triton.cdx.json",
            f"{info}/sboms/triton.spdx.json",
            f"{info}/RECORD",
        ]
        assert archive.read("triton/__init__.py") == b"__version__ = '1.0.0+foundry.1'\n"
        assert archive.read(f"{info}/entry_points.txt").strip() == b"[triton.backends]\nmine = triton.backends.mine"
        assert LLVM.encode() not in archive.read("triton/_C/libtriton.so"), "it was not stripped"
    want, built = part()
    built.path.unlink()
    assert compiled_triton.make_wheel(RELEASE, want, built, store) == result, "it was made twice"


def test_another_llvm_than_given_is_refused(part: Part, store: Store) -> None:
    with pytest.raises(LlvmHashError) as caught:
        compiled_triton.make_wheel(RELEASE, *part(linked="a" * 40), store)
    assert "a" * 40 in caught.value.why and LLVM in caught.value.why
    assert not list(store.root.rglob("*.whl"))


def test_an_llvm_without_a_commit_cannot_be_compared(part: Part, store: Store) -> None:
    want, built = part(given="folder-0123", linked="folder-0123")
    assert compiled_triton.make_wheel(RELEASE, want, built, store).is_file()


def test_sources_of_another_version_are_refused(part: Part, store: Store) -> None:
    with pytest.raises(PinError, match=r"triton-2\.0-.* and the image has Triton 1\.0\.0"):
        compiled_triton.make_wheel(RELEASE, *part(version="2.0"), store)


def test_unpatched_sources_get_no_release(part: Part, trees: Trees, store: Store) -> None:
    _, built = part()
    with pytest.raises(PinError, match="not patched as Triton") as caught:
        compiled_triton.make_wheel(RELEASE, trees.wanted(patches=""), built, store)
    assert "its patches: none; those of the release: triton/1.0.0" in caught.value.why


def test_sources_and_slimming_rules_change_the_identity_of_the_wheel(trees: Trees) -> None:
    first = trees.wanted()
    before = compiled_triton.identity(RELEASE, first)
    trees.triton.commit({"lib/triton.cpp": "\n"})
    assert compiled_triton.identity(RELEASE, trees.wanted()) != before
    rules = paths.PATCHES / "triton" / "slim.toml"
    rules.write_text(rules.read_text() + "\n")
    assert compiled_triton.identity(RELEASE, first) != before
