"""The verb patch: edits of the unpacked wheel become a patch, and a conflict has an exit status."""

from __future__ import annotations

import hashlib
import re
import zipfile
from pathlib import Path

import patch_series
import pytest

from toolchains.fetch.store import Store
from toolchains.lockfile import lock
from toolchains.lockfile.lock import Artifact, Lock, LockedTarget, LockedTriton
from toolchains.system import paths
from toolchains.system.errors import HunkError, UsageError
from toolchains.verbs import patch

KNOBS = "first = 1\nsecond = 2\nthird = 3\n"
PATCH = """\
Subject: Say hello
Why: to see it
Upstream: none
Until: never

--- a/python/triton/knobs.py
+++ b/python/triton/knobs.py
@@ -1,3 +1,4 @@
 first = 1
+hello = 1
 second = 2
 third = 3
"""


@pytest.fixture
def series(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make release 1.0, whose wheel is in the store, and a series of one patch for it."""
    wheel = tmp_path / "triton-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("triton/knobs.py", KNOBS)
        archive.writestr("triton/_C/libtriton.so", "large")
    content = wheel.read_bytes()
    artifact = Artifact("wheel", "triton", "1.0", wheel.name, len(content), hashlib.sha256(content).hexdigest())
    target = LockedTarget(
        name="spirv",
        backend="spirv",
        suite="trixie",
        python="3.13",
        debs=(),
        wheels=(),
        default_triton="1.0",
        tritons={"1.0": LockedTriton("1.0", "f" * 40, artifact)},
    )
    monkeypatch.setattr(lock, "load", lambda: Lock({"spirv": target}, ""))
    monkeypatch.setattr(paths, "PATCHES", tmp_path / "patches")
    monkeypatch.setattr(paths, "BUILD", tmp_path / "build")
    monkeypatch.setenv("FOUNDRY_CACHE", str(tmp_path / "cache"))
    Store(paths.cache()).adopt(wheel, artifact)
    return patch_series.write(tmp_path / "patches" / "triton" / "1.0", {"0001-hello.patch": PATCH})


def act(action: str, *, release: str = "1.0", tree: Path | str = "", into: str = "") -> None:
    patch.patch(action, release=release, tree=str(tree), into=into)


def test_an_edit_in_the_unpacked_wheel_goes_into_the_patch(series: Path, tmp_path: Path) -> None:
    act("apply")
    tree = tmp_path / "build" / "triton-1.0"
    knobs = tree / "triton" / "knobs.py"
    assert knobs.read_text() == KNOBS.replace("second", "hello = 1\nsecond")
    assert not (tree / "triton" / "_C").exists()
    knobs.write_text(knobs.read_text().replace("hello = 1", "hello = 100"))
    act("refresh", tree=tree)
    assert "+hello = 100\n" in (series / "0001-hello.patch").read_text()
    assert "Why: to see it" in (series / "0001-hello.patch").read_text()
    act("apply", tree=tree)
    assert "hello = 100" in knobs.read_text()


def test_status_tells_patches_and_conflicts(series: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    act("status", release="")
    assert re.search(r"0001-hello\W.*\bapplies\b", capsys.readouterr().out)
    act("apply")
    act("status", tree=tmp_path / "build" / "triton-1.0")
    assert re.search(r"0001-hello\W.*\bapplied\b", capsys.readouterr().out)
    (series / "0001-hello.patch").write_text(PATCH.replace(" second = 2", " second = two"))
    with pytest.raises(HunkError, match=r"hunk 1 of python/triton/knobs\.py"):
        act("status")
    output = capsys.readouterr().out
    assert re.search(r"0001-hello\W.*\bconflicts\b", output)
    assert "edited since" in output


@pytest.mark.parametrize(
    ("action", "release", "said"),
    [
        ("apply", "", "a release of Triton is needed\n  next: add --triton 1.0"),
        ("status", "2.0", "Triton 2.0 is not locked\n  why:  locked: 1.0\n  next: ./foundry pin"),
    ],
)
def test_missing_or_unlocked_release_is_refused_with_advice(series: Path, action: str, release: str, said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        act(action, release=release)
