"""The store: its contents are complete and correct, whatever other processes do and however they end."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import ClassVar
from unittest.mock import Mock

import pytest
from archive_files import DebianArchive, Index, artifact, wheel

from toolchains.fetch import store as store_module
from toolchains.fetch import verdicts
from toolchains.fetch.apt import Debs
from toolchains.fetch.store import Store
from toolchains.lockfile.lock import Artifact
from toolchains.system import paths
from toolchains.system.errors import (
    FoundryError,
    GoneError,
    HashMismatchError,
    OfflineError,
    PartError,
    TruncatedError,
    UnsafeArchiveError,
)


class LocalStore(Store):
    """A store whose packages come from an archive in a folder."""

    def __init__(self, root: Path, archive: DebianArchive, *, allow_drift: bool = False) -> None:
        super().__init__(root, allow_drift=allow_drift)
        self._archive = archive

    def debs(self, suite: str, extra: Sequence[str] = (), platform: str = "linux/amd64") -> Debs:
        return Debs(suite, self.root / "apt" / suite, [self._archive.archive], extra)


def final_names(store: Store) -> list[str]:
    """Return every file that is under its final name."""
    return sorted(file.name for file in (store.root / "artifacts").rglob("*") if file.is_file())


def fetch(store: Store, artifacts: Sequence[Artifact]) -> list[Artifact]:
    return store.fetch(artifacts, suite="trixie", python="3.13")


@pytest.fixture(autouse=True)
def old(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make verdicts at once, not only for files that are some seconds old."""
    monkeypatch.setattr(verdicts, "_TICK", 0)


@pytest.mark.slow
class TestFetching:
    def test_file_lies_under_its_hash_and_is_fetched_once(self, index: Index, store: Store) -> None:
        locked = index.add("top", "1.0")
        assert fetch(store, [locked]) == [locked]
        file = store.path(locked)
        assert file.name == locked.filename
        assert file.parent.name == hashlib.sha256(file.read_bytes()).hexdigest() == locked.sha256
        fetch(store, [locked])
        index.remove("top")
        assert fetch(store, [locked]) == [locked]

    def test_wheels_and_packages_come_in_the_order_asked_for(self, index: Index, tmp_path: Path) -> None:
        archive = DebianArchive(tmp_path / "archive")
        asked = [archive.add("second", "1"), index.add("top", "1.0"), archive.add("first", "1")]
        store = LocalStore(tmp_path / "store", archive)
        assert fetch(store, asked) == asked
        assert all(map(store.has, asked))

    def test_nothing_is_left_on_the_way_in(self, index: Index, store: Store) -> None:
        fetch(store, [index.add("top", "1.0")])
        assert not list(store.root.glob("incoming*"))

    def test_fetch_removes_files_of_a_killed_process(self, index: Index, store: Store) -> None:
        stale = store.root / "incoming-wheels" / "killed" / "half.whl"
        stale.parent.mkdir(parents=True)
        stale.write_text("half")
        fetch(store, [index.add("top", "1.0")])
        assert not stale.exists()

    def test_one_missing_file_does_not_lose_the_others(self, index: Index, tmp_path: Path) -> None:
        archive = DebianArchive(tmp_path / "archive")
        wheel_, old = index.add("top", "1.0"), archive.add("tool", "1")
        archive.add("tool", "2")
        store = LocalStore(tmp_path / "store", archive)
        with pytest.raises(GoneError):
            fetch(store, [old, wheel_])
        assert final_names(store) == [wheel_.filename]


@pytest.mark.slow
class TestOffline:
    def test_everything_missing_is_listed_and_nothing_missing_is_no_error(self, index: Index, tmp_path: Path) -> None:
        here, first, second = index.add("here", "1.0"), index.add("first", "1.0"), index.add("second", "1.0")
        fetch(Store(tmp_path / "store"), [here])
        with pytest.raises(OfflineError) as caught:
            fetch(Store(tmp_path / "store", offline=True), [here, first, second])
        text = str(caught.value)
        assert first.filename in text and second.filename in text and second.sha256 in text
        assert here.filename not in text
        locked = index.add("top", "1.0")
        fetch(Store(tmp_path / "store"), [locked])
        assert fetch(Store(tmp_path / "store", offline=True), [locked]) == [locked]

    def test_path_of_a_missing_artifact_is_an_error(self, index: Index, store: Store) -> None:
        with pytest.raises(OfflineError, match=r"top 1\.0 .*(?s:.*)./foundry pin --fetch"):
            store.path(index.add("top", "1.0"))


class TestEntry:
    """adopt(): the only way into the store."""

    @pytest.fixture
    def file(self, tmp_path: Path) -> Path:
        return wheel(tmp_path, "top", "1.0")

    @pytest.fixture
    def locked(self, file: Path) -> Artifact:
        return artifact(file, kind="wheel", name="top", version="1.0")

    def refused(self, store: Store, file: Path, locked: Artifact, error: type[FoundryError]) -> None:
        with pytest.raises(error, match=file.name):
            store.adopt(file, locked)
        assert final_names(store) == []

    FAULTS: ClassVar[dict[str, tuple[Callable[[Path], object], type[FoundryError]]]] = {
        "truncated": (lambda file: file.write_bytes(file.read_bytes()[:-1]), TruncatedError),
        "it did not arrive": (Path.unlink, TruncatedError),
        "a changed byte": (lambda file: flip(file), HashMismatchError),
        "bytes after the end": (lambda file: file.write_bytes(file.read_bytes() + b"more"), HashMismatchError),
    }

    @pytest.mark.parametrize("fault", FAULTS)
    def test_other_file_than_locked_is_refused(self, store: Store, file: Path, locked: Artifact, fault: str) -> None:
        damage, error = self.FAULTS[fault]
        damage(file)
        self.refused(store, file, locked, error)

    @pytest.mark.parametrize("path", ["../outside.py", "/outside.py", "inside/../../outside.py"])
    def test_a_wheel_with_an_entry_that_escapes_is_refused(self, store: Store, tmp_path: Path, path: str) -> None:
        file = wheel(tmp_path, "top", "1.0", files={path: "escaped"})
        self.refused(store, file, artifact(file, kind="wheel", name="top", version="1.0"), UnsafeArchiveError)

    def test_a_wheel_with_a_link_is_refused(self, store: Store, file: Path) -> None:
        link = zipfile.ZipInfo("top/link")
        link.external_attr = 0o120777 << 16
        with zipfile.ZipFile(file, "a") as archive:
            archive.writestr(link, "/etc/passwd")
        self.refused(store, file, artifact(file, kind="wheel", name="top", version="1.0"), UnsafeArchiveError)

    def test_each_refusal_has_an_exit_status_of_its_own(self) -> None:
        kinds = [GoneError, HashMismatchError, OfflineError, TruncatedError, UnsafeArchiveError]
        assert len({kind.exit_code for kind in kinds}) == len(kinds)


def swap(file: Path, content: bytes) -> None:
    """Replace a file's bytes and keep its metadata, as somebody does who wants to hide the change."""
    before = file.stat()
    file.chmod(0o644)
    file.write_bytes(content)
    file.chmod(before.st_mode)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def flip(file: Path) -> None:
    """Change one byte, and nothing that a listing shows."""
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    swap(file, bytes(content))


def put(place: Path, make: Callable[[Path], object]) -> None:
    """Make something else in the place of a file or a folder."""
    if place.is_dir():
        shutil.rmtree(place)
    else:
        place.unlink()
    make(place)


@pytest.mark.slow
class TestUse:
    """Files of the store are checked at each use."""

    @pytest.fixture
    def locked(self, index: Index, store: Store) -> Artifact:
        locked = index.add("top", "1.0", payload=1000)
        fetch(store, [locked])
        # The file must be older than the verdict. This makes the verdict.
        time.sleep(0.02)
        store.path(locked)
        return locked

    def other_wheel(self, tmp_path: Path, locked: Artifact) -> bytes:
        (tmp_path / "other").mkdir()
        return wheel(tmp_path / "other", "top", "1.0", files={"payload": "y" * 1000}).read_bytes()

    @pytest.mark.parametrize("fault", ["another wheel", "flipped", "truncated", "empty", "longer"])
    def test_a_damaged_file_is_refused_and_fetched_again(
        self, store: Store, locked: Artifact, tmp_path: Path, fault: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        file = store.path(locked)
        good = file.read_bytes()
        match fault:
            case "another wheel":
                other = self.other_wheel(tmp_path, locked)
                assert len(other) == len(good) and other != good
                swap(file, other)
            case "flipped":
                flip(file)
            case "truncated":
                swap(file, good[:-1])
            case "empty":
                swap(file, b"")
            case "longer":
                swap(file, good + b"x")
        for user in (store, Store(store.root)):
            with pytest.raises((HashMismatchError, TruncatedError), match=r"(?s)top-1\.0.*next: \./foundry pin --f"):
                user.path(locked)
        with pytest.raises(OfflineError, match=rf"(?s){locked.filename}.*damaged.*next: \./foundry pin --fetch"):
            fetch(Store(store.root, offline=True), [locked])
        assert fetch(store, [locked]) == [locked]
        assert store.path(locked).read_bytes() == good
        assert f"damaged in the store: {file}" in capsys.readouterr().err.replace("\n", "")

    def test_damaged_file_that_is_gone_is_never_used(self, index: Index, store: Store, locked: Artifact) -> None:
        flip(store.path(locked))
        index.remove("top")
        with pytest.raises(FoundryError):
            fetch(store, [locked])
        with pytest.raises(HashMismatchError):
            store.path(locked)

    def test_unchanged_content_is_not_hashed_again(
        self, store: Store, locked: Artifact, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: object) -> None:
            raise AssertionError("hashed")

        monkeypatch.setattr(store_module, "check_file", refuse)
        Store(store.root).path(locked)
        fetch(Store(store.root, offline=True), [locked])
        os.utime(store.path(locked))
        with pytest.raises(AssertionError, match="hashed"):
            store.path(locked)

    def test_another_date_alone_is_no_damage(self, index: Index, store: Store, locked: Artifact) -> None:
        index.remove("top")
        os.utime(store.path(locked), (1, 1))
        assert fetch(store, [locked]) == [locked]

    def test_damaged_or_copied_verdict_is_not_trusted(self, index: Index, store: Store, locked: Artifact) -> None:
        other = index.add("other", "1.0")
        fetch(store, [other])
        flip(store.path(other))
        first, second = (store.root / "verdicts" / each.sha256 for each in (locked, other))
        for text in (first.read_text(), "", "0" * 64):
            second.write_text(text)
            with pytest.raises(HashMismatchError):
                store.path(other)

    def test_no_verdict_for_a_fresh_file(self, index: Index, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(verdicts, "_TICK", 10**12)
        locked = index.add("new", "1.0")
        fetch(store, [locked])
        store.path(locked)
        assert not (store.root / "verdicts" / locked.sha256).exists()

    def test_pin_check_asks_no_verdict(self, store: Store, locked: Artifact) -> None:
        file = store.path(locked)
        flip(file)
        # Somebody with write access to everything forges a verdict.
        verdicts.note(store.root / "verdicts" / locked.sha256, verdicts.fingerprint({locked.filename: file}))
        with pytest.raises(HashMismatchError):
            store.verify([locked])
        assert not store.has(locked)


class TestDrift:
    @pytest.fixture
    def archive(self, tmp_path: Path) -> DebianArchive:
        archive = DebianArchive(tmp_path / "archive")
        archive.add("essential", "1", Essential="yes", Priority="required")
        return archive

    def test_allowed_drift_takes_and_reports_current_versions(
        self, archive: DebianArchive, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        essential, old = archive.add("essential", "1", Essential="yes"), archive.add("tool", "1")
        new = archive.add("tool", "2", Depends="library")
        library = archive.add("library", "7")
        store = LocalStore(tmp_path / "store", archive, allow_drift=True)
        assert fetch(store, [essential, old]) == [essential, library, new]
        assert all(map(store.has, [essential, library, new]))
        told = capsys.readouterr().err
        assert "tool: 1 -> 2" in told and "library: absent -> 7" in told and "essential:" not in told

    def test_a_package_of_a_further_suite_stays_in_it(self, archive: DebianArchive, tmp_path: Path) -> None:
        backports = DebianArchive(archive.folder, "trixie-backports", DebianArchive.BACKPORTS)
        archive.add("driver", "1")
        old = replace(backports.add("driver", "2~bpo"), suite="trixie-backports")
        new = replace(backports.add("driver", "3~bpo"), suite="trixie-backports")
        store = LocalStore(tmp_path / "store", archive, allow_drift=True)
        assert new in fetch(store, [old])

    def test_superseded_package_is_an_error_by_default(self, archive: DebianArchive, tmp_path: Path) -> None:
        tool = archive.add("tool", "1")
        assert fetch(LocalStore(tmp_path / "store", archive, allow_drift=True), [tool]) == [tool]
        archive.add("tool", "2")
        with pytest.raises(GoneError, match="tool 1"):
            fetch(LocalStore(tmp_path / "other", archive), [tool])


class TestParts:
    def build(self, built: list[Path]) -> Callable[[Path], None]:
        def build(folder: Path) -> None:
            built.append(folder)
            (folder / "result").write_text("whole")

        return build

    def test_a_part_is_built_once_and_found_again(self, store: Store) -> None:
        built: list[Path] = []
        first = store.part("kind", "digest", self.build(built))
        assert store.part("kind", "digest", self.build(built)) == first
        assert len(built) == 1
        assert (first / "result").read_text() == "whole"

    def test_another_digest_is_another_part(self, store: Store) -> None:
        built: list[Path] = []
        assert store.part("kind", "one", self.build(built)) != store.part("kind", "two", self.build(built))
        assert len(built) == 2

    def test_a_part_has_no_name_while_it_is_built_nor_after_it_failed(self, store: Store) -> None:
        place = store.root / "parts" / "kind" / "digest"

        def fail(folder: Path) -> None:
            (folder / "result").write_text("half")
            assert not place.exists()
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            store.part("kind", "digest", fail)
        assert list(place.parent.iterdir()) == []
        assert (store.part("kind", "digest", self.build([])) / "result").read_text() == "whole"


class TestDamagedParts:
    def build(self, folder: Path) -> None:
        (folder / "deep" / "empty").mkdir(parents=True)
        (folder / "result.tar").write_bytes(b"whole" * 100)
        (folder / "deep" / "file").write_text("content")
        (folder / "link").symlink_to("result.tar")

    def make(self, store: Store) -> Path:
        part = store.part("kind", "digest", self.build)
        time.sleep(0.02)
        assert store.has_part("kind", "digest")
        return part

    FAULTS: ClassVar[dict[str, Callable[[Path], object]]] = {
        "flipped": lambda part: flip(part / "result.tar"),
        "truncated": lambda part: swap(part / "result.tar", b"whole"),
        "another": lambda part: swap(part / "result.tar", b"other" * 100),
        "deep": lambda part: flip(part / "deep/file"),
        "missing": lambda part: (part / "result.tar").unlink(),
        "missing folder": lambda part: (part / "deep/empty").rmdir(),
        "emptied": lambda part: put(part, Path.mkdir),
        "added": lambda part: (part / "second.whl").write_text(""),
        "link": lambda part: put(part / "link", lambda link: link.symlink_to("deep/file")),
        "a link in its place": lambda part: put(part / "deep/file", lambda file: file.symlink_to("../link")),
        "a pipe in its place": lambda part: put(part / "deep/file", os.mkfifo),
        "no manifest": lambda part: (part / "manifest.json").unlink(),
        "a manifest cut off": lambda part: swap(part / "manifest.json", b"{"),
        "an empty manifest": lambda part: swap(part / "manifest.json", b""),
    }

    @pytest.mark.parametrize("fault", FAULTS)
    def test_damaged_part_is_built_again(self, store: Store, fault: str, capsys: pytest.CaptureFixture[str]) -> None:
        part = self.make(store)
        self.FAULTS[fault](part)
        user = Store(store.root)
        assert not user.has_part("kind", "digest")
        said = "cannot be verified" if fault in ("no manifest", "emptied") else "damaged in the store"
        assert f"{said}: {part}" in capsys.readouterr().err.replace("\n", "")
        build = Mock(wraps=self.build)
        assert user.part("kind", "digest", build) == part
        build.assert_called_once()
        assert (part / "result.tar").read_bytes() == b"whole" * 100 and (part / "deep/empty").is_dir()
        assert Store(store.root).has_part("kind", "digest")
        assert [each.name for each in part.parent.iterdir()] == ["digest"]

    def test_damaged_part_that_cannot_be_rebuilt_is_not_used(self, store: Store) -> None:
        part = self.make(store)
        flip(part / "result.tar")

        def fail(_: Path) -> None:
            raise OfflineError("nothing to build with")

        for _ in range(2):
            with pytest.raises(OfflineError):
                store.part("kind", "digest", fail)

    def test_another_date_alone_is_no_damage(self, store: Store) -> None:
        part = self.make(store)
        for path in (part, *part.rglob("*")):
            os.utime(path, (1, 1))
        assert Store(store.root).has_part("kind", "digest")

    def test_unchanged_content_is_not_hashed_again(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self.make(store)
        monkeypatch.setattr(hashlib, "file_digest", lambda *_: 1 / 0)
        assert Store(store.root).has_part("kind", "digest")

    def test_check_finds_what_is_damaged_and_takes_it_out(self, store: Store) -> None:
        part = self.make(store)
        store.part("kind", "other", self.build)
        assert store.verify_parts() == (2, [])
        flip(part / "result.tar")
        with pytest.raises(PartError, match=r"(?s)kind/digest.*result\.tar has other content.*next: \./foundry build"):
            store.verify_parts()
        assert not part.exists() and store.verify_parts() == (1, [])

    def test_check_names_and_keeps_parts_without_a_manifest(self, store: Store) -> None:
        part = self.make(store)
        (part / "manifest.json").unlink()
        assert store.verify_parts() == (0, ["kind/digest"])
        assert part.exists()

    def test_part_is_named_after_it_is_on_the_disk(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        done: list[str] = []
        sync, rename = os.fsync, Path.rename

        def noted_sync(handle: int) -> None:
            done.append(Path(f"/proc/self/fd/{handle}").resolve().name)
            sync(handle)

        def noted_rename(path: Path, to: Path) -> Path:
            if to.name == "digest":
                done.append("rename")
            return rename(path, to)

        monkeypatch.setattr(os, "fsync", noted_sync)
        monkeypatch.setattr(Path, "rename", noted_rename)
        store.part("kind", "digest", self.build)
        at = done.index("rename")
        assert {"result.tar", "file", "manifest.json", "deep", ".digest.partial"} <= set(done[:at])
        assert "kind" in done[at:]


# A separate process that uses a store: its root, the source's folder, the source's mode, and the artifacts. The source
# in it copies files, records each request, and can stop half-way.
PROCESS = """
import json, shutil, signal, sys, time
from pathlib import Path
from toolchains.fetch import store as module
from toolchains.lockfile.lock import Artifact

root, folder, mode, listing = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], json.loads(sys.argv[4])

# Whoever runs the tests in the background has Ctrl-C ignored, and children inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

def note(name):
    with (folder / "notes").open("a") as notes:
        notes.write(name + "\\n")

def both_started():
    note("started")
    while (folder / "notes").read_text().count("started") < 2:
        time.sleep(0.01)

def leave_time():
    # For the other process to come in, if nothing holds it back.
    time.sleep(1)

class Copies:
    def __init__(self, python, platform):
        pass
    def fetch(self, artifacts, into, report):
        note("fetched")
        leave_time()
        for number, artifact in enumerate(artifacts):
            data = (folder / artifact.filename).read_bytes()
            if mode == "stop" and number == 1:
                (into / artifact.filename).write_bytes(data[:-1])
                print("half-way", flush=True)
                time.sleep(600)
            (into / artifact.filename).write_bytes(data)

def build(part):
    note("built")
    leave_time()
    (part / "result").write_text("whole")

module.Wheels = Copies
store = module.Store(root)
if mode != "stop":
    both_started()
if mode == "part":
    print(store.part("kind", "digest", build))
else:
    store.fetch([Artifact(**entry) for entry in listing], suite="trixie", python="3.13")
"""


@pytest.mark.slow
class TestProcesses:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        folder = tmp_path / "files"
        folder.mkdir()
        return folder

    @pytest.fixture
    def locked(self, folder: Path) -> list[Artifact]:
        return [artifact(wheel(folder, name, "1"), kind="wheel", name=name, version="1") for name in ("one", "two")]

    def start(self, store: Store, folder: Path, mode: str, locked: Sequence[Artifact]) -> subprocess.Popen[str]:
        listing = json.dumps([asdict(item) for item in locked])
        words = [sys.executable, "-c", PROCESS, str(store.root), str(folder), mode, listing]
        return subprocess.Popen(words, cwd=paths.ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def test_two_that_fetch_the_same_fetch_it_once(self, store: Store, folder: Path, locked: list[Artifact]) -> None:
        both = [self.start(store, folder, "fetch", locked) for _ in range(2)]
        errors = [process.communicate(timeout=60)[1] for process in both]
        assert [process.returncode for process in both] == [0, 0], errors
        assert (folder / "notes").read_text().count("fetched") == 1
        assert all(map(store.has, locked))

    def test_two_that_build_the_same_part_build_it_once(self, store: Store, folder: Path) -> None:
        both = [self.start(store, folder, "part", []) for _ in range(2)]
        printed = [process.communicate(timeout=60) for process in both]
        assert [process.returncode for process in both] == [0, 0], printed
        assert printed[0][0] == printed[1][0]
        assert (folder / "notes").read_text().count("built") == 1

    def test_ctrl_c_keeps_whole_files_only(self, store: Store, folder: Path, locked: list[Artifact]) -> None:
        process = self.start(store, folder, "stop", locked)
        assert process.stdout is not None
        assert process.stdout.readline() == "half-way\n"
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        assert process.returncode != 0
        assert final_names(store) == [locked[0].filename]
        assert not list(store.root.glob("incoming*"))

    def test_killed_process_blocks_no_one(
        self, index: Index, store: Store, folder: Path, locked: list[Artifact]
    ) -> None:
        process = self.start(store, folder, "stop", locked)
        assert process.stdout is not None
        assert process.stdout.readline() == "half-way\n"
        process.kill()
        process.communicate(timeout=60)
        assert final_names(store) == []
        other = index.add("top", "1.0")
        assert fetch(store, [other]) == [other]
