"""What an artifact consists of: a component with its parts, what it derives from, and what it was built with.

documents.py writes a document about any component: an image, a wheel, a native part.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from packageurl import PackageURL

from toolchains.lockfile.lock import digest
from toolchains.patching.series import Series
from toolchains.system import paths

# The revision of what the documents in wheels say: raise it whenever that changes. It is part of wheels' identities.
FORMAT = 1
# Names that we give to properties in a document begin with this.
PREFIX = "triton-foundry:"
# The names of documents are derived from this one and from their content.
_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "triton-foundry")

Kind = Literal["image", "deb", "wheel", "sdist", "native", "program", "source"]


@dataclass(frozen=True)
class Licence:
    """The licence of a component.

    Attributes:
        expression: of SPDX, such as "MIT OR Apache-2.0"; "" if it is unknown.
        origin: where it was read, or why it is unknown.
        reviewed: whether a person concluded it from the package's files; otherwise the package declares it.
        texts: for each LicenseRef in the expression its name in the package, and its text.
    """

    expression: str = ""
    origin: str = ""
    reviewed: bool = False
    texts: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True)
class AppliedPatch:
    """A patch that a component has: its path in this repository, and the sha256 of that file."""

    path: str
    sha256: str


@dataclass(frozen=True)
class Component:
    """Something that an artifact consists of, or an artifact itself.

    Attributes:
        kind: its kind; "source" is what something else was made from.
        name, version: as its own archive calls it.
        purl: its package URL, if it has one.
        sha256: of its file, if it is a file that the lock names.
        commit: of git, of what was compiled.
        ancestors: what it was made from.
        patches: what was changed in its ancestor, in order.
        parts: what is in it.
        tools: what it was built with; that is not in it.
        properties: further facts, each as a name and a value; a name may occur several times.
    """

    kind: Kind
    name: str
    version: str
    licence: Licence = Licence()
    purl: str = ""
    sha256: str = ""
    commit: str = ""
    ancestors: tuple[Component, ...] = ()
    patches: tuple[AppliedPatch, ...] = ()
    parts: tuple[Component, ...] = ()
    tools: tuple[Component, ...] = ()
    properties: tuple[tuple[str, str], ...] = ()

    @property
    def reference(self) -> str:
        """Return its name in a document; components with the same one are the same."""
        return self.purl or f"{self.kind}:{self.name}@{self.version}"

    @property
    def serial(self) -> uuid.UUID:
        """Return the number of the document about it: another one if anything is different."""
        return uuid.uuid5(_NAMESPACE, digest(asdict(self)))

    def contained(self) -> Iterator[Component]:
        """Yield all that is in it, at any depth, each component once."""
        seen: set[str] = set()
        pending = list(reversed(self.parts))
        while pending:
            each = pending.pop()
            if each.reference not in seen:
                seen.add(each.reference)
                yield each
                pending += reversed(each.parts)


def purl(kind: str, name: str, version: str, *, namespace: str = "", **qualifiers: str) -> str:
    """Return a package URL; the kinds are those of its specification: deb, pypi, github."""
    return PackageURL(kind, namespace or None, name, version, qualifiers or None).to_string()


def properties(**values: str | Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return properties: one for each text, and one for each element of a sequence; empty ones are left out."""
    pairs = [
        (name.replace("_", "-"), text)
        for name, value in values.items()
        for text in ((value,) if isinstance(value, str) else value)
    ]
    return tuple((name, text) for name, text in pairs if text)


def patches(series: Series) -> tuple[AppliedPatch, ...]:
    """Return the patches of a series."""
    files = [series.folder / patch.name for patch in series.patches]
    return tuple(
        AppliedPatch(f"patches/{file.relative_to(paths.PATCHES)}", hashlib.sha256(file.read_bytes()).hexdigest())
        for file in files
    )
