"""What a user asks of a target's image: read once from the words of a command line, or refused by name."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any

import pytest
from invoke.collection import Collection

import tasks
from toolchains.assembly import ensure, request
from toolchains.assembly.request import Request
from toolchains.cli.commandline import MARK, Foundry
from toolchains.config import components
from toolchains.engine import host
from toolchains.fromsource import choice
from toolchains.fromsource.choice import SourceChoice
from toolchains.lockfile import lock
from toolchains.sdk.selection import Given
from toolchains.system.errors import OfflineError, PinError, UsageError
from toolchains.verbs import test

VSI_VARIABLES = ("VSI_SDK_DIR", "VSI_ZEN_COMPILER_PATH", "VSI_ZEN_TC_BRIDGE_PATH")


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unset all variables that name an SDK."""
    for name in VSI_VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set all of them."""
    for name in VSI_VARIABLES:
        place = tmp_path / name
        place.mkdir() if name == "VSI_SDK_DIR" else place.touch()
        monkeypatch.setenv(name, str(place))


def test_words_become_values() -> None:
    made = Request.read(
        "dpu",
        triton="3.6.0",
        offline=True,
        allow_drift=True,
        no_cache=True,
        sdk="sdk.tgz",
        sdk_sha256="AB" * 32,
        sdk_version="2025.1.0",
        from_source="upmem-llvm",
        source=["upmem-llvm=/x"],
        profile=["upmem-llvm=debian-13"],
        jobs="3",
        compiler_cache="http://cache.example",
    )
    dpu = lock.load().targets["dpu"]
    assert made == Request(
        dpu,
        dpu.tritons["3.6.0"],
        Given(Path("sdk.tgz"), "ab" * 32, "2025.1.0"),
        SourceChoice(
            ("upmem-llvm",), {"upmem-llvm": Path("/x")}, {"upmem-llvm": "debian-13"}, 3, "http://cache.example"
        ),
        offline=True,
        allow_drift=True,
        cache=False,
    )
    with pytest.raises(FrozenInstanceError):
        made.offline = False  # type: ignore[misc]


@pytest.mark.parametrize("name", components.names())
def test_a_target_alone_is_its_default_release_with_our_own_parts(name: str) -> None:
    target = lock.load().targets[name]
    assert Request.read(name) == Request(target, target.tritons[target.default_triton])


@pytest.mark.parametrize(
    ("target", "words", "said"),
    [
        ("spriv", {}, f"there is no target spriv; did you mean spirv?|choose one of: {', '.join(components.names())}"),
        ("spirv", {"triton": "3.60"}, "Triton 3.60 is not pinned for spirv; did you mean 3.6.0?|pinned: 3.6.0, 3.9.0"),
        ("spirv", {"sdk": "a.tgz"}, "spirv accepts no vendor SDK|--sdk"),
        ("vsi", {"sdk": "environment"}, "VSI_SDK_DIR is not set|--sdk=PATH"),
        ("vsi", {"sdk": "", "sdk_version": "1"}, "--sdk-sha256 and --sdk-version need a vendor's SDK|--sdk=PATH"),
        ("dpu", {"sdk": "a.tgz", "sdk_sha256": "abc"}, "--sdk-sha256=abc is not a sha256|64 hexadecimal digits"),
        ("dpu", {"from_source": "pocl"}, "dpu cannot take pocl from source|it takes: |./foundry upstream"),
        ("dpu", {"source": ["upmem-llvm"]}, "--source=upmem-llvm is not of the form NAME=VALUE|--source=triton="),
        ("dpu", {"profile": ["=x"]}, "--profile==x is not of the form NAME=VALUE|--profile=triton="),
        ("dpu", {"from_source": True, "jobs": "0"}, "--jobs=0 is not a number from 1|--jobs=2"),
        ("dpu", {"from_source": True, "jobs": "-1"}, "--jobs=-1 is not a number from 1|--jobs=2"),
        ("dpu", {"from_source": True, "jobs": "many"}, "--jobs=many is not a number from 1|--jobs=2"),
        # Digits of another script
        ("dpu", {"from_source": True, "jobs": "٣"}, "--jobs=٣ is not a number from 1|--jobs=2"),
        ("dpu", {"jobs": "2"}, "--jobs and --compiler-cache are for what is built from source|--from-source"),
    ],
)
def test_a_word_that_does_not_fit_is_refused_by_name(target: str, words: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        Request.read(target, **words)
    for text in said.split("|"):
        assert text in str(caught.value)
    assert caught.value.next


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("build spirv --jobs=x --from-source", "--jobs=x is not a number from 1"),
        ("upstream --build=pocl --jobs=1.5", "--jobs=1.5 is not a number from 1"),
        ("cache serve --port=70000", "--port=70000 is not a number from 1 to 65535|next: --port=9300"),
        ("cache pull --remote=http://x --expect=1", "--expect=1 is not a sha256"),
        ("pack --artifact-dir=x --out-indices=2,b", "--out-indices=2,b: 'b' is not a number from 0|--out-indices=2,3"),
        ("pack --target=spirv", "say which script to run, and which kernels"),
        ("run-packed x --nr-dpus=0", "--nr-dpus=0 is not a number from 1"),
        ("run-packed x --grid=1,2,3,4", "--grid=1,2,3,4 has 4 numbers|why:  at most 3"),
        ("run-packed x --grid=1,0", "--grid=1,0: '0' is not a number from 1"),
        ("run-packed x --arg=n=3", "--arg=n=3 is not of the form IDX=VALUE"),
        ("run-packed x --len=3", "--len=3 is not of the form IDX=VALUE"),
        ("run-packed x --fill=-1=3", "--fill=-1=3 is not of the form IDX=VALUE"),
        ("run-packed x --in=x.bin", "--in=x.bin is not of the form IDX=VALUE"),
        ("run-packed x --out=2=", "--out=2= is not of the form IDX=VALUE"),
        ("bake spirv --triton=1.0", "Triton 1.0 is not pinned for spirv"),
        ("shell spirv --with=/nowhere", "--with=/nowhere: there is no such folder"),
        ("test --sdk=a.tgz", "--sdk is for one target"),
        ("pin --check --update", "--check and --update exclude each other"),
        *(
            (
                f"{words}=README.md/out",
                f"{words.split()[-1]}=README.md/out cannot be written to|README.md: Not a direct",
            )
            for words in (
                "shell spirv --with=docs --results",
                "pack --artifact-dir",
                "conformance spirv --table",
                "report --output",
            )
        ),
    ],
)
def test_a_verb_refuses_a_wrong_value_before_it_does_anything(
    line: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ensure, "ensure_image", None)
    monkeypatch.setattr(host, "ensure_engine", None)
    with pytest.raises(SystemExit) as caught:
        Foundry(namespace=Collection.from_module(tasks)).run(["invoke", MARK, *shlex.split(line)])
    assert caught.value.code == UsageError.exit_code
    stderr = capsys.readouterr().err
    for text in said.split("|"):
        assert text in stderr
    assert "next: " in stderr


def test_missing_file_of_archives_is_refused_by_its_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, said in (("nowhere.list", "there is no such file"), ("sources.txt", "must end with .list or .sources")):
        (tmp_path / "sources.txt").touch()
        monkeypatch.setenv("FOUNDRY_DEBIAN_SOURCES", str(tmp_path / name))
        with pytest.raises(UsageError, match=f"FOUNDRY_DEBIAN_SOURCES={tmp_path / name}: .*{said}"):
            Request.read("spirv")


def reread(made: Request) -> Request:
    """Read a request from the options of a request, as a verb with all options does."""
    read: dict[str, Any] = {"sdk": "", "source": [], "profile": []}
    for word in made.options:
        option, sign, value = word.removeprefix("--").partition("=")
        name = option.replace("-", "_")
        if name in ("source", "profile"):
            read[name].append(value)
        else:
            read[name] = value if sign else True
    return Request.read(made.target.name, **read)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("spirv", {}),
        ("spirv", {"triton": "3.6.0", "offline": True, "allow_drift": True}),
        ("dpu", {"sdk": "some where/sdk.tgz"}),
        ("vsi", {"sdk": "reference"}),
        ("dpu", {"from_source": True}),
        ("dpu", {"from_source": "upmem-llvm", "source": ["upmem-llvm=/x=y"]}),
        ("spirv", {"profile": ["triton=3.1.0"], "source": ["llvm=/x"]}),
    ],
)
def test_the_options_of_a_request_make_the_same_request(target: str, words: Mapping[str, Any]) -> None:
    made = Request.read(target, **words)
    assert reread(made) == made


@pytest.mark.usefixtures("named")
@pytest.mark.parametrize("word", ["", "environment", "reference"])
def test_options_of_a_request_with_sdk_variables_make_the_same_request(word: str) -> None:
    made = Request.read("vsi", sdk=word)
    assert (made.given is None) == (word == "reference")
    assert reread(made) == made


@pytest.mark.usefixtures("named")
def test_a_verb_without_the_option_takes_no_sdk_of_the_variables(capsys: pytest.CaptureFixture[str]) -> None:
    assert Request.read("vsi").given is None
    assert capsys.readouterr().err == ""


def test_a_command_names_the_image_in_words_that_a_shell_reads() -> None:
    made = Request.read("dpu", triton="3.6.0", sdk="some where/sdk.tgz")
    assert made.command("shell") == "./foundry shell dpu --triton=3.6.0 '--sdk=some where/sdk.tgz'"


def test_built_project_is_used_only_without_source_options(monkeypatch: pytest.MonkeyPatch) -> None:
    there = SourceChoice(("upmem-llvm",))
    monkeypatch.setattr(choice, "find_built", lambda *_: there)
    assert Request.read("dpu", built=True).choice == there
    assert Request.read("dpu").choice is None
    assert Request.read("dpu", built=True, from_source="none").choice is None
    folder = Request.read("dpu", built=True, source=["upmem-llvm=/x"]).choice
    assert folder == SourceChoice(("upmem-llvm",), {"upmem-llvm": Path("/x")})


def test_another_target_is_asked_for_the_same_release_or_if_that_was_the_default_for_its_own() -> None:
    spirv = Request.read("spirv", triton="3.6.0", offline=True)
    bench = Request.read("spirv-bench", triton="3.6.0", offline=True)
    assert spirv.for_target("spirv-bench") == bench
    assert Request.read("vsi").for_target("vsi-torch") == Request.read("vsi-torch")
    with pytest.raises(UsageError, match=r"3\.6\.0 is not pinned for vsi-torch"):
        spirv.for_target("vsi-torch")


def test_the_store_is_used_as_was_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOUNDRY_CACHE", str(tmp_path))
    made = Request.read("spirv", offline=True)
    with pytest.raises(OfflineError):
        made.store().fetch(made.target.debs, suite=made.target.suite, python=made.target.python)
    assert made.store().root == tmp_path


def test_target_without_a_lock_is_told_from_an_unknown_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(components, "names", lambda: ["spirv", "toy"])
    with pytest.raises(PinError, match=r"(?s)toy\.toml is not in the lock.*./foundry pin --update"):
        request.locked_target("toy")
    with pytest.raises(UsageError, match="there is no target other"):
        request.locked_target("other")


def test_all_proven_targets_are_tested_with_each_release_unless_one_is_named() -> None:
    proven = [(each.name, version) for each in lock.load().proven() for version in each.tritons]
    found = test.requests("", sdk="")
    assert [(each.target.name, each.release.version) for each in found] == proven
    assert all(each.allow_drift for each in found)
    vsi = Request.read("vsi", allow_drift=True)
    expected = [replace(vsi, release=release) for release in vsi.target.tritons.values()]
    assert test.requests("vsi", sdk="") == expected
    assert test.requests("vsi", sdk="", plugin=True) == [vsi]
    with pytest.raises(UsageError, match="--plugin is for one target"):
        test.requests("", sdk="", plugin=True)
