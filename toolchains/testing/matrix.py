"""The verb ci: every target that is proven with every release of Triton, as a CI system takes its matrix."""

from __future__ import annotations

import json

from toolchains.lockfile.lock import Lock


def matrix(lock: Lock) -> str:
    """One line of JSON, {"include": [{"target": ..., "triton": ...}, ...]}.

    Variants without parts of their own are left out, see Lock.proven.
    """
    pairs = [{"target": target.name, "triton": release} for target in lock.proven() for release in target.tritons]
    return json.dumps({"include": pairs})
