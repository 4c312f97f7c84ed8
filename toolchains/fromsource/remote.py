"""Push packages to a Conan remote and pull them, so that a project compiled on one machine need not be compiled again.

    push    send parts in the store to any remote that Conan 2 can write to
    pull    fetch the parts that this checkout would build from a remote into the store

How a part is pulled:
    1. Conan computes, from this checkout's recipe and options, the recipe revision and the package_id of a build here:
       they cover commit, patches, image, presets and compiler. No data from the remote is used
    2. the remote is asked for exactly these two; a package with another name cannot be taken
    3. the arrived package must match its manifest, and its own description must hash to the package_id
    4. it is repacked as a build would pack it, and is stored under the same name

Only the remote guarantees that the files result from those options: its checksums are stored next to the files. A user
who trusts the machine that built them, and not the remote, compares with the sha256 that `cache push` printed on that
machine: --expect.

Conan runs in a container of the locked builder, with the network of the engine's machine. The network is allowed
because Conan moves finished packages and compiles nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
import posixpath
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any
from urllib.parse import urlsplit

from toolchains.archives import folders
from toolchains.artifacts import native
from toolchains.engine.client import Engine
from toolchains.engine.container import Container
from toolchains.fetch.store import Store
from toolchains.fromsource.build import BASE, Wanted
from toolchains.fromsource.conan import PROFILE, Conan, option_words
from toolchains.system import children, paths
from toolchains.system.errors import AbsentError, CommandError, FetchError, HashMismatchError, PinError, UsageError
from toolchains.system.steps import step

# Conan's name of the remote; CONAN_PASSWORD_FOUNDRY is for this remote only.
REMOTE = "foundry"
# Conan's own variables, for every remote, or for one if a remote's name is appended.
USER, PASSWORD = "CONAN_LOGIN_USERNAME", "CONAN_PASSWORD"
_CERTIFICATES = "/foundry/certificates.pem"
# The variables that may name a file of certificates, in order of precedence.
_BUNDLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")
_TAIL_LINES = 20
_SET_USER = f"set {USER} and {PASSWORD}; for this remote only, {USER}_{REMOTE.upper()} and so on"
# For each refusal of a remote: a pattern of Conan's message, what the remote does, and what helps.
_REFUSALS = (
    (
        "Unable to connect to remote",
        "does not answer",
        "check that the remote runs, and that the engine's machine can reach it",
    ),
    ("Wrong user or password", "does not accept this user with this password", _SET_USER),
    ("interactive mode disabled|Found password in env-var", "asks for a user and a password", _SET_USER),
    ("Permission denied for user|Forbidden", "does not permit this user to do that", _SET_USER),
)


@dataclass(frozen=True)
class Package:
    """The identity of a package on a remote.

    Attributes:
        reference: "upmem-llvm/13.0.1".
        recipe: the recipe's revision.
        id: Conan's package_id, over settings, options and requirements.
    """

    reference: str
    recipe: str
    id: str

    def __str__(self) -> str:
        return f"{self.reference}#{self.recipe}:{self.id}"


@dataclass(frozen=True)
class Moved:
    """A part that is now both on the remote and in the store.

    Attributes:
        name: of the project.
        package: None if Conan was not run.
        sha256: of NAME.tar, the part's files.
        moved: False if it was there before.
    """

    name: str
    package: Package | None
    sha256: str
    moved: bool


def push(want: Wanted, url: str, *, store: Store, engine: Engine, network: str = "host") -> Moved:
    """Send a part in the store to a remote, with the recipes that are needed to read it.

    Raises:
        AbsentError: the store does not have it.
        FetchError: the remote does not answer, or refuses to write.
        PinError: the part was built from another recipe than this checkout's.
    """

    def absent(_: Path) -> None:
        raise AbsentError(
            f"the store has no {want.reference} as this checkout would build it",
            why=f"parts/upstream/{want.identity} is not in {store.root}",
            next=f"./foundry upstream --build={want.name}, which builds it",
        )

    folder = store.part("upstream", want.identity, absent)
    with step(f"push {want.reference}"), _connected(want, url, store, engine, network) as conan:
        package = conan.package(want)
        conan.restore(folder / f"{want.name}.tgz", package)
        for reference in (conan.base, *(project.reference for project in want.all_required)):
            conan.upload(reference, "--only-recipe")
        moved = conan.upload(str(package))
    return Moved(want.name, package, _sha256(folder / f"{want.name}.tar"), moved)


def pull(want: Wanted, url: str, *, sha256: str = "", store: Store, engine: Engine, network: str = "host") -> Moved:
    """Ensure that the store has the part; fetch it from a remote if necessary. Nothing is built.

    Args:
        sha256: the expected sha256 of NAME.tar; not compared if empty.

    Raises:
        AbsentError: the remote does not have the package that this checkout would build.
        HashMismatchError: the package that arrived is damaged, is not the named one, or has another sha256.
        FetchError: the remote does not answer, or refuses to read.
    """
    stored, package = store.has_part("upstream", want.identity), None

    def bring(folder: Path) -> None:
        nonlocal package
        with step(f"pull {want.reference}"), _connected(want, url, store, engine, network) as conan:
            package = conan.package(want)
            conan.download(package)
            conan.extract(str(package), folder)
        _compare(folder / f"{want.name}.tar", sha256, want)

    tar = store.part("upstream", want.identity, bring) / f"{want.name}.tar"
    if stored:
        _compare(tar, sha256, want)
    return Moved(want.name, package, _sha256(tar), not stored)


def _compare(tar: Path, sha256: str, want: Wanted) -> None:
    actual = _sha256(tar)
    if sha256 and actual != sha256.lower():
        raise HashMismatchError(
            f"{want.reference} does not have the sha256 that was asked for",
            why=f"sha256 {actual}\nasked  {sha256.lower()}",
            next=f"find out which of the two is right; to build it here: ./foundry upstream --build={want.name}",
        )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _connected(want: Wanted, url: str, store: Store, engine: Engine, network: str) -> Iterator[_Client]:
    """Yield Conan in a container, with this checkout's recipes and one remote."""
    check_remote_url(url)
    image = native.builder_image(want.builder, store=store, engine=engine)
    with engine.container(image, network=network) as container:
        yield _Client(container, url, want)


def check_remote_url(url: str) -> None:
    """Check that this address can be a remote's, before anything is done.

    Raises:
        UsageError: it cannot; or it has a password, which would get into logs. The message does not repeat it.
    """
    parts = urlsplit(url)
    if parts.username or parts.password:
        raise UsageError(
            f"the address of the remote {parts.hostname} has a user or a password in it",
            why="addresses are printed, and written into logs",
            next=f"leave it out, and set {USER} and {PASSWORD}",
        )
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"not the address of a Conan remote: {url!r}", next="--remote=http://HOST:9300")


def passed_environment() -> dict[str, str]:
    """Return the variables for programs that use a network: proxies, and the user's name and password for remotes."""
    named = {name: value for name, value in os.environ.items() if name.startswith((USER, PASSWORD))}
    return children.connection() | named


class _Client(Conan):
    """Conan with one remote, and with the recipes of a project and of those that it requires; it keeps a log."""

    def __init__(self, container: Container, url: str, want: Wanted) -> None:
        super().__init__(container, passed_environment())
        self._url = url
        self._log = paths.LOGS / f"cache-{want.name}.log"
        self._log.parent.mkdir(parents=True, exist_ok=True)
        self._log.write_text("")
        bundles = (Path(os.environ[name]) for name in _BUNDLES if name in os.environ)
        bundle = next((file.resolve() for file in bundles if file.is_file()), None)
        if bundle:
            container.copy_into(bundle, _CERTIFICATES)
            self.environment["REQUESTS_CA_BUNDLE"] = _CERTIFICATES
        self.call("remote", "add", REMOTE, url, "--force")
        self.base = self.export(BASE)
        for project in (*want.all_required, want):
            self.export(project.name, project.profile.version)

    def package(self, want: Wanted) -> Package:
        """Return the identity that a build of this checkout has on a remote."""
        words = ["--requires", want.reference, "--profile:all", PROFILE, "--no-remote", "--format", "json"]
        for project in (*want.all_required, want):
            words += option_words(f"{project.name}/*", project.options)
        nodes = json.loads(self.call("graph", "info", *words))["graph"]["nodes"].values()
        (node,) = (node for node in nodes if node["name"] == want.name)
        return Package(want.reference, node["rrev"], node["package_id"])

    def restore(self, archive: Path, expected: Package) -> None:
        """Load the output of `conan cache save` into the cache.

        Raises:
            PinError: it is another package.
        """
        # Not copy_into, which holds a file in memory.
        with NamedTemporaryFile(prefix="foundry-", dir=paths.scratch()) as file:
            folders.write_tar(file, {"restored.tgz": archive})
            file.flush()
            self.container.put(Path(file.name), "/foundry")
        self.call("cache", "restore", "/foundry/restored.tgz")
        if self._run("cache", "path", str(expected))[0] != 0:
            raise PinError(
                f"{archive} is not the package that this checkout makes",
                why=f"it has no {expected}",
                next=f"remove {archive.parent} and build it again",
            )

    def upload(self, reference: str, *options: str) -> bool:
        """Send a recipe, or with a package_id also a package, to the remote; return whether the remote lacked it.

        A remote identifies a package by its manifest, which is sent last, so a process that is killed before leaves
        nothing that can be downloaded. But if the remote fails at one file, Conan continues with the next, and would
        then take the incomplete upload for the package forever. So an incomplete upload is removed.
        """
        try:
            answer = json.loads(self._ask("upload", reference, "-r", REMOTE, "--confirm", "--format", "json", *options))
        except FetchError:
            if ":" in reference:
                listed = json.loads(self.call("list", f"{reference}#latest", "--cache", "--format", "json"))
                while "packages" not in listed:
                    listed = next(iter(listed.values()))
                (package,) = listed["packages"].values()
                (revision,) = package["revisions"]
                self._run("remove", f"{reference}#{revision}", "-r", REMOTE, "--confirm")
            raise
        return any(_uploaded(answer[REMOTE]))

    def download(self, wanted: Package) -> None:
        """Download a package from the remote into the cache, with all checks that do not rely on the remote.

        Raises:
            AbsentError: the remote does not have it.
            HashMismatchError: it is damaged, or its settings and options are not those of its package_id.
        """
        answer = json.loads(self._ask("list", f"{wanted}#latest", "-r", REMOTE, "--format", "json"))[REMOTE]
        if "error" in answer:
            self._refuse(answer["error"])
            raise AbsentError(
                f"{self._url} does not have {wanted.reference} as this checkout would build it",
                why=f"{answer['error']}\nasked for {wanted}",
                next="build it (--from-source), then ./foundry cache push; or pull in the checkout it was pushed from",
            )
        self._ask("download", str(wanted), "-r", REMOTE)
        damaged, _, text = self._run("cache", "check-integrity", str(wanted))
        # The package_id is the SHA-1 of the package's own description of its settings, options and requirements.
        notes = posixpath.join(self.call("cache", "path", str(wanted)).strip(), "conaninfo.txt")
        claimed = self.container.call(["sha1sum", notes]).split()[0]
        if damaged or claimed != wanted.id:
            raise HashMismatchError(
                f"{self._url} has something else under the name of {wanted.reference}",
                why=_tail(text) if damaged else f"asked for package_id {wanted.id}\nit is of {claimed}",
                next="remove it there, and on a machine that built it: ./foundry cache push",
            )

    def call(self, *words: str) -> str:
        status, stdout, text = self._run(*words)
        if status != 0:
            raise CommandError(
                f"conan {' '.join(words[:2])} failed with exit status {status}",
                why=f"{_tail(text)}\n(whole output: {self._log})",
            )
        return stdout

    def _ask(self, *words: str) -> str:
        """Run Conan with the remote; return stdout.

        Raises:
            FetchError: the remote refused; the error has the reason.
        """
        status, stdout, text = self._run(*words)
        if status != 0:
            self._refuse(text)
            raise FetchError(
                f"{self._url}: conan {words[0]} failed",
                why=f"{_tail(text)}\n(whole output: {self._log})",
                next="the same command again; nothing that came or went half is used",
            )
        return stdout

    def _run(self, *words: str) -> tuple[int, str, str]:
        """Run Conan; return its status, its stdout, and its stdout with stderr, without passwords."""
        done = self.container.run(
            ["conan", *words, "-cc", "core:non_interactive=True"] if words[0] != "cache" else ["conan", *words],
            env=self.environment,
        )
        text = done.stderr + done.stdout
        for name, value in self.environment.items():
            if name.startswith(PASSWORD) and value:
                text = text.replace(value, "******")
        with self._log.open("a") as file:
            print(f"$ conan {' '.join(words)}\n{text}[exit status {done.status}]", file=file)
        return done.status, done.stdout, text

    def _refuse(self, text: str) -> None:
        """Raise the error for a refusal of the remote, if Conan's text has a known reason."""
        # Conan's error message, without the progress before it and the advice after it.
        errors = [line.partition("ERROR: ")[2] for line in text.splitlines() if "ERROR: " in line]
        why = "\n".join(errors or text.strip().splitlines()[:1])
        for pattern, what, advice in _REFUSALS:
            if re.search(pattern, text):
                raise FetchError(f"{self._url} {what}", why=why, next=advice)


def _tail(text: str) -> str:
    return "\n".join([line for line in text.splitlines() if line.strip()][-_TAIL_LINES:])


def _uploaded(answer: Mapping[str, Any]) -> Iterator[bool]:
    """Yield for each revision, of a recipe or a package, whether it was sent: each "upload" in Conan's answer."""
    for key, value in answer.items():
        if key == "upload":
            yield bool(value)
        elif isinstance(value, Mapping):
            yield from _uploaded(value)
