"""The verb ci: print every proven target with every release of Triton, as the matrix of a CI system."""

from __future__ import annotations

import json

from toolchains.lockfile.lock import Lock


def matrix(lock: Lock) -> str:
    """Return one line of JSON, {"include": [{"target": ..., "triton": ...}, ...]}.

    Variants without their own parts are left out; see Lock.proven.
    """
    pairs = [{"target": target.name, "triton": release} for target in lock.proven() for release in target.tritons]
    return json.dumps({"include": pairs})
