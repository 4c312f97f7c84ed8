"""Docker's context: the engine that DOCKER_CONTEXT or `docker context use` selects, found as docker itself does."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolchains.system import json_text
from toolchains.system.errors import EngineError


@dataclass(frozen=True)
class Context:
    """A context.

    Attributes:
        name: as `docker context ls` shows it.
        variables: the environment variables that select the same engine: DOCKER_HOST, and those for TLS.
    """

    name: str
    variables: Mapping[str, str]

    @property
    def host(self) -> str:
        """The address of its engine."""
        return self.variables["DOCKER_HOST"]


def variables() -> Mapping[str, str]:
    """Return the environment variables that select the engine of the context in use; none for the default context.

    Raises:
        EngineError: as current.
    """
    chosen = current()
    return chosen.variables if chosen else {}


def current() -> Context | None:
    """Return the context in use; None if DOCKER_HOST names the engine, or if it is the default context.

    Raises:
        EngineError: there is no such context, or its files are damaged.
    """
    folder = Path(os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker")
    if os.environ.get("DOCKER_HOST"):
        return None
    name = os.environ.get("DOCKER_CONTEXT")
    if not name and (config := folder / "config.json").is_file():
        name = str(_read(config, "").get("currentContext") or "")
    if name in ("", None, "default"):
        return None
    place = hashlib.sha256(name.encode()).hexdigest()
    file = folder / "contexts" / "meta" / place / "meta.json"
    try:
        endpoint = _read(file, name)["Endpoints"]["docker"]
        variables = {"DOCKER_HOST": str(endpoint["Host"])}
    except (KeyError, TypeError) as error:
        raise _unusable(name, f"{file} names no host") from error
    certificates = folder / "contexts" / "tls" / place / "docker"
    if certificates.is_dir():
        verify = "" if endpoint.get("SkipTLSVerify") else "1"
        variables |= {"DOCKER_CERT_PATH": str(certificates), "DOCKER_TLS_VERIFY": verify}
    return Context(name, variables)


def _read(file: Path, name: str) -> dict[str, Any]:
    try:
        return json_text.parse(file.read_text(encoding="utf-8"), dict[str, Any])
    except (OSError, ValueError) as error:
        raise _unusable(name, f"{file}: {error}") from error


def _unusable(name: str, why: str) -> EngineError:
    what = f"docker's context {name} cannot be used" if name else "docker's configuration cannot be read"
    return EngineError(what, why=why, next="docker context ls; docker context use default, or set DOCKER_HOST")
