"""Read components, targets and builders, which define the contents of an image, one TOML file each.

toolchains/pins/NAME.toml       a component: Debian packages, or Python distributions at exact versions
toolchains/targets/NAME.toml    a target, or with `extends` a variant of one
toolchains/builders/SUITE.toml  the image that upstream projects are built in

Jupyter, a component too, is in no image: see tools.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from msgspec import structs

from toolchains.config import platforms
from toolchains.config.reading import AbsolutePath, Commit, File, Text, convert, read_table, wrong
from toolchains.lockfile.lock import AMD64, Patched, builder_name, digest, tool_name
from toolchains.system import paths
from toolchains.system.errors import PinError, UsageError

# The component that runs and serves notebooks.
JUPYTER = "jupyter"


class PatchedFiles(File, frozen=True):
    """Files of a Debian package that a patch series changes.

    Attributes:
        package: the Debian package.
        series: the folder of the series below patches/, such as "torch/2.6.0".
        root: the folder in the image that the paths in the series are relative to.
    """

    package: Text
    series: Text
    root: Text


class LinkedProgram(File, frozen=True):
    """A program that is linked on this machine with files of Debian packages that the image does not have.

    Attributes:
        recipe: the folder in toolchains/recipes with the program's sources and link.sh.
        packages: the Debian packages that are unpacked for it, the linker's among them. What they depend on is not
            resolved.
        left_out: patterns of files in these packages that are not unpacked.
    """

    recipe: Text
    packages: tuple[Text, ...]
    left_out: tuple[Text, ...] = ()


class DebPin(File, tag_field="source", tag="deb", frozen=True):
    """Packages of the target's Debian suite, in the version that the suite has when the pin is resolved.

    Attributes:
        name: the name of the file.
        packages: the Debian packages. What they depend on is resolved.
        left_out: patterns of files that are left out of the image, of these packages and of what they depend on.
        kept: patterns of files that stay in the image although a pattern of left-out matches them.
        patched: the files of one package that a patch series changes.
        linked: a program that is linked with files of further packages.
        suite: the suite that these packages are taken from, if not the target's own: "trixie-backports" in a target of
            trixie. What they depend on comes from the target's own suite wherever that has it.
    """

    name: str
    packages: tuple[Text, ...] = ()
    left_out: tuple[Text, ...] = ()
    kept: tuple[Text, ...] = ()
    patched: PatchedFiles | None = None
    linked: LinkedProgram | None = None
    suite: str = ""


class WheelPin(File, tag_field="source", tag="wheel", frozen=True):
    """Python distributions at exact versions. What they depend on is resolved.

    Attributes:
        name: the name of the file.
        packages: the version of each distribution.
    """

    name: str
    packages: Mapping[str, Text]


class SdistPin(File, tag_field="source", tag="sdist", frozen=True):
    """Python distributions at exact versions that are published as sources only. What they need comes as wheels.

    Attributes:
        name: the name of the file.
        packages: the version of each distribution.
    """

    name: str
    packages: Mapping[str, Text]


class Release(File, frozen=True):
    """A release of a distribution.

    Attributes:
        llvm_hash: the LLVM commit that the release was built with.
        llvm_version: the LLVM version in the binary, for a release whose binary does not name the commit.
    """

    llvm_hash: Commit
    llvm_version: str = ""


class ReleasesPin(File, tag_field="source", tag="releases", frozen=True):
    """A distribution in several releases, each with the LLVM commit that is compiled into it: Triton.

    Attributes:
        name: the name of the file.
        distribution: the name of the Python distribution.
        default: the release that a target has unless another is asked for.
        release: the releases by version.
    """

    name: str
    distribution: Text
    default: Text
    release: Mapping[str, Release]

    def __post_init__(self) -> None:
        if self.default not in self.release:
            raise ValueError(f"default is {self.default}, and there is no [release.{self.default!r}]")

    @property
    def llvm_hashes(self) -> dict[str, str]:
        """Return the LLVM commit of each release."""
        return {version: release.llvm_hash for version, release in self.release.items()}

    @property
    def wanted(self) -> dict[str, object]:
        """Return what is wanted, for the digest in the lock."""
        versions = {version: release.llvm_version for version, release in self.release.items() if release.llvm_version}
        wanted: dict[str, object] = {
            "name": self.name,
            "distribution": self.distribution,
            "default": self.default,
            "llvm_hashes": self.llvm_hashes,
        }
        return wanted | ({"llvm_versions": versions} if versions else {})


Pin = DebPin | WheelPin | SdistPin | ReleasesPin


class Packing(File, frozen=True):
    """How kernels of a target are packed into folders that run without Triton; see the verb pack.

    Attributes:
        module: the Python module in the image that writes an artifact: `python -m MODULE pack ...`.
        example: the script that is packed if none is given; a path below backends/.
        scripts: the folder with the scripts that run an artifact; a path below backends/.
        runner: the one of these scripts that builds and runs the artifact that ARTIFACT_DIR names.
    """

    module: Text
    example: Text
    scripts: Text
    runner: Text


class TargetFile(File, frozen=True):
    """What the file of a target says.

    Attributes:
        backend: the plugin, a folder in backends/.
        plugins: folders of backends/ whose Python packages go into the image: the plugin of `backend` among them.
        suite: the Debian suite of the image.
        python: the version of Python that the suite has, such as "3.13".
        components: what the image consists of, files in toolchains/pins.
        recipes: native parts, folders in toolchains/recipes.
        build_components: what the recipes are built with, files in toolchains/pins.
        sdk: the vendor SDK that a user may supply, a file in toolchains/sdks.
        upstreams: the projects that may be built from source for the target, files in toolchains/upstreams.
        llvm_targets: what LLVM generates code for in those projects, in the words of LLVM_TARGETS_TO_BUILD.
        user_folders: folders below backends/ that are copied into each container, and their absolute paths there.
        proof: modules of e2e/ with cases of this target only; e2e runs them in addition to those of every target.
        refused: element types that the target's compiler refuses: for each, what its error must match, a regular
            expression. e2e fails if another type is refused.
        bench: the module of bench/ with the target's measurements; none if it has none.
        peers: folders of backends/ with the plugins that `bench` times the target against, on the same device.
        packing: how kernels are packed; none if they cannot be.
        variables: patterns of the variables that authors of kernels set for its device; `run` passes them.
    """

    backend: Text
    plugins: tuple[Text, ...]
    suite: Text
    python: Text
    components: tuple[Text, ...]
    recipes: tuple[Text, ...] = ()
    build_components: tuple[Text, ...] = ()
    sdk: str = ""
    upstreams: tuple[Text, ...] = ()
    llvm_targets: tuple[Text, ...] = ()
    user_folders: Mapping[Text, AbsolutePath] = {}
    proof: tuple[Text, ...] = ()
    refused: Mapping[Text, Text] = {}
    bench: str = ""
    peers: tuple[Text, ...] = ()
    packing: Packing | None = None
    variables: tuple[Text, ...] = ()

    def __post_init__(self) -> None:
        if self.backend not in self.plugins:
            raise ValueError(f"plugins must have the plugin of the backend, {self.backend}")
        if bool(self.recipes) != bool(self.build_components):
            raise ValueError("recipes and build-components go together: what is built, and what it is built with")
        if self.sdk and not self.recipes:
            raise ValueError("sdk replaces a recipe, and there are no recipes")


class VariantFile(File, frozen=True):
    """What the file of a variant says: what it adds to the target that it extends.

    Attributes:
        extends: a target.
        components: more components, files in toolchains/pins.
        replaces: components of that target, each with the component that replaces it.
        recipes: more native parts, folders in toolchains/recipes.
        build_components: more components that the recipes are built with, files in toolchains/pins.
        bench: the module of bench/ with measurements in place of those of the target that it extends.
        gpus: whether the image can use GPUs of the machine, so that --gpus is taken.
        tests: the tests that run in the image, in place of all of the target's plugins: "core/test_paths.py" is
            backends/core/tests/test_paths.py, and "language/test_dot.py" is conformance/language/test_dot.py.
    """

    extends: Text
    components: tuple[Text, ...] = ()
    replaces: Mapping[str, Text] = {}
    recipes: tuple[Text, ...] = ()
    build_components: tuple[Text, ...] = ()
    bench: str = ""
    gpus: bool = False
    tests: tuple[Text, ...] = ()

    def __post_init__(self) -> None:
        if not (self.components or self.replaces or self.recipes or self.build_components):
            raise ValueError("a variant has more than the target that it extends: components, replaces or recipes")


class BuilderFile(File, frozen=True):
    """What the file of a builder says. The name of the file is the Debian suite.

    Attributes:
        python: the version of Python that the suite has, such as "3.13".
        components: what the image of the builder consists of, files in toolchains/pins.
    """

    python: Text
    components: tuple[Text, ...]


@dataclass(frozen=True)
class System:
    """The definition of an image: packages of a suite, and distributions for its Python."""

    name: str
    backend: str
    suite: str
    python: str
    pins: tuple[Pin, ...]
    platform: str = AMD64

    def __post_init__(self) -> None:
        for pin in self.debs:
            # A package of another release of Debian does not fit the libraries of this one.
            if pin.suite and not pin.suite.startswith(f"{self.suite}-"):
                raise PinError(
                    f"the component {pin.name} is taken from {pin.suite}, and {self.name} is of {self.suite}",
                    why=f"a suite that goes with {self.suite} is called {self.suite}-backports, for instance",
                    next=f"correct suite in toolchains/pins/{pin.name}.toml, or the components of {self.name}",
                )

    @property
    def digests(self) -> dict[str, str]:
        """Return the digest of what is wanted for each part of a locked target, independent of the files' layout."""
        debs = [self.suite, sorted(self.packages), *([pin.left_out, pin.kept] for pin in self.debs)]
        debs += [[program.recipe, program.packages, program.left_out] for program in self.linked]
        # The requirements of sdists are resolved with the wheels.
        wheels = [self.python, self.wheels, *([self.sdists] if self.sdists else [])]
        return {"debs": digest(debs), "wheels": digest(wheels)}

    @property
    def debs(self) -> tuple[DebPin, ...]:
        """Return the components that are Debian packages."""
        return tuple(pin for pin in self.pins if isinstance(pin, DebPin))

    @property
    def linked(self) -> tuple[LinkedProgram, ...]:
        """Return the programs that are linked on this machine."""
        return tuple(pin.linked for pin in self.debs if pin.linked)

    @property
    def packages(self) -> tuple[str, ...]:
        """Return all Debian packages asked for; "NAME/SUITE" if a package is not taken from the system's own suite."""
        pairs = ((package, pin.suite) for pin in self.debs for package in pin.packages)
        return tuple(f"{package}/{suite}" if suite else package for package, suite in pairs)

    @property
    def extra_suites(self) -> tuple[str, ...]:
        """Return the further suites that packages are taken from."""
        return tuple(sorted({pin.suite for pin in self.debs if pin.suite}))

    @property
    def wheels(self) -> dict[str, str]:
        """Return all Python distributions asked for other than Triton, with their versions."""
        return self._versions(WheelPin)

    @property
    def sdists(self) -> dict[str, str]:
        """Return all Python distributions asked for that are published as sources, with their versions."""
        return self._versions(SdistPin)

    def _versions(self, kind: type[WheelPin] | type[SdistPin]) -> dict[str, str]:
        pins = [pin for pin in self.pins if isinstance(pin, kind)]
        return {name: version for pin in pins for name, version in pin.packages.items()}


class Tool(System):
    """Wheels that are in no image: a verb copies them into a container that needs them."""

    @property
    def digests(self) -> dict[str, str]:
        """Return the digest of the wheels that are wanted."""
        return {"wheels": super().digests["wheels"]}


@dataclass(frozen=True)
class Target(System):
    """A target as wanted: its plugin, suite, Python and components.

    Attributes:
        recipes, sdk, plugins, upstreams, llvm_targets, user_folders, bench, peers, packing, variables: see TargetFile,
            from which they are copied by name. Only recipes and sdk are locked. The others need no resolution: they
            name files of this repository. The keys proof and refused are read in containers (e2e/settings.py).
        gpus, tests: see VariantFile.
        build: components of the image in which the recipes are built; empty without recipes.
    """

    recipes: tuple[str, ...] = ()
    build: tuple[Pin, ...] = ()
    sdk: str = ""
    upstreams: tuple[str, ...] = ()
    llvm_targets: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    user_folders: Mapping[str, str] = field(default_factory=dict)
    bench: str = ""
    peers: tuple[str, ...] = ()
    packing: Packing | None = None
    variables: tuple[Text, ...] = ()
    gpus: bool = False
    tests: tuple[str, ...] = ()

    @property
    def builder(self) -> System | None:
        """Return the image in which recipes are built: it has the target's suite, so that its programs run there."""
        if not self.build:
            return None
        return System(f"{self.name}-build", self.backend, self.suite, self.python, self.build, self.platform)

    @property
    def digests(self) -> dict[str, str]:
        """Return the digests of System, and that of the Tritons."""
        return {**super().digests, "tritons": digest([self.python, self.triton.wanted])}

    @property
    def patched(self) -> tuple[Patched, ...]:
        """Return the packages whose files are changed, and the patches."""
        changed = [(pin.name, pin.patched) for pin in self.debs if pin.patched]
        return tuple(Patched(name, files.package, files.series, files.root) for name, files in changed)

    @property
    def triton(self) -> ReleasesPin:
        """Return the Triton releases asked for."""
        releases = [pin for pin in self.pins if isinstance(pin, ReleasesPin)]
        if len(releases) != 1:
            raise PinError(
                f"target {self.name} has {len(releases)} components with releases; it needs one, Triton",
                next=f"correct the components in toolchains/targets/{self.name}.toml",
            )
        return releases[0]


def component(name: str, folder: Path = paths.PINS, platform: str = AMD64) -> Pin:
    """Read one component, with patterns of files as they are on a platform.

    Raises:
        PinError: no such file, or it has a key or a value that a component cannot have.
    """
    path = folder / f"{name}.toml"
    pin: Pin = convert(read_table(path), Pin, path, name=name)
    if not isinstance(pin, DebPin):
        return pin

    def rewritten(patterns: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(platforms.load(platform).rewrite, patterns))

    linked = pin.linked and structs.replace(pin.linked, left_out=rewritten(pin.linked.left_out))
    return structs.replace(pin, left_out=rewritten(pin.left_out), kept=rewritten(pin.kept), linked=linked)


def target(name: str, folder: Path = paths.TARGETS, components: Path = paths.PINS, platform: str = AMD64) -> Target:
    """Read one target as it is for a platform; a file with `extends` makes a variant of the target that it names.

    Raises:
        UsageError: no such target.
        PinError: the file has a key or a value that a target cannot have.
    """
    return _target(name, folder, components, platform, ())


def _target(name: str, folder: Path, components: Path, platform: str, above: tuple[str, ...]) -> Target:
    """Read one target; `above` has the variants that lead to it, so that one that extends itself is refused."""
    path = folder / f"{name}.toml"
    if name in above:
        raise wrong(path, "extends", f"a target cannot extend itself: {' -> '.join((*above, name))}")
    if not path.is_file():
        known = ", ".join(names(folder))
        raise UsageError(f"there is no target {name}", why=f"known: {known}", next="./foundry pin")
    table = read_table(path)

    def read(listed: tuple[str, ...]) -> tuple[Pin, ...]:
        return tuple(component(item, components, platform) for item in listed)

    if "extends" in table:
        variant: VariantFile = convert(table, VariantFile, path)
        below = _target(variant.extends, folder, components, platform, (*above, name))
        others = {old: component(new, components, platform) for old, new in variant.replaces.items()}
        unknown = others.keys() - {pin.name for pin in below.pins}
        if unknown:
            known = ", ".join(pin.name for pin in below.pins)
            raise wrong(
                path,
                "replaces",
                f"{below.name} has no component {', '.join(sorted(unknown))}",
                f"its components: {known}",
            )
        return replace(
            below,
            name=name,
            pins=tuple(others.get(pin.name, pin) for pin in below.pins) + read(variant.components),
            recipes=(*below.recipes, *variant.recipes),
            build=below.build + read(variant.build_components),
            bench=variant.bench or below.bench,
            gpus=variant.gpus,
            tests=variant.tests,
        )
    file: TargetFile = convert(table, TargetFile, path)
    shared = {field.name for field in fields(Target)} & {*TargetFile.__struct_fields__}
    values = {key: getattr(file, key) for key in shared}
    return Target(name=name, pins=read(file.components), build=read(file.build_components), platform=platform, **values)


def names(folder: Path = paths.TARGETS) -> list[str]:
    """Return the names of the existing targets."""
    return sorted(path.stem for path in folder.glob("*.toml"))


def builder_suites(folder: Path = paths.BUILDERS) -> list[str]:
    """Return the suites for which upstream's projects can be built."""
    return sorted(path.stem for path in folder.glob("*.toml"))


def builder(suite: str, folder: Path = paths.BUILDERS, components: Path = paths.PINS) -> System:
    """Return the image in which upstream projects are built for targets on a suite; it belongs to no backend.

    Raises:
        UsageError: no such builder.
        PinError: the file has a key or a value that a builder cannot have.
    """
    path = folder / f"{suite}.toml"
    if not path.is_file():
        raise UsageError(
            f"nothing can be built from source for {suite}",
            why=f"known: {', '.join(builder_suites(folder))}",
            next="./foundry pin",
        )
    file: BuilderFile = convert(read_table(path), BuilderFile, path)
    pins = tuple(component(item, components) for item in file.components)
    return System(builder_name(suite), "", suite, file.python, pins)


def tools(targets: Iterable[Target]) -> tuple[Tool, ...]:
    """Return Jupyter for each Python that targets have, on their platform."""
    systems = sorted({(target.suite, target.python, target.platform) for target in targets})
    return tuple(
        Tool(tool_name(JUPYTER, suite), "", suite, python, (component(JUPYTER),), platform)
        for suite, python, platform in systems
    )
