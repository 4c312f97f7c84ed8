"""The verb target: what is written for a new target, which names are refused, and what is shown of a target.

The last test does what a newcomer does, in a copy of this repository: it writes a target, resolves and builds it, runs
its plugin's tests in its image, and proves it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from toolchains.assembly.plugin import Plugin
from toolchains.assembly.target_image import Inputs
from toolchains.config import components, scaffold
from toolchains.engine.client import Engine, ImageInfo
from toolchains.images import provenance
from toolchains.lockfile import lock
from toolchains.system import durable, paths
from toolchains.system.errors import FileError, UsageError
from toolchains.system.terminal import make_console
from toolchains.verbs import target

NAME = "sample_npu"
# What is left out of a copy of this repository: files that are generated in it, and git's own folder.
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "build", "__pycache__", ".*_cache")
WITHOUT_TESTS = shutil.ignore_patterns("__pycache__", "tests", "tritonpim")


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copy the folders that a target is written to. The copy is used in place of this repository's."""
    for folder in ("backends", "docker", "toolchains/targets"):
        shutil.copytree(paths.ROOT / folder, tmp_path / folder, ignore=WITHOUT_TESTS, symlinks=True)
    # The lowering's tests; a package of it has the same name.
    shutil.rmtree(tmp_path / "backends" / "core" / "ir")
    for file in (*paths.ROOT.glob("*.py"), paths.ROOT / "pyproject.toml", paths.VERSION):
        shutil.copy(file, tmp_path)
    for name in ("BACKENDS", "DOCKER", "TARGETS", "BUILD"):
        monkeypatch.setattr(paths, name, tmp_path / getattr(paths, name).relative_to(paths.ROOT))
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    return tmp_path


def files(folder: Path) -> dict[str, bytes]:
    """Return all files of the folders that a target is written to."""
    found = (path for name in ("backends", "docker", "toolchains") for path in (folder / name).rglob("*"))
    return {str(path.relative_to(folder)): path.read_bytes() for path in found if path.is_file()}


def check(*command: str, cwd: Path) -> None:
    done = subprocess.run([sys.executable, "-m", *command], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("like", scaffold.sources())
def test_a_new_target_has_a_file_that_is_read_strictly_a_dockerfile_and_a_plugin(like: str, tree: Path) -> None:
    before = files(tree)
    scaffold.write(NAME, like)
    after = files(tree)
    assert {name: after[name] for name in before} == before
    package = f"backends/{NAME}/src/triton_{NAME}_backend"
    assert after.keys() - before.keys() == {
        f"toolchains/targets/{NAME}.toml",
        f"docker/{NAME}.Dockerfile",
        *(f"backends/{NAME}/{file}" for file in ("README.md", "VERSION", "pyproject.toml", f"tests/test_{NAME}.py")),
        *(f"{package}/{file}" for file in ("__init__.py", "compiler.py", "driver.py", "py.typed")),
    }
    made, model = components.target(NAME, tree / "toolchains/targets"), components.target(like)
    assert (made.backend, made.plugins) == (NAME, (*model.plugins, NAME))
    # The same pins, and therefore the same packages and native parts.
    assert made.digests == model.digests and (made.recipes, made.build) == (model.recipes, model.build)
    assert not (made.sdk or made.user_folders or made.packing or made.peers or made.bench)
    dockerfile = after[f"docker/{NAME}.Dockerfile"].decode()
    assert f"TRITON_DEFAULT_BACKEND={NAME} " in dockerfile
    assert f"TRITON_DEFAULT_BACKEND={like} " not in dockerfile
    for file in ("compiler.py", "driver.py"):
        assert "TODO" in after[f"{package}/{file}"].decode()
    assert not [name for name in after.keys() - before.keys() if re.search(rb"@[A-Z]+@", after[name])]
    assert list((tree / "build").iterdir()) == []


@pytest.mark.parametrize("like", scaffold.sources())
def test_new_repository_is_whole_and_names_nothing_of_this_tree(
    like: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "sample"
    target.target("new", NAME, like=like, out="sample", licence="Apache-2.0")
    package = f"src/triton_{NAME}_backend"
    written = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert written == {
        *("README.md", "LICENSE", "pyproject.toml", ".gitignore", ".gitlab-ci.yml", ".github/workflows/plugin.yml"),
        *(f"{package}/{file}" for file in ("__init__.py", "compiler.py", "driver.py", "py.typed", "foundry.toml")),
        f"tests/test_{NAME}.py",
    }
    assert not list(tmp_path.glob(".*"))
    texts = {name: (folder / name).read_text(encoding="utf-8") for name in written}
    assert not [name for name, text in texts.items() if re.search("@[A-Z]+@", text) or str(paths.ROOT) in text]
    assert "Apache License" in texts["LICENSE"]
    project = tomllib.loads(texts["pyproject.toml"])["project"]
    assert (project["license"], project["version"]) == ("Apache-2.0", "0.1.0")
    assert project["optional-dependencies"]["triton"] == ["triton>=3.6,<3.10"]
    plugin = Plugin.read(str(folder))
    assert plugin is not None and (plugin.name, plugin.package) == (NAME, f"triton_{NAME}_backend")
    refused = tomllib.loads((paths.TARGETS / f"{like}.toml").read_text()).get("refused", {})
    assert tomllib.loads(plugin.settings)["refused"] == refused
    check("ruff", "check", "--no-cache", ".", cwd=folder)
    check("ruff", "format", "--no-cache", "--check", ".", cwd=folder)


def test_repository_is_not_written_over_files_or_without_a_known_licence(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(FileError, match="exists already"):
        target.target("new", NAME, out=str(tmp_path))
    with pytest.raises(UsageError, match="--licence=WTFPL is not known"):
        target.target("new", NAME, out=str(tmp_path / "new"), licence="WTFPL")
    with pytest.raises(UsageError, match="cannot be the name of a backend"):
        target.target("new", "spirv", out=str(tmp_path / "new"))
    with pytest.raises(UsageError, match="--licence is for a repository"):
        target.target("new", NAME, licence="MIT")
    with pytest.raises(UsageError, match="--out=x is for a new target"):
        target.target("list", "", out="x")
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    # A word of Foundry's code may name a backend in another repository.
    target.target("new", "branch", out=str(tmp_path / "new"), licence="none")
    assert 'license = "LicenseRef-Proprietary"' in (tmp_path / "new/pyproject.toml").read_text()
    assert not (tmp_path / "new/LICENSE").exists()


@pytest.mark.slow
def test_new_target_passes_linter_formatter_and_mypy(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Names of the minimum and the maximum length.
    names = [f"{'n' * (scaffold._LONGEST - 1)}{index}" for index, _ in enumerate(scaffold.sources())] + ["q"]
    for name, like in zip(names, [*scaffold.sources(), ""], strict=True):
        scaffold.write(name, like)
    # A new target of the maximum length, and one like it.
    first, second = (word + "_" + "n" * (scaffold._LONGEST - len(word) - 1) for word in ("first", "second"))
    scaffold.write(first)
    read = components.target
    monkeypatch.setattr(components, "target", lambda name, folder=tree / "toolchains/targets": read(name, folder))
    monkeypatch.setattr(components, "names", lambda: [first, "spirv"])
    assert scaffold.default_source() == "spirv"
    scaffold.write(second, first)
    assert read(second, tree / "toolchains/targets").plugins == ("core", "spirv", first, second)
    compiler = (tree / f"backends/{second}/src/triton_{second}_backend/compiler.py").read_text()
    assert re.search(r"class SecondNn+Backend\(like\.FirstNn+Backend\)", compiler)
    written = [f"backends/{name}" for name in (*names, first, second)]
    check("ruff", "check", *written, cwd=tree)
    check("ruff", "format", "--check", *written, cwd=tree)
    check("mypy", *(str(path.relative_to(tree)) for path in tree.glob("backends/*/src")), cwd=tree)


def test_the_name_in_the_walk_through_is_free_and_its_plugin_can_be_installed_from_the_sources(tree: Path) -> None:
    first, second = ((Path(__file__).parents[2] / "docs" / page).read_text() for page in ("target.md", "new-target.md"))
    name, like = re.findall(r"\./foundry target new (\w+) --like=(\w+)", first)[0]
    assert list(scaffold._uses(name)) == []
    # A user may have written it already.
    if name not in components.names():
        scaffold.write(name, like)
    # Of pip, only what no index is needed for: what the plugins require is installed here.
    (install,) = re.findall(r"`pip (install -e [^`]+)`", second)
    check("pip", *install.split(), "--dry-run", "--no-index", "--no-build-isolation", cwd=tree)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "begins with a letter"),
        ("2nd", "begins with a letter"),
        ("Npu", "lower-case"),
        ("my-npu", "underscores may separate words"),
        ("my__npu", "underscores may separate words"),
        ("npu_", "underscores may separate words"),
        ("../npu", "lower-case"),
        ("n" * 21, "at most 20"),
        ("lambda", "begins with a letter"),
        ("spirv", "there is a target of this name"),
        ("pocl", "a component or an upstream project has this name"),
        ("numpy", "a component or an upstream project has this name"),
        ("image", "the code uses this word"),
        ("core", "the code uses this word"),
        # In a text, in no identifier.
        ("branch", "the code uses this word"),
    ],
)
def test_a_name_that_cannot_be_a_targets_is_refused_with_the_reason(name: str, why: str) -> None:
    with pytest.raises(UsageError, match="cannot be the name of a target") as caught:
        scaffold.write(name)
    assert why in caught.value.why


def test_a_target_can_be_made_like_one_with_a_plugin_of_its_own_only() -> None:
    with pytest.raises(UsageError, match=r"like spirv-torch; did you mean spirv\?") as caught:
        scaffold.write(NAME, "spirv-torch")
    known = caught.value.why.removeprefix("known: ").split(", ")
    assert {"dpu", "spirv", "vsi"} <= {*known} and "spirv-torch" not in known and "vsi-torch" not in known


@pytest.mark.parametrize("there", [f"docker/{NAME}.Dockerfile", f"backends/{NAME}/notes"])
def test_nothing_is_overwritten(there: str, tree: Path) -> None:
    (tree / there).parent.mkdir(exist_ok=True)
    (tree / there).write_text("mine")
    before = files(tree)
    with pytest.raises(FileError, match=rf"{NAME}(\.Dockerfile)? exists already"):
        scaffold.write(NAME)
    assert files(tree) == before


@pytest.mark.parametrize("moves", [0, 1, 2])
def test_a_target_is_written_as_a_whole_or_not_at_all(moves: int, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, move, done = files(tree), durable.move, list[Path]()

    def stopped(source: Path, place: Path) -> None:
        if len(done) == moves:
            done.append(place)
            raise KeyboardInterrupt
        done.append(place)
        move(source, place)

    monkeypatch.setattr(durable, "move", stopped)
    with pytest.raises(KeyboardInterrupt):
        scaffold.write(NAME)
    assert files(tree) == before
    assert list((tree / "build").iterdir()) == []


@pytest.fixture
def shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[str, str], str]:
    """Return what the verb prints with an empty store and without an engine, without the line ends in tables."""
    monkeypatch.setenv("FOUNDRY_CACHE", str(tmp_path))
    monkeypatch.setattr(target, "_console", make_console())
    monkeypatch.setattr(target, "_engine", lambda: None)

    def call(action: str, name: str = "") -> str:
        target.target(action, name)
        return capsys.readouterr().out

    return call


def row(text: str, word: str) -> str:
    (found,) = [line for line in text.splitlines() if re.match(rf" *{re.escape(word)} ", line)]
    return " ".join(found.split())


def test_every_target_is_listed_with_its_releases_and_sizes(shown: Callable[..., str]) -> None:
    said = shown("list")
    for name, locked in lock.load().targets.items():
        line = row(said, name)
        others = {release.wheel for version, release in locked.tritons.items() if version != locked.default_triton}
        fetched = sum(file.size for file in locked.artifacts() if file not in others)
        assert f" {round(fetched / 1e6)} " in line
        if name == "spirv":
            page = (paths.ROOT / "README.md").read_text(encoding="utf-8")
            assert f"fetches {fetched / 1e9:.1f} GB" in page, "README.md: what the first run fetches"
        assert all(version in line for version in locked.tritons)
        assert f" {locked.suite} {locked.python} " in line
        assert line.startswith(f"{name} {locked.backend} " if locked.variant else f"{name} {locked.suite} ")


def test_a_target_is_shown_with_each_part_and_where_it_can_come_from(shown: Callable[..., str]) -> None:
    said = shown("show", "dpu")
    locked, wanted = lock.load().targets["dpu"], components.target("dpu")
    debs = f"{sum(deb.size for deb in locked.debs) / 1e6:.0f}"
    assert row(said, f"{len(locked.debs)} Debian packages").endswith(f"bookworm {debs} prebuilt")
    assert all(pin.name in said for pin in (*wanted.pins, *wanted.build))
    assert row(said, "upmem-emulator").endswith("sdks/upmem, or --sdk=PATH: UPMEM's SDK")
    assert "--sdk" not in row(said, "dpu-legalize")
    assert row(said, "upmem-llvm").endswith("- prebuilt packages, or --from-source=upmem-llvm")
    assert row(said, "triton-dpu-backend").endswith("- built here, backends/dpu")
    releases = [line.split()[1] for line in said.splitlines() if line.startswith(" Triton ")]
    assert releases == [locked.default_triton, *(version for version in locked.tritons if version not in releases[:1])]
    assert said.count("no container engine answers") == len(locked.tritons)


def test_image_is_shown_by_its_name_of_a_build(shown: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    locked = lock.load().targets["spirv"]
    name = Inputs(locked, locked.tritons[locked.default_triton]).name
    info = ImageInfo("sha256:1", (), {}, 1_240_000_000, ())
    monkeypatch.setattr(target, "_engine", lambda: "an engine")
    monkeypatch.setattr(provenance, "image", lambda asked, **_: info if asked == name else None)
    said = shown("show", "spirv")
    assert f"Triton {locked.default_triton}: {name} (1240 MB)" in said
    assert said.count("(not built)") == len(locked.tritons) - 1


def test_a_target_that_is_not_there_is_refused_with_the_nearest(shown: Callable[..., str]) -> None:
    with pytest.raises(UsageError, match=r"no target spriv; did you mean spirv\?"):
        shown("show", "spriv")


@pytest.fixture
def copied(tmp_path: Path, docker: Engine) -> Iterator[Path]:
    """Yield a copy of this repository. Images of a target named NAME are removed at the end."""
    yield shutil.copytree(paths.ROOT, tmp_path / "repository", ignore=LEFT_OUT, symlinks=True)
    deadline = time.monotonic() + 60
    # The engine may still be removing the last container. Until then, its image stays.
    while (found := docker.named(f"triton-foundry/{NAME}")) and time.monotonic() < deadline:
        for name in (name for names, _ in found.values() for name in names):
            docker.remove(name)
        time.sleep(1)


@pytest.mark.docker
@pytest.mark.network
@pytest.mark.slow
def test_new_target_resolves_builds_tests_and_is_proven(copied: Path, request: pytest.FixtureRequest) -> None:
    drift = ["--allow-drift"] if request.config.getoption("--allow-drift") else []

    def python(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, *words],
            cwd=copied,
            env={**os.environ, "PYTHONPATH": str(copied)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert done.returncode == 0, f"{words} ended with status {done.returncode}:\n{done.stdout}"
        return done.stdout

    def foundry(*words: str) -> str:
        return python("-P", "-m", "invoke", "--search-root", str(copied), "foundry", *words)

    assert f"wrote toolchains/targets/{NAME}.toml" in foundry("target", "new", NAME)
    foundry("pin", f"--update={NAME}")
    locked = lock.load(copied / "toolchains/lock.json").targets
    # What was resolved before is unchanged.
    assert {name: found for name, found in locked.items() if name != NAME} == lock.load().targets
    said = foundry("test", f"--target={NAME}", "--plugin")
    built = re.search(rf"image (triton-foundry/{NAME}:[0-9a-f]+)", said)
    assert re.search(r"\b12 passed in ", said), said
    said = foundry("e2e", NAME, "--only=n=1000 ", *drift)
    assert f"this does not prove {NAME}" in said and " 0 passed" not in said
    assert "ran on CPU OpenCL device" in said
    table = foundry("target", "show", NAME)
    shown = re.search(r"(triton-foundry/\S+) \(\d+ MB\)", table)
    assert built, said
    # With drift, the image does not have the name of the one with the locked packages.
    assert (shown and built[1] == shown[1]) or drift, table
