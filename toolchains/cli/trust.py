"""The verbs keys and verify, and the option --sign of `build` and `wheel`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.text import Text
from securesystemslib.signer import CryptoSigner

from toolchains.artifacts import plugin_wheels
from toolchains.assembly import target_image
from toolchains.assembly.request import Request
from toolchains.assembly.target_image import Image
from toolchains.fetch.store import Store
from toolchains.images import provenance
from toolchains.lockfile.lock import Artifact, LockedTarget
from toolchains.system.errors import UsageError
from toolchains.system.terminal import make_console
from toolchains.trust import keys, statement
from toolchains.trust import verify as verifying
from toolchains.trust.statement import Resource
from toolchains.trust.verify import Trusted

_console = make_console()


def make_key(path: str) -> None:
    """Make an ed25519 key, and print who may have which file."""
    key = keys.make(Path(path))
    _console.print(Text(path, "bold"), "signs, and stays secret: --sign reads it")
    _console.print(Text(f"{path}.pub", "bold"), f"is for those who verify, {key.keyid[:12]}")


def verify(what: str, *, statements: Sequence[str], public: Sequence[str], rebuilders: str, threshold: int) -> None:
    """Check an artifact and print what it agrees with; see verifying.verify."""
    if threshold and not rebuilders:
        raise UsageError("--threshold counts the rebuilders in a folder", next="name it too: --rebuilders=FOLDER")
    trusted = Trusted.read([Path(each) for each in statements], [Path(each) for each in public])
    others = Trusted.folder(Path(rebuilders)) if rebuilders else None
    checked = verifying.verify(what, trusted, others, threshold or 1)
    for fact in checked.facts:
        _console.print(fact)
    _console.print(Text(what, "bold"), "is verified")


def state_image(request: Request, made: Image, store: Store, signer: CryptoSigner | None) -> Path | None:
    """Write the statement about an image, signed if a signer is given; return the file.

    The digest of the configuration is the image's ID in most engines; None if the store does not know it.
    """
    target, release = request.target, request.release
    configs = provenance.configs(made.name, store)
    digest = made.info.id if made.info.id in configs else next(reversed(configs), None)
    if digest is None:
        return None
    said = statement.make(
        [_resource(made.name, digest.removeprefix("sha256:"))],
        kind="image",
        asked={"target": target.name, "triton": release.version, "options": request.options},
        derived=statement.derived(target, release, made.info.labels),
        inputs=list(_inputs(target, release.wheel)),
        byproducts=[_resource(f"layer {n}", id.removeprefix("sha256:")) for n, id in enumerate(made.info.layers, 1)],
    )
    return statement.write(f"{target.name}-{release.version}", said, signer)


def state_wheels(target: LockedTarget, folder: Path, signer: CryptoSigner | None) -> Path:
    """Write the statement about a folder of wheels, signed if a signer is given; return the file."""
    files = sorted(path for path in folder.iterdir() if path.is_file())
    said = statement.make(
        [_resource(path.name, hashlib.sha256(path.read_bytes()).hexdigest()) for path in files],
        kind="wheels",
        asked={"target": target.name},
        derived={
            "lock": target.digest,
            "plugins": {name: plugin_wheels.identity(name) for name in target_image.plugins(target)},
        },
        inputs=list(_inputs(target)),
    )
    return statement.write(f"wheels-{target.backend}", said, signer)


def _inputs(target: LockedTarget, triton: Artifact | None = None) -> Iterable[Resource]:
    """Return all locked files of a target but other wheels of Triton; also what its native parts are built with."""
    tritons = {release.wheel for release in target.tritons.values()} - {triton}
    files = {(each.filename, each.sha256) for each in target.artifacts() if each not in tritons}
    return (_resource(name, sha256) for name, sha256 in sorted(files))


def _resource(name: str, sha256: str) -> Resource:
    return Resource(name, {"sha256": sha256})
