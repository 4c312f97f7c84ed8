"""Build the image of a target: base image, Python packages with the patched Triton, the project's own plugin.

    base      from the locked Debian packages                              images/base.py
    python    base + the locked wheels + the repacked Triton               docker/python.Dockerfile
    target    python + native parts + packages of backends/                docker/<backend>.Dockerfile

docker/<variant>.Dockerfile has a variant's additional lines, which follow those of its backend's Dockerfile.
A target may take a vendor SDK that the user supplies (sdk/) in place of one native part. Such an image has other names,
so that it is never mistaken for the target's own, and a label that says that it must not be pushed.

Each image is named by the digest of all its inputs. Computing the digest needs neither the engine nor reading a large
file. An image that exists under its name, and that this store recorded (provenance.py), is never built again. Each
image is normalised after the build, so that two builds of the same inputs have the same ID. Gathering the inputs of a
layer is separate from building it, because a builder on another machine can build it too (verbs/bake.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from toolchains.archives import folders
from toolchains.artifacts import linked, native, plugin_wheels, triton_wheel
from toolchains.config import components, platforms
from toolchains.config.platforms import Platform
from toolchains.engine.client import Engine, ImageInfo
from toolchains.fetch.store import Store
from toolchains.fromsource import compiled_triton
from toolchains.fromsource.choice import Sourced
from toolchains.images import base as rootfs
from toolchains.images import layer as layers
from toolchains.images import provenance
from toolchains.lockfile.lock import AMD64, Artifact, LockedTarget, LockedTriton, digest
from toolchains.patching import debian_files, series
from toolchains.system.errors import PinError, UsageError, suggestion
from toolchains.system.paths import DOCKER
from toolchains.system.steps import side_by_side, step

if TYPE_CHECKING:
    from toolchains.sdk.supplied import Sdk

LABEL = "org.triton-foundry."
# What Podman's builder adds to each image that it makes.
_BUILDAH = "io.buildah.version"
# None of the vendor backends inside Triton's wheel: a target has its own.
VENDOR_BACKENDS: tuple[str, ...] = ()
# What python.Dockerfile compiles.
PYTHON_FILES = (DOCKER / "mlir.c", DOCKER / "pocl.cpp")


@dataclass(frozen=True)
class Image:
    """A target's image in the engine: its tag, and whether it was built just now."""

    name: str
    info: ImageInfo
    made: bool

    @property
    def builder(self) -> str:
        """The builder of a Podman engine that made it, which makes layers of its own; "" for Docker's."""
        version = self.info.labels.get(_BUILDAH)
        return f"buildah {version}" if version else ""


@dataclass(frozen=True)
class Layer:
    """What is added to an image to make the next one: all inputs of its Dockerfile, and the name of the result.

    Attributes:
        name: the tag of the resulting image.
        base: the name of the ARG for the image that it is added to.
        dockerfile: the Dockerfile's text.
        wheels: the Python packages to install.
        arguments: values of further ARGs.
        labels: labels of the image.
        files: more files, by their names in the context.
    """

    name: str
    base: str
    dockerfile: bytes
    wheels: Sequence[layers.Wheel]
    arguments: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, Path] = field(default_factory=dict)

    def make(self, engine: Engine, below: str, known: Sequence[str], store: Store) -> ImageInfo:
        """Build the image in an engine that has the image `below`, whose layers are `known`."""
        arguments = {self.base: below, **self.arguments}
        return layers.layer(
            engine, self.name, self.dockerfile, arguments, self.labels, self.wheels, known, self.files, store=store
        )


@dataclass(frozen=True)
class Inputs:
    """All that a target's image is made of. It decides the names, the labels and the layers of the image.

    Attributes:
        target: the locked target.
        triton: the release of Triton.
        sdk: a vendor SDK that a user supplied; it replaces one of the native parts.
        sourced: what is built from source instead of taken prebuilt.
        used: the target with the packages that are really used, if they are not the locked ones.

    An image with an SDK or with parts from source has other names than the target's own image.
    """

    target: LockedTarget
    triton: LockedTriton
    sdk: Sdk | None = None
    sourced: Sourced | None = None
    used: LockedTarget | None = None

    @property
    def system(self) -> LockedTarget:
        """Return the target with the packages that are really used."""
        return self.used or self.target

    @property
    def wheels(self) -> tuple[Artifact, ...]:
        """Return the wheels to fetch, Triton's among them."""
        return *self.target.wheels, self.triton.wheel

    @property
    def drift(self) -> str:
        """Describe the packages that are not the locked ones: "name locked -> used, ..."."""
        return _drift(self.target, self.system)

    @property
    def recipes(self) -> tuple[str, ...]:
        """Return the native parts of the image: all except the one that a vendor SDK replaces."""
        return tuple(name for name in self.target.recipes if not self.sdk or name != self.sdk.replaces)

    @property
    def builder(self) -> LockedTarget:
        """Return the image that native parts are built in."""
        if self.system.builder is None:
            what = f"{self.target.name} has recipes and nothing to build them in"
            raise PinError(what, next="./foundry pin --update")
        return self.system.builder

    @property
    def dockerfiles(self) -> list[Path]:
        """Return the Dockerfiles to join: the backend's, a variant's if it exists, those of parts from source."""
        names = dict.fromkeys((self.target.backend, self.target.name))
        own, *variant = (DOCKER / f"{name}.Dockerfile" for name in names)
        sourced = self.sourced.parts if self.sourced else ()
        more = [DOCKER / "from-source" / f"{part.name}.Dockerfile" for part in sourced]
        return [own, *(file for file in variant if file.is_file()), *more]

    def dockerfile(self, path: Path) -> bytes:
        """Return the text of a Dockerfile as it is for the image's platform."""
        return self.platform.rewrite(path.read_text(encoding="utf-8")).encode()

    @property
    def repository(self) -> str:
        """Return the name of the image without its tag."""
        return f"triton-foundry/{self.target.label}{'-sdk' if self.sdk else ''}{'-source' if self.sourced else ''}"

    @property
    def platform(self) -> Platform:
        """Return the platform that the image is for."""
        return platforms.load(self.target.platform)

    @property
    def name(self) -> str:
        """Return the name of the image as its inputs are now."""
        return f"{self.repository}:{self.identity()[:16]}"

    @property
    def moving_names(self) -> list[str]:
        """Return the tags that move to the next image: the release's, and "latest" for the default release."""
        latest = ["latest"] * (self.triton.version == self.target.default_triton)
        return [f"{self.repository}:{tag}" for tag in (self.triton.version, *latest)]

    @property
    def python_name(self) -> str:
        """Return the name of the image between the base image and the target's own."""
        return f"triton-foundry/python:{self._python_identity[:16]}"

    @property
    def _python_identity(self) -> str:
        compiled = self.sourced.triton if self.sourced else None
        return digest(
            {
                "base": rootfs.identity(self.system),
                "wheels": sorted(wheel.sha256 for wheel in self.system.wheels),
                "triton": compiled_triton.identity(self.triton, compiled)
                if compiled
                else triton_wheel.identity(self.triton, VENDOR_BACKENDS),
                "recipe": layers.identity(DOCKER / "python.Dockerfile", *PYTHON_FILES),
                **self.platform.identity,
            }
        )

    def identity(self, own: Sequence[str] = (), native_parts: Sequence[str] = ()) -> str:
        """Return the digest of all inputs.

        Args:
            own: the identities of the project's own wheels; computed from the current sources if not given.
            native_parts: the identities of the native parts; computed from the current sources if not given.
        """
        files = {f"Dockerfile{number or ''}": path for number, path in enumerate(self.dockerfiles)}
        inputs: dict[str, object] = {
            "python": self._python_identity,
            "plugins": own or [plugin_wheels.identity(name) for name in plugins(self.target)],
            "native": native_parts or [native.identity(name, self.builder) for name in self.recipes],
            "sdk": self.sdk.identity if self.sdk else None,
            "dockerfile": folders.files_digest(files),
            "labels": self.labels,
        }
        # Keys that few images have are left out of the others.
        if self.sourced:
            inputs["sourced"] = [part.identity for part in self.sourced.parts]
        if self.system.linked:
            inputs["linked"] = [linked.identity(program) for program in self.system.linked]
        if self.target.patched:
            inputs["patched"] = [debian_files.identity(what, self.system) for what in self.target.patched]
        return digest(inputs)

    @property
    def labels(self) -> dict[str, str]:
        """Return the labels of the image."""
        labels = {
            "target": self.target.name,
            "lock": self.target.digest,
            "triton": triton_wheel.version(self.triton),
            "llvm-hash": self.triton.llvm_hash,
            "patch-series": series.series_digest(self.triton.version),
        }
        if self.target.platform != AMD64:
            labels["platform"] = self.target.platform
        if self.target.patched:
            labels["patched"] = ", ".join(
                f"{what.package}: {what.series} {debian_files.load_series(what).digest[:12]}"
                for what in self.target.patched
            )
        if self.drift:
            labels["drift"] = self.drift
        if self.sdk:
            labels |= self.sdk.labels
        if self.sourced:
            labels["from-source"] = self.sourced.label
        return {LABEL + key: value for key, value in labels.items()}

    @property
    def parts(self) -> dict[str, set[str]]:
        """Return the identities of the parts in the store that the target's own image is made of, by kind."""
        return {
            "base": {rootfs.identity(self.target)},
            "plugin": {plugin_wheels.identity(name) for name in plugins(self.target)},
            "native": {native.identity(name, self.builder) for name in self.target.recipes},
            "linked": {linked.identity(program) for program in self.target.linked},
            "triton": {triton_wheel.identity(self.triton, VENDOR_BACKENDS)},
            "patched": {debian_files.identity(what, self.target) for what in self.target.patched},
        }


def _drift(locked: LockedTarget, used: LockedTarget) -> str:
    texts = _changes(locked.debs, used.debs)
    for program, now in zip(locked.linked, used.linked, strict=True):
        if changed := _changes(program.debs, now.debs):
            texts.append(f"{program.recipe} linked with {', '.join(changed)}")
    if locked.builder and used.builder and (built := _drift(locked.builder, used.builder)):
        texts.append(f"built with {built}")
    return ", ".join(texts)


def _changes(locked: Sequence[Artifact], used: Sequence[Artifact]) -> list[str]:
    before = {deb.name: deb for deb in locked}
    changed = [deb for deb in used if before.get(deb.name) != deb]
    return [
        f"{deb.name} {before[deb.name].version if deb.name in before else 'absent'} -> {deb.version}" for deb in changed
    ]


def release(target: LockedTarget, version: str | None) -> LockedTriton:
    """Return the pinned release of Triton with this version; the default one if no version is given.

    Raises:
        UsageError: it is not pinned.
    """
    version = version or target.default_triton
    if version not in target.tritons:
        raise UsageError(
            f"Triton {version} is not pinned for {target.name}{suggestion(version, list(target.tritons))}",
            why=f"pinned: {', '.join(target.tritons)}",
            next="choose one of these, or add it to toolchains/pins/triton.toml and: ./foundry pin --update triton",
        )
    return target.tritons[version]


def plugins(target: LockedTarget) -> tuple[str, ...]:
    """Return the folders of backends/ whose packages go into the image, as the target's file names them."""
    return components.target(target.name).plugins


def build_image(inputs: Inputs, *, store: Store, engine: Engine, cache: bool = True) -> Image:
    """Ensure that the engine has the image of a target.

    The image gets the name derived from its inputs, and two moving tags: the Triton release, and "latest" for the
    default release.

    Args:
        store: has inputs and parts.
        engine: builds the image.
        cache: use an image that exists; otherwise the Dockerfiles run again.

    Raises:
        FoundryError: whichever step failed.
    """

    def find(name: str) -> ImageInfo | None:
        return provenance.image(name, engine=engine, store=store) if cache else None

    name = inputs.name
    info = find(name)
    made = info is None
    if info is None:
        inputs = fetch(inputs, store, wheels=False)
        if inputs.drift:
            name = inputs.name
            info = find(name)
    if info is None:

        def below() -> str:
            """Ensure that the engine has the image below the target's own layer; return its name."""
            lower = inputs.python_name
            with store.locked(lower.replace("/", "-")):
                if find(lower) is None:

                    def middle() -> Layer:
                        with step(f"{len(inputs.wheels)} locked wheels"):
                            target = inputs.target
                            store.fetch(
                                inputs.wheels, suite=target.suite, python=target.python, platform=target.platform
                            )
                        return python_layer(inputs, store, engine)

                    (base, known), layer = side_by_side(
                        lambda: rootfs.load_base(inputs.system, what="base image", store=store, engine=engine), middle
                    )
                    with step(f"Python packages: {len(inputs.system.wheels)} and Triton"):
                        layer.make(engine, base, known, store)
            return lower

        def own() -> Layer:
            return _top(inputs, store, lambda: engine)

        # One compilation from source takes all of the machine's memory and its terminal.
        python, top = (below(), own()) if inputs.sourced else side_by_side(below, own)
        # The sources may have changed since.
        name = top.name
        with store.locked(name.replace("/", "-")):
            info = find(name)
            if info is None:
                with step(f"image {name}"):
                    info = top.make(engine, python, layers.require_image(engine, python).layers, store)
    for moving in inputs.moving_names:
        if moving not in info.names:
            engine.tag(name, moving)
    return Image(name, info, made)


def gather(inputs: Inputs, store: Store, engine: Callable[[], Engine]) -> tuple[Inputs, Layer]:
    """Ensure that the store has all inputs of a target's own layer.

    Args:
        engine: returns an engine. It is called only for native parts, which are built in it if the store has none.

    Returns:
        The inputs with the packages that are really used, and the layer.
    """
    inputs = fetch(inputs, store)
    return inputs, _top(inputs, store, engine)


def _top(inputs: Inputs, store: Store, engine: Callable[[], Engine]) -> Layer:
    """Return a target's own layer, of files in the store and of parts that are built now; see gather."""
    target, sdk, sourced = inputs.target, inputs.sdk, inputs.sourced
    # Fetched here, while the base image is made.
    used = linked.fetch_if_needed(inputs.system, store)
    inputs = replace(inputs, used=used)
    with step(f"plugins: {', '.join(plugins(target))}"):
        own = [plugin_wheels.wheel(package, store) for package in plugins(target)]
    parts = [native.part(recipe, inputs.builder, store=store, engine=engine()) for recipe in inputs.recipes]
    files = {f"parts/{part.name}.tar": part.path for part in parts}
    files |= {f"parts/{program.recipe}.tar": linked.part(program, used.suite, store) for program in used.linked}
    files |= {f"parts/{what.package}.tar": debian_files.part(what, used, store) for what in used.patched}
    if sdk:
        files[f"parts/{sdk.folder}.tar"] = sdk.part(store)
    if sourced:
        for want in sourced.parts:
            files[f"parts/{want.name}.tar"] = sourced.built(want, store=store, engine=engine()).path
    # The sources may have changed since, and drifted packages change the identity: this image may exist already.
    identity = inputs.identity([wheel.identity for wheel in own], [part.identity for part in parts])
    return Layer(
        name=f"{inputs.repository}:{identity[:16]}",
        base="PYTHON",
        dockerfile=b"\n".join(map(inputs.dockerfile, inputs.dockerfiles)),
        wheels=[layers.Wheel(wheel.path, store.sha256(wheel.path)) for wheel in own],
        arguments=sdk.arguments if sdk else {},
        labels=inputs.labels,
        files=files,
    )


def fetch(inputs: Inputs, store: Store, *, wheels: bool = True) -> Inputs:
    """Fetch all files of an image into the store, and return the inputs with the files that are really used.

    Args:
        wheels: also those; build_image fetches them while the base image is made. Without a network nothing is fetched,
            and an error lists all that is missing.
    """
    target = inputs.target
    if target.builder:
        target = replace(target, builder=native.fetch_if_needed(inputs.recipes, target.builder, store))
    wanted = [*target.debs, *(inputs.wheels if wheels or store.offline else ())]
    with step(f"{len(wanted)} locked files"):
        artifacts = store.fetch(wanted, suite=target.suite, python=target.python, platform=target.platform)
    return replace(inputs, used=replace(target, debs=tuple(file for file in artifacts if file.kind == "deb")))


def python_layer(inputs: Inputs, store: Store, engine: Engine | None = None) -> Layer:
    """Return the layer between the base image and the target's own; all of its inputs are then in the store.

    Args:
        inputs: of what is built from source, only Triton belongs to this layer.
        engine: where Triton is built from source.
    """
    triton, sourced = inputs.triton, inputs.sourced
    if sourced and sourced.triton:
        assert engine is not None, "what is compiled is compiled in an engine"
        built = sourced.built(sourced.triton, store=store, engine=engine)
        wheel = compiled_triton.make_wheel(triton, sourced.triton, built, store)
    else:
        with step(f"Triton {triton_wheel.version(triton)}"):
            wheel = triton_wheel.repack(triton, store.path(triton.wheel), backends=VENDOR_BACKENDS, store=store)
    return Layer(
        name=inputs.python_name,
        base="BASE",
        dockerfile=inputs.dockerfile(DOCKER / "python.Dockerfile"),
        wheels=[*layers.locked_wheels(inputs.system.wheels, store), layers.Wheel(wheel, store.sha256(wheel))],
        files={path.name: path for path in PYTHON_FILES},
    )
