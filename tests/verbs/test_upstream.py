"""The list of what can be built from source, and the messages if it cannot be built."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolchains.config import components, projects
from toolchains.fetch.store import Store
from toolchains.fromsource import build
from toolchains.fromsource.choice import SourceChoice
from toolchains.system import terminal
from toolchains.system.errors import PinError, UsageError
from toolchains.verbs import upstream


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FOUNDRY_CACHE", str(tmp_path))
    return tmp_path


def test_every_profile_is_listed_with_its_source_on_a_terminal_of_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "_UNLIMITED", 80)
    upstream.show()
    said = capsys.readouterr().out
    for name in projects.names():
        assert f" {name} " in said
        for profile in projects.load(name).profiles.values():
            assert f" {profile.name} " in said
            assert f" {profile.source}" in said
    assert max(map(len, said.splitlines())) <= 80


def test_upstream_lists_a_built_project_with_its_suite(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = Store(cache)
    want = build.describe_build("upmem-llvm", "bookworm", llvm_targets=components.target("dpu").llvm_targets)

    def row() -> str:
        upstream.show()
        (found,) = [line for line in capsys.readouterr().out.splitlines() if "debian-13" in line]
        return found.split()[-1]

    assert row() == "-"
    store.part("upstream", want.identity, lambda folder: None)
    assert row() == "bookworm"


@pytest.mark.parametrize(("name", "target"), [("nothing", ""), ("upmem-llvm", "spirv"), ("pocl", "dpu")])
def test_unknown_project_or_target_that_does_not_take_it_is_refused(name: str, target: str) -> None:
    with pytest.raises(UsageError, match=name):
        upstream.build_project(name, target, SourceChoice())


def test_a_release_that_was_never_resolved_says_how_that_is_done() -> None:
    with pytest.raises(PinError, match="not locked") as caught:
        upstream.build_project("triton", "spirv", SourceChoice(profiles={"triton": "triton-spirv"}))
    assert "--source=triton=PATH" in caught.value.next
