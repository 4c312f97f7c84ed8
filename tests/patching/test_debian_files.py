"""Patched Debian files: only what a series changes, under the package's name; a patch that does not fit is an error."""

from __future__ import annotations

import tarfile
from dataclasses import replace
from pathlib import Path

import archive_files
import patch_series
import pytest

from toolchains.fetch.store import Store
from toolchains.lockfile import lock
from toolchains.lockfile.lock import Lock, LockedTarget, Patched
from toolchains.patching import debian_files
from toolchains.system import paths
from toolchains.system.errors import HunkError, PatchTargetError, PinError
from toolchains.verbs import patch

PATCH = """\
Subject: greet louder
Why: nobody heard
Upstream: no
Until: they do

--- a/greeter/words.py
+++ b/greeter/words.py
@@ -1,2 +1,2 @@
 first = 1
-greeting = "hello"
+greeting = "HELLO"
"""
WHAT = Patched("greetings", "greeter", "greeter/1.0", "/usr/lib/python3/dist-packages")


def series(text: str) -> None:
    patch_series.write(paths.PATCHES / WHAT.series, {"0001-louder.patch": text})


def packaged(work: Path, store: Store, words: str = 'first = 1\ngreeting = "hello"\n') -> LockedTarget:
    """Make a target with a package of these words, which is in the store."""
    (work / "outside.py").write_text("first = 1\n")
    texts: dict[str, bytes | str] = {
        "words.py": words.encode(),
        "other.py": b"second = 2\n",
        "link.py": f"-> {work}/outside.py",
    }
    files = {f"{WHAT.root.strip('/')}/greeter/{name}": text for name, text in texts.items()}
    file, artifact = archive_files.deb(work, "greeter", "1.0-1", files)
    store.adopt(file, artifact)
    return replace(lock.load().targets["spirv"], debs=(artifact,), patched=(WHAT,))


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setattr(paths, "PATCHES", tmp_path / "patches")
    series(PATCH)
    return Store(tmp_path / "store")


def test_a_part_has_the_changed_files_alone_where_the_package_has_them(tmp_path: Path, store: Store) -> None:
    part = debian_files.part(WHAT, packaged(tmp_path, store), store)
    with tarfile.open(part) as tar:
        assert tar.getnames() == ["usr/lib/python3/dist-packages/greeter/words.py"]
        content = tar.extractfile(tar.getmembers()[0])
        assert content is not None
        assert content.read() == b'first = 1\ngreeting = "HELLO"\n'


def test_package_series_and_place_name_the_part(tmp_path: Path, store: Store) -> None:
    target = packaged(tmp_path, store)
    found = {debian_files.identity(WHAT, target), debian_files.identity(replace(WHAT, root="/usr/share"), target)}
    series(PATCH.replace("HELLO", "HEY"))
    found.add(debian_files.identity(WHAT, target))
    found.add(debian_files.identity(WHAT, packaged(tmp_path, store, "another = 1\n")))
    assert len(found) == 4


def test_package_of_another_series_or_a_missing_one_is_refused(tmp_path: Path, store: Store) -> None:
    with pytest.raises(HunkError, match=r"0001-louder\.patch, hunk 1 of greeter/words\.py"):
        debian_files.part(WHAT, packaged(tmp_path, store, 'zeroth = 0\nfirst = 1\ngreeting = "hello"\n'), store)
    target = replace(packaged(tmp_path, store), debs=())
    with pytest.raises(PinError, match=r"(?s)no package greeter.*pins/greetings\.toml"):
        debian_files.identity(WHAT, target)


@pytest.mark.parametrize("name", ["absent", "link"])
def test_missing_file_is_named_and_a_link_leads_nowhere(tmp_path: Path, store: Store, name: str) -> None:
    series(PATCH.replace("words", name))
    with pytest.raises(PatchTargetError, match=f"greeter/{name}.py"):
        debian_files.part(WHAT, packaged(tmp_path, store), store)


def test_the_status_tells_how_a_series_stands_to_its_package(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def status(target: LockedTarget) -> str:
        monkeypatch.setattr(lock, "load", lambda **_: Lock({target.name: replace(target, tritons={})}, ""))
        patch.patch("status", release="", tree="", into="")
        return capsys.readouterr().out

    monkeypatch.setenv("FOUNDRY_CACHE", str(store.root))
    target = packaged(tmp_path, store)
    assert "greeter 1.0-1" in status(target)
    assert "applies" in status(target)
    assert "not fetched" in status(replace(target, debs=(replace(target.debs[0], sha256="0" * 64),)))
    series(PATCH.replace("first = 1", "first = 2"))
    with pytest.raises(HunkError):
        status(target)
    assert "conflicts" in capsys.readouterr().out
