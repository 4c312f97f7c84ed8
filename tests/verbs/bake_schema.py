"""The part of the reference of bake files that ours use, as a JSON Schema. Docker publishes none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_TEXTS = {"type": "array", "items": {"type": "string"}, "minItems": 1}
_TABLE = {"type": "object", "additionalProperties": {"type": "string"}, "minProperties": 1}
_NAMES = {"pattern": "^[a-zA-Z0-9_-]+$"}


def _only(properties: Mapping[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*required], "additionalProperties": False}


_TARGET = _only(
    {
        "args": _TABLE,
        "attest": _TEXTS,
        "context": {"type": "string"},
        "contexts": _TABLE,
        "labels": _TABLE,
        "network": {"enum": ["default", "host", "none"]},
        "output": _TEXTS,
        "platforms": _TEXTS,
        "tags": _TEXTS,
    },
    "context",
)
SCHEMA = _only(
    {
        "group": {
            "type": "object",
            "propertyNames": _NAMES,
            "additionalProperties": _only({"targets": _TEXTS}, "targets"),
        },
        "target": {"type": "object", "propertyNames": _NAMES, "additionalProperties": _TARGET},
    },
    "group",
    "target",
)
