"""The interface for fetching artifacts, with one class per kind. No other code of the project uses the network.

Each kind runs its ecosystem's own client (pip, apt) as a child process, so that a user's mirrors, proxies and
certificates work as they do elsewhere. Fetched files are not trusted: the store checks them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from toolchains.lockfile.lock import Artifact

# Called with the number of bytes that have arrived so far, for all files of one fetch.
Report = Callable[[int], None]


class ArtifactSource(Protocol):
    """Fetches files that the lock names."""

    def fetch(self, artifacts: Sequence[Artifact], into: Path, report: Report) -> None:
        """Write each artifact into a folder under its own file name, unchecked.

        Raises:
            GoneError: the archive no longer has one of them.
            FetchError: the network or the archive did not answer.
        """
