"""The verbs e2e and bench, with a container that only remembers: what goes in, what comes out, what a failure does."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from toolchains import building, image, paths, proof
from toolchains.errors import PinError, ProofError, UsageError
from toolchains.run import Completed


class FakeContainer:
    """Takes every command, leaves one result file behind."""

    def __init__(self, status: int, leaves: str) -> None:
        self.status = status
        self.leaves = leaves
        self.copied: list[str] = []
        self.called: list[str] = []
        self.commands: list[tuple[tuple[str, ...], Mapping[str, str]]] = []

    def __enter__(self) -> FakeContainer:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def copy_into(self, source: Path, destination: str) -> None:
        assert source.is_dir()
        self.copied.append(destination)

    def call(self, argv: Sequence[str]) -> str:
        self.called.append(" ".join(argv))
        return ""

    def run(self, argv: Sequence[str], *, env: Mapping[str, str], cwd: str, line: Callable[[str], None]) -> Completed:
        self.commands.append((tuple(argv), env))
        line("a row of the table")
        return Completed(self.status, "", "")

    def copy_out(self, source: str, destination: Path) -> None:
        destination.mkdir(parents=True)
        (destination / self.leaves).write_text("<testsuites/>")


Start = Callable[..., FakeContainer]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Start:
    """Makes the next container's commands end with a status; results go to tmp_path."""
    monkeypatch.setattr(paths, "RESULTS", tmp_path)

    def make(status: int, leaves: str = "junit.xml") -> FakeContainer:
        container = FakeContainer(status, leaves)
        engine = types.SimpleNamespace(sandbox=lambda name, **_: container)

        def have(name: str, **_: Any) -> tuple[Any, Any]:
            labels = {image.LABEL + "triton": "3.9.0+foundry.1"}
            return engine, types.SimpleNamespace(name=name, info=types.SimpleNamespace(labels=labels))

        monkeypatch.setattr(building, "have", have)
        return container

    return make


def test_the_table_is_shown_and_the_results_come_out(
    start: Start, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    container = start(0)
    folder = proof.e2e("spirv", only="bf16")
    assert folder == tmp_path / "spirv" / "3.9.0+foundry.1"
    assert (folder / "junit.xml").is_file()
    assert container.copied == ["/foundry/e2e"]
    assert container.commands[0][0][-2:] == ("--only", "bf16")
    printed = capsys.readouterr().out
    assert "a row of the table" in printed
    assert "spirv is proven" in printed


@pytest.mark.parametrize(
    ("target", "options", "all_of_them"),
    [
        ("vsi", {}, True),
        ("vsi", {"triton": "3.9.0"}, True),
        ("vsi", {"triton": "3.6.0"}, False),
        ("vsi", {"triton": "3.6.0", "only": "TC"}, True),
        ("vsi-torch", {}, False),
    ],
)
def test_what_says_the_same_with_every_triton_is_run_with_the_default_one_or_if_asked_for(
    start: Start, target: str, options: dict[str, str], all_of_them: bool
) -> None:
    container = start(0)
    proof.e2e(target, **options)
    assert ("--not-anywhere" not in container.commands[0][0]) == all_of_them


def test_a_failed_case_is_an_error_and_its_results_are_there(
    start: Start, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start(1)
    with pytest.raises(ProofError) as caught:
        proof.e2e("spirv")
    assert "junit.xml" in caught.value.why
    assert (tmp_path / "spirv" / "3.9.0+foundry.1" / "junit.xml").is_file()
    assert "is proven" not in capsys.readouterr().out


def test_a_run_that_breaks_off_before_the_first_case_points_to_no_file(start: Start) -> None:
    start(1, leaves="core")
    with pytest.raises(ProofError, match="it broke off") as caught:
        proof.e2e("spirv")
    assert "junit.xml" not in str(caught.value)


def test_the_advice_leads_into_the_image_that_failed(start: Start) -> None:
    start(1)
    with pytest.raises(ProofError) as caught:
        proof.e2e("spirv", triton="3.6.0", allow_drift=True)
    assert caught.value.next == "./foundry shell spirv --triton=3.6.0 --allow-drift"


def test_a_choice_that_no_case_fits_is_a_usage_error(start: Start) -> None:
    start(5)
    with pytest.raises(UsageError, match="no case has 'nonsense' in its name"):
        proof.e2e("spirv", only="nonsense")


@pytest.mark.parametrize("target", ["spirv", "dpu", "vsi"])
def test_a_measurement_that_does_not_exist_is_refused_before_an_image_is_made(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "have", None)
    with pytest.raises(UsageError, match="there is no measurement nonsense") as caught:
        proof.bench(target, only="nonsense")
    assert "vec_add, matmul" in caught.value.why


def test_a_target_that_was_not_resolved_yet_is_told_from_one_that_is_not_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(building.pins, "names", lambda: ["spirv", "toy"])
    with pytest.raises(PinError, match=r"(?s)toy\.toml is not in the lock.*./foundry pin --update"):
        building.locked("toy")
    with pytest.raises(UsageError, match="there is no target other"):
        building.locked("other")


def test_results_of_an_earlier_run_do_not_survive(start: Start, tmp_path: Path) -> None:
    stale = tmp_path / "spirv" / "3.9.0+foundry.1" / "stale.json"
    stale.parent.mkdir(parents=True)
    stale.write_text("{}")
    start(0)
    proof.e2e("spirv")
    assert not stale.exists()


@pytest.mark.parametrize(("name", "image"), [("spirv", "spirv-bench"), ("spirv-bench", "spirv-bench"), ("dpu", "dpu")])
def test_a_measurement_runs_in_the_variant_with_the_peers_and_sees_the_kernels_of_e2e(
    start: Start, tmp_path: Path, name: str, image: str
) -> None:
    container = start(0)
    assert proof.bench(name) == tmp_path / f"{name.removesuffix('-bench')}-bench" / "3.9.0+foundry.1"
    assert container.copied[:2] == ["/foundry/e2e", "/foundry/bench"]
    assert container.commands[0][1]["PYTHONPATH"] == "/foundry/e2e"


def test_vsi_is_measured_beside_the_spirv_plugin_which_its_image_does_not_have(start: Start) -> None:
    container = start(0)
    proof.bench("vsi")
    assert "/foundry/spirv" in container.copied
    assert [line for line in container.called if line.endswith("--target /foundry/peers /foundry/spirv")]
    assert container.commands[0][1]["PYTHONPATH"] == "/foundry/e2e:/foundry/peers"


def test_a_measurement_that_breaks_off_is_an_error(start: Start) -> None:
    start(1)
    with pytest.raises(ProofError, match="did not come to an end"):
        proof.bench("spirv")
