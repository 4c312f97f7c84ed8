"""Push a target's image with documents about it, and pull one that a trusted key signed for this checkout."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from securesystemslib.signer import Key

from toolchains.assembly.target_image import Image, Inputs
from toolchains.config import platforms
from toolchains.engine.client import Engine
from toolchains.fetch.store import Store
from toolchains.images import layer, provenance
from toolchains.images.layer import require_image
from toolchains.lockfile.lock import LockedTarget, LockedTriton
from toolchains.repro import expected
from toolchains.share import vendor
from toolchains.share.registry import Descriptor, Document, RegistryManifest, Repository
from toolchains.system import durable
from toolchains.system.errors import AbsentError, FetchError, FileError, ImageError, VerificationError
from toolchains.system.steps import step
from toolchains.trust import image_archive, statement
from toolchains.trust.statement import Sealed

_ENVELOPE = "application/vnd.dsse.envelope.v1+json"


@dataclass(frozen=True)
class Trust:
    """The public keys that count, by the names of their files, and how many of them must have signed."""

    keys: Mapping[str, Key]
    threshold: int = 1


@dataclass(frozen=True)
class Transfer:
    """An image that was pushed or pulled: its name by its manifest's digest, its ID, whether it was moved."""

    reference: str
    id: str
    moved: bool


def statements(file: Path) -> Document:
    """Return the document with the statements in a file."""
    return Document(file.name, statement.PAYLOAD, _ENVELOPE, file.read_bytes())


def prove(image: Image, *, engine: Engine, store: Store) -> str:
    """Return the ID of an image, the digest of its configuration, after reading all layers.

    Raises:
        ImageError: it has a vendor's SDK; names the file.
    """
    with step(f"reading {image.name}"), layer.saved(engine, image.name) as archive:
        vendor.refuse_vendor_files(archive, image.name, store)
        return f"sha256:{hashlib.sha256(image_archive.read(archive)[1]).hexdigest()}"


def push(image: Image, id: str, repository: Repository, documents: Sequence[Document], *, engine: Engine) -> Transfer:
    """Send an image and documents about it to a registry; what is there is not sent.

    Args:
        id: as prove returned it.

    Raises:
        ImageError: the registry has another image under this name.
        EngineError, FetchError: the registry does not answer, or refuses.
    """
    tag = image.name.rpartition(":")[2]
    manifest = repository.manifest(tag)
    moved = manifest is None
    if moved:
        name = f"{repository.name}:{tag}"
        with step(f"push {name}"):
            engine.tag(image.info.id, name)
            try:
                engine.push(name)
            finally:
                engine.remove(name)
        manifest = repository.manifest(tag)
    if manifest is None or manifest[1].config.digest != id:
        raise ImageError(
            f"{repository.name}:{tag} is not this image, and a name in a registry is never replaced",
            why=f"its ID:  {manifest[1].config.digest if manifest else 'the registry has none'}\nthe one here: {id}",
            next="find out which of the two is wrong: ./foundry repro TARGET; then remove that one",
        )
    subject = manifest[0]
    attached = [repository.attach(subject, document) for document in documents]
    listed = {referrer.digest for referrer in repository.referrers(subject.digest)}
    if lost := [
        name.name for name, descriptor in zip(documents, attached, strict=True) if descriptor.digest not in listed
    ]:
        raise FetchError(
            f"{repository.name}:{tag} was pushed without {', '.join(lost)}",
            why="somebody else attached documents at the same moment",
            next="the same command again",
        )
    return Transfer(f"{repository.name}@{subject.digest}", id, moved)


def pull(
    target: LockedTarget, release: LockedTriton, repository: Repository, trust: Trust, *, engine: Engine, store: Store
) -> Transfer:
    """Fetch the image that this checkout asks for, if keys signed it for these inputs.

    Raises:
        AbsentError: the registry does not have it.
        VerificationError: not enough keys signed it for these inputs; or it is another image than the published one.
        ImageError: what arrived has another ID.
        EngineError, FetchError, HashMismatchError: the registry does not answer, refuses, or has a damaged image.
    """
    name = Inputs(target, release).name
    tag = name.rpartition(":")[2]
    answer = repository.manifest(tag)
    if answer is None:
        raise AbsentError(
            f"{repository.name} has no image of {target.label} as this checkout asks for it",
            why=f"it would be called {repository.name}:{tag}",
            next=f"./foundry push {target.name} REGISTRY{platforms.option(target.platform)}, on a machine that has "
            "built it from this checkout",
        )
    descriptor, manifest = answer
    id = manifest.config.digest
    published = expected.load().image(target.label, release.version)
    if published and published.inputs == Inputs(target, release).identity() and published.image != id:
        raise VerificationError(
            f"{repository.name}:{tag} is not the image that was published for these inputs",
            why=f"its ID:    {id}\npublished: {published.image}",
        )
    accepted = _accepted(target, release, name, descriptor, manifest, repository, trust)
    reference = f"{repository.name}@{descriptor.digest}"
    present = engine.image(name)
    moved = present is None or present.id != id
    if moved:
        with step(f"pull {reference}"):
            _take(reference, id, [name, *Inputs(target, release).moving_names], engine)
    # Without the digest of a configuration: what is in its layers is not recorded, unless it was built here.
    kept = id if id in provenance.configs(name, store) else ""
    provenance.note(name, require_image(engine, name), store, kept)
    durable.write(statement.file(f"{target.label}-{release.version}"), b"".join(accepted).decode())
    return Transfer(reference, id, moved)


def _accepted(
    target: LockedTarget,
    release: LockedTriton,
    name: str,
    descriptor: Descriptor,
    manifest: RegistryManifest,
    repository: Repository,
    trust: Trust,
) -> list[bytes]:
    """Return the texts of the statements that trusted keys signed for an image and the inputs of this checkout.

    Raises:
        VerificationError: fewer keys than needed did.
    """
    derived = statement.derived(target, release, Inputs(target, release).labels)
    accepted: list[bytes] = []
    signed: dict[str, str] = {}
    reasons = []
    for text in _statements(repository, descriptor.digest):
        try:
            parsed = statement.parse(text, Path(repository.name))
        except FileError as error:
            reasons.append(error.why)
            continue
        for sealed in parsed:
            signers = sealed.signers(trust.keys)
            why = _wrong(sealed, name, manifest.config.digest, derived)
            if signers and not why:
                # A key counts once, whatever its file is called.
                signed |= {trust.keys[signer].keyid: signer for signer in signers}
                accepted += [text] * (text not in accepted)
            elif signers:
                reasons.append(f"{', '.join(signers)} signed {why}")
            else:
                reasons.append("a statement that no trusted key signed")
    if len(signed) < trust.threshold:
        raise VerificationError(
            f"{repository.name}@{descriptor.digest} is not taken: "
            f"{len(signed)} of {trust.threshold} trusted keys signed it for this checkout",
            why="\n".join(reasons) or "the registry has no statement about it",
            next=f"./foundry push {target.name} REGISTRY --sign=KEY{platforms.option(target.platform)}, on a machine "
            "that has built it from this checkout",
        )
    return accepted


def _statements(repository: Repository, digest: str) -> Iterator[bytes]:
    """Yield the statements about the manifest with a digest."""
    for referrer in repository.referrers(digest):
        if referrer.artifact_type == statement.PAYLOAD and (manifest := repository.manifest(referrer.digest)):
            for blob in manifest[1].layers:
                yield repository.blob(blob.digest)


def _wrong(sealed: Sealed, name: str, id: str, derived: Mapping[str, object]) -> str:
    """Return what a statement is about, if not about this image with these inputs."""
    stated = sealed.statement.predicate.definition.internal
    for subject in sealed.statement.subject:
        if subject.name == name and subject.sha256 == id.removeprefix("sha256:"):
            other = [key for key, value in derived.items() if stated.get(key) != value]
            return f"it for other inputs: {', '.join(other)}" if other else ""
    return ", ".join(f"{subject.name} with sha256 {subject.sha256[:12]}" for subject in sealed.statement.subject)


def _take(reference: str, id: str, names: Sequence[str], engine: Engine) -> None:
    """Let the engine pull an image, and give it names if it has the ID that it must have."""
    engine.pull(reference)
    try:
        info = require_image(engine, reference)
        # An engine with the containerd store shows the digest of a manifest.
        actual = info.id if info.id == id else expected.image_id(engine, reference)
        if actual != id:
            raise ImageError(
                f"{reference} is not the image that was signed",
                why=f"its ID: {actual}\nsigned: {id}",
                next="push again",
            )
        for name in names:
            engine.tag(info.id, name)
    finally:
        engine.remove(reference)
