"""Folders of packed kernels: what pack and run-packed do, also with one that is damaged or that somebody else made."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from toolchains.assembly import ensure
from toolchains.assembly.request import Request
from toolchains.contents import packed_folder
from toolchains.system.errors import CommandError, FileError, FoundryError, UsageError
from toolchains.verbs import pack

_FILES = {"bin/add_example": b"#!/bin/sh\necho ran; exit 3\n", "kernels/add.0.spv": b"SPIR-V", "lib/libadd.so": b"ELF"}


def _manifest(**changed: Any) -> dict[str, Any]:
    files = {
        path: {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()} for path, content in _FILES.items()
    }
    return {"format": 1, "name": "add", "target": "spirv", "version": "1", "kernels": {}, "files": files, **changed}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "add"
    for path, content in _FILES.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_bytes(content)
    (place / "bin" / "add_example").chmod(0o755)
    (place / "foundry.json").write_text(json.dumps(_manifest()))
    return place


def test_a_folder_as_it_was_packed_is_read(folder: Path) -> None:
    known, files = packed_folder.read(folder)
    assert (known.name, known.target, known.example) == ("add", "spirv", "bin/add_example")
    assert {*files} == {*_FILES}
    # Where a user builds it.
    (folder / "build").mkdir()
    (folder / "build" / "anything").symlink_to("/etc/passwd")
    # Where a user imported its loader.
    (folder / "lib" / "__pycache__").mkdir()
    (folder / "lib" / "__pycache__" / "loader.pyc").write_bytes(b"")
    assert {*packed_folder.read(folder)[1]} == {*_FILES}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"format": 2}, "is of another version"),
        ({"format": "1"}, "is damaged"),
        ({"name": "../add"}, "it names no kernels of a target"),
        ({"name": "a" * 101}, "it names no kernels of a target"),
        ({"target": "../spirv"}, "it names no kernels of a target"),
        ({"files": {"../../etc/passwd": {"bytes": 1, "sha256": "0" * 64}}}, "no path in the folder"),
        ({"files": {"/etc/passwd": {"bytes": 1, "sha256": "0" * 64}}}, "no path in the folder"),
        ({"files": {"a//b": {"bytes": 1, "sha256": "0" * 64}}}, "no path in the folder"),
        ({"files": {"a\u001b[2J": {"bytes": 1, "sha256": "0" * 64}}}, "no path in the folder"),
        ({"files": {"a": {"bytes": -1, "sha256": "0" * 64}}}, "no size and sha256"),
        ({"files": {"a": {"bytes": 1, "sha256": "Z" * 64}}}, "no size and sha256"),
        ({"files": {f"f{i}": {"bytes": 1, "sha256": "0" * 64} for i in range(10_001)}}, "more than 10000 files"),
        ({"files": []}, "is damaged"),
    ],
)
def test_a_manifest_that_says_something_else_is_refused(folder: Path, changed: dict[str, Any], message: str) -> None:
    (folder / "foundry.json").write_text(json.dumps(_manifest(**changed)))
    with pytest.raises(FoundryError, match=message):
        packed_folder.read(folder)


@pytest.mark.parametrize("text", [b"", b"[]", b"{", b"\xff\xfe", b"[" * 100_000, b'{"format": 1}'])
def test_a_manifest_that_is_none_is_refused(folder: Path, text: bytes) -> None:
    (folder / "foundry.json").write_bytes(text)
    with pytest.raises(FileError, match="is damaged"):
        packed_folder.read(folder)


def test_files_that_are_not_as_they_were_packed_are_refused(folder: Path) -> None:
    kernel = folder / "kernels" / "add.0.spv"
    kernel.write_bytes(b"SPIR-W")
    with pytest.raises(FileError, match=r"add\.0\.spv is damaged"):
        packed_folder.read(folder)
    kernel.write_bytes(b"SPIR-V and more")
    with pytest.raises(FileError, match=r"add\.0\.spv is damaged"):
        packed_folder.read(folder)
    kernel.unlink()
    with pytest.raises(FileError, match=r"add\.0\.spv is not as it was packed"):
        packed_folder.read(folder)
    kernel.write_bytes(b"SPIR-V")
    (folder / "lib" / "libother.so").write_bytes(b"ELF")
    with pytest.raises(FileError, match=r"libother\.so is not as it was packed"):
        packed_folder.read(folder)


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_links_and_pipes_are_refused(folder: Path, kind: str) -> None:
    kernel = folder / "kernels" / "add.0.spv"
    kernel.unlink()
    if kind == "link":
        kernel.symlink_to("/etc/hostname")
    else:
        os.mkfifo(kernel)
    with pytest.raises(FileError, match="is not a plain file"):
        packed_folder.read(folder)


def test_a_folder_without_a_program_says_so(folder: Path) -> None:
    manifest = _manifest()
    del manifest["files"]["bin/add_example"]
    (folder / "bin" / "add_example").unlink()
    (folder / "foundry.json").write_text(json.dumps(manifest))
    with pytest.raises(FileError, match="has no program to run"):
        packed_folder.read(folder)


def test_here_the_folders_own_program_runs_and_its_status_counts(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(CommandError, match="did not run as recorded: exit status 3"):
        pack.run_folder(str(folder), request=None)
    printed = capfd.readouterr()
    assert printed.out == "ran\n"
    assert f"running bin/add_example of {folder} on this machine" in printed.err


def test_the_image_is_that_of_the_folders_target_unless_another_is_named(folder: Path, tmp_path: Path) -> None:
    found = pack.packed_request(Request.read("dpu"), str(folder))
    assert found and found.target.name == "spirv"
    other = pack.packed_request(Request.read("spirv-bench"), str(folder))
    assert other and other.target.name == "spirv-bench"
    assert pack.packed_request(Request.read("dpu"), str(tmp_path)) is None


@pytest.mark.parametrize(
    ("script", "path", "names"),
    [
        ("a.py:add", "a.py", "add"),
        ("a.py:", "a.py", ""),
        ("a.py", "", ""),
        ("d:/a.py", "", ""),
        ("a.py:x,y", "a.py", "x,y"),
    ],
)
def test_kernels_are_named_after_a_colon(script: str, path: str, names: str) -> None:
    assert pack.split_script(script) == (path, names)


def test_wrong_words_are_refused_before_an_image_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def ensure_image(request: Request) -> Any:
        raise AssertionError("an image was asked for")

    monkeypatch.setattr(ensure, "ensure_image", ensure_image)
    spirv, script = Request.read("spirv"), tmp_path / "a.py"
    with pytest.raises(UsageError, match="there is no script"):
        pack.pack_launches(spirv, f"{script}:add", str(tmp_path / "out"))
    script.write_text("")
    with pytest.raises(UsageError, match="say where to write"):
        pack.pack_launches(spirv, f"{script}:add", "")
    with pytest.raises(UsageError, match="is not empty"):
        pack.pack_launches(spirv, f"{script}:add", str(tmp_path))
    (tmp_path / "other").mkdir()
    with pytest.raises(UsageError, match="is not in --with="):
        pack.pack_launches(spirv, f"{script}:add", str(tmp_path / "out"), with_=str(tmp_path / "other"))


@pytest.mark.docker
def test_a_script_is_packed_and_runs_as_recorded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], pytestconfig: pytest.Config
) -> None:
    spirv = Request.read("spirv", allow_drift=pytestconfig.getoption("--allow-drift"))
    script = tmp_path / "add.py"
    script.write_text(
        "import sys, numpy as np, triton, triton.language as tl\n"
        "@triton.jit\n"
        "def add(x, y, out, n, BLOCK: tl.constexpr):\n"
        "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
        "    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)\n"
        "n = int(sys.argv[1])\n"
        "x, y = np.random.default_rng(0).standard_normal((2, n), np.float32)\n"
        "out = np.full(n, np.nan, np.float32)\n"
        "add[(triton.cdiv(n, 256),)](x, y, out, n, BLOCK=256)\n"
        "np.testing.assert_array_equal(out, x + y)\n"
    )
    folder = pack.pack_launches(spirv, f"{script}:add", str(tmp_path / "packed"), words=["1000"])
    pack.run_folder(str(folder), request=spirv)
    printed = capsys.readouterr().out
    assert "0 of 1 recorded launches are wrong" in printed
    assert "/foundry/" not in printed
    recorded = next((folder / "recorded").glob("*.after"))
    content = bytearray(recorded.read_bytes())
    content[5] ^= 1
    recorded.write_bytes(content)
    manifest = json.loads((folder / "foundry.json").read_text())
    manifest["files"][f"recorded/{recorded.name}"]["sha256"] = hashlib.sha256(content).hexdigest()
    (folder / "foundry.json").write_text(json.dumps(manifest))
    with pytest.raises(CommandError, match="did not run as recorded"):
        pack.run_folder(str(folder), request=spirv)


@pytest.mark.docker
def test_a_kernel_that_is_not_launched_is_an_error_and_nothing_comes_out(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    spirv = Request.read("spirv", allow_drift=pytestconfig.getoption("--allow-drift"))
    script = tmp_path / "none.py"
    script.write_text("")
    with pytest.raises(CommandError, match=r"none\.py cannot be packed: exit status 1"):
        pack.pack_launches(spirv, f"{script}:add", str(tmp_path / "packed"))
    assert not (tmp_path / "packed").exists()
