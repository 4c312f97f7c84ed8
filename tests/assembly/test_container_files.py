"""The folders of a target's users: what is copied into a container, and what happens without such folders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest

from toolchains.assembly import container_files
from toolchains.engine.container import Container
from toolchains.lockfile import lock
from toolchains.system import paths


class FakeContainer:
    """A container that records what was copied and called."""

    def __init__(self) -> None:
        self.copied: list[tuple[Path, str]] = []
        self.called: list[Sequence[str]] = []

    def copy_into(self, source: Path, destination: str) -> None:
        self.copied.append((source, destination))

    def call(self, argv: Sequence[str]) -> str:
        self.called.append(argv)
        return ""


def filled(target: str) -> FakeContainer:
    container = FakeContainer()
    container_files.copy_user_folders(cast(Container, container), lock.load().targets[target])
    return container


def test_folder_of_a_backend_is_at_its_documented_path_with_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "dpu" / "tritonpim"
    (folder / "third_party").mkdir(parents=True)
    (folder / "third_party" / "llvm").symlink_to("/opt/llvm")
    # A link to a file is copied as the file: outside of the folder there may be nothing in the container.
    (tmp_path / "VERSION").touch()
    (folder / "VERSION").symlink_to("../../VERSION")
    monkeypatch.setattr(paths, "BACKENDS", tmp_path)
    container = filled("dpu")
    assert container.copied == [(folder, "/mnt/host_cwd")]
    assert container.called == [["ln", "-sfn", "/opt/llvm", "/mnt/host_cwd/third_party/llvm"]]


def test_backend_that_users_build_is_there_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "vsi" / "src").mkdir(parents=True)
    (tmp_path / "dpu" / "tritonpim").mkdir(parents=True)
    monkeypatch.setattr(paths, "BACKENDS", tmp_path)
    assert filled("vsi").copied == [(tmp_path / "vsi", "/foundry/triton_vsi_backend")]


def test_a_target_without_such_a_folder_gets_nothing() -> None:
    container = filled("spirv")
    assert not container.copied
    assert not container.called
