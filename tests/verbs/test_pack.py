"""The verbs pack and run-packed: kernels are packed and run in the dpu image, with files of this machine."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolchains.assembly import ensure
from toolchains.assembly.request import Request
from toolchains.config import components
from toolchains.system.errors import CommandError, UsageError
from toolchains.verbs import pack


@pytest.fixture(scope="module")
def dpu(request: pytest.FixtureRequest) -> Request:
    return Request.read("dpu", allow_drift=request.config.getoption("--allow-drift"))


@pytest.fixture(scope="module")
def example(dpu: Request, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the target's example, packed: c = a + b of n numbers."""
    return pack.pack(dpu, "", str(tmp_path_factory.mktemp("packed") / "add"))


@pytest.mark.docker
def test_an_artifact_computes_from_files_of_this_machine_and_says_where_the_result_is(
    dpu: Request, example: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    n = 5003
    random = np.random.default_rng(0)
    a, b = random.standard_normal((2, n), dtype=np.float32)
    a[:6] = [np.nan, np.inf, -np.inf, -0.0, 1e-45, 3e38]
    b[:6] = [1, -np.inf, 1, -0.0, 1e-45, 3e38]
    a.tofile(tmp_path / "a")
    b.tofile(tmp_path / "b")
    artifact = shutil.copytree(example, tmp_path / "add")
    # A program that another machine built must not be used.
    (artifact / "build").mkdir(exist_ok=True)
    (artifact / "build" / "host_runner").write_text("a program of another machine")
    result = tmp_path / "new" / "c"
    ins = [(0, str(tmp_path / "a")), (1, str(tmp_path / "b"))]
    pack.run_packed(dpu, str(artifact), values={"arg": [(3, f"{n}")]}, ins=ins, outs=[(2, str(result))], nr_dpus=3)
    with np.errstate(invalid="ignore", over="ignore"):
        expected = a + b
    c, number = np.fromfile(result, np.float32), ~np.isnan(expected)
    np.testing.assert_array_equal(c, expected, strict=True)
    # The sign of zero must be equal, too.
    np.testing.assert_array_equal(np.signbit(c[number]), np.signbit(expected[number]))
    printed = capsys.readouterr().out
    assert str(result) in printed
    assert "/foundry/" not in printed


@pytest.mark.docker
def test_a_run_that_fails_is_an_error_and_nothing_comes_out(dpu: Request, example: Path, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="did not run: exit status"):
        pack.run_packed(dpu, str(example), values={"arg": [(9, "1")]}, outs=[(2, str(tmp_path / "c"))])
    assert not (tmp_path / "c").exists()


@pytest.mark.docker
def test_a_script_that_fails_is_an_error_and_nothing_comes_out(dpu: Request, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("raise SystemExit('no kernel today')\n")
    with pytest.raises(CommandError, match=r"script\.py cannot be packed: exit status"):
        pack.pack(dpu, str(script), str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


@pytest.fixture
def no_image(monkeypatch: pytest.MonkeyPatch) -> None:
    def ensure_image(request: Request) -> Any:
        raise AssertionError("an image was asked for")

    monkeypatch.setattr(ensure, "ensure_image", ensure_image)


@pytest.mark.usefixtures("no_image")
def test_missing_input_is_a_usage_error_before_an_image_is_built(dpu: Request, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no script .*nowhere\.py"):
        pack.pack(dpu, str(tmp_path / "nowhere.py"), "out")
    with pytest.raises(UsageError, match="--artifact-dir"):
        pack.pack(dpu, "", "")
    with pytest.raises(UsageError, match=r"is not a packed kernel: it has no meta\.json"):
        pack.run_packed(dpu, str(tmp_path))
    (tmp_path / "meta.json").touch()
    with pytest.raises(UsageError, match="--in=0=/nowhere/x: there is no such file"):
        pack.run_packed(dpu, str(tmp_path), ins=[(0, "/nowhere/x")])
    result = tmp_path / "meta.json" / "c"
    with pytest.raises(UsageError, match=f"--out=2={result} cannot be written to"):
        pack.run_packed(dpu, str(tmp_path), outs=[(2, str(result))])


def test_the_target_is_the_only_one_that_packs_unless_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert pack.choose_target("") == pack.choose_target("dpu") == "dpu"
    assert pack.choose_target("spirv") == "spirv"
    other = replace(components.target("dpu"), backend="other")
    known = {"dpu": components.target("dpu"), "other": other, "dpu-more": components.target("dpu")}
    monkeypatch.setattr(components, "names", lambda: list(known))
    monkeypatch.setattr(components, "target", known.__getitem__)
    assert pack.choose_target("other") == "other"
    with pytest.raises(UsageError, match=r"(?s)must be named.*dpu, other"):
        pack.choose_target("")
