"""The verb pull, and the option --from of `build`: take a target's image from a registry, if trusted keys signed it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.text import Text

from toolchains.assembly.request import Request
from toolchains.assembly.target_image import Inputs
from toolchains.engine import host
from toolchains.images import provenance
from toolchains.share import images
from toolchains.share.images import Transfer, Trust
from toolchains.share.registry import Repository
from toolchains.system.errors import FoundryError, UsageError
from toolchains.system.terminal import make_console
from toolchains.trust import keys, statement

_console = make_console()


def pull(request: Request, registry: str, *, public: Sequence[str], threshold: int) -> None:
    """Pull a target's image as this checkout asks for it, if trusted keys signed it; see images.pull."""
    done = _pull(request, registry, read_trust(public, threshold))
    _console.print(Text(done.reference, "bold"), "was pulled" if done.moved else "exists already")
    _console.print(f"called {Inputs(request.target, request.release).name}, its ID {done.id}")
    file = statement.file(f"{request.target.label}-{request.release.version}")
    options = "".join(f" --key={file}" for file in public)
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
    name = Inputs(request.target, request.release).name
    store = request.store()
    info = host.ensure_engine().image(name)
    if info and info.id in [id for known, id in provenance.recorded(store).items() if known == name]:
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
    return Trust({file: keys.read_public(Path(file)) for file in public}, threshold or 1)


def _pull(request: Request, registry: str, trusted: Trust) -> Transfer:
    repository = Repository(registry, request.target.label)
    return images.pull(
        request.target, request.release, repository, trusted, engine=host.ensure_engine(), store=request.store()
    )
