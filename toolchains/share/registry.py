"""Talk to a registry by HTTP: its manifests, small blobs, and what refers to an image.

A registry is not trusted. What it sends is limited in size, and all its answers together in time. The user's password
is for its host only: it goes to no other one, wherever the registry leads, and not over HTTP beyond this machine.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar
from urllib.parse import SplitResult, urljoin, urlsplit

import docker.auth
import docker.errors
import msgspec
import requests

from toolchains.system import foreign, json_text
from toolchains.system.errors import FetchError, FileError, HashMismatchError, ImageError, UsageError

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_INDEX = "application/vnd.oci.image.index.v1+json"
_DOCKER = "application/vnd.docker.distribution.manifest.v2+json"
_EMPTY = "application/vnd.oci.empty.v1+json"
_ADDRESS = re.compile(r"(localhost|[\w-]+(\.[\w-]+)+|[\w-]+(?=:))(:\d+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*")
_LOCAL = re.compile(r"(localhost|127(\.\d+){3})(:\d+)?")
# Bytes of a manifest or a list, as the specification advises, and of a document; a statement has 300,000.
_MANIFEST_SIZE, _DOCUMENT_SIZE = 4 << 20, 16 << 20
# Seconds to connect, and of silence; and for which a registry may let this process wait in all.
_PATIENCE, _SECONDS = (10, 60), 600
# Addresses that lead to one answer, pages of a list, and entries in them.
_HOPS, _PAGES, _ENTRIES = 5, 50, 1000
# Top-level domains with a level below them that belongs to nobody, such as co.uk.
_SHARED = re.compile(r"\w{1,3}\.\w\w")
T = TypeVar("T")


class Descriptor(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What names a blob or a manifest in a registry."""

    media_type: str
    digest: str
    size: int
    artifact_type: str = ""
    annotations: Mapping[str, str] = {}


class RegistryManifest(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """An image, or a document about one, which is its subject."""

    schema_version: int
    media_type: str
    config: Descriptor
    layers: tuple[Descriptor, ...]
    artifact_type: str = ""
    subject: Descriptor | None = None


class _List(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    schema_version: int
    manifests: tuple[Descriptor, ...]
    media_type: str = ""


class _Token(msgspec.Struct):
    token: str = ""
    access_token: str = ""


class Document(msgspec.Struct, frozen=True):
    """A document about an image: the name of its file, its kind, how it is written, and its text."""

    name: str
    artifact_type: str
    media_type: str
    text: bytes


@dataclass(frozen=True)
class _Answer:
    """What came from an address, to which others may have led."""

    url: str
    status: int
    headers: Mapping[str, str]
    next: str
    body: bytes


class Repository:
    """The images of one name in a registry.

    Args:
        registry: HOST[:PORT][/PATH]. HTTP is used for this machine only, as Docker does; HTTPS for all others.
        image: the name below that.

    Raises:
        UsageError: this is not the address of a registry.
    """

    def __init__(self, registry: str, image: str) -> None:
        if not _ADDRESS.fullmatch(registry):
            raise UsageError(
                "not the address of a registry" + (f": {registry!r}" if "@" not in registry else ""),
                why="it has the form HOST[:PORT][/PATH], without http:// and without a user; HOST has a dot or a port",
                next="a registry such as localhost:5000 or registry.example/team",
            )
        self.name = f"{registry}/{image}"
        self._host, _, path = self.name.partition("/")
        self._is_local = bool(_LOCAL.fullmatch(self._host))
        self._url = f"{'http' if self._is_local else 'https'}://{self._host}/v2/{path}"
        self._session = requests.Session()
        self._authorization = ""
        self._left: float = _SECONDS

    def manifest(self, reference: str) -> tuple[Descriptor, RegistryManifest] | None:
        """Return the manifest with a tag or a digest, and what names it; None if there is none.

        Raises:
            HashMismatchError: it does not have this digest.
            ImageError: it is not a manifest of one image.
        """
        text = self._get(f"manifests/{reference}", f"{MANIFEST}, {_DOCKER}")
        if text is None:
            return None
        if reference.startswith("sha256:"):
            _compare(f"{self.name}@{reference}", text, reference)
        parsed = self._parsed(text, RegistryManifest, f"{self.name}: {reference} is not a manifest of one image")
        return Descriptor(parsed.media_type, _digest(text), len(text)), parsed

    def blob(self, digest: str) -> bytes:
        """Return a small blob.

        Raises:
            HashMismatchError: it does not have this digest.
        """
        text = self._get(f"blobs/{digest}", "*/*", _DOCUMENT_SIZE)
        if text is None:
            raise FetchError(f"{self.name} has no blob {digest}", next="push it again")
        _compare(f"{self.name}@{digest}", text, digest)
        return text

    def referrers(self, digest: str) -> list[Descriptor]:
        """Return what refers to the manifest with a digest.

        Raises:
            FetchError: the list has no end.
        """
        descriptors: list[Descriptor] = []
        path, pages = f"referrers/{digest}", 0
        while path:
            answer = self._send("GET", path, allowed=(200, 404), headers={"Accept": _INDEX})
            if answer.status == 404:
                return self._indexed(digest)
            descriptors += self._list(answer.body)
            path, pages = urljoin(answer.url, answer.next) if answer.next else "", pages + 1
            if len(descriptors) > _ENTRIES or (path and pages == _PAGES) or (path and not self._is_ours(path)):
                raise FetchError(
                    f"{self._host} does not end the list of what refers to an image",
                    why=f"after {pages} pages with {len(descriptors)} entries it names another one: {path or 'none'}",
                    next="tell those who run the registry",
                )
        return descriptors

    def attach(self, subject: Descriptor, document: Document) -> Descriptor:
        """Let a document refer to the manifest of an image; return what names the document's manifest.

        What the registry has of it is not sent. Two who attach at the same moment to an image in a registry without
        the API for referrers may lose one document, which push reports.
        """
        blobs = Descriptor(_EMPTY, _digest(b"{}"), 2), _described(document.media_type, document.text)
        for blob, text in zip(blobs, (b"{}", document.text), strict=True):
            if self._send("HEAD", f"blobs/{blob.digest}", allowed=(200, 404)).status == 404:
                place = self._send("POST", "blobs/uploads/", allowed=(202,)).headers.get("Location", "")
                octets, of = {"Content-Type": "application/octet-stream"}, {"digest": blob.digest}
                self._send("PUT", place, allowed=(201,), params=of, data=text, headers=octets)
        titled = msgspec.structs.replace(blobs[1], annotations={"org.opencontainers.image.title": document.name})
        text = _json(RegistryManifest(2, MANIFEST, blobs[0], (titled,), document.artifact_type, subject))
        manifest = msgspec.structs.replace(_described(MANIFEST, text), artifact_type=document.artifact_type)
        answer = self._put(f"manifests/{manifest.digest}", text, MANIFEST)
        if "OCI-Subject" not in answer.headers:
            listed = self._indexed(subject.digest)
            if manifest.digest not in [descriptor.digest for descriptor in listed]:
                self._put(f"manifests/{_tag(subject.digest)}", _json(_List(2, (*listed, manifest), _INDEX)), _INDEX)
        return manifest

    def _indexed(self, digest: str) -> list[Descriptor]:
        """Return what refers to a manifest by the index that stands for the API for referrers."""
        text = self._get(f"manifests/{_tag(digest)}", _INDEX)
        return self._list(text) if text is not None else []

    def _list(self, text: bytes) -> list[Descriptor]:
        return list(self._parsed(text, _List, f"{self.name}: not a list of what refers to an image").manifests)

    def _parsed(self, text: bytes, kind: type[T], what: str) -> T:
        try:
            return json_text.parse(text, kind)
        except ValueError as error:
            raise ImageError(what, why=str(error)) from error

    def _put(self, path: str, text: bytes, kind: str) -> _Answer:
        return self._send("PUT", path, allowed=(201,), data=text, headers={"Content-Type": kind})

    def _get(self, path: str, accepted: str, most: int = _MANIFEST_SIZE) -> bytes | None:
        answer = self._send("GET", path, allowed=(200, 404), most=most, headers={"Accept": accepted})
        return answer.body if answer.status == 200 else None

    def _send(
        self, method: str, path: str, *, allowed: tuple[int, ...], most: int = _MANIFEST_SIZE, **options: Any
    ) -> _Answer:
        """Send a request; with the user's credentials if the registry asks for them.

        Args:
            path: below the repository; or an address, which the registry gave.
            allowed: the statuses that are an answer.
            most: bytes that the answer may have.

        Raises:
            FetchError: the registry does not answer, or refuses.
        """
        url = urljoin(f"{self._url}/", path)
        # A place to upload to may be another machine.
        ours = self._is_ours(url)
        answer = self._exchange(method, url, self._authorization if ours else "", most, **options)
        if answer.status == 401 and ours and self._is_ours(answer.url):
            self._authorize(answer.headers.get("WWW-Authenticate", ""))
            answer = self._exchange(method, url, self._authorization, most, **options)
        if answer.status in (401, 403):
            raise self._refused(f"status {answer.status} for {method} {urlsplit(url).path}")
        if answer.status not in allowed:
            raise FetchError(
                f"{self._host} refused {method} {urlsplit(url).path}",
                why=f"status {answer.status}: {answer.body[:500].decode(errors='replace').strip()}",
                next="the same command again; what was sent is not sent again",
            )
        return answer

    def _exchange(self, method: str, url: str, authorization: str, most: int, **options: Any) -> _Answer:
        """Send a request; return the answer, within the time that is left to the registry.

        Args:
            authorization: the header, for the host of this address only.

        Raises:
            FetchError: no answer, or one that is too large, or leads to what must not be asked.
        """
        start = time.monotonic()
        try:
            return foreign.within(self._left, partial(self._follow, method, url, authorization, most, **options))
        except FileError as error:
            raise FetchError(error.what) from error
        # ValueError: this is not an address.
        except (requests.RequestException, TimeoutError, ValueError) as error:
            raise FetchError(
                f"the registry {self._host} does not answer",
                why=str(error),
                next="check the address, and type the same command again; what was sent is not sent again",
            ) from error
        finally:
            self._left -= time.monotonic() - start

    def _follow(self, method: str, url: str, authorization: str, most: int, **options: Any) -> _Answer:
        own, headers = _origin(url), {**options.pop("headers", {})}
        # A proxy would be another machine, which reads what goes to this one.
        proxies: dict[str, Any] = {"http": None, "https": None, "all": None} if self._is_local else {}
        for _ in range(_HOPS):
            if not self._is_safe(url):
                raise FetchError(
                    f"{self._host} leads to {url}",
                    why="HTTP is used for a registry on this machine only",
                    next="tell those who run the registry",
                )
            sent = {"Authorization": authorization} if authorization and _origin(url) == own else {}
            # Without `auth`, requests takes what ~/.netrc has, in place of this header.
            with self._session.request(
                method,
                url,
                headers=headers | sent,
                timeout=_PATIENCE,
                stream=True,
                auth=lambda request: request,
                allow_redirects=False,
                proxies=proxies,
                **options,
            ) as answer:
                if method in ("GET", "HEAD") and answer.is_redirect:
                    url = urljoin(url, answer.headers["Location"])
                    options.pop("params", None)
                    continue
                body = foreign.collect(answer.iter_content(1 << 16), most, f"the answer of {urlsplit(url).netloc}")
                onward = answer.links.get("next", {}).get("url", "")
                return _Answer(url, answer.status_code, answer.headers, onward, body)
        raise FetchError(f"{self._host} leads from one address to the next", why=f"the last one: {url}")

    def _is_safe(self, url: str) -> bool:
        """Return whether an address may be asked: by HTTPS, or on this machine for a registry on it."""
        parts = urlsplit(url)
        local = self._is_local and _LOCAL.fullmatch(parts.netloc) is not None
        return bool(parts.hostname) and (parts.scheme == "https" or (parts.scheme == "http" and local))

    def _is_ours(self, url: str) -> bool:
        return _origin(url) == _origin(self._url)

    def _authorize(self, challenge: str) -> None:
        """Answer the challenge of a registry, with the user's credentials if there are any.

        Raises:
            FetchError: there are none, they are of an unknown kind, or they are not accepted; or they would go to
                another host than the one they are for.
        """
        scheme, _, rest = challenge.partition(" ")
        user = self._user(self._host)
        if scheme.lower() == "basic" and user:
            self._authorization = user
            return
        words = dict(re.findall(r'(\w+)="([^"]*)"', rest))
        realm = words.get("realm", "")
        try:
            if scheme.lower() != "bearer" or not self._is_safe(realm):
                raise ValueError
            server = urlsplit(realm)
        except ValueError as error:
            asked_for = f"it asks for: {challenge}" if challenge else "it does not say what it asks for"
            raise self._refused(asked_for) from error
        if user and not self._may_know(server):
            user = self._user(server.netloc)
            if not user:
                raise self._refused(
                    f"it wants the password to be sent to {server.netloc}, and the password is for {self._host}",
                    f"docker login {server.netloc}, if you trust it with a password for {self._host}",
                )
        asked = {key: words[key] for key in ("service", "scope") if key in words}
        answer = self._exchange("GET", realm, user, _MANIFEST_SIZE, params=asked)
        try:
            token = json_text.parse(answer.body, _Token)
        except ValueError:
            token = _Token()
        if answer.status != 200 or not (token.token or token.access_token):
            raise self._refused(f"status {answer.status} from {server.netloc}, which gives tokens for it")
        self._authorization = f"Bearer {token.token or token.access_token}"

    def _may_know(self, server: SplitResult) -> bool:
        """Return whether a token server may get the registry's password.

        It may if it is the same host, or in the domain that the registry is in: auth.example.org and example.org for
        registry.example.org.
        """
        host = self._host.partition(":")[0].lower()
        domain = host.partition(".")[2]
        is_owned = "." in domain and not _SHARED.fullmatch(domain) and not host.replace(".", "").isdecimal()
        return (
            server.hostname == host
            or (self._is_local and _LOCAL.fullmatch(server.netloc) is not None)
            or (is_owned and f".{server.hostname}".endswith(f".{domain}"))
        )

    def _user(self, host: str) -> str:
        """Return the header with what Docker's configuration, or a credential helper that it names, has for a host."""
        try:
            credentials = docker.auth.resolve_authconfig(docker.auth.load_config(), host) or {}
        except docker.errors.DockerException as error:
            raise self._refused(f"the credentials cannot be read: {error}") from error
        credentials = {key.lower(): value for key, value in credentials.items()}
        if credentials.get("identitytoken"):
            raise self._refused("the configuration has an identity token for it, which is not supported")
        if "username" not in credentials:
            return ""
        return f"Basic {base64.b64encode('{username}:{password}'.format(**credentials).encode()).decode()}"

    def _refused(self, why: str, next: str = "") -> FetchError:
        return FetchError(
            f"{self._host} asks for a user and a password, or does not permit this", why=why, next=next or self.login
        )

    @property
    def login(self) -> str:
        """The command that gives the engine and us credentials for the registry."""
        return f"docker login {self._host}"


def _origin(url: str) -> tuple[str, str]:
    """Return what a password is for: how a host is asked, and its name and port."""
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.removesuffix(":443" if parts.scheme == "https" else ":80")


def _tag(digest: str) -> str:
    return digest.replace(":", "-")


def _digest(text: bytes) -> str:
    return f"sha256:{hashlib.sha256(text).hexdigest()}"


def _described(kind: str, text: bytes) -> Descriptor:
    return Descriptor(kind, _digest(text), len(text))


def _json(value: Any) -> bytes:
    return json.dumps(msgspec.to_builtins(value), sort_keys=True, separators=(",", ":")).encode()


def _compare(what: str, text: bytes, digest: str) -> None:
    if _digest(text) != digest:
        raise HashMismatchError(
            f"{what} is damaged in the registry", why=f"{_digest(text)}\nasked {digest}", next="push it again"
        )
