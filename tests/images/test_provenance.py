"""An image is used only if this store made it, whatever its name and its labels are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fakes import FakeEngine
from tiny import tiny_image

from toolchains.engine import client as engines
from toolchains.engine.client import Engine, ImageInfo
from toolchains.fetch.store import Store
from toolchains.images import provenance

NAME = "triton-foundry/spirv:0123456789abcdef"
MADE = ImageInfo("sha256:" + "1" * 64, (NAME,), {"org.triton-foundry.target": "spirv"}, 1, ())


def found(info: ImageInfo | None, store: Store) -> ImageInfo | None:
    """Return the image of NAME if an engine has this one under every name."""
    engine: Any = FakeEngine({"": info} if info else {})
    return provenance.image(NAME, engine=engine, store=store)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    provenance._say.cache_clear()
    return Store(tmp_path)


def test_another_process_accepts_a_noted_image(store: Store) -> None:
    provenance.note(NAME, MADE, store)
    assert found(MADE, Store(store.root)) == MADE
    # Tags, and the size that an engine reports, do not identify an image.
    assert found(replace(MADE, names=(), size=2), store) is not None


@pytest.mark.parametrize(
    "other",
    [
        replace(MADE, id="sha256:" + "2" * 64),
        replace(MADE, labels={"org.triton-foundry.target": "vsi"}),
        replace(MADE, labels={}),
        None,
    ],
)
def test_different_image_under_the_noted_name_is_reported_and_not_taken(
    store: Store, other: ImageInfo | None, capsys: pytest.CaptureFixture[str]
) -> None:
    provenance.note(NAME, MADE, store)
    assert found(other, store) is None
    said = capsys.readouterr().err
    assert (NAME in said, "the store has noted another" in said) == (other is not None, other is not None)


def test_image_without_a_readable_note_is_not_taken(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert found(MADE, store) is None
    assert f"the store {store.root} has noted none" in capsys.readouterr().err
    provenance.note(NAME, MADE, store)
    for text in ("", "{", "{}", "[1]", '[{"id": "x"}]'):
        provenance._place(store, NAME).write_text(text)
        assert found(MADE, store) is None
    provenance.note(NAME, MADE, store)
    assert found(MADE, store) == MADE


def test_other_ids_or_names_have_their_own_notes(store: Store) -> None:
    other = replace(MADE, id="sha256:" + "3" * 64)
    for info in (MADE, other, MADE):
        provenance.note(NAME, info, store)
    assert found(MADE, store) == MADE and found(other, store) == other
    names = ["triton-foundry/a:1", "triton-foundry/a-1", "triton-foundry-a:1", "triton/foundry-a:1"]
    assert len({provenance._place(store, name) for name in names}) == len(names)


@pytest.mark.docker
def test_an_image_that_was_retagged_or_committed_under_the_name_is_found_out(store: Store, tmp_path: Path) -> None:
    docker: Engine = engines.connect()
    with tiny_image(docker, tmp_path) as name:
        info = docker.image(name)
        assert info is not None
        provenance.note(name, info, store)
        assert provenance.image(name, engine=docker, store=store) == info
        with docker.container(name) as container:
            container.call(["sh", "-c", "echo evil >/evil"])
            docker._api.commit(container.id, *name.split(":"))
        try:
            changed = docker.image(name)
            assert changed is not None and changed.id != info.id
            assert provenance.image(name, engine=docker, store=store) is None
        finally:
            docker.remove(name)
