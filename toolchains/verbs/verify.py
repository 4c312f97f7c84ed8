"""The verbs verify and keys: check an image, an archive or wheels against the lock, what was recorded, and statements.

What it is compared with, offline:

    an image, or an archive of one    the configuration and the files that this store recorded when it built the image
                                      that the lock and this checkout ask for (images/listing.py); and the
                                      published ID of that image (repro/expected.py)
    a wheel                           the locked sha256; or the wheel of ours, which is made again
    a folder that `wheel` wrote       the same folder, which is made again
    each of them                      a statement that a trusted key signed: its digests

At least one of these must exist. The first thing that is not accounted for is named.
"""

from __future__ import annotations

import hashlib
import os
import stat
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from rich.text import Text
from securesystemslib.signer import Key

from toolchains.archives import confine, docker_archive
from toolchains.artifacts import plugin_wheels, triton_wheel
from toolchains.assembly import target_image, wheelhouse
from toolchains.assembly.target_image import Inputs
from toolchains.config import platforms
from toolchains.engine import client
from toolchains.fetch.store import Store
from toolchains.images import base, layer, listing, provenance
from toolchains.images.listing import Entry
from toolchains.lockfile import lock
from toolchains.lockfile.lock import AMD64, LockedTarget, LockedTriton
from toolchains.repro import compare, expected
from toolchains.system import document, foreign, json_text, paths
from toolchains.system.console import Console, printable
from toolchains.system.document import ShownDocument
from toolchains.system.errors import FileError, FoundryError, ImageError, UsageError, VerificationError
from toolchains.system.terminal import make_console
from toolchains.trust import image_archive, keys, statement
from toolchains.trust.image_archive import Found
from toolchains.trust.statement import Sealed

_console = make_console()
# A wheel that is so many times as large as it should be is not read further, and one of so many bytes is not tested.
_GROWN, _TESTED = 4, 8 << 30
_NO_WHEEL = (zipfile.BadZipFile, ValueError, NotImplementedError, OSError, EOFError, zlib.error)
# How many findings an error lists.
_SHOWN = 10
_TAG = "triton-foundry/"


@dataclass
class Checked:
    """What was found about an artifact.

    Attributes:
        digests: the artifact's sha256 by name: of an image its configuration's, of a folder each file's.
        facts: what it agrees with, for people.
        found: what is not accounted for.
    """

    digests: dict[str, str] = field(default_factory=dict)
    facts: list[str] = field(default_factory=list)
    found: list[Found] = field(default_factory=list)

    def require(self, what: str) -> None:
        """Require that nothing was found.

        Raises:
            VerificationError: something was; names the first.
        """
        if self.found:
            first, *more = self.found
            lines = [str(finding) for finding in more[: _SHOWN - 1]]
            rest = [f"and {len(more) - len(lines)} more"] if len(more) > len(lines) else []
            raise VerificationError(f"{what} is not what it should be: {first}", why="\n".join([*lines, *rest]))


class Unaccounted(msgspec.Struct, frozen=True):
    """Something that is not accounted for.

    Attributes:
        where: the file, label or part of the artifact.
        what: what is wrong with it.
    """

    where: str
    what: str


class Verified(ShownDocument, kw_only=True, tag="verify"):
    """What an artifact was compared with: `verify`. It is verified if there are no findings.

    Attributes:
        of: the image, the archive, the wheel or the folder.
        digests: the sha256 by name: of an image its configuration's, of a folder each file's.
        facts: what it agrees with, for people.
        findings: what is not accounted for.
    """

    of: str
    digests: dict[str, str]
    facts: list[str]
    findings: list[Unaccounted]

    def render(self, console: Console) -> None:
        if not self.findings:
            for fact in self.facts:
                console.print(fact)
            console.print(Text(self.of, "bold"), "is verified")


@dataclass(frozen=True)
class Trusted:
    """Statements, and the public keys that count, by the names of their files."""

    statements: Sequence[Sealed]
    keys: Mapping[str, Key]

    @classmethod
    def read(cls, statements: Sequence[Path], public: Sequence[Path]) -> Trusted:
        """Read files.

        Raises:
            UsageError: statements without a key, or the reverse; or a file cannot be read.
            FileError: a file has no statement.
        """
        if bool(statements) != bool(public):
            raise UsageError(
                "a statement counts for nothing without the key of who signed it, and a key without a statement",
                next="give both: --statement=FILE --key=FILE.pub",
            )
        return cls(
            [sealed for path in statements for sealed in statement.read(path)],
            {path.name: keys.read_public(path) for path in public},
        )

    @classmethod
    def folder(cls, folder: Path) -> Trusted:
        """Read all statements and public keys in a folder, one key for each rebuilder.

        Raises:
            UsageError: there is no such folder, or two of its files have the same key.
        """
        if not folder.is_dir():
            raise UsageError(
                f"there is no folder {folder}", next=f"put the rebuilders' *.pub and *{statement.SUFFIX} into one"
            )
        trusted = cls(
            [sealed for path in sorted(folder.rglob(f"*{statement.SUFFIX}")) for sealed in statement.read(path)],
            {str(path.relative_to(folder)): keys.read_public(path) for path in sorted(folder.rglob("*.pub"))},
        )
        names: dict[str, str] = {}
        for name, key in trusted.keys.items():
            if key.keyid in names:
                raise UsageError(f"{name} and {names[key.keyid]} are the same key", next="remove one of them")
            names[key.keyid] = name
        return trusted

    def signers(self, name: str, digest: str) -> tuple[list[str], list[Found]]:
        """Return the names of the keys that signed this digest, and who signed another digest of the same name."""
        agreeing: list[str] = []
        findings: list[Found] = []
        for sealed in self.statements:
            signers = sealed.signers(self.keys)
            for subject in sealed.statement.subject:
                if subject.sha256 == digest:
                    agreeing += signers
                elif subject.name == name and signers:
                    findings.append(Found(name, f"{', '.join(signers)} signed another digest: {subject.sha256}"))
        return sorted(set(agreeing)), findings


def make_key(path: str) -> None:
    """Make an ed25519 key, and print who may have which file."""
    key = keys.make(Path(path))
    _console.print(Text(path, "bold"), "signs, and stays secret: --sign reads it")
    _console.print(Text(f"{path}.pub", "bold"), f"is for those who verify, {key.keyid[:12]}")


def verify(what: str, *, statements: Sequence[str], public: Sequence[str], rebuilders: str, threshold: int) -> None:
    """Check an artifact and print what it agrees with; see check_artifact."""
    if threshold and not rebuilders:
        raise UsageError("--threshold counts the rebuilders in a folder", next="name it too: --rebuilders=FOLDER")
    trusted = Trusted.read([Path(path) for path in statements], [Path(path) for path in public])
    others = Trusted.folder(Path(rebuilders)) if rebuilders else None
    checked = examine_artifact(what, trusted, others, threshold or 1)
    findings = [Unaccounted(found.where, found.what) for found in checked.found]
    document.show(Verified(of=what, digests=checked.digests, facts=checked.facts, findings=findings))
    checked.require(what)


def check_artifact(what: str, trusted: Trusted, rebuilders: Trusted | None = None, threshold: int = 1) -> Checked:
    """Check an artifact as examine_artifact does, and require that all of it is accounted for.

    Raises:
        VerificationError: something is not accounted for; names the first.
    """
    checked = examine_artifact(what, trusted, rebuilders, threshold)
    checked.require(what)
    return checked


def examine_artifact(what: str, trusted: Trusted, rebuilders: Trusted | None = None, threshold: int = 1) -> Checked:
    """Return what an artifact agrees with, and what is not accounted for.

    Args:
        what: a target, an image's name, or the path of an archive, a wheel or a folder.
        trusted: each file or image must have been signed by one of its keys, if there are any.
        rebuilders: who may have built the same.
        threshold: number of different keys among the rebuilders' that must have signed the same digest.

    Raises:
        UsageError: there is no such thing, or nothing to compare it with.
        EngineError: no container engine, for an image.
    """
    path, store = Path(what), Store(paths.cache(), offline=True)
    signed = bool(trusted.keys or rebuilders)
    if path.is_dir():
        checked = _folder(path, store, signed=signed)
    elif path.suffix == ".whl" and path.is_file():
        checked = _wheel(path, store, signed=signed)
    elif path.is_file():
        checked = _archive(path, "", store, signed=signed)
    else:
        checked = _image(what, store, signed=signed)
    for name, digest in checked.digests.items():
        if trusted.keys:
            _count(checked, name, trusted.signers(name, digest), 1, "a trusted key")
        if rebuilders:
            _count(checked, name, rebuilders.signers(name, digest), threshold, "rebuilders")
    return checked


def _count(checked: Checked, name: str, counted: tuple[list[str], list[Found]], threshold: int, who: str) -> None:
    signers, others = counted
    checked.found += others
    if len(signers) < threshold:
        text = f"{len(signers)} of {threshold} {who} signed sha256 {checked.digests[name]}"
        checked.found.append(Found(name, text + (f": {', '.join(signers)}" if signers else "")))
    else:
        checked.facts.append(f"{name}: signed by {', '.join(signers)}")


def _image(what: str, store: Store, *, signed: bool) -> Checked:
    locked = lock.everything().targets
    name = f"{_TAG}{what}:latest" if what in locked else what
    docker = client.connect()
    if docker.image(name) is None:
        build = ""
        if what in locked:
            target = locked[what]
            build = f"./foundry build {target.name}" + platforms.option(target.platform)
        raise UsageError(f"there is no target, image or file {what}", next=build)
    with layer.saved(docker, name) as archive:
        return _archive(archive, name, store, signed=signed)


def _archive(path: Path, called: str, store: Store, *, signed: bool) -> Checked:
    """Check a docker-archive.

    Args:
        called: the name of the image that it is of, if that is known.
    """
    try:
        tags, config = image_archive.read(path)
        described = json_text.parse(config, docker_archive.ImageConfig)
    except ImageError as error:
        return Checked(found=[Found(error.what, error.why)])
    except ValueError as error:
        return Checked(found=[Found("the configuration", f"it is damaged: {error}")])
    labels = described["config"].get("Labels") or {}
    target, release = _meant(labels, [called] if called.startswith(_TAG) else tags)
    name = Inputs(target, release).name
    recorded = provenance.configs(name, store)
    digest = f"sha256:{hashlib.sha256(config).hexdigest()}"
    checked = Checked({name: digest.removeprefix("sha256:")})
    again = f"./foundry build {target.name} --triton={release.version}{platforms.option(target.platform)} --no-cache"
    published = expected.load().image(target.label, release.version)
    if published and name != f"{_TAG}{target.label}:{published.inputs[:16]}":
        # It has other inputs.
        published = None
    if published:
        if digest == published.image:
            checked.facts.append(f"its ID is the published one, {digest[7:19]}")
        else:
            checked.found.append(Found("the image's ID", f"{digest}; published is {published.image}"))
    elif not recorded and not signed:
        raise UsageError(
            f"there is nothing to compare {called or path} with",
            why=f"the lock and this checkout ask for {name}, which this store has not built and nobody published",
            next=f"{again}, or give a statement and a key",
        )
    if not recorded:
        # The digest is what was published or signed; nothing else is known.
        checked.found += image_archive.check(path, config, lambda _: None, tags)
        return checked
    # Several images may have been recorded for a name; the last one is what its inputs give now.
    known = [id for id in (published.image if published else "", digest) if id in recorded]
    wanted = known[0] if known else recorded[-1]
    text = listing.config(store, wanted)
    if text is None:
        raise UsageError(f"the record of {name} is damaged", next=again)
    names = [name, *Inputs(target, release).moving_names, called]
    # What a file says comes before what follows from it.
    checked.found[:0] = image_archive.check(path, text, partial(_entries, store, target), names)
    if not checked.found:
        layers = described["rootfs"]["diff_ids"]
        checked.facts.append(f"configuration {digest[7:19]} and {len(layers)} layers as this store built {name}")
        checked.facts.append(f"the lock {target.digest[:12]}, Triton {release.version} and this checkout ask for it")
    return checked


def _meant(labels: Mapping[str, str], tags: Sequence[str]) -> tuple[LockedTarget, LockedTriton]:
    """Return the target and release that an image is of: what its name says, or else its labels.

    Raises:
        UsageError: it is of none; or it has what is not in the lock: a vendor's SDK, or a part built from source.
    """
    locked, named = lock.everything().targets, ""
    version = labels.get(target_image.LABEL + "triton", "").partition("+")[0]
    for tag in tags:
        repository, _, label = tag.removeprefix(_TAG).partition(":")
        if tag.startswith(_TAG) and repository in locked:
            named = repository
            version = label if label in locked[repository].tritons else version
            break
    if not named:
        platform = labels.get(target_image.LABEL + "platform", AMD64)
        stated = (labels.get(target_image.LABEL + "target", ""), platform)
        named = next((name for name, known in locked.items() if (known.name, known.platform) == stated), stated[0])
    if named not in locked:
        raise UsageError(
            f"the image is of no target of the lock: {', '.join(tags) or 'without a name'}",
            why=f"its label names the target {named}" if named else "it has no label that names a target",
            next=f"targets: {', '.join(locked)}",
        )
    return locked[named], target_image.release(locked[named], version if version in locked[named].tritons else None)


def _entries(store: Store, target: LockedTarget, layer: str) -> list[Entry] | None:
    """Return the recorded entries of a target's layer; None if this store has no record of it."""
    entries = listing.layer(store, layer)
    if entries is None and (archive := base.stored(target, store)):
        # The base image is a file in the store, and is recorded only here, where it is needed.
        listing.record(archive, store)
        entries = listing.layer(store, layer)
    return entries


def _wheel(path: Path, store: Store, *, signed: bool) -> Checked:
    digest = _sha256(path)
    checked = Checked({path.name: digest})
    wanted = {
        artifact.sha256: artifact
        for target in lock.everything().targets.values()
        for artifact in (*target.wheels, *(release.wheel for release in target.tritons.values()))
        if artifact.filename == path.name
    }
    if digest in wanted:
        checked.facts.append(f"{path.name}: the sha256 of the lock")
        return checked
    with TemporaryDirectory(dir=paths.scratch()) as work:
        reference = next((store.path(artifact) for artifact in wanted.values() if store.has(artifact)), None)
        if wanted:
            checked.found += wheel_differences(path, reference) if reference else ()
        else:
            reference, checked.found = _nearest(path, _made(store, Path(work)))
    if reference and not checked.found:
        checked.facts.append(f"{path.name}: byte for byte the one made of the lock and this checkout")
    if reference:
        return checked
    if wanted:
        checked.found.append(Found(_damaged_entry(path), f"sha256 {digest} is not the lock's, {next(iter(wanted))}"))
    elif not signed:
        raise UsageError(
            f"there is nothing to compare {path.name} with",
            why="the lock has no wheel of this name, and this checkout makes none",
            next="give a statement and the key of who signed it: --statement=FILE --key=FILE.pub",
        )
    return checked


def _nearest(path: Path, candidates: Iterator[Path]) -> tuple[Path | None, list[Found]]:
    """Return the wheel of a file's name that is most like it, and what differs; None if no wheel has its name.

    An image's wheel and the one that `wheel` writes may have one name.
    """
    nearest: tuple[Path | None, list[Found]] = (None, [])
    try:
        for candidate in candidates:
            if candidate.name == path.name:
                differences = list(wheel_differences(path, candidate)) if _sha256(candidate) != _sha256(path) else []
                if nearest[0] is None or len(differences) < len(nearest[1]):
                    nearest = (candidate, differences)
                if not differences:
                    break
    except FoundryError:
        # Not all can be made, such as without an engine.
        if nearest[0] is None:
            raise
    return nearest


def _made(store: Store, work: Path) -> Iterator[Path]:
    """Yield our wheels; what the store does not have is built. The cheapest come first.

    Args:
        work: an empty folder, in which some are made.
    """
    for package in plugin_wheels.names():
        yield plugin_wheels.wheel(package, store).path
    locked = lock.everything()
    for target in locked.targets.values():
        for release in target.tritons.values():
            if store.has(release.wheel):
                yield triton_wheel.repack(release, store.path(release.wheel), backends=(), store=store)
    # This machine's builder makes the library of each machine.
    for target in lock.load(platform=platforms.here()).targets.values():
        if wheelhouse.RECIPE in target.recipes:
            folder = work / target.label
            library = wheelhouse.library(target, store, work)
            yield from wheelhouse.write(target, library, folder, store).wheels


def wheel_differences(path: Path, reference: Path) -> Iterator[Found]:
    """Yield what differs between a wheel and the one that it must be, to the byte."""
    sizes = [_unpacked_size(wheel) for wheel in (path, reference)]
    if max(sizes[0], path.stat().st_size) > _GROWN * max(sizes[1], reference.stat().st_size):
        yield Found(path.name, f"it has {path.stat().st_size} bytes, and {sizes[0]} when it is unpacked")
        return
    content, wanted = path.read_bytes(), reference.read_bytes()
    for difference in compare.compare_files(reference, path):
        if difference.where:
            presence = "it was removed" if difference.first else "it was added"
            name = printable(" > ".join(difference.where), "")
            yield Found(name, presence if difference.what == "presence" else f"its {difference.what}")
        else:
            at = compare.first_difference(wanted, content)
            with zipfile.ZipFile(reference) as archive:
                before = [entry for entry in archive.infolist() if entry.header_offset <= at]
            last = max(before, key=lambda entry: entry.header_offset).filename
            yield Found(last, f"byte {at} of the wheel, in or after this file")


def _damaged_entry(path: Path) -> str:
    """Return the first file of a wheel whose content is not what the wheel itself says, or the wheel's name."""
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.testzip() or path.name if _unpacked_size(path) < _TESTED else path.name
    except _NO_WHEEL:
        return path.name


def _unpacked_size(path: Path) -> int:
    """Return the bytes of a wheel's files, as it says itself; 0 if it is none."""
    try:
        with zipfile.ZipFile(path) as archive:
            return sum(entry.file_size for entry in archive.infolist())
    except _NO_WHEEL:
        return 0


def _sha256(path: Path) -> str:
    with foreign.open_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _folder(path: Path, store: Store, *, signed: bool) -> Checked:
    """Check a folder that `wheel` wrote."""
    try:
        files = foreign.plain_files(path)
    except FileError as error:
        return Checked(found=[Found(error.what, error.why)])
    checked = Checked({name: _sha256(file) for name, file in files.items()})
    target = _of_wheels(files)
    if target is None:
        if not signed:
            raise UsageError(
                f"{path} is no folder that the verb wheel wrote", next="give a statement and a key of what it is"
            )
        return checked
    checked.found += _around_files(path, files)
    with TemporaryDirectory(dir=paths.scratch()) as work:
        library = wheelhouse.library(target, store, Path(work))
        reference = wheelhouse.write(target, library, Path(work, path.resolve().name), store).folder
        wanted = {file.name: file for file in reference.iterdir()}
        for name in sorted(wanted.keys() | files.keys()):
            if name not in files:
                checked.found.append(Found(name, "it is missing"))
            elif name not in wanted:
                checked.found.append(Found(name, "it was added"))
            elif name.endswith(".whl"):
                differences = wheel_differences(files[name], wanted[name])
                checked.found += [Found(f"{name}, {difference.where}", difference.what) for difference in differences]
            elif checked.digests[name] != _sha256(wanted[name]):
                checked.found.append(Found(name, "its content"))
    if not checked.found:
        checked.facts.append(f"{len(files)} files, byte for byte those made of the lock and this checkout")
    return checked


def _around_files(folder: Path, files: Mapping[str, Path]) -> Iterator[Found]:
    """Yield what is in a folder besides the content of its files: folders, permissions, attributes."""
    full = {parent for name in files for parent in confine.parent_folders(name)}
    folders = {inner.relative_to(folder).as_posix(): inner for inner in folder.rglob("*") if inner.is_dir()}
    yield from (Found(f"{name}/", "an empty folder was added") for name in sorted(folders.keys() - full))
    for name, path in sorted({".": folder, **folders, **files}.items()):
        mode, allowed = stat.S_IMODE(path.stat().st_mode), 0o755 if path.is_dir() else 0o644
        if mode & ~allowed:
            yield Found(name, f"its mode is {mode:o}; at most {allowed:o} is needed, without other bits")
        # Labels of the system's own, such as SELinux's, are on every file.
        own = [key for key in os.listxattr(path) if not key.startswith("security.") or key == "security.capability"]
        if own:
            yield Found(name, f"it has attributes: {', '.join(own)}")


def _of_wheels(files: Mapping[str, Path]) -> LockedTarget | None:
    """Return the target whose wheels are in a folder, by the plugin among them."""
    machine = next((platform for platform in map(platforms.of_file, files) if platform != AMD64), AMD64)
    locked = lock.load(platform=machine)
    for target in locked.targets.values():
        if any(name.startswith(f"triton_{target.backend}_backend-") for name in files):
            return wheelhouse.source(locked, target)
    return None
