"""The published IDs: what has the same inputs is compared with them, and what changed since is called out of date."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fakes import FakeEngine
from image_archives import image

from toolchains.archives import docker_archive
from toolchains.artifacts import plugin_wheels
from toolchains.assembly import ensure, target_image
from toolchains.assembly.request import Request
from toolchains.assembly.target_image import Image, Inputs
from toolchains.engine import host
from toolchains.engine.client import ImageInfo
from toolchains.fetch.store import Store
from toolchains.lockfile import lock
from toolchains.repro import expected
from toolchains.repro.expected import Expected, ExpectedImage
from toolchains.system import paths
from toolchains.system.errors import CheckError, FileError, ImageError, PartError, UsageError
from toolchains.verbs import build as building
from toolchains.verbs import expected as verb
from toolchains.verbs import release as releasing
from toolchains.verbs import test as suites

LOCKED = lock.load()
TARGET = LOCKED.targets["spirv"]
RELEASE = target_image.release(TARGET, None)
INPUTS = Inputs(TARGET, RELEASE).identity()
ID, OTHER = "sha256:" + "1" * 64, "sha256:" + "2" * 64
LAYERS = ("sha256:" + "a" * 64, "sha256:" + "b" * 64)


def saving(archive: Path) -> Any:
    """Return an engine that saves this archive."""
    return FakeEngine(archive=archive)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path of a file that takes the place of the repository's; it does not exist."""
    monkeypatch.setattr(paths, "EXPECTED", tmp_path / "expected.json")
    return tmp_path / "expected.json"


def published(inputs: str = INPUTS, image: str = ID) -> Expected:
    files: dict[str, dict[str, dict[str, str]]] = {}
    for kind, identity in expected.parts(TARGET, RELEASE):
        files.setdefault(kind, {})[identity] = {"file": "0" * 64}
    return Expected({"spirv": {RELEASE.version: ExpectedImage(inputs, image, LAYERS)}}, files)


def made(id: str = ID, *, name: str = f"triton-foundry/spirv:{INPUTS[:16]}", layers: tuple[str, ...] = LAYERS) -> Image:
    return Image(name, ImageInfo(id, (name,), {}, 1, layers), False)


def check(known: Expected, image: Image, engine: Any = None) -> bool:
    return expected.check_image(known, engine, image, TARGET, RELEASE.version)


def test_only_an_image_with_the_published_id_of_its_inputs_is_that_image() -> None:
    assert check(published(), made())
    assert not check(Expected({}, {}), made(OTHER))
    with pytest.raises(ImageError, match="is not the image that was published") as caught:
        check(published(), made(OTHER, layers=LAYERS[:1]))
    assert ID in caught.value.why and OTHER in caught.value.why
    assert caught.value.next == f"./foundry repro spirv --triton={RELEASE.version}"


@pytest.mark.parametrize(
    "image",
    [
        made(OTHER, name="triton-foundry/spirv:0123456789abcdef"),
        made(OTHER, name=f"triton-foundry/spirv-sdk:{INPUTS[:16]}"),
        made(OTHER, name=f"triton-foundry/spirv-source:{INPUTS[:16]}"),
    ],
    ids=["drifted, or of sources that changed", "with an SDK", "from source"],
)
def test_an_image_of_other_inputs_is_not_compared(image: Image) -> None:
    assert not check(published(), image)


def test_image_of_podman_is_not_compared(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    info = ImageInfo(OTHER, ("a",), {"io.buildah.version": "1.28.2"}, 1, LAYERS[:1])
    image = Image(f"triton-foundry/spirv:{INPUTS[:16]}", info, False)
    assert not check(published(), image)
    monkeypatch.setattr(target_image, "build_image", lambda *_, **__: image)
    monkeypatch.setattr(host, "installs_engine", lambda: False)
    monkeypatch.setattr(host, "ensure_engine", lambda: None)
    assert ensure.ensure_image(Request.read("spirv", allow_drift=True))[1] == image
    assert f"made by buildah 1.28.2: the layers and the ID of {image.name} are not compared" in capsys.readouterr().err


def test_an_engine_that_calls_images_by_their_manifests_is_asked_for_the_configuration(tmp_path: Path) -> None:
    archive = image(tmp_path / "a.tar", {"x": b"1"})
    with archive.open("rb") as opened, docker_archive.opened(opened, "a") as tar:
        manifest, _ = docker_archive.described(tar)
    id = "sha256:" + manifest["Config"].removesuffix(".json")
    assert check(published(image=id), made(OTHER), saving(archive))
    with pytest.raises(ImageError, match="is not the image that was published"):
        check(published(image=ID), made(OTHER), saving(archive))


def with_parts(store: Store, content: Callable[[str], str]) -> Store:
    for kind, identity in expected.parts(TARGET, RELEASE):
        store.part(kind, identity, lambda folder, kind=kind: (folder / f"{kind}.tar").write_text(content(kind)))  # type: ignore[misc]
    return store


def test_check_parts_accepts_published_parts_and_names_a_changed_one(file: Path, store: Store, tmp_path: Path) -> None:
    with_parts(store, lambda kind: kind)
    archive = image(tmp_path / "a.tar", {"x": b"1"})
    known = expected.update(Expected({}, {}), saving(archive), store, made(), TARGET, RELEASE)
    expected.save(known)
    assert expected.load() == known
    assert json.loads(file.read_text())["images"]["spirv"][RELEASE.version]["inputs"] == INPUTS
    assert expected.is_current(known, TARGET, RELEASE)
    assert expected.check_parts(known, store, TARGET, RELEASE) == len(list(expected.parts(TARGET, RELEASE)))
    other = with_parts(Store(tmp_path / "other"), lambda kind: "changed" if kind == "linked" else kind)
    with pytest.raises(PartError, match=r"the part linked .* is not the one that was published") as caught:
        expected.check_parts(known, other, TARGET, RELEASE)
    assert "linked.tar" in caught.value.why and "triton.tar" not in caught.value.why
    assert expected.check_parts(known, Store(tmp_path / "empty"), TARGET, RELEASE) == 0


def test_missing_part_or_damaged_file_is_an_error_by_name(store: Store, tmp_path: Path, file: Path) -> None:
    archive = image(tmp_path / "a.tar", {"x": b"1"})
    with pytest.raises(PartError, match="is not in the store"):
        expected.update(Expected({}, {}), saving(archive), store, made(), TARGET, RELEASE)
    file.write_text('{"images": {"spirv": {"3.9.0": {"inputs": 1}}}, "parts": {}}')
    with pytest.raises(FileError, match=r"expected\.json is damaged"):
        expected.load()


def test_an_edit_makes_the_entries_of_the_targets_that_have_it_out_of_date(monkeypatch: pytest.MonkeyPatch) -> None:
    known = published()
    title = f"spirv with Triton {RELEASE.version}"
    assert title not in list(expected.stale(known, LOCKED))
    assert title in list(expected.stale(published("0" * 64), LOCKED))
    assert title in list(expected.stale(Expected(known.images, {}), LOCKED))
    before = plugin_wheels.identity
    monkeypatch.setattr(plugin_wheels, "identity", lambda name: before(name) + "edited" * (name == "spirv"))
    assert title in list(expected.stale(known, LOCKED))


def test_expected_entry_that_is_no_longer_locked_is_stale_and_pruned() -> None:
    entry = ExpectedImage("0" * 64, ID, LAYERS)
    known = published()
    gone = Expected(
        {**known.images, "old": {"3.9.0": entry}}, {**known.parts, "plugin": {**known.parts["plugin"], "0" * 64: {}}}
    )
    assert "old with Triton 3.9.0, which is not locked any more" in list(expected.stale(gone, LOCKED))
    assert expected.pruned(gone, LOCKED) == known


def test_build_compares_its_image_with_the_published_one_and_the_lock_with_the_pins(
    file: Path, store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Request, "store", lambda _: store)
    monkeypatch.setattr(ensure, "ensure_image", lambda _: (None, made(OTHER, layers=())))
    building.build(Request(TARGET, RELEASE), sizes=False, sign="")
    assert "older than the pins" not in capsys.readouterr().out
    locked_before = replace(TARGET, pins={**TARGET.pins, "wheels": "0" * 64})
    building.build(Request(locked_before, RELEASE), sizes=False, sign="")
    said = " ".join(capsys.readouterr().out.split())
    assert "the lock is older than the pins: spirv: the pins of its wheels changed since they were resolved" in said
    assert "./foundry pin --update" in said
    expected.save(published())
    with pytest.raises(ImageError, match="is not the image that was published"):
        building.build(Request(TARGET, RELEASE), sizes=False, sign="")
    assert made().name in capsys.readouterr().out


def test_a_run_of_all_tests_says_how_many_images_were_compared_and_fails_if_one_is_different(
    file: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ensure, "ensure_image", lambda _: (None, made()))
    monkeypatch.setattr(Request, "store", lambda _: with_parts(store, str))
    older = replace(RELEASE, version="3.6.0")
    requests = [Request(TARGET, RELEASE), Request(TARGET, older)]
    lines: list[str] = []
    expected.save(Expected(published().images, {}))
    suites._published(requests, lines.append)
    assert lines == [
        "equal to their published IDs: 1 images and 0 parts of images",
        f"not compared, because what was published has other inputs: 1; to publish: {expected.UPDATE}",
    ]
    expected.save(published())
    with pytest.raises(CheckError, match="what was built is not what was published") as caught:
        suites._published(requests, lines.append)
    assert "the part plugin" in caught.value.why
    assert lines[2:] == lines[:2], "the images are what they were"
    expected.save(Expected(published(image=OTHER).images, {}))
    monkeypatch.setattr(ensure, "ensure_image", lambda _: (None, made(layers=())))
    with pytest.raises(CheckError) as caught:
        suites._published(requests, lines.append)
    assert f"its ID:    {ID}" in caught.value.why


def test_a_release_needs_current_ids(file: Path) -> None:
    expected.save(published())
    said = list(releasing.unpublished())
    assert len(said) == len(list(expected.releases(LOCKED))) - 1
    assert all(each.endswith(f": {expected.UPDATE}") for each in said)
    assert not any(f"for spirv with Triton {RELEASE.version}:" in each for each in said)


def test_ids_of_another_platform_are_due_once_they_were_published(file: Path) -> None:
    everything = lock.everything()
    title = f"spirv-arm64 with Triton {RELEASE.version}"
    assert title not in list(expected.stale(published(), everything))
    entry = published().images["spirv"][RELEASE.version]
    old = Expected({**published().images, "spirv-arm64": {RELEASE.version: entry}}, published().parts)
    assert title in list(expected.stale(old, everything))


def test_only_changes_are_published(file: Path, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = []

    def ensured(request: Request) -> tuple[Any, Image]:
        built.append((request.release.version, request.cache))
        if not request.cache:
            with_parts(store, str)
        return saving(image(tmp_path / "a.tar", {"x": b"1"})), made()

    monkeypatch.setattr(ensure, "ensure_image", ensured)
    monkeypatch.setattr(Request, "store", lambda _: store)
    only = replace(LOCKED, targets={"spirv": replace(TARGET, tritons={RELEASE.version: RELEASE})})
    monkeypatch.setattr(lock, "everything", lambda: only)
    verb.expected(update=None, offline=False)
    assert built == []
    # The image exists, and the store has no parts of it.
    verb.expected(update=True, offline=False)
    assert built == [(RELEASE.version, True), (RELEASE.version, False)]
    assert list(expected.stale(expected.load(), only)) == []
    verb.expected(update="spirv", offline=False)
    assert len(built) == 2
    with pytest.raises(UsageError, match="there is no target nothing"):
        verb.expected(update="nothing", offline=False)


def test_the_file_of_this_repository_can_be_read() -> None:
    """Whether it is current, a release asks: an edit of a source must not need a build."""
    for entries in expected.load().images.values():
        for entry in entries.values():
            assert len(entry.inputs) == 64 and len(entry.image) == 71 and entry.layers
