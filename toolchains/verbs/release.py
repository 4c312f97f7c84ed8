"""The verb release: print the version and what is new in it, or check that this commit can be released.

VERSION has the version of all packages, and CHANGELOG.md a section for each version, the newest first. The checks:

    the version         it is X.Y.Z, and its tag does not name another commit
    the commit          no file differs from it
    CHANGELOG.md        its first section is that of the version, has a date, and is not empty
    the locks           they agree with the pins, as for `pin --check`
    generated files     they are what the code writes
    the published IDs   they are of the inputs of this commit
    the wheels          all packages build, and have the version

CONTRIBUTING.md has the steps of a release.
"""

from __future__ import annotations

import email
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from toolchains.artifacts import plugin_wheels
from toolchains.cli import reference, tutorials
from toolchains.config import inventory, schema
from toolchains.fetch.store import Store
from toolchains.lockfile import lock
from toolchains.repro import expected
from toolchains.resolve import agreement, conan_lock
from toolchains.system import children, paths
from toolchains.system.errors import CheckError, FoundryError
from toolchains.verbs import ci as pipelines

CHANGELOG = paths.ROOT / "CHANGELOG.md"
_SECTION = re.compile(r"^## (?P<version>\S+) - (?P<date>.*)\n(?P<text>(?:(?!## ).*\n?)*)", re.MULTILINE)
_DATE = re.compile(r"\d{4}-\d\d-\d\d")


def release(*, check: bool) -> None:
    """Run the verb `release`; its help is in tasks.py.

    Raises:
        CheckError: this commit cannot be released, or CHANGELOG.md does not begin with the version.
    """
    if not check:
        section = _newest_section()
        print(f"{section['version']} - {section['date']}\n\n{section['text'].strip()}")
        return
    problems: list[str] = []
    for title, find in CHECKS.items():
        try:
            wrong = list(find())
        except FoundryError as error:
            wrong = [str(error)]
        print(f"{'wrong' if wrong else 'ok':5}  {title}", flush=True)
        problems += wrong
    version = plugin_wheels.version()
    if problems:
        raise CheckError(
            f"this commit cannot be released as {version}",
            why="\n".join(problems),
            next="correct this, then ./foundry release --check; CONTRIBUTING.md has the steps of a release",
        )
    print(f"this commit can be released as {version}, when .ci/run has passed. Then: git tag --annotate v{version}")


def wrong_version() -> Iterator[str]:
    """Yield what is wrong with the version."""
    version = plugin_wheels.version()
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        yield f"VERSION is {version!r}, which is not of the form 1.2.3"
        return
    tagged = _git("rev-list", "--max-count=1", f"refs/tags/v{version}") if _git("tag", "--list", f"v{version}") else ""
    if tagged not in ("", _git("rev-parse", "HEAD")):
        yield f"{version} was released already: the tag v{version} names the commit {tagged[:12]}; raise VERSION"


def uncommitted() -> Iterator[str]:
    """Yield which files differ from the commit."""
    if changed := _git("status", "--short").splitlines():
        yield f"{len(changed)} files are not committed, such as {changed[0].split(maxsplit=1)[1]}"


def wrong_changelog() -> Iterator[str]:
    """Yield what is wrong with the newest section of the changelog."""
    section = _newest_section()
    if not _DATE.fullmatch(section["date"]):
        yield f"the section of {section['version']} in CHANGELOG.md has no date, it says {section['date']!r}"
    if not section["text"].strip():
        yield f"the section of {section['version']} in CHANGELOG.md is empty"


def wrong_locks() -> Iterator[str]:
    """Yield how the locks and the pins disagree; files and the network are not asked."""
    for platform, locked in lock.load_all().items():
        wanted = inventory.load(platform)
        for disagreement in (*agreement.disagreements(locked, wanted), *agreement.contradictions(wanted)):
            yield f"{platform}, {disagreement}: ./foundry pin --check"
    yield from conan_lock.disagreements(lock.load())


def stale() -> Iterator[str]:
    """Yield the generated files that are not what the code writes, with the command that writes them."""
    locked = expected.due(lock.everything())
    texts: dict[str, Mapping[Path, str]] = {
        "python -m toolchains.cli.reference": reference.files(),
        "python -m toolchains.cli.tutorials": tutorials.pages(),
        "python -m toolchains.config.schema": {paths.SCHEMAS / name: text for name, text in schema.schemas().items()},
    }
    for system in (*pipelines.SYSTEMS, pipelines.BAKE):
        texts[f"./foundry ci --write={system}"] = {pipelines.place(system): pipelines.text(system, locked)}
    for command, files in texts.items():
        for path, text in files.items():
            if not path.is_file() or path.read_text(encoding="utf-8") != text:
                yield f"{path.relative_to(paths.ROOT)} is not current: {command}"


def unpublished() -> Iterator[str]:
    """Yield the images whose IDs are not published, or not for the inputs of this commit."""
    for image in expected.stale(expected.load(), lock.everything()):
        yield f"toolchains/{paths.EXPECTED.name} is not current for {image}: {expected.UPDATE}"


def wrong_wheels() -> Iterator[str]:
    """Build the wheels of all packages, and yield those with another version."""
    version = plugin_wheels.version()
    with TemporaryDirectory(dir=paths.scratch()) as work:
        for name in plugin_wheels.names():
            with zipfile.ZipFile(plugin_wheels.wheel(name, Store(Path(work))).path) as wheel:
                (file,) = [file for file in wheel.namelist() if file.endswith(".dist-info/METADATA")]
                stated = email.message_from_bytes(wheel.read(file))["Version"]
            if stated != version:
                yield f"the wheel of backends/{name} has version {stated}, and VERSION is {version}"


CHECKS: Mapping[str, Callable[[], Iterator[str]]] = {
    "the version": wrong_version,
    "the commit": uncommitted,
    "CHANGELOG.md": wrong_changelog,
    "the locks": wrong_locks,
    "generated files": stale,
    "the published IDs": unpublished,
    "the wheels": wrong_wheels,
}


def _newest_section() -> re.Match[str]:
    version, section = plugin_wheels.version(), _SECTION.search(CHANGELOG.read_text(encoding="utf-8"))
    if section is None or section["version"] != version:
        raise CheckError(
            f"the first section of CHANGELOG.md is not that of {version}", next=f"begin it: ## {version} - unreleased"
        )
    return section


def _git(*words: str) -> str:
    return children.run(["git", "-C", paths.ROOT, *words], log="release-git").stdout.strip()
