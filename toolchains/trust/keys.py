"""Make ed25519 keys and read them: PATH has the private key (PKCS #8, PEM), PATH.pub the public one (PEM)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)
from securesystemslib.signer import CryptoSigner, Key, SSlibKey

from toolchains.system import foreign
from toolchains.system.errors import UsageError

_ED25519 = "ed25519"
# Bytes of a public key; one of ed25519 has 113.
_MOST = 1 << 16
_MAKE = "./foundry keys PATH, which makes a pair"


def make(path: Path) -> Key:
    """Make a key; return its public half. The private half can be read only by this user.

    Raises:
        UsageError: one of the two files exists, or cannot be written.
    """
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for place, content, mode in ((path, private, 0o600), (Path(f"{path}.pub"), public, 0o644)):
            # O_EXCL: nobody else's file is written to, not even through a link.
            with os.fdopen(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
                file.write(content)
    except FileExistsError as error:
        raise UsageError(
            f"{error.filename} exists", why="a key is never replaced", next="choose another name"
        ) from error
    except OSError as error:
        raise UsageError(f"{path} cannot be written", why=str(error.strerror)) from error
    return SSlibKey.from_crypto(key.public_key())


def read_private(path: Path) -> CryptoSigner:
    """Return what signs with a private key.

    Raises:
        UsageError: there is no such file, or it has no private ed25519 key without a password.
    """
    with _reading(path, "private"):
        signer = CryptoSigner(load_pem_private_key(path.read_bytes(), None))
        _check(signer.public_key)
    return signer


def read_public(path: Path) -> Key:
    """Return a public key.

    Raises:
        UsageError: there is no such file, or it has no public ed25519 key.
        FileError: it is too large, or no plain file.
    """
    with _reading(path, "public"):
        key = SSlibKey.from_crypto(load_pem_public_key(foreign.read_file(path, _MOST)))
        _check(key)
    return key


@contextmanager
def _reading(path: Path, kind: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(f"{path} cannot be read", why=str(error.strerror), next=_MAKE) from error
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise UsageError(f"{path} has no {kind} ed25519 key", why=str(error), next=_MAKE) from error


def _check(key: Key) -> None:
    if key.keytype != _ED25519:
        raise ValueError(f"it has one of the type {key.keytype}")
