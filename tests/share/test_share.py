"""Sharing: what arrives is what was signed for this checkout; nothing else is taken, and no vendor's file is given."""

from __future__ import annotations

import json
import math
import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from archive_files import packed
from fakes import NO_ENGINE, FakeEngine
from image_archives import save
from registries import BreakingProxy, Debian, ModernRegistry
from tiny import tiny_image

from toolchains.artifacts import native
from toolchains.assembly import ensure, target_image
from toolchains.assembly.request import Request
from toolchains.assembly.target_image import Image, Inputs
from toolchains.contents.component import Component
from toolchains.engine.client import Engine, ImageInfo
from toolchains.fetch.store import Store
from toolchains.images import layer, listing, provenance
from toolchains.lockfile import lock
from toolchains.repro import expected
from toolchains.repro.expected import Expected, ExpectedImage
from toolchains.share import images, vendor
from toolchains.share.images import Trust
from toolchains.share.registry import Descriptor, Document, Repository
from toolchains.system import errors, paths
from toolchains.trust import keys, statement
from toolchains.trust.statement import Resource
from toolchains.verbs import build as build_verb
from toolchains.verbs import pull, push, sbom
from toolchains.verbs.verify import Trusted, check_artifact

SPIRV = lock.load().targets["spirv"]
RELEASE = target_image.release(SPIRV, None)
SDK = ("opt/x/bin/dpu-upmem-dpurte-clang", "opt/x/bin/dpu-pkg-config", "opt/x/lib/libdpu.so")
# Incompressible, so that what is sent has this many bytes; the first layer is sent before the second breaks.
SMALL, LARGE = 1 << 21, 1 << 23
# What the fixture machine replaces.
ENSURE, DESCRIBE, STORE = ensure.ensure_image, sbom.describe, paths.cache()


@dataclass(frozen=True)
class Machine:
    """An image that stands for the one of spirv, in the engine and in a registry.

    Attributes:
        docker: the engine.
        archive: the image's archive.
        name: the image's name.
        id: its ID.
        work: has the keys a, b and stranger.
        registry: its address, with a path for one test.
        storage: the registry's blobs.
        debian: has skopeo.
    """

    docker: Engine
    archive: Path
    name: str
    id: str
    work: Path
    registry: str
    storage: Path
    debian: Debian

    @property
    def repository(self) -> Repository:
        return Repository(self.registry, "spirv")

    @property
    def tag(self) -> str:
        return self.name.rpartition(":")[2]

    def load(self) -> Image:
        """Put the image into the engine, as one that this machine built."""
        self.docker.load(self.archive)
        info = layer.require_image(self.docker, self.name)
        store = Store(paths.cache())
        return Image(self.name, provenance.note(self.name, info, store, listing.record(self.archive, store)), False)

    def forget(self) -> None:
        """Make this another machine: without the image, its records and statements."""
        for name in (self.name, *Inputs(SPIRV, RELEASE).moving_names):
            self.docker.remove(name)
        assert self.docker.image(self.id) is None
        assert paths.cache() != STORE
        for place in (*(paths.cache() / "images").rglob("*"), *paths.BUILD.rglob("*.jsonl")):
            if place.is_file():
                place.unlink()

    def push(self, sign: str = "a") -> None:
        self.load()
        push.push(Request.read("spirv"), self.registry, sign=str(self.work / sign) if sign else "")
        self.forget()

    def pull(self, *public: str, threshold: int = 0) -> None:
        names = [str(self.work / f"{name}.pub") for name in public or ("a",)]
        pull.pull(Request.read("spirv"), self.registry, public=names, threshold=threshold)

    def blob(self, digest: str) -> Path:
        hexadecimal = digest.removeprefix("sha256:")
        return self.storage / "docker/registry/v2/blobs/sha256" / hexadecimal[:2] / hexadecimal / "data"

    def found(self) -> tuple[Descriptor, Any]:
        found = self.repository.manifest(self.tag)
        assert found is not None
        return found


@pytest.fixture(scope="module")
def shared(docker: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    work = tmp_path_factory.mktemp("share")
    store = Store(work / "store")
    for name, size in (("small", SMALL), ("large", LARGE)):
        (work / name).write_bytes(random.Random(size).randbytes(size))
    for name in ("a", "b", "stranger"):
        keys.make(work / name)
    with pytest.MonkeyPatch.context() as patch, tiny_image(docker, work) as tiny:
        patch.setattr(Inputs, "repository", f"triton-foundry/share-test-{os.getpid()}")
        name = Inputs(SPIRV, RELEASE).name
        known, below = [*layer.require_image(docker, tiny).layers], tiny
        listing.record(work / "tiny.tar", store)
        for file in ("small", "large"):
            dockerfile = f"ARG BASE\nFROM ${{BASE}}\nCOPY {file} /{file}\n".encode()
            labels = Inputs(SPIRV, RELEASE).labels if file == "large" else {}
            made = f"{name}-{file}"
            files = {file: work / file}
            info = layer.layer(docker, made, dockerfile, {"BASE": below}, labels, [], known, files, store=store)
            known, below = [*info.layers], made
        docker.tag(info.id, name)
        with (work / "image.tar").open("wb") as archive:
            docker.save(name, archive)
        for each in (name, f"{name}-large", f"{name}-small"):
            docker.remove(each)
        debian = Debian(work / "debian")
        with debian.registry(work / "registry") as address:
            yield Machine(docker, work / "image.tar", name, info.id, work, address, work / "registry", debian)


@pytest.fixture
def machine(
    shared: Machine, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Machine]:
    monkeypatch.setattr(Inputs, "repository", shared.name.split(":")[0])
    monkeypatch.setattr(paths, "cache", lambda: tmp_path / "store")
    monkeypatch.setattr(paths, "BUILD", tmp_path / "build")
    monkeypatch.setattr(expected, "load", lambda: Expected({}, {}))
    monkeypatch.setattr(sbom, "describe", lambda request: Component("image", "spirv", "1"))

    def there(_: object) -> tuple[Engine, Image]:
        return shared.docker, Image(shared.name, layer.require_image(shared.docker, shared.name), False)

    monkeypatch.setattr(ensure, "ensure_image", there)
    path = f"test{abs(hash(request.node.name))}"
    made = Machine(**{**vars(shared), "registry": f"{shared.registry}/{path}"})
    yield made
    made.forget()


def engine_test(function: Callable[..., None]) -> Callable[..., None]:
    for mark in (pytest.mark.docker, pytest.mark.network, pytest.mark.slow):
        function = mark(function)
    return function


@engine_test
def test_another_machine_gets_the_same_image_and_verifies_it_by_the_statement(machine: Machine) -> None:
    machine.push()
    machine.pull()
    names = {machine.name, *Inputs(SPIRV, RELEASE).moving_names}
    info = machine.docker.image(machine.name)
    assert info is not None
    assert (info.id, set(info.names)) == (machine.id, names)
    said = statement.file(f"spirv-{RELEASE.version}")
    facts = check_artifact(machine.name, Trusted.read([said], [machine.work / "a.pub"])).facts
    assert any("signed by a.pub" in fact for fact in facts)
    with pytest.raises(errors.UsageError, match="there is nothing to compare"):
        check_artifact(machine.name, Trusted([], {}))
    # Other verbs use it without building: the store has recorded it.
    assert provenance.image(machine.name, engine=machine.docker, store=Store(paths.cache())) == info


@engine_test
def test_skopeo_finds_the_image_and_each_document_as_a_referrer(machine: Machine) -> None:
    machine.push()
    name = f"{machine.registry}/spirv"
    assert machine.debian.inspect(f"{name}:{machine.tag}")["config"]["digest"] == machine.id
    descriptor, _ = machine.found()
    index = machine.debian.inspect(f"{name}:{descriptor.digest.replace(':', '-')}")
    kinds = {"application/vnd.in-toto+json", "application/vnd.cyclonedx+json", "application/spdx+json"}
    assert {each["artifactType"] for each in index["manifests"]} == kinds
    for each in index["manifests"]:
        document = machine.debian.inspect(f"{name}@{each['digest']}")
        assert document["subject"]["digest"] == descriptor.digest
        assert machine.repository.blob(document["layers"][0]["digest"])


@engine_test
def test_builders_sign_one_manifest_and_a_key_counts_once(machine: Machine) -> None:
    machine.push("a")
    before = machine.found()[0]
    with pytest.raises(errors.VerificationError, match="1 of 2 trusted keys signed it"):
        machine.pull("a", "b", threshold=2)
    (machine.work / "again.pub").write_bytes((machine.work / "a.pub").read_bytes())
    with pytest.raises(errors.VerificationError, match="1 of 2 trusted keys signed it"):
        machine.pull("a", "again", threshold=2)
    machine.push("b")
    machine.push("b")
    assert machine.found()[0] == before
    assert len(machine.repository.referrers(before.digest)) == 4
    machine.pull("a", "b", threshold=2)
    # It did not build it, so it cannot sign; it can hand on what others signed.
    with pytest.raises(errors.UsageError, match=r"there is no statement about .* by this machine"):
        push.push(Request.read("spirv"), machine.registry, sign=str(machine.work / "a"))
    push.push(Request.read("spirv"), f"{machine.registry}/mirror", sign="")
    machine.forget()
    Machine(**{**vars(machine), "registry": f"{machine.registry}/mirror"}).pull("a", "b", threshold=2)


def state(machine: Machine, key: str, **changes: object) -> Document:
    """Return a statement about the image, with changes."""
    inputs = statement.derived(SPIRV, RELEASE, Inputs(SPIRV, RELEASE).labels)
    name = str(changes.pop("name", machine.name))
    subject = [Resource(name, {"sha256": machine.id.removeprefix("sha256:")})]
    said = statement.make(subject, kind="image", asked={}, derived={**inputs, **changes}, inputs=[])
    text = statement.seal(said, keys.read_private(machine.work / key) if key else None).encode()
    return Document("said", statement.PAYLOAD, images._ENVELOPE, text)


@engine_test
@pytest.mark.parametrize(
    ("key", "changes", "said"),
    [
        ("a", {}, ""),
        ("", {}, "a statement that no trusted key signed"),
        ("stranger", {}, "a statement that no trusted key signed"),
        ("a", {"lock": "0" * 64}, "a.pub signed it for other inputs: lock"),
        ("a", {"plugins": {}}, "a.pub signed it for other inputs: plugins"),
        ("a", {"name": "triton-foundry/dpu:1"}, "a.pub signed triton-foundry/dpu:1 with sha256"),
    ],
    ids=("signed", "unsigned", "untrusted", "lock", "plugins", "name"),
)
def test_only_trusted_signatures_are_taken(machine: Machine, key: str, changes: dict[str, object], said: str) -> None:
    made = machine.load()
    images.push(made, machine.id, machine.repository, [state(machine, key, **changes)], engine=machine.docker)
    machine.forget()
    if not said:
        machine.pull()
        return
    with pytest.raises(errors.VerificationError, match="0 of 1 trusted keys") as raised:
        machine.pull()
    assert said in raised.value.why
    assert machine.docker.image(machine.name) is None


@engine_test
def test_an_image_that_was_swapped_in_the_registry_is_not_fetched(machine: Machine, tiny: str) -> None:
    machine.push()
    descriptor, _ = machine.found()
    good = list(images._statements(machine.repository, descriptor.digest))
    other = f"{machine.repository.name}:{machine.tag}"
    machine.docker.tag(tiny, other)
    machine.docker.push(other)
    machine.docker.remove(other)
    swapped, _ = machine.found()
    machine.repository.attach(swapped, Document("said", statement.PAYLOAD, images._ENVELOPE, good[0]))
    with pytest.raises(errors.VerificationError, match="0 of 1 trusted keys") as raised:
        machine.pull()
    assert f"a.pub signed {machine.name} with sha256 {machine.id[7:19]}" in raised.value.why
    # Nor does the right one replace it.
    machine.load()
    with pytest.raises(errors.ImageError, match="is not this image, and a name in a registry is never replaced"):
        push.push(Request.read("spirv"), machine.registry, sign=str(machine.work / "a"))
    assert machine.found()[0] == swapped


@engine_test
@pytest.mark.parametrize("part", ["manifest", "config", "layer", "statement"])
def test_a_byte_that_flipped_in_the_registry_is_found(machine: Machine, part: str) -> None:
    machine.push()
    descriptor, manifest = machine.found()
    said = next(
        each for each in machine.repository.referrers(descriptor.digest) if each.artifact_type == statement.PAYLOAD
    )
    document = machine.repository.manifest(said.digest)
    assert document is not None
    digests = {
        "manifest": descriptor.digest,
        "config": manifest.config.digest,
        "layer": manifest.layers[-1].digest,
        "statement": document[1].layers[0].digest,
    }
    place = machine.blob(digests[part])
    data = place.read_bytes()
    at = data.index(b"sha256:") + 8 if part in ("manifest", "config") else len(data) // 2
    place.write_bytes(data[:at] + (b"0" if data[at : at + 1] != b"0" else b"1") + data[at + 1 :])
    try:
        with pytest.raises(
            (errors.EngineError, errors.FetchError, errors.HashMismatchError, errors.VerificationError)
        ) as raised:
            machine.pull()
    finally:
        place.write_bytes(data)
    assert machine.docker.image(machine.name) is None
    assert machine.docker.image(machine.id) is None, raised.value
    machine.pull()


@engine_test
def test_image_with_an_unpublished_id_is_not_taken(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.push()
    inputs = Inputs(SPIRV, RELEASE).identity()

    def publish(inputs: str) -> None:
        entry = ExpectedImage(inputs, f"sha256:{'0' * 64}", ())
        monkeypatch.setattr(expected, "load", lambda: Expected({"spirv": {RELEASE.version: entry}}, {}))

    publish(inputs)
    with pytest.raises(errors.VerificationError, match="is not the image that was published for these inputs"):
        machine.pull()
    publish("0" * 64)
    machine.pull()


@engine_test
def test_a_push_that_broke_off_sends_no_finished_layer_again(machine: Machine) -> None:
    proxy = BreakingProxy(machine.registry.partition("/")[0])
    through = Machine(**{**vars(machine), "registry": f"{proxy.address}/broken{os.getpid()}"})
    made = machine.load()
    layers = f"docker/registry/v2/repositories/broken{os.getpid()}/spirv/_layers/sha256/*"
    # In the large layer, after the others are finished.
    proxy.limit, proxy.may_break = SMALL + LARGE // 4, lambda: len(list(machine.storage.glob(layers))) >= 2
    with pytest.raises(errors.EngineError, match="the same command again"):
        images.push(made, machine.id, through.repository, [], engine=machine.docker)
    proxy.broken, proxy.limit, before = False, math.inf, proxy.sent
    assert machine.docker.image(f"{through.repository.name}:{machine.tag}") is None
    done = images.push(made, machine.id, through.repository, [state(machine, "a")], engine=machine.docker)
    assert done.moved
    assert LARGE < proxy.sent - before < LARGE + SMALL
    again = proxy.sent
    assert not images.push(made, machine.id, through.repository, [state(machine, "a")], engine=machine.docker).moved
    assert proxy.sent - again < SMALL
    machine.forget()
    through.pull()


@engine_test
def test_build_takes_a_signed_image_and_otherwise_says_why_and_builds(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ensure, "ensure_image", ENSURE)
    monkeypatch.setattr(sbom, "describe", DESCRIBE)

    def built(*_: object, **__: object) -> None:
        raise errors.ImageError("it is built")

    monkeypatch.setattr(target_image, "fetch", built)
    request, public = Request.read("spirv"), [str(machine.work / "a.pub")]

    def build(registry: str) -> str:
        build_verb.build(request, sizes=False, sign="", registry=registry, public=public)
        return capsys.readouterr().out

    with pytest.raises(errors.ImageError, match="it is built"):
        build(machine.registry)
    said = capsys.readouterr().out
    assert f"not taken from {machine.registry}, so it is built: {machine.registry}/spirv has no image of" in said
    made = machine.load()
    images.push(made, machine.id, machine.repository, [state(machine, "stranger")], engine=machine.docker)
    machine.forget()
    with pytest.raises(errors.ImageError, match="it is built"):
        build(machine.registry)
    assert "0 of 1 trusted keys signed it for this checkout: a statement that no" in capsys.readouterr().out
    machine.load()
    images.push(made, machine.id, machine.repository, [state(machine, "a")], engine=machine.docker)
    machine.forget()
    assert "taken from" in build(machine.registry)
    assert "exists already" in build("127.0.0.1:1")
    machine.forget()


@engine_test
def test_an_image_with_a_vendors_files_is_not_pushed_under_a_harmless_name(machine: Machine, tmp_path: Path) -> None:
    archive = tmp_path / "sdk.tar"
    image(archive, [dict.fromkeys(SDK, b"theirs")], machine.name)
    machine.docker.load(archive)
    with pytest.raises(errors.ImageError, match="is not pushed: it has UPMEM's SDK in it") as raised:
        push.push(Request.read("spirv"), machine.registry, sign="")
    assert "opt/x/bin/dpu-pkg-config in layer 1" in raised.value.why
    assert machine.repository.manifest(machine.tag) is None


def image(
    archive: Path, layers: Sequence[dict[str, bytes]], name: str = "a:b", labels: Mapping[str, str] | None = None
) -> Path:
    """Write a docker-archive of an image with these files in its layers."""
    return save(archive, [packed(files) for files in layers], tags=[name], config={"Labels": labels})


def own_part(store: Store, files: dict[str, bytes]) -> None:
    """Put our own part for DPUs into a store."""
    builder = lock.load().targets["dpu"].builder
    assert builder is not None

    identity = native.identity("upmem-emulator", builder)
    store.part("native", identity, lambda folder: (folder / "upmem-emulator.tar").write_bytes(packed(files)) and None)


@pytest.mark.parametrize(
    ("layers", "said"),
    [
        ([dict.fromkeys(SDK, b"theirs")], "opt/x/bin/dpu-pkg-config in layer 1"),
        # Deleted by a later layer, and still in what is pushed.
        (
            [{SDK[0]: b"theirs"}, {SDK[1]: b"ours"}, {"opt/x/bin/.wh.dpu-upmem-dpurte-clang": b""}],
            f"{SDK[0]} in layer 1",
        ),
        # A layer has a file more than our own SDK has.
        ([{**dict.fromkeys(SDK, b"ours"), "opt/x/share/file": b"theirs"}], "opt/x/share/file in layer 1"),
        ([dict.fromkeys(SDK, b"ours")], ""),
        # The header of OpenCL, and LLVM's tools.
        ([{"usr/include/CL/cl.h": b"debian", "usr/lib/llvm-14/bin/llvm-objcopy": b"debian"}], ""),
    ],
    ids=("renamed", "deleted", "beside ours", "ours", "Debian's"),
)
def test_a_vendors_files_are_found_in_any_layer_and_ours_are_not_taken_for_them(
    tmp_path: Path, store: Store, layers: list[dict[str, bytes]], said: str
) -> None:
    own_part(store, dict.fromkeys((name.removeprefix("opt/x/") for name in SDK), b"ours"))
    archive = image(tmp_path / "image.tar", layers)
    if not said:
        vendor.refuse_vendor_files(archive, "a:b", store)
        return
    with pytest.raises(errors.ImageError, match="it has UPMEM's SDK in it") as raised:
        vendor.refuse_vendor_files(archive, "a:b", store)
    assert said in raised.value.why


def test_image_of_an_sdk_or_of_unknown_files_is_not_pushed(tmp_path: Path, store: Store) -> None:
    archive = image(tmp_path / "image.tar", [{}], labels={f"{target_image.LABEL}sdk": "upmem 2023.1.0"})
    with pytest.raises(errors.ImageError, match=r"is not pushed: it has upmem 2023\.1\.0 in it"):
        vendor.refuse_vendor_files(archive, "a:b", store)
    archive = image(tmp_path / "image.tar", [dict.fromkeys(SDK, b"ours")])
    with pytest.raises(errors.ImageError, match="is not pushed") as raised:
        vendor.refuse_vendor_files(archive, "a:b", store)
    assert "known to be of our own part upmem-emulator: the store has none" in raised.value.why


def test_an_image_that_arrives_with_another_id_is_removed_and_gets_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    engine: Any = FakeEngine({"": ImageInfo("sha256:2", (), {}, 1, ())})
    monkeypatch.setattr(expected, "image_id", lambda *_: "sha256:2")
    with pytest.raises(errors.ImageError, match="is not the image that was signed") as raised:
        images._take("x@sha256:3", "sha256:1", ["a:b"], engine)
    assert raised.value.why == "its ID: sha256:2\nsigned: sha256:1"
    assert engine.asked_to("remove") == ["x@sha256:3"]


SUBJECT = Descriptor("m", f"sha256:{'5' * 64}", 9)
SAID = Document("said", "application/x", "application/x+json", b"text")


@pytest.fixture
def modern(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModernRegistry]:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with ModernRegistry() as server:
        yield server
        server.shutdown()


def log_in(server: ModernRegistry, folder: Path, entry: dict[str, str]) -> None:
    (folder / "config.json").write_text(json.dumps({"auths": {server.address: entry}}))


def test_a_registry_with_referrers_and_tokens_gets_each_document_once(modern: ModernRegistry, tmp_path: Path) -> None:
    log_in(modern, tmp_path, {"auth": modern.USER.removeprefix("Basic ")})
    repository = Repository(f"{modern.address}/team", "spirv")
    assert repository.manifest("tag") is None
    made = repository.attach(SUBJECT, SAID)
    uploads = modern.uploads
    assert repository.attach(SUBJECT, SAID) == made
    assert modern.uploads == uploads == 2
    # There is no second index of the referrers.
    assert [*modern.manifests] == [made.digest]
    assert [each.digest for each in repository.referrers(SUBJECT.digest)] == [made.digest]
    found = repository.manifest(made.digest)
    assert found is not None
    assert (found[1].subject, found[1].artifact_type) == (SUBJECT, "application/x")
    assert repository.blob(found[1].layers[0].digest) == b"text"
    modern.blobs[found[1].layers[0].digest] = b"texT"
    with pytest.raises(errors.HashMismatchError, match="is damaged in the registry"):
        repository.blob(found[1].layers[0].digest)
    modern.manifests[made.digest] = b"{}"
    with pytest.raises(errors.HashMismatchError, match="is damaged in the registry"):
        repository.manifest(made.digest)


@pytest.mark.parametrize(
    "entry", [{}, {"auth": "bWU6d3Jvbmc="}, {"identitytoken": "x"}], ids=("none", "wrong", "token")
)
def test_refusing_registry_says_what_to_type(modern: ModernRegistry, tmp_path: Path, entry: dict[str, str]) -> None:
    log_in(modern, tmp_path, entry)
    with pytest.raises(errors.FetchError, match="asks for a user and a password") as raised:
        Repository(f"{modern.address}/team", "spirv").manifest("tag")
    assert raised.value.next == f"docker login {modern.address}"
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    "address", ["", "team", "http://localhost:5000", "me:secret@registry.example", "a.b/Team", "a.b/"]
)
def test_invalid_registry_address_is_refused(address: str) -> None:
    with pytest.raises(errors.UsageError, match="not the address of a registry") as raised:
        Repository(address, "spirv")
    assert "secret" not in str(raised.value)


def test_only_this_machine_is_asked_without_tls() -> None:
    local = [Repository(each, "x")._url for each in ("localhost:1", "127.0.0.1:1", "127.1.2.3")]
    assert all(each.startswith("http://") for each in local)
    others = [
        Repository(each, "x")._url for each in ("localhost.evil.example", "127.0.0.1.example", "registry:5000/team")
    ]
    assert all(each.startswith("https://") for each in others)


def test_a_registry_that_does_not_answer_or_has_no_image_is_named(modern: ModernRegistry, tmp_path: Path) -> None:
    with pytest.raises(errors.FetchError, match=r"the registry 127\.0\.0\.1:1 does not answer"):
        Repository("127.0.0.1:1", "spirv").manifest("tag")
    log_in(modern, tmp_path, {"auth": modern.USER.removeprefix("Basic ")})
    repository = Repository(f"{modern.address}/team", "spirv")
    with pytest.raises(errors.AbsentError, match="has no image of spirv as this checkout asks for it"):
        images.pull(SPIRV, RELEASE, repository, Trust({}), engine=NO_ENGINE, store=NO_ENGINE)
    with pytest.raises(errors.UsageError, match="only if a trusted key signed it"):
        pull.read_trust([])


@pytest.mark.parametrize("options", [{"offline": True}, {"no_cache": True}])
def test_an_image_that_no_registry_has_is_not_asked_for(options: dict[str, Any]) -> None:
    with pytest.raises(errors.UsageError, match="--from takes the image of the lock"):
        pull.take(Request.read("spirv", **options), "127.0.0.1:1", Trust({}))


def test_signed_push_replaces_a_damaged_statement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stated(Exception):
        pass

    def state(*_: object) -> None:
        raise Stated

    damaged = tmp_path / "damaged.json"
    damaged.write_text("{")
    image = target_image.Image("triton-foundry/spirv:0", ImageInfo("sha256:0", (), {}, 1, ()), False)
    monkeypatch.setattr(ensure, "ensure_image", lambda request: (NO_ENGINE, image))
    monkeypatch.setattr(images, "prove", lambda image, **_: "sha256:0")
    monkeypatch.setattr(keys, "read_private", lambda path: object())
    monkeypatch.setattr(statement, "file", lambda name: damaged)
    monkeypatch.setattr(statement, "state_image", state)
    with pytest.raises(Stated):
        push.push(Request.read("spirv"), "127.0.0.1:1", sign="key")
    with pytest.raises(errors.FoundryError, match="statement"):
        push.push(Request.read("spirv"), "127.0.0.1:1", sign="")
