"""Say how an artifact was made: SLSA provenance 1.2 in an in-toto statement, in a DSSE envelope, signed or not.

A statement is a function of the artifact and of its inputs: it has no time, and no address. So two builders who made
the same artifact of the same checkout sign the same bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import FormatError, VerificationError
from securesystemslib.signer import CryptoSigner, Key

from toolchains.artifacts import plugin_wheels, triton_wheel
from toolchains.assembly import target_image
from toolchains.assembly.request import Request
from toolchains.assembly.target_image import Image
from toolchains.fetch.store import Store
from toolchains.images import provenance
from toolchains.lockfile.lock import Artifact, LockedTarget, LockedTriton
from toolchains.system import durable, foreign, json_text, paths
from toolchains.system.errors import FileError, UsageError

SUFFIX = ".intoto.jsonl"
PAYLOAD = "application/vnd.in-toto+json"
_STATEMENT = "https://in-toto.io/Statement/v1"
_PROVENANCE = "https://slsa.dev/provenance/v1"
# Names of ours for how an artifact is made, and for who made it: not addresses.
_BUILD = "urn:triton-foundry:build:"
# Bytes of a file of statements; one has 300,000.
_MOST = 64 << 20
_BUILDER = "urn:triton-foundry:builder"


class Resource(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file or an image, as in-toto describes it: its name, and its digests by their algorithms."""

    name: str
    digest: Mapping[str, str]
    uri: str = ""

    @property
    def sha256(self) -> str:
        return self.digest.get("sha256", "")


class _Definition(msgspec.Struct):
    build_type: str = msgspec.field(name="buildType")
    external: Mapping[str, Any] = msgspec.field(name="externalParameters")
    internal: Mapping[str, Any] = msgspec.field(name="internalParameters")
    dependencies: list[Resource] = msgspec.field(name="resolvedDependencies")


class _Builder(msgspec.Struct):
    id: str
    version: Mapping[str, str]


class _Run(msgspec.Struct):
    builder: _Builder
    byproducts: list[Resource] = []


class _Predicate(msgspec.Struct):
    definition: _Definition = msgspec.field(name="buildDefinition")
    run: _Run = msgspec.field(name="runDetails")


class Statement(msgspec.Struct):
    """What one builder says of some artifacts."""

    type: str = msgspec.field(name="_type")
    subject: list[Resource]
    predicate_type: str = msgspec.field(name="predicateType")
    predicate: _Predicate


def make(
    subject: Sequence[Resource],
    *,
    kind: str,
    asked: Mapping[str, Any],
    derived: Mapping[str, Any],
    inputs: Sequence[Resource],
    byproducts: Sequence[Resource] = (),
) -> Statement:
    """Return a statement.

    Args:
        subject: what was made.
        kind: how it was made: "image" or "wheels".
        asked: what the user asked for.
        derived: what follows from the checkout, such as the lock's digest.
        inputs: all files that it was made of.
        byproducts: what else is known of it, such as an image's layers.
    """
    ordered = sorted(inputs, key=lambda each: (each.name, each.sha256))
    return Statement(
        _STATEMENT,
        list(subject),
        _PROVENANCE,
        _Predicate(
            _Definition(f"{_BUILD}{kind}", asked, derived, ordered),
            _Run(_Builder(_BUILDER, {"triton-foundry": plugin_wheels.version()}), list(byproducts)),
        ),
    )


def state_image(request: Request, image: Image, store: Store, signer: CryptoSigner | None) -> Path | None:
    """Write the statement about an image, signed if a signer is given; return the file.

    The digest of the configuration is the image's ID in most engines; None if the store does not know it.
    """
    target, release = request.target, request.release
    configs = provenance.configs(image.name, store)
    digest = image.info.id if image.info.id in configs else next(reversed(configs), None)
    if digest is None:
        return None
    stated = make(
        [_resource(image.name, digest.removeprefix("sha256:"))],
        kind="image",
        asked={"target": target.name, "triton": release.version, "options": request.options},
        derived=derived(target, release, image.info.labels),
        inputs=list(_inputs(target, release.wheel)),
        byproducts=[_resource(f"layer {n}", id.removeprefix("sha256:")) for n, id in enumerate(image.info.layers, 1)],
    )
    return write(f"{target.label}-{release.version}", stated, signer)


def state_wheels(target: LockedTarget, folder: Path, signer: CryptoSigner | None) -> Path:
    """Write the statement about a folder of wheels, signed if a signer is given; return the file."""
    files = sorted(path for path in folder.iterdir() if path.is_file())
    stated = make(
        [_resource(path.name, hashlib.sha256(path.read_bytes()).hexdigest()) for path in files],
        kind="wheels",
        asked={"target": target.name},
        derived={
            "lock": target.digest,
            "plugins": {name: plugin_wheels.identity(name) for name in target_image.plugins(target)},
        },
        inputs=list(_inputs(target)),
    )
    return write(f"wheels-{target.backend}", stated, signer)


def _inputs(target: LockedTarget, triton: Artifact | None = None) -> Iterable[Resource]:
    """Return all locked files of a target but other wheels of Triton; also what its native parts are built with."""
    tritons = {release.wheel for release in target.tritons.values()} - {triton}
    files = {(artifact.filename, artifact.sha256) for artifact in target.artifacts() if artifact not in tritons}
    return (_resource(name, sha256) for name, sha256 in sorted(files))


def _resource(name: str, sha256: str) -> Resource:
    return Resource(name, {"sha256": sha256})


def seal(statement: Statement, signer: CryptoSigner | None) -> str:
    """Return a statement in an envelope, as a line of JSON."""
    payload = json.dumps(msgspec.to_builtins(statement), sort_keys=True, separators=(",", ":")).encode()
    envelope = Envelope(payload, PAYLOAD, {})
    if signer:
        envelope.sign(signer)
    return json.dumps(envelope.to_dict(), sort_keys=True, separators=(",", ":")) + "\n"


def derived(target: LockedTarget, release: LockedTriton, labels: Mapping[str, str]) -> dict[str, Any]:
    """Return what follows from a checkout for a target's image with these labels."""
    return {
        "lock": target.digest,
        "labels": dict(labels),
        "plugins": {name: plugin_wheels.identity(name) for name in target_image.plugins(target)},
        "triton": triton_wheel.identity(release, ()),
    }


def write(name: str, statement: Statement, signer: CryptoSigner | None) -> Path:
    """Write a statement to build/statements; return the file."""
    durable.write(file(name), seal(statement, signer))
    return file(name)


def file(name: str) -> Path:
    """Return the file in build/statements of the statements about an artifact."""
    return paths.BUILD / "statements" / f"{name}{SUFFIX}"


@dataclass(frozen=True)
class Sealed:
    """A statement that was read, the file that it is from, and its envelope."""

    path: Path
    statement: Statement
    envelope: Envelope

    def signers(self, keys: Mapping[str, Key]) -> list[str]:
        """Return the names of the public keys, which are given by name, that signed it."""
        names = []
        for name, key in keys.items():
            with suppress(VerificationError):
                self.envelope.verify([key], 1)
                names.append(name)
        return names


def read(path: Path) -> list[Sealed]:
    """Return the statements in a file: an envelope in each line.

    Raises:
        UsageError: the file cannot be read.
        FileError: a line is no statement about how something was built; or the file is too large, or no plain file.
    """
    try:
        return parse(foreign.read_file(path, _MOST), path)
    except OSError as error:
        raise UsageError(f"{path} cannot be read", why=str(error.strerror)) from error


def parse(text: bytes, path: Path) -> list[Sealed]:
    """Return the statements in the text of a file; see read."""
    sealed = []
    try:
        for line in text.decode().splitlines():
            envelope = Envelope.from_dict(json_text.parse(line, dict[str, Any]))
            if envelope.payload_type != PAYLOAD:
                raise ValueError(f"its payload is {envelope.payload_type}")
            statement = json_text.parse(envelope.payload, Statement)
            if (statement.type, statement.predicate_type) != (_STATEMENT, _PROVENANCE):
                raise ValueError(f"it is a {statement.predicate_type} in a {statement.type}")
            sealed.append(Sealed(path, statement, envelope))
    except (ValueError, KeyError, TypeError, AttributeError, FormatError) as error:
        raise FileError(f"{path} has no statement", why=repr(error), next="ask for the file again") from error
    return sealed
