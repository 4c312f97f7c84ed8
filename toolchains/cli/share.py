"""The verbs push and pull, and the option --from of `build`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.text import Text

from toolchains.assembly import ensure, target_image
from toolchains.assembly.request import Request
from toolchains.assembly.target_image import Image
from toolchains.cli import sbom, trust
from toolchains.contents.wheel_documents import ENDINGS, WRITERS
from toolchains.engine import host
from toolchains.images import provenance
from toolchains.share import images
from toolchains.share.images import Transfer, Trust
from toolchains.share.registry import Document, Repository
from toolchains.system.errors import FoundryError, UsageError
from toolchains.system.terminal import make_console
from toolchains.trust import keys, statement

_console = make_console()
# The IANA's names of the formats of `sbom`.
_TYPES = {"cyclonedx": "application/vnd.cyclonedx+json", "spdx": "application/spdx+json"}


def push(request: Request, registry: str, *, sign: str) -> None:
    """Push a target's image, which is built if its inputs changed, its bills of materials and its statement.

    Args:
        registry: HOST[:PORT][/PATH].
        sign: the path of the key that signs the statement; "" for the statement in build/statements.

    Raises:
        UsageError: nobody recorded how the image was made.
        FoundryError: see images.push.
    """
    repository = Repository(registry, request.target.name)
    signer = keys.read_private(Path(sign)) if sign else None
    engine, made = ensure.ensure_image(request)
    id = images.prove(made, engine=engine, store=request.store())
    file = statement.file(f"{request.target.name}-{request.release.version}")
    if (signer or not _states(file, made, id)) and trust.state_image(request, made, request.store(), signer) is None:
        raise UsageError(
            f"there is no statement about {made.name}" + " by this machine" * bool(sign),
            why="it did not build the image, so it cannot say how that was made",
            next=f"{request.command('build')} --no-cache",
        )
    if not any(each.envelope.signatures for each in statement.read(file)):
        _console.notice("the statement is not signed, so `pull` and `build --from` take the image nowhere: --sign=KEY")
    described = sbom.describe(request)
    documents = [
        Document(f"{request.target.name}{ENDINGS[form]}", _TYPES[form], _TYPES[form], write(described))
        for form, write in WRITERS.items()
    ]
    done = images.push(made, id, repository, [images.statements(file), *documents], engine=engine)
    _console.print(Text(done.reference, "bold"), "was pushed" if done.moved else "exists there already")
    _console.print(f"its ID {done.id}, {len(documents)} bills of materials and a statement")


def pull(request: Request, registry: str, *, public: Sequence[str], threshold: int) -> None:
    """Pull a target's image as this checkout asks for it, if trusted keys signed it; see images.pull."""
    done = _pull(request, registry, read_trust(public, threshold))
    _console.print(Text(done.reference, "bold"), "was pulled" if done.moved else "exists already")
    _console.print(f"called {target_image.image_name(request.target, request.release)}, its ID {done.id}")
    file = statement.file(f"{request.target.name}-{request.release.version}")
    options = "".join(f" --key={each}" for each in public)
    _console.print(f"statement: {file}\n  ./foundry verify {request.target.name} --statement={file}{options}")


def take(request: Request, registry: str, trusted: Trust) -> None:
    """Pull the image that would be built, unless it is there. If it cannot be taken, print why in one line.

    Raises:
        UsageError: the user asks for an image that no registry has.
    """
    if request.given or request.choice or request.offline or not request.cache:
        raise UsageError(
            "--from takes the image of the lock from a registry",
            why="an SDK, --from-source, --no-cache and --offline ask for something else",
            next="leave out one of them",
        )
    name = target_image.image_name(request.target, request.release)
    store = request.store()
    info = host.ensure_engine().image(name)
    if info and info.id in [each for known, each in provenance.recorded(store).items() if known == name]:
        return
    try:
        done = _pull(request, registry, trusted)
    except UsageError:
        raise
    except FoundryError as error:
        why = "; ".join(error.why.splitlines())
        _console.notice(f"not taken from {registry}, so it is built: {error.what}" + (f": {why}" if why else ""))
    else:
        _console.print(f"taken from {done.reference}, as {', '.join(trusted.keys)} signed it")


def read_trust(public: Sequence[str], threshold: int = 0) -> Trust:
    """Return the public keys in files.

    Raises:
        UsageError: there are none, or fewer than must have signed.
    """
    if len(public) < (threshold or 1):
        raise UsageError(
            f"an image is taken only if {threshold or 'a'} trusted key{'s' * (threshold > 1)} signed it",
            why=f"{len(public)} keys are given",
            next="--key=FILE.pub of who built it; may be given several times",
        )
    return Trust({each: keys.read_public(Path(each)) for each in public}, threshold or 1)


def _pull(request: Request, registry: str, trusted: Trust) -> Transfer:
    repository = Repository(registry, request.target.name)
    return images.pull(
        request.target, request.release, repository, trusted, engine=host.ensure_engine(), store=request.store()
    )


def _states(file: Path, made: Image, id: str) -> bool:
    """Return whether a file has a statement about this image."""
    return file.exists() and any(
        (subject.name, subject.sha256) == (made.name, id.removeprefix("sha256:"))
        for each in statement.read(file)
        for subject in each.statement.subject
    )
