"""Wheels are fetched with a real pip, from an index in a folder."""

from __future__ import annotations

from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from archive_files import Index, wheel

from toolchains.fetch.pip import ConflictError, Wheels
from toolchains.system.errors import FetchError, GoneError, HashMismatchError, PinError

# Each test starts pip, some several times.
pytestmark = pytest.mark.slow


def test_a_distribution_is_resolved_with_what_it_needs(index: Index, tmp_path: Path) -> None:
    top, middle, leaf = (
        index.add("top", "1.0", ["middle>=2"]),
        index.add("middle", "2.1", ["leaf"]),
        index.add("leaf", "3"),
    )
    index.add("middle", "1.0")
    index.add("unrelated", "1.0")
    found = Wheels("3.13").resolve({"top": "1.0"}, dependencies=True, known={}, into=tmp_path / "into")
    assert found == [leaf, middle, top]


def test_wheel_alone_or_of_a_known_size_is_resolved(index: Index, tmp_path: Path) -> None:
    top = index.add("top", "1.0", ["middle>=2"])
    found = Wheels("3.13").resolve({"top": "1.0"}, dependencies=False, known={}, into=tmp_path / "into")
    assert found == [top]
    alone, into = index.add("alone", "1.0"), tmp_path / "known"
    (known,) = Wheels("3.13").resolve({"alone": "1.0"}, dependencies=True, known={alone.sha256: 4711}, into=into)
    assert known.size == 4711 and not into.exists()


def test_dependency_stays_at_a_version_that_fits_or_is_a_conflict(index: Index, tmp_path: Path) -> None:
    index.add("top", "1.0", ["leaf"])
    index.add("top", "2.0", ["leaf>1"])
    old, _ = index.add("leaf", "1.0"), index.add("leaf", "2.0")
    resolve = partial(Wheels("3.13").resolve, dependencies=True, known={}, into=tmp_path / "into")
    assert old in resolve({"top": "1.0"}, keep={"leaf": "1.0", "unrelated": "1.0"})
    with pytest.raises(ConflictError):
        resolve({"top": "2.0"}, keep={"leaf": "1.0"})
    with pytest.raises(ConflictError):
        resolve({"top": "1.0"}, keep={"leaf": "0.9"})


def test_dependencies_are_those_of_the_targets_python(index: Index, tmp_path: Path) -> None:
    """Our Python is 3.11 or newer. For 3.10, pip reports what pip itself would need."""
    top = index.add("top", "1.0", ["ours; python_version >= '3.11'"])
    index.add("ours", "1.0")
    assert Wheels("3.10").resolve({"top": "1.0"}, dependencies=True, known={}, into=tmp_path / "into") == [top]
    index.add("top", "1.0", ["theirs; python_version < '3.11'"])
    index.add("theirs", "1.0")
    with pytest.raises(PinError, match=r"(?s)top needs theirs.*add theirs"):
        Wheels("3.10").resolve({"top": "1.0"}, dependencies=True, known={}, into=tmp_path / "into")


def test_a_pinned_version_that_does_not_exist_is_a_pin_error(index: Index, tmp_path: Path) -> None:
    index.add("top", "1.0")
    with pytest.raises(PinError, match=r"top==2\.0"):
        Wheels("3.13").resolve({"top": "2.0"}, dependencies=True, known={}, into=tmp_path / "into")


def test_local_wheels_do_not_get_into_the_lock(index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    published = [index.add("leaf", "1.0"), index.add("top", "1.0", ["leaf"])]
    local = tmp_path / "local"
    local.mkdir()
    wheel(local, "leaf", "2.0")
    monkeypatch.setenv("PIP_FIND_LINKS", str(local))
    found = Wheels("3.13").resolve({"top": "1.0"}, dependencies=True, known={}, into=tmp_path / "into")
    assert found == published


def test_fetched_wheel_is_the_locked_one_or_gone(index: Index, tmp_path: Path) -> None:
    locked = index.add("top", "1.0")
    index.add("top", "2.0")
    Wheels("3.13").fetch([locked], tmp_path / "into", lambda done: None)
    assert [file.name for file in (tmp_path / "into").iterdir()] == [locked.filename]
    index.remove("top")
    index.add("top", "2.0")
    with pytest.raises(GoneError, match=r"top==1\.0"):
        Wheels("3.13").fetch([locked], tmp_path / "into", lambda done: None)


def test_two_versions_of_one_distribution_are_fetched_together(index: Index, tmp_path: Path) -> None:
    locked = [index.add("top", "1.0"), index.add("other", "1.0"), index.add("top", "2.0")]
    Wheels("3.13").fetch(locked, tmp_path / "into", lambda done: None)
    assert {file.name for file in (tmp_path / "into").iterdir()} == {artifact.filename for artifact in locked}


def test_progress_grows_to_the_size_of_all_files(index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files come over HTTP and are larger than half a megabyte: pip reports no progress for other files."""
    locked = [index.add(name, "1.0", payload=600_000) for name in ("top", "other")]
    handler = partial(SimpleHTTPRequestHandler, directory=str(index.folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{server.server_port}")
        reported: list[int] = []
        Wheels("3.13").fetch(locked, tmp_path / "into", reported.append)
        server.shutdown()
    assert reported == sorted(reported)
    assert reported[-1] == sum(artifact.size for artifact in locked)


def test_other_bytes_under_the_locked_name_are_a_hash_mismatch(index: Index, tmp_path: Path) -> None:
    locked = index.add("top", "1.0")
    index.remove("top")
    index.add("top", "1.0", ["changed"])
    with pytest.raises(HashMismatchError):
        Wheels("3.13").fetch([locked], tmp_path / "into", lambda done: None)


def test_an_index_behind_a_dead_proxy_is_a_fetch_error_if_another_has_other_versions(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = index.add("top", "1.0")
    index.add("top", "2.0")
    Path(index.folder, "top", locked.filename).unlink()
    monkeypatch.setenv("PIP_INDEX_URL", "http://index.invalid/simple")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index.folder / "top"))
    monkeypatch.setenv("PIP_RETRIES", "1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with pytest.raises(FetchError, match="pip could not fetch wheels") as caught:
        Wheels("3.13").fetch([locked], tmp_path / "into", lambda done: None)
    assert "proxy" in caught.value.next and not isinstance(caught.value, GoneError)


def test_silent_index_is_a_fetch_error(index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    locked = index.add("top", "1.0")
    # Port 9 of this machine: nothing listens there, so the answer comes at once.
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    with pytest.raises(FetchError, match="check the network"):
        Wheels("3.13").fetch([locked], tmp_path / "into", lambda done: None)
