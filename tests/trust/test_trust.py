"""Trust: whatever was changed in an image, an archive or a wheel is found and named; a signature counts once."""

from __future__ import annotations

import hashlib
import io
import json
import os
import random
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import archive_files
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from tiny import tiny_image

from toolchains.archives import docker_archive
from toolchains.artifacts import plugin_wheels
from toolchains.assembly import target_image, wheelhouse
from toolchains.assembly.target_image import Inputs
from toolchains.assembly.wheelhouse import Wheelhouse
from toolchains.engine.client import Engine, ImageInfo
from toolchains.fetch.store import Store
from toolchains.images import layer, listing, provenance
from toolchains.lockfile import lock
from toolchains.repro import expected
from toolchains.repro.expected import Expected, ExpectedImage
from toolchains.system import paths
from toolchains.system.errors import FileError, ImageError, UsageError, VerificationError
from toolchains.trust import image_archive, keys, statement
from toolchains.trust.statement import Resource
from toolchains.verbs import verify
from toolchains.verbs.verify import Trusted, check_artifact, wheel_differences

SPIRV = lock.load().targets["spirv"]
NOBODY = Trusted([], {})
LONG = "usr/share/" + "a-name-that-ustar-cannot-hold/" * 6 + "file"
# bin/other is its other name, so the layer's first.
FILES = {"bin/other": b"\x7fELF" + bytes(range(256)) * 3, "etc/conf": b"a = 1\n", LONG: b"long", "etc/gone": b"x"}


def rootfs(path: Path) -> Path:
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as tar:
        for name, content in FILES.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o755 if name.startswith("bin") else 0o644
            entry.pax_headers = {"SCHILY.xattr.user.note": "kept"} if name == "etc/conf" else {}
            tar.addfile(entry, io.BytesIO(content))
        for name, kind, target in (("bin/sh", tarfile.SYMTYPE, "tool"), ("bin/tool", tarfile.LNKTYPE, "bin/other")):
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = kind, target
            tar.addfile(entry)
    return path


@dataclass(frozen=True)
class Recorded:
    """A normalised archive of an image, its configuration, and a store that recorded both."""

    archive: Path
    config: bytes
    store: Store

    def findings(self, archive: Path) -> list[str]:
        """Return what is not accounted for in an archive; one that cannot be read is such a finding."""
        listed = partial(listing.layer, self.store)
        try:
            return [str(each) for each in image_archive.check(archive, self.config, listed, ["test/x:1"])]
        except ImageError as error:
            return [f"{error.what}: {error.why}"]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    work = tmp_path_factory.mktemp("trust")
    archive, store = work / "image.tar", Store(work / "store")
    docker_archive.write_base_image(
        rootfs(work / "rootfs.tar"), archive, name="test/x:1", architecture="amd64", env=["A=1"], command=["sh"]
    )
    config = listing.config(store, listing.record(archive, store))
    assert config
    return Recorded(archive, config, store)


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :]


def test_every_single_byte_of_an_archive_is_accounted_for(recorded: Recorded, tmp_path: Path) -> None:
    assert recorded.findings(recorded.archive) == []
    data = recorded.archive.read_bytes()
    places = random.Random(1).sample(range(len(data)), 400)
    copy = tmp_path / "copy.tar"
    for at in places:
        copy.write_bytes(flipped(data, at))
        assert recorded.findings(copy), f"byte {at}"


@pytest.mark.parametrize("name", FILES)
def test_a_byte_of_a_file_is_named_by_the_file(recorded: Recorded, tmp_path: Path, name: str) -> None:
    data, copy = recorded.archive.read_bytes(), tmp_path / "copy.tar"
    at = data.index(FILES[name] + bytes(-len(FILES[name]) % 512))
    copy.write_bytes(flipped(data, at))
    assert recorded.findings(copy)[0] == f"{name}: its content"
    # In its header: readers of tars end where its checksum is wrong.
    copy.write_bytes(flipped(data, at - 512 + 100))
    assert recorded.findings(copy) == [f"layer 1: {name}: its header"]


def rewritten(archive: Path, copy: Path, change: Callable[[dict[str, tuple[tarfile.TarInfo, bytes]]], object]) -> None:
    """Write an archive whose layer was changed, with digests that fit."""
    with tarfile.open(archive) as tar:
        files = {entry.name: tar.extractfile(entry).read() for entry in tar}  # type: ignore[union-attr]
    (manifest,) = json.loads(files["manifest.json"])
    config = json.loads(files[manifest["Config"]])
    with tarfile.open(fileobj=io.BytesIO(files[manifest["Layers"][0]])) as tar:
        entries = {e.name: (e, tar.extractfile(e).read() if e.isreg() else b"") for e in tar}  # type: ignore[union-attr]
    change(entries)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for entry, content in entries.values():
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    digest = hashlib.sha256(packed.getvalue()).hexdigest()
    config["rootfs"]["diff_ids"] = [f"sha256:{digest}"]
    text = json.dumps(config, sort_keys=True, separators=(",", ":")).encode()
    manifest |= {"Config": f"{hashlib.sha256(text).hexdigest()}.json", "Layers": [f"{digest}.tar"]}
    parts = {f"{digest}.tar": packed.getvalue(), manifest["Config"]: text}
    parts["manifest.json"] = json.dumps([manifest], separators=(",", ":")).encode()
    copy.write_bytes(archive_files.packed(parts))


def renamed(entries: dict[str, tuple[tarfile.TarInfo, bytes]]) -> None:
    entry, content = entries.pop("etc/conf")
    entry.name = "etc/other"
    entries["etc/other"] = entry, content


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda files: files.update({"etc/new": (tarfile.TarInfo("etc/new"), b"new")}), "etc/new: it was added"),
        (lambda files: files.pop("etc/gone"), "etc/gone: it was removed"),
        (renamed, "etc/other: it was added: etc/conf under another name"),
        (lambda files: setattr(files["bin/sh"][0], "linkname", "evil"), "bin/sh: its target: tool became evil"),
        (lambda files: setattr(files["etc/conf"][0], "mode", 0o4755), "etc/conf: its mode: 644 became 4755"),
        (lambda files: setattr(files["etc/conf"][0], "uid", 7), "etc/conf: its owner: 0:0 became 7:0"),
        (lambda files: setattr(files["etc/conf"][0], "mtime", 7), "etc/conf: its time: 0 became 7"),
        (lambda files: files["etc/conf"][0].pax_headers.clear(), "its attributes: {'SCHILY.xattr.user.note': 'kept'}"),
    ],
    ids=("added", "removed", "renamed", "target", "mode", "owner", "time", "attributes"),
)
def test_a_change_in_a_layer_with_fitting_digests_is_named_by_its_file(
    recorded: Recorded, tmp_path: Path, change: Callable[..., object], said: str
) -> None:
    rewritten(recorded.archive, tmp_path / "copy.tar", change)
    assert said in recorded.findings(tmp_path / "copy.tar")[0]


@pytest.fixture(scope="module")
def built(docker: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Yield an image that stands for the one of spirv, and the folder of the store that recorded it."""
    work, name = tmp_path_factory.mktemp("built"), f"foundry-test/trust:{os.getpid()}"
    store, made = Store(work / "store"), Inputs(SPIRV, target_image.release(SPIRV, None)).labels
    dockerfile = b'ARG BASE\nFROM ${BASE}\nRUN mkdir /made && echo one > /made/one && rm /removed\nCMD ["sh"]\n'
    with tiny_image(docker, work) as tiny:
        below = docker.image(tiny)
        assert below is not None
        listing.record(work / "tiny.tar", store)
        layer.layer(docker, name, dockerfile, {"BASE": tiny}, made, [], below.layers, store=store)
        try:
            yield name, store.root
        finally:
            docker.remove(name)


@pytest.fixture
def as_spirv(built: tuple[str, Path], monkeypatch: pytest.MonkeyPatch) -> str:
    """Make the image the one that the lock and this checkout ask for; return its name."""
    name, root = built
    monkeypatch.setattr(paths, "cache", lambda: root)
    monkeypatch.setattr(Inputs, "name", name)
    return name


def saved(docker: Engine, name: str, path: Path) -> Path:
    with path.open("wb") as file:
        docker.save(name, file)
    return path


@pytest.mark.docker
def test_image_and_its_archive_are_verified_to_the_byte(docker: Engine, as_spirv: str, tmp_path: Path) -> None:
    assert "as this store built" in check_artifact(as_spirv, NOBODY).facts[0]
    archive = saved(docker, as_spirv, tmp_path / "saved.tar")
    assert check_artifact(str(archive), NOBODY).digests == check_artifact(as_spirv, NOBODY).digests
    data, choose = archive.read_bytes(), random.Random(2)
    # Half of them around the layers, where few of the bytes are.
    with tarfile.open(archive) as tar:
        small = [at for entry in tar if entry.size < 9999 for at in range(entry.offset, entry.offset_data + entry.size)]
    for at in [*(choose.randrange(len(data)) for _ in range(25)), *choose.sample(small, 25)]:
        with archive.open("r+b") as file:
            file.seek(at)
            file.write(flipped(data, at)[at : at + 1])
        with pytest.raises(VerificationError) as raised:
            check_artifact(str(archive), NOBODY)
        assert "is not what it should be: " in raised.value.what, at
        with archive.open("r+b") as file:
            file.seek(at)
            file.write(data[at : at + 1])


@pytest.mark.docker
def test_an_image_that_nobody_recorded_here_is_compared_with_the_published_id(
    docker: Engine, as_spirv: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = docker.image(as_spirv)
    assert info is not None
    name, version = "triton-foundry/spirv:" + "5" * 16, SPIRV.default_triton
    monkeypatch.setattr(Inputs, "name", name)
    monkeypatch.setattr(paths, "cache", lambda: tmp_path)

    def publish(inputs: str, id: str) -> None:
        entry = ExpectedImage(inputs, id, info.layers)
        monkeypatch.setattr(expected, "load", lambda: Expected({"spirv": {version: entry}}, {}))

    publish("5" * 64, info.id)
    assert check_artifact(as_spirv, NOBODY).facts == [f"its ID is the published one, {info.id[7:19]}"]
    publish("5" * 64, f"sha256:{'0' * 64}")
    with pytest.raises(VerificationError, match=f"the image's ID: {info.id}; published is sha256:000"):
        check_artifact(as_spirv, NOBODY)
    # The published one has other inputs.
    publish("6" * 64, info.id)
    with pytest.raises(UsageError, match=f"there is nothing to compare {as_spirv} with"):
        check_artifact(as_spirv, NOBODY)


@pytest.mark.docker
@pytest.mark.parametrize(
    ("script", "settings", "said"),
    [
        ("echo two > /made/one", {}, "made/one: its content"),
        ("echo new > /made/new", {}, "made/new: it was added"),
        ("rm /made/one", {}, "made/one: it was removed"),
        ("chmod 777 /made/one", {}, "made/one: its mode: 644 became 777"),
        ("", {"Entrypoint": ["evil"]}, 'the configuration\'s config.Entrypoint: nothing became ["evil"]'),
        ("", {"Labels": {target_image.LABEL + "lock": "0"}}, "config.Labels.org.triton-foundry.lock: "),
        ("", {"Env": ["LD_PRELOAD=/evil"]}, "the configuration's config.Env: "),
    ],
)
def test_verify_names_each_change_committed_over_an_image(
    docker: Engine, as_spirv: str, script: str, settings: dict[str, object], said: str
) -> None:
    name = f"{as_spirv}-changed"
    with docker.container(as_spirv) as container:
        container.call(["sh", "-c", script or ":"])
        docker._api.commit(container.id, *name.split(":"), conf=settings)
    try:
        with pytest.raises(VerificationError) as raised:
            check_artifact(name, NOBODY)
    finally:
        docker.remove(name)
    assert said in f"{raised.value.what}\n{raised.value.why}"


@pytest.mark.slow
def test_a_wheel_is_ours_to_the_byte_or_the_file_is_named(tmp_path: Path) -> None:
    made = plugin_wheels.wheel("spirv", Store(paths.cache())).path
    data, copy = made.read_bytes(), tmp_path / made.name
    copy.write_bytes(data)
    assert "byte for byte" in check_artifact(str(copy), NOBODY).facts[0]
    with zipfile.ZipFile(made) as archive:
        entry = next(each for each in archive.infolist() if each.filename.endswith("driver.py"))
    for at in random.Random(3).sample(range(len(data)), 100):
        copy.write_bytes(flipped(data, at))
        assert list(wheel_differences(copy, made)), f"byte {at}"
    copy.write_bytes(flipped(data, entry.header_offset + 30 + len(entry.filename) + 5))
    with pytest.raises(VerificationError, match=f"{entry.filename}: byte"):
        check_artifact(str(copy), NOBODY)


@pytest.mark.slow
def test_unknown_file_is_verified_only_with_a_signature(tmp_path: Path) -> None:
    stranger = tmp_path / "stranger-1.0-py3-none-any.whl"
    stranger.write_bytes(b"anything")
    with pytest.raises(UsageError, match=f"there is nothing to compare {stranger.name} with"):
        check_artifact(str(stranger), NOBODY)
    private = tmp_path / "mine"
    keys.make(private)
    said = state(tmp_path / "said", stranger.name, sha256(stranger), private)
    trusted = Trusted.read([said], [Path(f"{private}.pub")])
    assert check_artifact(str(stranger), trusted).facts == [f"{stranger.name}: signed by mine.pub"]
    stranger.write_bytes(b"anythinG")
    with pytest.raises(VerificationError, match=r"mine\.pub signed another digest"):
        check_artifact(str(stranger), trusted)


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def state(path: Path, name: str, digest: str, private: Path | None) -> Path:
    said = statement.make([Resource(name, {"sha256": digest})], kind="wheels", asked={}, derived={}, inputs=[])
    path.parent.mkdir(exist_ok=True)
    path.write_text(statement.seal(said, keys.read_private(private) if private else None))
    return path


@pytest.mark.slow
def test_different_rebuilders_must_have_signed_the_same(tmp_path: Path) -> None:
    thing = tmp_path / "x-1.0-py3-none-any.whl"
    thing.write_bytes(b"content")
    folder, private = tmp_path / "rebuilders", tmp_path / "private"
    for name in ("a", "b", "c"):
        keys.make(private / name)
        state(folder / f"{name}.intoto.jsonl", thing.name, sha256(thing), private / name)
        (folder / f"{name}.pub").write_bytes((private / f"{name}.pub").read_bytes())
    rebuilders = Trusted.folder(folder)
    assert check_artifact(str(thing), NOBODY, rebuilders, 3).facts == [f"{thing.name}: signed by a.pub, b.pub, c.pub"]
    with pytest.raises(VerificationError, match="3 of 4 rebuilders signed"):
        check_artifact(str(thing), NOBODY, rebuilders, 4)
    # One key signs for another: the signature counts for the key, not for the file's name.
    state(folder / "c.intoto.jsonl", thing.name, sha256(thing), private / "a")
    with pytest.raises(VerificationError, match="2 of 3 rebuilders signed"):
        check_artifact(str(thing), NOBODY, Trusted.folder(folder), 3)
    # Somebody unknown, and nobody.
    keys.make(private / "stranger")
    state(folder / "c.intoto.jsonl", thing.name, sha256(thing), private / "stranger")
    state(folder / "b.intoto.jsonl", thing.name, sha256(thing), None)
    with pytest.raises(VerificationError, match="1 of 2 rebuilders signed"):
        check_artifact(str(thing), NOBODY, Trusted.folder(folder), 2)
    # One of them built something else.
    state(folder / "b.intoto.jsonl", thing.name, "0" * 64, private / "b")
    with pytest.raises(VerificationError, match=f"{thing.name}: b.pub signed another digest: 0000"):
        check_artifact(str(thing), NOBODY, Trusted.folder(folder), 1)
    (folder / "again.pub").write_bytes((folder / "a.pub").read_bytes())
    with pytest.raises(UsageError, match=r"again.pub and a.pub are the same key|a.pub and again.pub are the same key"):
        Trusted.folder(folder)


def test_statement_names_files_and_inputs_reproducibly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "BUILD", tmp_path / "build")
    (tmp_path / "wheels").mkdir()
    for name in ("a.whl", "README.md"):
        (tmp_path / "wheels" / name).write_text(name)
    written = statement.state_wheels(SPIRV, tmp_path / "wheels", None)
    before = written.read_bytes()
    assert statement.state_wheels(SPIRV, tmp_path / "wheels", None).read_bytes() == before
    (said,) = statement.read(written)
    expected = {name: sha256(tmp_path / "wheels" / name) for name in ("README.md", "a.whl")}
    assert {each.name: each.sha256 for each in said.statement.subject} == expected
    inputs = {each.sha256 for each in said.statement.predicate.definition.dependencies}
    assert {each.sha256 for each in (*SPIRV.debs, *SPIRV.wheels)} <= inputs
    assert said.statement.predicate.definition.internal["lock"] == SPIRV.digest


def test_a_changed_statement_is_signed_by_nobody(tmp_path: Path) -> None:
    keys.make(tmp_path / "a")
    path = state(tmp_path / "said", "x", "1" * 64, tmp_path / "a")
    public = {"a": keys.read_public(tmp_path / "a.pub")}
    (said,) = statement.read(path)
    assert said.signers(public) == ["a"]
    said.envelope.payload = said.envelope.payload.replace(b"1" * 64, b"2" * 64)
    path.write_text(json.dumps(said.envelope.to_dict()))
    (changed,) = statement.read(path)
    assert changed.statement.subject[0].sha256 == "2" * 64
    assert changed.signers(public) == []


@pytest.mark.parametrize(
    "text",
    ["x", "{}", "[]", '{"payload": 1, "payloadType": 2, "signatures": 3}']
    + [json.dumps({"payload": "eA==", "payloadType": kind, "signatures": []}) for kind in (statement.PAYLOAD, "text")],
)
def test_malformed_statement_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "x").write_text(text)
    with pytest.raises(FileError, match="has no statement"):
        statement.read(tmp_path / "x")


def test_a_key_is_secret_and_never_replaced(tmp_path: Path) -> None:
    keys.make(tmp_path / "k")
    before = (tmp_path / "k").read_bytes()
    assert (tmp_path / "k").stat().st_mode & 0o777 == 0o600
    with pytest.raises(UsageError, match="exists"):
        keys.make(tmp_path / "k")
    assert (tmp_path / "k").read_bytes() == before
    with pytest.raises(UsageError, match="has no public ed25519 key"):
        keys.read_public(tmp_path / "k")
    with pytest.raises(UsageError, match="has no private ed25519 key"):
        keys.read_private(tmp_path / "k.pub")
    other = rsa.generate_private_key(65537, 2048)
    (tmp_path / "rsa").write_bytes(other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    (tmp_path / "rsa.pub").write_bytes(other.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    with pytest.raises(UsageError, match="has no private ed25519 key"):
        keys.read_private(tmp_path / "rsa")
    with pytest.raises(UsageError, match="has no public ed25519 key"):
        keys.read_public(tmp_path / "rsa.pub")


@pytest.mark.parametrize("size", [-(1 << 40), 1 << 80])
def test_an_entry_of_an_image_cannot_have_a_size_that_no_file_has(tmp_path: Path, size: int) -> None:
    data = bytearray(archive_files.tar(tmp_path / "image", {"file": b""}).read_bytes())
    data[124:136] = (b"\xff" if size < 0 else b"\x80") + size.to_bytes(11, "big", signed=True)
    (tmp_path / "image").write_bytes(archive_files.sums(data))
    with pytest.raises(ImageError, match="file") as caught:
        image_archive.read(tmp_path / "image")
    assert f"{size} bytes" in caught.value.why


def outer(path: Path, copy: Path, change: Callable[[tarfile.TarInfo], None] | None, *more: tarfile.TarInfo) -> Path:
    """Write a copy of an archive, with changed headers of its files and with more entries at its start."""
    with tarfile.open(path) as tar, tarfile.open(copy, "w", format=tarfile.USTAR_FORMAT) as out:
        for entry in more:
            out.addfile(entry)
        for entry in tar:
            if change:
                change(entry)
            out.addfile(entry, tar.extractfile(entry))
    return copy


@pytest.mark.parametrize("name", ["../../evil", "evil", "./evil", "/etc", "manifest.json/evil"])
@pytest.mark.parametrize("kind", [tarfile.DIRTYPE, tarfile.REGTYPE, tarfile.SYMTYPE])
def test_every_entry_is_checked(recorded: Recorded, tmp_path: Path, name: str, kind: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode, entry.linkname = kind, 0o755, "manifest.json" if kind == tarfile.SYMTYPE else ""
    assert recorded.findings(outer(recorded.archive, tmp_path / "same", None)) == []
    (found,) = recorded.findings(outer(recorded.archive, tmp_path / "copy", None, entry))
    assert found.startswith(f"{name}: ")


def test_folder_is_explained_by_the_manifest(recorded: Recorded, tmp_path: Path) -> None:
    folders = [tarfile.TarInfo("blobs"), tarfile.TarInfo("blobs/sha256")]
    for folder in folders:
        folder.type, folder.mode = tarfile.DIRTYPE, 0o755
    assert len(recorded.findings(outer(recorded.archive, tmp_path / "copy", None, *folders))) == 2
    # The layout of OCI, as newer engines write it.
    with tarfile.open(recorded.archive) as tar:
        files = {entry.name: tar.extractfile(entry).read() for entry in tar}  # type: ignore[union-attr]
    manifest = json.loads(files.pop("manifest.json"))[0]
    blobs = {name: f"blobs/sha256/{name.partition('.')[0]}" for name in files}
    named = {"Config": blobs[manifest["Config"]], "Layers": [blobs[each] for each in manifest["Layers"]]}
    contents = {blobs[name]: content for name, content in files.items()}
    contents["manifest.json"] = json.dumps([named], separators=(",", ":")).encode()
    with tarfile.open(tmp_path / "oci", "w", format=tarfile.USTAR_FORMAT) as out:
        for folder in folders:
            out.addfile(folder)
        for name, content in contents.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            out.addfile(entry, io.BytesIO(content))
    assert recorded.findings(tmp_path / "oci") == []


@pytest.mark.parametrize(
    "change",
    [
        {"mode": 0o666},
        {"mode": 0o4755},
        {"uid": 1000},
        {"gid": 1000},
        {"uname": "somebody"},
        {"linkname": "a text that nobody reads"},
        {"type": tarfile.AREGTYPE},
    ],
)
def test_header_is_as_an_engine_writes(recorded: Recorded, tmp_path: Path, change: dict[str, Any]) -> None:

    def alter(entry: tarfile.TarInfo) -> None:
        if entry.name == "manifest.json":
            for name, value in change.items():
                setattr(entry, name, value)

    (found,) = recorded.findings(outer(recorded.archive, tmp_path / "copy", alter))
    assert found.startswith("manifest.json: its header in the archive is damaged, or is not as an engine writes it")


def test_unread_bytes_of_a_header_are_checked(recorded: Recorded, tmp_path: Path) -> None:
    data = recorded.archive.read_bytes()
    for at in (500, 511, 300, 344):
        changed = flipped(data, at)
        (tmp_path / "copy").write_bytes(archive_files.sums(changed[: tarfile.BLOCKSIZE]) + changed[tarfile.BLOCKSIZE :])
        (found,) = recorded.findings(tmp_path / "copy")
        assert "its header in the archive is damaged" in found


def test_the_sources_of_layers_in_a_manifest_describe_them_and_hold_nothing_else() -> None:
    digest = "0" * 64
    manifest = docker_archive.Manifest(Config="c", Layers=[f"blobs/sha256/{digest}"])
    parts = {f"blobs/sha256/{digest}": image_archive._Part(0, 7)}
    right = {"mediaType": "application/vnd.oci.image.layer.v1.tar", "size": 7, "digest": f"sha256:{digest}"}
    assert image_archive._are_sources({f"sha256:{digest}": right}, manifest, parts)
    for wrong in (right | {"size": 8}, right | {"annotations": {}}, right | {"mediaType": "x"}, "x"):
        assert not image_archive._are_sources({f"sha256:{digest}": wrong}, manifest, parts)
    assert not image_archive._are_sources({"sha256:1": right}, manifest, parts)
    assert not image_archive._are_sources(["x"], manifest, parts)


def zipped(path: Path, content: bytes = b"x") -> Path:
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr(zipfile.ZipInfo("a"), content)
    return path


def wheel_folder(path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a folder of wheels, and let the same be made again."""

    def write(target: object, library: object, folder: Path, store: object) -> Wheelhouse:
        folder.mkdir()
        for name in ("triton_spirv_backend-1-py3-none-any.whl", "requirements.txt"):
            zipped(folder / name).chmod(0o644)
        folder.chmod(0o755)
        return Wheelhouse(folder, (), ())

    monkeypatch.setattr(wheelhouse, "library", lambda *_: None)
    monkeypatch.setattr(wheelhouse, "write", write)
    return write(None, None, path, None).folder


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda folder: (folder / "requirements.txt").chmod(0o666), "requirements.txt: its mode is 666"),
        (lambda folder: (folder / "requirements.txt").chmod(0o4644), "requirements.txt: its mode is 4644"),
        (lambda folder: (folder / "requirements.txt").chmod(0o755), "requirements.txt: its mode is 755"),
        (lambda folder: folder.chmod(0o777), r"\.: its mode is 777"),
        (lambda folder: (folder / "empty").mkdir(), "empty/: an empty folder was added"),
        (lambda folder: os.setxattr(folder / "requirements.txt", "user.a", b"b"), r"has attributes: user\.a"),
        (lambda folder: os.setxattr(folder, "user.a", b"b"), r"\.: it has attributes: user\.a"),
        (lambda folder: (folder / "requirements.txt").unlink(), "requirements.txt: it is missing"),
        (lambda folder: (folder / "more").write_text(""), "more: it was added"),
        (lambda folder: (folder / "requirements.txt").write_text("y\n"), "requirements.txt: its content"),
        (lambda folder: (folder / "link").symlink_to(folder.parent), "link is not a plain file: it is a link"),
    ],
)
def test_nothing_in_or_around_a_folder_of_wheels_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], object], said: str
) -> None:
    folder = wheel_folder(tmp_path / "spirv", monkeypatch)
    assert "byte for byte" in check_artifact(str(folder), NOBODY).facts[0]
    # A copy that only its owner can read is the same.
    folder.chmod(0o700)
    (folder / "requirements.txt").chmod(0o600)
    assert "byte for byte" in check_artifact(str(folder), NOBODY).facts[0]
    folder.chmod(0o755)
    change(folder)
    with pytest.raises(VerificationError, match=said):
        check_artifact(str(folder), NOBODY)


def test_each_wheel_that_we_make_of_a_name_is_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An image's wheel of a backend and the one that the verb wheel writes have one name."""
    made = []
    for folder, text in (("image", b"1"), ("wheelhouse", b"2")):
        (tmp_path / folder).mkdir()
        made.append(zipped(tmp_path / folder / "ours-1-py3-none-any.whl", text))
    monkeypatch.setattr(verify, "_made", lambda store, work: iter(made))
    for each in made:
        assert "byte for byte" in check_artifact(str(each), NOBODY).facts[0]
    (tmp_path / made[0].name).write_bytes(made[0].read_bytes() + b"3")
    with pytest.raises(VerificationError):
        check_artifact(str(tmp_path / made[0].name), NOBODY)


def test_a_wheel_that_unpacks_to_gigabytes_is_not_unpacked(tmp_path: Path) -> None:
    good, bad = zipped(tmp_path / "a.whl"), tmp_path / "b.whl"
    with zipfile.ZipFile(bad, "w", zipfile.ZIP_DEFLATED) as packed, packed.open("bomb", "w") as file:
        for _ in range(32):
            file.write(bytes(1 << 20))
    (found,) = wheel_differences(bad, good)
    assert "and 33554432 when it is unpacked" in found.what


def test_published_image_or_the_last_one_is_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, name = Store(tmp_path / "store"), "triton-foundry/spirv:" + "5" * 16
    monkeypatch.setattr(paths, "cache", lambda: store.root)
    monkeypatch.setattr(Inputs, "name", name)
    found = {}
    for number in range(3):
        archive = tmp_path / f"{number}.tar"
        with mock.patch.dict(FILES, {"etc/conf": f"a = {number}\n".encode()}):
            docker_archive.write_base_image(
                rootfs(tmp_path / "rootfs"), archive, name=name, architecture="amd64", env=[], command=["sh"]
            )
        found[listing.record(archive, store)] = archive
    # The last one in alphabetical order is neither the published one nor the one that was built last.
    ids = sorted(found)
    for id in (ids[2], ids[0], ids[1]):
        provenance.note(name, ImageInfo(id, (), {}, 1, ()), store, id)
    provenance.note(name, ImageInfo("sha256:other", (), {}, 1, ()), store, "")
    compared: list[bytes] = []

    def check(path: Path, text: bytes, *_: object) -> list[object]:
        compared.append(text)
        return []

    monkeypatch.setattr(image_archive, "check", check)

    def text(id: str) -> bytes:
        config = listing.config(store, id)
        assert config
        return config

    stranger = tmp_path / "stranger.tar"
    docker_archive.write_base_image(
        rootfs(tmp_path / "rootfs"), stranger, name=name, architecture="amd64", env=["B=1"], command=["sh"]
    )
    monkeypatch.setattr(expected, "load", lambda: Expected({}, {}))
    check_artifact(str(stranger), NOBODY)
    assert compared.pop() == text(ids[1])
    entry = ExpectedImage("5" * 64, ids[0], ())
    monkeypatch.setattr(expected, "load", lambda: Expected({"spirv": {SPIRV.default_triton: entry}}, {}))
    with pytest.raises(VerificationError, match="published is"):
        check_artifact(str(stranger), NOBODY)
    assert compared.pop() == text(ids[0])
