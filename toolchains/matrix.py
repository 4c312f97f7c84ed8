"""The verb ci: every target with every release of Triton, as a CI system takes its matrix."""

from __future__ import annotations

import json

from .lock import Lock


def matrix(lock: Lock) -> str:
    """One line of JSON, {"include": [{"target": ..., "triton": ...}, ...]}.

    Variants of a target are left out.
    """
    pairs = [
        {"target": target.name, "triton": release}
        for target in lock.targets.values()
        if not target.variant
        for release in target.tritons
    ]
    return json.dumps({"include": pairs})
