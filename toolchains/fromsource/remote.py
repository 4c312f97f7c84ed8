"""Packages to and from a Conan remote, so that what one machine compiled for an hour no other has to compile.

    push    parts that the store has, to any remote that Conan 2 can write to
    pull    the parts that this checkout would build, from a remote into the store

How a part is pulled:
    1. Conan computes, from this checkout's recipe and options, the recipe revision and the package_id that a build here
       would have: they cover commit, patches, image, presets and compiler. Nothing of the remote's goes into that
    2. the remote is asked for exactly these two; what it has for anything else cannot be taken
    3. what arrives must be whole by its manifest, and what it says of itself must hash to the package_id
    4. it is repacked as a build would pack it, and enters the store under the same name

Whether the files are what those options give is the remote's word: its checksums lie beside the files. Whoever trusts
the machine that built them and not the remote compares with the sha256 that `cache push` printed there: --expect.

Conan runs in a container of the locked builder, with the network of the engine's machine. It may have one because it
moves finished packages and compiles nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
import posixpath
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
from toolchains.fromsource import conan_package
from toolchains.fromsource.build import BASE, Wanted
from toolchains.system import children, paths
from toolchains.system.errors import AbsentError, CommandError, FetchError, HashMismatchError, PinError, UsageError
from toolchains.system.steps import step

# What Conan calls the remote; CONAN_PASSWORD_FOUNDRY is for it alone.
REMOTE = "foundry"
# Conan's own variables, for every remote or with a remote's name behind.
USER, PASSWORD = "CONAN_LOGIN_USERNAME", "CONAN_PASSWORD"
_CERTIFICATES = "/foundry/certificates.pem"
_RECIPES = "/foundry/recipes"
_PROFILE = "/foundry/cmake/upstream.profile"
# Which of the variables that name a file of certificates is asked first.
_BUNDLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")
_TAIL_LINES = 20


@dataclass(frozen=True)
class Package:
    """What a remote knows a package by.

    Attributes:
        reference: "upmem-llvm/13.0.1".
        recipe: the recipe's revision.
        id: Conan's package_id, over settings, options and what is required.
    """

    reference: str
    recipe: str
    id: str

    def __str__(self) -> str:
        return f"{self.reference}#{self.recipe}:{self.id}"


@dataclass(frozen=True)
class Moved:
    """A part that is now at both ends.

    Attributes:
        name: of the project.
        package: None where Conan was not even asked.
        sha256: of NAME.tar, the files that the part consists of.
        moved: False if it was there before.
    """

    name: str
    package: Package | None
    sha256: str
    moved: bool


def push(want: Wanted, url: str, *, store: Store, engine: Engine, network: str = "host") -> Moved:
    """Give a remote the part that the store has, with the recipes that are needed to read it.

    Raises:
        AbsentError: the store does not have it.
        FetchError: the remote does not answer, or does not let us write.
        PinError: the part was made from another recipe than this checkout's.
    """
    folder = _part(want, store)
    with step(f"push {want.reference}"), _connected(want, url, store, engine, network) as conan:
        found = conan.package(want)
        conan.restore(folder / f"{want.name}.tgz", found)
        for reference in (conan.base, *(each.reference for each in want.all_required)):
            conan.upload(reference, "--only-recipe")
        moved = conan.upload(str(found))
    return Moved(want.name, found, _sha256(folder / f"{want.name}.tar"), moved)


def pull(want: Wanted, url: str, *, sha256: str = "", store: Store, engine: Engine, network: str = "host") -> Moved:
    """Have the part in the store, from a remote if it is not there; nothing is built.

    Args:
        sha256: that NAME.tar must have; not compared if empty.

    Raises:
        AbsentError: the remote does not have the package that this checkout would build.
        HashMismatchError: what arrived is damaged, is not what it is named, or has another sha256.
        FetchError: the remote does not answer, or does not let us read.
    """
    there, found = store.has_part("upstream", want.identity), None

    def bring(folder: Path) -> None:
        nonlocal found
        with step(f"pull {want.reference}"), _connected(want, url, store, engine, network) as conan:
            found = conan.package(want)
            conan.download(found)
            conan_package.extract_package(conan.container, str(found), folder, conan.environment)
        _compare(folder / f"{want.name}.tar", sha256, want)

    tar = store.part("upstream", want.identity, bring) / f"{want.name}.tar"
    if there:
        _compare(tar, sha256, want)
    return Moved(want.name, found, _sha256(tar), not there)


def _part(want: Wanted, store: Store) -> Path:
    def absent(_: Path) -> None:
        raise AbsentError(
            f"the store has no {want.reference} as this checkout would build it",
            why=f"parts/upstream/{want.identity} is not in {store.root}",
            next=f"./foundry upstream --build={want.name}, which builds it",
        )

    return store.part("upstream", want.identity, absent)


def _compare(tar: Path, sha256: str, want: Wanted) -> None:
    found = _sha256(tar)
    if sha256 and found != sha256.lower():
        raise HashMismatchError(
            f"{want.reference} does not have the sha256 that was asked for",
            why=f"sha256 {found}\nasked  {sha256.lower()}",
            next=f"find out which of the two is right; to build it here: ./foundry upstream --build={want.name}",
        )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _connected(want: Wanted, url: str, store: Store, engine: Engine, network: str) -> Iterator[Conan]:
    """Conan in a container, with this checkout's recipes and one remote."""
    check_remote_url(url)
    image = native.builder_image(want.builder, store=store, engine=engine)
    with engine.container(image, network=network) as container:
        yield Conan(container, url, want)


def check_remote_url(url: str) -> None:
    """See that this can be a remote, before anything is done.

    Raises:
        UsageError: it cannot, or it has a password in it, which would end up in logs. The message does not repeat it.
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


class Conan:
    """Conan in a container, whose cache has this checkout's recipes and nothing else.

    Args:
        url: of the one remote.
        want: the project whose recipe, and whose required projects' recipes, are exported there.
    """

    def __init__(self, container: Container, url: str, want: Wanted) -> None:
        self.container = container
        self._url = url
        self.environment = passed_environment() | {"CONAN_HOME": "/foundry/conan", "LC_ALL": "C.UTF-8"}
        self._log = paths.LOGS / f"cache-{want.name}.log"
        self._log.parent.mkdir(parents=True, exist_ok=True)
        self._log.write_text("")
        bundles = (Path(os.environ[name]) for name in _BUNDLES if name in os.environ)
        bundle = next((file.resolve() for file in bundles if file.is_file()), None)
        if bundle:
            container.copy_into(bundle, _CERTIFICATES)
            self.environment["REQUESTS_CA_BUNDLE"] = _CERTIFICATES
        self._call("remote", "add", REMOTE, url, "--force")
        self.base = self._export(BASE)
        for each in (*want.all_required, want):
            self._export(each.name, each.profile.version)
        container.copy_into(paths.CMAKE / posixpath.basename(_PROFILE), _PROFILE)

    def package(self, want: Wanted) -> Package:
        """What a build of this checkout would be called by a remote."""
        options = [(each.name, *option) for each in (*want.all_required, want) for option in each.options.items()]
        text = self._call(
            "graph",
            "info",
            "--requires",
            want.reference,
            "--profile:all",
            _PROFILE,
            "--no-remote",
            "--format",
            "json",
            *(word for name, key, value in options for word in ("-o", f"{name}/*:{key}={value}")),
        )
        nodes = json.loads(text)["graph"]["nodes"].values()
        (node,) = (node for node in nodes if node["name"] == want.name)
        return Package(want.reference, node["rrev"], node["package_id"])

    def restore(self, archive: Path, expected: Package) -> None:
        """Take in what `conan cache save` wrote.

        Raises:
            PinError: it is not this package.
        """
        with NamedTemporaryFile(prefix="foundry-", dir=paths.scratch()) as file:
            folders.write_tar(file, {"restored.tgz": archive})
            file.flush()
            self.container.put(Path(file.name), "/foundry")
        self._call("cache", "restore", "/foundry/restored.tgz")
        if self._run("cache", "path", str(expected))[0] != 0:
            raise PinError(
                f"{archive} is not the package that this checkout makes",
                why=f"it has no {expected}",
                next=f"remove {archive.parent} and build it again",
            )

    def upload(self, reference: str, *options: str) -> bool:
        """Give the remote a recipe, or with a package_id a package too; returns whether it did not have it.

        A remote knows a package by its manifest, which goes last: who is killed in between leaves nothing that could be
        downloaded. But where the remote fails at one file Conan goes on with the next, and would take what is there
        then for the package, now and ever after. So that is removed again.
        """
        try:
            answer = json.loads(self._ask("upload", reference, "-r", REMOTE, "--confirm", "--format", "json", *options))
        except FetchError:
            if ":" in reference:
                self._run("remove", f"{reference}#{self._revision(reference)}", "-r", REMOTE, "--confirm")
            raise
        return any(_uploaded(answer[REMOTE]))

    def _revision(self, package: str) -> str:
        """The revision of a package in the cache: Conan's digest of its files."""
        found = json.loads(self._call("list", f"{package}#latest", "--cache", "--format", "json"))
        while "packages" not in found:
            found = next(iter(found.values()))
        (entry,) = found["packages"].values()
        (revision,) = entry["revisions"]
        return str(revision)

    def download(self, wanted: Package) -> None:
        """Have a package of the remote's in the cache, checked as far as that goes without trusting the remote.

        Raises:
            AbsentError: the remote does not have it.
            HashMismatchError: it is not whole, or its settings and options are not those of its package_id.
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
        # The package_id is the SHA-1 of what the package says of its settings, options and requirements.
        notes = posixpath.join(self._call("cache", "path", str(wanted)).strip(), "conaninfo.txt")
        claimed = self.container.call(["sha1sum", notes]).split()[0]
        if damaged or claimed != wanted.id:
            raise HashMismatchError(
                f"{self._url} has something else under the name of {wanted.reference}",
                why=self._tail(text) if damaged else f"asked for package_id {wanted.id}\nit is of {claimed}",
                next="remove it there, and on a machine that built it: ./foundry cache push",
            )

    def _export(self, recipe: str, version: str = "") -> str:
        """Take a recipe of this checkout into the cache; returns its reference."""
        file = f"{_RECIPES}/{recipe}/conanfile.py"
        self.container.copy_into(paths.RECIPES / recipe / "conanfile.py", file)
        text = self._call("export", file, "--format", "json", *(["--version", version] if version else []))
        return str(json.loads(text)["reference"]).partition("#")[0]

    def _call(self, *words: str) -> str:
        """Conan on its own cache; returns stdout."""
        status, stdout, text = self._run(*words)
        if status != 0:
            raise CommandError(
                f"conan {' '.join(words[:2])} failed with exit status {status}",
                why=f"{self._tail(text)}\n(whole output: {self._log})",
            )
        return stdout

    def _ask(self, *words: str) -> str:
        """Conan with the remote; returns stdout.

        Raises:
            FetchError: says what the remote refused.
        """
        status, stdout, text = self._run(*words)
        if status != 0:
            self._refuse(text)
            raise FetchError(
                f"{self._url}: conan {words[0]} failed",
                why=f"{self._tail(text)}\n(whole output: {self._log})",
                next="the same command again; nothing that came or went half is used",
            )
        return stdout

    def _run(self, *words: str) -> tuple[int, str, str]:
        """Status, stdout, and stdout with stderr, without passwords."""
        done = self.container.run(
            ["conan", *words, "-cc", "core:non_interactive=True"] if words[0] != "cache" else ["conan", *words],
            env=self.environment,
        )
        text = self._hidden(done.stderr + done.stdout)
        with self._log.open("a") as file:
            print(f"$ conan {' '.join(words)}\n{text}[exit status {done.status}]", file=file)
        return done.status, done.stdout, text

    def _refuse(self, text: str) -> None:
        """Raise what Conan's text says of the remote's refusal, if it is of a kind that we know."""
        why = _said(text)
        users = f"set {USER} and {PASSWORD}; for this remote only, {USER}_{REMOTE.upper()} and so on"
        if "Unable to connect to remote" in text:
            raise FetchError(
                f"{self._url} does not answer",
                why=why,
                next="check that the remote runs, and that the engine's machine can reach it",
            )
        if "Wrong user or password" in text:
            raise FetchError(f"{self._url} does not accept this user with this password", why=why, next=users)
        if "interactive mode disabled" in text or "Found password in env-var" in text:
            raise FetchError(f"{self._url} asks for a user and a password", why=why, next=users)
        if "Permission denied for user" in text or "Forbidden" in text:
            raise FetchError(f"{self._url} does not permit this user to do that", why=why, next=users)

    def _hidden(self, text: str) -> str:
        for name, value in self.environment.items():
            if name.startswith(PASSWORD) and value:
                text = text.replace(value, "******")
        return text

    @staticmethod
    def _tail(text: str) -> str:
        return "\n".join([line for line in text.splitlines() if line.strip()][-_TAIL_LINES:])


def _said(text: str) -> str:
    """What Conan gives as the error, without its progress before and its advice after."""
    errors = [line.partition("ERROR: ")[2] for line in text.splitlines() if "ERROR: " in line]
    return "\n".join(errors or text.strip().splitlines()[:1])


def _uploaded(answer: Mapping[str, Any]) -> Iterator[bool]:
    """Whether each revision, of a recipe or a package, was sent: "upload" wherever it stands in Conan's answer."""
    for key, value in answer.items():
        if key == "upload":
            yield bool(value)
        elif isinstance(value, Mapping):
            yield from _uploaded(value)
