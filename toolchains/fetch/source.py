"""How bytes arrive: one class a kind. The only code of the project that uses the network.

Each kind leaves the transport to its own ecosystem's client (pip, apt), as a child process, so that a user's mirrors,
proxies and certificates work as they do elsewhere. What arrives is not trusted: the store checks it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from toolchains.lockfile.lock import Artifact

# Called with the number of bytes that have arrived so far, of all that one fetch asks for.
Report = Callable[[int], None]


class ArtifactSource(Protocol):
    """Brings files that the lock names."""

    def fetch(self, artifacts: Sequence[Artifact], into: Path, report: Report) -> None:
        """Put each artifact into a folder under its own file name, unchecked.

        Raises:
            GoneError: the archive no longer carries one of them.
            FetchError: the network or the archive did not answer.
        """
