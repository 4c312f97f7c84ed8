"""Images: named by their inputs, built once, and with the same bytes whenever they are built."""

from __future__ import annotations

import os
import shutil
import tarfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fakes import FakeEngine

from toolchains.archives import tar_file
from toolchains.assembly import ensure, target_image
from toolchains.assembly.request import Request
from toolchains.assembly.target_image import Inputs, Layer
from toolchains.engine.client import Engine, ImageInfo
from toolchains.fetch.store import Store
from toolchains.images import base as rootfs
from toolchains.images import layer, provenance
from toolchains.lockfile import lock
from toolchains.lockfile.lock import Artifact, LockedTarget, LockedTriton
from toolchains.repro import expected
from toolchains.system import children, paths
from toolchains.system.errors import CommandError, FetchError, OfflineError, PinError, UsageError


@pytest.fixture
def target() -> LockedTarget:
    return lock.load().targets["spirv"]


@pytest.fixture
def triton(target: LockedTarget) -> LockedTriton:
    return target_image.release(target, None)


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a copy of the folders that identities are computed from; tests are no part of an image."""
    copy = tmp_path_factory.mktemp("checkout")
    ignore = shutil.ignore_patterns("__pycache__", "tests", "conformance")
    for name in ("backends", "docker", "patches", "sdks", "toolchains/recipes"):
        shutil.copytree(paths.ROOT / name, copy / name, symlinks=True, ignore=ignore)
    shutil.copy(paths.VERSION, copy)
    return copy


@pytest.fixture
def checkout(copied: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield the copy, to be edited; it is then made as it was."""
    before = {path: path.read_bytes() for path in copied.rglob("*") if path.is_file()}
    monkeypatch.setattr(paths, "ROOT", copied)
    monkeypatch.setattr(paths, "BACKENDS", copied / "backends")
    monkeypatch.setattr(paths, "RECIPES", copied / "toolchains" / "recipes")
    monkeypatch.setattr(target_image, "DOCKER", copied / "docker")
    yield copied
    for path in [path for path in copied.rglob("*") if path.is_file()]:
        if path not in before:
            path.unlink()
        elif path.read_bytes() != before[path]:
            path.write_bytes(before[path])


def append(path: Path) -> None:
    path.write_text(path.read_text() + "\n# edited\n")


@pytest.mark.parametrize(
    "file",
    [
        "backends/core/pyproject.toml",
        "backends/spirv/pyproject.toml",
        "docker/spirv.Dockerfile",
        "toolchains/recipes/llvm-tools/tools.c",
        "VERSION",
    ],
)
def test_edit_of_an_input_changes_the_name(
    checkout: Path, target: LockedTarget, triton: LockedTriton, file: str
) -> None:
    before = Inputs(target, triton).identity()
    append(checkout / file)
    assert Inputs(target, triton).identity() != before


def test_edit_in_a_native_part_renames_its_targets_and_another_backend_none(
    checkout: Path, target: LockedTarget, triton: LockedTriton
) -> None:
    dpu = lock.load().targets["dpu"]
    before = Inputs(dpu, target_image.release(dpu, None)).identity(), Inputs(target, triton).identity()
    append(checkout / "sdks/upmem/CMakeLists.txt")
    assert Inputs(dpu, target_image.release(dpu, None)).identity() != before[0]
    shutil.copytree(checkout / "backends/spirv", checkout / "backends/other")
    append(checkout / "backends/other/pyproject.toml")
    (checkout / "docker/other.Dockerfile").write_text("FROM scratch\n")
    assert Inputs(target, triton).identity() == before[1]


@pytest.mark.parametrize("file", ["docker/vsi.Dockerfile", "docker/vsi-torch.Dockerfile", "patches/torch/2.6.0/series"])
def test_a_variant_is_named_by_its_backends_dockerfile_its_own_lines_and_its_patches(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    monkeypatch.setattr(paths, "PATCHES", checkout / "patches")
    targets = [lock.load().targets[name] for name in ("vsi", "vsi-torch")]
    before = [Inputs(each, target_image.release(each, None)).identity() for each in targets]
    if file.endswith("series"):
        (patch,) = (checkout / file).parent.glob("0001-*.patch")
        patch.write_text(patch.read_text().replace("Subject: ", "Subject: Really ", 1))
    else:
        append(checkout / file)
    vsi, torch = (Inputs(each, target_image.release(each, None)).identity() for each in targets)
    assert (vsi != before[0], torch != before[1]) == (file == "docker/vsi.Dockerfile", True)


def test_a_variants_lines_follow_those_of_its_backend() -> None:
    def dockerfiles(name: str) -> list[str]:
        target = lock.load().targets[name]
        return [path.name for path in Inputs(target, target_image.release(target, None)).dockerfiles]

    assert dockerfiles("vsi-torch") == ["vsi.Dockerfile", "vsi-torch.Dockerfile"]
    assert dockerfiles("spirv-bench") == ["spirv.Dockerfile", "spirv-bench.Dockerfile"]
    assert dockerfiles("spirv") == ["spirv.Dockerfile"]


def test_each_locked_input_and_no_order_is_part_of_the_name(target: LockedTarget, triton: LockedTriton) -> None:
    other = replace(target.debs[0], sha256="0" * 64)
    # The same file under another version: only the label about drift differs.
    newer = replace(target.debs[0], version="99")
    names = {
        Inputs(target, triton).identity(),
        Inputs(replace(target, debs=(other, *target.debs[1:])), triton).identity(),
        Inputs(replace(target, wheels=target.wheels[1:]), triton).identity(),
        Inputs(replace(target, left_out=()), triton).identity(),
        Inputs(target, target_image.release(target, "3.6.0")).identity(),
        Inputs(target, replace(triton, wheel=replace(triton.wheel, sha256="0" * 64))).identity(),
        Inputs(target, triton, used=replace(target, debs=(newer, *target.debs[1:]))).identity(),
    }
    assert len(names) == 7
    turned = replace(target, debs=target.debs[::-1], wheels=target.wheels[::-1])
    assert Inputs(turned, triton).identity() == Inputs(target, triton).identity()
    with pytest.raises(UsageError, match=r"Triton 1\.0 is not pinned for spirv"):
        target_image.release(target, "1.0")


# Only the ID and the labels of an image are compared.
MADE = ImageInfo("sha256:1", (), {}, 1, ())


def have(target: LockedTarget, triton: LockedTriton, engine: Any, tmp_path: Path) -> target_image.Image:
    store = Store(tmp_path / "empty", offline=True)
    provenance.note(Inputs(target, triton).name, MADE, store)
    return target_image.build_image(Inputs(target, triton), store=store, engine=engine)


def test_an_image_that_is_there_only_gets_its_moving_names(
    target: LockedTarget, triton: LockedTriton, tmp_path: Path
) -> None:
    names = ("triton-foundry/spirv:latest", f"triton-foundry/spirv:{triton.version}")
    engine = FakeEngine({"": replace(MADE, names=names)})
    found = have(target, triton, engine, tmp_path)
    assert engine.asked == [("image", found.name)]
    assert not found.made
    # Names that move follow it; that of the default release is latest, too.
    engine = FakeEngine({"": replace(MADE, names=("triton-foundry/spirv:latest",))})
    have(target, triton, engine, tmp_path)
    assert engine.asked[1:] == [("tag", f"triton-foundry/spirv:{triton.version}")]
    engine = FakeEngine({"": MADE})
    have(target, target_image.release(target, "3.6.0"), engine, tmp_path)
    assert engine.asked[1:] == [("tag", "triton-foundry/spirv:3.6.0")]


def test_drifted_packages_make_another_image(target: LockedTarget, triton: LockedTriton, tmp_path: Path) -> None:
    locked = target.debs[0]
    current = replace(locked, version="99", sha256="0" * 64)
    inputs = Inputs(target, triton, used=replace(target, debs=(current, *target.debs[1:])))
    assert inputs.labels[target_image.LABEL + "drift"] == f"{locked.name} {locked.version} -> 99"
    drifted = inputs.identity()[:16]

    class Drifting(Store):
        def fetch(
            self, artifacts: Sequence[Artifact], *, suite: str, python: str, platform: str = ""
        ) -> list[Artifact]:
            return [current if artifact == locked else artifact for artifact in artifacts]

    engine: Any = FakeEngine({f"triton-foundry/spirv:{drifted}": MADE})
    store = Drifting(tmp_path / "store", allow_drift=True)
    provenance.note(f"triton-foundry/spirv:{drifted}", MADE, store)
    made = target_image.build_image(Inputs(target, triton), store=store, engine=engine)
    assert made.name == f"triton-foundry/spirv:{drifted}"


def test_image_of_another_store_is_not_taken(target: LockedTarget, triton: LockedTriton, tmp_path: Path) -> None:
    with pytest.raises(OfflineError, match=r"files are not in the store"):
        have(target, triton, FakeEngine({"": replace(MADE, id="sha256:2")}), tmp_path)


class Arrivals(Store):
    """A store into which packages arrive at once, and wheels when `wheels` returns.

    Attributes:
        asked: the kinds that each call of fetch asked for.
    """

    def __init__(self, root: Path, wheels: Callable[[], None] = lambda: None, *, offline: bool = False) -> None:
        super().__init__(root, offline=offline)
        self.wheels, self.asked = wheels, list[set[str]]()

    def fetch(self, artifacts: Sequence[Artifact], *, suite: str, python: str, platform: str = "") -> list[Artifact]:
        self.asked.append({artifact.kind for artifact in artifacts})
        if self.asked[-1] == {"wheel"}:
            self.wheels()
        return list(artifacts)


def without_engine(monkeypatch: pytest.MonkeyPatch, base: Callable[..., Any]) -> FakeEngine:
    """Let the base image be what a function returns, and each layer an image that does nothing; return the engine."""
    made = Layer("triton-foundry/toy:1", "BASE", b"", [])
    monkeypatch.setattr(rootfs, "load_base", base)
    monkeypatch.setattr(target_image, "python_layer", lambda *_: made)
    monkeypatch.setattr(target_image, "_top", lambda *_: made)
    monkeypatch.setattr(Layer, "make", lambda *_: MADE)
    monkeypatch.setattr(layer, "require_image", lambda *_: MADE)
    return FakeEngine()


def test_base_image_is_made_while_wheels_arrive(
    target: LockedTarget, triton: LockedTriton, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = threading.Barrier(2, timeout=60)

    def base(*_: Any, **__: Any) -> tuple[str, tuple[str, ...]]:
        both.wait()
        return "base", ()

    engine: Any = without_engine(monkeypatch, base)
    store = Arrivals(tmp_path, lambda: [both.wait()].clear())
    assert target_image.build_image(Inputs(target, triton), store=store, engine=engine).made
    assert store.asked == [{"deb"}, {"wheel"}]


@pytest.mark.parametrize("error", [FetchError("the index does not answer"), KeyboardInterrupt()])
def test_failure_to_fetch_wheels_ends_the_base_image_and_a_second_run_goes_on(
    target: LockedTarget, triton: LockedTriton, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    started, ended = threading.Event(), list[CommandError]()

    def base(*_: Any, **__: Any) -> tuple[str, tuple[str, ...]]:
        try:
            children.run(["sh", "-c", "echo started; sleep 600"], log="test-base", line=lambda _: started.set())
        except CommandError as failure:
            ended.append(failure)
            raise
        raise AssertionError

    def fail() -> None:
        assert started.wait(60)
        raise error

    engine: Any = without_engine(monkeypatch, base)
    with pytest.raises(type(error)) as raised:
        target_image.build_image(Inputs(target, triton), store=Arrivals(tmp_path, fail), engine=engine)
    assert raised.value is error and len(ended) == 1
    monkeypatch.setattr(rootfs, "load_base", lambda *_, **__: ("base", ()))
    assert target_image.build_image(Inputs(target, triton), store=Arrivals(tmp_path), engine=engine).made


def test_failure_of_the_base_image_ends_the_fetch_of_wheels(
    target: LockedTarget, triton: LockedTriton, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = threading.Event()

    def base(*_: Any, **__: Any) -> None:
        assert started.wait(60)
        raise PinError("the base image failed")

    def wheels() -> None:
        children.run(["sh", "-c", "echo started; sleep 600"], log="test-wheels", line=lambda _: started.set())

    engine: Any = without_engine(monkeypatch, base)
    with pytest.raises(PinError, match="the base image failed"):
        target_image.build_image(Inputs(target, triton), store=Arrivals(tmp_path, wheels), engine=engine)


def test_without_a_network_all_that_is_missing_is_listed(
    target: LockedTarget, triton: LockedTriton, tmp_path: Path
) -> None:
    engine: Any = FakeEngine()
    with pytest.raises(OfflineError) as raised:
        target_image.build_image(Inputs(target, triton), store=Store(tmp_path, offline=True), engine=engine)
    assert target.debs[0].filename in raised.value.why and triton.wheel.filename in raised.value.why


def test_requirements_have_the_locked_hash_and_not_that_of_the_file(tmp_path: Path) -> None:
    wheel = tmp_path / "toy-1.0-py3-none-any.whl"
    wheel.write_text("swapped after it was looked at")
    wheels = [layer.Wheel(wheel, "5" * 64)]
    with layer.context(b"FROM scratch", wheels) as packed, tarfile.open(fileobj=packed) as tar:
        listing = tar.extractfile("wheels/requirements.txt")
        assert listing is not None and listing.read() == f"toy==1.0 --hash=sha256:{'5' * 64}\n".encode()


DOCKERFILE = """
ARG BASE
FROM ${BASE}
ARG SOURCE_DATE_EPOCH
COPY wheels/ /wheels/
RUN mkdir /made && echo $SOURCE_DATE_EPOCH > /made/b && ln /made/b /made/a && chmod 600 /made/b && rm /removed
CMD ["/bin/sh"]
"""


@pytest.mark.docker
def test_two_builds_at_two_times_have_the_same_id(docker: Engine, tiny: str, tmp_path: Path) -> None:
    dockerfile, wheel = tmp_path / "Dockerfile", tmp_path / "toy-1.0-py3-none-any.whl"
    dockerfile.write_text(DOCKERFILE)
    wheel.write_text("a wheel")
    below = docker.image(tiny)
    assert below is not None
    wheels, known = [layer.Wheel(wheel, "0" * 64)], below.layers
    names = [f"foundry-test/image:{name}-{os.getpid()}" for name in ("one", "other")]
    try:
        made = []
        for name in names:
            labels = {"org.test": "1"}
            made.append(
                layer.layer(docker, name, dockerfile, {"BASE": tiny}, labels, wheels, known, store=Store(tmp_path))
            )
            time.sleep(1.1)
        assert made[0].id == made[1].id
        assert made[0].labels == {"org.test": "1"}
        assert made[0].layers[: len(known)] == known
        with docker.container(names[0]) as container:
            listing = container.call(["sh", "-c", "cat /made/a /made/b /wheels/*; test -e /removed || echo gone"])
        assert listing.split("\n")[:2] == [str(tar_file.EPOCH)] * 2
        assert "a wheel" in listing
        assert listing.endswith("gone\n")
    finally:
        for name in names:
            docker.remove(name)


@pytest.mark.docker
def test_without_normalising_two_builds_differ(docker: Engine, tiny: str) -> None:
    """This shows that the test above can fail: the engine's own builds are not reproducible."""
    ids = set()
    for _ in range(2):
        with (
            layer.context(DOCKERFILE.encode(), []) as context,
            docker.build(context, arguments={"BASE": tiny}) as built,
        ):
            image = docker.image(built)
            assert image is not None
            ids.add(image.layers)
        time.sleep(1.1)
    assert len(ids) == 2


@pytest.mark.docker
@pytest.mark.usefixtures("checkout")
def test_the_image_of_dpu_is_the_published_one_or_a_second_build_gives_the_same(request: pytest.FixtureRequest) -> None:
    """Build from a copy of the sources, which nobody edits meanwhile. dpu has every kind of layer, and native parts.

    A published ID is that of another build, at another time. Sources that were edited since have none.
    """
    drift = request.config.getoption("--allow-drift")
    wanted = Request.read("dpu", allow_drift=drift)
    engine, cached = ensure.ensure_image(wanted)
    if expected.check_image(expected.load(), engine, cached, wanted.target, wanted.release.version):
        return
    # Two builds within one second have equal timestamps even without normalisation.
    time.sleep(1.1)
    _, anew = ensure.ensure_image(replace(wanted, cache=False))
    assert anew.made
    assert (anew.name, anew.info.id) == (cached.name, cached.info.id)


@pytest.mark.docker
def test_the_image_of_spirv_is_below_800_mb(request: pytest.FixtureRequest) -> None:
    wanted = Request.read("spirv", allow_drift=request.config.getoption("--allow-drift"))
    _, image = ensure.ensure_image(wanted)
    assert image.info.size < 800e6
