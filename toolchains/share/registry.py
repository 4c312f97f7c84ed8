"""Talk to a registry by HTTP: its manifests, small blobs, and what refers to an image."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, TypeVar
from urllib.parse import urljoin, urlsplit

import docker.auth
import docker.errors
import msgspec
import requests
from requests.auth import HTTPBasicAuth

from toolchains.system import json_text
from toolchains.system.errors import FetchError, HashMismatchError, ImageError, UsageError

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_INDEX = "application/vnd.oci.image.index.v1+json"
_DOCKER = "application/vnd.docker.distribution.manifest.v2+json"
_EMPTY = "application/vnd.oci.empty.v1+json"
_ADDRESS = re.compile(r"(localhost|[\w-]+(\.[\w-]+)+|[\w-]+(?=:))(:\d+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*")
_LOCAL = re.compile(r"(localhost|127(\.\d+){3})(:\d+)?")
# Bytes of a manifest or a document; a bill of materials has a few million.
_MOST = 64 << 20
# Seconds to connect, and of silence.
_PATIENCE = (10, 120)
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
        found = self._parsed(text, RegistryManifest, f"{self.name}: {reference} is not a manifest of one image")
        return Descriptor(found.media_type, _digest(text), len(text)), found

    def blob(self, digest: str) -> bytes:
        """Return a small blob.

        Raises:
            HashMismatchError: it does not have this digest.
        """
        text = self._get(f"blobs/{digest}", "*/*")
        if text is None:
            raise FetchError(f"{self.name} has no blob {digest}", next="push it again")
        _compare(f"{self.name}@{digest}", text, digest)
        return text

    def referrers(self, digest: str) -> list[Descriptor]:
        """Return what refers to the manifest with a digest."""
        found: list[Descriptor] = []
        path: str | None = f"referrers/{digest}"
        while path:
            answer = self._send("GET", path, allowed=(200, 404), headers={"Accept": _INDEX})
            if answer.status_code == 404:
                return self._indexed(digest)
            found += self._list(self._body(answer))
            path = answer.links.get("next", {}).get("url")
        return found

    def attach(self, subject: Descriptor, document: Document) -> Descriptor:
        """Let a document refer to the manifest of an image; return what names the document's manifest.

        What the registry has of it is not sent. Two who attach at the same moment to an image in a registry without
        the API for referrers may lose one document, which push reports.
        """
        blobs = Descriptor(_EMPTY, _digest(b"{}"), 2), _described(document.media_type, document.text)
        for blob, text in zip(blobs, (b"{}", document.text), strict=True):
            self._upload(blob.digest, text)
        titled = msgspec.structs.replace(blobs[1], annotations={"org.opencontainers.image.title": document.name})
        text = _json(RegistryManifest(2, MANIFEST, blobs[0], (titled,), document.artifact_type, subject))
        made = msgspec.structs.replace(_described(MANIFEST, text), artifact_type=document.artifact_type)
        answer = self._put(f"manifests/{made.digest}", text, MANIFEST)
        if "OCI-Subject" not in answer.headers:
            there = self._indexed(subject.digest)
            if made.digest not in [each.digest for each in there]:
                self._put(f"manifests/{_tag(subject.digest)}", _json(_List(2, (*there, made), _INDEX)), _INDEX)
        return made

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

    def _upload(self, digest: str, text: bytes) -> None:
        if self._send("HEAD", f"blobs/{digest}", allowed=(200, 404)).status_code == 404:
            place = self._send("POST", "blobs/uploads/", allowed=(202,)).headers.get("Location", "")
            octets = {"Content-Type": "application/octet-stream"}
            self._send("PUT", place, allowed=(201,), params={"digest": digest}, data=text, headers=octets)

    def _put(self, path: str, text: bytes, kind: str) -> requests.Response:
        return self._send("PUT", path, allowed=(201,), data=text, headers={"Content-Type": kind})

    def _get(self, path: str, accepted: str) -> bytes | None:
        answer = self._send("GET", path, allowed=(200, 404), headers={"Accept": accepted})
        return self._body(answer) if answer.status_code == 200 else None

    def _body(self, answer: requests.Response) -> bytes:
        text = b""
        try:
            for chunk in answer.iter_content(1 << 16):
                text += chunk
                if len(text) > _MOST:
                    raise FetchError(f"{self._host} sent more than {_MOST >> 20} MB for a document about an image")
        except requests.RequestException as error:
            raise self._silent(error) from error
        return text

    def _send(self, method: str, path: str, *, allowed: tuple[int, ...], **given: Any) -> requests.Response:
        """Send a request; with the user's credentials if the registry asks for them.

        Args:
            path: below the repository; or an address, which the registry gave.
            allowed: the statuses that are an answer.

        Raises:
            FetchError: the registry does not answer, or refuses.
        """
        url = urljoin(f"{self._url}/", path)
        try:
            answer = self._request(method, url, **given)
            if answer.status_code == 401 and urlsplit(url).netloc == self._host:
                self._authorize(answer.headers.get("WWW-Authenticate", ""))
                answer = self._request(method, url, **given)
        except requests.RequestException as error:
            raise self._silent(error) from error
        if answer.status_code in (401, 403):
            raise self._refused(f"status {answer.status_code} for {method} {urlsplit(url).path}")
        if answer.status_code not in allowed:
            raise FetchError(
                f"{self._host} refused {method} {urlsplit(url).path}",
                why=f"status {answer.status_code}: {self._body(answer)[:500].decode(errors='replace').strip()}",
                next="the same command again; what was sent is not sent again",
            )
        return answer

    def _request(self, method: str, url: str, **given: Any) -> requests.Response:
        headers = dict(given.pop("headers", {}))
        # A place to upload to may be another machine.
        if self._authorization and urlsplit(url).netloc == self._host:
            headers["Authorization"] = self._authorization
        # Without `auth`, requests takes what ~/.netrc has, in place of this header.
        return self._session.request(
            method, url, headers=headers, timeout=_PATIENCE, stream=True, auth=lambda request: request, **given
        )

    def _authorize(self, challenge: str) -> None:
        """Answer the challenge of a registry, with the user's credentials if there are any.

        Raises:
            FetchError: there are none, they are of an unknown kind, or they are not accepted.
        """
        scheme, _, rest = challenge.partition(" ")
        user = self._user()
        if scheme.lower() == "basic" and user:
            request = user(requests.Request("GET", self._url).prepare())
            self._authorization = request.headers["Authorization"]
            return
        words = dict(re.findall(r'(\w+)="([^"]*)"', rest))
        realm = urlsplit(words.get("realm", ""))
        if scheme.lower() != "bearer" or not (realm.scheme == "https" or (realm.scheme == "http" and self._is_local)):
            raise self._refused(f"it asks for: {challenge}" if challenge else "it does not say what it asks for")
        asked = {key: words[key] for key in ("service", "scope") if key in words}
        answer = self._session.get(
            realm.geturl(), params=asked, timeout=_PATIENCE, stream=True, auth=user or (lambda request: request)
        )
        try:
            token = json_text.parse(self._body(answer), _Token)
        except ValueError:
            token = _Token()
        if answer.status_code != 200 or not (token.token or token.access_token):
            raise self._refused(f"status {answer.status_code} from {realm.netloc}, which gives tokens for it")
        self._authorization = f"Bearer {token.token or token.access_token}"

    def _user(self) -> HTTPBasicAuth | None:
        """Return what Docker's configuration, or a credential helper that it names, has for the registry."""
        try:
            found = docker.auth.resolve_authconfig(docker.auth.load_config(), self._host) or {}
        except docker.errors.DockerException as error:
            raise self._refused(f"the credentials cannot be read: {error}") from error
        found = {key.lower(): value for key, value in found.items()}
        if found.get("identitytoken"):
            raise self._refused("the configuration has an identity token for it, which is not supported")
        return HTTPBasicAuth(found["username"], found["password"]) if "username" in found else None

    def _refused(self, why: str) -> FetchError:
        return FetchError(
            f"{self._host} asks for a user and a password, or does not permit this", why=why, next=self.login
        )

    def _silent(self, error: requests.RequestException) -> FetchError:
        return FetchError(
            f"the registry {self._host} does not answer",
            why=str(error),
            next="check the address, and type the same command again; what was sent is not sent again",
        )

    @property
    def login(self) -> str:
        """The command that gives the engine and us credentials for the registry."""
        return f"docker login {self._host}"


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
