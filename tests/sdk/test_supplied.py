"""A user's vendor SDK: checked before use, remembered, and put into an image separate from the target's own.

What is checked is tested in test_preflight.py, how a command line names an SDK in test_environment.py.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import json
import lzma
import os
import socket
import struct
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import archive_files
import elves
import pytest
from elves import Runtime
from fakes import FakeEngine

from toolchains.artifacts import native
from toolchains.assembly import image_contents, target_image
from toolchains.assembly.target_image import Inputs
from toolchains.config import vendors
from toolchains.engine.client import ImageInfo
from toolchains.fetch.store import Store
from toolchains.images import provenance
from toolchains.lockfile import lock
from toolchains.lockfile.lock import LockedTarget
from toolchains.sdk import preflight, supplied
from toolchains.sdk.selection import Given
from toolchains.system import paths
from toolchains.system.errors import HashMismatchError, PinError, SdkError, UnsafeArchiveError, UsageError

Check = Callable[..., supplied.Sdk]
TOP = "upmem-2023.1.0-Linux-x86_64"
# An ELF file that has only a header: ET_DYN for x86-64.
X86_64 = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, 0, 0, 64, 0, 0, 0, 0, 0)
FILES: Mapping[str, bytes | str] = {
    "bin/clang-12": X86_64,
    "bin/dpu-upmem-dpurte-clang": "-> clang-12",
    "bin/dpu-pkg-config": b"#!/bin/sh\n",
    "bin/llvm-objcopy": X86_64,
    "include/dpu/dpu.h": b"/* */",
    "lib/libdpu.so.2023.1": X86_64,
    "lib/libdpu.so": "-> libdpu.so.2023.1",
}


def pack(path: Path, files: Mapping[str, bytes | str], top: str = TOP) -> Path:
    """Write an archive of these files below a folder."""
    return archive_files.tar(path, {f"{top}/{name}" if top else name: files[name] for name in files}, "w:gz")


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def dpu(runtime: Runtime) -> LockedTarget:
    return runtime.target("dpu")


@pytest.fixture
def check(runtime: Runtime) -> Check:
    """Return a function that checks a given SDK, by default for dpu. The other words are those of Given."""

    def call(path: Path, *, target: str = "dpu", **words: Any) -> supplied.Sdk:
        return supplied.check_given_sdk(runtime.target(target), Given(path, **words), runtime.store)

    return call


@pytest.fixture(autouse=True)
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use an empty build folder, in which no SDK is remembered."""
    monkeypatch.setattr(paths, "BUILD", tmp_path / "build")
    return tmp_path / "build"


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return pack(tmp_path / "sdk.tar.gz", FILES)


def test_its_version_is_read_from_its_folder(check: Check, archive: Path, tmp_path: Path) -> None:
    found = check(archive)
    assert (found.version, found.home, found.sha256) == ("2023.1.0", "/upmem-sdk-2023.1.0", sha256(archive))
    assert found.replaces == "upmem-emulator"
    assert found.labels["redistributable"] == "false"
    part = check(archive).part(Store(tmp_path / "store"))
    with tarfile.open(part) as tar:
        assert set(tar.getnames()) == set(FILES)


@pytest.mark.parametrize("top", ["upmem-sdk-2025.1.0", "./upmem-2025.1.0-Linux-x86_64", "x/upmem-sdk-2025.1.0"])
def test_other_names_of_its_folder_are_known(check: Check, tmp_path: Path, top: str) -> None:
    assert check(pack(tmp_path / "a.tgz", FILES, top)).version == "2025.1.0"


@pytest.mark.parametrize("top", ["sdk", ""])
def test_unknown_sdk_version_must_be_given_once(check: Check, tmp_path: Path, top: str) -> None:
    archive = pack(tmp_path / "a.tgz", FILES, top)
    with pytest.raises(SdkError, match="--sdk-version") as caught:
        check(archive)
    assert "upmem-{version}-Linux-x86_64" in caught.value.why
    assert check(archive, version="2024.2.0").version == "2024.2.0"
    assert check(archive).version == "2024.2.0"


@pytest.mark.parametrize("version", ["../../etc", "1 2", "$(x)"])
def test_malformed_version_is_refused(check: Check, archive: Path, version: str) -> None:
    with pytest.raises(SdkError, match="not a version"):
        check(archive, version=version)


@pytest.mark.parametrize("name", [name for name in FILES if name not in ("bin/clang-12", "lib/libdpu.so.2023.1")])
def test_a_file_that_is_missing_is_named(check: Check, tmp_path: Path, name: str) -> None:
    archive = pack(tmp_path / "a.tgz", {other: content for other, content in FILES.items() if other != name})
    with pytest.raises(SdkError, match="not UPMEM's SDK for the image of dpu, or not all of it") as caught:
        check(archive)
    assert f"it has no {name}" in caught.value.why.splitlines()


def test_a_link_that_leads_nowhere_is_a_missing_file(check: Check, tmp_path: Path) -> None:
    files = {**FILES, "lib/libdpu.so": "-> libdpu.so.9", "bin/llvm-objcopy": "-> llvm-objcopy"}
    with pytest.raises(SdkError) as caught:
        check(pack(tmp_path / "a.tgz", files))
    assert caught.value.why.splitlines() == [
        "it has no bin/llvm-objcopy, only a link to llvm-objcopy, which is not in it",
        "it has no lib/libdpu.so, only a link to libdpu.so.9, which is not in it",
    ]


@pytest.mark.parametrize("name", ["bin/clang-12", "lib/libdpu.so.2023.1"])
def test_an_sdk_for_another_machine_is_refused(check: Check, tmp_path: Path, name: str) -> None:
    with pytest.raises(SdkError, match="not UPMEM's SDK") as caught:
        check(pack(tmp_path / "a.tgz", {**FILES, name: elves.for_aarch64(X86_64)}))
    assert caught.value.why == f"{name} is for AArch64 with 64 bits; this image is x86-64"


@pytest.mark.parametrize("content", [b"", b"no archive", b"\x1f\x8bbroken", None])
def test_damaged_sdk_archive_is_refused(check: Check, tmp_path: Path, archive: Path, content: bytes | None) -> None:
    data = archive.read_bytes()
    (tmp_path / "a.tgz").write_bytes(data[: len(data) // 2] if content is None else content)
    with pytest.raises(SdkError, match="cannot be read as a tar archive"):
        check(tmp_path / "a.tgz")


def unpacked(folder: Path, files: Mapping[str, bytes | str] = FILES) -> Path:
    """Write these files into a folder."""
    return archive_files.write(folder, files)


def test_folder_gives_what_its_archive_gives_unless_it_changes(check: Check, tmp_path: Path, archive: Path) -> None:
    store = Store(tmp_path / "store")
    folder = check(unpacked(tmp_path / TOP))
    packed = check(archive)
    assert (folder.version, folder.home) == (packed.version, packed.home)
    assert folder.part(store).read_bytes() == packed.part(store).read_bytes()
    assert folder.sha256 == sha256(folder.part(store))
    (tmp_path / TOP / "more").touch()
    with pytest.raises(HashMismatchError, match="changed while it was read"):
        folder.part(Store(tmp_path / "other"))


def test_a_folder_that_changed_is_refused_whichever_way_it_did(check: Check, tmp_path: Path) -> None:
    folder = unpacked(tmp_path / TOP)
    check(folder)

    def refused() -> bool:
        with pytest.raises(HashMismatchError, match="changed since it was last used"):
            check(folder)
        return True

    header = folder / "include/dpu/dpu.h"
    header.write_text("/* other */")
    assert refused()
    header.write_bytes(b"/* */")
    (folder / "more").touch()
    assert refused()
    (folder / "more").unlink()
    header.chmod(0o644)
    assert refused()
    header.chmod(0o755)
    (folder / "lib/libdpu.so").unlink()
    (folder / "lib/libdpu.so").symlink_to("../lib/libdpu.so.2023.1")
    assert refused()
    (folder / "lib/libdpu.so").unlink()
    (folder / "lib/libdpu.so").symlink_to("libdpu.so.2023.1")
    os.utime(header, (1, 1))
    assert check(folder).version == "2023.1.0"


def test_an_sdk_that_is_not_there_or_that_the_target_does_not_take_is_a_usage_error(
    check: Check, tmp_path: Path, runtime: Runtime, archive: Path
) -> None:
    with pytest.raises(UsageError, match="there is no archive or folder"):
        check(tmp_path / "nothing.tgz")
    with pytest.raises(UsageError, match="spirv takes no vendor SDK"):
        supplied.check_given_sdk(lock.load().targets["spirv"], Given(archive), runtime.store)


def test_doctor_lists_what_is_wrong_with_one_and_records_nothing(
    runtime: Runtime, dpu: LockedTarget, archive: Path, tmp_path: Path, build: Path
) -> None:
    assert supplied.find(dpu, Given(archive), runtime.store) == []
    found = supplied.find(dpu, Given(pack(tmp_path / "a.tgz", dict(list(FILES.items())[1:]))), runtime.store)
    assert any(each.fatal and "it has no" in each.text for each in found)
    assert not (build / "sdk.json").exists()


def test_changed_sdk_needs_its_new_digest(check: Check, tmp_path: Path, archive: Path, build: Path) -> None:
    before = sha256(archive)
    check(archive)
    written = json.loads((build / "sdk.json").read_text())
    assert {path: (entry["sha256"], entry["version"]) for path, entry in written.items()} == {
        str(archive): (before, "2023.1.0")
    }
    pack(archive, {**FILES, "more": b""})
    with pytest.raises(HashMismatchError, match="changed since it was last used") as caught:
        check(archive)
    assert before in caught.value.why
    assert caught.value.next.endswith(f"--sdk-sha256={sha256(archive)}")
    check(archive, sha256=sha256(archive))
    assert check(archive).sha256 == sha256(archive)


def test_sdk_is_checked_once_and_again_for_other_libraries(
    runtime: Runtime, check: Check, dpu: LockedTarget, archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = Mock(wraps=preflight.check_sdk)
    monkeypatch.setattr(preflight, "check_sdk", look)
    check(archive)
    check(archive)
    assert [call.args[2] for call in look.call_args_list] == ["/upmem-sdk-2023.1.0"]
    supplied.check_given_sdk(replace(dpu, debs=dpu.debs[:2]), Given(archive), runtime.store)
    assert look.call_count == 2


def test_sdk_is_remembered_unless_it_was_refused(check: Check, tmp_path: Path, build: Path, archive: Path) -> None:
    with pytest.raises(SdkError):
        check(pack(tmp_path / "a.tgz", {"bin/dpu-upmem-dpurte-clang": b""}))
    assert not (build / "sdk.json").exists()
    with pytest.raises(HashMismatchError, match="sha256 that you gave") as caught:
        check(archive, sha256="0" * 64)
    assert sha256(archive) in caught.value.why
    assert not (build / "sdk.json").exists()
    assert check(archive, sha256=sha256(archive)).sha256 == sha256(archive)


def test_incomplete_sdk_description_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "upmem.toml").write_text('name = "x"\n')
    monkeypatch.setattr(paths, "SDKS", tmp_path)
    with pytest.raises(PinError, match=r"upmem\.toml"):
        vendors.VendorSdk.read("upmem")


def test_image_with_it_has_another_name(check: Check, dpu: LockedTarget, tmp_path: Path, archive: Path) -> None:
    triton = target_image.release(dpu, None)
    found = check(archive)
    assert Inputs(dpu, triton, found).identity() != Inputs(dpu, triton).identity()

    info = ImageInfo("sha256:1", (), {}, 1, ())
    engine: Any = FakeEngine({"": info})
    store = Store(tmp_path / "store", offline=True)
    provenance.note(Inputs(dpu, triton, found).name, info, store)
    made = target_image.build_image(Inputs(dpu, triton, found), store=store, engine=engine)
    assert made.name.startswith("triton-foundry/dpu-sdk:")
    moving = [f"triton-foundry/dpu-sdk:{triton.version}", "triton-foundry/dpu-sdk:latest"]
    assert engine.asked_to("tag") == moving


def test_sdk_stands_for_our_part(
    check: Check, dpu: LockedTarget, tmp_path: Path, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, store = check(archive), Store(tmp_path / "store", offline=True)
    triton = target_image.release(dpu, None)
    plain, inputs = Inputs(dpu, triton), Inputs(dpu, triton, found)
    own = {each.name for each in image_contents._own(plain, store)}
    assert own - {each.name for each in image_contents._own(inputs, store)} == {found.replaces}
    (supplied,) = image_contents._others(inputs)
    assert (supplied.name, supplied.sha256, supplied.licence.expression) == ("upmem", found.sha256, "")
    identity = Mock(side_effect=lambda name, builder: name)
    monkeypatch.setattr(native, "identity", identity)
    Inputs(dpu, target_image.release(dpu, None), check(archive)).identity()
    assert [call.args[0] for call in identity.call_args_list] == ["dpu-legalize"]


class TestVeriSilicon:
    """An SDK that is a folder, with a compiler and a bridge that may be elsewhere."""

    @pytest.fixture
    def vsi(self, runtime: Runtime) -> LockedTarget:
        return runtime.target("vsi")

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        """Make an SDK without the compiler and the bridge."""
        driver = elves.make(tmp_path / "driver", {"clGetPlatformIDs": ""}).read_bytes()
        files: dict[str, bytes | str] = {
            "include/CL/cl.h": b"/* */",
            "drivers/libOpenCL.so.1": driver,
            "lib/libOpenCL.so": "../drivers/libOpenCL.so.1",
        }
        return unpacked(tmp_path / "vsi", files)

    @pytest.fixture
    def files(self, tmp_path: Path) -> dict[str, Path]:
        """Make the compiler and the bridge. The keys are their paths in an SDK."""
        unpacked(tmp_path / "apart", {"zen-compiler-2": b"#!/bin/sh\n", "zen": "zen-compiler-2", "bridge.so": X86_64})
        return {"bin/zen-compiler": tmp_path / "apart/zen", "lib/libZenTCBridge.so": tmp_path / "apart/bridge.so"}

    def test_files_apart_are_in_the_part(
        self, check: Check, folder: Path, files: dict[str, Path], tmp_path: Path
    ) -> None:
        found = check(folder, target="vsi", files=files)
        assert (found.home, found.replaces, found.version) == ("/opt/vsi-sdk", "vsi-reference-sdk", "")
        assert found.arguments == {"SDK": f"vsi-{found.sha256[:12]}", "SDK_HOME": "/opt/vsi-sdk"}
        assert found.labels == {"sdk": "vsi", "sdk-sha256": found.sha256, "redistributable": "false"}
        part = check(folder, target="vsi", files=files).part(Store(tmp_path / "store"))
        with tarfile.open(part) as tar:
            assert tar.getnames() == [
                "bin/zen-compiler",
                "drivers/libOpenCL.so.1",
                "include/CL/cl.h",
                "lib/libOpenCL.so",
                "lib/libZenTCBridge.so",
            ]
            compiler = tar.getmember("bin/zen-compiler")
            assert (compiler.isreg(), compiler.mode) == (True, 0o755)
            assert tar.extractfile(compiler).read() == b"#!/bin/sh\n"  # type: ignore[union-attr]

    def test_archive_or_files_inside_equal(
        self, check: Check, folder: Path, files: dict[str, Path], tmp_path: Path
    ) -> None:
        apart = check(folder, target="vsi", files=files)
        unpacked(folder, {name: path.read_bytes() for name, path in files.items()})
        inside = check(folder, target="vsi")
        assert apart.identity == inside.identity
        unpacked(folder, {name: path.read_bytes() for name, path in files.items()})
        with tarfile.open(tmp_path / "vsi.tgz", "w:gz") as tar:
            tar.add(folder, "vsi-sdk")
        packed = check(tmp_path / "vsi.tgz", target="vsi", version="2.1")
        plain = check(folder, target="vsi")
        assert packed.labels["sdk"] == "vsi 2.1"
        store = Store(tmp_path / "store")
        assert packed.part(store).read_bytes() == plain.part(store).read_bytes()

    def test_a_file_elsewhere_that_changed_is_refused(self, check: Check, folder: Path, files: dict[str, Path]) -> None:
        check(folder, target="vsi", files=files)
        files["bin/zen-compiler"].write_text("#!/bin/sh\nexit\n")
        with pytest.raises(HashMismatchError, match="changed since it was last used") as caught:
            check(folder, target="vsi", files=files)
        assert f"bin/zen-compiler={files['bin/zen-compiler']}" in caught.value.what

    def test_error_names_missing_files(self, check: Check, folder: Path, files: dict[str, Path]) -> None:
        with pytest.raises(SdkError) as caught:
            check(folder, target="vsi")
        assert caught.value.why.splitlines() == ["it has no bin/zen-compiler", "it has no lib/libZenTCBridge.so"]
        assert "VSI_ZEN_COMPILER_PATH" in caught.value.next
        assert "--sdk=environment" in caught.value.next
        assert caught.value.exit_code == 17
        (folder / "bin").symlink_to("/etc")
        with pytest.raises(UnsafeArchiveError, match="through a link: bin/zen-compiler"):
            check(folder, target="vsi", files=files)


class TestOurs:
    """The descriptions in this repository."""

    def test_every_sdk_is_one_of_a_target_and_replaces_one_of_its_parts(self) -> None:
        used = {target.sdk: target for target in lock.load().targets.values() if target.sdk}
        assert set(used) == {file.stem for file in paths.SDKS.glob("*.toml")}
        for name, target in used.items():
            assert vendors.VendorSdk.read(name).replaces in target.recipes


class TestDamagedInput:
    """Each of these is an error with a cause and a remedy, and none of them hangs."""

    def refused(self, check: Check, path: Path, why: str = "") -> None:
        with pytest.raises((SdkError, UnsafeArchiveError, UsageError)) as caught:
            check(path)
        assert str(path) in str(caught.value) or path.name in str(caught.value)
        assert why in caught.value.why and caught.value.next

    @pytest.mark.parametrize("mode", ["gz", "xz", "bz2"])
    @pytest.mark.parametrize("fault", ["flipped", "truncated", "header alone", "not a tar"])
    def test_a_damaged_one(self, check: Check, tmp_path: Path, mode: str, fault: str) -> None:
        # The content is not compressible, so that a change of any byte damages it.
        plain = archive_files.tar(tmp_path / "plain", {f"{TOP}/noise": os.urandom(1 << 16)})
        packed = {"gz": gzip, "xz": lzma, "bz2": bz2}[mode].compress(plain.read_bytes())
        middle = len(packed) // 2
        path = tmp_path / f"sdk.tar.{mode}"
        path.write_bytes(
            {
                "flipped": packed[:middle] + bytes(byte ^ 0xFF for byte in packed[middle:]),
                "truncated": packed[:middle],
                "header alone": packed[:10],
                "not a tar": {"gz": gzip, "xz": lzma, "bz2": bz2}[mode].compress(b"no tar" * 1000),
            }[fault]
        )
        self.refused(check, path)

    @pytest.mark.parametrize("content", [b"\x28\xb5\x2f\xfd" + bytes(100), b"PK\x03\x04" + bytes(600), b"", b"text"])
    def test_one_of_another_format(self, check: Check, tmp_path: Path, content: bytes) -> None:
        path = tmp_path / "sdk.tar.zst"
        path.write_bytes(content)
        self.refused(check, path, "zstd" if content.startswith(b"\x28") else "")

    @pytest.mark.parametrize("to", [f"{TOP}/a", f"./{TOP}/a", f"{TOP}/b", "gone"])
    def test_hard_links_to_themselves_or_to_nothing(self, check: Check, tmp_path: Path, to: str) -> None:
        links = {f"{TOP}/a": f"=> {to}", f"{TOP}/b": f"=> {TOP}/a"}
        self.refused(check, archive_files.tar(tmp_path / "sdk.tar", links))

    def test_pipe_socket_or_device_is_not_opened(self, check: Check, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        (tmp_path / "link").symlink_to("pipe")
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(tmp_path / "socket"))
            for path in (tmp_path / "pipe", tmp_path / "link", tmp_path / "socket", Path("/dev/zero")):
                self.refused(check, path)
        (tmp_path / "sdk").mkdir()
        os.mkfifo(tmp_path / "sdk/pipe")
        with pytest.raises(UnsafeArchiveError, match=r"neither a file nor a link: .*pipe"):
            check(tmp_path / "sdk")
