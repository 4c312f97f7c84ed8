"""Building twice: the builds share the inputs and nothing else, and what differs in the result is named."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from archive_files import artifact

from toolchains.assembly import target_image
from toolchains.assembly.request import Request
from toolchains.assembly.target_image import Inputs
from toolchains.engine import host
from toolchains.engine.client import Engine, ImageInfo
from toolchains.fetch.store import Store
from toolchains.images import layer, provenance
from toolchains.lockfile import lock
from toolchains.lockfile.lock import Artifact
from toolchains.repro import expected
from toolchains.repro.compare import Difference
from toolchains.repro.expected import Expected, ExpectedImage
from toolchains.system import paths
from toolchains.system.errors import CommandError, EngineError, FoundryError
from toolchains.verbs import repro
from toolchains.verbs.repro import Comparison, Surroundings

TARGET = lock.load().targets["spirv"]
REQUEST = Request(TARGET, target_image.release(TARGET, None))
# Prints in a build's process what it finds.
PROBE = """
import os, socket, time
mask = os.umask(0)
print(os.getcwd(), socket.gethostname(), f"{mask:03o}", time.tzname[0], os.environ["LC_ALL"],
      len(os.sched_getaffinity(0)), os.environ["FOUNDRY_CACHE"], os.environ["TMPDIR"], os.environ.get("DOCKER_HOST"),
      sep="|")
"""


def test_the_builds_find_other_surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    both = repro.surroundings(tmp_path, "tcp://192.0.2.1:2375")
    found: list[list[str]] = []
    for each in both:
        each.checkout.mkdir(parents=True)
        each.temporary.mkdir(parents=True)
        lines: list[str] = []
        each.run([sys.executable, "-c", PROBE], lines.append)
        found.append(lines[-1].split("|"))
    same = repro.not_varied(*both, 3)
    assert same[0] == "the clock: the second build began 3 s after the first one"
    names = ("checkout", "host name", "umask", "TZ", "LC_ALL", "processors", "store", "temporary files", "engine")
    for name, one, other in zip(names, *found, strict=True):
        assert (one == other) == (f"the {name}" in same), name
    assert {f"the {name}" for name in names} & {*same} <= {"the host name", "the processors"}
    assert found[1][-1] == "tcp://192.0.2.1:2375"
    with pytest.raises(CommandError, match="the second build failed") as caught:
        both[1].run([sys.executable, "-c", "raise SystemExit('no disk')"], print)
    assert "no disk" in caught.value.why


def test_a_build_begins_with_the_sources_and_the_inputs_and_nothing_that_was_built(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, deb = tmp_path / "root", tmp_path / "toy_1_amd64.deb"
    # A plugin has a folder "build", too.
    for name in ("backends/build/a.py", "build/logs/x", ".venv/bin/python", "toolchains/expected.json"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x")
    (root / "link").symlink_to("backends/build/a.py")
    (root / "foundry").touch(0o755)
    monkeypatch.setattr(paths, "ROOT", root)
    deb.write_text("a package")
    locked = artifact(deb, kind="deb", name="toy", version="1")
    store.adopt(deb, locked)
    store.part("native", "0" * 64, lambda folder: None)
    _, second = repro.surroundings(tmp_path / "work", "")
    repro.prepare(replace(second, umask="077"), [locked], store)
    copied = {path.relative_to(second.checkout).as_posix(): path for path in second.checkout.rglob("*")}
    assert sorted(copied) == ["backends", "backends/build", "backends/build/a.py", "foundry", "link", "toolchains"]
    assert copied["link"].is_symlink()
    modes = {name: copied[name].stat().st_mode & 0o777 for name in ("backends", "backends/build/a.py", "foundry")}
    assert modes == {"backends": 0o700, "backends/build/a.py": 0o600, "foundry": 0o700}
    assert Store(second.store).path(locked).read_text() == "a package"
    assert not list(second.store.glob("parts/*"))


def test_the_inputs_are_all_files_that_the_target_and_its_builder_have_locked() -> None:
    class Fetching:
        def fetch(
            self, artifacts: Sequence[Artifact], *, suite: str, python: str, platform: str = ""
        ) -> list[Artifact]:
            return list(artifacts)

    for name in ("spirv", "dpu"):
        target = lock.load().targets[name]
        release = target_image.release(target, None)
        others = {each.wheel for each in target.tritons.values() if each != release}
        found = repro.fetch_inputs(Request(target, release), Fetching())  # type: ignore[arg-type]
        assert {*found} == {*target.artifacts()} - others


def test_parts_of_two_stores_are_compared_file_by_file(tmp_path: Path) -> None:
    first, second = Store(tmp_path / "1"), Store(tmp_path / "2")
    for each in (first, second):
        each.part("native", "a" * 64, lambda folder: (folder / "same.tar").write_text("x") and None)
        each.part("plugin", "b" * 64, lambda folder, each=each: (folder / "a.py").write_text(each.root.name) and None)  # type: ignore[misc]
    first.part("triton", "c" * 64, lambda folder: (folder / "t.whl").write_text("x") and None)
    found = dict(repro.compare_stores(first.root, second.root))
    assert found.pop(f"native same.tar ({'a' * 16})") == []
    (text,), (alone,) = found.values()
    assert text.where == (f"plugin a.py ({'b' * 16})", "a.py") and text.detail.endswith("\n-1\n+2")
    assert alone.what == "presence" and (alone.first, alone.second) == ("built", "")
    assert len(dict(repro.compare_stores(first.root, second.root, both=False))) == 2


class Engines:
    """An engine that knows images by name; build() gives names to other images."""

    def __init__(self, names: dict[str, str]) -> None:
        self.names = names
        self.ids = {*names.values()}

    def named(self, pattern: str) -> dict[str, tuple[tuple[str, ...], int]]:
        return {id: (tuple(name for name in self.names if self.names[name] == id), 1) for id in self.ids}

    def image(self, name: str) -> ImageInfo | None:
        id = self.names.get(name, name)
        names = tuple(each for each in self.names if self.names[each] == id)
        return ImageInfo(id, names, {}, 1, ()) if id in self.ids else None

    def tag(self, image: str, name: str) -> None:
        self.names[name] = image

    def remove(self, image: str) -> None:
        if image in self.names:
            id = self.names.pop(image)
            self.ids -= {id} - {*self.names.values()}
        self.ids.discard(image)


def test_the_engine_is_left_as_it_was_also_if_a_build_fails(tmp_path: Path, store: Store) -> None:
    name, latest = "triton-foundry/spirv:0123456789abcdef", "triton-foundry/spirv:latest"
    engine = Engines({latest: "sha256:user"})
    both = repro.surroundings(tmp_path, "")
    # The same image was built here before, and the engine does not have it any more.
    provenance.note(name, ImageInfo("sha256:first", (), {}, 1, ()), store)
    with (
        pytest.raises(FoundryError, match="the second build failed"),
        repro._names_kept((engine,), REQUEST, store, both),  # type: ignore[arg-type]
    ):
        for each in both:
            id = f"sha256:{each.name}"
            engine.ids.add(id)
            engine.names |= {name: id, latest: id}
            provenance.note(name, ImageInfo(id, (), {}, 1, ()), Store(each.store))
        raise FoundryError("the second build failed")
    assert engine.names == {latest: "sha256:user"}
    assert engine.ids == {"sha256:user"}


def test_an_image_that_the_user_built_meanwhile_keeps_its_name(tmp_path: Path, store: Store) -> None:
    name = "triton-foundry/spirv:0123456789abcdef"
    engine = Engines({})
    both = repro.surroundings(tmp_path, "")
    with repro._names_kept((engine,), REQUEST, store, both):  # type: ignore[arg-type]
        engine.ids.add("sha256:1")
        engine.names[name] = "sha256:1"
        for each in (Store(both[0].store), store):
            provenance.note(name, ImageInfo("sha256:1", (), {}, 1, ()), each)
    assert engine.names == {name: "sha256:1"}


@pytest.mark.parametrize("published", ["nothing", "this image", "another image"])
def test_a_part_and_a_published_id_that_differ_are_named_and_all_else_is_equal(
    published: str, tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs, ((kind, identity), *_) = (
        Inputs(TARGET, REQUEST.release).identity(),
        expected.parts(TARGET, REQUEST.release),
    )
    name, engine = f"triton-foundry/spirv:{inputs[:16]}", Engines({})

    def build(self: Surroundings, words: Sequence[str], line: Callable[[str], None]) -> None:
        assert words[-1] == "--offline" and str(self.checkout) in words
        built = Store(self.store)
        built.part(kind, identity, lambda folder: (folder / "a.py").write_text(self.name) and None)
        built.part("base", "0" * 64, lambda folder: (folder / "image.tar").write_text("x") and None)
        engine.ids.add("sha256:1")
        engine.names[name] = "sha256:1"
        provenance.note(name, ImageInfo("sha256:1", (), {}, 1, ()), built)

    monkeypatch.setattr(Surroundings, "run", build)
    monkeypatch.setattr(host, "ensure_engine", lambda: engine)
    monkeypatch.setattr(repro, "fetch_inputs", lambda *_: [])
    monkeypatch.setattr(repro, "prepare", lambda *_: None)
    monkeypatch.setattr(paths, "EXPECTED", tmp_path / "expected.json")
    monkeypatch.setattr(Request, "store", lambda _: store)
    if published != "nothing":
        entry = ExpectedImage(inputs, "sha256:1" if published == "this image" else "sha256:2", ("a layer",))
        expected.save(Expected({"spirv": {REQUEST.release.version: entry}}, {}))
    store.part(kind, identity, lambda folder: (folder / "a.py").write_text("first") and None)
    result = repro.build_twice(REQUEST)
    part = f"{kind} a.py ({identity[:16]})"
    found = {each.where: each for each in result.differences}
    assert found.pop((part, "a.py")).detail.endswith("\n-first\n+second")
    assert list(found) == [("toolchains/expected.json",)] * (published == "another image")
    assert set(result.compared) >= {
        f"image {name}, sha256:1: equal",
        f"{part}: different",
        f"base image.tar ({'0' * 16}): equal",
        f"{part} that was built here before: equal",
    }
    assert ("the published ID of the image: equal" in result.compared) == (published == "this image")
    assert engine.names == {}


# The first step writes the same each time, but for its time.
DOCKERFILE = b"""
ARG BASE
FROM ${BASE}
ARG SOURCE_DATE_EPOCH
RUN mkdir /a && echo same > /a/same
RUN cat /proc/sys/kernel/random/uuid > /a/id
"""


@pytest.mark.docker
def test_varying_step_is_named_with_layer_and_file(docker: Engine, tiny: str, store: Store) -> None:
    known, names, made = docker.image(tiny).layers, [], []  # type: ignore[union-attr]
    try:
        for number in range(2):
            names.append(f"foundry-test/repro-{number}:{os.getpid()}")
            made.append(
                (docker, layer.layer(docker, names[-1], DOCKERFILE, {"BASE": tiny}, {}, [], known, store=store).id)
            )
        (found,) = repro.compare_engine_images(made[0], made[1], ("it",))
        assert repro.compare_engine_images(made[0], made[0], ("it",)) == []
    finally:
        for name in names:
            docker.remove(name)
    image, where, file = found.where
    assert (image, file, found.what) == ("it", "a/id", "content")
    assert where == "layer 3: cat /proc/sys/kernel/random/uuid > /a/id"
    assert "\n-" in found.detail and "\n+" in found.detail


@pytest.mark.parametrize("different", [False, True])
def test_the_exit_status_says_whether_all_is_equal(
    different: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = [Difference((f"layer {n}", "etc/id"), "content", "1", "2", "-1\n+2") for n in range(30 * different)]
    monkeypatch.setattr(paths, "RESULTS", tmp_path)
    monkeypatch.setattr(
        repro, "build_twice", lambda *_, **__: Comparison(differences=found, compared=["image x: compared"])
    )
    assert repro.repro(REQUEST, engine="") == different
    said = capsys.readouterr().out
    assert "image x: compared" in said
    assert ("all is equal" in said) == (not different)
    if different:
        (file,) = tmp_path.rglob("repro.txt")
        assert f"30 differences; all of them are in {file}" in said
        assert "layer 0 > etc/id: content" in said and "layer 29" not in said
        assert "layer 29 > etc/id: content" in file.read_text()


def test_another_engine_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "ensure_engine", lambda: None)
    with pytest.raises(EngineError, match=r"no container engine answers at --engine=unix:///nowhere"):
        repro.build_twice(REQUEST, engine="unix:///nowhere")
