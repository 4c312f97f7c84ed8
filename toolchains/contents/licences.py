"""Read licences from packages' own files, as expressions of SPDX. Nothing is guessed.

Debian packages    the machine-readable form of debian/copyright: all licences that its stanzas name
Python packages    METADATA: License-Expression; License, if it is an identifier of SPDX; a classifier that names one
others             licences.toml, in which a person states what a package's file says; it counts for that file only

A name in a debian/copyright is translated if Debian defines it with the same meaning, or if it is an identifier of
SPDX. Any other one becomes a LicenseRef with the package's text.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterator, Mapping
from email.message import Message
from pathlib import Path

from license_expression import ExpressionError, get_spdx_licensing

from toolchains.config.reading import File, Text, convert, read_table, wrong
from toolchains.contents.component import Licence
from toolchains.system import paths

REVIEWED = Path(__file__).parent / "licences.toml"
UNKNOWN = "unknown: "
_OWN = "LicenseRef-"
_licensing = get_spdx_licensing()
# What SPDX lists, by lower case: Debian's BSD-3-clause is its BSD-3-Clause.
_LISTED = {
    name.lower(): name
    for name, symbol in _licensing.known_symbols.items()
    if not symbol.is_exception and not name.startswith(_OWN)
}
_GNU = re.compile(r"(A?GPL|LGPL|GFDL|GFDL-NIV)-([1-3](?:\.[1-3])?)(?:\.0)?(\+?)", re.IGNORECASE)
# An uncommon form, which is not taken apart.
_OPAQUE = re.compile(r"and/or|[,|()]")
_RECIPE = re.compile(r'^    license = "(.+)"$', re.MULTILINE)
_AND, _OR = re.compile(" (?:and|AND) "), re.compile(" (?:or|OR) ")
_FIELD = re.compile(r"([^\s:#][^\s:]*):[ \t]*(.*)")


class Review(File, frozen=True):
    """The licence of a package whose files do not state it by names, as a person read it.

    Attributes:
        licence: an expression of SPDX. A LicenseRef in it stands for all terms in the file that have no name in SPDX.
        file: the file that was read: of a Debian package its copyright file, of a wheel its name in .dist-info.
        sha256: of that file, in each version that was read.
    """

    licence: Text
    file: Text
    sha256: tuple[Text, ...]


class Reviews(File, frozen=True):
    """The reviewed licences, and names of licences that are not SPDX's own.

    Attributes:
        debian: by source package.
        python: by name.
        linked: programs that are linked with static archives, by recipe; the file is its link.sh.
        names: names in copyright files with one meaning, in lower case.
        exceptions: names of exceptions there, in lower case.
        classifiers: classifiers of Python packages that name one licence. Others name a family: "BSD License".
    """

    debian: Mapping[str, Review] = {}
    python: Mapping[str, Review] = {}
    linked: Mapping[str, Review] = {}
    names: Mapping[str, Text] = {}
    exceptions: Mapping[str, Text] = {}
    classifiers: Mapping[str, Text] = {}


@functools.cache
def reviews(path: Path = REVIEWED) -> Reviews:
    """Read the reviewed licences.

    Raises:
        PinError: the file is malformed, or has an expression that is not one of SPDX.
    """
    everything: Reviews = convert(read_table(path), Reviews, path)
    for table, entries in (("debian", everything.debian), ("python", everything.python), ("linked", everything.linked)):
        for name, review in entries.items():
            if errors := _unlisted(review.licence, own=True):
                raise wrong(path, f"{table}.{name}", "this is no expression of SPDX", errors)
    return everything


def of_debian_package(source: str, copyright: bytes) -> Licence:
    """Return the licence of a package.

    Args:
        source: the name of its source package.
        copyright: its copyright file.
    """
    stated = _machine_readable(source, copyright)
    return stated or _reviewed(reviews().debian.get(source), copyright, f"[debian.{source}]", "its copyright file")


def of_distribution(name: str, metadata: Message, files: Mapping[str, bytes]) -> Licence:
    """Return the licence of a Python package.

    Args:
        name: as METADATA has it, normalised.
        metadata: METADATA, or the PKG-INFO of a source distribution.
        files: the content of its files by their names: only those that may state a licence.
    """
    if stated := str(metadata["License-Expression"] or ""):
        return Licence(stated, "METADATA, License-Expression")
    stated = str(metadata["License"] or "").strip()
    if stated and not _unlisted(stated):
        return Licence(stated, "METADATA, License")
    classifiers = {str(classifier) for classifier in metadata.get_all("Classifier") or []}
    named = {classifier for classifier in classifiers if classifier.startswith("License ::")}
    if len(named) == 1 and (listed := reviews().classifiers.get(*named)):
        return Licence(listed, "METADATA, Classifier")
    review = reviews().python.get(name)
    return _reviewed(review, files.get(review.file, b"") if review else b"", f"[python.{name}]", "METADATA")


def of_linked(recipe: str, script: bytes) -> Licence:
    """Return the licence of a program that a recipe's script links."""
    return _reviewed(reviews().linked.get(recipe), script, f"[linked.{recipe}]", "its link.sh")


@functools.cache
def of_recipe(name: str) -> Licence:
    """Return the licence that a recipe states, or that its base class states for all of ours."""
    for recipe in (name, "native"):
        text = (paths.RECIPES / recipe / "conanfile.py").read_text(encoding="utf-8")
        if stated := _RECIPE.search(text):
            return Licence(stated[1], f"toolchains/recipes/{recipe}/conanfile.py")
    raise AssertionError("the base class states one")


def _reviewed(review: Review | None, content: bytes, entry: str, what: str) -> Licence:
    """Return what a person wrote of a file, if it is this one."""
    sha256 = hashlib.sha256(content).hexdigest()
    if review is None:
        why = f"{what} does not name it, and licences.toml has no {entry}"
        return Licence(origin=f"{UNKNOWN}{why}" + f" (sha256 {sha256})" * bool(content))
    if sha256 not in review.sha256:
        return Licence(origin=f"{UNKNOWN}{review.file} is not the one that was read for {entry} (sha256 {sha256})")
    own = sorted(key for key in _keys(review.licence) if key.startswith(_OWN))
    texts = tuple((reference, reference.removeprefix(_OWN), _decoded(content)) for reference in own)
    return Licence(review.licence, f"licences.toml, {entry}, from {review.file}", reviewed=True, texts=texts)


def _keys(expression: str) -> list[str]:
    """Return the identifiers in an expression."""
    keys: list[str] = _licensing.license_keys(_licensing.parse(expression, strict=True))
    return keys


def _unlisted(expression: str, *, own: bool = False) -> str:
    """Return why a text is no expression of SPDX; "" if it is one.

    Args:
        own: whether it may have a LicenseRef.
    """
    try:
        keys = set(_keys(expression))
    except ExpressionError as error:
        return str(error)
    refs = {key for key in keys if key.startswith(_OWN)}
    return ", ".join(sorted(keys - (set(_licensing.known_symbols) - refs) - (refs if own else set())))


def _decoded(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content.decode("latin-1")


def _machine_readable(source: str, copyright: bytes) -> Licence | None:
    """Return all licences that a machine-readable copyright file names; None for any other file."""
    stanzas = list(_stanzas(_decoded(copyright)))
    if not stanzas or not {"format", "format-specification"} & stanzas[0].keys():
        return None
    of_files = [stanza["license"] for stanza in stanzas if "files" in stanza and "license" in stanza]
    header = stanzas[0].get("license", "")
    stated = of_files + [header] * bool(header.partition("\n")[0].strip())
    names = [text.partition("\n")[0].strip() for text in stated]
    if not names or not all(names):
        return None
    bodies = {
        name: body
        for stanza in stanzas
        for name, _, body in [stanza.get("license", "").partition("\n")]
        if body.strip()
    }
    translated = _Translation(source, bodies)
    terms = {term for name in names for term in translated.terms(name)}
    origin = "debian/copyright, machine-readable"
    return Licence(" AND ".join(sorted(terms)), origin, texts=tuple(sorted(translated.texts.values())))


def _stanzas(text: str) -> Iterator[dict[str, str]]:
    """Yield a file's stanzas: fields with all their lines, by their names in lower case. Other lines are ignored."""
    stanza: dict[str, str] = {}
    field = ""
    for line in [*text.splitlines(), ""]:
        if not line.strip():
            if stanza:
                yield stanza
            stanza, field = {}, ""
        elif line[0] in " \t":
            if field:
                stanza[field] += "\n" + line.strip()
        elif match := _FIELD.match(line):
            field = match[1].lower()
            stanza[field] = match[2]


class _Translation:
    """Translates names of a copyright file, and keeps the texts of those that SPDX does not list."""

    def __init__(self, source: str, bodies: Mapping[str, str]) -> None:
        self._source = source
        self._bodies = bodies
        self.texts: dict[str, tuple[str, str, str]] = {}

    def terms(self, text: str) -> Iterator[str]:
        """Yield the licences that all apply, of a text such as "GPL-2+ or Artistic, and Expat"."""
        text = " ".join(text.split())
        # "and" goes before "or", except behind a comma.
        for part in text.split(", and "):
            if _OPAQUE.search(part):
                yield self._own(part)
                continue
            choices = [[self._name(name) for name in _AND.split(choice)] for choice in dict.fromkeys(_OR.split(part))]
            if len(choices) == 1:
                yield from choices[0]
            else:
                texts = [choice[0] if len(choice) == 1 else f"({' AND '.join(choice)})" for choice in choices]
                yield f"({' OR '.join(texts)})"

    def _name(self, name: str) -> str:
        plain, _, exception = name.partition(" with ")
        if listed := self._listed(plain):
            if not exception:
                return listed
            kind = exception.lower().removesuffix(" exception").strip()
            exceptions = reviews().exceptions
            if kind in exceptions and exception.lower().endswith(" exception"):
                return f"{listed} WITH {exceptions[kind]}"
        return self._own(name)

    def _listed(self, name: str) -> str:
        if match := _GNU.fullmatch(name):
            family, version, later = match[1].upper(), match[2], "or-later" if match[3] else "only"
            number = version if "." in version else f"{version}.0"
            free = "-no-invariants" if family == "GFDL-NIV" else ""
            identifier = f"{family.removesuffix('-NIV')}-{number}{free}-{later}"
            return identifier if identifier.lower() in _LISTED else ""
        return reviews().names.get(name.lower()) or _LISTED.get(name.lower(), "")

    def _own(self, name: str) -> str:
        """Return a LicenseRef, which belongs to this source package: others use the same name for other texts."""
        word = re.sub(r"[^A-Za-z0-9.]+", "-", f"{self._source}-{name.replace('+', '-or-later')}").strip("-")
        reference = f"{_OWN}{word}"
        self.texts[reference] = (reference, name, self._bodies.get(name, ""))
        return reference
