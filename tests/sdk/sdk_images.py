"""Shared by the tests of images with a vendor's SDK: what must hold of each, and how its names are removed."""

from __future__ import annotations

from toolchains.assembly import target_image
from toolchains.assembly.target_image import Image
from toolchains.engine.client import Engine
from toolchains.system import paths


def check_labels(engine: Engine, image: Image, *, name: str, sdk: str) -> dict[str, str]:
    """Check that an image says what is in it, and has no name of an image without an SDK; return its labels."""
    info = engine.image(image.name)
    assert info is not None
    labels = {key.removeprefix(target_image.LABEL): text for key, text in info.labels.items()}
    assert (labels["redistributable"], labels["sdk"]) == ("false", sdk)
    assert {each.partition(":")[0] for each in info.names} == {f"triton-foundry/{name}"}
    return labels


def check_kernel(engine: Engine, image: Image) -> None:
    """Check that a Triton kernel runs in an image."""
    with engine.container(image.name) as container:
        container.copy_into(paths.ROOT / "e2e", "/foundry/e2e")
        printed = container.call(["python", "e2e/vec_add.py", "--only", "n=1000 block=256 f32"], cwd="/foundry")
    assert " passed, 0 failed" in printed and " 0 passed" not in printed


def remove(engine: Engine, image: Image) -> None:
    """Remove all names of an image, so that nobody takes it for one with a vendor's SDK."""
    info = engine.image(image.name)
    assert info is not None
    for name in info.names:
        engine.remove(name)
