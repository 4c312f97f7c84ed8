"""Bake files: buildx understands them, their contexts have every named file, and they build the same layers."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import tarfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import archive_files
import jsonschema
import pytest
from bake_schema import SCHEMA
from fakes import FakeEngine
from tiny import tiny_image

from toolchains.archives import docker_archive, folders
from toolchains.archives.tar_file import EPOCH
from toolchains.artifacts import linked, native, plugin_wheels, triton_wheel
from toolchains.assembly import target_image
from toolchains.assembly.request import Request
from toolchains.assembly.target_image import Inputs, Layer
from toolchains.engine import client, host
from toolchains.engine.client import ImageInfo
from toolchains.fetch.store import Store
from toolchains.images import layer as layers
from toolchains.images.base import BaseImage
from toolchains.lockfile import lock
from toolchains.lockfile.lock import LockedTarget
from toolchains.patching import debian_files
from toolchains.system import paths
from toolchains.system.errors import ImageError, UsageError
from toolchains.verbs import bake

DOCKERFILE = b"""ARG BASE
FROM ${BASE}
ARG PART=none
ARG SOURCE_DATE_EPOCH
COPY wheels/ /wheels/
ADD parts/${PART}.tar /part/
RUN mkdir /made && echo $SOURCE_DATE_EPOCH > /made/b && ln /made/b /made/a && chmod 600 /made/b && rm /removed
CMD ["/bin/sh"]
"""


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "toy-1.0-py3-none-any.whl"
    path.write_text("a wheel")
    return path


@pytest.fixture
def layer(tmp_path: Path, wheel: Path) -> Layer:
    installed = layers.Wheel(wheel, hashlib.sha256(wheel.read_bytes()).hexdigest())
    part = tmp_path / "some.tar"
    with part.open("wb") as file:
        folders.write_tar(file, {"bin/tool": b"a tool"})
    return Layer(
        name=f"foundry-test/bake:{os.getpid()}",
        base="BASE",
        dockerfile=DOCKERFILE,
        wheels=[installed],
        arguments={"PART": "toy"},
        labels={"org.test": "1"},
        files={"parts/toy.tar": part},
    )


@pytest.fixture
def base(tmp_path: Path) -> BaseImage:
    rootfs, made = tmp_path / "rootfs.tar", tmp_path / "base.tar"
    with rootfs.open("wb") as file:
        folders.write_tar(file, {"etc/hosts": b"", "removed": b""})
    docker_archive.write_base_image(
        rootfs, made, name="test/base:1", architecture="amd64", env=["PATH=/bin"], command=["/bin/sh"]
    )
    return BaseImage("test/base:1", made)


def definition(folder: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((folder / bake.BAKE_FILE).read_text())
    return read


def named_sources(dockerfile: str, arguments: Mapping[str, str]) -> list[str]:
    """Return what the COPY and ADD of a Dockerfile take from the context, with the ARGs replaced."""
    values = dict(re.findall(r"^ARG (\w+)=(\S*)$", dockerfile, re.M)) | dict(arguments)
    found = []
    for line in re.findall(r"^(?:COPY|ADD) (.*)$", dockerfile, re.M):
        *sources, _ = line.split()
        if not line.startswith("--from="):
            found += [re.sub(r"\$\{(\w+)\}", lambda match: values[match[1]], source) for source in sources]
    return found


def check_chain(folder: Path) -> None:
    """Check that each target starts from the one before, by the name in its Dockerfile, and has the files it names."""
    below = ""
    for name, target in definition(folder)["target"].items():
        context = folder / target["context"]
        dockerfile = (context / "Dockerfile").read_text()
        origins = set(re.findall(r"^FROM (\S+)", dockerfile, re.M))
        if below:
            assert target["contexts"] == {below: f"target:{below}"}
            assert {target["args"][origin.strip("${}")] for origin in origins} == {below}
        else:
            assert origins == {"scratch"}
        sources = named_sources(dockerfile, target["args"])
        assert sources
        assert [source for source in sources if not (context / source).exists()] == []
        below = name
    assert definition(folder)["group"]["default"]["targets"] == [below]


def check_combined(written: Mapping[str, Any], folder: str, moving: Sequence[str]) -> None:
    """Check that the file for all targets says the same of these ones, but for names, folders and the digests' tags."""
    job, place = folder.replace(".", "_"), f"{bake.FOLDERS}/{folder}/"
    found = json.loads(bake.combined(lock.load()))["target"]
    names = {"base": f"{job}-base", "python": f"{job}-python", [*written][-1]: job}
    for name, expected in written.items():
        combined = found[names[name]]
        assert combined["context"] == place + expected["context"]
        below = {key: f"target:{names[key]}" for key in expected.get("contexts", {})}
        assert combined.get("contexts", {}) == below
        assert combined["output"] == [text.replace("dest=", f"dest={place}") for text in expected["output"]]
        assert combined.get("tags", []) == [tag for tag in expected["tags"] if tag in moving]
        same = expected.keys() - {"context", "contexts", "output", "tags"}
        assert {key: combined[key] for key in same} == {key: expected[key] for key in same}


def test_buildx_reads_the_file_and_its_targets_are_a_chain(base: BaseImage, layer: Layer, tmp_path: Path) -> None:
    bake.write(tmp_path / "out", base, [("middle", layer), ("top", layer)], names=["test/top:latest"])
    read = definition(tmp_path / "out")
    jsonschema.validate(read, SCHEMA)
    assert list(read["target"]) == ["base", "middle", "top"]
    for target in read["target"].values():
        assert target["network"] == "none"
        assert target["platforms"] == ["linux/amd64"]
        assert target["args"]["SOURCE_DATE_EPOCH"] == str(EPOCH)
    top = read["target"]["top"]
    assert top["tags"] == [layer.name, "test/top:latest"]
    assert (top["labels"], top["args"]["PART"]) == (layer.labels, "toy")
    # Only the image is sent back, and it starts from the base.
    outputs = {name: target["output"] for name, target in read["target"].items()}
    assert outputs["base"] == outputs["middle"] == ["type=cacheonly"]
    assert outputs["top"][0].startswith(f"type=docker,dest={bake.RESULT}")
    with tarfile.open(tmp_path / "out/base/rootfs.tar") as tar:
        assert tar.getnames() == ["etc/hosts", "removed"]
    assert 'ENV PATH="/bin"\nCMD ["/bin/sh"]\n' in (tmp_path / "out/base/Dockerfile").read_text()
    # Each target starts from the one before, and has its files.
    check_chain(tmp_path / "out")
    (tmp_path / "out/top/parts/toy.tar").unlink()
    with pytest.raises(AssertionError):
        check_chain(tmp_path / "out")


@pytest.mark.parametrize("name", lock.load().targets)
def test_the_contexts_of_every_target_have_what_its_dockerfiles_name(
    monkeypatch: pytest.MonkeyPatch, base: BaseImage, wheel: Path, tmp_path: Path, name: str
) -> None:
    """The files that are fetched or built are replaced by made-up ones with the names that image.py gives them."""
    monkeypatch.setattr(target_image, "fetch", lambda inputs, _: inputs)
    monkeypatch.setattr(plugin_wheels, "wheel", lambda *_: plugin_wheels.PluginWheel(wheel, "0"))
    monkeypatch.setattr(native, "part", lambda recipe, *_, **__: native.NativePart(recipe, wheel, "0"))
    monkeypatch.setattr(linked, "fetch_if_needed", lambda target, *_: target)
    monkeypatch.setattr(linked, "part", lambda *_: wheel)
    monkeypatch.setattr(debian_files, "part", lambda *_: wheel)
    monkeypatch.setattr(triton_wheel, "repack", lambda *_, **__: wheel)
    monkeypatch.setattr(Store, "path", lambda *_: wheel)
    monkeypatch.setattr(Store, "sha256", lambda *_: "0" * 64)
    target, store = lock.load().targets[name], Store(tmp_path / "store", offline=True)
    release = target_image.release(target, "")
    inputs, top = target_image.gather(Inputs(target, release), store, lambda: None)  # type: ignore[arg-type, return-value]
    middle = target_image.python_layer(inputs, store)
    names = inputs.moving_names
    bake.write(tmp_path / "out", base, [("python", middle), (name, top)], names=names)
    check_chain(tmp_path / "out")
    if target in lock.load().proven():
        check_combined(definition(tmp_path / "out")["target"], f"{name}-{release.version}", names)


def test_nothing_in_it_names_this_machine_or_leaves_the_folder(base: BaseImage, layer: Layer, tmp_path: Path) -> None:
    bake.write(tmp_path / "out", base, [("top", layer)], names=[])
    texts = [path for path in (tmp_path / "out").rglob("*") if path.suffix in ("", ".json", ".txt") and path.is_file()]
    assert len(texts) == 4
    for path in texts:
        text = path.read_text()
        for place in (tmp_path, paths.ROOT, Path.home(), paths.cache(), paths.scratch()):
            assert f"{place}/" not in text
    for target in definition(tmp_path / "out")["target"].values():
        assert (tmp_path / "out" / target["context"]).parent == tmp_path / "out"


def test_the_same_inputs_give_the_same_folder_whatever_the_umask(base: BaseImage, layer: Layer, tmp_path: Path) -> None:
    found = []
    for name, mask in (("one", 0o022), ("other", 0o077)):
        before = os.umask(mask)
        try:
            bake.write(tmp_path / name, base, [("top", layer)], names=[])
        finally:
            os.umask(before)
        folder = tmp_path / name
        modes = {path.relative_to(folder): path.stat().st_mode for path in folder.rglob("*")}
        found.append((folders.files_digest(folders.files(folder)), modes))
    assert found[0] == found[1]


def test_no_text_is_a_variable_of_the_dockerfile_or_of_the_bake_file() -> None:
    # As Docker 26 reads it.
    assert bake.dockerfile_word("a\"b\\c$HOME d%ñ' ` \\n") == '"a\\"b\\\\c\\$HOME d%ñ\' ` \\\\n"'
    stage = bake.Stage("top", labels={"sdk": "1.0 ${HOME} %{if} $ % {x} ñ"})
    assert bake.targets([stage], "linux/amd64")["top"]["labels"] == {"sdk": "1.0 $${HOME} %%{if} $ % {x} ñ"}


def test_a_folder_with_something_in_it_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(UsageError, match="not an empty folder"):
        bake.bake(Request.read("spirv", offline=True), into=str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_failed_bake_leaves_no_folder(base: BaseImage, layer: Layer, tmp_path: Path) -> None:
    layer.wheels[0].path.unlink()
    with pytest.raises(FileNotFoundError):
        bake.write(tmp_path / "there" / "out", base, [("top", layer)], names=[])
    assert list((tmp_path / "there").iterdir()) == []


@pytest.fixture
def loading(monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    engine = FakeEngine({"": ImageInfo("sha256:" + "1" * 64, (), {}, 1, ())})
    monkeypatch.setattr(host, "ensure_engine", lambda: engine)
    return engine


@pytest.fixture
def target() -> LockedTarget:
    return lock.load().targets["spirv"]


def sent_back(
    file: Path, *, tags: list[str], digest: str, date: int, target: str = "spirv", machine: str = "amd64"
) -> None:
    """Write a docker-archive as BuildKit does: with the dates of the build, and its own words in the history."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        entry = tarfile.TarInfo("made")
        entry.mtime, entry.uname = date, "builder"
        tar.addfile(entry)
    config = {
        "architecture": machine,
        "os": "linux",
        "created": str(date),
        "config": {
            "Cmd": ["sh"],
            "Labels": {target_image.LABEL + "target": target, target_image.LABEL + "lock": digest},
        },
        "history": [{"created": str(date), "created_by": "RUN true # buildkit"}],
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + "0" * 64]},
    }
    manifest = [{"Config": "config", "Layers": ["layer"], "RepoTags": tags}]
    texts = {"config": config, "manifest.json": manifest}
    archive_files.tar(
        file, {"layer": packed.getvalue()} | {name: json.dumps(text).encode() for name, text in texts.items()}
    )


def test_adopted_image_is_normalised_and_gets_its_names(
    loading: FakeEngine, target: LockedTarget, tmp_path: Path
) -> None:
    name = "triton-foundry/spirv:0123456789abcdef"
    moving = Inputs(target, target_image.release(target, "")).moving_names
    for date in (1_900_000_000, 1_900_000_777):
        sent_back(tmp_path / "image.tar", tags=[name, *moving], digest=target.digest, date=date)
        bake.adopt(Request.read("spirv"), tmp_path / "image.tar")
    assert loading.loaded[0] == loading.loaded[1]
    with tarfile.open(fileobj=io.BytesIO(loading.loaded[0])) as tar:
        (manifest,) = json.load(tar.extractfile("manifest.json") or io.BytesIO())
    assert manifest["RepoTags"] == [name]
    assert loading.asked_to("tag") == [*moving, *moving]


@pytest.mark.parametrize("what", ["another target", "another release", "another lock", "another platform", "no image"])
def test_archive_of_something_else_is_not_loaded(
    loading: FakeEngine, target: LockedTarget, tmp_path: Path, what: str
) -> None:
    file = tmp_path / "image.tar"
    other = "dpu" if what == "another target" else "spirv"
    release = "3.6.0" if what == "another release" else target.default_triton
    digest = "0" * 64 if what == "another lock" else target.digest
    names = [f"triton-foundry/spirv:{tag}" for tag in ("0123456789abcdef", release)]
    machine = "arm64" if what == "another platform" else "amd64"
    sent_back(file, tags=names, digest=digest, date=1, target=other, machine=machine)
    if what == "no image":
        file.write_text("no tar")
    said = "not an archive of one image" if what == "no image" else "is not an image of spirv with Triton 3"
    with pytest.raises(ImageError, match=said):
        bake.adopt(Request.read("spirv"), file)
    assert loading.loaded == []


def test_a_file_that_is_not_there_is_no_image(loading: FakeEngine, tmp_path: Path) -> None:
    request = Request.read("spirv", triton="3.6.0", platform="linux/arm64")
    again = "bake spirv --triton=3.6.0 --platform=linux/arm64 --into=DIR"
    with pytest.raises(UsageError, match=f"(?s)there is no file.*{again}"):
        bake.adopt(request, tmp_path / "image.tar")


def contents(image: Path) -> dict[str, bytes]:
    """Return the files of a one-layer image. Folders are left out: engines add entries for those that are not named."""
    with tarfile.open(image) as tar:
        (manifest,) = json.load(tar.extractfile("manifest.json") or io.BytesIO())
        (layer,) = manifest["Layers"]
        with tarfile.open(fileobj=tar.extractfile(layer)) as inner:
            return {each.name: (inner.extractfile(each) or io.BytesIO()).read() for each in inner if each.isreg()}


@pytest.mark.docker
def test_classic_builder_makes_the_same_image_from_the_written_contexts(layer: Layer, tmp_path: Path) -> None:
    docker = client.connect()
    with tiny_image(docker, tmp_path) as tiny:
        image = docker.image(tiny)
        assert image is not None
        base = BaseImage(tiny, tmp_path / "tiny.tar")
        try:
            here = layer.make(docker, tiny, image.layers, Store(tmp_path / "store"))
            # Two builds within one second have equal dates even without normalisation.
            time.sleep(1.1)
            bake.write(tmp_path / "out", base, [("top", layer)], names=[])
            targets = definition(tmp_path / "out")["target"]

            def built(name: str, below: tuple[str, ...], **arguments: str) -> str:
                """Build a target. Return its ID after the normalisation that our images get."""
                saved, normal = tmp_path / "saved.tar", tmp_path / "normal.tar"
                with TemporaryFile() as context:
                    folders.write_tar(context, folders.files(tmp_path / "out" / name))
                    context.seek(0)
                    arguments, labels = targets[name]["args"] | arguments, targets[name].get("labels")
                    with (
                        docker.build(context, arguments=arguments, labels=labels) as made,
                        saved.open("wb") as file,
                    ):
                        docker.save(made, file)
                return docker_archive.normalise(saved, normal, name=layer.name, known=below)

            assert built("top", image.layers, BASE=tiny) == here.id
            built("base", ())
            assert contents(tmp_path / "normal.tar") == contents(tmp_path / "tiny.tar")
        finally:
            docker.remove(layer.name)
