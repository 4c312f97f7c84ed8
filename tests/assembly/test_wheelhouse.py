"""`./foundry wheel`: pip takes exactly these wheels; hashes and tags are right; their bytes are always the same."""

from __future__ import annotations

import email
import hashlib
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import elves
import pytest
from archive_files import artifact
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename

from toolchains.archives.wheel_file import WheelWriter
from toolchains.artifacts import native
from toolchains.assembly import wheelhouse
from toolchains.assembly.wheelhouse import Library
from toolchains.engine import host
from toolchains.fetch.store import Store
from toolchains.lockfile import lock
from toolchains.lockfile.lock import LockedTarget
from toolchains.system.errors import PinError, UsageError

# What core requires, and what that requires; one of them is compiled for one Python.
DEPENDENCIES = {"xdsl": "leaf>=1", "leaf": "", "numpy": ""}


@pytest.fixture
def library(tmp_path: Path) -> Path:
    libc = elves.make(tmp_path / "libc.so.6", {"malloc": "GLIBC_2.17", "dlsym": "GLIBC_2.34"}, soname="libc.so.6")
    return elves.make(tmp_path / "libfoundry_vulkan.so", {"f": ""}, uses=["malloc", "dlsym"], against=[libc])


@pytest.fixture
def libraries(library: Path, tmp_path: Path) -> Library:
    """Return the library for both kinds of machines."""
    arm = tmp_path / "arm.so"
    arm.write_bytes(for_arm(library))
    return replace(Library.given(library), paths=(library, arm))


def for_arm(library: Path) -> bytes:
    """Return a library with the number of AArch64 in its header."""
    content = library.read_bytes()
    return content[:18] + b"\xb7\x00" + content[20:]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store", offline=True)


@pytest.fixture
def target(store: Store, tmp_path: Path) -> LockedTarget:
    """Return the target spirv, as if these were the wheels that it is locked to."""
    wheels = []
    for name, requires in DEPENDENCIES.items():
        tag = "cp313-cp313-manylinux_2_28_x86_64" if name == "numpy" else "py3-none-any"
        path, info = tmp_path / f"{name}-1.5-{tag}.whl", f"{name}-1.5.dist-info"
        text = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.5\n" + f"Requires-Dist: {requires}\n" * bool(requires)
        writer = WheelWriter(path, info)
        writer.add(f"{info}/METADATA", text.encode())
        writer.add(f"{info}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n".encode())
        writer.add(f"{name}.py", b"")
        writer.close()
        wheels.append(artifact(path, kind="wheel", name=name, version="1.5"))
        store.adopt(path, wheels[-1])
    return replace(lock.load().targets["spirv"], wheels=tuple(wheels))


def requirements(wheel: Path) -> list[Requirement]:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("/METADATA")]
        lines = email.message_from_bytes(archive.read(name)).get_all("Requires-Dist") or []
    return [each for each in map(Requirement, lines) if each.marker is None or each.marker.evaluate({"extra": ""})]


def test_folder_has_all_required_wheels_with_library_tag_and_document(
    target: LockedTarget, library: Path, libraries: Library, store: Store, tmp_path: Path
) -> None:
    made = wheelhouse.write(target, libraries, tmp_path / "out", store)
    names = {canonicalize_name(wheel.name.split("-")[0]) for wheel in made.wheels}
    assert names == {"triton-spirv-backend", "triton-foundry-core", "xdsl", "leaf"}
    assert {each.name for wheel in made.wheels for each in requirements(wheel)} - names == {"numpy"} == {*made.own}
    (plugin,) = [wheel for wheel in made.wheels if wheel.name.startswith("triton_spirv_backend")]
    assert [each.name for each in requirements(plugin)] == ["triton-foundry-core"]
    readme = (tmp_path / "out/README.md").read_text()
    assert "Needed: x86-64 or arm64 Linux with glibc 2.34 or newer" in readme
    assert "Python 3.10 to 3.14" in readme and "numpy" in readme
    # Each of core's wheels has its machine's library, and the tag of the glibc that it needs.
    arm, core = [wheel for wheel in made.wheels if wheel.name.startswith("triton_foundry_core")]
    for wheel, machine, content in ((core, "x86_64", library.read_bytes()), (arm, "aarch64", for_arm(library))):
        tag = f"py3-none-manylinux_2_34_{machine}"
        assert {str(tag) for tag in parse_wheel_filename(wheel.name)[3]} == {tag}
        with zipfile.ZipFile(wheel) as archive:
            assert archive.read("foundry_core/vulkan/libfoundry_vulkan.so") == content
            marks = archive.read(f"{'-'.join(wheel.name.split('-')[:2])}.dist-info/WHEEL").decode()
        assert f"Tag: {tag}\n" in marks and "Root-Is-Purelib: false\n" in marks
    (pinned,) = [line for line in (tmp_path / "out/requirements.txt").read_text().splitlines() if "_core==" in line]
    for wheel in (core, arm):
        assert f" --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}" in pinned
    # The document in a wheel names what was put into it.
    documents = {}
    for wheel in made.wheels:
        if wheel.name.startswith("triton_") and wheel != arm:
            with zipfile.ZipFile(wheel) as archive:
                (name,) = [name for name in archive.namelist() if name.endswith(".cdx.json")]
                assert f"{name},sha256=" in archive.read(f"{name.split('/')[0]}/RECORD").decode()
                documents[wheel.name.split("-")[0]] = json.loads(archive.read(name))
    (put,) = [each for each in documents["triton_foundry_core"]["components"] if "scope" not in each]
    assert put["hashes"][0]["content"] == hashlib.sha256(library.read_bytes()).hexdigest()
    facts = documents["triton_spirv_backend"]["metadata"]["component"]["properties"]
    assert {"name": "triton-foundry:requires", "value": "triton-foundry-core"} in facts


@pytest.mark.slow
@pytest.mark.slow
@pytest.mark.parametrize("python", ["3.10", "3.11", "3.12", "3.13", "3.14"])
@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_pip_finds_a_wheel_of_each_distribution_for_each_python_and_machine(
    target: LockedTarget, libraries: Library, store: Store, python: str, machine: str, tmp_path: Path
) -> None:
    made = wheelhouse.write(target, libraries, tmp_path / "out", store)
    pip = [sys.executable, "-m", "pip", "download", "--no-index", "--no-deps", "--quiet", "--require-hashes"]
    pip += ["--only-binary=:all:", f"--python-version={python}", f"--platform=manylinux_2_34_{machine}"]
    pip += ["--dest", str(tmp_path / "taken"), "--find-links", str(made.folder)]
    subprocess.run([*pip, "-r", made.folder / "requirements.txt"], check=True)
    taken = {path.name for path in (tmp_path / "taken").iterdir()}
    other = "aarch64" if machine == "x86_64" else "x86_64"
    assert taken == {wheel.name for wheel in made.wheels if not wheel.stem.endswith(other)}


@pytest.mark.slow
def test_pip_installs_it_and_triton_finds_it(
    target: LockedTarget, libraries: Library, store: Store, tmp_path: Path
) -> None:
    made = wheelhouse.write(target, libraries, tmp_path / "out", store)
    pip = [sys.executable, "-m", "pip", "install", "--no-index", "--no-deps", "--quiet", "--require-hashes"]
    pip += ["--target", str(tmp_path / "site"), "--find-links", str(made.folder)]
    subprocess.run([*pip, "-r", made.folder / "requirements.txt"], check=True)
    code = "from importlib.metadata import entry_points as e; print([*e(group='triton.backends')])"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    done = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
    assert "name='spirv', value='triton_spirv_backend'" in done.stdout
    for wheel in made.wheels:
        with wheel.open("ab") as file:
            file.write(b"\0")
    damaged = subprocess.run([*pip, "-r", made.folder / "requirements.txt"], capture_output=True, text=True)
    assert damaged.returncode != 0 and "DO NOT MATCH THE HASHES" in damaged.stderr


def test_two_folders_have_the_same_bytes_and_a_folder_with_other_files_is_left_alone(
    target: LockedTarget, library: Path, store: Store, tmp_path: Path
) -> None:
    def digests(folder: Path) -> dict[str, str]:
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}

    for name in ("one", "two", "one"):
        wheelhouse.write(target, Library.given(library), tmp_path / name, store)
    assert digests(tmp_path / "one") == digests(tmp_path / "two")
    (tmp_path / "one" / "thesis.txt").write_text("years of work")
    with pytest.raises(UsageError, match="has other files"):
        wheelhouse.write(target, Library.given(library), tmp_path / "one", store)
    assert (tmp_path / "one" / "thesis.txt").exists()


def test_a_library_that_would_not_load_elsewhere_is_refused(
    target: LockedTarget, library: Path, store: Store, tmp_path: Path
) -> None:
    def refused(library: Path, message: str) -> None:
        with pytest.raises(UsageError, match=message):
            wheelhouse.write(target, Library.given(library), tmp_path / "out", store)
        assert not (tmp_path / "out").exists()

    other = elves.make(tmp_path / "libodd.so.1", {"g": ""}, soname="libodd.so.1")
    refused(elves.make(tmp_path / "needing.so", {"f": ""}, uses=["g"], against=[other]), r"needs libodd\.so\.1")
    (tmp_path / "newer").mkdir()
    libc = elves.make(tmp_path / "newer/libc.so.6", {"malloc": "GLIBC_2.99"}, soname="libc.so.6")
    refused(elves.make(tmp_path / "newer.so", {"f": ""}, uses=["malloc"], against=[libc]), r"needs GLIBC_2\.99")
    foreign = tmp_path / "foreign.so"
    foreign.write_bytes(library.read_bytes()[:18] + b"\x03\x00" + library.read_bytes()[20:])
    refused(foreign, "not a shared library for x86_64 or aarch64")
    (tmp_path / "text.so").write_text("no library")
    refused(tmp_path / "text.so", "is not a shared library")


def test_requirement_that_a_promised_python_does_not_install_fails(
    target: LockedTarget, library: Path, store: Store, tmp_path: Path
) -> None:
    path = tmp_path / "xdsl-2.0-py3-none-any.whl"
    writer = WheelWriter(path, "xdsl-2.0.dist-info")
    text = b"Metadata-Version: 2.1\nName: xdsl\nVersion: 2.0\nRequires-Python: >=3.11\n"
    writer.add("xdsl-2.0.dist-info/METADATA", text)
    writer.close()
    newer = artifact(path, kind="wheel", name="xdsl", version="2.0")
    store.adopt(path, newer)
    target = replace(target, wheels=(newer, *(wheel for wheel in target.wheels if wheel.name != "xdsl")))
    with pytest.raises(PinError, match=r"xdsl.* does not install on Python 3\.10, which our wheels are for"):
        wheelhouse.write(target, Library.given(library), tmp_path / "out", store)


@pytest.mark.parametrize(
    "marker",
    ["python_version < '3.11'", "python_full_version >= '3.14'", "platform_machine == 'aarch64'", "extra == 'more'"],
)
def test_requirement_of_one_python_or_machine_is_in_the_folder(
    target: LockedTarget, library: Path, store: Store, marker: str, tmp_path: Path
) -> None:
    path = tmp_path / "xdsl-1.6-py3-none-any.whl"
    writer = WheelWriter(path, "xdsl-1.6.dist-info")
    text = f"Metadata-Version: 2.1\nName: xdsl\nVersion: 1.6\nRequires-Dist: leaf; {marker}\n"
    writer.add("xdsl-1.6.dist-info/METADATA", text.encode())
    writer.close()
    marked = artifact(path, kind="wheel", name="xdsl", version="1.6")
    store.adopt(path, marked)
    target = replace(target, wheels=(marked, *(wheel for wheel in target.wheels if wheel.name != "xdsl")))
    made = wheelhouse.write(target, Library.given(library), tmp_path / "out", store)
    assert any(wheel.name.startswith("leaf-") for wheel in made.wheels) == ("extra" not in marker)


def test_unlocked_requirement_or_target_without_wheels_fails(
    target: LockedTarget, library: Path, store: Store, tmp_path: Path
) -> None:
    less = replace(target, wheels=tuple(wheel for wheel in target.wheels if wheel.name != "leaf"))
    with pytest.raises(PinError, match="leaf is required and not locked for spirv"):
        wheelhouse.write(less, Library.given(library), tmp_path / "out", store)
    assert not (tmp_path / "out").exists()
    with pytest.raises(UsageError, match="there are no wheels of dpu"):
        wheelhouse.source(lock.load(), lock.load().targets["dpu"])


def test_library_comes_out_of_its_part(
    library: Path, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = tmp_path / "vulkan-runtime.tar"
    with tarfile.open(packed, "w") as file:
        for machine in ("x86_64", "aarch64"):
            file.add(library, f"lib/{machine}/libfoundry_vulkan.so")
    monkeypatch.setattr(native, "fetch_if_needed", lambda names, builder, store: builder)
    monkeypatch.setattr(native, "part", lambda name, *_, **__: native.NativePart(name, packed, "0"))
    monkeypatch.setattr(host, "ensure_engine", lambda: None)
    (tmp_path / "work").mkdir()
    target = wheelhouse.source(lock.load(), lock.load().targets["spirv"])
    assert target.name == "spirv-vulkan"
    found = wheelhouse.library(target, store, tmp_path / "work")
    assert [path.read_bytes() for path in found.paths] == [library.read_bytes()] * 2
    assert (found.part.name, found.part.licence.expression) == ("vulkan-runtime", "MIT")
