"""Pins and targets: what the TOML files may contain, and what it means."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from toolchains.config import components
from toolchains.config.components import DebPin, LinkedProgram, PatchedFiles, Release, ReleasesPin, SdistPin, WheelPin
from toolchains.system import paths
from toolchains.system.errors import PinError, UsageError

A, B = "a" * 40, "b" * 40
FILES = {
    "pins/tools.toml": 'source = "deb"\npackages = ["first", "second"]\nleft-out = ["/a/*"]\nkept = ["/a/b"]\n',
    "pins/more.toml": 'source = "deb"\npackages = ["third"]\n',
    "pins/library.toml": 'source = "wheel"\n[packages]\nlibrary = "1.0"\n',
    "pins/triton.toml": 'source = "releases"\ndistribution = "triton"\ndefault = "2"\n'
    f'[release."1"]\nllvm-hash = "{A}"\n[release."2"]\nllvm-hash = "{B}"\n',
    "targets/plain.toml": 'backend = "b"\nplugins = ["b"]\n'
    'suite = "s"\npython = "3.13"\ncomponents = ["tools", "library", "triton"]\n',
    "pins/sources.toml": 'source = "sdist"\n[packages]\nmade = "1.0"\n',
    "targets/native.toml": 'backend = "b"\nplugins = ["b"]\n'
    'suite = "s"\npython = "3.13"\ncomponents = ["library", "triton"]\n'
    'recipes = ["part"]\nbuild-components = ["tools", "sources"]\nsdk = "vendor"\n',
    "targets/variant.toml": 'extends = "plain"\ncomponents = ["more"]\n',
    "pins/silent.toml": 'source = "releases"\ndistribution = "triton"\ndefault = "0"\n'
    f'[release."0"]\nllvm-hash = "{A}"\nllvm-version = "20.0.0git"\n',
    "pins/later.toml": 'source = "deb"\nsuite = "s-backports"\npackages = ["newer"]\n',
    "pins/program.toml": 'source = "deb"\n[linked]\nrecipe = "program"\npackages = ["archive"]\nleft-out = ["/b/*"]\n',
    "pins/edited.toml": 'source = "deb"\npackages = ["fourth"]\n'
    '[patched]\npackage = "fourth"\nseries = "fourth/1"\nroot = "/usr/lib"\n',
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def component(root: Path, name: str) -> components.Pin:
    return components.component(name, root / "pins")


def target(root: Path, name: str) -> components.Target:
    return components.target(name, root / "targets", root / "pins")


def test_each_kind_of_component_is_read(root: Path) -> None:
    assert component(root, "tools") == DebPin("tools", ("first", "second"), ("/a/*",), ("/a/b",))
    assert component(root, "library") == WheelPin("library", {"library": "1.0"})
    assert component(root, "sources") == SdistPin("sources", {"made": "1.0"})
    assert component(root, "triton") == ReleasesPin("triton", "triton", "2", {"1": Release(A), "2": Release(B)})
    assert component(root, "silent") == ReleasesPin("silent", "triton", "0", {"0": Release(A, "20.0.0git")})
    assert component(root, "later") == DebPin("later", ("newer",), suite="s-backports")
    edited = PatchedFiles("fourth", "fourth/1", "/usr/lib")
    assert component(root, "edited") == DebPin("edited", ("fourth",), patched=edited)
    program = LinkedProgram("program", ("archive",), ("/b/*",))
    assert component(root, "program") == DebPin("program", linked=program)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "missing required field `source`"),
        ('source = "git"\npackages = ["a"]', "invalid value 'git'"),
        ('source = "deb"\npackages = "a"', "packages: expected `array`, got `str`"),
        ('source = "deb"\npackages = ["a", 1]', r"packages\[1\]: expected `str`, got `int`"),
        ('source = "deb"\npackages = [""]', r"packages\[0\]: expected `str` of length >= 1"),
        ('source = "deb"\npackages = ["a"]\nversion = "1"', "(?s)version: unknown key.*the keys are: .*left-out"),
        ('source = "deb"\npackages = ["a"]\nleftout = []', "(?s)leftout: unknown key.*did you mean left-out"),
        ('source = "deb"\nname = "a"', "name: unknown key"),
        ('source = "deb"\n[patched]\npackage = "a"\nseries = "a/1"', "patched: .*missing required field `root`"),
        ('source = "deb"\n[patched]\npackage = "a"\nseries = "s"\nroot = "/"\nmode = "1"', "patched.mode: unknown key"),
        ('source = "wheel"\npackages = ["a"]', "packages: expected `object`, got `array`"),
        ('source = "wheel"\n[packages]\na = 1', r"packages.*: expected `str`, got `int`"),
        (f'source = "releases"\ndistribution = "t"\ndefault = "3"\n[release."2"]\nllvm-hash = "{A}"', "default is 3"),
        ('source = "releases"\ndistribution = "t"\ndefault = "2"\n[release."2"]', "release.*: .*`llvm-hash`"),
        ('source = "releases"\ndistribution = "t"\ndefault = "2"\n[release."2"]\nllvm-hash = "a"', "release.*40"),
    ],
)
def test_a_wrong_component_is_refused_with_file_key_and_what_was_expected(root: Path, text: str, said: str) -> None:
    (root / "pins" / "tools.toml").write_text(text)
    with pytest.raises(PinError, match=rf"tools\.toml.*{said}" if "(?s)" not in said else said):
        component(root, "tools")


def test_broken_toml_or_a_missing_file_is_refused_by_name(root: Path) -> None:
    (root / "targets" / "variant.toml").write_text('extends = "plain"\ncomponents = ["nowhere"]\n')
    with pytest.raises(PinError, match=r"nowhere\.toml"):
        target(root, "variant")
    with pytest.raises(UsageError, match=r"(?s)nowhere.*native, plain, variant"):
        target(root, "nowhere")
    (root / "targets" / "plain.toml").write_text(FILES["targets/plain.toml"].replace(', "triton"', ""))
    with pytest.raises(PinError, match="0 components with releases"):
        _ = target(root, "plain").digests
    (root / "pins" / "tools.toml").write_text('source = "deb"\npackages = [')
    with pytest.raises(PinError, match=r"(?s)tools\.toml is not TOML.*(line 2|end of document)"):
        component(root, "tools")


def test_a_target_is_the_sum_of_its_components_and_a_variant_adds_to_it(root: Path) -> None:
    plain = target(root, "plain")
    assert (plain.backend, plain.suite, plain.python) == ("b", "s", "3.13")
    assert plain.packages == ("first", "second")
    assert plain.wheels == {"library": "1.0"}
    assert plain.triton.default == "2"
    plain, variant = target(root, "plain"), target(root, "variant")
    assert variant.packages == ("first", "second", "third")
    assert (variant.backend, variant.suite, variant.python) == (plain.backend, plain.suite, plain.python)
    assert variant.pins[: len(plain.pins)] == plain.pins


def test_native_parts_come_with_what_they_are_built_in_also_in_a_variant(root: Path) -> None:
    native = target(root, "native")
    assert (native.recipes, native.sdk) == (("part",), "vendor")
    builder = native.builder
    assert builder is not None
    assert (builder.name, builder.suite, builder.python) == ("native-build", native.suite, native.python)
    assert (builder.packages, builder.sdists) == (("first", "second"), {"made": "1.0"})
    assert set(builder.digests) == {"debs", "wheels"}
    assert target(root, "plain").builder is None
    (root / "targets" / "variant.toml").write_text('extends = "native"\ncomponents = ["more"]\n')
    variant = target(root, "variant")
    assert (variant.name, variant.recipes, variant.sdk) == ("variant", ("part",), "vendor")
    assert variant.builder is not None


def test_a_variant_has_other_components_in_the_place_of_some_and_recipes_of_its_own(root: Path) -> None:
    (root / "targets" / "variant.toml").write_text(
        'extends = "native"\ncomponents = ["edited"]\nreplaces = { triton = "silent" }\n'
        'recipes = ["own"]\nbuild-components = ["more"]\n'
    )
    native, variant = target(root, "native"), target(root, "variant")
    assert [pin.name for pin in variant.pins] == ["library", "silent", "edited"]
    assert (variant.triton.default, variant.recipes) == ("0", ("part", "own"))
    assert variant.build == (*native.build, component(root, "more"))
    assert [what.package for what in variant.patched] == ["fourth"]
    assert variant.digests["tritons"] != native.digests["tritons"]
    (root / "targets" / "variant.toml").write_text('extends = "plain"\nreplaces = { absent = "more" }\n')
    with pytest.raises(PinError, match=r"(?s)variant\.toml, replaces: plain has no component absent.*tools, library"):
        target(root, "variant")


def test_a_component_of_another_suite_says_so_for_each_package_and_in_the_digest(root: Path) -> None:
    (root / "targets" / "variant.toml").write_text('extends = "plain"\ncomponents = ["later"]\n')
    variant = target(root, "variant")
    assert (variant.packages, variant.extra_suites) == (("first", "second", "newer/s-backports"), ("s-backports",))
    assert target(root, "plain").extra_suites == ()
    file = root / "pins" / "later.toml"
    file.write_text(file.read_text().replace('suite = "s-backports"\n', ""))
    assert target(root, "variant").digests["debs"] != variant.digests["debs"]


def test_a_component_of_a_suite_that_goes_with_another_release_is_refused(root: Path) -> None:
    (root / "targets" / "variant.toml").write_text('extends = "plain"\ncomponents = ["later"]\n')
    file = root / "pins" / "later.toml"
    file.write_text(file.read_text().replace("s-backports", "t-backports"))
    with pytest.raises(PinError, match=r"(?s)later is taken from t-backports.*s-backports.*pins/later\.toml"):
        target(root, "variant")


PLAIN = FILES["targets/plain.toml"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ": object missing required field `backend`"),
        ('backend = "b"', ": object missing required field `plugins`"),
        ('extends = "plain"\nsuite = "s"\ncomponents = []', ", suite: unknown key"),
        ('extends = "plain"', ": a variant has more than the target that it extends"),
        ('extends = "plain"\nreplaces = ["triton"]', ", replaces: expected `object`, got `array`"),
        ('extends = "plain"\ncomponents = "more"', ", components: expected `array`, got `str`"),
        (PLAIN + 'recipes = ["part"]\n', ": recipes and build-components go together"),
        (PLAIN + 'sdk = "vendor"\n', ": sdk replaces a recipe, and there are no recipes"),
        (FILES["targets/native.toml"] + 'more = "1"\n', ", more: unknown key"),
        (PLAIN.replace('plugins = ["b"]\n', ""), ": object missing required field `plugins`"),
        (PLAIN.replace('plugins = ["b"]', 'plugins = ["core"]'), ": plugins must have the plugin of the backend, b"),
        (PLAIN + '[user-folders]\nb = "relative"\n', r", user-folders\[...\]: expected `str` matching regex '\^/"),
        (PLAIN + '[packing]\nmodule = "m"\n', ", packing: object missing required field `example`"),
        (PLAIN + 'upstreams = "triton"\n', ", upstreams: expected `array`, got `str`"),
        (PLAIN + "llvm-targets = [1]\n", r", llvm-targets\[0\]: expected `str`, got `int`"),
        ('extends = "plain"\nupstreams = ["triton"]\n', ", upstreams: unknown key"),
    ],
)
def test_a_wrong_target_is_refused_with_file_key_and_what_was_expected(root: Path, text: str, said: str) -> None:
    (root / "targets" / "variant.toml").write_text(text)
    with pytest.raises(PinError, match=rf"variant\.toml{said}"):
        target(root, "variant")


def test_a_comment_changes_no_digest_and_a_pin_only_its_own(root: Path) -> None:
    before = target(root, "plain").digests
    file = root / "pins" / "library.toml"
    file.write_text("# why\n" + file.read_text())
    assert target(root, "plain").digests == before
    file.write_text(file.read_text().replace("1.0", "2.0"))
    after = target(root, "plain").digests
    assert {part for part in before if after[part] != before[part]} == {"wheels"}


def test_a_target_says_what_may_be_built_from_source_for_it_and_its_variants_say_the_same(root: Path) -> None:
    before = {name: target(root, name) for name in ("plain", "native")}
    for name in before:
        file = root / "targets" / f"{name}.toml"
        file.write_text(file.read_text() + 'upstreams = ["triton"]\nllvm-targets = ["host", "NVPTX"]\n')
        after = target(root, name)
        assert (after.upstreams, after.llvm_targets) == (("triton",), ("host", "NVPTX"))
        # What is built by default stays as locked.
        assert after.digests == before[name].digests
        assert (after.recipes, after.sdk, after.build) == (before[name].recipes, before[name].sdk, before[name].build)
    variant = target(root, "variant")
    assert (variant.upstreams, variant.llvm_targets) == (("triton",), ("host", "NVPTX"))
    assert before["plain"].upstreams == ()


def test_a_builder_is_a_system_of_its_suite_and_of_no_backend(root: Path) -> None:
    (root / "builders").mkdir()
    (root / "builders" / "s.toml").write_text('python = "3.13"\ncomponents = ["tools", "sources", "library"]\n')
    builder = components.builder("s", root / "builders", root / "pins")
    assert (builder.name, builder.backend, builder.suite, builder.python) == ("build-s", "", "s", "3.13")
    assert (builder.packages, builder.sdists) == (("first", "second"), {"made": "1.0"})
    assert components.builder_suites(root / "builders") == ["s"]
    with pytest.raises(UsageError, match=r"(?s)nothing can be built from source for t.*known: s"):
        components.builder("t", root / "builders", root / "pins")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ": object missing required field `python`"),
        ('python = "3.13"\n', ": object missing required field `components`"),
        ("python = 3\ncomponents = []\n", ", python: expected `str`, got `int`"),
        ('python = "3.13"\ncomponents = []\nsuite = "s"\n', ", suite: unknown key"),
    ],
)
def test_a_wrong_builder_is_refused_with_file_key_and_what_was_expected(root: Path, text: str, said: str) -> None:
    (root / "builders").mkdir()
    (root / "builders" / "s.toml").write_text(text)
    with pytest.raises(PinError, match=rf"s\.toml{said}"):
        components.builder("s", root / "builders", root / "pins")


class TestOurs:
    """The pins of this repository."""

    def test_every_target_of_ours_has_a_plugin_a_dockerfile_and_a_builder(self) -> None:
        for name in components.names():
            backend = components.target(name).backend
            assert (paths.BACKENDS / backend).is_dir()
            assert (paths.DOCKER / f"{backend}.Dockerfile").is_file()
        for name in components.names():
            target = components.target(name)
            assert components.builder(target.suite).python == target.python
        targets = [components.target(name) for name in components.names()]
        used = {pin.name for target in targets for pin in (*target.pins, *target.build)}
        used |= {pin.name for suite in components.builder_suites() for pin in components.builder(suite).pins}
        used |= {pin.name for tool in components.tools(targets) for pin in tool.pins}
        assert used == {file.stem for file in paths.PINS.glob("*.toml")}

    @pytest.mark.parametrize(
        "file",
        [
            file
            for folder in (paths.PINS, paths.TARGETS, paths.BUILDERS, paths.UPSTREAMS)
            for file in folder.glob("*.toml")
        ],
        ids=lambda file: f"{file.parent.name}-{file.stem}",
    )
    def test_every_file_begins_by_saying_why_it_is_there(self, file: Path) -> None:
        assert re.match("#:schema .*\n# ", file.read_text())


@pytest.mark.parametrize("circle", [("variant",), ("variant", "other"), ("variant", "other", "third")])
def test_variants_that_extend_each_other_in_a_circle_are_named(root: Path, circle: tuple[str, ...]) -> None:
    for name, parent in zip(circle, (*circle[1:], circle[0]), strict=True):
        (root / f"targets/{name}.toml").write_text(f'extends = "{parent}"\ncomponents = ["more"]\n')
    with pytest.raises(PinError, match=" -> ".join([*circle, circle[0]])):
        target(root, "variant")


@pytest.mark.parametrize("text", ["a = " + "[" * 100_000, "a = " + "9" * 10_000])
def test_toml_that_cannot_be_read_into_values_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.toml").write_text(text)
    with pytest.raises(PinError, match=r"a\.toml is not TOML"):
        components.component("a", tmp_path)
