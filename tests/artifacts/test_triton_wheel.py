"""Repacking Triton, tested with a small made-up wheel: checked, patched, stripped, and the same bytes every time."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from made_up_triton import FILES, LLVM, PATCH, locked, make

from toolchains.artifacts import triton_wheel
from toolchains.fetch.store import Store
from toolchains.patching.layout import WheelTree
from toolchains.patching.refresh import refresh
from toolchains.patching.series import Series
from toolchains.system import paths
from toolchains.system.errors import HunkError, LlvmHashError, PatchError, PatchTargetError, UnsafeArchiveError


def test_the_result_is_patched_slim_and_consistently_named(wheel: Path, store: Store) -> None:
    result = triton_wheel.repack(locked(wheel), wheel, backends=(), store=store)
    assert result.name == "triton-1.0+foundry.1-cp312-abi3-manylinux_2_28_x86_64.whl"
    info = "triton-1.0+foundry.1.dist-info"
    with zipfile.ZipFile(result) as archive:
        assert archive.namelist() == [
            f"{info}/METADATA",
            f"{info}/WHEEL",
            f"{info}/entry_points.txt",
            "triton/_C/libtriton.so",
            "triton/__init__.py",
            "triton/backends/__init__.py",
            "triton/backends/driver.py",
            "triton/knobs.py",
            f"{info}/sboms/triton.cdx.json",
            f"{info}/sboms/triton.spdx.json",
            f"{info}/RECORD",
        ]
        read = {name: archive.read(name) for name in archive.namelist()}
    assert read["triton/knobs.py"] == b"first = 1\nhello = 2\n"
    assert read["triton/__init__.py"] == b"__version__ = '1.0+foundry.1'\n"
    assert read[f"{info}/METADATA"].splitlines()[2] == b"Version: 1.0+foundry.1"
    assert b"Version: 1.0 is new" in read[f"{info}/METADATA"]
    assert b"Tag: cp312-abi3-manylinux_2_28_x86_64" in read[f"{info}/WHEEL"]
    assert read[f"{info}/entry_points.txt"].strip() == b""
    assert LLVM.encode() not in read["triton/_C/libtriton.so"], "what is no part of any section was not stripped"


def test_file_that_a_patch_adds_is_in_the_result_if_wheels_carry_it(wheel: Path, store: Store) -> None:
    series = paths.PATCHES / "triton" / "1.0"
    added = "--- /dev/null\n+++ b/python/triton/{}\n@@ -0,0 +1,1 @@\n+new = 3\n"
    header, _, body = PATCH.partition("\n--- ")
    (series / "0001-hello.patch").write_text(f"{header}\n--- {body}{added.format('fresh.py')}")
    refresh(Series.load(series), WheelTree(wheel))
    result = triton_wheel.repack(locked(wheel), wheel, backends=(), store=store)
    with zipfile.ZipFile(result) as archive:
        assert archive.read("triton/fresh.py") == b"new = 3\n"
        assert "triton/fresh.py," in archive.read(archive.namelist()[-1]).decode()
    header = PATCH.partition("\n--- ")[0]
    (series / "0001-hello.patch").write_text(f"{header}\n--- /dev/null\n+++ b/lib/new.cpp\n@@ -0,0 +1,1 @@\n+int x;\n")
    refresh(Series.load(series), WheelTree(wheel))
    with pytest.raises(PatchTargetError, match=r"adds lib/new\.cpp, which is in no wheel"):
        triton_wheel.repack(locked(wheel), wheel, backends=(), store=store)


def test_wheel_with_a_backend_keeps_its_tools_and_record_lists_all(wheel: Path, store: Store) -> None:
    result = triton_wheel.repack(locked(wheel), wheel, backends=("nvidia",), store=store)
    with zipfile.ZipFile(result) as archive:
        rows = {
            name: (digest, size)
            for name, digest, size in csv.reader(io.TextIOWrapper(archive.open(archive.namelist()[-1])))
        }
        assert set(rows) == set(archive.namelist())
        assert rows.pop(archive.namelist()[-1]) == ("", "")
        for name, (digest, size) in rows.items():
            content = archive.read(name)
            expected = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            assert (digest, int(size)) == (f"sha256={expected}", len(content)), name
    with zipfile.ZipFile(result) as archive:
        names = archive.namelist()
        points = archive.read("triton-1.0+foundry.1.dist-info/entry_points.txt").decode()
        assert archive.getinfo("triton/backends/nvidia/bin/ptxas").external_attr >> 16 == 0o100755
        assert archive.getinfo("triton/knobs.py").external_attr >> 16 == 0o100644
    assert "triton/backends/nvidia/lib/cupti/libcupti.so" not in names
    assert not [name for name in names if "/amd/" in name]
    assert "nvidia = triton.backends.nvidia" in points
    assert "amd" not in points
    assert "proton" not in points


def test_order_and_dates_in_the_official_wheel_leave_no_trace(wheel: Path, store: Store, tmp_path: Path) -> None:
    other = make(tmp_path / "other", dict(reversed(FILES.items())), (2024, 2, 2, 2, 2, 2))
    assert other.read_bytes() != wheel.read_bytes()
    # With one entry in the lock: what is said of the official wheel is its sha256.
    first = triton_wheel.repack(locked(wheel), wheel, backends=(), store=store)
    second = triton_wheel.repack(locked(wheel), other, backends=(), store=Store(tmp_path / "second"))
    assert first != second
    assert first.read_bytes() == second.read_bytes()


def test_nothing_is_repacked_twice(wheel: Path, store: Store) -> None:
    release = locked(wheel)
    result = triton_wheel.repack(release, wheel, backends=(), store=store)
    wheel.unlink()
    assert triton_wheel.repack(release, wheel, backends=(), store=store) == result


def test_an_edited_patch_makes_another_wheel_once_it_is_refreshed(wheel: Path, store: Store) -> None:
    release = locked(wheel)
    before = triton_wheel.identity(release, ())
    file = paths.PATCHES / "triton" / "1.0" / "0001-hello.patch"
    file.write_text(file.read_text().replace("hello = 2", "hello = 3"))
    with pytest.raises(PatchError, match="not those of its revision 1"):
        triton_wheel.repack(release, wheel, backends=(), store=store)
    refresh(Series.load(file.parent), WheelTree(wheel))
    assert triton_wheel.identity(release, ()) != before
    result = triton_wheel.repack(release, wheel, backends=(), store=store)
    assert result.name.startswith("triton-1.0+foundry.2-")
    with zipfile.ZipFile(result) as archive:
        assert archive.read("triton/knobs.py") == b"first = 1\nhello = 3\n"


def test_a_series_that_does_not_fit_leaves_nothing_in_the_store(wheel: Path, store: Store, tmp_path: Path) -> None:
    other = make(tmp_path / "other", FILES | {"triton/knobs.py": b"zeroth = 0\nfirst = 1\n"})
    with pytest.raises(HunkError, match=r"0001-hello\.patch"):
        triton_wheel.repack(locked(other), other, backends=(), store=store)
    assert not list(store.root.rglob("*.whl"))


def test_another_llvm_than_pinned_is_refused_and_both_are_named(wheel: Path, store: Store) -> None:
    pinned = "f" * 40
    with pytest.raises(LlvmHashError) as caught:
        triton_wheel.repack(locked(wheel, pinned), wheel, backends=(), store=store)
    assert LLVM in caught.value.why
    assert pinned in caught.value.why
    assert "as the llvm-hash of 1.0 in toolchains/pins" in caught.value.next


@pytest.mark.parametrize(
    ("content", "commits"),
    [(b"LLVM version 22.0.0git", 0), (f"LLVM version 1 ({LLVM}) LLVM version 1 ({'a' * 40})".encode(), 2)],
)
def test_a_library_without_one_llvm_commit_is_refused(content: bytes, commits: int) -> None:
    with pytest.raises(LlvmHashError, match=f"{commits} LLVM commits"):
        triton_wheel.llvm_hash(io.BytesIO(content))


def test_the_llvm_commit_is_found_across_the_border_of_two_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triton_wheel, "_CHUNK", 300)
    assert triton_wheel.llvm_hash(io.BytesIO(b"x" * 280 + f"LLVM version 22.0.0git ({LLVM})".encode())) == LLVM


@pytest.mark.parametrize("name", ["../outside.py", "/etc/outside.py", "triton/../../outside.py"])
def test_an_entry_that_leaves_its_folder_is_refused(wheel: Path, store: Store, tmp_path: Path, name: str) -> None:
    evil = make(tmp_path / "evil", FILES | {name: b"evil"})
    with pytest.raises(UnsafeArchiveError, match="leaves its folder"):
        triton_wheel.repack(locked(evil), evil, backends=(), store=store)
    assert not list(tmp_path.rglob("outside.py"))


def test_wheel_must_name_the_pinned_llvm_by_commit_or_version(store: Store, wheel: Path) -> None:
    says = {"triton/_C/libtriton.so": b"\0LLVM version 20.0.0git\0"}
    silent = make(wheel.parent / "silent", FILES | says)
    with pytest.raises(LlvmHashError) as caught:
        triton_wheel.check_llvm_hash(replace(locked(silent), llvm_version="20.0.1"), silent)
    assert "as the llvm-version of 1.0" in caught.value.next
    triton_wheel.check_llvm_hash(replace(locked(silent), llvm_version="20.0.0git"), silent)
    with pytest.raises(LlvmHashError, match="another LLVM"):
        triton_wheel.check_llvm_hash(locked(silent), silent)
    with pytest.raises(LlvmHashError, match="another LLVM"):
        triton_wheel.check_llvm_hash(replace(locked(wheel), llvm_version="22.0.0git"), wheel)
