"""Projects that are built from source: what their files may contain, and what it means."""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path
from types import SimpleNamespace

import pytest

import tasks
from toolchains.config import components, projects
from toolchains.config.projects import FolderPin, GitPin, Profile, SourcePackagePin
from toolchains.engine import host
from toolchains.fetch.git import check_git_url
from toolchains.fetch.store import Store
from toolchains.fromsource import build
from toolchains.patching.series import Series
from toolchains.system import paths
from toolchains.system.errors import PinError, UsageError

COMMIT, TREE, OTHER = "a" * 40, "b" * 40, "c" * 40
HEAD = 'default = "one"\ngigabytes = 2.5\nbeside = ["recipe"]\n'
GIT = (
    '[profile.one]\nversion = "1.0"\nsource = "git"\nurls = ["https://a.invalid/b", "https://c.invalid/d"]\n'
    f'commit = "{COMMIT}"\n'
)


@pytest.mark.parametrize("offline", [True, False])
def test_a_project_is_built_without_a_network_if_asked_for(offline: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    built = []

    def build_here(want: object, *, store: Store, **others: object) -> SimpleNamespace:
        built.append(store.offline)
        return SimpleNamespace(made=False, path=paths.ROOT / "part")

    monkeypatch.setattr(build, "ensure_built", build_here)
    monkeypatch.setattr(host, "ensure_engine", lambda: None)
    tasks.upstream.body.__wrapped__(None, source=[], profile=[], build="upmem-llvm", offline=offline)
    assert built == [offline]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def load(folder: Path, text: str) -> projects.Upstream:
    (folder / "project.toml").write_text(text)
    return projects.load("project", folder)


def test_a_git_source_is_read_with_all_that_it_may_say(folder: Path) -> None:
    project = load(
        folder,
        HEAD + GIT + f'ref = "v1"\ntree = "{TREE}"\npatches = "project/1.0"\ntake = ["src"]\n'
        f'left-out = ["src/test/*"]\nllvm-hash = "{OTHER}"\n[profile.one.submodules]\n"third/party" = "{OTHER}"\n',
    )
    pin = GitPin(("https://a.invalid/b", "https://c.invalid/d"), COMMIT, "v1", TREE, {"third/party": OTHER})
    assert project.profiles == {"one": Profile("one", "1.0", pin, "project/1.0", ("src",), ("src/test/*",), OTHER)}
    assert (project.name, project.default, project.gigabytes, project.beside) == ("project", "one", 2.5, ("recipe",))


def test_a_source_package_and_a_folder_are_read(folder: Path) -> None:
    text = '[profile.one]\nversion = "1.0"\nsource = "debian"\nsuite = "trixie"\npackage = "tool"\n'
    project = load(folder, HEAD + text + '[profile.two]\nversion = "2.0"\nsource = "folder"\n')
    assert project.profile() == Profile("one", "1.0", SourcePackagePin("trixie", "tool"))
    assert project.profile("two").source == FolderPin()


def test_profile_inherits_common_keys_and_unknown_ones_are_refused(folder: Path) -> None:
    text = '[common]\ntake = ["src"]\nassertions = true\nsource = "folder"\n[profile.one]\nversion = "1.0"\n'
    project = load(folder, HEAD + text + '[profile.two]\nversion = "2.0"\nassertions = false\ntake = ["lib"]\n')
    assert project.profile() == Profile("one", "1.0", FolderPin(), take=("src",), assertions=True)
    assert project.profile("two") == Profile("two", "2.0", FolderPin(), take=("lib",))
    project = load(folder, HEAD + GIT)
    with pytest.raises(UsageError, match=r"(?s)project has no profile three.*known: one"):
        project.profile("three")
    with pytest.raises(UsageError, match=r"(?s)no upstream other.*known: project"):
        projects.load("other", folder)
    assert projects.names(folder) == ["project"]
    with pytest.raises(PinError, match=r"project\.toml is not TOML"):
        load(folder, "default = [")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "missing required field `default`"),
        ("default = 1\n" + GIT, "expected `str`, got `int`|missing required field"),
        ('default = "one"\n' + GIT, "missing required field `gigabytes`"),
        ('default = "two"\ngigabytes = 1\n' + GIT, "default is two"),
        ('default = "one"\ngigabytes = 0\n' + GIT, "gigabytes: expected `float` > 0"),
        ('default = "one"\ngigabytes = 1\nmore = 1\n' + GIT, "more: unknown key"),
        ('default = "one"\ngigabytes = 1\nbeside = "recipe"\n' + GIT, "beside: expected `array`, got `str`"),
        ('default = "one"\ngigabytes = 1\nprofile = "one"\n', "profile: expected `object`, got `str`"),
        ('default = "one"\ngigabytes = 1\n[profile]\none = "1.0"\n', "profile.*: expected `object`, got `str`"),
    ],
)
def test_a_wrong_project_is_refused_with_file_key_and_what_was_expected(folder: Path, text: str, said: str) -> None:
    with pytest.raises(PinError, match=rf"project\.toml.*({said})"):
        load(folder, text)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('version = "1.0"\n', "", "missing required field `version`"),
        ('version = "1.0"', "version = 1", "version: expected `str`, got `int`"),
        ('version = "1.0"', 'version = "1.0"\nassertions = "no"', "assertions: expected `bool`, got `str`"),
        ('source = "git"\n', "", "missing required field `source`"),
        ('source = "git"', 'source = "svn"', "source: invalid value 'svn'"),
        ('source = "git"', 'source = "debian"', "(urls|commit): unknown key"),
        ('source = "git"', 'source = "folder"', "(urls|commit): unknown key"),
        (COMMIT, "a" * 39, "commit: expected `str` matching regex .*40"),
        (COMMIT, "A" * 40, "commit: expected `str` matching regex .*40"),
        (f'commit = "{COMMIT}"\n', "", "neither commit nor ref"),
        (f'commit = "{COMMIT}"\n', f'commit = "{COMMIT}"\ntree = "1"\n', "tree: .*40"),
        (f'commit = "{COMMIT}"\n', f'commit = "{COMMIT}"\nllvm-hash = "1"\n', "llvm-hash: .*40"),
        (f'commit = "{COMMIT}"\n', f'commit = "{COMMIT}"\nsubmodules = "all"\n', "submodules: expected `object`"),
        (f'commit = "{COMMIT}"\n', f'commit = "{COMMIT}"\nsubmodules = {{ a = "b" }}\n', "submodules.*: .*40"),
        (f'commit = "{COMMIT}"\n', f'commit = "{COMMIT}"\nleft-out = "*"\n', "left-out: expected `array`"),
        (f'commit = "{COMMIT}"\n', f'commit = "{COMMIT}"\ntake = [1]\n', r"take\[0\]: expected `str`"),
        (f'commit = "{COMMIT}"\n', f'commit = "{COMMIT}"\nsha256 = "1"\n', "sha256: unknown key"),
        ('urls = ["https://a.invalid/b", "https://c.invalid/d"]', "urls = []", "urls: expected `array` of length >= 1"),
    ],
)
def test_wrong_profile_is_refused_with_key_and_expected_value(folder: Path, old: str, new: str, said: str) -> None:
    assert old in GIT
    with pytest.raises(PinError, match=rf"project\.toml, profile\.one.*{said}"):
        load(folder, HEAD + GIT.replace(old, new))


def test_wanted_commit_ignores_the_urls_and_nothing_else() -> None:
    pin = GitPin(("https://a.invalid/b",), COMMIT, "v1", TREE, {"a": OTHER})
    assert pin.wanted == GitPin(("https://c.invalid/d",), COMMIT, "v1", TREE, {"a": OTHER}).wanted
    others = (
        GitPin(pin.urls, OTHER, "v1", TREE, {"a": OTHER}),
        GitPin(pin.urls, COMMIT, "v2", TREE, {"a": OTHER}),
        GitPin(pin.urls, COMMIT, "v1", OTHER, {"a": OTHER}),
        GitPin(pin.urls, COMMIT, "v1", TREE, {"a": COMMIT}),
    )
    assert pin.wanted not in {other.wanted for other in others}
    assert SourcePackagePin("a", "b").wanted != SourcePackagePin("b", "a").wanted


PROFILES = [(name, profile) for name in projects.names() for profile in projects.load(name).profiles.values()]


class TestOurs:
    """The projects of this repository."""

    @pytest.mark.parametrize(("name", "profile"), PROFILES, ids=lambda each: getattr(each, "name", each))
    def test_every_profile_has_a_recipe_valid_addresses_and_its_patches(self, name: str, profile: Profile) -> None:
        assert (paths.RECIPES / name / "conanfile.py").is_file()
        if isinstance(profile.source, GitPin):
            for url in profile.source.urls:
                check_git_url(url)
        if isinstance(profile.source, SourcePackagePin):
            assert profile.source.suite in components.builder_suites()
        if profile.patches:
            assert Series.load(paths.PATCHES / profile.patches).patches

    @pytest.mark.parametrize(("name", "profile"), PROFILES, ids=lambda each: getattr(each, "name", each))
    def test_nothing_that_a_patch_changes_or_cmake_reads_first_is_left_out(self, name: str, profile: Profile) -> None:
        needed = [f"{folder}/CMakeLists.txt" for folder in profile.take]
        if profile.patches:
            needed += [path for patch in Series.load(paths.PATCHES / profile.patches).patches for path in patch.files]
        for path in needed:
            assert not profile.take or path.split("/")[0] in profile.take
            assert not any(fnmatch(path, pattern) for pattern in profile.left_out), path

    def test_our_projects_are_those_that_targets_and_tritons_name(self) -> None:
        triton = projects.load("triton")
        for target in map(components.target, components.names()):
            for version in target.triton.llvm_hashes:
                assert triton.profile(version).patches == f"triton/{version}"
        assert triton.default == components.target("spirv").triton.default
        commit = "3c709802d31b5bc5ed3af8284b40593ff39b9eec"
        source = projects.load("llvm").profile("triton-spirv").source
        assert isinstance(source, GitPin) and source.commit == commit
        assert projects.load("triton").profile("triton-spirv").llvm_hash == commit
        named = {name for target in map(components.target, components.names()) for name in target.upstreams}
        # LLVM is a requirement of Triton; no target names it.
        assert named | {"llvm"} == set(projects.names())
