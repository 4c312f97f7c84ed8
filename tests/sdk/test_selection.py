"""Which SDK a command line selects: a path, a word, or the variables of the vendor's README; never one silently."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolchains.lockfile import lock
from toolchains.lockfile.lock import LockedTarget
from toolchains.sdk import selection
from toolchains.sdk.selection import Given
from toolchains.system.errors import UsageError

VARIABLES = ("VSI_SDK_DIR", "VSI_ZEN_COMPILER_PATH", "VSI_ZEN_TC_BRIDGE_PATH")


@pytest.fixture(scope="module")
def vsi() -> LockedTarget:
    return lock.load().targets["vsi"]


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """Return all three variables. They name a folder, and two files outside it."""
    (tmp_path / "sdk").mkdir()
    places = [tmp_path / "sdk", tmp_path / "zen-compiler-2", tmp_path / "bridge.so"]
    for path in places[1:]:
        path.touch()
    return dict(zip(VARIABLES, map(str, places), strict=True))


def test_a_given_path_wins_over_the_variables(vsi: LockedTarget, environ: dict[str, str]) -> None:
    assert selection.select_sdk(vsi, "a.tgz", environ, sha256="1", version="2") == Given(Path("a.tgz"), "1", "2")
    assert selection.select_sdk(vsi, "./environment", environ) == Given(Path("environment"))
    del environ["VSI_SDK_DIR"]
    with pytest.raises(UsageError, match="VSI_SDK_DIR is not set"):
        selection.select_sdk(vsi, "environment", environ)


def test_our_own_part_is_the_default_and_can_be_asked_for_without_a_notice(
    vsi: LockedTarget, capsys: pytest.CaptureFixture[str], environ: dict[str, str]
) -> None:
    assert selection.select_sdk(vsi, "", {"PATH": "/bin", "VSI_SDK_DIR": ""}) is None
    assert capsys.readouterr().err == ""
    assert selection.select_sdk(vsi, "reference", environ) is None
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("word", ["", "environment"])
def test_three_variables_choose_the_sdk_with_a_notice(
    vsi: LockedTarget, environ: dict[str, str], word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = selection.select_sdk(vsi, word, environ)
    assert found is not None
    assert str(found.path) == environ["VSI_SDK_DIR"]
    assert {name: str(path) for name, path in found.files.items()} == {
        "bin/zen-compiler": environ["VSI_ZEN_COMPILER_PATH"],
        "lib/libZenTCBridge.so": environ["VSI_ZEN_TC_BRIDGE_PATH"],
    }
    # A printed command contains this option, too.
    assert found.option == "environment"
    said = capsys.readouterr().err
    assert "is taken from the environment" in said
    assert all(f"{name}={value}" in said for name, value in environ.items())
    assert ("--sdk=reference" in said) == (not word)


@pytest.mark.parametrize("left", VARIABLES)
def test_incomplete_variables_are_ignored_with_a_notice(
    vsi: LockedTarget, environ: dict[str, str], left: str, capsys: pytest.CaptureFixture[str]
) -> None:
    del environ[left]
    assert selection.select_sdk(vsi, "", environ) is None
    said = capsys.readouterr().err
    assert said.startswith("not used: ")
    assert f"since {left} is not set" in said


@pytest.mark.parametrize("left", VARIABLES[1:])
def test_folder_supplies_a_file_without_a_variable(vsi: LockedTarget, environ: dict[str, str], left: str) -> None:
    del environ[left]
    found = selection.select_sdk(vsi, "environment", environ)
    assert found is not None
    assert len(found.files) == 1


def test_a_file_where_it_belongs_in_the_folder_is_no_other_file(vsi: LockedTarget, environ: dict[str, str]) -> None:
    own = Path(environ["VSI_SDK_DIR"], "bin/zen-compiler")
    own.parent.mkdir()
    own.touch()
    found = selection.select_sdk(vsi, "environment", environ | {"VSI_ZEN_COMPILER_PATH": str(own)})
    assert found is not None
    assert list(found.files) == ["lib/libZenTCBridge.so"]


@pytest.mark.parametrize("word", ["", "environment"])
@pytest.mark.parametrize("name", VARIABLES)
def test_dangling_variable_errs(
    vsi: LockedTarget, environ: dict[str, str], tmp_path: Path, name: str, word: str
) -> None:
    with pytest.raises(UsageError, match=f"{name} names no f.*nothing"):
        selection.select_sdk(vsi, word, environ | {name: str(tmp_path / "nothing")})


@pytest.mark.parametrize("option", [{"sha256": "1"}, {"version": "1"}])
def test_sdk_digest_or_version_without_an_sdk_is_refused(vsi: LockedTarget, option: dict[str, str]) -> None:
    for word in ("", "reference"):
        with pytest.raises(UsageError, match="need a vendor's SDK"):
            selection.select_sdk(vsi, word, {}, **option)


def test_only_a_target_that_takes_an_sdk_can_be_given_one(environ: dict[str, str], vsi: LockedTarget) -> None:
    targets = lock.load().targets
    assert selection.select_sdk(targets["spirv"], "", environ) is None
    assert selection.select_sdk(targets["dpu"], "", environ) is None
    assert selection.is_named(vsi, environ)
    assert not any(selection.is_named(vsi, environ | {name: ""}) for name in environ)
    assert not selection.is_named(targets["spirv"], environ) and not selection.is_named(targets["dpu"], environ)
    with pytest.raises(UsageError, match="spirv accepts no vendor SDK"):
        selection.select_sdk(targets["spirv"], "a.tgz", {})
    with pytest.raises(UsageError, match="UPMEM's SDK has no variables that name it"):
        selection.select_sdk(targets["dpu"], "environment", {})
