"""What a command line asks to build from source, and what that changes in an image."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolchains.assembly import target_image
from toolchains.assembly.target_image import Inputs
from toolchains.config import components, projects
from toolchains.fetch.store import Store
from toolchains.fromsource import choice
from toolchains.fromsource.choice import SourceChoice
from toolchains.lockfile import lock
from toolchains.lockfile.lock import LockedTarget, LockedTriton
from toolchains.system import paths
from toolchains.system.errors import PinError, UsageError


@pytest.fixture
def dpu() -> tuple[LockedTarget, LockedTriton]:
    target = lock.load().targets["dpu"]
    return target, target_image.release(target, None)


def test_nothing_is_built_from_source_unless_somebody_says_so() -> None:
    assert choice.read(None, [], []) is None
    assert choice.read("none", [], []) is None


def test_names_folders_profiles_and_numbers_are_read() -> None:
    read = choice.read("triton,upmem-llvm", ["triton=~/t=x"], ["triton=3.1.0"], 3, "http://cache.example")
    assert read == SourceChoice(
        ("triton", "upmem-llvm"),
        {"triton": Path("~/t=x").expanduser()},
        {"triton": "3.1.0"},
        3,
        "http://cache.example",
    )


@pytest.mark.parametrize(("sources", "profiles"), [(["upmem-llvm=/x"], []), ([], ["upmem-llvm=upmem-12"])])
def test_a_folder_or_a_profile_alone_means_its_project(sources: list[str], profiles: list[str]) -> None:
    read = choice.read(None, sources, profiles)
    assert read is not None and read.names == ("upmem-llvm",)


def test_with_all_projects_a_folder_narrows_nothing(tmp_path: Path) -> None:
    read = choice.read(True, [f"triton={tmp_path}"], [])
    assert read is not None and read.names == ()


@pytest.mark.parametrize("word", ["triton", "triton=", "=x", ""])
def test_source_option_without_name_and_value_is_refused(word: str) -> None:
    with pytest.raises(UsageError, match="NAME=VALUE"):
        choice.read(None, [word], [])


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("LLVM_SYSPATH", "/llvm/build", "--source=llvm=PATH"),
        ("LLVM_BUILD_DIR", "/llvm/build", "--source=llvm=PATH"),
        ("LLVM_INCLUDE_DIRS", "/llvm/build/include", "--source=llvm=PATH"),
        ("LLVM_LIBRARY_DIR", "/llvm/build/lib", "--source=llvm=PATH"),
        ("DEBUG", "1", "assertions"),
        ("DEBUG", "ON", "assertions"),
    ],
)
def test_a_variable_of_tritons_own_build_is_refused_by_name(variable: str, value: str, said: str) -> None:
    for from_source in (True, "triton", "pocl,triton", "llvm"):
        with pytest.raises(UsageError, match=f"{variable}={value} cannot be used") as caught:
            choice.read(from_source, [], [], environ={variable: value})
        assert said in str(caught.value)
    for environ in ({variable: ""}, {"DEBUG": "0"}):
        assert choice.read("triton", [], [], environ=environ)
    # The variable has no effect on anything other than Triton and its LLVM, nor on a build of prebuilt parts.
    assert choice.read("pocl", [], [], environ={variable: value})
    assert choice.read(None, [], [], environ={variable: value}) is None


@pytest.mark.parametrize("how", [(2, ""), (0, "http://cache.example")])
def test_options_for_compilers_where_none_would_run_are_refused(how: tuple[int, str]) -> None:
    with pytest.raises(UsageError, match="--from-source"):
        choice.read(None, [], [], *how)


def test_a_choice_is_said_in_the_words_that_are_read() -> None:
    made = SourceChoice(("triton",), {"triton": Path("/t")}, {"triton": "3.1.0"})
    words = dict(word.removeprefix("--").split("=", 1) for word in made.options)
    assert choice.read(words["from-source"], [words["source"]], [words["profile"]]) == made


@pytest.mark.parametrize(
    "given",
    [
        SourceChoice(("pocl",)),
        SourceChoice(folders={"gcc": Path("/x")}),
        SourceChoice(("upmem-llvm",), {"pocl": Path("/x")}),
    ],
)
def test_project_of_another_target_is_refused(dpu: tuple[LockedTarget, LockedTriton], given: SourceChoice) -> None:
    with pytest.raises(UsageError, match="cannot take") as caught:
        given.sourced(*dpu)
    assert "upmem-llvm" in caught.value.why


def tree(folder: Path, names: tuple[str, ...]) -> Path:
    """Make a folder that looks like a source tree: with a marker file at its top, or in each of the folders `names`."""
    for place in [folder / name for name in names] or [folder]:
        place.mkdir(parents=True)
        (place / "CMakeLists.txt").touch()
    return folder


@pytest.mark.parametrize("from_source", [None, "triton", "llvm", "llvm,triton"])
@pytest.mark.parametrize("target", ["spirv", "dpu", "vsi"])
def test_triton_from_source_is_built_on_a_folder_of_llvm(target: str, from_source: str | None, tmp_path: Path) -> None:
    folders = {
        "triton": tree(tmp_path / "triton", ()),
        "llvm": tree(tmp_path / "llvm", projects.load("llvm").profile("triton-3.9.0").take),
    }
    read = choice.read(from_source, [f"{name}={folder}" for name, folder in folders.items()], [])
    assert read is not None
    locked = lock.load().targets[target]
    sourced = read.sourced(locked, target_image.release(locked, None))
    (triton,) = sourced.wanted
    assert (triton.name, triton.folder) == ("triton", folders["triton"])
    (llvm,) = triton.requires
    assert (llvm.name, llvm.folder) == ("llvm", folders["llvm"])
    # LLVM is linked into Triton; an image contains no folder of it.
    assert sourced.parts == ()


def test_a_release_whose_commit_nobody_could_ask_for_says_how_to_supply_it() -> None:
    target = lock.load().targets["spirv"]
    with pytest.raises(PinError, match=r"triton/3\.9\.0 is not locked") as caught:
        SourceChoice().sourced(target, target_image.release(target, None))
    assert "v3.9.0" in caught.value.why and "not reached" in caught.value.why
    assert "--source=triton=PATH" in caught.value.next and "./foundry pin --update=triton" in caught.value.next


def test_an_image_from_source_has_names_and_a_label_of_its_own(dpu: tuple[LockedTarget, LockedTriton]) -> None:
    sourced = SourceChoice(("upmem-llvm",)).sourced(*dpu)
    assert Inputs(*dpu, sourced=sourced).identity() != Inputs(*dpu).identity()
    assert Inputs(*dpu, sourced=sourced).moving_names == [
        "triton-foundry/dpu-source:3.9.0",
        "triton-foundry/dpu-source:latest",
    ]
    assert sourced.label.startswith("upmem-llvm/13.0.1 ")


def test_every_project_that_goes_into_an_image_as_files_has_its_lines_of_dockerfile() -> None:
    names = {name for target in components.names() for name in components.target(target).upstreams} - {choice.TRITON}
    assert names == {path.stem for path in (paths.DOCKER / "from-source").glob("*.Dockerfile")}


def test_a_project_that_was_built_here_is_found_and_reported(
    dpu: tuple[LockedTarget, LockedTriton],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("FOUNDRY_CACHE", str(tmp_path))
    assert choice.find_built(*dpu) is None
    store = Store(tmp_path)
    (want,) = SourceChoice(("upmem-llvm",)).sourced(*dpu).wanted
    store.part("upstream", want.identity, lambda folder: None)
    assert choice.find_built(*dpu) == SourceChoice(("upmem-llvm",))
    assert "from source: upmem-llvm has been built here" in capsys.readouterr().err


def test_a_source_that_only_a_user_can_give_asks_for_it(dpu: tuple[LockedTarget, LockedTriton]) -> None:
    with pytest.raises(PinError, match="--source"):
        SourceChoice(("upmem-llvm",), profiles={"upmem-llvm": "upmem-12"}).sourced(*dpu)
