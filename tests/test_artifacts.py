"""The verbs pack and run-packed, with a container that only remembers: what goes in, what is called, what comes out."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from toolchains.assembly import ensure
from toolchains.assembly.request import Request
from toolchains.cli import pack
from toolchains.config import components
from toolchains.system.children import Completed
from toolchains.system.errors import CommandError, UsageError

HOME = "/foundry/artifacts"
DPU = Request.read("dpu")


class FakeContainer:
    """Takes every command, prints a line, leaves a file wherever one is looked for."""

    def __init__(self) -> None:
        self.status = 0
        self.copied: dict[str, Path] = {}
        self.commands: list[Sequence[str]] = []

    def __enter__(self) -> FakeContainer:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def copy_into(self, source: Path, destination: str) -> None:
        assert source.exists()
        self.copied[destination] = source

    def call(self, argv: Sequence[str]) -> str:
        return ""

    def run(self, argv: Sequence[str], *, line: Callable[[str], None]) -> Completed:
        self.commands.append(argv)
        line(f"{HOME}/out/2 is written")
        return Completed(self.status, "", "")

    def copy_out(self, source: str, destination: Path) -> None:
        destination.parent.mkdir(parents=True, exist_ok=True)
        destination.write_text(source)


@pytest.fixture
def container(monkeypatch: pytest.MonkeyPatch) -> FakeContainer:
    made = FakeContainer()

    def have(request: Request) -> tuple[Any, Any]:
        assert request == DPU
        image = types.SimpleNamespace(info=types.SimpleNamespace(id="image"))
        return types.SimpleNamespace(sandbox=lambda id: made), image

    monkeypatch.setattr(ensure, "ensure_image", have)
    return made


@pytest.fixture
def artifact(tmp_path: Path) -> Path:
    folder = tmp_path / "add"
    (folder / "build").mkdir(parents=True)
    for name in ("meta.json", "kernel.ll"):
        (folder / name).touch()
    return folder


def test_a_script_is_packed_in_the_container_and_the_folder_comes_out(container: FakeContainer, tmp_path: Path) -> None:
    script = tmp_path / "sub.py"
    script.touch()
    pack.pack(DPU, str(script), str(tmp_path / "out"), out_indices=(2, 3), kernel="sub")
    assert container.copied == {f"{HOME}/script/sub.py": script}
    (command,) = container.commands
    assert command[-8:] == [
        "--triton-script",
        f"{HOME}/script/sub.py",
        "--artifact-dir",
        f"{HOME}/packed",
        "--out-indices",
        "2,3",
        "--kernel",
        "sub",
    ]
    assert (tmp_path / "out").read_text() == f"{HOME}/packed"


def test_without_a_script_it_is_the_example(container: FakeContainer, tmp_path: Path) -> None:
    pack.pack(DPU, "", str(tmp_path / "out"))
    assert list(container.copied) == [f"{HOME}/script/dpu_min_test.py"]


def test_the_target_is_the_only_one_that_packs_unless_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert pack.choose_target("") == pack.choose_target("dpu") == "dpu"
    with pytest.raises(UsageError, match="kernels of spirv cannot be packed"):
        pack.choose_target("spirv")
    other = replace(components.target("dpu"), backend="other")
    known = {"dpu": components.target("dpu"), "other": other, "dpu-more": components.target("dpu")}
    monkeypatch.setattr(components, "names", lambda: list(known))
    monkeypatch.setattr(components, "target", known.__getitem__)
    assert pack.choose_target("other") == "other"
    with pytest.raises(UsageError, match=r"(?s)must be named.*dpu, other"):
        pack.choose_target("")


def test_a_script_that_is_not_there_or_no_folder_is_a_usage_error(container: FakeContainer, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no script .*nowhere\.py"):
        pack.pack(DPU, str(tmp_path / "nowhere.py"), "out")
    with pytest.raises(UsageError, match="--artifact-dir"):
        pack.pack(DPU, "", "")
    assert not container.commands


def test_a_script_that_fails_is_an_error_and_nothing_comes_out(container: FakeContainer, tmp_path: Path) -> None:
    container.status = 1
    with pytest.raises(CommandError, match="cannot be packed: exit status 1"):
        pack.pack(DPU, "", str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_an_artifact_runs_on_files_of_this_machine(
    container: FakeContainer, artifact: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given, result = tmp_path / "a.bin", tmp_path / "new" / "c.bin"
    given.touch()
    pack.run_packed(
        DPU,
        str(artifact),
        values={"arg": [(3, "100")], "len": [(0, "64")], "fill": [(1, "2.5")]},
        ins=[(0, str(given))],
        outs=[(2, str(result))],
        nr_dpus=4,
        grid=(16, 2),
    )
    assert {f"{HOME}/packed/meta.json", f"{HOME}/packed/kernel.ll", f"{HOME}/in/0"} < set(container.copied)
    # What was built elsewhere is of no use.
    assert f"{HOME}/packed/build" not in container.copied
    assert container.commands == [
        [
            "env",
            f"ARTIFACT_DIR={HOME}/packed",
            "sh",
            f"{HOME}/scripts/container_artifact_run.sh",
            "--arg",
            "3=100",
            "--len",
            "0=64",
            "--fill",
            "1=2.5",
            "--nr-dpus",
            "4",
            "--grid",
            "16,2",
            "--in",
            f"0={HOME}/in/0",
            "--out",
            f"2={HOME}/out/2",
        ],
    ]
    assert result.read_text() == f"{HOME}/out/2"
    assert capsys.readouterr().out == f"{result} is written\n"


def test_a_file_that_is_not_there_is_a_usage_error(container: FakeContainer, artifact: Path) -> None:
    with pytest.raises(UsageError, match="--in=0=/nowhere/x: there is no such file"):
        pack.run_packed(DPU, str(artifact), ins=[(0, "/nowhere/x")])
    assert not container.commands


def test_a_folder_that_is_no_artifact_is_a_usage_error(container: FakeContainer, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"is not a packed kernel: it has no meta\.json"):
        pack.run_packed(DPU, str(tmp_path))


def test_a_run_that_fails_is_an_error_and_nothing_comes_out(
    container: FakeContainer, artifact: Path, tmp_path: Path
) -> None:
    container.status = 1
    with pytest.raises(CommandError, match="did not run: exit status 1"):
        pack.run_packed(DPU, str(artifact), outs=[(2, str(tmp_path / "c"))])
    assert not (tmp_path / "c").exists()
