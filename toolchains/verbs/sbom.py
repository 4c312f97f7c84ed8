"""The verb sbom: write what an image, a wheel or a native part consists of, or show the licences of it."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from rich.text import Text

from toolchains.assembly import image_contents
from toolchains.assembly.request import Request
from toolchains.assembly.target_image import Inputs
from toolchains.config import platforms
from toolchains.contents.component import Component
from toolchains.contents.documents import ENDINGS, WRITERS
from toolchains.lockfile import lock
from toolchains.system import document, durable, foreign
from toolchains.system.console import Console
from toolchains.system.document import ShownDocument
from toolchains.system.errors import CheckError, UsageError, suggestion

_console = Console(highlight=False, soft_wrap=True)
Reading = Callable[[str], Request]
_REVIEWED = "toolchains/contents/licences.toml"


def sbom(what: str, read: Reading, *, part: str, form: str, output: str) -> None:
    """Write the document about an image, a wheel or a native part.

    Raises:
        UsageError: there is no such target, part or format, or the wheel has no document.
    """
    if not what:
        raise UsageError("sbom needs a target or a wheel", next="./foundry sbom TARGET")
    if document.is_asked():
        raise UsageError("--json is for --licences", why="without it, sbom prints JSON", next="leave --json out")
    if form not in WRITERS:
        raise UsageError(f"there is no format {form}{suggestion(form, list(WRITERS))}", next="--format=cyclonedx")
    is_wheel = what.endswith(".whl")
    content = _in_wheel(Path(what), form) if is_wheel else WRITERS[form](describe(read(what), part))
    if output:
        durable.write(Path(output), content.decode())
        _console.print(f"written to {output}")
    else:
        sys.stdout.write(content.decode())


def describe(request: Request, part: str = "") -> Component:
    """Return a target's image, or one of its native parts, as a component."""
    if part:
        return image_contents.part(request.target, request.release, part, store=request.store())
    store, checked = request.store(), None
    if request.given:
        from toolchains.sdk import supplied

        checked = supplied.check_given_sdk(request.target, request.given, store)
    return image_contents.image(Inputs(request.target, request.release, checked, request.sourced()), store)


class Licensed(msgspec.Struct, frozen=True):
    """A component of an image.

    Attributes:
        name: the package or the part.
        version: its version.
        licence: an expression of SPDX; "" if it is unknown.
        origin: where the licence is stated, or why it is unknown.
    """

    name: str
    version: str
    licence: str
    origin: str


class Licences(ShownDocument, kw_only=True, tag="sbom --licences"):
    """The licences of targets' components: `sbom --licences`.

    Attributes:
        targets: the targets.
        components: what is in their images, each once.
    """

    targets: list[str]
    components: list[Licensed]

    def render(self, console: Console) -> None:
        by_licence: dict[str, set[str]] = {}
        for component in self.components:
            by_licence.setdefault(component.licence or "unknown", set()).add(component.name)
        for expression, names in sorted(by_licence.items()):
            console.print(Text(expression, "bold"))
            console.print(Text(f"    {', '.join(sorted(names))}"))


def licences(what: str, read: Reading) -> None:
    """Show each licence in a target's image, or in those of all targets that are proven, with what has it.

    Raises:
        CheckError: the licence of a component is unknown.
    """
    names = [what] if what else [target.name for target in lock.load(platform=platforms.here()).proven()]
    contained: dict[str, Component] = {}
    for name in names:
        contained |= {component.reference: component for component in describe(read(name)).contained()}
    found = [
        Licensed(component.name, component.version, component.licence.expression, component.licence.origin)
        for component in contained.values()
    ]
    document.show(Licences(targets=names, components=found))
    unknown = [component for component in found if not component.licence]
    if unknown:
        raise CheckError(
            f"the licence of {len(unknown)} of {len(contained)} components is unknown",
            why="\n".join(f"{component.name} {component.version}: {component.origin}" for component in unknown),
            next=f"read the file that states it, and add an entry with its sha256 to {_REVIEWED}",
        )


def _in_wheel(wheel: Path, form: str) -> bytes:
    """Return the document in a wheel."""
    if not wheel.is_file():
        raise UsageError(f"there is no file {wheel}")
    with foreign.open_file(wheel) as file, zipfile.ZipFile(file) as archive:
        names: Sequence[str] = [
            name for name in archive.namelist() if "/sboms/" in name and name.endswith(ENDINGS[form])
        ]
        if len(names) != 1:
            raise UsageError(
                f"{wheel.name} has no document in the format {form}",
                why="only the wheels that Foundry makes have one: those of `wheel`, and those in images",
            )
        with archive.open(names[0]) as member:
            return foreign.read(member, foreign.TEXT, f"{names[0]} in {wheel.name}")
