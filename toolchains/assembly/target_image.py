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
from toolchains.config import components
from toolchains.engine.client import Engine, ImageInfo
from toolchains.fetch.store import Store
from toolchains.fromsource import compiled_triton
from toolchains.fromsource.choice import Sourced
from toolchains.images import base as rootfs
from toolchains.images import layer as layers
from toolchains.images import provenance
from toolchains.lockfile.lock import Artifact, LockedTarget, LockedTriton, digest
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
PYTHON_FILES = (DOCKER / "mlir.c", DOCKER / "pocl.c")


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


def identity(
    target: LockedTarget,
    locked: LockedTriton,
    own: Sequence[str] = (),
    drift: str = "",
    *,
    native_parts: Sequence[str] = (),
    sdk: Sdk | None = None,
    sourced: Sourced | None = None,
) -> str:
    """Return the digest of all inputs of a target's image.

    Args:
        target: with the packages that are really used.
        locked: the release of Triton.
        own: the identities of the project's own wheels; computed from the current sources if not given.
        drift: the value of the image's label about packages that are not the locked ones.
        native_parts: the identities of the native parts; computed from the current sources if not given.
        sdk: a vendor SDK that replaces one of the native parts.
        sourced: what is built from source instead of taken prebuilt.
    """
    return digest(
        {
            "python": _python_identity(target, locked, sourced),
            "plugins": own or [plugin_wheels.identity(name) for name in plugins(target)],
            "native": native_parts or [native.identity(name, _builder(target)) for name in recipes(target, sdk)],
            "sdk": sdk.identity if sdk else None,
            "dockerfile": folders.files_digest(
                {f"Dockerfile{n or ''}": path for n, path in enumerate(dockerfiles(target, sourced))}
            ),
            "labels": labels(target, locked, drift, sdk, sourced),
            **({"sourced": [each.identity for each in sourced.parts]} if sourced else {}),
            **({"linked": [linked.identity(each) for each in target.linked]} if target.linked else {}),
            **({"patched": [debian_files.identity(what, target) for what in target.patched]} if target.patched else {}),
        }
    )


def build_image(
    target: LockedTarget,
    locked: LockedTriton,
    *,
    store: Store,
    engine: Engine,
    cache: bool = True,
    sdk: Sdk | None = None,
    sourced: Sourced | None = None,
) -> Image:
    """Ensure that the engine has the image of a target.

    The image gets the name derived from its inputs, and two moving tags: the Triton release, and "latest" for the
    default release.

    Args:
        target: the locked target.
        locked: the release of Triton.
        store: has inputs and parts.
        engine: builds the image.
        cache: use an image that exists; otherwise the Dockerfiles run again.
        sdk: a vendor SDK that the user supplied.
        sourced: what is built from source instead of taken prebuilt. Such an image has other names.

    Raises:
        FoundryError: whichever step failed.
    """
    repository = repository_name(target, sdk, sourced)

    def find(name: str) -> ImageInfo | None:
        return provenance.image(name, engine=engine, store=store) if cache else None

    name = _name(repository, identity(target, locked, sdk=sdk, sourced=sourced))
    info = find(name)
    made = info is None
    if info is None:
        used = fetch(target, locked, store, sdk)
        if drift := describe_drift(target, used):
            name = _name(repository, identity(used, locked, drift=drift, sdk=sdk, sourced=sourced))
            info = find(name)
    if info is None:

        def below() -> str:
            """Ensure that the engine has the image below the target's own layer; return its name."""
            lower = python_name(used, locked, sourced)
            with store.locked(lower.replace("/", "-")):
                if find(lower) is None:
                    (base, known), layer = side_by_side(
                        lambda: rootfs.load_base(used, what="base image", store=store, engine=engine),
                        lambda: python_layer(used, locked, store, sourced, engine),
                    )
                    with step(f"Python packages: {len(used.wheels)} and Triton"):
                        layer.make(engine, base, known, store)
            return lower

        def own() -> Layer:
            return _top(target, used, locked, store=store, engine=lambda: engine, sdk=sdk, sourced=sourced)

        # One compilation from source takes all of the machine's memory and its terminal.
        python, top = (below(), own()) if sourced else side_by_side(below, own)
        # The sources may have changed since.
        name = top.name
        with store.locked(name.replace("/", "-")):
            info = find(name)
            if info is None:
                with step(f"image {name}"):
                    info = top.make(engine, python, layers.require_image(engine, python).layers, store)
    for moving in moving_names(target, locked, sdk, sourced):
        if moving not in info.names:
            engine.tag(name, moving)
    return Image(name, info, made)


def gather(
    target: LockedTarget,
    locked: LockedTriton,
    *,
    store: Store,
    engine: Callable[[], Engine],
    sdk: Sdk | None = None,
    sourced: Sourced | None = None,
) -> tuple[LockedTarget, Layer]:
    """Ensure that the store has all inputs of a target's own layer.

    Args:
        engine: returns an engine. It is called only for native parts, which are built in it if the store has none.

    Returns:
        The target with the packages that are really used, and the layer.
    """
    used = fetch(target, locked, store, sdk)
    return used, _top(target, used, locked, store=store, engine=engine, sdk=sdk, sourced=sourced)


def _top(
    target: LockedTarget,
    used: LockedTarget,
    locked: LockedTriton,
    *,
    store: Store,
    engine: Callable[[], Engine],
    sdk: Sdk | None,
    sourced: Sourced | None,
) -> Layer:
    """Return a target's own layer, of files in the store and of parts that are built now; see gather."""
    # Fetched here, while the base image is made.
    used = linked.fetch_if_needed(used, store)
    drift = describe_drift(target, used)
    with step(f"plugins: {', '.join(plugins(target))}"):
        own = [plugin_wheels.wheel(package, store) for package in plugins(target)]
    parts = [native.part(recipe, _builder(used), store=store, engine=engine()) for recipe in recipes(target, sdk)]
    files = {f"parts/{part.name}.tar": part.path for part in parts}
    files |= {f"parts/{each.recipe}.tar": linked.part(each, used.suite, store) for each in used.linked}
    files |= {f"parts/{what.package}.tar": debian_files.part(what, used, store) for what in used.patched}
    if sdk:
        files[f"parts/{sdk.folder}.tar"] = sdk.part(store)
    if sourced:
        files |= {
            f"parts/{each.name}.tar": sourced.built(each, store=store, engine=engine()).path for each in sourced.parts
        }
    # The sources may have changed since, and drifted packages change the identity: this image may exist already.
    identities = [wheel.identity for wheel in own], drift
    found = identity(
        used, locked, *identities, native_parts=[part.identity for part in parts], sdk=sdk, sourced=sourced
    )
    return Layer(
        name=_name(repository_name(target, sdk, sourced), found),
        base="PYTHON",
        dockerfile=b"\n".join(path.read_bytes() for path in dockerfiles(target, sourced)),
        wheels=[layers.Wheel(wheel.path, store.sha256(wheel.path)) for wheel in own],
        arguments=sdk.arguments if sdk else {},
        labels=labels(target, locked, drift, sdk, sourced),
        files=files,
    )


def fetch(target: LockedTarget, locked: LockedTriton, store: Store, sdk: Sdk | None) -> LockedTarget:
    """Fetch all files of an image into the store, and return the target with the files that are really used."""
    if target.builder:
        target = replace(target, builder=native.fetch_if_needed(recipes(target, sdk), target.builder, store))
    wanted = [*target.debs, *target.wheels, locked.wheel]
    with step(f"{len(wanted)} locked files"):
        found = store.fetch(wanted, suite=target.suite, python=target.python)
    return replace(target, debs=tuple(artifact for artifact in found if artifact.kind == "deb"))


def python_layer(
    target: LockedTarget,
    locked: LockedTriton,
    store: Store,
    sourced: Sourced | None = None,
    engine: Engine | None = None,
) -> Layer:
    """Return the layer between the base image and the target's own; all of its inputs are then in the store.

    Args:
        sourced: what is built from source; only Triton belongs to this layer.
        engine: where Triton is built from source.
    """
    if sourced and sourced.triton:
        assert engine is not None, "what is compiled is compiled in an engine"
        built = sourced.built(sourced.triton, store=store, engine=engine)
        own = compiled_triton.make_wheel(locked, sourced.triton, built, store)
    else:
        with step(f"Triton {triton_wheel.version(locked)}"):
            own = triton_wheel.repack(locked, store.path(locked.wheel), backends=VENDOR_BACKENDS, store=store)
    return Layer(
        name=python_name(target, locked, sourced),
        base="BASE",
        dockerfile=(DOCKER / "python.Dockerfile").read_bytes(),
        wheels=[*layers.locked_wheels(target.wheels, store), layers.Wheel(own, store.sha256(own))],
        files={path.name: path for path in PYTHON_FILES},
    )


def parts(target: LockedTarget, locked: LockedTriton) -> dict[str, set[str]]:
    """Return the identities of the parts in the store that a target's image is made of, by kind."""
    return {
        "base": {rootfs.identity(target)},
        "plugin": {plugin_wheels.identity(name) for name in plugins(target)},
        "native": {native.identity(name, _builder(target)) for name in target.recipes},
        "linked": {linked.identity(each) for each in target.linked},
        "triton": {triton_wheel.identity(locked, VENDOR_BACKENDS)},
        "patched": {debian_files.identity(what, target) for what in target.patched},
    }


def image_name(target: LockedTarget, locked: LockedTriton) -> str:
    """Return the name of a target's image if it were built now from the default parts."""
    return _name(repository_name(target, None, None), identity(target, locked))


def python_name(target: LockedTarget, locked: LockedTriton, sourced: Sourced | None) -> str:
    """Return the name of the image between the base image and the target's own."""
    return _name("python", _python_identity(target, locked, sourced))


def _python_identity(target: LockedTarget, locked: LockedTriton, sourced: Sourced | None) -> str:
    from_source = sourced.triton if sourced else None
    return digest(
        {
            "base": rootfs.identity(target),
            "wheels": sorted(wheel.sha256 for wheel in target.wheels),
            "triton": compiled_triton.identity(locked, from_source)
            if from_source
            else triton_wheel.identity(locked, VENDOR_BACKENDS),
            "recipe": layers.identity(DOCKER / "python.Dockerfile", *PYTHON_FILES),
        }
    )


def plugins(target: LockedTarget) -> tuple[str, ...]:
    """Return the folders of backends/ whose packages go into the image, as the target's file names them."""
    return components.target(target.name).plugins


def recipes(target: LockedTarget, sdk: Sdk | None) -> tuple[str, ...]:
    """Return the native parts of the image: all except the one that a vendor SDK replaces."""
    return tuple(name for name in target.recipes if not sdk or name != sdk.replaces)


def _builder(target: LockedTarget) -> LockedTarget:
    if target.builder is None:
        raise PinError(f"{target.name} has recipes and nothing to build them in", next="./foundry pin --update")
    return target.builder


def dockerfiles(target: LockedTarget, sourced: Sourced | None) -> list[Path]:
    """Return the Dockerfiles to join: the backend's, then a variant's if it exists, then those of parts from source."""
    files = [DOCKER / f"{name}.Dockerfile" for name in dict.fromkeys((target.backend, target.name))]
    more = [DOCKER / "from-source" / f"{each.name}.Dockerfile" for each in (sourced.parts if sourced else ())]
    return [files[0], *(file for file in files[1:] if file.is_file()), *more]


def _name(repository: str, identity: str) -> str:
    return f"triton-foundry/{repository}:{identity[:16]}"


def repository_name(target: LockedTarget, sdk: Sdk | None, sourced: Sourced | None) -> str:
    return target.name + ("-sdk" if sdk else "") + ("-source" if sourced else "")


def moving_names(
    target: LockedTarget, locked: LockedTriton, sdk: Sdk | None = None, sourced: Sourced | None = None
) -> list[str]:
    """Return the tags that move to the next image of a target: the release's, and "latest" for the default release."""
    repository = repository_name(target, sdk, sourced)
    names = [f"triton-foundry/{repository}:{locked.version}"]
    if locked.version == target.default_triton:
        names.append(f"triton-foundry/{repository}:latest")
    return names


def describe_drift(locked: LockedTarget, used: LockedTarget) -> str:
    """Describe the packages that are not the locked ones: "name locked -> used, ..."."""
    texts = _changes(locked.debs, used.debs)
    for each, now in zip(locked.linked, used.linked, strict=True):
        if changed := _changes(each.debs, now.debs):
            texts.append(f"{each.recipe} linked with {', '.join(changed)}")
    if locked.builder and used.builder and (built := describe_drift(locked.builder, used.builder)):
        texts.append(f"built with {built}")
    return ", ".join(texts)


def _changes(locked: Sequence[Artifact], used: Sequence[Artifact]) -> list[str]:
    before: dict[str, Artifact] = {deb.name: deb for deb in locked}
    changed = [deb for deb in used if before.get(deb.name) != deb]
    return [
        f"{deb.name} {before[deb.name].version if deb.name in before else 'absent'} -> {deb.version}" for deb in changed
    ]


def labels(
    target: LockedTarget,
    locked: LockedTriton,
    drift: str = "",
    sdk: Sdk | None = None,
    sourced: Sourced | None = None,
) -> dict[str, str]:
    """Return the labels of a target's image; for the arguments see identity()."""
    found = {
        "target": target.name,
        "lock": target.digest,
        "triton": triton_wheel.version(locked),
        "llvm-hash": locked.llvm_hash,
        "patch-series": series.series_digest(locked.version),
    }
    if target.patched:
        found["patched"] = ", ".join(
            f"{what.package}: {what.series} {debian_files.load_series(what).digest[:12]}" for what in target.patched
        )
    if drift:
        found["drift"] = drift
    if sdk:
        found |= sdk.labels
    if sourced:
        found["from-source"] = sourced.label
    return {LABEL + key: value for key, value in found.items()}
