"""The verb push: push a target's image, its bills of materials and its statement to a registry."""

from __future__ import annotations

from pathlib import Path

from rich.text import Text

from toolchains.assembly import ensure
from toolchains.assembly.request import Request
from toolchains.contents.documents import ENDINGS, WRITERS
from toolchains.share import images
from toolchains.share.registry import Document, Repository
from toolchains.system.errors import UsageError
from toolchains.system.terminal import make_console
from toolchains.trust import keys, statement
from toolchains.verbs import sbom

_console = make_console()
# The IANA's names of the formats of `sbom`.
_TYPES = {"cyclonedx": "application/vnd.cyclonedx+json", "spdx": "application/spdx+json"}


def push(request: Request, registry: str, *, sign: str) -> None:
    """Push a target's image, which is built if its inputs changed, its bills of materials and its statement.

    Raises:
        UsageError: nobody recorded how the image was made.
        FoundryError: see images.push.
    """
    repository = Repository(registry, request.target.label)
    signer = keys.read_private(Path(sign)) if sign else None
    engine, image = ensure.ensure_image(request)
    id = images.prove(image, engine=engine, store=request.store())
    file = statement.file(f"{request.target.label}-{request.release.version}")
    # A statement that is signed now replaces the file, whatever is in that.
    is_stated = (
        not signer
        and file.exists()
        and any(
            (subject.name, subject.sha256) == (image.name, id.removeprefix("sha256:"))
            for sealed in statement.read(file)
            for subject in sealed.statement.subject
        )
    )
    if not is_stated and not statement.state_image(request, image, request.store(), signer):
        raise UsageError(
            f"there is no statement about {image.name}" + " by this machine" * bool(sign),
            why="it did not build the image, so it cannot say how that was made",
            next=f"{request.command('build')} --no-cache",
        )
    if not any(sealed.envelope.signatures for sealed in statement.read(file)):
        _console.notice("the statement is not signed, so `pull` and `build --from` take the image nowhere: --sign=KEY")
    described = sbom.describe(request)
    documents = [
        Document(f"{request.target.label}{ENDINGS[form]}", _TYPES[form], _TYPES[form], write(described))
        for form, write in WRITERS.items()
    ]
    done = images.push(image, id, repository, [images.statements(file), *documents], engine=engine)
    _console.print(Text(done.reference, "bold"), "was pushed" if done.moved else "exists there already")
    _console.print(f"its ID {done.id}, {len(documents)} bills of materials and a statement")
